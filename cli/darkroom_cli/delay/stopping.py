"""The work of `darkroom delay stop`: what a removal of the stack would lose, and the end of all releases."""

from __future__ import annotations

import typer

from darkroom.domain.kernel.instants import rfc3339
from darkroom_cli.delay.choice import Choice
from darkroom_cli.delay.work import LIMIT, listed
from darkroom_cli.operator.operations.kernel.retry_transient import TransientRetry
from darkroom_cli.operator.operations.schedules.stop_releases import StopReleasesPorts, stop_releases
from darkroom_cli.stack.operators import Stack
from darkroom_cli.terminal import display
from darkroom_cli.terminal.interrupts import INTERRUPTED, Interrupts


def tell(stack: Stack) -> None:
    """`delay stop` without --yes."""
    out = display.output()
    for line in _what_would_be_lost(stack):
        display.line(out, line)
    display.line(out, "Nothing was changed. Removing the stack would lose all of this: its owners wait for ever.")
    display.line(out, f"Do it:  ./darkroom delay stop --yes{stack.options}")


def stop(stack: Stack) -> None:
    """`delay stop --yes`."""
    out = display.output()
    for line in _what_would_be_lost(stack):
        display.line(out, line)
    with Interrupts() as interrupts, display.ProgressReport(display.errors()) as report, stack.explained():
        stopped = stop_releases(
            StopReleasesPorts(
                releases=stack.releases,
                patience=TransientRetry(pause=interrupts.wait, stop=lambda: interrupts.requested),
                audit=stack.audit,
            ),
            on_progress=lambda doing, done, of: report.show(
                doing, completed=done, total=of, detail=f"{done:,} of {of:,}" + (" s" if doing == "waiting" else "")
            ),
        )
    display.line(out, f"Stopped {display.of(stopped.batches, 'batch', 'batches')}. No more are made.", style="bold")
    if not stopped.complete:
        display.line(
            display.errors(), f"Interrupted. For the rest:  ./darkroom delay stop --yes{stack.options}", style="yellow"
        )
        raise typer.Exit(INTERRUPTED)
    display.line(out, "The stack can be removed now: docs/deploy.md, Remove it.")
    display.line(out, f"To keep it instead:  ./darkroom doctor --repair --yes{stack.options}")


def _what_would_be_lost(stack: Stack) -> list[str]:
    with stack.explained():
        batches = sum(1 for _ in stack.releases.waiting())
        messages = {
            queue: total
            for counts in (stack.queue_counts, stack.given_up_counts)
            for queue in counts.queues
            if (total := counts.count(queue).total)
        }
    choice = Choice()
    listing = listed(stack, choice, choice.selection(stack.clock()), limit=LIMIT)
    more = " or more" if listing.read_until is not None else ""
    held = (
        f"{display.of(listing.images, 'image')}{more} wait for their time, in {display.of(batches, 'batch', 'batches')}"
    )
    if listing.stretches:
        held += f": until {rfc3339(listing.stretches[-1].last_at)}"
    lines = [f"{held}.", f"{display.of(listing.due, 'unfinished image')} whose time has come."]
    return [*lines, *(f"{display.of(total, 'message')} in the queue {queue}." for queue, total in messages.items())]
