"""The facts about a sound stack, small enough to change one of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from darkroom.domain.kernel.lanes import LANES
from darkroom_cli.doctor import alarms
from darkroom_cli.doctor.drift import SETTINGS, SWITCHES
from darkroom_cli.doctor.facts import (
    AlarmFacts,
    Bucket,
    Checkout,
    EventSource,
    Facts,
    FunctionFacts,
    Listing,
    LogGroup,
    Queue,
    Role,
    Rule,
    SecretFacts,
    ServiceQuota,
    StateMachine,
    Statement,
    Subscription,
    TableFacts,
    TopicFacts,
)

DAY_MS = 24 * 60 * 60 * 1000
NOW = 20_000 * DAY_MS
ANYBODY = "*"
TLS_ONLY = {
    "sid": "RefusePlainHttp",
    "is_allowed": False,
    "resources": frozenset({"*"}),
    "principals": ANYBODY,
    "condition": {"Bool": {"aws:SecureTransport": "false"}},
}


def arn(service: str, name: str) -> str:
    return f"arn:aws:{service}:eu-west-1:123456789012:{name}"


def refusing(action: str) -> Statement:
    """The statement that refuses plain http."""
    return Statement(**TLS_ONLY | {"actions": frozenset({action})})  # type: ignore[arg-type]


def allowing(actions: str, on: str, **more: Any) -> Statement:
    """A statement that allows comma-separated actions on one resource."""
    return Statement(sid="", is_allowed=True, actions=frozenset(actions.split(",")), resources=frozenset({on}), **more)


def by_service(service: str, actions: str, condition: Mapping[str, Any]) -> Statement:
    """A statement of a resource's policy that lets a service in."""
    return allowing(actions, "*", principals={"Service": service}, condition=condition)


def queue(name: str, *, dead_letters: str | None = None, retention_days: int = 4, **more: Any) -> Queue:
    attributes: dict[str, Any] = {
        "arn": arn("sqs", name),
        "name": name,
        "url": f"https://sqs.eu-west-1.amazonaws.com/123456789012/{name}",
        "visibility_seconds": 360,
        "retention_seconds": retention_days * 86_400,
        "is_encrypted": True,
        "key": None,
        "policy": (refusing("sqs:*"),),
        "dead_letters": None if dead_letters is None else arn("sqs", dead_letters),
        "max_receives": None if dead_letters is None else 5,
    }
    return Queue(**attributes | more)


def role_arn(name: str) -> str:
    return f"arn:aws:iam::123456789012:role/{name}"


KEY = arn("secretsmanager", "secret:MessageKey-abc")
READ_KEY = allowing("secretsmanager:GetSecretValue", KEY)
OF_LAMBDA = allowing("sts:AssumeRole", "*", principals={"Service": "lambda.amazonaws.com"}, condition={"a": "b"})
NAMES = [lane.capitalize() for lane in LANES]

QUEUES = {
    **{f"{lane}Queue": queue(f"{lane}Queue", dead_letters=f"{lane}DeadLetters") for lane in NAMES},
    "UsageQueue": queue(
        "UsageQueue",
        dead_letters="UsageDeadLetters",
        policy=(refusing("sqs:*"), by_service("sns.amazonaws.com", "sqs:SendMessage", {"ArnEquals": {"a": "b"}})),
    ),
    **{f"{name}DeadLetters": queue(f"{name}DeadLetters", retention_days=14) for name in (*NAMES, "Usage")},
}

TAKE = "sqs:ReceiveMessage,sqs:DeleteMessage,sqs:GetQueueAttributes"
ROLES = {
    "SubmitImageFunctionRole": (allowing("sqs:SendMessage", arn("sqs", "FastQueue")), READ_KEY),
    "TranscodeImageFunctionRole": (
        *(allowing(TAKE, arn("sqs", f"{lane}Queue")) for lane in NAMES),
        READ_KEY,
    ),
    "CountUsageFunctionRole": (allowing(TAKE, arn("sqs", "UsageQueue")), READ_KEY),
    "SweepDueImagesFunctionRole": (
        allowing("sqs:ReceiveMessage,sqs:SendMessage", arn("sqs", "FastDeadLetters")),
        READ_KEY,
    ),
}

VARIABLES: Mapping[str, Mapping[str, str]] = {
    "SubmitImageFunction": {f"{lane.upper()}_QUEUE_URL": QUEUES[f"{lane}Queue"].url for lane in NAMES},
    "TranscodeImageFunction": {"IDEMPOTENCY_TABLE": "idempotency", "VISIBILITY_SECONDS": "360"},
    "CountUsageFunction": {"COUNTED_EVENTS_TABLE": "counted"},
    "SweepDueImagesFunction": {
        "DEAD_LETTER_QUEUES": ",".join(queue.url for name, queue in QUEUES.items() if name.endswith("DeadLetters"))
    },
}


def function(name: str) -> FunctionFacts:
    return FunctionFacts(
        arn=arn("lambda", f"function:{name}"),
        role=role_arn(f"{name}Role"),
        timeout_seconds=50 if name == "SweepDueImagesFunction" else 60,
        memory_mb=512,
        runtime="python3.13",
        handler="app.handler",
        variables={"MESSAGE_KEY": KEY, **VARIABLES[name]},
        log_group=f"/logs/{name}",
        is_traced=False,
    )


def table(name: str, **more: Any) -> TableFacts:
    return TableFacts(
        **{"arn": arn("dynamodb", name), "name": name, "stream_arn": None, "is_protected": True, "is_recoverable": True}
        | more
    )


def mapping(function_name: str, source: str, **more: Any) -> EventSource:
    attributes: dict[str, Any] = {
        "function": function_name,
        "source": source,
        "is_queue": True,
        "is_enabled": True,
        "batch_size": 1,
        "window_seconds": 0,
        "reports_items": True,
        "maximum_concurrency": 10,
    }
    return EventSource(**attributes | more)


SOURCES = {
    **{
        f"{name.capitalize()}Lane": mapping(
            "TranscodeImageFunction", f"{name.capitalize()}Queue", batch_size=lane.batch_size
        )
        for name, lane in LANES.items()
    },
    "UsageEvents": mapping("CountUsageFunction", "UsageQueue", batch_size=50, maximum_concurrency=2),
    "ImagesStream": mapping(
        "SubmitImageFunction",
        "ImagesTable",
        is_queue=False,
        maximum_concurrency=None,
        maximum_retries=10_000,
        maximum_age_seconds=79_200,
        failures=arn("sqs", "UnpublishedEvents"),
    ),
    "CountedImages": mapping(
        "CountBatchesFunction",
        "ImagesTable",
        is_queue=False,
        maximum_concurrency=None,
        maximum_age_seconds=3600,
    ),
}

CRITICAL = TopicFacts(
    arn=arn("sns", "CriticalAlarms"),
    policy=(refusing("sns:Publish"), by_service("cloudwatch.amazonaws.com", "sns:Publish", {"a": {"b": "c"}})),
    key=None,
    subscriptions=(Subscription(protocol="email", endpoint="on-call@example.com", is_confirmed=True),),
)
EVENTS = TopicFacts(
    arn=arn("sns", "EventsTopic"),
    policy=(refusing("sns:Publish"),),
    key=None,
    subscriptions=(
        Subscription(
            protocol="sqs",
            endpoint=arn("sqs", "UsageQueue"),
            is_confirmed=True,
            dead_letters=arn("sqs", "UsageDeadLetters"),
        ),
    ),
)


def alarm(watch: alarms.AlarmWatch) -> AlarmFacts:
    return AlarmFacts(
        name=f"shop-{watch.alarm}",
        description="It is so. See docs/runbook.md#dead-letters.",
        actions=(CRITICAL.arn,),
        is_acting=True,
        namespace="Darkroom/shop" if watch.is_own else "AWS/SQS",
        metric=watch.metric,
        queues=frozenset(queue.name for name, queue in QUEUES.items() if name.endswith("DeadLetters")),
        comparison="GreaterThanOrEqualToThreshold",
        threshold=1,
        period_seconds=60,
        periods=1,
        datapoints=1,
        missing_data="notBreaching",
    )


def policies(statements: tuple[Statement, ...]) -> list[dict[str, Any]]:
    """The statements as a template has them."""
    return [
        {
            "PolicyDocument": {
                "Statement": [
                    {"Action": sorted(statement.actions), "Resource": sorted(statement.resources)}
                    for statement in statements
                ]
            }
        }
    ]


SOUND = Facts(
    name="shop",
    is_local=False,
    now=NOW,
    updated_at=NOW - 30 * DAY_MS,
    status="UPDATE_COMPLETE",
    parameters={"Access": "keys", "Environment": "prod", "Encryption": "aws", "Tracing": "PassThrough"},
    types={"FastQueue": "AWS::SQS::Queue"},
    checkout=Checkout(
        types={"FastQueue": "AWS::SQS::Queue"},
        resources={
            "FastQueue": {
                "VisibilityTimeout": 360,
                "MessageRetentionPeriod": 345_600,
                "RedrivePolicy": {"deadLetterTargetArn": arn("sqs", "FastDeadLetters"), "maxReceiveCount": 5},
            },
            "UsageEvents": {"BatchSize": 50},
            "CountUsageFunction": {"Timeout": 60},
            "ImagesTable": {
                "DeletionProtectionEnabled": True,
                "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
            },
            **{name: {"Policies": policies(statements)} for name, statements in ROLES.items()},
        },
        runbook={"dead-letters": "./darkroom dlq replay"},
    ),
    deployed={},
    queues=QUEUES,
    event_sources=SOURCES,
    functions={name: replace(function(name), reserved=10 * len(LANES)) for name in VARIABLES},
    roles={
        name: Role(arn=role_arn(name), statements=statements, trusted=(OF_LAMBDA,))
        for name, statements in ROLES.items()
    },
    alarms={watch.alarm: alarm(watch) for watch in alarms.OF_THE_CHECKLIST},
    topics={"CriticalAlarms": CRITICAL, "EventsTopic": EVENTS},
    listings={"TranscodeImageFunctionRole": Listing(everything=frozenset(), nothing=frozenset())},
    buckets={
        "OriginalsBucket": Bucket(
            name="originals", policy=(refusing("s3:*"),), is_closed=True, algorithm="AES256", is_versioned=True
        )
    },
    tables={
        "ImagesTable": table("images"),
        "IdempotencyTable": table("idempotency"),
        "CountedEventsTable": table("counted"),
    },
    secrets={"MessageKey": SecretFacts(arn=KEY, changed_at=NOW - 90 * DAY_MS)},
    rules={
        "SweepDueImagesFunctionEveryMinute": Rule(
            schedule="rate(1 minute)", is_enabled=True, targets=(arn("lambda", "function:SweepDueImagesFunction"),)
        )
    },
    log_groups={"ReadImageLogs": LogGroup(retention_days=30)},
    state_machines={
        "HoldBatchStateMachine": StateMachine(
            arn=arn("states", "stateMachine:hold"),
            name="hold",
            definition={
                "States": {
                    "Hold": {"Type": "Wait"},
                    "Release": {
                        "Type": "Task",
                        "Retry": [{"ErrorEquals": ["Unreadable"], "MaxAttempts": 0}, {"JitterStrategy": "FULL"}],
                    },
                }
            },
        )
    },
    routes={"GET /images": "CUSTOM", "GET /openapi.json": "NONE"},
    api_keys={},
    keys={},
    quotas={"L-B99A9384": ServiceQuota(name="Concurrent executions", service="lambda", limit=1000, used=100)},
    concurrency={"limit": 1000, "unreserved": 900},
    sweeps={"latest": NOW - 60_000},
    oldest_dead_letters={"FastDeadLetters": 86_400},
    p99_seconds={"TranscodeImageFunction": 45, "fast": 29, "slow": 172_800},
    deployed_sources={},
)
"""It is some day in 2024, 00:00 UTC."""

GROUPS = {group: kind for table in (SETTINGS, SWITCHES) for kind, (group, _) in table.items()} | {
    "alarms": "AWS::CloudWatch::Alarm",
    "buckets": "AWS::S3::Bucket",
    "topics": "AWS::SNS::Topic",
    "roles": "AWS::IAM::Role",
    "state_machines": "AWS::StepFunctions::StateMachine",
    "secrets": "AWS::SecretsManager::Secret",
    "keys": "AWS::KMS::Key",
    "routes": "AWS::ApiGatewayV2::Api",
}


def deployed(facts: Facts, **properties: Any) -> Facts:
    """The facts of a stack that was deployed by this checkout; `properties` are what its template says of resources."""
    kinds = {name: kind for group, kind in GROUPS.items() for name in (*getattr(SOUND, group), *getattr(facts, group))}
    types = {**kinds, "Api": "AWS::ApiGatewayV2::Api"}
    resources = {**{name: {} for name in types}, **SOUND.checkout.resources, **properties}
    written = replace(facts.checkout, types=types, resources=resources)
    return replace(facts, types=types, checkout=written, deployed=resources)
