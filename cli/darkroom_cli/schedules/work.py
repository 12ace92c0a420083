"""The work of `darkroom schedules`, once the command line is parsed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

from darkroom.domain.bulk.schedules import Missed, Plan, Schedule, schedule_id_of
from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.kernel.instants import rfc3339
from darkroom.ports.kernel import UnreadableRow
from darkroom_cli.operator.operations.recurring.decide_schedule import (
    DecideSchedulePorts,
    Decision,
    add_schedule,
    decide_schedule,
)
from darkroom_cli.stack.operators import Stack
from darkroom_cli.terminal import display
from darkroom_client.client import ApiError

_DONE: dict[Decision, str] = {
    "run": "begins a run within a minute",
    "pause": "is paused",
    "resume": "goes on",
    "remove": "is removed",
}


def plan_of(
    name: str, *, cron: str, timezone: str, job: str, target: str | None, missed: str, jitter_seconds: float | None
) -> Plan:
    """What the options say."""
    return Plan(
        name=name,
        cron=" ".join(cron.split()),
        timezone=timezone,
        job=job,
        target=target,
        missed=Missed(missed),
        jitter_seconds=int(jitter_seconds or 0),
    )


def list_(stack: Stack, *, as_json: bool) -> None:
    """`schedules ls`. Raises ApiError."""
    with stack.explained():
        rows = list(stack.schedules.all())
    unreadable = [row for row in rows if isinstance(row, UnreadableRow)]
    schedules = display.readable(rows)
    if as_json:
        display.print_json(
            {"schedules": list(map(_document, schedules)), "unreadable": [row.row_id for row in unreadable]}
        )
    elif not schedules:
        display.line(display.output(), f"{stack.name} has no schedules.")
    else:
        names = ("name", "when", "job", "state", "next run", "latest run", "ended")
        lines = [
            (
                row.plan.name,
                _when(row.plan),
                _job(row.plan),
                _state(row),
                "" if row.paused_at else rfc3339(row.planned_for),
                rfc3339(row.completed_for) or "",
                "" if row.outcome is None else row.outcome.value,
            )
            for row in schedules
        ]
        display.table(display.output(), names, lines, right=frozenset())
    if unreadable:
        raise typer.Exit(1)


def show(stack: Stack, name: str, *, as_json: bool) -> None:
    """`schedules show`. Raises ApiError."""
    with stack.explained():
        row = stack.schedules.get(schedule_id_of(name))
    if row is None:
        raise _unknown(name)
    if as_json:
        display.print_json(_document(row))
        return
    out = display.output()
    jitter = f", up to {row.plan.jitter_seconds} seconds later" if row.plan.jitter_seconds else ""
    display.line(out, f"{name} is {_state(row)}: {display.printable(_job(row.plan))} at {_when(row.plan)}{jitter}")
    display.line(out, f"Next run: {rfc3339(row.planned_for)}; missed ones: {row.plan.missed}")
    if row.running_for is not None:
        display.line(out, f"Runs for {rfc3339(row.running_for)}, in attempt {row.attempts}")
    if row.completed_for is not None:
        display.line(out, f"Latest run: for {rfc3339(row.completed_for)}, {row.outcome} at {rfc3339(row.completed_at)}")
    if row.skipped_for is not None:
        display.line(out, f"Latest run that was not made: from {rfc3339(row.skipped_for)} on")
    if row.error is not None:
        display.line(out, f"Error: {display.printable(row.error)}", style="red")


def add(stack: Stack, plan: Plan) -> None:
    """`schedules add`. Raises ApiError."""
    ports = _ports(stack)
    if plan.job == "announce" and "webhooks" not in stack.parts:
        raise ApiError(f"{stack.name} is deployed without webhooks, which hear what is announced.")
    with _refusals(), stack.explained():
        row = add_schedule(ports, plan)
    display.line(display.output(), f"Added {plan.name}: its first run is planned for {rfc3339(row.planned_for)}.")


def decide(stack: Stack, name: str, decision: Decision) -> None:
    """`schedules run | pause | resume | remove`. Raises ApiError."""
    with _refusals(), stack.explained():
        row = decide_schedule(_ports(stack), name, decision)
    if row is None:
        raise _unknown(name)
    display.line(display.output(), f"{name} {_DONE[decision]}.")


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except Rejected as error:
        raise ApiError(error.message) from error


def _ports(stack: Stack) -> DecideSchedulePorts:
    if "bulk" not in stack.parts:
        raise ApiError(f"{stack.name} is deployed without bulk: deploy it with Bulk=true first.")
    return DecideSchedulePorts(schedules=stack.schedules, clock=stack.clock, audit=stack.audit)


def _unknown(name: str) -> ApiError:
    return ApiError(f"There is no schedule {display.printable(name)!r}: see ./darkroom schedules ls.")


def _when(plan: Plan) -> str:
    return f"{plan.cron} {plan.timezone}"


def _job(plan: Plan) -> str:
    return plan.job if plan.target is None else f"{plan.job} {plan.target}"


def _state(row: Schedule) -> str:
    if row.running_for is not None:
        return "running"
    return "waiting" if row.paused_at is None else "paused"


def _document(row: Schedule) -> dict[str, Any]:
    plan = row.plan
    return {
        "name": plan.name,
        "cron": plan.cron,
        "timezone": plan.timezone,
        "job": plan.job,
        "target": plan.target,
        "missed": plan.missed.value,
        "jitter_seconds": plan.jitter_seconds,
        "is_own": row.is_own,
        "state": _state(row),
        "planned_for": rfc3339(row.planned_for),
        "running_for": rfc3339(row.running_for),
        "started_at": rfc3339(row.started_at),
        "attempts": row.attempts,
        "completed_for": rfc3339(row.completed_for),
        "completed_at": rfc3339(row.completed_at),
        "outcome": None if row.outcome is None else row.outcome.value,
        "error": row.error,
        "skipped_for": rfc3339(row.skipped_for),
        "paused_at": rfc3339(row.paused_at),
    }
