"""Reads expressions: comparisons, arithmetic, functions, and in `stats` the functions of groups."""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from local_aws.logs_insights.aggregates import AGGREGATES, Aggregate, Evaluate
from local_aws.logs_insights.functions import FUNCTIONS, floor_to, period_ms
from local_aws.logs_insights.rows import Row
from local_aws.logs_insights.scanner import MalformedQuery, Scanner, Token
from local_aws.logs_insights.values import Value, compare, number, text, truth

_COMPARISONS: Mapping[str, Callable[[int, int], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_ARITHMETIC: Mapping[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": operator.mod,
    "^": operator.pow,
}
_CONSTANTS = {"true": 1, "false": 0}


@dataclass(frozen=True, kw_only=True)
class Expression:
    """Something that has a value for each row; `name` is the field that it makes, without an alias its own text."""

    name: str
    evaluate: Evaluate


class ExpressionReader:
    """Reads expressions from a scanner. Within `stats`, functions of groups are collected in `aggregates`, and read
    from the group's row under the name that they have there."""

    def __init__(self, scanner: Scanner) -> None:
        self._scanner = scanner
        self.aggregates: dict[str, Aggregate] | None = None

    def read_named(self) -> Expression:
        """An expression, perhaps with an alias."""
        start = self._scanner.next.start
        is_field = self._scanner.next.kind == "name"
        field = self._scanner.next.text
        evaluate = self.read()
        written = self._scanner.text(start)
        # A quoted field is named without its quotes.
        name = field if is_field and written.strip("`") == field else written
        if self._scanner.take_if("as"):
            name = self._scanner.take_kind("name", "a name").text
        return Expression(name=name, evaluate=evaluate)

    def read(self) -> Evaluate:
        """A whole expression."""
        return self._read_or()

    # Each level binds closer than the one before it.

    def _read_or(self) -> Evaluate:
        operands = [self._read_and()]
        while self._scanner.take_if("or"):
            operands.append(self._read_and())
        return operands[0] if len(operands) == 1 else lambda row: _joined(operands, row, decisive=True)

    def _read_and(self) -> Evaluate:
        operands = [self._read_not()]
        while self._scanner.take_if("and"):
            operands.append(self._read_not())
        return operands[0] if len(operands) == 1 else lambda row: _joined(operands, row, decisive=False)

    def _read_not(self) -> Evaluate:
        if not self._scanner.take_if("not"):
            return self._read_comparison()
        return _negated(self._read_not())

    def _read_comparison(self) -> Evaluate:
        left = self._read_sum()
        if self._scanner.next.is_(*_COMPARISONS):
            holds, right = _COMPARISONS[self._scanner.take().text], self._read_sum()
            return lambda row: None if (order := compare(left(row), right(row))) is None else int(holds(order, 0))
        if self._scanner.take_if("=~"):
            return self._read_like(left, only_regex=True)
        is_negated = self._scanner.take_if("not")
        if self._scanner.take_if("like"):
            condition = self._read_like(left)
        elif self._scanner.take_if("in"):
            condition = self._read_in(left)
        elif is_negated:
            self._scanner.fail("expected like or in")
        else:
            return left
        return _negated(condition) if is_negated else condition

    def _read_like(self, left: Evaluate, *, only_regex: bool = False) -> Evaluate:
        expression = self._scanner.take_regex()
        if expression is not None:
            searched = expression
            return lambda row: _flag(left(row), lambda value: searched.search(text(value)) is not None)
        if only_regex:
            self._scanner.fail("expected a regular expression between slashes")
        part = self._scanner.take_kind("text", "a text in quotes or a regular expression between slashes").text
        return lambda row: _flag(left(row), lambda value: part in text(value))

    def _read_in(self, left: Evaluate) -> Evaluate:
        self._scanner.take("[")
        members = [self._read_sum()]
        while self._scanner.take_if(","):
            members.append(self._read_sum())
        self._scanner.take("]")
        return lambda row: _flag(left(row), lambda value: any(compare(value, each(row)) == 0 for each in members))

    def _read_sum(self) -> Evaluate:
        return self._read_arithmetic(("+", "-"), self._read_product)

    def _read_product(self) -> Evaluate:
        return self._read_arithmetic(("*", "/", "%"), self._read_power)

    def _read_power(self) -> Evaluate:
        return self._read_arithmetic(("^",), self._read_signed)

    def _read_arithmetic(self, signs: Sequence[str], read: Callable[[], Evaluate]) -> Evaluate:
        result = read()
        while self._scanner.next.is_(*signs):
            result = _calculation(_ARITHMETIC[self._scanner.take().text], result, read())
        return result

    def _read_signed(self) -> Evaluate:
        if not self._scanner.take_if("-"):
            return self._read_primary()
        operand = self._read_signed()
        return _calculation(operator.sub, lambda _: 0, operand)

    def _read_primary(self) -> Evaluate:
        if self._scanner.take_if("("):
            inner = self.read()
            self._scanner.take(")")
            return inner
        token = self._scanner.next
        if token.kind not in ("text", "number", "name"):
            self._scanner.fail("expected a field, a number or a text")
        self._scanner.take()
        if token.kind == "text":
            return lambda _: token.text
        if token.kind == "number":
            known = float(token.text) if "." in token.text else int(token.text)
            return lambda _: known
        if self._scanner.take_if("("):
            return self._read_call(token)
        if token.is_(*_CONSTANTS):
            constant = _CONSTANTS[token.text.lower()]
            return lambda _: constant
        return lambda row: row.get(token.text)

    # Functions

    def _read_call(self, name: Token) -> Evaluate:
        function = name.text.lower()
        if function == "bin":
            length = self._read_period()
            self._scanner.take(")")
            return lambda row: floor_to(row.get("@timestamp"), length)
        if function in AGGREGATES:
            return self._read_aggregate(name, function)
        if function not in FUNCTIONS:
            raise MalformedQuery(f"the embedded AWS does not know the function {name.text!r}", name.start, name.end)
        arguments: list[Evaluate] = []
        while not self._scanner.take_if(")"):
            if arguments:
                self._scanner.take(",")
            if self._scanner.next.kind == "period":
                length = self._read_period()
                arguments.append(lambda _, length=length: length)  # type: ignore[misc]
            else:
                arguments.append(self.read())
        known = FUNCTIONS[function]
        if not known.accepts(len(arguments)):
            message = f"{name.text} does not take {len(arguments)} arguments"
            raise MalformedQuery(message, name.start, self._scanner.last_end)
        return lambda row: known.apply(*[argument(row) for argument in arguments])

    def _read_period(self) -> int:
        token = self._scanner.next
        length = period_ms(token.text) if token.kind == "period" else None
        if length is None:
            self._scanner.fail("expected a period such as 30s, 5m, 1h or 1d")
        self._scanner.take()
        return length

    def _read_aggregate(self, name: Token, function: str) -> Evaluate:
        collected = self.aggregates
        if collected is None:
            raise MalformedQuery(f"{name.text} can be used in stats only", name.start, name.end)
        # guard: emulator-insights-nested-aggregate
        self.aggregates = None  # none within another
        of: Evaluate | None = None
        percent = 0.0
        if function == "count" and self._scanner.next.is_("*", ")"):
            self._scanner.take_if("*")
        else:
            of = self.read()
            if function == "pct":
                self._scanner.take(",")
                percent = float(self._scanner.take_kind("number", "a percentage").text)
        self._scanner.take(")")
        self.aggregates = collected
        key = f"\0{len(collected)}"
        collected[key] = Aggregate(function=function, of=of, percent=percent)
        return lambda row: row.get(key)


def _flag(value: Value, holds: Callable[[Value], bool]) -> Value:
    return None if value is None else int(holds(value))


def _negated(condition: Evaluate) -> Evaluate:
    return lambda row: _flag(condition(row), lambda value: not truth(value))


def _joined(operands: Sequence[Evaluate], row: Row, *, decisive: bool) -> Value:
    """`or` of the operands, where one that is true decides; or `and`, where one that is false does. What is missing
    decides nothing, and leaves the result open."""
    truths = []
    for operand in operands:
        known = truth(operand(row))
        if known is decisive:
            return int(decisive)
        truths.append(known)
    return None if None in truths else int(not decisive)  # guard: emulator-insights-unknown-truth


def _calculation(calculate: Callable[[float, float], float], left: Evaluate, right: Evaluate) -> Evaluate:
    def evaluate(row: Row) -> Value:
        numbers = number(left(row)), number(right(row))
        if numbers[0] is None or numbers[1] is None:
            return None
        try:
            result = calculate(numbers[0] + 0, numbers[1] + 0)  # a number, even if one was a timestamp
        except ArithmeticError:
            return None
        return result if isinstance(result, int | float) else None

    return evaluate
