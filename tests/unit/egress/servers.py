"""Servers on this machine's loopback that answer well, badly, slowly or without end."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Event, Thread

type Behaviour = Callable[[socket.socket, "Server"], None]
"""What a server does with a connection, after the handshake if it has TLS."""


@dataclass
class Server:
    """A server, and what happened to it: how many connections were made, and what it was sent and did send."""

    port: int
    connections: int = 0
    received: bytes = b""
    sent_bytes: int = 0
    stopping: Event = field(default_factory=Event)

    def hear(self, connection: socket.socket) -> bytes:
        """Receives a whole request."""
        while b"\r\n\r\n" not in self.received:
            self._receive(connection)
        head, _, body = self.received.partition(b"\r\n\r\n")
        for line in head.lower().split(b"\r\n"):
            name, _, value = line.partition(b":")
            if name == b"content-length":
                while len(body) < int(value):
                    self._receive(connection)
                    body = self.received.partition(b"\r\n\r\n")[2]
        return body

    def _receive(self, connection: socket.socket) -> None:
        data = connection.recv(65_536)
        if not data:
            raise ConnectionResetError
        self.received += data

    def say(self, connection: socket.socket, data: bytes) -> None:
        """Sends all of the data."""
        connection.sendall(data)
        self.sent_bytes += len(data)

    def drip(self, connection: socket.socket, data: bytes, *, then: bytes = b"") -> None:
        """Sends byte by byte, each long before a timeout per read would end; two seconds later the rest, and `then`."""
        for position in range(40):
            if self.stopping.wait(0.05):
                return
            self.say(connection, data[position : position + 1])
        self.say(connection, data[40:] + then)


@contextmanager
def serving(behaviour: Behaviour, context: ssl.SSLContext | None = None, *, backlog: int = 8) -> Iterator[Server]:
    """A server that treats each connection like that, in a thread of its own."""
    with socket.create_server(("127.0.0.1", 0), backlog=backlog) as listener:
        server = Server(port=listener.getsockname()[1])
        threads: list[Thread] = []

        def treat(connection: socket.socket) -> None:
            with connection, suppress(OSError):
                if context is None:
                    behaviour(connection, server)
                    return
                with context.wrap_socket(connection, server_side=True) as secured:
                    behaviour(secured, server)

        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:  # closed
                    return
                connection.settimeout(20)
                server.connections += 1
                threads.append(Thread(target=treat, args=(connection,), daemon=True))
                threads[-1].start()

        accepting = Thread(target=accept, daemon=True)
        accepting.start()
        try:
            yield server
        finally:
            server.stopping.set()
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            accepting.join()
            for thread in threads:
                thread.join()


def answering(response: bytes) -> Behaviour:
    """Hears the request, and answers with these bytes."""

    def behave(connection: socket.socket, server: Server) -> None:
        server.hear(connection)
        server.say(connection, response)

    return behave
