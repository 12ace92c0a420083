"""What failed and is not given up yet, by defect."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from darkroom.domain.images.image import Attempt, Cause, Image, Status
from darkroom.domain.kernel.errors import Retryable
from darkroom_cli.operator.operations.images.list_retrying import (
    ListRetryingPorts,
    Retrying,
    latest_failure,
    list_retrying,
)
from tests.support.fakes import World
from tests.support.fakes.rows import accepted_image
from tests.support.faults import raising


def failed(world: World, number: int, error_type: str = "KeyError", *, place: str = "_develop", **changes: Any) -> str:
    """An unfinished image whose first attempt has failed."""
    stack = f'  File "/opt/python/darkroom/operations/images/transcode_image.py", line {number}, in {place}\n'
    cause = Cause(error_type=error_type, message=f"message {number}", stack=stack)
    row = accepted_image(now=world.now + number, image_id=f"{number:026d}")
    attempts = (Attempt(run=1, number=1, request_id="r", started_at=1, ended_at=2, cause=cause),)
    world.images.rows[row.image_id] = replace(row, attempt=1, attempts=attempts, **changes)
    return row.image_id


def look(world: World, *, limit: int = 1000, lanes: tuple[str, ...] = ("fast", "slow"), **more: Any) -> Retrying:
    world.advance(100)
    return list_retrying(world.ports(ListRetryingPorts), lanes, limit=limit, **more)


def test_images_that_failed_alike_are_one_defect_the_one_with_most_images_first(world: World) -> None:
    other = failed(world, 1, "ValueError")
    alike = [failed(world, number) for number in (2, 3)]
    untried = accepted_image(now=world.now, image_id="7" * 26)
    world.images.rows[untried.image_id] = untried
    seen = look(world)
    assert [(defect.fingerprint, [image.image_id for image in defect.images]) for defect in seen.defects] == [
        ("KeyError@operations/transcode_image.py:_develop", alike),
        ("ValueError@operations/transcode_image.py:_develop", [other]),
    ]
    assert (seen.defects[0].cause.message, str(seen.defects[0].frame)) == (
        "message 2",
        "operations/images/transcode_image.py:2 in _develop",
    )
    assert (seen.looked_at, seen.is_all) == (4, True)


def test_what_has_ended_is_not_retried(world: World) -> None:
    failed(world, 1, status=Status.FAILED, waiting_since=None, due_at=None)
    assert look(world) == Retrying(defects=(), looked_at=0, is_all=True)


@pytest.mark.guards("retrying-current-run-only", "retrying-ended-excluded")
def test_the_failures_of_an_earlier_run_are_not_the_present_ones(world: World) -> None:
    row: Image = world.images.rows[failed(world, 1)]
    assert latest_failure(row) is not None
    assert latest_failure(replace(row, run=2)) is None
    assert latest_failure(replace(row, status=Status.DONE)) is None


def test_only_those_that_wait_longest_are_read_and_that_is_said(world: World) -> None:
    ids = [failed(world, number) for number in range(1, 251)]
    seen = look(world, limit=249)
    assert [image.image_id for image in seen.defects[0].images] == ids[:249]
    assert (seen.looked_at, seen.is_all) == (249, False)
    assert look(world, limit=250).is_all


def test_other_lanes_and_images_that_nobody_asked_for_are_left_out(world: World) -> None:
    failed(world, 1)
    assert look(world, lanes=("fast",)).defects == ()
    assert look(world, covers=lambda image: image.tenant_id == "somebody").defects == ()


def test_a_table_that_does_not_answer_is_an_error(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    failed(world, 1)
    monkeypatch.setattr(world.images, "get_all", raising(Retryable("down")))
    with pytest.raises(Retryable):
        look(world)
