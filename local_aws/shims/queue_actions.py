"""What the SQS shims share: its errors, its lock, and the one way to replace an action."""

import functools
from collections.abc import Callable
from typing import Any

from local_aws.ministack_internals import internals, replace


def replace_action(action: str, build: Callable[[Any], Any]) -> None:
    """Replace an action of SQS by `build(original)`, for requests and for MiniStack's own calls."""
    sqs = internals("services.sqs")
    name = sqs._HANDLERS[action].__name__
    replace(sqs, name, lambda original: functools.wraps(original)(build(original)))
    sqs._HANDLERS[action] = getattr(sqs, name)


def error(code: str, message: str, status: int = 400) -> Exception:
    """Return the exception that SQS answers with this error."""
    exception: Exception = internals("services.sqs")._Err(code, message, status)
    return exception


def queues_lock() -> Any:
    """Return the lock to hold while a queue's messages are read and changed."""
    return internals("services.sqs")._queues_lock
