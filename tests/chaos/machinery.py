"""What a rehearsal does to a stack from outside: to its clock, its processes, its queues and rows."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local_aws import clock
from tests.chaos.plan import Strike
from tests.support.fakes.rows import begun_work
from tests.support.running.conditions import (
    ACCEPTOR,
    FETCHER,
    HOLDER,
    INJECTED,
    RELEASER,
    SWEEPER,
    TRANSCODER,
    UPLOAD_ACCEPTOR,
    configuration,
    configure,
)
from tests.support.running.stack import Stack

STRUCK = (ACCEPTOR, UPLOAD_ACCEPTOR, FETCHER, TRANSCODER, HOLDER, RELEASER, SWEEPER)
"""The functions whose processes die."""

_EMULATOR = b"local_aws.server"


class Clock:
    """A stack's clock, and when it was moved by how much."""

    def __init__(self, stack: Stack) -> None:
        self._file = Path(str(stack.record.clock_file))
        self.jumps: list[tuple[int, int]] = []

    def now(self) -> int:
        """The clock's time, in milliseconds."""
        return time.time_ns() // 1_000_000 + clock.seconds_ahead(self._file) * 1000

    def go_to(self, instant: int) -> None:
        """Move it ahead to then, unless it is there already, and wait until every process follows it."""
        now = self.now()
        seconds = -(-(instant - now) // 1000)
        if seconds > 0:
            self.jumps.append((now, seconds))
            clock.set_ahead(self._file, clock.seconds_ahead(self._file) + seconds)
            time.sleep(clock.SETTLE_SECONDS)


@dataclass(frozen=True, kw_only=True)
class Death:
    """A process that died of a strike: its function, the image that the strike was for, those it served, and when."""

    function: str
    token: str
    image_ids: tuple[str, ...]
    at: int


class Strikes:
    """The folder in which processes find out that they are to die."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0

    def lay(self, strike: Strike, token: str) -> None:
        """Kill the first process whose event contains that token."""
        self._count += 1
        file = self._folder / f"{strike.function}.{self._count:05d}.json"
        document = {
            "token": token,
            "call": strike.call,
            "operation": strike.operation,
            "after": strike.after,
        }
        unfinished = file.with_suffix(".laid")
        unfinished.write_text(json.dumps(document))
        unfinished.rename(file)

    def lift(self) -> int:
        """Withdraw the strikes that no process has taken, and return how many."""
        left = list(self._folder.glob("*.json"))
        for file in left:
            file.unlink(missing_ok=True)
        return len(left)

    def deaths(self) -> list[Death]:
        """The deaths so far."""
        deaths = []
        for file in sorted(self._folder.glob("*.dead")):
            word = json.loads(file.read_bytes())
            deaths.append(
                Death(
                    function=file.name.partition(".")[0],
                    token=word["token"],
                    image_ids=tuple(word["image_ids"]),
                    at=word["at"],
                )
            )
        return deaths

    def clear(self) -> None:
        """Forget all strikes and deaths."""
        for file in self._folder.iterdir():
            file.unlink()


@contextmanager
def struck(stack: Stack, folder: Path) -> Iterator[Strikes]:
    """Within this block, run the functions so that strikes reach them."""
    folder.mkdir(parents=True, exist_ok=True)
    strikes = Strikes(folder)
    strikes.clear()
    shipped = {function: configuration(stack, function) for function in STRUCK}
    try:
        for function, original in shipped.items():
            variables = original["Environment"]["Variables"] | {
                "PYTHONPATH": str(INJECTED),
                "INJECTED_STRIKES": str(folder.resolve()),
                "INJECTED_FUNCTION": function,
            }
            configure(
                stack, function, original | {"Handler": "struck.handler", "Environment": {"Variables": variables}}
            )
        yield strikes
    finally:
        for function, original in shipped.items():
            configure(stack, function, original)


def emulator_of(state: Path) -> int:
    """The process of the emulator with that state folder."""
    mark = os.fsencode(state.resolve()) + b"/"
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                arguments = (entry / "cmdline").read_bytes().split(b"\0")
                # Its guardian's command contains the emulator's too, but does not begin with it.
                if _EMULATOR in arguments[1:4] and any(argument.startswith(mark) for argument in arguments):
                    return int(entry.name)
    raise RuntimeError(f"no emulator runs for {state}")


def pause(process: int, seconds: float) -> None:
    """Pause a process for so long."""
    handle = os.pidfd_open(process)
    try:
        signal.pidfd_send_signal(handle, signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            signal.pidfd_send_signal(handle, signal.SIGCONT)
    finally:
        os.close(handle)


class Records:
    """The records of begun work, as dying workers of the version before left them."""

    def __init__(self, stack: Stack) -> None:
        self._client, self._table = stack.client("dynamodb"), stack.output("IdempotencyTableName")

    def leave(self, key: str, *, runs_until: int) -> None:
        """Leave the record of a worker that died but may still run until that instant."""
        item = begun_work(key, runs_until=runs_until, kept_seconds=24 * 3600)
        self._client.put_item(TableName=self._table, Item=item)


class Queues:
    """The stack's queues, by the outputs that name them."""

    def __init__(self, stack: Stack) -> None:
        self._stack, self._sqs = stack, stack.client("sqs")

    def send(self, queue: str, body: str, group: str) -> None:
        """Send one message, as the stack itself would."""
        self._stack.send(queue, body, group=group)

    def visible(self, *queues: str) -> int:
        """How many messages could be received from these queues."""
        return sum(self._stack.messages(queue, "") for queue in queues)

    def dead_letters(self, queue: str) -> list[dict[str, Any]]:
        """All messages of a queue that nobody receives from; they stay as visible as they were."""
        url = self._stack.output(queue)
        by_id: dict[str, dict[str, Any]] = {}
        while messages := self._sqs.receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=60, MessageAttributeNames=["All"]
        ).get("Messages"):
            by_id |= {message["MessageId"]: message for message in messages}
        for message in by_id.values():
            self._sqs.change_message_visibility(
                QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0
            )
        return list(by_id.values())

    def give_up_after(self, queue: str, receives: int) -> None:
        """Make a queue move a message to its dead letters after so many receives."""
        url = self._stack.output(queue)
        (policy,) = self._sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["RedrivePolicy"])[
            "Attributes"
        ].values()
        changed = json.dumps(json.loads(policy) | {"maxReceiveCount": receives})
        self._sqs.set_queue_attributes(QueueUrl=url, Attributes={"RedrivePolicy": changed})


def image_id_of(item: Mapping[str, Any]) -> str:
    """The id in a row's item."""
    return str(item["image_id"]["S"])
