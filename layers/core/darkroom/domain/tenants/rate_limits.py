"""What requests cost their tenant: tokens, of two buckets, so that nobody who only looks uses up what uploads need.

A token of `reads` stands for about four millionths of a dollar at list prices: a request, a function and its log, a row
read consistently, and the token's own write. `make bench-reads` counts what an hour of the dearest reads costs.
A token of `tenant` brings a megabyte into the stack. To develop one takes a worker about a second, for 30 millionths of
a dollar, and to store it for a month costs 23 millionths (https://aws.amazon.com/s3/pricing: $0.023 for a gigabyte).
"""

from __future__ import annotations

from enum import StrEnum

UNITS_PER_TOKEN = 8
"""How many read units of a list cost as much as one request, a function's time and their further units included: a row
of more than 4 KB, with many failed attempts, is several."""

BYTES_PER_TOKEN = 1_000_000
"""How many bytes of a file a token brings in: so many are stored until their client deletes them."""


class Policy(StrEnum):
    """Which bucket a request is paid from: `tenant` for those that upload, change or delete, `reads` for the others.
    Both hold what the tenant's allowance says."""

    TENANT = "tenant"
    READS = "reads"


def bucket_of(policy: Policy, tenant_id: str) -> str:
    """The name of a tenant's bucket. No tenant's id has a `#`."""
    # guard: allowances-reads-own-bucket
    return tenant_id if policy is Policy.TENANT else f"{tenant_id}#{policy.value}"


def cost_of(read_units: int) -> int:
    """How many tokens a request costs that may read so much."""
    return 1 + -(-read_units // UNITS_PER_TOKEN)


def cost_of_file(size_bytes: int) -> int:
    """How many tokens it costs to bring in a file: one for each megabyte that it has begun."""
    return max(1, -(-size_bytes // BYTES_PER_TOKEN))  # guard: allowances-cost-by-file-size
