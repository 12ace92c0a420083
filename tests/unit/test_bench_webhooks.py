"""The webhooks benchmark's own parts: its clock, its queue, and what it counts."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from benchmarks.virtual.virtual_time import VirtualTime
from benchmarks.webhooks import rest
from benchmarks.webhooks.fan_out import FanOut, counted
from benchmarks.webhooks.neighbours import play
from benchmarks.webhooks.queue import Done, Message, Queue
from benchmarks.webhooks.rest import disabled_for_an_hour, failing
from darkroom.domain.webhooks.delivery import MAX_ATTEMPTS


def queue_of(time: VirtualTime, *, concurrency: int, milliseconds: float) -> tuple[Queue, list[list[str]]]:
    batches: list[list[str]] = []

    def handle(batch: Sequence[Message], done: Done) -> None:
        batches.append([message.body for message in batch])
        time.after(milliseconds, lambda: done([]))

    return Queue(time, concurrency=concurrency, visibility_seconds=60, handle=handle), batches


def test_a_group_with_a_backlog_lets_another_pass() -> None:
    time = VirtualTime()
    queue, batches = queue_of(time, concurrency=4, milliseconds=10_000)
    for number in range(100):
        queue.send(f"busy {number}", group="busy")
    time.pause(5000)
    queue.send("quiet", group="quiet")
    time.pause(20_000)
    assert batches[4][0] == "quiet"


def test_a_load_is_delivered_whole_beside_two_that_do_not_answer() -> None:
    run = play(seed=1, deliveries=600, per_second=100, with_bad=True)
    assert run.broken == {}
    assert run.row["sent_twice"] == 0
    assert run.row["calls"]["deliveries.create"] == 1
    assert run.row["dollars"].keys() == run.row["billed"].keys()


def test_what_a_disabled_endpoint_waits_for_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest, "PER_SECOND", 0.5)
    monkeypatch.setattr(rest, "LATER", 0.2)
    row, broken = disabled_for_an_hour(seed=1)
    assert broken == {}
    assert row["waited"] > 0


def test_ten_attempts_are_seen_at_an_endpoint_that_refuses_one_event() -> None:
    row, broken = failing(kind="one event", seed=1)
    assert (row["attempts"], row["outside"], broken) == (MAX_ATTEMPTS, 0, {})


def test_both_consumers_hear_of_every_event() -> None:
    run = FanOut(per_second=50, events=300, seed=1)
    run.run()
    assert run.heard == {"webhooks": 300, "usage": 300}


def test_an_event_alone_costs_each_request_alone() -> None:
    row = counted(per_second=0.01, events=20, seed=1)
    assert set(row["batch"].values()) == {1}
    billed = row["billed"]
    assert (billed["SNS requests"], billed["Lambda requests"], billed["SQS requests"]) == (1, 3, 4)
