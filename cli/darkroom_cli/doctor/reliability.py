"""Reliability: what survives, what is tried again, and what becomes of that which cannot be done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from darkroom.domain.kernel.lanes import LANES
from darkroom.domain.kernel.retry import MAX_RECEIVES
from darkroom_cli.doctor import alarms
from darkroom_cli.doctor.checks import Check, Finding
from darkroom_cli.doctor.facts import Facts
from darkroom_cli.doctor.policies import covers, services

GROUP = "Reliability"

MOST_RECEIVES = 100
"""More receives than any queue needs to outlast an outage: SQS takes up to 1,000, and then a bad message never ends."""

STREAM_SECONDS = 24 * 60 * 60
"""How long a stream of DynamoDB keeps a record."""

MEMORIES = {
    "TranscodeImageFunction": ("IDEMPOTENCY_TABLE", "IdempotencyTable"),
    "CountUsageFunction": ("COUNTED_EVENTS_TABLE", "CountedEventsTable"),
    "CreateDeliveriesFunction": ("DELIVERIES_TABLE", "DeliveriesTable"),
    "DeliverEventFunction": ("DELIVERIES_TABLE", "DeliveriesTable"),
}
"""Where a consumer remembers what it has done: its variable, and the table that this names."""

_MENDED_BY_LOOKS = frozenset({"CountBatchesFunction"})
"""What counts from a stream and needs no record of it: a look at the tables finds what was given up."""

_ROWS_GIVE_UP = frozenset({"EditsQueue"})
"""What needs no dead-letter queue: its work ends in its rows, with the dead letters of their lanes."""

_ENDLESS = -1


def _acknowledged_after_work(facts: Facts) -> Iterator[Finding]:
    for name, source in facts.event_sources.items():
        if not source.reports_items:
            problem = "ReportBatchItemFailures is off: one failure repeats its batch, and a report of it is ignored"
            yield Finding(subject=name, problem=problem)


def _consumers_have_dead_letters(facts: Facts) -> Iterator[Finding]:
    for _, source, queue, _ in facts.consumers():
        if source.source in _ROWS_GIVE_UP:
            continue
        if queue.dead_letters is None:
            yield Finding(subject=source.source, problem="it has no dead-letter queue: what always fails is lost")
        elif facts.queue_by_arn(queue.dead_letters) is None:
            problem = f"its dead letters go to a queue that is not of this stack: {queue.dead_letters}"
            yield Finding(subject=source.source, problem=problem)
    for name, source in facts.event_sources.items():
        if not source.is_queue and source.failures is None and source.function not in _MENDED_BY_LOOKS:
            yield Finding(subject=name, problem="it has no destination for what always fails: it is lost")
    for name, topic in facts.topics.items():
        for subscription in topic.subscriptions:
            if subscription.protocol == "sqs" and subscription.dead_letters is None:
                subscriber = facts.queue_by_arn(subscription.endpoint)
                if subscriber is not None:  # others are followers, who come and go
                    problem = (
                        f"its subscription of {subscriber[0]} has no dead-letter queue: what SNS cannot send is lost"
                    )
                    yield Finding(subject=name, problem=problem)


_PAGING = (*alarms.DEAD_LETTERS, *alarms.GIVEN_UP)


def _dead_letters_are_heard(facts: Facts) -> Iterator[Finding]:
    yield from alarms.unheard(facts, _PAGING)
    yield from alarms.lost_subscriptions(facts)  # guard: doctor-deleted-subscription
    for name in alarms.audience(facts, _PAGING):
        topic = facts.topics[name]
        for subscription in topic.subscriptions:
            if not subscription.is_confirmed:
                problem = f"{subscription.endpoint} has not confirmed its subscription, and hears nothing"
                yield Finding(subject=name, problem=problem, by_template=False)
        if not any(
            statement.is_allowed
            and "cloudwatch.amazonaws.com" in services(statement)
            and any(covers(action, "sns:Publish") for action in statement.actions)
            for statement in topic.policy
        ):
            yield Finding(subject=name, problem="its policy does not let CloudWatch publish alarms")
        if topic.key is not None and topic.key.endswith("alias/aws/sns"):
            problem = "the key alias/aws/sns encrypts it, which CloudWatch may not use: alarms are dropped silently"
            yield Finding(subject=name, problem=problem)


def _somebody_hears(facts: Facts) -> Iterator[Finding]:
    for name in alarms.audience(facts, _PAGING):
        heard = facts.parameters.get("AlarmTopic") or any(
            subscription.is_confirmed for subscription in facts.topics[name].subscriptions
        )
        if not heard:
            yield Finding(
                subject=name, problem="nobody has a confirmed subscription: its alarms reach nobody", by_template=False
            )


def _retries_end(facts: Facts) -> Iterator[Finding]:
    lanes = {f"{lane.capitalize()}Queue" for lane in LANES}
    for name, queue in facts.queues.items():
        if queue.max_receives is None:
            continue
        if queue.max_receives > MOST_RECEIVES:
            yield Finding(subject=name, problem=f"a message is received {queue.max_receives:,} times before it ends")
        least = MAX_RECEIVES if name in lanes else 2
        if queue.max_receives < least:
            problem = f"a message is received only {queue.max_receives} times before it is a dead letter, not {least}"
            yield Finding(subject=name, problem=problem)
    for name, source in facts.event_sources.items():
        if source.is_queue:
            continue
        if source.maximum_retries in (None, _ENDLESS) and source.maximum_age_seconds in (None, _ENDLESS):
            yield Finding(subject=name, problem="a record is tried again without end, and blocks its shard")
        elif (source.maximum_age_seconds or 0) >= STREAM_SECONDS:  # guard: doctor-stream-retention
            problem = f"a record is tried for {source.maximum_age_seconds:,} seconds: the stream forgets it before"
            yield Finding(subject=name, problem=problem)
    for name, machine in facts.state_machines.items():
        yield from _retries_of_states(name, machine.definition)


def _retries_of_states(machine: str, definition: Mapping[str, Any]) -> Iterator[Finding]:
    """What is wrong with the retries of tasks: none, at a steady pace, in step with one another, or never over."""
    for name, state in definition.get("States", {}).items():
        if state.get("Type") != "Task":
            continue
        retries = [retry for retry in state.get("Retry", []) if retry.get("MaxAttempts", 3) > 0]
        if not retries:
            yield Finding(subject=machine, problem=f"its state {name} is not tried again")
        for retry in retries:
            if retry.get("BackoffRate", 2.0) <= 1:
                yield Finding(subject=machine, problem=f"the retries of its state {name} do not back off")
            if retry.get("JitterStrategy") != "FULL":
                yield Finding(subject=machine, problem=f"the retries of its state {name} have no jitter")
            if retry.get("MaxAttempts", 3) > MOST_RECEIVES:
                yield Finding(subject=machine, problem=f"the retries of its state {name} do not end")


def _consumers_remember(facts: Facts) -> Iterator[Finding]:
    for name, (variable, table) in MEMORIES.items():
        if name not in facts.functions:
            continue
        given = facts.functions[name].variables.get(variable)
        if table not in facts.tables:
            yield Finding(subject=table, problem=f"the stack has no such table, in which {name} remembers its work")
        elif given != facts.tables[table].name:
            problem = f"its variable {variable} does not name the stack's {table} but {given or 'nothing'}"
            yield Finding(subject=name, problem=problem)


CHECKS = (
    Check(
        name="survives-a-restart",
        group=GROUP,
        question="messages survive a broker's restart",
        decisions=["0033-operators-tools", "0007-what-the-sweeper-owes"],
    ),
    Check(
        name="acknowledged-after-work",
        group=GROUP,
        question="a message is acknowledged after its work and not before",
        remedy="Deploy this checkout again: FunctionResponseTypes of the mapping is [ReportBatchItemFailures].",
        look=_acknowledged_after_work,
    ),
    Check(
        name="consumers-have-dead-letters",
        group=GROUP,
        question="every consumer's queue has dead letters",
        remedy="Deploy this checkout again: RedrivePolicy of the queue or of the subscription, OnFailure of the "
        "stream's mapping.",
        look=_consumers_have_dead_letters,
        decisions=["0006-dead-letters-and-replay"],
    ),
    Check(
        name="dead-letters-are-heard",
        group=GROUP,
        question="dead letters raise an alarm that somebody hears",
        remedy="Deploy with AlarmEmail=you@example.com and confirm both mails that SNS sends within 48 hours; to have "
        "them sent again: aws sns subscribe --topic-arn ARN --protocol email --notification-endpoint you@example.com. "
        "Or enable the alarm's actions again: aws cloudwatch enable-alarm-actions.",
        look=_dead_letters_are_heard,
        look_in_production=_somebody_hears,
        in_production="that somebody has confirmed a subscription to the alarms",
    ),
    Check(
        name="retries-end",
        group=GROUP,
        question="retries back off with jitter and end",
        remedy="Deploy this checkout again: maxReceiveCount of the queue, MaximumRetryAttempts of the stream's "
        "mapping, Retry of the state machine.",
        look=_retries_end,
        decisions=["0003-retries-and-backoff"],
    ),
    Check(
        name="consumers-are-idempotent",
        group=GROUP,
        question="every consumer is idempotent",
        remedy="Deploy this checkout again: the variable names the table in which the function remembers its work.",
        look=_consumers_remember,
        decisions=["0001-the-forms-that-last", "0003-retries-and-backoff"],
    ),
)
