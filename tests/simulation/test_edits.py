"""Edits amid duplicates, reordering, losses and faults: the last one that was accepted is what every image shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from darkroom.domain.images.image import Image, Status
from darkroom.domain.images.works import edit_status, run_of_key
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.message import Message
from darkroom.domain.recipes.edits import Edits
from darkroom.domain.recipes.recipes import Crop, FocalPoint, Recipe
from darkroom.imaging import Rendered
from darkroom.operations.images.edit_image import EditImagePorts, EditRequest, edit_image
from darkroom.operations.images.transcode_image import Outcome
from tests.support.fakes import World
from tests.support.fakes.edit_queue import FakeEditQueue
from tests.support.fakes.pictures import jpeg
from tests.support.faults import Call, Faults, Mode, ProcessDied

DEVELOPING = "darkroom.operations.images.transcode_image.developing"
PHOTO = jpeg()
RECIPE = '{"variants": [{"name": "thumb", "width": 8, "height": 8, "fit": "cover"}]}'
EDITS = 5
MODES: tuple[Mode, ...] = ("dies before", "dies after", "throttled", "answer lost")
FAULTS = 4
"""Of one image: fewer than the attempts of a run, so that no edit is given up."""


@dataclass(frozen=True)
class Shown:
    """A picture whose bytes say by which recipe it was made."""

    recipe: Recipe

    placeholder = attention = None

    @property
    def variants(self) -> tuple[Callable[[], Rendered], ...]:
        body = self.recipe.model_dump_json(exclude_defaults=True).encode()
        options: Any = {"format": "jpeg", "media_type": "image/jpeg", "extension": "jpg", "body": body}
        return (lambda: Rendered(name="thumb", width=8, height=8, **options),)

    def notices(self) -> tuple[str, ...]:
        return ()


@dataclass
class Play:
    """One image, its client, its queues and its workers, as `seed` makes them."""

    seed: int
    is_ordered: bool
    world: World = field(default_factory=World)
    accepted: list[Edits] = field(default_factory=list)
    faults: Faults = field(default_factory=lambda: Faults(records=False))
    receipts: int = 0
    struck: int = 0
    asked: list[EditRequest] = field(default_factory=list)
    ordered: list[int] = field(default_factory=list)
    amid: Callable[[], object] | None = None

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self.image_id = self.world.submit(PHOTO, recipe=RECIPE).image.image_id
        self.edits = FakeEditQueue(self.world.clock)
        self.world.edit_queue = self.edits if self.is_ordered else None
        for name in ("images", "lanes", "outputs", *(["edit_queue"] if self.is_ordered else [])):
            setattr(self.world, name, self.faults.around(name, getattr(self.world, name)))

    def row(self) -> Image:
        return self.world.row(self.image_id)

    def strikes(self, call: Call) -> Mode | None:
        if self.struck >= FAULTS or self.random.random() > 0.06:
            return None
        self.struck += 1
        return self.random.choice(MODES)

    @contextmanager
    def process(self) -> Iterator[None]:
        """A process, whose calls may be struck."""
        self.faults.is_dead, self.faults.plan = False, self.strikes
        try:
            with suppress(ProcessDied, Retryable):
                yield
        finally:
            self.faults.is_dead, self.faults.plan = False, lambda _: None

    def edit(self) -> None:
        """The client edits it, and repeats its request until it is accepted."""
        number, random = len(self.accepted), self.random
        if number == EDITS:
            return
        edits = random.choice(
            (
                Edits(rotate=random.choice((0, 90, 180, 270))),
                Edits(crop=Crop(x=0.0, y=0.0, width=random.choice((0.5, 1.0)), height=1.0)),
                Edits(focus=FocalPoint(x=random.random(), y=0.5)),
                Edits(),
            )
        )
        self.accepted.append(edits)
        request = EditRequest(
            image_id=self.image_id,
            edits=edits,
            tenant_id="default",
            correlation_id="r",
            idempotency_key=f"edit-{number}",
        )
        self.asked.append(request)
        done: list[object] = []
        while not done:
            with self.process():
                done.append(edit_image(self.world.ports(EditImagePorts), request))

    def edit_again(self) -> None:
        """A request comes once more, late: it asks for nothing new."""
        if self.asked:
            with self.process():
                edit_image(self.world.ports(EditImagePorts), self.random.choice(self.asked))

    def deliver(self, message: Message, receive_count: int = 0) -> Outcome | None:
        """A worker gets the message; an edit may be accepted amid its work. The outcome, if it lives to report one."""
        self.receipts += 1
        if self.random.random() < 0.5:
            self.amid = self.edit
        count = receive_count or self.random.randint(1, 5)
        with self.process():
            return self.world.deliver(message, f"receipt {self.receipts}", receive_count=count)
        return None

    def deliver_edit(self) -> None:
        """A worker gets the next message of the queue of edits, which comes back if it is not done with it."""
        if (queued := self.edits.receive()) is None:
            return
        self.ordered.append(queued.number)
        outcome = self.deliver(queued.message, queued.receives)
        if outcome is not None and outcome.returns_in_seconds is None:
            self.edits.delete(queued)
        elif outcome is not None:
            self.edits.hide(queued, outcome.returns_in_seconds or 0)

    def step(self) -> None:
        """Something happens."""
        sent, random = self.world.lanes.sent, self.random
        match random.randrange(6):
            case 0 | 1:
                self.edit()
                self.edit_again()
            case 2 if self.is_ordered:
                self.deliver_edit()
            case 2 | 3 if sent:  # whichever was ever sent to a lane, as often as it likes
                self.deliver(random.choice(sent))
            case 4:
                self.world.advance(random.choice((1, 2, 60, 900)))
            case _:
                with self.process():
                    self.world.sweep()

    def settle(self) -> None:
        """Nothing is struck any more: all is quiet within a day."""
        self.struck = FAULTS
        while len(self.accepted) < EDITS:
            self.edit()
        for _ in range(100):
            if (row := self.row()).status is Status.DONE and row.due_at is None:
                return
            self.world.advance(900)
            self.deliver_edit()
            self.world.sweep()
            self.deliver(self.world.lanes.sent[-1])
        raise AssertionError(f"it never ended: {self.row()}")


@pytest.mark.promise("edits-in-order")
@pytest.mark.parametrize("is_ordered", [False, True], ids=["standard queue", "FIFO queue"])
@pytest.mark.parametrize("images", [100, pytest.param(1_000, marks=pytest.mark.long)])
def test_the_last_accepted_of_five_edits_is_what_every_image_shows(
    monkeypatch: pytest.MonkeyPatch, images: int, is_ordered: bool
) -> None:
    playing: list[Play] = []

    @contextmanager
    def developing(original: bytes, recipe: Recipe, **_: Any) -> Iterator[Shown]:
        play = playing[-1]
        happening, play.amid = play.amid, None
        plan = play.faults.plan
        if happening is not None:
            happening()
            play.faults.plan = plan
        yield Shown(recipe)

    monkeypatch.setattr(DEVELOPING, developing)
    struck = overtaken = ordered = repeated = dropped = 0
    for seed in range(images):
        playing[:] = [play := Play(seed, is_ordered)]
        for _ in range(30):
            play.step()
        struck += play.struck
        play.settle()
        row, last = play.row(), play.accepted[-1]
        assert (row.edit_number, edit_status(row), row.edited) == (EDITS, "done", last), seed
        (thumb,) = row.variants
        shown = Recipe.model_validate_json(play.world.outputs.objects[thumb.key])
        assert (shown.rotate, shown.crop) == (last.rotate or 0, last.crop), seed
        assert shown.variants[0].gravity == (last.focus or "centre"), seed
        assert run_of_key(thumb.key) == row.run
        assert row.edit is not None
        overtaken += sum(earlier.overtaken for earlier in row.edit.earlier)
        assert play.ordered == sorted(play.ordered), "each edit's message after those of the edits before"
        ordered, dropped = ordered + len({*play.ordered}), dropped + play.edits.dropped
        repeated += len(play.ordered) - len({*play.ordered})
    assert struck > images and overtaken > images, "faults struck, and edits overtook others"
    if is_ordered:
        assert ordered > images / 2 and min(repeated, dropped) > images / 20, "and the queue had a say"
