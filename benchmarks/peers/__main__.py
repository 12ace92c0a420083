"""Darkroom beside BullMQ with sharp, Celery with Pillow, and a plain handler with sharp: the same photo and variants.

    python -m benchmarks.peers

The peers come from packages (scripts/setup/environments.sh peers node, and npm) with the settings that their documents
ask for where nothing may be lost; their broker is Valkey, Redis's fork, or the server that REDIS names. All make the
four variants of the preset `standard` of one photo of 16 megapixels, at the same qualities and efforts, Pillow and
sharp by a cascade, the quickest way of theirs that `make bench-engine` knows. The peers' jobs name the photo's file; an
upload to Darkroom or to the plain handler carries it. Measured are: what adding a job takes, the processor's time for
each image, and what is lost, made twice and how late when workers, and the broker, are ended by SIGKILL. Times of the
embedded AWS say nothing about AWS. Prints tables and writes build/reports/peers.json.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from benchmarks.forms import FOLDER, by_form
from benchmarks.peers import measures, ours
from benchmarks.peers.broker import DURABILITIES
from benchmarks.peers.peers import BULLMQ, CELERY, PEERS, PLAIN, install
from benchmarks.stage import stack_of
from darkroom_cli.local.project import PROJECT
from local_aws.project import give
from repository.report import ROOT, Goal, write_report

STATE = ROOT / "build" / "bench-peers"
ROUNDS = by_form(short=1, usual=3)
"""How often the peers and the engine take turns at the photo: a shared machine's speed changes within minutes."""

type Row = dict[str, Any]


def drained_in_turns() -> list[Row]:
    """The medians of each peer's and the engine's rounds."""
    rounds: dict[tuple[str, int], list[Row]] = {}
    for number in range(ROUNDS):
        for cores in by_form(short=(1,), usual=(1, 2)):
            tell(f"photos, round {number + 1}, {cores} at once")
            alone = [measures.engine_alone()] if cores == 1 else []
            worked = [measures.drained(peer, STATE / f"{peer.name}-{number}-{cores}", cores) for peer in PEERS]
            for row in alone + worked:
                rounds.setdefault((row["peer"], row["cores"]), []).append(row)
    timed = ("per_second", "cpu_ms", "broker_cpu_ms")
    return [
        rows[0] | {name: median(row[name] for row in rows) for name in timed if name in rows[0]}
        for rows in rounds.values()
    ]


def measured() -> dict[str, list[Row]]:
    """The rows of each part. The local stack comes last: it has both cores to itself while it runs."""
    parts: dict[str, list[Row]] = {}
    tell("adding jobs")
    adding = [(peer, kind) for peer in (BULLMQ, CELERY) for kind in ("everysec", "always")] + [(PLAIN, "")]
    parts["adding"] = [
        measures.added(peer, STATE / f"add-{peer.name}-{kind}", kind) for peer, kind in by_form(short=[], usual=adding)
    ]
    parts["working"] = drained_in_turns()
    tell("SIGKILL to workers")
    victims = by_form(short=(BULLMQ, PLAIN), usual=PEERS)
    parts["workers killed"] = [measures.workers_killed(peer, STATE / f"kill-{peer.name}") for peer in victims]
    tell("SIGKILL to the broker")
    kills = [(peer, kind) for peer in (BULLMQ, CELERY) for kind in DURABILITIES]
    parts["broker killed"] = [
        measures.broker_killed(peer, STATE / f"broker-{peer.name}-{kind}", kind)
        for peer, kind in by_form(short=kills[1:2], usual=kills)
    ]
    tell("the local stack")
    with stack_of(STATE / "stack", "--access", "keys") as stack:
        with ours.one_by_one(stack):
            parts["working"].append(ours.drained(stack))
            parts["workers killed"].append(ours.workers_killed(stack))
        parts["adding"].append(ours.posted(stack))
    return parts


def tell(doing: str) -> None:
    """Says what is being measured."""
    print(doing, file=sys.stderr, flush=True)


def show(part: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """The part's table, with a column for whatever any row has."""
    names = list(dict.fromkeys(name for row in rows for name in row if name != "peer"))
    print(f"\n{part:<26}" + "".join(f"{name:>{_width(name)}}" for name in names))
    for row in rows:
        print(f"{row['peer']:<26}" + "".join(f"{_cell(row.get(name)):>{_width(name)}}" for name in names))


def _width(name: str) -> int:
    return max(20 if name == "fsync" else 10, len(name) + 2)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def goals_of(parts: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[Goal]:
    """What Darkroom promises, and that a photo takes our engine no more of the processor than the quickest peer."""
    (killed,) = [row for row in parts["workers killed"] if "ended_twice" in row]
    alone = [row for row in parts["working"] if row["cores"] == 1]
    engine, *peers = [row["cpu_ms"] for row in alone]
    return [
        Goal(name="images that Darkroom lost", value=killed["lost"], limit=0),
        Goal(name="images that ended twice", value=killed["ended_twice"], limit=0),
        Goal(name="kills of Darkroom's workers", value=killed["kills"], limit=measures.KILLS, at_least=True),
        Goal(name="our engine's CPU time, of the quickest peer's worker", value=engine / min(peers), limit=1.0),
    ]


def main() -> int:
    """Measures, prints and writes the report; returns the exit status."""
    give(PROJECT)
    install()
    for folder in STATE.glob("*"):
        if folder.name != "stack":  # whose build is kept
            shutil.rmtree(folder)
    parts = measured()
    for part, rows in parts.items():
        show(part, rows)
    rows = [{"part": part, **row} for part, rows in parts.items() for row in rows]
    write_report("peers", seed=None, rows=rows, goals=goals_of(parts), folder=FOLDER)
    return 0


if __name__ == "__main__":
    sys.exit(main())
