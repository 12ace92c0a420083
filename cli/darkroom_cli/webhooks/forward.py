"""Sends events to a developer's program as webhooks."""

from __future__ import annotations

import time
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import httpx

from darkroom.domain.events.event import ReceivedEvent, without_stored
from darkroom.domain.webhooks.webhook_signature import ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER, sign
from darkroom_cli.terminal.display import printable
from darkroom_cli.webhooks.pages import answered
from darkroom_client.client import certificates_for, is_loopback

SECRET_BYTES = 32
"""The length of a secret: Standard Webhooks wants 24 to 64 bytes."""

SECONDS = 15.0
"""How long the program may take to answer."""

MAX_BODY_BYTES = 4096
"""How much of an answer's body is read."""


class NotAnswered(Exception):
    """No answer came: a sentence that says why and what to do."""


@dataclass(frozen=True, kw_only=True)
class ProgramAnswer:
    """What the program answered, and how long that took; `body` is the beginning of its body."""

    status: int
    milliseconds: int
    body: bytes = b""

    @property
    def is_success(self) -> bool:
        """Whether a delivery with this answer would be over."""
        return 200 <= self.status < 300

    def __str__(self) -> str:
        """The answer in a line; where it is no success, with what the program said about that and what to do."""
        if self.is_success:
            return answered(self.status, self.milliseconds)
        line = answered(self.status, self.milliseconds, self.body.decode(errors="replace"))
        return f"{line}. {self._advice}" if self._advice else line

    @property
    def _advice(self) -> str:
        if 300 <= self.status < 400:
            return "Redirects are not followed: give --forward-to the address that answers itself."
        if self.status in (400, 401, 403):
            return "If it verifies signatures: it needs this session's secret, and the body's bytes as they came."
        if self.status in (404, 405):
            return "Does it take POST at this path? --forward-to names another."
        return ""


class Forwarder:
    """Sends events to one address, signed with one secret.

    The address is whatever the developer names, and the request comes from their machine: what the stack refuses to
    send to, plain http and addresses that are not public, is allowed here.
    """

    def __init__(self, url: str, secret: bytes, *, seconds: float = SECONDS) -> None:
        self.url = url
        self._secret, self._seconds = secret, seconds
        self._client = httpx.Client(
            timeout=seconds,
            follow_redirects=False,
            trust_env=not is_loopback(url),
            verify=certificates_for(url),
            headers={"user-agent": "Darkroom", "accept-encoding": "identity", "connection": "close"},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._client.close()

    def send(self, event: ReceivedEvent, body: str) -> ProgramAnswer:
        """Sends the event once. Raises NotAnswered."""
        began = time.monotonic()
        timestamp, content = int(time.time()), without_stored(body).encode()
        headers = {
            "content-type": "application/json",
            ID_HEADER: event.event_id,
            TIMESTAMP_HEADER: str(timestamp),
            SIGNATURE_HEADER: sign([self._secret], message_id=event.event_id, timestamp=timestamp, body=content),
        }
        try:
            with self._client.stream("POST", self.url, content=content, headers=headers) as response:
                beginning = b""
                for part in response.iter_raw():
                    beginning = (beginning + part)[:MAX_BODY_BYTES]
                    if len(beginning) == MAX_BODY_BYTES:
                        break
                    if time.monotonic() - began > self._seconds:  # it sends a byte now and then
                        raise httpx.ReadTimeout("the time was up")
        except httpx.TimeoutException as error:
            raise NotAnswered(
                f"{self.url} did not answer within {self._seconds:.0f} seconds, and would be sent the event again. "
                "Answer first, and do the work afterwards."
            ) from error
        except httpx.ConnectError as error:
            raise NotAnswered(
                f"{self.url} cannot be reached ({error}): start your program there, or correct --forward-to."
            ) from error
        except (httpx.TransportError, httpx.DecodingError) as error:
            reason = str(error) or type(error).__name__
            raise NotAnswered(f"{self.url} gave no complete answer ({reason}): see your program's log.") from error
        milliseconds = round((time.monotonic() - began) * 1000)
        return ProgramAnswer(status=response.status_code, milliseconds=milliseconds, body=beginning)


def problem_with(url: str) -> str | None:
    """Why nothing can be sent to the address, or None."""
    try:
        parts = httpx.URL(url)
    except (httpx.InvalidURL, UnicodeError) as error:
        return f"{printable(url)!r} is not a URL: {printable(str(error))}"
    if parts.scheme not in ("http", "https") or not parts.host:
        return f"{printable(url)!r} is not a URL like http://127.0.0.1:3000/webhooks."
    return None
