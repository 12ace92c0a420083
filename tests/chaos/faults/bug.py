"""One of many good images trips over a bug: only that one is given up, explained, reported, fixed and replayed."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any
from uuid import uuid4

from darkroom.domain.images.image import Image, Status
from tests.chaos.faults.scenario import MARK, Scenario
from tests.support.running.load import Answer, truncated_photo
from tests.support.running.outcome import Outcome
from tests.support.running.stack import DeadLetter, Stack

ALARMS = ("DeadLettersAlarm", "IncidentAlarm")
"""What an image that is given up sets off: the warning that there is a dead letter, and the page."""

CLEARS_SOON = "DeadLettersAlarm"
"""The alarm that clears within minutes; the incident is over a quarter of an hour after the last such image."""

_LOOK_SECONDS = 0.5


@dataclass(frozen=True, kw_only=True)
class Bug:
    """The results for the marked image, for a refused one, and for the good ones around them.

    `fired` and `cleared` are the alarms of which CloudWatch notified its topics. `delayed` are the good images that
    took more than one retry. `is_warning_over` is None in the quick form, which does not wait three minutes for it: the
    drills do. `outcome` covers the good ones and the marked one, after its replay.
    """

    given_up: Image | None
    dead_letters: tuple[DeadLetter, ...]
    refused: Image | None
    refused_dead_letters: tuple[DeadLetter, ...]
    fired: frozenset[str]
    said_by_replay: str
    replayed: Image | None
    dead_letters_left: tuple[DeadLetter, ...]
    cleared: frozenset[str]
    is_warning_over: bool | None
    delayed: tuple[str, ...]
    outcome: Outcome


@contextmanager
def bug(scenario: Scenario) -> Iterator[Callable[[], Bug]]:
    """Deploy an engine that fails for marked photos, and upload one of them and a damaged one among good ones.

    The block gets a function that waits until the marked one is given up, fixes the engine, replays, and returns the
    account. Call it within the block, after anything else that can be done during the minutes of the five attempts.
    """
    half = scenario.plan.uploads // 2
    bodies = list(islice(cycle(scenario.photos), scenario.plan.uploads))
    with _subscribed(scenario.stack) as notifications:
        scenario.conditions.break_engine(MARK)
        good = scenario.upload([*bodies[:half], scenario.marked, truncated_photo(), *bodies[half:]], persistent=True)
        marked, refused = good.pop(half), good.pop(half)
        _awaited(scenario, lambda: all(_ended(scenario.stack, answer) for answer in good))
        yield lambda: _account(scenario, notifications, good, marked=marked, refused=refused)


def _account(
    scenario: Scenario, notifications: _Notifications, good: Sequence[Answer], *, marked: Answer, refused: Answer
) -> Bug:
    stack = scenario.stack
    given_up = _awaited(scenario, lambda: _ended(stack, marked, run=1))
    _awaited(scenario, lambda: any(dead_letter.explanation for dead_letter in _dead_letters(stack, marked)))
    _awaited(scenario, lambda: notifications.fired() >= set(ALARMS))
    dead_letters, refused_dead_letters = _dead_letters(stack, marked), _dead_letters(stack, refused)
    scenario.conditions.mend_engine()
    said_by_replay = stack.darkroom("dlq", "replay", "--image", marked.image_id, "--yes")
    replayed = _awaited(scenario, lambda: _ended(stack, marked, run=2))
    is_over = None if scenario.plan.is_quick else _awaited(scenario, lambda: CLEARS_SOON in notifications.cleared())
    return Bug(
        given_up=given_up,
        dead_letters=dead_letters,
        refused=stack.row(refused.image_id),
        refused_dead_letters=refused_dead_letters,
        fired=frozenset(notifications.fired()),
        said_by_replay=said_by_replay,
        replayed=replayed,
        dead_letters_left=_dead_letters(stack, marked),
        cleared=frozenset(notifications.cleared()),
        is_warning_over=is_over,
        delayed=tuple(image.image_id for image in good if (row := stack.row(image.image_id)) and row.attempt > 2),
        outcome=scenario.settled([*good, marked]),
    )


def _dead_letters(stack: Stack, answer: Answer) -> tuple[DeadLetter, ...]:
    return tuple(dead_letter for dead_letter in stack.dead_letters() if dead_letter.image_id == answer.image_id)


def _ended(stack: Stack, answer: Answer, *, run: int = 1) -> Image | None:
    row = stack.row(answer.image_id)
    return row if row is not None and row.run == run and row.status in (Status.DONE, Status.FAILED) else None


def _awaited[T](scenario: Scenario, find: Callable[[], T]) -> T:
    """The final value; something false if the time limit is reached."""
    deadline = time.monotonic() + scenario.plan.patience_seconds
    while not (answer := find()) and time.monotonic() < deadline:
        if scenario.plan.is_quick:
            scenario.stack.sweep()
        time.sleep(_LOOK_SECONDS)
    return answer


class _Notifications:
    """The messages of a queue that subscribes to the alarms' topics, in the order in which things happened."""

    def __init__(self, stack: Stack, queue_url: str) -> None:
        self._names = {stack.physical_id(alarm): alarm for alarm in ALARMS}
        self._sqs, self._queue_url = stack.client("sqs"), queue_url
        self._heard: list[tuple[str, str]] = []

    def fired(self) -> set[str]:
        """The alarms that have gone off."""
        self._listen()
        return {alarm for alarm, state in self._heard if state == "ALARM"}

    def cleared(self) -> set[str]:
        """The alarms that went off and cleared again."""
        self._listen()
        return {alarm for alarm, state in dict(self._heard).items() if state == "OK"} & self.fired()

    def _listen(self) -> None:
        while messages := self._sqs.receive_message(QueueUrl=self._queue_url, MaxNumberOfMessages=10).get("Messages"):
            for message in messages:
                alarm = json.loads(json.loads(message["Body"])["Message"])
                if name := self._names.get(alarm["AlarmName"]):
                    self._heard.append((name, alarm["NewStateValue"]))
                self._sqs.delete_message(QueueUrl=self._queue_url, ReceiptHandle=message["ReceiptHandle"])


@contextmanager
def _subscribed(stack: Stack) -> Iterator[_Notifications]:
    sqs, sns = stack.client("sqs"), stack.client("sns")
    queue_url: str = sqs.create_queue(QueueName=f"faults-{uuid4().hex[:8]}")["QueueUrl"]
    attributes: dict[str, Any] = sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=["QueueArn"])["Attributes"]
    subscriptions = [
        sns.subscribe(
            TopicArn=stack.physical_id(topic),
            Protocol="sqs",
            Endpoint=attributes["QueueArn"],
            ReturnSubscriptionArn=True,
        )["SubscriptionArn"]
        for topic in ("WarningAlarms", "CriticalAlarms")
    ]
    try:
        yield _Notifications(stack, queue_url)
    finally:
        for subscription in subscriptions:
            sns.unsubscribe(SubscriptionArn=subscription)
        sqs.delete_queue(QueueUrl=queue_url)
