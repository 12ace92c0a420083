"""Imports and their files: the fakes and what AWS has alike."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import boto3
import pytest

from darkroom.aws.bulk.batches_table import BatchesTable
from darkroom.aws.bulk.imports_table import ImportsTable
from darkroom.aws.bulk.manifests_bucket import ManifestsBucket
from darkroom.domain.bulk.batches import batch_id_from_bits, open_batch
from darkroom.domain.bulk.imports import Import, ReportPart, WaitsFor, fail, go_on, new_import, validate
from darkroom.domain.bulk.manifests import ManifestFormat
from darkroom.domain.kernel.tenants import NOBODY_IN_PARTICULAR
from darkroom.ports.bulk import Batches, DueRow, Imports, Manifests, StoredManifest
from darkroom.ports.kernel import Fenced
from darkroom_cli.operator.aws.batch_registry import BatchRegistryTable
from tests.contract.conftest import Aws
from tests.support.fakes.batch_rows import FakeBatches

NOW = 1_795_251_600_000
BATCH = open_batch(batch_id_from_bits(bytes(16)), tenant_id="default", now=NOW, of_import="csv")


def begun() -> Import:
    return new_import(BATCH, NOBODY_IN_PARTICULAR, kind=ManifestFormat.CSV, size_bytes=9, preset="standard", now=NOW)


@pytest.fixture
def stores(kind: str, aws: Aws) -> tuple[Batches, Imports, Manifests, Any]:
    if kind == "fake":
        fake = FakeBatches()
        return fake, fake.imports, fake.manifests, fake
    dynamodb: Any = boto3.client("dynamodb")
    manifests = ManifestsBucket(boto3.client("s3"), aws.uploads_bucket)
    registry = BatchRegistryTable(dynamodb, aws.batches_table, manifests)
    return BatchesTable(dynamodb, aws.batches_table), ImportsTable(dynamodb, aws.batches_table), manifests, registry


def test_an_import_is_read_as_it_was_written_beside_its_batch_and_listed_when_it_is_due(
    stores: tuple[Batches, Imports, Manifests, Any],
) -> None:
    batches, imports, _, _ = stores
    batches.create(BATCH)
    row = begun()
    assert imports.get(row.batch_id) is None
    assert imports.create(row) == row == imports.get(row.batch_id) == imports.create(replace(row, size_bytes=1))
    found = imports.change(row, validate(row, '"etag"', 8, now=NOW + 1))
    part = ReportPart(name="0" * 32, size_bytes=70)
    waits = go_on(replace(found, columns=("url", "key"), report=(part,)), now=NOW + 2, waits_for=WaitsFor.QUOTA)
    waiting = imports.change(found, waits)
    assert waiting == imports.get(row.batch_id) == imports.change(found, waits)
    with pytest.raises(Fenced):
        imports.change(found, fail(found, "invalid_manifest", "No.", now=NOW))
    assert waiting.due_at is not None and BATCH.due_at is not None
    due = DueRow(waiting.due_at, row.batch_id, "import")
    assert list(batches.due(BATCH.due_at, 9)) == [due, DueRow(BATCH.due_at, row.batch_id, "batch")]
    batches.postpone(due, NOW + 5)
    assert next(batches.due(BATCH.due_at, 1)) == DueRow(NOW + 5, row.batch_id, "import")


def test_a_manifest_is_found_and_read_as_it_was_pinned(
    kind: str, stores: tuple[Batches, Imports, Manifests, Any]
) -> None:
    manifests, batch_id = stores[2], BATCH.batch_id
    assert manifests.find(batch_id) is None
    form = manifests.form_for(batch_id, size_bytes=9, media_type="text/csv", seconds=60, now=NOW)
    assert (form.fields["Content-Type"], form.expires_at) == ("text/csv", NOW + 60_000)
    send(kind, manifests, form, b"url\nx\ny\nz")
    stored = manifests.find(batch_id)
    assert isinstance(stored, StoredManifest) and stored.size_bytes == 9
    assert manifests.read(batch_id, stored.etag, offset=4, size_bytes=3) == b"x\ny"
    assert manifests.read(batch_id, stored.etag, offset=6, size_bytes=30) == b"y\nz"
    send(kind, manifests, form, b"url\nx\ny\n?")
    assert manifests.read(batch_id, stored.etag, offset=0, size_bytes=3) is None
    manifests.remove(batch_id)
    manifests.remove(batch_id)
    assert manifests.find(batch_id) is None is manifests.read(batch_id, stored.etag, offset=0, size_bytes=3)


def send(kind: str, manifests: Any, form: Any, body: bytes) -> None:
    if kind == "fake":
        manifests.upload(form, body)
    else:
        boto3.client("s3").put_object(Bucket=manifests._bucket_name, Key=form.fields["key"], Body=body)


@pytest.mark.guards("erasure-tenant-imports")
def test_a_report_is_there_until_it_is_removed_or_its_tenant_is_forgotten(
    stores: tuple[Batches, Imports, Manifests, Any],
) -> None:
    batches, imports, manifests, registry = stores
    batches.create(BATCH)
    imports.create(begun())
    assert manifests.report(BATCH.batch_id, "a") is None
    for name in ("a", "b"):
        manifests.put_report(BATCH.batch_id, name, name.encode())
        manifests.put_report(BATCH.batch_id, name, name.encode())
    assert manifests.report(BATCH.batch_id, "a") == b"a"
    assert "a" in manifests.report_url(BATCH.batch_id, "a")
    manifests.remove(BATCH.batch_id, "a")
    assert (manifests.report(BATCH.batch_id, "a"), manifests.report(BATCH.batch_id, "b")) == (None, b"b")
    assert registry.forget("default") == 1
    assert (manifests.report(BATCH.batch_id, "b"), imports.get(BATCH.batch_id)) == (None, None)


@pytest.mark.guards("bulk-import-form-size")
def test_a_form_takes_no_manifest_of_another_size(aws: Aws) -> None:
    manifests = ManifestsBucket(boto3.client("s3"), aws.uploads_bucket)
    form = manifests.form_for(BATCH.batch_id, size_bytes=9, media_type="text/csv", seconds=60, now=NOW)
    policy = json.loads(base64.b64decode(form.fields["policy"]))
    assert ["content-length-range", 9, 9] in policy["conditions"] and {"Content-Type": "text/csv"} in policy[
        "conditions"
    ]


@pytest.mark.guards("bulk-import-manifest-pinned")
def test_another_manifest_is_not_read_in_the_place_of_the_one_that_was_pinned(aws: Aws) -> None:
    manifests = ManifestsBucket(boto3.client("s3"), aws.uploads_bucket)
    key = manifests.form_for(BATCH.batch_id, size_bytes=1, media_type="text/csv", seconds=60, now=NOW).fields["key"]
    boto3.client("s3").put_object(Bucket=aws.uploads_bucket, Key=key, Body=b"url\n")
    assert manifests.read(BATCH.batch_id, '"other"', offset=0, size_bytes=3) is None
