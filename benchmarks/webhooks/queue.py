"""A standard queue of SQS with message groups, and the event source mapping that has a function empty it."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.support.virtual.virtual_time import VirtualTime

BATCH = 10

SEND_MILLISECONDS, RECEIVE_MILLISECONDS, INVOKE_MILLISECONDS = 5, 10, 5
"""Until a message that was sent is visible; a poller's receive; the invocation of a function that is warm."""

NOISY_SHARE, NOISY_IN_FLIGHT = 0.1, 30
"""A group is noisy with more than this share of the messages in flight, and at least so many; or with more than this
share of the recent time in which messages were in flight
(https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-fair-queues-detailed.html)."""

RECENT_MILLISECONDS = 60_000
"""What "recent" means is not documented: after so long, a time counts half."""


@dataclass(eq=False, kw_only=True)
class Message:
    """A message of a group: `came` orders those that are visible."""

    body: str
    group: str
    came: int = 0
    received_at: float = 0.0


@dataclass
class _Recent:
    """How long messages were in flight recently."""

    milliseconds: float = 0.0
    at: float = 0.0

    def add(self, milliseconds: float, now: float) -> None:
        self.milliseconds, self.at = self.until(now) + milliseconds, now

    def until(self, now: float) -> float:
        return float(self.milliseconds * 0.5 ** ((now - self.at) / RECENT_MILLISECONDS))


type Done = Callable[[Sequence[Message]], None]
"""Called once when a batch has ended, with the messages that come back."""


class Queue:
    """A fair queue whose function has at most `concurrency` batches of up to ten at a time.

    `handle` is called with each batch, and calls `Done`. What failed comes back after the visibility timeout. `counts`
    are the batches, the messages received and failed, the most batches at a time, and their milliseconds together.
    """

    def __init__(
        self,
        time: VirtualTime,
        *,
        concurrency: int,
        visibility_seconds: float,
        handle: Callable[[Sequence[Message], Done], None],
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._time = time
        self._concurrency = concurrency
        self._visibility_milliseconds = visibility_seconds * 1000
        self._handle = handle
        self._visible: dict[str, deque[Message]] = {}
        self._waiting = 0
        self._in_flight: Counter[str] = Counter()
        self._recent: defaultdict[str, _Recent] = defaultdict(_Recent)
        self._recent_of_all = _Recent()
        self._noisy: set[str] = set()
        self._came = 0
        self._receiving = 0
        self._running = 0

    def send(self, body: str, *, group: str, delay_seconds: float = 0) -> None:
        """Takes a message, which is visible after `delay_seconds`."""
        message = Message(body=body, group=group)
        self._time.after(SEND_MILLISECONDS + delay_seconds * 1000, lambda: self._come(message))

    def _come(self, message: Message) -> None:
        self._came += 1
        message.came = self._came
        self._visible.setdefault(message.group, deque()).append(message)
        self._waiting += 1
        self._poll()

    def _poll(self) -> None:
        """Receives, if there is something to receive and room for what comes of it."""
        while self._running + self._receiving < self._concurrency and self._waiting > self._receiving * BATCH:
            self._receiving += 1
            self._time.after(RECEIVE_MILLISECONDS, self._receive)

    def _receive(self) -> None:
        self._receiving -= 1
        now = self._time.elapsed()
        batch: list[Message] = []
        while self._waiting and len(batch) < BATCH:
            message = self._next()
            message.received_at = now
            batch.append(message)
        if batch:
            self._running += 1
            self.counts["batches"] += 1
            self.counts["received"] += len(batch)
            self.counts["most batches"] = max(self.counts["most batches"], self._running)
            self._time.after(
                INVOKE_MILLISECONDS, lambda: self._handle(batch, lambda failed: self._done(batch, failed, now))
            )

    def _next(self) -> Message:
        def rank(group: str) -> tuple[int, int]:
            # Of several noisy groups, the one with the fewest in flight goes first.
            return 1 + self._in_flight[group] if self._is_noisy(group) else 0, self._visible[group][0].came

        group = min(self._visible, key=rank)
        message = self._visible[group].popleft()
        if not self._visible[group]:
            del self._visible[group]
            self._noisy.discard(group)  # its backlog is used up
        self._waiting -= 1
        self._in_flight[group] += 1
        return message

    def _is_noisy(self, group: str) -> bool:
        if group not in self._noisy:
            now, in_flight = self._time.elapsed(), self._in_flight[group]
            takes_room = in_flight >= NOISY_IN_FLIGHT and in_flight > NOISY_SHARE * self._in_flight.total()
            takes_time = self._recent[group].until(now) > NOISY_SHARE * self._recent_of_all.until(now)
            if takes_room or takes_time:
                self._noisy.add(group)
        return group in self._noisy

    def _done(self, batch: Sequence[Message], failed: Sequence[Message], began: float) -> None:
        now = self._time.elapsed()
        self._running -= 1
        self.counts["busy milliseconds"] += round(now - began)
        self.counts["failed"] += len(failed)
        for message in batch:
            self._in_flight[message.group] -= 1
            self._recent[message.group].add(now - message.received_at, now)
            self._recent_of_all.add(now - message.received_at, now)
        for message in failed:
            again = max(now, message.received_at + self._visibility_milliseconds)
            self._time.at(again, lambda message=message: self._come(message))  # type: ignore[misc]
        self._poll()
