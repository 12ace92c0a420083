"""Takes a query's text apart: names, texts, numbers, periods, signs and regular expressions."""

import re
from dataclasses import dataclass
from typing import Literal, NoReturn, cast

type Kind = Literal["name", "text", "number", "period", "sign", "end"]

_BLANKS = re.compile(r"(?:\s+|#[^\n]*)*")
_TOKEN = re.compile(
    r"""(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    |(?P<quoted>`[^`]+`)
    |(?P<period>\d+[A-Za-z]+)
    |(?P<number>\d+(?:\.\d+)?)
    |(?P<name>[A-Za-z_@][\w.@]*)
    |(?P<sign>!=|<=|>=|=~|[=<>()\[\],|+\-*/%^])""",
    re.VERBOSE,
)
_REGEX = re.compile(r"/((?:[^/\\\n]|\\.)+)/")
_GROUP = re.compile(r"\(\?<(?![=!])")


class MalformedQuery(Exception):
    """A query that cannot be run: why, and at which characters."""

    def __init__(self, message: str, start: int, end: int) -> None:
        super().__init__(message)
        self.start, self.end = start, end


@dataclass(frozen=True, kw_only=True)
class Token:
    """A piece of a query; the text of a quoted one is without its quotes."""

    kind: Kind
    text: str
    start: int
    end: int

    def is_(self, *words: str) -> bool:
        """Whether it is one of some words or signs, in upper or lower case."""
        return self.kind in ("name", "sign") and self.text.lower() in words


class Scanner:
    """Reads a query from its beginning."""

    def __init__(self, query: str) -> None:
        self._query = query
        self.last_end = 0
        """Where the last token that was taken ends."""
        self.next = self._scan()
        """The token that comes next."""

    def take(self, *words: str) -> Token:
        """Take the next token; if any words are given, it has to be one of them."""
        token = self.next
        if token.kind == "end" or (words and not token.is_(*words)):
            self.fail(f"expected {' or '.join(words)}" if words else "expected more")
        self._advance(token.end)
        return token

    def take_if(self, *words: str) -> bool:
        """Take the next token if it is one of some words."""
        if not self.next.is_(*words):
            return False
        self._advance(self.next.end)
        return True

    def take_kind(self, kind: Kind, what: str) -> Token:
        """Take the next token, which has to be of a kind."""
        if self.next.kind != kind:
            self.fail(f"expected {what}")
        return self.take()

    def take_regex(self) -> re.Pattern[str] | None:
        """Take a regular expression between slashes, if one comes next."""
        regex_match = _REGEX.match(self._query, self.next.start)
        if regex_match is None:
            return None
        try:
            expression = re.compile(_GROUP.sub("(?P<", regex_match[1].replace(r"\/", "/")))
        except re.error as error:
            raise MalformedQuery(f"{regex_match[0]}: {error}", self.next.start, regex_match.end()) from error
        self._advance(regex_match.end())
        return expression

    def text(self, start: int) -> str:
        """What the query says from a position to the last token that was taken."""
        return self._query[start : self.last_end]

    def fail(self, why: str) -> NoReturn:
        """Refuse the query because of the next token."""
        raise MalformedQuery(f"{why}, not {self.next.text!r}", self.next.start, self.next.end)

    def _advance(self, position: int) -> None:
        self.last_end = position
        self.next = self._scan()

    def _scan(self) -> Token:
        blanks = _BLANKS.match(self._query, self.last_end)
        start = blanks.end() if blanks else self.last_end
        if start == len(self._query):
            return Token(kind="end", text="the end", start=start, end=start)
        token_match = _TOKEN.match(self._query, start)
        if token_match is None:
            raise MalformedQuery(f"unexpected symbol {self._query[start]!r}", start, start + 1)
        kind, written = str(token_match.lastgroup), token_match[0]
        if kind == "quoted":
            return Token(kind="name", text=written[1:-1], start=start, end=token_match.end())
        if kind == "text":
            written = re.sub(r"\\(.)", r"\1", written[1:-1])
        return Token(kind=cast("Kind", kind), text=written, start=start, end=token_match.end())
