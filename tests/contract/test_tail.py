"""`darkroom events tail`: a queue of its own, that goes with it."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import boto3
import pytest

from darkroom.aws.events.events_topic import SnsTopic
from darkroom.aws.events.followers import LEFT_BEHIND_SECONDS, PREFIX
from darkroom.domain.events.event import EventType, PublishedEvent
from darkroom.domain.kernel.errors import Retryable
from darkroom_cli.events import tail as module
from darkroom_cli.events.tail import ALIVE_SECONDS, Follower
from tests.contract.conftest import Aws
from tests.contract.functions import call, load
from tests.contract.stores import numbered_event
from tests.support.fakes.messages import SIGNER


@dataclass
class Tail:
    """A follower whose clock a test moves, and what it leaves behind."""

    aws: Aws
    now: float = 1_000_000.0

    @property
    def follower(self) -> Follower:
        return Follower(
            sns=boto3.client("sns"),
            sqs=boto3.client("sqs"),
            topic_arn=self.aws.events_topic,
            clock=lambda: self.now,
        )

    def publish(self, *events: PublishedEvent) -> None:
        assert SnsTopic(boto3.client("sns"), self.aws.events_topic, SIGNER, source="/").publish_all(events) == {}

    def queues(self) -> list[str]:
        return boto3.client("sqs").list_queues(QueueNamePrefix=PREFIX).get("QueueUrls", [])

    def subscriptions(self) -> int:
        listed = boto3.client("sns").list_subscriptions_by_topic(TopicArn=self.aws.events_topic)["Subscriptions"]
        return sum(PREFIX in subscription["Endpoint"] for subscription in listed)


@pytest.fixture
def tail(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> Tail:
    monkeypatch.setattr(module, "WAIT_SECONDS", 0)  # moto's queues would wait, although nothing can come
    return Tail(aws)


def begun(tail: Tail, *events: PublishedEvent, **wanted: list[str]) -> list[str]:
    """What a follower tells of events that are published after it has begun."""
    looks = iter([False, True])
    with tail.follower.events(wanted, stop=lambda: next(looks)) as heard:
        tail.publish(*events)
        return [event.event_id for event, _ in heard]


def test_what_is_published_is_told_once_and_nothing_stays_behind(tail: Tail) -> None:
    first, second = numbered_event(1), numbered_event(2)
    assert sorted(begun(tail, first, second, first)) == sorted([first.event_id, second.event_id])
    assert (tail.queues(), tail.subscriptions()) == ([], 0)


def test_only_what_was_asked_for_is_told(tail: Tail) -> None:
    events = [numbered_event(1, tenant_id="acme"), numbered_event(2, tenant_id="other")]
    assert begun(tail, *events, type=[EventType.ACCEPTED.value], tenant_id=["other"]) == [events[1].event_id]
    assert begun(tail, *events, type=[EventType.DONE.value]) == []


def test_its_queue_hears_of_this_topic_alone(tail: Tail) -> None:
    policies: list[Any] = []

    def stop() -> bool:
        (url,) = tail.queues()
        attributes = boto3.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["Policy"])["Attributes"]
        policies.append(json.loads(attributes["Policy"])["Statement"])
        return True

    with tail.follower.events({}, stop=stop) as events:
        assert list(events) == []
    (((statement,)),) = policies
    assert statement["Principal"] == {"Service": "sns.amazonaws.com"}
    assert statement["Condition"] == {"ArnEquals": {"aws:SourceArn": tail.aws.events_topic}}


def test_a_reader_that_fails_leaves_nothing_behind(tail: Tail) -> None:
    with (
        pytest.raises(KeyboardInterrupt),
        tail.follower.events({}, stop=lambda: False) as events,
    ):
        tail.publish(numbered_event(1))
        for _ in events:
            raise KeyboardInterrupt
    assert (tail.queues(), tail.subscriptions()) == ([], 0)


def test_what_a_killed_tail_left_behind_is_removed_by_a_later_one_and_a_living_one_stays(tail: Tail) -> None:
    killed = tail.follower._queue({})
    killed.__enter__()
    tail.now += LEFT_BEHIND_SECONDS - 1
    assert (tail.follower.remove_what_was_left_behind(), len(tail.queues())) == (0, 1)
    tail.now += 2
    assert tail.follower.remove_what_was_left_behind() == 1
    assert (tail.queues(), tail.subscriptions()) == ([], 0)


@pytest.mark.guards("events-live-follower-queue")
def test_the_sweeper_removes_queues_alone(tail: Tail, monkeypatch: pytest.MonkeyPatch) -> None:
    sweeper = load("sweep_due_endpoints", tail.aws, monkeypatch)
    now = sweeper.ports.clock()
    killed, alive = tail.follower._queue({}), replace(tail, now=now / 1000).follower._queue({})
    dead, living = killed.__enter__(), alive.__enter__()
    tail.now = now / 1000
    call(sweeper, {})
    assert (tail.queues(), tail.subscriptions()) == ([living], 2)
    assert dead != living
    call(sweeper, {})
    assert tail.follower.remove_what_was_left_behind() == 1
    assert (tail.queues(), tail.subscriptions()) == ([living], 1)


@pytest.mark.guards("events-follower-list-outage")
def test_a_sweep_goes_on_if_followers_cannot_be_listed(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    sweeper = load("sweep_due_endpoints", aws, monkeypatch)

    def fail(_: int) -> int:
        raise Retryable("the topic does not answer")

    monkeypatch.setattr(sweeper.followers, "remove_left_behind", fail)
    assert call(sweeper, {})["complete"]


def test_one_that_follows_for_long_says_that_it_is_alive(tail: Tail) -> None:
    looks = iter([False, False, False, True])

    def stop() -> bool:
        tail.now += max(ALIVE_SECONDS, LEFT_BEHIND_SECONDS // 3) + 1
        assert tail.follower.remove_what_was_left_behind() == 0
        return next(looks)

    with tail.follower.events({}, stop=stop) as events:
        assert list(events) == []


def test_a_subscription_whose_queue_is_gone_is_removed(tail: Tail) -> None:
    killed = tail.follower._queue({})
    url = killed.__enter__()
    boto3.client("sqs").delete_queue(QueueUrl=url)
    assert tail.follower.remove_what_was_left_behind() == 1
    assert tail.subscriptions() == 0
