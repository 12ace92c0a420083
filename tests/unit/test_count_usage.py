"""Counting what tenants use."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from darkroom.domain.event import Event, EventType, body_of
from darkroom.domain.usage import COUNTED_DAYS, DAY_MILLISECONDS, REMEMBERED_DAYS, Count, Usage, count_of
from darkroom.operations.count_usage import Counting, Ports, count_usage
from proof.fakes.events import FakeUsage

NOW = 1_795_251_600_000  # 2026-11-21T09:00:00Z


@dataclass
class Stack:
    usage: FakeUsage = field(default_factory=FakeUsage)
    now: int = NOW

    def count(self, *bodies: str) -> Counting:
        return count_usage(Ports(usage=self.usage, clock=lambda: self.now), bodies)


def event(kind: EventType = EventType.ACCEPTED, *, number: int = 1, **stated: Any) -> str:
    tenant_id = stated.pop("tenant_id", "acme")
    time = stated.pop("time", NOW)
    details: dict[str, Any] = {"bytes": 500} if kind is EventType.ACCEPTED else {}
    if kind is EventType.DONE:
        details["variants"] = [{"width": 20, "height": 10, "bytes": 30}, {"width": 4, "height": 3, "bytes": 7}]
    image_id = f"{number:026d}"
    made = Event(
        type=kind,
        subject=image_id,
        tenant_id=tenant_id,
        lane="fast",
        preset=None,
        sequence=3 if kind is EventType.DONE else 1,
        time=time,
        data={"id": image_id, "tenant_id": tenant_id, **details, **stated},
    )
    return body_of(made, source="/")


def test_images_are_counted_when_they_are_accepted_and_variants_when_they_are_made() -> None:
    stack = Stack()
    assert stack.count(event(), event(number=2), event(EventType.DONE)).counted == 3
    assert stack.usage.sums == {
        ("acme", "2026-11-21"): Usage(images=2, image_bytes=1000, runs=1, variant_bytes=37, variant_pixels=212)
    }


def test_each_tenant_has_its_days_in_utc() -> None:
    stack = Stack(now=NOW + DAY_MILLISECONDS)
    stack.count(event(), event(number=2, tenant_id="other"), event(number=3, time=NOW + 15 * 3_600_000))
    assert stack.usage.sums.keys() == {("acme", "2026-11-21"), ("other", "2026-11-21"), ("acme", "2026-11-22")}


def test_what_adds_nothing_is_done_with() -> None:
    stack = Stack()
    bodies = [event(kind) for kind in EventType if kind not in (EventType.ACCEPTED, EventType.DONE)]
    later = json.loads(event()) | {"type": "batch.done"}
    assert stack.count(*bodies, json.dumps(later)) == Counting(counted=0)
    assert stack.usage.sums == {}


def test_one_that_cannot_be_read_fails_alone() -> None:
    stack = Stack()
    counting = stack.count(event(), "junk", event(number=2, bytes=-1), event(number=3, bytes=True), event(number=4))
    assert (counting.counted, sorted(counting.failures)) == (2, [1, 2, 3])


@pytest.mark.parametrize("variants", [7, [7], [{}], [{"width": "1", "height": 1, "bytes": 1}], None])
def test_a_done_event_with_impossible_variants_fails_alone(variants: Any) -> None:
    stack = Stack()
    assert sorted(stack.count(event(EventType.DONE, variants=variants), event()).failures) == [0]


def test_an_outage_brings_back_all_that_was_to_be_counted_and_nothing_else() -> None:
    stack = Stack(usage=FakeUsage(is_down=True))
    assert sorted(stack.count(event(), event(EventType.DELETED), "junk", event(number=2)).failures) == [0, 2, 3]


def test_an_event_that_cannot_be_added_keeps_no_other_from_counting() -> None:
    class Strange(FakeUsage):
        def add(self, counts: Sequence[Count]) -> int:
            if any(count.event_id.startswith("0" * 25 + "2") for count in counts):
                raise ZeroDivisionError("its day's row is a newer version's")
            return super().add(counts)

    stack = Stack(usage=Strange())
    counting = stack.count(event(), event(number=2), event(number=3))
    assert (counting.counted, sorted(counting.failures)) == (2, [1])


def test_an_event_that_was_published_again_after_its_image_was_deleted_has_no_figures() -> None:
    stack = Stack()
    body = json.loads(event())
    del body["data"]["bytes"]
    assert stack.count(json.dumps(body)).counted == 1
    assert stack.usage.sums == {("acme", "2026-11-21"): Usage(images=1)}


def test_an_event_is_remembered_as_long_as_it_could_come_again() -> None:
    assert REMEMBERED_DAYS > COUNTED_DAYS > 23 + 14
    stack = Stack()
    oldest = NOW - COUNTED_DAYS * DAY_MILLISECONDS
    assert stack.count(event(time=oldest), event(number=2, time=oldest - 1)).counted == 1


def test_it_is_forgotten_only_when_it_no_longer_counts() -> None:
    from darkroom.domain.event import read_event  # noqa: PLC0415

    for time in (NOW, NOW - 39 * DAY_MILLISECONDS, NOW + 60_000):
        count = count_of(read_event(event(time=time)), NOW)
        assert count is not None
        assert count.forget_at > time + COUNTED_DAYS * DAY_MILLISECONDS


@given(st.data())
def test_duplicates_and_replays_change_nothing_whatever_their_order(data: st.DataObject) -> None:
    kinds = st.sampled_from([EventType.ACCEPTED, EventType.DONE])
    known = data.draw(st.lists(st.tuples(kinds, st.integers(1, 5)), min_size=1, max_size=8))
    bodies = [event(kind, number=number) for kind, number in known]
    stack, once = Stack(), Stack()
    once.count(*dict.fromkeys(bodies))
    for batch in data.draw(st.lists(st.lists(st.sampled_from(bodies), max_size=10), max_size=6)):
        stack.count(*batch)
    stack.count(*bodies)
    assert stack.usage.sums == once.usage.sums
