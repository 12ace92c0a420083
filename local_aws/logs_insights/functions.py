"""The functions of a query that work on one row.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/CWL_QuerySyntax-operations-functions.html
"""

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from local_aws.logs_insights.values import Timestamp, Value, number, text

_UNITS_MS = {
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), 1),
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1_000),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60_000),
    **dict.fromkeys(("h", "hr", "hour", "hours"), 3_600_000),
    **dict.fromkeys(("d", "day", "days"), 86_400_000),
    **dict.fromkeys(("w", "week", "weeks"), 604_800_000),
}


@dataclass(frozen=True, kw_only=True)
class Function:
    """A function, and how many arguments it takes."""

    apply: Callable[..., Value]
    least: int
    most: int | None = None

    def accepts(self, count: int) -> bool:
        """Whether it takes so many arguments."""
        return self.least <= count and (self.most is None or count <= self.most)


def period_ms(written: str) -> int | None:
    """The milliseconds of a period such as 5m; None if its unit is unknown."""
    digits = written.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    unit = _UNITS_MS.get(written[len(digits) :].lower())
    return int(digits) * unit if unit and int(digits) else None


def floor_to(timestamp: Value, length_ms: Value) -> Value:
    """The beginning of a timestamp's period."""
    at, length = number(timestamp), number(length_ms)
    return None if at is None or not length else Timestamp(int(at // length * length))


def _ceil_to(timestamp: Value, length_ms: Value) -> Value:
    at, length = number(timestamp), number(length_ms)
    return None if at is None or not length else Timestamp(int(-(-at // length) * length))


def _of_numbers(calculate: Callable[..., float]) -> Callable[..., Value]:
    @functools.wraps(calculate)
    def calculate_if_known(*arguments: Value) -> Value:
        numbers = [number(argument) for argument in arguments]
        try:
            return None if None in numbers else calculate(*numbers)
        except (ArithmeticError, ValueError):
            return None

    return calculate_if_known


def _of_texts(transform: Callable[[str], str | int]) -> Callable[[Value], Value]:
    return lambda value: None if value is None else transform(text(value))


def _strip(side: Callable[..., str]) -> Callable[..., Value]:
    def strip(value: Value, characters: Value = None) -> Value:
        return None if value is None else side(text(value), None if characters is None else text(characters))

    return strip


def _substr(value: Value, start: Value, length: Value = None) -> Value:
    first, count = number(start), number(length)
    if value is None or first is None:
        return None
    return text(value)[int(first) :][: None if count is None else int(count)]


def _replace(value: Value, searched: Value, replacement: Value) -> Value:
    return None if value is None else text(value).replace(text(searched), text(replacement))


FUNCTIONS: Mapping[str, Function] = {
    "abs": Function(apply=_of_numbers(abs), least=1, most=1),
    "ceil": Function(apply=_of_numbers(math.ceil), least=1, most=1),
    "floor": Function(apply=_of_numbers(math.floor), least=1, most=1),
    "greatest": Function(apply=_of_numbers(max), least=2),
    "least": Function(apply=_of_numbers(min), least=2),
    "log": Function(apply=_of_numbers(math.log), least=1, most=1),
    "sqrt": Function(apply=_of_numbers(math.sqrt), least=1, most=1),
    "ispresent": Function(apply=lambda value: int(value is not None), least=1, most=1),
    "coalesce": Function(apply=lambda *values: next((each for each in values if each is not None), None), least=1),
    "isempty": Function(apply=lambda value: int(not text(value)), least=1, most=1),
    "isblank": Function(apply=lambda value: int(not text(value).strip()), least=1, most=1),
    "concat": Function(apply=lambda *values: "".join(text(each) for each in values), least=1),
    "strlen": Function(apply=_of_texts(len), least=1, most=1),
    "toupper": Function(apply=_of_texts(str.upper), least=1, most=1),
    "tolower": Function(apply=_of_texts(str.lower), least=1, most=1),
    "trim": Function(apply=_strip(str.strip), least=1, most=2),
    "ltrim": Function(apply=_strip(str.lstrip), least=1, most=2),
    "rtrim": Function(apply=_strip(str.rstrip), least=1, most=2),
    "substr": Function(apply=_substr, least=2, most=3),
    "replace": Function(apply=_replace, least=3, most=3),
    "strcontains": Function(
        apply=lambda value, searched: None if value is None else int(text(searched) in text(value)), least=2, most=2
    ),
    "frommillis": Function(
        apply=lambda value: None if (known := number(value)) is None else Timestamp(int(known)), least=1, most=1
    ),
    "tomillis": Function(apply=lambda value: None if (known := number(value)) is None else int(known), least=1, most=1),
    "datefloor": Function(apply=floor_to, least=2, most=2),
    "dateceil": Function(apply=_ceil_to, least=2, most=2),
}
"""By their names in lower case; `bin` is the parser's, since it works on @timestamp."""
