"""The work of `darkroom parts`, once the command line is parsed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from darkroom.parts import PARTS, Part
from darkroom_cli.parts.remains import KEPT, SECRETS, Remains
from darkroom_cli.stack.operators import Stack
from darkroom_cli.terminal import display
from darkroom_client.client import ApiError


def list_(stack: Stack, *, as_json: bool) -> None:
    """`parts ls`."""
    remains = Remains(stack=stack)
    with stack.explained():
        deployed = stack.parts_by_now()
        left = {part: {} if part in deployed else _counted(remains, part) for part in PARTS}
    if as_json:
        display.print_json({"parts": [_document(part, part in deployed, left[part]) for part in PARTS]})
        return
    out = display.output()
    rows = [(part, *(("deployed", "") if part in deployed else ("off", _in_words(left[part], part)))) for part in PARTS]
    display.table(out, ("part", "", "left of it"), rows, right=frozenset())
    for part in (part for part in PARTS if any(left[part].values())):
        display.line(out, f"What removing that would do:  ./darkroom parts purge {part}{stack.options}")


def tell_purge(stack: Stack, part: str) -> None:
    """`parts purge` without --confirm."""
    remains = Remains(stack=stack)
    with stack.explained():
        _require_absent(stack, part)
        left = _counted(remains, part)
    out = display.output()
    if not any(left.values()):
        display.line(out, f"Nothing is left of {part} in {stack.name}.", style="green")
        return
    display.line(out, f"{stack.name} keeps of {part}: {_rows_and_messages(left)}.", style="bold")
    display.line(out, "All of that would be removed, for good. Nothing was changed.", style="bold")
    if part in SECRETS:
        display.line(out, f"{SECRETS[cast(Part, part)]} stays, as all tables and queues do.")
    display.line(out, f"Do it:  {_again(stack, part)}")


def purge(stack: Stack, part: str) -> None:
    """`parts purge --confirm`. Each table and queue is emptied by itself, so that a repetition finds the rest."""
    if not KEPT[cast(Part, part)]:
        tell_purge(stack, part)
        return
    remains, removed = Remains(stack=stack), 0
    with display.ProgressReport(display.errors()) as report, stack.explained():
        _require_absent(stack, part)
        with stack.audit.action("purge_part", part) as audited:
            for name in KEPT[cast(Part, part)]:
                # Somebody may deploy it meanwhile: then the rest is no remains any more.
                _require_absent(stack, part)  # guard: parts-purge-absent-still

                def show(rows: int, name: str = name) -> None:
                    nonlocal removed
                    removed += rows
                    report.show("removing", completed=removed, total=None, detail=f"{removed:,} rows; now of {name}")

                remains.empty(name, show)
                audited.add(name, "emptied")
    done = f"{display.of(removed, 'row')}, and the messages of every queue within a minute"
    display.line(display.output(), f"Removed what was left of {part} in {stack.name}: {done}.", style="bold")


def _require_absent(stack: Stack, part: str) -> None:
    if part in stack.parts_by_now():  # guard: parts-purge-absent-only
        raise ApiError(
            f"{part} is deployed in {stack.name}, so nothing was removed. Deploy with {part.capitalize()}=false first."
        )


def _counted(remains: Remains, part: str) -> Mapping[str, int]:
    return {name: remains.count(name) for name in KEPT[cast(Part, part)]}


def _in_words(left: Mapping[str, int], part: str) -> str:
    kept = [_rows_and_messages(left)] if any(left.values()) else []
    secret = SECRETS.get(cast(Part, part))
    return "; ".join([*kept, *([secret] if secret else [])]) or "nothing"


def _rows_and_messages(left: Mapping[str, int]) -> str:
    return ", ".join(
        f"{display.of(count, 'row' if name.endswith('Table') else 'message')} in {name}"
        for name, count in left.items()
        if count
    )


def _document(part: str, is_deployed: bool, left: Mapping[str, int]) -> dict[str, Any]:
    secret = SECRETS.get(cast(Part, part))
    return {"part": part, "deployed": is_deployed, "left": dict(left), "secret": None if is_deployed else secret}


def _again(stack: Stack, part: str) -> str:
    return f"./darkroom parts purge {part} --confirm {stack.name}{stack.options}"
