"""What requests cost: by what they may read or bring in, from which bucket, and never more than what is asked for."""

import pytest

from darkroom.domain.images.image import Status
from darkroom.domain.images.listing import ListQuery
from darkroom.domain.kernel.tenants import is_tenant_id
from darkroom.domain.tenants.rate_limits import Policy, bucket_of, cost_of, cost_of_file

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


@pytest.mark.guards("allowances-cost-by-file-size")
@pytest.mark.parametrize(
    ("size_bytes", "cost"), [(0, 1), (1, 1), (1_000_000, 1), (1_000_001, 2), (4_194_304, 5), (25_000_000, 25)]
)
def test_a_file_costs_a_token_for_each_megabyte_that_it_has_begun(size_bytes: int, cost: int) -> None:
    assert cost_of_file(size_bytes) == cost
