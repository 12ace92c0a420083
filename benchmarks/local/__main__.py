"""The local stack's speed: its start, its first photo, warm photos one by one and many at once, and its rest.

    python -m benchmarks.local [--base COMMIT] [--photos 120] [--large 40]

With `--base`, the stack of an earlier commit is run in turns with this one, in a clone of its own, so that both meet
the same machine; only one of them runs at a time. A small photo has 640 pixels, a large one 12 megapixels; both are
made of a real photo, and all four variants of the preset `standard` are made of them. The engine's own rate is what as
many processes as the machine has cores develop beside the idle stack, in turns with it. Prints a table and writes
build/reports/local.json.
"""

from __future__ import annotations

import argparse
import io
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from statistics import median
from typing import Any

from PIL import Image

from benchmarks.earlier import environment_of, tree_of
from benchmarks.forms import FOLDER, IS_SHORT, by_form
from benchmarks.local.client import Client, rate
from benchmarks.stage import stack_of, unlimited_key
from local_aws.paths import State
from local_aws.stack import supervisor
from repository.report import ROOT, Goal, write_report
from tests.support.running.serving import serving
from tests.support.running.stack import Stack

STATE = ROOT / "build" / "bench-local"
PHOTO = ROOT / "tests" / "photos" / "seeding-16mp.jpg"

CONCURRENCY = by_form(short=2, usual=8)
WARM_PHOTOS = by_form(short=2, usual=40)
REST_SECONDS = by_form(short=0.0, usual=65.0)
"""Until the sweeper, which runs every minute, has been initialised."""

IDLE_SECONDS = by_form(short=1.0, usual=60.0)
"""One run of the sweeper belongs to it."""

LARGE_ROUNDS = by_form(short=1, usual=3)
"""How often the stack and the engine alone take turns: a shared machine's speed changes within minutes."""

FIGURES = {
    "start": "start until the API answers, s",
    "first": "first photo done after its request, s",
    "cold_rate": "small photos at once, cold, per s",
    "warm_rate": "the same, warm, per s",
    "post": "a warm POST, ms",
    "done": "POST until done, ms",
    "idle": "idle, share of a core",
    "large_rate": "12-megapixel photos at once, per s",
    "engine_rate": "the engine alone",
    "large_share": "the stack's part of that",
}


def photo(width: int, height: int) -> bytes:
    """A real photo at that size."""
    file = io.BytesIO()
    with Image.open(PHOTO) as picture:
        picture.resize((width, height)).save(file, "JPEG", quality=85)
    return file.getvalue()


def started(tree: Path, state: Path) -> AbstractContextManager[Stack]:
    """The tree's stack."""
    if IS_SHORT:
        return stack_of(state)
    return serving(state, tree=tree, environment=environment_of(tree))


def busy_seconds(process: int) -> float:
    """The processor's time of a process and all its descendants that still run."""
    parents, taken = {}, {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        parents[int(entry.name)] = int(fields[1])
        taken[int(entry.name)] = int(fields[11]) + int(fields[12])
    family, children = {process}, {process}
    while children:
        children = {child for child, parent in parents.items() if parent in family} - family
        family |= children
    return sum(taken.get(pid, 0) for pid in family) / os.sysconf("SC_CLK_TCK")


def first_minute(tree: Path, state: Path, small: bytes) -> dict[str, float]:
    """The start and its first photo."""
    began = time.perf_counter()
    with started(tree, state) as stack:
        start = time.perf_counter() - began
        client = Client(stack.api_url, api_key=unlimited_key(stack, "first"))
        return {"start": start, "first": client.done_after(client.send(small))}


def work(tree: Path, state: Path, small: bytes, large: bytes, options: argparse.Namespace) -> dict[str, float]:
    """Everything that is measured on one stack, from its start on."""
    figures = {}
    with started(tree, state) as stack:
        key = unlimited_key(stack, "many")
        for kind in ("cold", "warm"):
            figures[f"{kind}_rate"] = rate(
                stack.api_url, small, count=options.photos, concurrency=CONCURRENCY, api_key=key
            )
        client = Client(stack.api_url, api_key=key)
        posts, done = [], []
        for _ in range(WARM_PHOTOS):
            sent = client.send(small)
            posts.append(sent.answered_after * 1000)
            done.append(client.done_after(sent, look_seconds=0.02) * 1000)
        figures |= {"post": median(posts), "done": median(done)}
        time.sleep(REST_SECONDS)
        process = supervisor(State(folder=stack.state))
        if process is None:
            raise RuntimeError("The local stack has stopped.")
        before, began = busy_seconds(process), time.perf_counter()
        time.sleep(IDLE_SECONDS)
        figures["idle"] = (busy_seconds(process) - before) / (time.perf_counter() - began)
        rounds = [
            (
                rate(stack.api_url, large, count=options.large, concurrency=CONCURRENCY, api_key=key),
                engine_rate(large, options.large),
            )
            for _ in range(LARGE_ROUNDS)
        ]
        figures["large_rate"], figures["engine_rate"] = (median(rates) for rates in zip(*rounds, strict=True))
        figures["large_share"] = median(photos / alone for photos, alone in rounds)
    return figures


def engine_rate(large: bytes, count: int) -> float:
    """Large photos per second of the engine alone, on all cores."""
    cores = os.process_cpu_count() or 1
    file = STATE / "large.jpg"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(large)
    command = [sys.executable, "-m", "benchmarks.local.engine_rate", str(file), str(max(1, count // cores))]
    running = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(cores)]
    seconds = [float(line) for runner in running for line in runner.communicate()[0].split()[1:]]
    return cores * len(seconds) / sum(seconds)


def goals_of(rows: dict[str, dict[str, float]]) -> list[Goal]:
    """What holds of this commit alone, and next to the base."""
    now, base = rows["now"], rows.get("base")
    goals = [
        Goal(name="the second start until the API answers, s", value=now["start"], limit=12),
        Goal(name="the first photo done, s", value=now["first"], limit=2.5),
        Goal(name="idle, share of a core", value=now["idle"], limit=0.02),
        Goal(name="large photos, of the engine's rate", value=now["large_share"], limit=0.7, at_least=True),
    ]
    if base is None:
        return goals
    ratios = {"post": (0.8, False), "done": (0.6, False), "cold_rate": (1.5, True), "warm_rate": (1.5, True)}
    return goals + [
        Goal(name=f"{FIGURES[name]}, of the base's", value=now[name] / base[name], limit=limit, at_least=at_least)
        for name, (limit, at_least) in ratios.items()
    ]


def show(rows: dict[str, dict[str, float]]) -> None:
    """The table."""
    print(f"{'':<40}" + "".join(f"{name:>10}" for name in rows))
    for name, title in FIGURES.items():
        print(f"{title:<40}" + "".join(f"{figures[name]:>10.3f}" for figures in rows.values()))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, prints and writes the report; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.local", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--base", metavar="COMMIT", help="an earlier commit to compare with")
    parser.add_argument("--photos", type=int, default=by_form(short=8, usual=120), help="small photos at once (120)")
    parser.add_argument("--large", type=int, default=by_form(short=2, usual=40), help="large photos at once (40)")
    options = parser.parse_args(arguments)
    trees = {"now": ROOT} | ({"base": tree_of(options.base)} if options.base else {})
    small, large = photo(640, 480), photo(4000, 3000)
    rows: dict[str, dict[str, float]] = {}
    for name, tree in trees.items():
        print(f"{name}: building", file=sys.stderr, flush=True)
        with started(tree, STATE / name):
            pass
    for name, tree in trees.items():
        print(f"{name}: start and first photo", file=sys.stderr, flush=True)
        rows[name] = first_minute(tree, STATE / name, small)
    for name, tree in trees.items():
        print(f"{name}: photos", file=sys.stderr, flush=True)
        rows[name] |= work(tree, STATE / name, small, large, options)
    show(rows)
    report_rows: list[dict[str, Any]] = [{"build": name, **figures} for name, figures in rows.items()]
    write_report("local", seed=None, rows=report_rows, goals=goals_of(rows), folder=FOLDER)
    return 0


if __name__ == "__main__":
    sys.exit(main())
