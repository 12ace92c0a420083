"""A smaller run by the real operations, in virtual time at AWS's latencies: what one image waits for and writes."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast
from unittest.mock import patch

from benchmarks.webhooks.stores import UNIT_BYTES, item_size
from darkroom.aws.images.images_table import to_item
from darkroom.domain.images.image import Image
from darkroom.domain.kernel.lanes import LIVE_LANES, Effort
from darkroom.imaging import developing
from darkroom.operations.images import transcode_image
from tests.support.fakes.engine import already
from tests.support.fakes.pictures import jpeg
from tests.support.fakes.world import World
from tests.support.virtual.cloud import Call, Cloud, Plan, Remote, always
from tests.support.virtual.latencies import DAYS, Latency
from tests.support.virtual.virtual_time import VirtualTime

_SMALL = Latency(median=377, p99=500)

ENGINE: Mapping[Effort, Latency] = {"fast": Latency(median=222, p99=300), "balanced": _SMALL, "small": _SMALL}
"""Milliseconds of a worker's processor for a photo with the preset `standard`, by the lane's effort: the median and the
worst of docs/benchmarks.md, "The worker's memory", at the deployed size. No lane's effort is `balanced` there: it
takes no longer than `small`."""

SUBMIT = Latency(median=4, p99=10)
"""Milliseconds of our own in `POST /images`: docs/benchmarks.md."""

UUID = "3f1c2d4e-5a6b-4c7d-8e9f-0a1b2c3d4e5f"

_SERVICES = {"images": "DynamoDB", "originals": "S3", "outputs": "S3", "lanes": "SQS"}

_INDEXES = {"due": ("due_at",), "waiting": ("waiting_shard", "waiting_since"), "listed": ("list_shard", "created_at")}


@dataclass(frozen=True, kw_only=True)
class Sample:
    """What was found: milliseconds of uploads and of workers by lane, to draw from; `calls` and `writes` (write units,
    by the table or index) for one image, and of these the units of its upload."""

    uploads: Sequence[float]
    workers: Mapping[str, Sequence[float]]
    calls: Mapping[str, float]
    writes: Mapping[str, float]
    upload_writes: float

    def seconds(self, lane: str) -> float:
        """How long a worker of the lane is busy with an image on average."""
        return sum(self.workers[lane]) / len(self.workers[lane]) / 1000


def at_aws(time: VirtualTime, *, day: str, chance: random.Random) -> tuple[World, Cloud]:
    """A world in which calls take time, and what counts them."""
    world, cloud = World(time=time), Cloud(time, DAYS[day], chance)
    for name, service in _SERVICES.items():
        plans: defaultdict[str, Plan] = defaultdict(lambda service=service: always(Call(service=service)))  # type: ignore[misc]
        setattr(world, name, Remote(cloud, name, getattr(world, name), plans))
    return world, cloud


def sample(*, images: int, seed: int, day: str) -> Sample:
    """Uploads and develops so many images in each lane, one after another."""
    time, chance = VirtualTime(), random.Random(seed)
    played, cloud = at_aws(time, day=day, chance=chance)
    uploads: list[float] = []
    workers: dict[str, list[float]] = {}
    writes: Counter[str] = Counter()
    upload_writes = 0
    body = jpeg(640, 480)
    with patch.object(transcode_image, "developing", _once_developed()):
        for lane in LIVE_LANES.values():
            for _ in range(images):
                began = time.elapsed()
                accepted = played.submit(body, tier=min(lane.tiers)).image
                uploads.append(time.elapsed() - began + SUBMIT.draw(chance))
                rows: list[Image] = [accepted]
                began = time.elapsed()
                outcome = transcode_image.transcode_image(
                    played.ports(transcode_image.TranscodeImagePorts),
                    transcode_image.ReceivedMessage(
                        message=played.lanes.sent.pop(),
                        receipt=f"{UUID}/{UUID}",
                        request_id=UUID,
                        receive_count=1,
                        deadline=played.clock() + 60_000,
                        on_row=rows.append,
                    ),
                )
                waited = time.elapsed() - began
                if (
                    not isinstance(outcome, transcode_image.Finished)
                    or outcome.image is None
                    or outcome.reason != "done"
                ):
                    raise RuntimeError(f"the sample's image ended as {outcome}")
                workers.setdefault(lane.name, []).append(waited + ENGINE[lane.effort].draw(chance))
                upload_writes += sum(units_of(None, accepted).values())
                for before, after in pairwise((None, *rows, outcome.image)):
                    writes.update(units_of(before, cast("Image", after)))
    time.close()
    all_of_them = images * len(LIVE_LANES)
    return Sample(
        uploads=uploads,
        workers=workers,
        calls={name: count / all_of_them for name, count in sorted(cloud.calls.items())},
        writes={name: count / all_of_them for name, count in sorted(writes.items())},
        upload_writes=upload_writes / all_of_them,
    )


def units_of(before: Image | None, after: Image) -> Mapping[str, int]:
    """The write units of one write of a row, by table and index: an index's entry that moves is deleted and put
    (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/GSI.html#GSI.ThroughputConsiderations)."""
    sizes = [item_size(to_item(row)) for row in (before, after) if row is not None]
    units = {"images": -(-max(sizes) // UNIT_BYTES)}
    for index, names in _INDEXES.items():
        was, now = (None if row is None else tuple(getattr(row, name) for name in names) for row in (before, after))
        if was != now:
            units[index] = sum(key is not None and None not in key for key in (was, now))
    return units


def _once_developed() -> Callable[..., AbstractContextManager[Any]]:
    made: dict[str, Any] = {}

    def develop(original: bytes, recipe: Any, **options: Any) -> AbstractContextManager[Any]:
        if "it" not in made:
            with developing(original, recipe, **options) as picture:
                made["it"] = picture.developed()
        return already(made["it"])

    return develop
