"""Listing: what a page shows, what it leaves out, and how far one request looks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from darkroom.domain.images.image import Image, Status
from darkroom.domain.images.listing import LOOKS, Cursor, ListQuery
from darkroom.domain.kernel.errors import Retryable
from darkroom.operations.images.list_images import (
    ImagePage,
    ListImagesPorts,
    list_images,
)
from darkroom.ports.images import Listed
from darkroom.ports.kernel import UnreadableRow
from tests.support.fakes import FakeImages
from tests.support.faults import meanwhile
from tests.support.images import NOW, pending


def many(count: int, **changes: object) -> FakeImages:
    images = FakeImages()
    for number in range(count):
        images.create(pending(image_id=f"{number:026d}", created_at=NOW + number, **changes))
    return images


def ids(page: ImagePage) -> list[int]:
    return [int(image.image_id) for image in page.images]


def page_of(images: FakeImages, query: ListQuery | None = None, **stated: Any) -> ImagePage:
    return list_images(ListImagesPorts(images=images), query or ListQuery(**stated), tenant_id="default")


def test_the_newest_come_first_and_each_page_goes_on_behind_the_one_before() -> None:
    images, seen, after, pages = many(7), [], None, 0
    while pages == 0 or after is not None:
        page = page_of(images, limit=3, after=after)
        seen += ids(page)
        after, pages = page.next, pages + 1
    assert (seen, pages) == ([6, 5, 4, 3, 2, 1, 0], 3)
    assert page_of(many(4), limit=4).next is None
    assert page_of(FakeImages(), limit=4) == ImagePage(images=(), next=None)


@pytest.mark.guards("list-deleted-left-out", "list-row-over-index")
def test_a_row_decides_whose_it_is_and_what_it_has_become_whatever_the_index_says() -> None:
    class Late(FakeImages):
        """The index as it was, over rows that have changed since."""

        def get_all(self, image_ids: object) -> Mapping[str, Image | UnreadableRow]:
            zero, first = (self.rows[f"{number:026d}"] for number in range(2))
            return {
                zero.image_id: replace(zero, deleted_at=NOW),
                first.image_id: replace(first, tenant_id="another"),
            }

    images = Late(rows=many(3).rows)
    assert page_of(images, limit=9) == ImagePage(images=(), next=None)


@pytest.mark.guards("list-full-page-ends")
def test_a_filter_shows_what_fits_as_of_now() -> None:
    images = many(30)
    for number in (3, 17, 29):
        images.change(row := images.rows[f"{number:026d}"], replace(row, status=Status.FAILED))
    query = ListQuery(limit=2, statuses=frozenset({Status.FAILED}))
    first = page_of(images, query)
    second = page_of(images, replace(query, after=first.next))
    assert (ids(first), ids(second), second.next) == ([29, 17], [3], None)


def test_who_filters_for_what_is_rare_gets_short_pages_that_lead_on() -> None:
    images = many(LOOKS * 100 + 20)
    images.change(row := images.rows["0" * 26], replace(row, status=Status.FAILED))
    reads = reads_of(images)
    query = ListQuery(limit=5, statuses=frozenset({Status.FAILED}))
    first = page_of(images, query)
    assert (first.images, first.next, sum(reads)) == ((), Cursor(created_at=NOW + 20, image_id=f"{20:026d}"), 500)
    assert ids(page_of(images, replace(query, after=first.next))) == [0]


@pytest.mark.guards("list-short-page-over-error")
@pytest.mark.guards("list-unjudged-not-skipped", case="get_all")
@pytest.mark.parametrize("call", ["newest", "get_all"])
def test_a_page_whose_later_look_is_not_answered_ends_behind_what_was_judged(call: str) -> None:
    images = many(250)
    for number in (30, 120, 199, 240):
        images.change(row := images.rows[f"{number:026d}"], replace(row, status=Status.FAILED))
    query = ListQuery(limit=9, statuses=frozenset({Status.FAILED}))
    answers = silent_from(images, call, look=2)
    first = page_of(images, query)
    assert (ids(first), first.next) == ([240, 199], Cursor(created_at=NOW + 150, image_id=f"{150:026d}"))
    assert isinstance(first.cut_short_by, Retryable)
    setattr(images, call, answers)
    rest = page_of(images, replace(query, after=first.next))
    assert (ids(rest), rest.next, rest.cut_short_by) == ([120, 30], None, None)


@pytest.mark.guards("list-first-look-failure")
@pytest.mark.parametrize("call", ["newest", "get_all"])
def test_a_page_whose_first_look_is_not_answered_fails(call: str) -> None:
    images = many(3)
    silent_from(images, call, look=1)
    with pytest.raises(Retryable):
        page_of(images, limit=2)


@pytest.mark.guards("list-short-page-over-error")
def test_a_page_of_which_nothing_fits_leads_on_all_the_same_where_a_later_look_is_not_answered() -> None:
    images = many(150)
    silent_from(images, "get_all", look=2)
    page = page_of(images, limit=2, statuses=frozenset({Status.FAILED}))
    assert (page.images, page.next) == ((), Cursor(created_at=NOW + 50, image_id=f"{50:026d}"))


def silent_from(images: FakeImages, call: str, *, look: int) -> Callable[..., object]:
    """Makes the call fail from that look on; returns those that answered."""
    answers, looks = getattr(images, call), count(1)

    def ask(*arguments: object, **named: object) -> object:
        if next(looks) >= look:
            raise Retryable("timeout")
        return answers(*arguments, **named)

    setattr(images, call, ask)
    return answers  # type: ignore[no-any-return]


def reads_of(images: FakeImages) -> list[int]:
    """How many rows each read requests, from here on."""
    reads: list[int] = []
    meanwhile(images, "get_all", lambda image_ids: reads.append(len(image_ids)))
    return reads


def test_an_unfiltered_page_reads_as_many_rows_as_it_shows() -> None:
    images = many(50)
    reads = reads_of(images)
    page_of(images, limit=20)
    assert reads == [20]


@pytest.mark.guards("unreadable-left-out-of-list")
def test_an_unreadable_row_is_left_out_and_told_of_and_costs_the_page_no_place() -> None:
    images = many(5)
    bad = f"{4:026d}"
    images.unreadable[bad] = images.rows.pop(bad)
    page = page_of(images, limit=2)
    assert ids(page) == [3, 2] and [row.row_id for row in page.unreadable] == [bad]
    rest = page_of(images, limit=9, after=page.next)
    assert (ids(rest), rest.next, rest.unreadable) == ([1, 0], None, ())


@pytest.mark.guards("list-deleted-look-bound")
def test_a_page_ends_where_more_was_deleted_than_one_look_passes_over() -> None:
    class Passing(FakeImages):
        looks = 0

        def newest(self, tenant_id: str, *, after: Cursor | None, limit: int) -> Listed:
            self.looks += 1
            return Listed(cursors=(), next=Cursor(created_at=NOW - self.looks, image_id="0" * 26))

    images = Passing()
    page = page_of(images, limit=5)
    assert (page.images, page.next, images.looks) == ((), Cursor(created_at=NOW - 1, image_id="0" * 26), 1)
