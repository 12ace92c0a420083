"""Workers are killed, the wire is disturbed and messages are duplicated while uploads run."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from darkroom.domain.kernel.message import Message
from tests.chaos.faults.scenario import Scenario
from tests.support.running.kills import killing
from tests.support.running.load import TENANT, Answer
from tests.support.running.outcome import Outcome
from tests.support.running.stack import LANE, Stack
from tests.support.running.wire import DISTURBANCES

_LOOK_SECONDS = 0.5

_COPIES = (0, 1, 10)
_ODDS = (70, 28, 2)
"""Of a hundred accepted images, how many get none, one or ten further messages."""


@dataclass(frozen=True, kw_only=True)
class FaultInjection:
    """The disturbances of a load, and its account."""

    kills: dict[str, int]
    faults: dict[str, int]
    duplicates: int
    repeated_uploads: int
    outcome: Outcome


def fault_injection(scenario: Scenario) -> Callable[[], FaultInjection]:
    """Upload by persistent clients, while one AWS call in twenty fails and one process after another is killed.

    The returned function gives the account once the stack is at rest.
    """
    plan = scenario.plan
    chance = random.Random(plan.seed)
    duplicates = _Duplicates(scenario.stack, chance)
    faults_before = scenario.wire.faults()
    with (
        scenario.wire.disturbed(DISTURBANCES),
        killing(
            scenario.stack.state,
            plan.victims,
            progress=scenario.wire.requests,
            every=plan.requests_a_kill,
            seed=plan.seed,
        ) as kills,
    ):
        answers = scenario.upload(
            [chance.choice(scenario.photos) for _ in range(plan.uploads)],
            persistent=True,
            on_answer=duplicates.send_some,
        )
        _drain(scenario, down_to=plan.uploads // 4)
    faults = scenario.wire.faults() - faults_before
    return lambda: FaultInjection(
        kills=dict(kills),
        faults=dict(faults),
        duplicates=duplicates.sent,
        repeated_uploads=sum(answer.refused for answer in answers),
        outcome=scenario.settled(answers),
    )


def _drain(scenario: Scenario, *, down_to: int) -> None:
    """Wait until most of the work is done: accepting is faster than developing."""
    deadline = time.monotonic() + scenario.plan.patience_seconds
    while scenario.stack.waiting_messages() > down_to and time.monotonic() < deadline:
        time.sleep(_LOOK_SECONDS)


class _Duplicates:
    """Sends further messages of accepted images, as SQS may deliver a message more than once."""

    def __init__(self, stack: Stack, chance: random.Random) -> None:
        self.sent = 0
        self._chance = chance
        self._lock = threading.Lock()
        self._stack = stack

    def send_some(self, answer: Answer) -> None:
        """Send none, one or ten."""
        with self._lock:
            copies = self._chance.choices(_COPIES, _ODDS)[0] if answer.is_accepted else 0
            self.sent += copies
        message = Message(image_id=answer.image_id, tenant_id=TENANT, lane=LANE, run=1, schedule=0)
        for _ in range(copies):
            self._stack.send("SlowQueueUrl", message.model_dump_json(), group=TENANT)
