"""Initialises functions with Lambda's own runtime client and goes on from there in forks, as from a snapshot: see
test_snapshots.

Standard input is a line of JSON per function: its `folder`, its `variables`, the `event` that each fork is invoked
with, and how many seconds their clocks are ahead (`ahead_seconds`). Standard output is a line of JSON for each
snapshot, and then one for each of its forks. Each function starts in a fork of its own of a process that has imported
third-party packages alone, which saves seconds.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import stat
import sys
import time
from types import SimpleNamespace
from typing import Any, Never

import time_machine
from awslambdaric import bootstrap
from awslambdaric.lambda_runtime_marshaller import LambdaMarshaller

PRELOADED = ("aws_lambda_powertools.metrics", "botocore.session", "pydantic")

FORKS = 2

contacts: list[str] = []
"""What this process has looked up or connected to."""


def note(event: str, arguments: tuple[Any, ...]) -> None:
    """Notes contacts, as an audit hook."""
    if event in ("socket.connect", "socket.getaddrinfo"):
        contacts.append(f"{event} {arguments[-1] if event == 'socket.connect' else arguments[:2]}")


def open_sockets() -> int:
    """How many sockets this process has, connected or not."""
    count = 0
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 -- one of them is the listing's own
        try:
            count += stat.S_ISSOCK(os.fstat(int(name)).st_mode)
        except OSError:
            continue
    return count


class Runtime:
    """Lambda's Runtime API, as its client in this process calls it. The snapshot is this process, a fork each what is
    restored from it."""

    def __init__(self, event: Any, ahead_seconds: float) -> None:
        self.marshaller = LambdaMarshaller()
        self._event = event
        self._ahead_seconds = ahead_seconds
        self._invocations = 0

    def restore_next(self) -> None:
        tell(contacts=contacts, sockets=open_sockets())
        state = random.getstate()
        for _ in range(FORKS):
            if os.fork() == 0:
                random.setstate(state)  # Python reseeds it in a fork, and cannot know of a snapshot
                contacts.clear()
                time_machine.travel(time.time() + self._ahead_seconds).start()
                return
            assert os.wait()[1] == 0
        os._exit(0)

    def wait_next_invocation(self) -> SimpleNamespace:
        if self._invocations:
            tell(random=random.random(), sockets=open_sockets())
            os._exit(0)
        self._invocations += 1
        return SimpleNamespace(
            invoke_id="1b7b0f0e-0000-4000-8000-000000000001",
            invocation_id=None,
            tenant_id=None,
            x_amzn_trace_id=None,
            event_body=json.dumps(self._event),
            content_type="application/json",
            client_context=None,
            cognito_identity=None,
            invoked_function_arn="arn:aws:lambda:us-east-1:123456789012:function:f:live",
            deadline_time_in_ms=int((time.time() + 20) * 1000),
        )

    def post_invocation_result(self, *_: object, **__: object) -> None:
        """The answer to the invocation."""

    def post_invocation_error(self, *_: object, **__: object) -> None:
        """That the invocation failed: AWS refuses everything here."""

    def post_init_error(self, error: object, *_: object) -> Never:
        sys.exit(f"the initialisation failed: {error}")

    report_restore_error = post_init_error


def tell(**facts: object) -> None:
    """Writes a line of JSON."""
    os.write(_answers, json.dumps(facts).encode() + b"\n")


def begin(job: dict[str, Any]) -> Never:
    """Runs a function in this process, to its snapshot."""
    os.environ.update(job["variables"])
    sys.path.insert(0, job["folder"])
    sys.addaudithook(note)
    bootstrap.run("app.handler", Runtime(job["event"], job["ahead_seconds"]))
    raise RuntimeError("the runtime client never returns")


if __name__ == "__main__":
    _answers = os.dup(1)  # the functions' own output goes elsewhere
    os.dup2(2, 1)
    for name in PRELOADED:
        importlib.import_module(name)
    for line in sys.stdin:
        if os.fork() == 0:
            begin(json.loads(line))
        assert os.wait()[1] == 0, line
