"""Public pictures through the local edge: how many requests it answers by itself; and what a million views cost.

    make bench-delivery

1,000 variants of 125 photos are asked for 10,000 times, the n-th most popular 1/n as often as the first (Zipf's law,
which requests to websites follow: https://doi.org/10.1109/INFCOM.1999.749260). Every answer's bytes are compared with
the SHA-256 of the status document. Dollars are list prices (ways.py); the share of requests that reach the origin is
the measured one; a view that waits for what another one fetches counts as a miss too, so it is a bound. On AWS an edge
has several places with a cache each, so that a seldom seen picture misses more often.
Prints a table and writes build/reports/delivery.json.
"""

from __future__ import annotations

import hashlib
import io
import random
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import httpx
from PIL import Image

from benchmarks.delivery.dearest_hour import SLOTS, dearest_hour, edge_dollars_per_million
from benchmarks.delivery.ways import VIEW_KILOBYTES, WAYS, Month
from benchmarks.forms import FOLDER, by_form
from benchmarks.stage import stack_of
from darkroom_client import Darkroom
from repository.report import ROOT, Goal, write_report

STATE = ROOT / "build" / "bench-delivery"
PHOTO = ROOT / "tests" / "photos" / "seeding-16mp.jpg"
PHOTOS, REQUESTS = by_form(short=(2, 200), usual=(125, 10_000))
WIDTHS = (64, 96, 128, 160, 240, 320, 480, 640)
RECIPE = {"variants": [{"name": f"w{width}", "width": width, "format": "jpeg"} for width in WIDTHS]}
CLIENTS, SEED = 4, 20261128
_TIMEOUT_SECONDS = 60


@dataclass(frozen=True)
class Picture:
    """A variant at the edge: its permanent URL, and what its bytes are."""

    url: str
    sha256: str


def upload(api: Darkroom, number: int) -> list[Picture]:
    """Uploads one photo, another detail of a real one, as a public image; the variants that came of it."""
    with Image.open(PHOTO) as photograph:
        left = number * (photograph.width - 960) // PHOTOS
        body = io.BytesIO()
        photograph.crop((left, 400, left + 960, 400 + 720)).save(body, "JPEG", quality=85)
    accepted = api.upload(body.getvalue(), content_type="image/jpeg", recipe=RECIPE, visibility="public")
    document = api.wait(accepted.image_id, timeout_seconds=_TIMEOUT_SECONDS)
    return [Picture(variant["url"], variant["sha256"]) for variant in document["variants"]]


def requested(pictures: list[Picture]) -> list[Picture]:
    """Which picture each request asks for, by Zipf's law."""
    chance = random.Random(SEED)
    popular = chance.sample(pictures, len(pictures))
    return chance.choices(
        popular, cum_weights=[*accumulate(1 / rank for rank in range(1, len(popular) + 1))], k=REQUESTS
    )


def view(client: httpx.Client, picture: Picture) -> str:
    """Fetches it; whether the edge had it. Raises RuntimeError for an answer that is not the picture."""
    answer = client.get(picture.url)
    if answer.status_code != httpx.codes.OK or hashlib.sha256(answer.content).hexdigest() != picture.sha256:
        raise RuntimeError(f"{picture.url} was answered {answer.status_code}, or with other bytes")
    return "hit" if answer.headers["x-cache"].startswith("Hit") else "miss"


def measured(pictures: list[Picture]) -> dict[str, Any]:
    """How many requests the edge answered by itself."""
    wanted = requested(pictures)
    with httpx.Client(trust_env=False, timeout=_TIMEOUT_SECONDS) as client, ThreadPoolExecutor(CLIENTS) as pool:
        views = Counter(pool.map(lambda picture: view(client, picture), wanted))
    return {
        "variants": len(pictures),
        "requests": len(wanted),
        "asked_for": len(set(wanted)),
        "misses": views["miss"],
        "hit_ratio": round(views["hit"] / len(wanted), 4),
    }


def main() -> int:
    """Measures, prints and writes the report; returns the exit status."""
    with stack_of(STATE, "--delivery") as stack:
        api = Darkroom(stack.api_url, stack.record.api_key, is_local_stack=True)
        with ThreadPoolExecutor(CLIENTS) as pool:
            pictures = [
                picture for made in pool.map(lambda number: upload(api, number), range(PHOTOS)) for picture in made
            ]
        edge = measured(pictures)
    print(
        f"{edge['requests']:,} requests for {edge['asked_for']:,} of {edge['variants']:,} variants: "
        f"{edge['misses']:,} misses, hit ratio {edge['hit_ratio']:.3f}\n"
    )
    month = Month(miss_ratio=1 - edge["hit_ratio"])
    dollars = {way.name: round(way.dollars(month), 2) for way in WAYS}
    print(
        f"A million views of {VIEW_KILOBYTES} KB a month; {month.pictures:,} pictures, {month.variants} variants each:"
    )
    for way in WAYS:
        print(f"  {way.name:<34}{dollars[way.name]:>9.2f} $   {way.source}")
    print(
        f"\nThe dearest hour of anonymous viewers, with {SLOTS} variants made on request at once: "
        f"{dearest_hour():.2f} $, and CloudFront's {edge_dollars_per_million():.2f} $ for a million requests"
    )
    goals = [
        Goal(
            name="misses for each variant that was asked for",
            value=edge["misses"] / edge["asked_for"],
            limit=1.1,
        ),
        Goal(
            name="dollars per million views beside AWS's image solution",
            value=dollars["Darkroom"] / dollars["AWS's image solution"],
            limit=1,
        ),
    ]
    dearest = {"dearest_hour_dollars": round(dearest_hour(), 2), "slots": SLOTS}
    rows = [edge, dearest, *({"way": name, "dollars_per_million_views": value} for name, value in dollars.items())]
    write_report("delivery", seed=SEED, rows=rows, goals=goals, folder=FOLDER)
    return 0


if __name__ == "__main__":
    sys.exit(main())
