"""The notification that an upload has arrived."""

import pytest

from darkroom.domain.images.image import message_for
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.message import UnreadableMessage
from darkroom.domain.uploads.upload_notification import (
    Returns,
    UploadNotification,
    read_dead_letter,
    read_notification,
    upload_key,
    when_notification_returns,
)
from tests.support.images import awaiting
from tests.support.notifications import TEST_EVENT, event

ID, OTHER = "0" * 26, "1" * 26


def test_an_event_tells_of_the_images_that_its_keys_name_each_once() -> None:
    assert read_notification(event(upload_key(ID))) == UploadNotification(image_ids=(ID,))
    assert read_notification(event(f"uploads%2F{ID}")) == UploadNotification(image_ids=(ID,))
    assert read_notification(event(upload_key(ID), upload_key(OTHER), upload_key(ID))) == UploadNotification(
        image_ids=(ID, OTHER)
    )


def test_other_objects_and_the_test_event_of_s3_are_no_notifications() -> None:
    for key in ("uploads/x", f"originals/{ID}", f"uploads/{ID}/x", f"uploads/{ID}\n", "", "uploads/"):
        assert read_notification(event(key)) == UploadNotification(image_ids=()), key
    assert read_notification(TEST_EVENT) == UploadNotification(image_ids=())


def test_a_reminder_names_its_image() -> None:
    assert read_notification(message_for(awaiting()).model_dump_json()) == UploadNotification(
        image_ids=(ID,), is_reminder=True
    )


@pytest.mark.parametrize(
    "body", ["", "hello", "{}", "[]", '{"Records": 1}', '{"Records": [{"s3": {}}]}', '{"Event": "s3:TestEvent"}']
)
def test_whatever_else_comes_is_not_understood(body: str) -> None:
    with pytest.raises(UnreadableMessage):
        read_notification(body)


def test_a_dead_event_is_a_dead_letter_of_its_image() -> None:
    message = message_for(awaiting())
    assert read_dead_letter(message.model_dump_json()) == message
    assert read_dead_letter(event(upload_key(ID))) == message.model_copy(update={"tenant_id": "-", "lane": "upload"})


@pytest.mark.parametrize("body", ["hello", TEST_EVENT, event(), event(upload_key(ID), upload_key(OTHER)), event("x")])
def test_what_names_no_image_or_several_is_no_dead_letter(body: str) -> None:
    with pytest.raises(UnreadableMessage):
        read_dead_letter(body)


@pytest.mark.parametrize(
    ("failure", "receive_count", "is_reminder", "returns"),
    [
        (Retryable("an outage"), 1, False, Returns(in_seconds=25)),
        (Retryable("an outage"), 4, True, Returns(in_seconds=200)),
        (Retryable("an outage", retry_after_seconds=60), 1, False, Returns(in_seconds=60)),
        (Retryable("an outage"), 5, False, None),
        (Retryable("an outage"), 5, True, None),
        (ZeroDivisionError("a bug"), 1, False, Returns(in_seconds=None)),
        (ZeroDivisionError("a bug"), 5, False, Returns(in_seconds=None)),
        (ZeroDivisionError("a bug"), 4, True, Returns(in_seconds=None)),
        (ZeroDivisionError("a bug"), 5, True, None),
    ],
)
def test_an_unsettled_notification_returns_unless_the_sweeper_takes_care_of_it(
    failure: Exception, receive_count: int, is_reminder: bool, returns: Returns | None
) -> None:
    asked = when_notification_returns(failure, receive_count=receive_count, is_reminder=is_reminder, unit_random=0.5)
    assert asked == returns
