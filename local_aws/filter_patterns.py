"""Matches log events with the filter patterns of CloudWatch Logs, as metric filters and FilterLogEvents use them.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/FilterAndPatternSyntax.html

Where the documentation leaves it open: a comparison with a field that is missing, or is no string and no number, does
not match, whatever its operator.
"""

import functools
import json
import operator
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

type Value = str | float
type Condition = Callable[[Any], bool]
type Step = str | int | None

_ANY: Final = None  # a step of a selector: every element or member
_QUOTED = r'"(?:[^"\\]|\\.)*"'
_REGEX = "%[^%]+%"
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_WORD = re.compile(r"[\w.*+-]+")
_TERM = re.compile(rf'\s*(?P<sign>[?-]?)(?P<term>{_QUOTED}|{_REGEX}|[^\s"]+)\s*')
_STEPS = re.compile(r"\.?\['(?P<name>[^']*)'\]|\[(?P<index>\d+|\*)\]|\.(?P<member>[\w-]+|\*)")
_SELECTOR = r"\$(?:\.?\['[^']*'\]|\[(?:\d+|\*)\]|\.(?:[\w-]+|\*))*"
_TOKENS = re.compile(rf"\s*({_QUOTED}|{_REGEX}|&&|\|\||[<>!]=|[=<>(),]|{_SELECTOR}|\.\.\.|[\w.*+:/@$-]+)\s*")
_FIELDS = re.compile(r'\[([^\]]*)\]|"([^"]*)"|(\S+)')
_OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class InvalidPattern(Exception):
    """A filter pattern does not follow the syntax; its text says where."""


@dataclass(frozen=True)
class Match:
    """A log event that matches; `value` returns the string or number that a selector such as `$.bytes` or `$bytes`
    selects in it, or None."""

    value: Callable[[str], Value | None]


class Pattern(ABC):
    """A filter pattern."""

    @abstractmethod
    def match(self, message: str) -> Match | None:
        """Return the match, or None for an event that does not match."""


@functools.lru_cache(maxsize=1024)
def compile_pattern(text: str) -> Pattern:
    """Return the pattern that a text describes; raises InvalidPattern."""
    text = text.strip()
    if text.startswith("{"):
        return _JsonPattern(_condition(text, "{}", _Parser.read_selected))
    if text.startswith("["):
        return _SpacePattern(*_fields(text))
    return _TextPattern(*_terms(text))


# ── Terms ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class _TextPattern(Pattern):
    """All of some terms and none of others; or, if there are none of both, at least one optional term."""

    included: Sequence[Condition]
    excluded: Sequence[Condition]
    optional: Sequence[Condition]

    def match(self, message: str) -> Match | None:
        # Optional terms beside others are ignored.
        if self.included or self.excluded:  # guard: emulator-filter-optional-terms
            matches = all(term(message) for term in self.included) and not any(term(message) for term in self.excluded)
        else:
            matches = not self.optional or any(term(message) for term in self.optional)
        return Match(lambda _: None) if matches else None


def _terms(text: str) -> tuple[list[Condition], list[Condition], list[Condition]]:
    terms: dict[str, list[Condition]] = {"": [], "-": [], "?": []}
    position = 0
    while position < len(text):
        term_match = _TERM.match(text, position)
        if term_match is None:
            raise InvalidPattern(f"a quotation mark has no counterpart: {text[position:]}")
        position = term_match.end()
        terms[term_match["sign"]].append(_term(term_match["term"]))
    return terms[""], terms["-"], terms["?"]


def _term(written: str) -> Condition:
    if len(written) > 1 and written[0] == written[-1] == "%":
        return _regex(written)
    if not written.startswith('"') and not re.fullmatch(r"\w+", written):
        raise InvalidPattern(f'a term with other characters than letters, digits and _ needs quotes: "{written}"')
    term = _unquoted(written)
    return lambda message: term in message


def _unquoted(written: str) -> str:
    return re.sub(r"\\(.)", r"\1", written[1:-1]) if written.startswith('"') else written


# ── Comparisons ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _regex(written: str) -> Condition:
    if "(" in written or ")" in written:
        raise InvalidPattern(f"a regular expression may not have parentheses: {written}")
    try:
        expression = re.compile(written[1:-1])
    except re.error as error:
        raise InvalidPattern(f"{written}: {error}") from error
    return lambda text: expression.search(text) is not None


def _wildcards(written: str) -> Condition:
    if not written.startswith('"') and not _WORD.fullmatch(written):
        raise InvalidPattern(f'a string with other characters than letters, digits and _ needs quotes: "{written}"')
    expression = re.compile(".*".join(re.escape(part) for part in _unquoted(written).split("*")), re.DOTALL)
    return lambda text: expression.fullmatch(text) is not None


def _comparison(sign: str, operand: str) -> Condition:
    """Whether a string or number compares like that with what a pattern says."""
    if _NUMBER.fullmatch(operand):
        return functools.partial(_compares, _OPERATORS[sign], float(operand))
    if sign not in ("=", "!="):
        raise InvalidPattern(f"{sign} compares numbers, and {operand} is none")
    fits = _regex(operand) if operand.startswith("%") else _wildcards(operand)
    return lambda value: _is_value(value) and fits(_text(value)) == (sign == "=")


def _compares(compare: Callable[[float, float], bool], operand: float, value: Any) -> bool:
    if not _is_value(value):
        return False
    known = number(value)
    return compare is operator.ne if known is None else compare(known, operand)


def _is_value(node: Any) -> bool:
    return isinstance(node, str | int | float) and not isinstance(node, bool)  # guard: emulator-filter-missing-value


def _text(value: Value) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def number(value: Value | None) -> float | None:
    """A number, as such or as text; None if it is none."""
    if isinstance(value, str):
        return float(value) if _NUMBER.fullmatch(value) else None
    return None if value is None else float(value)


# ── Conditions ───────────────────────────────────────────────────────────────────────────────────────────────────────


class _Parser:
    """Reads conditions that are joined by && and ||; `read_one` reads one of them."""

    def __init__(self, text: str, read_one: Callable[["_Parser"], Condition]) -> None:
        self._text, self._read_one = text, read_one
        self._tokens = list(_tokens(text))

    def read_all(self) -> Condition:
        """Read the whole text."""
        condition = self._read_joined("||", any, lambda: self._read_joined("&&", all, self._read_operand))
        if self._tokens:
            self.fail()
        return condition

    def take(self, *expected: str) -> str:
        """Take the next token; if any are expected, it has to be one of them."""
        if not self._tokens or (expected and self._tokens[0] not in expected):
            self.fail()
        return self._tokens.pop(0)

    def fail(self) -> None:
        """Refuse the next token."""
        next_token = self._tokens[0] if self._tokens else "the end"
        raise InvalidPattern(f"{next_token} is not expected there: {self._text.strip()}")

    def _next_is(self, token: str) -> bool:
        return bool(self._tokens) and self._tokens[0] == token

    def _read_joined(
        self, junction: str, combine: Callable[[Iterator[bool]], bool], read: Callable[[], Condition]
    ) -> Condition:
        conditions = [read()]
        while self._next_is(junction):
            self.take()
            conditions.append(read())
        return lambda value: combine(condition(value) for condition in conditions)

    def _read_operand(self) -> Condition:
        if not self._next_is("("):
            return self._read_one(self)
        self.take()
        condition = self._read_joined("||", any, lambda: self._read_joined("&&", all, self._read_operand))
        self.take(")")
        return condition

    def read_selected(self) -> Condition:
        """`$.a.b = 1`, `$.a IS NULL`, `$.a NOT EXISTS`: a condition on a JSON document."""
        steps = _steps(self.take())
        match self.take("IS", "NOT", *_OPERATORS):
            case "IS":
                constant = json.loads(self.take("NULL", "TRUE", "FALSE").lower())
                return lambda document: any(node is constant for node in _select(document, steps))
            case "NOT":
                self.take("EXISTS")
                return lambda document: not any(True for _ in _select(document, steps))
            case sign:
                compares = _comparison(sign, self.take())
                return lambda document: any(compares(node) for node in _select(document, steps))

    def read_field(self) -> Condition:
        """`status = 4*`: a condition on one field; its name says nothing here."""
        self.take()
        return _comparison(self.take(*_OPERATORS), self.take())


def _tokens(text: str) -> Iterator[str]:
    text, position = text.strip(), 0
    while position < len(text):
        token_match = _TOKENS.match(text, position)
        if token_match is None:
            raise InvalidPattern(f"{text[position:]} is not expected there: {text}")
        position = token_match.end()
        yield token_match[1]


def _condition(text: str, brackets: str, read_one: Callable[[_Parser], Condition]) -> Condition:
    if not text.endswith(brackets[1]):
        raise InvalidPattern(f"{brackets[0]} has no counterpart: {text}")
    return _Parser(text[1:-1], read_one).read_all()


# ── JSON ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class _JsonPattern(Pattern):
    condition: Condition

    def match(self, message: str) -> Match | None:
        document = _document(message)
        if document is None or not self.condition(document):
            return None
        return Match(lambda selector: next(filter(_is_value, _select(document, _steps(selector))), None))


@functools.lru_cache(maxsize=64)  # the filters of a log group look at each of its events
def _document(message: str) -> Any:
    """The JSON object or array of an event; None if it has none."""
    try:
        document = json.loads(message)
    except ValueError:
        return None
    return document if isinstance(document, dict | list) else None


@functools.lru_cache(maxsize=1024)
def _steps(selector: str) -> tuple[Step, ...]:
    if not re.fullmatch(_SELECTOR, selector):
        raise InvalidPattern(f"{selector} is no selector such as $.name, $.names[0] or $.['dotted.name']")
    steps: list[Step] = []
    for step_match in _STEPS.finditer(selector):
        if "*" in (step_match["index"], step_match["member"]):
            steps.append(_ANY)
        elif step_match["index"] is not None:
            steps.append(int(step_match["index"]))
        else:
            steps.append(step_match["member"] or step_match["name"])
    if steps.count(_ANY) > 1:
        raise InvalidPattern(f"{selector} has more than one wildcard")
    return tuple(steps)


def _select(node: Any, steps: Sequence[Step]) -> Iterator[Any]:
    if not steps:
        yield node
        return
    step, *rest = steps
    chosen: Sequence[Any] = ()
    if step is _ANY and isinstance(node, dict | list):
        chosen = list(node.values()) if isinstance(node, dict) else node
    elif isinstance(step, int) and isinstance(node, list):
        chosen = node[step : step + 1]
    elif isinstance(step, str) and isinstance(node, dict) and step in node:
        chosen = [node[step]]
    for each in chosen:
        yield from _select(each, rest)


# ── Fields between spaces ────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class _Field:
    name: str
    condition: Condition | None


@dataclass(frozen=True)
class _SpacePattern(Pattern):
    """Fields from the beginning, and, if there is an ellipsis, fields from the end. Without one the last field has the
    rest of the event."""

    first: Sequence[_Field]
    last: Sequence[_Field] | None

    def match(self, message: str) -> Match | None:
        texts = [next(filter(None, field_match.groups()), "") for field_match in _FIELDS.finditer(message)]
        fields = [*self.first, *(self.last or ())]
        if len(texts) < len(fields):
            return None
        if self.last is None:
            texts = [*texts[: len(fields) - 1], " ".join(texts[len(fields) - 1 :])]
        else:
            texts = [*texts[: len(self.first)], *texts[len(texts) - len(self.last) :]]
        if not all(field.condition is None or field.condition(text) for field, text in zip(fields, texts, strict=True)):
            return None
        return Match({f"${field.name}": text for field, text in zip(fields, texts, strict=True)}.get)


def _fields(text: str) -> tuple[list[_Field], list[_Field] | None]:
    if not text.endswith("]"):
        raise InvalidPattern(f"[ has no counterpart: {text}")
    written = [""]
    for piece in re.finditer(rf"{_QUOTED}|{_REGEX}|,|[^,\"%]+|.", text[1:-1]):
        if piece[0] == ",":
            written.append("")
        else:
            written[-1] += piece[0]
    names = [each.strip() for each in written]
    if names.count("...") > 1:
        raise InvalidPattern(f"there may be one ... only: {text}")
    if "..." not in names:
        return [_field(each) for each in names], None
    position = names.index("...")
    return [_field(each) for each in names[:position]], [_field(each) for each in names[position + 1 :]]


def _field(written: str) -> _Field:
    tokens = list(_tokens(written))
    if len(tokens) < 2:
        return _Field("".join(tokens), None)
    return _Field(tokens[0], _Parser(written, _Parser.read_field).read_all())
