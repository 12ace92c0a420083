"""Which alarm answers which question of the checklist: the one table of alarms that `doctor` knows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from darkroom_cli.doctor.checks import Finding
from darkroom_cli.doctor.facts import AlarmFacts, Facts

OWN_NAMESPACE = "Darkroom/"
DEPTH = "ApproximateNumberOfMessagesVisible"


@dataclass(frozen=True, kw_only=True)
class AlarmWatch:
    """An alarm of the template by its logical id, and the metric that it watches; with `part`, only in a stack that has
    this optional part, by its parameter."""

    alarm: str
    metric: str
    is_own: bool = True
    part: str = ""

    def is_asked_of(self, facts: Facts) -> bool:
        """Whether the stack should have it."""
        return facts.parameters.get(self.part) != "false"


def _own(alarm: str, metric: str, *, part: str = "") -> AlarmWatch:
    return AlarmWatch(alarm=alarm, metric=metric, part=part)


def _of_aws(alarm: str, metric: str, *, part: str = "") -> AlarmWatch:
    return AlarmWatch(alarm=alarm, metric=metric, is_own=False, part=part)


DEAD_LETTERS = (
    _of_aws("DeadLettersAlarm", DEPTH),
    _of_aws("EventDeadLettersAlarm", DEPTH, part="Webhooks"),
)
"""Each dead letter rings one of these, also while our own code is wrong."""

GIVEN_UP = (_own("ImagesGivenUpAlarm", "ImagesGivenUp"),)
"""What was given up wakes somebody."""

EXPIRING = (_own("DeadLettersExpiringAlarm", "OldestDeadLetterSeconds"),)

LATE = _own("ImagesLateAlarm", "LateRatio")
STUCK = _own("ImagesStuckAlarm", "StuckRatio")

GROWTH = (
    LATE,
    _own("FreeTenantsShedAlarm", "FreeTenantsShed"),
    _own("PayingTenantsShedAlarm", "PayingTenantsShed"),
)
"""A backlog that grows makes images late, and then turns tenants away."""

LAG = (
    STUCK,
    _of_aws("MessagesStuckAlarm", "ApproximateAgeOfOldestMessage"),
    _own("FetchMessagesStuckAlarm", "FetchesUntaken", part="Imports"),
    _own("SweeperBehindAlarm", "SweepBehind"),
    _own("DeliveriesLateAlarm", "FirstAttemptBurn", part="Webhooks"),
    _of_aws("EventsStuckAlarm", "IteratorAge", part="Webhooks"),
)
"""The age of the oldest, of each consumer."""

DURATIONS = (LATE, STUCK)
"""Images that took longer than their lane's service level burn its error budget."""

SWEEPS = (_of_aws("SweeperSilentAlarm", "Errors"),)

OF_THE_CORE = frozenset(
    {"ImagesGivenUpAlarm", "ImagesStuckAlarm", "SweeperSilentAlarm", "ApiFailingAlarm", "MessagesStuckAlarm"}
)
"""The alarms that a stack with `Observability=false` has."""

OF_THE_CHECKLIST = (*DEAD_LETTERS, *GIVEN_UP, *EXPIRING, *GROWTH, *LAG, *SWEEPS)


def watching(facts: Facts, watch: AlarmWatch) -> dict[str, AlarmFacts]:
    """The stack's alarms on the metric of a watch: its own alarm, and for a metric of Darkroom any other."""
    return {
        name: alarm
        for name, alarm in facts.alarms.items()
        if alarm.metric == watch.metric
        and (name == watch.alarm or (watch.is_own and alarm.namespace == f"{OWN_NAMESPACE}{facts.name}"))
    }


def is_left_out(facts: Facts, alarm: str) -> bool:
    """Whether the stack was deployed without this alarm on purpose."""
    return facts.parameters.get("Observability") == "false" and alarm not in OF_THE_CORE


def unheard(facts: Facts, watches: Sequence[AlarmWatch]) -> Iterator[Finding]:
    """What keeps alarms from being heard: there is none, or nobody is told when it fires."""
    for watch in watches:
        alarms = watching(facts, watch)
        missing = not alarms and not is_left_out(facts, watch.alarm)
        if missing and watch.is_asked_of(facts):  # guard: doctor-alarm-of-absent-part
            yield Finding(subject=watch.alarm, problem=f"no alarm watches the metric {watch.metric}")
        for name, alarm in alarms.items():
            yield from silent(facts, name, alarm)


def silent(facts: Facts, name: str, alarm: AlarmFacts) -> Iterator[Finding]:
    """Why nobody is told when an alarm fires, by itself or by a composite alarm that speaks for it. Nothing if somebody
    is."""
    speakers = (
        {name: alarm} if alarm.actions else {name: other for name, other in facts.alarms.items() if _has(other, alarm)}
    )
    if not speakers:
        yield Finding(subject=name, problem="it has no action, and no composite alarm speaks for it")
    topics = {topic.arn for topic in facts.topics.values()} | {facts.parameters.get("AlarmTopic")}
    for speaker, speaking in speakers.items():
        role = "" if speaker == name else f", and it speaks for {name}"
        if not speaking.is_acting:  # guard: doctor-disabled-alarm-actions
            yield Finding(subject=speaker, problem=f"its actions are disabled{role}")
        elif not speaking.actions:
            yield Finding(subject=speaker, problem=f"it has no action{role}")
        elif unknown := set(speaking.actions) - topics:  # guard: doctor-foreign-alarm-topic
            yield Finding(subject=speaker, problem=f"it tells what is not of this stack: {', '.join(sorted(unknown))}")


def lost_subscriptions(facts: Facts) -> Iterator[Finding]:
    """The subscriptions that the parameters ask for and a topic of alarms does not have: SNS deletes what nobody
    confirms within 48 hours, and what was unsubscribed."""
    acted_on = {arn for alarm in facts.alarms.values() for arn in alarm.actions}
    for name, topic in facts.topics.items():
        endpoint = facts.parameters.get("AlarmEmail")
        if (
            topic.arn in acted_on
            and endpoint
            and all(subscription.endpoint != endpoint for subscription in topic.subscriptions)
        ):
            problem = f"{endpoint} is not subscribed any more, and no deployment subscribes it again"
            yield Finding(subject=name, problem=problem, by_template=False)


def audience(facts: Facts, watches: Sequence[AlarmWatch]) -> list[str]:
    """The topics that are told when these alarms fire, by logical id."""
    alarms = [alarm for watch in watches for alarm in watching(facts, watch).values()]
    alarms += [composite for composite in facts.alarms.values() if any(_has(composite, alarm) for alarm in alarms)]
    arns = {arn for alarm in alarms for arn in alarm.actions}
    return [name for name, topic in facts.topics.items() if topic.arn in arns]


def _has(composite: AlarmFacts, alarm: AlarmFacts) -> bool:
    """Whether a composite alarm's rule names another alarm, by its name or its ARN, with quotes or without."""
    # guard: doctor-composite-names-alarm
    return composite.rule is not None and bool(re.search(rf"""[(:"']{re.escape(alarm.name)}["')]""", composite.rule))
