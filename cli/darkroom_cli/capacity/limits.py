"""At how many uploads per second which limit bites, and what to do about it; and what a rush of messages needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, sqrt

from darkroom.domain.images.load_shedding import FIRST_BATCHES, MORE_BATCHES_PER_SECOND, Ramp
from darkroom.domain.kernel.lanes import LANES
from darkroom_cli.capacity.plan import (
    ACCEPT_MILLISECONDS,
    READ_MILLISECONDS,
    STATUS_READS,
    VARIANTS,
    Demand,
    requests_of_upload,
    requests_of_worker,
)
from darkroom_cli.capacity.quotas import (
    INVOCATIONS_OF_A_POLLER,
    NEW_TABLE_WRITES,
    PREFIX_PUTS,
    Quotas,
)

ROW_WRITES = 2 + 2 + 3
"""The write units of an upload in the images table itself: put, claimed and finished, with up to 3 KB."""

EVENTS = 2
"""An upload is accepted, and done."""


@dataclass(frozen=True, kw_only=True)
class Limit:
    """Something that more than `uploads_per_second` would meet, and what then helps."""

    name: str
    uploads_per_second: float
    remedy: str


def limits(demand: Demand, workers: Mapping[str, int], uploads_per_second: int, quotas: Quotas) -> Sequence[Limit]:
    """Every limit, the lowest first, for a stack with so many workers in these lanes and that throttle."""
    at_a_time = (ACCEPT_MILLISECONDS + STATUS_READS * READ_MILLISECONDS) / 1000 + demand.seconds
    writes = requests_of_upload()["DynamoDB write units"] + requests_of_worker(demand)["DynamoDB write units"]
    limits = [
        Limit(
            name=f"workers of the {lane.name} lane ({workers[lane.name]:,})",
            uploads_per_second=workers[lane.name] / demand.seconds / demand.share(lane),
            remedy=f"{lane.name.capitalize()}Concurrency; until then uploads are turned away with 429",
        )
        for lane in LANES.values()
        if lane.name in workers and demand.share(lane) > 0
    ]
    limits += [
        Limit(
            name=f"the gateway's throttle ({uploads_per_second:,} a second)",
            uploads_per_second=uploads_per_second,
            remedy="UploadsPerSecond; the gateway's 429 has no Retry-After",
        ),
        Limit(
            name=f"concurrent executions of the account ({quotas.concurrency:,})",
            uploads_per_second=quotas.concurrency / at_a_time,
            remedy="ask Service Quotas for more (Lambda, L-B99A9384)",
        ),
        Limit(
            name=f"requests to the account's APIs ({quotas.gateway_per_second:,} a second)",
            uploads_per_second=quotas.gateway_per_second / (1 + STATUS_READS),
            remedy="ask Service Quotas for more (API Gateway, L-8A5B8E43), or use webhooks instead of polling",
        ),
        Limit(
            name=f"writes of a new images table ({NEW_TABLE_WRITES:,} units a second)",
            uploads_per_second=NEW_TABLE_WRITES / ROW_WRITES,
            remedy="it doubles within 30 minutes; before a peak: aws dynamodb update-table --warm-throughput",
        ),
        Limit(
            name=f"writes of one table ({quotas.table_writes:,} units a second)",
            uploads_per_second=quotas.table_writes / writes,
            remedy="ask Service Quotas for more (DynamoDB)",
        ),
        Limit(
            name=f"S3 PUTs of variants ({PREFIX_PUTS:,} a second in one part of the keys)",
            uploads_per_second=PREFIX_PUTS / VARIANTS,
            remedy="S3 divides the keys by itself, within minutes; images are tried again meanwhile",
        ),
        Limit(
            name=f"messages of the topic of events ({quotas.topic_messages:,} a second)",
            uploads_per_second=quotas.topic_messages / EVENTS,
            remedy="ask Service Quotas for more (SNS): events wait in the stream, images do not",
        ),
    ]
    return sorted(limits, key=lambda limit: limit.uploads_per_second)


@dataclass(frozen=True, kw_only=True)
class Rush:
    """What so many messages that wait at once need to be done in time: `busy_workers` on average; `workers` as Lambda
    begins them, None if not even the quickest ramp suffices, which takes `soonest_seconds`; `pollers`, provisioned ones
    whose workers are all there at once."""

    busy_workers: float
    workers: int | None
    soonest_seconds: float
    pollers: int


def rush(*, messages: float, within_seconds: float, each_seconds: float) -> Rush:
    """The workers for so many messages, each of which takes one so long."""
    work = messages * each_seconds
    busy = work / within_seconds
    growing = Ramp(now=FIRST_BATCHES, most=float("inf"))
    soonest = (sqrt(growing.now**2 + 2 * MORE_BATCHES_PER_SECOND * work) - growing.now) / MORE_BATCHES_PER_SECOND
    return Rush(
        busy_workers=busy,
        workers=None if soonest > within_seconds else _fewest(work, within_seconds),
        soonest_seconds=soonest,
        pollers=max(2, ceil(round(busy / INVOCATIONS_OF_A_POLLER, 9))),
    )


def _fewest(work: float, within_seconds: float) -> int:
    """The fewest workers that do the work in time, with Lambda's ramp."""
    low, high = 2, ceil(FIRST_BATCHES + MORE_BATCHES_PER_SECOND * within_seconds)
    while low < high:
        middle = (low + high) // 2
        ramp = Ramp(now=min(FIRST_BATCHES, middle), most=middle)
        low, high = (low, middle) if ramp.worked_within(within_seconds) >= work else (middle + 1, high)
    return low
