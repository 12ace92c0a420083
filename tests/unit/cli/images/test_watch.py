"""The poll loop with a fake clock: which images are polled, when, and how often."""

from __future__ import annotations

from collections import Counter
from typing import Any, cast

import pytest

from darkroom_cli.images.watch import WINDOW, UploadWatch
from darkroom_client import Darkroom
from darkroom_client.client import ReceivedStatus, Refused, StatusAnswer, Unavailable
from darkroom_client.polling import PATIENCE_POLLS, pause_before_poll
from tests.unit.cli.fake_api import FakeApi, image_id_of


class Service:
    """Images that end at given times, polled through `status` like the client's Api; time passes only in `finish`."""

    def __init__(self, ends_at: dict[str, float], *, retry_after_seconds: float | None = 1.0) -> None:
        self.now = 0.0
        self.ends_at = ends_at
        self.retry_after_seconds = retry_after_seconds
        self.polls: list[tuple[float, str]] = []
        self.trouble: list[Exception] = []

    def answer(self, image_id: str) -> StatusAnswer:
        status = "done" if self.now >= self.ends_at[image_id] else "pending"
        document = cast(ReceivedStatus, FakeApi.document(_FAKE, image_id, "pending") | {"status": status})
        return StatusAnswer(document=document, retry_after_seconds=self.retry_after_seconds)

    def status(self, image_id: str, *, seen: StatusAnswer | None = None) -> StatusAnswer:
        self.polls.append((self.now, image_id))
        if self.trouble:
            raise self.trouble.pop()
        return self.answer(image_id)

    def clock(self) -> float:
        return self.now

    def watch(self) -> UploadWatch:
        watch = UploadWatch(cast(Darkroom, self), clock=self.clock)
        for image_id in self.ends_at:
            watch.add(self.answer(image_id))
        return watch

    def finish(self, watch: UploadWatch) -> None:
        while (wait_seconds := watch.seconds_until_next_poll()) is not None:
            self.now += wait_seconds + 0.005  # an answer takes a while
            watch.poll()


_FAKE: Any = FakeApi.__new__(FakeApi)
_FAKE.url, _FAKE.requests = "", []


def ids(count: int) -> list[str]:
    return [image_id_of(str(number)) for number in range(count)]


def test_pauses_grow_to_a_limit_and_never_undercut_retry_after() -> None:
    pauses = [pause_before_poll(polls=polls, retry_after_seconds=None) for polls in range(20)]
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (0.5, 5.0)
    assert pause_before_poll(polls=0, retry_after_seconds=3.0) == 3.0
    assert pause_before_poll(polls=0, retry_after_seconds=86_400.0) == 60.0


def test_two_hundred_images_are_followed_with_a_handful_of_polls_a_second() -> None:
    names = ids(200)
    service = Service({name: 0.5 * number for number, name in enumerate(names)})
    watch = service.watch()
    service.finish(watch)
    assert watch.counts() == Counter(done=200)
    polls_in_second = Counter(int(moment) for moment, _ in service.polls)
    assert max(polls_in_second.values()) <= 3 * WINDOW
    assert len(service.polls) < 6 * len(names)


def test_a_few_images_that_never_end_do_not_hide_the_others() -> None:
    stuck, others = ids(2 * WINDOW), ids(60)[2 * WINDOW :]
    service = Service(dict.fromkeys(stuck, 10_000.0) | dict.fromkeys(others, 1.0))
    watch = service.watch()
    while watch.counts()["done"] < len(others):
        service.now += (watch.seconds_until_next_poll() or 0.0) + 0.005
        watch.poll()
    assert service.now < 120
    assert watch.unfinished == len(stuck)
    assert max(Counter(name for _, name in service.polls).values()) > PATIENCE_POLLS


def test_an_image_that_the_api_does_not_know_any_more_is_lost_and_the_others_go_on() -> None:
    service = Service(dict.fromkeys(ids(20), 1.0))
    service.trouble = [Refused("There is no such image.", status_code=404)]
    watch = service.watch()
    service.finish(watch)
    assert len(watch.lost) == 1
    assert watch.counts()["done"] == 19


def test_an_api_that_does_not_answer_for_a_while_loses_no_image() -> None:
    service = Service(dict.fromkeys(ids(20), 1.0))
    service.trouble = [Unavailable("Try later.")]
    watch = service.watch()
    service.now = 1.0
    with pytest.raises(Unavailable):
        watch.poll()
    service.finish(watch)
    assert watch.counts() == Counter(done=20)
