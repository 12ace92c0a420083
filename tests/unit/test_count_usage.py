"""Counting what tenants use."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from darkroom.domain.events.event import EventType, PublishedEvent, body_of
from darkroom.domain.images.image import UNKNOWN_SOURCE, VERSION_FIELDS, Image, Source, Status, Variant, WorkKind
from darkroom.domain.images.stored_by import stored_by
from darkroom.domain.images.transitions import arrive, await_upload, begin_work, complete, delete, reject
from darkroom.domain.images.works import output_key
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.stored import Stored
from darkroom.domain.recipes.recipes import Recipe, VariantSpec
from darkroom.domain.usage.usage import (
    COUNTED_DAYS,
    DAY_MILLISECONDS,
    REMEMBERED_DAYS,
    Count,
    Usage,
    count_of,
    transactions_of,
)
from darkroom.domain.webhooks.row_events import event_of, events_of
from darkroom.operations.usage.count_usage import Counting, CountUsagePorts, count_usage
from darkroom_cli.operator.domain.next_run import redo, replay
from tests.support.fakes.events import FakeUsage
from tests.support.fakes.rows import accepted_image
from tests.support.faults import failing

NOW = 1_795_251_600_000  # 2026-11-21T09:00:00Z
SOURCE = Source(version_id="v", sha256="s", size_bytes=1_234, media_type="image/png")
HERO = Recipe(variants=(VariantSpec(name="hero", width=8),))


def _made(number: int, row: Image | None) -> Image | None:
    return accepted_image(image_id=f"{number:026d}", source=SOURCE, now=NOW) if row is None else None


def _announced(number: int, row: Image | None) -> Image | None:
    image = accepted_image(image_id=f"{number:026d}", source=SOURCE, now=NOW)
    return await_upload(replace(image, source=UNKNOWN_SOURCE), now=NOW) if row is None else None


def _arrived(_: int, row: Image | None) -> Image | None:
    awaits = row is not None and row.status is Status.AWAITING_UPLOAD
    return arrive(row, SOURCE, now=NOW) if row and awaits else None


def _claimed(_: int, row: Image | None) -> Image | None:
    pending = row is not None and row.status is Status.PENDING
    return replace(row, status=Status.PROCESSING, attempt=row.attempt + 1) if row and pending else None


def _ended(size_bytes: int) -> Callable[[int, Image | None], Image | None]:
    def step(_: int, row: Image | None) -> Image | None:
        if row is None or row.status is not Status.PROCESSING:
            return None
        if not size_bytes:
            return reject(row, code="truncated", message="It ends early.", now=NOW)
        key = output_key(row, f"v{size_bytes}", "jpg")
        made = Variant(
            name=f"v{size_bytes}", width=1, height=1, format="jpeg", size_bytes=size_bytes, sha256="s", key=key
        )
        return complete(row, (made,), notices=(), now=NOW)

    return step


def _next_run(_: int, row: Image | None) -> Image | None:
    if row is None or row.is_deleted:
        return None
    begins = {Status.DONE: redo, Status.FAILED: replay}.get(row.status)
    return None if begins is None or not row.has_original else begins(row, now=NOW)


def _more(_: int, row: Image | None) -> Image | None:
    done = row is not None and row.status is Status.DONE and not row.is_deleted
    return begin_work(row, WorkKind.VARIANTS, now=NOW, recipe=HERO) if row and done else None


def _deleted(_: int, row: Image | None) -> Image | None:
    return None if row is None or row.is_deleted else delete(row, now=NOW)


STEPS = [_made, _announced, _arrived, _claimed, _ended(0), _ended(70), _ended(90), _next_run, _more, _deleted]


def at_its_version(before: Image | None, after: Image) -> Image:
    """The row as a table writes it."""
    version = 1 if before is None else before.version + 1
    names = [name for name in VERSION_FIELDS if getattr(after, name) != (before and getattr(before, name))]
    written: dict[str, Any] = dict.fromkeys(names, version)
    return replace(after, version=version, **written)


def counted(usage: FakeUsage, *bodies: str, now: int = NOW) -> Counting:
    return count_usage(CountUsagePorts(usage=usage, clock=lambda: now), bodies)


def event(kind: EventType = EventType.ACCEPTED, *, number: int = 1, **stated: Any) -> str:
    tenant_id = stated.pop("tenant_id", "acme")
    time = stated.pop("time", NOW)
    details: dict[str, Any] = {"bytes": 500} if kind is EventType.ACCEPTED else {}
    if kind is EventType.DONE:
        details["variants"] = [{"width": 20, "height": 10, "bytes": 30}, {"width": 4, "height": 3, "bytes": 7}]
    image_id = f"{number:026d}"
    made = PublishedEvent(
        type=kind,
        subject=image_id,
        tenant_id=tenant_id,
        lane="fast",
        preset=None,
        sequence={EventType.ACCEPTED: 1, EventType.DELETED: 4}.get(kind, 3),
        time=time,
        data={"id": image_id, "tenant_id": tenant_id, **details, **stated},
    )
    return body_of(made, source="/")


def stored(size_bytes: int, images: int) -> dict[str, int]:
    return {"bytes": size_bytes, "images": images}


def test_what_is_stored_grows_and_falls_as_events_say() -> None:
    usage = FakeUsage()
    counted(usage, event(stored=stored(500, 1)), event(EventType.DONE, stored=stored(37, 0)))
    assert usage.store == {"acme": Stored(size_bytes=537, images=1)}
    counted(usage, event(EventType.REDEVELOPED, stored=stored(-30, 0), number=9))
    assert usage.store == {"acme": Stored(size_bytes=507, images=1)}, "an operator's backfill, too"
    assert counted(usage, event(EventType.DELETED, stored=stored(-507, -1))).counted == 1
    assert usage.store == {"acme": Stored()}


@pytest.mark.guards("unfinished-failure-counted")
@pytest.mark.parametrize("kind", [EventType.DONE, EventType.FAILED, EventType.EXPIRED])
def test_an_image_is_unfinished_until_it_ends_in_whichever_way(kind: EventType) -> None:
    usage = FakeUsage()
    counted(usage, event(stored=stored(500, 1) | {"unfinished": 1}))
    assert usage.store["acme"].unfinished == 1
    counted(usage, event(kind, stored=stored(0, 0) | {"unfinished": -1}))
    assert usage.store == {"acme": Stored(size_bytes=500, images=1)}


def test_the_bytes_of_files_that_were_accepted_are_told_once() -> None:
    usage = FakeUsage()
    assert counted(usage, event(), event(number=2), event(EventType.DONE)).accepted_bytes == 1_000
    assert counted(usage, event(), event(EventType.DELETED)).accepted_bytes == 0


@pytest.mark.parametrize("wrong", [7, [], {"bytes": "1"}, {"bytes": None}, {"images": 1.0}])
def test_an_event_with_an_impossible_change_fails_alone(wrong: Any) -> None:
    usage = FakeUsage()
    assert sorted(counted(usage, event(stored=wrong), event(number=2)).failures) == [0]


def test_images_are_counted_when_they_are_accepted_and_variants_when_they_are_made() -> None:
    usage = FakeUsage()
    assert counted(usage, event(), event(number=2), event(EventType.DONE)).counted == 3
    assert usage.sums == {
        ("acme", "2026-11-21"): Usage(images=2, image_bytes=1000, runs=1, variant_bytes=37, variant_pixels=212)
    }


def test_each_tenant_has_its_days_in_utc() -> None:
    usage = FakeUsage()
    counted(
        usage,
        event(),
        event(number=2, tenant_id="other"),
        event(number=3, time=NOW + 15 * 3_600_000),
        now=NOW + DAY_MILLISECONDS,
    )
    assert usage.sums.keys() == {("acme", "2026-11-21"), ("other", "2026-11-21"), ("acme", "2026-11-22")}


def test_what_adds_nothing_is_done_with() -> None:
    usage = FakeUsage()
    bodies = [
        event(kind) for kind in EventType if kind not in (EventType.ACCEPTED, EventType.DONE, EventType.VARIANTS_ADDED)
    ]
    later = json.loads(event()) | {"type": "batch.done"}
    assert counted(usage, *bodies, json.dumps(later)) == Counting(counted=0)
    assert usage.sums == {}


def test_one_that_cannot_be_read_fails_alone() -> None:
    usage = FakeUsage()
    counting = counted(usage, event(), "junk", event(number=2, bytes=-1), event(number=3, bytes=True), event(number=4))
    assert (counting.counted, sorted(counting.failures)) == (2, [1, 2, 3])


@pytest.mark.parametrize("variants", [7, [7], [{}], [{"width": "1", "height": 1, "bytes": 1}], None])
def test_a_done_event_with_impossible_variants_fails_alone(variants: Any) -> None:
    usage = FakeUsage()
    assert sorted(counted(usage, event(EventType.DONE, variants=variants), event()).failures) == [0]


def test_an_outage_brings_back_all_that_was_to_be_counted_and_nothing_else() -> None:
    usage = FakeUsage(is_down=True)
    assert sorted(counted(usage, event(), event(EventType.DELETED), "junk", event(number=2)).failures) == [0, 2, 3]


@pytest.mark.guards("isolated-usage-event")
def test_an_event_that_cannot_be_added_keeps_no_other_from_counting() -> None:
    bug = ZeroDivisionError("its day's row is a newer version's")
    second = "0" * 25 + "2"
    usage = failing(FakeUsage(), "add", bug, lambda counts: any(one.event_id.startswith(second) for one in counts))
    counting = counted(usage, event(), event(number=2), event(number=3))
    assert (counting.counted, sorted(counting.failures)) == (2, [1])


def test_a_transaction_that_fails_for_now_keeps_those_of_no_other_from_counting() -> None:
    throttled = Retryable("throttled")
    usage = failing(FakeUsage(), "add", throttled, lambda counts: any(one.tenant_id == "busy" for one in counts))
    busy = [event(number=number, tenant_id="busy") for number in range(98)]
    counting = counted(usage, event(number=99, tenant_id="calm"), busy[7], *busy)
    assert (counting.counted, counting.accepted_bytes) == (1, 500)
    assert sorted(counting.failures) == list(range(1, 100)), "the one that came twice, too"


@pytest.mark.guards("usage-transaction-size-bound")
def test_events_share_transactions_by_tenant_and_none_has_more_than_it_may_change() -> None:
    def count(number: int, tenant_id: str, day: str = "2026-11-21") -> Count:
        return Count(event_id=f"e-{number}", tenant_id=tenant_id, day=day, usage=Usage(images=1), forget_at=NOW)

    assert [len(transaction) for transaction in transactions_of([count(number, "acme") for number in range(200)])] == [
        98,
        98,
        4,
    ]
    assert [
        len(transaction) for transaction in transactions_of([count(number, f"t-{number}") for number in range(70)])
    ] == [33, 33, 4]
    of_ten = [count(number, f"t-{number % 10}", f"2026-11-{10 + number % 3}") for number in range(300)]
    for batch in transactions_of(of_ten):
        days, tenants = {(event.tenant_id, event.day) for event in batch}, {event.tenant_id for event in batch}
        assert len(batch) + len(days) + len(tenants) <= 100
    again = [count(1, "acme") for _ in range(300)]
    assert [len(transaction) for transaction in transactions_of(again)] == [300], "one event, however often it is there"
    assert list(transactions_of([])) == []


def test_an_event_that_was_published_again_after_its_image_was_deleted_has_no_figures() -> None:
    usage = FakeUsage()
    body = json.loads(event())
    del body["data"]["bytes"]
    assert counted(usage, json.dumps(body)).counted == 1
    assert usage.sums == {("acme", "2026-11-21"): Usage(images=1)}


@pytest.mark.guards("usage-forgotten-not-recounted")
def test_an_event_is_remembered_as_long_as_it_could_come_again() -> None:
    assert REMEMBERED_DAYS > COUNTED_DAYS > 23 + 14
    usage = FakeUsage()
    oldest = NOW - COUNTED_DAYS * DAY_MILLISECONDS
    assert counted(usage, event(time=oldest), event(number=2, time=oldest - 1)).counted == 1


def test_it_is_forgotten_only_when_it_no_longer_counts() -> None:
    from darkroom.domain.events.event import read_event  # noqa: PLC0415

    for time in (NOW, NOW - 39 * DAY_MILLISECONDS, NOW + 60_000):
        count = count_of(read_event(event(time=time)), NOW)
        assert count is not None
        assert count.forget_at > time + COUNTED_DAYS * DAY_MILLISECONDS


@given(st.data())
def test_duplicates_and_replays_change_nothing_whatever_their_order(data: st.DataObject) -> None:
    kinds = st.sampled_from([EventType.ACCEPTED, EventType.DONE])
    known = data.draw(st.lists(st.tuples(kinds, st.integers(1, 5)), min_size=1, max_size=8))
    bodies = [event(kind, number=number) for kind, number in known]
    usage, once = FakeUsage(), FakeUsage()
    counted(once, *dict.fromkeys(bodies))
    for batch in data.draw(st.lists(st.lists(st.sampled_from(bodies), max_size=10), max_size=6)):
        counted(usage, *batch)
    counted(usage, *bodies)
    assert usage.sums == once.sums


def histories(data: st.DataObject) -> tuple[list[Image], list[str]]:
    """Some images after what clients, workers and operators may do to them, and the bodies of all their events."""
    rows, bodies = [], []
    for number in range(data.draw(st.integers(1, 3))):
        row: Image | None = None
        for step in data.draw(st.lists(st.sampled_from(STEPS), max_size=8)):
            after = step(number, row)
            if after is None:
                continue
            after = at_its_version(row, after)
            if (event := event_of(row, after)) is not None:
                bodies.append(body_of(event, source="/"))
            row = after
            bodies += [body_of(again, source="/") for again in events_of(row)]
        if row is not None:
            rows.append(row)
    return rows, bodies


@pytest.mark.guards("quotas-redo-difference")
@settings(deadline=None)
@given(st.data())
def test_the_sum_is_what_the_rows_store_whatever_happened_in_whichever_order_it_is_told(data: st.DataObject) -> None:
    """Every event comes, some twice; one may be told again only after it came, as an operator republishes what was
    published."""
    rows, bodies = histories(data)
    first = {json.loads(body)["id"]: place for place, body in reversed(list(enumerate(bodies)))}
    once = data.draw(st.permutations(sorted(first.values())))
    usage = FakeUsage()
    for place in once:
        counted(usage, bodies[place], now=NOW + DAY_MILLISECONDS)
        again = data.draw(st.sampled_from(bodies))
        if json.loads(again)["id"] in {json.loads(bodies[earlier])["id"] for earlier in once[: once.index(place) + 1]}:
            counted(usage, again, now=NOW + DAY_MILLISECONDS)
    assert usage.store.get("default", Stored()) == sum(map(stored_by, rows), Stored())
