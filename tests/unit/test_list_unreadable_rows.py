"""Which rows this version cannot read: among unfinished images, or in the whole table."""

from __future__ import annotations

from darkroom.domain.images.image import Status, due_shard_of
from darkroom_cli.operator.operations.images.list_unreadable_rows import ListUnreadableRowsPorts, list_unreadable_rows
from tests.support.fakes import FakeImages
from tests.support.fakes.webhooks import FakeEndpoints
from tests.support.fakes.world import WebhooksWorld
from tests.support.images import NOW, pending


def house() -> FakeImages:
    """Unfinished images in every shard, some for next year, an ended one, and unreadable ones of either kind."""
    images = FakeImages()
    for number in range(250):
        images.create(pending(image_id=f"{number:026d}", due_at=NOW + number * 10**9))
    assert len({due_shard_of(image_id) for image_id in images.rows}) == 16
    images.create(pending(image_id="6" * 26, status=Status.DONE, due_at=None, waiting_since=None))
    for image_id, due_at in (("1" * 26, NOW + 2), ("2" * 26, NOW + 1), ("3" * 26, None)):
        images.unreadable[image_id] = pending(image_id=image_id, due_at=due_at)
    return images


def test_all_that_is_unfinished_is_read_and_what_is_looked_at_next_comes_first() -> None:
    progress: list[tuple[int, int]] = []
    ports = ListUnreadableRowsPorts(images=house(), endpoints=FakeEndpoints())
    survey = list_unreadable_rows(ports, whole_table=False, on_read=lambda *counts: progress.append(counts))
    assert survey.rows == 252
    assert [row.row_id for row in survey.unreadable] == ["2" * 26, "1" * 26]
    assert (len(progress), progress[-1]) == (3, (252, 2))


def test_the_whole_table_has_those_too_that_nobody_looks_at() -> None:
    survey = list_unreadable_rows(ListUnreadableRowsPorts(images=house(), endpoints=FakeEndpoints()), whole_table=True)
    assert survey.rows == 254
    assert [row.row_id for row in survey.unreadable] == ["2" * 26, "1" * 26, "3" * 26]


def test_an_unreadable_webhook_is_named() -> None:
    world = WebhooksWorld()
    endpoint = world.add()
    world.add("https://b.example.com/")
    world.endpoints.unreadable.add(endpoint.endpoint_id)
    survey = list_unreadable_rows(
        ListUnreadableRowsPorts(images=FakeImages(), endpoints=world.endpoints), whole_table=False
    )
    assert (survey.rows, [row.row_id for row in survey.unreadable]) == (2, [endpoint.endpoint_id])
