"""The work of `darkroom usage`, once the command line is parsed."""

from __future__ import annotations

from dataclasses import asdict

import typer

from darkroom.domain.kernel.instants import day_of
from darkroom.domain.kernel.sizes import size_in_words
from darkroom.domain.usage.usage import Usage
from darkroom_cli.stack.operators import Stack
from darkroom_cli.terminal import display

_HEADS = ("day", "tenant", "images", "size", "runs", "variants' size", "megapixels")


def show(stack: Stack, *, since: str | None, until: str | None, tenant: str | None, as_json: bool) -> None:
    """`usage`."""
    today = day_of(stack.clock())
    first, last = since or f"{(until or today)[:8]}01", until or today
    if first > last:
        raise typer.BadParameter(f"{first} is after {last}.", param_hint="--since")
    with stack.explained():
        usage = stack.usage
        days_read = display.readable(
            usage.days(since=first, until=last) if tenant is None else usage.days_of(tenant, since=first, until=last)
        )
    days = sorted(days_read, key=lambda day: (day.day, day.tenant_id))
    if as_json:
        display.print_json([{"day": day.day, "tenant": day.tenant_id, **asdict(day.usage)} for day in days])
        return
    out = display.output()
    if not days:
        display.line(out, f"Nothing was used from {first} to {last}.")
        return
    rows = [(day.day, day.tenant_id, *_figures(day.usage)) for day in days]
    if len(rows) > 1:
        rows.append(("", "all", *_figures(sum((day.usage for day in days), Usage()))))
    display.table(out, _HEADS, rows, right=frozenset(_HEADS[2:]))


def _figures(usage: Usage) -> tuple[str, ...]:
    return (
        f"{usage.images:,}",
        size_in_words(usage.image_bytes),
        f"{usage.runs:,}",
        size_in_words(usage.variant_bytes),
        f"{usage.variant_pixels / 1_000_000:,.1f}",
    )
