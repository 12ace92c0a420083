"""What a tenant may store: what clients are told when it is used up, and what they read of it."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import boto3
import pytest

import darkroom.http.imports.for_core
from darkroom.aws.usage.usage_table import UsageTable
from darkroom.domain.kernel.stored import Stored
from darkroom.domain.kernel.tenants import Quota, Tier
from darkroom.domain.usage.usage import Count, Usage
from darkroom.wiring.kernel import runtime
from tests.contract.conftest import Aws
from tests.contract.functions import (
    SMALL_PHOTO,
    Functions,
    announce,
    call,
    emitted,
    http_event,
    keyed,
    post,
    problem_of,
    received,
    written,
)
from tests.support.images import NOW

QUOTA = Quota(stored_bytes=26_000_000, images=4)


@pytest.fixture
def functions(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> Functions:
    monkeypatch.setenv("ACCESS", "keys")
    monkeypatch.setattr(runtime, "time", SimpleNamespace(time_ns=lambda: NOW * 1_000_000))
    return Functions(aws, monkeypatch)


def fill(aws: Aws, tenant_id: str = "acme", *, size_bytes: int = 0, images: int = 0) -> None:
    table = UsageTable(boto3.client("dynamodb"), aws.usage_table, aws.counted_events_table)
    stored = Stored(size_bytes=size_bytes, images=images)
    usage = Usage(images=images, image_bytes=size_bytes)
    count = Count(
        event_id=f"{tenant_id}-{size_bytes}-{images}",
        tenant_id=tenant_id,
        day="2026-11-21",
        usage=usage,
        stored=stored,
        forget_at=NOW,
    )
    table.add([count])


def fetch(functions: Functions, key: str | None = None, **caller: Any) -> dict[str, Any]:
    caller.setdefault("allowance", Tier.PAID.allowance)  # each counts as 25
    headers = {"content-type": "application/json", **({} if key is None else {"idempotency-key": key})}
    body = json.dumps({"url": "https://photos.example/harbour.jpg"}).encode()
    return call(functions.submit_image, keyed(http_event("POST", "/images", body=body, headers=headers), **caller))


def sent(functions: Functions, way: str, **more: Any) -> dict[str, Any]:
    match way:
        case "sent":
            return post(functions.submit_image, **more)
        case "announced":
            return announce(functions, **more)
        case _:
            return fetch(functions, **more)


WAYS = pytest.mark.parametrize("way", ["sent", "announced", "fetched"])


@pytest.mark.guards("quotas-room-required")
@WAYS
@pytest.mark.parametrize("full", [{"size_bytes": 26_000_000, "images": 1}, {"images": 4}])
def test_who_stores_too_much_is_told_how_much_and_what_to_do_and_leaves_nothing(
    functions: Functions, aws: Aws, way: str, full: dict[str, int]
) -> None:
    fill(aws, size_bytes=full.get("size_bytes", 0), images=full["images"])
    answer = sent(functions, way, quota=QUOTA)
    assert problem_of(answer) == (403, "quota_exceeded")
    document = json.loads(answer["body"])
    assert document["used"] == {"bytes": full.get("size_bytes", 0), "images": full["images"]}
    assert document["allowed"] == {"bytes": 26_000_000, "images": 4}
    assert "Delete images" in document["detail"]
    assert boto3.client("dynamodb").scan(TableName=aws.images_table)["Items"] == []
    assert boto3.client("s3").list_objects_v2(Bucket=aws.originals_bucket)["KeyCount"] == 0
    assert sent(functions, way, quota=QUOTA, tenant_id="globex")["statusCode"] in (201, 202), "others are not it"
    assert sent(functions, way)["statusCode"] in (201, 202), "nor is one without a quota"


@pytest.mark.guards("quotas-unreadable-sum-admits")
@WAYS
def test_a_table_that_is_gone_or_forbidden_refuses_nobody_and_is_logged(
    functions: Functions, aws: Aws, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    boto3.client("dynamodb").delete_table(TableName=aws.usage_table)
    assert sent(functions, way, quota=QUOTA)["statusCode"] in (201, 202)
    assert "what a tenant stores not read" in caplog.messages


def test_a_tenant_reads_what_it_stores_may_store_and_used(functions: Functions, aws: Aws) -> None:
    def read(query: str = "", **caller: Any) -> dict[str, Any]:
        return call(functions.read_image, keyed(http_event("GET", "/usage", query=query), **caller))

    fill(aws, size_bytes=3_000_000, images=2)
    fill(aws, "globex", size_bytes=9, images=9)
    answer = read(quota=QUOTA)
    assert answer["statusCode"] == 200
    assert answer["headers"]["RateLimit-Policy"] == '"reads";q=50;w=5'
    assert answer["headers"]["Cache-Control"] == "no-store"
    assert json.loads(answer["body"]) == {
        "stored": {"bytes": 3_000_000, "images": 2},
        "quota": {"bytes": 26_000_000, "images": 4},
        "since": "2026-10-22",
        "until": "2026-11-21",
        "days": [
            {
                "day": "2026-11-21",
                "images": 2,
                "image_bytes": 3_000_000,
                "runs": 0,
                "variant_bytes": 0,
                "variant_pixels": 0,
            }
        ],
    }
    assert json.loads(read("since=2026-11-22&until=2026-11-23")["body"])["days"] == []
    nobody = json.loads(read(tenant_id="initech")["body"])
    assert (nobody["stored"], nobody["days"]) == ({"bytes": 0, "images": 0}, [])
    assert nobody["quota"] == {"bytes": None, "images": None}
    assert problem_of(read("since=2026-11-22")) == (400, "invalid_days")
    assert problem_of(read(scopes=frozenset({"images:write"}))) == (403, "insufficient_scope")


@pytest.mark.guards("quotas-accepted-bytes-metric")
def test_a_photo_counts_as_stored_from_its_row_on_until_it_is_deleted_and_its_bytes_are_told_once(
    functions: Functions, aws: Aws, capsys: pytest.CaptureFixture[str]
) -> None:
    def count() -> Stored:
        call(functions.publish_events, {"Records": written(aws.images_table)})
        event = received(aws.usage_queue_url)
        for _ in range(2):  # each message may come twice
            assert call(functions.count_usage, event) == {"batchItemFailures": []}
        return UsageTable(boto3.client("dynamodb"), aws.usage_table).stored("acme")

    image_id = json.loads(post(functions.submit_image)["body"])["id"]
    capsys.readouterr()
    assert count() == Stored(size_bytes=len(SMALL_PHOTO), images=1, unfinished=1)
    measures = [measure for measure in emitted(capsys.readouterr().out) if measure[0] == "BytesAccepted"]
    assert measures == [("BytesAccepted", frozenset({("service", "darkroom")}))]
    call(functions.delete_image, keyed(http_event("DELETE", f"/images/{image_id}")))
    assert count() == Stored()


@pytest.mark.parametrize(("way", "reader"), [("announced", "read_announcement"), ("fetched", "read_fetch")])
def test_a_requests_json_is_read_once_for_its_price_and_its_operation(
    functions: Functions, monkeypatch: pytest.MonkeyPatch, way: str, reader: str
) -> None:
    module = functions.begin_upload if way == "announced" else darkroom.http.imports.for_core
    read, bodies = getattr(module, reader), list[bytes]()

    def counted(body: bytes, *others: Any) -> Any:
        bodies.append(body)
        return read(body, *others)

    monkeypatch.setattr(module, reader, counted)
    for _ in range(2):
        assert sent(functions, way)["statusCode"] in (201, 202)
    assert len(bodies) == 2
