"""What protects a route: in which order, at what cost, and what a client is told whatever the answer is."""

import json
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, cast

import pytest

from darkroom.domain.kernel.errors import Retryable, TurnedAway
from darkroom.domain.kernel.tenants import Allowance, Caller, Tier
from darkroom.domain.tenants.rate_limits import Policy
from darkroom.http.api import handles
from darkroom.http.imports.routes import POST_IMAGE
from darkroom.http.kernel.openapi_route import GET_OPENAPI
from darkroom.http.kernel.problems import Problem
from darkroom.http.kernel.router import Response, Router
from darkroom.http.tenants import protection
from darkroom.http.tenants.protection import Price, protected
from darkroom.operations.tenants.take_token import TakeTokenPorts
from darkroom.settings import AccessSettings
from repository.openapi.routes import ROUTES
from tests.support.fakes.load_shedding import FakeTokenBuckets

NOW = 1_795_251_600_000
TWICE = Caller(tenant_id="acme", tier=Tier.FREE, allowance=Allowance(requests_per_second=1, burst=2), key_id="k")


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> Router:
    monkeypatch.setattr(protection, "caller_of", lambda _: TWICE)
    router = Router(AccessSettings(access="anonymous"))
    router.answer_headers = {}
    return router


def asked(app: Router, buckets: FakeTokenBuckets, serve: Callable[[Any], Response], **more: Any) -> Response:
    return protected(TakeTokenPorts(token_buckets=buckets, clock=lambda: NOW), **more)(app, cast(Any, serve))


def served(_: Any) -> Response:
    return Response(status_code=HTTPStatus.OK.value)


def full(_: Any) -> Response:
    raise TurnedAway("overloaded", "Later.", retry_after_seconds=300)


def out_of_order() -> None:
    raise Retryable("S3 does not answer")


def test_a_request_costs_a_token_and_is_told_what_is_left(app: Router) -> None:
    buckets = FakeTokenBuckets()
    assert asked(app, buckets, served).status_code == HTTPStatus.OK
    assert app.answer_headers == {"RateLimit-Policy": '"tenant";q=2;w=2', "RateLimit": '"tenant";r=1;t=1'}


def test_what_a_price_has_read_of_a_request_is_not_read_again_for_its_operation_but_for_the_next_request() -> None:
    read: list[str] = []
    app = Router(AccessSettings(access="anonymous"))

    def body_of(router: Router) -> str:
        read.append(router.current_event.body or "")
        return read[-1]

    def twice() -> Response:
        return Response(status_code=HTTPStatus.OK.value, body=app.read_once(body_of) + app.read_once(body_of))

    app.add("POST", "/", twice)
    event = {
        "version": "2.0",
        "rawPath": "/",
        "requestContext": {"http": {"method": "POST", "path": "/"}, "stage": "$default", "requestId": "r"},
    }
    answers = [app.resolve({**event, "body": body})["body"] for body in ("a", "b")]
    assert (answers, read) == (["aa", "bb"], ["a", "b"])


@pytest.mark.guards("allowances-outage-uncharged")
def test_a_known_outage_costs_no_token_and_tells_the_policy_all_the_same(app: Router) -> None:
    buckets = FakeTokenBuckets()
    with pytest.raises(Retryable):
        asked(app, buckets, served, require_healthy=out_of_order)
    assert buckets.tats == {}
    assert app.answer_headers.keys() == {"RateLimit-Policy"}


def test_a_tenant_without_a_token_is_turned_away_before_anything_is_done(
    app: Router, capsys: pytest.CaptureFixture[str]
) -> None:
    buckets = FakeTokenBuckets()
    for _ in range(2):
        asked(app, buckets, served)
    with pytest.raises(Problem) as problem:
        asked(app, buckets, full)
    assert (problem.value.code, problem.value.headers) == ("too_many_requests", {"Retry-After": "1"})
    assert app.answer_headers["RateLimit"] == '"tenant";r=0;t=1'
    assert counted(capsys) == [("too_many_requests", "free")]


def test_a_full_lane_turns_away_and_nothing_of_the_allowance_is_of_use_before_that(
    app: Router, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(Problem) as problem:
        asked(app, FakeTokenBuckets(), full)
    assert (problem.value.code, problem.value.headers) == ("overloaded", {"Retry-After": "300"})
    assert app.answer_headers["RateLimit"] == '"tenant";r=0;t=300'
    assert counted(capsys) == [("overloaded", "free")]


def read_at(cost: int) -> Price:
    return Price(policy=Policy.READS, cost=lambda _: cost)


@pytest.mark.guards("allowances-cost-of-reads", "allowances-reads-own-bucket")
def test_a_read_is_paid_from_a_bucket_of_its_own_by_what_it_costs(app: Router) -> None:
    buckets = FakeTokenBuckets()
    asked(app, buckets, served, price=read_at(2))
    assert app.answer_headers == {"RateLimit-Policy": '"reads";q=2;w=2;cost=2', "RateLimit": '"reads";r=0;t=1'}
    with pytest.raises(Problem) as problem:
        asked(app, buckets, served, price=read_at(2))
    assert (problem.value.code, problem.value.headers) == ("too_many_requests", {"Retry-After": "2"})
    assert "This one counts as 2." in problem.value.detail
    app.answer_headers = {}
    asked(app, buckets, served)
    assert app.answer_headers["RateLimit"] == '"tenant";r=1;t=1', "whoever reads uses up nothing that uploads need"


@pytest.mark.guards("allowances-cost-burst-bound")
def test_a_request_that_costs_more_than_a_burst_takes_a_full_bucket(app: Router) -> None:
    buckets = FakeTokenBuckets()
    assert asked(app, buckets, served, price=read_at(70)).status_code == HTTPStatus.OK
    assert app.answer_headers == {"RateLimit-Policy": '"reads";q=2;w=2;cost=2', "RateLimit": '"reads";r=0;t=1'}
    with pytest.raises(Problem) as problem:
        asked(app, buckets, served, price=read_at(70))
    assert problem.value.headers == {"Retry-After": "2"}


def counted(capsys: pytest.CaptureFixture[str]) -> list[tuple[str, str]]:
    """The reasons and tiers of refused requests, as the metric counts them."""
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return [(line["reason"], line["tier"]) for line in lines if "RequestsTurnedAway" in line]


@pytest.mark.guards("allowances-route-protection")
def test_a_route_has_a_protection_if_and_only_if_it_is_rate_limited(app: Router) -> None:
    protect = protected(TakeTokenPorts(token_buckets=FakeTokenBuckets(), clock=lambda: NOW))
    with pytest.raises(ValueError, match="postImage"):
        handles(app, POST_IMAGE)
    with pytest.raises(ValueError, match="getOpenapi"):
        handles(app, GET_OPENAPI, protect)
    for route in ROUTES:
        assert route.is_rate_limited == ("too_many_requests" in route.problems)
