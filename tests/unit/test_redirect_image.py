"""The stable address of a variant: it leads to what everybody may have at present, and nowhere else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from darkroom.domain.edge.addresses import address_in
from darkroom.domain.images.image import Image
from darkroom.domain.images.transitions import delete
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.visibility import Visibility
from darkroom.operations.edge.redirect_image import RedirectImagePorts
from repository.expand_template import DELIVERY, without_loops
from tests.support.fakes import World
from tests.support.faults import failing
from tests.support.handlers import handler_of, sample_of
from tests.support.images import developed

ID = "0" * 26
TEMPLATE = without_loops(DELIVERY)
DISTRIBUTION = TEMPLATE["Resources"]["Distribution"]["Properties"]["DistributionConfig"]
NOTHING = {"statusCode": 404, "headers": {"Cache-Control": "public, max-age=10"}}
"""As short as CloudFront itself remembers."""


def asking(path: str, **headers: str) -> dict[str, Any]:
    return sample_of("redirect_image") | {"rawPath": path, "rawQueryString": "to=//evil.example", "headers": headers}


HOSTILE_PATHS = [
    "", "/", "/i", f"/i/{ID}", f"/i/{ID}/", f"/i/{ID}/..", f"/i/{ID}/../../outputs/{ID}", f"/i/{ID}/a/b", "/i/../x",
    f"//i/{ID}/hero", f"/i//{ID}/hero", f"/I/{ID}/hero", f"/i/{ID}/hero/", f"/i/{ID}/hero\n", f"/i/{ID}/hero\x00",
    f"/i/{ID}/%68ero", f"/i/{ID}/%2568ero", f"/i/{ID}/%2e%2e%2fx", f"/i/{ID}/hero%00", f"/i/{ID}/hero\r\nLocation: //e",
    f"/i/{ID}/{'h' * 33}", f"/i/{ID}/{'h' * 100_000}", f"/i/{ID.replace('0', '8', 1)}/hero", f"/i/{ID}0/hero",
    f"/i/{ID}/Hero", f"/i/{ID}/héro", f"/i/{ID}/hero?x", f"/i/{ID}/hero.jpg", f"/i/{ID}\\hero", "/i/*/hero",
    f"https://evil.example/i/{ID}/hero",
    f"//evil.example/i/{ID}/hero", f"/i/{ID}/\uff11hero", f"/i/{chr(0xFF10) * 26}/hero",
]  # fmt: skip


@pytest.mark.guards("edge-known-stable-addresses")
def test_no_hostile_path_is_an_address() -> None:
    assert [path for path in HOSTILE_PATHS if address_in(path) is not None] == []
    assert address_in(sample_of("redirect_image")["rawPath"]) == ("1p7t6r04aaqprxvrggww5m0fzk", "hero")


def test_a_public_variant_is_led_to_by_a_path_alone_whatever_headers_say(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(delivers=True)
    image_id = developed(world, visibility="public")
    variant = world.row(image_id).variants[0]
    handle = handler_of("redirect_image", "edge", RedirectImagePorts(images=world.images), monkeypatch)
    names = ("host", "x-forwarded-host", "x-forwarded-proto", "forwarded", "x-original-url", "x-rewrite-url", "via")
    poison = dict.fromkeys(names, "evil.example")
    answer = handle(asking(f"/i/{image_id}/{variant.name}", **poison))
    assert answer == {
        "statusCode": 302,
        "headers": {"Location": f"/{variant.key}", "Cache-Control": "public, max-age=60"},
    }
    for path in (f"/i/{image_id}/unknown", f"/i/{ID}/{variant.name}", *HOSTILE_PATHS):
        assert handle(asking(path, **poison)) == NOTHING
    assert "OriginRequestPolicyId" not in str(TEMPLATE), "no header of a viewer's even reaches it"


@pytest.mark.guards("edge-default-reaches-nothing")
def test_what_is_no_address_of_the_edge_reaches_no_origin() -> None:
    behaviour = DISTRIBUTION["DefaultCacheBehavior"]
    (viewer,) = behaviour["FunctionAssociations"]
    code = TEMPLATE["Resources"][viewer["FunctionARN"]["Fn::GetAtt"][0]]["Properties"]["FunctionCode"]
    assert viewer["EventType"] == "viewer-request"
    assert "return { statusCode: 404" in code and "request" not in code
    assert behaviour["TargetOriginId"] == "redirects", "which knows no image without an address"


HIDDEN = {
    "no longer public": lambda row: replace(row, visibilities=(Visibility.PUBLIC, Visibility.PRIVATE)),
    "signed": lambda row: replace(row, visibilities=(Visibility.SIGNED,)),
    "its key is private": lambda row: replace(
        row, variants=tuple(replace(one, key=f"outputs/{one.key}") for one in row.variants)
    ),
}


@pytest.mark.guards("edge-no-redirect-to-private", case="no longer public")
@pytest.mark.parametrize("hidden", HIDDEN)
def test_what_not_everybody_may_have_is_not_led_to(hidden: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert led_to(HIDDEN[hidden], monkeypatch) == NOTHING


@pytest.mark.guards("edge-no-redirect-to-deleted")
def test_a_deleted_image_is_not_led_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even if its tombstone still had its variants."""
    assert led_to(lambda row: replace(delete(row, now=row.created_at), variants=row.variants), monkeypatch) == NOTHING


def led_to(change: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The answer for the address of a variant whose image has changed."""
    world = World(delivers=True)
    image_id = developed(world, visibility="public")
    row: Image = world.row(image_id)
    world.images.rows[image_id] = change(row)
    handle = handler_of("redirect_image", "edge", RedirectImagePorts(images=world.images), monkeypatch)
    return handle(asking(f"/i/{image_id}/{row.variants[0].name}"))


@pytest.mark.guards("edge-outage-not-cached")
def test_an_outage_is_kept_by_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    silent = failing(World().images, "get", Retryable("no answer"))
    handle = handler_of("redirect_image", "edge", RedirectImagePorts(images=silent), monkeypatch)
    answer = handle(asking(f"/i/{ID}/hero"))
    assert answer == {"statusCode": 503, "headers": {"Retry-After": "5", "Cache-Control": "no-store"}}
