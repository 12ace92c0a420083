"""A public address that is on loopback, for these tests alone: the product has no parameter, setting or variable that
would do what is replaced here."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Sequence
from ipaddress import ip_address

import pytest

from darkroom.egress import connection
from darkroom.egress.addresses import Address
from tests.unit.egress.certificates import Authority

LOOPBACK = ip_address("127.0.0.1")


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


class Internet:
    """Where connections are led instead of to public addresses, to which addresses they were to go, how long each was
    to be waited for, and which names were resolved."""

    def __init__(self) -> None:
        self.port = 0
        self.opened: list[tuple[str, int]] = []
        self.patience: list[float] = []
        self.resolved: list[str] = []
        self.addresses: Sequence[str] = ["93.184.215.14"]

    def resolve(self, host: str) -> Sequence[str]:
        self.resolved.append(host)
        return self.addresses


@pytest.fixture(scope="session")
def trusting(authority: Authority) -> ssl.SSLContext:
    """A context like the product's, which trusts the tests' authority besides the system's."""
    context = connection.tls_context.__wrapped__()  # a new one: the product's is not touched
    context.load_verify_locations(cadata=authority.pem)
    return context


@pytest.fixture
def internet(monkeypatch: pytest.MonkeyPatch, trusting: ssl.SSLContext) -> Internet:
    """Leads every connection to `port` on loopback."""
    internet = Internet()
    open_socket = connection.open_socket

    def open_on_loopback(address: Address, port: int, seconds: float) -> socket.socket:
        internet.opened.append((str(address), port))
        internet.patience.append(seconds)
        return open_socket(LOOPBACK, internet.port, seconds)

    monkeypatch.setattr(connection, "open_socket", open_on_loopback)
    monkeypatch.setattr(connection, "tls_context", lambda: trusting)
    return internet


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The addresses to which any socket of this process was to connect; none does."""
    tried: list[object] = []

    def refuse(_: socket.socket, address: object) -> None:
        tried.append(address)
        raise ConnectionRefusedError("no connection in this test")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket.socket, "connect_ex", refuse)
    return tried
