"""The answer to a client that asks for an image's status."""

import json
from http import HTTPStatus
from typing import Any

import pytest

from darkroom.domain.images.listing import ListQuery
from darkroom.domain.schedules.schedule import Timetable
from darkroom.http.images.entity_tags import entity_tag, page_tag
from darkroom.http.images.responses import headers_of_accepted, image_response, page_response
from darkroom.operations.images.list_images import ListImagesPorts, list_images
from tests.support.fakes import World
from tests.support.fakes.pictures import jpeg


def answer(
    world: World, image_id: str, *, if_none_match: str | None = None, with_source: bool = False
) -> tuple[int, dict[str, str], dict[str, Any]]:
    """Status, headers and document."""
    response = image_response(
        world.row(image_id),
        world.outputs.url_of,
        with_source=with_source,
        if_none_match=if_none_match,
        now=world.clock(),
    )
    return (
        response.status_code,
        {name: str(value) for name, value in response.headers.items()},
        json.loads(response.body or "{}"),
    )


def accepted(world: World) -> str:
    return world.submit(jpeg()).image.image_id


def done(world: World) -> str:
    image_id = accepted(world)
    world.deliver(world.lanes.sent[-1])
    return image_id


def test_a_pending_image_is_asked_for_again(world: World) -> None:
    status, headers, document = answer(world, accepted(world))
    assert (status, document["status"], headers["Retry-After"]) == (HTTPStatus.OK, "pending", "1")


def test_a_done_image_has_addresses(world: World) -> None:
    image_id = done(world)
    _, headers, document = answer(world, image_id)
    assert "Retry-After" not in headers
    assert document["variants"] and all(
        variant["url"].startswith("https://outputs.example/") for variant in document["variants"]
    )


def test_the_image_itself_adds_the_originals_facts(world: World) -> None:
    image_id = done(world)
    assert "source" not in answer(world, image_id)[2]
    source = answer(world, image_id, with_source=True)[2]["source"]
    assert (source["media_type"], source["bytes"]) == ("image/jpeg", len(jpeg()))


def test_a_client_whose_copy_is_current_gets_no_document(world: World) -> None:
    image_id = accepted(world)
    _, headers, _ = answer(world, image_id)
    again = answer(world, image_id, if_none_match=headers["ETag"])
    assert again == (HTTPStatus.NOT_MODIFIED, {name: headers[name] for name in again[1]}, {})
    assert {"ETag", "Cache-Control", "Retry-After"} <= again[1].keys()


def test_a_change_of_the_image_outdates_the_copy(world: World) -> None:
    image_id = accepted(world)
    tag = answer(world, image_id)[1]["ETag"]
    world.deliver(world.lanes.sent[-1])
    assert answer(world, image_id, if_none_match=tag)[0] == HTTPStatus.OK


def test_whoever_repeats_a_request_is_told_that_it_was_one(world: World) -> None:
    image = world.row(accepted(world))
    first, again = (headers_of_accepted(image, replayed=replayed, now=world.clock()) for replayed in (False, True))
    assert again == {**first, "Idempotent-Replayed": "true"}
    assert (first["Location"], first["Retry-After"]) == (f"/images/{image.image_id}/status", "1")


# ── Lists ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def listed(
    world: World, *, limit: int = 20, with_thumbs: bool = False, if_none_match: str | None = None, now: int = 0
) -> tuple[int, dict[str, str], dict[str, Any]]:
    """Status, headers and document of the first page."""
    page = list_images(world.ports(ListImagesPorts), ListQuery(limit=limit), tenant_id="default")
    response = page_response(
        page,
        world.estimator.outlook,
        thumb_url_of=world.outputs.url_of if with_thumbs else None,
        if_none_match=if_none_match,
        now=now or world.clock(),
    )
    headers = {name: str(value) for name, value in response.headers.items()}
    return response.status_code, headers, json.loads(response.body or "{}")


def test_a_page_is_asked_for_again_while_one_of_its_images_is_unfinished(world: World) -> None:
    done(world)
    assert "Retry-After" not in listed(world)[1]
    accepted(world)
    assert listed(world)[1]["Retry-After"] == "1"
    world.deliver(world.lanes.sent[-1])
    assert "Retry-After" not in listed(world)[1]


def test_a_page_of_scheduled_images_is_asked_for_when_the_first_of_them_is_due(world: World) -> None:
    for minutes in (30, 10):
        world.submit(jpeg(), timetable=Timetable(process_at=world.clock() + minutes * 60_000))
    assert listed(world)[1]["Retry-After"] == "600"


def test_a_page_of_which_the_clients_copy_is_current_has_no_document(world: World) -> None:
    accepted(world)
    _, headers, _ = listed(world)
    again = listed(world, if_none_match=headers["ETag"])
    assert again == (HTTPStatus.NOT_MODIFIED, {name: headers[name] for name in again[1]}, {})
    assert {"ETag", "Cache-Control", "Retry-After"} <= again[1].keys()


@pytest.mark.guards("list-tag-time-window")
def test_a_copy_of_a_page_is_outdated_by_any_image_of_it_by_a_new_one_and_before_its_addresses_die() -> None:
    world = World()
    tags = [listed(world)[1]["ETag"]]
    accepted(world)
    tags.append(listed(world)[1]["ETag"])
    world.deliver(world.lanes.sent[-1])
    tags.append(listed(world)[1]["ETag"])
    accepted(world)
    tags.append(listed(world)[1]["ETag"])
    tags.append(listed(world, limit=1)[1]["ETag"])
    tags.append(listed(world, now=world.clock() + 300_000)[1]["ETag"])
    assert len(set(tags)) == len(tags)


@pytest.mark.guards("list-tag-covers-next-page")
def test_a_copy_of_a_page_is_outdated_by_the_page_that_follows(world: World) -> None:
    accepted(world)
    entries = [(world.row(accepted(world)), None)]
    assert len({page_tag(entries, following, world.clock()) for following in (None, "a", "b")}) == 3


def test_an_estimate_that_changes_outdates_the_copy_of_a_page_and_of_an_image(world: World) -> None:
    image_id = accepted(world)
    image, now = world.row(image_id), world.clock()
    assert len({entity_tag(image, now, estimate) for estimate in (None, 5, 6)}) == 3
    assert len({page_tag([(image, estimate)], None, now) for estimate in (None, 5, 6)}) == 3


def test_a_list_has_one_presigned_address_per_image_and_only_on_demand(world: World) -> None:
    done(world)
    accepted(world)
    assert [image["thumb"] for image in listed(world)[2]["images"]] == [None, None]
    waiting, finished = listed(world, with_thumbs=True)[2]["images"]
    assert waiting["thumb"] is None
    smallest = min(finished["variants"], key=lambda variant: (variant["width"] * variant["height"], variant["bytes"]))
    thumb = finished["thumb"]
    assert (thumb["name"], thumb["width"], thumb["height"]) == tuple(
        smallest[name] for name in ("name", "width", "height")
    )
    assert thumb["url"].startswith("https://outputs.example/")
    assert all(variant["url"].startswith("/images/") for variant in finished["variants"])


def test_nothing_is_signed_for_a_client_whose_copy_is_current(world: World) -> None:
    done(world)
    tag = listed(world, with_thumbs=True)[1]["ETag"]
    world.outputs.url_of = None  # signing would fail
    assert listed(world, with_thumbs=True, if_none_match=tag)[0] == HTTPStatus.NOT_MODIFIED
