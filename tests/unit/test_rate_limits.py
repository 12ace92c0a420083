"""What requests cost: by what they may read, from which bucket, and never more than the page that is asked for."""

import pytest

from darkroom.domain.image import Status
from darkroom.domain.listing import ListQuery
from darkroom.domain.rate_limits import Policy, bucket_of, cost_of
from darkroom.domain.tenants import is_tenant_id

FILTER = frozenset({Status.FAILED})


@pytest.mark.parametrize(
    ("query", "cost"),
    [
        (ListQuery(limit=1), 3),
        (ListQuery(limit=20), 5),
        (ListQuery(limit=100), 15),
        (ListQuery(limit=1, statuses=FILTER), 71),
        (ListQuery(limit=100, statuses=FILTER), 71),
    ],
)
def test_a_page_costs_by_what_it_may_read(query: ListQuery, cost: int) -> None:
    assert cost_of(query.read_units) == cost


def test_the_buckets_of_a_tenant_are_no_other_tenants() -> None:
    assert bucket_of(Policy.TENANT, "acme") == "acme"
    assert not is_tenant_id(bucket_of(Policy.READS, "acme"))
