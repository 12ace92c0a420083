"""The authorizer's handler, what it passes to the functions behind it, and how soon a revocation takes effect."""

from __future__ import annotations

import hashlib
import io
import json
from dataclasses import replace
from typing import Any

import boto3
import pytest
import time_machine

from darkroom.aws.images.images_table import ImagesTable
from darkroom.domain.kernel.tenants import TenantState, Tier
from tests.contract.conftest import Aws
from tests.contract.functions import ROOT, call, http_event, load
from tests.contract.gateway import Gateway
from tests.contract.stores import ACME, KEY, STORED, tenants_table_of
from tests.support.fakes.pictures import jpeg

# ── The authorizer's handler ─────────────────────────────────────────────────────────────────────────────────────────


def authorize(aws: Aws, monkeypatch: pytest.MonkeyPatch, authorization: str) -> dict[str, Any]:
    event = http_event("GET", "/images/x", headers={"authorization": authorization})
    event |= {"type": "REQUEST", "identitySource": [authorization]}
    return call(load("authorize_request", aws, monkeypatch), event)


def test_the_sample_events_key_opens_for_its_tenant(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    tenants_table_of(aws).add_tenant(ACME)
    tenants_table_of(aws).add_key(STORED)
    sample = json.loads((ROOT / "events" / "authorize_request.json").read_text())
    assert call(load("authorize_request", aws, monkeypatch), sample) == {
        "isAuthorized": True,
        "context": {
            "tenant_id": "acme",
            "tier": "paid",
            "key_id": STORED.key_id,
            "requests_per_second": 100,
            "burst": 500,
            "max_stored_bytes": "5000000000000",
            "max_images": "10000000",
            "scopes": "*",
        },
    }


def test_a_denial_is_logged_by_the_keys_id_and_no_credential_is_ever_logged(
    aws: Aws, monkeypatch: pytest.MonkeyPatch, log: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    tenants_table_of(aws).add_key(STORED)
    for authorization in (
        f"Bearer {KEY}",
        f"Bearer {KEY[:-1]}",
        f"Basic {KEY}",
        KEY,
        "Bearer eyJhbGciOiJub25lIn0.e30.",
    ):
        assert authorize(aws, monkeypatch, authorization) == {"isAuthorized": False}
    said = log.getvalue() + capsys.readouterr().out
    lines = [line for line in map(json.loads, log.getvalue().splitlines()) if line["message"] != "timing"]
    assert [(line["reason"], line.get("key_id")) for line in lines] == [
        ("suspended", STORED.key_id),
        *[("malformed", None)] * 4,
    ]
    assert KEY.rpartition("_")[2][:8] not in said and "Bearer" not in said and "eyJ" not in said


@pytest.mark.guards("authorizer-judges-cache-key")
def test_what_the_gateway_remembers_its_answer_by_is_what_is_judged(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    # For a header that is sent twice, the function may see another value than the gateway's cache.
    tenants_table_of(aws).add_tenant(ACME)
    tenants_table_of(aws).add_key(STORED)
    event = http_event("GET", "/images/x", headers={"authorization": f"Bearer {KEY}"})
    event |= {"type": "REQUEST", "identitySource": ["Bearer something else"]}
    assert call(load("authorize_request", aws, monkeypatch), event) == {"isAuthorized": False}


# ── Through the gateway ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def gateway(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> Gateway:
    tenants_table_of(aws).add_tenant(ACME)
    tenants_table_of(aws).add_key(STORED)
    return Gateway(aws, monkeypatch)


BEARER = {"authorization": f"Bearer {KEY}"}
UNKNOWN = f"/images/{'0' * 26}/status"


def test_what_an_operator_revokes_or_suspends_is_refused_within_a_minute(gateway: Gateway, aws: Aws) -> None:
    with time_machine.travel("2026-11-21T09:00:00Z", tick=False) as clock:
        assert gateway.request("GET", UNKNOWN, headers=BEARER).status == 404
        tenants_table_of(aws).change_tenant(ACME, replace(ACME, state=TenantState.SUSPENDED))
        clock.shift(61)
        assert gateway.request("GET", UNKNOWN, headers=BEARER) == (403, {}, {"message": "Forbidden"})
        tenants_table_of(aws).change_tenant(replace(ACME, state=TenantState.SUSPENDED), ACME)
        clock.shift(61)
        assert gateway.request("GET", UNKNOWN, headers=BEARER).status == 404
        tenants_table_of(aws).revoke_key(STORED.key_id, 1)
        clock.shift(61)
        assert gateway.request("GET", UNKNOWN, headers=BEARER).status == 403


@pytest.mark.guards("key-scope-required", "key-without-scopes-denied")
@pytest.mark.parametrize(
    ("scopes", "may_read", "may_write"),
    [
        (None, True, True),
        (("images:read",), True, False),
        (("images:write",), False, True),
        (("images:read", "images:write"), True, True),
        (("invented:later",), False, False),
        ((), False, False),
    ],
)
def test_a_key_may_do_what_it_was_made_for_and_nothing_else(
    gateway: Gateway, aws: Aws, scopes: tuple[str, ...] | None, may_read: bool, may_write: bool
) -> None:
    tenants_table_of(aws).remove_key(STORED.key_id)
    tenants_table_of(aws).add_key(replace(STORED, scopes=scopes))
    unknown = f"/images/{'0' * 26}"
    for method, path, may in (
        ("GET", UNKNOWN, may_read),
        ("GET", "/images", may_read),
        ("HEAD", "/images", may_read),
        ("GET", f"{unknown}/variants/thumb", may_read),
        ("DELETE", unknown, may_write),
        ("POST", "/images", may_write),
    ):
        answer = gateway.request(method, path, headers=BEARER)
        assert (answer.status != 403) == may, (method, path)
        if not may:
            scope = "images:read" if method in ("GET", "HEAD") else "images:write"
            assert method == "HEAD" or answer.body["code"] == "insufficient_scope"
            assert answer.headers["WWW-Authenticate"] == f'Bearer error="insufficient_scope", scope="{scope}"'
            assert "RateLimit" not in answer.headers, "it costs no token"
    assert gateway.request("GET", "/openapi.json").status == 200


def test_the_authorizer_is_asked_once_a_minute_and_never_without_a_credential(gateway: Gateway) -> None:
    with time_machine.travel("2026-11-21T09:00:00Z", tick=False):
        for _ in range(3):
            gateway.request("GET", UNKNOWN, headers=BEARER)
            gateway.request("GET", UNKNOWN)
    assert gateway.invoked.count("authorize_request") == 1


@pytest.mark.guards("tenants-upload-tier-lane")
@pytest.mark.parametrize(
    ("tier", "moved_to", "lane"), [(Tier.PAID, None, "fast"), (Tier.FREE, None, "slow"), (Tier.PAID, "bulk", "bulk")]
)
def test_it_decides_the_lane_of_what_is_announced_too(
    gateway: Gateway, aws: Aws, tier: Tier, moved_to: str | None, lane: str
) -> None:
    tenants_table_of(aws).change_tenant(ACME, replace(ACME, tier=tier, lane=moved_to))
    photo = jpeg()
    announcement = json.dumps({"bytes": len(photo), "sha256": hashlib.sha256(photo).hexdigest()}).encode()
    announced = gateway.request("POST", "/uploads", body=announcement, headers=BEARER)
    assert (announced.status, announced.body["lane"]) == (201, lane)
    row = ImagesTable(boto3.client("dynamodb"), aws.images_table).get(announced.body["id"])
    assert row is not None and row.tenant_id == "acme"
    assert gateway.request("POST", "/images", body=photo, headers=BEARER).body["lane"] == lane


@pytest.mark.guards("authorizer-bypass-refused")
@pytest.mark.parametrize("access", ["keys", "jwt"])
@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
def test_a_request_that_came_past_the_authorizer_is_refused_and_never_the_default_tenants(
    aws: Aws, monkeypatch: pytest.MonkeyPatch, access: str, method: str
) -> None:
    image_id = json.loads(
        call(load("submit_image", aws, monkeypatch), http_event("POST", "/images", body=jpeg()))["body"]
    )["id"]
    monkeypatch.setenv("ACCESS", access)
    name = {"GET": "read_image", "PATCH": "reschedule_image", "DELETE": "delete_image"}[method]
    event = http_event(method, f"/images/{image_id}", body=b'{"delay": "PT1H"}')
    assert call(load(name, aws, monkeypatch), event)["statusCode"] == 500
    assert call(load("submit_image", aws, monkeypatch), http_event("POST", "/images", body=jpeg()))["statusCode"] == 500


# ── Tokens ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def with_token(method: str, path: str, claims: dict[str, str], **event: Any) -> dict[str, Any]:
    """The event of a request whose token the gateway has verified."""
    made = http_event(method, path, **event)
    made["requestContext"]["authorizer"] = {"jwt": {"claims": claims, "scopes": None}}
    return made


@pytest.fixture
def tokens(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCESS", "jwt")
    monkeypatch.setenv("JWT_TENANT_CLAIM", "custom:tenant")
    monkeypatch.setenv("JWT_TIER_CLAIM", "custom:tier")


@pytest.mark.guards("quotas-of-token-tier")
@pytest.mark.parametrize(
    ("claims", "lane"),
    [({"custom:tier": "paid"}, "fast"), ({"custom:tier": "free"}, "slow"), ({}, "slow"), ({"tier": "paid"}, "slow")],
)
def test_a_tokens_claims_name_the_tenant_and_its_tier(
    aws: Aws, monkeypatch: pytest.MonkeyPatch, tokens: None, claims: dict[str, str], lane: str
) -> None:
    claims = {"sub": "somebody", "custom:tenant": "acme", **claims}
    accepted = call(load("submit_image", aws, monkeypatch), with_token("POST", "/images", claims, body=jpeg()))
    document = json.loads(accepted["body"])
    assert (accepted["statusCode"], document["lane"]) == (202, lane)
    read = load("read_image", aws, monkeypatch)
    path = f"/images/{document['id']}"
    assert call(read, with_token("GET", path, claims))["statusCode"] == 200
    assert call(read, with_token("GET", path, claims | {"custom:tenant": "other"}))["statusCode"] == 404
    usage = json.loads(call(read, with_token("GET", "/usage", claims))["body"])
    tier = Tier.PAID if lane == "fast" else Tier.FREE
    assert usage["quota"] == {"bytes": tier.quota.stored_bytes, "images": tier.quota.images}


@pytest.mark.guards("tokens-tenant-required")
@pytest.mark.parametrize(
    "claims", [{"sub": "acme"}, {"custom:tenant": ""}, {"custom:tenant": "[a b]"}, {"custom:tenant": "a#b"}]
)
def test_a_token_that_names_no_tenant_is_refused_by_name(
    aws: Aws, monkeypatch: pytest.MonkeyPatch, tokens: None, claims: dict[str, str]
) -> None:
    for name, method, path in (
        ("submit_image", "POST", "/images"),
        ("read_image", "GET", "/images/x"),
        ("reschedule_image", "PATCH", "/images/x"),
    ):
        answer = call(load(name, aws, monkeypatch), with_token(method, path, claims, body=b""))
        assert (answer["statusCode"], json.loads(answer["body"])["code"]) == (403, "no_tenant")
        assert "custom:tenant" in json.loads(answer["body"])["detail"]
