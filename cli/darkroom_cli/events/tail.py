"""Follows a stack's events by a queue of its own, which goes with it."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from darkroom.aws.events.followers import ALIVE_AT, PREFIX, FollowersQueues
from darkroom.domain.events.event import ReceivedEvent, UnreadableEvent, read_event

if TYPE_CHECKING:
    from mypy_boto3_sns import SNSClient
    from mypy_boto3_sqs import SQSClient

ALIVE_SECONDS = 60
"""How often a follower notes in its queue's tag that it is alive."""

WAIT_SECONDS = 1
"""How long one look waits for an event; Ctrl-C is heard after that."""


@dataclass(frozen=True, kw_only=True)
class Follower:
    """What follows events: the stack's clients, the topic, and a clock in seconds."""

    sns: SNSClient
    sqs: SQSClient
    topic_arn: str
    clock: Callable[[], float] = time.time

    @contextmanager
    def events(
        self, filter_policy: dict[str, list[str]], stop: Callable[[], bool]
    ) -> Iterator[Iterator[tuple[ReceivedEvent, str]]]:
        """The events that are published while the block lasts, each with its text, until `stop` returns true; one that
        comes twice is told once."""
        self.remove_what_was_left_behind()
        with self._queue(filter_policy) as url:
            yield self._received(url, stop)

    def _received(self, url: str, stop: Callable[[], bool]) -> Iterator[tuple[ReceivedEvent, str]]:
        known: dict[str, None] = {}
        alive_at = self.clock()
        while not stop():
            if self.clock() - alive_at > ALIVE_SECONDS:
                self.sqs.tag_queue(QueueUrl=url, Tags={ALIVE_AT: self._now()})
                alive_at = self.clock()
            messages = self.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=WAIT_SECONDS).get(
                "Messages", []
            )
            for message in messages:  # before any is told: its reader may take longer than receipts are valid
                self.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
            for message in messages:
                with suppress(UnreadableEvent):  # somebody else's message
                    event = read_event(message["Body"])
                    if event.event_id not in known:
                        known[event.event_id] = None
                        yield event, message["Body"]
            while len(known) > _REMEMBERED:
                del known[next(iter(known))]

    @contextmanager
    def _queue(self, filter_policy: dict[str, list[str]]) -> Iterator[str]:
        """A queue that hears of these events, as long as the block lasts."""
        url = self.sqs.create_queue(
            QueueName=PREFIX + secrets.token_hex(8),
            Attributes={"MessageRetentionPeriod": "3600", "SqsManagedSseEnabled": "true"},
            tags={ALIVE_AT: self._now()},
        )["QueueUrl"]
        subscription = None
        try:
            arn = self._arn_of(url)
            policy = {
                "Version": "2012-10-17",
                "Statement": [
                    {
                        "Sid": "HearOfEvents",
                        "Effect": "Allow",
                        "Principal": {"Service": "sns.amazonaws.com"},
                        "Action": "sqs:SendMessage",
                        "Resource": arn,
                        "Condition": {"ArnEquals": {"aws:SourceArn": self.topic_arn}},
                    }
                ],
            }
            self.sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": json.dumps(policy)})
            attributes = {"RawMessageDelivery": "true"}
            if filter_policy:
                attributes["FilterPolicy"] = json.dumps(filter_policy)
            subscription = self.sns.subscribe(
                TopicArn=self.topic_arn, Protocol="sqs", Endpoint=arn, Attributes=attributes, ReturnSubscriptionArn=True
            )["SubscriptionArn"]
            yield url
        finally:
            if subscription is not None:
                self.sns.unsubscribe(SubscriptionArn=subscription)
            with suppress(self.sqs.exceptions.QueueDoesNotExist):  # another follower took this one for dead
                self.sqs.delete_queue(QueueUrl=url)

    def remove_what_was_left_behind(self) -> int:
        """Removes the queues and subscriptions of followers that died; returns how many. The sweeper removes the queues
        as well; subscriptions are left to those who follow."""
        removed = 0
        queues = FollowersQueues(self.sns, self.sqs, self.topic_arn)
        for subscription, url in queues.left_behind(round(self.clock() * 1000)):
            self.sns.unsubscribe(SubscriptionArn=subscription)
            if url is not None:
                self.sqs.delete_queue(QueueUrl=url)
            removed += 1
        return removed

    def _arn_of(self, url: str) -> str:
        answer: Any = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        arn: str = answer["Attributes"]["QueueArn"]
        return arn

    def _now(self) -> str:
        return str(int(self.clock()))


_REMEMBERED = 10_000
"""How many ids are remembered to tell an event once."""
