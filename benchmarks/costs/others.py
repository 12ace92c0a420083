"""A month's bill of other ways to have four variants of each photo, by stated models and list prices.

Each is for the same photos, which are all kept, and for ten views of each, of a variant of average size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import ceil

from darkroom_cli.capacity.bill import Kept, bill
from darkroom_cli.capacity.plan import MONTH_SECONDS, VARIANTS, Demand, requests_of_worker
from darkroom_cli.capacity.prices import STORED_GB, TRANSFERRED_GB, cost

VIEWS = 10


@dataclass(frozen=True, kw_only=True)
class Load:
    """Images a month, in the so many-th month; each takes half a second of a worker."""

    images: int
    month: int
    kept: Kept

    @property
    def demand(self) -> Demand:
        """The uploads, evenly."""
        return Demand(per_second=self.images / MONTH_SECONDS, seconds=0.5)

    @property
    def viewed_gigabytes(self) -> float:
        """What the views of a month transfer."""
        return VIEWS * self.images * self.kept.variants_megabytes / VARIANTS / 1000

    def kept_gigabytes(self, megabytes: float) -> float:
        """What is stored on average in the month, of so much for each image."""
        return self.images * megabytes / 1000 * (self.month - 0.5)


def darkroom(load: Load) -> float:
    """Everything that `darkroom capacity` prints, and the views."""
    lines = bill(load.demand, load.kept, month=load.month)
    return sum(line.dollars for line in lines) + load.viewed_gigabytes * TRANSFERRED_GB


LAMBDA_LOG_KILOBYTES = 0.4


def plain_lambda(load: Load) -> float:
    """One function behind S3's events that runs sharp for as long as our worker takes, and puts four variants. It has
    no API: clients put originals by URLs that something else presigns."""
    worker = requests_of_worker(load.demand)
    each = {
        "Lambda requests": 1,
        "Lambda GB-milliseconds": worker["Lambda GB-milliseconds"],
        "S3 puts": 1 + VARIANTS,
        "S3 gets": 1,
        "Log kilobytes": LAMBDA_LOG_KILOBYTES,
    }
    stored = load.kept_gigabytes(load.kept.original_megabytes + load.kept.variants_megabytes)
    return load.images * cost(each) + stored * STORED_GB["S3 standard"] + load.viewed_gigabytes * TRANSFERRED_GB


MACHINE_DOLLARS, BALANCER_DOLLARS = 0.0725 * 720, 0.0225 * 720
"""A c7g.large with two processors, and a load balancer without its traffic: on demand, us-east-1, November 2026
(https://aws.amazon.com/ec2/pricing/on-demand, https://aws.amazon.com/elasticloadbalancing/pricing)."""

MACHINES_AT_LEAST, PROCESSORS, BUSY, PEAK, SECONDS_A_VARIANT = 2, 2, 0.8, 4, 0.1
"""Two, so that one may fail; with room for four times the average."""


def imgproxy(load: Load) -> float:
    """Machines with imgproxy, whose source is open, behind a cache that keeps each variant after its first view; the
    originals are in S3, and put there by something else."""
    busy = VARIANTS * load.images / MONTH_SECONDS * SECONDS_A_VARIANT * PEAK
    machines = max(MACHINES_AT_LEAST, ceil(busy / (PROCESSORS * BUSY)))
    return (
        machines * MACHINE_DOLLARS
        + BALANCER_DOLLARS
        + load.images * cost({"S3 puts": 1, "S3 gets": VARIANTS})
        + load.kept_gigabytes(load.kept.original_megabytes) * STORED_GB["S3 standard"]
        + load.viewed_gigabytes * TRANSFERRED_GB
    )


def cloudflare(load: Load) -> float:
    """Cloudflare Images with its own storage: $5 for each begun 100,000 images stored, $1 for 100,000 delivered
    (https://developers.cloudflare.com/images/pricing, November 2026)."""
    return 5 * ceil(load.images * load.month / 100_000) + VIEWS * load.images / 100_000


def imgix(load: Load) -> float:
    """imgix over originals in S3: two credits for a GB of cached variants, one for a GB delivered, one for 500 renders
    (https://www.imgix.com/pricing-faq, November 2026); $25 for 100 credits and $0.25 for each more, as Starter costs
    (https://www.imgix.com/pricing, May 2026). Larger plans cost less for a credit."""
    used = 2 * load.images * load.kept.variants_megabytes / 1000 + load.viewed_gigabytes + VARIANTS * load.images / 500
    originals = load.kept_gigabytes(load.kept.original_megabytes) * STORED_GB["S3 standard"]
    return 25 + 0.25 * max(0, used - 100) + load.images * cost({"S3 puts": 1}) + originals


CLOUDINARY_PLANS = {25: 0, 225: 99, 600: 249, 1350: 549}
"""Dollars a month by credits: Free, Plus, Advanced, Advanced Extra (https://cloudinary.com/pricing, May 2026)."""


def cloudinary(load: Load) -> float:
    """Cloudinary: a credit for 1,000 transformations, a GB stored with its variants, or a GB delivered
    (https://cloudinary.com/documentation/billing_and_plans, November 2026). Beyond the largest plan with a price, its
    price for a credit goes on: what is agreed with it may be less."""
    stored = load.images * load.month * (load.kept.original_megabytes + load.kept.variants_megabytes) / 1000
    used = VARIANTS * load.images / 1000 + stored + load.viewed_gigabytes
    enough = [dollars for room, dollars in CLOUDINARY_PLANS.items() if used <= room]
    largest = max(CLOUDINARY_PLANS)
    return enough[0] if enough else used * CLOUDINARY_PLANS[largest] / largest


def tiered(load: Load) -> float:
    """Darkroom with OriginalsStorage=intelligent."""
    return darkroom(replace(load, kept=replace(load.kept, storage="intelligent")))


WAYS: Mapping[str, Callable[[Load], float]] = {
    "Darkroom": darkroom,
    "… with OriginalsStorage=intelligent": tiered,
    "a plain Lambda with sharp": plain_lambda,
    "imgproxy on machines": imgproxy,
    "Cloudflare Images": cloudflare,
    "imgix": imgix,
    "Cloudinary": cloudinary,
}
