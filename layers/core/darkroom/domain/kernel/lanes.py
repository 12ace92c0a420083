"""The lanes that work travels in: each has its own queue and service level."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.retry import RETRIES, RetryName, RetryPolicy
from darkroom.domain.kernel.tenants import Tier

type Effort = Literal["fast", "balanced", "small"]
"""How long an encoder may look for a smaller file."""

HOLD, UPLOAD, FETCH, DELIVERY, EDITS = "hold", "upload", "fetch", "delivery", "edits"
"""The queues of images to be held, of notifications of uploads, of images to be fetched, of deliveries to webhooks and,
in a stack that has one, of edits, named like lanes."""

EVENTS = "events"
"""What the topic's messages are signed for: each consumer's queue gets the same ones."""

FETCH_SECONDS = 60
"""The time of one attempt to fetch an image, from the first name that is resolved to the last byte, with all
redirects."""

FETCH_WORKERS = 10
"""The most workers of the fetch queue: `MaximumConcurrency` of its event source."""

FETCH_DRAIN_FLOOR_PER_SECOND = FETCH_WORKERS / FETCH_SECONDS
"""The rate of messages that they keep even if no source answers in time."""

LANE_DELAY_SECONDS = 900
"""The longest delay of a message in a lane: SQS's DelaySeconds is at most 15 minutes."""

WORST_CASE_PHOTO_SECONDS = 5.0
"""How long a worker is busy with a photo and the costliest recipe."""

USUAL_PHOTO_SECONDS = 0.25
"""How long a worker is busy with a photo and the preset `standard`."""


@dataclass(frozen=True, kw_only=True)
class Lane:
    """One queue's service level, for the images of tenants with those `tiers`, if it has any. `sla_seconds` is the p99
    from acceptance to a terminal state; `effort` is how long its encoders may look for smaller files if a recipe does
    not say; `concurrency` is its most workers, unless its stack was deployed with another number, and each takes up to
    `batch_size` images at once. Its queue keeps a message for `retention_seconds`, and `retries` names how
    its images' failed attempts are retried."""

    name: str
    tiers: frozenset[Tier]
    sla_seconds: int
    effort: Effort
    concurrency: int
    batch_size: int
    retention_seconds: int = 4 * 86_400
    retries: RetryName = "standard"

    def hides_claims(self, visibility_seconds: int) -> bool:
        """Whether a message is hidden anew for its image's lease once that is claimed: its queue would return the
        message of a killed worker only after `visibility_seconds`, which is longer than the lane promises. Elsewhere
        that is not worth a request per image."""
        return self.sla_seconds < visibility_seconds

    @property
    def drain_floor_per_second(self) -> float:
        """The rate of images that its workers keep even if every image has the costliest recipe."""
        return self.concurrency / WORST_CASE_PHOTO_SECONDS

    def first_look_at(self, begins_at: Milliseconds) -> Milliseconds:
        """When the sweeper first looks at an image that could begin at `begins_at`: after twice the service level, by
        when its own message has finished it unless something was lost."""
        return begins_at + 2 * self.sla_seconds * 1000

    @property
    def stuck_seconds(self) -> int:
        """How old its oldest unfinished image may become before somebody is woken: older than the retries of one
        failing image make it."""
        return max(3 * self.sla_seconds, 300, RETRIES[self.retries].least_seconds)

    @property
    def release_per_second(self) -> float:
        """How many scheduled images of the same time may reach it per second, so that live ones have room: half of what
        its workers do with usual photos."""
        return self.concurrency / USUAL_PHOTO_SECONDS / 2


_ROWS = [
    Lane(name="fast", tiers=frozenset({Tier.PAID}), sla_seconds=30, effort="fast", concurrency=20, batch_size=1),
    Lane(
        name="slow",
        tiers=frozenset({Tier.FREE, Tier.PLUS}),
        sla_seconds=600,
        effort="balanced",
        concurrency=10,
        batch_size=2,
    ),
    # Work in bulk, of operators and of imports, which takes what live traffic leaves.
    Lane(name="bulk", tiers=frozenset(), sla_seconds=3600, effort="balanced", concurrency=4, batch_size=2),
]
"""A new lane needs another row; then write the rest of it: docs/changing.md#a-lane."""

LANES = {lane.name: lane for lane in _ROWS}
LIVE_LANES = {name: lane for name, lane in LANES.items() if lane.tiers}
"""The lanes of uploads; the others take what these leave."""

FAST, SLOW, BULK = LANES["fast"], LANES["slow"], LANES["bulk"]


def lanes_with(concurrency: Mapping[str, int]) -> Mapping[str, Lane]:
    """The lanes, each with its deployed number of workers."""
    return {name: replace(lane, concurrency=concurrency[name]) for name, lane in LANES.items()}


def retries_of(lane: str) -> RetryPolicy:
    """How images in that lane are retried: as usual in one that this version does not know."""
    return RETRIES[LANES[lane].retries if lane in LANES else "standard"]


def lane_for(tier: Tier) -> Lane:
    """The lane of an upload by a tenant of that tier. It is chosen once, when the image is accepted."""
    return next(lane for lane in LANES.values() if tier in lane.tiers)


def lane_of_upload(tier: Tier, moved_to: str | None) -> str:
    """The lane of an upload: the one that its tenant was moved to, unless this version has none of that name, or else
    its tier's."""
    # guard: tenants-moved-to-known-lane
    return moved_to if moved_to in LANES else lane_for(tier).name


def live_lane_for(lane: str, tier: Tier, moved_to: str | None = None) -> str:
    """The lane of what a client asks of an image: the image's own, but for one that came by bulk work, or whose tenant
    was moved to another lane, its tenant's."""
    # guard: tenants-moved-with-old-images
    return lane if lane in LIVE_LANES and moved_to is None else lane_of_upload(tier, moved_to)
