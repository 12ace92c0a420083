"""The checks of `darkroom doctor`: each finds what is wrong and says what to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import typer
from rich.console import Console

from console.api.client import ApiError
from console.stack.operators import Stack
from console.terminal import display
from darkroom.domain.instants import rfc3339
from darkroom.operations.list_unreadable_rows import Ports, list_unreadable_rows

_SHOWN = 50


@dataclass(frozen=True, kw_only=True)
class Examination:
    """What a check examines, and where it reports its progress."""

    stack: Stack
    whole_table: bool
    report: display.Report


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that is wrong: what it is about, why, and facts about it by their names."""

    subject: str
    problem: str
    facts: dict[str, str | None]


@dataclass(frozen=True, kw_only=True)
class Check:
    """One question about a stack. `sound` is the text if nothing is wrong, `wrong` names what is wrong otherwise, and
    `advice` says what to do then."""

    name: str
    sound: str
    wrong: str
    advice: str
    look: Callable[[Examination], list[Finding]]


def _unreadable_rows(examination: Examination) -> list[Finding]:
    survey = list_unreadable_rows(
        Ports(images=examination.stack.images),
        whole_table=examination.whole_table,
        on_read=lambda rows, unreadable: examination.report.show(
            "reading rows", completed=rows, total=None, detail=f"{rows:,} rows, {unreadable:,} unreadable"
        ),
    )
    return [
        Finding(
            subject=row.row_id,
            problem=row.reason,
            facts={
                "tenant": row.tenant_id,
                "waiting_since": rfc3339(row.waiting_since),
                "next_look_at": rfc3339(row.due_at),
            },
        )
        for row in survey.unreadable
    ]


CHECKS = (
    Check(
        name="rows",
        sound="this version can read every row that was checked",
        wrong="rows that this version cannot read",
        advice="A newer version wrote them: deploy it again (docs/runbook.md, Unreadable rows). "
        "Until then they are left as they are.",
        look=_unreadable_rows,
    ),
)


@dataclass(frozen=True, kw_only=True)
class _Result:
    check: Check
    findings: list[Finding]
    failure: str | None = None

    @property
    def is_sound(self) -> bool:
        return self.failure is None and not self.findings


def examine(stack: Stack, *, whole_table: bool, as_json: bool, checks: tuple[Check, ...] = CHECKS) -> None:
    """`doctor`."""
    with display.Report(display.errors()) as report:
        examination = Examination(stack=stack, whole_table=whole_table, report=report)
        results = [_result(check, examination) for check in checks]
    is_sound = all(result.is_sound for result in results)
    if as_json:
        display.print_json({"sound": is_sound, "checks": [_document(result) for result in results]})
    else:
        for result in results:
            _print(display.output(), result)
    if not is_sound:
        raise typer.Exit(1)


def _result(check: Check, examination: Examination) -> _Result:
    """What a check finds. A check that fails does not keep the others from running."""
    try:
        with examination.stack.explained():
            return _Result(check=check, findings=check.look(examination))
    except ApiError as error:
        return _Result(check=check, findings=[], failure=str(error))


def _print(out: Console, result: _Result) -> None:
    check, findings = result.check, result.findings
    if result.failure is not None:
        display.line(out, f"{check.name}: could not be checked. {display.printable(result.failure)}", style="red")
        return
    if not findings:
        display.line(out, f"{check.name}: {check.sound}.", style="green")
        return
    display.line(out, f"{check.name}: {len(findings):,} {check.wrong}.", style="bold")
    display.line(out)
    names = tuple(findings[0].facts)
    display.table(
        out,
        ("id", *names, "reason"),
        [(one.subject, *(one.facts[name] or "-" for name in names), one.problem) for one in findings[:_SHOWN]],
        right=frozenset(),
    )
    if len(findings) > _SHOWN:
        display.line(out, f"  … and {len(findings) - _SHOWN:,} more; --json has them all.")
    display.line(out)
    display.line(out, check.advice)


def _document(result: _Result) -> dict[str, Any]:
    return {
        "name": result.check.name,
        "sound": result.is_sound,
        "failure": result.failure,
        "advice": None if result.is_sound else result.check.advice,
        "findings": [{"id": one.subject, "reason": one.problem, **one.facts} for one in result.findings],
    }
