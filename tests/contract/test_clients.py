"""How long the functions wait for AWS, and how often they retry: by their settings, and with a silent server."""

from __future__ import annotations

import base64
import io
import json
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, nullcontext, suppress
from dataclasses import dataclass, field, replace
from typing import Any
from zlib import crc32

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.client import BaseClient
from botocore.compat import HTTPHeaders
from botocore.exceptions import ParamValidationError, ReadTimeoutError
from botocore.useragent import UserAgentString
from botocore.validate import ParamValidator

from darkroom.aws.images.images_table import ImagesTable
from darkroom.aws.images.objects import OutputsBucket
from darkroom.aws.kernel import clients
from darkroom.aws.kernel.circuits import FAILURES, Circuit
from darkroom.aws.uploads.uploads import UploadsBucket
from darkroom.domain.kernel.errors import Retryable
from darkroom.http import api
from tests.contract.conftest import Aws
from tests.contract.functions import call, http_event, load, received
from tests.support.fakes.pictures import jpeg

PHOTO = jpeg(320, 240)

type Attempt = tuple[str, float]


@dataclass
class Wire:
    """A clock that only attempts move; it records what each attempt was for and how long it would have waited."""

    now: float = 0.0
    attempts: list[Attempt] = field(default_factory=list)
    silent: str = ""
    """The service that never answers: an attempt takes the connection, botocore's own pause, and its wait."""
    each_takes: float = 0.0
    """How long the other services take to answer."""

    def watch(self, client: BaseClient) -> None:
        client.meta.events.register_last(
            f"before-send.{client.meta.service_model.service_id.hyphenize()}", self._attempt
        )

    def _attempt(self, request: Any, event_name: str, **_: Any) -> None:
        service, operation = event_name.split(".")[1:]
        context = request.context
        waits = context.get("read_timeout", context["client_config"].read_timeout)
        self.attempts.append((operation, round(waits, 2)))
        if service == self.silent:
            self.now += clients.CONNECT_SECONDS + waits + (clients.CONTINUE_SECONDS if operation == "PutObject" else 0)
        else:
            self.now += self.each_takes
        context["read_timeout"] = 0.05  # how long the test waits


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Wire:
    """Watches the clients that are created from now on."""
    wire = Wire()
    watch = clients.watch

    def watch_both(client: BaseClient) -> None:
        watch(client)
        wire.watch(client)

    monkeypatch.setattr(clients, "monotonic", lambda: wire.now)
    monkeypatch.setattr(clients, "watch", watch_both)
    return wire


@dataclass
class Server:
    """Accepts connections; each gets one of `answers`, and when they are used up it stays silent."""

    url: str
    connections: list[socket.socket]


def close_all(connections: Iterable[socket.socket]) -> None:
    for connection in connections:
        connection.close()


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    with ExitStack() as stack:

        def start(*answers: bytes) -> Server:
            listener = stack.enter_context(closing(socket.create_server(("127.0.0.1", 0))))
            server = Server(url=f"http://127.0.0.1:{listener.getsockname()[1]}", connections=[])
            threading.Thread(target=take, args=(listener, server, list(answers)), daemon=True).start()
            stack.callback(close_all, server.connections)
            return server

        yield start


def take(listener: socket.socket, server: Server, answers: list[bytes]) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return  # the test is over
        server.connections.append(connection)
        if answers:
            connection.recv(65536)
            connection.sendall(answers.pop(0))
            # The rest of the request is read too: closing before that would reset the connection, and the client might
            # not see the answer.
            with suppress(OSError):
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(65536):
                    pass
            connection.close()


def post(module: Any, **headers: str) -> dict[str, Any]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return call(module, http_event("POST", "/images", body=PHOTO, headers=named))


@pytest.fixture
def silence(wire: Wire, serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Server]:
    """Makes a service accept connections and never answer."""

    def silence(service: str) -> Server:
        server = serve()
        monkeypatch.setenv(f"AWS_ENDPOINT_URL_{service.upper()}", server.url)
        wire.silent = service
        return server

    return silence


@pytest.mark.parametrize(
    ("service", "headers", "attempts"),
    [
        ("s3", {}, [("GetQueueAttributes", 0.5), ("PutObject", 4.0)]),
        ("dynamodb", {"idempotency_key": "order-17"}, [("GetItem", 1.5)] * 2),
        ("dynamodb", {}, [("GetQueueAttributes", 0.5), ("PutObject", 4.0), ("PutItem", 1.5), ("PutItem", 1.5)]),
    ],
    ids=["S3", "DynamoDB before S3", "DynamoDB after S3"],
)
def test_an_upload_is_refused_in_time_when_a_store_takes_the_connection_and_never_answers(
    aws: Aws,
    wire: Wire,
    silence: Callable[[str], Server],
    monkeypatch: pytest.MonkeyPatch,
    *,
    service: str,
    headers: dict[str, str],
    attempts: list[Attempt],
) -> None:
    server = silence(service)
    answer = post(load("submit_image", aws, monkeypatch), **headers)
    assert answer["statusCode"] == 503
    assert int(answer["headers"]["Retry-After"]) >= 5
    assert wire.attempts == attempts, "no other attempt had the time, and no other call was made"
    assert len(server.connections) == attempts.count(attempts[-1])
    assert wire.now < 10


@pytest.mark.guards("load-shedding-queue-outage")
def test_an_upload_is_accepted_and_due_at_once_when_only_the_queue_never_answers(
    aws: Aws, wire: Wire, silence: Callable[[str], Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = silence("sqs")
    submit_image = load(
        "submit_image",
        replace(aws, queue_urls=aws.queue_urls | {"slow": f"{server.url}/123456789012/slow"}),
        monkeypatch,
    )

    answer = post(submit_image)

    assert answer["statusCode"] == 202
    assert wire.attempts == [
        ("GetQueueAttributes", 0.5),
        ("PutObject", 2.5),
        ("PutItem", 1.5),
        ("GetSecretValue", 1.5),
        ("SendMessage", 3.0),
        ("UpdateItem", 1.5),
    ]
    assert wire.now < 10
    assert is_due_at_once(aws)


@pytest.mark.guards("load-shedding-hint-time-reserve")
def test_what_slow_stores_leave_goes_to_the_row(aws: Aws, wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    wire.each_takes = 1.6
    answer = post(load("submit_image", aws, monkeypatch), idempotency_key="order-17")
    assert answer["statusCode"] == 202
    assert wire.attempts == [("GetItem", 1.5), ("PutObject", 2.4), ("PutItem", 1.5), ("UpdateItem", 1.5)]
    assert received(aws.slow_queue_url)["Records"] == [], "nothing was sent"
    assert is_due_at_once(aws)


@pytest.mark.guards("variant-store-circuit", "variant-store-timeout-short")
def test_a_client_is_led_to_its_variant_while_s3_never_answers_and_waits_for_it_less_and_less(
    aws: Aws, wire: Wire, silence: Callable[[str], Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    image_id = json.loads(post(load("submit_image", aws, monkeypatch))["body"])["id"]
    call(load("transcode_image", aws, monkeypatch), received(aws.slow_queue_url))
    silence("s3")
    read_image = load("read_image", aws, monkeypatch)
    for asked in range(1, 6):
        wire.attempts.clear()
        began = wire.now
        answer = call(read_image, http_event("GET", f"/images/{image_id}/variants/thumb"))
        assert answer["statusCode"] == 307
        looked = [] if asked > FAILURES else [("HeadObject", 0.5)]
        assert wire.attempts == [("GetItem", 1.5), *looked]
        assert wire.now - began == 1.5 * len(looked)


@pytest.mark.guards("variant-store-timeout-short")
def test_a_client_that_has_waited_for_the_table_does_not_wait_for_s3_too(
    aws: Aws, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    image_id = json.loads(post(load("submit_image", aws, monkeypatch))["body"])["id"]
    call(load("transcode_image", aws, monkeypatch), received(aws.slow_queue_url))
    read_image = load("read_image", aws, monkeypatch)
    wire.attempts.clear()
    wire.each_takes = 1.2
    answer = call(read_image, http_event("GET", f"/images/{image_id}/variants/thumb"))
    assert (answer["statusCode"], wire.attempts) == (307, [("GetItem", 1.5)])


def is_due_at_once(aws: Aws) -> bool:
    """Whether the next sweep sends what was accepted."""
    [row] = boto3.client("dynamodb").scan(TableName=aws.images_table)["Items"]
    return int(row["due_at"]["N"]) - int(row["created_at"]["N"]) < 60_000


def config_of(client: BaseClient) -> Any:
    """The client's configuration, whose options have no types."""
    return client.meta.config


@pytest.mark.guards("dead-letters-single-try")
def test_every_wait_is_chosen(ambient: None) -> None:
    chosen = {
        make.__name__: (
            config_of(client).connect_timeout,
            config_of(client).read_timeout,
            config_of(client).retries,
        )
        for make in (
            clients.dynamodb_client,
            clients.s3_client,
            clients.sqs_client,
            clients.sqs_client_without_retries,
            clients.secrets_manager_client,
        )
        for client in (make(),)
    }
    assert chosen == {
        "dynamodb_client": (1.0, 1.5, {"mode": "standard", "total_max_attempts": 2}),
        "s3_client": (1.0, 10, {"mode": "standard", "total_max_attempts": 2}),
        "sqs_client": (1.0, 3, {"mode": "standard", "total_max_attempts": 2}),
        "sqs_client_without_retries": (1.0, 3, {"mode": "standard", "total_max_attempts": 1}),
        "secrets_manager_client": (1.0, 1.5, {"mode": "standard", "total_max_attempts": 2}),
    }
    # Connecting may take that long twice, once for TCP and once for TLS; the calculation counts it once.
    assert api.ANSWER_SECONDS + clients.CONNECT_SECONDS < 10


@pytest.mark.guards("clients-dispensable-one-try", "clients-dispensable-short-wait")
@pytest.mark.parametrize("seconds", [None, 9.0], ids=["outside an invocation", "within one"])
def test_what_can_be_done_without_is_asked_for_once_and_not_for_long(
    aws: Aws, wire: Wire, silence: Callable[[str], Server], seconds: float | None
) -> None:
    silence("sqs")
    client = clients.sqs_client()
    with pytest.raises(ReadTimeoutError), ExitStack() as stack:
        if seconds is not None:
            stack.enter_context(clients.within(seconds))
        clients.impatient(client).get_queue_attributes(QueueUrl=aws.slow_queue_url)
    assert wire.attempts == [("GetQueueAttributes", 0.5)]
    wire.attempts.clear()
    with pytest.raises(ReadTimeoutError):
        client.get_queue_attributes(QueueUrl=aws.slow_queue_url)
    assert wire.attempts == [("GetQueueAttributes", 3)] * clients.ATTEMPTS, "the patient one stays as it is"


@pytest.mark.guards("clients-dispensable-off-circuit")
def test_what_can_be_done_without_opens_no_circuit(aws: Aws, wire: Wire, silence: Callable[[str], Server]) -> None:
    server = silence("sqs")
    client = clients.sqs_client()
    circuit = Circuit(client, "sqs", lambda: None)
    twin = clients.impatient(client)
    for _ in range(FAILURES + 1):
        with pytest.raises(ReadTimeoutError):
            twin.get_queue_attributes(QueueUrl=aws.slow_queue_url)
    assert circuit._open_until is None
    assert len(server.connections) == FAILURES + 1


def test_an_impatient_client_uses_the_connections_of_the_patient_one(ambient: None) -> None:
    client = clients.dynamodb_client()
    twin: Any = clients.impatient(client)
    assert twin._endpoint is client._endpoint  # type: ignore[attr-defined]
    assert type(twin) is type(client)


class Elsewhere:
    """S3 as a client meets it that has no network: it notes each request, and says that `moved` is in another
    region."""

    def __init__(self, moved: str = "") -> None:
        self.client = clients.s3_client()
        self.moved = moved
        self.sent: list[Any] = []
        events: Any = self.client.meta.events  # whose stubs know no handler that returns a value
        events.register("before-send.s3", self._answer)

    def _answer(self, request: Any, **_: object) -> AWSResponse:
        self.sent.append(request)
        is_away = bool(self.moved) and f"{self.moved}.s3.amazonaws" in request.url
        headers = {"Content-Length": "0"} | ({"x-amz-bucket-region": "eu-west-1"} if is_away else {})
        body: Any = io.BytesIO()
        body.stream = lambda *_, **__: iter([b""])
        return AWSResponse(request.url, 301 if is_away else 200, HTTPHeaders.from_dict(headers), body)

    def put(self, body: bytes, bucket: str = "outputs") -> Any:
        OutputsBucket(self.client, bucket).put_if_absent("k", body, sha256="00" * 32, media_type="image/jpeg")
        return self.sent[-1]


@pytest.mark.guards("clients-large-body-asks-first", case="1048576-True")
@pytest.mark.parametrize(("size", "asks"), [(0, False), ((1 << 20) - 1, False), (1 << 20, True)])
def test_only_a_large_body_waits_for_the_permission_to_be_sent(size: int, asks: bool, ambient: None) -> None:
    assert ("Expect" in Elsewhere().put(b"x" * size).headers) == asks


def test_a_body_is_hashed_once_and_the_hash_is_signed(ambient: None) -> None:
    headers = Elsewhere().put(b"body").headers
    assert headers["X-Amz-Content-SHA256"] == b"UNSIGNED-PAYLOAD"
    assert headers["x-amz-checksum-sha256"] == base64.b64encode(bytes(32))
    assert b"x-amz-checksum-sha256" in headers["Authorization"].partition(b"SignedHeaders=")[2]


def test_a_clients_name_is_composed_once_and_says_which_sdk_it_is(
    ambient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    s3 = Elsewhere()
    composed: list[object] = []
    monkeypatch.setattr(UserAgentString, "_build_os_metadata", composed.append)
    assert s3.put(b"body").headers["User-Agent"].startswith(b"Botocore/")
    assert composed == []


@pytest.mark.guards("clients-argument-names-checked")
def test_arguments_of_dynamodb_are_checked_when_their_names_are_new(
    ambient: None, serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", serve(*[json_answer(b"{}")] * 3).url)
    client: Any = clients.dynamodb_client()
    checked: list[Any] = []
    validate = ParamValidator.validate

    def noted(self: ParamValidator, arguments: Any, shape: Any) -> Any:
        checked.append(arguments)
        return validate(self, arguments, shape)

    monkeypatch.setattr(ParamValidator, "validate", noted)
    for name in ("a", "b"):
        client.get_item(TableName="images", Key={"image_id": {"S": name}})
    assert [arguments["Key"]["image_id"]["S"] for arguments in checked] == ["a"]
    for _ in range(2):
        with pytest.raises(ParamValidationError, match="ConsistantRead"):
            client.get_item(TableName="images", Key={"image_id": {"S": "a"}}, ConsistantRead=True)
    with pytest.raises(ParamValidationError, match="Key"):
        client.get_item(TableName="images")


@pytest.mark.guards("clients-endpoint-per-bucket")
def test_where_an_operation_goes_is_resolved_once_for_each_bucket(ambient: None) -> None:
    s3 = Elsewhere()
    resolved: list[str] = []
    s3.client.meta.events.register(
        "before-endpoint-resolution.s3", lambda params, **_: resolved.append(params["Bucket"])
    )
    hosts = [s3.put(b"body", bucket).url.split("/")[2] for bucket in ("outputs", "others", "outputs", "others")]
    assert hosts == [f"{bucket}.s3.amazonaws.com" for bucket in ("outputs", "others")] * 2
    assert resolved == ["outputs", "others"]


@pytest.mark.guards("clients-bucket-region-refreshed")
def test_a_bucket_that_is_elsewhere_is_found_there_from_then_on(ambient: None) -> None:
    s3 = Elsewhere(moved="outputs")
    s3.put(b"body")
    s3.put(b"body")
    hosts = [request.url.split("/")[2] for request in s3.sent if request.method == "PUT"]
    assert hosts == ["outputs.s3.amazonaws.com", *["outputs.s3.eu-west-1.amazonaws.com"] * 2]


WHOLE = json.dumps({"Item": {"image_id": {"S": "0" * 26}}}).encode()


def json_answer(body: bytes, *, cut_to: int | None = None) -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/x-amz-json-1.0\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body[:cut_to]


def test_half_an_answer_is_asked_for_again(
    ambient: None, serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(json_answer(WHOLE, cut_to=20), json_answer(WHOLE))
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", server.url)
    answer = clients.dynamodb_client().get_item(TableName="images", Key={"image_id": {"S": "0" * 26}})
    assert answer["Item"] == {"image_id": {"S": "0" * 26}}
    assert len(server.connections) == 2


@pytest.mark.guards("clients-dynamodb-checksum")
def test_an_answer_of_dynamodb_that_does_not_match_its_checksum_is_never_believed(
    ambient: None, serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    altered = WHOLE.replace(b"00", b"01", 1)
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(altered)}\r\nx-amz-crc32: {crc32(WHOLE)}\r\n\r\n"
    server = serve(*[head.encode() + altered] * clients.ATTEMPTS)
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", server.url)
    with pytest.raises(Retryable, match="FlexibleChecksumError"):
        ImagesTable(clients.dynamodb_client(), "images").get("0" * 26)
    assert len(server.connections) == clients.ATTEMPTS


@pytest.mark.parametrize("length", [100, 4], ids=["cut short", "whole"])
def test_an_object_whose_body_ends_too_early_may_be_read_again(
    ambient: None, serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    server = serve(f"HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n".encode() + b"body")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", server.url)
    ends = nullcontext() if length == len(b"body") else pytest.raises(Retryable, match="fetching uploads/")
    with ends:
        assert UploadsBucket(clients.s3_client(), "bucket").get("0" * 26) == b"body"


def test_half_an_answer_is_never_taken_for_a_row_that_is_not_there(
    ambient: None, serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(*[json_answer(WHOLE, cut_to=20)] * clients.ATTEMPTS)
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", server.url)
    with pytest.raises(Retryable, match="IncompleteReadError"):
        ImagesTable(clients.dynamodb_client(), "images").get("0" * 26)
    assert len(server.connections) == clients.ATTEMPTS
