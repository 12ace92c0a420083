"""Connects to a host of a URL: resolves its name once, checks every address, and connects to one of these very
addresses, all before a deadline.

Who checks a name and then gives the name to an HTTP client is attacked by a name server that answers differently the
second time (DNS rebinding). Here nothing behind the check knows the name, except the certificate's check.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from functools import cache
from http.client import HTTPException
from ipaddress import ip_address
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING

from darkroom.egress.addresses import is_public
from darkroom.egress.errors import EgressFailureKind, RequestFailed

if TYPE_CHECKING:
    from darkroom.egress.addresses import Address
    from darkroom.egress.urls import Url

type Resolve = Callable[[str], Sequence[str]]
"""Returns the addresses of a host name, as text. Raises OSError if it has none or nobody knows."""

CONNECT_SECONDS = 5.0
"""How long one address may take to accept a connection, so that another one gets its chance."""

MAX_TRIED_ADDRESSES = 3
"""To how many of a host's addresses one request tries to connect."""


class Deadline:
    """The end of a request's time. Every wait is bounded by what is left of it: a timeout per read would never end for
    a server that sends a byte now and then."""

    def __init__(self, seconds: float) -> None:
        self._began = monotonic()
        self._ends = self._began + seconds

    @property
    def milliseconds(self) -> int:
        """How long the request has taken until now."""
        return round((monotonic() - self._began) * 1000)

    def left(self) -> float:
        """The seconds until then. Raises TimeoutError if there are none."""
        seconds = self._ends - monotonic()
        if seconds <= 0:
            raise TimeoutError("the time was up")
        return seconds

    def failed(self, kind: EgressFailureKind, message: str) -> RequestFailed:
        """The error of a request that failed now."""
        return RequestFailed(kind, message, milliseconds=self.milliseconds)

    def failed_by(self, error: Exception, doing: str) -> RequestFailed:
        """The error of a request that `error` ended while it was doing that."""
        if isinstance(error, TimeoutError):
            return self.failed(EgressFailureKind.TIMEOUT, f"the time was up while {doing}")
        if isinstance(error, ssl.SSLEOFError | ConnectionError):
            return self.failed(EgressFailureKind.RESET, f"the connection was closed while {doing}")
        if isinstance(error, HTTPException | ValueError):
            return self.failed(
                EgressFailureKind.PROTOCOL, f"the response is no HTTP, or too long a head ({type(error).__name__})"
            )
        return self.failed(EgressFailureKind.RESET, f"the connection failed while {doing} ({type(error).__name__})")


def system_addresses(host: str) -> Sequence[str]:
    """The addresses that the system's resolver knows for a host name.

    With a dot at its end the name is absolute: the resolver's search list could complete it otherwise, by names of the
    local network. As bytes it is sent as it is, whatever IDNA would make of it.
    """
    # guard: egress-absolute-host-name
    addresses = socket.getaddrinfo(f"{host}.".encode("ascii"), None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in addresses))


def checked_addresses(host: str, deadline: Deadline, resolve: Resolve) -> list[Address]:
    """The addresses of a host, all of which are public: IPv4 first, because a function outside a VPC has no IPv6.

    One address that is not public refuses the host: its owner has none such, and an attacker would have another one
    for the check only. Raises RequestFailed.
    """
    answers: SimpleQueue[Sequence[str] | Exception] = SimpleQueue()

    def ask() -> None:
        try:
            answers.put(resolve(host))
        except Exception as error:
            answers.put(error)

    # getaddrinfo cannot be interrupted, and has no timeout but those of resolv.conf, after which the thread ends.
    Thread(target=ask, name="resolve", daemon=True).start()
    try:
        answer = answers.get(timeout=deadline.left())  # guard: egress-resolution-deadline
    except (Empty, TimeoutError) as error:
        raise deadline.failed(
            EgressFailureKind.TIMEOUT, "the time was up while the host's name was resolved"
        ) from error
    if isinstance(answer, OSError):
        raise deadline.failed(EgressFailureKind.DNS, "the host's name could not be resolved") from answer
    if isinstance(answer, Exception):
        raise answer
    if not answer:
        raise deadline.failed(EgressFailureKind.DNS, "the host's name has no address")
    addresses = [ip_address(text) for text in answer]
    if not all(map(is_public, addresses)):  # guard: egress-every-address-checked
        raise deadline.failed(EgressFailureKind.REFUSED_ADDRESS, "the host has an address that is not public")
    return sorted(addresses, key=lambda address: address.version)


def connect(url: Url, deadline: Deadline, resolve: Resolve) -> socket.socket:
    """A connection to the URL's host, which has proved by its certificate that it is that host. The caller closes it.
    Raises RequestFailed."""
    addresses = url.loopback or checked_addresses(url.host, deadline, resolve)  # guard: egress-addresses-checked
    # guard: egress-single-resolution, egress-tried-addresses-bound
    connection = _first_that_accepts(addresses[:MAX_TRIED_ADDRESSES], url.port, deadline)
    return connection if url.loopback else _secured(connection, url.host, deadline)


def _first_that_accepts(addresses: Sequence[Address], port: int, deadline: Deadline) -> socket.socket:
    failure = OSError()
    for address in addresses:
        try:
            # guard: egress-connection-deadline
            return open_socket(address, port, min(CONNECT_SECONDS, deadline.left()))
        except OSError as error:
            failure = error
    if isinstance(failure, TimeoutError):
        raise deadline.failed(EgressFailureKind.TIMEOUT, "the time was up while connecting") from failure
    raise deadline.failed(EgressFailureKind.CONNECT, "the host does not accept connections on this port") from failure


def open_socket(address: Address, port: int, seconds: float) -> socket.socket:
    """A TCP connection to that address. It is given as a number, so that nothing is resolved. Raises OSError."""
    connection = socket.socket(socket.AF_INET if address.version == 4 else socket.AF_INET6, socket.SOCK_STREAM)
    try:
        connection.settimeout(seconds)
        connection.connect((str(address), port))
    except BaseException:
        connection.close()
        raise
    return connection


def _secured(connection: socket.socket, host: str, deadline: Deadline) -> ssl.SSLSocket:
    """The connection under TLS, after a handshake. OpenSSL's calls are each bounded as a whole by the socket's timeout,
    however slowly the other side sends (Modules/_ssl.c of CPython: `_PyDeadline_Get`)."""
    with ExitStack() as unfinished:
        unfinished.enter_context(closing(connection))  # once it is wrapped, it has nothing left to close
        try:
            secured = tls_context().wrap_socket(
                connection,
                server_hostname=host,
                do_handshake_on_connect=False,
                suppress_ragged_eofs=False,  # who reads decides what a missing closure alert means
            )
            unfinished.enter_context(closing(secured))
            secured.settimeout(deadline.left())  # guard: egress-handshake-deadline
            secured.do_handshake()
        except OSError as error:
            raise _disagreement(error, deadline) from error
        unfinished.pop_all()
        return secured


_OTHER_NAME = frozenset({62, 64})
"""X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH, whose texts name the host (Modules/_ssl.c)."""


def _disagreement(error: OSError, deadline: Deadline) -> RequestFailed:
    if isinstance(error, ssl.SSLCertVerificationError):
        is_other = error.verify_code in _OTHER_NAME  # guard: egress-certificate-text-no-host
        why = "it is another host's" if is_other else error.verify_message.removesuffix(".")
        return deadline.failed(EgressFailureKind.TLS, f"the certificate was not accepted: {why}")
    if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError):
        return deadline.failed(EgressFailureKind.TLS, f"TLS failed: {error.reason}")
    return deadline.failed_by(error, "agreeing on TLS")


@cache
def tls_context() -> ssl.SSLContext:
    """Which certificates and versions of TLS are accepted.

    The authorities are the system's, which are updated with Lambda's runtime. In Amazon Linux 2023, and so in
    python3.13, OpenSSL's directory is /etc/pki/tls: its cert.pem leads to ca-trust/extracted/pem/tls-ca-bundle.pem, as
    certs/ca-bundle.crt does (https://github.com/aws/aws-lambda-dotnet/pull/1661). Reading it takes 65 ms of a whole
    processor there (https://github.com/aws/aws-lambda-base-images/issues/154): once per process, for its first request.
    """
    context = ssl.create_default_context()  # guard: egress-certificate-verified
    context.minimum_version = ssl.TLSVersion.TLSv1_2  # guard: egress-tls-minimum-version
    # guard: egress-certificate-host-match, egress-common-name-ignored
    context.hostname_checks_common_name = False  # only alternative names count (RFC 9525, section 1.4)
    context.set_alpn_protocols(["http/1.1"])
    return context
