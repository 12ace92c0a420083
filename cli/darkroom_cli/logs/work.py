"""The work of `darkroom logs`, once the command line is parsed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import typer

from darkroom.aws.kernel.errors import pages_of
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.instants import Milliseconds, rfc3339
from darkroom_cli.logs import lines
from darkroom_cli.stack.operators import Stack, in_words
from darkroom_cli.terminal import display
from darkroom_cli.terminal.at_once import at_once
from darkroom_cli.terminal.durations import seconds_of
from darkroom_cli.terminal.instants import milliseconds
from darkroom_cli.terminal.interrupts import INTERRUPTED, LEAVING, Interrupts
from darkroom_client.client import ApiError

LOCAL_SECONDS, DEPLOYED_SECONDS = 0.5, 5.0
"""How often following looks: FilterLogEvents takes some requests per second of an account."""

MOST_LINES = 10_000
"""The most lines that one look reads of a source."""

_OVERLAP_MILLISECONDS = 5_000
"""A line may become readable after a later one: following reads this far back again and skips what was seen."""


@dataclass(frozen=True, kw_only=True)
class LineFilters:
    """The lines to show: of these sources (empty: all), since then, with that text, of that level at least."""

    sources: Sequence[str]
    since: str
    text: str | None
    level: str | None

    def begins(self, now: Milliseconds) -> Milliseconds:
        """The first instant that is shown."""
        try:
            seconds = seconds_of(self.since)
        except ValueError:
            return milliseconds(self.since)
        return now - round(1000 * (seconds or 0))

    def covers(self, source: str, message: str) -> bool:
        """Whether a line is shown."""
        has_text = self.text is None or self.text in message
        return has_text and (self.level is None or lines.is_at_least(self.level, source, message))

    def pattern(self, source: str) -> str:
        """What CloudWatch Logs may leave out at once (https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/
        FilterAndPatternSyntax.html); a pattern takes words or fields."""
        if self.text is not None:
            escaped = self.text.replace("\\", "\\\\").replace('"', '\\"')
            return f'"{escaped}"'
        return "" if self.level is None else lines.pattern_of(self.level, source)


class Reader:
    """Reads log groups, and gives each line once."""

    def __init__(self, stack: Stack, wanted: LineFilters) -> None:
        self._client, self._wanted = stack.client("logs"), wanted
        self._groups = chosen(stack.log_groups, wanted.sources)
        self._clock, self._since = stack.clock, wanted.begins(stack.clock())
        self._seen: dict[str, Milliseconds] = {}
        self.incomplete: list[str] = []

    def read(self) -> list[lines.SourceLine]:
        """The lines that have not been read before, oldest first. Raises Retryable."""
        now = self._clock()
        read = at_once([partial(self._of, source, group) for source, group in self._groups.items()])
        in_order = sorted((line for of_source in read for line in of_source), key=lambda line: line.at)
        self._since = max(self._since, now - _OVERLAP_MILLISECONDS)  # guard: logs-follow-overlap
        self._seen = {name: at for name, at in self._seen.items() if at >= self._since}
        return in_order

    def _of(self, source: str, group: str) -> list[lines.SourceLine]:
        pattern = self._wanted.pattern(source)
        more: dict[str, Any] = {"filterPattern": pattern} if pattern else {}
        pages = self._client.get_paginator("filter_log_events").paginate(
            logGroupName=group, startTime=self._since, **more
        )
        events = (event for page in pages_of(pages, "reading the logs") for event in page["events"])
        read = list(islice(events, MOST_LINES + 1))
        if len(read) > MOST_LINES:
            self.incomplete.append(source)
        of_source = []
        for event in read[:MOST_LINES]:
            # MiniStack's events have no ids.
            name = event.get("eventId") or f"{event['timestamp']} {group} {event['message']}"
            if name not in self._seen and self._wanted.covers(source, event["message"]):
                self._seen[name] = event["timestamp"]
                of_source.append(lines.SourceLine(at=event["timestamp"], source=source, message=event["message"]))
        return of_source


def chosen(groups: Mapping[str, str], sources: Sequence[str]) -> Mapping[str, str]:
    """The groups of these sources, which may be named as functions or log groups of the template too. Raises
    ApiError."""
    names = [in_words(source.removesuffix("Logs").removesuffix("Function")) for source in sources]
    for name, source in zip(names, sources, strict=True):
        if name not in groups:
            raise ApiError(f"There is no log {display.printable(source)!r}. There are: {', '.join(sorted(groups))}.")
    return {name: groups[name] for name in names or sorted(groups)}


def show(stack: Stack, wanted: LineFilters, *, follow: bool, as_json: bool) -> None:
    """`logs`."""
    out = display.output()
    seconds = LOCAL_SECONDS if stack.is_local else DEPLOYED_SECONDS
    with Interrupts(*LEAVING) as interrupts:
        try:
            with stack.explained(), interrupts.raised_at_once():  # only read: nothing is lost, wherever it is cut short
                reader = Reader(stack, wanted)
                while True:
                    new_lines = _read(reader, is_patient=follow)
                    _print(out, new_lines, as_json=as_json)
                    if not follow:
                        break
                    interrupts.wait(seconds)
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
    if not new_lines:
        since = rfc3339(wanted.begins(stack.clock()))
        display.line(display.errors(), f"No such line since {since}.", style="green")
    if reader.incomplete:
        sentence = f"Of {', '.join(reader.incomplete)} only the first {MOST_LINES:,} lines were read."
        display.line(display.errors(), f"{sentence} Narrow it by --since, --text or --level.", style="yellow")


def _read(reader: Reader, *, is_patient: bool) -> list[lines.SourceLine]:
    try:
        return reader.read()
    except Retryable:
        if not is_patient:
            raise
        return []  # the next look begins where this one did


def _print(out: Any, new_lines: Sequence[lines.SourceLine], *, as_json: bool) -> None:
    for line in new_lines:
        if as_json:
            typer.echo(json.dumps(lines.document(line)))
        else:
            out.print(lines.pretty(line), soft_wrap=True)
