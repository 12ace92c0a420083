"""Errors named by what the caller must do about them: try again, or tell the client why it can never work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Retryable(Exception):
    """Something outside failed and may work later: try the same work again; nothing is lost.

    Raised for throttling, timeouts, unavailable services and another worker's lease; never for the image's own fault.
    `retry_after_seconds` is how long a retry is pointless, as far as that is known.
    """

    def __init__(self, message: str = "", *, retry_after_seconds: int = 0) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class Misconfigured(Retryable):
    """A call to AWS is denied, or what it needs is gone or disabled: once an operator has put that right, the same
    request works. Raised only where a client is answered: a worker that is denied has failed, so that alarms tell."""


class Rejected(Exception):
    """This image or request can never succeed: tell the client `code` and `message`, and do not try again.

    `code` is stable (clients branch on it); `message` is a sentence for people that says what to do.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class NeedsOperator(Exception):
    """Only an operator can help this image: end its run now, with one dead letter, and do not try again. Another
    attempt would have the same result, and the client can do nothing about it.

    `code` and `message` are what the client is told, as in Rejected.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class TurnedAway(Exception):
    """Nothing is wrong with the request, but there is too much load now: send the same again after
    `retry_after_seconds`.

    `code` says whose load: `too_many_requests` (the tenant's own) or `overloaded` (everybody's).
    """

    def __init__(self, code: str, message: str, *, retry_after_seconds: int) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retry_after_seconds = retry_after_seconds


class UnknownImage(LookupError):
    """This tenant has no image with that id; another tenant's image is treated like a missing one."""


# Any other exception is a bug: the work is retried, and after the last attempt the image is `failed` with INTERNAL.
INTERNAL = "internal"
"""The `error.code` of an image whose processing kept failing for reasons other than the image."""

EXPIRED = "expired"
"""The `error.code` of an image whose `expires_at` came before a worker did."""

WORKER_LOST = "worker_lost"
"""The `error.code` of an image whose workers died (timeout, memory kill) until the attempts ran out."""

BATCH_STOPPED = "batch_stopped"
"""The `error.code` of work beside an image that its batch has taken back: nothing of it was begun."""

ORIGINAL_MISSING = "original_missing"
"""The `error.code` of an image whose original was removed from its bucket."""

OVERLAY_MISSING = "overlay_missing"
"""The `error.code` of an image with an overlay whose image was deleted before it could be developed."""

OVERLAY_UNDECODABLE = "overlay_undecodable"
"""The `error.code` of an image with an overlay that was developed before, but no longer can be."""

NEVER_UPLOADED = "never_uploaded"
"""The `error.code` of an image whose upload was announced and never came."""

FETCH_FAILED = "fetch_failed"
"""The `error.code` of an image whose fetching failed on our side, or for a reason that may pass."""


def demand_none(failures: Mapping[Any, Exception]) -> None:
    """Raises the first of the failures, if there are any."""
    for failure in failures.values():
        raise failure


class Unplaceable(ValueError):
    """An image that no retry by this version brings to a lane: leave it out, so that the others go on. Its row is due
    for a look after its time, by a sweeper that may know its lane."""
