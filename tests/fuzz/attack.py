"""Sends inputs to worker processes with a memory limit, and determines why a worker died."""

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
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from repository.report import ROOT
from tests.fuzz.hostile import Case, hostile_cases
from tests.fuzz.mutants import mutant, source_of
from tests.fuzz.photographs import photographs
from tests.fuzz.worker import CPU_BACKSTOP_SECONDS, MEGABYTE, NO_MEMORY, Result

MEMORY_LIMIT = 512 * MEGABYTE
CRASH = "crash"
PHOTOGRAPH = "photograph-"
"""How the names of inputs begin that are, or are made of, whole photographs."""

# libvips says nothing of damaged files, as on AWS (template.yaml).
_ENVIRONMENT = {"PYTHONPATH": os.pathsep.join(str(ROOT / part) for part in ("layers/core", ".")), "VIPS_WARNING": "0"}


@dataclass(frozen=True, kw_only=True)
class Attack:
    """One input, by the name that a report has for it; `format` is that of the file that it was made from.

    A worker makes a small mutant by its `seed` itself. Making anything else takes more memory than its work.
    """

    name: str
    format: str
    make: Callable[[], bytes]
    seed: int | None = None

    def request(self, folder: Path) -> dict[str, Any]:
        """What a worker receives."""
        if self.seed is not None:
            return {"mutant": int(self.name), "seed": self.seed}
        path = folder / self.name
        path.write_bytes(self.make())
        return {"name": self.name, "format": self.format, "path": str(path)}


def hostile_attack(case: Case) -> Attack:
    """A file of the hostile set."""
    return Attack(name=case.name, format=_format(case.name), make=case.make)


def mutant_attack(index: int, *, seed: int) -> Attack:
    """A mutant of a small file."""
    source = source_of(index, seed=seed)
    return Attack(name=str(index), format=_format(source), make=lambda: mutant(index, seed=seed).body, seed=seed)


def photograph_attack(name: str) -> Attack:
    """A whole photograph, undamaged."""
    return Attack(name=f"{PHOTOGRAPH}{name}", format=_format(name), make=lambda: photographs()[name])


def photograph_mutant_attack(index: int, *, seed: int) -> Attack:
    """A mutant of a whole photograph."""
    source = source_of(index, seed=seed, files=photographs)
    return Attack(
        name=f"{PHOTOGRAPH}{index}",
        format=_format(source),
        make=lambda: mutant(index, seed=seed, files=photographs).body,
    )


def attack_named(name: str, *, seed: int) -> Attack:
    """The input that a report names: `17` is a mutant, `photograph-17` a whole photograph's. Raises KeyError."""
    if name.startswith(PHOTOGRAPH):
        rest = name.removeprefix(PHOTOGRAPH)
        return photograph_mutant_attack(int(rest), seed=seed) if rest.isdecimal() else photograph_attack(rest)
    return mutant_attack(int(name), seed=seed) if name.isdecimal() else hostile_attack(hostile_cases()[name])


def is_mutant(name: str) -> bool:
    """Whether an input is one of countless mutants, which may end with any refusal that has a code."""
    return name.removeprefix(PHOTOGRAPH).isdecimal()


def _format(source: str) -> str:
    return source.partition("-")[0]


def attacks(inputs: Iterable[Attack], *, jobs: int, memory_limit: int = MEMORY_LIMIT) -> Iterator[Result]:
    """How each input ended, in no particular order, from `jobs` workers.

    Memory is limited as on AWS Lambda: a process whose resident memory exceeds `memory_limit` is killed. Its high-water
    mark, which the kernel keeps without gaps, decides the verdict; polling only does the killing. RLIMIT_AS would count
    address space that nobody touches (the stacks of libvips's threads and the arenas of malloc are hundreds of
    megabytes), and both it and RLIMIT_DATA would make malloc fail, which a decoder reports as a damaged file: running
    out of memory would pass for a polite refusal. (Where the engine itself uses RLIMIT_DATA, that is its intention.)
    RLIMIT_RSS has had no effect since Linux 2.4.30, and a cgroup needs root.
    """
    source = iter(inputs)
    taking, stop = threading.Lock(), threading.Event()
    results: queue.SimpleQueue[Result | None] = queue.SimpleQueue()

    def work() -> None:
        try:
            with Worker(memory_limit=memory_limit) as worker:
                while not stop.is_set():
                    with taking:
                        attack = next(source, None)
                    if attack is None:
                        return
                    results.put(worker.attack(attack))
        finally:
            results.put(None)

    with ThreadPoolExecutor(jobs) as pool:
        working = [pool.submit(work) for _ in range(jobs)]
        try:
            for _ in working:
                while (result := results.get()) is not None:
                    yield result
        finally:
            stop.set()
    for ended in working:
        ended.result()


class Worker:
    """A worker process that is replaced when it dies.

    It is killed when it holds more than `memory_limit`, which is checked every `poll_seconds` (a process can touch some
    10 MB in the meantime), or when it has not answered for `patience_seconds`: a process that waits for ever uses no
    processor time. `baseline_bytes` is what it held before its first input.
    """

    def __init__(self, *, memory_limit: int, patience_seconds: float = 180, poll_seconds: float = 0.005) -> None:
        self.memory_limit = memory_limit
        self.baseline_bytes = 0
        self._patience_seconds = patience_seconds
        self._poll_seconds = poll_seconds
        self._folder = tempfile.TemporaryDirectory(prefix="darkroom-fuzz-")
        self._log = Path(self._folder.name, "worker.log")
        self._process: subprocess.Popen[str] | None = None
        # Shared by the guard and the attacker: since when the process works, and why it was killed.
        self._lock = threading.Lock()
        self._busy_since: float | None = None
        self._over_memory = self._over_time = False
        self._ended = threading.Event()
        self._guard = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Worker:
        self._guard.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._guard.join()
        self._end()
        self._folder.cleanup()

    @property
    def process_id(self) -> int:
        """Of the process that handles the next input."""
        return self._started().pid

    def attack(self, attack: Attack) -> Result:
        """How `one` ended; there is an answer whatever happens to the worker."""
        process = self._started()
        request = attack.request(Path(self._folder.name))
        assert process.stdin is not None and process.stdout is not None
        with self._lock:
            self._busy_since = time.monotonic()
        line = ""
        with suppress(BrokenPipeError):
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        with self._lock:
            self._busy_since = None
        if "path" in request:
            Path(request["path"]).unlink()
        result = Result(**json.loads(line)) if line else self._post_mortem(attack, process)
        if self._over_memory or self._over_time:
            self._end()  # it may have answered just before it was killed: the next input must not suffer
        if result.peak_bytes > self.memory_limit and result.outcome != NO_MEMORY:
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
                [sys.executable, "-m", "tests.fuzz.worker"],
                cwd=ROOT,
                env={**os.environ, **_ENVIRONMENT},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert process.stdout is not None
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

    def _post_mortem(self, attack: Attack, process: subprocess.Popen[str]) -> Result:
        """The worker is dead: from its own signal, or because it was killed for memory or time."""
        code = process.wait()
        self._end()
        peak = 0
        if self._over_memory:
            outcome, detail, peak = NO_MEMORY, "killed: over the limit of memory", self.memory_limit + 1
        elif self._over_time:
            outcome, detail = CRASH, f"killed: no answer in {self._patience_seconds:g} s"
        elif code == -signal.SIGXCPU:
            outcome, detail = CRASH, f"killed: over {CPU_BACKSTOP_SECONDS} s of processor time"
        elif code < 0:
            outcome, detail = CRASH, f"killed by {signal.Signals(-code).name}\n{self._last_words()}"
        else:
            outcome, detail = CRASH, f"exited with {code}\n{self._last_words()}"
        seconds = float(CPU_BACKSTOP_SECONDS) if code == -signal.SIGXCPU else 0.0
        return Result(
            name=attack.name,
            format=attack.format,
            outcome=outcome,
            cpu_seconds=seconds,
            peak_bytes=peak,
            detail=detail,
            start_bytes=0,
        )

    def _last_words(self) -> str:
        return self._log.read_text(errors="replace")[-4000:]

    def _watch(self) -> None:
        while not self._ended.wait(self._poll_seconds):
            with self._lock:
                if self._process is not None and self._busy_since is not None:
                    self._over_memory = _resident_bytes(self._process.pid) > self.memory_limit
                    self._over_time = time.monotonic() - self._busy_since > self._patience_seconds
                    if self._over_memory or self._over_time:
                        self._process.kill()
                        self._busy_since = None

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


def _resident_bytes(process_id: int) -> int:
    try:
        return int(Path(f"/proc/{process_id}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):  # it has just ended
        return 0
