"""The transcoder's memory size: milliseconds and dollars for each image, and the memory that it takes.

    python -m benchmarks.memory [--rounds 5] [--sizes 1024 1769 …] [--waiting 100] [--base COMMIT]

The real handler develops photos of several sizes, by the preset `standard` and with each lane's effort, in a process
that gets as much processor time as Lambda gives a function of each size. The sizes take turns, so that all of them meet
the same machine, and of each photo's rounds the quickest counts, because what else the machine does only adds to it.
S3 and DynamoDB answer at once; instead, each image is charged for `--waiting` milliseconds of waiting for them. The
dollars are those of the function's time, on arm64, for a million images, equally many of each photo; the milliseconds
are those of this machine's processor. The most demanding images are then developed by a fresh process each, whose peak
memory is the least that the function must have. At last, the worker's own code is told from the engine: the CPU
time of the warm handler for the smallest photo, less that of the engine alone, in turns; with `--base`, also of an
earlier commit. Prints a table and writes build/reports/memory.json.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from typing import IO, Any, cast

from PIL import Image

from benchmarks.earlier import checkout_of
from benchmarks.engine.sources import fifty_megapixels
from benchmarks.forms import FOLDER, IS_SHORT, by_form
from benchmarks.local.__main__ import PHOTO, photo
from benchmarks.memory.around import SMALL_SHARE, rounds_of, summary
from benchmarks.memory.curve import Point, goals_of, table
from benchmarks.memory.throttle import limited, share_of
from darkroom.aws.images.images_table import to_item
from darkroom.domain.kernel.lanes import FAST, LANES, LIVE_LANES, SLOW
from darkroom.domain.kernel.signature import SIGNATURE
from darkroom.domain.kernel.tenants import Tier
from repository.expand_template import raw_template
from repository.report import ROOT, Goal, write_report
from tests.support.fakes import World
from tests.support.fakes.messages import received
from tests.support.fakes.pictures import jpeg

SIZES = by_form(short=(1024,), usual=(512, 1024, 1769, 2048, 3008))

WAITING_MILLISECONDS = 100.0
"""What a worker waits for AWS for each image: two calls of DynamoDB, milliseconds each, the original, and the puts of
its variants, which are made at once; of those S3 says that they take tens of milliseconds
(https://docs.aws.amazon.com/whitepapers/latest/s3-optimizing-performance-best-practices/timeouts-and-retries-for-latency-sensitive-applications.html).
"""

SEED = 1
"""The seed of the noise."""

_SIDE = by_form(short=512, usual=4096)

_LARGE = {"name": "large", "width": _SIDE, "height": _SIDE, "enlarge": True, "format": "webp", "quality": 100}
COSTLIEST = json.dumps({"variants": [_LARGE]})
"""The recipe that takes the most memory of those that are allowed: see `MAX_WORK_PIXELS`."""

SIZES_OF_PHOTOS = by_form(
    short={"0.3 MP": (640, 480)}, usual={"0.3 MP": (640, 480), "3 MP": (2048, 1536), "12 MP": (4000, 3000)}
)
NOISE_PIXELS = by_form(short=240, usual=2400)

ROUNDS_AROUND = by_form(short=2, usual=150, long=400)

EVENT = ROOT / "events" / "transcode_image.json"


@dataclass(frozen=True, kw_only=True)
class Ran:
    """One delivery: the wall clock's milliseconds, the processor's, and the process's peak memory so far."""

    milliseconds: float
    cpu_milliseconds: float
    peak_mb: float


class Function:
    """The transcoder's handler in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.id = process.pid
        self._requests, self._answers = cast(IO[str], process.stdin), cast(IO[str], process.stdout)

    def run(self, delivery: str) -> Ran:
        """Handles a delivery."""
        self._requests.write(f"{delivery}\n")
        self._requests.flush()
        answer = self._answers.readline()
        if not answer:
            raise RuntimeError("the handler's process has died: its last words are above")
        return Ran(**json.loads(answer))


@contextmanager
def function() -> Iterator[Function]:
    """A cold transcoder."""
    with subprocess.Popen(
        [sys.executable, "-m", "benchmarks.memory.function"],
        cwd=ROOT,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Function(process)
        finally:
            process.kill()


def environment() -> dict[str, str]:
    """The function's environment: the template's values, and plausible ones where the template has references."""
    ambient = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "POWERTOOLS_"))}
    template = raw_template()
    variables = {
        **template["Globals"]["Function"]["Environment"]["Variables"],
        **deployed_function(template)["Environment"]["Variables"],
    }
    return {
        **ambient,
        **{name: value for name, value in variables.items() if isinstance(value, str)},
        **{name: name.lower() for name in variables if name.endswith(("_TABLE", "_BUCKET"))},
        **{f"{lane.upper()}_QUEUE_URL": f"https://sqs.us-east-1.amazonaws.com/123456789012/{lane}" for lane in LANES},
        **{f"{name.upper()}_CONCURRENCY": str(lane.concurrency) for name, lane in LANES.items()},
        "MESSAGE_KEY": "arn:aws:secretsmanager:us-east-1:123456789012:secret:message-key",
        "DEAD_LETTER_QUEUES": "fast=https://none,slow=https://none",
        "POWERTOOLS_METRICS_NAMESPACE": "Darkroom",
        "AWS_LAMBDA_FUNCTION_NAME": "transcode_image",
        "AWS_ACCESS_KEY_ID": "none",
        "AWS_SECRET_ACCESS_KEY": "none",
        "AWS_DEFAULT_REGION": "us-east-1",
    }


def deployed_function(template: dict[str, Any]) -> dict[str, Any]:
    """The transcoder's properties."""
    properties: dict[str, Any] = template["Resources"]["TranscodeImageFunction"]["Properties"]
    return properties


def delivery_of(original: Path, lane: str, recipe: str | None = None) -> str:
    """The line that tells the function of a photo in that lane, to be developed by the preset or by an own recipe."""
    world = World(now=time.time_ns() // 1_000_000)  # an image that is late is counted at once, by another call
    tier = next(tier for tier in Tier if tier in LANES[lane].tiers)
    row = world.submit(jpeg(), tier=tier, recipe=recipe).image
    body = original.read_bytes()
    source = replace(row.source, sha256=hashlib.sha256(body).hexdigest(), size_bytes=len(body))
    event = json.loads(EVENT.read_text())
    (record,) = event["Records"]
    message = received(lane, world.lanes.sent[-1])
    record["body"] = message.body
    record["messageAttributes"] = {SIGNATURE: {"dataType": "String", "stringValue": message.signature}}
    record["eventSourceARN"] = f"arn:aws:sqs:us-east-1:123456789012:{lane}"
    return json.dumps({"event": event, "item": to_item(replace(row, source=source)), "original": str(original)})


def photos(folder: Path) -> dict[str, Path]:
    """A real photo at several sizes."""
    paths = {}
    for title, size in SIZES_OF_PHOTOS.items():
        paths[title] = folder / f"{size[0]}.jpg"
        paths[title].write_bytes(photo(*size))
    return paths if IS_SHORT else {**paths, "16 MP": PHOTO}


def progressive(folder: Path) -> Path:
    """The largest photo that is accepted, as a progressive JPEG: its decoder holds all of it."""
    path = folder / "progressive.jpg"
    with Image.open(PHOTO if IS_SHORT else fifty_megapixels().path) as picture:
        picture.save(path, quality=92, progressive=True)
    return path


def noise(folder: Path) -> Path:
    """23 MB of noise under a noisy alpha, which is the worst for every encoder."""
    path, side = folder / "noise.png", NOISE_PIXELS
    Image.frombytes("RGBA", (side, side), random.Random(SEED).randbytes(side * side * 4)).save(path, compress_level=1)
    return path


def curve(
    originals: dict[str, Path], *, sizes: Sequence[int], rounds: int, waiting: float
) -> tuple[list[Point], list[dict[str, Any]]]:
    """Every lane with every size, and the figures of every photo."""
    deliveries = {(lane, title): delivery_of(path, lane) for lane in LIVE_LANES for title, path in originals.items()}
    ran: dict[tuple[str, int, str], list[Ran]] = defaultdict(list)
    with function() as transcoder:
        for delivery in deliveries.values():
            transcoder.run(delivery)
        for number in range(rounds):
            say(f"round {number + 1} of {rounds}")
            for (lane, title), delivery in deliveries.items():
                for megabytes in sizes if number % 2 == 0 else reversed(sizes):
                    with limited(transcoder.id, share_of(megabytes)):
                        ran[lane, megabytes, title].append(transcoder.run(delivery))
    quickest = {cell: min(those, key=lambda run: run.milliseconds) for cell, those in ran.items()}
    points = [
        Point(
            lane=lane,
            megabytes=megabytes,
            milliseconds=tuple(quickest[lane, megabytes, title].milliseconds for title in originals),
            waiting=waiting,
        )
        for lane in LIVE_LANES
        for megabytes in sizes
    ]
    rows = [
        {
            "lane": lane,
            "memory_mb": megabytes,
            "photo": title,
            "milliseconds": round(quickest_run.milliseconds, 1),
            "cpu_milliseconds": round(quickest_run.cpu_milliseconds, 1),
        }
        for (lane, megabytes, title), quickest_run in quickest.items()
    ]
    return points, rows


def peaks(originals: dict[str, Path], folder: Path) -> dict[str, float]:
    """The peak memory in megabytes, of a fresh process for each."""
    lane = SLOW.name  # its encoders take the most
    asked = {
        "the photos, one after another": [delivery_of(path, lane) for path in originals.values()],
        "a progressive JPEG of 50 MP": [delivery_of(progressive(folder), lane)],
        "noise, by the costliest recipe": [delivery_of(noise(folder), lane, COSTLIEST)],
    }
    peaks_by_title = {}
    for title, deliveries in asked.items():
        say(f"memory: {title}")
        with function() as transcoder:
            peaks_by_title[title] = max(transcoder.run(delivery).peak_mb for delivery in deliveries)
    return peaks_by_title


def around_the_engine(photo: Path, base: str | None) -> list[dict[str, Any]]:
    """The worker's own CPU time for that photo, now and, if asked for, at an earlier commit."""
    say("the code around the engine")
    trees = {"now": ROOT} | ({"base": checkout_of(base)} if base else {})
    rounds = rounds_of(trees, environment(), delivery_of(photo, FAST.name), ROUNDS_AROUND)
    return [summary(build, those) for build, those in rounds.items()]


def say(text: str) -> None:
    """Progress, on standard error."""
    print(text, file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, prints and writes the report; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.memory", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=by_form(short=1, usual=5, long=15))
    parser.add_argument("--sizes", type=int, nargs="+", metavar="MB", default=SIZES, help=f"{SIZES}, and the deployed")
    parser.add_argument(
        "--waiting", type=float, metavar="MS", default=WAITING_MILLISECONDS, help="for AWS, for each image (100)"
    )
    parser.add_argument("--base", metavar="COMMIT", help="an earlier commit, whose own code is measured too")
    options = parser.parse_args(arguments)
    deployed: int = deployed_function(raw_template())["MemorySize"]
    sizes = sorted({*options.sizes, deployed})
    if ceil(share_of(max(sizes))) > (os.process_cpu_count() or 1):
        print(f"{max(sizes)} MB buy {share_of(max(sizes)):.2f} vCPUs: this machine has fewer", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        originals = photos(Path(folder))
        points, rows = curve(originals, sizes=sizes, rounds=options.rounds, waiting=options.waiting)
        held = peaks(originals, Path(folder))
        own = around_the_engine(next(iter(originals.values())), options.base)
    peak_mb = max(held.values())
    for line in table(points, deployed=deployed, peak_mb=peak_mb):
        print(line)
    print(f"The dollars include {options.waiting:g} ms for each image of waiting for AWS; the milliseconds do not.")
    for title, megabytes in held.items():
        print(f"{title:<32}{megabytes:>6.0f} MB at the peak")
    for row in own:
        print(
            f"the worker's own code for a photo of 640 pixels, {row['build']}: {row['around_ms']:.1f} ms of CPU, "
            f"{row['share']:.2f} of the engine's {row['engine_ms']:.1f}"
        )
    summaries = [
        {
            "lane": point.lane,
            "memory_mb": point.megabytes,
            "median_ms": round(point.median, 1),
            "worst_ms": round(point.worst, 1),
            "dollars_a_million": round(point.dollars, 3),
        }
        for point in points
    ]
    memory = [{"of": title, "peak_mb": round(megabytes, 1)} for title, megabytes in held.items()]
    share = Goal(
        name="CPU time of the worker's own code for a photo of 640 pixels, of the engine's",
        value=own[0]["share"],
        limit=SMALL_SHARE,
    )
    goals = [*goals_of(points, deployed=deployed, peak_mb=peak_mb), share]
    write_report("memory", seed=SEED, rows=[*summaries, *rows, *memory, *own], goals=goals, folder=FOLDER)
    return 0


if __name__ == "__main__":
    sys.exit(main())
