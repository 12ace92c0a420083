"""A tenant that sends a hundred times as much as another, in the same lane: how much longer the quiet one waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from benchmarks.admission.load import Answer, Client, accepted
from benchmarks.admission.stage import key_of_tenant, light_work, now, settled_rows
from benchmarks.prove.stack import Stack
from benchmarks.report import Goal

TIMES_AS_NOISY = 100
QUIET_PER_SECOND = 0.5

ALLOWED_PER_SECOND, ALLOWED_AT_ONCE = 1, 2
"""What each of the two may send: the quiet one needs half of it, and both together are less than the lane does."""

ROUNDS = 2
"""How often the quiet tenant is alone and in company, in turns."""

LONGER = 2.0
"""How many times as long it may wait in company."""


def measure(stack: Stack, seconds: float) -> tuple[list[dict[str, Any]], list[Goal]]:
    """A row for each stretch of so many seconds, and the goals of all of them."""
    work = light_work()
    limits = {"requests_per_second": ALLOWED_PER_SECOND, "burst": ALLOWED_AT_ONCE}
    quiet = Client(stack.api_url, key_of_tenant(stack, "quiet", tier="free", **limits), work)
    noisy = Client(stack.api_url, key_of_tenant(stack, "noisy", tier="free", **limits), work)
    quiet.upload()  # a cold start is no part of it
    settled_rows(stack, "quiet", since=0, patience_seconds=300)
    rows: list[dict[str, Any]] = []
    waits: dict[bool, list[float]] = {False: [], True: []}
    for number in range(2 * ROUNDS):
        in_company = number % 2 == 1
        row, waited = _stretch(stack, quiet, noisy if in_company else None, seconds)
        waits[in_company] += waited
        rows.append({"part": "neighbours", "stretch": number + 1, **row})
        print(f"stretch {number + 1}: {row}", flush=True)
    alone, in_company_too = p99(waits[False]), p99(waits[True])
    print(f"p99 of the quiet tenant's waits: {alone:.2f} s alone, {in_company_too:.2f} s in company", flush=True)
    noise = [row for row in rows if row["in_company"]]
    return rows, [
        Goal(
            name="quiet tenant's p99 wait, in company ÷ alone",
            value=in_company_too / alone,
            limit=LONGER,
            at_least=False,
        ),
        Goal(name="quiet tenant's refusals", value=sum(row["quiet_refused"] for row in rows), limit=0, at_least=False),
        Goal(
            name="noisy uploads sent for each quiet one",
            value=sum(row["noisy_sent"] for row in noise) / sum(row["quiet_sent"] for row in noise),
            limit=0.8 * TIMES_AS_NOISY,
            at_least=True,
        ),
        Goal(
            name="noisy uploads accepted beyond the allowance",
            value=max(row["noisy_accepted"] - (ALLOWED_AT_ONCE + ALLOWED_PER_SECOND * row["seconds"]) for row in noise),
            limit=0,
            at_least=False,
        ),
    ]


def _stretch(stack: Stack, quiet: Client, noisy: Client | None, seconds: float) -> tuple[dict[str, Any], list[float]]:
    began = now()
    noise: list[Answer] = []
    if noisy is None:
        answers = quiet.upload_at(QUIET_PER_SECOND, seconds)
    else:
        with noisy.uploading(TIMES_AS_NOISY * QUIET_PER_SECOND) as noise:
            answers = quiet.upload_at(QUIET_PER_SECOND, seconds)
    took_seconds = (now() - began) / 1000
    rows = settled_rows(stack, "quiet", since=began, patience_seconds=300)
    waits = [((rows[one.image_id].completed_at or one.answered_at) - one.sent_at) / 1000 for one in accepted(answers)]
    return {
        "in_company": noisy is not None,
        "seconds": round(took_seconds, 1),
        "quiet_sent": len(answers),
        "quiet_refused": len(answers) - len(accepted(answers)),
        "quiet_p99_seconds": round(p99(waits), 3),
        "noisy_sent": len(noise),
        "noisy_accepted": len(accepted(noise)),
        "noisy_answers": dict(Counter(f"{one.status} {one.code}".strip() for one in noise)),
    }, waits


def p99(figures: Sequence[float]) -> float:
    """The figure that 99 of 100 do not pass: of fewer, the largest."""
    return sorted(figures)[max(0, -(-99 * len(figures) // 100) - 1)] if figures else float("nan")
