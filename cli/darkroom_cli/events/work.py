"""The work of `darkroom events`, once the command line is parsed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager

import typer

from darkroom.domain.events.event import ReceivedEvent
from darkroom.domain.kernel.instants import rfc3339
from darkroom_cli.events.tail import Follower
from darkroom_cli.operator.operations.events.republish_events import (
    AT_ONCE,
    RepublishEventsPorts,
    Republishing,
    RepublishSelection,
    republish_events,
)
from darkroom_cli.operator.operations.kernel.rate_limiter import RateLimiter
from darkroom_cli.stack.operators import Stack
from darkroom_cli.terminal import display
from darkroom_cli.terminal.interrupts import INTERRUPTED, LEAVING, Interrupted, Interrupts

_SHOWN = 20


def tail(stack: Stack, *, tenant: str | None, types: Sequence[str], as_json: bool) -> None:
    """`events tail`."""
    out = display.output()
    with (
        Interrupts(*LEAVING) as interrupts,
        stack.explained(),
        following(stack, tenant=tenant, types=types, stop=lambda: interrupts.requested) as events,
    ):
        for event, body in events:
            display.line(out, display.printable(body if as_json else sentence(event)))
    raise typer.Exit(INTERRUPTED)


def following(
    stack: Stack, *, tenant: str | None, types: Sequence[str], stop: Callable[[], bool]
) -> AbstractContextManager[Iterator[tuple[ReceivedEvent, str]]]:
    """What the stack publishes while the block lasts, each event with its text, until `stop` returns true: that
    tenant's alone, or everybody's; of these types, or of all."""
    wanted = {"type": list(types)} if types else {}
    if tenant is not None:
        wanted["tenant_id"] = [tenant]
    follower = Follower(sns=stack.client("sns"), sqs=stack.client("sqs"), topic_arn=stack.events_topic)
    return follower.events(wanted, stop=stop)


def sentence(event: ReceivedEvent) -> str:
    """An event in a line: when, what, of which image or webhook, whose, its sequence, and what came of it."""
    details = ""
    if variants := event.data.get("variants"):
        details = "  " + ", ".join(f"{variant['name']} {variant['width']}×{variant['height']}" for variant in variants)
    elif error := event.data.get("error"):
        details = f"  {error['code']}"
    head = f"{rfc3339(event.time)}  {event.type:<15}  {event.subject}  {event.tenant_id}"
    return f"{head}  sequence {event.sequence}{details}"


def republish(stack: Stack, wanted: RepublishSelection, *, rate: int | None) -> None:
    """`events republish`; without a rate it only says what it would publish."""
    out = display.output()
    with Interrupts() as interrupts, display.ProgressReport(display.errors()) as report, stack.explained():

        def show(so_far: Republishing) -> None:
            detail = f"{so_far.rows:,} rows, {so_far.events.total():,} events, {so_far.published:,} published"
            report.show("reading rows", completed=so_far.rows, total=None, detail=detail)
            interrupts.pause(0)

        pace = None
        if rate is not None:
            pace = RateLimiter(per_second=rate / AT_ONCE, clock=stack.clock, pause=interrupts.pause)
        try:
            run = republish_events(
                RepublishEventsPorts(
                    images=stack.images,
                    endpoints=stack.endpoints,
                    batches=stack.batches,
                    topic=stack.topic,
                    audit=stack.audit,
                    edge=stack.edge,
                ),
                wanted,
                pace=pace,
                on_progress=show,
            )
        except Interrupted:
            raise typer.Exit(INTERRUPTED) from None
    for kind, count in sorted(run.events.items()):
        display.line(out, f"{count:>9,}  {kind}")
    events = display.of(run.events.total(), "event")
    if rate is None:
        display.line(out, f"{events} of {display.of(run.rows, 'row')} would be published again. Add --yes to do it.")
    else:
        display.line(out, f"{run.published:,} of {events} published again.")
    for event_id, reason in list(run.refused.items())[:_SHOWN]:
        display.complain(f"{event_id}: {reason}")
    if run.unreadable:
        rows = display.of(len(run.unreadable), "row")
        display.complain(f"{rows} cannot be read by this version: ./darkroom doctor --all{stack.options} lists them.")
    if run.refused or run.unreadable:
        raise typer.Exit(1)
