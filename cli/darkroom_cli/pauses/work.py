"""The work of `darkroom pause` and `darkroom resume`, once the command line is parsed."""

from __future__ import annotations

from typing import Literal

import typer

from darkroom.domain.kernel.instants import Milliseconds, rfc3339
from darkroom.domain.pauses.pauses import Paused
from darkroom.domain.webhooks.endpoint import Endpoint
from darkroom.parts import Part
from darkroom.ports.kernel import UnreadableRow
from darkroom_cli.operator.operations.kernel.retry_transient import TransientRetry
from darkroom_cli.operator.operations.pauses.list_pauses import PausedWork, list_pauses
from darkroom_cli.operator.operations.pauses.pause_work import in_force, pause_work
from darkroom_cli.operator.operations.pauses.resume_work import resume_work
from darkroom_cli.operator.operations.webhooks.pause_webhook import pause_webhook
from darkroom_cli.pauses import ports
from darkroom_cli.stack.operators import Stack
from darkroom_cli.terminal import display
from darkroom_cli.terminal.interrupts import INTERRUPTED, Interrupts
from darkroom_client.client import ApiError

type Subject = Paused | Literal["webhook"]
"""What can be paused."""

_OF_IMAGES = "Within a minute no worker begins an image of it. New ones are accepted, and wait."
_WHILE_PAUSED = {
    "lane": _OF_IMAGES,
    "tenant": _OF_IMAGES,
    "webhook": "Within a minute nothing is sent to it. Its events wait, for 30 days.",
}
_GOES_ON = {
    "lane": "its workers take what waits",
    "tenant": "workers take what waits, unless its lane is paused too",
    "webhook": "it is sent what waits",
}


def pause(stack: Stack, kind: Subject, name: str, *, reason: str = "") -> None:
    """`pause lane | tenant | webhook`. Raises ApiError."""
    out, told = display.output(), _told_if_paused(stack, kind, name)
    _check_pausable(stack, kind, name)
    with Interrupts() as interrupts, stack.explained():
        if kind == "webhook":
            pause_webhook(ports.to_change_webhook(stack), _webhook(stack, name), is_paused=True)
        else:
            pause_work(ports.to_pause(stack, _patience(interrupts)), kind, name, reason=reason)
    if told is None:
        display.line(out, f"Paused {kind} {name}. {_WHILE_PAUSED[kind]}")
    else:
        display.line(out, f"{kind.capitalize()} {name} is paused already, {told}.")
    display.line(out, f"Go on:  ./darkroom resume {kind} {name}{stack.options}")


def tell_pause(stack: Stack, kind: Subject, name: str) -> bool:
    """What `pause` would do; returns whether it would change anything. Raises ApiError."""
    _check_pausable(stack, kind, name)
    told, is_served = _told_if_paused(stack, kind, name), _is_served(stack, kind, name)
    if told is None:
        text = f"{kind.capitalize()} {name} would be paused. {_WHILE_PAUSED[kind]}"
    else:
        text = f"{kind.capitalize()} {name} is paused already, {told}."
        text += " Its workers, which still take its messages, would be stopped." if is_served else ""
    display.line(display.output(), f"{text} Nothing was changed.")
    return told is None or is_served


def resume(stack: Stack, kind: Subject, name: str) -> None:
    """`resume lane | tenant | webhook`. What is not paused is no error: a pause that a killed command has left half
    done is ended by this, too. Raises ApiError."""
    out, told = display.output(), _told_if_paused(stack, kind, name)
    is_complete, woken = True, 0
    with Interrupts() as interrupts, display.ProgressReport(display.errors()) as report, stack.explained():
        if kind == "webhook":
            pause_webhook(ports.to_change_webhook(stack), _webhook(stack, name), is_paused=False)
        else:
            resumed = resume_work(
                ports.to_resume(stack, _patience(interrupts)),
                kind,
                name,
                on_progress=lambda woken: report.show(
                    "waking", completed=woken, total=None, detail=display.of(woken, "image")
                ),
            )
            is_complete, woken = resumed.complete, resumed.woken
    if told is None:
        display.line(out, f"{kind.capitalize()} {name} is not paused.")
    else:
        display.line(out, f"Resumed {kind} {name}: {_GOES_ON[kind]}. It was paused {told}.")
    if woken:
        display.line(
            out, f"{display.of(woken, 'image')} that workers had set aside will be sent within a minute or two."
        )
    if not is_complete:
        display.line(
            display.errors(), "Interrupted. What is set aside is sent within an hour all the same.", style="yellow"
        )
        raise typer.Exit(INTERRUPTED)


def tell_resume(stack: Stack, kind: Subject, name: str) -> bool:
    """What `resume` would do; returns whether it would change anything. Raises ApiError."""
    told = _told_if_paused(stack, kind, name)
    is_stopped = kind == "lane" and not _is_served(stack, kind, name)
    if told is None:
        text = f"{kind.capitalize()} {name} is not paused."
        text += " Its workers, which take none of its messages, would take them again." if is_stopped else ""
    else:
        text = f"{kind.capitalize()} {name} would go on: {_GOES_ON[kind]}. It is paused {told}."
    display.line(display.output(), f"{text} Nothing was changed.")
    return told is not None or is_stopped


def list_(stack: Stack, *, as_json: bool) -> None:
    """`pause ls`."""
    with stack.explained():
        rows = list(list_pauses(ports.to_list(stack)))
    unreadable = [row for row in rows if isinstance(row, UnreadableRow)]
    paused = display.readable(rows)
    if as_json:
        display.print_json({"pauses": list(map(_document, paused)), "unreadable": [row.row_id for row in unreadable]})
    else:
        _print(stack, paused)
    if unreadable:
        raise typer.Exit(1)


def _print(stack: Stack, paused: list[PausedWork]) -> None:
    out = display.output()
    if not paused:
        display.line(out, f"Nothing is paused in {stack.name}.", style="green")
        return
    now = stack.clock()
    rows = [
        (
            work.kind,
            work.name,
            display.age((now - work.since) / 1000),
            f"{work.waiting.number:,}{'' if work.waiting.is_all else '+'}",
            work.reason,
        )
        for work in paused
    ]
    display.table(out, ("what", "name", "for", "waiting", "reason"), rows, right=frozenset({"waiting"}))
    for work in paused:
        if work.is_served:
            display.line(
                out,
                f"Workers still take messages of the lane {work.name}, and set its images aside, which costs more. "
                f"Keep them in its queue:  ./darkroom pause lane {work.name}{stack.options}",
                style="yellow",
            )
    display.line(out, f"Go on:  ./darkroom resume {paused[0].kind} {paused[0].name}{stack.options}")


def _document(work: PausedWork) -> dict[str, object]:
    return {
        "kind": work.kind,
        "name": work.name,
        "tenant": work.tenant_id,
        "since": rfc3339(work.since),
        "reason": work.reason or None,
        "waiting": {"number": work.waiting.number, "is_all": work.waiting.is_all},
        "served": work.is_served,
    }


# ── What is there ────────────────────────────────────────────────────────────────────────────────────────────────────


def _told_if_paused(stack: Stack, kind: Subject, name: str) -> str | None:
    """Since when it is paused, and why; None if it is not."""
    with stack.explained():
        if kind == "webhook":
            since = _webhook(stack, name).paused_at
            return None if since is None else _told(since, "")
        paused = in_force(stack.pauses, kind, name)
    return None if paused is None else _told(paused.since, paused.reason)


def _is_served(stack: Stack, kind: Subject, name: str) -> bool:
    """Whether it is a lane whose messages are taken."""
    if kind != "lane":
        return False
    with stack.explained():
        return stack.lane_sources.is_on(name)


def _told(since: Milliseconds, reason: str) -> str:
    return f"since {rfc3339(since)}" + (f": {display.printable(reason)}" if reason else "")


def _webhook(stack: Stack, webhook_id: str) -> Endpoint:
    """The endpoint of that id, of whichever tenant: it reads all of them. Raises ApiError."""
    _require(stack, "webhooks")
    for row in stack.endpoints.everything():
        if isinstance(row, UnreadableRow):
            if row.row_id == webhook_id:
                raise row
        elif row.endpoint_id == webhook_id:
            found = stack.endpoints.get(row.tenant_id, webhook_id)  # a consistent read: it may have gone since
            if found is not None:
                return found
    raise ApiError(f"There is no webhook {webhook_id} in {stack.name}.")


def _check_pausable(stack: Stack, kind: Subject, name: str) -> None:
    """Raises ApiError if the stack can pause nothing, or there is no such tenant."""
    if kind == "webhook":
        return
    _require(stack, "bulk")
    if kind == "tenant" and stack.access == "keys":  # otherwise it is not the stack that knows who the tenants are
        with stack.explained():
            tenant = stack.tenants.tenant(name)
        if tenant is None:  # guard: pause-unknown-tenant
            raise ApiError(
                f"There is no tenant {name} in {stack.name}. To list the tenants: ./darkroom tenants ls{stack.options}"
            )


def _require(stack: Stack, part: Part) -> None:
    if part not in stack.parts:  # guard: pause-absent-part
        raise ApiError(f"{stack.name} is deployed without {part}, so nothing was done: docs/parts.md.")


def _patience(interrupts: Interrupts) -> TransientRetry:
    return TransientRetry(pause=interrupts.wait, stop=lambda: interrupts.requested)
