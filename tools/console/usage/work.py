"""The work of `darkroom usage`, once the command line is parsed."""

from __future__ import annotations

from dataclasses import asdict

import typer

from console.stack.operators import Stack
from console.terminal import display
from darkroom.domain.kernel.instants import day_of
from darkroom.domain.kernel.sizes import size_in_words
from darkroom.domain.usage.usage import Usage

_HEADS = ("day", "tenant", "images", "size", "runs", "variants' size", "megapixels")


def show(stack: Stack, *, since: str | None, until: str | None, tenant: str | None, as_json: bool) -> None:
    """`usage`."""
    today = day_of(stack.clock())
    first, last = since or f"{(until or today)[:8]}01", until or today
    if first > last:
        raise typer.BadParameter(f"{first} is after {last}.", param_hint="--since")
    with stack.explained():
        usage = stack.usage
        found = display.readable(
            usage.days(since=first, until=last) if tenant is None else usage.days_of(tenant, since=first, until=last)
        )
    days = sorted(found, key=lambda one: (one.day, one.tenant_id))
    if as_json:
        display.print_json([{"day": one.day, "tenant": one.tenant_id, **asdict(one.usage)} for one in days])
        return
    out = display.output()
    if not days:
        display.line(out, f"Nothing was used from {first} to {last}.")
        return
    rows = [(one.day, one.tenant_id, *_figures(one.usage)) for one in days]
    if len(rows) > 1:
        rows.append(("", "all", *_figures(sum((one.usage for one in days), Usage()))))
    display.table(out, _HEADS, rows, right=frozenset(_HEADS[2:]))


def _figures(usage: Usage) -> tuple[str, ...]:
    return (
        f"{usage.images:,}",
        size_in_words(usage.image_bytes),
        f"{usage.runs:,}",
        size_in_words(usage.variant_bytes),
        f"{usage.variant_pixels / 1_000_000:,.1f}",
    )
