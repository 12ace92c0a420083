"""Applies the filters of event source mappings to what an event lacks, and by all of their operators.

Gap: MiniStack knows neither `$or` nor `equals-ignore-case`. It lets no event through whose path ends early, even if the
filter says that the value must not exist; it takes an object for a value that exists, and one that is missing for any
other value than those of `anything-but`. It compares text with numbers, and lists as a whole.
AWS: a pattern matches values at the ends of their paths, so `exists` says nothing of objects in between, and what lacks
an object lacks all values in it. `anything-but` and the other operators want a value. Numbers match numbers only, so
not DynamoDB's, which are text. Of a list, one element is enough.
https://docs.aws.amazon.com/lambda/latest/dg/invocation-eventfiltering.html#filtering-syntax
https://docs.aws.amazon.com/lambda/latest/dg/with-ddb-filtering.html
https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-create-pattern-operators.html

What still differs from AWS: AWS documents filters of DynamoDB's events by the key `dynamodb` only; here they may use
`eventName` and the others too, as AWS's examples do. A mapping with an invalid filter is not refused.
"""

from collections.abc import Mapping
from typing import Any

from embedded_aws.emulator import Emulator
from embedded_aws.ministack_internals import internals, replace


def apply(emulator: Emulator) -> None:
    """Replace the comparison of an event with a pattern."""
    replace(internals("services.lambda_svc"), "_match_esm_filter", lambda _: matches)


def matches(event: Mapping[str, Any], pattern: Mapping[str, Any]) -> bool:
    """Whether an event has all that a pattern wants."""
    return all(
        any(matches(event, alternative) for alternative in wanted)
        if name == "$or"
        else _has(event.get(name), wanted, exists=name in event)
        for name, wanted in pattern.items()
    )


def _has(value: Any, wanted: Any, *, exists: bool) -> bool:
    if isinstance(wanted, Mapping):
        return matches(value if isinstance(value, Mapping) else {}, wanted)
    values = (value if isinstance(value, list) else [value]) if exists and not isinstance(value, Mapping) else []
    return isinstance(wanted, list) and any(_follows(values, rule) for rule in wanted)


def _follows(values: list[Any], rule: Any) -> bool:
    if not isinstance(rule, Mapping):
        return any(_equals(value, rule) for value in values)
    operator, operand = next(iter(rule.items()))
    if operator == "exists":
        return bool(values) is bool(operand)
    if operator == "anything-but":
        excluded = operand if isinstance(operand, list) else [operand]
        return bool(values) and not any(_follows(values, one) for one in excluded)
    if operator == "numeric":
        return any(_is_in_range(value, operand) for value in values)
    return any(isinstance(value, str) and _compare(value, operator, operand) for value in values)


def _equals(value: Any, wanted: Any) -> bool:
    # To Python, true is 1.
    return bool(value == wanted) and isinstance(value, bool) == isinstance(wanted, bool)


def _is_in_range(value: Any, conditions: list[Any]) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    compared = {
        "=": lambda bound: value == bound,
        ">": lambda bound: value > bound,
        ">=": lambda bound: value >= bound,
        "<": lambda bound: value < bound,
        "<=": lambda bound: value <= bound,
    }
    return all(compared[operator](bound) for operator, bound in zip(conditions[::2], conditions[1::2], strict=True))


def _compare(value: str, operator: str, operand: str) -> bool:
    if operator == "prefix":
        return value.startswith(operand)
    if operator == "suffix":
        return value.endswith(operand)
    return operator == "equals-ignore-case" and value.casefold() == operand.casefold()
