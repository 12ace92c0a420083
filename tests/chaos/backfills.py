"""A backfill on the local stack, beside live uploads and amid kills: who waits for it, and is each image made once?

    python -m tests.chaos.backfills [--images N] [--live N] [--seed S]

Images are accepted and developed; then their preset is edited in a copy of the checkout, and deployed. Live uploads
come in rounds, in turns without and with the backfill's work, which is paused meanwhile. The feeder is killed at most
of its first looks, to which the stack's clock is moved ahead. Exits with 1 if a promise was broken; its times are this
machine's, on which all workers share the cores.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from darkroom.domain.images.image import Image, Status
from darkroom.domain.kernel.lanes import LANES
from repository.report import ROOT, Goal, write_report
from tests.chaos.machinery import Clock
from tests.local.local_stack import LocalStack, copy_of_the_checkout, document_in, edit
from tests.support.running.conditions import have_workers
from tests.support.running.kills import killing
from tests.support.running.load import Photo, photos, upload
from tests.support.running.stack import Stack

STATE = ROOT / "build" / "prove" / "backfills"

FEEDER = "SweepDueBulkFunction"

PRESET, THUMB_WIDTH = "standard", 32

ROUNDS = 2
SECONDS_A_LIVE_UPLOAD = 0.5
KILLS = 10
_LOOK_SECONDS, _STEP_SECONDS, _PATIENCE_SECONDS = 2.0, 125, 900


@dataclass(kw_only=True)
class Live:
    """What live uploads waited, in seconds: for their answer, and in the queue for a worker."""

    accepts: list[float] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Found:
    """The rows of the images to make again, before and after; what the backfill says at its end; and the waits."""

    before: Mapping[str, Image]
    after: Mapping[str, Image]
    document: Mapping[str, Any]
    kills: Mapping[str, int]
    alone: Live
    beside: Live
    unaccepted: int

    def broken(self) -> Iterator[str]:
        """Every broken promise."""
        if self.unaccepted:
            yield f"{self.unaccepted} live uploads were not accepted"
        if self.document["state"] != "completed":
            yield f"the backfill is {self.document['state']}: {json.dumps(self.document)}"
        counts = {name: number for name, number in self.document["ended"].items() if number}
        if counts != {"done": len(self.before)}:
            yield f"it counts {counts} of {len(self.before)} images"
        for image_id, before in self.before.items():
            row = self.after.get(image_id)
            if row is None or row.status is not Status.DONE:
                yield f"{image_id} is {None if row is None else row.status}"
            elif (row.run, row.preset_version) != (before.run + 1, 2):
                yield f"{image_id} is of run {row.run} and version {row.preset_version}"
            elif {variant.name: variant.width for variant in row.variants}.get("thumb") != THUMB_WIDTH:
                yield f"{image_id} has other variants than the preset makes now"


def percentile(values: Sequence[float], percent: float) -> float:
    """The value that so many percent do not exceed."""
    return sorted(values)[min(len(values) - 1, int(len(values) * percent / 100))]


def deploy_another_version(local: LocalStack) -> None:
    """Has the preset make smaller thumbnails from now on."""
    presets = local.checkout / "layers" / "core" / "darkroom" / "domain" / "recipes" / "presets.py"
    edit(presets, f'"{PRESET}": {{', f'"{PRESET}": {{"version": 2,')
    edit(presets, '{"name": "thumb", "width": 256', f'{{"name": "thumb", "width": {THUMB_WIDTH}')
    deployed = local.darkroom("local", "deploy")
    if deployed.returncode != 0:
        raise RuntimeError(deployed.stdout)


def play(local: LocalStack, *, images: int, live: int, seed: int, tell: Callable[[str], None]) -> Found:
    """Makes the images, and a backfill of them in turns with live uploads; returns at its end."""
    stack = Stack(state=local.state)
    have_workers(stack, 4)
    bodies, clock = photos(8), Clock(stack)
    made = upload(stack.api_url, [bodies[number % 8] for number in range(images)], clients=4, persistent=True)
    tell(f"{images} images are accepted")
    ids = {answer.image_id for answer in made if answer.is_accepted}
    before = _when(lambda: _rows(stack, ids), lambda rows: all(row.status is Status.DONE for row in rows.values()))
    deploy_another_version(local)
    have_workers(stack, 4)
    tell("another version of the preset is deployed")
    started = local.darkroom("backfill", "start", "--preset", f"{PRESET}@2", "--yes").stdout
    backfill_id = started.partition("Started ")[2].partition(":")[0]

    def shown() -> Any:
        return document_in(local.darkroom("backfill", "show", backfill_id, "--json").stdout)

    def looked_at() -> Any:
        looks.append(clock.now())
        clock.go_to(clock.now() + _STEP_SECONDS * 1000)
        stack.client("lambda").invoke(FunctionName=stack.physical_id(FEEDER), Payload=b"{}")
        return shown()

    alone, beside, unaccepted, looks = Live(), Live(), 0, list[int]()

    def progress() -> int:
        return min(len(looks), 2 * KILLS)

    # Its workers stay alive: their deaths would delay what is measured, by what a message is away.
    with killing(stack.state, frozenset({FEEDER}), progress=progress, every=1, seed=seed) as kills:
        for turn in range(2 * ROUNDS):
            is_beside = turn % 2 == 1
            local.darkroom("backfill", "resume" if is_beside else "pause", backfill_id)
            if is_beside:
                for _ in range(KILLS // ROUNDS):
                    looked_at()
            else:
                _when(lambda: _rows(stack, ids), _rests)
            tell(f"live uploads {'beside the backfill' if is_beside else 'alone'}")
            unaccepted += _live(stack, bodies, live, beside if is_beside else alone)
        local.darkroom("backfill", "resume", backfill_id)
        tell("waiting for the backfill's end")
        document = _when(looked_at, lambda document: document["state"] in ("completed", "cancelled"))
    after = _rows(stack, ids)
    return Found(
        before=before,
        after=after,
        document=document,
        kills=dict(kills),
        alone=alone,
        beside=beside,
        unaccepted=unaccepted,
    )


def _rests(rows: Mapping[str, Image]) -> bool:
    return all(row.work is None or row.work.ended_at is not None for row in rows.values())


def _live(stack: Stack, bodies: Sequence[Photo], number: int, measured: Live) -> int:
    """Uploads live photos and notes what they waited; returns how many were not accepted."""
    answers = upload(
        stack.api_url,
        [bodies[each % len(bodies)] for each in range(number)],
        clients=4,
        interval_seconds=SECONDS_A_LIVE_UPLOAD,
    )
    accepted = {answer.image_id: answer for answer in answers if answer.is_accepted}
    rows = _when(lambda: _rows(stack, accepted), lambda rows: all(row.status.is_terminal for row in rows.values()))
    measured.accepts += [answer.seconds for answer in accepted.values()]
    for row in rows.values():
        first = row.attempts[0]
        measured.waits.append((first.started_at - (row.accepted_at or first.started_at)) / 1000)
    return number - len(accepted)


def _rows(stack: Stack, ids: Any) -> dict[str, Image]:
    return {row.image_id: row for row in stack.rows() if row.image_id in ids}


def _when[T](look: Callable[[], T], is_so: Callable[[T], bool]) -> T:
    """What a look sees once it is so, or patience has ended."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not is_so(seen := look()) and time.monotonic() < deadline:
        time.sleep(_LOOK_SECONDS)
    return seen


def main(arguments: Sequence[str]) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.backfills", description="A backfill beside uploads.")
    long = os.environ.get("LONG") == "1"
    parser.add_argument("--images", type=int, default=1_000 if long else 60, help="60; with LONG=1, 1,000")
    parser.add_argument("--live", type=int, default=100 if long else 20, help="in each of four rounds: 20, or 100")
    parser.add_argument("--seed", type=int, default=1, help="of who is killed (1)")
    chosen = parser.parse_args(arguments)
    started = time.monotonic()
    shutil.rmtree(STATE, ignore_errors=True)
    STATE.mkdir(parents=True)
    local = LocalStack(state=STATE / "stack", checkout=copy_of_the_checkout(STATE / "checkout"))
    with local.serving():
        found = play(
            local,
            images=chosen.images,
            live=chosen.live,
            seed=chosen.seed,
            tell=lambda doing: print(f"{time.monotonic() - started:5.0f} s  {doing}", flush=True),
        )
    broken, waits = list(found.broken()), _waits(found)
    row = {
        "images": len(found.before),
        "ended": dict(Counter({name: number for name, number in found.document["ended"].items() if number})),
        "kills": dict(sorted(found.kills.items())),
        **{name: round(seconds, 3) for name, seconds in waits.items()},
        "seconds": round(time.monotonic() - started),
        "broken": broken,
    }
    print(", ".join(f"{name} {value}" for name, value in row.items() if name != "broken"), flush=True)
    for sentence in broken[:10]:
        print(f"    BROKEN: {sentence}")
    promised = LANES["slow"].sla_seconds
    goals = [
        Goal(name="broken promises", value=len(broken), limit=0, at_least=False),
        Goal(name="kills", value=sum(found.kills.values()), limit=KILLS if long else 1, at_least=True),
        Goal(
            name="queue wait beside it, p99, of what the lane promises", value=waits["wait_beside"] / promised, limit=1
        ),
        Goal(name="accept beside it, p99, s", value=waits["accept_beside"], limit=1),
    ]
    write_report("backfills", seed=chosen.seed, rows=[row], goals=goals)
    return 1 if broken else 0


def _waits(found: Found) -> dict[str, float]:
    return {
        f"{what}_{name}": percentile(values, 99)
        for name, live in (("alone", found.alone), ("beside", found.beside))
        for what, values in (("accept", live.accepts), ("wait", live.waits))
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
