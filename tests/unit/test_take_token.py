"""Taking a token for a request: who has an allowance, and what happens if a bucket does not answer."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from darkroom.domain.kernel.tenants import NOBODY_IN_PARTICULAR, Allowance, Caller, Tier
from darkroom.domain.tenants.token_bucket import Take, tokens_left
from darkroom.operations.tenants.take_token import HOLD_MILLISECONDS, MAX_BLOCK, TakeTokenPorts, take_token
from tests.failures import ANY_FAILURE
from tests.support.fakes.load_shedding import FakeTokenBuckets

NOW = 1_795_251_600_000
ONCE = Allowance(requests_per_second=1, burst=1)


def caller(tenant_id: str) -> Caller:
    return Caller(tenant_id=tenant_id, tier=Tier.FREE, allowance=ONCE, key_id="k")


def asked(who: Caller, buckets: Any) -> Take | None:
    return take_token(TakeTokenPorts(token_buckets=buckets, clock=lambda: NOW), who)


def test_callers_without_a_credential_have_no_rate_limit() -> None:
    buckets = FakeTokenBuckets()
    assert asked(NOBODY_IN_PARTICULAR, buckets) is None
    assert buckets.tats == {}


@pytest.mark.guards("allowances-fail-open")
@ANY_FAILURE
def test_a_bucket_that_does_not_answer_stops_nobody(failure: Exception) -> None:
    class Silent:
        def take(self, *_: Any) -> Take:
            raise failure

    assert asked(caller("acme"), Silent()) is None


# ── Tokens in advance ────────────────────────────────────────────────────────────────────────────────────────────────

PAID = Tier.PAID.allowance


class CountedBuckets(FakeTokenBuckets):
    """Remembers how many tokens were wanted each time."""

    def __init__(self) -> None:
        super().__init__()
        self.wanted: list[int] = []

    def take(self, *arguments: Any) -> Take:
        self.wanted.append(arguments[3])
        return super().take(*arguments)


@dataclass
class Process:
    """One process that serves a tenant's requests."""

    buckets: FakeTokenBuckets
    allowance: Allowance = PAID
    now: int = NOW
    ports: TakeTokenPorts = field(init=False)

    def __post_init__(self) -> None:
        self.ports = TakeTokenPorts(token_buckets=self.buckets, clock=lambda: self.now)

    def serves(self, tenant_id: str = "acme", cost: int = 1) -> bool:
        caller = Caller(tenant_id=tenant_id, tier=Tier.PAID, allowance=self.allowance)
        answer = take_token(self.ports, caller, cost=cost)
        assert answer is not None
        return answer.is_taken


def test_a_busy_process_takes_tokens_in_advance() -> None:
    buckets = CountedBuckets()
    process = Process(buckets)
    for _ in range(200):
        assert process.serves()
        process.now += 50
    assert max(buckets.wanted) == MAX_BLOCK
    assert len(buckets.wanted) <= 200 / MAX_BLOCK + 5
    assert sum(buckets.wanted) - 200 < MAX_BLOCK, "and hardly any that it does not use"


@pytest.mark.guards("tokens-block-size-by-burst")
@pytest.mark.parametrize("cost", [1, 4])
def test_two_thousand_uploads_a_second_write_their_bucket_less_than_it_takes(cost: int) -> None:
    buckets, seconds = CountedBuckets(), 10
    allowance = Allowance(requests_per_second=10_000, burst=20_000)
    processes = [Process(buckets, allowance) for _ in range(120)]  # each takes 60 ms
    for number in range(2000 * seconds):
        process = processes[number % len(processes)]
        process.now = NOW + number // 2
        process.serves(cost=cost)
    assert len(buckets.wanted) < 500 * seconds, "an item takes 1,000"


@pytest.mark.guards("allowances-prefetch-by-demand")
def test_a_process_with_few_requests_takes_one_token_each_time() -> None:
    buckets = CountedBuckets()
    process = Process(buckets)
    for _ in range(10):
        assert process.serves()
        process.now += HOLD_MILLISECONDS
    assert buckets.wanted == [1] * 10


@pytest.mark.guards("allowances-clock-set-back", case="in the future")
@pytest.mark.guards("allowances-held-token-expiry", case="too long ago")
@pytest.mark.parametrize("passed", [HOLD_MILLISECONDS, -1], ids=["too long ago", "in the future"])
def test_tokens_that_were_taken_at_another_time_are_not_used(passed: int) -> None:
    buckets = CountedBuckets()
    process = Process(buckets)
    for _ in range(3):  # the second time it takes two, of which one is left
        process.serves()
    process.serves()
    looks = len(buckets.wanted)
    assert process.ports.held["acme"].tokens > 0
    process.now += passed
    process.serves()
    assert len(buckets.wanted) == looks + 1


@pytest.mark.guards("allowances-change-immediate")
def test_tokens_that_were_taken_by_another_allowance_are_not_used() -> None:
    buckets = CountedBuckets()
    process = Process(buckets)
    for _ in range(4):
        process.serves()
    assert process.ports.held["acme"].tokens > 0
    process.allowance = Allowance(requests_per_second=1, burst=1)
    assert not process.serves(), "a lowered allowance counts at once"


def test_processes_at_the_same_time_serve_exactly_a_burst() -> None:
    buckets = FakeTokenBuckets()
    processes = [Process(buckets, Allowance(requests_per_second=10, burst=53)) for _ in range(4)]
    assert sum(process.serves() for _ in range(60) for process in processes) == 53


@pytest.mark.guards("allowances-prefetch-fuller-half")
def test_what_a_process_holds_is_not_what_another_is_refused_for() -> None:
    buckets, allowance = FakeTokenBuckets(), Allowance(requests_per_second=10, burst=50)
    idle, busy = Process(buckets, allowance), Process(buckets, allowance)
    while (
        not idle.ports.held or idle.ports.held["acme"].tokens or len(idle.ports.held["acme"].requests) < MAX_BLOCK - 1
    ):
        assert idle.serves()
    left = tokens_left(buckets.tats["acme"], allowance, NOW * 1000)
    assert left > 12
    for _ in range(left - 12):
        assert busy.serves()
    assert idle.serves(), "it takes the one that it needs, although it may soon need more"
    assert sum(busy.serves() for _ in range(60)) == 11


def test_a_tenant_gets_at_most_four_seconds_more_than_its_allowance() -> None:
    buckets, allowance = FakeTokenBuckets(), Allowance(requests_per_second=10, burst=50)
    processes = [Process(buckets, allowance) for _ in range(8)]
    served = 0
    for step in range(2_000):
        for process in processes:
            process.now = NOW + 10 * step
        # Steadily for half of the time, so that tokens are held; then as many as it can.
        served += sum(process.serves() for process in processes[: 1 if step < 1_000 and step % 10 else 8])
    seconds = 20
    assert served <= 50 + 10 * (seconds + HOLD_MILLISECONDS / 1000)
    assert served >= 50 + 10 * (seconds - HOLD_MILLISECONDS / 1000)


@pytest.mark.guards("allowances-held-part-payment")
def test_what_is_held_pays_a_part_of_what_costs_more() -> None:
    buckets, allowance = FakeTokenBuckets(), Allowance(requests_per_second=10, burst=50)
    process = Process(buckets, allowance)
    assert all(process.serves() for _ in range(2))
    assert process.ports.held["acme"].tokens == 1
    assert process.serves(cost=25)
    assert process.serves(cost=23)
    assert (process.serves(), process.ports.held["acme"].tokens) == (False, 0), "not one token was lost"


def test_what_is_held_counts_as_left() -> None:
    buckets = FakeTokenBuckets()
    process = Process(buckets, Allowance(requests_per_second=10, burst=50))
    left = []
    for _ in range(12):
        answer = take_token(process.ports, Caller(tenant_id="acme", tier=Tier.PAID, allowance=process.allowance))
        assert answer is not None
        left.append(tokens_left(answer.tat, process.allowance, NOW * 1000))
    assert left == list(range(49, 37, -1))


def test_tenants_do_not_fill_the_memory() -> None:
    process = Process(FakeTokenBuckets())
    for number in range(2_500):
        process.serves(f"tenant-{number}")
    assert len(process.ports.held) <= 1_000


@pytest.mark.guards("allowances-empty-bucket-skipped")
def test_a_bucket_that_is_known_to_be_empty_is_not_asked_until_it_can_have_a_token() -> None:
    buckets = CountedBuckets()
    process = Process(buckets, Allowance(requests_per_second=10, burst=5))
    served = sum(process.serves() for _ in range(200))
    assert (served, len(buckets.wanted) <= 6) == (5, True)
    looks = len(buckets.wanted)
    process.now += 99
    assert not process.serves()
    assert len(buckets.wanted) == looks
    process.now += 1
    assert process.serves()


def test_a_raised_allowance_counts_at_once_also_for_a_bucket_that_was_empty() -> None:
    process = Process(FakeTokenBuckets(), Allowance(requests_per_second=1, burst=1))
    assert [process.serves() for _ in range(3)] == [True, False, False]
    process.allowance = Allowance(requests_per_second=100, burst=500)
    assert process.serves()
