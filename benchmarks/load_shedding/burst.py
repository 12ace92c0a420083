"""A burst of ten times what the slow lane drains: who is refused, for how long, and what becomes of the others."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import httpx

from benchmarks.forms import by_form
from benchmarks.load_shedding.load import Answer, Client, accepted, shed
from benchmarks.load_shedding.stage import WORKERS, heavy_work, light_work, now, settled_rows
from darkroom.domain.images.image import Image, Status
from darkroom.domain.kernel.lanes import FAST
from darkroom.domain.kernel.tenants import MAX_BURST, MAX_REQUESTS_PER_SECOND, Tier
from repository.report import Goal
from tests.support.running.stack import Stack

TIMES_THE_DRAIN = 10
HIGHEST_DRAIN = 5.0

CALIBRATION_IMAGES = by_form(short=8, usual=30)
"""The images with which the drain is measured first: enough for the stack to have measured it too."""

PATRONS_PER_SECOND = 0.5
"""What the paying tenant sends meanwhile: small photos, because its lane's workers share this machine's processors with
those of the slow lane, which they do not on AWS."""

_FILLED_AT_ONCE_SECONDS = by_form(short=1, usual=5)

EXPECTED = (httpx.codes.ACCEPTED, httpx.codes.TOO_MANY_REQUESTS)


@dataclass(frozen=True, kw_only=True)
class Burst:
    """How long a burst lasts, how often there is one, and the slow lane's service level."""

    seconds: float
    runs: int
    sla_seconds: int


def measure(stack: Stack, burst: Burst) -> tuple[list[dict[str, Any]], list[Goal]]:
    """A row for each run, and the goals of all of them."""
    # Their own allowances are out of the way: only the lane refuses them here.
    limits = {"requests_per_second": MAX_REQUESTS_PER_SECOND, "burst": MAX_BURST}
    crowd = Client(stack.api_url, stack.key_of_tenant("crowd", tier="free", **limits), heavy_work())
    patron = Client(stack.api_url, stack.key_of_tenant("patron", tier="paid", **limits), light_work())
    began = now()
    drain = calibrate(stack, crowd)
    print(f"two workers drain {drain:.2f} images a second (measured in {(now() - began) / 1000:.0f} s)", flush=True)
    rows = [_run(stack, crowd, patron, burst=burst, number=number, drain=drain) for number in range(1, burst.runs + 1)]
    return rows, goals_of(rows, drain)


def calibrate(stack: Stack, crowd: Client) -> float:
    """How many images per second two busy workers of the slow lane develop."""
    crowd.upload()  # exclude a cold start
    settled_rows(stack, "crowd", since=0, patience_seconds=300)
    began = now()
    crowd.upload_at(per_second=CALIBRATION_IMAGES, seconds=1)
    rows = settled_rows(stack, "crowd", since=began, patience_seconds=600)
    return drain_of(rows)


def drain_of(rows: Mapping[str, Image]) -> float:
    """Images per second between the first and the last that ended."""
    ends = sorted(row.completed_at for row in rows.values() if row.completed_at is not None)
    return (len(ends) - 1) * 1000 / (ends[-1] - ends[0])


def _run(stack: Stack, crowd: Client, patron: Client, *, burst: Burst, number: int, drain: float) -> dict[str, Any]:
    for client in (crowd, patron):
        client.warm_up()  # also after a run: workers that were idle during it are gone
    rate = TIMES_THE_DRAIN * drain
    print(
        f"run {number}: {rate:.0f} uploads a second until one is turned away, and then for {burst.seconds:g} s",
        flush=True,
    )
    began = now()
    with patron.uploading(PATRONS_PER_SECOND) as patrons_answers:
        answers = fill(crowd, rate, most=2 * Tier.FREE.backlog_share * drain * burst.sla_seconds)
        before = len(answers)
        burst_began = time.monotonic()
        answers += crowd.upload_at(per_second=rate, seconds=burst.seconds)
        burst_seconds = time.monotonic() - burst_began
    print(
        f"  answered {_counted(answers)} to the free tenant, {_counted(patrons_answers)} to the paying one", flush=True
    )
    started = time.monotonic()
    patience_seconds = 3 * burst.sla_seconds + 120
    crowds = settled_rows(stack, "crowd", since=began, patience_seconds=patience_seconds)
    patrons = settled_rows(stack, "patron", since=began, patience_seconds=patience_seconds)
    print(f"  all was done {time.monotonic() - started:.0f} s after the burst", flush=True)
    waited, took = waits(answers, crowds)
    free_shed = shed(answers)
    patrons_then = _during(patrons_answers, free_shed)
    return {
        "part": "burst",
        "run": number,
        "workers": WORKERS,
        "sla_seconds": burst.sla_seconds,
        "drain_per_second": round(drain, 2),
        "drain_in_the_run": round(drain_of(crowds), 2),
        "uploads_per_second": round(rate, 1),
        "burst_seconds": round(burst_seconds, 1),
        "uploads_before": before,
        "answers": _counted(answers),
        "patrons_answers": _counted(patrons_answers),
        "unexpected": sum(answer.status not in EXPECTED for answer in (*answers, *patrons_answers)),
        "shed": len(free_shed),
        "lost": len(unkept(accepted(answers), crowds)) + len(unkept(accepted(patrons_answers), patrons)),
        "late": late(crowds, burst.sla_seconds) + late(patrons, FAST.sla_seconds),
        "longest_seconds": round(max(lateness(crowds)), 1),
        "patrons_longest_seconds": round(max(lateness(patrons)), 1),
        "retry_after_median_seconds": waited,
        "backlog_took_median_seconds": round(took, 1),
        "retry_after_ratio": round(waited / took, 3) if took else float("nan"),
        "patrons_while_shed": len(patrons_then),
        "patrons_refused_while_shed": len(patrons_then) - len(accepted(patrons_then)),
    }


def fill(crowd: Client, rate: float, *, most: float) -> list[Answer]:
    """Uploads at that rate until one is refused, or at most so many that the measured drain could not keep up."""
    answers: list[Answer] = []
    while not shed(answers) and len(answers) < most:
        answers += crowd.upload_at(per_second=rate, seconds=_FILLED_AT_ONCE_SECONDS)
    return answers


def _counted(answers: Sequence[Answer]) -> dict[str, int]:
    return dict(Counter(f"{answer.status} {answer.code}".strip() for answer in answers))


def waits(answers: Sequence[Answer], rows: Mapping[str, Image]) -> tuple[float, float]:
    """In seconds: the median wait that refused uploads were told, and the median time that the backlog they met really
    took, until the last image that had been accepted before was done."""
    stated, took = [], []
    for answer in shed(answers):
        before = [
            row.completed_at
            for row in rows.values()
            if row.created_at <= answer.answered_at and row.completed_at is not None
        ]
        if before:
            stated.append(answer.retry_after_seconds or 0)
            took.append((max(before) - answer.answered_at) / 1000)
    return (median(stated), median(took)) if stated else (float("nan"), float("nan"))


def unkept(answers: Sequence[Answer], rows: Mapping[str, Image]) -> list[str]:
    """The images that were accepted and are not done."""
    return [
        answer.image_id
        for answer in answers
        if answer.image_id not in rows or rows[answer.image_id].status is not Status.DONE
    ]


def lateness(rows: Mapping[str, Image]) -> list[float]:
    """How many seconds each image took from its acceptance to its end."""
    return [(row.completed_at - row.created_at) / 1000 for row in rows.values() if row.completed_at is not None]


def late(rows: Mapping[str, Image], sla_seconds: int) -> int:
    """How many took longer than their lane's service level."""
    return sum(seconds > sla_seconds for seconds in lateness(rows))


def _during(patrons: Sequence[Answer], free_shed: Sequence[Answer]) -> list[Answer]:
    """The paying tenant's answers between the first and the last free upload that was shed."""
    if not free_shed:
        return []
    first, last = free_shed[0].answered_at, free_shed[-1].answered_at
    return [answer for answer in patrons if first <= answer.answered_at <= last]


def goals_of(rows: Sequence[Mapping[str, Any]], drain: float) -> list[Goal]:
    """The goals of every run."""
    goals = [Goal(name="drain of two workers (images/s)", value=drain, limit=HIGHEST_DRAIN, at_least=False)]
    for row in rows:
        number = row["run"]
        goals += [
            Goal(name=f"run {number}: answers but 202 and 429", value=row["unexpected"], limit=0, at_least=False),
            Goal(name=f"run {number}: uploads shed", value=row["shed"], limit=1, at_least=True),
            Goal(name=f"run {number}: accepted and not done", value=row["lost"], limit=0, at_least=False),
            Goal(name=f"run {number}: done after the service level", value=row["late"], limit=0, at_least=False),
            Goal(
                name=f"run {number}: median Retry-After ÷ what the backlog took, from 1",
                value=abs(row["retry_after_ratio"] - 1),
                limit=0.2,
                at_least=False,
            ),
            Goal(
                name=f"run {number}: paying uploads while free ones were shed",
                value=row["patrons_while_shed"],
                limit=1,
                at_least=True,
            ),
            Goal(
                name=f"run {number}: paying uploads refused then",
                value=row["patrons_refused_while_shed"],
                limit=0,
                at_least=False,
            ),
        ]
    return goals
