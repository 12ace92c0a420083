"""Reads a query and runs it."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from local_aws.logs_insights import commands
from local_aws.logs_insights.aggregates import Aggregate, Evaluate
from local_aws.logs_insights.commands import Command, Table
from local_aws.logs_insights.expressions import Expression, ExpressionReader
from local_aws.logs_insights.rows import Row
from local_aws.logs_insights.scanner import MalformedQuery, Scanner
from local_aws.logs_insights.values import sort_key, text

MAXIMUM_RESULTS = 10_000


@dataclass(frozen=True, kw_only=True)
class Results:
    """The rows of a query's result, each the texts of the fields that have a value, and how many events matched."""

    rows: Sequence[Mapping[str, str]]
    matched: int


@dataclass(frozen=True)
class Query:
    """A query that can be run."""

    commands: Sequence[Command]

    def run(self, events: Iterable[Row], *, limit: int = MAXIMUM_RESULTS) -> Results:
        """Run it over events."""
        rows = sorted(events, key=lambda row: sort_key(row.get("@timestamp")), reverse=True)
        table = Table(rows=rows, matched=len(rows))
        for command in self.commands:
            table = command(table)
        result_rows = []
        for row in table.rows[: min(limit, MAXIMUM_RESULTS)]:
            values = {name: row.get(name) for name in table.shown}
            result_rows.append({name: text(value) for name, value in values.items() if value is not None})
        return Results(rows=result_rows, matched=table.matched)


def compile_query(query: str) -> Query:
    """Return the query that a text describes; raises MalformedQuery."""
    return Query(_Reader(query).read_all())


class _Reader:
    def __init__(self, query: str) -> None:
        self._scanner = Scanner(query)
        self._expressions = ExpressionReader(self._scanner)
        self._commands: Mapping[str, Callable[[], Command]] = {
            "fields": lambda: commands.fields(self._read_list(), replaces=False),
            "display": lambda: commands.fields(self._read_list(), replaces=True),
            "filter": lambda: commands.filter_rows(self._expressions.read()),
            "parse": self._read_parse,
            "stats": self._read_stats,
            "sort": self._read_sort,
            "dedup": lambda: commands.dedup([each.evaluate for each in self._read_list()]),
            "limit": self._read_limit,
        }

    def read_all(self) -> list[Command]:
        """Read the whole query."""
        read, only_limit = [], False
        while True:
            name = self._scanner.take_kind("name", "a command")
            command = name.text.lower()
            if command not in self._commands:
                message = f"the embedded AWS does not know the command {name.text!r}"
                raise MalformedQuery(message, name.start, name.end)
            if only_limit and command != "limit":
                raise MalformedQuery("only limit may follow dedup", name.start, name.end)
            read.append(self._commands[command]())
            only_limit = only_limit or command == "dedup"
            if self._scanner.next.kind == "end":
                return read
            self._scanner.take("|")

    def _read_list(self) -> list[Expression]:
        expressions = [self._expressions.read_named()]
        while self._scanner.take_if(","):
            expressions.append(self._expressions.read_named())
        return expressions

    def _read_parse(self) -> Command:
        source = self._read_source()
        start = self._scanner.next.start
        expression = self._scanner.take_regex()
        if expression is not None:
            if not expression.groupindex:
                message = "a regular expression of parse names its groups: (?<name>...)"
                raise MalformedQuery(message, start, self._scanner.last_end)
            return commands.parse(source, expression, {name: name for name in expression.groupindex})
        pattern = self._scanner.take_kind("text", "a text with * or a regular expression between slashes").text
        self._scanner.take("as")
        names = [self._scanner.take_kind("name", "a name").text]
        while self._scanner.take_if(","):
            names.append(self._scanner.take_kind("name", "a name").text)
        if pattern.count("*") != len(names):
            message = f"{pattern.count('*')} * for {len(names)} names"
            raise MalformedQuery(message, start, self._scanner.last_end)
        return commands.parse(source, _glob(pattern), {name: place for place, name in enumerate(names, 1)})

    def _read_source(self) -> Evaluate:
        starts_with_pattern = self._scanner.next.kind == "text" or self._scanner.next.is_("/")
        name = "@message" if starts_with_pattern else self._scanner.take_kind("name", "a field").text
        return lambda row: row.get(name)

    def _read_stats(self) -> Command:
        collected: dict[str, Aggregate] = {}
        self._expressions.aggregates = collected
        outputs = self._read_list()
        self._expressions.aggregates = None
        groups = self._read_list() if self._scanner.take_if("by") else []
        return commands.stats(outputs, collected, groups)

    def _read_sort(self) -> Command:
        keys: list[tuple[Evaluate, bool]] = []
        while not keys or self._scanner.take_if(","):
            evaluate = self._expressions.read()
            is_descending = self._scanner.take_if("desc")
            if not is_descending:
                self._scanner.take_if("asc")
            keys.append((evaluate, is_descending))
        return commands.sort(keys)

    def _read_limit(self) -> Command:
        token = self._scanner.take_kind("number", "a number")
        if not token.text.isdecimal() or not 1 <= int(token.text) <= MAXIMUM_RESULTS:
            raise MalformedQuery(f"a limit is a number from 1 to {MAXIMUM_RESULTS}", token.start, token.end)
        return commands.limit(int(token.text))


def _glob(pattern: str) -> re.Pattern[str]:
    """A text in which each * stands for as little as possible, and one at the end for the rest."""
    written = "(.*?)".join(re.escape(part) for part in pattern.split("*"))
    return re.compile(written.removesuffix("(.*?)") + "(.*)" if pattern.endswith("*") else written, re.DOTALL)
