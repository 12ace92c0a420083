"""Everything that may be wrong with a stack, and what doctor says of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from darkroom.domain.pauses.pauses import Pause
from darkroom.ports.kernel import UnreadableRow
from darkroom_cli.doctor.facts import (
    AlarmFacts,
    Facts,
    Kms,
    LogGroup,
    ServiceQuota,
    Subscription,
)
from darkroom_cli.doctor.priority import ROOM_FOR_THE_API
from darkroom_cli.doctor.work import CHECKS
from tests.unit.cli.doctor.sound import (
    ANYBODY,
    CRITICAL,
    NAMES,
    NOW,
    QUEUES,
    SOUND,
    allowing,
    arn,
    by_service,
    queue,
    refusing,
)


@dataclass(frozen=True)
class Change:
    """Other facts, and the name of the resource that they are about."""

    of: Callable[[Facts], Facts]
    subject: str = ""

    def __call__(self, facts: Facts) -> Facts:
        return self.of(facts)


type Case = tuple[Change, str] | tuple[Change, str, str]
"""A change, words of what is found then, and what that is about, if not what was changed."""

OF_LANES = ",".join(f"{lane}DeadLetters" for lane in NAMES)
ENOUGH = next(most for most in range(1000) if int(most * (1 - ROOM_FOR_THE_API)) >= 10 * len(NAMES))
"""The unreserved executions that are just enough for the sound stack's lanes, of ten workers each."""

BY_NAME = {check.name: check for check in CHECKS}


def changed(section: str, **items: Any) -> Change:
    """The facts with other items in a section; None removes one."""

    def change(facts: Facts) -> Facts:
        merged = {**getattr(facts, section), **items}
        sections: dict[str, Any] = {
            section: {name: attribute for name, attribute in merged.items() if attribute is not None}
        }
        return replace(facts, **sections)

    return Change(change, next(iter(items), ""))


def change_of(section: str, name: str, **attributes: Any) -> Change:
    """The facts with another item, which differs from the sound one in these attributes."""
    return changed(section, **{name: replace(getattr(SOUND, section)[name], **attributes)})


def stated(**facts_given: Any) -> Change:
    """Other facts as a whole."""
    return Change(lambda facts: replace(facts, **facts_given))


def code(here: dict[str, str], *, deployed: dict[str, str]) -> Change:
    """The files of a function in this checkout, and those that are deployed."""
    checkout = replace(SOUND.checkout, sources={"F": here})
    return replace(stated(checkout=checkout, deployed_sources={"F": deployed}), subject="F")


def parameters(**given: str) -> Change:
    return Change(lambda facts: replace(facts, parameters={**facts.parameters, **given}), next(iter(given)))


def all_of(*changes: Change) -> Change:
    def change(facts: Facts) -> Facts:
        for each in changes:
            facts = each(facts)
        return facts

    return Change(change, changes[-1].subject)


def with_role(name: str, *statements: Any, **attributes: Any) -> Change:
    role = SOUND.roles[name]
    return changed("roles", **{name: replace(role, statements=(*role.statements, *statements), **attributes)})


def with_policy(queue: str, *statements: Any) -> Change:
    return change_of("queues", queue, policy=(*QUEUES[queue].policy, *statements))


def with_alarm(name: str, **attributes: Any) -> Change:
    return change_of("alarms", name, **attributes)


def states(**release: Any) -> Change:
    definition = {"States": {"Release": {"Type": "Task", **release}}}
    return change_of("state_machines", "HoldBatchStateMachine", definition=definition)


COMPOSITE = AlarmFacts(
    name="shop-IncidentAlarm",
    description="",
    actions=(CRITICAL.arn,),
    is_acting=True,
    rule='ALARM("shop-DeadLettersAlarm") OR ALARM("shop-ImagesStuckAlarm")',
)

PAUSED = changed("pauses", **{"lane#fast": Pause(kind="lane", name="fast", since=NOW, reason="a bug")})
CHILD = with_alarm("DeadLettersAlarm", actions=())
OURS = "arn:aws:kms:eu-west-1:123456789012:key/ours"
ITS_KEY = Kms(arn=OURS, is_enabled=True, is_rotated=True)
ENCRYPTED_BY_OURS = all_of(
    parameters(Encryption="customer"),
    changed("keys", Key=ITS_KEY),
    *(change_of("queues", name, key=OURS) for name in QUEUES),
    *(change_of("tables", name, key=OURS) for name in SOUND.tables),
    *(change_of("topics", name, key=OURS) for name in SOUND.topics),
    change_of("buckets", "OriginalsBucket", key=OURS),
    change_of("log_groups", "ReadImageLogs", key=OURS),
)

WRONG: dict[str, list[Case]] = {
    "senders-only-send": [
        (with_policy("FastQueue", allowing("sqs:SendMessage", "*", principals=ANYBODY)), "everybody"),
        (
            with_policy("FastQueue", allowing("sqs:SendMessage", "*", principals={"AWS": "arn:aws:iam::1:root"})),
            "arn:aws:iam::1:root",
        ),
        (with_policy("FastQueue", by_service("s3.amazonaws.com", "sqs:SendMessage", {})), "no condition"),
        (
            with_policy("FastQueue", by_service("s3.amazonaws.com", "sqs:SendMessage,sqs:ReceiveMessage", {"a": "b"})),
            "sqs:ReceiveMessage",
        ),
        (
            with_role("SubmitImageFunctionRole", allowing("sqs:ReceiveMessage", arn("sqs", "FastQueue"))),
            "sqs:ReceiveMessage",
        ),
        (with_role("SubmitImageFunctionRole", allowing("sqs:*", "*")), "sqs:*"),
        (with_role("CountUsageFunctionRole", allowing("sqs:PurgeQueue", arn("sqs", "FastQueue"))), "FastQueue"),
        (with_role("SubmitImageFunctionRole", managed=("AmazonSQSFullAccess",)), "AmazonSQSFullAccess"),
    ],
    "workers-only-receive": [
        (
            with_role("TranscodeImageFunctionRole", allowing("sqs:SendMessage", arn("sqs", "UsageQueue"))),
            "sqs:SendMessage",
        ),
        (with_role("TranscodeImageFunctionRole", managed=("AdministratorAccess",)), "AdministratorAccess"),
        (
            with_role(
                "TranscodeImageFunctionRole",
                trusted=(allowing("sts:AssumeRole", "*", principals={"AWS": "arn:aws:iam::1:root"}),),
            ),
            "may act as this role",
        ),
    ],
    "nobody-lists": [
        (
            change_of("listings", "TranscodeImageFunctionRole", everything=frozenset({"OriginalsBucket"})),
            "list the whole of OriginalsBucket",
        ),
        (
            change_of("listings", "TranscodeImageFunctionRole", nothing=frozenset({"OriginalsBucket"})),
            "cannot tell a missing object of OriginalsBucket",
        ),
    ],
    "tls-only": [
        (change_of("queues", "FastQueue", policy=()), "TLS"),
        (change_of("topics", "EventsTopic", policy=()), "TLS"),
        (change_of("buckets", "OriginalsBucket", policy=()), "TLS"),
        (
            change_of(
                "queues", "FastQueue", policy=(replace(refusing("sqs:*"), principals={"AWS": "arn:aws:iam::1:root"}),)
            ),
            "TLS",
        ),
        (change_of("queues", "FastQueue", policy=(refusing("sqs:SendMessage"),)), "TLS"),
    ],
    "queues-encrypted": [
        (change_of("queues", "FastQueue", is_encrypted=False), "nothing encrypts it"),
        (all_of(ENCRYPTED_BY_OURS, change_of("queues", "FastQueue", key="alias/aws/sqs")), "another key"),
    ],
    "messages-signed": [
        (changed("secrets", MessageKey=None), "no such secret"),
        (change_of("secrets", "MessageKey", is_being_deleted=True), "deleted"),
        (change_of("functions", "CountUsageFunction", variables={"COUNTED_EVENTS_TABLE": "counted"}), "no key"),
        (change_of("functions", "CountUsageFunction", variables={"MESSAGE_KEY": "another"}), "something else"),
        (change_of("roles", "CountUsageFunctionRole", statements=()), "may not read", "CountUsageFunction"),
    ],
    "acknowledged-after-work": [
        (change_of("event_sources", "FastLane", reports_items=False), "ReportBatchItemFailures"),
        (change_of("event_sources", "ImagesStream", reports_items=False), "ReportBatchItemFailures"),
    ],
    "consumers-have-dead-letters": [
        (change_of("queues", "FastQueue", dead_letters=None), "no dead-letter queue"),
        (change_of("queues", "FastQueue", dead_letters=arn("sqs", "somebodys")), "not of this stack"),
        (change_of("event_sources", "ImagesStream", failures=None), "destination"),
        (
            change_of(
                "topics",
                "EventsTopic",
                subscriptions=(replace(SOUND.topics["EventsTopic"].subscriptions[0], dead_letters=None),),
            ),
            "UsageQueue",
        ),
    ],
    "dead-letters-are-heard": [
        (changed("alarms", DeadLettersAlarm=None), "no alarm"),
        (with_alarm("DeadLettersAlarm", metric="Others"), "no alarm"),
        (with_alarm("EventDeadLettersAlarm", is_acting=False), "disabled"),
        (CHILD, "no composite alarm", "DeadLettersAlarm"),
        (
            all_of(CHILD, changed("alarms", IncidentAlarm=replace(COMPOSITE, is_acting=False))),
            "speaks for DeadLettersAlarm",
        ),
        (all_of(CHILD, changed("alarms", IncidentAlarm=replace(COMPOSITE, actions=()))), "no action"),
        (
            all_of(
                CHILD, changed("alarms", IncidentAlarm=replace(COMPOSITE, rule='ALARM("other-shop-DeadLettersAlarm")'))
            ),
            "no composite alarm",
            "DeadLettersAlarm",
        ),
        (with_alarm("DeadLettersAlarm", actions=(arn("sns", "old"),)), "not of this stack"),
        (
            change_of(
                "topics",
                "CriticalAlarms",
                subscriptions=(
                    *CRITICAL.subscriptions,
                    Subscription(protocol="email", endpoint="b@example.com", is_confirmed=False),
                ),
            ),
            "b@example.com",
        ),
        (parameters(AlarmEmail="b@example.com"), "b@example.com is not subscribed any more", "CriticalAlarms"),
        (change_of("topics", "CriticalAlarms", policy=(refusing("sns:Publish"),)), "CloudWatch"),
        (change_of("topics", "CriticalAlarms", key="alias/aws/sns"), "dropped silently"),
    ],
    "retries-end": [
        (change_of("queues", "UsageQueue", max_receives=1000), "1,000 times"),
        (change_of("queues", "FastQueue", max_receives=4), "only 4"),
        (change_of("queues", "UsageQueue", max_receives=1), "only 1"),
        (change_of("event_sources", "ImagesStream", maximum_retries=-1, maximum_age_seconds=-1), "without end"),
        (change_of("event_sources", "ImagesStream", maximum_age_seconds=86400), "forgets"),
        (states(), "not tried again"),
        (states(Retry=[{"BackoffRate": 1.0, "JitterStrategy": "FULL"}]), "back off"),
        (states(Retry=[{"BackoffRate": 2.0}]), "jitter"),
        (states(Retry=[{"MaxAttempts": 99999, "JitterStrategy": "FULL"}]), "do not end"),
    ],
    "consumers-are-idempotent": [
        (change_of("functions", "CountUsageFunction", variables={"COUNTED_EVENTS_TABLE": "old"}), "old"),
        (changed("tables", IdempotencyTable=None), "no such table"),
    ],
    "own-queues": [
        (changed("queues", FastQueue=None), "no such queue"),
        (
            change_of("functions", "SubmitImageFunction", variables={"FAST_QUEUE_URL": QUEUES["SlowQueue"].url}),
            "lane fast",
        ),
    ],
    "served-first": [
        (changed("event_sources", FastLane=None), "nothing takes", "FastQueue"),
        (change_of("event_sources", "FastLane", is_enabled=False), "disabled"),
        (change_of("event_sources", "FastLane", window_seconds=5), "waits 5 seconds"),
        (change_of("event_sources", "FastLane", batch_size=10), "10 images at once"),
    ],
    "reserved-concurrency": [
        (change_of("functions", "TranscodeImageFunction", reserved=19), "19 executions"),
        (
            all_of(
                change_of("functions", "TranscodeImageFunction", reserved=None),
                stated(concurrency={"limit": 1000, "unreserved": ENOUGH - 1}),
            ),
            f"consumers may take {10 * len(NAMES)}, and a fifth is left for the API ({10 * len(NAMES) - 1})",
            "account",
        ),
    ],
    "growth-is-told": [
        (changed("alarms", FreeTenantsShedAlarm=None), "no alarm"),
    ],
    "lag-is-watched": [
        (changed("alarms", EventsStuckAlarm=None), "no alarm"),
        (
            all_of(
                changed("alarms", MessagesStuckAlarm=None),
                changed("alarms", OtherAlarm=SOUND.alarms["MessagesStuckAlarm"]),
            ),
            "no alarm",
            "MessagesStuckAlarm",
        ),
    ],
    "each-dead-letter-tells": [
        (with_alarm("DeadLettersAlarm", threshold=5), "does not ring"),
        (with_alarm("DeadLettersAlarm", datapoints=2), "does not ring"),
        (with_alarm("DeadLettersAlarm", comparison="GreaterThanThreshold"), "does not ring"),
        (
            change_of("functions", "SweepDueImagesFunction", variables={"X": OF_LANES}),
            "a quarter of an hour late",
            "UsageDeadLetters",
        ),
        (
            all_of(
                with_alarm("DeadLettersAlarm", queues=frozenset(OF_LANES.split(","))),
                with_alarm("EventDeadLettersAlarm", queues=frozenset()),
            ),
            "no alarm watches",
            "UsageDeadLetters",
        ),
        (changed("queues", UnpublishedEvents=queue("UnpublishedEvents", retention_days=14)), "no alarm watches"),
        (changed("alarms", DeadLettersExpiringAlarm=None), "no alarm"),
    ],
    "time-is-tracked": [
        (
            all_of(
                parameters(Tracing="Active"),
                *(change_of("functions", name, is_traced=name != "SubmitImageFunction") for name in SOUND.functions),
            ),
            "are not traced, with Tracing=Active",
            "SubmitImageFunction",
        ),
        (change_of("functions", "SubmitImageFunction", is_traced=True), "are traced, with Tracing=PassThrough"),
        (changed("alarms", ImagesLateAlarm=None), "no alarm"),
    ],
    "redriving-is-described": [
        (with_alarm("ImagesGivenUpAlarm", description="It is so."), "no section"),
        (with_alarm("ImagesGivenUpAlarm", description="See docs/runbook.md#gone."), "#gone"),
        (
            stated(checkout=replace(SOUND.checkout, runbook={"dead-letters": "Call somebody."})),
            "replay",
            "docs/runbook.md",
        ),
        (change_of("queues", "FastDeadLetters", failed_redrive="AccessDenied"), "AccessDenied"),
    ],
    "work-ends-in-time": [
        (change_of("functions", "TranscodeImageFunction", variables={"VISIBILITY_SECONDS": "60"}), "after 60 seconds"),
        (stated(p99_seconds={"TranscodeImageFunction": 45.5}), "lease of 90", "TranscodeImageFunction"),
        (change_of("functions", "SweepDueImagesFunction", timeout_seconds=60), "60"),
        (change_of("functions", "CountUsageFunction", timeout_seconds=3), "stopped after 3"),
    ],
    "no-more-than-they-can": [
        (change_of("event_sources", "UsageEvents", maximum_concurrency=None), "maximum concurrency"),
        (change_of("event_sources", "UsageEvents", batch_size=51), "51"),
        (change_of("event_sources", "SlowLane", batch_size=13), "65 seconds"),
    ],
    "visibility-is-enough": [
        (change_of("functions", "CountUsageFunction", timeout_seconds=61), "366", "UsageQueue"),
        (change_of("event_sources", "UsageEvents", window_seconds=1), "361", "UsageQueue"),
    ],
    "messages-outlive-their-images": [
        (stated(p99_seconds={"slow": 172_801}), "takes 172,801", "SlowQueue"),
    ],
    "dead-letters-are-kept": [
        (change_of("queues", "FastDeadLetters", retention_seconds=345600), "345,600"),
        (
            stated(oldest_dead_letters={"FastDeadLetters": 12 * 86400}),
            "12 days",
            "FastDeadLetters",
        ),
    ],
    "reconciled": [
        (changed("rules", SweepDueImagesFunctionEveryMinute=None), "no such schedule"),
        (change_of("rules", "SweepDueImagesFunctionEveryMinute", is_enabled=False), "disabled"),
        (change_of("rules", "SweepDueImagesFunctionEveryMinute", targets=()), "does not invoke"),
        (stated(sweeps={"latest": NOW - 301000}), "5 minutes", "SweepDueImagesFunction"),
        (stated(sweeps={}), "an hour", "SweepDueImagesFunction"),
        (changed("alarms", SweeperSilentAlarm=None), "no alarm"),
    ],
    "alarms-are-heard": [
        (
            changed(
                "alarms",
                ApiErrorsAlarm=replace(
                    SOUND.alarms["DeadLettersAlarm"], metric="5xx", namespace="AWS/ApiGateway", actions=()
                ),
            ),
            "no action",
        ),
    ],
    "everything-runs": [
        (stated(status="UPDATE_ROLLBACK_COMPLETE"), "UPDATE_ROLLBACK_COMPLETE", "shop"),
        (change_of("event_sources", "UsageEvents", is_enabled=False), "UsageQueue"),
        (change_of("functions", "CountUsageFunction", reserved=0), "zero"),
        (change_of("functions", "CountUsageFunction", problem="its latest update failed"), "failed"),
    ],
    "nothing-is-paused": [
        (PAUSED, "paused since 2024-10-04T00:00:00.000Z: a bug", "lane fast"),
        (PAUSED, "workers still take its messages", "lane fast"),
        (changed("pauses", **{"tenant#acme": UnreadableRow("tenant#acme", "newer")}), "cannot be read"),
    ],
    "nothing-is-public": [
        (change_of("buckets", "OriginalsBucket", is_closed=False), "not blocked"),
        (
            change_of(
                "buckets",
                "OriginalsBucket",
                policy=(refusing("s3:*"), allowing("s3:GetObject", "*", principals=ANYBODY)),
            ),
            "everybody",
        ),
        (
            change_of("topics", "EventsTopic", policy=(allowing("sns:Subscribe", "*", principals={"AWS": "*"}),)),
            "everybody",
        ),
        (changed("routes", **{"POST /images": "NONE"}), "no credential"),
    ],
    "everything-is-encrypted": [
        (change_of("buckets", "OriginalsBucket", algorithm=None), "nothing encrypts"),
        (all_of(ENCRYPTED_BY_OURS, change_of("tables", "ImagesTable", key=None)), "another key"),
        (parameters(Encryption="customer"), "no key of its own", "Key"),
        (all_of(ENCRYPTED_BY_OURS, changed("keys", Key=replace(ITS_KEY, is_enabled=False))), "disabled"),
        (all_of(ENCRYPTED_BY_OURS, changed("keys", Key=replace(ITS_KEY, is_rotated=False))), "rotated"),
    ],
    "data-is-kept": [
        (change_of("tables", "ImagesTable", is_protected=False), "protected"),
        (change_of("tables", "ImagesTable", is_recoverable=False), "recovery"),
        (change_of("buckets", "OriginalsBucket", is_versioned=False), "versions"),
    ],
    "logs-end": [
        (changed("log_groups", ReadImageLogs=LogGroup(retention_days=None)), "for ever"),
    ],
    "quotas": [
        (
            changed(
                "quotas",
                **{"L-B99A9384": ServiceQuota(name="Concurrent executions", service="lambda", limit=1000, used=800)},
            ),
            "800 of 1,000",
            "account",
        ),
    ],
    "settings": [
        (change_of("queues", "FastQueue", visibility_seconds=30), "VisibilityTimeout is 30"),
        (stated(types={}), "does not have", "FastQueue"),
        (
            stated(types={**SOUND.types, "Old": "AWS::SQS::Queue"}),
            "this checkout does not have",
            "Old",
        ),
    ],
    "code": [
        (code({"app.py": "1"}, deployed={"app.py": "2"}), "another version"),
        (code({"app.py": "1"}, deployed={}), "not deployed"),
        (code({}, deployed={"app.py": "2"}), "does not have it"),
    ],
}
"""For each check what is wrong, and what its finding is about and says."""


def cases_of(table: Mapping[str, Sequence[Case]]) -> list[Any]:
    """The cases of such a table, for a test that takes the check, the change, the subject and the words."""
    return [
        pytest.param(BY_NAME[check], change, *others, words, id=f"{check}: {others[0]} {words}")
        for check, cases in table.items()
        for change, words, *named in cases
        for others in (named or [change.subject],)
    ]
