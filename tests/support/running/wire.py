"""The wire between the functions and AWS, disturbed by microburst: a proxy that fails as AWS and its network do."""

from __future__ import annotations

import functools
import json
import os
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local_aws.gate import relayed
from local_aws.processes import Child
from repository.report import ROOT

_START_SECONDS = 30
_HANG_MILLISECONDS = 60_000

type Rule = dict[str, Any]

# The first of microburst's rules that matches and whose random draw succeeds applies. `reset` cuts the connection
# before the request reaches AWS, `abort_frac` cuts it after the request was carried out, in the middle of the answer.
# Throttling of SQS is left out: microburst gives its code a prefix ("AWS.SimpleQueueService.") that SQS does not send.
DISTURBANCES: tuple[Rule, ...] = (
    {"service": "dynamodb", "probability": 0.01, "error": {"code": "ProvisionedThroughputExceededException"}},
    {"service": "dynamodb", "probability": 0.01, "error": {"code": "InternalServerError"}},
    {"service": "dynamodb", "probability": 0.01, "reset": True},
    {"service": "dynamodb", "probability": 0.02, "response": {"abort_frac": 0.5}},
    {"service": "s3", "probability": 0.01, "error": {"code": "SlowDown"}},
    {"service": "s3", "probability": 0.01, "error": {"code": "InternalError", "status": 500}},
    {"service": "s3", "probability": 0.01, "reset": True},
    {"service": "s3", "probability": 0.02, "response": {"abort_frac": 0.5}},
    {"service": "sqs", "probability": 0.03, "error": {"code": "ServiceUnavailable", "status": 503}},
    {"service": "sqs", "probability": 0.02, "reset": True},
    {"service": "sqs", "probability": 0.05, "response": {"abort_frac": 0.5}},
)


def silence(service: str) -> tuple[Rule, ...]:
    """A service that accepts every request and answers none."""
    return ({"service": service, "timeout_ms": _HANG_MILLISECONDS},)


@dataclass(frozen=True, kw_only=True)
class Wire:
    """A running proxy: clients of `url` reach AWS through it."""

    url: str

    @contextmanager
    def disturbed(self, rules: Sequence[Rule]) -> Iterator[None]:
        """Apply these rules to the wire for the length of the block; afterwards it is undisturbed."""
        self._control("rules", list(rules))
        try:
            yield
        finally:
            self._control("rules", [])

    def faults(self) -> Counter[str]:
        """How often each disturbance has struck so far, such as `s3 reset`."""
        counts: Counter[str] = Counter()
        with _open(f"{self.url}/_microburst/metrics") as answer:
            for line in answer.read().decode().splitlines():
                if line.startswith("microburst_faults_total{"):
                    labels, _, count = line.partition("{")[2].rpartition("} ")
                    named = dict(label.split("=", 1) for label in labels.split(","))
                    kind = f"{json.loads(named['service'])} {json.loads(named['action'])}"
                    counts[kind] += int(count)
        return counts

    def requests(self) -> int:
        """How many requests have passed so far."""
        with _open(f"{self.url}/_microburst/health") as answer:
            return int(json.loads(answer.read())["requests_seen"])

    def _control(self, path: str, document: object) -> None:
        request = urllib.request.Request(  # A port of our own.
            f"{self.url}/_microburst/{path}",
            data=json.dumps(document).encode(),
            headers={"Content-Type": "application/json"},
            method="POST",
        )
        with _open(request):
            pass


@contextmanager
def wire_to(gateway_url: str, *, relay_file: Path, folder: Path) -> Iterator[Wire]:
    """Run a proxy in front of `gateway_url` for the length of the block; its log goes to `folder`. `relay_file` tells
    the emulator by which further host it is reached."""
    ready_file = folder / "wire"
    folder.mkdir(parents=True, exist_ok=True)
    ready_file.unlink(missing_ok=True)
    command: list[str | Path] = [sys.executable, "-m", "tests.support.running.proxy", gateway_url, ready_file]
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": f"{ROOT / 'scripts'}:{ROOT}"}
    with Child(command, environment=environment, folder=folder, log=folder / "wire.log") as child:
        deadline = time.monotonic() + _START_SECONDS
        while not ready_file.exists():
            if child.exit_status is not None or time.monotonic() > deadline:
                raise RuntimeError(f"The proxy did not start:\n{child.log.read_text()}")
            time.sleep(0.05)
        wire = Wire(url=ready_file.read_text())
        with relayed(relay_file, wire.url.removeprefix("http://")):
            yield wire


def _open(request: str | urllib.request.Request) -> Any:
    return _direct().open(request, timeout=_START_SECONDS)


@functools.cache
def _direct() -> urllib.request.OpenerDirector:
    # Ignore any proxy of the machine.
    return urllib.request.build_opener(urllib.request.ProxyHandler({}))
