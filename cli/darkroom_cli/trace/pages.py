"""Prints the life of an image as a waterfall, or as a document for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from darkroom.domain.kernel.instants import Milliseconds, rfc3339
from darkroom_cli.operator.domain.trace import Level, Step, StepKind, Trace
from darkroom_cli.terminal import display
from darkroom_cli.trace.axis import Axis, axis_for, end_of

_BARS: dict[StepKind, str] = {"request": "█", "wait": "┄", "attempt": "█", "delivery": "█"}
_MOMENT = "◆"
_PHASES = {"decode": "░", "develop": "▒", "store": "▓", "finish": "█"}
_STYLES: dict[Level, str] = {"info": "", "warning": "yellow", "error": "red"}
_COLOURS: dict[StepKind, str] = {
    "request": "cyan",
    "wait": "dim",
    "attempt": "green",
    "event": "blue",
    "delivery": "magenta",
}

LEAST_BAR, MOST_BAR = 16, 60
"""How wide the drawing may be; where less is left, there is none."""

LEAST_DETAIL, MOST_DETAIL = 24, 72
"""How wide the words may be beside the drawing."""


def show(out: Console, trace: Trace, *, now: Milliseconds) -> None:
    """Prints the image, its steps in time, and what of the logs they come from."""
    for text in _head(trace):
        display.line(out, text)
    display.line(out)
    rows = [_cells(step, trace.began, now) for step in trace.steps]
    widths = [max((cell_len(row[column]) for row in rows), default=0) for column in range(3)]
    names = max(min(widths[2], MOST_DETAIL), 12)
    left = out.width - widths[0] - widths[1] - 8
    bar = min(left - names, MOST_BAR)
    if bar < LEAST_BAR:  # then words are cut before the drawing goes
        names = max(min(names, left - LEAST_BAR), LEAST_DETAIL)
        bar = left - names
    axis = axis_for(trace.steps, now=now, width=bar) if bar >= LEAST_BAR else None
    names = names if axis is not None else max(left, LEAST_DETAIL)
    for step, (at, took, words) in zip(trace.steps, rows, strict=True):
        line = Text("  ")
        line.append(f"{at:>{widths[0]}}", style="dim").append("  ").append(f"{took:>{widths[1]}}").append("  ")
        shown = _fitted(words, names)
        line.append(shown + " " * (names - cell_len(shown)), style=_STYLES[step.level])
        if axis is not None:
            line.append("  ").append(_bar(step, axis, now), style=_STYLES[step.level] or _COLOURS.get(step.kind, ""))
        line.rstrip()
        out.print(line, soft_wrap=True)
        if len(step.phases) > 1:
            margin = widths[0] + widths[1] + 6
            display.line(out, " " * margin + _fitted(_phases(step), out.width - margin), style="dim")
    display.line(out)
    if axis is not None and any(len(step.phases) > 1 for step in trace.steps):
        legend = "  ".join(f"{drawn} {name}" for name, drawn in _PHASES.items())
        display.line(out, f"  {legend}   {_BARS['wait']} waits", style="dim")
    is_cut = axis is not None and axis.is_cut
    display.line(out, f"  {_tail(trace)}{' Long waits are drawn shorter.' if is_cut else ''}", style="dim")


def _head(trace: Trace) -> Sequence[str]:
    image = trace.image
    status = image.outcome.value if not image.is_deleted else f"deleted ({image.outcome.value})"
    ended = image.completed_at
    took = "" if ended is None else f" after {_span(ended - trace.began)}"
    about = [f"{image.lane} lane", f"tenant {image.tenant_id}", *([f"preset {image.preset}"] if image.preset else [])]
    head = [f"{image.image_id}  {status}{took}", "  ".join(map(display.printable, about))]
    word = "announced" if image.accepted_at is None and not image.has_original else "accepted"
    request = f" by the request {trace.requests[0]}" if trace.requests else ""
    head.append(f"{word} {rfc3339(trace.began)}{display.printable(request)}")
    return head


def _cells(step: Step, began: Milliseconds, now: Milliseconds) -> tuple[str, str, str]:
    """When it was, how long it took, and what it was."""
    offset = step.at - began
    at = f"{'-' if offset < 0 else '+'}{_span(abs(offset))}"
    if step.until is None:
        took = f"{_span(max(now - step.at, 0))}…"
    else:
        took = "" if step.until == step.at else _span(step.until - step.at)
    return at, took, display.printable(step.title + (f"  {step.detail}" if step.detail else ""))


def _span(milliseconds: Milliseconds) -> str:
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    if milliseconds < 60_000:
        return f"{milliseconds / 1000:.1f} s"
    if milliseconds < 3_600_000:
        minutes, seconds = divmod(round(milliseconds / 1000), 60)
        return f"{minutes} min {seconds} s"
    return display.age(milliseconds / 1000)


def _phases(step: Step) -> str:
    """How long each part of an attempt took."""
    parts, since = [], step.at
    for phase in step.phases:
        parts.append(f"{phase.name} {_span(max(phase.until - since, 0))}")
        since = max(phase.until, since)
    return "  " + ", ".join(parts)


def _bar(step: Step, axis: Axis, now: Milliseconds) -> str:
    first, last = axis.column(step.at), axis.column(end_of(step, now))
    if step.kind not in _BARS or (step.until == step.at):
        return " " * first + _MOMENT
    drawn = [_BARS[step.kind]] * (last - first + 1)
    if step.phases:
        since = first
        for phase in step.phases:
            upto = axis.column(phase.until)
            for column in range(since, upto + 1):
                drawn[min(column, last) - first] = _PHASES.get(phase.name, "█")
            since = min(max(since, upto + 1), last)
    if step.until is None:
        drawn[-1] = "▸"
    return " " * first + "".join(drawn)


def _fitted(text: str, width: int) -> str:
    if cell_len(text) <= width:
        return text
    while text and cell_len(text) > width - 1:
        text = text[:-1]
    return f"{text}…"


def _tail(trace: Trace) -> str:
    if not trace.lines:
        return "No line about it was found in the logs, which keep 30 days: this is what its row knows."
    counts = [
        display.of(trace.count("request"), "request"),
        display.of(trace.count("attempt"), "attempt"),
        display.of(trace.count("event"), "event"),
        display.of(trace.count("delivery"), "delivery attempt"),
    ]
    return f"{', '.join(counts)}, from {display.of(trace.lines, 'log line')}."


def document(trace: Trace) -> dict[str, Any]:
    """The trace for programs."""
    image = trace.image
    return {
        "image_id": image.image_id,
        "tenant_id": image.tenant_id,
        "lane": image.lane,
        "status": image.outcome.value,
        "deleted": image.is_deleted,
        "accepted_at": rfc3339(trace.began),
        "ended_at": rfc3339(image.completed_at),
        "requests": list(trace.requests),
        "log_lines": trace.lines,
        "steps": [
            {
                "kind": step.kind,
                "at": rfc3339(step.at),
                "until": rfc3339(step.until),
                "title": step.title,
                "detail": step.detail,
                "level": step.level,
                "phases": [{"name": phase.name, "until": rfc3339(phase.until)} for phase in step.phases],
            }
            for step in trace.steps
        ],
    }
