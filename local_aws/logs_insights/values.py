"""The values of fields: texts, numbers, timestamps, and nothing. What is true is 1, what is false 0."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime

type Value = str | float | None

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_CHUNK = re.compile(r"\d+|\D+")


class Timestamp(int):
    """Milliseconds since 1970, written as a date."""


def number(value: Value) -> float | None:
    """A number, as such or as text; None if it is none."""
    if isinstance(value, str):
        return float(value) if _NUMBER.fullmatch(value) else None
    return value


def truth(value: Value) -> bool | None:
    """Whether a value is true; None if there is none."""
    if value is None:
        return None
    return bool(value) if isinstance(value, str) else value != 0


def text(value: Value) -> str:
    """A value as queries write it and work with it; nothing is an empty text."""
    if value is None:
        return ""
    if isinstance(value, Timestamp):
        moment = datetime.fromtimestamp(value / 1000, UTC)
        return moment.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def compare(left: Value, right: Value) -> int | None:
    """Less than, equal to or greater than 0, as left is to right; None if one is missing."""
    if left is None or right is None:
        return None
    numbers = number(left), number(right)
    if numbers[0] is not None and numbers[1] is not None:
        return (numbers[0] > numbers[1]) - (numbers[0] < numbers[1])
    return (text(left) > text(right)) - (text(left) < text(right))


def sort_key(value: Value) -> tuple[int, Sequence[tuple[int, int, str]], float]:
    """The place of a value in ascending order: nothing, then texts in natural order, then numbers.

    https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/CWL_QuerySyntax-Sort.html
    """
    if value is None:
        return 0, (), 0
    known = number(value)
    if known is not None:
        return 2, (), known
    chunks = [
        (ord("0"), len(chunk), chunk) if chunk.isdecimal() else (ord(chunk[0]), 0, chunk)
        for chunk in _CHUNK.findall(text(value))
    ]
    return 1, chunks, 0
