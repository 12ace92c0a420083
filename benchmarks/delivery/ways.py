"""What a month of a million views costs, by list prices of November 2026 in us-east-1, without a free tier."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from darkroom_cli.capacity.prices import PER_MILLION, STORED_GB

VIEWS = 1_000_000
VIEW_KILOBYTES = 60
_HOURS = 730

# https://aws.amazon.com/cloudfront/pricing/
HTTPS_REQUEST, _EDGE_GB, EDGE_FUNCTION = 0.0100 / 10_000, 0.085, 0.10 / 1_000_000


@dataclass(frozen=True, kw_only=True)
class Month:
    """A catalogue whose pictures are seen a million times in all; `miss_ratio` of the views reach the origin."""

    miss_ratio: float
    pictures: int = 100_000
    variants: int = 4

    @property
    def misses(self) -> float:
        """How many views the edge cannot answer by itself."""
        return VIEWS * self.miss_ratio

    @property
    def stored_gb(self) -> float:
        """The size of all variants."""
        return self.pictures * self.variants * VIEW_KILOBYTES / 1_000_000


@dataclass(frozen=True, kw_only=True)
class Way:
    """One way to serve them."""

    name: str
    dollars: Callable[[Month], float]
    source: str


def _edge(functions: int = 0) -> float:
    """CloudFront's share, with that many functions at each view."""
    return VIEWS * (HTTPS_REQUEST + functions * EDGE_FUNCTION) + VIEWS * VIEW_KILOBYTES / 1_000_000 * _EDGE_GB


def _darkroom(month: Month) -> float:
    # Before and after: the format by Accept, and `Vary` for the viewer.
    return _edge(functions=2) + month.misses * PER_MILLION["S3 gets"] / 1e6 + month.stored_gb * STORED_GB["S3 standard"]


def _aws_solution(month: Month) -> float:
    # Each miss is a request of a REST API ($3.50 a million), one second of a function of 1 GB on x86_64, and the
    # original from S3; it stores no result. One second is our assumption for a photo of 12 megapixels by sharp.
    second = 0.0000166667
    return _edge() + month.misses * (3.50 / 1e6 + PER_MILLION["Lambda requests"] / 1e6 + second + 0.40 / 1e6)


def _imgproxy(_: Month) -> float:
    # Two tasks of one vCPU and 2 GB, so that one may fail, and a load balancer with one capacity unit.
    task = 0.04048 + 2 * 0.004445
    return _edge() + _HOURS * (2 * task + 0.0225 + 0.008)


def _cloudflare(month: Month) -> float:
    return VIEWS / 100_000 * 1.00 + month.pictures / 100_000 * 5.00


def _cloudinary(month: Month) -> float:
    # A credit is a GB of traffic, a GB stored, or 1,000 transformations; a plan has 600 for $249.
    used = VIEWS * VIEW_KILOBYTES / 1e6 + month.stored_gb + month.pictures * month.variants / 1_000
    return -(-used // 600) * 249.0


WAYS = (
    Way(name="Darkroom", dollars=_darkroom, source="aws.amazon.com/cloudfront/pricing, /s3/pricing"),
    Way(name="AWS's image solution", dollars=_aws_solution, source="…, /api-gateway/pricing, /lambda/pricing"),
    Way(name="imgproxy on Fargate", dollars=_imgproxy, source="…, /fargate/pricing, /elasticloadbalancing/pricing"),
    Way(name="Cloudflare Images", dollars=_cloudflare, source="developers.cloudflare.com/images/pricing"),
    Way(name="Cloudinary", dollars=_cloudinary, source="cloudinary.com/pricing"),
)
