"""Shows scheduled images on the screen and as JSON: how many, when, and what to type next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import tzinfo
from typing import Any

from rich.console import Console

from darkroom.domain.images.image import Image
from darkroom.domain.kernel.instants import Milliseconds, rfc3339
from darkroom_cli.delay.choice import Choice
from darkroom_cli.operator.domain.periods import Period, local_time
from darkroom_cli.operator.operations.schedules.list_scheduled import ScheduledListing, ScheduledSelection, Stretch
from darkroom_cli.terminal import display

ROWS_SHOWN = 100
_BAR_CELLS = 24
_EIGHTHS = "▏▎▍▌▋▊▉"
_DAY_MILLISECONDS = 24 * 3_600_000


def situation(listing: ScheduledListing, choice: Choice) -> str:
    """One sentence that says how many images wait, and when."""
    where = f" on {choice.day}" if choice.day is not None else ""
    if not listing.stretches:
        return f"Nothing{' that matches' if _is_narrowed(choice) else ''} waits for its time{where}."
    is_single, is_whole = listing.images == 1, listing.read_until is None
    first, last = listing.stretches[0].first_at, listing.stretches[-1].last_at
    when = f"at {_moment(first, choice.tzinfo)}"
    if first != last or not is_whole:
        when = f"from {_moment(first, choice.tzinfo)} {f'to {_moment(last, choice.tzinfo)}' if is_whole else 'on'}"
    return (
        f"{'' if is_whole else 'At least '}{display.of(listing.images, 'image')} "
        f"{'waits for its' if is_single else 'wait for their'} time, {when} ({choice.zone or 'UTC'})."
    )


def _is_narrowed(choice: Choice) -> bool:
    return any((choice.from_, choice.to, choice.lane, choice.tenant, choice.hour))


def print_remarks(out: Console, listing: ScheduledListing, choice: Choice) -> None:
    """Prints what the reader should know about how complete the listing is."""
    if listing.read_until is not None:
        until = _moment(listing.read_until, choice.tzinfo)
        display.line(
            out,
            f"That is not all: images up to {until} were read, and more wait after that. See --limit.",
            style="yellow",
        )
    if listing.unreadable:
        display.line(
            out,
            f"Also {display.of(listing.unreadable, 'row')} of a newer version, which cannot be read: see "
            "./darkroom doctor.",
            style="yellow",
        )
    if listing.due:
        display.line(
            out,
            f"Also {display.of(listing.due, 'unfinished image')} whose time has come: in the lane or being developed.",
            style="yellow",
        )


def listing_page(
    out: Console,
    listing: ScheduledListing,
    choice: Choice,
    selection: ScheduledSelection,
    *,
    now: Milliseconds,
    target: str,
) -> None:
    """`delay ls`."""
    display.line(out, situation(listing, choice), style="bold" if listing.stretches else "green")
    print_remarks(out, listing, choice)
    if listing.stretches:
        display.line(out)
        view(out, listing, choice, selection, now=now)
    if listing.rows:
        display.line(out)
        images_table(out, listing.rows, choice.tzinfo)
    if not listing.stretches:
        return
    display.line(out)
    if choice.day is None:
        day = local_time(listing.stretches[0].first_at, choice.tzinfo).date().isoformat()
        closer = choice.typed(day=day, from_=None, to=None)
        display.advise(out, [("One day by its hours:", f"./darkroom delay ls{closer}{target}")])
        return
    typed = choice.typed()
    advice = [
        (
            "To reschedule them:",
            f"./darkroom delay reschedule{typed} --by 1d{target}    (says what it would do; --yes does it)",
        ),
        ("To delete them:", f"./darkroom delay cancel{typed}{target}"),
    ]
    if not listing.rows:
        advice.insert(0, ("One by one:", f"./darkroom delay ls{typed} --images{target}"))
    display.advise(out, advice)


def view(
    out: Console, listing: ScheduledListing, choice: Choice, selection: ScheduledSelection, *, now: Milliseconds
) -> None:
    """Prints the stretches, a line each: all hours of a day, also empty ones; or the days on which something waits,
    with one line for the empty days between two of them."""
    zone, lanes = choice.tzinfo, selection.lanes if len(selection.lanes) > 1 else ()
    most = max(stretch.images for stretch in listing.stretches)

    def cells(label: str, stretch: Stretch | None) -> tuple[str, ...]:
        if stretch is None:
            return (label, "0", *("" for _ in lanes), "", "", "")
        return (
            label,
            f"{stretch.images:,}",
            *(f"{stretch.images_by_lane[lane]:,}" for lane in lanes),
            _clock(stretch.first_at, zone),
            _clock(stretch.last_at, zone),
            bar(stretch.images, most),
        )

    if choice.day is not None:
        hours = choice.hours()
        by_hour = {stretch.period: stretch for stretch in listing.stretches}
        label = _hour_label(hours, zone)
        rows = [cells(label(hour), by_hour.get(hour)) for hour in hours if hour.ends_at > now]
    else:
        rows = []
        ends_at = listing.stretches[0].period.starts_at
        for stretch in listing.stretches:
            if stretch.period.starts_at > ends_at:
                rows.append(cells(_gap(ends_at, stretch.period.starts_at, zone), None))
            rows.append(cells(_day_label(stretch.period.starts_at, zone), stretch))
            ends_at = stretch.period.ends_at
    heads = ("day" if choice.day is None else "hour", "images", *lanes, "first", "last", "")
    display.table(out, heads, rows, right=frozenset({"images", *lanes}))


def bar(count: int, most: int) -> str:
    """A bar whose length is `count` relative to `most`, to an eighth of a cell; never empty."""
    cells, eighths = divmod(max(1, round(count * _BAR_CELLS * 8 / most)), 8)
    return "█" * cells + (_EIGHTHS[eighths - 1] if eighths else "")


def _gap(starts_at: Milliseconds, ends_at: Milliseconds, zone: tzinfo) -> str:
    days = round((ends_at - starts_at) / _DAY_MILLISECONDS)
    return _day_label(starts_at, zone) if days == 1 else f"… {days} days"


def _day_label(starts_at: Milliseconds, zone: tzinfo) -> str:
    return f"{local_time(starts_at, zone):%a %Y-%m-%d}"


def _hour_label(hours: Sequence[Period], zone: tzinfo) -> Callable[[Period], str]:
    """Labels of hours: local time, with the offset on a day on which it changes."""
    changes = len({local_time(hour.starts_at, zone).utcoffset() for hour in hours}) > 1
    return lambda hour: (
        local_time(hour.starts_at, zone).isoformat()[11:16]
        + (local_time(hour.starts_at, zone).isoformat()[19:] if changes else "")
    )


def _clock(instant: Milliseconds, zone: tzinfo) -> str:
    return f"{local_time(instant, zone):%H:%M:%S}"


def _moment(instant: Milliseconds, zone: tzinfo) -> str:
    return f"{local_time(instant, zone):%Y-%m-%d %H:%M:%S}"


def images_table(out: Console, images: Sequence[Image], zone: tzinfo) -> None:
    """Prints the images, a line each."""

    def formatted(instant: Milliseconds | None) -> str:
        return "-" if instant is None else local_time(instant, zone).isoformat(timespec="milliseconds")

    display.table(
        out,
        ("image", "process_at", "lane", "schedule", "expires_at", "tenant"),
        [
            (
                image.image_id,
                formatted(image.process_at),
                image.lane,
                str(image.schedule),
                formatted(image.expires_at),
                image.tenant_id,
            )
            for image in images[:ROWS_SHOWN]
        ],
        right=frozenset({"schedule"}),
    )
    if len(images) > ROWS_SHOWN:
        display.line(out, f"  … and more than these {ROWS_SHOWN}; --json has them all.")


def document(
    listing: ScheduledListing, choice: Choice, selection: ScheduledSelection, *, with_rows: bool
) -> dict[str, Any]:
    """The listing as JSON."""
    zone = choice.tzinfo
    by_day = choice.day is None
    return {
        "zone": choice.zone or "UTC",
        "images": listing.images,
        "due": listing.due,
        "unreadable": listing.unreadable,
        "read_until": rfc3339(listing.read_until),
        "days" if by_day else "hours": [
            {
                **({"day": local_time(stretch.period.starts_at, zone).date().isoformat()} if by_day else {}),
                "starts_at": rfc3339(stretch.period.starts_at),
                "ends_at": rfc3339(stretch.period.ends_at),
                "images": stretch.images,
                "lanes": {lane: stretch.images_by_lane[lane] for lane in selection.lanes},
                "first_at": rfc3339(stretch.first_at),
                "last_at": rfc3339(stretch.last_at),
            }
            for stretch in listing.stretches
        ],
    } | ({"rows": [_row(image) for image in listing.rows]} if with_rows else {})


def _row(image: Image) -> dict[str, Any]:
    return {
        "id": image.image_id,
        "process_at": rfc3339(image.process_at),
        "lane": image.lane,
        "schedule": image.schedule,
        "expires_at": rfc3339(image.expires_at),
        "tenant_id": image.tenant_id,
    }
