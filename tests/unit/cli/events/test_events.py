"""`darkroom events republish`: what it says, and its exit status."""

from __future__ import annotations

import pytest

from tests.support.fakes.pictures import jpeg
from tests.support.stack import FakeStack
from tests.unit.cli.conftest import Run


@pytest.fixture
def stack(stack: FakeStack) -> FakeStack:
    stack.world.submit(jpeg())
    return stack


def test_it_says_what_it_would_publish(run: Run, stack: FakeStack) -> None:
    result = run("events", "republish", "--since", "2026-11-21")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "        1  image.accepted",
        "1 event of 1 row would be published again. Add --yes to do it.",
    ]
    assert stack.topic.published == []


def test_it_publishes(run: Run, stack: FakeStack) -> None:
    result = run("events", "republish", "--since", "2026-11-21T09:00Z", "--until", "2026-11-21T10:00:01+01:00", "--yes")
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, "1 of 1 event published again.")
    assert [event.subject for event in stack.topic.published] == [*stack.images.rows]


def test_what_could_not_be_published_is_named(run: Run, stack: FakeStack) -> None:
    (image_id,) = stack.images.rows
    stack.topic.refused = {image_id}
    result = run("events", "republish", "--since", "2026-11-21", "--yes")
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (1, "0 of 1 event published again.")
    assert f"error: {image_id}-1: the topic refuses it" in result.stderr


def test_rows_that_cannot_be_read_are_told(run: Run, stack: FakeStack) -> None:
    (image_id,) = stack.images.rows
    stack.images.unreadable[image_id] = stack.images.rows.pop(image_id)
    result = run("events", "republish", "--since", "2026-11-21", "--yes")
    assert result.exit_code == 1
    assert (
        "1 row cannot be read by this version: ./darkroom doctor --all --stack shop --region eu-west-1 lists them."
        in result.stderr
    )


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "--since"),
        (("--since", "soon"), "neither a day nor a time"),
        (("--since", "2026-11-21", "--until", "25:00"), "neither a day nor a time"),
        (("--since", "2026-11-21", "--type", "image.gone"), "no type of event"),
        (("--since", "2026-11-21", "--rate", "1"), "--rate"),
    ],
)
def test_what_is_not_understood_does_nothing(
    run: Run, stack: FakeStack, arguments: tuple[str, ...], problem: str
) -> None:
    result = run("events", "republish", *arguments, "--yes")
    assert (result.exit_code, stack.topic.published) == (2, [])
    assert problem in result.output
