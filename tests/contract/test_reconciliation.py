"""The reconciliation's rows, and what it lists: the fakes, the tables and the buckets of AWS alike."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import boto3
import pytest

from darkroom.aws.bulk.batches_table import BatchesTable
from darkroom.aws.bulk.reconciliations_table import ListedImages, ReconciliationsTable
from darkroom.aws.bulk.stored_objects import ListedOriginals, ListedVariants
from darkroom.domain.bulk.reconciliation import Difference, DifferenceKind, Objects, Reconciliation, confirm
from darkroom.domain.images.transitions import delete
from darkroom.ports.bulk import DueRow, ImageListing, Reconciliations, StoredObjects
from darkroom.ports.kernel import Fenced
from tests.contract.conftest import Aws
from tests.contract.stores import images_of, spy
from tests.support.fakes.originals import FakeVersionedOriginals
from tests.support.fakes.reconciliation import (
    FakeImageListing,
    FakeReconciliations,
    FakeStoredOriginals,
    FakeStoredVariants,
)
from tests.support.fakes.stores import FakeOutputs
from tests.support.images import pending

NOW = 1_795_251_600_000
IDS = [f"{number}{'z' * 24}{number}" for number in range(8)]
LOST = Difference(kind=DifferenceKind.ORIGINAL_WITHOUT_ROW, image_id=IDS[1], key=f"originals/{IDS[1]}", first_seen=NOW)


@pytest.fixture
def client(aws: Aws) -> Any:
    return boto3.client("dynamodb")


@pytest.fixture
def s3(aws: Aws) -> Any:
    return boto3.client("s3")


@pytest.fixture
def reconciliations(kind: str, aws: Aws, client: Any) -> Reconciliations:
    return FakeReconciliations() if kind == "fake" else ReconciliationsTable(client, aws.batches_table)


def test_there_is_one_and_it_changes_under_its_version(reconciliations: Reconciliations) -> None:
    assert reconciliations.get() is None
    row = reconciliations.create(Reconciliation(due_at=NOW))
    assert reconciliations.create(Reconciliation(due_at=NOW + 1)) == row == reconciliations.get()
    changed = reconciliations.change(row, replace(row, nights=1, after="x"))
    assert (changed.version, changed.nights) == (2, 1) and reconciliations.get() == changed
    other = replace(row, after="y")
    with pytest.raises(Fenced) as lost:
        reconciliations.change(row, other)
    with pytest.raises(Fenced) as lost_too:
        reconciliations.put_ids(row, other, IDS)
    assert lost.value.current == lost_too.value.current == changed
    assert list(reconciliations.ids(1, after="0")) == []


def test_the_ids_of_a_night_come_with_its_row_and_in_order(reconciliations: Reconciliations) -> None:
    row = reconciliations.create(Reconciliation(due_at=NOW))
    first = reconciliations.put_ids(row, replace(row, nights=7, after="x"), [IDS[5], IDS[1]])
    assert reconciliations.get() == first and (first.after, first.version) == ("x", 2)
    second = reconciliations.put_ids(first, replace(first, after="y"), [IDS[3], IDS[2], IDS[4]])
    assert list(reconciliations.ids(7, after=IDS[0])) == IDS[1:6]
    assert list(reconciliations.ids(7, after=IDS[2])) == IDS[3:6]
    assert list(reconciliations.ids(7, after="1")) == IDS[1:6] and list(reconciliations.ids(7, after="8")) == []
    reconciliations.put_ids(second, replace(second, nights=8), [IDS[6]])
    assert list(reconciliations.ids(8, after="0")) == [IDS[6]]


def test_differences_are_recorded_by_name_and_removed(reconciliations: Reconciliations) -> None:
    other = replace(LOST, kind=DifferenceKind.ROW_WITHOUT_VARIANT, key=f"outputs/{IDS[0]}/1/small.jpg")
    for difference in (other, LOST, confirm(LOST, now=NOW * 2)):
        reconciliations.put(difference)
    assert list(reconciliations.differences()) == [replace(LOST, confirmed_at=NOW * 2), other]
    for _ in range(2):
        reconciliations.remove(LOST)
    assert list(reconciliations.differences()) == [other]


def test_it_is_due_as_other_bulk_work_and_an_item_of_ids_fits_into_dynamodb(aws: Aws, client: Any) -> None:
    table = ReconciliationsTable(client, aws.batches_table)
    row = table.create(Reconciliation(due_at=NOW))
    assert list(BatchesTable(client, aws.batches_table).due(NOW, 10)) == [
        DueRow(NOW, "reconciliation", "reconciliation")
    ]
    asked = spy(client, "TransactWriteItems", lambda arguments, call: call(arguments))
    ids = [f"{number * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128:0130b}" for number in range(1, 22_001)]
    letters = "0123456789abcdefghjkmnpqrstvwxyz"
    table.put_ids(row, row, ["".join(letters[int(bits[i : i + 5], 2)] for i in range(0, 130, 5)) for bits in ids])
    (put,) = [item["Put"]["Item"] for item in asked[0]["TransactItems"] if "Put" in item]
    assert len(put["ids"]["B"]) < 400_000 - 100


def test_all_images_of_a_range_are_listed_that_are_old_enough_and_not_deleted(kind: str, aws: Aws, client: Any) -> None:
    images: Any = images_of(kind, aws)
    listing: ImageListing = FakeImageListing(images) if kind == "fake" else ListedImages(client, aws.images_table)
    if kind == "aws":  # several pages
        spy(client, "Scan", lambda arguments, call: call({**arguments, "Limit": 3}))
    for image_id in IDS:
        images.create(replace(pending(image_id=image_id), created_at=NOW))
    images.change(images.get(IDS[2]), delete(images.get(IDS[2]), now=NOW))
    images.create(replace(pending(image_id="3" * 26), created_at=NOW + 5))
    found, after = list[str](), None
    while True:
        part = listing.between(IDS[0], IDS[5], before=NOW + 5, after=after)
        found += part.image_ids
        after = part.next
        if after is None:
            break
    assert sorted(found) == [IDS[1], IDS[3], IDS[4]]
    assert listing.rows([IDS[1], "9" * 26]) == {IDS[1]: images.get(IDS[1])}


def paged(arguments: dict[str, Any], call: Any, size: int) -> dict[str, Any]:
    """A page of what moto lists, as S3 cuts it: without a VersionIdMarker after all versions of the KeyMarker, of which
    moto leaves out the first
    (https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectVersions.html)."""
    answer = call({"Bucket": arguments["Bucket"], "Prefix": arguments["Prefix"]})
    parts = [(part, item) for part in ("Versions", "DeleteMarkers") for item in answer.get(part, ())]
    listed = sorted(parts, key=lambda each: (each[1]["Key"], not each[1]["IsLatest"]))
    places = [(item["Key"], item["VersionId"]) for _, item in listed]
    if "VersionIdMarker" in arguments:
        begin = places.index((arguments["KeyMarker"], arguments["VersionIdMarker"])) + 1
    else:
        begin = sum(key <= arguments["KeyMarker"] for key, _ in places)
    page = listed[begin : begin + size]
    last = {"NextKeyMarker": page[-1][1]["Key"], "NextVersionIdMarker": page[-1][1]["VersionId"]} if page else {}
    return {
        **last,
        "IsTruncated": begin + size < len(listed),
        **{name: [item for part, item in page if part == name] for name in ("Versions", "DeleteMarkers")},
    }


@pytest.mark.parametrize("page_size", [1, 2, 1000])
def test_the_versions_of_the_originals_of_a_range_come_in_the_order_of_ids(
    kind: str, page_size: int, aws: Aws, s3: Any
) -> None:
    fake = FakeVersionedOriginals(clock=lambda: NOW, page_size=page_size)
    stored: StoredObjects = FakeStoredOriginals(fake) if kind == "fake" else ListedOriginals(s3, aws.originals_bucket)
    if kind == "aws":
        spy(s3, "ListObjectVersions", lambda arguments, call: paged(arguments, call, page_size))
    for key in (*(f"originals/{image_id}" for image_id in (*IDS, IDS[3])), f"originals/{IDS[2]}0", "originals/notes"):
        if kind == "fake":
            fake.add(key, b"x")
        else:
            s3.put_object(Bucket=aws.originals_bucket, Key=key, Body=b"x")
    if kind == "fake":
        fake.hide([IDS[4]])
    else:
        s3.delete_object(Bucket=aws.originals_bucket, Key=f"originals/{IDS[4]}")
    listed = [(image_id, [each.is_marker for each in part.versions]) for image_id, part in stored.between("1", IDS[5])]
    assert sorted(listed) == [
        *((image_id, [False]) for image_id in (IDS[1], IDS[2], IDS[3], IDS[3], IDS[4])),
        (IDS[4], [True]),
    ]
    assert [image_id for image_id, _ in listed] == sorted(image_id for image_id, _ in listed)
    assert [image_id for image_id, _ in stored.between(IDS[2], "4")] == [IDS[3], IDS[3]]
    assert [image_id for image_id, _ in stored.between(IDS[6][:-1], IDS[6] + "0")] == [IDS[6]]


@pytest.mark.parametrize("page_size", [1, 1000])
def test_the_variants_of_a_range_come_in_the_order_of_ids_for_whatever_visibility(
    kind: str, page_size: int, aws: Aws, s3: Any
) -> None:
    fake = FakeOutputs()
    stored: StoredObjects = FakeStoredVariants(fake) if kind == "fake" else ListedVariants(s3, aws.outputs_bucket)
    if kind == "aws":
        spy(s3, "ListObjectsV2", lambda arguments, call: call({**arguments, "MaxKeys": page_size}))
    keys = [f"{prefix}/{IDS[n]}/1/{name}" for n in range(4) for prefix in ("outputs", "public") for name in "ab"]
    for key in (*keys, f"signed/{IDS[2]}/1/a", f"other/{IDS[2]}/1/a", "outputs/notes"):
        if kind == "fake":
            fake.objects[key] = b"x"
        else:
            s3.put_object(Bucket=aws.outputs_bucket, Key=key, Body=b"x")
    listed = list(stored.between("1", IDS[3]))
    assert [image_id for image_id, _ in listed] == [IDS[1]] * 4 + [IDS[2]] * 5
    found = frozenset(key for _, part in listed for key in part.keys)
    assert found == {*keys[4:12], f"signed/{IDS[2]}/1/a"} and all(part.versions == () for _, part in listed)
    assert {image_id for image_id, _ in stored.between(IDS[1], "8")} == {IDS[2], IDS[3]}
    assert {image_id for image_id, _ in stored.between(IDS[1][:-1], IDS[1] + "0")} == {IDS[1]}
    assert Objects(keys=frozenset("a")) | Objects(keys=frozenset("b")) == Objects(keys=frozenset("ab"))
