"""Upload tokens, through the gateway: what a browser may do with one, and what it may not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import boto3
import pytest
import time_machine

from darkroom.aws.tenants.upload_token_uses import UploadTokenUsesTable
from darkroom.domain.kernel.tenants import Tenant, TenantState, Tier
from darkroom.domain.tenants.api_keys import RANDOM_BYTES, ApiKey, digest_of, key_from_bits, key_id_of
from darkroom.domain.tenants.upload_tokens import UploadToken
from darkroom_cli.operator.aws.tenant_registry import TenantRegistryTable
from repository.openapi.routes import ROUTES
from tests.contract.conftest import Aws
from tests.contract.functions import Context, call, http_event, keyed, load, problem_of, received
from tests.contract.gateway import PHOTO, Answer, Gateway, announcement_of
from tests.contract.stores import lose_first_answer
from tests.support.fakes.pictures import jpeg

KEY = key_from_bits(bytes(range(RANDOM_BYTES)))
STORED = ApiKey(
    key_id=key_id_of(KEY) or "", tenant_id="acme", digest=digest_of(KEY), created_at=1, scopes=("images:write",)
)
READER = key_from_bits(bytes(range(1, 1 + RANDOM_BYTES)))
ACME = Tenant(tenant_id="acme", tier=Tier.PAID, created_at=1)
OTHER_PHOTO = jpeg(32, 24)


@pytest.fixture
def tenants(aws: Aws) -> TenantRegistryTable:
    table = TenantRegistryTable(boto3.client("dynamodb"), aws.tenants_table)
    table.add_tenant(ACME)
    table.add_key(STORED)
    return table


@pytest.fixture
def gateway(aws: Aws, tenants: TenantRegistryTable, monkeypatch: pytest.MonkeyPatch) -> Gateway:
    return Gateway(aws, monkeypatch)


BEARER = {"authorization": f"Bearer {KEY}"}


def token_of(gateway: Gateway, **terms: Any) -> dict[str, str]:
    """The header of a browser that was given a new token."""
    made = gateway.request("POST", "/upload-tokens", body=json.dumps(terms).encode(), headers=BEARER)
    assert made.status == 201, made.body
    return {"authorization": f"Bearer {made.body['token']}"}


def posted(
    gateway: Gateway, headers: Mapping[str, str], path: str = "/images", body: bytes = PHOTO, **more: str
) -> Answer:
    named = {name.replace("_", "-"): value for name, value in more.items()}
    return gateway.request("POST", path, body=body, headers={**headers, **named})


def code_of(answer: Answer) -> tuple[int, str]:
    return answer.status, answer.body["code"]


def rows(gateway: Gateway) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = boto3.client("dynamodb").scan(TableName=gateway.aws.images_table)["Items"]
    return items


def test_a_browser_sends_photos_as_its_token_says_and_follows_them(gateway: Gateway, aws: Aws) -> None:
    browser = token_of(gateway, count=2, preset="standard", variants=["thumb"], expires_in="PT10M")
    sent = posted(gateway, browser, idempotency_key="1")
    announced = posted(gateway, browser, "/uploads", announcement_of(OTHER_PHOTO), idempotency_key="2")
    assert (sent.status, announced.status) == (202, 201)
    assert (sent.body["lane"], sent.body["progress"]["total"]) == ("fast", 1)
    assert posted(gateway, browser, idempotency_key="1").headers["Idempotent-Replayed"] == "true"
    call(gateway.function("transcode_image"), received(aws.fast_queue_url))
    for image, status in ((sent, "done"), (announced, "awaiting_upload")):
        answer = gateway.request("GET", image.headers["Location"], headers=browser)
        assert (answer.status, answer.body["status"]) == (200, status)
        assert gateway.request("HEAD", image.headers["Location"], headers=browser).status == 200
    assert {row["tenant_id"]["S"] for row in rows(gateway)} == {"acme"}
    assert code_of(posted(gateway, browser)) == (403, "upload_token_used_up")


@pytest.mark.guards("upload-token-own-images")
def test_any_other_image_does_not_exist_for_it(gateway: Gateway) -> None:
    browser, other = token_of(gateway), token_of(gateway)
    locations = [posted(gateway, headers).headers["Location"] for headers in (BEARER, other)]
    for location in (*locations, f"/images/{'0' * 26}/status"):
        assert code_of(gateway.request("GET", location, headers=browser)) == (404, "unknown_image")
    others = posted(gateway, BEARER, "/uploads", announcement_of(OTHER_PHOTO)).body["id"]
    assert code_of(posted(gateway, browser, f"/uploads/{others}/done", b"")) == (404, "unknown_image")


TAKEN = {"postImage", "postUpload", "confirmUpload", "getImageStatus"}


@pytest.mark.guards("upload-token-routes")
def test_every_route_refuses_a_token_but_four(gateway: Gateway) -> None:
    assert {route.name for route in ROUTES if route.takes_upload_tokens} == TAKEN
    browser = token_of(gateway)
    image_id = posted(gateway, browser).body["id"]
    before = rows(gateway)
    refused = [route for route in ROUTES if not route.is_open and route.name not in TAKEN]
    assert len(refused) > 10
    for route in refused:
        path = route.path.replace("{id}", image_id).replace("{name}", "thumb").replace("{delivery_id}", "0" * 10)
        body = b"{}" if route.method in ("POST", "PATCH") else None
        for method in route.methods:
            answer = gateway.request(method, path, body=body, headers=browser)
            assert answer.status == 403, (method, path)
            assert 'error="insufficient_scope"' in answer.headers["WWW-Authenticate"]
            assert method == "HEAD" or (answer.body["code"], "API key" in answer.body["detail"]) == (
                "insufficient_scope",
                True,
            )
    assert rows(gateway) == before


@pytest.mark.guards("upload-token-order-alone", "upload-token-no-url")
def test_nothing_of_the_order_is_the_browsers(gateway: Gateway) -> None:
    browser = token_of(gateway, count=5)
    asked = {"preset": "avatar", "delay": "PT1H", "process_at": "2030-01-01T00:00:00Z", "notify": "we_0000000000000000"}
    asked["on_duplicate"] = "reuse"
    for name, value in asked.items():
        assert code_of(posted(gateway, browser, f"/images?{name}={value}")) == (403, "upload_token_refused")
        announced = posted(gateway, browser, "/uploads", announcement_of(PHOTO, **{name: value}))
        assert code_of(announced) == (403, "upload_token_refused")
        assert name in announced.body["detail"]
    by_url = b'{"url": "https://photos.example/harbour.jpg"}'
    assert code_of(posted(gateway, browser, body=by_url, content_type="application/json")) == (
        403,
        "upload_token_refused",
    )
    assert rows(gateway) == []
    with_type = announcement_of(PHOTO, content_type="image/jpeg")
    assert posted(gateway, browser, "/uploads", with_type).status == 201


@pytest.mark.guards("upload-token-origins")
def test_only_the_named_websites_may_use_it_as_far_as_browsers_say(gateway: Gateway) -> None:
    browser = token_of(gateway, origins=["https://shop.example.com"])
    for origin in ("", "null", "https://evil.example", "https://shop.example.com.evil.example"):
        assert code_of(posted(gateway, browser | {"origin": origin})) == (403, "upload_token_refused")
    assert code_of(posted(gateway, browser)) == (403, "upload_token_refused")
    assert posted(gateway, browser | {"origin": "https://shop.example.com"}).status == 202


def test_what_ends_a_key_ends_its_tokens_within_a_minute(gateway: Gateway, tenants: TenantRegistryTable) -> None:
    def opens() -> bool:
        clock.shift(61)
        answer = gateway.request("GET", f"/images/{'0' * 26}/status", headers=browser)
        assert answer.status == 404 or answer == (403, {}, {"message": "Forbidden"})
        return answer.status == 404

    with time_machine.travel("2026-11-21T09:00:00Z", tick=False) as clock:
        browser = token_of(gateway)
        assert opens()
        suspended = replace(ACME, state=TenantState.SUSPENDED)
        tenants.change_tenant(ACME, suspended)
        assert not opens()
        tenants.change_tenant(suspended, ACME)
        assert opens()
        clock.shift(3600)
        assert not opens()
        browser = token_of(gateway)
        tenants.revoke_key(STORED.key_id, 1)
        assert not opens()


def test_only_a_key_that_may_write_images_makes_tokens(gateway: Gateway, tenants: TenantRegistryTable) -> None:
    tenants.add_key(replace(STORED, key_id=key_id_of(READER) or "", digest=digest_of(READER), scopes=("images:read",)))
    answer = gateway.request("POST", "/upload-tokens", body=b"{}", headers={"authorization": f"Bearer {READER}"})
    assert code_of(answer) == (403, "insufficient_scope")


@pytest.mark.parametrize("access", ["anonymous", "iam"])
def test_a_stack_without_keys_makes_no_tokens(aws: Aws, monkeypatch: pytest.MonkeyPatch, access: str) -> None:
    monkeypatch.setenv("ACCESS", access)
    event = http_event("POST", "/upload-tokens", body=b"{}")  # which their openapi.json does not describe
    answer = load("begin_upload", aws, monkeypatch).handler(event, Context("begin_upload"))
    assert problem_of(answer) == (422, "part_not_deployed")


def test_what_a_header_says_that_the_authorizer_has_not_judged_is_nothing(gateway: Gateway) -> None:
    # Of a header that is sent twice, a function may see another value than the authorizer.
    wide = token_of(gateway, count=1000)["authorization"]
    event = keyed(http_event("GET", "/images", headers={"authorization": wide}))
    assert call(gateway.function("read_image"), event)["statusCode"] == 200
    event = keyed(http_event("GET", "/images", headers=BEARER), upload_token=wide.split(".")[1], scopes=frozenset())
    assert problem_of(call(gateway.function("read_image"), event)) == (403, "insufficient_scope")


def test_no_log_has_a_token_and_every_line_of_its_requests_names_it(gateway: Gateway, log: Any) -> None:
    made = gateway.request("POST", "/upload-tokens", body=b"{}", headers=BEARER).body
    browser = {"authorization": f"Bearer {made['token']}"}
    posted(gateway, browser)
    gateway.request("GET", "/images", headers=browser)
    said = log.getvalue()
    assert not any(part in said for part in made["token"].split(".")[1:])
    accepted = next(json.loads(line) for line in said.splitlines() if '"message":"accepted"' in line)
    assert (accepted["upload_token"], accepted["key_id"]) == (made["id"], STORED.key_id)


# ── The count ────────────────────────────────────────────────────────────────────────────────────────────────────────

TEN = UploadToken(token_id="0" * 16, key_id="k", expires_at=1_795_251_600_000, count=10, max_bytes=1)


@pytest.mark.guards("upload-token-count", "upload-token-counts-image-once")
def test_a_token_for_ten_is_used_for_the_first_ten_images_however_often_each_is_told(aws: Aws) -> None:
    table = UploadTokenUsesTable(boto3.client("dynamodb"), aws.token_buckets_table)
    images = [f"{number:026d}" for number in range(12)]
    for _ in range(2):
        assert [table.use(TEN, image_id) for image_id in images] == [True] * 10 + [False] * 2
    (item,) = boto3.client("dynamodb").scan(TableName=aws.token_buckets_table)["Items"]
    assert item == {
        "tenant_id": {"S": f"upload_token#{'0' * 16}"},
        "image_ids": {"SS": images[:10]},
        "forget_at": {"N": str(1_795_251_600 + 86_400)},
    }


def test_a_use_whose_answer_was_lost_counts_once(aws: Aws) -> None:
    client = boto3.client("dynamodb")
    lose_first_answer(client, "UpdateItem")
    table = UploadTokenUsesTable(client, aws.token_buckets_table)
    assert table.use(replace(TEN, count=1), "1" * 26)
    assert not table.use(replace(TEN, count=1), "2" * 26)
