"""What the edge is told to forget, once for each payment, within a month's budget."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from darkroom.domain.edge.forgetting import Payment, image_id_in
from darkroom.domain.kernel.errors import Retryable
from darkroom.operations.edge.invalidate_edge import Forgetting, InvalidateEdgePorts, invalidate_edge
from tests.support.fakes.invalidations import FakeDistribution, FakeInvalidations
from tests.support.faults import Faults, Mode, ProcessDied, at, failing, meanwhile
from tests.support.handlers import handler_of, sample_of
from tests.support.images import NOW

MONTH = "2026-11"
IDS = [f"{number:026d}" for number in range(40)]
MODES: tuple[Mode, ...] = ("dies before", "dies after", "throttled", "denied", "answer lost")
HIDDEN_SECONDS, MOST_RECEIVES = 180, 480


@dataclass
class World:
    """The queue of the edge: what comes back is hidden for three minutes, and then comes in other company."""

    limit: int = 1000
    now: int = NOW
    invalidations: Any = field(default_factory=FakeInvalidations)
    distribution: Any = field(default_factory=FakeDistribution)
    queue: dict[str, str] = field(default_factory=dict)
    receives: dict[str, int] = field(default_factory=dict)

    def clock(self) -> int:
        return self.now

    @property
    def ports(self) -> InvalidateEdgePorts:
        return InvalidateEdgePorts(
            distribution=self.distribution, invalidations=self.invalidations, clock=self.clock, limit=self.limit
        )

    def send(self, *image_ids: str) -> None:
        for image_id in image_ids:
            self.queue[f"message {len(self.receives)}"] = image_id
            self.receives[f"message {len(self.receives)}"] = 0

    def deliver(self, size: int = 100) -> None:
        """All messages are received, so many together, and those of whom the edge was told are gone."""
        for owed in [dict(batch) for batch in itertools.batched(list(self.queue.items()), size, strict=False)]:
            self.receives |= {message_id: self.receives[message_id] + 1 for message_id in owed}
            try:
                invalidate_edge(self.ports, owed)
            except (Retryable, PermissionError, ProcessDied):
                continue
            self.queue = {message_id: one for message_id, one in self.queue.items() if message_id not in owed}
        self.now += HIDDEN_SECONDS * 1000

    @property
    def told(self) -> list[str]:
        return [image_id for image_ids in self.distribution.told.values() for image_id in image_ids]


def test_an_image_is_forgotten_once_per_batch_and_again_for_a_later_message() -> None:
    world = World()
    for sent in ((IDS[0], IDS[1], IDS[0]), (IDS[0],)):
        world.send(*sent)
        world.deliver()
    assert (world.told, world.invalidations.used) == ([IDS[0], IDS[1], IDS[0]], {MONTH: 3})
    assert invalidate_edge(world.ports, {}) == Forgetting(invalidated=0, skipped=0)


@pytest.mark.guards("edge-skipped-noted")
@pytest.mark.guards("edge-told-payment-settled")
@pytest.mark.promise("delivery-deleted-everywhere")
@pytest.mark.parametrize("limit", [0, 1, 3])
def test_whatever_strikes_a_call_nothing_is_lost_and_the_budget_never_exceeded(limit: int) -> None:
    struck = 0
    for number, mode in itertools.product(range(5), MODES):
        world = World(limit=limit)
        world.send(*IDS[:2])
        faults, whole = Faults(plan=at(number, mode)), (world.invalidations, world.distribution)
        world.invalidations = faults.around("invalidations", world.invalidations)
        world.distribution = faults.around("distribution", world.distribution)
        world.deliver()
        world.invalidations, world.distribution = whole
        world.send(IDS[2])
        for size in (1, 2):  # they come in other company than before
            world.deliver(size)
        struck += faults.struck.total()
        assert not world.queue, (number, mode)
        assert len(world.told) <= world.invalidations.used.get(MONTH, 0) <= limit, (number, mode)
        assert len({*world.told}) == min(3, limit) or world.invalidations.skipped, (number, mode)
        assert bool(world.invalidations.skipped) >= (limit < 3), (number, mode)
        assert not world.invalidations.open, (number, mode)
    assert struck >= len(MODES)


def outages() -> dict[str, Any]:
    """What CloudFront does all the time: it refuses, or does what it was asked for, and its answer never comes."""
    return {
        "refused": lambda whole: failing(whole, "invalidate", Retryable("TooManyInvalidationsInProgress")),
        "denied": lambda whole: failing(whole, "invalidate", PermissionError("AccessDenied")),
        "silent": lambda whole: Faults(plan=lambda _: "answer lost").around("", whole),
    }


@pytest.mark.parametrize("outage", outages())
@pytest.mark.parametrize("hours", [1, 23])
def test_an_outage_of_a_day_loses_nothing_and_spends_one_batch_in_vain(hours: int, outage: str) -> None:
    world = World(limit=50)
    whole, world.distribution = world.distribution, outages()[outage](world.distribution)
    for turn in range(hours * 3600 // HIDDEN_SECONDS):
        world.send(*IDS[turn : turn + 1])
        world.deliver(size=turn % 3 + 1)
    world.distribution = whole
    assert (len(world.queue), max(world.receives.values()) < MOST_RECEIVES) == (min(len(IDS), turn + 1), True)
    world.deliver()
    assert {*world.told} == {*IDS[: turn + 1]}
    assert world.invalidations.used[MONTH] == len(world.told) <= len(world.receives) + 1
    assert (world.queue, world.invalidations.skipped) == ({}, {})


def test_a_payment_that_others_left_open_is_ended_first_and_one_of_last_month_hinders_nobody() -> None:
    world = World()
    world.send(IDS[0])
    whole, world.distribution = world.distribution, failing(world.distribution, "invalidate", Retryable())
    world.deliver()
    world.distribution = whole
    others = Payment(month=MONTH, image_ids=(IDS[0],), reference=world.invalidations.last[MONTH].reference)
    invalidate_edge(world.ports, {"m": IDS[1]})
    assert [*whole.told] == [(others.reference, 1), (world.invalidations.last[MONTH].reference, 1)]
    world.invalidations.open.add(MONTH)
    world.now += 31 * 86_400_000
    world.deliver()
    assert world.invalidations.used == {MONTH: 2, "2026-12": 1}
    meanwhile(world.invalidations, "pay", lambda bill, limit: world.invalidations.open.add(bill.month))
    with pytest.raises(Retryable):  # others open one again and again
        invalidate_edge(world.ports, {"n": IDS[2]})


def test_a_deletion_while_the_edge_is_told_of_another_is_told_as_well() -> None:
    """The same image was made public again, and deleted before the edge had forgotten it."""
    world = World()
    world.send(IDS[0])
    meanwhile(world.distribution, "invalidate", lambda payment: world.send(IDS[0]), times=1)
    world.deliver()
    assert [*world.queue.values()] == [IDS[0]]
    world.deliver()
    assert (world.told, world.queue) == ([IDS[0], IDS[0]], {})


@pytest.mark.guards("edge-tag-is-an-image-id")
@pytest.mark.parametrize(
    "body", ["", "[]", "{}", '{"image_id": "*"}', f'{{"image_id": "{IDS[0]}*"}}', '{"image_id": 1}', "\ud800"]
)
def test_a_message_that_names_no_image_is_refused(body: str) -> None:
    with pytest.raises(ValueError):
        image_id_in(body)


@pytest.mark.guards("isolated-edge-message")
def test_a_message_that_is_not_understood_comes_back_alone_and_an_untold_edge_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    handle = handler_of("invalidate_edge", "edge", world.ports, monkeypatch)
    event = sample_of("invalidate_edge")
    (record,) = event["Records"]
    image_id = json.loads(record["body"])["image_id"]
    event["Records"].append(record | {"messageId": "poison", "body": "poison"})
    assert handle(event) == {"batchItemFailures": [{"itemIdentifier": "poison"}]}
    assert world.told == [image_id]
    world.distribution = failing(world.distribution, "invalidate", Retryable("throttled"))
    handle = handler_of("invalidate_edge", "edge", world.ports, monkeypatch)
    with pytest.raises(Retryable):  # an alarm counts these
        handle(event)
