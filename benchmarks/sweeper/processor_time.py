"""The processor time of the calls that a sweep makes: this project's adapters and botocore, answered over loopback.

    python -m benchmarks.sweeper --measure

Each is called two hundred times over a kept connection. The time is this process's alone: the answers come from another
one. Calls to AWS are encrypted besides, which takes some tens of microseconds.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from typing import Any

from darkroom.aws.images.images_table import ImagesTable, to_item
from darkroom.aws.images.memory_table import MemoryTable
from darkroom.aws.images.objects import OutputsBucket
from darkroom.aws.images.queues import LaneQueues
from darkroom.aws.kernel import clients
from darkroom.aws.kernel.signing import MessageSigner
from darkroom.aws.uploads.uploads import UploadsBucket
from darkroom.domain.images.image import Image, message_for
from darkroom.domain.images.transitions import due_now
from darkroom.domain.kernel.ids import image_id_from_bits
from darkroom.domain.kernel.visibility import Visibility
from darkroom.ports.images import Due
from tests.support.fakes.rows import accepted_image
from tests.support.fakes.secrets import FakeSecret
from tests.support.virtual.virtual_time import START

ENTRIES, ROWS, KEYS = 500, 100, 1000
"""How many an index lists, a batch reads and a call deletes while it is measured."""

TIMES = 200

MEASURED: Mapping[str, float] = {
    "images.get": 1.30,
    "images.change": 1.60,
    "images.postpone": 1.15,
    "BatchWriteItem": 1.00,
    "Query": 1.00,
    "HeadObject": 0.95,
    "ListObjects": 1.05,
    "DeleteObjects": 1.35,
    "SendMessage": 1.20,
    "GetQueueAttributes": 1.00,
    "a row that is read": 0.15,
    "an entry that is listed": 0.017,
    "an item that is deleted": 0.01,
    "an object that is deleted": 0.02,
    "a message that is sent": 0.1,
}
"""What was measured last: on one core of an AMD EPYC, 2026-11-26. One vCPU of a function counts as such a core."""

BUCKET_XML = "<?xml version='1.0' encoding='UTF-8'?>"


def image(number: int) -> Image:
    """An image as accepting it makes it."""
    return accepted_image(now=START, image_id=image_id_from_bits(number.to_bytes(16)), tenant_id="acme")


class _Answers(BaseHTTPRequestHandler):
    """AWS's answers to the calls that are measured: always the same ones."""

    protocol_version, wbufsize = "HTTP/1.1", 1 << 20
    items: list[dict[str, Any]]

    def log_message(self, *_: Any) -> None:
        """Says nothing."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        target = self.headers.get("X-Amz-Target")
        if target is None:
            gone = "".join(f"<Deleted>{key}</Deleted>" for key in re.findall("<Key>.*?</Key>", body.decode()))
            self._answer(f"{BUCKET_XML}<DeleteResult>{gone}</DeleteResult>".encode(), "application/xml")
            return
        asked = json.loads(body)
        answers: dict[str, Callable[[], Any]] = {
            "GetItem": lambda: {"Item": self.items[0]},
            "UpdateItem": lambda: {"Attributes": self.items[0]},
            "BatchGetItem": lambda: {"Responses": dict.fromkeys(asked["RequestItems"], self.items[:ROWS])},
            "Query": lambda: {"Items": self._listed(asked)},
            "BatchWriteItem": lambda: {"UnprocessedItems": {}},
            "SendMessage": lambda: {"MessageId": "1", "MD5OfMessageBody": "0"},
            "SendMessageBatch": lambda: {
                "Successful": [
                    {"Id": entry["Id"], "MessageId": "1", "MD5OfMessageBody": "0"} for entry in asked["Entries"]
                ],
                "Failed": [],
            },
            "GetQueueAttributes": lambda: {"Attributes": {"ApproximateNumberOfMessages": "0"}},
        }
        self._answer(json.dumps(answers[target.partition(".")[2]]()).encode(), "application/x-amz-json-1.0")

    def _listed(self, asked: Mapping[str, Any]) -> list[Any]:
        if asked.get("IndexName") != "due":
            return []
        names = "image_id", "due_at", "due_shard"
        return [{name: item[name] for name in names} for item in self.items[:ENTRIES]]

    def do_GET(self) -> None:
        if "versions" in self.path:
            each = "<Version><Key>originals/1</Key><VersionId>v1</VersionId><Size>1</Size></Version>"
            listing = f"<ListVersionsResult><IsTruncated>false</IsTruncated>{each}</ListVersionsResult>"
        else:
            listing = "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>"
        self._answer(f"{BUCKET_XML}{listing}".encode(), "application/xml")

    def do_DELETE(self) -> None:
        self._answer(b"", None, status=204)

    def do_HEAD(self) -> None:
        self._answer(b"", None, status=404)

    def _answer(self, body: bytes, kind: str | None, *, status: int = 200) -> None:
        self.send_response(status)
        if kind is not None:
            self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _serve(pipe: Connection) -> None:
    _Answers.items = [to_item(due_now(image(number), now=START)) for number in range(ENTRIES)]
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
    pipe.send(server.server_port)
    server.serve_forever()


def measure() -> dict[str, float]:
    """Milliseconds of each call, by its name; with `each`, of one more row, entry or object of it."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs,), daemon=True)
    process.start()
    try:
        os.environ |= {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{ours.recv()}",
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
            "AWS_SECRET_ACCESS_KEY": "example",
        }
        return {name: round(milliseconds, 3) for name, milliseconds in _measured().items()}
    finally:
        process.terminate()


def _measured() -> dict[str, float]:
    dynamodb, s3, sqs = clients.dynamodb_client(), clients.s3_client(), clients.sqs_client()
    images, memory = ImagesTable(dynamodb, "images"), MemoryTable(dynamodb, "memory")
    uploads, outputs = UploadsBucket(s3, "uploads"), OutputsBucket(s3, "outputs")
    lanes = LaneQueues(sqs, {"slow": os.environ["AWS_ENDPOINT_URL"]}, MessageSigner(FakeSecret(), lambda: START))
    first, many = image(1), [image(number).image_id for number in range(ROWS)]
    after, message = due_now(first, now=START), message_for(first)
    keys = [f"outputs/{first.image_id}/{number}.jpg" for number in range(KEYS)]
    milliseconds = {
        "images.get": _milliseconds(lambda: images.get(first.image_id)),
        "images.change": _milliseconds(lambda: images.change(first, after)),
        "images.postpone": _milliseconds(lambda: images.postpone(Due(START, first.image_id), START)),
        "BatchWriteItem": _milliseconds(lambda: memory.forget(["1"])),
        "Query": _milliseconds(lambda: images.oldest_waiting("slow", "00")),
        "HeadObject": _milliseconds(lambda: uploads.size_bytes(first.image_id)),
        "ListObjects": _milliseconds(lambda: outputs.keys_of(first.image_id, (Visibility.PRIVATE,))),
        "DeleteObjects": _milliseconds(lambda: outputs.remove(keys[:1])),
        "SendMessage": _milliseconds(lambda: lanes.send(message)),
        "GetQueueAttributes": _milliseconds(lambda: lanes.backlog("slow")),
    }
    return milliseconds | {
        "a row that is read": _each(lambda: images.get_all(many), ROWS, milliseconds["images.get"]),
        "an entry that is listed": _each(
            lambda: list(images.due("00", START, ENTRIES)), ENTRIES, milliseconds["Query"]
        ),
        "an item that is deleted": _each(lambda: memory.forget(keys[:25]), 25, milliseconds["BatchWriteItem"]),
        "an object that is deleted": _each(lambda: outputs.remove(keys), KEYS, milliseconds["DeleteObjects"]),
        "a message that is sent": _each(
            lambda: lanes.send_all("slow", [(message, 0)] * 10), 10, milliseconds["SendMessage"]
        ),
    }


def _each(call: Callable[[], object], items: int, of_one: float) -> float:
    """Milliseconds of one more item in a call that has several."""
    return (_milliseconds(call, times=TIMES // 10) - of_one) / (items - 1)


def _milliseconds(call: Callable[[], object], *, times: int = TIMES) -> float:
    for _ in range(3):
        call()
    began = time.process_time()
    for _ in range(times):
        call()
    return (time.process_time() - began) * 1000 / times
