"""The work of `darkroom events`, once the command line is parsed."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from console.events.tail import Follower
from console.stack.operators import Stack
from console.terminal import display
from console.terminal.interrupts import INTERRUPTED, Interrupted, Interrupts
from darkroom.domain.event import Heard
from darkroom.domain.instants import rfc3339
from darkroom.operations.pace import Pace
from darkroom.operations.republish_events import AT_ONCE, Ports, Republishing, Wanted, republish_events

_SHOWN = 20


def tail(stack: Stack, *, tenant: str | None, types: Sequence[str], as_json: bool) -> None:
    """`events tail`."""
    wanted = {"type": list(types)} if types else {}
    if tenant is not None:
        wanted["tenant_id"] = [tenant]
    out = display.output()
    with Interrupts() as interrupts, stack.explained():
        follower = Follower(sns=stack.client("sns"), sqs=stack.client("sqs"), topic_arn=stack.events_topic)
        for event, body in follower.events(wanted, stop=lambda: interrupts.requested):
            display.line(out, display.printable(body if as_json else _sentence(event)))
    raise typer.Exit(INTERRUPTED)


def _sentence(event: Heard) -> str:
    """An event in a line: when, what, which image, whose, and what came of it."""
    details = ""
    if variants := event.data.get("variants"):
        details = "  " + ", ".join(f"{one['name']} {one['width']}×{one['height']}" for one in variants)
    elif error := event.data.get("error"):
        details = f"  {error['code']}"
    return f"{rfc3339(event.time)}  {event.type:<15}  {event.image_id}  {event.tenant_id}{details}"


def republish(stack: Stack, wanted: Wanted, *, rate: int | None) -> None:
    """`events republish`; without a rate it only says what it would publish."""
    out = display.output()
    with Interrupts() as interrupts, display.Report(display.errors()) as report, stack.explained():

        def show(so_far: Republishing) -> None:
            detail = f"{so_far.rows:,} rows, {so_far.events.total():,} events, {so_far.published:,} published"
            report.show("reading rows", completed=so_far.rows, total=None, detail=detail)
            interrupts.pause(0)

        pace = None
        if rate is not None:
            pace = Pace(per_second=rate / AT_ONCE, clock=stack.clock, pause=interrupts.pause)
        try:
            run = republish_events(Ports(images=stack.images, topic=stack.topic), wanted, pace=pace, on_progress=show)
        except Interrupted:
            raise typer.Exit(INTERRUPTED) from None
    for kind, count in sorted(run.events.items()):
        display.line(out, f"{count:>9,}  {kind}")
    told = display.of(run.events.total(), "event")
    if rate is None:
        display.line(out, f"{told} of {display.of(run.rows, 'row')} would be published again. Add --yes to do it.")
    else:
        display.line(out, f"{run.published:,} of {told} published again.")
    for event_id, reason in list(run.refused.items())[:_SHOWN]:
        display.complain(f"{event_id}: {reason}")
    if run.unreadable:
        rows = display.of(len(run.unreadable), "row")
        display.complain(f"{rows} cannot be read by this version: ./darkroom doctor --all{stack.options} lists them.")
    if run.refused or run.unreadable:
        raise typer.Exit(1)
