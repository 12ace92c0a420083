"""`darkroom logs`: which lines it reads, once each, and how it ends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from darkroom_cli.logs import work
from darkroom_cli.terminal.interrupts import Interrupts
from tests.support.fakes import World
from tests.support.stack import FakeStack
from tests.unit.cli.conftest import Run

ID = "0" * 26


LOG_GROUPS = {"api": "/api", "submit_image": "/submit", "transcode_image": "/worker"}


@pytest.fixture
def stack(stack: FakeStack, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeStack]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with mock_aws():
        stack.world = Logged()
        yield stack


class Logged(World):
    """A world with the logs of two functions and of the gateway."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.log_groups = LOG_GROUPS
        self.logs: Any = boto3.client("logs", region_name="us-east-1")
        for group in LOG_GROUPS.values():
            self.logs.create_log_group(logGroupName=group)
            self.logs.create_log_stream(logGroupName=group, logStreamName="one")

    def client(self, service: str) -> Any:
        assert service == "logs"
        return self.logs

    def log(self, source: str, seconds_ago: float, **fields: Any) -> None:
        """The function or the gateway logs a line."""
        event: Any = {"timestamp": self.now - round(seconds_ago * 1000), "message": json.dumps(fields)}
        self.logs.put_log_events(logGroupName=LOG_GROUPS[source], logStreamName="one", logEvents=[event])


def shown(run: Run, *arguments: str) -> list[str]:
    """The messages of the lines that are shown, in their order."""
    result = run("logs", *arguments, "--json")
    assert result.exit_code == 0, result.output
    documents = [json.loads(line) for line in result.stdout.splitlines()]
    return [
        f"{document['source']} {document['line'].get('message') or document['line']['status']}"
        for document in documents
    ]


def test_all_logs_are_shown_in_time_or_those_that_are_named(run: Run, stack: FakeStack) -> None:
    stack.log("transcode_image", 30, message="run", image_id=ID)
    stack.log("submit_image", 60, message="accepted", image_id=ID)
    stack.log("api", 50, status="202", ip="203.0.113.7")
    stack.log("submit_image", 700, message="long ago")
    assert shown(run) == ["submit_image accepted", "api 202", "transcode_image run"]
    for name in ("submit_image", "SubmitImageFunction", "SubmitImageLogs"):
        assert shown(run, name) == ["submit_image accepted"]
    assert shown(run, "submit_image", "--since", "1h") == ["submit_image long ago", "submit_image accepted"]
    assert shown(run, "--since", "2026-11-21T08:59:15Z") == ["transcode_image run"]
    said = run("logs").stdout
    assert "203.0.113.7" not in said and f"image_id={ID}" in said
    none = run("logs", "--text", "nonsense")
    assert (none.exit_code, none.stdout) == (0, "")
    assert none.stderr == "No such line since 2026-11-21T08:50:00.000Z.\n"
    unknown = run("logs", "nonsense")
    assert unknown.exit_code == 1 and "There are: api, submit_image, transcode_image." in unknown.stderr


def test_lines_are_chosen_by_a_text_and_a_level(run: Run, stack: FakeStack) -> None:
    stack.log("submit_image", 9, message='a "quoted" word', level="INFO", image_id=ID)
    stack.log("submit_image", 8, message="warned", level="WARNING", image_id=ID)
    stack.log("transcode_image", 7, message="failed", level="ERROR")
    stack.log("api", 6, status="503")
    assert shown(run, "--text", ID) == ['submit_image a "quoted" word', "submit_image warned"]
    assert shown(run, "--text", ID, "--level", "warning") == ["submit_image warned"]
    asked = list[dict[str, Any]]()
    stack.logs.meta.events.register(
        "provide-client-params.logs.FilterLogEvents", lambda params, **_: asked.append(params)
    )
    shown(run, "api", "--level", "ERROR")
    shown(run, "api", "--text", 'a "b"')
    assert [request["filterPattern"] for request in asked] == ['{ $.status = "5*" }', '"a \\"b\\""']


@pytest.mark.guards("logs-follow-overlap")
def test_following_shows_what_comes_once_also_if_it_comes_late_until_it_is_interrupted(
    run: Run, stack: FakeStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack.log("submit_image", 60, message="before")
    stack.log("submit_image", 1, message="newest")
    looks = list[float]()

    def wait(_: Interrupts, seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 3:
            raise KeyboardInterrupt
        stack.log("transcode_image", 3 - len(looks), message=f"late {len(looks)}")

    monkeypatch.setattr(Interrupts, "wait", wait)
    result = run("logs", "--follow", "--json")
    messages = [json.loads(line)["line"]["message"] for line in result.stdout.splitlines()]
    assert (result.exit_code, messages) == (130, ["before", "newest", "late 1", "late 2"])
    assert looks == [work.DEPLOYED_SECONDS] * 3


def test_a_log_of_too_many_lines_is_said_to_be_cut(run: Run, stack: FakeStack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "MOST_LINES", 1)
    for number in range(2):
        stack.log("submit_image", 9 - number, message=f"m{number}")
    result = run("logs", "submit_image")
    assert "m0" in result.stdout and "m1" not in result.stdout
    assert "Of submit_image only the first 1 lines were read." in result.stderr


@pytest.mark.parametrize("arguments", [["--since", "soon"], ["--level", "loud"]])
def test_what_makes_no_sense_is_a_usage_error(run: Run, stack: FakeStack, arguments: list[str]) -> None:
    assert run("logs", *arguments).exit_code == 2
