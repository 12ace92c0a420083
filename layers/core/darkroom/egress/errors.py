"""What is told about a URL that cannot be used, and about a request that got no response."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from darkroom.domain.kernel.errors import Rejected, Retryable

type Reason = Literal[
    "length",
    "characters",
    "scheme",
    "credentials",
    "fragment",
    "port",
    "host",
    "address",
    "private_name",
]
"""What is wrong with a URL: the first of these that applies."""


class UrlRefused(Rejected):
    """No request is ever sent to this URL; `message` is a sentence for its owner that says what to do."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__("invalid_url", message)
        self.reason: Reason = reason


class EgressFailureKind(StrEnum):
    """Why a request failed, as a log shows it."""

    DNS = "dns"
    """The host has no address, or no name server knew."""

    REFUSED_ADDRESS = "refused_address"
    """An address of the host is not public; nothing was connected to."""

    CONNECT = "connect"
    """No address accepted a connection."""

    TLS = "tls"
    """The certificate is not valid for the host, or no common version of TLS was found."""

    TIMEOUT = "timeout"
    """The time was up, at whichever step."""

    PROTOCOL = "protocol"
    """What came is not HTTP, or is more of it than is read."""

    RESET = "reset"
    """The other side closed the connection before the response was complete."""


class RequestFailed(Retryable):
    """A request got no complete response, `milliseconds` after it began; the same request may succeed later, whatever
    the `kind`: names and addresses change, too. The other side may have acted on it.

    The message names no address, path or query, so that a log may show it to the URL's owner and to operators.
    """

    def __init__(self, kind: EgressFailureKind, message: str, *, milliseconds: int) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.milliseconds = milliseconds
        self.was_unreached = False
        """Whether no connection came about, under TLS if it is to be: no request was sent."""
