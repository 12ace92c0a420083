"""A world of images of the first version of a preset, whose second one is deployed, and of a backfill of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from darkroom.domain.bulk.backfills import Backfill, BackfillCounts, BackfillState, Selection, start
from darkroom.domain.images.image import Image
from darkroom.domain.recipes.recipes import Recipe, VariantSpec
from darkroom.operations.bulk.feed_backfill import FeedBackfillPorts, feed_backfill
from darkroom_cli.operator.operations.backfills.decide_backfill import DecideBackfillPorts, decide_backfill
from tests.support.fakes.batches import BODY, BatchesWorld

NEWER = Recipe(variants=(VariantSpec(name="thumb", width=300, height=300),))
OF_STANDARD = Selection(preset="standard", version=2)


@dataclass
class BackfillsWorld(BatchesWorld):
    """Images of the first version of a preset, whose second one is deployed."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.presets = self.presets | {"standard": (NEWER, 2)}

    def done(self, images: int = 1, **upload: Any) -> list[Image]:
        made = [self.submit(BODY, **upload).image for _ in range(images)]
        self.work()
        return [self.row(image.image_id) for image in made]

    def work(self, **how: Any) -> list[str]:
        sent, self.lanes.sent = self.lanes.sent, []
        for message in sent:
            self.develop(message, **how)
        return [message.lane for message in sent]

    def start(self, selection: Selection = OF_STANDARD, rate: int | None = None) -> Backfill:
        row: Backfill = self.backfills.create(start("bf_1", selection, rate=rate, now=self.clock()))
        return row

    def feed(self) -> str:
        return feed_backfill(self.ports(FeedBackfillPorts), "bf_1")

    @property
    def backfill(self) -> Backfill:
        row: Backfill = self.backfills.rows["bf_1"]
        return row

    def decide(self, state: BackfillState) -> None:
        decide_backfill(self.ports(DecideBackfillPorts), "bf_1", state)

    def finish(self) -> BackfillCounts:
        for _ in range(20):
            if self.feed() == "ended":
                return self.backfill.counts
            self.work()
            self.now += 60_000
        raise AssertionError(f"it does not end: {self.backfill}")
