"""The API client against transports that answer what each test needs; no pause takes time."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from darkroom_client.client import (
    NOT_RUNNING,
    AddressExpired,
    Api,
    Refused,
    RequestRetries,
    Unauthorized,
    Unreachable,
    is_loopback,
    pause_before_retry,
    retry_after_seconds,
)
from tests.unit.cli.fake_api import FakeApi, image_id_of

IMAGE_ID = image_id_of("one")
DOCUMENT = FakeApi.document(FakeApi.__new__(FakeApi), IMAGE_ID, "pending")

type Handler = Callable[[httpx.Request], httpx.Response]


@pytest.fixture(autouse=True)
def no_authorities(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the certificate authorities: reading them takes longer than a test, and no connection needs one."""
    monkeypatch.setattr(httpx, "create_ssl_context", lambda: ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))


def connect(
    handler: Handler, *, pauses: list[float] | None = None, url: str = "https://api.test", **options: Any
) -> Api:
    return Api(
        url,
        transport=httpx.MockTransport(handler),
        pause=(pauses if pauses is not None else []).append,
        jitter=lambda: 0.0,
        **options,
    )


def answers(*responses: httpx.Response | Exception) -> tuple[Handler, list[httpx.Request]]:
    """A handler that gives one answer after another, and the list in which it records the requests."""
    remaining: Iterator[httpx.Response | Exception] = iter(responses)
    requests: list[httpx.Request] = []

    def handle(request: httpx.Request) -> httpx.Response:
        request.read()
        requests.append(request)
        answer = next(remaining)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return handle, requests


def submit(api: Api) -> None:
    api.submit(b"bytes", content_type="image/jpeg", idempotency_key="key")


@pytest.mark.parametrize(
    ("attempt", "retry_after", "jitter", "pause_seconds"),
    [
        *((1, None, 0.0, 0.125), (1, None, 0.999, 0.25), (3, None, 0.0, 0.5), (50, None, 0.999, 16.0)),
        *((1, 0.0, 0.0, 0.125), (1, 5.0, 0.0, 5.0), (1, 3600.0, 0.0, 60.0)),
    ],
)
def test_pauses_double_up_to_a_limit_with_jitter_over_a_floor_or_what_the_server_says(
    attempt: int, retry_after: float | None, jitter: float, pause_seconds: float
) -> None:
    pause = pause_before_retry(RequestRetries(), attempt=attempt, retry_after_seconds=retry_after, jitter=jitter)
    assert pause == pytest.approx(pause_seconds, rel=0.01)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (None, None),
        ("7", 7.0),
        ("Sat, 21 Nov 2026 12:00:30 GMT", 30.0),
        ("Sat, 21 Nov 2026 11:00:00 GMT", 0.0),
        ("soon", None),
        ("-3", None),
    ],
)
def test_retry_after_is_a_number_or_a_date(header: str | None, expected: float | None) -> None:
    assert retry_after_seconds(header, now=datetime(2026, 11, 21, 12, tzinfo=UTC)) == expected


@pytest.mark.parametrize(
    "trouble",
    [
        httpx.Response(429, headers={"Retry-After": "3"}),
        httpx.Response(503, headers={"Retry-After": "3"}),
        httpx.Response(500),
        httpx.Response(504),
        httpx.ConnectTimeout("slow"),
        httpx.ReadTimeout("slow"),
        httpx.ReadError("reset"),
        httpx.RemoteProtocolError("Server disconnected without sending a response."),
    ],
    ids=str,
)
def test_every_attempt_for_one_submission_carries_the_same_key(trouble: httpx.Response | Exception) -> None:
    handle, requests = answers(trouble, httpx.Response(202, json=DOCUMENT))
    pauses: list[float] = []
    with connect(handle, pauses=pauses) as api:
        submit(api)
    assert [request.headers["idempotency-key"] for request in requests] == ["key", "key"]
    assert [request.content for request in requests] == [b"bytes", b"bytes"]
    assert pauses == ([3.0] if isinstance(trouble, httpx.Response) and "Retry-After" in trouble.headers else [0.125])


def test_a_problem_is_told_by_its_detail_and_never_sent_again() -> None:
    problem = {"title": "Too large", "detail": "The image has 5 MB.", "code": "too_large", "status": 413}
    handle, requests = answers(httpx.Response(413, json=problem))
    with connect(handle) as api, pytest.raises(Refused) as refusal:
        submit(api)
    assert (str(refusal.value), refusal.value.code) == ("The image has 5 MB.", "too_large")
    assert len(requests) == 1


@pytest.mark.parametrize(
    ("response", "kind", "message"),
    [
        (httpx.Response(403, json={"message": "Forbidden"}), Unauthorized, r"Forbidden\. .*--iam"),
        (httpx.Response(401, json={"message": "Unauthorized"}), Unauthorized, "--api-key"),
        (httpx.Response(404, json={"message": "Not Found"}), Refused, "Is this the address of a Darkroom API"),
        (httpx.Response(413, json={"message": "Request Too Long"}), Refused, r"4\.6 MB"),
        (httpx.Response(301, headers={"Location": "https://b.test"}), Refused, "redirects to https://b.test"),
        (httpx.Response(400, text="<html>"), Refused, "The server answered 400 Bad Request"),
    ],
)
def test_what_stands_before_the_api_is_explained_too(
    response: httpx.Response, kind: type[Refused], message: str
) -> None:
    handle, _ = answers(response)
    with connect(handle) as api, pytest.raises(kind, match=message):
        submit(api)


def test_an_answer_that_is_no_status_document_says_that_the_address_may_be_wrong() -> None:
    handle, _ = answers(httpx.Response(200, json={"hello": "world"}))
    with connect(handle) as api, pytest.raises(Refused, match="Is this the address of a Darkroom API"):
        api.status(IMAGE_ID)


def refused_connection() -> httpx.ConnectError:
    error = httpx.ConnectError("[Errno 111] Connection refused")
    error.__cause__ = ConnectionRefusedError(111, "Connection refused")
    return error


def test_a_local_stack_at_whose_address_nobody_listens_does_not_run() -> None:
    handle, requests = answers(refused_connection())
    with connect(handle, url="http://127.0.0.1:1", is_local_stack=True) as api, pytest.raises(Unreachable) as error:
        submit(api)
    assert str(error.value) == NOT_RUNNING
    assert len(requests) == 1


@pytest.mark.guards("cli-not-running-local-only")
def test_another_address_of_this_machine_at_which_nobody_listens_is_named_and_is_no_local_stack() -> None:
    handle, requests = answers(refused_connection())
    with connect(handle, url="http://127.0.0.1:1") as api, pytest.raises(Unreachable) as error:
        submit(api)
    assert "Nothing listens at http://127.0.0.1:1." in str(error.value)
    assert "--url" in str(error.value)
    assert "local stack is not running" not in str(error.value)
    assert len(requests) == 1


def test_a_refused_connection_elsewhere_is_worth_another_attempt() -> None:
    handle, requests = answers(refused_connection(), httpx.Response(202, json=DOCUMENT))
    with connect(handle) as api:
        submit(api)
    assert len(requests) == 2


@pytest.mark.parametrize(
    "cause", [socket.gaierror(socket.EAI_NONAME, "Name or service not known"), ssl.SSLCertVerificationError("expired")]
)
def test_what_no_retry_can_fix_is_reported_at_once(cause: Exception) -> None:
    error = httpx.ConnectError(str(cause))
    error.__cause__ = cause
    handle, requests = answers(error)
    with connect(handle) as api, pytest.raises(Unreachable, match=r"Cannot reach https://api\.test"):
        submit(api)
    assert len(requests) == 1


def test_the_key_goes_to_the_api_as_a_bearer_token_and_never_to_the_store() -> None:
    handle, requests = answers(httpx.Response(200, json=DOCUMENT), httpx.Response(200, content=b"file"))
    with connect(handle, api_key="secret") as api:
        api.status(IMAGE_ID)
        assert api.fetch("https://store.test/x?signature=1", size_bytes=4) == b"file"
    assert requests[0].headers["authorization"] == "Bearer secret"
    assert "authorization" not in requests[1].headers


def test_an_unchanged_image_is_asked_for_by_its_entity_tag_and_keeps_its_document() -> None:
    handle, requests = answers(
        httpx.Response(200, json=DOCUMENT | {"of a later version": 1}, headers={"ETag": 'W/"1"', "Retry-After": "2"}),
        httpx.Response(304, headers={"Retry-After": "5"}),
    )
    with connect(handle) as api:
        first = api.status(IMAGE_ID)
        second = api.status(IMAGE_ID, seen=first)
    assert "if-none-match" not in requests[0].headers
    assert requests[1].headers["if-none-match"] == 'W/"1"'
    assert (first.retry_after_seconds, second.retry_after_seconds) == (2.0, 5.0)
    assert (second.document, second.entity_tag, second.image_id) == (first.document, 'W/"1"', IMAGE_ID)


def test_sent_bytes_are_told_as_they_go_and_start_anew_with_each_attempt() -> None:
    body = bytes(150_000)
    handle, requests = answers(httpx.Response(503), httpx.Response(202, json=DOCUMENT))
    sent: list[int] = []
    with connect(handle) as api:
        api.submit(body, content_type="image/jpeg", idempotency_key="key", on_sent=sent.append)
    assert sent == [0, 65_536, 131_072, 150_000] * 2
    assert all(request.content == body for request in requests)
    assert all("transfer-encoding" not in request.headers for request in requests)


def test_an_expired_address_is_told_apart() -> None:
    handle, _ = answers(httpx.Response(403, text="<Error><Code>AccessDenied</Code></Error>"))
    with connect(handle) as api, pytest.raises(AddressExpired):
        api.fetch("https://store.test/x", size_bytes=1)


def test_of_a_file_that_is_longer_than_promised_not_everything_is_read() -> None:
    def endless() -> Iterator[bytes]:
        while True:
            yield bytes(65_536)

    handle, _ = answers(httpx.Response(200, content=endless()))
    with connect(handle) as api:
        assert len(api.fetch("https://store.test/x", size_bytes=10)) < 1_000_000


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:80", True),
        ("http://[::1]", True),
        ("http://localhost:1", True),
        ("http://127.0.0.1.evil.test", False),
        ("https://api.test", False),
        ("http://10.0.0.1", False),
    ],
)
def test_loopback_is_this_machine_and_nothing_else(url: str, expected: bool) -> None:
    assert is_loopback(url) is expected


def test_a_proxy_of_the_environment_is_never_used_for_this_machine(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.setenv("no_proxy", "")
    image_id = api.put("done")
    with Api(api.url) as client:
        assert client.status(image_id).document["status"] == "done"


@pytest.mark.guards("cli-image-answer-checked", "cli-image-id-matches")
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("id", "$(touch owned)"),
        ("id", f"{IMAGE_ID}\n"),
        ("id", image_id_of("another")),
        ("id", None),
        ("status", "done; touch owned"),
        ("status", "\x1b[2J"),
        ("status", {}),
        ("created_at", None),
        ("created_at", "yesterday"),
        ("process_at", "2026-01-01T00:00:00Z; touch owned"),
        ("expires_at", "\u06f2026-01-01T00:00:00Z"),
        ("completed_at", 1_767_225_600),
    ],
)
def test_a_server_may_not_say_just_anything_of_an_image(field: str, value: Any) -> None:
    handler, _ = answers(httpx.Response(200, json=DOCUMENT | {field: value}))
    with pytest.raises(Refused, match=f"an invalid {field}"):
        connect(handler).status(IMAGE_ID)


def test_an_upload_is_told_its_id_by_the_server() -> None:
    handler, _ = answers(httpx.Response(202, json=DOCUMENT | {"id": image_id_of("another")}))
    assert connect(handler).submit(b"b", content_type="image/jpeg", idempotency_key="k").image_id != IMAGE_ID
