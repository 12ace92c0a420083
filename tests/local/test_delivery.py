"""Pictures on a website, by the local edge: from an upload to a page in Chromium, and to nothing after a deletion."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from browser import chromium, installed
from browser.installed import NoChromium
from tests.local.keyed import client, done, key_of
from tests.local.local_stack import PHOTO, LocalStack, wait_until

RECIPE = (
    '{"variants": [{"name": "s", "width": 160}, {"name": "m", "width": 320},'
    ' {"name": "card", "width": 240, "format": "negotiated"}]}'
)


@pytest.fixture(scope="module")
def delivered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    stack = LocalStack(state=tmp_path_factory.mktemp("delivered"))
    with stack.serving("--access", "keys", "--delivery", "--enforce-iam"):
        for tenant in ("shop", "others"):
            added = stack.darkroom("tenants", "add", tenant)
            assert added.returncode == 0, added.stdout
        yield stack


def upload(stack: LocalStack, key: str, visibility: str) -> dict[str, Any]:
    with client(stack, key) as api:
        query = {"recipe": RECIPE, "visibility": visibility}
        sent = api.post("/images", params=query, content=PHOTO.read_bytes(), headers={"Content-Type": "image/jpeg"})
        assert sent.status_code == 202, sent.text
        return done(api, sent.json()["id"])


def fetch(url: str, **headers: str) -> httpx.Response:
    return httpx.get(url, headers=headers, trust_env=False, timeout=60)


def edge_of(stack: LocalStack) -> str:
    return stack.record.extensions["delivery"]["Url"]


@pytest.mark.promise("delivery-deleted-everywhere")
def test_a_public_picture_is_on_a_page_without_a_key_and_gone_after_its_deletion(
    delivered: LocalStack, tmp_path: Path
) -> None:
    key = key_of(delivered, "shop")
    document = upload(delivered, key, "public")
    picture = document["picture"]
    for variant in document["variants"]:
        for expected in ("Miss", "Hit"):
            answer = fetch(variant["url"], Accept="image/avif,image/webp,*/*" if variant["format"] == "avif" else "*/*")
            assert answer.headers["x-cache"].startswith(expected)
            assert answer.headers["cache-control"].startswith("public, max-age=86400")
            assert answer.headers["x-content-type-options"] == "nosniff"
    assert (delivered.darkroom("keys", "revoke", key).returncode, fetch(picture["url"]).status_code) == (0, 200)

    page_file = tmp_path / "page.html"
    page_file.write_text(f'<img src="{picture["url"]}" srcset="{picture["srcset"]}" sizes="100vw" alt="">')
    try:
        installed.path()
    except NoChromium as missing:
        pytest.skip(str(missing))
    with chromium.running() as browser:
        page = browser.new_page()
        page.goto(page_file.as_uri())
        page.wait_for_function("() => document.images[0].complete && document.images[0].naturalWidth > 0")
        (widest,) = [variant["url"] for variant in document["variants"] if variant["name"] == "m"]
        assert page.evaluate("() => document.images[0].currentSrc") == widest

    another = key_of(delivered, "shop")
    with client(delivered, another) as api:
        deleted = api.delete(f"/images/{document['id']}")
        assert (deleted.status_code, "darkroom-edge-until" in deleted.headers) == (204, True)
    wait_until(lambda: fetch(picture["url"]).status_code in (403, 404), "the edge forgets it", seconds=180)
    assert {fetch(variant["url"]).status_code for variant in document["variants"]} <= {403, 404}


@pytest.mark.promise("edge-private-never-served")
def test_nothing_private_is_served_and_nothing_signed_without_its_signature(delivered: LocalStack) -> None:
    key, others = key_of(delivered, "shop"), key_of(delivered, "others")
    edge = edge_of(delivered)
    private, public, other = (
        upload(delivered, some, visibility)
        for some, visibility in ((key, "private"), (key, "public"), (others, "private"))
    )
    row = delivered.client("dynamodb")
    for document in (private, other):
        assert document["picture"] is None
    keys = [
        variant["key"]["S"] if "S" in variant["key"] else variant["key"]
        for document in (private, other)
        for variant in _variants(row, delivered, document["id"])
    ]
    assert len(keys) == 2 * len(private["variants"])
    for path in keys:
        tail = path.partition("/")[2]
        tries = (
            *(path, f"public/{tail}", f"signed/{tail}", f"public/../{path}", f"public/%2e%2e/{path}", f"/{path}"),
            *(f"public/..%2f{path}", f"public/%252e%252e/{quote(path, safe='')}", quote(path, safe=""), f"i/../{path}"),
            *(f"i/{private['id']}/s", f"i/{other['id']}/m", f"public\\..\\{path}", f"public/{path}"),
        )
        for tried in tries:
            answer = fetch(f"{edge}/{tried}")
            assert answer.status_code in (400, 403, 404), tried
    assert fetch(public["picture"]["url"]).status_code == 200


def _variants(dynamodb: Any, stack: LocalStack, image_id: str) -> list[dict[str, Any]]:
    item = dynamodb.get_item(TableName=stack.output("ImagesTableName"), Key={"image_id": {"S": image_id}})["Item"]
    return [variant["M"] for variant in item["variants"]["L"]]


def test_the_stable_address_follows_and_a_poisoned_header_reaches_no_other_viewer(delivered: LocalStack) -> None:
    document = upload(delivered, key_of(delivered, "shop"), "public")
    redirect = fetch(f"{edge_of(delivered)}/i/{document['id']}/m")
    assert redirect.status_code == 302
    assert redirect.headers["cache-control"].startswith("public, max-age=60")
    target = httpx.URL(edge_of(delivered)).join(redirect.headers["location"])
    (medium,) = [variant for variant in document["variants"] if variant["name"] == "m"]
    assert hashlib.sha256(fetch(str(target)).content).hexdigest() == medium["sha256"]
    (card,) = [variant for variant in document["variants"] if variant["name"] == "card"]
    poisons = {"X-Forwarded-Host": "evil.example", "X-Original-URL": "/evil", "Accept": "text/html," * 2000}
    assert fetch(card["url"], **poisons).headers["content-type"] == "image/jpeg"
    for accept, media_type in (("image/avif,*/*", "image/avif"), ("image/webp", "image/webp"), ("", "image/jpeg")):
        answer = fetch(card["url"], Accept=accept)
        assert (answer.headers["content-type"], answer.headers["vary"].lower()) == (media_type, "accept")
