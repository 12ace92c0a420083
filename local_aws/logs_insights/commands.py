"""The commands of a query: each makes of a table another one."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from local_aws.logs_insights.aggregates import Aggregate, Evaluate
from local_aws.logs_insights.expressions import Expression
from local_aws.logs_insights.rows import Row
from local_aws.logs_insights.values import sort_key, text, truth

DEFAULT_FIELDS = ("@timestamp", "@message")


@dataclass(frozen=True, kw_only=True)
class Table:
    """What a query has so far. `fields` are those that it shows (None: it has not said), `parsed` those that `parse`
    added; `matched` counts the events that the filters before `stats` left."""

    rows: Sequence[Row]
    fields: Sequence[str] | None = None
    parsed: Sequence[str] = ()
    matched: int
    is_aggregated: bool = False

    @property
    def shown(self) -> Sequence[str]:
        """The fields of a result; results that are events can be found again by their pointer."""
        fields = [*DEFAULT_FIELDS, *self.parsed] if self.fields is None else self.fields
        return fields if self.is_aggregated else [*fields, "@ptr"]


type Command = Callable[[Table], Table]


def fields(expressions: Sequence[Expression], *, replaces: bool) -> Command:
    """Show fields, beside those shown before (`fields`) or alone (`display`)."""

    def command(table: Table) -> Table:
        _evaluate(table.rows, expressions)
        before = [] if replaces else table.fields or []
        names = [each.name for each in expressions]
        return replace(table, fields=[*dict.fromkeys([*before, *names])])

    return command


def filter_rows(condition: Evaluate) -> Command:
    """Keep the rows for which a condition is true."""

    def command(table: Table) -> Table:
        rows = [row for row in table.rows if truth(condition(row))]
        return replace(table, rows=rows, matched=table.matched if table.is_aggregated else len(rows))

    return command


def parse(source: Evaluate, pattern: re.Pattern[str], names: Mapping[str, int | str]) -> Command:
    """Give fields the groups of a pattern that a text has; `names` says which field gets which group."""

    def command(table: Table) -> Table:
        for row in table.rows:
            match = pattern.search(text(source(row)))
            for name, group in names.items() if match else ():
                row.set(name, match[group] if match else None)
        return replace(table, parsed=[*table.parsed, *names])

    return command


def stats(outputs: Sequence[Expression], aggregates: Mapping[str, Aggregate], groups: Sequence[Expression]) -> Command:
    """One row for each group of rows."""

    def command(table: Table) -> Table:
        members: dict[tuple[str, ...], list[Row]] = {}
        for row in table.rows:
            members.setdefault(tuple(text(group.evaluate(row)) for group in groups), []).append(row)
        rows = []
        for group_rows in members.values():
            named = {group.name: group.evaluate(group_rows[0]) for group in groups}
            row = Row({**named, **{key: each.result(group_rows) for key, each in aggregates.items()}})
            _evaluate([row], outputs)
            rows.append(row)
        names = [each.name for each in (*groups, *outputs)]
        return replace(table, rows=rows, fields=names, parsed=(), is_aggregated=True)

    return command


def sort(keys: Sequence[tuple[Evaluate, bool]]) -> Command:
    """Order the rows by expressions; `True` means in descending order."""

    def command(table: Table) -> Table:
        rows = list(table.rows)
        for evaluate, is_descending in reversed(keys):
            rows.sort(key=lambda row, evaluate=evaluate: sort_key(evaluate(row)), reverse=is_descending)  # type: ignore[misc]
        return replace(table, rows=rows)

    return command


def dedup(expressions: Sequence[Evaluate]) -> Command:
    """Keep the first of the rows that have the same values; one that lacks any is never a duplicate."""

    def command(table: Table) -> Table:
        seen, rows = set(), []
        for row in table.rows:
            values = [evaluate(row) for evaluate in expressions]
            key = tuple(text(value) for value in values)
            if None in values or key not in seen:  # guard: emulator-dedup-missing-values
                rows.append(row)
            seen.add(key)
        return replace(table, rows=rows)

    return command


def limit(number: int) -> Command:
    """Keep the first rows."""
    return lambda table: replace(table, rows=table.rows[:number])


def _evaluate(rows: Sequence[Row], expressions: Sequence[Expression]) -> None:
    for row in rows:
        for expression in expressions:
            row.set(expression.name, expression.evaluate(row))
