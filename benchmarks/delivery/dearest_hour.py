"""What anonymous viewers can cost in an hour by asking for variants that are made on request, by the limits that hold.

The function runs at most so often at once, so an hour has so many seconds of it, whatever they are spent on. They cost
most if each request is refused: then there are the most requests, each with what it costs besides. CloudFront's own
price of a request is apart: more requests than the function takes are answered 429, and the rate rule of the delivery
stack bounds how many one address may send.
"""

from __future__ import annotations

from benchmarks.delivery.ways import EDGE_FUNCTION, HTTPS_REQUEST
from darkroom_cli.capacity.prices import PER_MILLION, cost

SLOTS = 10
"""At once, in the example: the parameter OnRequestConcurrency."""

_HOUR, _GIGABYTES = 3600, 1769 / 1024
_REFUSAL_SECONDS = 0.010  # our assumption: one or two reads of DynamoDB, which take most of it
_OF_A_REFUSAL = {
    "Lambda requests": 1,
    "DynamoDB read units": 2,  # the image's row, and its tenant's
    "Log kilobytes": 0.5,
}


def running_dollars() -> float:
    """An hour of the function's time for one at once."""
    return cost({"Lambda GB-milliseconds": _HOUR * 1000 * _GIGABYTES})


def refusing_dollars() -> float:
    """What as many refusals as fit into that cost besides."""
    refusals = _HOUR / _REFUSAL_SECONDS
    return cost({name: count * refusals for name, count in _OF_A_REFUSAL.items()})


def edge_dollars_per_million() -> float:
    """CloudFront's own price of a million requests that it does not have the answer to: of the request, the function
    that rewrites it and S3's refusal."""
    return (HTTPS_REQUEST + EDGE_FUNCTION) * 1e6 + PER_MILLION["S3 gets"]


def dearest_hour(slots: int = SLOTS) -> float:
    """The most dollars of an hour with so many at once, without CloudFront's own."""
    return slots * (running_dollars() + refusing_dollars())
