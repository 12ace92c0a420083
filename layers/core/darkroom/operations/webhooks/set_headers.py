"""Sets the headers that an endpoint's owner adds to its deliveries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.webhooks.custom_headers import (
    MAX_ALL_VALUES_BYTES,
    NONCE_BYTES,
    AskedHeader,
    seal,
    size_of,
)
from darkroom.domain.webhooks.endpoint import CustomHeader, Endpoint
from darkroom.ports.kernel import Randomness


def set_headers(
    endpoint: Endpoint, asked: Sequence[AskedHeader], *, before: Endpoint, master: bytes, randomness: Randomness
) -> Endpoint:
    """The row with these headers and no others. `before` is the row with its former headers, and perhaps another URL:
    those that are asked for without a value keep theirs. Raises Rejected (`invalid_headers`) for a value that is
    missing, or for too much of them."""
    kept = {header.name.lower(): header for header in before.headers}
    headers: list[CustomHeader] = []
    for header in asked:
        name, value = header.name, header.value
        is_secret = header.is_secret is not False  # guard: webhook-header-secret-by-default
        if value is None:
            former = kept.get(name.lower())
            if former is None:
                raise _refused(f"The header {name} is new: give it a value")
            if former.sealed is not None:
                require_same_host(before, endpoint, former)
                if not is_secret:  # guard: webhook-header-secret-stays
                    raise _refused(f"The value of {name} is secret, and never shown: to make it visible, give it anew")
            if former.sealed is not None or header.is_secret is not True:
                headers.append(replace(former, name=name))
                continue
            value = former.value or ""
        headers.append(
            seal(value, name=name, endpoint=endpoint, master=master, nonce=randomness(NONCE_BYTES))
            if is_secret
            else CustomHeader(name=name, value=value)
        )
    if sum(map(size_of, headers)) > MAX_ALL_VALUES_BYTES:  # guard: webhook-headers-size-bound
        raise _refused(f"The headers' values have more than {MAX_ALL_VALUES_BYTES:,} bytes together: shorten them")
    return replace(endpoint, headers=tuple(headers))


def require_same_host(before: Endpoint, endpoint: Endpoint, header: CustomHeader) -> None:
    """Raises Rejected (`invalid_headers`) if the endpoint's host is another and the header's value is secret: whoever
    may change the URL but does not know the value would have it sent to themselves."""
    if header.sealed is not None and endpoint.host != before.host:  # guard: webhook-header-other-host
        raise _refused(
            f"The value of {header.name} is secret, and was given for another host: give it anew with the URL, or send "
            "`headers` without it"
        )


def _refused(why: str) -> Rejected:
    return Rejected("invalid_headers", f"{why}.")
