"""Sends inputs to worker processes that are held to a limit of memory, and names what a worker died of."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.fuzz.hostile import Case, hostile_cases
from benchmarks.fuzz.mutants import mutant
from benchmarks.fuzz.worker import CPU_BACKSTOP_SECONDS, MEGABYTE, NO_MEMORY, Result
from benchmarks.report import ROOT

MEMORY_LIMIT = 512 * MEGABYTE
CRASH = "crash"

# libvips says nothing of damaged files, as on AWS (template.yaml).
_ENVIRONMENT = {"PYTHONPATH": os.pathsep.join(str(ROOT / part) for part in ("layers/core", ".")), "VIPS_WARNING": "0"}

_WALL_BACKSTOP_SECONDS = 180
"""How long an input may take by the clock: a worker that waits for ever uses no processor time."""

_POLL_SECONDS = 0.005
"""How often memory is looked at: a process can touch some 10 MB in the meantime."""


@dataclass(frozen=True, kw_only=True)
class Attack:
    """One input: a mutant by its number, or a hostile file by its name."""

    name: str
    seed: int | None
    make: Callable[[], bytes]

    @property
    def format(self) -> str:
        """The format of what it was made from."""
        source = self.name if self.seed is None else mutant(int(self.name), seed=self.seed).source
        return source.partition("-")[0]

    def request(self, folder: Path) -> dict[str, Any]:
        """What a worker is told. Mutants it makes itself; a hostile file takes more memory to make than to develop."""
        if self.seed is not None:
            return {"mutant": int(self.name), "seed": self.seed}
        path = folder / self.name
        path.write_bytes(self.make())
        return {"name": self.name, "path": str(path)}


def hostile_attack(case: Case) -> Attack:
    """A file of the hostile set."""
    return Attack(name=case.name, seed=None, make=case.make)


def mutant_attack(index: int, *, seed: int) -> Attack:
    """A mutant."""

    def make() -> bytes:
        return mutant(index, seed=seed).body

    return Attack(name=str(index), seed=seed, make=make)


def attack_named(name: str, *, seed: int) -> Attack:
    """The input that a report names: a number is a mutant's. Raises KeyError."""
    return mutant_attack(int(name), seed=seed) if name.isdecimal() else hostile_attack(hostile_cases()[name])


def attacks(inputs: Iterable[Attack], *, jobs: int, memory_limit: int = MEMORY_LIMIT) -> Iterator[Result]:
    """How each input ended, in no particular order, from as many workers as `jobs`.

    Memory is bounded as on AWS Lambda: a process whose resident memory passes `memory_limit` is killed. Its high-water
    mark, which the kernel keeps without gaps, is the verdict; polling only does the killing. RLIMIT_AS would count
    address space that nobody touches (the stacks of libvips's threads and the arenas of malloc are hundreds of
    megabytes), and both it and RLIMIT_DATA would make malloc fail, which a decoder reports as a damaged file: a lack of
    memory would pass for a polite refusal. RLIMIT_RSS does nothing since Linux 2.4.30, and a cgroup needs root.
    """
    # Small batches keep workers busy while their answers travel, and are few enough to be lost to nobody.
    waiting: queue.Queue[Attack | None] = queue.Queue(maxsize=jobs * 4)
    results: queue.Queue[Result | BaseException | None] = queue.Queue()
    stop = threading.Event()

    def feed() -> None:
        try:
            for one in inputs:
                while not stop.is_set():
                    with suppress(queue.Full):
                        waiting.put(one, timeout=0.2)
                        break
        except BaseException as error:
            results.put(error)
        for _ in range(jobs):
            waiting.put(None)

    def work() -> None:
        try:
            with Worker(memory_limit=memory_limit) as worker:
                while (one := waiting.get()) is not None and not stop.is_set():
                    results.put(worker.attack(one))
        except BaseException as error:
            results.put(error)
        results.put(None)

    threads = [threading.Thread(target=target, daemon=True) for target in (feed, *[work] * jobs)]
    for thread in threads:
        thread.start()
    working = jobs
    try:
        while working:
            result = results.get()
            if isinstance(result, BaseException):
                raise result
            if result is None:
                working -= 1
            else:
                yield result
    finally:
        stop.set()
        while any(thread.is_alive() for thread in threads):
            with suppress(queue.Empty):
                waiting.get_nowait()
            with suppress(queue.Full):
                waiting.put_nowait(None)
            time.sleep(0.01)


@dataclass
class Worker:
    """A worker process that is replaced when it dies."""

    memory_limit: int
    baseline_bytes: int = 0
    """What the process holds before its first input: the interpreter, the libraries, and what they set up once."""
    _process: subprocess.Popen[str] | None = None
    _over_memory: bool = False
    _over_time: bool = False
    _busy_since: float | None = None
    _guard: threading.Thread | None = field(default=None, repr=False)
    _ended: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Worker:
        self._folder = tempfile.TemporaryDirectory(prefix="darkroom-fuzz-")
        self._log = Path(self._folder.name, "worker.log")
        self._guard = threading.Thread(target=self._watch, daemon=True)
        self._guard.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._guard is not None:
            self._guard.join()
        self._end()
        self._folder.cleanup()

    @property
    def process_id(self) -> int:
        """Of the process that takes the next input."""
        return self._started().pid

    def attack(self, one: Attack) -> Result:
        """How `one` ended; whatever becomes of the worker, there is an answer."""
        process = self._started()
        request = one.request(Path(self._folder.name))
        assert process.stdin is not None and process.stdout is not None  # noqa: S101 -- they are pipes
        self._busy_since = time.monotonic()
        line = ""
        with suppress(BrokenPipeError):
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        self._busy_since = None
        if "path" in request:
            Path(request["path"]).unlink()
        result = Result(**json.loads(line)) if line else self._post_mortem(one, process)
        if result.peak_bytes > self.memory_limit:
            result = replace(
                result, outcome=NO_MEMORY, detail=f"peak {result.peak_bytes // MEGABYTE} MB\n{result.detail}"
            )
        return result

    def _started(self) -> subprocess.Popen[str]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        self._over_memory = self._over_time = False
        with self._log.open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.fuzz.worker"],
                cwd=ROOT,
                env={**os.environ, **_ENVIRONMENT},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert process.stdout is not None  # noqa: S101 -- it is a pipe
        ready = process.stdout.readline()
        if not ready:
            process.wait()
            raise RuntimeError(f"a worker could not be started:\n{self._last_words()}")
        first = Result(**json.loads(ready))
        if first.outcome != "developed":
            raise RuntimeError(f"a worker could not develop a plain JPEG: {first.outcome}\n{first.detail}")
        self.baseline_bytes = first.peak_bytes
        self._process = process
        return process

    def _post_mortem(self, one: Attack, process: subprocess.Popen[str]) -> Result:
        """The worker is dead: of a signal of its own, or because it was killed for memory or time."""
        code = process.wait()
        self._end()
        peak = 0
        if self._over_memory:
            outcome, detail, peak = NO_MEMORY, "killed: over the limit of memory", self.memory_limit + 1
        elif self._over_time:
            outcome, detail = CRASH, f"killed: no answer in {_WALL_BACKSTOP_SECONDS} s"
        elif code == -signal.SIGXCPU:
            outcome, detail = CRASH, f"killed: over {CPU_BACKSTOP_SECONDS} s of processor time"
        elif code < 0:
            outcome, detail = CRASH, f"killed by {signal.Signals(-code).name}\n{self._last_words()}"
        else:
            outcome, detail = CRASH, f"exited with {code}\n{self._last_words()}"
        seconds = float(CPU_BACKSTOP_SECONDS) if code == -signal.SIGXCPU else 0.0
        return Result(
            name=one.name,
            format=one.format,
            outcome=outcome,
            cpu_seconds=seconds,
            peak_bytes=peak,
            detail=detail,
            start_bytes=0,
        )

    def _last_words(self) -> str:
        return self._log.read_text(errors="replace")[-4000:]

    def _watch(self) -> None:
        page = os.sysconf("SC_PAGE_SIZE")
        while not self._ended.wait(_POLL_SECONDS):
            process, since = self._process, self._busy_since
            if process is None or since is None:
                continue
            try:
                resident = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * page
            except (OSError, IndexError):  # it has just ended
                continue
            self._over_memory = self._over_memory or resident > self.memory_limit
            self._over_time = time.monotonic() - since > _WALL_BACKSTOP_SECONDS
            if self._over_memory or self._over_time:
                process.kill()

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        process.kill()
        process.wait()
