"""A store accepts every request and answers none, in the middle of many uploads."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle, islice

from tests.chaos.faults.scenario import Scenario
from tests.support.running.load import Answer
from tests.support.running.outcome import Outcome
from tests.support.running.wire import silence

STORES = ("dynamodb", "s3")


@dataclass(frozen=True, kw_only=True)
class Outage:
    """What clients were told while a store was silent, and the account of the uploads that were accepted.

    `dishonest` are answers that neither accepted nor refused with a 503 that says when to retry.
    """

    store: str
    seconds: float
    statuses: dict[int, int]
    dishonest: tuple[str, ...]
    longest_wait_seconds: float
    outcome: Outcome


def outage(scenario: Scenario, store: str) -> Callable[[], Outage]:
    """Upload steadily, by clients that accept the first answer as final, and silence the store meanwhile.

    The returned function gives the account once the stack is at rest.
    """
    plan = scenario.plan
    answers: list[Answer] = []

    def upload() -> None:
        scenario.upload(
            list(islice(cycle(scenario.photos), plan.uploads)),
            interval_seconds=plan.seconds_an_upload,
            on_answer=answers.append,
        )

    uploading = threading.Thread(target=upload, name="uploading", daemon=True)
    uploading.start()
    while len(answers) < plan.uploads // 4 and uploading.is_alive():
        time.sleep(0.05)
    with scenario.wire.disturbed(silence(store)):
        time.sleep(plan.silence_seconds)
    uploading.join()
    return lambda: Outage(
        store=store,
        seconds=plan.silence_seconds,
        statuses=dict(Counter(answer.status for answer in answers)),
        dishonest=tuple(
            f"{answer.image_id} was answered {answer.status}, Retry-After {answer.retry_after}"
            for answer in answers
            if not answer.is_accepted and not answer.is_honest_refusal
        ),
        longest_wait_seconds=max(answer.seconds for answer in answers),
        outcome=scenario.settled(answers),
    )
