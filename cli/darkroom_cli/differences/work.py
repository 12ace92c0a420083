"""The work of `darkroom differences`, once the command line is parsed."""

from __future__ import annotations

from dataclasses import asdict

from darkroom.domain.bulk.reconciliation import SLICES, Difference, DifferenceKind
from darkroom.domain.kernel.instants import rfc3339
from darkroom_cli.stack.operators import Stack
from darkroom_cli.terminal import display

REMEDIES = {
    DifferenceKind.ORIGINAL_WITHOUT_ROW: "./darkroom orphans ls{options}",
    DifferenceKind.ROW_WITHOUT_ORIGINAL: "bring that version back, or delete the image: docs/runbook.md#differences",
    DifferenceKind.ROW_WITHOUT_VARIANT: "./darkroom redo ID{options}",
}
"""What to do about a kind."""


def list_(stack: Stack, *, as_json: bool) -> None:
    """`differences ls`. Raises ApiError."""
    with stack.explained():
        row, differences = stack.reconciliations.get(), stack.reconciliations.differences()
    confirmed = [difference for difference in differences if difference.confirmed_at is not None]
    ended_at = None if row is None else rfc3339(row.ended_at)
    found = 0 if row is None else row.found
    if as_json:
        display.print_json(
            {"nights": row.nights if row else 0, "ended_at": ended_at, "found": found}
            | {"differences": list(map(_document, differences))}
        )
    else:
        out = display.output()
        if differences:
            names = ("kind", "key", "first seen", "confirmed")
            lines = [
                (each.kind.value, each.key, rfc3339(each.first_seen), rfc3339(each.confirmed_at) or "not yet")
                for each in differences
            ]
            display.table(out, names, lines, right=frozenset())
            for kind in DifferenceKind:
                if any(each.kind is kind for each in confirmed):
                    display.line(out, f"{kind}:  {REMEDIES[kind].format(options=stack.options)}")
        else:
            display.line(out, f"{stack.name} has no differences that are known.")
        latest = "no night has ended yet" if ended_at is None else f"the latest night ended at {ended_at}"
        display.line(out, f"Of {SLICES} nights, which compare everything, {latest}.")


def _document(difference: Difference) -> dict[str, str | None]:
    instants = {name: rfc3339(getattr(difference, name)) for name in ("first_seen", "confirmed_at")}
    return asdict(difference) | instants
