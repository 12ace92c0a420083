"""The work of `darkroom backfill`, once the command line is parsed."""

from __future__ import annotations

import secrets
from dataclasses import asdict
from typing import Any

import typer

from darkroom.domain.bulk.backfills import Backfill, BackfillState, Selection, decided
from darkroom.domain.kernel.instants import rfc3339
from darkroom.ports.kernel import UnreadableRow
from darkroom_cli.operator.operations.backfills.decide_backfill import (
    DecideBackfillPorts,
    decide_backfill,
    start_backfill,
)
from darkroom_cli.stack.operators import Stack
from darkroom_cli.terminal import display
from darkroom_client.client import ApiError


def selection_of(
    preset: str, *, since: int | None, until: int | None, tag: str | None, tenant: str | None
) -> Selection:
    """What the options choose."""
    name, _, version = preset.partition("@")
    return Selection(
        preset=name,
        version=int(version),
        since=since,
        until=until,
        tag=tag,
        tenant_id=tenant,
    )


def start(stack: Stack, selection: Selection, *, rate: int | None, yes: bool) -> None:
    """`backfill start`. Raises ApiError."""
    out = display.output()
    pace = "as fast as the lane bulk takes them" if rate is None else f"at most {rate:,} per second"
    if not yes:
        text = f"Every image {_chosen(selection)} would be developed again, {pace}, and stay done meanwhile."
        display.line(out, f"{text} Nothing was changed.")
        display.line(out, "Do it:  the same with --yes")
        return
    with stack.explained():
        backfill = start_backfill(_ports(stack), selection, rate=rate)
    display.line(out, f"Started {backfill.backfill_id}: images {_chosen(selection)}, {pace}. It begins within minutes.")
    display.line(out, f"Follow it:  ./darkroom backfill show {backfill.backfill_id}{stack.options}")


def list_(stack: Stack, *, as_json: bool) -> None:
    """`backfill ls`. Raises ApiError."""
    with stack.explained():
        rows = list(stack.backfills.all())
    unreadable = [row for row in rows if isinstance(row, UnreadableRow)]
    backfills = display.readable(rows)
    if as_json:
        display.print_json(
            {"backfills": list(map(_document, backfills)), "unreadable": [row.row_id for row in unreadable]}
        )
    elif not backfills:
        display.line(display.output(), f"{stack.name} has no backfills.")
    else:
        lines = [
            (
                row.backfill_id,
                row.state.value,
                f"{row.selection.preset}@{row.selection.version}",
                f"{row.counts.images:,}",
                f"{row.in_work:,}",
                row.waits_for or "",
            )
            for row in backfills
        ]
        names = ("id", "state", "preset", "ended", "in work", "waits for")
        display.table(display.output(), names, lines, right=frozenset({"ended", "in work"}))
    if unreadable:
        raise typer.Exit(1)


def show(stack: Stack, backfill_id: str, *, as_json: bool) -> None:
    """`backfill show`. Raises ApiError."""
    with stack.explained():
        backfill = stack.backfills.get(backfill_id)
    if backfill is None:
        raise _unknown(backfill_id)
    if as_json:
        display.print_json(_document(backfill))
        return
    out, counts = display.output(), backfill.counts
    display.line(out, f"{backfill.backfill_id} is {backfill.state}: images {_chosen(backfill.selection)}")
    read = "all rows" if backfill.is_listed else f"{backfill.read:,} rows so far"
    display.line(out, f"Read {read}, found {display.of(backfill.found, 'image')}, {backfill.in_work:,} of them in work")
    ended = ", ".join(f"{number:,} {name}" for name, number in asdict(counts).items())
    display.line(out, f"Ended: {ended}")
    if backfill.waits_for is not None and not backfill.has_ended:
        display.line(out, f"Waits for {backfill.waits_for}", style="yellow")


def decide(stack: Stack, backfill_id: str, state: str) -> None:
    """`backfill pause | resume | cancel`. Raises ApiError."""
    wanted = BackfillState(state)
    with stack.explained():
        backfill = decide_backfill(_ports(stack), backfill_id, wanted)
    if backfill is None:
        raise _unknown(backfill_id)
    if backfill.state is not wanted:
        raise ApiError(f"{backfill_id} is {backfill.state}, and stays so.")
    display.line(display.output(), f"{backfill_id} is {backfill.state}.")


def tell_decide(stack: Stack, backfill_id: str, state: str) -> bool:
    """Says what `decide` would do; returns whether that is something. Raises ApiError."""
    with stack.explained():
        backfill = stack.backfills.get(backfill_id)
    if backfill is None:
        raise _unknown(backfill_id)
    is_other = decided(backfill, BackfillState(state), now=stack.clock()) != backfill
    would = f"would be {state}" if is_other else "would stay so"
    display.line(
        display.output(), f"{backfill_id}, which is {backfill.state}, {would}. What is begun ends. Nothing was changed."
    )
    return is_other


def _ports(stack: Stack) -> DecideBackfillPorts:
    if "bulk" not in stack.parts:
        raise ApiError(f"{stack.name} is deployed without bulk: deploy it with Bulk=true first.")
    return DecideBackfillPorts(
        backfills=stack.backfills, clock=stack.clock, randomness=secrets.token_bytes, audit=stack.audit
    )


def _unknown(backfill_id: str) -> ApiError:
    return ApiError(f"There is no backfill {display.printable(backfill_id)!r}: see ./darkroom backfill ls.")


def _chosen(selection: Selection) -> str:
    """Which images are chosen, in words."""
    parts = [f"of the preset {selection.preset} before version {selection.version}"]
    if selection.since is not None:
        parts.append(f"from {rfc3339(selection.since)} on")
    if selection.until is not None:
        parts.append(f"before {rfc3339(selection.until)}")
    if selection.tag is not None:
        parts.append(f"with the tag {display.printable(selection.tag)}")
    if selection.tenant_id is not None:
        parts.append(f"of the tenant {display.printable(selection.tenant_id)}")
    return ", ".join(parts)


def _document(backfill: Backfill) -> dict[str, Any]:
    chosen = backfill.selection
    return {
        "id": backfill.backfill_id,
        "state": backfill.state.value,
        "preset": chosen.preset,
        "preset_version": chosen.version,
        "since": rfc3339(chosen.since),
        "until": rfc3339(chosen.until),
        "tag": chosen.tag,
        "tenant": chosen.tenant_id,
        "rate": backfill.rate,
        "created_at": rfc3339(backfill.created_at),
        "ended_at": rfc3339(backfill.ended_at),
        "rows_read": backfill.read,
        "all_read": backfill.is_listed,
        "found": backfill.found,
        "in_work": backfill.in_work,
        "ended": asdict(backfill.counts),
        "waits_for": None if backfill.has_ended else backfill.waits_for,
    }
