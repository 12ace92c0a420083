"""Variants on first request, over AWS's interfaces: the store, the leases, and the answers of the function."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import replace
from typing import Any

import boto3
import pytest

from darkroom.aws.edge.made_variants import MadeVariantsBucket
from darkroom.aws.edge.variant_leases import VariantLeasesTable
from darkroom.aws.images.images_table import ImagesTable
from darkroom.domain.edge.instructions import ENGINE
from darkroom.domain.images.image import Source, Status
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.visibility import Visibility
from darkroom.http.edge import variants
from darkroom.ports.edge import MadeVariant, MadeVariants, VariantLeases
from tests.contract.conftest import Aws
from tests.contract.functions import PHOTO, Context, load
from tests.support.fakes.edge import FakeMadeVariants, FakeVariantLeases
from tests.support.faults import refuse
from tests.support.images import NOW, pending

ID = "0" * 26
KEY = f"public/{ID}/t{ENGINE}/w_32.webp"
MADE = MadeVariant(key=KEY, image_id=ID, media_type="image/webp", viewer_seconds=86_400, body=b"bytes")


@pytest.fixture
def made(kind: str, aws: Aws) -> MadeVariants:
    return FakeMadeVariants() if kind == "fake" else MadeVariantsBucket(boto3.client("s3"), aws.outputs_bucket)


@pytest.fixture
def leases(kind: str, aws: Aws) -> VariantLeases:
    client = boto3.client("dynamodb")
    return FakeVariantLeases() if kind == "fake" else VariantLeasesTable(client, aws.token_buckets_table)


@pytest.mark.guards("on-request-never-overwritten")
def test_what_is_made_is_put_once_and_read_as_it_was_put(made: MadeVariants) -> None:
    assert made.get(KEY) is None
    assert made.put_if_absent(MADE)
    assert not made.put_if_absent(replace(MADE, body=b"others"))
    assert made.get(KEY) == MADE
    made.remove(KEY)
    made.remove(KEY)
    assert made.get(KEY) is None


@pytest.mark.guards("on-request-recipes-variants-kept")
def test_all_that_was_made_of_an_image_is_removed_and_nothing_else(made: MadeVariants) -> None:
    kept = f"public/{ID}/1/thumb.jpg", f"public/1{ID[1:]}/t1/w_1.jpg"
    for key in (KEY, f"public/{ID}/t2/w_1.jpg", *kept):
        made.put_if_absent(replace(MADE, key=key))
    made.remove_all(ID)
    made.remove_all(ID)
    assert [made.get(key) is not None for key in (KEY, f"public/{ID}/t2/w_1.jpg", *kept)] == [False, False, True, True]


@pytest.mark.guards("on-request-objects-expire")
@pytest.mark.guards("on-request-objects-tagged")
def test_an_object_has_what_the_edge_and_the_lifecycle_rule_need(aws: Aws) -> None:
    client = boto3.client("s3")
    MadeVariantsBucket(client, aws.outputs_bucket).put_if_absent(MADE)
    head: Any = client.head_object(Bucket=aws.outputs_bucket, Key=KEY)
    assert head["Metadata"] == {"cache-tag": ID}
    assert head["CacheControl"] == "public, max-age=86400, immutable"
    assert head["ContentDisposition"] == 'inline; filename="w_32.webp"'
    tags = client.get_object_tagging(Bucket=aws.outputs_bucket, Key=KEY)["TagSet"]
    assert tags == [{"Key": "made", "Value": "on-request"}]


@pytest.mark.guards("on-request-lease-lapses")
@pytest.mark.guards("on-request-lease-lost-answer")
@pytest.mark.guards("on-request-lease-of-another")
def test_a_lease_is_one_owners_until_it_lapses_or_is_given_back(leases: VariantLeases) -> None:
    assert leases.take(KEY, "a", now=NOW, until=NOW + 1000)
    assert leases.take(KEY, "a", now=NOW, until=NOW + 1000)  # its answer was lost
    assert not leases.take(KEY, "b", now=NOW + 999, until=NOW + 2000)
    leases.release(KEY, "b")
    assert not leases.take(KEY, "b", now=NOW + 999, until=NOW + 2000)
    assert leases.take(KEY, "b", now=NOW + 1000, until=NOW + 2000)
    leases.release(KEY, "b")
    leases.release(KEY, "b")
    assert leases.take(KEY, "a", now=NOW, until=NOW + 1000)


@pytest.mark.guards("on-request-count")
@pytest.mark.guards("on-request-counted-once")
def test_an_images_variants_are_counted_once_each(leases: VariantLeases) -> None:
    told = [("w_1", True), ("w_2", True), ("w_3", False), ("w_2", True)]
    assert [(name, leases.count(ID, f"x/{name}", most=2, forget_at=NOW)) for name, _ in told] == told


def public_image(aws: Aws) -> None:
    put = boto3.client("s3").put_object(Bucket=aws.originals_bucket, Key=f"originals/{ID}", Body=PHOTO)
    source = Source(
        version_id=put["VersionId"],
        sha256=hashlib.sha256(PHOTO).hexdigest(),
        size_bytes=len(PHOTO),
        media_type="image/jpeg",
    )
    row = pending(image_id=ID, source=source, status=Status.DONE, visibilities=(Visibility.PUBLIC,))
    ImagesTable(boto3.client("dynamodb"), aws.images_table).create(row)


def ask(app: Any, path: str = f"/{KEY}", method: str = "GET") -> dict[str, Any]:
    event = {"version": "2.0", "rawPath": path, "headers": {}, "requestContext": {"http": {"method": method}}}
    return app.handler(event, Context("make_variant"))  # type: ignore[no-any-return]


@pytest.mark.guards("on-request-answers-tagged")
@pytest.mark.guards("on-request-large-redirect")
@pytest.mark.guards("on-request-outage-unkept")
def test_the_edge_gets_the_bytes_or_their_object_and_keeps_no_outage(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    public_image(aws)
    monkeypatch.setenv("VARIANT_KEY", aws.message_key)
    monkeypatch.setenv("ALLOWED_INSTRUCTIONS", "w_32")
    app = load("make_variant", aws, monkeypatch)
    answer = ask(app)
    stored = boto3.client("s3").get_object(Bucket=aws.outputs_bucket, Key=KEY)
    assert (answer["statusCode"], base64.b64decode(answer["body"])) == (200, stored["Body"].read())
    kept = {"Cache-Control": "public, max-age=86400, immutable", "x-amz-meta-cache-tag": ID}
    assert answer["headers"] == kept | {
        "Content-Type": "image/webp",
        "Content-Disposition": 'inline; filename="w_32.webp"',
    }
    assert ask(app, method="HEAD")["body"] == ""
    unknown = ask(app, f"/public/{ID}/t{ENGINE}/w_33.webp")
    assert (unknown["statusCode"], unknown["headers"]["Cache-Control"]) == (404, "public, max-age=60")
    monkeypatch.setattr(variants, "MAX_BODY_BYTES", 10)
    large = ask(app)
    assert (large["statusCode"], large["headers"]) == (
        302,
        {"Cache-Control": "no-store", "Location": f"/t/{ID}/w_32.webp"},
    )
    refuse(app.ports.images._client, error=Retryable("down"))
    down = ask(app)
    assert (down["statusCode"], down["headers"]["Cache-Control"], down["headers"]["Retry-After"]) == (
        503,
        "no-store",
        "5",
    )
