"""Everything that may be wrong with a stack, and what doctor says of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

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

WRONG: list[tuple[str, str, Change, str, str]] = [
    # senders-only-send
    (
        "senders-only-send",
        "everybody is let in",
        with_policy("FastQueue", allowing("sqs:SendMessage", "*", principals=ANYBODY)),
        "FastQueue",
        "everybody",
    ),
    (
        "senders-only-send",
        "another account is let in",
        with_policy("FastQueue", allowing("sqs:SendMessage", "*", principals={"AWS": "arn:aws:iam::1:root"})),
        "FastQueue",
        "arn:aws:iam::1:root",
    ),
    (
        "senders-only-send",
        "a service without a condition",
        with_policy("FastQueue", by_service("s3.amazonaws.com", "sqs:SendMessage", {})),
        "FastQueue",
        "no condition",
    ),
    (
        "senders-only-send",
        "a service that may receive",
        with_policy("FastQueue", by_service("s3.amazonaws.com", "sqs:SendMessage,sqs:ReceiveMessage", {"a": "b"})),
        "FastQueue",
        "sqs:ReceiveMessage",
    ),
    (
        "senders-only-send",
        "a sender that may receive",
        with_role("SubmitImageFunctionRole", allowing("sqs:ReceiveMessage", arn("sqs", "FastQueue"))),
        "SubmitImageFunctionRole",
        "sqs:ReceiveMessage",
    ),
    (
        "senders-only-send",
        "a sender that may do anything anywhere",
        with_role("SubmitImageFunctionRole", allowing("sqs:*", "*")),
        "SubmitImageFunctionRole",
        "sqs:*",
    ),
    (
        "senders-only-send",
        "a consumer of another queue",
        with_role("CountUsageFunctionRole", allowing("sqs:PurgeQueue", arn("sqs", "FastQueue"))),
        "CountUsageFunctionRole",
        "FastQueue",
    ),
    (
        "senders-only-send",
        "a sender with a managed policy",
        with_role("SubmitImageFunctionRole", managed=("AmazonSQSFullAccess",)),
        "SubmitImageFunctionRole",
        "AmazonSQSFullAccess",
    ),
    # workers-only-receive
    (
        "workers-only-receive",
        "a worker that may send",
        with_role("TranscodeImageFunctionRole", allowing("sqs:SendMessage", arn("sqs", "UsageQueue"))),
        "TranscodeImageFunctionRole",
        "sqs:SendMessage",
    ),
    (
        "workers-only-receive",
        "a worker with a managed policy",
        with_role("TranscodeImageFunctionRole", managed=("AdministratorAccess",)),
        "TranscodeImageFunctionRole",
        "AdministratorAccess",
    ),
    (
        "workers-only-receive",
        "a worker's role for others",
        with_role(
            "TranscodeImageFunctionRole",
            trusted=(allowing("sts:AssumeRole", "*", principals={"AWS": "arn:aws:iam::1:root"}),),
        ),
        "TranscodeImageFunctionRole",
        "may act as this role",
    ),
    # nobody-lists
    (
        "nobody-lists",
        "a function that may list every original",
        change_of("listings", "TranscodeImageFunctionRole", everything=frozenset({"OriginalsBucket"})),
        "TranscodeImageFunctionRole",
        "list the whole of OriginalsBucket",
    ),
    (
        "nobody-lists",
        "a function that does not know what is missing",
        change_of("listings", "TranscodeImageFunctionRole", nothing=frozenset({"OriginalsBucket"})),
        "TranscodeImageFunctionRole",
        "cannot tell a missing object of OriginalsBucket",
    ),
    # tls-only
    ("tls-only", "a queue", change_of("queues", "FastQueue", policy=()), "FastQueue", "TLS"),
    ("tls-only", "a topic", change_of("topics", "EventsTopic", policy=()), "EventsTopic", "TLS"),
    ("tls-only", "a bucket", change_of("buckets", "OriginalsBucket", policy=()), "OriginalsBucket", "TLS"),
    (
        "tls-only",
        "an exception for somebody",
        change_of(
            "queues", "FastQueue", policy=(replace(refusing("sqs:*"), principals={"AWS": "arn:aws:iam::1:root"}),)
        ),
        "FastQueue",
        "TLS",
    ),
    (
        "tls-only",
        "only what sends",
        change_of("queues", "FastQueue", policy=(refusing("sqs:SendMessage"),)),
        "FastQueue",
        "TLS",
    ),
    # queues-encrypted
    (
        "queues-encrypted",
        "nothing",
        change_of("queues", "FastQueue", is_encrypted=False),
        "FastQueue",
        "nothing encrypts it",
    ),
    (
        "queues-encrypted",
        "another key",
        all_of(ENCRYPTED_BY_OURS, change_of("queues", "FastQueue", key="alias/aws/sqs")),
        "FastQueue",
        "another key",
    ),
    # messages-signed
    ("messages-signed", "no secret", changed("secrets", MessageKey=None), "MessageKey", "no such secret"),
    (
        "messages-signed",
        "a secret that goes",
        change_of("secrets", "MessageKey", is_being_deleted=True),
        "MessageKey",
        "deleted",
    ),
    (
        "messages-signed",
        "a consumer without it",
        change_of("functions", "CountUsageFunction", variables={"COUNTED_EVENTS_TABLE": "counted"}),
        "CountUsageFunction",
        "no key",
    ),
    (
        "messages-signed",
        "another secret",
        change_of("functions", "CountUsageFunction", variables={"MESSAGE_KEY": "another"}),
        "CountUsageFunction",
        "something else",
    ),
    (
        "messages-signed",
        "a role that may not read it",
        change_of("roles", "CountUsageFunctionRole", statements=()),
        "CountUsageFunction",
        "may not read",
    ),
    # acknowledged-after-work
    (
        "acknowledged-after-work",
        "a queue",
        change_of("event_sources", "FastLane", reports_items=False),
        "FastLane",
        "ReportBatchItemFailures",
    ),
    (
        "acknowledged-after-work",
        "a stream",
        change_of("event_sources", "ImagesStream", reports_items=False),
        "ImagesStream",
        "ReportBatchItemFailures",
    ),
    # consumers-have-dead-letters
    (
        "consumers-have-dead-letters",
        "none",
        change_of("queues", "FastQueue", dead_letters=None),
        "FastQueue",
        "no dead-letter queue",
    ),
    (
        "consumers-have-dead-letters",
        "somebody's",
        change_of("queues", "FastQueue", dead_letters=arn("sqs", "somebodys")),
        "FastQueue",
        "not of this stack",
    ),
    (
        "consumers-have-dead-letters",
        "a stream",
        change_of("event_sources", "ImagesStream", failures=None),
        "ImagesStream",
        "destination",
    ),
    (
        "consumers-have-dead-letters",
        "a subscription",
        change_of(
            "topics",
            "EventsTopic",
            subscriptions=(replace(SOUND.topics["EventsTopic"].subscriptions[0], dead_letters=None),),
        ),
        "EventsTopic",
        "UsageQueue",
    ),
    # dead-letters-are-heard
    ("dead-letters-are-heard", "no alarm", changed("alarms", DeadLettersAlarm=None), "DeadLettersAlarm", "no alarm"),
    (
        "dead-letters-are-heard",
        "another metric",
        with_alarm("DeadLettersAlarm", metric="Others"),
        "DeadLettersAlarm",
        "no alarm",
    ),
    (
        "dead-letters-are-heard",
        "actions disabled",
        with_alarm("EventDeadLettersAlarm", is_acting=False),
        "EventDeadLettersAlarm",
        "disabled",
    ),
    ("dead-letters-are-heard", "no actions", CHILD, "DeadLettersAlarm", "no composite alarm"),
    (
        "dead-letters-are-heard",
        "a composite alarm that is disabled",
        all_of(CHILD, changed("alarms", IncidentAlarm=replace(COMPOSITE, is_acting=False))),
        "IncidentAlarm",
        "speaks for DeadLettersAlarm",
    ),
    (
        "dead-letters-are-heard",
        "a composite alarm without actions",
        all_of(CHILD, changed("alarms", IncidentAlarm=replace(COMPOSITE, actions=()))),
        "IncidentAlarm",
        "no action",
    ),
    (
        "dead-letters-are-heard",
        "a composite alarm of others",
        all_of(CHILD, changed("alarms", IncidentAlarm=replace(COMPOSITE, rule='ALARM("other-shop-DeadLettersAlarm")'))),
        "DeadLettersAlarm",
        "no composite alarm",
    ),
    (
        "dead-letters-are-heard",
        "somebody's topic",
        with_alarm("DeadLettersAlarm", actions=(arn("sns", "old"),)),
        "DeadLettersAlarm",
        "not of this stack",
    ),
    (
        "dead-letters-are-heard",
        "unconfirmed",
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
    (
        "dead-letters-are-heard",
        "SNS has deleted the subscription, which nobody had confirmed",
        parameters(AlarmEmail="b@example.com"),
        "CriticalAlarms",
        "b@example.com is not subscribed any more",
    ),
    (
        "dead-letters-are-heard",
        "CloudWatch may not publish",
        change_of("topics", "CriticalAlarms", policy=(refusing("sns:Publish"),)),
        "CriticalAlarms",
        "CloudWatch",
    ),
    (
        "dead-letters-are-heard",
        "a key that CloudWatch may not use",
        change_of("topics", "CriticalAlarms", key="alias/aws/sns"),
        "CriticalAlarms",
        "dropped silently",
    ),
    # retries-end
    ("retries-end", "too many", change_of("queues", "UsageQueue", max_receives=1000), "UsageQueue", "1,000 times"),
    ("retries-end", "a lane's too few", change_of("queues", "FastQueue", max_receives=4), "FastQueue", "only 4"),
    ("retries-end", "a consumer's only one", change_of("queues", "UsageQueue", max_receives=1), "UsageQueue", "only 1"),
    (
        "retries-end",
        "a stream's without end",
        change_of("event_sources", "ImagesStream", maximum_retries=-1, maximum_age_seconds=-1),
        "ImagesStream",
        "without end",
    ),
    (
        "retries-end",
        "a stream's after it has forgotten",
        change_of("event_sources", "ImagesStream", maximum_age_seconds=86_400),
        "ImagesStream",
        "forgets",
    ),
    ("retries-end", "none of a task", states(), "HoldBatchStateMachine", "not tried again"),
    (
        "retries-end",
        "steady",
        states(Retry=[{"BackoffRate": 1.0, "JitterStrategy": "FULL"}]),
        "HoldBatchStateMachine",
        "back off",
    ),
    ("retries-end", "in step", states(Retry=[{"BackoffRate": 2.0}]), "HoldBatchStateMachine", "jitter"),
    (
        "retries-end",
        "endless",
        states(Retry=[{"MaxAttempts": 99_999, "JitterStrategy": "FULL"}]),
        "HoldBatchStateMachine",
        "do not end",
    ),
    # consumers-are-idempotent
    (
        "consumers-are-idempotent",
        "another table",
        change_of("functions", "CountUsageFunction", variables={"COUNTED_EVENTS_TABLE": "old"}),
        "CountUsageFunction",
        "old",
    ),
    (
        "consumers-are-idempotent",
        "no table",
        changed("tables", IdempotencyTable=None),
        "IdempotencyTable",
        "no such table",
    ),
    # priority
    ("own-queues", "none", changed("queues", FastQueue=None), "FastQueue", "no such queue"),
    (
        "own-queues",
        "another lane's",
        change_of("functions", "SubmitImageFunction", variables={"FAST_QUEUE_URL": QUEUES["SlowQueue"].url}),
        "SubmitImageFunction",
        "lane fast",
    ),
    ("served-first", "nobody", changed("event_sources", FastLane=None), "FastQueue", "nothing takes"),
    ("served-first", "disabled", change_of("event_sources", "FastLane", is_enabled=False), "FastLane", "disabled"),
    (
        "served-first",
        "a window",
        change_of("event_sources", "FastLane", window_seconds=5),
        "FastLane",
        "waits 5 seconds",
    ),
    ("served-first", "a batch", change_of("event_sources", "FastLane", batch_size=10), "FastLane", "10 images at once"),
    (
        "reserved-concurrency",
        "too little",
        change_of("functions", "TranscodeImageFunction", reserved=19),
        "TranscodeImageFunction",
        "19 executions",
    ),
    (
        "reserved-concurrency",
        "too little of the account is left by other reservations",
        all_of(
            change_of("functions", "TranscodeImageFunction", reserved=None),
            lambda facts: replace(facts, concurrency={"limit": 1000, "unreserved": ENOUGH - 1}),
        ),
        "account",
        f"consumers may take {10 * len(NAMES)}, and a fifth is left for the API ({10 * len(NAMES) - 1})",
    ),
    # observability
    ("growth-is-told", "no alarm", changed("alarms", FreeTenantsShedAlarm=None), "FreeTenantsShedAlarm", "no alarm"),
    ("lag-is-watched", "no alarm", changed("alarms", EventsStuckAlarm=None), "EventsStuckAlarm", "no alarm"),
    (
        "lag-is-watched",
        "an alarm of that metric on another queue does not do",
        all_of(
            changed("alarms", MessagesStuckAlarm=None),
            changed("alarms", OtherAlarm=SOUND.alarms["MessagesStuckAlarm"]),
        ),
        "MessagesStuckAlarm",
        "no alarm",
    ),
    (
        "each-dead-letter-tells",
        "five ring it",
        with_alarm("DeadLettersAlarm", threshold=5),
        "DeadLettersAlarm",
        "does not ring",
    ),
    (
        "each-dead-letter-tells",
        "two periods ring it",
        with_alarm("DeadLettersAlarm", datapoints=2),
        "DeadLettersAlarm",
        "does not ring",
    ),
    (
        "each-dead-letter-tells",
        "more than one rings it",
        with_alarm("DeadLettersAlarm", comparison="GreaterThanThreshold"),
        "DeadLettersAlarm",
        "does not ring",
    ),
    (
        "each-dead-letter-tells",
        "the sweeper leaves it out",
        change_of("functions", "SweepDueImagesFunction", variables={"X": OF_LANES}),
        "UsageDeadLetters",
        "a quarter of an hour late",
    ),
    (
        "each-dead-letter-tells",
        "only the sweeper counts",
        all_of(
            with_alarm("DeadLettersAlarm", queues=frozenset(OF_LANES.split(","))),
            with_alarm("EventDeadLettersAlarm", queues=frozenset()),
        ),
        "UsageDeadLetters",
        "no alarm watches",
    ),
    (
        "each-dead-letter-tells",
        "no alarm on what a stream gave up",
        changed("queues", UnpublishedEvents=queue("UnpublishedEvents", retention_days=14)),
        "UnpublishedEvents",
        "no alarm watches",
    ),
    (
        "each-dead-letter-tells",
        "nobody tells before they expire",
        changed("alarms", DeadLettersExpiringAlarm=None),
        "DeadLettersExpiringAlarm",
        "no alarm",
    ),
    (
        "time-is-tracked",
        "no traces",
        all_of(
            parameters(Tracing="Active"),
            *(change_of("functions", name, is_traced=name != "SubmitImageFunction") for name in SOUND.functions),
        ),
        "SubmitImageFunction",
        "are not traced, with Tracing=Active",
    ),
    (
        "time-is-tracked",
        "traces that nobody asked for",
        change_of("functions", "SubmitImageFunction", is_traced=True),
        "SubmitImageFunction",
        "are traced, with Tracing=PassThrough",
    ),
    ("time-is-tracked", "no budget", changed("alarms", ImagesLateAlarm=None), "ImagesLateAlarm", "no alarm"),
    # operation
    (
        "redriving-is-described",
        "no section",
        with_alarm("ImagesGivenUpAlarm", description="It is so."),
        "ImagesGivenUpAlarm",
        "no section",
    ),
    (
        "redriving-is-described",
        "a section that is gone",
        with_alarm("ImagesGivenUpAlarm", description="See docs/runbook.md#gone."),
        "ImagesGivenUpAlarm",
        "#gone",
    ),
    (
        "redriving-is-described",
        "a runbook without it",
        lambda facts: replace(facts, checkout=replace(facts.checkout, runbook={"dead-letters": "Call somebody."})),
        "docs/runbook.md",
        "replay",
    ),
    (
        "redriving-is-described",
        "a redrive that failed",
        change_of("queues", "FastDeadLetters", failed_redrive="AccessDenied"),
        "FastDeadLetters",
        "AccessDenied",
    ),
    (
        "work-ends-in-time",
        "told otherwise",
        change_of("functions", "TranscodeImageFunction", variables={"VISIBILITY_SECONDS": "60"}),
        "TranscodeImageFunction",
        "after 60 seconds",
    ),
    (
        "work-ends-in-time",
        "sweeps that overlap",
        change_of("functions", "SweepDueImagesFunction", timeout_seconds=60),
        "SweepDueImagesFunction",
        "60",
    ),
    (
        "work-ends-in-time",
        "a consumer that is stopped earlier",
        change_of("functions", "CountUsageFunction", timeout_seconds=3),
        "CountUsageFunction",
        "stopped after 3",
    ),
    (
        "no-more-than-they-can",
        "no maximum",
        change_of("event_sources", "UsageEvents", maximum_concurrency=None),
        "UsageEvents",
        "maximum concurrency",
    ),
    (
        "no-more-than-they-can",
        "a larger batch",
        change_of("event_sources", "UsageEvents", batch_size=51),
        "UsageEvents",
        "51",
    ),
    (
        "no-more-than-they-can",
        "more images than time",
        change_of("event_sources", "SlowLane", batch_size=13),
        "SlowLane",
        "65 seconds",
    ),
    (
        "visibility-is-enough",
        "a timeout",
        change_of("functions", "CountUsageFunction", timeout_seconds=61),
        "UsageQueue",
        "366",
    ),
    (
        "visibility-is-enough",
        "a window",
        change_of("event_sources", "UsageEvents", window_seconds=1),
        "UsageQueue",
        "361",
    ),
    (
        "dead-letters-are-kept",
        "as long",
        change_of("queues", "FastDeadLetters", retention_seconds=345_600),
        "FastDeadLetters",
        "345,600",
    ),
    (
        "dead-letters-are-kept",
        "nearly gone",
        lambda facts: replace(facts, oldest_dead_letters={"FastDeadLetters": 12 * 86_400}),
        "FastDeadLetters",
        "12 days",
    ),
    (
        "reconciled",
        "no schedule",
        changed("rules", SweepDueImagesFunctionEveryMinute=None),
        "SweepDueImagesFunctionEveryMinute",
        "no such schedule",
    ),
    (
        "reconciled",
        "a schedule that is off",
        change_of("rules", "SweepDueImagesFunctionEveryMinute", is_enabled=False),
        "SweepDueImagesFunctionEveryMinute",
        "disabled",
    ),
    (
        "reconciled",
        "a schedule of nothing",
        change_of("rules", "SweepDueImagesFunctionEveryMinute", targets=()),
        "SweepDueImagesFunctionEveryMinute",
        "does not invoke",
    ),
    (
        "reconciled",
        "a silent sweeper",
        lambda facts: replace(facts, sweeps={"latest": NOW - 301_000}),
        "SweepDueImagesFunction",
        "5 minutes",
    ),
    (
        "reconciled",
        "a sweeper that was never heard",
        lambda facts: replace(facts, sweeps={}),
        "SweepDueImagesFunction",
        "an hour",
    ),
    ("reconciled", "no dead man's alarm", changed("alarms", SweeperSilentAlarm=None), "SweeperSilentAlarm", "no alarm"),
    # also
    (
        "alarms-are-heard",
        "any other",
        changed(
            "alarms",
            ApiErrorsAlarm=replace(
                SOUND.alarms["DeadLettersAlarm"], metric="5xx", namespace="AWS/ApiGateway", actions=()
            ),
        ),
        "ApiErrorsAlarm",
        "no action",
    ),
    (
        "everything-runs",
        "a failed deployment",
        lambda facts: replace(facts, status="UPDATE_ROLLBACK_COMPLETE"),
        "shop",
        "UPDATE_ROLLBACK_COMPLETE",
    ),
    (
        "everything-runs",
        "a disabled consumer",
        change_of("event_sources", "UsageEvents", is_enabled=False),
        "UsageEvents",
        "UsageQueue",
    ),
    (
        "everything-runs",
        "a function without concurrency",
        change_of("functions", "CountUsageFunction", reserved=0),
        "CountUsageFunction",
        "zero",
    ),
    (
        "everything-runs",
        "a broken function",
        change_of("functions", "CountUsageFunction", problem="its latest update failed"),
        "CountUsageFunction",
        "failed",
    ),
    (
        "nothing-is-public",
        "a bucket",
        change_of("buckets", "OriginalsBucket", is_closed=False),
        "OriginalsBucket",
        "not blocked",
    ),
    (
        "nothing-is-public",
        "a bucket's policy",
        change_of(
            "buckets", "OriginalsBucket", policy=(refusing("s3:*"), allowing("s3:GetObject", "*", principals=ANYBODY))
        ),
        "OriginalsBucket",
        "everybody",
    ),
    (
        "nothing-is-public",
        "a topic's policy",
        change_of("topics", "EventsTopic", policy=(allowing("sns:Subscribe", "*", principals={"AWS": "*"}),)),
        "EventsTopic",
        "everybody",
    ),
    ("nothing-is-public", "a route", changed("routes", **{"POST /images": "NONE"}), "POST /images", "no credential"),
    (
        "everything-is-encrypted",
        "nothing",
        change_of("buckets", "OriginalsBucket", algorithm=None),
        "OriginalsBucket",
        "nothing encrypts",
    ),
    (
        "everything-is-encrypted",
        "another key",
        all_of(ENCRYPTED_BY_OURS, change_of("tables", "ImagesTable", key=None)),
        "ImagesTable",
        "another key",
    ),
    ("everything-is-encrypted", "no key", parameters(Encryption="customer"), "Key", "no key of its own"),
    (
        "everything-is-encrypted",
        "a key that goes",
        all_of(ENCRYPTED_BY_OURS, changed("keys", Key=replace(ITS_KEY, is_enabled=False))),
        "Key",
        "disabled",
    ),
    (
        "everything-is-encrypted",
        "a key that stays the same",
        all_of(ENCRYPTED_BY_OURS, changed("keys", Key=replace(ITS_KEY, is_rotated=False))),
        "Key",
        "rotated",
    ),
    ("data-is-kept", "unprotected", change_of("tables", "ImagesTable", is_protected=False), "ImagesTable", "protected"),
    (
        "data-is-kept",
        "unrecoverable",
        change_of("tables", "ImagesTable", is_recoverable=False),
        "ImagesTable",
        "recovery",
    ),
    (
        "data-is-kept",
        "without versions",
        change_of("buckets", "OriginalsBucket", is_versioned=False),
        "OriginalsBucket",
        "versions",
    ),
    (
        "logs-end",
        "for ever",
        changed("log_groups", ReadImageLogs=LogGroup(retention_days=None)),
        "ReadImageLogs",
        "for ever",
    ),
    (
        "quotas",
        "near",
        changed(
            "quotas",
            **{"L-B99A9384": ServiceQuota(name="Concurrent executions", service="lambda", limit=1000, used=800)},
        ),
        "account",
        "800 of 1,000",
    ),
    (
        "settings",
        "a queue",
        change_of("queues", "FastQueue", visibility_seconds=30),
        "FastQueue",
        "VisibilityTimeout is 30",
    ),
    ("settings", "a resource that is missing", lambda facts: replace(facts, types={}), "FastQueue", "does not have"),
    (
        "settings",
        "a resource that is new",
        lambda facts: replace(facts, types={**facts.types, "Old": "AWS::SQS::Queue"}),
        "Old",
        "this checkout does not have",
    ),
    (
        "code",
        "another version",
        lambda facts: replace(
            facts,
            checkout=replace(facts.checkout, sources={"F": {"app.py": "1"}}),
            deployed_sources={"F": {"app.py": "2"}},
        ),
        "F",
        "another version",
    ),
    (
        "code",
        "a file that is missing",
        lambda facts: replace(
            facts, checkout=replace(facts.checkout, sources={"F": {"app.py": "1"}}), deployed_sources={"F": {}}
        ),
        "F",
        "not deployed",
    ),
    (
        "code",
        "a file that is new",
        lambda facts: replace(
            facts, checkout=replace(facts.checkout, sources={"F": {}}), deployed_sources={"F": {"app.py": "2"}}
        ),
        "F",
        "does not have it",
    ),
]
"""The check, what is wrong, and what its finding is about and says."""
