"""Requests to real servers on loopback, whose certificates, speed and words are good and bad."""

from __future__ import annotations

import gzip
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Thread

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from darkroom.egress import EgressFailureKind, EgressPolicy, EgressResponse, RequestFailed, read_url, send
from darkroom.egress.connection import Deadline, tls_context
from darkroom.egress.request import exchange
from tests.unit.egress.certificates import Authority
from tests.unit.egress.conftest import Internet
from tests.unit.egress.servers import Behaviour, Server, answering, serving

HOST = "hooks.example"
URL = read_url(f"https://{HOST}/in?a=b")
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def ask(internet: Internet, *, seconds: float = 10, body: bytes = b"{}", max_bytes: int = 4096) -> EgressResponse:
    return send(
        "POST",
        URL,
        headers={"Content-Type": "application/json"},
        body=body,
        seconds=seconds,
        max_bytes=max_bytes,
        resolve=internet.resolve,
    )


@contextmanager
def secured(internet: Internet, authority: Authority, behaviour: Behaviour) -> Iterator[Server]:
    with serving(behaviour, authority.server(HOST)) as server:
        internet.port = server.port
        yield server


def failure(internet: Internet, *, seconds: float = 10, body: bytes = b"{}") -> RequestFailed:
    with pytest.raises(RequestFailed) as failed:
        ask(internet, seconds=seconds, body=body)
    said = str(failed.value)
    assert said.startswith(f"{failed.value.kind}: ") and "/in" not in said and "93.184" not in said
    assert failed.value.milliseconds >= 0
    return failed.value


def kind_of(internet: Internet, *, seconds: float = 10) -> EgressFailureKind:
    return failure(internet, seconds=seconds).kind


# ── What is sent, and what comes back ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.guards("egress-no-compression-asked")
def test_a_request_is_sent_whole_and_its_response_comes_back(internet: Internet, authority: Authority) -> None:
    raw_response = b"HTTP/1.1 201 Created\r\nRetry-After: 7\r\nVia: a\r\nvia: b\r\nContent-Length: 5\r\n\r\nhello"
    with secured(internet, authority, answering(raw_response)) as server:
        response = ask(internet, body=b'{"a": 1}')
    assert (response.status, response.body) == (201, b"hello")
    assert response.headers == {"retry-after": "7", "via": "a, b", "content-length": "5"}
    assert server.connections == 1
    head, _, body = server.received.partition(b"\r\n\r\n")
    assert body == b'{"a": 1}'
    assert head.split(b"\r\n") == [
        b"POST /in?a=b HTTP/1.1",
        b"Host: hooks.example",
        b"Accept-Encoding: identity",
        b"Connection: close",
        b"User-Agent: Darkroom",
        b"Content-Length: 8",
        b"Content-Type: application/json",
    ]


def test_a_get_has_no_body(internet: Internet, authority: Authority) -> None:
    with secured(internet, authority, answering(OK)) as server:
        response = send("GET", URL, headers={}, resolve=internet.resolve)
    assert response.body == b"ok"
    assert server.received.startswith(b"GET /in?a=b HTTP/1.1\r\n") and b"Content-Length" not in server.received


def test_the_environments_proxies_and_credentials_are_not_used(
    internet: Internet, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "http_proxy"):
        monkeypatch.setenv(name, "http://user:secret@127.0.0.1:9")
    with secured(internet, authority, answering(OK)) as server:
        assert ask(internet).status == 200
    assert internet.opened == [("93.184.215.14", 443)] and b"uthorization" not in server.received


def test_a_redirect_is_a_response_and_is_not_followed(internet: Internet, authority: Authority) -> None:
    redirect = b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/latest/meta-data/\r\nContent-Length: 0\r\n\r\n"
    with secured(internet, authority, answering(redirect)) as server:
        response = ask(internet)
    assert response.status == 302 and response.body == b""
    assert server.connections == 1 and internet.opened == [("93.184.215.14", 443)]
    assert internet.resolved == [HOST]


def test_a_compressed_body_is_not_decompressed(internet: Internet, authority: Authority) -> None:
    bomb = gzip.compress(bytes(100_000_000), compresslevel=1)
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(bomb)}\r\n\r\n"
    with secured(internet, authority, answering(head.encode() + bomb)):
        assert ask(internet).body == bomb[:4096]


@pytest.mark.guards("egress-interim-responses-skipped")
@pytest.mark.parametrize(
    ("raw_response", "status", "body"),
    [
        (b"HTTP/1.0 200 OK\r\n\r\nuntil the end", 200, b"until the end"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b""),
        (b"HTTP/1.1 200\r\n\r\n", 200, b""),
        (b"HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n", 410, b""),
        (b"HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n", 503, b"abcde"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, 200, b"ok"),
        (b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + OK, 200, b"ok"),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", 101, b""),
    ],
    ids=["1.0", "204", "no reason", "410", "chunks", "100", "102 and 103", "101"],
)
def test_responses_of_every_shape_are_read(
    internet: Internet, authority: Authority, raw_response: bytes, status: int, body: bytes
) -> None:
    with secured(internet, authority, answering(raw_response)):
        response = ask(internet)
    assert (response.status, response.body) == (status, body)


def test_the_local_stack_may_talk_plainly_to_this_machine() -> None:
    with serving(answering(OK)) as server:
        url = read_url(f"http://localhost:{server.port}/", EgressPolicy(allows_loopback=True))
        assert send("GET", url, headers={}).body == b"ok"
    assert f"Host: localhost:{server.port}\r\n".encode() in server.received


# ── TLS ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.guards("egress-certificate-host-match", "egress-certificate-verified", "egress-common-name-ignored")
@pytest.mark.parametrize(
    "flaw",
    ["another host's", "a longer name's", "an address's", "common name only", "expired", "self-signed", "stranger's"],
)
def test_a_certificate_that_is_not_the_hosts_is_not_accepted(
    internet: Internet, authority: Authority, flaw: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    if flaw == "stranger's":
        context = Authority(tmp_path_factory.mktemp("stranger")).server(HOST)
    else:
        context = {
            "another host's": lambda: authority.server("other.example"),
            "a longer name's": lambda: authority.server(f"{HOST}.evil.example", f"a.{HOST}", "*.hooks.example"),
            "an address's": lambda: authority.server("93.184.215.14"),
            "common name only": lambda: authority.server(common_name=HOST),
            "expired": lambda: authority.server(HOST, is_expired=True),
            "self-signed": lambda: authority.server(HOST, is_self_signed=True),
        }[flaw]()
    with serving(answering(OK), context) as server:
        internet.port = server.port
        assert kind_of(internet) is EgressFailureKind.TLS
    assert server.connections == 1 and server.received == b""


def test_a_certificate_may_have_a_wildcard(internet: Internet, authority: Authority) -> None:
    with serving(answering(OK), authority.server("*.example")) as server:
        internet.port = server.port
        # OpenSSL takes no wildcard for all of a top-level domain.
        assert kind_of(internet) is EgressFailureKind.TLS
    with serving(answering(OK), authority.server("*.shop.example")) as server:
        internet.port = server.port
        url = read_url("https://hooks.shop.example/")
        assert send("GET", url, headers={}, resolve=internet.resolve).status == 200


def test_the_server_is_told_the_hosts_name(internet: Internet, authority: Authority) -> None:
    server_names: list[str | None] = []
    context = authority.server(HOST)
    context.sni_callback = lambda _, name, __: server_names.append(name)
    with serving(answering(OK), context) as server:
        internet.port = server.port
        ask(internet)
    assert server_names == [HOST]


@pytest.mark.guards("egress-tls-minimum-version")
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_an_outdated_version_of_tls_is_not_accepted(internet: Internet, authority: Authority) -> None:
    context = authority.server(HOST)
    context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    with serving(answering(OK), context) as server:
        internet.port = server.port
        assert kind_of(internet) is EgressFailureKind.TLS
    assert server.received == b""


@pytest.mark.guards("egress-certificate-verified")
def test_certificates_are_checked_by_the_systems_authorities() -> None:
    context = tls_context()
    assert context is tls_context()
    assert context.verify_mode is ssl.CERT_REQUIRED and context.check_hostname
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2 and not context.hostname_checks_common_name


def test_a_server_without_tls_is_not_accepted(internet: Internet) -> None:
    def behave(connection: socket.socket, server: Server) -> None:
        server.say(connection, OK)
        connection.recv(1)

    with serving(behave) as server:
        internet.port = server.port
        assert kind_of(internet) is EgressFailureKind.TLS


# ── Time ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

# Each server takes two seconds and then completes what it began: without the deadline the request would succeed.
_SLOW: dict[str, tuple[bytes, bytes, bytes]] = {
    "status line": (b"", b"HTTP/1.1 200 " + b"O" * 100, b"\r\n\r\n"),
    "headers": (b"HTTP/1.1 200 OK\r\n", b"X: " + b"x" * 100, b"\r\n\r\n"),
    "interim responses": (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 4, OK),
    "body": (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n", b"x" * 100, b""),
    "body without an end": (b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 100, b""),
    "chunks": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n" * 20, b"0\r\n\r\n"),
    "trailers": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n", b"X: " + b"x" * 99, b"\r\n\r\n"
    ),
}  # fmt: skip


@pytest.mark.guards("egress-receiving-deadline", case="headers")
@pytest.mark.parametrize("stage", _SLOW)
def test_a_response_that_comes_byte_by_byte_is_not_waited_for(
    internet: Internet, authority: Authority, stage: str
) -> None:
    first, slowly, then = _SLOW[stage]

    def behave(connection: socket.socket, server: Server) -> None:
        server.hear(connection)
        server.say(connection, first)
        server.drip(connection, slowly, then=then)

    with secured(internet, authority, behave):
        assert kind_of(internet, seconds=0.3) is EgressFailureKind.TIMEOUT


@pytest.mark.parametrize("stage", ["handshake", "response"])
def test_tls_that_comes_byte_by_byte_is_not_waited_for(internet: Internet, authority: Authority, stage: str) -> None:
    raw_response = b"HTTP/1.1 200 OK\r\nContent-Length: 4000\r\n\r\n" + bytes(4000)
    with serving(answering(raw_response), authority.server(HOST)) as server:

        def relay(connection: socket.socket, relaying: Server) -> None:
            with socket.create_connection(("127.0.0.1", server.port)) as behind:

                def forward() -> None:
                    with suppress(OSError):
                        while data := connection.recv(65_536):
                            behind.sendall(data)

                Thread(target=forward, daemon=True).start()
                while not relaying.stopping.is_set() and (data := behind.recv(65_536)):
                    if stage == "handshake" or server.received:
                        relaying.drip(connection, data)
                    else:
                        relaying.say(connection, data)

        with serving(relay) as relaying:
            internet.port = relaying.port
            assert kind_of(internet, seconds=0.3 if stage == "handshake" else 1) is EgressFailureKind.TIMEOUT
    assert bool(server.received) == (stage == "response")


@pytest.mark.guards("egress-receiving-deadline")
def test_a_server_that_says_nothing_is_not_waited_for(internet: Internet, authority: Authority) -> None:
    def behave(connection: socket.socket, server: Server) -> None:
        server.hear(connection)
        server.stopping.wait(3)
        server.say(connection, OK)

    with secured(internet, authority, behave):
        assert kind_of(internet, seconds=0.3) is EgressFailureKind.TIMEOUT


@pytest.mark.guards("egress-sending-deadline")
def test_a_server_that_takes_nothing_is_not_waited_for(internet: Internet, authority: Authority) -> None:
    def behave(connection: socket.socket, server: Server) -> None:
        server.stopping.wait(3)
        server.hear(connection)
        server.say(connection, OK)

    with secured(internet, authority, behave):
        failed = failure(internet, seconds=1, body=bytes(20_000_000))
    assert failed.kind is EgressFailureKind.TIMEOUT and "sending" in str(failed)


@pytest.mark.guards("egress-handshake-deadline")
@pytest.mark.parametrize("says", ["nothing", "a record, byte by byte"])
def test_a_handshake_that_takes_too_long_is_not_waited_for(internet: Internet, says: str) -> None:
    def behave(connection: socket.socket, server: Server) -> None:
        if says == "nothing":
            server.stopping.wait(2)
        else:
            server.drip(connection, b"\x16\x03\x03\x40\x00\x02" + bytes(100))

    with serving(behave) as server:
        internet.port = server.port
        assert kind_of(internet, seconds=0.3) is EgressFailureKind.TIMEOUT


@pytest.mark.guards("egress-connection-deadline")
def test_an_address_that_does_not_answer_is_not_waited_for(internet: Internet) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        internet.port = listener.getsockname()[1]
        waiting = [socket.socket() for _ in range(4)]  # they fill the queue; what comes after is dropped
        for each in waiting:
            each.setblocking(False)
            with suppress(BlockingIOError):
                each.connect(listener.getsockname())
        assert kind_of(internet, seconds=0.3) is EgressFailureKind.TIMEOUT
        assert all(seconds <= 0.3 for seconds in internet.patience)
        for each in waiting:
            each.close()


def test_the_next_address_is_tried_if_one_refuses(internet: Internet, authority: Authority) -> None:
    internet.addresses = ["93.184.215.14", "93.184.215.15"]
    with socket.create_server(("127.0.0.1", 0)) as closed:
        internet.port = closed.getsockname()[1]
    with pytest.raises(RequestFailed) as failed:
        ask(internet)
    assert failed.value.kind is EgressFailureKind.CONNECT
    assert internet.opened == [("93.184.215.14", 443), ("93.184.215.15", 443)]


# ── Bytes ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def endlessly(first: bytes, again: bytes) -> Behaviour:
    """Sends `first` and then `again` and again, up to 10 GB, until nobody takes it any more."""

    def behave(connection: socket.socket, server: Server) -> None:
        server.hear(connection)
        server.say(connection, first)
        many = again * (65_536 // len(again))
        while server.sent_bytes < 10_000_000_000:
            server.say(connection, many)

    return behave


@pytest.mark.guards("egress-body-size-bound")
def test_of_an_endless_body_the_beginning_is_read(internet: Internet, authority: Authority) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n"
    with secured(internet, authority, endlessly(head, b"x")) as server:
        assert ask(internet).body == b"x" * 4096
    assert server.sent_bytes < 50_000_000  # what fits in the buffers of the system


@pytest.mark.guards("egress-received-bytes-bound", case="103s")
@pytest.mark.parametrize(
    ("first", "again"),
    [
        (b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"),
        (b"HTTP/1.1 200 OK\r\nX: ", b"x"),
        (b"HTTP/1.1 200 ", b"O"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
        (b"", b"HTTP/1.1 100 Continue\r\nX: " + b"x" * 1000 + b"\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1;" + b"x" * 1000 + b"\r\nx\r\n"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"X: y\r\n"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"-1\r\n"),
        (b"", b"\r\n"),
        (b"", b"\x00"),
    ],
    ids=[
        "headers", "a header", "a status line", "100s", "103s", "headers of 100s", "extensions of chunks", "trailers",
        "negative chunks", "line breaks", "zeros",
    ],
)  # fmt: skip
def test_what_surrounds_a_body_has_an_end(internet: Internet, authority: Authority, first: bytes, again: bytes) -> None:
    with secured(internet, authority, endlessly(first, again)) as server:
        assert kind_of(internet, seconds=3) is EgressFailureKind.PROTOCOL
    assert server.sent_bytes < 50_000_000


@pytest.mark.parametrize(
    "raw_response",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 99 Low\r\n\r\n",
        b"HTTP/1.1 1000 High\r\n\r\n",
        b"HTTP/2.0 200 OK\r\n\r\n",
        b"HTTP/1.1\r\n\r\n",
        b"\x15\x03\x01\x00\x02\x02\x16\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nabc\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
    ],
    ids=ascii,
)
def test_what_is_no_http_is_said_to_be_none(internet: Internet, authority: Authority, raw_response: bytes) -> None:
    def behave(connection: socket.socket, server: Server) -> None:
        server.hear(connection)
        server.say(connection, raw_response)
        connection.recv(1)  # until the other side closes

    with secured(internet, authority, behave):
        assert kind_of(internet) is EgressFailureKind.PROTOCOL


@pytest.mark.guards("egress-cut-body-refused", "egress-cut-head-refused")
@pytest.mark.parametrize(
    "raw_response",
    [
        b"",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\nX: y",
        b"HTTP/1.1 103 Early Hints\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n",
    ],
    ids=ascii,
)
def test_a_response_that_is_cut_off_does_not_count(
    internet: Internet, authority: Authority, raw_response: bytes
) -> None:
    with secured(internet, authority, answering(raw_response)):
        assert kind_of(internet) is EgressFailureKind.RESET


@pytest.mark.parametrize("stage", ["handshake", "response"])
def test_a_connection_that_is_reset_is_said_to_be(internet: Internet, authority: Authority, stage: str) -> None:
    def behave(connection: socket.socket, server: Server) -> None:
        if stage == "response":
            server.hear(connection)
            server.say(connection, b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc")
        else:
            connection.recv(1)
        # Closing with this option resets the connection instead of ending it.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")

    with serving(behave, authority.server(HOST) if stage == "response" else None) as server:
        internet.port = server.port
        assert kind_of(internet) is EgressFailureKind.RESET


@settings(deadline=None)
@given(
    st.sampled_from([b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"]),
    st.binary(max_size=200)
    | st.lists(
        st.sampled_from(
            [b"HTTP/1.1 ", b"200 ", b"103 ", b"\r\n", b"\n", b":", b" ", b"5", b"-1", b"0", b"ff", b"Content-Length: ",
             b"Transfer-Encoding: chunked", b"Content-Type: multipart/mixed; boundary=x", b"--x", b"\xff", b"\x00"]
        ),
        max_size=30,
    ).map(b"".join),
)  # fmt: skip
def test_whatever_comes_is_a_response_or_a_failure(first: bytes, rest: bytes) -> None:
    here, peer = socket.socketpair()
    with here, peer:
        peer.sendall(first + rest)
        peer.shutdown(socket.SHUT_WR)
        try:
            response = exchange(here, b"GET / HTTP/1.1\r\n\r\n", method="GET", deadline=Deadline(10), max_bytes=16)
        except RequestFailed as failed:
            assert failed.kind in (EgressFailureKind.PROTOCOL, EgressFailureKind.RESET)
        else:
            assert len(response.body) <= 16 and 100 <= response.status <= 999
