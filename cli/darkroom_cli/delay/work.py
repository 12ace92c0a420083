"""The work of `darkroom delay` on a stack's own table and queues, once the command line is parsed."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

import typer

from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.ports.kernel import UnreadableRow
from darkroom_cli.delay import pages
from darkroom_cli.delay.choice import Choice
from darkroom_cli.operator.domain.periods import Period, day_period, days_later, local_time
from darkroom_cli.operator.operations.kernel.audit_trail import AuditedAction
from darkroom_cli.operator.operations.kernel.rate_limiter import RateLimiter
from darkroom_cli.operator.operations.schedules.cancel_scheduled import (
    REMOVALS_PER_SECOND,
    CancelScheduledPorts,
    cancel_scheduled,
)
from darkroom_cli.operator.operations.schedules.list_scheduled import (
    ListScheduledPorts,
    ScheduledListing,
    ScheduledSelection,
    ids_in_order,
    list_scheduled,
)
from darkroom_cli.operator.operations.schedules.reschedule_scheduled import (
    RescheduleScheduledPorts,
    reschedule_scheduled,
)
from darkroom_cli.stack.operators import Stack
from darkroom_cli.terminal import display
from darkroom_cli.terminal.interrupts import INTERRUPTED, Interrupts
from darkroom_cli.terminal.many import AT_A_TIME, IMAGES_PER_SECOND, do_to_many

LIMIT = 1_000_000

_REFUSALS_SHOWN = 20


def list_(stack: Stack, choice: Choice, *, limit: int, with_images: bool, as_json: bool) -> None:
    """`delay ls`."""
    selection = choice.selection(stack.clock())
    rows = 0 if not with_images else limit if as_json else pages.ROWS_SHOWN + 1
    listing = listed(stack, choice, selection, limit=limit, rows=rows)
    if as_json:
        display.print_json(pages.document(listing, choice, selection, with_rows=with_images))
    else:
        pages.listing_page(display.output(), listing, choice, selection, now=stack.clock(), target=stack.options)


@dataclass(frozen=True, kw_only=True)
class _Words:
    """The words with which a command on a day's images describes what it does."""

    verb: str
    done: str
    doing: str
    would: str
    whither: str = ""
    options: str = ""


@dataclass(kw_only=True)
class _Counts:
    done: int = 0
    left: int = 0
    refused: dict[str, Rejected | UnreadableRow] = field(default_factory=dict)
    interrupted: bool = False

    @property
    def detail(self) -> str:
        return f"{self.done:,} done, {self.left:,} left alone, {len(self.refused):,} refused"


def reschedule(stack: Stack, choice: Choice, *, days: int, rate: int, yes: bool) -> int:
    """`delay reschedule --day`; returns how many images it has moved, or would move."""
    selection, zone = choice.selection(stack.clock()), choice.tzinfo
    try:
        day = local_time(selection.period.starts_at, zone).date() + timedelta(days=days)
    except OverflowError as error:
        raise typer.BadParameter("the calendar ends there.", param_hint="--by") from error
    words = _Words(
        verb="reschedule",
        done="Rescheduled",
        doing="rescheduling",
        would="be rescheduled",
        whither=f" to {day}, to the same time of the day ({choice.zone or 'UTC'})",
        options=f" --by {days}d",
    )
    ports = partial(
        RescheduleScheduledPorts, images=stack.images, lanes=stack.lanes, hold_queue=stack.hold_queue, clock=stack.clock
    )

    def act(image_id: str, audited: AuditedAction) -> bool:
        return reschedule_scheduled(ports(audited=audited), image_id, selection, lambda at: days_later(at, days, zone))

    if not yes:
        return _tell(stack, choice, selection, words, rate=rate)
    counts = _do(stack, choice, selection, words, act, rate=rate)
    _end(stack, choice, words, counts, rate=rate)
    return counts.done


def cancel(stack: Stack, choice: Choice, *, rate: int, yes: bool) -> int:
    """`delay cancel --day`; returns how many images it has deleted, or would delete."""
    selection = choice.selection(stack.clock())
    words = _Words(verb="cancel", done="Deleted", doing="deleting", would="be deleted")
    ports = partial(CancelScheduledPorts, images=stack.images, clock=stack.clock)
    begun_at, numbers = stack.clock(), itertools.count()

    def act(image_id: str, audited: AuditedAction) -> bool:
        remove_at = begun_at + next(numbers) * 1000 // REMOVALS_PER_SECOND
        return cancel_scheduled(ports(audited=audited), image_id, selection, remove_at=remove_at)

    if not yes:
        return _tell(stack, choice, selection, words, rate=rate)
    counts = _do(stack, choice, selection, words, act, rate=rate)
    if counts.done > REMOVALS_PER_SECOND * 60:
        took = display.age(counts.done / REMOVALS_PER_SECOND)
        display.line(
            display.output(),
            f"Their originals are removed one after the other, within {took}, or later if the sweeper is behind.",
        )
    _end(stack, choice, words, counts, rate=rate)
    return counts.done


def _tell(stack: Stack, choice: Choice, selection: ScheduledSelection, words: _Words, *, rate: int) -> int:
    out = display.output()
    listing = listed(stack, choice, selection, limit=LIMIT)
    if not listing.images and not listing.due:
        display.line(out, pages.situation(listing, choice), style="green")
        return 0
    more = " or more" if listing.read_until is not None else ""
    display.line(
        out,
        f"{display.of(listing.images, 'image')}{more} of {choice.stretch} would {words.would}{words.whither}. "
        "Nothing was changed.",
        style="bold",
    )
    if listing.due:
        display.line(
            out,
            f"Also {display.of(listing.due, 'unfinished image')} whose time has come: those that no worker has begun "
            f"would {words.would} too.",
            style="yellow",
        )
    if listing.stretches:
        display.line(out)
        pages.view(out, listing, choice, selection, now=stack.clock())
    display.line(out)
    display.line(out, f"Do it:  {_again(stack, choice, words, rate=rate)}")
    return listing.images + listing.due


def _do(
    stack: Stack,
    choice: Choice,
    selection: ScheduledSelection,
    words: _Words,
    act: Callable[[str, AuditedAction], bool],
    *,
    rate: int,
) -> _Counts:
    listing = listed(stack, choice, selection, limit=LIMIT)
    total, counts = listing.images + listing.due, _Counts()

    def attempt(audited: AuditedAction, image_id: str) -> bool | Rejected | UnreadableRow:
        try:
            return act(image_id, audited)
        except (Rejected, UnreadableRow) as refusal:  # guard: isolated-scheduled-image
            return refusal
        except (ValueError, LookupError, TypeError, ArithmeticError) as error:  # guard: day-unreadable-row-isolated
            # This version cannot read the row. Raising here would stop the others at this row each time.
            return Rejected("unreadable", f"this version cannot handle its row ({type(error).__name__}: {error}).")

    def count(image_id: str, outcome: bool | Rejected | UnreadableRow) -> None:
        if not isinstance(outcome, bool):
            counts.refused[image_id] = outcome
        elif outcome:
            counts.done += 1
        else:
            counts.left += 1
        completed = counts.done + counts.left + len(counts.refused)
        report.show(words.doing, completed=completed, total=max(total, completed), detail=counts.detail)

    with Interrupts() as interrupts, display.ProgressReport(display.errors()) as report:
        try:
            about = {"of": choice.typed().strip(), "by": words.options.strip() or None}
            with (
                stack.explained(),
                stack.audit.action(f"{words.verb}_day", is_certain=False, **about) as audited,
            ):
                do_to_many(
                    ids_in_order(ListScheduledPorts(images=stack.images, clock=stack.clock), selection),
                    partial(attempt, audited),
                    pace=RateLimiter(per_second=rate, clock=stack.clock, pause=interrupts.wait),
                    at_a_time=AT_A_TIME,
                    stop=lambda: interrupts.requested,
                    on_outcome=count,
                )
                if interrupts.requested:
                    audited.interrupt()
        except Exception:
            report.complain(f"so far: {counts.detail}")
            raise
    counts.interrupted = interrupts.requested
    display.line(
        display.output(),
        f"{words.done} {display.of(counts.done, 'image')} of {choice.stretch}{words.whither if counts.done else ''}.",
        style="bold",
    )
    return counts


def _end(stack: Stack, choice: Choice, words: _Words, counts: _Counts, *, rate: int) -> None:
    out = display.output()
    if counts.left:
        display.line(out, f"Left alone: {counts.left:,} that were begun, rescheduled or deleted meanwhile.")
    for image_id, refusal in itertools.islice(counts.refused.items(), _REFUSALS_SHOWN):
        display.complain(f"{image_id} stays where it is: {refusal}")
    if len(counts.refused) > _REFUSALS_SHOWN:
        display.complain(f"… and {len(counts.refused) - _REFUSALS_SHOWN:,} more stay where they are.")
    if counts.interrupted:
        again = _again(stack, choice, words, rate=rate)
        display.line(display.errors(), f"Interrupted. For the rest:  {again}", style="yellow")
        raise typer.Exit(INTERRUPTED)
    display.line(out, f"Is anything left?  ./darkroom delay ls{choice.typed()}{stack.options}")
    if counts.refused:
        raise typer.Exit(1)


def _again(stack: Stack, choice: Choice, words: _Words, *, rate: int) -> str:
    more = f" --rate {rate}" if rate != IMAGES_PER_SECOND else ""
    return f"./darkroom delay {words.verb}{choice.typed()}{words.options}{more} --yes{stack.options}"


def listed(
    stack: Stack, choice: Choice, selection: ScheduledSelection, *, limit: int, rows: int = 0
) -> ScheduledListing:
    """What waits of the chosen images, by days, or by the hours of the chosen day."""
    zone, hours = choice.tzinfo, choice.hours()
    starts = [hour.starts_at for hour in hours]

    def cut(at: Milliseconds) -> Period:
        if hours:
            return hours[bisect_right(starts, at) - 1]
        return day_period(local_time(at, zone).date(), zone)

    with stack.explained(), display.ProgressReport(display.errors()) as report:
        return list_scheduled(
            ListScheduledPorts(images=stack.images, clock=stack.clock),
            selection,
            cut=cut,
            limit=limit,
            rows=rows,
            on_read=lambda read: report.show("reading", completed=read, total=None, detail=f"{read:,} images"),
        )
