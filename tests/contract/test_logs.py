"""The functions' logs contain nothing with which anybody could act for a client, and no data of a client's own; and
every line says which trace, which request and which image it belongs to."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import boto3
import pytest
from aws_lambda_powertools.utilities.typing import LambdaContext
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from darkroom import telemetry
from darkroom.aws.kernel import clients
from darkroom.domain.images.timeline import MARKS
from darkroom.domain.kernel.ids import IMAGE_ID_PATTERN
from tests.contract.conftest import TRACE, Aws
from tests.contract.functions import ROOT, Context, call, http_event, load, received, written
from tests.contract.gateway import MAKING, MOVE, Gateway
from tests.support.fakes.pictures import jpeg
from tests.support.notifications import event

FUNCTIONS = {path.parent.name for path in ROOT.glob("functions/*/app.py")}
REQUEST_ID, INVOCATION_ID = "gateway-request-1", Context.aws_request_id
FILENAME = "from-our-holiday-in-secretville"
SESSION = "c2Vzc2lvbi1vZi10aGUtcm9sZQ"
SIGNING = "sEcReT/oF/tHe/FuNcTiOnS/rOlE"
PRIVATE = {
    "cookie": "session=browsers-own-session",
    "content-disposition": f'attachment; filename="{FILENAME}.jpg"',
    "x-amz-meta-filename": FILENAME,
}
"""What a client may send besides its credential."""

DISTRIBUTION = {
    "CallerReference": "1",
    "Comment": "",
    "Enabled": True,
    "Origins": {"Quantity": 1, "Items": [{"Id": "one", "DomainName": "images.example"}]},
    "DefaultCacheBehavior": {"TargetOriginId": "one", "ViewerProtocolPolicy": "https-only"},
}

FORM = "multipart/form-data; boundary=boundary"


def told_of(image_id: str) -> dict[str, Any]:
    """What the edge's queue delivers when an image is to be forgotten."""
    record = {"messageId": "1", "receiptHandle": "1", "body": json.dumps({"image_id": image_id}), "attributes": {}}
    return {"Records": [record | {"messageAttributes": {}, "eventSource": "aws:sqs"}]}


def form(photo: bytes) -> bytes:
    """A browser's form with a photo, whose part contains its filename."""
    head = f'--boundary\r\nContent-Disposition: form-data; name="file"; filename="{FILENAME}.jpg"\r\n\r\n'
    return head.encode() + photo + b"\r\n--boundary--\r\n"


@pytest.fixture(autouse=True)
def hurried() -> Iterator[None]:
    """No receive waits for messages: moto's queues would, although nothing can come. And the SDK's session is a new one
    that knows no credentials of other tests."""

    def do_not_wait(**said: Any) -> None:
        said["params"]["WaitTimeSeconds"] = 0

    clients._session.cache_clear()
    clients._session().register("provide-client-params.sqs.ReceiveMessage", do_not_wait)
    yield
    clients._session.cache_clear()


@pytest.mark.promise("no-secret-kept")
@pytest.mark.guards("logs-image-id-verified")
def test_no_function_logs_a_credential_a_signature_or_a_filename_whether_it_succeeds_or_fails(
    aws: Aws,
    bearer: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    log: io.StringIO,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SIGNING)
    monkeypatch.setenv("AWS_SESSION_TOKEN", SESSION)
    gateway = Gateway(aws, monkeypatch)
    run = Run(gateway, bearer | PRIVATE, with_edge(monkeypatch))
    run.everything()
    assert {"X-Amz-Signature", "x-amz-signature"} <= run.signed, "there were addresses and forms to hide"
    run.fail()
    run.everything()
    boto3.client("dynamodb").delete_table(TableName=aws.tenants_table)
    assert gateway.request("GET", "/images/x", headers={"authorization": bearer["authorization"] + "0"}).status == 403

    assert set(gateway.invoked) | run.invoked == FUNCTIONS, "a new function: have it run here"
    said = log.getvalue() + capsys.readouterr().out
    assert "ResourceNotFoundException" in said and "Traceback" in said, "failures were logged, with their stacks"
    key = bearer["authorization"].removeprefix("Bearer ")
    hidden = {
        key,
        key.split("_")[2][:20],
        "Bearer",
        "authorization",
        SIGNING,
        SESSION,
        FILENAME,
        "browsers-own-session",
    }
    assert {secret for secret in hidden | run.signatures if secret in said} == set()


def with_edge(monkeypatch: pytest.MonkeyPatch) -> str:
    """Lets the edge's functions have a distribution and a key that it trusts; the key's base64."""
    distribution = boto3.client("cloudfront").create_distribution(DistributionConfig=DISTRIBUTION)["Distribution"]
    key = ec.generate_private_key(ec.SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    keys = {"keys": [{"id": "K1", "created_at": 0, "private_key": key.decode()}]}
    secret = boto3.client("secretsmanager").create_secret(Name="signing", SecretString=json.dumps(keys))
    for name, value in {
        "DISTRIBUTION_ID": distribution["Id"],
        "INVALIDATIONS_PER_MONTH": "1000",
        "SIGNING_SECRET": secret["ARN"],
        "SIGNING_KEYS": "K1",
        "SIGNED_SECONDS": "3600",
        "VARIANT_KEY": secret["ARN"],
        "ALLOWED_INSTRUCTIONS": "w_320",
    }.items():
        monkeypatch.setenv(name, value)
    return key.decode().splitlines()[1]


class Run:
    """Gives every function work, and remembers what was signed on the way."""

    def __init__(self, gateway: Gateway, headers: dict[str, str], signing_key: str = "") -> None:
        self.gateway, self.headers = gateway, headers
        self.invoked: set[str] = set()
        self.signed: set[str] = set()
        self.signatures: set[str] = {signing_key} - {""}

    def fail(self) -> None:
        """Makes everything fail from now on, at its first call."""
        aws = self.gateway.aws
        for table in (aws.images_table, aws.reservations_table, aws.endpoints_table):
            boto3.client("dynamodb").delete_table(TableName=table)

    def everything(self) -> None:
        aws = self.gateway.aws
        url = f"http://127.0.0.1:9/{FILENAME}"  # where nothing listens
        webhook = self.sent("POST", "/webhooks", json.dumps({"url": url, "description": FILENAME}).encode())
        self.sent("POST", "/webhooks", json.dumps({"url": f"{url} {FILENAME}", "secret": FILENAME}).encode())
        for path in ("", f"/{webhook}", f"/{webhook}/deliveries", f"/{webhook}/deliveries?cursor={FILENAME}"):
            self.sent("GET", f"/webhooks{path}")
        for path in ("rotate", "ping", "recover"):
            self.sent("POST", f"/webhooks/{webhook}/{path}")
        named = json.dumps({"name": FILENAME}).encode()
        batch = self.sent("POST", "/batches", named)
        for query in ("", f"?cursor={FILENAME}"):
            self.sent("GET", f"/batches{query}")
        image = self.sent("POST", f"/images?variants=thumb&batch={batch}", MAKING["/images"])
        self.sent("POST", "/images?variants=thumb", form(jpeg(50, 40)), content_type=FORM)
        soon = self.sent("POST", "/images?delay=PT20M", jpeg(60, 40))
        announced = self.sent("POST", "/uploads", MAKING["/uploads"])
        for path in ("/images", "/uploads"):
            self.sent("POST", f"{path}?filename={FILENAME}", MAKING[path])
        self.sent("GET", f"/images?cursor={FILENAME}")
        self.sent("POST", f"/images?preset={FILENAME}", MAKING["/images"])
        self.sent("POST", f"/images?recipe={FILENAME}", MAKING["/images"])
        words = {"reference": FILENAME, "tags": FILENAME, "metadata": json.dumps({FILENAME: FILENAME})}
        for bad in ({}, {"reference": f" {FILENAME}"}, {"tags": f"{FILENAME},{FILENAME}"}, {"metadata": FILENAME}):
            self.sent("POST", f"/images?{urlencode({'variants': 'thumb', **words, **bad})}", MAKING["/images"])
        for query in (f"reference={FILENAME}", f"tag={FILENAME}", f"tag={FILENAME},", f"reference={FILENAME}%00"):
            self.sent("GET", f"/images?{query}")
        for path in (FILENAME, "app/", f"app/{FILENAME}"):
            self.sent("GET", f"/{path}")
        boto3.client("s3").put_object(Bucket=aws.uploads_bucket, Key=f"uploads/{announced}", Body=MAKING["/images"])
        boto3.client("sqs").send_message(QueueUrl=aws.upload_queue_url, MessageBody=event(f"uploads/{announced}"))
        self.worked("accept_upload", received(aws.upload_queue_url))
        asked = json.dumps({"url": f"http://127.0.0.1:9/{FILENAME}?token={FILENAME}"}).encode()
        self.sent("POST", "/images", asked, content_type="application/json")
        self.worked("fetch_original", received(aws.fetch_queue_url))
        self.worked("hold_images", received(aws.hold_queue_url))
        self.worked("transcode_image", received(aws.fast_queue_url))
        for key in self.batches() or ["holds/2027-02-20T06-35-00.000Z/0.json.gz"]:
            wake_at = "2026-01-01T00:00:00Z"
            self.worked("release_images", {"key": key, "position": 0, "wake_at": wake_at, "begins_at": None})
        for path in ("", "/status", "/variants/thumb"):
            for query in ("", f"?filename={FILENAME}"):
                self.sent("GET", f"/images/{image}{path}{query}")
            self.sent("GET", f"/images/{FILENAME}{path}")
        self.sent("PATCH", f"/images/{soon}", MOVE)
        self.sent("DELETE", f"/images/{soon}")
        self.worked("publish_events", {"Records": written(aws.images_table)})
        self.worked("count_usage", received(aws.usage_queue_url))
        self.worked("count_batches", {"Records": written(aws.images_table)})
        self.sent("POST", f"/batches/{batch}/close")
        self.worked("sweep_due_bulk", {})
        of_batches = [
            write for write in written(aws.batches_table) if "counts" in write["dynamodb"].get("NewImage", ())
        ]
        self.worked("publish_events", {"Records": of_batches})
        self.worked("create_deliveries", received(aws.webhooks_queue_url))
        self.worked("deliver_event", received(aws.delivery_queue_url))
        self.worked("sweep_due_images", {})
        self.worked("sweep_due_endpoints", {})
        self.worked("archive_dead_letters", {})
        self.worked("redirect_image", http_event("GET", f"/i/{image}/thumb"))
        self.worked("redirect_image", http_event("GET", f"/i/{image}/{FILENAME}"))
        for path in (f"{image}/w_320.jpg", f"{image}/{FILENAME}", f"{image}/w_320.jpg?sig={FILENAME}"):
            self.worked("make_variant", http_event("GET", f"/t/{path}"))
        self.worked("invalidate_edge", told_of(image))
        signed = self.worked("sign_image", {"resource": f"https://images.example/signed/{image}/*"})
        self.signatures |= {signed[name] for name in ("policy", "signature")} if signed else set()

    def batches(self) -> list[str]:
        listed = boto3.client("s3").list_objects_v2(Bucket=self.gateway.aws.holds_bucket)
        return [entry["Key"] for entry in listed.get("Contents", [])]

    def worked(self, function: str, event: dict[str, Any]) -> Any:
        self.invoked.add(function)
        try:
            return call(self.gateway.function(function), event)
        except Exception as error:  # Lambda logs its message
            handler: Any = telemetry.logger.registered_handler
            handler.stream.write(repr(error))
            return None

    def sent(self, method: str, path: str, body: bytes | None = None, **headers: str) -> str:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        answer = self.gateway.request(method, path, body=body, headers=self.headers | named)
        for name, value in _signed(answer.body, answer.headers):
            self.signed.add(name)
            self.signatures.add(value)
        if answer.body and "secret" in answer.body:
            self.signatures.add(answer.body["secret"])
        return answer.body.get("id", "0" * 26) if answer.body else ""


def _signed(body: Any, headers: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Everything that, by its name, authorizes its bearer: in URLs and in the fields of forms."""
    text = json.dumps(body)
    addresses = [headers.get("Location", ""), *re.findall(r'"(https?://[^"]+)"', text)]
    for address in addresses:
        for name, values in parse_qs(urlsplit(address).query).items():
            if name in ("X-Amz-Signature", "X-Amz-Security-Token"):
                yield name, values[0]
    yield from re.findall(r'"(x-amz-signature|x-amz-security-token|policy)": "([^"]+)"', text)


OF_IMAGES = {
    *("accepted", "announced", "moved", "deleted"),
    *("notification settled", "fetch settled", "run", "event published", "deliveries noted", "delivery"),
}
"""The messages of lines that are about one image, when nothing fails."""

WORKERS = ("sweep_due_images", "transcode_image", "accept_upload", "fetch_original")


def lines_in(log: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.getvalue().splitlines() if line.startswith("{")]


@pytest.mark.promise("every-log-line")
def test_every_line_has_its_trace_and_a_request_and_what_is_about_an_image_has_its_id(
    aws: Aws, bearer: dict[str, str], monkeypatch: pytest.MonkeyPatch, log: io.StringIO
) -> None:
    gateway = Gateway(aws, monkeypatch)
    run = Run(gateway, bearer, with_edge(monkeypatch))
    run.everything()
    well = lines_in(log)
    run.fail()
    run.everything()
    lines = lines_in(log)
    silent = {"sign_image"}  # what it does is told by the image's reader
    assert {line["function_name"] for line in lines} == FUNCTIONS - silent, "a new function: have it run here"
    trace_id = TRACE.split(";")[0].removeprefix("Root=")
    assert {line.get("trace_id") for line in lines} == {trace_id}
    assert {line.get("correlation_id") for line in lines} == {REQUEST_ID, INVOCATION_ID}
    assert "xray_trace_id" not in log.getvalue()
    for line in lines:
        named = set(re.findall(rf"(?<![0-9a-z_]){IMAGE_ID_PATTERN}(?![0-9a-z])", json.dumps(line)))
        assert not named or line.get("image_id") in named, line
    assert {line["message"] for line in lines if "image_id" in line} >= OF_IMAGES
    # While nothing fails, each such line has an image; but for the events of webhooks and of batches.
    of_images = [line for line in well if line["message"] in OF_IMAGES]
    assert all(
        "image_id" in line for line in of_images if not line.get("event_id", "").startswith(("ping-", "we_", "ba_"))
    )
    # Where the row is known, the request that accepted the image is too; a line about no image has its invocation.
    by_row = [
        line
        for line in well
        if line["message"] in ("run", "notification settled", "fetch settled", "event published")
        and "batch_id" not in line
    ]
    settling = {"transcode_image", "accept_upload", "fetch_original", "publish_events"}
    assert {line["function_name"] for line in by_row} == settling
    assert {line["correlation_id"] for line in by_row} == {REQUEST_ID}
    of_none = [line for line in well if line["function_name"] in WORKERS and line["message"] in ("swept", "timing")]
    assert {line["correlation_id"] for line in of_none} == {INVOCATION_ID}
    assert not any("image_id" in line or "message_id" in line for line in of_none)


@pytest.mark.guards("logs-run-needs-attempt")
def test_an_attempt_is_one_line_that_says_when_it_reached_what(
    aws: Aws, bearer: dict[str, str], monkeypatch: pytest.MonkeyPatch, log: io.StringIO
) -> None:
    gateway = Gateway(aws, monkeypatch)
    run = Run(gateway, bearer)
    image_id = run.sent("POST", "/images?variants=thumb", MAKING["/images"])
    event = received(aws.fast_queue_url)
    run.worked("transcode_image", event)
    run.worked("transcode_image", event)
    lines = lines_in(log)
    (line,) = [line for line in lines if line["message"] == "run"]
    assert (line["image_id"], line["lane"], line["run"], line["attempt"]) == (image_id, "fast", 1, 1)
    assert line["outcome"] == "done" and "cause" not in line
    marks = line["milliseconds"]
    assert list(marks) == list(MARKS)
    assert marks["accepted"] == 0
    assert list(marks.values())[2:] == sorted(list(marks.values())[2:])
    (settled,) = [line for line in lines if line["message"] == "delivery settled"]
    assert settled["outcome"] == "terminal"


def test_an_attempt_that_fails_is_one_line_too_and_says_how_far_it_came(
    aws: Aws, bearer: dict[str, str], monkeypatch: pytest.MonkeyPatch, log: io.StringIO
) -> None:
    run = Run(Gateway(aws, monkeypatch), bearer)
    image_id = run.sent("POST", "/images?variants=thumb", MAKING["/images"])

    def fail(*_: object, **__: object) -> None:
        raise KeyError("a bug")

    monkeypatch.setattr(run.gateway.function("transcode_image").ports.outputs, "put_if_absent", fail)
    run.worked("transcode_image", received(aws.fast_queue_url))
    lines = lines_in(log)
    (line,) = [line for line in lines if line["message"] == "run"]
    assert (line["image_id"], line["correlation_id"]) == (image_id, REQUEST_ID)
    assert (line["outcome"], line["cause"], line["attempt"]) == ("put_back", "KeyError", 1)
    assert {"claimed", "decoded", "developed", "finished"} <= line["milliseconds"].keys()
    assert "stored" not in line["milliseconds"]


def test_the_sdk_sends_the_trace_of_the_invocation_along(
    aws: Aws, bearer: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = Gateway(aws, monkeypatch)
    function = gateway.function("submit_image")
    sent: list[str] = []

    def note(request: Any, **_: object) -> None:
        sent.append(request.headers["X-Amzn-Trace-Id"].decode())

    function.ports.lanes._client.meta.events.register("before-send.sqs.SendMessage", note)
    Run(gateway, bearer).sent("POST", "/images?variants=thumb", MAKING["/images"])
    assert sent == [TRACE]


def test_the_last_line_of_an_invocation_says_what_took_its_time(
    aws: Aws, monkeypatch: pytest.MonkeyPatch, log: io.StringIO
) -> None:
    assert call(load("submit_image", aws, monkeypatch), http_event("POST", "/images", body=jpeg()))["statusCode"] == 202
    line = json.loads(log.getvalue().splitlines()[-1])
    assert line["message"] == "timing"
    calls = line["aws_calls"]
    assert {"s3:PutObject", "dynamodb:PutItem", "sqs:SendMessage"} <= calls.keys()
    assert calls["dynamodb:PutItem"]["count"] == 1
    assert 0 < calls["s3:PutObject"]["milliseconds"] < line["milliseconds"]


@pytest.mark.parametrize(("sampling", "is_logged"), [((0.0, 60.0), False), ((0.0, 0.0), True), ((1.0, 60.0), True)])
def test_the_times_of_some_invocations_are_logged_and_of_all_slow_ones(
    sampling: tuple[float, float], is_logged: bool, aws: Aws, monkeypatch: pytest.MonkeyPatch, log: io.StringIO
) -> None:
    for name, value in zip(("TIMING_SHARE", "SLOW_SECONDS"), sampling, strict=True):
        monkeypatch.setattr(telemetry, name, value)
    assert call(load("submit_image", aws, monkeypatch), http_event("POST", "/images", body=jpeg()))["statusCode"] == 202
    messages = [json.loads(line).get("message") for line in log.getvalue().splitlines()]
    assert ("timing" in messages, "accepted" in messages) == (is_logged, True)


@pytest.mark.guards("logs-failed-invocation-timing", case="None-True")
@pytest.mark.guards("logs-failed-record-timing", case="answer3-True")
@pytest.mark.parametrize(
    ("answer", "is_failure"),
    [
        (None, True),
        ({"statusCode": 500}, True),
        ({"statusCode": 429}, False),
        ({"batchItemFailures": [{"itemIdentifier": "1"}]}, True),
        ({"batchItemFailures": []}, False),
        ({"isAuthorized": True}, False),
    ],
)
def test_the_times_of_all_invocations_that_fail_in_whole_or_in_part_are_logged(
    answer: dict[str, Any] | None, is_failure: bool, monkeypatch: pytest.MonkeyPatch, log: io.StringIO
) -> None:
    monkeypatch.setattr(telemetry, "TIMING_SHARE", 0.0)

    @telemetry.entry_point(has_metrics=False)
    def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
        if answer is None:
            raise RuntimeError("a bug")
        return answer

    with nullcontext() if answer is not None else pytest.raises(RuntimeError, match="a bug"):
        handler({}, Context(function_name="f"))
    assert ('"timing"' in log.getvalue()) is is_failure


def test_no_line_repeats_what_is_the_same_on_all_lines_of_a_function(
    aws: Aws, monkeypatch: pytest.MonkeyPatch, log: io.StringIO
) -> None:
    call(load("submit_image", aws, monkeypatch), http_event("POST", "/images", body=jpeg()))
    lines = [json.loads(line) for line in log.getvalue().splitlines() if '"message"' in line]
    assert lines and not {"function_arn", "function_memory_size"} & {name for line in lines for name in line}
