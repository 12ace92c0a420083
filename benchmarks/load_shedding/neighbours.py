"""A tenant that sends a hundred times as much as each of its neighbours in the lane: how much longer they wait."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from benchmarks.forms import by_form
from benchmarks.load_shedding.load import Answer, Client, accepted, upload_in_turns
from benchmarks.load_shedding.stage import now, settled_rows, usual_work
from darkroom.domain.images.image import Image
from repository.report import Goal
from tests.support.running.stack import Stack

NOISY_PER_SECOND = 3.0
"""A fifth of what two processors answer at all: the noise should empty the tenant's bucket, but not overload a machine
that runs all parts of the embedded stack."""

TIMES_AS_NOISY = by_form(short=10, usual=100)
QUIET_TENANTS = by_form(short=2, usual=10)
"""So many that their photos are enough for a p99 within minutes."""

ALLOWED_PER_SECOND, ALLOWED_AT_ONCE = 1, 2
"""The allowance of each: the quiet tenants need a twentieth of it, and all together are below the lane's drain."""

ROUNDS = by_form(short=1, usual=2)
"""How often the quiet tenants are measured alone and in company, alternately."""

LONGER = 2.0
"""How many times as long they may wait in company."""


def measure(stack: Stack, seconds: float) -> tuple[list[dict[str, Any]], list[Goal]]:
    """A row for each stretch of so many seconds, and the goals of all of them."""
    limits = {"requests_per_second": ALLOWED_PER_SECOND, "burst": ALLOWED_AT_ONCE}
    quiet_names = [f"quiet-{number}" for number in range(1, QUIET_TENANTS + 1)]
    *quiet, noisy = (
        Client(stack.api_url, stack.key_of_tenant(name, tier="free", **limits), usual_work())
        for name in (*quiet_names, "noisy")
    )
    rows: list[dict[str, Any]] = []
    waits: dict[bool, list[float]] = {False: [], True: []}
    for number in range(2 * ROUNDS):
        in_company = number % 2 == 1
        noisy.warm_up()
        for client in quiet:
            client.upload()  # exclude a cold start and the first lookup of a key
        _settle(stack, quiet_names, since=0)
        row, waited = _stretch(
            stack, dict(zip(quiet_names, quiet, strict=True)), noisy if in_company else None, seconds
        )
        waits[in_company] += waited
        rows.append({"part": "neighbours", "stretch": number + 1, **row})
        print(f"stretch {number + 1}: {row}", flush=True)
    alone, in_company_too = p99(waits[False]), p99(waits[True])
    print(
        f"quiet tenants' waits, p50 and p99: {median(waits[False] or [math.nan]):.2f} and {alone:.2f} s alone, "
        f"{median(waits[True] or [math.nan]):.2f} and {in_company_too:.2f} s in company",
        flush=True,
    )
    noise = [row for row in rows if row["in_company"]]
    return rows, [
        Goal(
            name="quiet tenants' p99 wait, in company ÷ alone",
            value=in_company_too / alone,
            limit=LONGER,
            at_least=False,
        ),
        Goal(name="quiet tenants' refusals", value=sum(row["quiet_refused"] for row in rows), limit=0, at_least=False),
        Goal(
            name="noisy uploads sent for each of a quiet tenant's",
            value=QUIET_TENANTS * sum(row["noisy_sent"] for row in noise) / sum(row["quiet_sent"] for row in noise),
            limit=0.9 * TIMES_AS_NOISY,
            at_least=True,
        ),
        Goal(
            name="noisy uploads accepted beyond the allowance",
            value=max(row["noisy_accepted"] - (ALLOWED_AT_ONCE + ALLOWED_PER_SECOND * row["seconds"]) for row in noise),
            limit=0,
            at_least=False,
        ),
    ]


def _stretch(
    stack: Stack, quiet: Mapping[str, Client], noisy: Client | None, seconds: float
) -> tuple[dict[str, Any], list[float]]:
    began = now()
    quiet_per_second = NOISY_PER_SECOND / TIMES_AS_NOISY * len(quiet)
    noise: list[Answer] = []
    if noisy is None:
        answers = upload_in_turns(list(quiet.values()), quiet_per_second, seconds)
    else:
        with noisy.uploading(NOISY_PER_SECOND) as noise:
            answers = upload_in_turns(list(quiet.values()), quiet_per_second, seconds)
    took_seconds = (now() - began) / 1000
    rows = _settle(stack, list(quiet), since=began)
    waits = [
        ((rows[answer.image_id].completed_at or answer.answered_at) - answer.sent_at) / 1000
        for answer in accepted(answers)
    ]
    return {
        "in_company": noisy is not None,
        "seconds": round(took_seconds, 1),
        "quiet_sent": len(answers),
        "quiet_refused": len(answers) - len(accepted(answers)),
        "quiet_p50_seconds": round(median(waits or [math.nan]), 3),
        "quiet_p99_seconds": round(p99(waits), 3),
        "noisy_sent": len(noise),
        "noisy_accepted": len(accepted(noise)),
        "noisy_answers": dict(Counter(f"{answer.status} {answer.code}".strip() for answer in noise)),
    }, waits


def _settle(stack: Stack, tenants: Sequence[str], *, since: int) -> dict[str, Image]:
    rows: dict[str, Image] = {}
    for tenant in tenants:
        rows |= settled_rows(stack, tenant, since=since, patience_seconds=300)
    return rows


def p99(figures: Sequence[float]) -> float:
    """The value that 99 of 100 do not exceed: for fewer values, the largest."""
    return sorted(figures)[max(0, -(-99 * len(figures) // 100) - 1)] if figures else float("nan")
