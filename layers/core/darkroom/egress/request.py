"""Sends one request and reads the beginning of its response, within limits of time and bytes.

HTTP is written and read by the standard library's parser, without what a client adds to it: no redirects, proxies,
cookies, credentials from files, retries or decompression, none of which then needs to be turned off.
"""

from __future__ import annotations

import io
import ssl
from collections.abc import Buffer, Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, IncompleteRead
from typing import TYPE_CHECKING, Literal

from darkroom.domain.images.media_types import SNIFF_BYTES
from darkroom.egress.connection import Deadline, Resolve, connect, system_addresses
from darkroom.egress.errors import RequestFailed

if TYPE_CHECKING:
    import socket

    from darkroom.egress.urls import Url

SECONDS = 15.0
"""The time of a whole request, from the resolution of the name to the last byte that is read: what Standard Webhooks
advises (15 to 30 seconds)."""

MAX_BODY_BYTES = 4096
"""How much of a response's body is read: enough for an error message in a log."""

PIECE_BYTES = 16_384
"""How much of a body is read at once. The parser keeps an object for each chunk of a read: for a body in chunks of two
bytes this is forty times its size."""

MAX_HEAD_BYTES = 65_536
"""How many bytes may come besides the body: the response's head, what precedes it, and what surrounds chunks."""

USER_AGENT = "Darkroom"

type Wants = Callable[[int, Mapping[str, str]], bool]
"""Whether the body is wanted of a response with this status and these headers."""

type WantsRest = Callable[[bytes], bool]
"""Whether the rest is wanted of a body with these first SNIFF_BYTES."""

_OURS = frozenset({"accept-encoding", "connection", "content-length", "host", "transfer-encoding", "user-agent"})


@dataclass(frozen=True, kw_only=True)
class EgressResponse:
    """What the other side answered. A redirect is a response like any other, and is not followed.

    `headers` are by name in lower case, the values of equal names joined by commas: those of Location, a URL that may
    have commas itself, by line breaks, and equal ones are one. `body` is the beginning of the body, as it came: with a
    `content-encoding`, although none was asked for, it is not decoded. `milliseconds` is how long the whole request
    took. `may_be_cut` says that nothing tells the end of the body from a cut: no length, no chunks, and no closure
    alert of TLS (RFC 9112, section 9.8).
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    milliseconds: int
    may_be_cut: bool = False


def send(
    method: Literal["GET", "POST"],
    url: Url,
    *,
    headers: Mapping[str, str],
    body: bytes | None = None,
    seconds: float = SECONDS,
    max_bytes: int = MAX_BODY_BYTES,
    wants: Wants = lambda _status, _headers: True,
    wants_rest: WantsRest = lambda _first: True,
    user_agent: str = USER_AGENT,
    resolve: Resolve = system_addresses,
) -> EgressResponse:
    """Sends one request on a connection of its own, and returns its response with the first `max_bytes` of its body;
    without it if no body is wanted of such a response, and with its first bytes if the rest is not.

    It ends after `seconds`, whatever the other side does. Raises RequestFailed, which says how; and ValueError, before
    anything is connected to, for headers that are invalid or the request's own (`Host`, `Content-Length`, …).
    """
    request = _written(method, url, headers, body, user_agent)
    deadline = Deadline(seconds)
    try:
        connected = connect(url, deadline, resolve)
    except RequestFailed as failure:
        failure.was_unreached = True  # guard: webhook-connection-failure-marked
        raise
    with closing(connected) as connection:
        return exchange(
            connection,
            request,
            method=method,
            deadline=deadline,
            max_bytes=max_bytes,
            wants=wants,
            wants_rest=wants_rest,
        )


def _written(method: str, url: Url, headers: Mapping[str, str], body: bytes | None, user_agent: str) -> bytes:
    if clash := _OURS & {name.lower() for name in headers}:  # guard: egress-own-headers-reserved
        raise ValueError(f"these headers are the request's own: {', '.join(sorted(clash))}")
    writer = HTTPConnection(url.host, url.port)
    writer.sock = sheet = _Sheet()  # it has what is used of a socket, and connects to nothing
    writer.putrequest(method, url.target, skip_host=True, skip_accept_encoding=True)
    own_headers = {
        "Host": url.authority,
        "Accept-Encoding": "identity",  # guard: egress-no-compression-asked
        "Connection": "close",
        "User-Agent": user_agent,
    }
    if body is not None:
        own_headers["Content-Length"] = str(len(body))
    for name, value in (own_headers | dict(headers)).items():
        writer.putheader(name, value)
    writer.endheaders(body)
    return bytes(sheet.text)


class _Sheet:
    """Takes what would be sent."""

    def __init__(self) -> None:
        self.text = bytearray()

    def sendall(self, data: Buffer) -> None:
        self.text += data


def exchange(
    connection: socket.socket,
    request: bytes,
    *,
    method: str,
    deadline: Deadline,
    max_bytes: int,
    wants: Wants = lambda _status, _headers: True,
    wants_rest: WantsRest = lambda _first: True,
) -> EgressResponse:
    """Sends a written request on a connection, and reads the response. Raises RequestFailed."""
    try:
        _send(connection, request, deadline)
    except OSError as error:
        raise deadline.failed_by(error, "sending the request") from error
    arriving = _Arriving(connection, deadline, MAX_HEAD_BYTES + 2 * max_bytes)
    with closing(HTTPResponse(arriving, method=method)) as response:  # type: ignore[arg-type] # it asks for a file alone
        try:
            response.begin()
            while 100 <= response.status < 200 and response.status != 101:  # guard: egress-interim-responses-skipped
                # The interim responses of RFC 9110, section 15.2; the parser itself skips only 100 (Continue).
                response.headers = None  # type: ignore[assignment] # which is how it knows that it has not begun
                response.begin()
            # guard: egress-cut-head-refused
            if arriving.has_ended:  # the parser takes the end of a connection for the end of a head
                raise ConnectionResetError
            fields, body = _fields(response), b""
            if wants(response.status, fields):
                body = _read(response, max_bytes, wants_rest)
        except (OSError, HTTPException, ValueError) as error:
            was_cut = arriving.has_ended and isinstance(error, IncompleteRead)
            cause = ConnectionResetError() if was_cut else error
            raise deadline.failed_by(cause, "reading the response") from error
        return EgressResponse(
            status=response.status,
            headers=fields,
            body=body,
            milliseconds=deadline.milliseconds,
            may_be_cut=arriving.was_torn and not response.chunked and response.length is None,
        )


def _read(response: HTTPResponse, max_bytes: int, wants_rest: WantsRest) -> bytes:
    body = io.BytesIO()
    while left := max_bytes - body.tell():  # guard: egress-body-size-bound
        # guard: egress-tiny-chunks-in-pieces
        piece = response.read(min(left, PIECE_BYTES if body.tell() else SNIFF_BYTES))
        if not piece:
            break
        body.write(piece)
        # guard: egress-non-picture-cut-short, egress-short-body-not-judged
        if body.tell() == SNIFF_BYTES and not wants_rest(piece):
            return piece
    # guard: egress-cut-body-refused
    if body.tell() < max_bytes and response.length:  # the parser does not compare this with Content-Length
        raise ConnectionResetError
    return body.getvalue()


def _fields(response: HTTPResponse) -> dict[str, str]:
    fields: dict[str, str] = {}
    for name, value in response.headers.items():
        key = name.lower()
        if key not in fields:
            fields[key] = value
        elif key != "location":
            fields[key] += f", {value}"
        elif fields[key] != value:
            fields[key] += f"\n{value}"  # guard: egress-redirect-single-location
    return fields


def _send(connection: socket.socket, data: bytes, deadline: Deadline) -> None:
    left = memoryview(data)
    while left:
        connection.settimeout(deadline.left())  # guard: egress-sending-deadline
        left = left[connection.send(left) :]


class TooLong(HTTPException):
    """More came than a response may have."""


class _Arriving(io.RawIOBase):
    """What arrives on a connection: until the deadline, and at most `max_bytes`. Both are counted over all reads, so
    neither drops of bytes nor floods of interim responses, headers or chunks outlast them."""

    def __init__(self, connection: socket.socket, deadline: Deadline, max_bytes: int) -> None:
        self._connection, self._deadline, self._left = connection, deadline, max_bytes
        self.has_ended = False
        """Whether the other side has closed the connection, and everything before that was read."""
        self.was_torn = False
        """Whether it did so without TLS's closure alert, as anybody on the way could have done."""

    def makefile(self, _mode: str) -> io.BufferedReader:
        """What the parser asks a socket for."""
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int:
        if self._left <= 0:
            raise TooLong  # guard: egress-received-bytes-bound
        self._connection.settimeout(self._deadline.left())  # guard: egress-receiving-deadline
        with memoryview(buffer) as room:
            try:
                count = self._connection.recv_into(room[: self._left])
            except ssl.SSLEOFError:
                self.was_torn, count = True, 0
        self._left -= count
        self.has_ended = count == 0
        return count
