"""Keeps websites away from this machine's ports: a browser sends a page's requests to any of them.

A page of another site can send GET, HEAD and simple POST requests without asking, and a name that it owns can lead to
127.0.0.1 after it was loaded (DNS rebinding), which makes its requests same-origin. Browsers say who asks, in headers
that no script can set: Host, Origin and Sec-Fetch-* (https://www.w3.org/TR/fetch-metadata/).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

_ANY = "*"
"""As an allowed origin: every website."""

_LOOPBACK = ("127.0.0.1", "localhost")
_NO_SITE = frozenset({b"none", b"same-origin"})
"""Of Sec-Fetch-Site: typed or bookmarked by the user, and asked by a page of this very port."""


def hosts_of(port: int) -> frozenset[str]:
    """The values of Host for a port of this machine."""
    return frozenset(f"{name}:{port}" for name in _LOOPBACK)


def origins_of(port: int) -> frozenset[str]:
    """The origins of pages that a port of this machine serves."""
    return frozenset(f"http://{host}" for host in hosts_of(port))


@dataclass(frozen=True)
class Headers:
    """A request's headers by their names in lower case."""

    pairs: Iterable[tuple[bytes, bytes]]

    def only(self, name: bytes) -> bytes | None:
        """The value of a header; None without it. Raises ValueError if it is there twice."""
        values = [value for key, value in self.pairs if key.lower() == name]
        if len(values) > 1:  # guard: gate-duplicate-header-refused
            raise ValueError(f"The header {name.decode()} is there {len(values)} times.")
        return values[0] if values else None


def refusal(
    method: str,
    headers: Headers,
    *,
    hosts: Collection[str],
    origins: Collection[str],
    is_signed: bool = False,
    may_be_led_to: bool = True,
    remedy: str = "",
) -> str | None:
    """Why a request is refused; None if it may come from this machine's own tools, or from a page that may.

    `hosts` are the port's own names, `origins` those of the pages that may send anything. A page of another site may
    only lead its user there (a top-level navigation), unless `may_be_led_to` is false, or show what a signed link
    leads to (`is_signed`). `remedy` says what to do for a website that should be served.
    """
    try:
        host, origin, site = (headers.only(name) for name in (b"host", b"origin", b"sec-fetch-site"))
        mode, destination, referrer = (
            headers.only(name) for name in (b"sec-fetch-mode", b"sec-fetch-dest", b"referer")
        )
    except ValueError as error:
        return str(error)
    if host is None or host.decode("latin-1").lower() not in hosts:  # guard: gate-own-host
        return f"This port serves {' and '.join(sorted(hosts))} only, not the host that was asked for."
    if origin is not None:
        if _is_allowed(origin.decode("latin-1"), origins):  # guard: gate-foreign-origin-refused
            return None
        return f"This website may not call this port. {remedy}".strip()
    if site is None or site in _NO_SITE:  # guard: gate-cross-site-refused
        return None
    reads = method in ("GET", "HEAD")
    if not may_be_led_to:  # guard: operate-links-refused
        return f"Another website may neither call this port nor lead to it. {remedy}".strip()
    # guard: gate-navigation-to-page-only
    if reads and (is_signed or (mode == b"navigate" and destination == b"document")):
        return None
    # Browsers send no Origin for a picture that a page shows; a page can hide where it is from, but not lie about it.
    if reads and referrer is not None and _is_allowed(_origin_of(referrer), origins):
        return None
    return f"Another website may not call this port. {remedy}".strip()


def _is_allowed(origin: str, origins: Collection[str]) -> bool:
    return _ANY in origins or origin in origins


def _origin_of(address: bytes) -> str:
    try:
        parts = urlsplit(address.decode("latin-1"))
    except ValueError:
        return ""
    return f"{parts.scheme}://{parts.netloc}"
