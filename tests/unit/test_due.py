"""What the sweeper does with an image that is due."""

from dataclasses import replace

import pytest

from darkroom.domain.due import Rescue, look_at_due
from darkroom.domain.image import GiveUp, Image, NothingToDo, Status
from tests.unit.test_image import NOW, pending, processing


def test_a_due_image_is_rescued_at_pauses_that_double_up_to_an_hour() -> None:
    image, pauses = pending(due_at=NOW), []
    now = NOW
    for _ in range(8):
        rescue = look_at_due(image, now=now)
        assert isinstance(rescue, Rescue)
        assert rescue.image.due_at is not None
        pauses.append((rescue.image.due_at - now) // 1000)
        image, now = rescue.image, rescue.image.due_at
    assert pauses == [60, 120, 240, 480, 960, 1920, 3600, 3600]


def test_a_rescue_is_no_attempt() -> None:
    rescue = look_at_due(pending(due_at=NOW), now=NOW)
    assert isinstance(rescue, Rescue)
    assert rescue.image.attempt == 0


@pytest.mark.parametrize(
    ("image", "reason"),
    [
        (pending(due_at=NOW + 1), "too_early"),
        (pending(due_at=None), "too_early"),
        (processing(due_at=NOW), "leased"),
        (pending(status=Status.DONE), "too_early"),
        (pending(status=Status.DONE, due_at=NOW), "terminal"),
        (pending(status=Status.SCHEDULED, due_at=NOW), "too_early"),
    ],
)
def test_what_is_not_due_is_left_alone(image: Image, reason: str) -> None:
    # The due index is eventually consistent: it may list what is due no more.
    image = replace(image, due_at=None) if image.status is Status.DONE and image.due_at != NOW else image
    assert look_at_due(image, now=NOW) == NothingToDo(reason=reason)  # type: ignore[arg-type]


def test_a_due_image_whose_worker_died_is_rescued() -> None:
    assert isinstance(look_at_due(processing(due_at=NOW, lease_until=NOW - 1), now=NOW), Rescue)


def test_a_due_image_without_attempts_is_given_up() -> None:
    given_up = look_at_due(processing(due_at=NOW, lease_until=NOW - 1, attempt=5), now=NOW)
    assert isinstance(given_up, GiveUp)
    assert given_up.image.error is not None and given_up.image.error.code == "worker_lost"


def test_a_backlog_explains_a_wait_but_not_a_dead_worker() -> None:
    assert isinstance(look_at_due(processing(due_at=NOW, lease_until=NOW - 1), now=NOW, backlog=10**6), Rescue)
