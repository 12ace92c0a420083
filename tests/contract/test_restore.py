"""Half of a table is lost and comes back: what is copied from a restored table, and what is not, by moto."""

from __future__ import annotations

import hashlib
import io
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import boto3
import pytest
import typer
from botocore.exceptions import ClientError
from typer.testing import CliRunner

from darkroom.aws.images.images_table import to_item
from darkroom.aws.images.objects import OriginalsBucket, OutputsBucket
from darkroom.aws.webhooks.endpoints_table import EndpointsTable
from darkroom.domain.images.image import Image, Source, Status, Variant, WorkKind, list_shard_of
from darkroom.domain.images.transitions import await_upload, begin_work, delete
from darkroom.domain.images.works import recipes_to_make, together
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.lanes import LANES
from darkroom.domain.kernel.tenants import Tenant, TenantState, Tier
from darkroom.domain.kernel.visibility import Visibility, moved_key
from darkroom.domain.recipes.recipes import Recipe, VariantSpec
from darkroom.domain.sweeping.due import decide_due
from darkroom.domain.tenants.api_keys import ApiKey
from darkroom.domain.webhooks.endpoint import DisabledBy, Endpoint
from darkroom.domain.webhooks.row_events import event_of
from darkroom.wiring.events.publish_events import read_changes
from darkroom_cli.drill.switches import KINDS
from darkroom_cli.main import whole
from darkroom_cli.operator.aws.image_registry import ImageRegistryTable
from darkroom_cli.operator.aws.tenant_registry import TenantRegistryTable
from darkroom_cli.operator.domain.audit import State
from darkroom_cli.operator.domain.trace import LogLine
from darkroom_cli.operator.operations.kernel.retry_transient import TransientRetry
from darkroom_cli.restore import copying, work
from darkroom_cli.restore.decisions import Found, RestoreOutcome, of_image
from darkroom_cli.restore.since import Since, read_since
from darkroom_cli.restore.tables import LiveTable, stream_of_images
from darkroom_cli.stack.operators import Stack
from darkroom_cli.terminal import display
from darkroom_client.client import ApiError
from local_aws.event_patterns import passes
from repository.expand_template import resources
from tests.contract.conftest import REGION, Aws
from tests.contract.functions import URL, Functions, asked, call, document, http_event, made
from tests.contract.operated import OperatedStack, operated_stack
from tests.support.fakes.audit import FakeAudit, trail_of
from tests.support.fakes.logs import FakeLogLines
from tests.support.fakes.rows import accepted_image

MAPPING: Any = resources("AWS::Lambda::EventSourceMapping")["PublishEventsFunctionImagesTable"]
HOUR = 3_600_000
WEBHOOK = "we_3" + "a" * 15


def now() -> int:
    return time.time_ns() // 1_000_000


class Mappings:
    """Lambda, as far as it says which writes a function hears of."""

    def __init__(self) -> None:
        self.filters: Any = MAPPING["FilterCriteria"]["Filters"]

    def get_event_source_mapping(self, *, UUID: str) -> dict[str, Any]:  # noqa: N803
        return {"UUID": UUID, "FilterCriteria": {"Filters": self.filters}}


class Instead:
    """What does everything as something else, but for these methods."""

    def __init__(self, of: Any, **methods: Any) -> None:
        self.of = of
        vars(self).update(methods)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.of, name)


@dataclass
class Scene:
    """Images in a table, a copy of it was at a point, and what happened since."""

    stack: OperatedStack
    mappings: Mappings
    aws: Aws
    images: ImageRegistryTable
    originals: OriginalsBucket
    outputs: OutputsBucket

    def put(self, number: int, *, tenant_id: str = "acme", **changes: Any) -> Image:
        """An image that was accepted an hour ago, with its original."""
        image_id, body = f"{number:026d}", f"photo {number}".encode()
        stored = self.originals.put_if_absent(
            image_id, body, sha256=hashlib.sha256(body).hexdigest(), media_type="image/jpeg"
        )
        source = Source(
            version_id=stored.version_id, sha256=stored.sha256, size_bytes=len(body), media_type="image/jpeg"
        )
        row = accepted_image(now=now() - HOUR, image_id=image_id, tenant_id=tenant_id, source=source)
        if changes.get("status") is Status.DONE:
            key = f"outputs/{image_id}/1/thumb.jpg"
            self.outputs.put_if_absent(key, b"small", sha256=hashlib.sha256(b"small").hexdigest(), media_type="i/j")
            variant = Variant(name="thumb", width=1, height=1, format="jpeg", size_bytes=5, sha256="s", key=key)
            changes |= {"variants": (variant,), "completed_at": now(), "completed_version": 3, "due_at": None}
            changes |= {"waiting_since": None, "version": 3}
        row = replace(row, **changes)
        assert self.images.create(row) == row
        return row

    def copy(self, table: str) -> str:
        """Has AWS restore a table to this point."""
        name = f"{table}-restored"
        boto3.client("dynamodb").restore_table_to_point_in_time(
            SourceTableName=table, TargetTableName=name, UseLatestRestorableTime=True
        )
        return name

    def lose(self, table: str, *ids: str, key: str = "image_id") -> None:
        for image_id in ids:
            boto3.client("dynamodb").delete_item(TableName=table, Key={key: {"S": image_id}})

    def clear(self, image: Image) -> None:
        """What the sweeper does for a deleted image."""
        self.originals.remove(
            [(image.image_id, version_id) for version_id in self.originals.versions_of(image.image_id)]
        )

    def use(self, service: str, other: Any) -> None:
        """Has the stack ask something else instead of that service."""
        client = self.stack.client
        object.__setattr__(self.stack, "client", lambda name: other if name == service else client(name))

    def restore(self, *names: str, fails: bool = False, **options: Any) -> Any:
        """Runs the command; returns its document."""
        asked: Any = {"keep": frozenset(), "originals_are_whole": False, "yes": True} | options
        with display.listening() as shown:
            try:
                work.restore(self.stack, names, as_json=True, **asked)
            except typer.Exit as end:
                assert fails and end.exit_code == 1
            else:
                assert not fails
        return shown.documents[0]["tables"][0]

    def event_ids(self) -> list[str]:
        """The events of all writes of the Images table, as its stream has them."""
        streams = boto3.client("dynamodbstreams")
        arn = boto3.client("dynamodb").describe_table(TableName=self.aws.images_table)["Table"]["LatestStreamArn"]
        (shard,) = streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]
        place = streams.get_shard_iterator(StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON")
        published = []
        for record in streams.get_records(ShardIterator=place["ShardIterator"])["Records"]:
            (change,) = read_changes({"Records": [record]})
            event = event_of(change.before, change.after)
            assert (event is not None) == passes(MAPPING["FilterCriteria"]["Filters"], record)
            published += [event.event_id] if event else []
        return published

    def log(self, source: str, message: str, **fields: Any) -> None:
        self.stack.logged.lines.append(LogLine(at=now(), source=source, fields={"message": message, **fields}))


@pytest.fixture
def scene(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    monkeypatch.setenv("AWS_ACCOUNT_ID_ENDPOINT_MODE", "disabled")  # moto knows no other names of the streams
    mappings = Mappings()

    def client(service: str) -> Any:
        session: Any = boto3
        return mappings if service == "lambda" else session.client(service, region_name=REGION)

    mapping = {"PublishEventsFunctionImagesTable": ("AWS::Lambda::EventSourceMapping", "uuid")}
    stack = operated_stack(aws, client=client, others=mapping)
    yield Scene(
        stack=stack,
        mappings=mappings,
        aws=aws,
        images=ImageRegistryTable(boto3.client("dynamodb"), aws.images_table),
        originals=OriginalsBucket(boto3.client("s3"), aws.originals_bucket),
        outputs=OutputsBucket(boto3.client("s3"), aws.outputs_bucket),
    )


@pytest.mark.guards("restore-next-version", "restore-without-event")
def test_a_lost_row_comes_back_as_it_was_as_the_next_version_and_announces_nothing(scene: Scene) -> None:
    done = scene.put(1, status=Status.DONE)
    scheduled = scene.put(2, status=Status.SCHEDULED, process_at=now() + HOUR)
    tombstone = scene.put(3, status=Status.FAILED, completed_at=now(), version=2)
    tombstone = scene.images.change(tombstone, delete(tombstone, now=now()))
    copy, heard = scene.copy(scene.aws.images_table), scene.event_ids()
    scene.lose(scene.aws.images_table, *(image.image_id for image in (done, scheduled, tombstone)))

    said = scene.restore(copy)

    assert said["rows"]["restored"] == 3
    for row in (done, scheduled, tombstone):
        assert scene.images.get(row.image_id) == replace(row, version=row.version + 1)
    assert scene.event_ids() == heard
    item = boto3.client("dynamodb").get_item(TableName=scene.aws.images_table, Key={"image_id": {"S": done.image_id}})
    assert item["Item"]["list_shard"]["S"] == list_shard_of("acme", done.image_id), "its tenant's list shows it"


def test_a_restored_image_announces_its_deletion_as_every_other(scene: Scene) -> None:
    done = scene.put(1, status=Status.DONE)
    copy = scene.copy(scene.aws.images_table)
    scene.lose(scene.aws.images_table, done.image_id)
    scene.restore(copy)
    heard = scene.event_ids()
    row = scene.images.get(done.image_id)
    assert row is not None
    scene.images.change(row, delete(row, now=now()))
    assert scene.event_ids() == [*heard, f"{done.image_id}-{done.version + 2}"]


@pytest.mark.guards("restore-unfinished-due", "restore-without-event", case="pending")
@pytest.mark.guards("restore-unfinished-due", case="processing")
@pytest.mark.parametrize("status", [Status.PENDING, Status.PROCESSING])
def test_an_unfinished_image_becomes_due_and_the_sweeper_sends_its_message(scene: Scene, status: Status) -> None:
    claim: dict[str, Any] = {"claimed_by": "a dead worker", "lease_until": now() - 1, "attempt": 1, "version": 2}
    row = scene.put(1, status=status, due_at=now() + HOUR, **(claim if status is Status.PROCESSING else {}))
    copy, heard = scene.copy(scene.aws.images_table), scene.event_ids()
    scene.lose(scene.aws.images_table, row.image_id)
    assert scene.restore(copy)["rows"]["due"] == 1
    back = scene.images.get(row.image_id)
    assert back is not None and back.status is status
    duty = decide_due(back, now=now(), backlog=1_000_000, releasing_until=0, service=LANES)
    assert type(duty).__name__ == "Rescue"
    assert scene.event_ids() == heard


@pytest.mark.guards("restore-missing-variants")
def test_a_done_image_whose_variants_are_missing_is_developed_again(scene: Scene) -> None:
    row = scene.put(1, status=Status.DONE)
    copy, heard = scene.copy(scene.aws.images_table), scene.event_ids()
    scene.lose(scene.aws.images_table, row.image_id)
    scene.outputs.remove([row.variants[0].key])
    assert scene.restore(copy)["rows"]["redone"] == 1
    back = scene.images.get(row.image_id)
    assert back is not None
    assert (back.status, back.run, back.variants) == (Status.PENDING, 2, row.variants)
    assert back.due_at is not None and back.due_at <= now()
    assert scene.event_ids() == heard


@pytest.mark.guards("restore-found-visibilities", "restore-moved-since")
def test_one_that_was_shown_to_others_since_comes_back_as_its_variants_lie(scene: Scene) -> None:
    rows = [
        scene.put(number, status=Status.DONE, visibilities=visibilities)
        for number, visibilities in enumerate(((Visibility.PUBLIC,), (), ()), start=1)
    ]
    public = replace(rows[0].variants[0], key=moved_key(rows[0].variants[0].key, Visibility.PUBLIC))
    rows[0] = scene.images.change(rows[0], replace(rows[0], variants=(public,)))  # and was made private since
    left = [moved_key(row.variants[0].key, Visibility.PUBLIC) for row in rows[1:]]
    for key in left:
        scene.outputs.put_if_absent(key, b"small", sha256=hashlib.sha256(b"small").hexdigest(), media_type="i/j")
    scene.outputs.remove([rows[1].variants[0].key])  # was made public; and of the last, a worker has died amid that
    copy = scene.copy(scene.aws.images_table)
    scene.lose(scene.aws.images_table, *(row.image_id for row in rows))
    assert scene.restore(copy)["rows"]["restored"] == 3
    back = [scene.images.get(row.image_id) for row in rows]
    assert [row and row.visibility for row in back] == [Visibility.PRIVATE, Visibility.PUBLIC, Visibility.PRIVATE]
    assert all(row and scene.outputs.keys_of(row.image_id, [row.visibility]) for row in back)
    assert back[2] and Visibility.PUBLIC in back[2].visibilities


def test_one_that_is_to_get_more_variants_gets_them_with_those_that_are_missing(scene: Scene) -> None:
    hero = Recipe(variants=(VariantSpec(name="hero", width=8),))
    done = scene.put(1, status=Status.DONE)
    scene.images.change(done, begin_work(done, WorkKind.VARIANTS, now=now(), recipe=hero))
    copy = scene.copy(scene.aws.images_table)
    scene.lose(scene.aws.images_table, done.image_id)
    scene.outputs.remove([done.variants[0].key])
    assert scene.restore(copy)["rows"]["redone"] == 1
    back = scene.images.get(done.image_id)
    assert back is not None and back.work is not None and back.recipe is not None
    assert (back.work.kind, back.run) == (WorkKind.REDO, 3)
    assert recipes_to_make(back) == together((back.recipe, hero))


@pytest.mark.guards("restore-never-overwrites")
def test_a_row_that_appears_between_the_look_and_the_write_is_never_overwritten(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(items: Any) -> frozenset[str]:
        return frozenset()

    row = scene.put(1, status=Status.DONE)
    copy = scene.copy(scene.aws.images_table)
    monkeypatch.setattr(
        copying.CopyingPorts, "live", property(lambda ports: Instead(ports.source.live, present=nothing))
    )
    assert scene.restore(copy)["rows"]["there"] == 1
    assert scene.images.get(row.image_id) == row


@pytest.mark.guards("restore-audited-erasures", "restore-client-deletions", "restore-tombstone-visibilities")
def test_nothing_that_was_deleted_or_erased_since_is_resurrected(scene: Scene) -> None:
    """By what is left of each deletion: no original, a line of the log, an entry of the audit log."""
    words: dict[str, Any] = {"reference": "marked-18d02", "tags": ("marked-18d02",), "metadata": '{"a":"marked-18d02"}'}
    rows = [scene.put(number, status=Status.DONE, **words) for number in range(1, 4)]
    erased = scene.put(4, tenant_id="umbra", status=Status.DONE, **words)
    copy, heard = scene.copy(scene.aws.images_table), scene.event_ids()
    scene.clear(rows[0])
    scene.log("delete_image", "deleted", image_id=rows[1].image_id)
    with scene.stack.audit.action("cancel_day", is_certain=False) as audited:
        audited.begin()
        audited.add(rows[2].image_id, "deleted")
    with scene.stack.audit.action("erase_tenant", "umbra"):
        pass
    scene.lose(scene.aws.images_table, *(image.image_id for image in (*rows, erased)))

    said = scene.restore(copy)

    assert (said["rows"]["gone"], said["rows"]["tombstone"]) == (1, 3)
    for row in (*rows, erased):
        back = scene.images.get(row.image_id)
        assert back is not None and back.is_deleted and back.recipe is None
        assert back.deleted_version == back.version == row.version + 1
        assert back.due_at is not None, "the sweeper removes what is left of it"
        assert set(back.visibilities) == set(Visibility), "wherever it lies"
    assert scene.event_ids() == heard
    items = boto3.client("dynamodb").scan(TableName=scene.aws.images_table)["Items"]
    assert len(items) == 4 and "marked-18d02" not in str(items), "nor do its client's words come back"


@pytest.mark.guards("restore-erasure-cutoff-time")
def test_a_tenant_that_was_added_again_after_its_erasure_keeps_its_images(scene: Scene) -> None:
    row = scene.put(1, tenant_id="umbra", status=Status.DONE)
    at = row.created_at - 1
    trail = trail_of(scene.stack.audited, clock=lambda: at)
    with trail.action("erase_tenant", "umbra"):
        pass
    copy = scene.copy(scene.aws.images_table)
    scene.lose(scene.aws.images_table, row.image_id)
    assert scene.restore(copy)["rows"]["restored"] == 1


@pytest.mark.guards("restore-unfinished-erasure")
def test_rows_of_a_tenant_whose_erasure_did_not_end_are_held_back_until_an_operator_decides(scene: Scene) -> None:
    row = scene.put(1, tenant_id="umbra", status=Status.DONE)
    copy = scene.copy(scene.aws.images_table)
    with scene.stack.audit.action("erase_tenant", "umbra") as audited:
        audited.interrupt()
    scene.lose(scene.aws.images_table, row.image_id)
    (held,) = scene.restore(copy, fails=True)["held"]
    assert held["id"] == row.image_id and "--keep-tenant umbra" in held["reason"]
    assert scene.images.get(row.image_id) is None
    assert scene.restore(copy, keep=frozenset({"umbra"}))["rows"]["restored"] == 1


@pytest.mark.guards("restore-erasure-meanwhile")
def test_a_tenant_that_is_erased_while_rows_come_back_is_named(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    row = scene.put(1, tenant_id="umbra", status=Status.DONE)
    copy = scene.copy(scene.aws.images_table)
    scene.lose(scene.aws.images_table, row.image_id)
    put = LiveTable.put

    def erase_meanwhile(live: Any, item: Any) -> bool:
        with scene.stack.audit.action("erase_tenant", "umbra"):
            return put(live, item)

    monkeypatch.setattr(LiveTable, "put", erase_meanwhile)
    with display.listening() as shown, pytest.raises(typer.Exit):
        work.restore(scene.stack, [copy], keep=frozenset(), originals_are_whole=False, yes=True, as_json=False)
    assert any("./darkroom tenants erase umbra --yes" in line for line in shown.complaints)


@pytest.mark.guards("restore-second-look")
def test_a_single_look_at_s3_decides_no_deletion(scene: Scene) -> None:
    row = scene.put(1, status=Status.DONE)
    looks = iter([Found(), Found(versions=frozenset({row.source.version_id}))])
    decision = of_image(to_item(row), Since(), lambda _: next(looks), now=now())
    assert decision.outcome is RestoreOutcome.HELD


@pytest.mark.guards("restore-expired-row")
def test_a_row_whose_time_is_over_stays_away_though_only_a_newer_version_can_read_it(scene: Scene) -> None:
    row = {**to_item(scene.put(1, status=Status.DONE)), "status": {"S": "frozen"}}

    def outcome(forget_at: int) -> RestoreOutcome:
        return of_image({**row, "forget_at": {"N": str(forget_at)}}, Since(), lambda _: Found(), now=now()).outcome

    assert [outcome(now() // 1000 - 1), outcome(now() // 1000 + 60)] == [RestoreOutcome.FORGOTTEN, RestoreOutcome.HELD]


@pytest.mark.guards("restore-hidden-original-held")
def test_an_image_whose_original_a_delete_marker_hides_is_held_back(scene: Scene) -> None:
    row = scene.put(1, status=Status.DONE)
    copy = scene.copy(scene.aws.images_table)
    scene.lose(scene.aws.images_table, row.image_id)
    boto3.client("s3").delete_object(Bucket=scene.aws.originals_bucket, Key=f"originals/{row.image_id}")
    (held,) = scene.restore(copy, fails=True)["held"]
    assert "delete marker" in held["reason"]
    assert scene.images.get(row.image_id) is None


@pytest.mark.guards("restore-lost-originals")
def test_if_many_originals_are_gone_no_row_becomes_a_tombstone_without_the_operators_word(scene: Scene) -> None:
    rows = [scene.put(number, status=Status.DONE) for number in range(copying.MOST_GONE + 1)]
    copy = scene.copy(scene.aws.images_table)
    scene.lose(scene.aws.images_table, *(row.image_id for row in rows))
    for row in rows:
        scene.clear(row)
    assert scene.restore(copy, fails=True)["originals_seem_lost"]
    assert not scene.images.known([row.image_id for row in rows])
    scene.restore(copy, originals_are_whole=True)
    assert all(row.is_deleted for row in scene.images.get_all([row.image_id for row in rows]).values())  # type: ignore[union-attr]


@pytest.mark.guards("restore-later-upload")
def test_an_upload_that_came_after_the_point_is_accepted_and_not_removed_as_never_uploaded(scene: Scene) -> None:
    body = b"a large photo"
    sha256 = hashlib.sha256(body).hexdigest()
    announced = Source(version_id="", sha256=sha256, size_bytes=len(body), media_type="")
    row = await_upload(accepted_image(now=now() - HOUR, tenant_id="acme", source=announced), now=now() - HOUR)
    scene.images.create(row)
    copy, heard = scene.copy(scene.aws.images_table), scene.event_ids()
    stored = scene.originals.put_if_absent(row.image_id, body, sha256=sha256, media_type="image/jpeg")
    scene.lose(scene.aws.images_table, row.image_id)
    assert scene.restore(copy)["rows"]["arrived"] == 1
    back = scene.images.get(row.image_id)
    assert back is not None
    assert (back.status, back.source.version_id, back.accepted_version) == (Status.PENDING, stored.version_id, 2)
    assert back.source.media_type == "image/jpeg"
    assert scene.event_ids() == heard


@pytest.mark.guards("restore-unknown-attributes")
def test_an_attribute_that_this_version_does_not_know_comes_back_too(scene: Scene) -> None:
    row = scene.put(1, status=Status.DONE)
    dynamodb, key = boto3.client("dynamodb"), {"image_id": {"S": row.image_id}}
    dynamodb.update_item(
        TableName=scene.aws.images_table,
        Key=key,
        UpdateExpression="SET later = :one",
        ExpressionAttributeValues={":one": {"N": "1"}},
    )
    copy = scene.copy(scene.aws.images_table)
    scene.lose(scene.aws.images_table, row.image_id)
    scene.restore(copy)
    assert dynamodb.get_item(TableName=scene.aws.images_table, Key=key)["Item"]["later"] == {"N": "1"}


def test_without_yes_nothing_is_written_and_the_same_is_said(scene: Scene) -> None:
    rows = [scene.put(number, status=Status.DONE) for number in (1, 2)]
    copy = scene.copy(scene.aws.images_table)
    scene.lose(scene.aws.images_table, *(row.image_id for row in rows))
    scene.clear(rows[0])
    tried = scene.restore(copy, yes=False)
    assert not scene.images.known([row.image_id for row in rows])
    assert scene.stack.audited.lines == []
    assert scene.restore(copy)["rows"] == tried["rows"]


def test_nothing_is_restored_while_the_audit_log_does_not_answer(scene: Scene) -> None:
    row = scene.put(1, status=Status.DONE)
    copy = scene.copy(scene.aws.images_table)
    scene.lose(scene.aws.images_table, row.image_id)
    scene.stack.audited.is_down = True
    with pytest.raises(ApiError, match="audit log"):
        scene.restore(copy)
    assert scene.images.get(row.image_id) is None


@pytest.mark.parametrize("puts", [0, 3, 5])
def test_after_a_crash_at_any_row_a_repetition_restores_the_rest(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, puts: int
) -> None:
    rows = [scene.put(number, status=Status.DONE) for number in range(1, 7)]
    copy, heard = scene.copy(scene.aws.images_table), scene.event_ids()
    scene.lose(scene.aws.images_table, *(row.image_id for row in rows))
    scene.clear(rows[0])
    put, left = LiveTable.put, iter(range(puts))

    def crash(live: Any, item: Any) -> bool:
        if next(left, None) is None:
            raise RuntimeError("killed")
        return put(live, item)

    with monkeypatch.context() as patched:
        patched.setattr(LiveTable, "put", crash)
        with pytest.raises(RuntimeError, match="killed"):
            scene.restore(copy)
    assert len(scene.images.known([row.image_id for row in rows])) == puts
    said = scene.restore(copy)
    assert (said["rows"]["there"], said["rows"]["restored"], said["rows"]["gone"]) == (puts, 5 - puts, 1)
    assert scene.stack.audited.actions[-1] == ("restore", State.DONE.value)
    for row in rows[1:]:
        assert scene.images.get(row.image_id) == replace(row, version=row.version + 1)
    tombstone = scene.images.get(rows[0].image_id)
    assert tombstone is not None and tombstone.is_deleted
    assert scene.event_ids() == heard


def test_a_table_that_is_slow_for_a_while_is_waited_for(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    row = scene.put(1, status=Status.DONE)
    copy = scene.copy(scene.aws.images_table)
    scene.lose(scene.aws.images_table, row.image_id)
    dynamodb, refusals = boto3.client("dynamodb"), ["ProvisionedThroughputExceededException"]

    def scan(**named: Any) -> Any:
        if refusals:
            raise ClientError({"Error": {"Code": refusals.pop()}}, "Scan")
        return dynamodb.scan(**named)

    scene.use("dynamodb", Instead(dynamodb, scan=scan))
    monkeypatch.setattr("darkroom_cli.operator.operations.kernel.retry_transient.PAUSES_SECONDS", (0, 0))
    assert scene.restore(copy)["rows"]["restored"] == 1


@pytest.mark.guards("restore-lost-answer")
def test_a_write_whose_answer_was_lost_counts_as_written(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    row = scene.put(1, status=Status.DONE)
    copy = scene.copy(scene.aws.images_table)
    scene.lose(scene.aws.images_table, row.image_id)
    put = LiveTable.put
    monkeypatch.setattr(LiveTable, "put", lambda live, item: put(live, item) and put(live, item))
    assert scene.restore(copy)["rows"]["restored"] == 1


# ── The stream ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_stream_brings_back_what_no_copy_has_as_it_was_when_it_went(scene: Scene) -> None:
    early, late = scene.put(1), scene.put(2, status=Status.DONE)
    done = scene.images.change(early, replace(early, status=Status.FAILED, completed_at=now(), due_at=None))
    heard = scene.event_ids()
    scene.lose(scene.aws.images_table, early.image_id, late.image_id)
    assert scene.restore()["rows"]["restored"] == 2
    assert scene.images.get(early.image_id) == replace(done, version=done.version + 1)
    assert scene.images.get(late.image_id) == replace(late, version=late.version + 1)
    assert scene.event_ids() == heard


@pytest.mark.guards("restore-drill-row-expiry", "restore-expired-row")
def test_what_a_drill_had_planted_is_not_taken_for_a_lost_image(scene: Scene) -> None:
    for is_there in (True, False):
        KINDS["planted_row"].write(scene.stack, "0" * 26, is_there)
    assert {name: rows for name, rows in scene.restore()["rows"].items() if rows} == {"forgotten": 1}


def items_of(stack: Stack) -> list[Any]:
    patience = TransientRetry(pause=lambda _: None, stop=lambda: False)
    return list(stream_of_images(stack).items(patience, lambda _: None))


@pytest.mark.guards("restore-expired-tombstones")
def test_the_stream_brings_back_no_tombstone_whose_time_was_over(scene: Scene) -> None:
    row = scene.put(1, status=Status.DONE)
    scene.lose(scene.aws.images_table, row.image_id)
    by_time = {"Type": "Service", "PrincipalId": "dynamodb.amazonaws.com"}
    assert len(items_of(scene.stack)) == 1
    streams = scene.stack.client("dynamodbstreams")

    def told(**named: Any) -> Any:
        answer = streams.get_records(**named)
        records = [
            record | ({"userIdentity": by_time} if record["eventName"] == "REMOVE" else {})
            for record in answer["Records"]
        ]
        return answer | {"Records": records}

    scene.use("dynamodbstreams", Instead(streams, get_records=told))
    assert items_of(scene.stack) == []


# ── Other tables ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.guards("restore-revoked-keys", "restore-suspended-tenant")
def test_tenants_and_keys_come_back_without_what_was_erased_revoked_or_changed_since(scene: Scene) -> None:
    tenants = TenantRegistryTable(boto3.client("dynamodb"), scene.aws.tenants_table)
    for name in ("acme", "umbra", "late"):
        tenants.add_tenant(Tenant(tenant_id=name, tier=Tier.PAID, created_at=now() - HOUR))
    keys = {name: f"{name:0>8}" for name in ("kept", "revoked", "rotated", "umbras")}
    for name, key_id in keys.items():
        owner = "umbra" if name == "umbras" else "acme"
        tenants.add_key(ApiKey(key_id=key_id, tenant_id=owner, digest="d", created_at=now() - HOUR))
    copy = scene.copy(scene.aws.tenants_table)
    with scene.stack.audit.action("erase_tenant", "umbra"):
        pass
    with scene.stack.audit.action("revoke_key", keys["revoked"]):
        pass
    with scene.stack.audit.action("rotate_key", keys["rotated"], tenant_id="acme") as audited:
        audited.add("another", "created")
    with scene.stack.audit.action("change_tenant", "late", state=TenantState.SUSPENDED, tier="free", burst="none"):
        pass
    names = [*(f"tenant#{name}" for name in ("acme", "umbra", "late")), *(f"key#{each}" for each in keys.values())]
    scene.lose(scene.aws.tenants_table, *names, key="id")

    said = scene.restore(copy)

    assert (said["rows"]["restored"], said["rows"]["revoked"], said["rows"]["erased"]) == (3, 2, 2)
    assert {name: key.revoked_at is not None for name, each in keys.items() if (key := tenants.key(each))} == {
        "kept": False,
        "revoked": True,
        "rotated": True,
    }
    assert tenants.tenant("umbra") is None
    late = tenants.tenant("late")
    assert late is not None and (late.state, late.tier) == (TenantState.SUSPENDED, Tier.FREE)


@pytest.mark.guards("restore-changed-webhooks", case="secret rotated-disabled")
@pytest.mark.guards("restore-deleted-webhooks", case="webhook deleted-erased")
@pytest.mark.parametrize(
    ("message", "outcome"), [(None, "restored"), ("webhook deleted", "erased"), ("secret rotated", "disabled")]
)
def test_a_webhook_that_was_deleted_since_stays_away_and_one_that_was_changed_is_disabled(
    scene: Scene, message: str | None, outcome: str
) -> None:
    endpoints = EndpointsTable(boto3.client("dynamodb"), scene.aws.endpoints_table)
    row = Endpoint(
        tenant_id="acme", endpoint_id=WEBHOOK, url="https://a.example/", events=("*",), created_at=1, due_at=7
    )
    assert endpoints.create(row)
    copy = scene.copy(scene.aws.endpoints_table)
    if message is not None:
        scene.log("manage_webhooks", message, webhook_id=WEBHOOK)
    endpoints.remove("acme", WEBHOOK)
    assert scene.restore(copy)["rows"][outcome] == 1
    back = endpoints.get("acme", WEBHOOK)
    if outcome == "erased":
        assert back is None
    elif outcome == "restored":
        assert back == replace(row, version=2)
        assert [due.endpoint_id for due in endpoints.due(row.due_shard, now(), 10)] == [WEBHOOK]
    else:
        assert back is not None and back.disabled_by is DisabledBy.CLIENT
        assert list(endpoints.due(row.due_shard, now(), 10)) == []


def test_usage_of_a_lost_day_comes_back_and_that_of_an_erased_tenant_does_not(scene: Scene) -> None:
    dynamodb = boto3.client("dynamodb")

    def put(tenant_id: str, images: int) -> None:
        key = {"tenant_id": {"S": tenant_id}, "day": {"S": "2026-11-01"}}
        dynamodb.put_item(TableName=scene.aws.usage_table, Item=key | {"images": {"N": str(images)}})

    for tenant_id in ("acme", "there", "umbra"):
        put(tenant_id, 7)
    copy = scene.copy(scene.aws.usage_table)
    with scene.stack.audit.action("erase_tenant", "umbra"):
        pass
    for tenant_id in ("acme", "umbra"):
        dynamodb.delete_item(
            TableName=scene.aws.usage_table, Key={"tenant_id": {"S": tenant_id}, "day": {"S": "2026-11-01"}}
        )
    put("there", 9)
    scene.restore(copy)
    items = dynamodb.scan(TableName=scene.aws.usage_table)["Items"]
    assert {item["tenant_id"]["S"]: item["images"]["N"] for item in items} == {"acme": "7", "there": "9"}


# ── What tells of deletions ──


def test_the_functions_log_what_a_restoration_looks_for(functions: Functions, log: io.StringIO) -> None:
    image_id = document(functions.post())["id"]
    call(functions.delete_image, http_event("DELETE", f"/images/{image_id}"))
    deleted, changed, rotated = (made(functions, f"{URL}/{number}") for number in range(3))
    asked(functions, "PATCH", f"/webhooks/{changed}", {"enabled": False})
    asked(functions, "POST", f"/webhooks/{rotated}/rotate")
    asked(functions, "DELETE", f"/webhooks/{deleted}")
    lines = [json.loads(line) for line in log.getvalue().splitlines() if line.startswith("{")]
    logged = FakeLogLines(
        lines=[LogLine(at=1, source=line["function_name"], fields=line) for line in lines],
    )
    since = read_since(FakeAudit(), logged, 0, now=1)
    assert since.deleted_images == {image_id}
    assert since.deleted_webhooks == {deleted}
    assert since.changed_webhooks == {changed, rotated}


@pytest.mark.guards("restore-spanning-erasure")
def test_an_erasure_that_was_going_on_at_the_point_counts_and_a_change_before_it_does_not() -> None:
    log, point = FakeAudit(), 10 * 24 * HOUR
    clock = iter([point - 5 * HOUR, point - 4 * HOUR, point - 3 * HOUR, point + HOUR])
    trail = trail_of(log, clock=lambda: next(clock))
    erasure = trail.action("erase_tenant", "umbra")
    with erasure as audited, trail.action("change_tenant", "acme", state="suspended"):
        pass
    assert audited.state is State.DONE
    since = read_since(log, FakeLogLines(), point, now=point + 2 * HOUR)
    assert (since.erased, since.half_erased, since.changed_tenants) == ({"umbra": point + HOUR}, {}, {})


# ── What is refused ──────────────────────────────────────────────────────────────────────────────────────────────────


def another_stacks(scene: Scene) -> str:
    scene.stack.__dict__["resources"] = {
        name: physical_id for name, physical_id in scene.stack.resources.items() if name != "ReservationsTable"
    }
    return scene.copy(scene.aws.reservations_table)


def not_a_copy(scene: Scene) -> str:
    boto3.client("dynamodb").create_table(
        TableName="plain",
        KeySchema=[{"AttributeName": "image_id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "image_id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    return "plain"


def unfinished(scene: Scene) -> str:
    name = scene.copy(scene.aws.images_table)
    dynamodb = boto3.client("dynamodb")

    def still_restoring(**named: str) -> Any:
        return {"Table": dynamodb.describe_table(**named)["Table"] | {"TableStatus": "CREATING"}}

    scene.use("dynamodb", Instead(dynamodb, describe_table=still_restoring))
    return name


@pytest.mark.guards("restore-foreign-copy", case="another_stacks-it must be a copy of a table of shop")
@pytest.mark.guards("restore-incomplete-copy", case="unfinished-aws dynamodb wait table-exists")
@pytest.mark.parametrize(
    ("named", "advice"),
    [
        (lambda scene: scene.aws.images_table, "is the live ImagesTable"),
        (lambda scene: "nowhere", "There is no table nowhere"),
        (not_a_copy, "was not restored from any table"),
        (another_stacks, "it must be a copy of a table of shop"),
        (lambda scene: scene.copy(scene.aws.deliveries_table), "Nothing of DeliveriesTable is copied back"),
        (unfinished, "aws dynamodb wait table-exists"),
    ],
)
def test_a_table_that_is_no_whole_copy_of_one_of_the_stacks_is_refused(
    scene: Scene, named: Callable[[Scene], str], advice: str
) -> None:
    with pytest.raises(ApiError, match=advice):
        scene.restore(named(scene))


@pytest.mark.guards("restore-announcing-version")
def test_a_stack_whose_version_would_announce_restored_images_is_refused(scene: Scene) -> None:
    scene.mappings.filters = [
        {
            "Pattern": '{"dynamodb":{"OldImage":{"image_id":{"S":[{"exists":false}]}},'
            '"NewImage":{"status":{"S":["scheduled","pending"]}}}}'
        }
    ]
    with pytest.raises(ApiError, match="Deploy this version first"):
        scene.restore(scene.copy(scene.aws.images_table))


def test_a_store_that_does_not_answer_ends_it_with_what_to_do(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(*_: Any, **__: Any) -> Any:
        raise Retryable("searching the logs: no answer")

    monkeypatch.setattr(FakeLogLines, "containing", silent)
    with pytest.raises(ApiError, match="run the same command again"):
        scene.restore(scene.copy(scene.aws.images_table))


def test_it_says_how_far_back_each_table_can_be_restored_and_by_which_command(scene: Scene) -> None:
    on: Any = {"PointInTimeRecoveryEnabled": True}
    for name in (scene.aws.images_table, scene.aws.tenants_table, scene.aws.endpoints_table):
        boto3.client("dynamodb").update_continuous_backups(TableName=name, PointInTimeRecoverySpecification=on)
    with display.listening() as shown, pytest.raises(ApiError, match="is off for UsageTable"):
        work.tell_how(scene.stack, as_json=False)
    said = "\n".join(shown.lines)
    assert "aws dynamodb restore-table-to-point-in-time --source-table-name ImagesTable" in said
    assert "./darkroom restore --from-stream --stack shop" in said


def test_the_stream_and_a_copy_are_not_restored_at_once() -> None:
    said = CliRunner().invoke(whole(), ["restore", "copy", "--from-stream"])
    assert (said.exit_code, "do it first, and alone" in said.output) == (2, True)
