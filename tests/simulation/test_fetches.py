"""Random histories of images that are fetched: duplicates, dying workers, busy and changing sources, stores that do not
answer, withdrawals and time. In each of them an image ends once, leaves nothing behind and forgets its URL."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from darkroom.domain.images.image import Image, Status, message_for
from darkroom.domain.images.transitions import MAX_FETCH_CLAIMS
from darkroom.domain.imports.fetch import Unfetched
from darkroom.domain.kernel.errors import Retryable
from darkroom.operations.images.delete_image import DeleteImagePorts, delete_image
from tests.support.fakes import FakeImages, World
from tests.support.fakes.pictures import jpeg
from tests.support.faults import Faults, Mode, ProcessDied

URL = "https://photos.example/harbour.jpg?token=s3cr3t"
PHOTOS = (jpeg(8, 8), jpeg(9, 8))
BUSY = Unfetched(code="fetch_failed", message="It is busy (503).", may_pass=True)
GONE = Unfetched(code="fetch_not_found", message="There is nothing (404).")
ANSWERS = (*PHOTOS, BUSY, GONE, b"<html>")
CALLS = (
    "images.change",
    "images.get",
    "originals.put_if_absent",
    "lanes.send",
    "fetch_queue.put",
    "remote_images.fetch",
)
MODES = ("dies before", "dies after", "throttled", "answer lost")


class Watched(FakeImages):
    """The rows, and how often each has reached a terminal state."""

    def __init__(self) -> None:
        super().__init__()
        self.endings: Counter[str] = Counter()

    def change(self, before: Image, after: Image, **fence: Any) -> Image:
        old = self.rows[before.image_id]
        new = super().change(before, after, **fence)
        if new.status.is_terminal and not old.status.is_terminal:
            self.endings[new.image_id] += 1
        assert new.attempt <= MAX_FETCH_CLAIMS
        assert new.url is None or new.status is Status.FETCHING, "it is forgotten once it is not needed"
        return new


class History:
    """One image, and everything that befalls it."""

    def __init__(self) -> None:
        self.plan: dict[str, Mode] = {}
        faults = Faults(lambda call: self.plan.pop(call.name, None), is_one_process=False)
        self.world = World(images=Watched())
        self.stores = {name: getattr(self.world, name) for name in ("images", "originals", "lanes", "fetch_queue")}
        self.rows: Watched = self.stores["images"]
        self.remote = self.world.remote_images
        self.receipts = 0
        image = self.world.ask(URL).image
        self.image_id = image.image_id
        self.messages = [message_for(image)]
        for name, store in {**self.stores, "remote_images": self.remote}.items():
            setattr(self.world, name, faults.around(name, store))

    def fetch(self, which: int, call: str, mode: Mode, answer: Any) -> None:
        self.remote.serve(URL, answer)
        self.plan.clear()
        self.plan[call] = mode
        self.receipts += 1
        self._survive(lambda: self.world.fetch(self.messages[which % len(self.messages)], f"r{self.receipts}"))

    def sweep(self, call: str, mode: Mode) -> None:
        self.plan.clear()
        self.plan[call] = mode
        self._survive(self.world.sweep)
        self._collect()

    def delete(self) -> None:
        self.plan.clear()
        delete_image(self.world.ports(DeleteImagePorts), self.image_id, tenant_id="default")

    def _survive(self, work: Any) -> None:
        with suppress(ProcessDied, Retryable):
            work()
        self.plan.clear()

    def _collect(self) -> None:
        self.messages += self.stores["fetch_queue"].asked
        self.stores["fetch_queue"].asked.clear()

    def settle(self) -> Image:
        """With every fault over and a source that is well, it comes to rest."""
        self.remote.serve(URL, PHOTOS[0])
        for _ in range(200):
            row = self.rows.rows[self.image_id]
            if row.status is not Status.FETCHING and (row.due_at is None or not row.status.is_terminal):
                return row
            self.world.advance(61)
            self.world.sweep()
            self._collect()
            while self.messages:
                self.receipts += 1
                self.world.fetch(self.messages.pop(), f"r{self.receipts}")
        raise AssertionError(f"no rest: {self.rows.rows[self.image_id]}")


steps = st.one_of(
    st.tuples(
        st.just("fetch"), st.integers(0, 5), st.sampled_from(CALLS), st.sampled_from(MODES), st.sampled_from(ANSWERS)
    ),
    st.tuples(st.just("fetch"), st.integers(0, 5), st.just("none"), st.just(""), st.sampled_from(ANSWERS)),
    st.tuples(st.just("sweep"), st.sampled_from(CALLS), st.sampled_from(MODES)),
    st.tuples(st.just("sweep"), st.just("none"), st.just("")),
    st.tuples(st.just("pass time"), st.sampled_from([1, 40, 130, 400, 1000])),
    st.tuples(st.just("lose"), st.integers(0, 5)),
    st.just(("delete",)),
)


@settings(max_examples=250)
@given(course=st.lists(steps, max_size=14))
def test_whatever_happens_while_it_is_fetched_an_image_ends_once_and_leaves_nothing(
    course: list[tuple[Any, ...]],
) -> None:
    history = History()
    for step in course:
        match step:
            case ("fetch", which, call, mode, answer) if history.messages:
                history.fetch(which, call, mode, answer)
            case ("sweep", call, mode):
                history.sweep(call, mode)
            case ("pass time", seconds):
                history.world.advance(seconds)
            case ("lose", which) if history.messages:
                history.messages.pop(which % len(history.messages))
            case ("delete",):
                history.delete()
    row = history.settle()
    originals = history.stores["originals"].objects
    assert row.url is None
    assert "s3cr3t" not in repr(row)
    assert history.rows.endings[row.image_id] == int(row.status.is_terminal)
    if row.status.is_terminal:
        assert (originals, row.due_at) == ({}, None)
    else:
        assert row.status is Status.PENDING and row.has_original
        assert originals[row.image_id] in PHOTOS
        assert len(originals[row.image_id]) == row.source.size_bytes
        history.world.sweep()
