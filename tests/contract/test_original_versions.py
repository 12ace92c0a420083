"""The originals' bucket with all its versions: the fake behind the tests of removing orphans behaves as S3 does."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
import time_machine
from botocore.exceptions import ClientError

from darkroom.aws.images.objects import OriginalsBucket
from darkroom.domain.images.stored_by import StoredVersion
from darkroom.domain.kernel.errors import Retryable
from darkroom.ports.images import Originals, StoredOriginal
from darkroom_cli.operator.aws.image_registry import ImageRegistryTable
from darkroom_cli.operator.aws.original_versions import OriginalVersionsBucket
from darkroom_cli.operator.operations.images.list_orphans import ListOrphansPorts, list_orphans
from darkroom_cli.operator.operations.images.remove_orphans import RemoveOrphansPorts, remove_orphans
from darkroom_cli.operator.operations.kernel.retry_transient import TransientRetry
from darkroom_cli.operator.ports import ImageRegistry, OriginalVersions
from tests.contract.conftest import Aws
from tests.contract.stores import spy
from tests.support.fakes import FakeImages, FakeVersionedOriginals
from tests.support.fakes.audit import trail_of
from tests.support.images import pending

FIRST, SECOND, THIRD = "0" * 26, "1" * 26, "2" * 26


def now() -> int:
    return int(time.time() * 1000)


@pytest.fixture
def clock() -> Iterator[Any]:
    """A clock that each call advances by a second: moto orders versions by their times."""
    with time_machine.travel("2026-11-21T09:00:00Z", tick=False) as clock:
        yield clock


class Bucket:
    """Both ports over one bucket, and the rows with it."""

    def __init__(self, kind: str, aws: Aws, clock: Any) -> None:
        self._clock = clock
        self.originals: Originals
        self.versions: OriginalVersions
        self.images: ImageRegistry
        if kind == "fake":
            self.originals = self.versions = FakeVersionedOriginals(clock=now)
            self.images = FakeImages()
        else:
            client = boto3.client("s3")
            self.originals = OriginalsBucket(client, aws.originals_bucket)
            self.versions = OriginalVersionsBucket(client, aws.originals_bucket)
            self.images = ImageRegistryTable(boto3.client("dynamodb"), aws.images_table)

    def put(self, image_id: str, body: bytes = b"photo") -> StoredOriginal:
        self._clock.shift(1)
        sha256 = hashlib.sha256(body).hexdigest()
        return self.originals.put_if_absent(image_id, body, sha256=sha256, media_type="image/jpeg")

    def hide(self, *image_ids: str) -> dict[str, str]:
        self._clock.shift(1)
        return dict(self.versions.hide(image_ids))

    def all(self) -> list[StoredVersion]:
        versions: list[StoredVersion] = []
        after, pages = None, 0
        while pages == 0 or after is not None:
            page = self.versions.page(after)
            versions += page.versions
            after, pages = page.next, pages + 1
        return versions


def test_all_versions_and_markers_are_listed_by_their_keys(kind: str, aws: Aws, clock: Any) -> None:
    bucket = Bucket(kind, aws, clock)
    assert bucket.all() == []
    bucket.put(SECOND, b"another")
    first = bucket.put(FIRST)
    stored_at = now()
    marker = bucket.hide(FIRST)[FIRST]
    old, new = sorted(
        (version for version in bucket.all() if version.image_id == FIRST), key=lambda version: version.stored_at
    )
    assert old == StoredVersion(
        key=f"originals/{FIRST}",
        image_id=FIRST,
        version_id=first.version_id,
        stored_at=stored_at,
        size_bytes=5,
        is_marker=False,
        is_latest=False,
    )
    assert (new.version_id, new.is_marker, new.is_latest, new.size_bytes) == (marker, True, True, 0)
    assert [version.image_id for version in bucket.all()] == [FIRST, FIRST, SECOND]


def test_a_hidden_original_is_read_by_its_version_and_not_taken_over(kind: str, aws: Aws, clock: Any) -> None:
    bucket = Bucket(kind, aws, clock)
    hidden = bucket.put(FIRST)
    assert bucket.put(FIRST) == hidden
    bucket.hide(FIRST)
    again = bucket.put(FIRST)
    assert again.version_id != hidden.version_id
    assert bucket.put(FIRST) == again
    assert {bucket.originals.get(FIRST, version.version_id) for version in (hidden, again)} == {b"photo"}


def test_versions_are_removed_and_no_others(kind: str, aws: Aws, clock: Any) -> None:
    bucket = Bucket(kind, aws, clock)
    first, second = bucket.put(FIRST), bucket.put(SECOND)
    marker = bucket.hide(FIRST)[FIRST]
    again = bucket.put(FIRST)
    for _ in range(2):
        bucket.versions.remove([(FIRST, first.version_id), (FIRST, marker)])
    assert {version.version_id for version in bucket.all()} == {again.version_id, second.version_id}
    assert bucket.put(FIRST) == again


def test_an_original_without_its_marker_is_met_again(kind: str, aws: Aws, clock: Any) -> None:
    bucket = Bucket(kind, aws, clock)
    first = bucket.put(FIRST)
    bucket.versions.remove([*bucket.hide(FIRST).items()])
    assert bucket.put(FIRST) == first


def test_nothing_is_hidden_and_removed_where_nothing_is_named(kind: str, aws: Aws, clock: Any) -> None:
    bucket = Bucket(kind, aws, clock)
    bucket.put(FIRST)
    assert bucket.hide() == {}
    bucket.versions.remove([])
    assert len(bucket.all()) == 1


def test_known_are_the_ids_that_have_a_row(kind: str, aws: Aws, clock: Any) -> None:
    images = Bucket(kind, aws, clock).images
    images.create(pending(image_id=FIRST))
    assert images.known([FIRST, SECOND, FIRST]) == {FIRST}
    assert images.known([]) == frozenset()


@pytest.mark.guards("orphans-consistent-look")
def test_a_row_that_cannot_be_read_is_there_all_the_same(aws: Aws) -> None:
    client = boto3.client("dynamodb")
    client.put_item(TableName=aws.images_table, Item={"image_id": {"S": FIRST}, "status": {"S": "invented later"}})
    asked = spy(client, "BatchGetItem", lambda arguments, call: call(arguments))
    assert ImageRegistryTable(client, aws.images_table).known([FIRST]) == {FIRST}
    assert asked[0]["RequestItems"][aws.images_table]["ConsistentRead"]


def test_a_row_that_a_batch_leaves_out_is_not_taken_for_missing(aws: Aws) -> None:
    client = boto3.client("dynamodb")
    spy(client, "BatchGetItem", lambda asked, _: {"Responses": {}, "UnprocessedKeys": asked["RequestItems"]})
    with pytest.raises(Retryable):
        ImageRegistryTable(client, aws.images_table).known([FIRST])


def test_pages_end_anywhere(aws: Aws, clock: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = Bucket("aws", aws, clock)
    for image_id in (FIRST, SECOND, THIRD):
        bucket.put(image_id)
    bucket.hide(SECOND)
    client = boto3.client("s3")
    pages = spy(client, "ListObjectVersions", lambda arguments, call: call(arguments | {"MaxKeys": 1}))
    bucket.versions = OriginalVersionsBucket(client, aws.originals_bucket)
    assert [version.image_id for version in bucket.all()] == [FIRST, SECOND, SECOND, THIRD]
    assert len(pages) == 4


@pytest.mark.parametrize(
    ("code", "error"), [("SlowDown", Retryable), ("InternalError", Retryable), ("AccessDenied", ClientError)]
)
def test_objects_that_s3_could_not_remove_are_reported(aws: Aws, clock: Any, code: str, error: type[Exception]) -> None:
    client = boto3.client("s3")
    refused = {"Errors": [{"Key": f"originals/{FIRST}", "Code": code, "Message": "…"}]}
    spy(client, "DeleteObjects", lambda *_: refused)
    versions = OriginalVersionsBucket(client, aws.originals_bucket)
    with pytest.raises(error, match=code):
        versions.hide([FIRST])
    refused["Errors"][0]["VersionId"] = "v1"
    failures = versions.remove([(FIRST, "v1")])
    assert [(image_id, type(failure)) for image_id, failure in failures.items()] == [(FIRST, error)]
    assert code in str(failures[FIRST])


@pytest.mark.guards("orphans-vanished-object")
def test_an_original_that_goes_while_it_is_looked_at_is_for_the_client_to_send_again(aws: Aws, clock: Any) -> None:
    bucket = Bucket("aws", aws, clock)
    bucket.put(FIRST)
    client = boto3.client("s3")

    def hidden_first(arguments: dict[str, Any], call: Any) -> Any:
        bucket.hide(FIRST)
        return call(arguments)

    spy(client, "HeadObject", hidden_first)
    sha256 = hashlib.sha256(b"photo").hexdigest()
    with pytest.raises(Retryable, match="has just gone"):
        OriginalsBucket(client, aws.originals_bucket).put_if_absent(
            FIRST, b"photo", sha256=sha256, media_type="image/jpeg"
        )


def test_orphans_are_found_and_removed_and_nothing_else(kind: str, aws: Aws, clock: Any) -> None:
    bucket = Bucket(kind, aws, clock)
    kept = bucket.put(FIRST)
    bucket.images.create(pending(image_id=FIRST))
    bucket.put(SECOND)
    clock.shift(3 * 24 * 3600)
    bucket.put(THIRD)
    patience = TransientRetry(pause=clock.shift, stop=lambda: False)
    look = list_orphans(
        ListOrphansPorts(images=bucket.images, originals=bucket.versions, clock=now, patience=patience),
        older_than_seconds=2 * 24 * 3600,
    )
    assert ([orphan.image_id for orphan in look.held], look.young, look.originals) == ([SECOND], 1, 3)
    removal = remove_orphans(
        RemoveOrphansPorts(audit=trail_of(), images=bucket.images, originals=bucket.versions, patience=patience),
        look,
        table_is_whole=False,
    )
    assert (removal.removed, removal.size_bytes) == (1, 5)
    assert [version.image_id for version in bucket.all()] == [FIRST, THIRD]
    assert bucket.originals.get(FIRST, kept.version_id) == b"photo"
