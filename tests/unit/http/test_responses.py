"""The answer to a client that asks for an image's status."""

import json
from http import HTTPStatus
from typing import Any

from darkroom.http.responses import headers_of_accepted, image_response
from proof.fakes import World
from proof.fakes.pictures import jpeg


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


def test_a_pending_image_is_asked_for_again() -> None:
    world = World()
    status, headers, document = answer(world, accepted(world))
    assert (status, document["status"], headers["Retry-After"]) == (HTTPStatus.OK, "pending", "1")


def test_a_done_image_has_addresses() -> None:
    world = World()
    image_id = done(world)
    _, headers, document = answer(world, image_id)
    assert "Retry-After" not in headers
    assert document["variants"] and all(
        variant["url"].startswith("https://outputs.example/") for variant in document["variants"]
    )


def test_the_image_itself_adds_the_originals_facts() -> None:
    world = World()
    image_id = done(world)
    assert "source" not in answer(world, image_id)[2]
    source = answer(world, image_id, with_source=True)[2]["source"]
    assert (source["media_type"], source["bytes"]) == ("image/jpeg", len(jpeg()))


def test_a_client_whose_copy_is_current_gets_no_document() -> None:
    world = World()
    image_id = accepted(world)
    _, headers, _ = answer(world, image_id)
    again = answer(world, image_id, if_none_match=headers["ETag"])
    assert again == (HTTPStatus.NOT_MODIFIED, {name: headers[name] for name in again[1]}, {})
    assert {"ETag", "Cache-Control", "Retry-After"} <= again[1].keys()


def test_a_change_of_the_image_outdates_the_copy() -> None:
    world = World()
    image_id = accepted(world)
    tag = answer(world, image_id)[1]["ETag"]
    world.deliver(world.lanes.sent[-1])
    assert answer(world, image_id, if_none_match=tag)[0] == HTTPStatus.OK


def test_a_copy_is_outdated_before_its_addresses_die() -> None:
    world = World()
    image_id = done(world)
    tag = answer(world, image_id)[1]["ETag"]
    world.advance(300)
    assert answer(world, image_id, if_none_match=tag)[0] == HTTPStatus.OK


def test_whoever_repeats_a_request_is_told_that_it_was_one() -> None:
    world = World()
    image = world.row(accepted(world))
    first, again = (headers_of_accepted(image, replayed=replayed, now=world.clock()) for replayed in (False, True))
    assert again == {**first, "Idempotent-Replayed": "true"}
    assert (first["Location"], first["Retry-After"]) == (f"/images/{image.image_id}/status", "1")
