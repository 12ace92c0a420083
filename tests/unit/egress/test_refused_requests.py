"""No request leaves for anything but a public address: no socket is connected, whatever the URL or the name server
says."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from threading import Event

import pytest

from darkroom.domain.kernel.errors import Retryable
from darkroom.egress import EgressFailureKind, RequestFailed, read_url, send
from darkroom.egress.connection import system_addresses
from tests.support.faults import raising
from tests.unit.egress.certificates import Authority
from tests.unit.egress.conftest import Internet
from tests.unit.egress.refused import NOT_PUBLIC
from tests.unit.egress.servers import answering, serving

URL = read_url("https://hooks.example/")
PUBLIC = "93.184.215.14"


@pytest.mark.guards(
    "egress-addresses-checked",
    "egress-every-address-checked",
    "egress-global-unicast-ipv6",
    "egress-reserved-ipv4",
    "egress-reserved-ipv6",
)
@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_nothing_is_connected_to_for_a_name_with_an_address_that_is_not_public(
    address: str, connected: list[object]
) -> None:
    for answer in ([address], [PUBLIC, address], [address, PUBLIC]):
        with pytest.raises(RequestFailed) as failed:
            send("POST", URL, headers={}, body=b"{}", resolve=lambda _, answer=answer: answer)  # type: ignore[misc]
        assert failed.value.kind is EgressFailureKind.REFUSED_ADDRESS
        assert address not in str(failed.value)
    assert connected == []


def test_a_public_address_is_connected_to(connected: list[object]) -> None:
    with pytest.raises(RequestFailed) as failed:
        send("GET", URL, headers={}, resolve=lambda _: ["2606:2800:21f::1", PUBLIC])
    assert failed.value.kind is EgressFailureKind.CONNECT
    assert connected == [(PUBLIC, 443), ("2606:2800:21f::1", 443)]


@pytest.mark.guards("egress-tried-addresses-bound")
def test_of_many_addresses_a_few_are_tried(connected: list[object]) -> None:
    with pytest.raises(RequestFailed):
        send("GET", URL, headers={}, resolve=lambda _: [f"93.184.215.{last}" for last in range(100)])
    assert connected == [("93.184.215.0", 443), ("93.184.215.1", 443), ("93.184.215.2", 443)]


@pytest.mark.guards("egress-single-resolution")
def test_a_name_that_is_private_the_second_time_is_resolved_once(internet: Internet, authority: Authority) -> None:
    answers = iter([[PUBLIC], ["127.0.0.1"], ["169.254.169.254"]])
    asked = []

    def rebinding(host: str) -> Sequence[str]:
        asked.append(host)
        return next(answers)

    with serving(answering(b"HTTP/1.1 204 No Content\r\n\r\n"), authority.server("hooks.example")) as server:
        internet.port = server.port
        assert send("GET", URL, headers={}, resolve=rebinding).status == 204
    assert asked == ["hooks.example"]
    assert internet.opened == [(PUBLIC, 443)]


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), EgressFailureKind.DNS),
        (socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"), EgressFailureKind.DNS),
        (OSError("the network is down"), EgressFailureKind.DNS),
        ([], EgressFailureKind.DNS),
    ],
    ids=["unknown name", "no name server", "no network", "no address"],
)
def test_a_name_without_an_address_can_be_tried_again(
    answer: OSError | list[str], kind: EgressFailureKind, connected: list[object]
) -> None:
    def resolve(_: str) -> Sequence[str]:
        if isinstance(answer, OSError):
            raise answer
        return answer

    with pytest.raises(RequestFailed) as failed:
        send("GET", URL, headers={}, resolve=resolve)
    assert failed.value.kind is kind and isinstance(failed.value, Retryable)
    assert connected == []


@pytest.mark.guards("egress-resolution-deadline")
def test_a_name_server_that_does_not_answer_is_not_waited_for(connected: list[object]) -> None:
    answers = Event()

    def resolve(_: str) -> Sequence[str]:
        answers.wait(3)
        return [PUBLIC]

    with pytest.raises(RequestFailed) as failed:
        send("GET", URL, headers={}, resolve=resolve, seconds=0.3)
    answers.set()
    assert failed.value.kind is EgressFailureKind.TIMEOUT and "resolved" in str(failed.value)
    assert connected == []


def test_a_resolvers_bug_is_not_the_hosts_fault() -> None:
    with pytest.raises(KeyError):
        send("GET", URL, headers={}, resolve=raising(KeyError("bug")))


@pytest.mark.guards("egress-absolute-host-name")
def test_the_systems_resolver_gets_a_name_that_no_search_list_completes(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def getaddrinfo(host: bytes, port: None, **_: object) -> list[object]:
        asked.append((host, port))
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (PUBLIC, 0)),
            (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("2606:2800:21f::1", 0, 0, 0)),
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (PUBLIC, 0)),
        ]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    assert system_addresses("hooks.example") == [PUBLIC, "2606:2800:21f::1"]
    assert asked == [(b"hooks.example.", None)]


@pytest.mark.guards("egress-own-headers-reserved")
@pytest.mark.parametrize(
    "name", ["Host", "content-length", "Transfer-Encoding", "CONNECTION", "accept-encoding", "User-Agent"]
)
def test_nobody_sets_the_headers_that_are_the_requests_own(name: str, connected: list[object]) -> None:
    with pytest.raises(ValueError, match="the request's own"):
        send("POST", URL, headers={name: "x"}, body=b"", resolve=lambda _: [PUBLIC])
    assert connected == []


@pytest.mark.parametrize(("name", "value"), [("X-A", "a\r\nHost: b"), ("X-A", "a\nb"), ("X:A", "a")])
def test_a_header_that_would_begin_another_is_refused(name: str, value: str, connected: list[object]) -> None:
    with pytest.raises(ValueError, match=r"(?i)invalid header"):
        send("POST", URL, headers={name: value}, body=b"", resolve=lambda _: [PUBLIC])
    assert connected == []
