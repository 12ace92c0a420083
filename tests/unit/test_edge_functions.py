"""The functions of the delivery stack: what they let out, forget and sign."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import pytest

from darkroom.domain.edge.addresses import address_in
from darkroom.domain.edge.forgetting import Bill, image_id_in
from darkroom.domain.edge.policies import is_signable
from darkroom.domain.kernel.errors import Retryable
from darkroom.operations.edge.invalidate_edge import Forgetting, InvalidateEdgePorts, invalidate_edge
from darkroom.ports.edge import Refused

ID, OTHER = "0" * 26, "1" * 26


class Crash(BaseException):
    """The process dies."""


@dataclass
class World:
    """A budget and a distribution that die at a call, before it or after."""

    limit: int = 3
    used: int = 0
    skipped: int = 0
    payer: str = ""
    payment: int = 0
    done: dict[str, tuple[str, ...]] = field(default_factory=dict)
    calls: int = 0
    dies_at: float = -1
    refuses: int = 0

    def _dies(self, when: float) -> None:
        if self.calls + when == self.dies_at:
            raise Crash

    def _step(self, work: Any) -> Any:
        self._dies(0)
        answer = work()
        self._dies(0.5)
        self.calls += 1
        return answer

    def pay(self, bill: Bill, limit: int) -> int:
        def work() -> int:
            if self.payer != bill.reference:
                self.payment = max(0, min(bill.wanted, limit - self.used))
                self.used += self.payment
                self.payer = bill.reference
            return self.payment

        return int(self._step(work))

    def pay_back(self, bill: Bill) -> None:
        def work() -> None:
            if self.payer == bill.reference:
                self.used, self.payer = self.used - self.payment, ""

        self._step(work)

    def skip(self, bill: Bill, count: int) -> None:
        del bill
        self._step(lambda: setattr(self, "skipped", self.skipped + count))

    def invalidate(self, image_ids: Collection[str], reference: str) -> None:
        if self.refuses:
            self.refuses -= 1
            raise Refused("TooManyInvalidationsInProgress")
        self._step(lambda: self.done.setdefault(reference, tuple(image_ids)))

    @property
    def ports(self) -> InvalidateEdgePorts:
        return InvalidateEdgePorts(
            distribution=self, invalidations=self, clock=lambda: 1_795_251_600_000, limit=self.limit
        )


OWED = {"m1": ID, "m2": OTHER, "m3": ID}


def test_an_image_is_forgotten_once_per_batch_and_again_for_a_later_message() -> None:
    world = World()
    assert invalidate_edge(world.ports, OWED) == Forgetting(invalidated=2, skipped=0)
    invalidate_edge(world.ports, {"m4": ID})
    assert [*world.done.values()] == [(ID, OTHER), (ID,)]
    assert world.used == 3


@pytest.mark.parametrize("dies_at", [0, 0.5, 1, 1.5, 2, 2.5])
@pytest.mark.parametrize("limit", [0, 1, 3])
@pytest.mark.guards("edge-skipped-noted")
def test_a_crash_at_any_call_loses_nothing_and_never_exceeds_the_budget(dies_at: float, limit: int) -> None:
    world = World(limit=limit, dies_at=dies_at)
    try:
        invalidate_edge(world.ports, OWED)
    except Crash:
        world.dies_at = -1
        invalidate_edge(world.ports, OWED)
    told = sum(map(len, world.done.values()))
    assert told <= world.used <= limit
    assert told == min(2, limit)
    assert bool(world.skipped) == (limit < 2)


def test_what_cloudfront_refuses_is_not_paid_for_and_comes_back() -> None:
    world = World(refuses=1)
    with pytest.raises(Retryable):
        invalidate_edge(world.ports, OWED)
    assert world.used == 0
    invalidate_edge(world.ports, OWED)
    assert world.used == 2


@pytest.mark.parametrize("body", ["", "[]", "{}", '{"image_id": "*"}', f'{{"image_id": "{ID}*"}}', '{"image_id": 1}'])
@pytest.mark.guards("edge-tag-is-an-image-id")
def test_a_message_that_names_no_image_is_refused(body: str) -> None:
    with pytest.raises(ValueError):
        image_id_in(body)


@pytest.mark.parametrize(
    "path", [f"/i/{ID}/..", f"/i/{ID}/a/b", f"/i/{ID}", f"/i/{ID}/%61", f"/I/{ID}/hero", f"/i/{ID}/hero\n", "/i/../x"]
)
@pytest.mark.guards("edge-known-stable-addresses")
def test_no_other_path_is_an_address(path: str) -> None:
    assert address_in(path) is None
    assert address_in(f"/i/{ID}/hero") == (ID, "hero")


@pytest.mark.parametrize(
    "resource",
    [None, "*", "https://*/signed/" + ID + "/*", f"https://a/signed/{ID}*", f"https://a/public/{ID}/*",
     f"https://a/signed/{ID}/*?x", "https://a/signed/*", f"https://a/?/signed/{ID}/*"],
)  # fmt: skip
@pytest.mark.guards("edge-signs-one-image")
def test_only_the_variants_of_one_image_are_signed(resource: object) -> None:
    assert not is_signable(resource)
    assert is_signable(f"https://d1.cloudfront.net/signed/{ID}/*")
