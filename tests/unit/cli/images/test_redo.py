"""`darkroom redo`: a line for each image, refusals with reasons, and its exit status."""

from __future__ import annotations

import pytest

from darkroom.domain.images.image import Image
from darkroom.domain.kernel.errors import Retryable
from darkroom_cli.terminal.interrupts import Ending, Interrupts, ended_by
from tests.support.images import developed
from tests.support.stack import FakeStack
from tests.unit.cli.conftest import Run


@pytest.fixture
def stack(stack: FakeStack, monkeypatch: pytest.MonkeyPatch) -> FakeStack:
    monkeypatch.setattr(Interrupts, "wait", lambda _, seconds: stack.world.advance(seconds))
    return stack


def test_each_image_is_begun_once_and_said_so(run: Run, stack: FakeStack) -> None:
    first, other = developed(stack.world), developed(stack.world)
    result = run("redo", first, "-", stdin=f"{other} and more\n\n{first}\n")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == "".join(f"{image_id}  will be developed again, in run 2\n" for image_id in (first, other))
    assert [message.run for message in stack.lanes.sent[-2:]] == [2, 2]


def test_it_does_not_go_faster_than_it_is_told(run: Run, stack: FakeStack) -> None:
    ids = [developed(stack.world) for _ in range(5)]
    began = stack.clock()
    run("redo", "--rate", 2, *ids)
    assert stack.clock() - began == 2000


def test_an_image_that_is_refused_costs_the_others_nothing(run: Run, stack: FakeStack) -> None:
    image_id = developed(stack.world)
    result = run("redo", "0" * 26, image_id)
    assert (result.exit_code, result.stdout) == (1, f"{image_id}  will be developed again, in run 2\n")
    assert f"{'0' * 26}  not redone: There is no image with this id." in result.stderr
    assert "1 of 2 images were not redone." in result.stderr


def test_what_is_no_id_is_not_understood_and_nothing_is_done(run: Run, stack: FakeStack) -> None:
    image_id = developed(stack.world)
    result = run("redo", image_id, "photo.jpg")
    assert result.exit_code == 2
    assert "is not an image id" in result.stderr
    assert stack.world.row(image_id).run == 1
    assert run("redo").exit_code == 2


def test_a_table_that_does_not_answer_ends_it_and_says_what_was_done(
    run: Run, stack: FakeStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [developed(stack.world) for _ in range(3)]
    change = stack.images.change

    def silent(before: Image, after: Image, **options: tuple[str, ...]) -> Image:
        if before.image_id == ids[1]:
            raise Retryable("changing the image row: timeout")
        changed: Image = change(before, after, **options)
        return changed

    monkeypatch.setattr(stack.images, "change", silent)
    result = run("redo", *ids)
    assert (result.exit_code, result.stdout) == (1, f"{ids[0]}  will be developed again, in run 2\n")
    assert "run the same command again. 1 of 3 images were begun before that." in result.stderr
    assert [stack.world.row(image_id).run for image_id in ids] == [2, 1, 1]


def test_ctrl_c_ends_it_between_two_images(run: Run, stack: FakeStack, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [developed(stack.world) for _ in range(3)]

    ending = Ending()

    def pause(interrupts: Interrupts, seconds: float) -> None:
        ending.requested = True

    monkeypatch.setattr(Interrupts, "wait", pause)
    with ended_by(ending):
        result = run("redo", *ids)
    assert result.exit_code == 130
    assert "Interrupted, with 2 images left: run the same command again." in result.stderr
    assert [stack.world.row(image_id).run for image_id in ids] == [2, 1, 1]
