"""The notification that an upload has come: S3's event, or the reminder that replaces a lost one."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pydantic import BaseModel, ValidationError

from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.ids import IMAGE_ID_PATTERN
from darkroom.domain.kernel.lanes import UPLOAD
from darkroom.domain.kernel.message import Message, UnreadableMessage, read_message
from darkroom.domain.kernel.retry import RetryPolicy, returns_in

# S3 percent-encodes the keys in its events; in ours that affects at most the slash
# (https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html).
_ENCODED_KEY = re.compile(rf"uploads(?:/|%2[Ff])({IMAGE_ID_PATTERN})")


def upload_key(image_id: str) -> str:
    """The key of an image's upload."""
    return f"uploads/{image_id}"


@dataclass(frozen=True, kw_only=True)
class UploadNotification:
    """The images whose uploads may be here. The sweeper sends a reminder, and another if this one fails; S3 sends an
    event once."""

    image_ids: tuple[str, ...]
    is_reminder: bool = False


@dataclass(frozen=True, kw_only=True)
class Returns:
    """A notification that could not be settled comes back: `in_seconds` from now, or, if that is None, by itself after
    its queue's visibility timeout."""

    in_seconds: int | None


def when_notification_returns(
    failure: Exception, *, receive_count: int, is_reminder: bool, unit_random: float
) -> Returns | None:
    """When a received notification comes back after `failure`; None if it may go.

    After an outage it comes back, but never as a dead letter, because its upload is fine: the row is due for a look,
    and the sweeper finds what has come. One that hit a bug comes back by itself and ends as a dead letter: one for each
    event of S3, and none for the sweeper's reminders, of which more come.
    """
    if isinstance(failure, Retryable):
        delay_seconds = RetryPolicy().delay_seconds(receive_count, unit_random)
        # guard: upload-outage-no-dead-letter
        in_seconds = returns_in(max(delay_seconds, failure.retry_after_seconds), receive_count=receive_count)
        return None if in_seconds is None else Returns(in_seconds=in_seconds)
    if is_reminder and returns_in(0, receive_count=receive_count) is None:  # guard: upload-reminder-no-dead-letter
        return None
    return Returns(in_seconds=None)


class _Object(BaseModel):
    key: str


class _S3(BaseModel):
    object: _Object


class _Record(BaseModel):
    s3: _S3


class _Event(BaseModel):
    """The parts of S3's event that matter here; the rest differs from version to version."""

    Records: tuple[_Record, ...]


class _TestEvent(BaseModel):
    """What S3 sends when a bucket's notifications are set up, to test whether it may."""

    Service: str
    Event: str


def read_notification(body: str) -> UploadNotification:
    """The notification in a message's body; without images if S3 only tests the queue, or if other objects came.

    Raises UnreadableMessage.
    """
    event = _read(_Event, body)
    if event is not None:
        keys = [_ENCODED_KEY.fullmatch(record.s3.object.key) for record in event.Records]
        return UploadNotification(image_ids=tuple(dict.fromkeys(key[1] for key in keys if key is not None)))
    test = _read(_TestEvent, body)
    if test is not None and test.Event == "s3:TestEvent":
        return UploadNotification(image_ids=())
    return UploadNotification(image_ids=(read_message(body).image_id,), is_reminder=True)


def is_of_s3(body: str) -> bool:
    """Whether the body has the form of what S3 sends, an event or its test."""
    test = _read(_TestEvent, body)
    return _read(_Event, body) is not None or (test is not None and test.Event == "s3:TestEvent")


def read_dead_letter(body: str) -> Message:
    """The message of a dead letter. S3's event of an upload counts as a message for its image's first run, whoever owns
    it. Raises UnreadableMessage."""
    try:
        return read_message(body)
    except UnreadableMessage:
        event = _read(_Event, body)
        image_ids = () if event is None else read_notification(body).image_ids
        if len(image_ids) != 1:
            raise
        return Message(image_id=image_ids[0], tenant_id=NOBODY, lane=UPLOAD, run=1, schedule=0)


NOBODY = "-"
"""The tenant of a dead letter that does not name one."""


def _read[Form: BaseModel](form: type[Form], body: str) -> Form | None:
    try:
        return form.model_validate_json(body)
    except ValidationError:
        return None
