"""The arithmetic of capacity: workers by Little's law, high-water marks, timeouts, and what a month costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import ceil

from darkroom.domain.images.load_shedding import high_water_mark
from darkroom.domain.kernel.lanes import LANES, Lane, lane_for
from darkroom.domain.kernel.tenants import Tier

MIN_WORKERS, MAX_WORKERS = 2, 1000
"""What `MaximumConcurrency` of an event source may be
(https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html)."""

UTILISATION = 0.8
"""How busy the workers are at the peak: the rest is for bursts, retries and cold starts."""

WORKER_TIMEOUT_SECONDS = 60
"""`Timeout` of the transcoder in template.yaml: enough for the costliest recipe, whatever the usual image takes."""

LONGEST_TO_USUAL = 5
"""How many times as long as the usual image the longest one takes."""

WINDOW_SECONDS = 0
"""The lanes' event sources have no batching window."""

MONTH_SECONDS = 30 * 24 * 3600

VARIANTS = 4
"""How many variants the preset `standard` makes."""

STATUS_READS = 2
"""How often a client polls until its image is done."""

API_GB, ACCEPT_MILLISECONDS, READ_MILLISECONDS = 0.5, 100, 20
"""The time that an upload and a status request take in a function with 512 MB."""

TOKEN_WRITES = 0.15
"""Writes to a tenant's bucket for each request: a busy function takes up to ten tokens at once."""

THROTTLES = {"Uploads": (500, 1000), "Requests": (1000, 2000)}
"""What the gateway lets through by default, per second and at once: template.yaml's `UploadsPerSecond`, …"""

_MOST_AT_ONCE = 5000

UPLOAD_LOG_KILOBYTES, STATUS_LOG_KILOBYTES, WORKER_LOG_KILOBYTES = 0.77, 0.05, 1.2
"""What the functions log about an image with InvocationLogs=sampled, including metrics: `make bench-costs`."""


@dataclass(frozen=True, kw_only=True)
class Demand:
    """The load: `per_second` images on average and `peak` times as many at the busiest, each of which takes `seconds`
    of a worker with `memory_mb`. `shares` has the lanes with a share of their own; of the rest, `paid_share` belongs
    to tenants of the tier `paid`, and what is left to those of `free`. `sla_seconds` has the service levels that are
    not the lanes' own."""

    per_second: float
    seconds: float
    peak: float = 1.0
    paid_share: float = 0.5
    memory_mb: int = 1769
    shares: Mapping[str, float] = field(default_factory=dict)
    sla_seconds: Mapping[str, int] = field(default_factory=dict)

    def share(self, lane: Lane) -> float:
        """The share of all images that use that lane."""
        if lane.name in self.shares:
            return self.shares[lane.name]
        of_tiers = {Tier.PAID: self.paid_share, Tier.FREE: 1 - self.paid_share}
        others = 1 - sum(self.shares.values())
        return others * sum(share for tier, share in of_tiers.items() if lane_for(tier) == lane)


@dataclass(frozen=True, kw_only=True)
class LanePlan:
    """What one lane needs: `concurrency` workers, which finish `drain_per_second` images. With a backlog above
    `high_water_mark` it could not keep its service level; each tier is turned away at its own backlog (`shed_at`)."""

    lane: str
    peak_per_second: float
    busy_workers: float
    concurrency: int
    drain_per_second: float
    sla_seconds: int
    high_water_mark: int
    shed_at: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Everything that a stack needs for its load. `requests` are a month's for its images, by the names in the price
    list."""

    lanes: tuple[LanePlan, ...]
    worker_timeout_seconds: int
    visibility_seconds: int
    api_functions: int
    peak_per_second: float
    images: float
    requests: Mapping[str, float]

    @property
    def concurrency(self) -> int:
        """The most functions that run at once."""
        return sum(lane.concurrency for lane in self.lanes) + self.api_functions

    @property
    def parameters(self) -> Mapping[str, str]:
        """The parameters of the template: each lane's workers, and their sum, which is reserved; and what the gateway
        lets through, if its defaults are too little."""
        named = {f"{lane.lane.capitalize()}Concurrency": str(lane.concurrency) for lane in self.lanes}
        named["ReservedWorkers"] = str(sum(lane.concurrency for lane in self.lanes))
        rates = {"Uploads": self.peak_per_second, "Requests": STATUS_READS * self.peak_per_second}
        for name, rate in rates.items():
            wanted = ceil(round(rate / UTILISATION, 9))
            if wanted > THROTTLES[name][0]:
                named |= {f"{name}PerSecond": str(wanted), f"{name}AtOnce": str(min(2 * wanted, _MOST_AT_ONCE))}
        return named


class TooMuch(ValueError):
    """No event source can have that many workers; the message says what to do."""


def plan_of(demand: Demand) -> Plan:
    """What the load needs. Raises TooMuch if one lane would need more workers than an event source can have."""
    lanes = tuple(
        _lane(
            replace(lane, sla_seconds=demand.sla_seconds.get(lane.name, lane.sla_seconds)),
            demand.per_second * demand.peak * demand.share(lane),
            demand.seconds,
        )
        for lane in LANES.values()
    )
    # The largest batch, full of the longest images, one after the other.
    longest_batch_seconds = max(lane.batch_size for lane in LANES.values()) * LONGEST_TO_USUAL * demand.seconds
    timeout_seconds = max(WORKER_TIMEOUT_SECONDS, 10 * ceil(longest_batch_seconds / 10))
    requests = {name: _images(demand) * each for name, each in requests_an_image(demand).items()}
    return Plan(
        lanes=lanes,
        worker_timeout_seconds=timeout_seconds,
        visibility_seconds=6 * timeout_seconds + WINDOW_SECONDS,
        api_functions=ceil(
            demand.per_second * demand.peak * (ACCEPT_MILLISECONDS + STATUS_READS * READ_MILLISECONDS) / 1000
        ),
        peak_per_second=demand.per_second * demand.peak,
        images=_images(demand),
        requests=requests,
    )


def _images(demand: Demand) -> float:
    return demand.per_second * MONTH_SECONDS


def _lane(lane: Lane, peak_per_second: float, seconds: float) -> LanePlan:
    # Little's law: the number in progress is the arrival rate times the time that each takes.
    busy_workers = peak_per_second * seconds
    least = MIN_WORKERS if lane.tiers else lane.concurrency  # no upload chooses it: it works as fast as it is meant to
    concurrency = max(least, ceil(round(busy_workers / UTILISATION, 9)))
    if concurrency > MAX_WORKERS:
        raise TooMuch(
            f"The {lane.name} lane would need {concurrency:,} workers, but an event source has at most "
            f"{MAX_WORKERS:,}. Make images take less time (a smaller recipe, more memory), or use two stacks."
        )
    drain = concurrency / seconds
    mark = high_water_mark(lane, drain)
    return LanePlan(
        lane=lane.name,
        peak_per_second=peak_per_second,
        busy_workers=busy_workers,
        concurrency=concurrency,
        drain_per_second=drain,
        sla_seconds=lane.sla_seconds,
        high_water_mark=int(mark),
        shed_at={tier.value: ceil(tier.backlog_share * mark) for tier in Tier},
    )


def requests_an_image(demand: Demand) -> Mapping[str, float]:
    """The requests to AWS for one upload with the preset `standard`, until its client knows that it is done."""
    parts = [requests_of_upload(), *[requests_of_status()] * STATUS_READS, requests_of_worker(demand)]
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: sum(part.get(name, 0) for part in parts) for name in names}


def requests_of_upload() -> Mapping[str, float]:
    """Those of one `POST /images`. A row has less than a kilobyte when it is put, which also writes its entries in
    three indexes: `make bench-costs` counts the units."""
    return {
        "API requests": 1,
        "Lambda requests": 1,
        "Lambda GB-milliseconds": API_GB * ACCEPT_MILLISECONDS,
        "S3 puts": 1,
        "SQS requests": 1,
        "DynamoDB write units": (1 + 3) + TOKEN_WRITES,
        "Log kilobytes": UPLOAD_LOG_KILOBYTES,
    }


def requests_of_status() -> Mapping[str, float]:
    """Those of one look at an image's status."""
    return {
        "API requests": 1,
        "Lambda requests": 1,
        "Lambda GB-milliseconds": API_GB * READ_MILLISECONDS,
        "DynamoDB read units": 1,
        "DynamoDB write units": TOKEN_WRITES,
        "Log kilobytes": STATUS_LOG_KILOBYTES,
    }


def requests_of_worker(demand: Demand) -> Mapping[str, float]:
    """Those of developing one image. A row has less than two kilobytes when it is finished; claiming it moves its entry
    in one index, and finishing it removes its entries in two."""
    # A busy lane fills its batches: one receive, one deletion and one invocation per batch.
    batches = sum(demand.share(lane) / lane.batch_size for lane in LANES.values())
    row_writes = (1 + 2) + (2 + 2)
    hidden = sum(demand.share(lane) for lane in LANES.values() if lane.hides_claims(6 * WORKER_TIMEOUT_SECONDS))
    return {
        "Lambda requests": batches,
        "Lambda GB-milliseconds": demand.memory_mb / 1024 * demand.seconds * 1000,
        "S3 puts": VARIANTS,
        "S3 gets": 1,
        "SQS requests": 2 * batches + hidden,
        "DynamoDB write units": row_writes,
        "Log kilobytes": WORKER_LOG_KILOBYTES,
    }
