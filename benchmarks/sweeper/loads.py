"""What there is for a sweep to do: rows of a hundred tenants, as the project's own decisions make them."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from benchmarks.sweeper.calls import VARIANTS
from darkroom.domain.images.image import Cause, Image, Status, Variant, message_for
from darkroom.domain.images.transitions import await_upload, delete, due_now
from darkroom.domain.imports.fetch import FAILED, Unfetched, await_fetch, claim_fetch, fetch_later, fetch_lease
from darkroom.domain.kernel.ids import image_id_from_bits
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.lanes import LANES
from darkroom.domain.sweeping.due import decide_due
from tests.support.fakes.rows import accepted_image
from tests.support.virtual.virtual_time import START

MINUTE = 60_000
TENANTS = tuple(f"tenant-{number:02}" for number in range(100))
NOISY = TENANTS[0]
"""The one whose rows are in front of everybody's."""

DAY = 24 * 60 * MINUTE
"""How old a developed image is that is deleted."""

URL = "https://pictures.example/1.jpg"
UNREACHABLE = Unfetched(code=FAILED, message="The server refuses the connection.", may_pass=True)
"""What its server answers."""

_VARIANT = Variant(name="v0", width=320, height=240, format="webp", size_bytes=1, sha256="s", key="")


class Load:
    """Makes rows; the same seed makes the same ones."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(f"load {seed}")
        self._accepted = {lane: accepted_image(now=START, lane=lane) for lane in LANES}

    def image(self, tenant_id: str, *, accepted_at: Milliseconds, lane: str = "slow") -> Image:
        """An image that has just been accepted."""
        return replace(
            self._accepted[lane],
            image_id=image_id_from_bits(self._chance.randbytes(16)),
            tenant_id=tenant_id,
            created_at=accepted_at,
            accepted_at=accepted_at,
            waiting_since=accepted_at,
            enqueued_at=accepted_at,
            due_at=LANES[lane].first_look_at(accepted_at),
        )

    def developed(self, tenant_id: str, *, at: Milliseconds) -> Image:
        """An image that is done, with its variants."""
        accepted = self.image(tenant_id, accepted_at=at)
        variants = tuple(
            replace(_VARIANT, name=f"v{number}", key=f"outputs/{accepted.image_id}/1/v{number}.webp")
            for number in range(VARIANTS)
        )
        return replace(
            accepted,
            status=Status.DONE,
            attempt=1,
            variants=variants,
            completed_at=at,
            waiting_since=None,
            enqueued_at=None,
            due_at=None,
        )

    def deleted(self, tenant_id: str, at: Milliseconds) -> Image:
        """An image that was deleted then, due for the removal of its objects since."""
        return delete(self.developed(tenant_id, at=at - DAY), now=at)

    def removed(self, tenant_id: str, at: Milliseconds) -> Image:
        """An image that was deleted then, and whose objects were removed at once: it is due for the last look."""
        tombstone = self.deleted(tenant_id, at)
        duty: Any = decide_due(tombstone, now=at, backlog=0, releasing_until=0, service=LANES)
        removed: Image = duty.image
        return removed

    def announced(self, tenant_id: str, at: Milliseconds) -> Image:
        """An announced upload that never came, due since then."""
        accepted = self.image(tenant_id, accepted_at=at - 60 * MINUTE)
        return replace(await_upload(accepted, now=at - 60 * MINUTE), due_at=at)

    def unfetched(self, tenant_id: str, at: Milliseconds) -> Image:
        """An image whose source did not answer once, to be asked again since then."""
        begun_at = at - MINUTE
        waiting = await_fetch(self.image(tenant_id, accepted_at=begun_at), URL, now=begun_at)
        lease = fetch_lease(claimed_by="receipt", request_id="r", now=begun_at)
        claim: Any = claim_fetch(waiting, message_for(waiting), lease)
        cause = Cause(error_type=UNREACHABLE.code, message=UNREACHABLE.message, stack="")
        return fetch_later(claim.image, delay_seconds=60, cause=cause, now=begun_at)

    def lost(self, tenant_id: str, due_at: Milliseconds, *, lane: str = "slow") -> Image:
        """An image whose message was lost: it is looked at for the first time at `due_at`."""
        first_look = LANES[lane].first_look_at(0)
        return self.image(tenant_id, accepted_at=due_at - first_look, lane=lane)

    def unsent(self, tenant_id: str, at: Milliseconds, *, lane: str = "slow") -> Image:
        """An image whose message could not be sent when it was accepted."""
        return due_now(self.image(tenant_id, accepted_at=at, lane=lane), now=at)

    def tenant(self) -> str:
        """Any tenant but the noisy one."""
        return self._chance.choice(TENANTS[1:])

    def instants(self, count: int, *, since_minute: float, until_minute: float) -> list[Milliseconds]:
        """So many random instants in between, in minutes after the beginning."""
        chosen = (self._chance.uniform(since_minute, until_minute) for _ in range(count))
        return sorted(START + round(minute * MINUTE) for minute in chosen)
