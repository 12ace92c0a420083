"""How long AWS takes for a call: a good, a usual and a bad day, each with a median and a p99 of each service."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, log

_P99_DEVIATIONS = 2.3263
"""So many standard deviations above its median a normal distribution has its p99."""


@dataclass(frozen=True, kw_only=True)
class Latency:
    """Milliseconds of a service's calls, lognormal; `each` is added for each row or object of a call with several."""

    median: float
    p99: float
    each: float = 0.0

    def draw(self, chance: random.Random, items: int = 1) -> float:
        """The milliseconds of one call."""
        deviation = log(self.p99 / self.median) / _P99_DEVIATIONS
        return self.median * exp(chance.gauss(0.0, deviation)) + self.each * (items - 1)


DAYS: Mapping[str, Mapping[str, Latency]] = {
    "good": {
        "S3": Latency(median=30, p99=100, each=0.5),
        "DynamoDB": Latency(median=5, p99=15, each=0.05),
        "SQS": Latency(median=10, p99=50, each=0.5),
    },
    "usual": {
        "S3": Latency(median=75, p99=200, each=1.0),
        "DynamoDB": Latency(median=10, p99=30, each=0.1),
        "SQS": Latency(median=20, p99=100, each=1.0),
    },
    "bad": {
        "S3": Latency(median=150, p99=600, each=2.0),
        "DynamoDB": Latency(median=20, p99=100, each=0.2),
        "SQS": Latency(median=40, p99=200, each=2.0),
    },
}
"""The latencies by the kind of day. S3 answers small requests in roughly 100 to 200 ms
(https://docs.aws.amazon.com/AmazonS3/latest/userguide/optimizing-performance.html), DynamoDB in single-digit
milliseconds (https://aws.amazon.com/dynamodb/features), SQS in tens or low hundreds of milliseconds
(https://aws.amazon.com/sqs/faqs). AWS promises no p99: these are three to five times the median, and so is SNS's, which
is taken for SQS's."""


@dataclass(frozen=True, kw_only=True)
class Drawn(Latency):
    """The same distribution, drawn otherwise."""

    def draw(self, chance: random.Random, items: int = 1) -> float:
        return chance.lognormvariate(log(self.median), log(self.p99 / self.median) / 2.326)


OF_WEBHOOKS: Mapping[str, Latency] = {"DynamoDB": Drawn(median=5, p99=20), "SQS": Drawn(median=10, p99=40)}
"""The latencies at which webhooks are played."""
