"""The functions' logs contain nothing with which anybody could act for a client, and no data of a client's own."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import boto3
import pytest

from darkroom import telemetry
from darkroom.aws import clients
from proof.fakes.pictures import jpeg
from tests.contract.conftest import Aws
from tests.contract.functions import ROOT, call, http_event, load, received, written
from tests.contract.gateway import Gateway
from tests.contract.test_tenant_matrix import MAKING, MOVE
from tests.unit.test_upload_notification import event

FUNCTIONS = {path.parent.name for path in ROOT.glob("functions/*/app.py")}
FILENAME = "from-our-holiday-in-secretville"
SESSION = "c2Vzc2lvbi1vZi10aGUtcm9sZQ"
SIGNING = "sEcReT/oF/tHe/FuNcTiOnS/rOlE"
PRIVATE = {
    "cookie": "session=browsers-own-session",
    "content-disposition": f'attachment; filename="{FILENAME}.jpg"',
    "x-amz-meta-filename": FILENAME,
}
"""What a client may send besides its credential."""

FORM = "multipart/form-data; boundary=boundary"


def form(photo: bytes) -> bytes:
    """A browser's form with a photo, whose part contains its filename."""
    head = f'--boundary\r\nContent-Disposition: form-data; name="file"; filename="{FILENAME}.jpg"\r\n\r\n'
    return head.encode() + photo + b"\r\n--boundary--\r\n"


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    stream = io.StringIO()
    monkeypatch.setattr(telemetry.logger.registered_handler, "stream", stream)
    return stream


def test_no_function_logs_a_credential_a_signature_or_a_filename_whether_it_succeeds_or_fails(
    aws: Aws,
    bearer: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    log: io.StringIO,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SIGNING)
    monkeypatch.setenv("AWS_SESSION_TOKEN", SESSION)
    clients._session.cache_clear()  # it would keep the credentials of other tests
    gateway = Gateway(aws, monkeypatch)
    run = Run(gateway, bearer | PRIVATE)
    run.everything()
    assert {"X-Amz-Signature", "x-amz-signature"} <= run.signed, "there were addresses and forms to hide"
    # From here on everything fails, at its first call.
    for table in (aws.images_table, aws.reservations_table, aws.endpoints_table):
        boto3.client("dynamodb").delete_table(TableName=table)
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


class Run:
    """Gives every function work, and remembers what was signed on the way."""

    def __init__(self, gateway: Gateway, headers: dict[str, str]) -> None:
        self.gateway, self.headers = gateway, headers
        self.invoked: set[str] = set()
        self.signed: set[str] = set()
        self.signatures: set[str] = set()

    def everything(self) -> None:
        aws = self.gateway.aws
        url = f"http://127.0.0.1:9/{FILENAME}"  # where nothing listens
        webhook = self.sent("POST", "/webhooks", json.dumps({"url": url, "description": FILENAME}).encode())
        self.sent("POST", "/webhooks", json.dumps({"url": f"{url} {FILENAME}", "secret": FILENAME}).encode())
        for path in ("", f"/{webhook}", f"/{webhook}/deliveries", f"/{webhook}/deliveries?cursor={FILENAME}"):
            self.sent("GET", f"/webhooks{path}")
        for path in ("rotate", "ping", "recover"):
            self.sent("POST", f"/webhooks/{webhook}/{path}")
        image = self.sent("POST", "/images?variants=thumb", MAKING["/images"])
        self.sent("POST", "/images?variants=thumb", form(jpeg(50, 40)), content_type=FORM)
        soon = self.sent("POST", "/images?delay=PT20M", jpeg(60, 40))
        announced = self.sent("POST", "/uploads", MAKING["/uploads"])
        for path in ("/images", "/uploads"):
            self.sent("POST", f"{path}?filename={FILENAME}", MAKING[path])
        self.sent("GET", f"/images?cursor={FILENAME}")
        self.sent("POST", f"/images?preset={FILENAME}", MAKING["/images"])
        self.sent("POST", f"/images?recipe={FILENAME}", MAKING["/images"])
        self.sent("GET", f"/{FILENAME}")
        boto3.client("s3").put_object(Bucket=aws.uploads_bucket, Key=f"uploads/{announced}", Body=MAKING["/images"])
        boto3.client("sqs").send_message(QueueUrl=aws.upload_queue_url, MessageBody=event(f"uploads/{announced}"))
        self.worked("accept_upload", received(aws.upload_queue_url))
        self.worked("hold_images", received(aws.hold_queue_url))
        self.worked("transcode_image", received(aws.fast_queue_url))
        for key in self.batches() or ["holds/2027-02-20T06-35-00.000Z/0.json.gz"]:
            wake_at = "2026-01-01T00:00:00Z"
            self.worked("release_images", {"key": key, "position": 0, "wake_at": wake_at, "begins_at": None})
        for path in ("", "/status", "/variants/thumb"):
            for query in ("", f"?filename={FILENAME}"):
                self.sent("GET", f"/images/{image}{path}{query}")
        self.sent("PATCH", f"/images/{soon}", MOVE)
        self.sent("DELETE", f"/images/{soon}")
        self.worked("publish_events", {"Records": written(aws.images_table)})
        self.worked("count_usage", received(aws.usage_queue_url))
        self.worked("create_deliveries", received(aws.webhooks_queue_url))
        self.worked("deliver_event", received(aws.delivery_queue_url))
        self.worked("sweep_due_images", {})
        self.worked("archive_dead_letters", {})

    def batches(self) -> list[str]:
        listed = boto3.client("s3").list_objects_v2(Bucket=self.gateway.aws.holds_bucket)
        return [entry["Key"] for entry in listed.get("Contents", [])]

    def worked(self, function: str, event: dict[str, Any]) -> None:
        self.invoked.add(function)
        try:
            call(self.gateway.function(function), event)
        except Exception as error:  # Lambda logs its message
            handler: Any = telemetry.logger.registered_handler
            handler.stream.write(repr(error))

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
