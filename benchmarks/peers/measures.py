"""What is measured of each peer: adding jobs, working through them, and SIGKILL to its workers and to its broker."""

from __future__ import annotations

import os
import random
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.api.__main__ import quantile
from benchmarks.engine.engines import DARKROOM, Worker, pinned
from benchmarks.engine.jobs import J4
from benchmarks.engine.sources import Source
from benchmarks.forms import by_form
from benchmarks.local.__main__ import busy_seconds
from benchmarks.peers.peers import PHOTO, QUIET_SECONDS, Peer, Scene, scene

ADDS = by_form(short=20, usual=1000)
DRAINED = by_form(short=2, usual=20)
KILLED_JOBS, KILLS = by_form(short=(2, 2), usual=(40, 10))
LOADED_SECONDS = by_form(short=0.3, usual=2.0)

_START_SECONDS, _LOOK_SECONDS = 15, 0.002
_RECOVERY_SECONDS = 2 * QUIET_SECONDS + 120
"""BullMQ looks twice for what is stalled; Celery looks for what is visible again ten seconds after its worker's start,
and then every hundred."""


def added(peer: Peer, folder: Path, durability: str) -> dict[str, Any]:
    """The milliseconds until a job is acknowledged, one after another."""
    with scene(peer, folder, durability=durability, works=False) as stage:
        if not peer.has_broker:
            stage.begin()
        stage.add("warm", 5)
        took = list(stage.add("job", ADDS if peer.has_broker else max(20, ADDS // 10)).values())
    return {"peer": peer.title, "fsync": durability if peer.has_broker else "in memory",
            "p50_ms": quantile(took, 0.5), "p99_ms": quantile(took, 0.99)}  # fmt: skip


def drained(peer: Peer, folder: Path, cores: int) -> dict[str, Any]:
    """How fast jobs are worked through, and the processor's time for each, by so many workers on as many cores; with
    one, the broker shares it."""
    with pinned(_last_core()) if cores == 1 else nullcontext(), scene(peer, folder) as stage:
        stage.begin(cores)
        _finish(stage, stage.add("warm", 2 * cores))
        before = _busy(stage)
        names = stage.add("job", DRAINED)
        _finish(stage, names)
        workers, broker = (1000 * (now - then) / DRAINED for now, then in zip(_busy(stage), before, strict=True))
        begun = min(at for name, at in stage.events("start") if name in names)
        ended = max(at for name, at in stage.events("end") if name in names)
        written = sum(file.stat().st_size for file in (folder / "out" / "job-0").iterdir())
    return {"peer": peer.title, "cores": cores, "per_second": DRAINED / (ended - begun), "cpu_ms": workers,
            "broker_cpu_ms": broker, "bytes": written}  # fmt: skip


def engine_alone() -> dict[str, Any]:
    """The processor's time of our engine for the same variants, without anything around it."""
    source = Source(name="photo", short_title="photo", note="", path=PHOTO, width=5312, height=2988, jobs=(J4,))
    with Worker(DARKROOM, core=_last_core()) as worker:
        ran = [worker.run(source, J4) for _ in range(1 + DRAINED // 2)][1:]
    return {"peer": "Darkroom's engine alone", "cores": 1, "cpu_ms": median(each.cpu_ms for each in ran),
            "bytes": sum(ran[0].sizes.values())}  # fmt: skip


def workers_killed(peer: Peer, folder: Path) -> dict[str, Any]:
    """Jobs whose worker is killed again and again: in turns amid a job, and after its work but before the broker
    hears that it is done. The plain handler loses what it holds at the first kill."""
    chance, struck = random.Random(1), []
    with scene(peer, folder) as stage:
        stage.begin()
        names = stage.add("job", KILLED_JOBS)
        for number in range(KILLS if peer.has_broker else 1):
            seen = len(stage.events("start"))
            if number % 2:
                stage.strike.touch()
            if not _until(lambda: not stage.strike.exists() if number % 2 else len(stage.events("start")) > seen):  # noqa: B023
                stage.strike.unlink(missing_ok=True)
                break
            time.sleep(0 if number % 2 else chance.uniform(0.02, 0.2))
            stage.kill()
            struck.append((stage.events("start")[-1][0], time.time()))
            stage.begin()
        stage.wait(names, patience_seconds=_RECOVERY_SECONDS if peer.has_broker else 3)
        if peer.has_broker:  # a job that was done and never acknowledged comes again, when all others are over
            _until(lambda: all(_after(stage, *each) for each in struck), _RECOVERY_SECONDS)
        ends = Counter(name for name, _ in stage.events("end"))
        recovered = [after[0] - at for name, at in struck if (after := _after(stage, name, at))]
    return {"peer": peer.title, "kills": len(struck), "jobs": len(names), "lost": len(set(names) - set(ends)),
            "made_twice": sum(count > 1 for count in ends.values()),
            "recovered_s_p50": median(recovered) if recovered else None,
            "recovered_s_worst": max(recovered, default=None)}  # fmt: skip


def broker_killed(peer: Peer, folder: Path, durability: str) -> dict[str, Any]:
    """Jobs that were acknowledged while the broker was killed, and those of them that are never done after its return.

    SIGKILL leaves what the server has written with the kernel; a machine that loses its power may lose, with
    `everysec`, what was acknowledged in the last second before.
    """
    with scene(peer, folder, durability=durability, works=False) as stage:
        producer = stage.producing("job", 1_000_000)
        if not _until(stage.acknowledged):
            raise TimeoutError(f"{peer.title} added nothing: {(folder / 'producer.log').read_text()}")
        time.sleep(LOADED_SECONDS)
        before = len(stage.acknowledged())
        stage.end_broker()
        with suppress(subprocess.TimeoutExpired):
            producer.wait(5)
        producer.kill()
        producer.wait()
        names = stage.acknowledged()
        stage.start_broker()
        stage.begin()
        stage.wait(names, patience_seconds=_START_SECONDS)
        lost = set(names) - {name for name, _ in stage.events("end")}
    return {"peer": peer.title, "fsync": durability, "acknowledged": len(names), "lost": len(lost),
            "acknowledged_per_second": before / LOADED_SECONDS}  # fmt: skip


def _last_core() -> int:
    return max(os.sched_getaffinity(0))


def _busy(stage: Scene) -> tuple[float, float]:
    workers = sum(busy_seconds(process.pid) for process in stage.processes)
    return workers, busy_seconds(stage.broker.process.pid) if stage.broker else 0.0


def _finish(stage: Scene, names: dict[str, float]) -> None:
    if not stage.wait(names, patience_seconds=60):
        raise TimeoutError(f"{stage.peer.title} did not end its jobs: {(stage.folder / 'worker.log').read_text()}")


def _after(stage: Scene, name: str, at: float) -> list[float]:
    """When this job ended after that instant."""
    return [ended for other, ended in stage.events("end") if other == name and ended > at]


def _until(condition: Callable[[], object], patience_seconds: float = _START_SECONDS) -> bool:
    deadline = time.monotonic() + patience_seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_LOOK_SECONDS)
    return True
