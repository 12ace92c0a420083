"""A function with the layer of extensions/telemetry: what it did and counted reaches a collector as OTLP."""

from __future__ import annotations

import gzip
import json
import os
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from repository.expand_template import resources, with_parameters
from repository.report import ROOT

FUNCTION = ROOT / "functions" / "archive_dead_letters"
LAYER = ROOT / "build" / "telemetry"
REQUEST_ID = "1b7b0f0e-0000-4000-8000-000000000001"


class Surroundings(ThreadingHTTPServer):
    """Lambda's runtime API with one invocation, an AWS that has nothing to say, and a collector of OTLP/HTTP: `posted`
    are the bodies by their paths."""

    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """A function that is killed leaves its connections as they are."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.posted: dict[str, list[bytes]] = {}
        self.given, self.answered = threading.Event(), threading.Event()

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Surroundings
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        """The next invocation."""
        if self.server.given.is_set():
            self.server.answered.wait()
        self.server.given.set()
        self._answer(
            {
                "Lambda-Runtime-Aws-Request-Id": REQUEST_ID,
                "Lambda-Runtime-Deadline-Ms": str(int(time.time() + 60) * 1000),
                "Lambda-Runtime-Invoked-Function-Arn": "arn:aws:lambda:us-east-1:123456789012:function:archive",
            }
        )

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        body = gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
        self.server.posted.setdefault(self.path, []).append(body)
        self._answer({})
        if "/runtime/" in self.path:
            self.server.answered.set()

    def _answer(self, headers: dict[str, str]) -> None:
        self.send_response(200)
        for name, value in {**headers, "Content-Type": "application/json", "Content-Length": "2"}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(b"{}")


@contextmanager
def surroundings() -> Iterator[Surroundings]:
    with Surroundings() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture(scope="module")
def layer() -> Path:
    """The layer, built for this machine."""
    architecture = {"aarch64": "arm64"}.get(platform.machine(), platform.machine())
    built = subprocess.run(
        [ROOT / "extensions" / "telemetry" / "build.sh", architecture], capture_output=True, text=True, check=False
    )
    if built.returncode:
        pytest.skip(f"the layer's packages cannot be installed: {built.stderr[-500:]}")
    return LAYER


def variables_of(endpoint: str) -> dict[str, str]:
    """What a function of a stack with a layer and this endpoint gets for telemetry."""
    variables = resources("AWS::Lambda::Function")["ArchiveDeadLettersFunction"]["Environment"]["Variables"]
    chosen = with_parameters(variables, Environment="prod", TelemetryLayer="layer", TelemetryEndpoint=endpoint)
    assert chosen["AWS_LAMBDA_EXEC_WRAPPER"] == "/opt/otel-instrument"
    name = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
    return {name: chosen[name]["Fn::Sub"].replace("${TelemetryEndpoint}", endpoint)}


def invoked(layer: Path, server: Surroundings) -> subprocess.CompletedProcess[str]:
    """The function after one invocation, started as Lambda starts it: by the layer's wrapper."""
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.defpath}",
        "PYTHONPATH": f"{FUNCTION}:{ROOT / 'layers' / 'core'}",
        "_HANDLER": "app.handler",
        "AWS_LAMBDA_RUNTIME_API": server.place,
        "AWS_LAMBDA_FUNCTION_NAME": "archive",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://{server.place}",
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
        "POWERTOOLS_SERVICE_NAME": "darkroom",
        "POWERTOOLS_METRICS_NAMESPACE": "Darkroom/shop",
        "DEAD_LETTER_QUEUES": "fast=http://127.0.0.1:1/q",
        "IMAGES_TABLE": "images",
        "ARCHIVE_BUCKET": "archive",
        **variables_of(f"http://{server.place}"),
    }
    runtime = ["sh", "-c", 'exec python -m awslambdaric "$_HANDLER"']  # as its bootstrap finds the handler
    with subprocess.Popen(
        [layer / "otel-instrument", *runtime],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        server.answered.wait(60)
        process.kill()
        return subprocess.CompletedProcess(process.args, 0, stdout=process.communicate()[0])


def test_an_invocation_its_calls_to_aws_and_what_it_counts_reach_a_collector(
    layer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with surroundings() as server:
        log = invoked(layer, server).stdout
    answers = server.posted.get(f"/2018-06-01/runtime/invocation/{REQUEST_ID}/response", [])
    assert [json.loads(answer) for answer in answers] == [{"outcomes": {}, "incomplete": []}], log
    assert '"OldestDeadLetterSeconds":[0.0]' in log, "CloudWatch gets its line as before"

    monkeypatch.syspath_prepend(str(layer / "python"))
    of_traces = import_module("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    of_metrics = import_module("opentelemetry.proto.collector.metrics.v1.metrics_service_pb2")
    traces = [of_traces.ExportTraceServiceRequest.FromString(body) for body in server.posted["/v1/traces"]]
    of_resources = [each for request in traces for each in request.resource_spans]
    spans = {span.name: span for each in of_resources for scope in each.scope_spans for span in scope.spans}
    services = {field.value.string_value for each in of_resources for field in each.resource.attributes
                if field.key == "service.name"}  # fmt: skip
    assert services == {"archive"}
    assert spans.keys() == {"archive", "SQS.ReceiveMessage"}
    assert spans["SQS.ReceiveMessage"].parent_span_id == spans["archive"].span_id

    counted = [of_metrics.ExportMetricsServiceRequest.FromString(body) for body in server.posted["/v1/metrics"]]
    metrics = {
        metric.name: metric
        for request in counted
        for each in request.resource_metrics
        for scope in each.scope_metrics
        for metric in scope.metrics
    }
    assert metrics["darkroom.cold_start"].sum.data_points[0].as_double == 1
    (point,) = metrics["darkroom.oldest_dead_letter_seconds"].histogram.data_points
    assert (point.count, point.sum) == (1, 0)
    assert {field.key: field.value.string_value for field in point.attributes} == {"service": "darkroom"}
