"""Webhooks posted to real servers on loopback, and what is told of their answers."""

from __future__ import annotations

import socket
from email.utils import formatdate

import pytest

from darkroom.domain.webhooks.delivery import Answer
from darkroom.egress import EgressPolicy
from darkroom.egress.receiver import HttpReceiver
from tests.support.faults import raising
from tests.unit.egress.certificates import Authority
from tests.unit.egress.conftest import Internet
from tests.unit.egress.servers import Behaviour, Server, answering, serving

NOW = 1_795_251_600_000
LOCAL = EgressPolicy(allows_loopback=True)


def posted(behaviour: Behaviour, *, body: bytes = b"{}") -> Answer:
    with serving(behaviour) as server:
        receiver = HttpReceiver(LOCAL, clock=lambda: NOW)
        return receiver.post(f"http://127.0.0.1:{server.port}/in", headers={"webhook-id": "1"}, body=body)


def test_a_request_is_posted_with_its_headers_and_its_response_told() -> None:
    with serving(answering(b"HTTP/1.1 202 Accepted\r\nContent-Length: 5\r\n\r\nthank")) as server:
        receiver = HttpReceiver(LOCAL, clock=lambda: NOW)
        answer = receiver.post(f"http://127.0.0.1:{server.port}/in", headers={"webhook-id": "1"}, body=b'{"a":1}')
    assert (answer.status, answer.body, answer.is_success, answer.error) == (202, "thank", True, None)
    head, _, body = server.received.partition(b"\r\n\r\n")
    assert body == b'{"a":1}'
    assert b"webhook-id: 1" in head.split(b"\r\n")


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("120", 120),
        ("0", 0),
        (formatdate(NOW / 1000 + 90, usegmt=True), 90),
        (formatdate(NOW / 1000 - 90, usegmt=True), 0),
        ("soon", None),
        ("-5", None),
        ("9" * 40, 999_999_999),
        ("Mon, 99 Foo 2026 99:99:99 GMT", None),
    ],
)
def test_what_a_receiver_asks_for_is_understood_or_ignored(written: str, seconds: int | None) -> None:
    response = f"HTTP/1.1 503 Busy\r\nRetry-After: {written}\r\nContent-Length: 0\r\n\r\n".encode()
    assert posted(answering(response)).retry_after_seconds == seconds


def test_whatever_bytes_come_are_a_text_that_a_row_can_hold() -> None:
    answer = posted(answering(b"HTTP/1.1 500 No\r\nContent-Length: 6\r\n\r\n\xff\0\xc3\xa9\xe2\x82"))
    assert answer.body == "��é�"


def hang_up(connection: socket.socket, server: Server) -> None:
    server.hear(connection)


def test_a_connection_that_ends_is_an_error_and_no_status() -> None:
    answer = posted(hang_up)
    assert answer.status is None
    assert (answer.error or "").startswith("reset: ")
    assert not answer.was_too_slow


def test_nothing_is_sent_to_an_address_that_is_not_allowed() -> None:
    with serving(answering(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")) as server:
        answer = HttpReceiver(clock=lambda: NOW).post(f"http://127.0.0.1:{server.port}/", headers={}, body=b"{}")
    assert server.connections == 0
    assert (answer.error or "").startswith("invalid_url: ")


def refused(_: str) -> list[str]:
    raise OSError("no such name")


@pytest.mark.guards("webhook-connection-failure-marked")
@pytest.mark.parametrize("kind", ["dns", "connect", "tls", "timeout"])
def test_a_host_to_which_no_connection_comes_about_is_told(
    kind: str, internet: Internet, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve = refused if kind == "dns" else internet.resolve
    if kind == "timeout":
        monkeypatch.setattr("darkroom.egress.connection.open_socket", raising(TimeoutError))
    with serving(answering(b""), authority.server("other.example")) as server:
        internet.port = 1 if kind == "connect" else server.port
        answer = HttpReceiver(clock=lambda: NOW, resolve=resolve).post("https://hooks.example/", headers={}, body=b"{}")
    assert (answer.error or "").startswith(f"{kind}: ")
    assert answer.was_unreached


@pytest.mark.parametrize("behaviour", [hang_up, answering(b"HTTP/1.1 500 No\r\n\r\n"), answering(b"SSH-2.0\r\n\r\n")])
def test_a_host_that_accepts_the_request_is_reached_whatever_it_does_then(behaviour: Behaviour) -> None:
    assert not posted(behaviour).was_unreached
