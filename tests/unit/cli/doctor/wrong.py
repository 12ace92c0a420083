"""Everything that may be wrong with a stack, and what doctor says of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

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

type Change = Callable[[Facts], Facts]

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

    return change


def change_of(section: str, name: str, **attributes: Any) -> Change:
    """The facts with another item, which differs from the sound one in these attributes."""
    return changed(section, **{name: replace(getattr(SOUND, section)[name], **attributes)})


def parameters(**given: str) -> Change:
    return lambda facts: replace(facts, parameters={**facts.parameters, **given})


def all_of(*changes: Change) -> Change:
    def change(facts: Facts) -> Facts:
        for each in changes:
            facts = each(facts)
        return facts

    return change


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

WRONG: dict[str, list[tuple[Change, str, str]]] = {
    "senders-only-send": [
        (with_policy("FastQueue", allowing("sqs:SendMessage", "*", principals=ANYBODY)), "FastQueue", "everybody"),
        (
            with_policy("FastQueue", allowing("sqs:SendMessage", "*", principals={"AWS": "arn:aws:iam::1:root"})),
            "FastQueue",
            "arn:aws:iam::1:root",
        ),
        (with_policy("FastQueue", by_service("s3.amazonaws.com", "sqs:SendMessage", {})), "FastQueue", "no condition"),
        (
            with_policy("FastQueue", by_service("s3.amazonaws.com", "sqs:SendMessage,sqs:ReceiveMessage", {"a": "b"})),
            "FastQueue",
            "sqs:ReceiveMessage",
        ),
        (
            with_role("SubmitImageFunctionRole", allowing("sqs:ReceiveMessage", arn("sqs", "FastQueue"))),
            "SubmitImageFunctionRole",
            "sqs:ReceiveMessage",
        ),
        (with_role("SubmitImageFunctionRole", allowing("sqs:*", "*")), "SubmitImageFunctionRole", "sqs:*"),
        (
            with_role("CountUsageFunctionRole", allowing("sqs:PurgeQueue", arn("sqs", "FastQueue"))),
            "CountUsageFunctionRole",
            "FastQueue",
        ),
        (
            with_role("SubmitImageFunctionRole", managed=("AmazonSQSFullAccess",)),
            "SubmitImageFunctionRole",
            "AmazonSQSFullAccess",
        ),
    ],
    "workers-only-receive": [
        (
            with_role("TranscodeImageFunctionRole", allowing("sqs:SendMessage", arn("sqs", "UsageQueue"))),
            "TranscodeImageFunctionRole",
            "sqs:SendMessage",
        ),
        (
            with_role("TranscodeImageFunctionRole", managed=("AdministratorAccess",)),
            "TranscodeImageFunctionRole",
            "AdministratorAccess",
        ),
        (
            with_role(
                "TranscodeImageFunctionRole",
                trusted=(allowing("sts:AssumeRole", "*", principals={"AWS": "arn:aws:iam::1:root"}),),
            ),
            "TranscodeImageFunctionRole",
            "may act as this role",
        ),
    ],
    "nobody-lists": [
        (
            change_of("listings", "TranscodeImageFunctionRole", everything=frozenset({"OriginalsBucket"})),
            "TranscodeImageFunctionRole",
            "list the whole of OriginalsBucket",
        ),
        (
            change_of("listings", "TranscodeImageFunctionRole", nothing=frozenset({"OriginalsBucket"})),
            "TranscodeImageFunctionRole",
            "cannot tell a missing object of OriginalsBucket",
        ),
    ],
    "tls-only": [
        (change_of("queues", "FastQueue", policy=()), "FastQueue", "TLS"),
        (change_of("topics", "EventsTopic", policy=()), "EventsTopic", "TLS"),
        (change_of("buckets", "OriginalsBucket", policy=()), "OriginalsBucket", "TLS"),
        (
            change_of(
                "queues", "FastQueue", policy=(replace(refusing("sqs:*"), principals={"AWS": "arn:aws:iam::1:root"}),)
            ),
            "FastQueue",
            "TLS",
        ),
        (change_of("queues", "FastQueue", policy=(refusing("sqs:SendMessage"),)), "FastQueue", "TLS"),
    ],
    "queues-encrypted": [
        (change_of("queues", "FastQueue", is_encrypted=False), "FastQueue", "nothing encrypts it"),
        (all_of(ENCRYPTED_BY_OURS, change_of("queues", "FastQueue", key="alias/aws/sqs")), "FastQueue", "another key"),
    ],
    "messages-signed": [
        (changed("secrets", MessageKey=None), "MessageKey", "no such secret"),
        (change_of("secrets", "MessageKey", is_being_deleted=True), "MessageKey", "deleted"),
        (
            change_of("functions", "CountUsageFunction", variables={"COUNTED_EVENTS_TABLE": "counted"}),
            "CountUsageFunction",
            "no key",
        ),
        (
            change_of("functions", "CountUsageFunction", variables={"MESSAGE_KEY": "another"}),
            "CountUsageFunction",
            "something else",
        ),
        (change_of("roles", "CountUsageFunctionRole", statements=()), "CountUsageFunction", "may not read"),
    ],
    "acknowledged-after-work": [
        (change_of("event_sources", "FastLane", reports_items=False), "FastLane", "ReportBatchItemFailures"),
        (change_of("event_sources", "ImagesStream", reports_items=False), "ImagesStream", "ReportBatchItemFailures"),
    ],
    "consumers-have-dead-letters": [
        (change_of("queues", "FastQueue", dead_letters=None), "FastQueue", "no dead-letter queue"),
        (change_of("queues", "FastQueue", dead_letters=arn("sqs", "somebodys")), "FastQueue", "not of this stack"),
        (change_of("event_sources", "ImagesStream", failures=None), "ImagesStream", "destination"),
        (
            change_of(
                "topics",
                "EventsTopic",
                subscriptions=(replace(SOUND.topics["EventsTopic"].subscriptions[0], dead_letters=None),),
            ),
            "EventsTopic",
            "UsageQueue",
        ),
    ],
    "dead-letters-are-heard": [
        (changed("alarms", DeadLettersAlarm=None), "DeadLettersAlarm", "no alarm"),
        (with_alarm("DeadLettersAlarm", metric="Others"), "DeadLettersAlarm", "no alarm"),
        (with_alarm("EventDeadLettersAlarm", is_acting=False), "EventDeadLettersAlarm", "disabled"),
        (CHILD, "DeadLettersAlarm", "no composite alarm"),
        (
            all_of(CHILD, changed("alarms", IncidentAlarm=replace(COMPOSITE, is_acting=False))),
            "IncidentAlarm",
            "speaks for DeadLettersAlarm",
        ),
        (all_of(CHILD, changed("alarms", IncidentAlarm=replace(COMPOSITE, actions=()))), "IncidentAlarm", "no action"),
        (
            all_of(
                CHILD, changed("alarms", IncidentAlarm=replace(COMPOSITE, rule='ALARM("other-shop-DeadLettersAlarm")'))
            ),
            "DeadLettersAlarm",
            "no composite alarm",
        ),
        (with_alarm("DeadLettersAlarm", actions=(arn("sns", "old"),)), "DeadLettersAlarm", "not of this stack"),
        (
            change_of(
                "topics",
                "CriticalAlarms",
                subscriptions=(
                    *CRITICAL.subscriptions,
                    Subscription(protocol="email", endpoint="b@example.com", is_confirmed=False),
                ),
            ),
            "CriticalAlarms",
            "b@example.com",
        ),
        (parameters(AlarmEmail="b@example.com"), "CriticalAlarms", "b@example.com is not subscribed any more"),
        (change_of("topics", "CriticalAlarms", policy=(refusing("sns:Publish"),)), "CriticalAlarms", "CloudWatch"),
        (change_of("topics", "CriticalAlarms", key="alias/aws/sns"), "CriticalAlarms", "dropped silently"),
    ],
    "retries-end": [
        (change_of("queues", "UsageQueue", max_receives=1000), "UsageQueue", "1,000 times"),
        (change_of("queues", "FastQueue", max_receives=4), "FastQueue", "only 4"),
        (change_of("queues", "UsageQueue", max_receives=1), "UsageQueue", "only 1"),
        (
            change_of("event_sources", "ImagesStream", maximum_retries=-1, maximum_age_seconds=-1),
            "ImagesStream",
            "without end",
        ),
        (change_of("event_sources", "ImagesStream", maximum_age_seconds=86400), "ImagesStream", "forgets"),
        (states(), "HoldBatchStateMachine", "not tried again"),
        (states(Retry=[{"BackoffRate": 1.0, "JitterStrategy": "FULL"}]), "HoldBatchStateMachine", "back off"),
        (states(Retry=[{"BackoffRate": 2.0}]), "HoldBatchStateMachine", "jitter"),
        (states(Retry=[{"MaxAttempts": 99999, "JitterStrategy": "FULL"}]), "HoldBatchStateMachine", "do not end"),
    ],
    "consumers-are-idempotent": [
        (
            change_of("functions", "CountUsageFunction", variables={"COUNTED_EVENTS_TABLE": "old"}),
            "CountUsageFunction",
            "old",
        ),
        (changed("tables", IdempotencyTable=None), "IdempotencyTable", "no such table"),
    ],
    "own-queues": [
        (changed("queues", FastQueue=None), "FastQueue", "no such queue"),
        (
            change_of("functions", "SubmitImageFunction", variables={"FAST_QUEUE_URL": QUEUES["SlowQueue"].url}),
            "SubmitImageFunction",
            "lane fast",
        ),
    ],
    "served-first": [
        (changed("event_sources", FastLane=None), "FastQueue", "nothing takes"),
        (change_of("event_sources", "FastLane", is_enabled=False), "FastLane", "disabled"),
        (change_of("event_sources", "FastLane", window_seconds=5), "FastLane", "waits 5 seconds"),
        (change_of("event_sources", "FastLane", batch_size=10), "FastLane", "10 images at once"),
    ],
    "reserved-concurrency": [
        (change_of("functions", "TranscodeImageFunction", reserved=19), "TranscodeImageFunction", "19 executions"),
        (
            all_of(
                change_of("functions", "TranscodeImageFunction", reserved=None),
                lambda facts: replace(facts, concurrency={"limit": 1000, "unreserved": ENOUGH - 1}),
            ),
            "account",
            f"consumers may take {10 * len(NAMES)}, and a fifth is left for the API ({10 * len(NAMES) - 1})",
        ),
    ],
    "growth-is-told": [
        (changed("alarms", FreeTenantsShedAlarm=None), "FreeTenantsShedAlarm", "no alarm"),
    ],
    "lag-is-watched": [
        (changed("alarms", EventsStuckAlarm=None), "EventsStuckAlarm", "no alarm"),
        (
            all_of(
                changed("alarms", MessagesStuckAlarm=None),
                changed("alarms", OtherAlarm=SOUND.alarms["MessagesStuckAlarm"]),
            ),
            "MessagesStuckAlarm",
            "no alarm",
        ),
    ],
    "each-dead-letter-tells": [
        (with_alarm("DeadLettersAlarm", threshold=5), "DeadLettersAlarm", "does not ring"),
        (with_alarm("DeadLettersAlarm", datapoints=2), "DeadLettersAlarm", "does not ring"),
        (with_alarm("DeadLettersAlarm", comparison="GreaterThanThreshold"), "DeadLettersAlarm", "does not ring"),
        (
            change_of("functions", "SweepDueImagesFunction", variables={"X": OF_LANES}),
            "UsageDeadLetters",
            "a quarter of an hour late",
        ),
        (
            all_of(
                with_alarm("DeadLettersAlarm", queues=frozenset(OF_LANES.split(","))),
                with_alarm("EventDeadLettersAlarm", queues=frozenset()),
            ),
            "UsageDeadLetters",
            "no alarm watches",
        ),
        (
            changed("queues", UnpublishedEvents=queue("UnpublishedEvents", retention_days=14)),
            "UnpublishedEvents",
            "no alarm watches",
        ),
        (changed("alarms", DeadLettersExpiringAlarm=None), "DeadLettersExpiringAlarm", "no alarm"),
    ],
    "time-is-tracked": [
        (
            all_of(
                parameters(Tracing="Active"),
                *(change_of("functions", name, is_traced=name != "SubmitImageFunction") for name in SOUND.functions),
            ),
            "SubmitImageFunction",
            "are not traced, with Tracing=Active",
        ),
        (
            change_of("functions", "SubmitImageFunction", is_traced=True),
            "SubmitImageFunction",
            "are traced, with Tracing=PassThrough",
        ),
        (changed("alarms", ImagesLateAlarm=None), "ImagesLateAlarm", "no alarm"),
    ],
    "redriving-is-described": [
        (with_alarm("ImagesGivenUpAlarm", description="It is so."), "ImagesGivenUpAlarm", "no section"),
        (with_alarm("ImagesGivenUpAlarm", description="See docs/runbook.md#gone."), "ImagesGivenUpAlarm", "#gone"),
        (
            lambda facts: replace(facts, checkout=replace(facts.checkout, runbook={"dead-letters": "Call somebody."})),
            "docs/runbook.md",
            "replay",
        ),
        (change_of("queues", "FastDeadLetters", failed_redrive="AccessDenied"), "FastDeadLetters", "AccessDenied"),
    ],
    "work-ends-in-time": [
        (
            change_of("functions", "TranscodeImageFunction", variables={"VISIBILITY_SECONDS": "60"}),
            "TranscodeImageFunction",
            "after 60 seconds",
        ),
        (change_of("functions", "SweepDueImagesFunction", timeout_seconds=60), "SweepDueImagesFunction", "60"),
        (change_of("functions", "CountUsageFunction", timeout_seconds=3), "CountUsageFunction", "stopped after 3"),
    ],
    "no-more-than-they-can": [
        (change_of("event_sources", "UsageEvents", maximum_concurrency=None), "UsageEvents", "maximum concurrency"),
        (change_of("event_sources", "UsageEvents", batch_size=51), "UsageEvents", "51"),
        (change_of("event_sources", "SlowLane", batch_size=13), "SlowLane", "65 seconds"),
    ],
    "visibility-is-enough": [
        (change_of("functions", "CountUsageFunction", timeout_seconds=61), "UsageQueue", "366"),
        (change_of("event_sources", "UsageEvents", window_seconds=1), "UsageQueue", "361"),
    ],
    "dead-letters-are-kept": [
        (change_of("queues", "FastDeadLetters", retention_seconds=345600), "FastDeadLetters", "345,600"),
        (
            lambda facts: replace(facts, oldest_dead_letters={"FastDeadLetters": 12 * 86400}),
            "FastDeadLetters",
            "12 days",
        ),
    ],
    "reconciled": [
        (
            changed("rules", SweepDueImagesFunctionEveryMinute=None),
            "SweepDueImagesFunctionEveryMinute",
            "no such schedule",
        ),
        (
            change_of("rules", "SweepDueImagesFunctionEveryMinute", is_enabled=False),
            "SweepDueImagesFunctionEveryMinute",
            "disabled",
        ),
        (
            change_of("rules", "SweepDueImagesFunctionEveryMinute", targets=()),
            "SweepDueImagesFunctionEveryMinute",
            "does not invoke",
        ),
        (lambda facts: replace(facts, sweeps={"latest": NOW - 301000}), "SweepDueImagesFunction", "5 minutes"),
        (lambda facts: replace(facts, sweeps={}), "SweepDueImagesFunction", "an hour"),
        (changed("alarms", SweeperSilentAlarm=None), "SweeperSilentAlarm", "no alarm"),
    ],
    "alarms-are-heard": [
        (
            changed(
                "alarms",
                ApiErrorsAlarm=replace(
                    SOUND.alarms["DeadLettersAlarm"], metric="5xx", namespace="AWS/ApiGateway", actions=()
                ),
            ),
            "ApiErrorsAlarm",
            "no action",
        ),
    ],
    "everything-runs": [
        (lambda facts: replace(facts, status="UPDATE_ROLLBACK_COMPLETE"), "shop", "UPDATE_ROLLBACK_COMPLETE"),
        (change_of("event_sources", "UsageEvents", is_enabled=False), "UsageEvents", "UsageQueue"),
        (change_of("functions", "CountUsageFunction", reserved=0), "CountUsageFunction", "zero"),
        (
            change_of("functions", "CountUsageFunction", problem="its latest update failed"),
            "CountUsageFunction",
            "failed",
        ),
    ],
    "nothing-is-public": [
        (change_of("buckets", "OriginalsBucket", is_closed=False), "OriginalsBucket", "not blocked"),
        (
            change_of(
                "buckets",
                "OriginalsBucket",
                policy=(refusing("s3:*"), allowing("s3:GetObject", "*", principals=ANYBODY)),
            ),
            "OriginalsBucket",
            "everybody",
        ),
        (
            change_of("topics", "EventsTopic", policy=(allowing("sns:Subscribe", "*", principals={"AWS": "*"}),)),
            "EventsTopic",
            "everybody",
        ),
        (changed("routes", **{"POST /images": "NONE"}), "POST /images", "no credential"),
    ],
    "everything-is-encrypted": [
        (change_of("buckets", "OriginalsBucket", algorithm=None), "OriginalsBucket", "nothing encrypts"),
        (all_of(ENCRYPTED_BY_OURS, change_of("tables", "ImagesTable", key=None)), "ImagesTable", "another key"),
        (parameters(Encryption="customer"), "Key", "no key of its own"),
        (all_of(ENCRYPTED_BY_OURS, changed("keys", Key=replace(ITS_KEY, is_enabled=False))), "Key", "disabled"),
        (all_of(ENCRYPTED_BY_OURS, changed("keys", Key=replace(ITS_KEY, is_rotated=False))), "Key", "rotated"),
    ],
    "data-is-kept": [
        (change_of("tables", "ImagesTable", is_protected=False), "ImagesTable", "protected"),
        (change_of("tables", "ImagesTable", is_recoverable=False), "ImagesTable", "recovery"),
        (change_of("buckets", "OriginalsBucket", is_versioned=False), "OriginalsBucket", "versions"),
    ],
    "logs-end": [
        (changed("log_groups", ReadImageLogs=LogGroup(retention_days=None)), "ReadImageLogs", "for ever"),
    ],
    "quotas": [
        (
            changed(
                "quotas",
                **{"L-B99A9384": ServiceQuota(name="Concurrent executions", service="lambda", limit=1000, used=800)},
            ),
            "account",
            "800 of 1,000",
        ),
    ],
    "settings": [
        (change_of("queues", "FastQueue", visibility_seconds=30), "FastQueue", "VisibilityTimeout is 30"),
        (lambda facts: replace(facts, types={}), "FastQueue", "does not have"),
        (
            lambda facts: replace(facts, types={**facts.types, "Old": "AWS::SQS::Queue"}),
            "Old",
            "this checkout does not have",
        ),
    ],
    "code": [
        (
            lambda facts: replace(
                facts,
                checkout=replace(facts.checkout, sources={"F": {"app.py": "1"}}),
                deployed_sources={"F": {"app.py": "2"}},
            ),
            "F",
            "another version",
        ),
        (
            lambda facts: replace(
                facts, checkout=replace(facts.checkout, sources={"F": {"app.py": "1"}}), deployed_sources={"F": {}}
            ),
            "F",
            "not deployed",
        ),
        (
            lambda facts: replace(
                facts, checkout=replace(facts.checkout, sources={"F": {}}), deployed_sources={"F": {"app.py": "2"}}
            ),
            "F",
            "does not have it",
        ),
    ],
}
"""For each check what is wrong, and what its finding is about and says."""


def cases_of(table: Mapping[str, Sequence[tuple[Change, str, str]]]) -> list[Any]:
    """The cases of such a table, for a test that takes the check, the change, the subject and the words."""
    return [
        pytest.param(BY_NAME[check], change, subject, words, id=f"{check}: {subject} {words}")
        for check, cases in table.items()
        for change, subject, words in cases
    ]
