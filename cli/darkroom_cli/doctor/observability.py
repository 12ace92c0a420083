"""Observability: depth, lag, dead letters, durations, and one id through all of it."""

from __future__ import annotations

from collections.abc import Iterator

from darkroom_cli.doctor import alarms
from darkroom_cli.doctor.checks import Check, Finding
from darkroom_cli.doctor.facts import AlarmFacts, Facts

GROUP = "Observability"

OF_EVENTS = ("UsageDeadLetters", "WebhooksDeadLetters", "DeliveryDeadLetters", "UnpublishedEvents")
"""The queues of what was given up by optional parts."""

SWEEPERS = ("SweepDueImagesFunction", "SweepDueEndpointsFunction")


def _growth_is_told(facts: Facts) -> Iterator[Finding]:
    yield from alarms.unheard(facts, alarms.GROWTH)


def _lag_is_watched(facts: Facts) -> Iterator[Finding]:
    yield from alarms.unheard(facts, alarms.LAG)


def _each_dead_letter_tells(facts: Facts) -> Iterator[Finding]:
    for watch in alarms.DEAD_LETTERS:
        for name, alarm in alarms.watching(facts, watch).items():
            if not _fires_at_one(alarm):
                yield Finding(subject=name, problem="one dead letter does not ring it")
    sweepers = [facts.functions[name] for name in SWEEPERS if name in facts.functions]
    counted = " ".join(value for sweeper in sweepers for value in sweeper.variables.values())
    is_left_out = alarms.is_left_out(facts, "DeadLettersAlarm")
    on_depth = [alarm for alarm in facts.alarms.values() if alarm.metric == alarms.DEPTH and _fires_at_one(alarm)]
    watched = frozenset[str]().union(*(alarm.queues for alarm in on_depth))
    of_streams = {source.failures for source in facts.event_sources.values()}
    for name, queue in facts.queues.items():
        if name not in facts.dead_letter_queues and queue.arn not in of_streams:
            continue
        if name in OF_EVENTS and facts.parameters.get("Webhooks") == "false":  # nothing comes to them
            continue
        if queue.name not in watched and not is_left_out:  # guard: doctor-unwatched-dead-letters
            yield Finding(subject=name, problem="no alarm watches how many dead letters it has")
        if queue.name not in counted:
            problem = "the sweeper does not look at it: CloudWatch may hear of a dead letter a quarter of an hour late"
            yield Finding(subject=name, problem=problem)
    yield from alarms.unheard(facts, alarms.EXPIRING)


def _fires_at_one(alarm: AlarmFacts) -> bool:
    at_one = {"GreaterThanOrEqualToThreshold": alarm.threshold <= 1, "GreaterThanThreshold": alarm.threshold < 1}
    return at_one.get(alarm.comparison, False) and alarm.datapoints <= 1


def _time_is_tracked(facts: Facts) -> Iterator[Finding]:
    mode = facts.parameters.get("Tracing")
    for name, function in facts.functions.items():
        if mode is not None and function.is_traced != (mode == "Active"):
            problem = "are traced" if function.is_traced else "are not traced"
            yield Finding(subject=name, problem=f"its invocations {problem}, with Tracing={mode}")
    yield from alarms.unheard(facts, alarms.DURATIONS)


_ENABLE = "Enable the alarm's actions again (aws cloudwatch enable-alarm-actions), or deploy this checkout again."

CHECKS = (
    Check(
        name="growth-is-told",
        group=GROUP,
        question="depth is measured, and unexpected growth told",
        remedy=_ENABLE,
        look=_growth_is_told,
        decisions=["0011-load-shedding"],
    ),
    Check(
        name="lag-is-watched",
        group=GROUP,
        question="the consumers' lag (age of the oldest) is watched",
        remedy=_ENABLE,
        look=_lag_is_watched,
        decisions=["0032-alarms-logs-and-what-watching-costs"],
    ),
    Check(
        name="each-dead-letter-tells",
        group=GROUP,
        question="each dead letter tells somebody",
        remedy="Deploy this checkout again: the alarms, and the queues that the sweeper counts.",
        look=_each_dead_letter_tells,
        decisions=["0006-dead-letters-and-replay"],
    ),
    Check(
        name="time-is-tracked",
        group=GROUP,
        question="processing time is tracked",
        remedy="Deploy this checkout again: Tracing decides for every function, two alarms watch the error budget.",
        look=_time_is_tracked,
        decisions=["0032-alarms-logs-and-what-watching-costs"],
    ),
    Check(
        name="one-correlation-id",
        group=GROUP,
        question="one correlation id runs through all messages",
        decisions=["0001-the-forms-that-last", "0032-alarms-logs-and-what-watching-costs"],
    ),
)
