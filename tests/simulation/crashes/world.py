"""A whole Darkroom in this process: the real handlers and adapters over moto, under a clock that only this moves."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import random
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ExitStack, redirect_stdout
from dataclasses import dataclass, field, replace
from typing import Any, Self
from unittest.mock import patch

import time_machine
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from moto import mock_aws
from moto.core.botocore_stubber import BotocoreStubber
from moto.core.models import DEFAULT_ACCOUNT_ID, botocore_stubber
from moto.moto_api._internal import mock_random
from moto.sqs.models import Message, Queue, SQSBackend

from darkroom.domain.images.image import Image, Status
from darkroom.domain.kernel.instants import Milliseconds, rfc3339
from darkroom.domain.kernel.retry import RetryPolicy
from darkroom.domain.kernel.tenants import NOBODY_IN_PARTICULAR, Caller, Tier, context_of
from darkroom.egress.request import EgressResponse
from tests.simulation.crashes import deployment, processes
from tests.simulation.crashes.engine import Develop, develop_once
from tests.simulation.crashes.processes import Context, Process
from tests.simulation.crashes.promises import Broken, ViolationKind, check
from tests.simulation.crashes.scale import AS_DEPLOYED, Scale
from tests.simulation.crashes.stores import REGION, Stores, change_visibility
from tests.simulation.crashes.wire import Faults, Invocation, Planned, Wire
from tests.support import quick_aws  # noqa: F401 - imported for what it does
from tests.support.faults import ProcessDied

START: Milliseconds = 1_795_251_630_000  # between two sweeps
MINUTE = 60_000
STREAM_PAUSE = 1_000
"""How long a stream's mapping waits after a failure."""

COPY = "copy"
"""The message attribute of a copy of a message, which nothing in the code reads."""

MOST_EVENTS = 300
"""The deliveries and sweeps within which a history ends: one that is struck twice takes some twenty."""

_OF_EVENTS = re.compile(r'"(time|timestamp|sequence|process_at)":"[^"]*",?')
"""Matches what in an event's text says when it happened."""

_INSTANT = re.compile(r"\b179\d{7}(?:\d{3}(?:\.\d+)?)?\b")
"""Matches this world's instants in a text: in seconds, or in milliseconds with or without a fraction."""

_MOTO = BotocoreStubber.__call__

WITHOUT_A_NAME = replace(NOBODY_IN_PARTICULAR, allowance=Tier.FREE.allowance, key_id="00000000")
"""A caller of the default tenant, which is in the free tier."""


class InvocationFailed(Exception):
    """The function raised, or its process died: its caller only sees an error."""


@dataclass(eq=False)
class World:
    """The deployed system, its queues' pollers, its schedule and its clock; used as a context manager, one at a time.

    `before_develop` is called just before an original is developed, and may raise. `on_quiet` is called whenever no
    function is at work and the next event is about to be chosen. With `every_minute` sweeps run in quiet minutes too,
    in which nothing is due. `position` says how far the people in the history have come; it is the same text only if
    they would go on in the same way. With `copies` every delivered message is soon delivered once more, as SQS may do.
    `served` are the statuses with which the one web server answers before it sends `photo`, and `before_served` is
    called just before it does. `may_leave` is the terminal state that an operator may make an image leave. `caller` is
    whom the authorizer takes those people for. Only with `pauses` do the functions look at what is paused.
    """

    scale: Scale = AS_DEPLOYED
    faults: Faults = field(default_factory=Planned)
    before_develop: Callable[[], None] | None = None
    on_quiet: Callable[[], None] | None = None
    every_minute: bool = False
    copies: bool = False
    photo: bytes = b""
    served: list[int] = field(default_factory=list)
    before_served: Callable[[], None] | None = None
    may_leave: Status | None = None
    caller: Caller = WITHOUT_A_NAME
    pauses: bool = False

    now: Milliseconds = START
    position: str = "at the beginning"
    story: list[str] = field(default_factory=list)
    events: Counter[str] = field(default_factory=Counter)
    endings: Counter[tuple[str, int]] = field(default_factory=Counter)
    """How often each run of each image has reached a terminal state."""

    lost: set[str] = field(default_factory=set)
    """Keys of outputs that somebody has removed."""

    planted: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Rows of a version unknown to this one, by their ids."""

    _last_sweep_at: Milliseconds = 0
    _published: int = 0
    """How many of the stream's writes need not be handed over again."""
    _stream_at: Milliseconds = 0
    """When they are handed over again after a failure."""
    _invocations: Counter[str] = field(default_factory=Counter)
    _processes: dict[str, Process] = field(default_factory=dict)
    _spares: dict[str, list[Process]] = field(default_factory=dict)
    _stages: dict[str, tuple[Status, int]] = field(default_factory=dict)
    _served: dict[str, set[str]] = field(default_factory=dict)

    def __enter__(self) -> Self:
        self.functions, self.stream = deployment.functions(), deployment.stream_source()
        self.wire = Wire(apply=_apply, faults=self.faults, applied=self._applied)
        credentials = {"AWS_ACCESS_KEY_ID": "nobody", "AWS_SECRET_ACCESS_KEY": "nobody", "AWS_DEFAULT_REGION": REGION}
        with ExitStack() as stack:
            stack.enter_context(warnings.catch_warnings())
            # A handler that fails before it has counted anything publishes no metrics.
            warnings.filterwarnings("ignore", "No application metrics to publish")
            self._clock = stack.enter_context(time_machine.travel(0, tick=False))
            self._move_clock(self.now)
            # The SDK's pauses take no time, so that a struck history can reach exactly the state of another one.
            # Everything else that waits does so by this clock.
            stack.enter_context(patch("time.sleep", lambda seconds: None))
            stack.enter_context(patch("time.monotonic", lambda: self.now / 1000))
            stack.enter_context(patch.object(Queue, "wait_for_messages", lambda _, timeout: self.sleep(timeout)))
            stack.enter_context(patch.object(SQSBackend, "change_message_visibility", change_visibility))
            stack.enter_context(patch.dict(os.environ, credentials))
            # The session stays: it holds botocore's models, which load slowly, and nothing of the product.
            stack.enter_context(mock_aws(config={"core": {"mock_credentials": False, "reset_boto3_session": False}}))
            stack.enter_context(patch.object(BotocoreStubber, "__call__", self._before_send))
            for part in ("canonical_request", "signature"):  # nobody checks signatures here, and they take their time
                stack.enter_context(patch.object(SigV4Auth, part, lambda *_: ""))
            stack.enter_context(self.scale.applied())
            self._stop_before_developing(stack)
            stack.enter_context(patch.object(processes, "on_request", self._serve))
            random.seed(1)
            mock_random.seed(1)
            self.stores = Stores(self.scale)
            self._leave = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._leave.close()

    def _before_send(self, event_name: str, request: AWSPreparedRequest, **_: Any) -> AWSResponse | None:
        return self.wire.send(event_name, request)

    def _stop_before_developing(self, stack: ExitStack) -> None:
        import darkroom.operations.images.transcode_image as operation  # noqa: PLC0415 - after the scale has set its numbers

        engine: Develop = vars(operation)["developing"]

        def developing(original: bytes, recipe: Any, **options: Any) -> AbstractContextManager[Any]:
            if self.before_develop is not None:
                self.before_develop()
            return develop_once(engine, original, recipe, options)

        stack.enter_context(patch.object(operation, "developing", developing))

    def _serve(self) -> EgressResponse:
        if self.before_served is not None:
            self.before_served()
        status = self.served.pop(0) if len(self.served) > 1 else (*self.served, 200)[0]
        headers = {"etag": '"7"', "content-length": str(len(self.photo))}
        return EgressResponse(status=status, headers=headers, body=self.photo if status == 200 else b"", milliseconds=1)

    # ── Time ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def clock(self) -> Milliseconds:
        """What time it is."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Lets time pass in which nothing else happens."""
        self._move_clock(self.now + max(1, int(seconds * 1000)))

    def _move_clock(self, now: Milliseconds) -> None:
        self.now = now
        self._clock.move_to((now + 0.5) / 1000)  # the middle of the millisecond, so that rounding never changes it

    def pass_time(self, seconds: float) -> None:
        """Lets that much time pass, with every event that is due in it."""
        self.pass_until(self.now + int(seconds * 1000))

    def pass_until(self, end: Milliseconds) -> None:
        """Lets the time until `end` pass, with every event that is due in it."""
        self.position += f" until {end}"
        while (event := self._next_event()) is not None and event[0] <= end:
            self._play(*event)
        self._move_clock(max(self.now, end))
        self._tell_quiet()

    def settle(self) -> None:
        """Goes on until no message is left to deliver and no image is due. Raises Broken if that never happens."""
        for _ in range(MOST_EVENTS):
            event = self._next_event()
            if event is None or (
                self._next_message() is None and self._due_at() is None and self._next_writes() is None
            ):
                break
            self._play(*event)
        else:
            raise Broken(
                ViolationKind.STUCK, f"after {MOST_EVENTS} deliveries and sweeps there is still something to do"
            )
        self._move_clock(self._next_minute())
        self._sweep()
        self.position += ", settled"
        self._tell_quiet()

    def _next_event(self) -> tuple[Milliseconds, str] | None:
        """The instant and the queue or table of the next delivery, or the instant and no queue for a sweep."""
        self._tell_quiet()
        message, due_at = self._next_message(), self._due_at()
        writes = self._next_writes()
        if writes is not None and (message is None or writes[0] <= message[0]):
            message = writes
        sweep_at = None
        if self.every_minute:
            sweep_at = self._next_minute()
        elif due_at is not None:
            # A sweep in a minute when nothing is due reads and changes nothing: a test plays those minutes too.
            sweep_at = max(self._next_minute(), _minute_from(due_at))
        if message is not None and (sweep_at is None or message[0] <= sweep_at):
            return message
        return None if sweep_at is None else (sweep_at, "")

    def _tell_quiet(self) -> None:
        if self.on_quiet is not None and not self.wire.running:
            self.on_quiet()

    def _play(self, at: Milliseconds, queue: str) -> None:
        self._move_clock(max(self.now, at))
        if queue == self.stream.table:
            self._hand_over_writes()
        elif queue:
            self._deliver(queue)
        else:
            self._sweep()

    def _next_minute(self) -> Milliseconds:
        return max(_minute_from(self.now), self._last_sweep_at + MINUTE)

    def _pending_writes(self) -> list[tuple[int, dict[str, Any]]]:
        """The writes that the stream has still to hand over, each with its number."""
        written = self.stores.written(self.stream.table)[self._published :]
        return [
            (number, record) for number, record in enumerate(written, self._published) if self.stream.passes(record)
        ]

    def _next_writes(self) -> tuple[Milliseconds, str] | None:
        return (max(self.now, self._stream_at), self.stream.table) if self._pending_writes() else None

    def _due_at(self) -> Milliseconds | None:
        return min((int(row["due_at"]["N"]) for row in self._items() if "due_at" in row), default=None)

    def _next_message(self) -> tuple[Milliseconds, str] | None:
        return min(
            (
                (max(self.now, int(max(message.visible_at, message.delayed_until)) + 1), source.queue)
                for function in self.functions.values()
                for source in function.event_sources
                for message in self.stores.messages(source.queue)
            ),
            default=None,
        )

    # ── Functions ─────────────────────────────────────────────────────────────────────────────────────────────────

    def start_spares(self, names: Iterable[str], count: int) -> None:
        """Initialises processes ahead of time: a new one is the same, whenever it was started."""
        for name in names:
            if name in self.functions:
                self._spares[name] = [self._start(name) for _ in range(count)]

    def _start(self, name: str) -> Process:
        function = self.functions[name]
        environment = self.stores.environment(function.environment) | {
            **({} if self.pauses else {"PAUSES_TABLE": ""}),
            "AWS_LAMBDA_FUNCTION_NAME": name,
            "POWERTOOLS_TRACE_DISABLED": "true",
            "POWERTOOLS_LOG_LEVEL": "CRITICAL",
        }
        return processes.start(name, function.path, environment)

    def invoke(self, name: str, event: dict[str, Any]) -> Any:
        """The function's answer. Raises InvocationFailed if it raises or its process dies."""
        if name not in self._processes:
            spares = self._spares.get(name)
            self._processes[name] = spares.pop() if spares else self._start(name)
        process = self._processes[name]
        timeout_seconds = self.functions[name].timeout_seconds
        return self._run(name, process, timeout_seconds, lambda context: process.handle(event, context))

    def run_command(self, name: str, command: Callable[[], Any]) -> Any:
        """The result of an operator's command, in its own process. Raises InvocationFailed like `invoke`."""
        # The sweeper's environment names every store that an operator uses.
        environment = self.stores.environment(self.functions["sweep_due_images"].environment)
        with processes.fresh_process():
            return self._run(name, Process(environment=environment), 3600, lambda context: command())

    def _run(self, name: str, process: Process, timeout_seconds: int, work: Callable[[Context], Any]) -> Any:
        self._invocations[name] += 1
        request_id = f"{name}-{self._invocations[name]}"
        deadline = self.now + timeout_seconds * 1000
        context = Context(function_name=name, aws_request_id=request_id, deadline=deadline, clock=self.clock)
        invocation = Invocation(function=name)
        first = len(self.wire.points)
        self.events["invocations"] += 1
        self._tell(f"{request_id} starts")
        try:
            with self.wire.of(invocation), process.at_work(), redirect_stdout(io.StringIO()):  # its logs and metrics
                answer = work(context)
            if invocation.dying:
                raise ProcessDied
        except ProcessDied:
            self._processes.pop(name, None)
            self.events["kills"] += 1
            self._tell(f"{request_id} died; {self._calls_since(first)}")
            raise InvocationFailed(f"{name} died") from None
        except Exception as error:
            self._tell(f"{request_id} raised {type(error).__name__}: {error}; {self._calls_since(first)}")
            raise InvocationFailed(f"{name}: {error}") from error
        outcome = answer["statusCode"] if isinstance(answer, dict) and "statusCode" in answer else answer
        self._tell(f"{request_id} → {outcome}; {self._calls_since(first)}")
        return answer

    def _calls_since(self, first: int) -> str:
        return ", ".join(f"{point.number} {point.operation}" for point in self.wire.points[first:]) or "no calls"

    def _tell(self, line: str) -> None:
        self.story.append(f"{rfc3339(self.now)} {line}")

    def request(
        self,
        method: str,
        path: str,
        *,
        body: bytes = b"",
        key: str = "",
        query: dict[str, str] | None = None,
        content_type: str = "",
    ) -> Any:
        """The API's answer: 500 if the function gave none."""
        behind = {"DELETE": "delete_image", "GET": "read_image", "PATCH": "reschedule_image"}
        function = behind.get(method, "begin_upload" if path.startswith("/uploads") else "submit_image")
        headers = {"content-type": content_type} | ({"idempotency-key": key} if key else {})
        event = {
            "version": "2.0",
            "routeKey": f"{method} {path}",
            "rawPath": path,
            "rawQueryString": "&".join(f"{name}={value}" for name, value in (query or {}).items()),
            "queryStringParameters": query or {},
            "headers": {name: value for name, value in headers.items() if value},
            "requestContext": {
                "accountId": DEFAULT_ACCOUNT_ID,
                "apiId": "api",
                "authorizer": {"lambda": context_of(self.caller)},
                "http": {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "203.0.113.7"},
                "requestId": f"gateway-{self._invocations[function] + 1}",
                "stage": "$default",
            },
            "isBase64Encoded": bool(body),
            "body": base64.b64encode(body).decode(),
        }
        try:
            answer = self.invoke(function, event)
        except InvocationFailed:
            return {"statusCode": 500, "headers": {}, "body": ""}
        if answer["statusCode"] >= 500 and '"variant_missing"' not in answer["body"]:
            is_honest = answer["statusCode"] == 503 and "Retry-After" in answer["headers"]
            check(
                is_honest, ViolationKind.LOST, f"{method} {path} was answered {answer['statusCode']}: {answer['body']}"
            )
        return answer

    def upload(self, key: str, body: bytes, *, events: int) -> None:
        """What S3 does with an accepted form: it stores the file, and notifies the upload queue that many times."""
        bucket = self.stores.references["UploadsBucket"]
        self.stores.s3.put_object(Bucket=bucket, Key=key, Body=body)
        event = {"Records": [{"eventSource": "aws:s3", "s3": {"bucket": {"name": bucket}, "object": {"key": key}}}]}
        for _ in range(events):
            self.stores.send("UploadQueue", json.dumps(event))

    def _deliver(self, queue: str) -> None:
        """What an event source mapping does: it receives, invokes, and deletes what was not reported as failed."""
        function, source = next(
            (function, source)
            for function in self.functions.values()
            for source in function.event_sources
            if source.queue == queue
        )
        messages = self.stores.receive(queue, min(source.batch_size, 10))  # SQS gives no more at once
        if not messages:  # messages that were received too often are now dead letters
            self._tell(f"{queue}: nothing to deliver")
            return
        receives = [message.approximate_receive_count for message in messages]
        self.events["deliveries"] += len(messages)
        self.events["redeliveries"] += sum(receive != 1 for receive in receives)
        self._tell(f"{queue}: delivers {len(messages)}, receive {', '.join(map(str, receives))}")
        for message in messages if self.copies else ():
            if COPY not in message.message_attributes:
                copy = {COPY: {"DataType": "String", "StringValue": COPY}}
                self.stores.send(queue, message.body, message.message_attributes | copy)
        try:
            answer = self.invoke(function.name, {"Records": [_record(message, queue) for message in messages]})
        except InvocationFailed:
            return
        failed = {failure["itemIdentifier"] for failure in answer["batchItemFailures"]}
        for message in messages:
            if message.id not in failed:
                self.stores.delete(queue, message)

    def _hand_over_writes(self) -> None:
        """What a stream's mapping does: it invokes, and begins again at the first write that was reported as failed, or
        at the first of all if there is no answer."""
        writes = self._pending_writes()[: self.stream.batch_size]
        self._tell(f"the stream hands over {len(writes)}")
        self.events["writes handed over"] += len(writes)
        self._stream_at = self.now + STREAM_PAUSE
        try:
            answer = self.invoke(self.stream.function, {"Records": [record for _, record in writes]})
        except InvocationFailed:
            return
        failed = {failure["itemIdentifier"] for failure in answer["batchItemFailures"]}
        numbers = [number for number, record in writes if record["dynamodb"]["SequenceNumber"] in failed]
        if numbers:
            self._published = min(numbers)
        else:
            self._published, self._stream_at = writes[-1][0] + 1, self.now

    def _sweep(self) -> None:
        self._last_sweep_at = self.now
        try:
            self.invoke("sweep_due_images", {})
        except InvocationFailed:
            return

    # ── What there is ─────────────────────────────────────────────────────────────────────────────────────────────

    def rows(self) -> dict[str, Image]:
        """The images, by their ids."""
        from darkroom.aws.images.images_table import from_item  # noqa: PLC0415 - any process's copy: it is stateless

        return {image.image_id: image for image in map(from_item, self._items())}

    def _items(self) -> list[dict[str, Any]]:
        return [item for item in self.stores.items("ImagesTable") if item["image_id"]["S"] not in self.planted]

    def plant(self, image: Image) -> None:
        """Puts the image's row into the table as a later version might have written it before a rollback."""
        from darkroom.aws.images.images_table import to_item  # noqa: PLC0415 - any process's copy: it is stateless

        recipe = json.loads(to_item(image)["recipe"]["S"]) | {"watermark": "x"}
        item = to_item(image) | {"recipe": {"S": json.dumps(recipe)}}
        self.planted[image.image_id] = item
        self.stores.put_item("ImagesTable", item)

    def check_planted(self) -> None:
        """Such a row is left to the version that can read it; only the time of the next look at it may change."""
        stored = {item["image_id"]["S"]: item for item in self.stores.items("ImagesTable")}
        for image_id, item in self.planted.items():
            now = stored.get(image_id, {})
            if now != item | {"due_at": now.get("due_at")}:
                raise Broken(ViolationKind.LOST, f"a row of an unknown version was changed: {now}")

    def lane_messages(self) -> list[str]:
        """The bodies of all messages in the queues that functions drain, hidden ones included."""
        sources = [source for function in self.functions.values() for source in function.event_sources]
        return [message.body for source in sources for message in self.stores.messages(source.queue)]

    def state(self, *, dying: bool = False) -> bytes:
        """A digest of everything that the future depends on: two worlds with the same digest go on in the same way.

        Instants are relative to now. The digest is exact while no function is at work, and with `dying`: then the
        function at work counts as gone.
        """
        at_work = self.wire.running[:-1] if dying else self.wire.running
        gone = self.wire.running[-1].function if dying else None
        parts = (
            self._next_minute(),
            self.stores.state(self.now),
            [(name, process.memory()) for name, process in sorted(self._processes.items()) if name != gone],
            [(invocation.function, invocation.struck) for invocation in at_work],
            gone,
            self.position,
            self.before_develop is None,
            (self.before_served is None, self.served),
            sorted(self.endings.items()),
            [self._told_by(record) for _, record in self._pending_writes()],
            max(self._stream_at, self.now),
        )
        text = _INSTANT.sub(self._from_now, self._without_versions(repr(parts)))
        for number, version_id in enumerate(self.stores.version_ids()):  # their values are random
            text = text.replace(version_id, f"version {number}")
        return hashlib.blake2b(text.encode(), digest_size=8).digest()

    def _told_by(self, record: dict[str, Any]) -> Any:
        """What the future depends on in a write that is not yet handed over."""
        new = record["dynamodb"].get("NewImage", {})
        return [(name, new.get(name)) for name in ("status", "run", "variants", "error", "works")], "deleted_at" in new

    def _without_versions(self, text: str) -> str:
        """The same with events named by what happened. Their versions count writes, which nothing else depends on."""
        from darkroom.domain.webhooks.row_events import events_of  # noqa: PLC0415 - any process's copy: it is stateless

        for image in self.rows().values():
            for event in events_of(image):
                text = text.replace(event.event_id, f"{event.type.value} of run {event.data['run']}")
        return _OF_EVENTS.sub("", text)

    def _from_now(self, instant: re.Match[str]) -> str:
        in_milliseconds = len(instant[0].partition(".")[0]) == len(str(START))
        return f"now{float(instant[0]) * (1 if in_milliseconds else 1000) - self.now:+}"

    def _applied(self, service: str, operation: str) -> None:
        """Watches every write to a row: one terminal state per run, which only an operator can make it leave; and no
        attempt before the previous one's backoff is over."""
        if service not in ("dynamodb", "s3") or operation.startswith(("BatchGet", "Get", "Head", "List", "Query")):
            return
        self._check_served()
        if service != "dynamodb":
            return
        for item in self.stores.items("ImagesTable"):
            self._check_backoff(item)
            image_id, now = item["image_id"]["S"], (Status(item["status"]["S"]), int(item["run"]["N"]))
            before = self._stages.get(image_id)
            if before == now:
                continue
            self._stages[image_id] = now
            status, run = now
            is_next_run = before == (self.may_leave, run - 1) and status is Status.PENDING
            if before is not None and before[0].is_terminal and not is_next_run:
                raise Broken(ViolationKind.DOUBLED, f"{image_id} left its terminal state: {before} → {now}")
            if status.is_terminal:
                self.endings[image_id, run] += 1
                if self.endings[image_id, run] > 1:
                    raise Broken(ViolationKind.DOUBLED, f"run {run} of {image_id} ended twice")

    def _check_served(self) -> None:
        """What is done stays done, and each variant that it served can be fetched, until its client deletes it."""
        outputs = self.stores.objects("OutputsBucket").keys() | self.lost
        for image in self.rows().values():
            variants = {} if image.is_deleted else {variant.name: variant.key for variant in image.variants}
            served = self._served.get(image.image_id, set())
            is_served = image.is_deleted or (served <= variants.keys() and outputs >= set(variants.values()))
            check(is_served, ViolationKind.LOST, f"of {sorted(served)} there is {variants} in {sorted(outputs)}")
            is_done = image.is_deleted or image.outcome is Status.DONE
            check(is_done or not served, ViolationKind.LOST, f"what was done is {image.outcome}")
            self._served[image.image_id] = set(variants)

    def _check_backoff(self, item: dict[str, Any]) -> None:
        attempts = item.get("attempts", {"L": []})["L"][-2:]
        if len(attempts) == 2 and attempts[0]["M"]["run"] == attempts[1]["M"]["run"]:
            earlier, later = (int(attempt["M"]["started_at"]["N"]) for attempt in attempts)
            least_seconds = RetryPolicy().delay_seconds(int(attempts[0]["M"]["number"]["N"]), 0)
            if later - earlier < least_seconds * 1000:
                waited = f"{(later - earlier) / 1000} s after the one before, not {least_seconds}"
                raise Broken(ViolationKind.LOST, f"{item['image_id']['S']}: an attempt began {waited}")


def _apply(event_name: str, request: AWSPreparedRequest) -> AWSResponse | None:
    return _MOTO(botocore_stubber, event_name=event_name, request=request)


def _minute_from(instant: Milliseconds) -> Milliseconds:
    return -(-instant // MINUTE) * MINUTE


def _record(message: Message, queue: str) -> dict[str, Any]:
    return {
        "messageId": message.id,
        "receiptHandle": message.receipt_handle,
        "body": message.body,
        "attributes": {
            "ApproximateFirstReceiveTimestamp": str(message.approximate_first_receive_timestamp),
            "ApproximateReceiveCount": str(message.approximate_receive_count),
            "SenderId": message.sender_id,
            "SentTimestamp": str(message.sent_timestamp),
        },
        "messageAttributes": {
            name: {"dataType": attribute["DataType"], "stringValue": attribute["StringValue"]}
            for name, attribute in message.message_attributes.items()
        },
        "md5OfBody": message.body_md5,
        "eventSource": "aws:sqs",
        "eventSourceARN": f"arn:aws:sqs:{REGION}:{DEFAULT_ACCOUNT_ID}:{queue}",
        "awsRegion": REGION,
    }
