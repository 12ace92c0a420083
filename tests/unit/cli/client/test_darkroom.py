"""The client that other programs import."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import darkroom_client
from darkroom_client import Darkroom, NotDownloaded, NotFinished, Refused, UploadOptions
from repository.report import ROOT
from tests.conformity import described
from tests.unit.cli.fake_api import FILES, FakeApi, image_id_of


@pytest.fixture
def darkroom(api: FakeApi) -> Iterator[Darkroom]:
    with Darkroom(api.url, pause=lambda _: None) as client:
        yield client


def test_bytes_are_sent_with_what_is_asked_for(api: FakeApi, darkroom: Darkroom) -> None:
    image = darkroom.upload(
        b"photo",
        idempotency_key="order-17",
        variants=["a", "b"],
        recipe={"z": 1, "a": 2},
        delay="P2D",
        tags=["c", "d"],
        metadata={"z": 1, "a": [2]},
    )
    assert api.images[image.image_id]["status"] == "pending"
    (post,) = api.posts
    assert (post.body, post.headers["idempotency-key"]) == (b"photo", "order-17")
    assert post.query == {
        "variants": ["a,b"],
        "recipe": ['{"a":2,"z":1}'],
        "delay": ["P2D"],
        "tags": ["c,d"],
        "metadata": ['{"z":1,"a":[2]}'],
    }


def test_without_a_key_two_uploads_are_two_images(api: FakeApi, darkroom: Darkroom, tmp_path: Path) -> None:
    (photo := tmp_path / "a.png").write_bytes(b"photo")
    assert darkroom.upload(photo).image_id != darkroom.upload(photo).image_id
    assert {post.headers["content-type"] for post in api.posts} == {"image/png"}


def test_an_upload_takes_what_the_api_takes_by_the_same_names() -> None:
    schemas = described()["components"]["schemas"]
    of_file = {"bytes", "sha256", "content_type"}
    assert UploadOptions.__annotations__.keys() == schemas["Announcement"]["properties"].keys() - of_file
    of_bytes = {"on_duplicate"}
    assert UploadOptions.__annotations__.keys() - of_bytes == schemas["FetchOrder"]["properties"].keys() - {"url"}
    in_query = {parameter["name"] for parameter in described()["paths"]["/images"]["post"]["parameters"]}
    assert in_query >= UploadOptions.__annotations__.keys()
    page = (ROOT / "docs" / "client.md").read_text()
    assert [name for name in UploadOptions.__annotations__ if f"`{name}`" not in page] == []


def test_a_url_is_fetched_by_the_stack(api: FakeApi, darkroom: Darkroom) -> None:
    darkroom.upload("https://photos.example/a.jpg", notify="wh_1")
    assert json.loads(api.posts[0].body) == {"url": "https://photos.example/a.jpg", "notify": "wh_1"}


@pytest.mark.parametrize("as_file", [True, False])
def test_what_is_too_large_for_a_request_goes_to_the_store(
    api: FakeApi, darkroom: Darkroom, tmp_path: Path, as_file: bool
) -> None:
    content = bytes(4 * 1024 * 1024 + 1)
    (photo := tmp_path / "large.png").write_bytes(content)
    darkroom.upload(photo if as_file else content, preset="tiny")
    assert api.announced[0]["bytes"] == len(content) and api.announced[0]["preset"] == "tiny"
    assert api.forms[-1]["file"] == content


def test_it_waits_until_the_image_has_ended_and_downloads_what_the_document_names(
    api: FakeApi, darkroom: Darkroom
) -> None:
    api.polls_until_done = 3
    document = darkroom.wait(darkroom.upload(b"photo").image_id)
    assert document["status"] == "done"
    assert darkroom.download(document, "thumb") == FILES["thumb"][1]
    with pytest.raises(NotDownloaded, match="has no huge"):
        darkroom.download(document, "huge")


def test_a_wait_asks_once_more_at_its_timeout_and_ends(api: FakeApi) -> None:
    api.polls_until_done = 1_000_000
    now, pauses = 0.0, list[float]()

    def pause(duration_seconds: float) -> None:
        nonlocal now
        pauses.append(duration_seconds)
        now += duration_seconds

    with Darkroom(api.url, pause=pause) as darkroom:
        accepted = darkroom.upload(b"photo")
        with pytest.raises(NotFinished, match=r"still pending after 30 s\. It is not lost"):
            darkroom.wait(accepted.image_id, seen=accepted, timeout_seconds=30, clock=lambda: now)
    assert now == pytest.approx(30)
    assert len(api.requests) - len(api.posts) == len(pauses)


def test_a_list_goes_on_from_page_to_page() -> None:
    asked = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(dict(request.url.params))
        page = len(asked)
        return httpx.Response(200, json={"images": [listed(f"{page}")], "next": None if page == 3 else f"after-{page}"})

    with Darkroom("https://api.test", transport=httpx.MockTransport(answer)) as darkroom:
        found = darkroom.images(status="done", reference="a&b", tag="c d")
        assert [image["id"] for image in found] == [image_id_of(page) for page in "123"]
    filters = {"status": "done", "reference": "a&b", "tag": "c d"}
    assert asked == [filters, *({**filters, "cursor": f"after-{page}"} for page in (1, 2))]


def test_a_server_that_is_no_darkroom_has_no_list() -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json={"images": [{"id": "; rm -rf /"}]}))
    with Darkroom("https://api.test", transport=transport) as darkroom, pytest.raises(Refused, match="a Darkroom API"):
        list(darkroom.images())


def test_the_package_has_types_and_the_page_names_what_it_exports() -> None:
    assert (Path(darkroom_client.__path__[0]) / "py.typed").exists()
    page = (ROOT / "docs" / "client.md").read_text()
    assert [name for name in re.findall(r"^\| `(\w+)(?:\(|`)", page, re.M) if not _is_known(name)] == []


def _is_known(name: str) -> bool:
    return name in darkroom_client.__all__ or hasattr(Darkroom, name)


def listed(name: str) -> dict[str, Any]:
    """An image as lists have it."""
    with FakeApi() as api:
        document = api.document(image_id_of(name), "pending")
    return {**document, "thumb": None, "estimated_seconds": None}
