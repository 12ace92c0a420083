"""The transcoder's real handler in this process, warm, before services that answer at once.

    python -m benchmarks.memory.function

Each line of JSON on standard input is a delivery: `event`, the SQS event, `item`, the image's item in its table, and
`original`, the path of its file. Each is answered by a line of JSON: `milliseconds` (the wall clock's), the process's
`cpu_milliseconds`, and its `peak_mb` so far. Only the network is left out: the SDK makes, signs and parses everything.
"""

from __future__ import annotations

import io
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import botocore.httpsession
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders

from benchmarks.api import probe
from benchmarks.engine.worker import cpu_milliseconds, peak_megabytes
from tests.support.fakes.messages import KEYS


class Context(probe.Context):
    """The transcoder's context: it has the whole timeout left."""

    @staticmethod
    def get_remaining_time_in_millis() -> int:
        """The function's whole timeout."""
        return 60_000


class _Body(io.BytesIO):
    """An answer's body, as botocore reads it."""

    def stream(self, *_: object, **__: object) -> Iterator[bytes]:
        """All of it."""
        yield self.read()


class InstantAws:
    """What one delivery needs of AWS: it knows the message's key, its original and its row, and keeps nothing but the
    row."""

    def __init__(self, original: bytes, item: dict[str, Any]) -> None:
        self.original, self.item = original, item

    def send(self, request: Any) -> AWSResponse:
        """The answer to an HTTP request of the SDK."""
        body = b""
        if request.method == "GET":
            body = self.original
        elif b"secretsmanager" in request.headers.get("X-Amz-Target", b""):
            body = json.dumps(_key()).encode()
        elif "X-Amz-Target" in request.headers:
            body = json.dumps(self._dynamodb(json.loads(request.body))).encode()
        headers = HTTPHeaders.from_dict({"Content-Length": str(len(body))})
        return AWSResponse(request.url, 200, headers, _Body(body))

    def _dynamodb(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["TableName"] != os.environ["IMAGES_TABLE"]:
            return {}
        old, values = self.item, request["ExpressionAttributeValues"]
        names = request["ExpressionAttributeNames"].values()
        self.item = old | {name: values[f":{name}"] for name in names if f":{name}" in values}
        return {"Attributes": old if request["ReturnValues"] == "ALL_OLD" else self.item}


def _key() -> dict[str, Any]:
    key = KEYS.current()
    return {"VersionId": key.version_id, "SecretString": key.text, "CreatedDate": key.created_at / 1000}


def main() -> None:
    """Handles deliveries until standard input ends."""
    out = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the function's own log
    aws = InstantAws(b"", {})
    session: Any = botocore.httpsession.URLLib3Session
    session.send = lambda _, request: aws.send(request)
    app = probe.load("transcode_image")
    for line in sys.stdin:
        job = json.loads(line)
        aws.original, aws.item = Path(job["original"]).read_bytes(), job["item"]
        began, began_cpu = time.perf_counter(), cpu_milliseconds()
        app.handler(job["event"], Context())
        took, took_cpu = 1000 * (time.perf_counter() - began), cpu_milliseconds() - began_cpu
        if aws.item["status"] != {"S": "done"}:
            raise RuntimeError(f"{job['original']} was not developed: {aws.item}")
        answer = {"milliseconds": took, "cpu_milliseconds": took_cpu, "peak_mb": peak_megabytes()}
        print(json.dumps(answer), file=out, flush=True)


if __name__ == "__main__":
    main()
