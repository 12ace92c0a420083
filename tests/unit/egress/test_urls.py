"""URLs are read strictly: what could mean another host to another reader is refused, with what to write instead."""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes, urlsplit

import httpx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from urllib3.util import parse_url

from darkroom.domain.kernel.errors import Rejected
from darkroom.egress import EgressPolicy, Url, UrlRefused, read_url, send
from darkroom.egress.urls import location_url
from tests.unit.egress.refused import REFUSED

LOCAL = EgressPolicy(allows_loopback=True)


@pytest.mark.parametrize(
    ("text", "host", "port", "target"),
    [
        ("https://example.com", "example.com", 443, "/"),
        ("https://example.com/", "example.com", 443, "/"),
        ("HTTPS://Hooks.Example.COM/Path?Query=A", "hooks.example.com", 443, "/Path?Query=A"),
        ("https://example.com:443/a", "example.com", 443, "/a"),
        ("https://example.com:8443/a", "example.com", 8443, "/a"),
        ("https://example.com?a=b", "example.com", 443, "/?a=b"),
        ("https://example.com/a/../b;c=d/%2e%0D?x=https://user@host:1/", "example.com", 443,
         "/a/../b;c=d/%2e%0D?x=https://user@host:1/"),
        ("https://xn--bcher-kva.example/", "xn--bcher-kva.example", 443, "/"),
        ("https://a.xn--p1ai/", "a.xn--p1ai", 443, "/"),
        ("https://r3---sn-4g5e.example.com/", "r3---sn-4g5e.example.com", 443, "/"),
        ("https://1e100.net/", "1e100.net", 443, "/"),
        ("https://127.0.0.1.example.com/", "127.0.0.1.example.com", 443, "/"),
        (f"https://{'a' * 63}.example/", f"{'a' * 63}.example", 443, "/"),
        (f"https://example.com/{'a' * 2028}", "example.com", 443, f"/{'a' * 2028}"),
    ],
)  # fmt: skip
def test_a_url_is_read_as_it_was_written_but_for_the_case_of_its_host(
    text: str, host: str, port: int, target: str
) -> None:
    assert read_url(text) == Url(host=host, port=port, target=target)


@pytest.mark.guards(
    "egress-allowed-ports",
    "egress-bracketed-host-refused",
    "egress-host-label-syntax",
    "egress-host-name-length",
    "egress-https-only",
    "egress-local-names-refused",
    "egress-numeric-host-refused",
    "egress-other-scheme-refused",
    "egress-punycode-spelling",
    "egress-url-characters",
    "egress-url-length-bound",
    "egress-url-without-credentials",
    "egress-url-without-fragment",
)
@pytest.mark.parametrize(("text", "reason"), REFUSED, ids=lambda value: ascii(value)[:60])
def test_a_url_that_cannot_be_used_is_refused_with_what_to_do(text: str, reason: str) -> None:
    with pytest.raises(UrlRefused) as refused:
        read_url(text)
    assert refused.value.reason == reason
    assert isinstance(refused.value, Rejected) and refused.value.code == "invalid_url"
    assert refused.value.message.startswith("The URL") and refused.value.message.endswith(".")


def test_a_name_with_a_dot_at_its_end_is_refused_for_that_dot() -> None:
    with pytest.raises(UrlRefused, match="leave out the dot"):
        read_url("https://example.com./")


def test_the_table_has_every_reason() -> None:
    assert len(REFUSED) >= 80
    assert {reason for _, reason in REFUSED} == {
        "length", "characters", "scheme", "credentials", "fragment", "port", "host", "address", "private_name",
    }  # fmt: skip


def test_a_deployment_can_allow_more_ports() -> None:
    policy = EgressPolicy(ports=frozenset({443, 9443}))
    assert read_url("https://example.com:9443/", policy).port == 9443
    with pytest.raises(UrlRefused, match="use port 443 or 9443"):
        read_url("https://example.com:8443/", policy)


@pytest.mark.parametrize(
    ("text", "host", "port", "addresses"),
    [
        ("http://127.0.0.1:49152/hook", "127.0.0.1", 49152, ["127.0.0.1"]),
        ("http://localhost/hook", "localhost", 80, ["127.0.0.1", "::1"]),
        ("http://[::1]:8080/hook", "[::1]", 8080, ["::1"]),
    ],
)
def test_the_local_stack_can_be_allowed_to_reach_this_machine(
    text: str, host: str, port: int, addresses: list[str]
) -> None:
    url = read_url(text, LOCAL)
    assert (url.host, url.port, url.target) == (host, port, "/hook")
    assert [str(address) for address in url.loopback] == addresses


@pytest.mark.parametrize(
    "text",
    [
        "http://example.com/",
        "http://127.0.0.2/",
        "http://127.1/",
        "http://2130706433/",
        "http://0.0.0.0/",
        "http://[::]/",
        "http://[::ffff:127.0.0.1]/",
        "http://localhost./",
        "http://foo.localhost/",
        "http://169.254.169.254/",
        "http://192.168.0.1/",
        "http://[::1%25lo]/",
    ],
)
def test_the_local_stack_reaches_this_machine_and_no_other_by_plain_http(text: str) -> None:
    with pytest.raises(UrlRefused) as refused:
        read_url(text, LOCAL)
    assert refused.value.reason == "scheme"


@pytest.mark.guards("egress-port-range")
def test_the_local_stack_knows_no_port_that_does_not_exist() -> None:
    with pytest.raises(UrlRefused) as refused:
        read_url("http://localhost:65536/", LOCAL)
    assert refused.value.reason == "port"


def test_no_url_made_by_hand_leads_elsewhere_by_plain_http() -> None:
    with pytest.raises(KeyError):
        send("GET", Url(host="10.0.0.1", port=80, target="/", is_plain=True), headers={}, resolve=lambda _: [])


@pytest.mark.parametrize(
    ("text", "authority"),
    [
        ("https://example.com:443/", "example.com"),
        ("https://example.com:8443/", "example.com:8443"),
        ("http://localhost:80/", "localhost"),
        ("http://localhost:443/", "localhost:443"),
        ("http://[::1]:81/", "[::1]:81"),
    ],
)
def test_the_host_header_has_the_port_unless_it_is_the_schemes_own(text: str, authority: str) -> None:
    assert read_url(text, LOCAL).authority == authority


PIECES = [
    "https://", "example.com", "a", ".", ":", "443", "8443", "/", "//", "?", "#", "@", "\\", "%2f", "%00", "[", "]",
    ";", "127.0.0.1", "0x7f", "::1", "xn--", "xn--p1ai", "-", "_", "\t", "\n", " ", "&", "=", "user", "é", "。",
    "localhost",
]  # fmt: skip
"""Of these attacks are made."""


@settings(deadline=None, max_examples=500)
@given(st.text() | st.lists(st.sampled_from(PIECES), max_size=10).map(lambda pieces: "https://" + "".join(pieces)))
def test_whatever_is_read_has_one_host_for_every_reader(text: str) -> None:
    try:
        url = read_url(text)
    except UrlRefused:
        return
    assert url.port in (443, 8443) and not url.is_plain
    assert url.host.isascii() and "." in url.host and url.host.rpartition(".")[2][0].isalpha()
    assert url.target.startswith("/") and not set(url.target) & set(" \t\r\n\\#")
    split, parsed, sent = urlsplit(text), parse_url(text), httpx.URL(text)
    assert split.hostname == parsed.host == sent.raw_host.decode() == url.host
    assert (split.port or 443) == (parsed.port or 443) == (sent.port or 443) == url.port
    assert split.username is parsed.auth is None and not sent.userinfo


@pytest.mark.guards("egress-redirect-host-verbatim", "egress-relative-redirect-host")
@settings(deadline=None, max_examples=500)
@given(
    st.binary(max_size=40).map(lambda value: value.decode("latin-1"))
    | st.lists(st.sampled_from([*PIECES, "http", "ht", "tps:", "|", "%"]), max_size=10).map(
        lambda pieces: "".join(pieces).encode().decode("latin-1")
    )
)
@example("ht\ttps://evil.example/")
@example("/\t/evil.example/")
@example("/\\evil.example/")
@example("https:\\evil.example/")
@example("https://evil.example\\.example.com/")
@example("https://example.com|.evil.example/")
@example("//b\xc3\xbccher.example/")
@example("/a\n//evil.example/")
@example("/evil.example/")
@example("a b://evil.example/")
@example("/%2f/evil.example/ ?#//evil.example/")
def test_no_redirect_leads_to_another_host_than_it_says(location: str) -> None:
    try:
        joined = location_url("https://photos.example/a/b?c", location)
        url = read_url(joined)
    except UrlRefused:
        return
    location = re.sub(r"^https:", "", location.strip(" \t"), flags=re.IGNORECASE)
    written = re.match(r"//([^/?#]+)", location)
    host = written[1].lower().rpartition(":8443")[0] or written[1].lower() if written else "photos.example"
    assert url.host == host.removesuffix(":443")
    split, parsed, sent = urlsplit(joined), parse_url(joined), httpx.URL(joined)
    assert split.hostname == parsed.host == sent.raw_host.decode() == url.host
    # The path's last part has the bytes that were written.
    path = re.split(r"[?#]", location, maxsplit=1)[0].rpartition("/")[2]
    if not written and path and path not in (".", ".."):
        assert unquote_to_bytes(split.path.rpartition("/")[2].encode()) == unquote_to_bytes(path.encode("latin-1"))
