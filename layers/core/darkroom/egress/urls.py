"""Reads the URLs that users give, so strictly that no other reader could see another host in them.

Readers of URLs disagree about backslashes, tabs, `@`, numbers that may be addresses and names that may be Unicode; an
attacker uses what one checks and another connects to. What is doubtful is refused, with a sentence that says what to
write instead; what is left has one meaning, and is sent as it was written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING

from darkroom.domain.kernel.endpoint_ids import MAX_ENDPOINT_URL_LENGTH
from darkroom.egress.errors import UrlRefused

if TYPE_CHECKING:
    from darkroom.egress.addresses import Address

# RFC 3986, sections 2.2 and 2.3. No blanks, control characters, quotes, backslashes, and nothing but ASCII.
_CHARACTERS = re.compile(r"(?:[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})*")
_URL = re.compile(r"(?P<scheme>[^:/?#]+)://(?P<authority>[^/?#]*)(?P<target>[^#]*)(?P<fragment>#.*)?")
_HOST_AND_PORT = re.compile(r"(?P<host>\[[^\[\]]*\]|[^:\[\]]+)(?::(?P<port>[1-9][0-9]{0,4}))?")

# Of a redirect: what precedes its path (RFC 3986, appendix B), what is to be encoded behind that, and what readers skip
# or turn, wherever it is.
_PLACE = re.compile(r"(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):)?(?P<authority>//[^/?#]*)?")
_UNENCODED = re.compile(r"[^A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]|%(?![0-9A-Fa-f]{2})")
_SKIPPED_OR_TURNED = re.compile(r"[\x00-\x1f\x7f\\]")

# RFC 1123, section 2.1, and RFC 1035, section 2.3.4: no underscores, at most 63 characters.
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_MAX_NAME_LENGTH = 253

# Names that only a local network resolves: RFC 6761, RFC 6762, RFC 8375, and `internal`, which ICANN reserved in 2024.
# The addresses decide; this says it when the URL is registered, not when it is first needed.
_PRIVATE_SUFFIXES = (".localhost", ".local", ".internal", ".home.arpa")

_LOOPBACK: dict[str, tuple[Address, ...]] = {
    "127.0.0.1": (ip_address("127.0.0.1"),),
    "[::1]": (ip_address("::1"),),
    "localhost": (ip_address("127.0.0.1"), ip_address("::1")),  # never asked of a name server (RFC 6761, section 6.3)
}


@dataclass(frozen=True, kw_only=True)
class EgressPolicy:
    """What a deployment allows: the `ports` of https, and `allows_loopback`, plain http to any port of this machine:
    for the local stack alone, because in AWS it would lead to Lambda's runtime API."""

    ports: frozenset[int] = frozenset({443, 8443})
    allows_loopback: bool = False


PUBLIC_ONLY = EgressPolicy()
"""https to public hosts on the usual ports."""


@dataclass(frozen=True, kw_only=True)
class Url:
    """A URL as `read_url` has read it. `host` is a name in lower case and ASCII; `target` is the path and the query.

    With `is_plain` it is http instead of https, and leads to this machine, whose addresses are `loopback`.
    """

    host: str
    port: int
    target: str
    is_plain: bool = False

    @property
    def loopback(self) -> tuple[Address, ...]:
        """The addresses of a plain URL; none for https."""
        return _LOOPBACK[self.host] if self.is_plain else ()

    @property
    def authority(self) -> str:
        """The value of the Host header: the port is left out if it is the scheme's own (RFC 9110, section 7.2)."""
        return self.host if self.port == (80 if self.is_plain else 443) else f"{self.host}:{self.port}"


def read_url(text: str, policy: EgressPolicy = PUBLIC_ONLY, *, max_length: int = MAX_ENDPOINT_URL_LENGTH) -> Url:
    """Reads a URL. Raises UrlRefused if no request may be sent to it, whatever its host's addresses are."""
    if len(text) > max_length:  # guard: egress-url-length-bound
        raise UrlRefused("length", f"The URL has {len(text)} characters: use at most {max_length}.")
    if not _CHARACTERS.fullmatch(text):  # guard: egress-url-characters
        raise UrlRefused(
            "characters",
            "The URL has a character that is not allowed in URLs. Percent-encode blanks, quotes, backslashes and "
            "everything that is not ASCII in its path and query, and write its host name in ASCII (xn--…).",
        )
    parts = _URL.fullmatch(text)
    scheme = parts["scheme"].lower() if parts else ""
    if parts is None or scheme not in ("https", "http"):  # guard: egress-other-scheme-refused
        raise UrlRefused("scheme", "The URL must begin with https://.")
    # guard: egress-url-without-fragment
    if parts["fragment"] is not None:  # it is not part of what is requested (RFC 9110, section 7.1): it would be lost
        raise UrlRefused("fragment", "The URL has a fragment, which is never sent: leave out everything from # on.")
    if "@" in parts["authority"]:  # guard: egress-url-without-credentials
        raise UrlRefused("credentials", "The URL has a user name or an @ before its host: leave it out.")
    named = _HOST_AND_PORT.fullmatch(parts["authority"])
    if named is None:
        raise UrlRefused("host", "The URL has no valid host and port: write https://host or https://host:port.")
    host, target = named["host"].lower(), parts["target"]
    if not target.startswith("/"):
        target = f"/{target}"
    if scheme == "http":
        if not policy.allows_loopback or host not in _LOOPBACK:  # guard: egress-https-only
            raise UrlRefused("scheme", "The URL must begin with https://.")
        return Url(host=host, port=_port(named["port"], 80), target=target, is_plain=True)
    _check_name(host)
    port = _port(named["port"], 443)
    if port not in policy.ports:  # guard: egress-allowed-ports
        allowed = " or ".join(map(str, sorted(policy.ports)))
        raise UrlRefused("port", f"The URL's port is not allowed: use port {allowed}.")
    return Url(host=host, port=port, target=target)


def location_url(base: str, location: str) -> str:
    """Returns the URL to which `base`, a URL that was read, redirects. It is yet to be read by `read_url`.

    `location` is the value of the header, a character for each byte. What URLs may not have is percent-encoded, byte by
    byte, as browsers do (https://fetch.spec.whatwg.org/#concept-response-location-url), but in path and query alone: a
    host stays as it is written. A fragment is left out. Raises UrlRefused for what readers understand differently.
    """
    if "\n" in location:
        raise UrlRefused("characters", "There are several URLs, or one in several lines.")
    written = location.strip(" \t")
    base_match, location_match = _URL.fullmatch(base), _PLACE.match(written)
    # guard: egress-redirect-characters
    if base_match is None or location_match is None or _SKIPPED_OR_TURNED.search(written):
        raise UrlRefused("characters", "The URL has a control character or a backslash: percent-encode it.")
    scheme = (location_match["scheme"] or base_match["scheme"]).lower()
    # guard: egress-redirect-target-encoded
    target = _UNENCODED.sub(lambda byte: f"%{ord(byte[0]):02X}", written[location_match.end() :].partition("#")[0])
    if location_match["authority"] is not None or scheme != base_match["scheme"].lower():
        return f"{scheme}:{location_match['authority'] or ''}{target}"  # guard: egress-redirect-host-verbatim
    # RFC 3986, section 5.2. The standard library's `urljoin` loses slashes and semicolons.
    old_path, *old_query = base_match["target"].split("?", 1)
    path, *query = target.split("?", 1)
    if path:
        path = _without_dots(path if path.startswith("/") else f"{old_path.rpartition('/')[0]}/{path}")
    else:
        path, query = old_path, query or old_query
    return "?".join([f"{scheme}://{base_match['authority']}{path}", *query])  # guard: egress-relative-redirect-host


def _without_dots(path: str) -> str:
    kept: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        if segment == "..":
            kept[-1:] = []
        elif segment != ".":
            kept.append(segment)
    return "/".join(["", *kept, *([""] if segments[-1] in (".", "..") else [])])


def _port(text: str | None, default: int) -> int:
    port = default if text is None else int(text)
    if port > 65_535:  # guard: egress-port-range
        raise UrlRefused("port", "The URL's port does not exist: the highest is 65535.")
    return port


def _check_name(host: str) -> None:
    """Refuses what is no full name of a public host."""
    labels = host.split(".")
    # guard: egress-bracketed-host-refused
    if host.startswith("[") or _is_number(host.removesuffix(".").rpartition(".")[2]):
        raise UrlRefused("address", "The URL names an address: name a host, for which its certificate is valid.")
    if not labels[-1]:
        raise UrlRefused("host", "The URL's host name ends with a dot: leave out the dot.")
    if len(host) > _MAX_NAME_LENGTH or not all(map(_is_label, labels)):  # guard: egress-host-name-length
        raise UrlRefused(
            "host",
            "The URL's host name is invalid: its parts are 1 to 63 letters, digits and hyphens, "
            "and a name in another script is written in ASCII (xn--…).",
        )
    if len(labels) == 1 or host.endswith(_PRIVATE_SUFFIXES):  # guard: egress-local-names-refused
        raise UrlRefused("private_name", "The URL's host can be reached in a local network only: name a public host.")


def _is_number(label: str) -> bool:
    """Whether a host that ends with the label is an address: 127.0.0.1, 127.1, 0x7f.1, 2130706433. Some readers take
    such a host for one (https://url.spec.whatwg.org/#ends-in-a-number-checker), and no top-level domain begins with a
    digit."""
    return label[:1].isdecimal()  # guard: egress-numeric-host-refused


def _is_label(label: str) -> bool:
    if not _LABEL.fullmatch(label):  # guard: egress-host-label-syntax
        return False
    if not label.startswith("xn--"):
        return True
    try:  # what names no other script has two spellings (RFC 5890, section 2.3.2.1)
        return not label[4:].encode().decode("punycode").isascii()  # guard: egress-punycode-spelling
    except UnicodeError:
        return False
