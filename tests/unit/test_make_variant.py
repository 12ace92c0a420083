"""Variants on first request: what a path asks for, who allows it, and that it is made once for all who ask."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from http import HTTPStatus
from types import SimpleNamespace
from typing import Any, cast

import pytest

from darkroom.domain.edge.instructions import (
    ENGINE,
    FORMATS,
    MAX_VARIANTS,
    allowed_by,
    asked_for,
    key_of_tenant,
    spec_of,
)
from darkroom.domain.kernel.errors import Retryable, TurnedAway
from darkroom.domain.kernel.tenants import Tenant, TenantState, Tier
from darkroom.domain.kernel.visibility import Visibility
from darkroom.domain.recipes.recipes import Recipe
from darkroom.domain.sweeping.due import REMOVAL_GRACE_SECONDS
from darkroom.http.edge.variants import not_served, postponed, refused, variant_answer
from darkroom.imaging import develop
from darkroom.operations.edge import make_variant as operation
from darkroom.operations.edge.invalidate_edge import InvalidateEdgePorts, invalidate_edge
from darkroom.operations.edge.make_variant import MakeVariantPorts, NotServed, make_variant
from darkroom.operations.images.change_visibility import ChangeVisibilityPorts, change_visibility
from darkroom.ports.edge import MadeVariant
from darkroom_client import variant_path
from local_aws.distributions.lifetimes import Lifetimes, lifetime
from repository.expand_template import DELIVERY, resources
from tests.support.fakes import World
from tests.support.fakes.edge import FakeMadeVariants, FakeVariantLeases
from tests.support.fakes.load_shedding import FakeTokenBuckets
from tests.support.fakes.pictures import jpeg, opened
from tests.support.fakes.secrets import FakeSecret
from tests.support.fakes.tenants import FakeTenants
from tests.support.faults import Call, Faults, Mode, ProcessDied
from tests.support.images import developed

ALLOWED = "w_32,w_16,card=w_20-h_20-f_cover,old="
MADE = MadeVariant(
    key=f"public/{'0' * 26}/t{ENGINE}/w_1.png",
    image_id="0" * 26,
    media_type="image/png",
    viewer_seconds=86_400,
    body=b"",
)
STORES = ("images", "originals", "tenants", "made", "leases", "token_buckets", "signing_secret")


class Edge:
    """A world with a public image, and what `make_variant` has besides."""

    def __init__(self, **upload: Any) -> None:
        self.world = World(delivers=True)
        self.image_id = developed(self.world, visibility="public", **upload)
        self.secret, self.tenants = FakeSecret(), FakeTenants()
        self.made, self.leases, self.buckets = FakeMadeVariants(), FakeVariantLeases(), FakeTokenBuckets()
        self.made.objects = cast(Any, self.world.outputs.objects)  # they are in one bucket
        self.pause: Any = self.world.advance
        self.owners = 0

    def change(self, **changes: Any) -> None:
        before = self.world.row(self.image_id)
        self.world.images.change(before, replace(before, **changes))

    def end(self, change: str) -> None:
        """The image is deleted or made private, as the sweeper and the worker do it."""
        if change == "deleted":
            self.world.delete(self.image_id)
            self.world.sweep()
        else:
            ports = self.world.ports(ChangeVisibilityPorts)
            change_visibility(ports, self.image_id, Visibility.PRIVATE, tenant_id="default", tier=Tier.FREE)
            self.world.deliver(self.world.lanes.sent[-1], "receipt of the change")

    def settle(self) -> None:
        """What is due later happens: the sweeper's second look, and what the edge's queue was told."""
        self.world.advance(REMOVAL_GRACE_SECONDS + 1)
        self.world.sweep()
        bills = SimpleNamespace(pay=lambda bill, _: bill, settle=lambda _: None)
        distribution = SimpleNamespace(invalidate=lambda _: None)
        ports = InvalidateEdgePorts(
            distribution=distribution, invalidations=bills, clock=lambda: self.world.now, limit=1, made=self.made
        )
        invalidate_edge(ports, {str(number): told for number, (told, _) in enumerate(self.world.stale_edge.told)})

    @property
    def made_keys(self) -> set[str]:
        return {key for key in self.made.objects if f"/t{ENGINE}/" in key}

    @property
    def exposed(self) -> list[str]:
        """What CloudFront could read of the image."""
        return [key for key in self.made.objects if key.startswith("public/")]

    def key(self, name: str, image_id: str | None = None) -> str:
        return f"/public/{image_id or self.image_id}/t{ENGINE}/{name}"

    def signed(self, instructions: str, extension: str = "webp", *, tenant_id: str = "default") -> str:
        key = key_of_tenant(self.secret.current().text, tenant_id)
        return self.key(variant_path(key, self.image_id, instructions, extension).rpartition("/")[2])

    def ports(self, faults: Faults | None = None) -> MakeVariantPorts:
        ports = self.world.ports(
            MakeVariantPorts,
            tenants=self.tenants,
            made=self.made,
            leases=self.leases,
            token_buckets=self.buckets,
            signing_secret=self.secret,
            pause=self.pause,
            allowed=ALLOWED,
        )
        if faults is None:
            return ports
        return replace(ports, **{name: faults.around(name, getattr(ports, name)) for name in STORES})

    def ask(self, path: str, faults: Faults | None = None) -> MadeVariant:
        self.owners += 1
        return make_variant(self.ports(faults), path, owner=f"r{self.owners}", deadline=self.world.now + 60_000)


@pytest.fixture
def edge() -> Edge:
    return Edge()


@pytest.mark.parametrize(
    ("instructions", "extension", "stated"),
    [
        ("w_640", "webp", {"width": 640}),
        ("h_480-q_70", "jpg", {"height": 480, "quality": 70}),
        ("w_400-h_300-f_cover-g_attention", "avif", {"width": 400, "fit": "cover", "gravity": "attention"}),
    ],
)
def test_instructions_say_a_variant(instructions: str, extension: str, stated: dict[str, Any]) -> None:
    spec = spec_of(instructions, extension)
    assert spec is not None
    assert stated.items() <= spec.model_dump().items()


@pytest.mark.guards("on-request-one-spelling")
@pytest.mark.parametrize(
    ("instructions", "extension"),
    [
        ("w_640-", "webp"),
        ("w_640-q_80", "webp"),  # the default
        ("w_640-q_70", "png"),  # which has no quality
        ("w_640-g_north", "jpg"),  # nothing is cropped
        ("w_640-h_480-f_cover-q_101", "jpg"),
        *(
            (wrong, "jpg")
            for wrong in ("", "w_0640", "h_1-w_1", "w_9999", "q_70", "w_6٤0", "w_640-w_640", "f_cover-w_1")
        ),
    ],
)
def test_a_variant_has_one_spelling(instructions: str, extension: str) -> None:
    assert spec_of(instructions, extension) is None


@pytest.mark.parametrize("text", ["w_0", "Card=w_1", "w_1,w_1", "a_b=w_1", "card=w_1-q_0", "card=other"])
def test_a_list_of_what_is_allowed_is_checked(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no|are no|twice"):
        allowed_by(text)


@pytest.mark.guards("on-request-allowed")
@pytest.mark.guards("on-request-edits-kept", "on-request-beside-recipe")
def test_what_is_made_has_the_bytes_that_it_has_in_the_images_recipe() -> None:
    regions = ({"x": 0, "y": 0, "width": 0.5, "height": 0.5, "effect": "fill"},)
    whole = {"name": "whole", "width": 64}
    recipe = {"variants": (whole,), "regions": regions, "rotate": 90}
    edge = Edge(recipe=json.dumps(recipe))
    made = edge.ask(edge.key("card.webp"))
    card = {"name": "card", "width": 20, "height": 20, "fit": "cover", "format": "webp"}
    _, same = develop(jpeg(), Recipe.model_validate({**recipe, "variants": (whole, card)})).variants
    assert (made.body, made.media_type, made.key) == (same.body, "image/webp", edge.key("card.webp")[1:])
    assert edge.ask(edge.key("w_32.png")).media_type == "image/png"
    for name in ("w_33.webp", "w_20-h_20-f_cover.webp", "old.webp", "toString.webp"):
        with pytest.raises(NotServed):
            edge.ask(edge.key(name))
    assert edge.made_keys == {edge.key(name)[1:] for name in ("card.webp", "w_32.png")}


@pytest.mark.guards("on-request-effort-of-lane")
def test_it_has_the_effort_of_its_images_lane(edge: Edge) -> None:
    slow, asked = edge.world.service["slow"], []
    edge.world.service = {**edge.world.service, "slow": replace(slow, effort="small")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operation, "develop", lambda *_, effort="balanced", **others: asked.append(effort))
        with pytest.raises(AttributeError):
            edge.ask(edge.key("w_32.avif"))
    assert asked == ["small"]


@pytest.mark.guards("on-request-whole-path")
@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "/public/{id}/t1/w_32.webp/",
        "/public/{id}/t1/w_32.webp\n",
        "/public/{id}/t1/../t1/w_32.webp",
        "/public/{id}/t1/%77_32.webp",
        "/public/{id}/t1/%2577_32.webp",
        "/public/{id}/t2/w_32.webp",
        "/public/{id}/1/thumb.jpg",
        "/signed/{id}/t1/w_32.webp",
        "/outputs/{id}/t1/w_32.webp",
        "/public/{id}/t1/w_32.gif",
        "/public/{id}/t1/w_32.webp?s=1",
        "/public/{id}/t1/w_" + "9" * 5000 + ".webp",
        "/public/..%2f{id}/t1/w_32.webp",
        "x/public/{id}/t1/w_32.webp",
    ],
)
def test_a_hostile_path_asks_for_nothing(edge: Edge, path: str) -> None:
    faults = Faults()
    with pytest.raises(NotServed):
        edge.ask(path.replace("{id}", edge.image_id), faults)
    assert faults.calls == []


@pytest.mark.guards("on-request-signature")
@pytest.mark.guards("on-request-wrong-signature")
def test_a_signature_is_for_one_variant_of_one_image_of_its_tenant(edge: Edge) -> None:
    path = edge.signed("w_33-q_70")
    assert opened(edge.ask(path).body).width == 33
    edge.secret.replace("b" * 64, now=edge.world.now)
    assert edge.ask(edge.signed("w_34")).key != edge.ask(path).key
    edge.made.remove_all(edge.image_id)
    assert edge.ask(path).body  # made with the key before
    signature = path.partition("-s_")[2]
    for forged in (
        edge.signed("w_33-q_70", tenant_id="other"),
        edge.key(f"w_34-q_70-s_{signature}"),
        edge.key(f"w_33-q_70-s_{signature.replace('webp', 'jpg')}"),
        edge.key(f"w_32-s_{'0' * 26}.webp"),  # allowed, but this would be another key for it
        edge.signed("w_33-q_80"),
    ):
        with pytest.raises(NotServed):
            edge.ask(forged)
    assert asked_for(path) is not None


@pytest.mark.guards("on-request-no-unmarked")
def test_a_picture_with_a_watermark_is_made_without_only_if_that_is_signed(edge: Edge) -> None:
    mark = {"variants": [{"name": "marked", "width": 9, "overlays": [{"image": edge.image_id}]}]}
    edge.change(added=(Recipe.model_validate(mark),))
    with pytest.raises(NotServed):
        edge.ask(edge.key("w_32.webp"))
    assert edge.ask(edge.signed("w_32"))


@pytest.mark.guards("on-request-public-only", case="signed")
@pytest.mark.guards("on-request-done", case="unfinished")
@pytest.mark.guards("on-request-deleted", case="unknown")
@pytest.mark.guards("on-request-suspended", case="suspended")
@pytest.mark.parametrize("case", ["private", "signed", "unfinished", "unknown", "suspended", "original lost"])
def test_what_is_not_public_and_done_is_not_served(edge: Edge, case: str) -> None:
    path = edge.key("w_32.webp")
    match case:
        case "private" | "signed":
            edge.change(visibilities=(Visibility.PUBLIC, Visibility(case)))
        case "unfinished":
            path = edge.key("w_32.webp", edge.world.submit(jpeg(32, 24)).image.image_id)
            edge.image_id = path.split("/")[2]
            edge.change(visibilities=(Visibility.PUBLIC,))
        case "unknown":
            path = edge.key("w_32.webp", "0" * 26)
        case "suspended":
            suspended = Tenant(tenant_id="default", tier=Tier.FREE, created_at=1, state=TenantState.SUSPENDED)
            edge.tenants.tenants["default"] = suspended
        case _:
            edge.world.originals.objects.clear()
    with pytest.raises(NotServed):
        edge.ask(path)
    assert edge.made_keys == set()


def test_a_tenants_own_list_is_the_one_that_counts(edge: Edge) -> None:
    edge.tenants.tenants["default"] = Tenant(tenant_id="default", tier=Tier.FREE, created_at=1, on_request="w_40")
    assert edge.ask(edge.key("w_40.jpg"))
    with pytest.raises(NotServed):
        edge.ask(edge.key("w_32.webp"))


@pytest.mark.guards("on-request-rate")
@pytest.mark.guards("on-request-variants-per-image")
@pytest.mark.guards("on-request-work-bound")
def test_work_and_storage_are_bounded(edge: Edge) -> None:
    edge.tenants.tenants["default"] = Tenant(
        tenant_id="default", tier=Tier.FREE, created_at=1, requests_per_second=1, burst=2
    )
    for width in (33, 34):
        edge.ask(edge.signed(f"w_{width}"))
    with pytest.raises(TurnedAway) as turned:
        edge.ask(edge.signed("w_35"))
    assert turned.value.retry_after_seconds == 1
    edge.world.advance(60)
    edge.leases.names[edge.image_id] = {str(number) for number in range(MAX_VARIANTS)}
    for path in (edge.signed("w_35"), edge.signed("w_8192-h_8192-f_contain")):
        with pytest.raises(NotServed):
            edge.ask(path)
    assert len(edge.made_keys) == 2
    assert edge.buckets.tats.keys() == {"default#on_request"}


@pytest.mark.guards("on-request-lease")
@pytest.mark.guards("on-request-made-meanwhile")
def test_a_hundred_first_requests_at_once_make_it_once_and_all_get_it(
    edge: Edge, monkeypatch: pytest.MonkeyPatch
) -> None:
    developments, waiting, all_here = [], threading.Event(), threading.Barrier(100)

    def slowly(*arguments: Any, **options: Any) -> Any:
        developments.append(1)
        waiting.wait(0.2)
        return develop(*arguments, **options)

    monkeypatch.setattr(operation, "develop", slowly)
    edge.pause = lambda _: waiting.wait(0.01)
    ports, deadline = edge.ports(), edge.world.now + 60_000

    def ask(number: int) -> bytes:
        all_here.wait()
        return make_variant(ports, edge.key("w_32.webp"), owner=str(number), deadline=deadline).body

    with ThreadPoolExecutor(max_workers=100) as threads:
        answers = set(threads.map(ask, range(100)))
    assert (len(developments), len(answers)) == (1, 1)
    assert edge.leases.leases == {}


@pytest.mark.guards("on-request-wait-ends")
def test_whoever_waits_in_vain_is_told_to_ask_again_and_a_dead_ones_lease_lapses(edge: Edge) -> None:
    key = edge.key("w_32.webp")
    edge.leases.take(key[1:], "dead", now=edge.world.now, until=edge.world.now + 70_000)
    ends_at = edge.world.now + 60_000
    with pytest.raises(Retryable):
        edge.ask(key)
    assert edge.world.now < ends_at
    assert edge.ask(key)  # after its time


@pytest.mark.guards("on-request-time-to-finish")
def test_what_cannot_be_finished_is_not_begun(edge: Edge) -> None:
    with pytest.raises(Retryable):
        make_variant(edge.ports(), edge.key("w_32.webp"), owner="late", deadline=edge.world.now + 20_000)
    assert edge.buckets.tats == {}


@pytest.mark.parametrize(
    ("answer", "seconds"),
    [
        (variant_answer(MADE, for_head=False), 3600),
        (variant_answer(replace(MADE, body=b"x" * 5_000_000), for_head=False), 0),
        (not_served(), 60),
        (refused(HTTPStatus.BAD_REQUEST, "too_small", ""), 60),
        (postponed(HTTPStatus.TOO_MANY_REQUESTS, "too_many_requests", "", retry_after_seconds=1), 0),
        (postponed(HTTPStatus.SERVICE_UNAVAILABLE, "unavailable", "", retry_after_seconds=5), 0),
    ],
)
def test_the_edge_keeps_a_clients_error_briefly_and_an_outage_never(answer: dict[str, Any], seconds: int) -> None:
    policy = resources("AWS::CloudFront::CachePolicy", DELIVERY)["OnRequestPolicy"]["CachePolicyConfig"]
    distribution = resources("AWS::CloudFront::Distribution", DELIVERY)["Distribution"]["DistributionConfig"]
    of_errors = {each["ErrorCode"]: each["ErrorCachingMinTTL"] for each in distribution["CustomErrorResponses"]}
    status, headers = answer["statusCode"], {name.lower(): value for name, value in answer["headers"].items()}
    bounds = Lifetimes.of({**policy, "MaxTTL": 3600})
    assert lifetime(status, headers, bounds, now=0, error_seconds=of_errors.get(status, 10)) == seconds


def test_the_edge_leads_a_path_to_the_key_of_this_engine() -> None:
    code = resources("AWS::CloudFront::Function", DELIVERY)["RewriteVariants"]["FunctionCode"]
    assert f'"/public/" + asked[1] + "/t{ENGINE}/" + asked[2]' in code
    assert f"({'|'.join(FORMATS)})" in code


CALLS = 12
MODES: tuple[Mode, ...] = "dies after", "throttled", "answer lost"


@pytest.mark.guards("on-request-deleted-meanwhile")
@pytest.mark.parametrize("change", ["deleted", "private"])
def test_whoever_deletes_or_hides_it_meanwhile_leaves_no_object(change: str) -> None:
    """The change happens before each of the calls, and its own removal lists the objects right after the row."""
    for number in range(CALLS):
        edge = Edge()

        def strike(call: Call, edge: Edge = edge, number: int = number) -> None:
            if call.number == number:
                edge.end(change)

        faults = Faults(plan=strike)
        with suppress(NotServed):
            edge.ask(edge.key("w_32.webp"), faults)
        if number >= faults.number:
            break
        assert edge.exposed == [], faults.calls
    else:
        pytest.fail("more calls than were struck")


@pytest.mark.guards("on-request-left-over-removed", case="private")
@pytest.mark.parametrize("change", ["none", "deleted", "private"])
def test_a_fault_at_any_call_keeps_no_other_from_its_answer_and_leaves_nothing_of_what_ended(
    change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The image is deleted or hidden before any call of a request that meets a fault then or later. A call whose answer
    is lost fails, or is repeated by the SDK."""
    (rendered,) = develop(jpeg(), Recipe.model_validate({"variants": [{"name": "one", "width": 32}]})).variants
    monkeypatch.setattr(operation, "develop", lambda *_, **__: SimpleNamespace(variants=[rendered]))
    key, struck = "w_32.webp", Counter[str]()
    for before, number, mode, repeats in cases(change):
        edge = Edge()

        def plan(call: Call, edge: Edge = edge, before: int = before, number: int = number, mode: Any = mode) -> Any:
            if call.number == before and change != "none":
                edge.end(change)
            return mode if call.number == number else None

        faults = Faults(plan=plan, repeats_lost=repeats)
        with suppress(ProcessDied, Retryable, NotServed):
            edge.ask(edge.key(key), faults)
        struck += faults.struck
        edge.world.advance(70)  # its lease has lapsed
        if change == "none" or before >= faults.number:
            assert edge.ask(edge.key(key)).body, (number, mode)
            continue
        with pytest.raises(NotServed):
            edge.ask(edge.key(key))
        edge.settle()
        assert edge.exposed == [], (before, number, mode, repeats)
    assert struck.keys() == set(MODES)
    assert faults.number < CALLS


def cases(change: str) -> Iterator[tuple[int, int, Mode, bool]]:
    """The call before which it ends, the one that meets a fault, and which."""
    for before in range(CALLS) if change != "none" else (0,):
        for number in range(before, CALLS):
            for mode in MODES:
                for repeats in (False, True)[: 1 + (mode == "answer lost")]:
                    yield before, number, mode, repeats
