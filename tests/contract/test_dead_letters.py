"""The ports of dead letters, fake and adapter by one suite; how a stack's queues are found; the archiver's handler.

moto has no move tasks. The SDK's events answer their three calls here, after its validation, and move moto's messages;
local_aws/tests/test_shims_queues.py expects the same of the embedded stack.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import boto3
import pytest
import time_machine
from botocore.config import Config
from botocore.exceptions import ClientError, ConnectionClosedError, EndpointConnectionError, NoCredentialsError

from darkroom.aws.dead_letters.dead_letters import DeadLetterArchive, DeadLetterQueues
from darkroom.domain.dead_letters.dead_letter import ARCHIVED_FROM_SECONDS, explanation_of
from darkroom.domain.images.image import message_for
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.message import Message, read_message
from darkroom.ports.dead_letters import Archive, DeadLetters
from darkroom.ports.kernel import UnreadableRow
from darkroom_cli.operator.aws.redrives import DeadLetterRedrives
from darkroom_cli.operator.domain.redrives import RedriveStatus
from darkroom_cli.operator.ports import Redrives
from darkroom_cli.stack import operators as stacks
from darkroom_client.client import ApiError
from tests.contract.conftest import REGION, Aws
from tests.contract.functions import call, load
from tests.support.dead_letters import given_up
from tests.support.fakes import FakeDeadLetters, FakeLanes
from tests.support.fakes.damage import flipped
from tests.support.fakes.dead_letters import FakeArchive, FakeRedrives
from tests.support.fakes.messages import SIGNER

FAILED = given_up(1)


def dead_letters_of(kind: str, aws: Aws) -> DeadLetters:
    sqs = boto3.client("sqs")
    return FakeDeadLetters() if kind == "fake" else DeadLetterQueues(sqs, sqs, aws.dead_letter_urls, SIGNER)


def put(dead_letters: DeadLetters, *numbers: int) -> None:
    for number in numbers:
        dead_letters.put("slow", message_for(given_up(number)), explanation_of(given_up(number)))


# ── The queues ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_dead_letter_comes_back_as_it_was_put(kind: str, aws: Aws) -> None:
    dead_letters = dead_letters_of(kind, aws)
    put(dead_letters, 1)
    taken = dead_letters.take("slow", 5)
    (dead_letter,) = taken.dead_letters
    assert (taken.complete, dead_letter.queue) == (True, "slow")
    assert read_message(dead_letter.body) == message_for(FAILED)
    assert json.loads(dead_letter.explanation or "") == explanation_of(FAILED)


def test_what_is_in_one_hand_is_in_no_other_until_it_is_given_back(kind: str, aws: Aws) -> None:
    dead_letters = dead_letters_of(kind, aws)
    put(dead_letters, *range(12))
    first = dead_letters.take("slow", 11)
    assert len({dead_letter.message_id for dead_letter in first.dead_letters}) == 11 and not first.complete
    assert len(dead_letters.take("slow", 20).dead_letters) == 1
    dead_letters.give_back(first.dead_letters)
    assert {dead_letter.message_id for dead_letter in dead_letters.take("slow", 20).dead_letters} == {
        dead_letter.message_id for dead_letter in first.dead_letters
    }
    assert (dead_letters.depth("slow"), dead_letters.depth("fast")) == (12, 0)


@pytest.mark.guards("top-dead-letter-sample-visible")
def test_a_sample_of_dead_letters_stays_visible_to_everybody(kind: str, aws: Aws) -> None:
    dead_letters = dead_letters_of(kind, aws)
    put(dead_letters, *range(12))
    sample = dead_letters.sample("slow")
    assert len({dead_letter.message_id for dead_letter in sample}) == 10
    assert json.loads(sample[0].explanation or "")
    assert len(dead_letters.take("slow", 20).dead_letters) == 12
    assert dead_letters.sample("slow") == dead_letters.sample("fast") == ()


def test_a_removed_dead_letter_is_gone_and_removing_it_again_is_no_error(kind: str, aws: Aws) -> None:
    dead_letters = dead_letters_of(kind, aws)
    put(dead_letters, 1, 2)
    first, other = dead_letters.take("slow", 5).dead_letters
    dead_letters.remove(first)
    dead_letters.remove(first)
    dead_letters.give_back((first, other))
    assert [dead_letter.message_id for dead_letter in dead_letters.take("slow", 5).dead_letters] == [other.message_id]


def test_a_dead_letter_travels_in_its_tenants_share(aws: Aws) -> None:
    put(dead_letters_of("aws", aws), 1)
    (message,) = boto3.client("sqs").receive_message(QueueUrl=aws.dead_letter_urls["slow"], AttributeNames=["All"])[
        "Messages"
    ]
    assert message["Attributes"]["MessageGroupId"] == "default"


def test_a_queue_too_long_for_one_hand_is_not_said_to_be_whole() -> None:
    message = {"MessageId": "m", "ReceiptHandle": "r", "Body": "b", "Attributes": {"SentTimestamp": "1"}}
    message["MD5OfBody"] = hashlib.md5(b"b", usedforsecurity=False).hexdigest()
    answer = {"Messages": [message], "ResponseMetadata": {"RetryAttempts": 0}}
    shows_again: Any = SimpleNamespace(receive_message=lambda **_: answer)
    taken = DeadLetterQueues(shows_again, shows_again, {"slow": "url"}).take("slow", 100)
    assert (len(taken.dead_letters), taken.complete) == (1, False)


@pytest.mark.guards("dead-letters-damaged-missing", "dead-letters-damaged-unread")
def test_a_dead_letter_that_arrives_damaged_waits_for_another_look(aws: Aws) -> None:
    put(dead_letters_of("aws", aws), 1, 2)
    sqs = boto3.client("sqs")
    damaged: list[str] = []

    def damage_the_first(parsed: Any, **_: Any) -> None:
        for message in parsed.get("Messages", []) if not damaged else ():
            damaged.append(message["MessageId"])
            message["Body"] = flipped(message["Body"].encode()).decode()
            return

    sqs.meta.events.register("after-call.sqs.ReceiveMessage", damage_the_first)
    dead_letters = DeadLetterQueues(sqs, sqs, aws.dead_letter_urls)
    assert len(dead_letters.sample("slow")) == 1
    damaged.clear()
    taken = dead_letters.take("slow", 5)
    assert (len(taken.dead_letters), taken.complete) == (1, False)
    assert {dead_letter.message_id for dead_letter in taken.dead_letters}.isdisjoint(damaged)


@pytest.mark.guards("dead-letters-lost-answer-told")
def test_dead_letters_that_a_lost_answer_hides_are_not_said_to_be_all(aws: Aws) -> None:
    put(dead_letters_of("aws", aws), 1, 2)
    sqs = boto3.client("sqs", config=Config(retries={"mode": "standard", "total_max_attempts": 2}))
    lost: list[str] = []

    def lose_the_first(request: Any, **_: Any) -> None:
        if not lost:
            url = aws.dead_letter_urls["slow"]
            lost.append(boto3.client("sqs").receive_message(QueueUrl=url, VisibilityTimeout=60)["Messages"][0]["Body"])
            raise ConnectionClosedError(endpoint_url=request.url)

    sqs.meta.events.register("before-send.sqs.ReceiveMessage", lose_the_first)
    dead_letters = DeadLetterQueues(sqs, sqs, aws.dead_letter_urls)
    taken = dead_letters.take("slow", 5)
    assert lost and (len(taken.dead_letters), taken.complete, taken.asked_again) == (1, True, True)
    dead_letters.give_back(taken.dead_letters)
    assert not dead_letters.take("slow", 5).asked_again


# ── Redrives ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class MoveTasks:
    """SQS's move tasks over moto's queues: one task at a time, one dead letter moved with each query."""

    client: Any
    urls: dict[str, str]
    tasks: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name, answer in (("Start", self.start), ("Cancel", self.cancel)):
            self.client.meta.events.register(f"before-call.sqs.{name}MessageMoveTask", self._answering(answer))
        self.client.meta.events.register("before-call.sqs.ListMessageMoveTasks", self._answering(self.list))

    def _answering(self, answer: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[..., Any]:
        def respond(params: dict[str, Any], **_: Any) -> Any:
            parsed = answer(json.loads(params["body"]))
            status = 400 if "Error" in parsed else 200
            parsed["ResponseMetadata"] = {"HTTPStatusCode": status}
            return SimpleNamespace(status_code=status, headers={}, content=b""), parsed

        return respond

    def start(self, asked: dict[str, Any]) -> dict[str, Any]:
        if self.tasks and self.tasks[0]["Status"] == "RUNNING":
            return {"Error": {"Code": "AWS.SimpleQueueService.UnsupportedOperation", "Message": "one at a time"}}
        self.tasks.insert(
            0,
            asked
            | {
                "Status": "RUNNING",
                "TaskHandle": f"task-{len(self.tasks)}",
                "StartedTimestamp": 1_000 + len(self.tasks),
                "ApproximateNumberOfMessagesMoved": 0,
                "ApproximateNumberOfMessagesToMove": 2,
            },
        )
        return {"TaskHandle": self.tasks[0]["TaskHandle"]}

    def list(self, asked: dict[str, Any]) -> dict[str, Any]:
        results = [dict(task) for task in self.tasks if task["SourceArn"] == asked["SourceArn"]][:1]
        if results and results[0]["Status"] == "RUNNING":
            self._move_on(self.tasks[0])
        return {"Results": [task if task["Status"] == "RUNNING" else _without_handle(task) for task in results]}

    def cancel(self, asked: dict[str, Any]) -> dict[str, Any]:
        if not self.tasks or self.tasks[0]["TaskHandle"] != asked["TaskHandle"] or self.tasks[0]["Status"] != "RUNNING":
            return {"Error": {"Code": "ResourceNotFoundException", "Message": "no such task runs"}}
        self.tasks[0]["Status"] = "CANCELLED"
        return {"ApproximateNumberOfMessagesMoved": 0}

    def _move_on(self, task: dict[str, Any]) -> None:
        sqs = boto3.client("sqs")
        source, destination = (self.urls[task[name].rpartition(":")[2]] for name in ("SourceArn", "DestinationArn"))
        messages = sqs.receive_message(QueueUrl=source, MaxNumberOfMessages=1).get("Messages", [])
        for message in messages:
            sqs.send_message(QueueUrl=destination, MessageBody=message["Body"])
            sqs.delete_message(QueueUrl=source, ReceiptHandle=message["ReceiptHandle"])
            task["ApproximateNumberOfMessagesMoved"] += 1
        if not messages:
            task["Status"] = "COMPLETED"


def _without_handle(task: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in task.items() if name != "TaskHandle"}


@dataclass
class Redriving:
    """A port of redrives, the dead letters that it redrives, and those that have reached their lane."""

    redrives: Redrives
    dead_letters: DeadLetters
    arrived: Callable[[], list[Message]]


@pytest.fixture
def redriving(kind: str, aws: Aws) -> Redriving:
    dead_letters = dead_letters_of(kind, aws)
    put(dead_letters, 1, 2)
    if isinstance(dead_letters, FakeDeadLetters):
        lanes = FakeLanes()
        return Redriving(FakeRedrives(dead_letters, lanes), dead_letters, lambda: lanes.sent)
    sqs = boto3.client("sqs")
    MoveTasks(sqs, {"slow-dead-letters": aws.dead_letter_urls["slow"], "slow": aws.slow_queue_url})
    arn = f"arn:aws:sqs:{REGION}:123456789012:slow"

    def arrived() -> list[Message]:
        answer = boto3.client("sqs").receive_message(QueueUrl=aws.slow_queue_url, MaxNumberOfMessages=10)
        return [read_message(message["Body"]) for message in answer.get("Messages", [])]

    return Redriving(DeadLetterRedrives(sqs, {"slow": (f"{arn}-dead-letters", arn)}), dead_letters, arrived)


def test_a_move_takes_all_dead_letters_to_their_lane_and_then_is_over(redriving: Redriving) -> None:
    assert redriving.redrives.latest("slow") is None
    redriving.redrives.start("slow", 5)
    first = redriving.redrives.latest("slow")
    assert first is not None and (first.status, first.to_move) == (RedriveStatus.RUNNING, 2)
    assert first.handle is not None
    while (redrive := redriving.redrives.latest("slow")) is not None and not redrive.status.is_over:
        pass
    assert redrive is not None and (redrive.status, redrive.moved, redrive.handle) == (RedriveStatus.COMPLETED, 2, None)
    assert redriving.dead_letters.depth("slow") == 0
    assert sorted(message.image_id for message in redriving.arrived()) == [f"{1:026d}", f"{2:026d}"]


def test_a_move_that_runs_is_not_started_twice(redriving: Redriving) -> None:
    redrives = redriving.redrives
    redrives.start("slow", 5)
    first = redrives.latest("slow")
    redrives.start("slow", 5)
    second = redrives.latest("slow")
    assert first is not None and second is not None and first.started_at == second.started_at


def test_a_cancelled_move_leaves_the_rest_and_the_next_is_another(redriving: Redriving) -> None:
    redriving.redrives.start("slow", 5)
    redrive = redriving.redrives.latest("slow")
    assert redrive is not None
    redriving.redrives.cancel(redrive)
    redriving.redrives.cancel(redrive)
    while (ended := redriving.redrives.latest("slow")) is not None and not ended.status.is_over:
        pass
    assert ended is not None and ended.status is RedriveStatus.CANCELLED
    assert redriving.dead_letters.depth("slow") == 1
    redriving.redrives.start("slow", 5)
    again = redriving.redrives.latest("slow")
    assert again is not None and again.started_at != redrive.started_at


def test_a_move_names_where_to_and_how_fast(aws: Aws) -> None:
    sqs = boto3.client("sqs")
    tasks = MoveTasks(sqs, {"slow-dead-letters": aws.dead_letter_urls["slow"], "slow": aws.slow_queue_url})
    DeadLetterRedrives(sqs, {"slow": ("arn:of:letters", "arn:of:lane")}).start("slow", 7)
    asked = ("SourceArn", "DestinationArn", "MaxNumberOfMessagesPerSecond")
    assert [tasks.tasks[0][name] for name in asked] == ["arn:of:letters", "arn:of:lane", 7]


# ── The archive ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_is_archived_first_stays(kind: str, aws: Aws) -> None:
    boto3.client("s3").create_bucket(Bucket="archive")
    archive: Archive = FakeArchive() if kind == "fake" else DeadLetterArchive(boto3.client("s3"), "archive")
    assert archive.put_if_absent("slow/2026-11-09/m.json", {"é": 1})
    assert not archive.put_if_absent("slow/2026-11-09/m.json", {"é": 2})
    assert archive.put_if_absent("slow/2026-11-09/n.json", {"é": 3})


def test_the_archiver_copies_what_is_old_enough_and_fails_where_it_cannot(
    aws: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    s3 = boto3.client("s3")
    s3.create_bucket(Bucket="archive")
    monkeypatch.setenv("ARCHIVE_BUCKET", "archive")
    put(dead_letters_of("aws", aws), 1)
    archiver = load("archive_dead_letters", aws, monkeypatch)
    assert call(archiver, {})["outcomes"] == {"too_young": 1}
    later = archiver.ports.clock() + ARCHIVED_FROM_SECONDS * 1000 + 10_000
    monkeypatch.setattr(archiver, "ports", replace(archiver.ports, clock=lambda: later))
    assert call(archiver, {})["outcomes"] == {"archived": 1, "too_young": 0}
    (item,) = s3.list_objects_v2(Bucket="archive")["Contents"]
    document = json.loads(s3.get_object(Bucket="archive", Key=item["Key"])["Body"].read())
    assert (document["verdict"], document["explanation"]["image_id"]) == ("unknown", FAILED.image_id)
    boto3.client("sqs").delete_queue(QueueUrl=aws.dead_letter_urls["fast"])
    with pytest.raises(Retryable, match="fast"):
        call(archiver, {})


# ── Finding a stack's queues ─────────────────────────────────────────────────────────────────────────────────────────


def test_every_queue_that_another_one_ends_in_is_found_by_its_name(aws: Aws) -> None:
    sqs = boto3.client("sqs")
    target = sqs.get_queue_attributes(
        QueueUrl=sqs.create_queue(QueueName="hold-dead-letters")["QueueUrl"], AttributeNames=["QueueArn"]
    )["Attributes"]["QueueArn"]
    policy = json.dumps({"deadLetterTargetArn": target, "maxReceiveCount": 5})
    hold_url = sqs.create_queue(QueueName="hold", Attributes={"RedrivePolicy": policy})["QueueUrl"]
    resources = {
        "FastQueue": aws.fast_queue_url,
        "FastDeadLetters": aws.dead_letter_urls["fast"],
        "SlowQueue": aws.slow_queue_url,
        "SlowDeadLetters": aws.dead_letter_urls["slow"],
        "FarHoldQueue": hold_url,
        "FarHoldDeadLetters": hold_url.replace("hold", "hold-dead-letters"),
    }
    queues = stacks._dead_letter_queues(sqs, resources)
    assert {name: (queue.url, queue.source_url) for name, queue in queues.items()} == {
        "far_hold": (resources["FarHoldDeadLetters"], hold_url),
        "fast": (aws.dead_letter_urls["fast"], aws.fast_queue_url),
        "slow": (aws.dead_letter_urls["slow"], aws.slow_queue_url),
    }
    assert queues["far_hold"].arn == target


def test_the_dead_letters_of_consumers_are_no_images(aws: Aws) -> None:
    kinds = {"Queue": "AWS::SQS::Queue", "DeadLetters": "AWS::SQS::Queue", "Subscription": "AWS::SNS::Subscription"}
    fast = {"FastQueue": aws.fast_queue_url, "FastDeadLetters": aws.dead_letter_urls["fast"]}
    slow = {"SlowQueue": aws.slow_queue_url, "SlowDeadLetters": aws.dead_letter_urls["slow"]}
    physical_ids = fast | slow | {"SlowSubscription": "arn:aws:sns:us-east-1:123456789012:events:1"}
    resources = {
        name: (next(kind for ending, kind in kinds.items() if name.endswith(ending)), physical_id)
        for name, physical_id in physical_ids.items()
    }
    client: Any = boto3.client
    stack = stacks.Stack(name="shop", region="us-east-1", client=client, is_local=False, options="")
    vars(stack)["resources"] = resources
    assert list(stack.queues) == ["fast"]


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (Retryable("reading: SlowDown"), "Nothing is lost, and what was done is done: run the same command again."),
        (UnreadableRow("0" * 26, "no"), "deploy that version again. It is left as it is."),
        (NoCredentialsError(), "Set AWS_PROFILE"),
        (EndpointConnectionError(endpoint_url="https://sqs.test"), "AWS cannot be reached"),
        (
            ClientError({"Error": {"Code": "ValidationError", "Message": "Stack"}}, "ListStackResources"),
            "There is no stack shop in eu-west-1",
        ),
        (
            ClientError({"Error": {"Code": "AccessDenied", "Message": "not you"}}, "ReceiveMessage"),
            r"AWS refuses ReceiveMessage in eu-west-1 \(AccessDenied\): not you",
        ),
    ],
)
def test_what_aws_refuses_is_told_in_a_sentence(raised: Exception, said: str) -> None:
    with pytest.raises(ApiError, match=said), stacks.explained("shop", "eu-west-1", is_local=False):
        raise raised


def test_a_missing_profile_or_region_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(variable, raising=False)
    for variable in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(variable, "/dev/null")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    with pytest.raises(ApiError, match=r"In which region is shop\?.*set AWS_REGION"):
        stacks.open_stack("shop", None)
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    with pytest.raises(ApiError, match="No AWS credentials"):  # so what the first message says helps
        stacks.open_stack("shop", None)
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(ApiError, match="nobody"):
        stacks.open_stack("shop", None)


def test_a_stack_that_does_not_listen_any_more_is_told_as_not_running(tmp_path: Any) -> None:
    document = {
        "version": 1,
        "api_url": "http://127.0.0.1:1",
        "stack_name": "darkroom",
        "region": "us-east-1",
        "aws_endpoint_url": "http://127.0.0.1:1",
    }
    (tmp_path / "stack.json").write_text(json.dumps(document))
    impatient = stacks._PATIENT.merge(Config(retries={"mode": "standard", "total_max_attempts": 1}))
    with pytest.MonkeyPatch.context() as patch, pytest.raises(ApiError, match="make run"):
        patch.setattr(stacks, "_PATIENT", impatient)
        stacks.open_stack(None, None, environment={"DARKROOM_STATE_DIR": str(tmp_path)})


def test_commands_go_by_the_local_stacks_clock_wherever_it_was_moved(tmp_path: Path) -> None:
    file = tmp_path / "clock"

    def now(clock_file: Path | None) -> int:
        return stacks.Stack(
            name="one",
            region="us-east-1",
            is_local=True,
            options="",
            client=cast("Any", boto3.client),
            clock_file=clock_file,
        ).clock()

    with time_machine.travel(1000, tick=False):
        assert (now(None), now(file)) == (1_000_000, 1_000_000), "there is none on AWS, or the stack has stopped"
        file.write_text("+3600\n")
        assert now(file) == 4_600_000
