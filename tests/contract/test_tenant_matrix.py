"""Every route × whose image or webhook × whose credential: nobody learns whether another tenant's exists."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, replace
from typing import Any

import boto3
import pytest
import time_machine

from darkroom.aws.webhooks.deliveries_table import DeliveriesTable
from darkroom.domain.kernel.tenants import Tenant, TenantState, Tier
from darkroom.domain.tenants.rate_limits import Policy, bucket_of
from darkroom.domain.webhooks.delivery import delivery_id_of, new_delivery
from darkroom.operations.tenants.take_token import MAX_BLOCK
from darkroom_cli.operator.aws.tenant_registry import TenantRegistryTable
from darkroom_cli.operator.operations.tenants.create_key import CreateKeyPorts, create_key
from repository.openapi import routes as described
from tests.contract import gateway as gateways
from tests.contract.conftest import Aws
from tests.contract.functions import call, received
from tests.contract.gateway import MAKING, MOVE, PHOTO, Answer, Gateway, Route, announcement_of
from tests.support.fakes.audit import trail_of

pytestmark = pytest.mark.promise("every-route")

UNKNOWN = "0" * 26
UNKNOWN_WEBHOOK = "we_" + "0" * 16
UNKNOWN_BATCH = "ba_" + "0" * 26
EVENT, EVENT_TIME = "1kyvb60cwewgmgxx48pc1nwmdc-3", 1_795_251_601_300
"""The event that was delivered to every webhook."""
MALFORMED = ("no-id", "0" * 25, "0" * 27, "I" * 26, "%2e%2e", "%00", "default", "acme", "we_x")
MORE_VARIANTS = b'{"recipe": {"variants": [{"name": "more", "width": 8}]}}'
NEW_WEBHOOK = b'{"url": "https://hooks.example.com/"}'


NEW_IMPORT = b'{"format": "csv", "bytes": 9}'
NO_CREDENTIAL: dict[str, str] = {}
WAITING: Any = "ApproximateNumberOfMessages"


@dataclass(frozen=True, kw_only=True)
class Owned:
    """A tenant's credential, its webhook, batch and import, and its images: one that is done, one that is scheduled,
    and one that awaits its upload."""

    bearer: dict[str, str]
    webhook: str
    batch: str
    imported: str
    done: str
    scheduled: str
    announced: str

    @property
    def images(self) -> tuple[str, ...]:
        """All of them."""
        return self.done, self.scheduled, self.announced

    def ids_for(self, route: Route) -> tuple[str, ...]:
        """What it has of the kind that the route is about."""
        return {"webhooks": (self.webhook,), "batches": (self.batch, self.imported), "imports": (self.imported,)}.get(
            subject_of(route), self.images
        )


@dataclass(frozen=True, kw_only=True)
class City:
    """Two tenants with images, credentials that are not valid, and the gateway in front of everything."""

    gateway: Gateway
    acme: Owned
    globex: Owned
    shut: dict[str, dict[str, str]]
    secrets: tuple[str, ...]

    def everything(self) -> dict[str, Any]:
        """Everything that a request could have changed."""
        aws, s3, sqs = self.gateway.aws, boto3.client("s3"), boto3.client("sqs")
        scan = boto3.client("dynamodb").scan
        rows = scan(TableName=aws.images_table)["Items"]
        endpoints, deliveries = scan(TableName=aws.endpoints_table), scan(TableName=aws.deliveries_table)
        return {
            "rows": sorted(rows, key=lambda row: row["image_id"]["S"]),
            "webhooks": (sorted(map(str, endpoints["Items"])), sorted(map(str, deliveries["Items"]))),
            "batches": sorted(map(str, scan(TableName=aws.batches_table)["Items"])),
            "objects": [
                (bucket, entry["Key"])
                for bucket in (aws.uploads_bucket, aws.originals_bucket, aws.outputs_bucket, aws.holds_bucket)
                for entry in s3.list_objects_v2(Bucket=bucket).get("Contents", [])
            ],
            "messages": [
                sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[WAITING])["Attributes"][WAITING]
                for url in (
                    *(*aws.queue_urls.values(), aws.hold_queue_url),
                    *(aws.upload_queue_url, aws.fetch_queue_url, aws.delivery_queue_url),
                )
            ],
        }


@pytest.fixture
def city(aws: Aws, monkeypatch: pytest.MonkeyPatch, log: io.StringIO) -> City:
    tenants = TenantRegistryTable(boto3.client("dynamodb"), aws.tenants_table)
    numbers = iter(range(1, 99))
    keys: list[str] = []

    def key_of(tenant_id: str) -> dict[str, str]:
        key, _ = create_key(
            CreateKeyPorts(
                audit=trail_of(),
                tenants=tenants,
                clock=lambda: 1,
                randomness=(next(numbers) << 170 | next(numbers)).to_bytes,
            ),
            tenant_id,
            label=None,
        )
        keys.append(key)
        return {"authorization": f"Bearer {key}"}

    for tenant_id, tier in (("acme", Tier.PAID), ("globex", Tier.FREE), ("initech", Tier.PAID)):
        tenants.add_tenant(Tenant(tenant_id=tenant_id, tier=tier, created_at=1, burst=10_000))
    suspended, revoked = key_of("initech"), key_of("acme")
    initech = tenants.tenant("initech")
    assert initech is not None
    tenants.change_tenant(initech, replace(initech, state=TenantState.SUSPENDED))
    tenants.revoke_key(revoked["authorization"].split("_")[1], 2)
    nobodys = key_of("acme")
    tenants._client.delete_item(
        TableName=aws.tenants_table, Key={"id": {"S": f"key#{nobodys['authorization'].split('_')[1]}"}}
    )
    gateway = Gateway(aws, monkeypatch)
    deliveries = DeliveriesTable(boto3.client("dynamodb"), aws.deliveries_table)

    def settle(tenant_id: str, lane: str) -> Owned:
        bearer = key_of(tenant_id)
        done = gateway.request("POST", "/images?variants=thumb", body=PHOTO, headers=bearer).body["id"]
        scheduled = gateway.request("POST", "/images?delay=P2D", body=PHOTO, headers=bearer).body["id"]
        announced = gateway.request("POST", "/uploads", body=MAKING["/uploads"], headers=bearer).body["id"]
        call(gateway.function("transcode_image"), received(aws.queue_urls[lane]))
        webhook = gateway.request("POST", "/webhooks", body=NEW_WEBHOOK, headers=bearer).body["id"]
        deliveries.create(
            new_delivery(
                endpoint_id=webhook,
                tenant_id=tenant_id,
                event_id=EVENT,
                event_type="image.done",
                time=EVENT_TIME,
                body="{}",
                now=EVENT_TIME,
            )
        )
        batch = gateway.request("POST", "/batches", body=b"{}", headers=bearer).body["id"]
        imported = gateway.request("POST", "/imports", body=NEW_IMPORT, headers=bearer).body["id"]
        return Owned(
            bearer=bearer,
            webhook=webhook,
            batch=batch,
            imported=imported,
            done=done,
            scheduled=scheduled,
            announced=announced,
        )

    acme, globex = settle("acme", "fast"), settle("globex", "slow")
    shut = {
        "no key": NO_CREDENTIAL,
        "an empty header": {"authorization": ""},
        "no bearer": {"authorization": globex.bearer["authorization"].removeprefix("Bearer ")},
        "a bad key": {"authorization": globex.bearer["authorization"][:-1] + "u"},
        "a key that nobody has": nobodys,
        "a revoked key": revoked,
        "a suspended tenant's key": suspended,
    }
    return City(gateway=gateway, acme=acme, globex=globex, shut=shut, secrets=tuple(key[12:] for key in keys))


def subject_of(route: Route) -> str:
    """What it is about: images, webhooks or batches, as its path begins."""
    return route.path.split("/")[1]


def unknown_to(route: Route) -> str:
    """An id of nothing, of the kind that the route is about."""
    batches = dict.fromkeys(("batches", "imports"), UNKNOWN_BATCH)
    return {"webhooks": UNKNOWN_WEBHOOK, **batches}.get(subject_of(route), UNKNOWN)


def addressed(route: Route, image_id: str) -> str:
    """A path of the route, with the id wherever it takes one."""
    path = route.path.replace("{id}", image_id).replace("{name}", "thumb")
    path = path.replace("{delivery_id}", delivery_id_of(EVENT, EVENT_TIME))
    return path.replace("{path+}", f"images/{image_id}/elsewhere")


def sent(city: City, route: Route, image_id: str, headers: dict[str, str], query: str = "") -> Answer:
    """The client's answer, without the parts that differ in every request."""
    body = {"PATCH": MOVE, "POST": MAKING.get(route.path, MORE_VARIANTS), "PUT": PHOTO}.get(route.method)
    if subject_of(route) in ("batches", "imports"):
        body = {"POST /batches": b"{}", "POST /imports": NEW_IMPORT}.get(name_of(route))
    if subject_of(route) == "webhooks":
        body = {"PATCH /webhooks/{id}": b'{"enabled": true}', "POST /webhooks": NEW_WEBHOOK}.get(name_of(route))
    answer = city.gateway.request(route.method, addressed(route, image_id) + query, body=body, headers=headers)
    if isinstance(answer.body, dict):
        answer.body.pop("correlation_id", None)
    answer.headers.pop("RateLimit", None)  # the caller's own remaining allowance, which each request reduces
    return answer


def name_of(route: Route) -> str:
    """ "GET /images/{id}"."""
    return f"{route.method} {route.path}"


ROUTES = tuple(route for route in gateways.ROUTES if route.function != "serve_page")
"""Those of the API. The page has no tenant's data: tests/contract/test_serve_page.py."""

WITH_AN_ID = tuple(route for route in ROUTES if "{id}" in route.path)
OWN = {
    "GET /images/{id}": 200,
    "POST /uploads/{id}/done": 200,
    "PATCH /images/{id}": 200,
    "DELETE /images/{id}": 204,
    "GET /images/{id}/status": 200,
    "GET /images/{id}/variants/{name}": 307,
    "POST /images/{id}/variants": 202,
    "POST /images/{id}/edits": 202,
    "GET /webhooks/{id}": 200,
    "PATCH /webhooks/{id}": 200,
    "DELETE /webhooks/{id}": 204,
    "GET /batches/{id}": 200,
    "POST /batches/{id}/close": 200,
    "DELETE /batches/{id}": 200,
    "GET /imports/{id}": 200,
    "POST /webhooks/{id}/rotate": 200,
    "POST /webhooks/{id}/ping": 202,
    "POST /webhooks/{id}/recover": 202,
    "GET /webhooks/{id}/deliveries": 200,
    "POST /webhooks/{id}/deliveries/{delivery_id}/resend": 202,
}
"""The answers that the owner gets: otherwise an API that always refuses would pass a matrix of refusals."""

OWN |= {name.replace("GET", "HEAD"): status for name, status in OWN.items() if name.startswith("GET ")}


def test_the_matrix_has_every_route_with_an_id() -> None:
    assert {name_of(route) for route in WITH_AN_ID} == OWN.keys(), "a new route: say there what its owner gets"
    assert {route.path for route in ROUTES} - {route.path for route in WITH_AN_ID} == {
        *MAKING,
        "/upload-tokens",
        "/batches",
        "/imports",
        "/webhooks",
        "/openapi.json",
        "/usage",
        "/",
        "/{path+}",
    }
    assert [name_of(route) for route in ROUTES if not route.security] == ["GET /openapi.json", "HEAD /openapi.json"]


@pytest.mark.guards("key-of-suspended-tenant-denied", "key-revoked-denied")
def test_a_credential_that_opens_nothing_gets_the_same_refusal_everywhere_and_changes_nothing(city: City) -> None:
    before = city.everything()
    city.gateway.invoked.clear()
    refusals = {
        kind: Answer(401, {}, {"message": "Unauthorized"})
        if kind in ("no key", "an empty header")
        else Answer(403, {}, {"message": "Forbidden"})
        for kind in city.shut
    }
    for route in ROUTES:
        if not route.security:
            continue
        for kind, headers in city.shut.items():
            ids = {
                "webhooks": (city.acme.webhook, city.globex.webhook, UNKNOWN_WEBHOOK),
                "batches": (city.acme.batch, city.globex.batch, UNKNOWN_BATCH),
                "imports": (city.acme.imported, city.globex.imported, UNKNOWN_BATCH),
            }
            images = city.acme.done, city.globex.scheduled, city.acme.announced, UNKNOWN, *MALFORMED
            refusal = refusals[kind]._replace(body=None) if route.method == "HEAD" else refusals[kind]
            for image_id in ids.get(subject_of(route), images):
                assert sent(city, route, image_id, headers) == refusal, (name_of(route), kind, image_id)
    assert set(city.gateway.invoked) == {"authorize_request"}, "no handler hears of them"
    assert city.everything() == before


@pytest.mark.guards("tenant-withdrawal-own-only", "tenants-read-own-only")
def test_anothers_image_or_webhook_is_no_different_from_none(city: City) -> None:
    before = city.everything()
    for route in WITH_AN_ID:
        for me, other in ((city.acme, city.globex), (city.globex, city.acme)):
            unknown = sent(city, route, unknown_to(route), me.bearer)
            batches = dict.fromkeys(("batches", "imports"), "unknown_batch")
            code = {"webhooks": "unknown_webhook", **batches}.get(subject_of(route), "unknown_image")
            problem = None if route.method == "HEAD" else unknown.body["code"]
            assert (unknown.status, problem) == (404, None if route.method == "HEAD" else code), name_of(route)
            # What answers to HEAD is what answers to GET, and tries the malformed ones there.
            malformed = MALFORMED[:1] if route.method == "HEAD" else MALFORMED
            for image_id in (*other.ids_for(route), *malformed):
                assert sent(city, route, image_id, me.bearer) == unknown, (name_of(route), image_id)
                tagged = me.bearer | {"if-none-match": "*"}
                assert sent(city, route, image_id, tagged) == unknown, "nor does a validator tell"
    assert city.everything() == before


def buckets(city: City) -> dict[str, str]:
    """The state of each tenant's bucket."""
    items = boto3.client("dynamodb").scan(TableName=city.gateway.aws.token_buckets_table)["Items"]
    return {item["tenant_id"]["S"]: item["tat"]["N"] for item in items}


def test_a_token_is_taken_from_the_bucket_of_whose_credential_it_is_and_no_other(city: City) -> None:
    before = buckets(city)
    assert {name.partition("#")[0] for name in before} == {"acme", "globex"}
    for route in ROUTES:
        for headers in city.shut.values():
            sent(city, route, city.globex.scheduled, headers)
    assert buckets(city) == before, "a credential that opens nothing takes none"
    free = [route for route in described.ROUTES if not route.is_rate_limited]
    assert [route.name for route in free] == ["getOpenapi"]
    costing = {f"{method} {route.path}" for route in described.ROUTES if route not in free for method in route.methods}
    for route in ROUTES:
        before = buckets(city)
        # A function may still hold tokens that it took when requests cost more.
        for _ in range(20 * MAX_BLOCK if name_of(route) in costing else MAX_BLOCK):
            sent(city, route, city.globex.scheduled, forged(city))
            if (after := buckets(city)) != before:
                break
        own = {"acme" if route.method not in ("GET", "HEAD") else bucket_of(Policy.READS, "acme")}
        changed = {name for name, tat in after.items() if tat != before.get(name)}
        assert changed == (own if name_of(route) in costing else set()), name_of(route)


def forged(city: City) -> dict[str, str]:
    """acme's credential, and everything else that could be mistaken for a claim to be globex."""
    return city.acme.bearer | {
        "x-tenant-id": "globex",
        "tenant_id": "globex",
        "x-amzn-authorizer": '{"tenant_id": "globex"}',
        "cookie": "tenant_id=globex",
        "x-forwarded-authorization": city.globex.bearer["authorization"],
    }


FORGED_QUERY = "?tenant_id=globex&tenant=globex"


def test_nothing_but_the_credential_says_whose_a_request_is(city: City) -> None:
    for route in WITH_AN_ID:
        for query in ("", FORGED_QUERY):
            unknown = sent(city, route, unknown_to(route), city.acme.bearer, query)
            assert unknown.status == (400 if query else 404)
            for image_id in city.globex.ids_for(route):
                assert sent(city, route, image_id, forged(city), query) == unknown, (name_of(route), image_id)


def test_a_list_has_all_images_of_the_caller_and_nobody_elses(city: City) -> None:
    for me, headers in ((city.acme, forged(city)), (city.globex, city.globex.bearer)):
        for query in ("", "?status=done,scheduled,awaiting_upload"):
            listed = city.gateway.request("GET", f"/images{query}", headers=headers)
            assert {image["id"] for image in listed.body["images"]} == set(me.images)
    place = city.gateway.request("GET", "/images?limit=1", headers=city.globex.bearer).body["next"]
    behind = city.gateway.request("GET", f"/images?cursor={place}", headers=city.acme.bearer)
    assert {image["id"] for image in behind.body["images"]} <= set(city.acme.images), "a cursor opens nothing"
    assert city.gateway.request("GET", f"/images{FORGED_QUERY}", headers=city.acme.bearer).status == 400


def test_a_list_has_the_webhooks_of_the_caller_and_nobody_elses(city: City) -> None:
    for me, headers in ((city.acme, forged(city)), (city.globex, city.globex.bearer)):
        listed = city.gateway.request("GET", "/webhooks", headers=headers)
        assert [webhook["id"] for webhook in listed.body["webhooks"]] == [me.webhook]


@pytest.mark.guards("webhook-notify-own-tenant")
@pytest.mark.parametrize("path", MAKING)
def test_nobody_has_anothers_webhook_notified(city: City, path: str) -> None:
    def notifying(webhook: str) -> Answer:
        if path == "/uploads":
            body = announcement_of(PHOTO, notify=webhook)
            return city.gateway.request("POST", path, body=body, headers=city.acme.bearer)
        return city.gateway.request("POST", f"{path}?notify={webhook}", body=PHOTO, headers=city.acme.bearer)

    before = city.everything()
    refused = [notifying(webhook) for webhook in (city.globex.webhook, UNKNOWN_WEBHOOK, *MALFORMED, "")]
    assert {(answer.status, answer.body["code"]) for answer in refused} == {(400, "unknown_notify")}
    assert city.everything() == before
    made = notifying(city.acme.webhook)
    row = boto3.client("dynamodb").get_item(
        TableName=city.gateway.aws.images_table, Key={"image_id": {"S": made.body["id"]}}
    )["Item"]
    assert row["notify"]["S"] == city.acme.webhook


def test_the_apis_description_is_for_everybody_and_says_nothing_of_anybody(city: City) -> None:
    city.gateway.invoked.clear()
    answers = [
        city.gateway.request("GET", "/openapi.json", headers=headers)
        for headers in (*city.shut.values(), city.acme.bearer, city.globex.bearer)
    ]
    assert answers[0].status == 200 and all(answer == answers[0] for answer in answers)
    assert set(city.gateway.invoked) == {"read_image"}


@pytest.mark.guards("tenants-upload-owner")
@pytest.mark.parametrize("path", MAKING)
def test_what_a_tenant_sends_is_its_own_and_no_others(city: City, path: str) -> None:
    assert city.gateway.request("POST", path + FORGED_QUERY, body=MAKING[path], headers=forged(city)).status == 400
    made = city.gateway.request("POST", path, body=MAKING[path], headers=forged(city))
    assert made.status in (201, 202)
    row = boto3.client("dynamodb").get_item(
        TableName=city.gateway.aws.images_table, Key={"image_id": {"S": made.body["id"]}}
    )["Item"]
    assert (row["tenant_id"]["S"], row["lane"]["S"]) == ("acme", "fast")
    status = [
        city.gateway.request("GET", made.headers["Location"], headers=tenant.bearer).status
        for tenant in (city.acme, city.globex)
    ]
    assert status == [200, 404]


@pytest.mark.guards("api-head-as-get")
@time_machine.travel("2026-11-26T09:00:00Z", tick=False)
def test_head_is_answered_as_get_without_a_body_whoever_asks(city: City) -> None:
    reads = [route for route in ROUTES if route.method == "GET"]
    assert {(read.path, read.function, read.security) for read in reads} == {
        (each.path, each.function, each.security) for each in ROUTES if each.method == "HEAD"
    }
    answers = set()
    for route in reads:
        for headers in (*city.shut.values(), city.acme.bearer, city.acme.bearer | {"if-none-match": "*"}):
            for image_id in (*city.acme.ids_for(route), city.globex.done, UNKNOWN):
                got, asked = (
                    sent(city, replace(route, method=method), image_id, headers) for method in ("GET", "HEAD")
                )
                locations = [answer.headers.pop("Location", "").partition("?")[0] for answer in (got, asked)]
                assert (asked.status, asked.headers, asked.body) == (got.status, got.headers, None), name_of(route)
                assert locations[0] == locations[1]
                answers.add(got.status)
    assert answers >= {200, 304, 307, 401, 403, 404, 409}


def test_its_owner_gets_it(city: City) -> None:
    for route in sorted(WITH_AN_ID, key=lambda route: route.method == "DELETE"):
        for owner in (city.acme, city.globex):
            # Only a waiting image can be rescheduled; only a done one has variants, and gets more; no file has come for
            # the announced one.
            is_of_variant = "/variants" in route.path or route.path == "/uploads/{id}/done"
            image_ids = (owner.done,) if is_of_variant else owner.ids_for(route)
            image_ids = (owner.scheduled,) if name_of(route) == "PATCH /images/{id}" else image_ids
            for image_id in image_ids:
                answer = sent(city, route, image_id, owner.bearer)
                assert answer.status == OWN[name_of(route)], (name_of(route), image_id)
                has_its_id = isinstance(answer.body, dict) and "links" in answer.body
                assert not has_its_id or answer.body["id"] == image_id


@pytest.mark.promise("no-secret-kept")
def test_no_log_holds_a_secret_and_every_line_about_an_image_names_its_tenant(
    city: City, log: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = []
    for route in sorted(ROUTES, key=lambda route: route.method == "DELETE"):
        for headers in (*city.shut.values(), city.acme.bearer, city.globex.bearer):
            webhook = city.globex.webhook if headers == city.globex.bearer else city.acme.webhook
            batches = {"batches": city.acme.batch, "imports": city.acme.imported}
            own = {"webhooks": webhook, **batches}.get(subject_of(route), city.acme.done)
            answer = sent(city, route, own, headers)
            shown += [answer.body["secret"]] if "secret" in (answer.body or {}) else []
    said = log.getvalue() + capsys.readouterr().out
    assert len(shown) == 2, "each has rotated its webhook's"
    assert [secret for secret in (*city.secrets, *shown) if secret in said] == []
    assert "earer" not in said
    keys = city.acme.bearer["authorization"] + city.globex.bearer["authorization"]
    for word in ("accepted", "announced"):
        lines = [json.loads(line) for line in log.getvalue().splitlines() if f'"message":"{word}"' in line]
        assert {line["tenant_id"] for line in lines} == {"acme", "globex"}, word
        assert all(line["key_id"] in keys for line in lines), word
