"""The conditions under which a test runs deployed functions: through which wire, at what pace, with which bug.

They are set in the functions' configuration, as an operator would, and restored at the end.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.running.stack import Stack

INJECTED = Path(__file__).with_name("injected")
_HURRIED = "hurried.handler"

ACCEPTOR, UPLOAD_ACCEPTOR, TRANSCODER = "SubmitImageFunction", "AcceptUploadFunction", "TranscodeImageFunction"
FETCHER = "FetchOriginalFunction"
HOLDER, RELEASER, SWEEPER = "HoldImagesFunction", "ReleaseImagesFunction", "SweepDueImagesFunction"
FUNCTIONS = (ACCEPTOR, TRANSCODER, SWEEPER)
"""The functions that accept, develop and rescue. Readers keep their settings: they would presign its addresses."""

_SETTLED_SECONDS = 30


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How fast a stack's time passes: every pause of the product is divided by `divisor`.

    The transcoder's own timeout is one that a busy machine can keep. What depends on it is set with it: the visibility
    of messages outlasts its lease; and the first pause after a failed attempt is divided by less, so that five attempts
    span several such times, as on AWS: a lost answer from the memory of finished work blocks it for that long.
    """

    divisor: int
    retry_floor_seconds: float
    timeout_seconds: int
    visibility_seconds: int


QUICK = Pace(divisor=20, retry_floor_seconds=1.5, timeout_seconds=10, visibility_seconds=12)


@contextmanager
def conditions(stack: Stack, *, wire_url: str, pace: Pace | None) -> Iterator[Conditions]:
    """Route the functions through the wire, at this pace or at the product's own; restore everything afterwards."""
    shipped = {function: configuration(stack, function) for function in FUNCTIONS}
    visibility = _visibility(stack)
    imposed = Conditions(stack=stack, shipped=shipped, wire_url=wire_url, pace=pace)
    try:
        for function in FUNCTIONS:
            imposed.apply(function)
        if pace is not None:
            _set_visibility(stack, pace.visibility_seconds)
        yield imposed
    finally:
        _set_visibility(stack, visibility)
        for function, original in shipped.items():
            configure(stack, function, original)


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """The conditions that a stack is under now."""

    stack: Stack
    shipped: Mapping[str, dict[str, Any]]
    wire_url: str
    pace: Pace | None

    def apply(self, function: str, *, bug: str | None = None) -> None:
        """Start a function anew under these conditions, `bug` being the mark of photos that its engine trips over."""
        configure(self.stack, function, self._of(function, bug))

    def break_engine(self, mark: str) -> None:
        """Deploy an engine with a bug that photos with this mark trigger."""
        self.apply(TRANSCODER, bug=mark)

    def mend_engine(self) -> None:
        """Deploy the engine without the bug."""
        self.apply(TRANSCODER)

    def _of(self, function: str, bug: str | None) -> dict[str, Any]:
        shipped = self.shipped[function]
        variables = {**shipped["Environment"]["Variables"], "AWS_ENDPOINT_URL": self.wire_url}
        changed = {**shipped, "Environment": {"Variables": variables}}
        if self.pace is not None or bug is not None:
            variables["PYTHONPATH"] = str(INJECTED)
            changed["Handler"] = _HURRIED
        if bug is not None:
            variables["INJECTED_MARK"] = bug
        if self.pace is not None:
            variables["INJECTED_DIVISOR"] = str(self.pace.divisor)
            variables["INJECTED_RETRY_FLOOR_SECONDS"] = str(self.pace.retry_floor_seconds)
            if function == TRANSCODER:
                variables["VISIBILITY_SECONDS"] = str(self.pace.visibility_seconds)
                changed["Timeout"] = self.pace.timeout_seconds
        return changed


def configuration(stack: Stack, function: str) -> dict[str, Any]:
    """The settings of a function's configuration that a test changes."""
    settings = stack.client("lambda").get_function_configuration(FunctionName=stack.physical_id(function))
    return {name: settings[name] for name in ("Handler", "Timeout", "Environment")}


def configure(stack: Stack, function: str, configuration: dict[str, Any]) -> None:
    """Give a function this configuration, and return when it is in force."""
    client, name = stack.client("lambda"), stack.physical_id(function)
    client.update_function_configuration(FunctionName=name, **configuration)
    deadline = time.monotonic() + _SETTLED_SECONDS
    while client.get_function_configuration(FunctionName=name)["LastUpdateStatus"] == "InProgress":
        if time.monotonic() > deadline:
            raise TimeoutError(f"{name} did not take its new configuration")
        time.sleep(0.05)


def have_workers(stack: Stack, number: int) -> None:
    """Give each lane that many workers: each is a process that takes most of a second to start."""
    client = stack.client("lambda")
    for mapping in client.list_event_source_mappings(FunctionName=stack.physical_id(TRANSCODER))["EventSourceMappings"]:
        client.update_event_source_mapping(UUID=mapping["UUID"], ScalingConfig={"MaximumConcurrency": number})


def _visibility(stack: Stack) -> int:
    attributes = stack.client("sqs").get_queue_attributes(
        QueueUrl=stack.output("SlowQueueUrl"), AttributeNames=["VisibilityTimeout"]
    )["Attributes"]
    return int(attributes["VisibilityTimeout"])


def _set_visibility(stack: Stack, seconds: int) -> None:
    stack.client("sqs").set_queue_attributes(
        QueueUrl=stack.output("SlowQueueUrl"), Attributes={"VisibilityTimeout": str(seconds)}
    )
