"""What the API's functions carry over into the environments that Lambda restores from one snapshot: nothing that must
differ between them, and nothing that is old by then."""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import batched
from pathlib import Path
from typing import Any

import pytest

from repository.expand_template import expanded_template, raw_template, referred
from repository.report import ROOT
from tests.support.core_alone import CORE_ALONE

RESTORED = Path(__file__).with_name("restored_process.py")
TOKEN = "a token for the credentials"
MONTH = timedelta(days=30)
FUNCTIONS = sorted(
    name
    for name, resource in expanded_template(snap_start="PublishedVersions")["Resources"].items()
    if resource["Type"] == "AWS::Lambda::Function" and "SnapStart" in resource["Properties"]
)


@dataclass(kw_only=True)
class Cloud:
    """Credentials for every caller, and an AWS that refuses every call; it records who called it, and when."""

    url: str = ""
    fetched: int = 0
    calls: list[tuple[str, datetime]] = field(default_factory=list)


@contextmanager
def cloud() -> Iterator[Cloud]:
    """A cloud on this machine, whose clock is a month ahead."""
    it = Cloud()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_request(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if self.path == "/credentials":
                assert self.headers["Authorization"] == TOKEN
                it.fetched += 1
                expiration = datetime.now(UTC) + MONTH + timedelta(hours=6)
                keys = {"AccessKeyId": f"AKIA{it.fetched}", "SecretAccessKey": "secret", "Token": "token"}
                self.answer(200, {**keys, "Expiration": expiration.isoformat()})
                return
            (key,) = re.findall(r"Credential=(\w+)/", self.headers["Authorization"])
            signed_at = datetime.strptime(self.headers["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
            it.calls.append((key, signed_at))
            self.answer(400, {"__type": "AccessDeniedException"})

        do_GET = do_POST = do_PUT = do_HEAD = handle_request  # noqa: N815 -- the names that http.server calls

        def answer(self, status: int, document: dict[str, str]) -> None:
            body = b"" if self.command == "HEAD" else json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        it.url = f"http://127.0.0.1:{server.server_port}"
        yield it
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def variables_of(function: str) -> dict[str, str]:
    """The function's own variables, with plausible values."""
    parameters = raw_template()["Parameters"]
    variables = expanded_template()["Resources"][function]["Properties"]["Environment"]["Variables"]
    values = {}
    for name, stated in variables.items():
        # What it is in AWS, and without a layer of telemetry.
        value = stated["Fn::If"][2] if isinstance(stated, dict) and "Fn::If" in stated else stated
        target = referred(value)
        if target == "AWS::NoValue":
            continue
        if name.startswith("EDGE_"):
            values[name] = ""  # a stack has none unless it is told so
        elif target in parameters:
            values[name] = str(parameters[target]["Default"])
        elif name.endswith("_URL"):
            values[name] = f"https://sqs.us-east-1.amazonaws.com/123456789012/{target}"
        else:
            values[name] = value if isinstance(value, str) else f"darkroom-{str(target).lower()}"
    return values


@dataclass(frozen=True, kw_only=True)
class Restored:
    """What a function's snapshot holds, what its two clones say, and what the cloud has seen of them."""

    snapshot: dict[str, Any]
    clones: list[dict[str, Any]]
    cloud: Cloud


@functools.cache
def restored() -> dict[str, Restored]:
    """Initialises each function and restores it twice, a month later."""
    with ExitStack() as stack:
        clouds = {function: stack.enter_context(cloud()) for function in FUNCTIONS}
        ran = subprocess.run(
            [sys.executable, RESTORED],
            env=CORE_ALONE | {"PATH": os.environ["PATH"]},
            input="\n".join(json.dumps(job_of(function, cloud)) for function, cloud in clouds.items()),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert ran.returncode == 0, ran.stderr
    processes = batched(map(json.loads, ran.stdout.splitlines()), 3, strict=True)
    return {
        function: Restored(snapshot=snapshot, clones=clones, cloud=cloud)
        for (function, cloud), (snapshot, *clones) in zip(clouds.items(), processes, strict=True)
    }


def job_of(function: str, cloud: Cloud) -> dict[str, Any]:
    """What the restored process needs of a function."""
    folder = re.sub(r"(?<=.)([A-Z])", r"_\1", function.removesuffix("Function")).lower()
    variables = {
        **variables_of(function),
        "ACCESS": "anonymous",  # the sample events carry no caller
        "AWS_LAMBDA_INITIALIZATION_TYPE": "snap-start",
        "AWS_LAMBDA_FUNCTION_NAME": folder,
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{cloud.url}/credentials",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN": TOKEN,
        "AWS_ENDPOINT_URL": cloud.url,
    }
    return {
        "folder": str(ROOT / "functions" / folder),
        "variables": variables,
        "event": json.loads((ROOT / "events" / f"{folder}.json").read_text()),
        "ahead_seconds": MONTH.total_seconds(),
    }


@pytest.mark.guards("snapshots-fresh-credentials", case="SubmitImageFunction")
@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_snapshot_holds_no_connection_and_nothing_that_anybody_was_asked_for(function: str) -> None:
    # So no credential, depth, token or failure of a service from before can be taken for a fresh one.
    assert restored()[function].snapshot == {"contacts": [], "sockets": 0}


@pytest.mark.guards("snapshots-random-reseeded", case="SubmitImageFunction")
@pytest.mark.parametrize("function", FUNCTIONS)
def test_environments_from_one_snapshot_draw_different_random_numbers(function: str) -> None:
    first, other = restored()[function].clones
    assert first["random"] != other["random"]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_each_environment_fetches_its_own_credentials_and_goes_by_the_present_time(function: str) -> None:
    cloud = restored()[function].cloud
    assert cloud.fetched == 2
    assert {key for key, _ in cloud.calls} == {"AKIA1", "AKIA2"}
    assert all(abs(signed_at - MONTH - datetime.now(UTC)) < timedelta(hours=1) for _, signed_at in cloud.calls)


@pytest.mark.guards("snapshots-only-where-taken")
def test_without_snapshots_nothing_is_prepared_for_one() -> None:
    # The package is Lambda's: where no snapshot is taken it need not be there, and costs a cold start nothing.
    script = "import sys, darkroom.wiring.kernel.runtime; assert 'snapshot_restore_py' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], env=CORE_ALONE, check=True)
