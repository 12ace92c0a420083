"""What there is for a sweep to do: rows of a hundred tenants, as the project's own decisions make them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from benchmarks.virtual.virtual_time import START
from darkroom.domain.fetch import await_fetch, claim_fetch, fetch_later, fetch_lease
from darkroom.domain.claim import Claim
from darkroom.domain.ids import image_id_from_bits
from darkroom.domain.image import Cause, Image, message_for
from darkroom.domain.instants import Milliseconds
from darkroom.domain.transitions import await_upload, delete, due_now
from proof.fakes.rows import accepted_image

MINUTE = 60_000
TENANTS = tuple(f"tenant-{number:02}" for number in range(100))
NOISY = TENANTS[0]
"""The one whose rows are in front of everybody's."""

DAY = 24 * 60 * MINUTE
"""How old a developed image is that is deleted."""


class Load:
    """Makes rows; the same seed makes the same ones."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(f"load {seed}")
        self._made = 0

    def image(self, tenant_id: str, *, accepted_at: Milliseconds, lane: str = "slow") -> Image:
        """An image that has just been accepted."""
        image_id = image_id_from_bits(self._chance.randbytes(16))
        return accepted_image(now=accepted_at, image_id=image_id, tenant_id=tenant_id, lane=lane)

    def spread(self, count: int, minutes: float) -> list[Milliseconds]:
        """As many instants, evenly over so long before the beginning."""
        return [START - round((count - number) * minutes * MINUTE / count) for number in range(count)]

    def deletions(self, tenant_id: str, instants: Sequence[Milliseconds]) -> list[Image]:
        """Images that were deleted at these instants, each due for its removal since then."""
        return [delete(self.image(tenant_id, accepted_at=at - DAY), now=at) for at in instants]

    def announcements(self, tenant_id: str, instants: Sequence[Milliseconds]) -> list[Image]:
        """Announced uploads that never came, due since these instants."""
        made = [await_upload(self.image(tenant_id, accepted_at=at - 60 * MINUTE), now=at - 60 * MINUTE) for at in instants]
        return [replace(row, due_at=at) for row, at in zip(made, instants, strict=True)]

    def fetches(self, tenant_id: str, instants: Sequence[Milliseconds], url: str) -> list[Image]:
        """Images whose source did not answer once, to be asked again since these instants."""
        return [self._failed(self.image(tenant_id, accepted_at=at - MINUTE), url, at) for at in instants]

    def _failed(self, accepted: Image, url: str, at: Milliseconds) -> Image:
        waiting = await_fetch(accepted, url, now=at - MINUTE)
        lease = fetch_lease(claimed_by="receipt", request_id="r", now=at - MINUTE)
        claimed = claim_fetch(waiting, message_for(waiting), lease)
        assert isinstance(claimed, Claim)
        cause = Cause(error_type="fetch_failed", message="The server refuses the connection.", stack="")
        return fetch_later(claimed.image, delay_seconds=60, cause=cause, now=at - MINUTE)

    def lost(self, tenant_id: str, due_at: Milliseconds, *, lane: str = "slow") -> Image:
        """An image whose message was lost: it is looked at for the first time at `due_at`."""
        image = self.image(tenant_id, accepted_at=due_at, lane=lane)
        early = due_at - (image.due_at or due_at)
        return replace(
            image,
            due_at=due_at,
            created_at=image.created_at + early,
            accepted_at=due_at + early,
            waiting_since=due_at + early,
            enqueued_at=due_at + early,
        )

    def unsent(self, tenant_id: str, at: Milliseconds, *, lane: str = "slow") -> Image:
        """An image whose message could not be sent when it was accepted."""
        return due_now(self.image(tenant_id, accepted_at=at, lane=lane), now=at)

    def random_minutes(self, count: int, minutes: float) -> list[Milliseconds]:
        """Instants within so long after the beginning."""
        return sorted(START + round(self._chance.uniform(1, minutes) * MINUTE) for _ in range(count))
