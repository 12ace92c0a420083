"""`darkroom doctor` on a running stack: nothing is wrong with a sound one, and each planted defect is found.

A defect is planted by the same calls with which somebody would cause it, and undone at the end of its test.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from darkroom_cli.doctor import alarms
from darkroom_cli.doctor.checks import REPAIR, REVERT, CheckResult, CheckStatus, judge
from darkroom_cli.doctor.collect import READING, gather
from darkroom_cli.doctor.facts import Facts
from darkroom_cli.doctor.work import CHECKLIST, CHECKS
from darkroom_cli.stack.operators import Stack, open_stack
from tests.local.local_stack import PHOTO, LocalStack, document_in, wait_until

pytestmark = pytest.mark.promise("doctor-defects")

type Found = set[tuple[str, str, str]]
"""What is wrong: the check's name, the subject and the problem."""

PRODUCTION_ONLY = {"reserved-concurrency", "dead-letters-are-heard", "nothing-is-public"}
"""What a local stack need not have, and a production stack must."""


@dataclass(kw_only=True)
class Patient:
    """A stack, the calls that doctor makes to it, and what it knows and finds before anything is planted."""

    stack: Stack
    known: Facts
    calls: set[str]
    sound: Found

    def client(self, service: str) -> Any:
        """A client that may change something: not one of doctor's."""
        return self.changing(service)

    changing: Callable[[str], Any]

    def examined(self) -> list[CheckResult]:
        """What each check says about it now."""
        return judged(gather(self.stack))

    def physical(self, logical_id: str) -> str:
        """A resource's physical id."""
        return self.stack.physical_id(logical_id)


def judged(facts: Facts, *, production: bool = False) -> list[CheckResult]:
    """What each check says about these facts."""
    results = [judge(check, facts, production=production) for check in CHECKS]
    assert [result.reason for result in results if result.reason is not None] == []
    return results


def findings_of(results: list[CheckResult]) -> Found:
    """What is wrong by these results."""
    return {(result.check.name, finding.subject, finding.problem) for result in results for finding in result.findings}


@pytest.fixture(scope="module")
def patient(stack: LocalStack) -> Patient:
    """The stack, after its first examination."""
    opened = open_stack(None, None, environment={"DARKROOM_STATE_DIR": str(stack.state)})
    calls: set[str] = set()

    def record(model: Any, **_: object) -> None:
        calls.add(model.name)

    ordinary = opened.client

    def recording(service: str) -> Any:
        client = ordinary(service)
        client.meta.events.register("before-call", record, unique_id="recording")
        return client

    object.__setattr__(opened, "client", recording)
    known = gather(opened)
    return Patient(stack=opened, changing=stack.client, calls=calls, known=known, sound=findings_of(judged(known)))


def test_a_sound_stack_has_nothing_wrong(patient: Patient, stack: LocalStack) -> None:
    assert patient.sound == set()
    ran = stack.darkroom("doctor")
    assert ran.returncode == 0, ran.stdout
    for check in CHECKLIST:
        assert check.question in ran.stdout


def test_every_line_is_checked_or_answered_by_a_decision_that_is_named(stack: LocalStack) -> None:
    document = document_in(stack.darkroom("doctor", "--json").stdout)
    lines = {check.name for check in CHECKLIST}
    assert len(lines) == 27
    answered = {check["name"]: check for check in document["checks"] if check["name"] in lines}
    assert answered.keys() == lines
    decided = {name for name, check in answered.items() if check["status"] == CheckStatus.DECIDED}
    assert decided | planted_lines() == lines, "a defect of each other line is planted below"
    assert all(answered[name]["decisions"] for name in decided)


def test_it_only_calls_what_reads(patient: Patient) -> None:
    assert len(patient.calls) > 20
    assert {name for name in patient.calls if not READING.match(name)} == set()


def test_a_production_stack_must_have_more(patient: Patient) -> None:
    more = findings_of(judged(patient.known, production=True)) - patient.sound
    assert {name for name, _, _ in more} == PRODUCTION_ONLY


# ── Defects ──────────────────────────────────────────────────────────────────────────────────────────────────────────

type Plant = Callable[[Patient], AbstractContextManager[None]]


def queue_with(queue: str, **attributes: str) -> Plant:
    """A queue with other attributes."""

    @contextmanager
    def plant(patient: Patient) -> Iterator[None]:
        sqs, url = patient.client("sqs"), patient.physical(queue)
        before = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        sqs.set_queue_attributes(QueueUrl=url, Attributes=attributes)
        try:
            yield
        finally:
            sqs.set_queue_attributes(QueueUrl=url, Attributes={name: before.get(name, "") for name in attributes})

    return plant


def undone(do: Callable[[Patient], object], undo: Callable[[Patient], object]) -> Plant:
    """What one call does and another one undoes."""

    @contextmanager
    def plant(patient: Patient) -> Iterator[None]:
        do(patient)
        try:
            yield
        finally:
            undo(patient)

    return plant


@contextmanager
def anybody_may_take(patient: Patient) -> Iterator[None]:
    """A queue's policy that lets everybody receive, besides what it says."""
    sqs, url = patient.client("sqs"), patient.physical("HoldQueue")
    before = json.loads(sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["Policy"])["Attributes"]["Policy"])
    more = {"Effect": "Allow", "Principal": "*", "Action": ["sqs:SendMessage", "sqs:ReceiveMessage"], "Resource": "*"}
    with queue_with("HoldQueue", Policy=json.dumps({**before, "Statement": [*before["Statement"], more]}))(patient):
        yield


def receives_at_most(queue: str, times: int) -> Plant:
    """A queue whose messages are dead letters after so many receives."""

    @contextmanager
    def plant(patient: Patient) -> Iterator[None]:
        sqs, url = patient.client("sqs"), patient.physical(queue)
        before = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]["RedrivePolicy"]
        with queue_with(queue, RedrivePolicy=json.dumps(json.loads(before) | {"maxReceiveCount": times}))(patient):
            yield

    return plant


def role_that_may(role: str, action: str, queue: str) -> Plant:
    """A role with one more statement."""

    def planted(patient: Patient) -> dict[str, str]:
        return {"RoleName": patient.physical(role), "PolicyName": "planted"}

    def allow(patient: Patient) -> None:
        statement = {"Effect": "Allow", "Action": action, "Resource": patient.known.queues[queue].arn}
        document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        patient.client("iam").put_role_policy(**planted(patient), PolicyDocument=document)

    return undone(allow, lambda patient: patient.client("iam").delete_role_policy(**planted(patient)))


@contextmanager
def may_list_all_originals(patient: Patient) -> Iterator[None]:
    """The worker's statement with the prefix of all originals."""
    iam, role = patient.client("iam"), patient.physical("TranscodeImageFunctionRole")
    (name,) = iam.list_role_policies(RoleName=role)["PolicyNames"]
    before = json.dumps(iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"])
    after = before.replace(f"originals/{'?' * 26}", "originals/*")
    iam.put_role_policy(RoleName=role, PolicyName=name, PolicyDocument=after)
    try:
        yield
    finally:
        iam.put_role_policy(RoleName=role, PolicyName=name, PolicyDocument=before)


def function_with(function: str, **settings: Any) -> Plant:
    """A function with another configuration; `Variables` are added to its own, and removed where they are None."""

    @contextmanager
    def plant(patient: Patient) -> Iterator[None]:
        lambda_, name = patient.client("lambda"), patient.physical(function)
        before = lambda_.get_function_configuration(FunctionName=name)
        changed = dict(settings)
        variables = changed.pop("Variables", None)
        if variables is not None:
            merged = {**before["Environment"]["Variables"], **variables}
            changed["Environment"] = {"Variables": {key: value for key, value in merged.items() if value is not None}}
        lambda_.update_function_configuration(FunctionName=name, **changed)
        updated(lambda_, name)
        try:
            yield
        finally:
            old = {key: before[key] for key in changed if key != "Environment"}
            if "Environment" in changed:
                old["Environment"] = {"Variables": before["Environment"]["Variables"]}
            lambda_.update_function_configuration(FunctionName=name, **old)
            updated(lambda_, name)

    return plant


def updated(lambda_: Any, name: str) -> None:
    """Lambda answers before it has applied an update."""
    wait_until(
        lambda: lambda_.get_function_configuration(FunctionName=name).get("LastUpdateStatus") != "InProgress",
        f"{name} is updated",
    )


@contextmanager
def fast_images_in_the_slow_lane(patient: Patient) -> Iterator[None]:
    """A sender that sends one lane's images to the other."""
    slow = patient.physical("SlowQueue")
    with function_with("SubmitImageFunction", Variables={"FAST_QUEUE_URL": slow})(patient):
        yield


one_reserved_execution = undone(
    lambda patient: patient.client("lambda").put_function_concurrency(
        FunctionName=patient.physical("TranscodeImageFunction"), ReservedConcurrentExecutions=1
    ),
    lambda patient: patient.client("lambda").delete_function_concurrency(
        FunctionName=patient.physical("TranscodeImageFunction")
    ),
)
"""A worker for which fewer executions are reserved than its lanes may have workers."""


def mapping_with(mapping: str, **settings: Any) -> Plant:
    """A mapping with other settings."""

    @contextmanager
    def plant(patient: Patient) -> Iterator[None]:
        lambda_, uuid = patient.client("lambda"), patient.physical(mapping)
        before = lambda_.get_event_source_mapping(UUID=uuid)
        lambda_.update_event_source_mapping(UUID=uuid, **settings)
        try:
            yield
        finally:
            old = {name: True if name == "Enabled" else before[name] for name in settings}
            lambda_.update_event_source_mapping(UUID=uuid, **old)

    return plant


ALARM_SETTINGS = (
    *("AlarmName", "AlarmDescription", "ActionsEnabled", "OKActions", "AlarmActions", "InsufficientDataActions"),
    *("MetricName", "Namespace", "Statistic", "Dimensions", "Period", "Metrics", "EvaluationPeriods"),
    *("DatapointsToAlarm", "Threshold", "ComparisonOperator", "TreatMissingData"),
)


@contextmanager
def restored_alarms(patient: Patient, watch: alarms.AlarmWatch) -> Iterator[list[dict[str, Any]]]:
    """The settings of the alarms on a metric, which are put back at the end."""
    cloudwatch = patient.client("cloudwatch")
    names = [alarm.name for alarm in alarms.watching(patient.known, watch).values()]
    assert names
    described = cloudwatch.describe_alarms(AlarmNames=names)["MetricAlarms"]
    before = [{name: alarm[name] for name in ALARM_SETTINGS if alarm.get(name) is not None} for alarm in described]
    try:
        yield before
    finally:
        for alarm in before:
            cloudwatch.put_metric_alarm(**alarm)


def without_alarm(watch: alarms.AlarmWatch) -> Plant:
    """A stack whose alarms on a metric are gone."""

    @contextmanager
    def plant(patient: Patient) -> Iterator[None]:
        with restored_alarms(patient, watch) as before:
            patient.client("cloudwatch").delete_alarms(AlarmNames=[alarm["AlarmName"] for alarm in before])
            yield

    return plant


def alarm_with(watch: alarms.AlarmWatch, **settings: Any) -> Plant:
    """Alarms on a metric with other settings."""

    @contextmanager
    def plant(patient: Patient) -> Iterator[None]:
        with restored_alarms(patient, watch) as before:
            for alarm in before:
                patient.client("cloudwatch").put_metric_alarm(**{**alarm, **settings})
            yield

    return plant


def incidents(patient: Patient) -> list[str]:
    return [patient.physical("IncidentAlarm").rpartition(":")[2]]


silent_incidents = undone(
    lambda patient: patient.client("cloudwatch").disable_alarm_actions(AlarmNames=incidents(patient)),
    lambda patient: patient.client("cloudwatch").enable_alarm_actions(AlarmNames=incidents(patient)),
)
"""The composite alarm that speaks for all critical ones, with its actions disabled."""


@contextmanager
def unconfirmed_address(patient: Patient) -> Iterator[None]:
    """An address that was told of alarms once, and never confirmed that it wants to be."""
    sns, topics = patient.client("sns"), alarms.audience(patient.known, alarms.DEAD_LETTERS)
    arns = [
        sns.subscribe(
            TopicArn=patient.physical(topic), Protocol="email", Endpoint="a@example.com", ReturnSubscriptionArn=True
        )["SubscriptionArn"]
        for topic in topics
    ]
    try:
        yield
    finally:
        for arn in arns:
            sns.unsubscribe(SubscriptionArn=arn)


def disabled_schedule(rule: str) -> Plant:
    """A schedule that is switched off."""
    return undone(
        lambda patient: patient.client("events").disable_rule(Name=patient.physical(rule)),
        lambda patient: patient.client("events").enable_rule(Name=patient.physical(rule)),
    )


@contextmanager
def open_bucket(patient: Patient) -> Iterator[None]:
    """A bucket whose public access is not blocked."""
    s3, name = patient.client("s3"), patient.physical("OutputsBucket")
    before = s3.get_public_access_block(Bucket=name)["PublicAccessBlockConfiguration"]
    s3.delete_public_access_block(Bucket=name)
    try:
        yield
    finally:
        s3.put_public_access_block(Bucket=name, PublicAccessBlockConfiguration=before)


def recover(patient: Patient, *, enabled: bool) -> None:
    patient.client("dynamodb").update_continuous_backups(
        TableName=patient.physical("ImagesTable"),
        PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": enabled},
    )


unrecoverable_table = undone(partial(recover, enabled=False), partial(recover, enabled=True))
"""A table without point-in-time recovery."""

endless_log = undone(
    lambda patient: patient.client("logs").delete_retention_policy(logGroupName=patient.physical("ReadImageLogs")),
    lambda patient: patient.client("logs").put_retention_policy(
        logGroupName=patient.physical("ReadImageLogs"), retentionInDays=30
    ),
)
"""A log that keeps its lines for ever."""


WATCHES = {watch.alarm: watch for watch in alarms.OF_THE_CHECKLIST}
DEAD_LETTERS, LATE, DELIVERIES = (
    WATCHES[name] for name in ("DeadLettersAlarm", "ImagesLateAlarm", "DeliveriesLateAlarm")
)

DEFECTS: dict[str, tuple[Plant, set[str]]] = {
    "a queue whose messages anybody may receive": (anybody_may_take, {"senders-only-send"}),
    "a sender that may receive": (
        role_that_may("SubmitImageFunctionRole", "sqs:ReceiveMessage", "FastQueue"),
        {"senders-only-send", "settings"},
    ),
    "a worker that may send to a queue that it does not need": (
        role_that_may("TranscodeImageFunctionRole", "sqs:SendMessage", "HoldQueue"),
        {"workers-only-receive"},
    ),
    "a worker that may list every original": (may_list_all_originals, {"nobody-lists"}),
    "a queue that takes plain http": (queue_with("FastDeadLetters", Policy=""), {"tls-only"}),
    "a queue that is not encrypted": (queue_with("SlowQueue", SqsManagedSseEnabled="false"), {"queues-encrypted"}),
    "a function without the key for messages": (
        function_with("HoldImagesFunction", Variables={"MESSAGE_KEY": None}),
        {"messages-signed", "settings"},
    ),
    "a worker whose reports of failures are ignored": (
        mapping_with("TranscodeImageFunctionSlowLane", FunctionResponseTypes=[]),
        {"acknowledged-after-work"},
    ),
    "a consumer without dead letters": (
        queue_with("UsageQueue", RedrivePolicy=""),
        {"consumers-have-dead-letters", "settings"},
    ),
    "an address that has not confirmed": (unconfirmed_address, {"dead-letters-are-heard"}),
    "an alarm of dead letters without actions": (
        alarm_with(DEAD_LETTERS, ActionsEnabled=False),
        {"dead-letters-are-heard"},
    ),
    "retries that hardly end": (receives_at_most("HoldQueue", 1000), {"retries-end", "settings"}),
    "retries that end too early": (receives_at_most("FastQueue", 1), {"retries-end", "settings"}),
    "a consumer that remembers elsewhere": (
        function_with("CountUsageFunction", Variables={"COUNTED_EVENTS_TABLE": "another"}),
        {"consumers-are-idempotent", "settings"},
    ),
    "a lane in another lane's queue": (fast_images_in_the_slow_lane, {"own-queues", "settings"}),
    "a lane without workers": (mapping_with("TranscodeImageFunctionFastLane", Enabled=False), {"served-first"}),
    "less capacity than the lanes may take": (one_reserved_execution, {"reserved-concurrency", "settings"}),
    "growth that rings no alarm": (without_alarm(LATE), {"growth-is-told", "time-is-tracked"}),
    "lag that rings no alarm": (without_alarm(DELIVERIES), {"lag-is-watched"}),
    "a first dead letter that rings no alarm": (
        alarm_with(DEAD_LETTERS, Threshold=5.0),
        {"each-dead-letter-tells", "settings"},
    ),
    "the one alarm that pages without actions": (
        silent_incidents,
        {
            "dead-letters-are-heard",
            "growth-is-told",
            "lag-is-watched",
            "time-is-tracked",
            "reconciled",
            "alarms-are-heard",
        },
    ),
    "a function whose traces nobody asked for": (
        function_with("ReadImageFunction", TracingConfig={"Mode": "Active"}),
        {"time-is-tracked"},
    ),
    "an alarm that does not say where to read on": (
        alarm_with(DEAD_LETTERS, AlarmDescription="Something is wrong."),
        {"redriving-is-described"},
    ),
    "a worker that expects its messages back earlier": (
        function_with("TranscodeImageFunction", Variables={"VISIBILITY_SECONDS": "60"}),
        {"work-ends-in-time", "settings"},
    ),
    "a worker that takes too much at once": (
        mapping_with("AcceptUploadFunctionUploadQueue", BatchSize=5),
        {"no-more-than-they-can", "settings"},
    ),
    "a message that comes again while it is worked on": (
        queue_with("UsageQueue", VisibilityTimeout="60"),
        {"visibility-is-enough", "settings"},
    ),
    "dead letters that are deleted early": (
        queue_with("FastDeadLetters", MessageRetentionPeriod="345600"),
        {"dead-letters-are-kept", "settings"},
    ),
    "a sweeper that is switched off": (disabled_schedule("SweepDueImagesFunctionEveryMinute"), {"reconciled"}),
    # What the checklist does not ask.
    "another alarm without actions": (
        alarm_with(alarms.AlarmWatch(alarm="ApiErrorsAlarm", metric="5xx", is_own=False), ActionsEnabled=False),
        {"alarms-are-heard"},
    ),
    "an archiver that is switched off": (
        disabled_schedule("ArchiveDeadLettersFunctionEverySixHours"),
        {"everything-runs"},
    ),
    "a consumer that is switched off": (
        mapping_with("CountUsageFunctionUsageQueue", Enabled=False),
        {"everything-runs"},
    ),
    "a bucket that may be public": (open_bucket, {"nothing-is-public"}),
    "a table that cannot be recovered": (unrecoverable_table, {"data-is-kept"}),
    "a log without an end": (endless_log, {"logs-end", "settings"}),
    "a function with other memory": (function_with("ReadImageFunction", MemorySize=1024), {"settings"}),
}
"""Each defect, and the checks that report it: its own line, and those that rightly follow."""


def planted_lines() -> set[str]:
    lines = {check.name for check in CHECKLIST}
    return {name for _, reported in DEFECTS.values() for name in reported if name in lines}


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_planted_defect_is_found_and_nothing_else(patient: Patient, defect: str) -> None:
    plant, reported = DEFECTS[defect]
    with plant(patient):
        results = patient.examined()
        findings = findings_of(results) - patient.sound
        assert {name for name, _, _ in findings} == reported, findings
        advised = {text for result in results for text in result.advice}
        assert advised <= {REPAIR, REVERT} or defect in NOT_OF_THE_TEMPLATE, "deploying again changes nothing"


NOT_OF_THE_TEMPLATE = {"an address that has not confirmed"}

AT_ONCE = (
    function_with("TranscodeImageFunction", Variables={"ORIGINALS_BUCKET": "no-such-bucket"}),
    mapping_with("CountUsageFunctionUsageQueue", Enabled=False),
    queue_with("UsageQueue", VisibilityTimeout="60"),
    queue_with("FastQueue", RedrivePolicy=""),
    alarm_with(DEAD_LETTERS, ActionsEnabled=False, Threshold=5.0),
    silent_incidents,
    disabled_schedule("ArchiveDeadLettersFunctionEverySixHours"),
    unrecoverable_table,
    endless_log,
)


def test_a_wrong_bucket_and_all_that_was_changed_by_hand_is_found_and_set_back_and_the_image_is_developed(
    patient: Patient, stack: LocalStack
) -> None:
    with ExitStack() as planted:
        for plant in AT_ONCE:
            planted.enter_context(plant(patient))
        uploaded = stack.darkroom("upload", PHOTO, "--variants", "thumb", "--json").stdout
        image_id = document_in(uploaded)["uploads"][0]["image"]["id"]
        table, key = patient.physical("ImagesTable"), {"image_id": {"S": image_id}}

        def row() -> str:
            return json.dumps(stack.client("dynamodb").get_item(TableName=table, Key=key)["Item"])

        wait_until(lambda: "no-such-bucket" in row(), "an attempt has failed")
        retrying = document_in(stack.darkroom("dlq", "ls", "--json").stdout)["retrying"]
        assert {defect["fingerprint"].rpartition("/")[2] for defect in retrying} == {"no-such-bucket"}
        assert "no-such-bucket" in stack.darkroom("top", "--json").stdout
        examined = stack.darkroom("doctor")
        assert "TranscodeImageFunction: its variable ORIGINALS_BUCKET is no-such-bucket" in examined.stdout
        assert "./darkroom doctor --repair" in examined.stdout and "eploy this checkout" not in examined.stdout
        repaired = stack.darkroom("doctor", "--repair", "--yes")
        assert repaired.returncode == 0 and "Changed 11 settings" in repaired.stdout, repaired
        assert findings_of(patient.examined()) == patient.sound
        wait_until(lambda: '"done"' in row(), "the image is developed")
    (action,) = document_in(stack.darkroom("audit", "--action", "repair", "--json").stdout)["actions"]
    assert action["state"] == "done" and len(action["targets"]) == 11
