"""The work of `darkroom orphans`, once the command line is parsed."""

from __future__ import annotations

import time
from typing import Any

import typer
from rich.console import Console

from darkroom.domain.kernel.instants import rfc3339
from darkroom.domain.kernel.sizes import size_in_words
from darkroom_cli.operator.operations.images.list_orphans import ListOrphansPorts, Look, Orphan, list_orphans
from darkroom_cli.operator.operations.images.remove_orphans import (
    RemoveOrphansPorts,
    TableSeemsLost,
    remove_orphans,
    table_seems_lost,
)
from darkroom_cli.operator.operations.kernel.retry_transient import TransientRetry
from darkroom_cli.stack.operators import Stack
from darkroom_cli.terminal import display
from darkroom_cli.terminal.durations import seconds_of
from darkroom_cli.terminal.interrupts import INTERRUPTED, Interrupts
from darkroom_client.client import ApiError

STANDARD_AGE = "2d"
"""The default age: somebody who erased a table by mistake has noticed by then."""

_SHOWN = 20


def list_(stack: Stack, *, older_than: str, as_json: bool) -> None:
    """`orphans ls`."""
    look = _look(stack, older_than)
    if as_json:
        display.print_json(_document(look))
        return
    out = display.output()
    if _told_nothing(out, look, older_than):
        return
    _print_look(out, look, stack, older_than)
    display.line(out, f"What removing them would do:  {_command(stack, older_than)}")


def tell_removal(stack: Stack, *, older_than: str, table_is_whole: bool) -> None:
    """`orphans remove` without --yes."""
    look = _look(stack, older_than)
    out = display.output()
    if _told_nothing(out, look, older_than, before="Nothing to remove. "):
        return
    _print_look(out, look, stack, older_than, verdict=" They would be removed. Nothing was changed.")
    if table_seems_lost(look) and not table_is_whole:
        display.line(out, _refusal(look, stack, older_than), style="yellow")
        return
    display.line(out, f"Do it:  {_command(stack, older_than, table_is_whole=table_is_whole)} --yes")


def remove(stack: Stack, *, older_than: str, table_is_whole: bool) -> None:
    """`orphans remove --yes`."""
    look = _look(stack, older_than)
    out = display.output()
    if _told_nothing(out, look, older_than, before="Nothing to remove. "):
        return

    so_far = ""

    def show(doing: str, done: int, total: int) -> None:
        nonlocal so_far
        so_far = f"{doing}, {done:,} of {total:,}"
        left = f"{display.seconds(total - done)} left" if doing == "waiting" else f"{done:,} of {total:,} originals"
        report.show(doing, completed=done, total=total, detail=left)

    with Interrupts() as interrupts, display.ProgressReport(display.errors()) as report:
        try:
            with stack.explained():
                removal = remove_orphans(
                    RemoveOrphansPorts(
                        images=stack.images,
                        originals=stack.original_versions,
                        patience=TransientRetry(pause=interrupts.wait, stop=lambda: interrupts.requested),
                        audit=stack.audit,
                    ),
                    look,
                    table_is_whole=table_is_whole,
                    on_progress=show,
                )
        except TableSeemsLost as error:
            raise ApiError(_refusal(look, stack, older_than)) from error
        except Exception:
            report.complain(f"so far: {so_far or 'nothing'}")
            raise
    display.line(
        out,
        f"Removed {display.of(removal.removed, 'original')}, {size_in_words(removal.size_bytes)}, "
        "with all their versions.",
        style="bold",
    )
    if removal.vouched_for:
        display.line(out, f"Left alone: {removal.vouched_for:,} that have a row by now.")
    _print_remarks(out, look, older_than)
    again = f"{_command(stack, older_than, table_is_whole=table_is_whole)} --yes"
    if not removal.complete:
        display.line(
            display.errors(),
            f"Interrupted. Hidden originals stay hidden, which does no harm. For the rest:  {again}",
            style="yellow",
        )
        raise typer.Exit(INTERRUPTED)
    if look.orphans > len(look.held):
        display.line(out, f"{look.orphans - len(look.held):,} more are left. To remove them too:  {again}")


def _look(stack: Stack, older_than: str) -> Look:
    with stack.explained(), display.ProgressReport(display.errors()) as report:
        return list_orphans(
            ListOrphansPorts(
                images=stack.images,
                originals=stack.original_versions,
                clock=stack.clock,
                patience=TransientRetry(
                    pause=time.sleep, stop=lambda: False
                ),  # nothing is changed: Ctrl-C ends it at once
            ),
            older_than_seconds=seconds_of(older_than) or 0,
            on_look=lambda looked_at, without_row: report.show(
                "looking",
                completed=looked_at,
                total=None,
                detail=f"{looked_at:,} originals, {without_row:,} without a row",
            ),
        )


def _told(look: Look, stack: Stack) -> str:
    age = display.age((stack.clock() - (look.oldest_at or 0)) / 1000)
    has = "has" if look.orphans == 1 else "have"
    return (
        f"{display.of(look.orphans, 'original')} of {look.originals:,} {has} no row: {size_in_words(look.size_bytes)}, "
        f"the oldest stored {age} ago"
    )


def _nothing(look: Look) -> str:
    if not look.originals:
        return "There are no originals."
    if look.young:
        return f"All of {look.originals:,} originals have their rows, except those that are too young to tell."
    return f"Every original has its row: {display.of(look.originals, 'original')} checked."


def _print_remarks(out: Console, look: Look, older_than: str) -> None:
    if look.young:
        display.line(out, f"{look.young:,} more without a row are younger than {older_than}, and are left alone.")
    if look.foreign:
        keys = ", ".join(map(display.printable, look.foreign_keys[:3])) + (", …" if look.foreign > 3 else "")
        display.line(
            out,
            f"{display.of(look.foreign, 'object')} with keys that no original has, left alone: {keys}",
            style="yellow",
        )


def _told_nothing(out: Console, look: Look, older_than: str, *, before: str = "") -> bool:
    """Whether there are no orphans; if so, it says that."""
    if look.orphans:
        return False
    display.line(out, f"{before}{_nothing(look)}", style="green")
    _print_remarks(out, look, older_than)
    return True


def _print_look(out: Console, look: Look, stack: Stack, older_than: str, *, verdict: str = "") -> None:
    """Prints what was found, with the first orphans in a table."""
    display.line(out, f"{_told(look, stack)}.{verdict}", style="bold")
    _print_remarks(out, look, older_than)
    display.line(out)
    display.table(
        out,
        ("image", "size", "versions", "stored", ""),
        [
            (
                orphan.image_id,
                size_in_words(orphan.size_bytes),
                str(len(orphan.versions)),
                rfc3339(orphan.stored_at),
                "hidden" if orphan.is_hidden else "",
            )
            for orphan in look.held[:_SHOWN]
        ],
        right=frozenset({"size", "versions"}),
    )
    if look.orphans > _SHOWN:
        display.line(out, f"  … and {look.orphans - _SHOWN:,} more.")
    display.line(out)


def _refusal(look: Look, stack: Stack, older_than: str) -> str:
    again = f"{_command(stack, older_than, table_is_whole=True)} --yes"
    return (
        f"{look.without_row:,} of {look.originals:,} originals have no row: failed requests do not leave that many. "
        "It looks as if the table had lost rows, and these photos could be all that is left. Nothing is removed. "
        f"See docs/runbook.md, Orphans. Once you know that no row is missing:  {again}"
    )


def _command(stack: Stack, older_than: str, *, table_is_whole: bool = False) -> str:
    age = "" if older_than == STANDARD_AGE else f" --older-than {older_than}"
    return f"./darkroom orphans remove{age}{' --table-is-whole' if table_is_whole else ''}{stack.options}"


def _document(look: Look) -> dict[str, Any]:
    return {
        "originals": look.originals,
        "without_row": look.without_row,
        "young": look.young,
        "orphans": look.orphans,
        "bytes": look.size_bytes,
        "oldest_at": rfc3339(look.oldest_at),
        "table_seems_lost": table_seems_lost(look),
        "foreign": look.foreign,
        "foreign_keys": list(look.foreign_keys),
        "rows": [_row(orphan) for orphan in look.held],
    }


def _row(orphan: Orphan) -> dict[str, Any]:
    return {
        "id": orphan.image_id,
        "bytes": orphan.size_bytes,
        "versions": len(orphan.versions),
        "stored_at": rfc3339(orphan.stored_at),
        "hidden": orphan.is_hidden,
    }
