"""Examines a stack: gathers the facts, judges each check, and prints what came of it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import typer
from rich.console import Console

from darkroom.domain.kernel.instants import rfc3339
from darkroom_cli.doctor import collect, extra_checks, observability, operation, priority, reliability, security
from darkroom_cli.doctor.checks import Check, CheckResult, CheckStatus, Finding, judge, result_of
from darkroom_cli.doctor.facts import Facts
from darkroom_cli.operator.operations.images.list_unreadable_rows import ListUnreadableRowsPorts, list_unreadable_rows
from darkroom_cli.stack.operators import Stack
from darkroom_cli.terminal import display
from darkroom_client.client import ApiError

CHECKLIST = (
    *security.CHECKS,
    *reliability.CHECKS,
    *priority.CHECKS,
    *observability.CHECKS,
    *operation.CHECKS,
)
"""What must be true of a system of queues before it goes live: 27 lines in five groups."""

CHECKS = (*CHECKLIST, *extra_checks.CHECKS)
"""All checks that judge the stack's facts."""

ROWS = Check(
    name="rows",
    group=extra_checks.GROUP,
    question="this version can read every row that was checked",
    remedy="A newer version wrote them: deploy it again (docs/runbook.md, Unreadable rows). "
    "Until then they are left as they are.",
    decisions=["0002-unreadable-rows-are-left-alone"],
)
"""The one check that reads what is stored."""

LISTED = Check(
    name="listed",
    group=extra_checks.GROUP,
    question="lists have every image, of the rows that were checked",
    remedy="Add them with ./darkroom tenants enlist --yes. A stack with NewestIndex=kept is deployed with "
    "NewestIndex=removed afterwards (docs/deploy.md, Deploy again).",
    decisions=["0012-quotas-and-busy-tenants"],
)
"""The images of an earlier version are in the index of lists: without them lists and `tenants erase` read all rows, or
leave them out."""

_SHOWN = 50
_DECISIONS = "docs/decisions"
_INDENT, _NARROWEST = " " * 6, 40

_MARKS = {
    CheckStatus.SOUND: ("✓", "green"),
    CheckStatus.WRONG: ("✗", "red"),
    CheckStatus.DECIDED: ("–", None),  # noqa: RUF001 - neither right nor wrong
    CheckStatus.NOT_ASKED: ("·", None),
    CheckStatus.UNKNOWN: ("?", "yellow"),
}


def examine(
    stack: Stack,
    *,
    whole_table: bool,
    production: bool,
    as_json: bool,
    checks: Sequence[Check] = CHECKS,
) -> None:
    """`doctor`."""
    with display.ProgressReport(display.errors()) as report:

        def on_progress(what: str) -> None:
            report.show("asking", completed=0, total=None, detail=what)

        with stack.explained():
            facts = collect.gather(stack, on_progress)
        results = [_reaching(judge(check, facts, production=production), stack) for check in checks]
        results += [_rows(stack, report, whole_table=whole_table), _listed(stack, facts, whole_table=whole_table)]
    # guard: doctor-unknown-not-sound
    is_sound = all(result.status not in (CheckStatus.WRONG, CheckStatus.UNKNOWN) for result in results)
    if as_json:
        display.print_json(_document(stack, results, is_sound=is_sound, production=production))
    else:
        _print_all(display.output(), results, production=production)
    if not is_sound:
        raise typer.Exit(1)


def _reaching(result: CheckResult, stack: Stack) -> CheckResult:
    """The result, whose command for what was changed by hand reaches this stack."""
    command = "./darkroom doctor --repair"
    return replace(result, advice=tuple(text.replace(command, f"{command}{stack.options}") for text in result.advice))


def _rows(stack: Stack, report: display.ProgressReport, *, whole_table: bool) -> CheckResult:
    """Whether this version can read the stack's rows. A table that does not answer keeps nothing else from being
    said."""
    try:
        with stack.explained():
            survey = list_unreadable_rows(
                ListUnreadableRowsPorts(images=stack.images, endpoints=stack.endpoints),
                whole_table=whole_table,
                on_read=lambda rows, unreadable: report.show(
                    "reading rows", completed=rows, total=None, detail=f"{rows:,} rows, {unreadable:,} unreadable"
                ),
            )
    except ApiError as error:  # guard: isolated-doctor-rows
        return result_of(ROWS, (), str(error))
    return result_of(
        ROWS,
        [
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
        ],
    )


def _listed(stack: Stack, facts: Facts, *, whole_table: bool) -> CheckResult:
    """Whether lists have the images that an earlier version accepted: rows lie in no order, so one page of them shows
    that many are missing, and the whole table that one is."""
    try:
        with stack.explained():
            missing = sum(1 for _ in stack.images.unlisted(pages=None if whole_table else 1))
    except ApiError as error:  # guard: isolated-doctor-unlisted
        return result_of(LISTED, (), str(error))
    is_kept = facts.parameters.get("NewestIndex") == "kept"
    problem = None
    if missing:
        where = "of the whole table" if whole_table else "of the first page of rows (--all reads the others)"
        lists = "lists use the former index" if is_kept else "no list shows them"
        problem = f"{display.of(missing, 'image')} {where}: {lists}, because an earlier version accepted them"
    elif is_kept and whole_table:
        problem = "the former index is not needed any more, and costs a write per image"
    return result_of(LISTED, [Finding(subject="ImagesTable", problem=problem)] if problem else ())


def _print_all(out: Console, results: Sequence[CheckResult], *, production: bool) -> None:
    for group, of_group in groupby(results, key=lambda result: result.check.group):
        display.line(out, group, style="bold")
        for result in of_group:
            _print(out, result)
        display.line(out)
    for line in _summary(results, production=production):
        display.line(out, line)


def _print(out: Console, result: CheckResult) -> None:
    check = result.check
    mark, style = _MARKS[result.status]
    text = f"  {mark} {check.question}"
    if result.status is CheckStatus.DECIDED:
        text += f": {_pages(check)}"
    if result.status is CheckStatus.NOT_ASKED:
        text += ": only asked with --production"
    display.line(out, text, style=style)
    if result.findings:
        _print_findings(out, result.findings)
    if result.reason is not None:
        _print_wrapped(out, f"could not be checked: {display.printable(result.reason)}")
    if result.status is CheckStatus.WRONG:
        for text in result.advice:
            _print_wrapped(out, f"→ {text}")
        if check.decisions:
            _print_wrapped(out, f"Why: {_pages(check)}")


def _print_wrapped(out: Console, text: str) -> None:
    """Prints what belongs to a check: on a terminal as wide as it is, with names and commands whole; elsewhere in one
    line, for programs."""
    if not out.is_terminal:
        display.line(out, f"{_INDENT}{text}")
        return
    width = max(out.width, _NARROWEST)
    for line in textwrap.wrap(
        text,
        width,
        initial_indent=_INDENT,
        subsequent_indent=f"{_INDENT}  ",
        break_long_words=False,
        break_on_hyphens=False,
    ):
        display.line(out, line)


def _print_findings(out: Console, findings: Sequence[Finding]) -> None:
    names = tuple(findings[0].facts)
    if names:
        display.table(
            out,
            ("    id", *names, "reason"),
            [
                (f"    {finding.subject}", *(finding.facts[name] or "-" for name in names), finding.problem)
                for finding in findings[:_SHOWN]
            ],
            right=frozenset(),
        )
    else:
        for finding in findings[:_SHOWN]:
            _print_wrapped(out, display.printable(f"{finding.subject}: {finding.problem}"))
    if len(findings) > _SHOWN:
        display.line(out, f"      … and {len(findings) - _SHOWN:,} more; --json has them all.")


def _pages(check: Check) -> str:
    return ", ".join(f"{_DECISIONS}/{name}.md" for name in check.decisions)


def _summary(results: Sequence[CheckResult], *, production: bool) -> Iterator[str]:
    counts = {status: sum(result.status is status for result in results) for status in CheckStatus}
    parts = [
        f"{counts[status]} {words}"
        for status, words in (
            (CheckStatus.SOUND, "sound"),
            (CheckStatus.DECIDED, "answered by a decision"),
            (CheckStatus.NOT_ASKED, "not asked"),
            (CheckStatus.UNKNOWN, "could not be checked"),
            (CheckStatus.WRONG, "wrong"),
        )
        if counts[status]
    ]
    yield f"{len(results)} checks: {', '.join(parts)}."
    left_out = [] if production else [result.check.in_production for result in results if result.check.in_production]
    if left_out:
        yield f"Not asked without --production: {'; '.join(left_out)}."


def _document(stack: Stack, results: Sequence[CheckResult], *, is_sound: bool, production: bool) -> dict[str, Any]:
    return {
        "stack": stack.name,
        "production": production,
        "sound": is_sound,
        "checks": [_one(result, production=production) for result in results],
    }


def _one(result: CheckResult, *, production: bool) -> dict[str, Any]:
    check = result.check
    return {
        "name": check.name,
        "group": check.group,
        "question": check.question,
        "status": result.status,
        "failure": result.reason,
        "advice": " ".join(result.advice) or None,
        "decisions": [f"{_DECISIONS}/{name}.md" for name in check.decisions],
        "not_asked": None if production or not check.in_production else check.in_production,
        "findings": [
            {"id": finding.subject, "reason": finding.problem, **finding.facts} for finding in result.findings
        ],
    }
