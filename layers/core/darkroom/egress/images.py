"""Fetches images from the URLs that clients give, and says what came of it.

Redirects are followed here, each as a URL of its own: it is read as strictly, and its host resolved and checked anew.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus

from darkroom.domain.images.image import Provenance
from darkroom.domain.imports.fetch import (
    FAILED,
    MAX_SOURCE_URL_LENGTH,
    NOT_FOUND,
    REFUSED,
    TIMEOUT,
    TOO_LARGE,
    Fetched,
    Unfetched,
)
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.lanes import FETCH_SECONDS
from darkroom.domain.kernel.sizes import limit_in_words
from darkroom.egress.connection import Deadline, Resolve, system_addresses
from darkroom.egress.errors import EgressFailureKind, RequestFailed, UrlRefused
from darkroom.egress.request import EgressResponse, send
from darkroom.egress.retry_after import seconds_until
from darkroom.egress.urls import PUBLIC_ONLY, EgressPolicy, Url, location_url, read_url

MAX_REDIRECTS = 3

USER_AGENT = "Darkroom (fetches images for the users of an image pipeline)"

MAX_PROVENANCE_CHARACTERS = 256
"""A longer ETag or Last-Modified is not kept."""

_WHOLE = frozenset({HTTPStatus.OK, HTTPStatus.NON_AUTHORITATIVE_INFORMATION})  # guard: egress-partial-file-refused
"""What a file comes with; the second one through a proxy that has changed the response (RFC 9110, section 15.3.4)."""

_COMPRESSIONS = frozenset(
    {"br", "brotli", "bzip2", "compress", "dcb", "dcz", "deflate", "exi", "gzip", "lz4", "lzma", "pack200-gzip"}
    | {"sdch", "snappy", "xpress", "xz", "zlib", "zstd"}
)
"""Those of https://www.iana.org/assignments/http-parameters and others in use, each also with `x-` before it."""

_CODING = re.compile(r"""[^\s,;"']+""")

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_FORBIDDEN = frozenset({401, 402, 403, 407, 451})
_MISSING = frozenset({404, 410})
_BUSY = frozenset({408, 425, 429})

_LASTING = frozenset({EgressFailureKind.TLS, EgressFailureKind.PROTOCOL})
"""Failures that the next attempt would only repeat."""


class HttpImages:
    """Implements the `RemoteImages` port. `accepted` are the media types to ask for; `clock` is for servers that say by
    the calendar when to come again."""

    def __init__(
        self,
        policy: EgressPolicy = PUBLIC_ONLY,
        *,
        accepted: Iterable[str] = (),
        clock: Callable[[], Milliseconds],
        seconds: float = FETCH_SECONDS,
        resolve: Resolve = system_addresses,
    ) -> None:
        self._policy = policy
        self._accept = ", ".join([*sorted(accepted), "*/*;q=0.1"])
        self._clock = clock
        self._seconds = seconds
        self._resolve = resolve

    def fetch(self, url: str, *, max_bytes: int, is_picture: Callable[[bytes], bool]) -> Fetched | Unfetched:
        deadline, prefix = Deadline(self._seconds), ""
        for _ in range(1 + MAX_REDIRECTS):  # guard: egress-redirects-bound
            try:
                # The first one, too: what is allowed may have changed since the URL was given.
                # guard: egress-fetched-source-url-length
                where = read_url(url, self._policy, max_length=MAX_SOURCE_URL_LENGTH)
                response = self._get(where, deadline, max_bytes, is_picture)
                location = response.headers.get("location", "") if response.status in _REDIRECTS else ""
                if not location.strip(" \t"):
                    return self._read(response, max_bytes)
                prefix = _REDIRECTED
                url = location_url(url, location)
            except UrlRefused as refusal:
                return Unfetched(code=REFUSED, message=f"{prefix}{refusal.message}")
            except TimeoutError:
                return Unfetched(code=TIMEOUT, message=_TOO_SLOW, may_pass=True)
            except RequestFailed as failure:
                return _unfetched_by(failure)
        return Unfetched(code=FAILED, message=f"The server redirects more than {MAX_REDIRECTS} times.")

    def _get(self, url: Url, deadline: Deadline, max_bytes: int, is_picture: Callable[[bytes], bool]) -> EgressResponse:
        return send(
            "GET",
            url,
            headers={"Accept": self._accept},
            seconds=deadline.left(),
            max_bytes=max_bytes + 1,  # one more shows that there are too many
            # What says that it is too long is not read.
            wants=lambda status, headers: status in _WHOLE and not _is_over(headers.get("content-length"), max_bytes),
            wants_rest=is_picture,
            user_agent=USER_AGENT,
            resolve=self._resolve,
        )

    def _read(self, response: EgressResponse, max_bytes: int) -> Fetched | Unfetched:
        if response.status not in _WHOLE:
            return self._unfetched(response)
        # guard: egress-file-size-bound
        if len(response.body) > max_bytes or _is_over(response.headers.get("content-length"), max_bytes):
            return Unfetched(
                code=TOO_LARGE,
                message=f"The file has more than {limit_in_words(max_bytes)}, the most that may be fetched.",
            )
        if _is_compressed(response.headers):  # guard: egress-compressed-file-refused
            return Unfetched(code=FAILED, message="The server sends the file compressed, although it was asked not to.")
        if _is_within_a_coding(response.headers):  # guard: egress-nested-chunking-refused
            return Unfetched(
                code=FAILED, message="The server's Transfer-Encoding cannot be read: it must be chunked, or left out."
            )
        if response.may_be_cut:  # guard: egress-possibly-cut-body-refused
            return Unfetched(code=FAILED, message="The server does not say where the file ends.", may_pass=True)
        if not response.body:
            return Unfetched(code=FAILED, message="The server sends an empty file.")
        provenance = Provenance(
            etag=_kept(response.headers.get("etag")), last_modified=_kept(response.headers.get("last-modified"))
        )
        return Fetched(body=response.body, provenance=provenance)

    def _unfetched(self, response: EgressResponse) -> Unfetched:
        status = response.status
        if status in _FORBIDDEN:
            return Unfetched(code=REFUSED, message=f"The server refuses it ({status}): it must be there for everybody.")
        if status in _MISSING:
            return Unfetched(code=NOT_FOUND, message=f"The server has nothing at this URL ({status}).")
        if status in _BUSY or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return Unfetched(
                code=FAILED,
                message=f"The server answers that it cannot send it now ({status}).",
                may_pass=True,
                retry_after_seconds=seconds_until(response.headers.get("retry-after"), self._clock()) or 0,
            )
        if status == HTTPStatus.PARTIAL_CONTENT:
            return Unfetched(code=FAILED, message="The server sends a part of the file (206): all of it was asked for.")
        return Unfetched(code=FAILED, message=f"The server answers without a file ({status}).")


_REDIRECTED = (
    "The server redirects to a URL that is not fetched: send the URL of the file itself, or have it corrected. "
)
_TOO_SLOW = "The server does not send the file in time."


def _unfetched_by(failure: RequestFailed) -> Unfetched:
    if failure.kind is EgressFailureKind.REFUSED_ADDRESS:
        return Unfetched(code=REFUSED, message="The host has an address that is not public.")
    if failure.kind is EgressFailureKind.TIMEOUT:
        return Unfetched(code=TIMEOUT, message=_TOO_SLOW, may_pass=True)
    reason = str(failure).removeprefix(f"{failure.kind}: ")  # it names no address, path or query
    return Unfetched(code=FAILED, message=f"It could not be fetched: {reason}.", may_pass=failure.kind not in _LASTING)


def _is_compressed(headers: Mapping[str, str]) -> bool:
    """Whether the body would have to be decompressed, which could make it a thousand times as long. Servers write much
    else there (base64, aws-chunked, utf-8, none), also about a plain file: its bytes tell."""
    codings = _CODING.findall(headers.get("content-encoding", "").lower())
    # guard: egress-compression-spellings, egress-other-codings-allowed
    return any(coding.removeprefix("x-") in _COMPRESSIONS for coding in codings)


def _is_within_a_coding(headers: Mapping[str, str]) -> bool:
    """Whether the file would have to be taken out of the body: the parser takes chunks apart only if they are the only
    coding (RFC 9112, section 6.1)."""
    return headers.get("transfer-encoding", "identity").strip().lower() not in ("chunked", "identity")


def _is_over(length: str | None, most: int) -> bool:
    return length is not None and length.isdecimal() and int(length[:20]) > most


def _kept(value: str | None) -> str | None:
    return value if value is not None and value.isprintable() and len(value) <= MAX_PROVENANCE_CHARACTERS else None
