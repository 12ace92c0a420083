"""Taking a token for a request: who has an allowance, and what happens if a bucket does not answer."""

from typing import Any

from darkroom.domain.errors import Retryable
from darkroom.domain.tenants import NOBODY_IN_PARTICULAR, Allowance, Caller, Tier
from darkroom.domain.token_bucket import Take
from darkroom.operations.take_token import Ports, take_token
from proof.fakes.load_shedding import FakeTokenBuckets

NOW = 1_795_251_600_000
ONCE = Allowance(requests_per_second=1, burst=1)


def caller(tenant_id: str) -> Caller:
    return Caller(tenant_id=tenant_id, tier=Tier.FREE, allowance=ONCE, key_id="k")


def asked(who: Caller, buckets: Any) -> Take | None:
    return take_token(Ports(token_buckets=buckets, clock=lambda: NOW), who)


def test_each_tenant_has_a_bucket_of_its_own() -> None:
    buckets = FakeTokenBuckets()
    answers = [asked(caller(name), buckets) for name in ("acme", "acme", "globex")]
    assert [answer.is_taken for answer in answers if answer] == [True, False, True]


def test_callers_without_a_credential_have_no_rate_limit() -> None:
    buckets = FakeTokenBuckets()
    assert asked(NOBODY_IN_PARTICULAR, buckets) is None
    assert buckets.tats == {}


def test_a_bucket_that_does_not_answer_stops_nobody() -> None:
    class Silent:
        def take(self, *_: Any) -> Take:
            raise Retryable("taking a token: timeout")

    assert asked(caller("acme"), Silent()) is None
