"""The webhooks benchmark's own parts: its clock, its queue, and what it counts."""

from __future__ import annotations

import http.client
import random
from collections.abc import Sequence
from http import HTTPStatus
from urllib.parse import urlsplit

import pytest

from benchmarks.virtual.virtual_time import VirtualTime
from benchmarks.webhooks import rest
from benchmarks.webhooks.fan_out import CHUNK_BYTES, EVENTS, FanOut, chunks, counted
from benchmarks.webhooks.load import endpoints, events
from benchmarks.webhooks.local import Receivers, asked
from benchmarks.webhooks.neighbours import percentile, play
from benchmarks.webhooks.plane import Plane
from benchmarks.webhooks.queue import BATCH, Done, Message, Queue
from benchmarks.webhooks.receivers import ordinary, refusing
from benchmarks.webhooks.rest import disabled_for_an_hour, failing
from darkroom.domain.webhooks.delivery import MAX_ATTEMPTS


def test_what_pauses_continues_in_the_order_of_its_instants() -> None:
    time = VirtualTime()
    seen: list[tuple[str, float]] = []

    def wait(name: str, milliseconds: float) -> None:
        time.pause(milliseconds)
        seen.append((name, time.elapsed()))

    time.start(lambda: wait("late", 30))
    time.start(lambda: wait("early", 10))
    time.at(20, lambda: seen.append(("between", time.elapsed())))
    time.pause(40)
    time.close()
    assert seen == [("early", 10), ("between", 20), ("late", 30)]
    assert time.elapsed() == 40


def test_an_error_anywhere_is_raised_where_time_is_let_pass() -> None:
    time = VirtualTime()

    def fail() -> None:
        raise LookupError("broken")

    time.start(fail)
    with pytest.raises(LookupError, match="broken"):
        time.pause(10)


def queue_of(time: VirtualTime, *, concurrency: int, milliseconds: float) -> tuple[Queue, list[list[str]]]:
    batches: list[list[str]] = []

    def handle(batch: Sequence[Message], done: Done) -> None:
        batches.append([message.body for message in batch])
        time.after(milliseconds, lambda: done([]))

    return Queue(time, concurrency=concurrency, visibility_seconds=60, handle=handle), batches


def test_a_queue_hands_over_up_to_ten_at_a_time() -> None:
    time = VirtualTime()
    queue, batches = queue_of(time, concurrency=1, milliseconds=100)
    for number in range(25):
        queue.send(str(number), group="a")
    time.pause(10_000)
    assert [len(batch) for batch in batches] == [BATCH, BATCH, 5]
    assert queue.counts["most batches"] == 1


def test_a_group_with_a_backlog_lets_another_pass() -> None:
    time = VirtualTime()
    queue, batches = queue_of(time, concurrency=4, milliseconds=10_000)
    for number in range(100):
        queue.send(f"busy {number}", group="busy")
    time.pause(5000)
    queue.send("quiet", group="quiet")
    time.pause(20_000)
    assert batches[4][0] == "quiet"


def test_what_failed_comes_back_after_the_visibility_timeout() -> None:
    time = VirtualTime()
    seen: list[float] = []

    def handle(batch: Sequence[Message], done: Done) -> None:
        seen.append(time.elapsed())
        done(batch if len(seen) == 1 else [])

    Queue(time, concurrency=1, visibility_seconds=60, handle=handle).send("one", group="a")
    time.pause(100_000)
    assert len(seen) == 2
    assert seen[1] - seen[0] >= 60_000


def test_a_load_has_about_the_deliveries_that_were_asked_for() -> None:
    chance = random.Random(1)
    known = endpoints(chance)
    plane = Plane(known, dict.fromkeys((endpoint.endpoint_id for endpoint in known), ordinary), seed=1)
    plane.come(events(chance, known, deliveries=5000, seconds=60))
    plane.time.close()
    assert len(known) == 50
    assert len(plane.wanted) == pytest.approx(5000, rel=0.1)


def test_a_percentile_is_a_value_of_the_list() -> None:
    assert [percentile(range(1, 101), share) for share in (0.5, 0.99, 1)] == [51, 100, 100]


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


def test_a_receiver_that_refuses_one_event_takes_others() -> None:
    behaves = refusing("this")
    answers = [behaves(random.Random(1), event_id)[1].is_success for event_id in ("this", "other")]
    assert answers == [False, True]


@pytest.mark.parametrize(("size", "billed"), [(0, 1), (CHUNK_BYTES, 1), (CHUNK_BYTES + 1, 2)])
def test_every_64_kilobytes_are_billed(size: int, billed: int) -> None:
    assert chunks(size) == billed


def test_both_consumers_hear_of_every_event() -> None:
    run = FanOut(per_second=50, events=300, seed=1)
    run.run()
    assert run.heard == {"webhooks": 300, "usage": 300}


def test_an_event_alone_costs_each_request_alone() -> None:
    row = counted(per_second=0.01, events=20, seed=1)
    assert set(row["batch"].values()) == {1}
    billed = row["billed"]
    assert (billed["SNS requests"], billed["Lambda requests"], billed["SQS requests"]) == (1, 3, 4)


def test_a_receiver_notes_what_comes_to_each_path() -> None:
    receivers = Receivers()
    with receivers.listening() as url:
        for _ in range(2):
            connection = http.client.HTTPConnection(urlsplit(url).netloc)
            connection.request("POST", "/hooks/1", body=b"{}", headers={"webhook-id": "one"})
            assert connection.getresponse().status == HTTPStatus.NO_CONTENT
            connection.close()
        with pytest.raises(RuntimeError, match="501"):
            asked(url, "GET", "/hooks/1")
    assert receivers.got == {("/hooks/1", "one"): 2}


def test_more_events_a_second_cost_less_each() -> None:
    rows = [counted(per_second=rate, events=500, seed=1)["dollars_a_million"] for rate in (1, 100)]
    assert rows[0] > rows[1]
    assert EVENTS >= 500
