"""The worker's own processor time for a small photo: its warm handler's, less that of the engine alone.

    python benchmarks/memory/around.py

The first line of JSON on standard input is a delivery, as `benchmarks.memory.function` takes them. Each further line
asks for one round: a line of JSON with the CPU milliseconds of the handler and then of the engine, with the same photo
and the same recipe. It is run by its path, so that everything that it measures is that of the tree on PYTHONPATH.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import IO, Any, cast

SMALL_SHARE = 0.4
"""The goal: the worker's own code takes at most this part of what the engine takes."""

type Rounds = Sequence[tuple[float, float]]


def rounds_of(
    trees: Mapping[str, Path], environment: Mapping[str, str], delivery: str, count: int
) -> dict[str, Rounds]:
    """Rounds of each tree, taking turns: the milliseconds of the handler and of the engine. The first two of each warm
    it up and are left out."""
    timings: dict[str, list[tuple[float, float]]] = {name: [] for name in trees}
    with ExitStack() as stack:
        ask = {name: stack.enter_context(_worker(tree, environment, delivery)) for name, tree in trees.items()}
        for number in range(count + 2):
            for name in ask if number % 2 else reversed(ask):
                timings[name].append(ask[name]())
    return {name: those[2:] for name, those in timings.items()}


def summary(build: str, rounds: Rounds) -> dict[str, Any]:
    """Medians over the rounds: what is around the engine is the difference within each."""
    around, engine = median(handler - engine for handler, engine in rounds), median(engine for _, engine in rounds)
    return {
        "build": build,
        "around_ms": round(around, 2),
        "engine_ms": round(engine, 2),
        "share": round(around / engine, 3),
    }


@contextmanager
def _worker(tree: Path, environment: Mapping[str, str], delivery: str) -> Iterator[Callable[[], tuple[float, float]]]:
    paths = {"PYTHONPATH": os.pathsep.join(str(tree / part) for part in ("scripts", "cli", "layers/core", "."))}
    with subprocess.Popen(
        [sys.executable, __file__],
        cwd=tree,
        env={**environment, **paths},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        requests, answers = cast(IO[str], process.stdin), cast(IO[str], process.stdout)

        def ask() -> tuple[float, float]:
            print("", file=requests, flush=True)
            handler, engine = json.loads(answers.readline())
            return handler, engine

        print(delivery, file=requests, flush=True)
        try:
            yield ask
        finally:
            process.kill()


def _taken(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return 1000 * (time.process_time() - began)


def main() -> None:
    """Answers until standard input ends."""
    import botocore.httpsession  # noqa: PLC0415 -- the tree's own, as all that follows

    from benchmarks.api import probe  # noqa: PLC0415
    from benchmarks.memory.function import Context, InstantAws  # noqa: PLC0415
    from darkroom.domain.kernel.lanes import LANES  # noqa: PLC0415
    from darkroom.domain.recipes.presets import DEFAULT_PRESET, preset_named  # noqa: PLC0415
    from darkroom.imaging import develop  # noqa: PLC0415

    out = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the function's own log
    job = json.loads(sys.stdin.readline())
    lane = job["event"]["Records"][0]["eventSourceARN"].rpartition(":")[2]
    original, recipe = Path(job["original"]).read_bytes(), preset_named(DEFAULT_PRESET)
    aws = InstantAws(original, job["item"])
    session: Any = botocore.httpsession.URLLib3Session
    session.send = lambda _, request: aws.send(request)
    app = probe.load("transcode_image")
    for _ in sys.stdin:
        aws.item = job["item"]
        handler = _taken(lambda: app.handler(job["event"], Context()))
        if aws.item["status"] != {"S": "done"}:
            raise RuntimeError(f"the photo was not developed: {aws.item}")
        engine = _taken(lambda: develop(original, recipe, effort=LANES[lane].effort))
        print(json.dumps([handler, engine]), file=out, flush=True)


if __name__ == "__main__":
    main()
