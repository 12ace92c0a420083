"""The router of an API function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from darkroom.http.kernel.router import Next, Response, Router
from darkroom.settings import AccessSettings
from tests.support.faults import raising


@pytest.fixture
def router() -> Router:
    router = Router(AccessSettings(access="anonymous"))
    router.add(
        "GET", "/images/<image_id>/variants/<name>", lambda image_id, name: Response(200, body=f"{image_id} {name}")
    )
    router.add("GET", "/images", lambda: Response(200, "application/json", body="[]", headers={"A": "b"}))
    router.no_route(lambda: Response(404))
    return router


def asked(router: Router, path: str, method: str = "GET", **more: Any) -> dict[str, Any]:
    context = {"http": {"method": method, "path": path}, "stage": "$default", "requestId": "r"}
    return router.resolve({"rawPath": path, "requestContext": context, **more})


def test_an_answer_has_the_form_that_the_gateway_takes(router: Router) -> None:
    assert asked(router, "/images") == {
        "statusCode": 200,
        "body": "[]",
        "isBase64Encoded": False,
        "headers": {"A": "b", "Content-Type": "application/json", "X-Content-Type-Options": "nosniff"},
        "cookies": [],
    }


@pytest.mark.guards("api-path-full-match")
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/images/1/variants/thumb", "1 thumb"),
        ("/images/a b/variants/ä-._~()'!*:@,;=+&$%<>[]{}|^", "a b ä-._~()'!*:@,;=+&$%<>[]{}|^"),
        ("/images/1/2/variants/thumb", None),
        ("/images/1/variants/", None),
        ("/images/1/variants/thumb/", None),
        ("/images/1/variants/thumb\n", None),
        ("/images/1/variants/a#b", None),
        ("/images/", None),
    ],
)
def test_an_argument_is_a_whole_part_of_the_path(router: Router, path: str, body: str | None) -> None:
    answer = asked(router, path)
    assert (answer["statusCode"], answer["body"]) == ((404, None) if body is None else (200, body))


def test_another_method_has_no_route(router: Router) -> None:
    assert asked(router, "/images", "POST")["statusCode"] == 404


def test_the_stage_is_no_part_of_the_path(router: Router) -> None:
    context = {"http": {"method": "GET", "path": "/prod/images"}, "stage": "prod", "requestId": "r"}
    assert router.resolve({"rawPath": "/prod/images", "requestContext": context})["statusCode"] == 200


def test_headers_have_any_case_and_what_the_gateway_leaves_out_is_empty(router: Router) -> None:
    asked(router, "/images", headers={"If-None-Match": "x"})
    assert router.current_event.headers == {"if-none-match": "x"}
    asked(router, "/images", headers=None, queryStringParameters=None)
    request = router.current_event
    assert (request.headers, request.query_string_parameters, request.body) == ({}, {}, None)
    assert (request.authorized, request.claims) == ({}, {})


def tells(name: str, order: list[str]) -> Callable[[Router, Next], Response]:
    def middleware(app: Router, serve: Next) -> Response:
        order.append(name)
        return serve(app)

    return middleware


def test_the_middlewares_of_all_come_before_those_of_a_route_and_also_without_a_route(router: Router) -> None:
    order: list[str] = []
    router.everywhere.append(tells("everywhere", order))
    router.add("GET", "/new", lambda: Response(200), [tells("first", order), tells("second", order)])
    asked(router, "/new")
    asked(router, "/nothing")
    assert order == ["everywhere", "first", "second", "everywhere"]


def test_an_error_is_answered_by_its_class_or_the_next_above_and_any_other_is_raised(router: Router) -> None:
    def fail(error: Exception) -> Callable[[], Response]:
        return raising(error)

    router.exception_handler(LookupError)(lambda error: Response(400))
    router.exception_handler(KeyError)(lambda error: Response(409))
    for path, error in (("/key", KeyError()), ("/index", IndexError()), ("/value", ValueError())):
        router.add("GET", path, fail(error))
    answer = asked(router, "/key")
    assert (answer["statusCode"], answer["headers"]) == (409, {"X-Content-Type-Options": "nosniff"})
    assert asked(router, "/index")["statusCode"] == 400
    with pytest.raises(ValueError):
        asked(router, "/value")
