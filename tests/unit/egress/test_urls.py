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


REFUSED = [
    # scheme
    ("http://example.com/", "scheme"),
    ("http://127.0.0.1/", "scheme"),
    ("http://localhost:9001/2018-06-01/runtime/invocation/next", "scheme"),
    ("http://169.254.169.254/latest/meta-data/", "scheme"),
    ("http://[fd00:ec2::254]/latest/meta-data/", "scheme"),
    ("ftp://example.com/", "scheme"),
    ("file:///etc/passwd", "scheme"),
    ("gopher://127.0.0.1:6379/_FLUSHALL", "scheme"),
    ("javascript:alert(1)", "scheme"),
    ("data:text/plain,x", "scheme"),
    ("//example.com/", "scheme"),
    ("example.com/", "scheme"),
    ("https:example.com", "scheme"),
    ("https:/example.com", "scheme"),
    ("https", "scheme"),
    ("", "scheme"),
    ("https+unix://example.com/", "scheme"),
    ("url:https://example.com/", "scheme"),
    # characters that readers skip, turn or end at
    (" https://example.com/", "characters"),
    ("https://example.com/ ", "characters"),
    ("https://exam ple.com/", "characters"),
    ("https://example.com/\n", "characters"),
    ("https://example.com/\r\nHost: evil.example", "characters"),
    ("https://example\t.com/", "characters"),
    ("ht\ntps://example.com/", "characters"),
    ("https://example.com\x00.evil.example/", "characters"),
    ("https://example.com\\@127.0.0.1/", "characters"),
    ("https:\\\\example.com/", "characters"),
    ("https://example.com/a\\b", "characters"),
    ("https://example.com/\x7f", "characters"),
    ("https://example.com/%", "characters"),
    ("https://example.com/%zz", "characters"),
    ("https://example.com/a|b", "characters"),
    ("https://example.com/<script>", "characters"),
    ('https://example.com/"', "characters"),
    ("https://bücher.example/", "characters"),
    ("https://①②⑦.⓪.⓪.①/", "characters"),
    ("https://ⓛocalhost/", "characters"),
    ("https://127。0。0。1/", "characters"),
    ("https://exam\u00adple.com/", "characters"),
    ("https://example.com\u2028/", "characters"),
    ("https://example.com/\ud800", "characters"),
    # credentials, and what looks like them
    ("https://user:password@example.com/", "credentials"),
    ("https://user@example.com/", "credentials"),
    ("https://@example.com/", "credentials"),
    ("https://example.com@127.0.0.1/", "credentials"),
    ("https://127.0.0.1:80@example.com/", "credentials"),
    ("https://example.com:443@[::1]/", "credentials"),
    # fragments
    ("https://example.com/#", "fragment"),
    ("https://example.com/#section", "fragment"),
    ("https://example.com#@127.0.0.1/", "fragment"),
    # ports
    ("https://example.com:80/", "port"),
    ("https://example.com:22/", "port"),
    ("https://example.com:6379/", "port"),
    ("https://example.com:65536/", "port"),
    ("https://example.com:99999/", "port"),
    ("https://example.com:/", "host"),
    ("https://example.com:0/", "host"),
    ("https://example.com:0443/", "host"),
    ("https://example.com:443:443/", "host"),
    ("https://example.com:+443/", "host"),
    ("https://example.com:-1/", "host"),
    ("https://example.com:443443443/", "host"),
    # addresses, in every notation that some reader takes
    ("https://127.0.0.1/", "address"),
    ("https://93.184.215.14/", "address"),
    ("https://127.1/", "address"),
    ("https://127.0.1/", "address"),
    ("https://2130706433/", "address"),
    ("https://0x7f000001/", "address"),
    ("https://0x7f.1/", "address"),
    ("https://0X7F.0.0.0x1/", "address"),
    ("https://1.0x/", "address"),
    ("https://017700000001/", "address"),
    ("https://0177.0.0.1/", "address"),
    ("https://0/", "address"),
    ("https://127.0.0.1./", "address"),
    ("https://example.0x7f/", "address"),
    ("https://example.7/", "address"),
    ("https://4294967296/", "address"),
    ("https://169.254.169.254/latest/meta-data/", "address"),
    ("https://[::1]/", "address"),
    ("https://[::]/", "address"),
    ("https://[::ffff:127.0.0.1]/", "address"),
    ("https://[::ffff:7f00:1]/", "address"),
    ("https://[::127.0.0.1]/", "address"),
    ("https://[fe80::1%25eth0]/", "address"),
    ("https://[fd00:ec2::254]/", "address"),
    ("https://[64:ff9b::a9fe:a9fe]/", "address"),
    ("https://[2606:2800:21f:cb07:6820:80da:af6b:8b2c]/", "address"),
    ("https://[v1.x]/", "address"),
    ("https://[]/", "address"),
    # names
    ("https:///", "host"),
    ("https://:443/", "host"),
    ("https://?x", "host"),
    ("https://example.com./", "host"),
    ("https://example.com../", "host"),
    ("https://./", "host"),
    ("https://.example.com/", "host"),
    ("https://example..com/", "host"),
    ("https://-example.com/", "host"),
    ("https://example-.com/", "host"),
    ("https://exa_mple.com/", "host"),
    ("https://_dmarc.example.com/", "host"),
    ("https://exa%6dple.com/", "host"),
    ("https://%31%32%37.0.0.1.example.com/", "host"),
    ("https://example.com,evil.example/", "host"),
    ("https://example.com;evil.example/", "host"),
    ("https://example.com&evil.example/", "host"),
    ("https://*.example.com/", "host"),
    ("https://[::1/", "host"),
    ("https://::1/", "host"),
    ("https://[::1].example.com/", "host"),
    ("https://example.com[::1]/", "host"),
    (f"https://{'a' * 64}.example/", "host"),
    (f"https://{'a.' * 124}example/", "host"),
    ("https://xn--.example/", "host"),
    ("https://xn--example-.com/", "host"),
    ("https://xn--example-9.com/", "host"),
    ("https://xn--99999999999.com/", "host"),
    # names of local networks
    ("https://localhost/", "private_name"),
    ("https://LOCALHOST/", "private_name"),
    ("https://metadata/", "private_name"),
    ("https://foo.localhost/", "private_name"),
    ("https://printer.local/", "private_name"),
    ("https://metadata.google.internal/", "private_name"),
    ("https://ip-10-0-0-1.ec2.internal/", "private_name"),
    ("https://nas.home.arpa/", "private_name"),
    # length
    (f"https://example.com/{'a' * 2029}", "length"),
    (f"https://{'a' * 100_000}", "length"),
]
"""URLs that are refused, and why."""


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
    *(
        "https://",
        "example.com",
        "a",
        ".",
        ":",
        "443",
        "8443",
        "/",
        "//",
        "?",
        "#",
        "@",
        "\\",
        "%2f",
        "%00",
        "[",
        "]",
        ";",
    ),
    *(
        "127.0.0.1",
        "0x7f",
        "::1",
        "xn--",
        "xn--p1ai",
        "-",
        "_",
        "\t",
        "\n",
        " ",
        "&",
        "=",
        "user",
        "é",
        "。",
        "localhost",
    ),
]
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
