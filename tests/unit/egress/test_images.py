"""Images fetched from real servers on loopback, good ones and hostile ones, and what is told of them."""

from __future__ import annotations

import gzip
import os
import socket
import ssl
import tracemalloc
from collections.abc import Callable, Sequence
from itertools import cycle, product

import pytest

from darkroom.domain.images.image import Provenance
from darkroom.domain.images.media_types import SNIFF_BYTES, input_format_of
from darkroom.domain.imports.fetch import MAX_SOURCE_URL_LENGTH, Fetched, Unfetched
from darkroom.egress import EgressPolicy
from darkroom.egress.images import MAX_REDIRECTS, HttpImages
from tests.support.faults import raising
from tests.unit.egress.certificates import Authority
from tests.unit.egress.conftest import Internet
from tests.unit.egress.refused import NOT_PUBLIC, REFUSED
from tests.unit.egress.servers import Behaviour, Server, answering, serving

NOW = 1_795_251_600_000
LOCAL = EgressPolicy(allows_loopback=True)
PUBLIC = "93.184.215.14"
MAX_BYTES = 1000
UNUSABLE = [(url, reason) for url, reason in REFUSED if reason != "length" or len(url) > MAX_SOURCE_URL_LENGTH]
PHOTO = b"\xff\xd8\xff" + bytes(500)


def ok(body: bytes = PHOTO, *headers: str) -> bytes:
    head = "\r\n".join(["HTTP/1.1 200 OK", f"Content-Length: {len(body)}", *headers])
    return f"{head}\r\n\r\n".encode() + body


def status(code: int, *headers: str) -> bytes:
    return "\r\n".join([f"HTTP/1.1 {code} Told", "Content-Length: 0", *headers, "", ""]).encode()


def anything(_: bytes) -> bool:
    return True


def fetched_by(images: HttpImages, url: str = "https://photos.example/") -> Fetched | Unfetched:
    return images.fetch(url, max_bytes=MAX_BYTES, is_picture=anything)


def fetched_from(
    behaviour: Behaviour, *, seconds: float = 5, is_picture: Callable[[bytes], bool] = anything
) -> tuple[Fetched | Unfetched, Server]:
    with serving(behaviour) as server:
        images = HttpImages(LOCAL, accepted=["image/webp", "image/jpeg"], clock=lambda: NOW, seconds=seconds)
        url = f"http://127.0.0.1:{server.port}/a/b.jpg?c=d"
        return images.fetch(url, max_bytes=MAX_BYTES, is_picture=is_picture), server


def unfetched(answer: Fetched | Unfetched) -> Unfetched:
    assert isinstance(answer, Unfetched), answer
    assert "127.0.0.1" not in answer.message and "c=d" not in answer.message
    return answer


def code_of(answer: Fetched | Unfetched) -> str:
    return unfetched(answer).code


def outcome_of(answer: Fetched | Unfetched) -> tuple[str, bool]:
    """Why it was not fetched, and whether that may pass."""
    return code_of(answer), unfetched(answer).may_pass


def in_turn(*answers: bytes) -> Behaviour:
    """Answers each request with the next of these, the last for ever."""
    left = list(answers)

    def behave(connected: socket.socket, server: Server) -> None:
        server.received = b""
        server.hear(connected)
        server.say(connected, left.pop(0) if len(left) > 1 else left[0])

    return behave


def test_what_a_server_sends_is_fetched_with_what_it_says_of_it() -> None:
    answer, server = fetched_from(
        answering(ok(PHOTO, 'ETag: "a1"', "Last-Modified: Sat, 21 Nov 2026 09:00:00 GMT", "Set-Cookie: a=b"))
    )
    assert answer == Fetched(
        body=PHOTO, provenance=Provenance(etag='"a1"', last_modified="Sat, 21 Nov 2026 09:00:00 GMT")
    )
    lines = server.received.decode().split("\r\n")
    assert lines[0] == "GET /a/b.jpg?c=d HTTP/1.1"
    assert "Accept: image/jpeg, image/webp, */*;q=0.1" in lines
    assert "Accept-Encoding: identity" in lines
    assert any(line.startswith("User-Agent: Darkroom (") for line in lines)
    assert not any(line.lower().startswith(("cookie", "authorization", "referer")) for line in lines)


def test_what_is_too_long_or_no_text_is_not_kept_of_what_a_server_says() -> None:
    answer, _ = fetched_from(answering(ok(PHOTO, f"ETag: {'x' * 257}", "Last-Modified: \x01")))
    assert answer == Fetched(body=PHOTO, provenance=Provenance())


@pytest.mark.parametrize(
    ("code", "headers", "expected", "may_pass", "seconds"),
    [
        (401, (), "fetch_refused", False, 0),
        (403, (), "fetch_refused", False, 0),
        (404, (), "fetch_not_found", False, 0),
        (410, (), "fetch_not_found", False, 0),
        (400, (), "fetch_failed", False, 0),
        (204, (), "fetch_failed", False, 0),
        (206, (), "fetch_failed", False, 0),
        (304, (), "fetch_failed", False, 0),
        (302, (), "fetch_failed", False, 0),
        (429, ("Retry-After: 120",), "fetch_failed", True, 120),
        (429, (), "fetch_failed", True, 0),
        (500, ("Retry-After: soon",), "fetch_failed", True, 0),
        (503, ("Retry-After: 7200",), "fetch_failed", True, 7200),
    ],
)
def test_what_a_status_means(code: int, headers: tuple[str, ...], expected: str, may_pass: bool, seconds: int) -> None:
    answer, _ = fetched_from(answering(status(code, *headers)))
    assert outcome_of(answer) == (expected, may_pass)
    assert unfetched(answer).retry_after_seconds == seconds


@pytest.mark.parametrize("location", ["/next.jpg", "next.jpg", "?e=f", "#top", "//127.0.0.1:{port}/x", "../x"])
def test_redirects_are_followed_three_times(location: str) -> None:
    hops: list[bytes] = []

    def behave(connected: socket.socket, server: Server) -> None:
        server.received = b""
        server.hear(connected)
        hops.append(server.received.split(b"\r\n")[0])
        target = location.format(port=server.port)
        server.say(connected, ok() if len(hops) > MAX_REDIRECTS else status(302, f"Location: {target}"))

    answer, server = fetched_from(behave)
    assert isinstance(answer, Fetched)
    assert server.connections == 1 + MAX_REDIRECTS
    assert all(b"#" not in hop for hop in hops)


@pytest.mark.guards("egress-redirect-target-encoded")
@pytest.mark.parametrize(
    ("location", "asked"),
    [
        (b"/a b.jpg", "/a%20b.jpg"),
        ("/caf\u00e9 \u00e0.jpg".encode(), "/caf%C3%A9%20%C3%A0.jpg"),
        ("/\u00e0".encode(), "/%C3%A0"),
        (b"/caf\xe9\x85\xa0", "/caf%E9%85%A0"),
        (b"/a|b^`{c}?d|e='{f}\"<g>", "/a%7Cb%5E%60%7Bc%7D?d%7Ce='%7Bf%7D%22%3Cg%3E"),
        (b"/100%?a=%&b=%zz&c=%2f", "/100%25?a=%25&b=%25zz&c=%2f"),
        (b"next of it", "/a/next%20of%20it"),
        (b"a b:c//d", "/a/a%20b:c//d"),
        (b"h t t p://photos.example/", "/a/h%20t%20t%20p://photos.example/"),
        (b"; a", "/a/;%20a"),
        (b"../../x/./b /..", "/x/"),
        (b"?q=a b", "/a/b.jpg?q=a%20b"),
        (b"#top", "/a/b.jpg?c=d"),
        (b".", "/a/"),
        (b"/x#a b", "/x"),
        (b" \t/x\t ", "/x"),
        (b"/a, b.jpg", "/a,%20b.jpg"),
        (b"/x\r\nLocation: /x", "/x"),
        (b"//127.0.0.1:{port}/a b", "/a%20b"),
        (b"http://127.0.0.1:{port}/\xe2\x82\xac?\xf0\x9f\x93\xb7", "/%E2%82%AC?%F0%9F%93%B7"),
    ],
)
def test_what_a_redirect_may_not_have_is_encoded_as_browsers_do(location: bytes, asked: str) -> None:
    def behave(connected: socket.socket, server: Server) -> None:
        target = location.replace(b"{port}", str(server.port).encode())
        redirect = b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: " + target + b"\r\n\r\n"
        server.received = b""
        server.hear(connected)
        server.say(connected, redirect if server.connections == 1 else ok())

    answer, server = fetched_from(behave)
    assert isinstance(answer, Fetched)
    assert server.received.split(b"\r\n")[0].decode() == f"GET {asked} HTTP/1.1"


@pytest.mark.guards("egress-fetched-source-url-length")
def test_a_source_or_redirect_may_have_a_url_of_8192_characters_and_no_more() -> None:
    def behave(connected: socket.socket, server: Server) -> None:
        server.received = b""
        server.hear(connected)
        is_first = server.received.startswith(b"GET / ")
        here = f"http://127.0.0.1:{server.port}/"
        server.say(connected, status(302, f"Location: {here.ljust(length, 'a')}") if is_first else ok())

    for length, code in ((8192, ""), (8193, "fetch_refused")):
        with serving(behave) as server:
            images = HttpImages(LOCAL, clock=lambda: NOW)
            url = f"http://127.0.0.1:{server.port}/"
            for answer in [fetched_by(images, each) for each in (url, url.ljust(length, "a"))]:
                assert isinstance(answer, Fetched) if not code else code_of(answer) == code


@pytest.mark.guards("egress-redirects-bound")
def test_a_redirect_loop_ends_and_is_not_tried_again() -> None:
    answer, server = fetched_from(in_turn(status(301, "Location: /a/b.jpg?c=d")))
    assert (*outcome_of(answer), server.connections) == ("fetch_failed", False, 1 + MAX_REDIRECTS)


@pytest.mark.guards("egress-redirect-characters", "egress-redirect-host-verbatim", "egress-redirect-single-location")
@pytest.mark.parametrize(
    "location",
    [
        "http://169.254.169.254/latest/meta-data/",
        "https://photos.example\\@127.0.0.1/",
        "https://[",
        "http://127.0.0.1 /",
        "http://127.0.0.1|/",
        "https://b\u00fccher.example/",
        "https://photos\u3002example/",
        "ht\tp://photos.example/",
        "/\t/photos.example/",
        "/a\\b",
        "/\\photos.example/",
        "\\\\photos.example/",
        "/a\x00",
        "/a\x7f",
        "/a\r\n b",
        "/a\r\nLocation: /b",
    ],
)
def test_a_redirect_leads_nowhere_that_the_url_itself_could_not(location: str) -> None:
    answer, server = fetched_from(answering(status(302, f"Location: {location}")))
    assert outcome_of(answer) == ("fetch_refused", False)
    assert unfetched(answer).message.startswith("The server redirects to a URL that is not fetched")
    assert server.connections == 1


def test_no_fetch_and_no_redirect_leaves_for_an_address_that_is_not_public(
    internet: Internet, authority: Authority
) -> None:
    with serving(
        in_turn(status(302, "Location: https://inside.example/")), authority.server("photos.example")
    ) as server:
        internet.port = server.port
        for address, beside in product(NOT_PUBLIC[::4], ([], [PUBLIC])):
            hosts: dict[str, Sequence[str]] = {"photos.example": [PUBLIC], "inside.example": [*beside, address]}
            images = HttpImages(clock=lambda: NOW, resolve=hosts.__getitem__)
            for url in ("https://inside.example/", "https://photos.example/"):
                assert code_of(fetched_by(images, url)) == "fetch_refused"
    assert {opened for opened, _ in internet.opened} == {PUBLIC}


def test_a_name_server_that_rebinds_leads_no_redirect_inside(internet: Internet, authority: Authority) -> None:
    answers = cycle([[PUBLIC], ["127.0.0.1"]])
    asked: list[str] = []

    def rebinding(host: str) -> Sequence[str]:
        asked.append(host)
        return next(answers)

    redirecting = in_turn(status(302, "Location: /again"))
    with serving(redirecting, authority.server("photos.example")) as server:
        internet.port = server.port
        images = HttpImages(clock=lambda: NOW, resolve=rebinding)
        assert code_of(fetched_by(images)) == "fetch_refused"
    assert (asked, internet.opened) == (["photos.example"] * 2, [(PUBLIC, 443)])


def test_no_url_that_may_not_be_used_is_fetched(connected: list[object]) -> None:
    images = HttpImages(clock=lambda: NOW)
    for url, _ in UNUSABLE:
        assert code_of(fetched_by(images, url)) == "fetch_refused"
    assert len(UNUSABLE) >= 80
    assert connected == []


def test_no_redirect_leads_to_a_url_that_may_not_be_used(internet: Internet, authority: Authority) -> None:
    writable = [url for url, reason in UNUSABLE if "://" in url and reason != "fragment" and url.isprintable()]
    # What is wrong in its path alone is encoded, but for a backslash.
    encoded = {f"https://example.com/{path}" for path in ("%", "%zz", "a|b", "<script>", '"')}
    locations = [url for url in writable if url.isascii() and url == url.strip() and url not in encoded]
    behaviour = in_turn(*(status(302, f"Location: {url}") for url in locations))
    with serving(behaviour, authority.server("photos.example")) as server:
        internet.port = server.port
        images = HttpImages(clock=lambda: NOW, resolve=internet.resolve)
        for url in locations:
            answer = fetched_by(images)
            code, may_pass = outcome_of(answer)
            assert code in ("fetch_refused", "fetch_failed"), url  # the latter for a head that is too long
            assert not may_pass, url
    assert len(locations) >= 50
    assert internet.resolved == ["photos.example"] * len(locations)


@pytest.mark.guards("egress-file-size-bound")
@pytest.mark.parametrize("said", [b"200 OK", b"203 From a Proxy"])
def test_a_file_is_fetched_up_to_the_last_byte_that_may_be_and_no_further(said: bytes) -> None:
    answer, _ = fetched_from(answering(ok(bytes(MAX_BYTES)).replace(b"200 OK", said, 1)))
    assert isinstance(answer, Fetched) and answer.body == bytes(MAX_BYTES)
    answer, _ = fetched_from(answering(ok(bytes(MAX_BYTES + 1)).replace(b"200 OK", said, 1)))
    assert code_of(answer) == "fetch_too_large"


VIDEO = (b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom" + bytes(MAX_BYTES))[:MAX_BYTES]
HEIC = b"\0\0\0\x78ftypmif1\0\0\0\0" + b"miaf" * 25 + b"heic" + bytes(300)
"""A photo that names its coding in the last brand of its first SNIFF_BYTES."""


@pytest.mark.parametrize("chunk", [0, 1, 100, 1000])
@pytest.mark.parametrize(
    ("file", "is_whole"), [(VIDEO, False), (b"<!DOCTYPE html>" * 30, False), (HEIC, True), (PHOTO, True)]
)
def test_a_file_is_judged_by_its_first_bytes_whatever_it_is_called_and_left_if_it_is_no_picture(
    file: bytes, is_whole: bool, chunk: int
) -> None:
    """The rest is sent only to a client that waits for it, and keeps the connection."""
    left: list[bytes] = []

    def behave(connected: socket.socket, server: Server) -> None:
        server.hear(connected)
        sent = file if is_whole else file[:SNIFF_BYTES]
        head = b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\n"
        if chunk:
            pieces = [sent[place : place + chunk] for place in range(0, len(sent), chunk)] + [b""] * is_whole
            coded = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
            server.say(connected, head + b"Transfer-Encoding: chunked\r\n\r\n" + coded)
        else:
            server.say(connected, head + b"Content-Length: %d\r\n\r\n" % len(file) + sent)
        try:
            left.append(connected.recv(1))
        except ConnectionResetError:
            left.append(b"")

    answer, _ = fetched_from(behave, is_picture=lambda first: input_format_of(first) is not None)
    assert answer == Fetched(body=file if is_whole else file[:SNIFF_BYTES], provenance=Provenance())
    assert left == [b""], "its server sees the connection closed, and nothing waits for the rest"


@pytest.mark.guards("egress-short-body-not-judged")
def test_a_picture_that_ends_before_it_can_be_judged_is_fetched_again_if_it_is_not_whole() -> None:
    def is_picture(first: bytes) -> bool:
        return input_format_of(first) is not None

    short = PHOTO[: SNIFF_BYTES - 1]
    complete, _ = fetched_from(answering(ok(short)), is_picture=is_picture)
    cut, _ = fetched_from(answering(ok(VIDEO)[: -MAX_BYTES + SNIFF_BYTES - 1]), is_picture=is_picture)
    assert complete == Fetched(body=short, provenance=Provenance())
    assert outcome_of(cut) == ("fetch_failed", True)


def endless(connected: socket.socket, server: Server) -> None:
    server.hear(connected)
    server.say(connected, b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        server.say(connected, bytes(65_536))


def endless_chunks(connected: socket.socket, server: Server) -> None:
    server.hear(connected)
    server.say(connected, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        server.say(connected, b"1000\r\n" + bytes(4096) + b"\r\n")


def claims_a_terabyte(connected: socket.socket, server: Server) -> None:
    server.hear(connected)
    server.say(connected, b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n")
    server.stopping.wait(10)


@pytest.mark.guards("egress-non-picture-cut-short")
@pytest.mark.parametrize("behaviour", [endless, endless_chunks])
def test_of_a_body_without_end_that_begins_no_picture_only_the_first_bytes_are_read(behaviour: Behaviour) -> None:
    answer, _ = fetched_from(behaviour, is_picture=lambda _: False)
    assert isinstance(answer, Fetched) and answer.body == bytes(SNIFF_BYTES)


@pytest.mark.parametrize("behaviour", [endless, endless_chunks, claims_a_terabyte])
def test_a_body_without_end_is_too_large_and_soon_left(behaviour: Behaviour) -> None:
    answer, _ = fetched_from(behaviour)
    assert code_of(answer) == "fetch_too_large"


def test_a_server_that_sends_byte_by_byte_ends_with_the_time_and_may_do_better_next_time() -> None:
    def drip(connected: socket.socket, server: Server) -> None:
        server.hear(connected)
        server.drip(connected, ok())

    answer, _ = fetched_from(drip, seconds=0.4)
    assert outcome_of(answer) == ("fetch_timeout", True)


def test_all_redirects_share_the_time_of_one_attempt() -> None:
    def slow(connected: socket.socket, server: Server) -> None:
        server.received = b""
        server.hear(connected)
        server.stopping.wait(0.25)
        server.say(connected, status(302, "Location: /again"))

    answer, server = fetched_from(slow, seconds=0.6)
    assert code_of(answer) == "fetch_timeout"
    assert server.connections <= MAX_REDIRECTS


@pytest.mark.guards("egress-partial-file-refused", case="a part")
@pytest.mark.guards("egress-compressed-file-refused", case="compressed")
@pytest.mark.parametrize(
    ("response", "may_pass"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\nshort", True),
        (b"", True),
        (b"SSH-2.0-OpenSSH_9.9\r\n", False),
        (ok(b""), False),
        (ok(gzip.compress(bytes(500_000), mtime=0), "Content-Encoding: gzip"), False),
        (b"HTTP/1.1 203 From a Proxy\r\nContent-Length: 900\r\n\r\nshort", True),
        (ok().replace(b"200 OK", b"206 Part", 1), False),
    ],
    ids=["cut", "nothing", "no HTTP", "empty", "compressed", "cut by a proxy", "a part"],
)
def test_a_response_that_is_no_whole_file_is_none(response: bytes, may_pass: bool) -> None:
    answer, _ = fetched_from(answering(response))
    assert outcome_of(answer) == ("fetch_failed", may_pass)


def test_a_name_that_is_not_known_may_be_later() -> None:
    answer = fetched_by(HttpImages(clock=lambda: NOW, resolve=raising(OSError("nobody knows"))))
    assert outcome_of(answer) == ("fetch_failed", True)


def fetched_securely(
    internet: Internet, authority: Authority, behaviour: Behaviour, host: str = "photos.example"
) -> Fetched | Unfetched:
    with serving(behaviour, authority.server(host)) as server:
        internet.port = server.port
        return fetched_by(HttpImages(clock=lambda: NOW, resolve=internet.resolve))


@pytest.mark.guards("egress-certificate-text-no-host")
def test_a_certificate_of_another_host_ends_it(internet: Internet, authority: Authority) -> None:
    answer = fetched_securely(internet, authority, answering(ok()), "another.example")
    assert outcome_of(answer) == ("fetch_failed", False)
    assert "example" not in unfetched(answer).message  # OpenSSL's own text names the host


@pytest.mark.guards("egress-possibly-cut-body-refused")
def test_only_an_alert_of_tls_tells_the_end_of_a_body_without_a_length_from_a_cut(
    internet: Internet, authority: Authority
) -> None:
    response = b"HTTP/1.0 200 OK\r\n\r\n" + PHOTO

    def say_goodbye(connected: socket.socket, server: Server) -> None:
        answering(response)(connected, server)
        assert isinstance(connected, ssl.SSLSocket)
        connected.unwrap()

    complete = fetched_securely(internet, authority, say_goodbye)
    assert isinstance(complete, Fetched) and complete.body == PHOTO
    cut = fetched_securely(internet, authority, answering(response[:-200]))
    assert outcome_of(cut) == ("fetch_failed", True)
    # A length tells it too.
    assert isinstance(fetched_securely(internet, authority, answering(ok())), Fetched)


def test_what_is_damaged_on_the_way_is_fetched_again(internet: Internet, authority: Authority) -> None:
    def damage(connected: socket.socket, server: Server) -> None:
        server.hear(connected)
        server.say(connected, ok()[:200])
        with socket.socket(fileno=os.dup(connected.fileno())) as below:
            below.sendall(b"\x17\x03\x03\x00\x40" + bytes(64))

    answer = fetched_securely(internet, authority, damage)
    assert outcome_of(answer) == ("fetch_failed", True)


@pytest.mark.guards("egress-tiny-chunks-in-pieces")
@pytest.mark.parametrize("chunk", [b"2\r\nxx\r\n", b"7\r\nxxxxxxx\r\n"], ids=["too tiny", "tiny"])
def test_a_body_in_tiny_chunks_takes_little_more_than_its_size(chunk: bytes) -> None:
    count = 100_000
    size = count * chunk.count(b"x")
    response = (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk * (size // chunk.count(b"x")) + b"0\r\n\r\n"
    )
    with serving(answering(response)) as server:
        images = HttpImages(LOCAL, clock=lambda: NOW)
        tracemalloc.start()
        try:
            answer = images.fetch(f"http://127.0.0.1:{server.port}/", max_bytes=size, is_picture=anything)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    # With more around the chunks than in them, it is left.
    assert isinstance(answer, Fetched) == (len(chunk) < 2 * chunk.count(b"x"))
    assert peak < 4_000_000


@pytest.mark.guards("egress-other-codings-allowed")
@pytest.mark.parametrize(
    "coding",
    [
        "Content-Encoding:",
        "Content-Encoding: identity, , Identity",
        "Content-Encoding: base64",
        "Content-Encoding: aws-chunked",
        "Content-Encoding: aws-chunked,base64",
        "Content-Encoding: UTF-8",
        "Content-Encoding: binary",
        "Content-Encoding: none",
        "Content-Encoding: image/jpeg",
        "Content-Encoding: utf-8; q=1",
        "Transfer-Encoding: identity",
    ],
)
def test_a_coding_that_compresses_nothing_leaves_the_file_to_its_bytes(coding: str) -> None:
    answer, _ = fetched_from(answering(ok(PHOTO, coding)))
    assert isinstance(answer, Fetched) and answer.body == PHOTO


@pytest.mark.guards("egress-compressed-file-refused", "egress-compression-spellings")
@pytest.mark.parametrize(
    "coding",
    [
        *(f"Content-Encoding: {coding}" for coding in ("gzip", "x-gzip", "deflate", "compress", "x-compress", "br")),
        *(f"Content-Encoding: {coding}" for coding in ("zstd", "dcb", "dcz", "exi", "pack200-gzip", "xz", "x-bzip2")),
        "Content-Encoding: aws-chunked,GZIP",
        "Content-Encoding: Br , utf-8",
        "Content-Encoding: none\r\ncontent-encoding: \tDeflate",
        "Content-Encoding: gzip;q=1",
        'Content-Encoding: "gzip"',
    ],
)
def test_a_coding_that_compresses_ends_it_whatever_is_beside_it(coding: str) -> None:
    answer, _ = fetched_from(answering(ok(PHOTO, coding)))
    assert outcome_of(answer) == ("fetch_failed", False)
    assert "compressed" in unfetched(answer).message


@pytest.mark.guards("egress-nested-chunking-refused")
@pytest.mark.parametrize("coding", ["gzip, chunked", "chunked, chunked", "utf-8"])
def test_chunks_within_another_coding_are_not_taken_for_the_file(coding: str) -> None:
    response = f"HTTP/1.1 200 OK\r\nTransfer-Encoding: {coding}\r\n\r\n3\r\nabc\r\n0\r\n\r\n".encode()
    answer, _ = fetched_from(answering(response))
    assert code_of(answer) == "fetch_failed"
    assert "Transfer-Encoding" in unfetched(answer).message
