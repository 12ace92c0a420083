"""While S3 or DynamoDB does not answer, nothing waits for it or uses up an attempt; afterwards everything continues."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import boto3
import pytest
import time_machine
from botocore.client import BaseClient
from botocore.exceptions import ClientError, ReadTimeoutError

from darkroom.aws.images.images_table import ImagesTable
from darkroom.aws.kernel import circuits, clients
from darkroom.aws.kernel.circuits import FAILURES, RECOVERY_SECONDS
from darkroom.aws.kernel.errors import retryable
from darkroom.domain.images.image import Image, Status
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.retry import MAX_RECEIVES, OUTAGE
from darkroom.operations.images.transcode_image import RETURN_SECONDS
from tests.contract.conftest import Aws
from tests.contract.functions import call, http_event, load, received
from tests.support.fakes.pictures import jpeg

PHOTO = jpeg(320, 240)


@dataclass
class Trouble:
    """What happens to a client's calls on their way: `error` for those in `operations` (None: all)."""

    error: Exception | None = None
    operations: frozenset[str] | None = None
    sent: list[str] = field(default_factory=list)

    def befall(self, client: BaseClient) -> None:
        service = client.meta.service_model.service_id.hyphenize()
        # At the last point before sending: after everything that may refuse the call, and without retry pauses.
        client.meta.events.register_last(f"before-send.{service}", self._send)
        events: Any = client.meta.events  # its types do not allow an answer
        events.register_first(f"needs-retry.{service}", lambda **_: False)

    def _send(self, event_name: str, **_: Any) -> None:
        operation = event_name.rpartition(".")[2]
        self.sent.append(operation)
        if self.error is not None and (self.operations is None or operation in self.operations):
            raise self.error


SILENCE = ReadTimeoutError(endpoint_url="https://example")


@pytest.fixture
def clock() -> Iterator[time_machine.Traveller]:
    """A clock that only a test moves."""
    with time_machine.travel("2026-11-21T12:00:00Z", tick=False) as traveller:
        yield traveller


def code(error: str, status: int) -> ClientError:
    answer: Any = {"Error": {"Code": error}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, "Operation")


@dataclass
class Table:
    """A client of the table with a circuit on it, and the faults of its calls."""

    client: Any
    circuit: circuits.Circuit
    trouble: Trouble

    def read(self) -> None:
        with retryable("reading"):
            self.client.get_item(TableName="ImagesTable", Key={"image_id": {"S": "1"}})

    def fail(self, error: Exception = SILENCE, *, times: int = FAILURES) -> None:
        self.trouble.error = error
        for _ in range(times):
            with pytest.raises((Retryable, ClientError)):
                self.read()
        self.trouble.error = None

    @property
    def is_open(self) -> bool:
        before = len(self.trouble.sent)
        try:
            self.read()
        except Retryable:
            assert len(self.trouble.sent) == before, "refused without being sent"
            return True
        return False


@pytest.fixture
def table(aws: Aws, clock: time_machine.Traveller) -> Table:
    client = clients.dynamodb_client()
    trouble = Trouble()
    trouble.befall(client)
    return Table(client=client, circuit=circuits.of_dynamodb(client, aws.images_table), trouble=trouble)


@pytest.mark.guards("circuit-open-refuses-calls")
def test_a_service_that_fails_often_enough_in_a_row_is_left_alone(table: Table) -> None:
    table.fail(times=FAILURES - 1)
    assert not table.is_open
    table.fail()
    assert table.is_open
    with pytest.raises(Retryable) as refused:
        table.read()
    assert refused.value.retry_after_seconds == RECOVERY_SECONDS


def test_another_clients_circuit_is_another_one(table: Table, aws: Aws) -> None:
    table.fail(times=FAILURES - 1)
    other = clients.dynamodb_client()
    circuits.of_dynamodb(other, aws.images_table)
    trouble = Trouble(error=SILENCE)
    trouble.befall(other)
    with pytest.raises(ReadTimeoutError):
        other.get_item(TableName="ImagesTable", Key={"image_id": {"S": "1"}})
    assert not table.is_open


@pytest.mark.parametrize(
    "error",
    [code("ProvisionedThroughputExceededException", 400), code("SlowDown", 503), code("InternalServerError", 500)],
    ids=str,
)
def test_throttling_and_errors_of_the_service_count(table: Table, error: Exception) -> None:
    table.fail(error)
    assert table.is_open


@pytest.mark.parametrize(
    "error",
    [
        code("ConditionalCheckFailedException", 400),
        code("PreconditionFailed", 412),
        code("ConditionalRequestConflict", 409),
        code("AccessDeniedException", 400),
        code("ExpiredTokenException", 400),
        Retryable("no time was left"),
    ],
    ids=str,
)
def test_an_answer_counts_as_one_whatever_it_says_and_so_does_no_call_at_all(table: Table, error: Exception) -> None:
    table.fail(error, times=2 * FAILURES)
    assert not table.is_open


@pytest.mark.guards("circuit-answer-resets-count")
def test_a_refused_condition_between_failures_shows_that_the_service_is_there(table: Table) -> None:
    for _ in range(FAILURES):
        table.fail(times=FAILURES - 1)
        table.fail(code("ConditionalCheckFailedException", 400), times=1)
    assert not table.is_open


def test_after_a_while_a_harmless_read_tries_the_service_and_nobodys_work_does(
    table: Table, clock: time_machine.Traveller
) -> None:
    table.fail()
    table.trouble.sent.clear()
    table.trouble.error = SILENCE
    with pytest.raises(Retryable):
        table.circuit.require_healthy()
    assert table.trouble.sent == [], "it is left alone"

    clock.shift(RECOVERY_SECONDS)
    with pytest.raises(Retryable):
        table.circuit.require_healthy()
    assert table.trouble.sent == ["GetItem"], "it was asked, once"
    with pytest.raises(Retryable):
        table.circuit.require_healthy()
    assert table.trouble.sent == ["GetItem"], "and is left alone again"

    clock.shift(RECOVERY_SECONDS)
    table.trouble.error = None
    table.circuit.require_healthy()
    assert table.trouble.sent == ["GetItem"] * 2
    table.fail(times=FAILURES - 1)
    assert not table.is_open, "it counts from none again"


@pytest.mark.guards("circuit-single-probe")
def test_while_one_call_finds_out_whether_a_service_is_back_no_other_is_made(
    table: Table, clock: time_machine.Traveller
) -> None:
    table.fail()
    clock.shift(RECOVERY_SECONDS)
    refused: list[Retryable] = []

    def meanwhile(**_: Any) -> None:
        if not refused:
            with pytest.raises(Retryable, match="GetItem was not tried") as error:
                table.client.get_item(TableName="ImagesTable", Key={"image_id": {"S": "2"}})
            refused.append(error.value)

    table.client.meta.events.register("before-send.dynamodb", meanwhile)
    table.circuit.require_healthy()
    assert len(refused) == 1


@pytest.mark.guards("circuit-unmade-call-ignored")
def test_a_call_for_which_no_time_was_left_leaves_the_count_as_it_is(table: Table) -> None:
    table.fail(times=FAILURES - 1)
    table.fail(Retryable("no time was left"), times=1)
    table.fail(times=1)
    assert table.is_open


def test_the_read_that_tries_a_service_is_a_short_one(table: Table, clock: time_machine.Traveller) -> None:
    waits: list[float] = []
    table.fail()
    clock.shift(RECOVERY_SECONDS)
    table.client.meta.events.register(
        "before-send.dynamodb", lambda request, **_: waits.append(request.context["read_timeout"])
    )
    table.circuit.require_healthy()
    assert len(waits) == 1
    assert clients.CONNECT_SECONDS + waits[0] <= circuits.PROBE_SECONDS


def test_an_opened_circuit_is_counted_once_by_service(
    table: Table, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, clock: time_machine.Traveller
) -> None:
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", "Darkroom")
    table.fail()
    clock.shift(RECOVERY_SECONDS)
    table.fail(times=1)  # the probe
    [line] = [line for line in capsys.readouterr().out.splitlines() if '"CircuitOpened"' in line]
    metric = json.loads(line)
    assert metric["_aws"]["CloudWatchMetrics"][0]["Dimensions"] == [["service", "dependency"]]
    assert metric["dependency"] == "dynamodb"


class Worker:
    """transcode_image and submit_image, with faults in their stores, and what happens to messages' visibility."""

    def __init__(self, aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
        self.aws = aws
        self.submit_image = load("submit_image", aws, monkeypatch)
        self.transcode_image = load("transcode_image", aws, monkeypatch)
        self.trouble = {"s3": Trouble(), "dynamodb": Trouble()}
        for module in (self.submit_image, self.transcode_image):
            self.trouble["s3"].befall(module.ports.originals._client)
            self.trouble["dynamodb"].befall(module.ports.images._client)
        self.hidden: list[int] = []
        monkeypatch.setattr(
            self.transcode_image.worker.sqs,
            "change_message_visibility",
            lambda **arguments: self.hidden.append(arguments["VisibilityTimeout"]),
        )

    def post(self) -> dict[str, Any]:
        return call(self.submit_image, http_event("POST", "/images", body=PHOTO))

    def accepted(self) -> str:
        answer = self.post()
        assert answer["statusCode"] == 202
        image_id: str = json.loads(answer["body"])["id"]
        return image_id

    def deliver(self, *, receive_count: int = 1, **context: Any) -> bool:
        """Whether the message returns."""
        event = received(self.aws.slow_queue_url)
        for record in event["Records"]:
            record["attributes"]["ApproximateReceiveCount"] = str(receive_count)
        failures: list[Any] = call(self.transcode_image, event, **context)["batchItemFailures"]
        return bool(failures)

    def open(self, service: str, module: ModuleType) -> None:
        """The state after some failed calls."""
        trouble = self.trouble[service]
        trouble.error = SILENCE
        for _ in range(FAILURES):
            with pytest.raises(Exception, match=r"Read timeout|ReadTimeout"):
                if service == "s3":
                    module.ports.originals.put_if_absent("k", b"", sha256="00", media_type="image/jpeg")
                else:
                    module.ports.images.get("1")

    def row(self, image_id: str) -> Image:
        image = ImagesTable(boto3.client("dynamodb"), self.aws.images_table).get(image_id)
        assert image is not None
        return image


@pytest.fixture
def worker(aws: Aws, clock: time_machine.Traveller, monkeypatch: pytest.MonkeyPatch) -> Worker:
    return Worker(aws, monkeypatch)


@pytest.mark.guards("claim-none-during-outage")
@pytest.mark.parametrize(("service", "receive_count"), [("s3", 1), ("dynamodb", 4)])
def test_a_delivery_during_an_outage_claims_nothing_and_its_message_stays_hidden_for_long(
    worker: Worker, service: str, receive_count: int
) -> None:
    image_id = worker.accepted()
    before = worker.row(image_id)
    worker.open(service, worker.transcode_image)

    assert worker.deliver(receive_count=receive_count)

    assert worker.row(image_id) == before, "no attempt was used up"
    [seconds] = worker.hidden
    assert OUTAGE.delay_seconds(receive_count, 0.0) <= seconds <= OUTAGE.delay_seconds(receive_count, 0.999)


def test_the_receives_of_a_message_outlast_twenty_minutes_and_no_pause_is_over_fifteen() -> None:
    shortest = [OUTAGE.delay_seconds(receive, 0.0) for receive in range(1, MAX_RECEIVES)]
    assert shortest == [120, 240, 480, 600]
    assert OUTAGE.delay_seconds(MAX_RECEIVES, 0.999) <= 900


def test_after_its_last_receive_a_healthy_images_message_goes_and_the_row_brings_another(worker: Worker) -> None:
    image_id = worker.accepted()
    worker.open("s3", worker.transcode_image)
    assert not worker.deliver(receive_count=MAX_RECEIVES), "it would become a dead letter"
    assert worker.hidden == []
    row = worker.row(image_id)
    assert (row.status, row.attempt) == (Status.PENDING, 0)
    assert row.due_at is not None


def test_a_finish_that_cannot_be_written_stays_hidden_until_the_lease_has_lapsed(worker: Worker) -> None:
    image_id = worker.accepted()
    puts = worker.trouble["dynamodb"]

    def after_the_work(event_name: str, **_: Any) -> None:
        puts.error, puts.operations = SILENCE, frozenset({"UpdateItem"})

    # The outputs are in the store: only the record of the work and the row remain to be written.
    worker.transcode_image.ports.outputs._client.meta.events.register("after-call.s3.PutObject", after_the_work)
    assert worker.deliver()
    row = worker.row(image_id)
    assert row.status is Status.PROCESSING and row.lease_until is not None
    [seconds] = worker.hidden
    assert seconds * 1000 > row.lease_until - row.attempts[0].started_at


@pytest.mark.parametrize("service", ["s3", "dynamodb"])
def test_an_upload_during_an_outage_is_refused_at_once_and_nothing_of_it_is_stored(
    worker: Worker, service: str
) -> None:
    worker.open(service, worker.submit_image)
    for trouble in worker.trouble.values():
        trouble.sent.clear()
    answer = worker.post()
    assert (answer["statusCode"], answer["headers"]["Retry-After"]) == (503, str(RECOVERY_SECONDS))
    assert [trouble.sent for trouble in worker.trouble.values()] == [[], []]


@pytest.mark.parametrize(("service", "probe"), [("s3", "HeadObject"), ("dynamodb", "GetItem")])
def test_no_upload_is_what_tries_a_service_out(
    worker: Worker, clock: time_machine.Traveller, service: str, probe: str
) -> None:
    worker.open(service, worker.submit_image)
    for trouble in worker.trouble.values():
        trouble.sent.clear()
    clock.shift(RECOVERY_SECONDS)
    assert worker.post()["statusCode"] == 503
    assert [*worker.trouble["s3"].sent, *worker.trouble["dynamodb"].sent] == [probe]

    clock.shift(RECOVERY_SECONDS)
    worker.trouble[service].error = None
    assert worker.post()["statusCode"] == 202


@pytest.mark.guards("claim-time-to-finish")
def test_an_image_for_which_too_little_time_is_left_is_not_claimed(worker: Worker) -> None:
    image_id = worker.accepted()
    assert worker.deliver(remaining_milliseconds=29_999)
    assert worker.hidden == [RETURN_SECONDS]
    assert worker.row(image_id).attempt == 0


def test_an_image_for_which_too_little_time_is_left_for_the_last_time_is_the_sweepers(worker: Worker) -> None:
    image_id = worker.accepted()
    assert not worker.deliver(remaining_milliseconds=29_999, receive_count=MAX_RECEIVES)
    row = worker.row(image_id)
    assert (row.status, row.attempt) == (Status.PENDING, 0)
    assert row.due_at is not None
    assert worker.hidden == []


def test_calls_end_before_the_function_does(worker: Worker) -> None:
    waits: list[float] = []
    client = worker.transcode_image.ports.images._client

    def note(request: Any, **_: Any) -> None:
        waits.append(request.context["read_timeout"])

    client.meta.events.register_last("before-send.dynamodb", note)
    worker.accepted()
    worker.deliver(remaining_milliseconds=31_000)
    assert waits, "every attempt is bounded by the function's deadline"
