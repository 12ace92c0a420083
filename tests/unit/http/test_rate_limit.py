"""What clients are told about their tenant's allowance."""

import pytest

from darkroom.domain.kernel.tenants import Allowance
from darkroom.domain.tenants.rate_limits import Policy
from darkroom.http.tenants.rate_limit import limit_field, policy_field

FREE = Allowance(requests_per_second=10, burst=50)


@pytest.mark.parametrize(
    ("allowance", "cost", "field"),
    [
        (FREE, 1, '"tenant";q=50;w=5'),
        (Allowance(requests_per_second=3, burst=10), 1, '"tenant";q=10;w=4'),
        (Allowance(requests_per_second=100, burst=1), 1, '"tenant";q=1;w=1'),
        (FREE, 7, '"tenant";q=50;w=5;cost=7'),
    ],
)
def test_the_policy_says_the_burst_when_it_is_whole_again_and_what_the_request_costs(
    allowance: Allowance, cost: int, field: str
) -> None:
    assert policy_field(Policy.TENANT, allowance, cost=cost) == field


@pytest.mark.parametrize(
    ("left", "wait_seconds", "field"),
    [
        (50, 0, '"tenant";r=50;t=5'),
        (25, 0, '"tenant";r=25;t=3'),
        (1, 0, '"tenant";r=1;t=1'),
        (0, 0, '"tenant";r=0;t=1'),
        (0, 7, '"tenant";r=0;t=7'),
    ],
)
def test_what_is_left_is_told_with_the_time_in_which_to_use_no_more(left: int, wait_seconds: int, field: str) -> None:
    assert limit_field(Policy.TENANT, left, FREE, wait_seconds=wait_seconds) == field
