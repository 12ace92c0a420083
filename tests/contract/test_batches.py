"""Batches and their images: the fake and the table of AWS alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from darkroom.aws.bulk.batches_table import SUMS, BatchesTable
from darkroom.aws.bulk.manifests_bucket import ManifestsBucket
from darkroom.domain.bulk.batches import (
    Batch,
    Counts,
    Look,
    Sums,
    batch_id_from_bits,
    close,
    end,
    look_on,
    open_batch,
)
from darkroom.domain.bulk.members import Change, Member, MemberState
from darkroom.domain.kernel.errors import Retryable
from darkroom.ports.bulk import BatchCursor, Batches, DueRow
from darkroom.ports.kernel import Fenced, UnreadableRow
from darkroom_cli.operator.aws.batch_registry import BatchRegistryTable
from tests.contract.conftest import Aws
from tests.contract.stores import lose_first_answer, spy
from tests.support.fakes.batch_rows import FakeBatches
from tests.support.faults import refuse

NOW = 1_795_251_600_000


def opened(number: int = 0, **stated: Any) -> Batch:
    stated = {"tenant_id": "acme", "now": NOW, **stated}
    return open_batch(batch_id_from_bits(number.to_bytes(16)), **stated)


def member(number: int = 0, state: MemberState = MemberState.JOINED, version: int = 0) -> Member:
    return Member(
        batch_id=opened().batch_id, image_id=f"{number:026d}", state=state, version=version, joined_at=NOW + number
    )


@pytest.fixture
def client(aws: Aws) -> Any:
    client: Any = boto3.client("dynamodb")
    return client


@pytest.fixture
def batches(kind: str, aws: Aws, client: Any) -> Batches:
    return FakeBatches() if kind == "fake" else BatchesTable(client, aws.batches_table)


def test_a_batch_is_read_as_it_was_written_and_of_two_writes_one_wins(batches: Batches) -> None:
    batch = opened(name="é", parallelism=3, notify="we_0")
    assert batches.get(batch.batch_id) is None
    assert batches.create(batch) == batch == batches.get(batch.batch_id)
    assert batches.create(replace(batch, name="other")) == batch
    closed = batches.change(batch, close(batch, now=NOW + 1))
    assert closed == batches.get(batch.batch_id) == batches.change(batch, close(batch, now=NOW + 1))
    with pytest.raises(Fenced) as caught:
        batches.change(batch, close(batch, now=NOW + 2))
    assert caught.value.current == closed
    ended = batches.change(closed, end(closed, Counts(done=2, expired=1), now=NOW + 3))
    assert ended == batches.get(batch.batch_id)
    assert ended.ended_version == ended.version


def test_batches_are_listed_by_tenant_and_when_they_are_due(batches: Batches) -> None:
    rows = [batches.create(opened(number, now=NOW + number)) for number in range(3)]
    batches.create(opened(9, tenant_id="other"))
    page = batches.of_tenant("acme", after=None, limit=2)
    assert (page.batches, page.next) == ((rows[2], rows[1]), BatchCursor(NOW + 1, rows[1].batch_id))
    rest = batches.of_tenant("acme", after=page.next, limit=2)
    assert (rest.batches, rest.next) == ((rows[0],), None)
    closed = batches.change(rows[1], close(rows[1], now=NOW + 5))
    assert list(batches.due(NOW + 4, 9)) == []
    (due,) = batches.due(NOW + 5, 9)
    assert due == DueRow(NOW + 5, closed.batch_id, "batch")
    batches.postpone(DueRow(NOW + 4, closed.batch_id), NOW + 99)
    batches.postpone(due, NOW + 50)
    assert list(batches.due(NOW + 49, 9)) == [] and len(list(batches.due(NOW + 50, 9))) == 1
    batches.change(closed, end(closed, Counts(), now=NOW))
    assert list(batches.due(NOW + 50, 9)) == []


@pytest.mark.guards("bulk-member-as-it-was", case="aws")
def test_an_image_joins_once_and_leaves_only_if_nothing_else_is_known_of_it(batches: Batches) -> None:
    batch = batches.create(opened())
    assert batches.join(member()) == member() == batches.join(replace(member(), joined_at=NOW + 9))
    begun = replace(member(), state=MemberState.WORKING, version=1)
    assert batches.count(batch, [Change(member(), begun)], now=NOW)
    batches.leave(member())
    assert batches.members(batch.batch_id, [begun.image_id, "f" * 26]) == {begun.image_id: begun}
    batches.join(member(1))
    batches.leave(member(1))
    batches.leave(member(1))
    assert list(batches.all_members(batch.batch_id)) == [(begun.image_id, begun)]


def test_an_image_and_works_beside_it_are_members_of_their_own(batches: Batches) -> None:
    batch, image = batches.create(opened()), batches.join(member())
    work = batches.join(replace(image, run=2))
    assert batches.members(batch.batch_id, [image.name, work.name]) == {image.name: image, work.name: work}
    done = replace(work, state=MemberState.DONE, version=5)
    assert batches.count(batch, [Change(work, done)], now=NOW)
    batches.leave(image)
    assert list(batches.all_members(batch.batch_id)) == [(f"{image.image_id}#2", done)]
    assert list(batches.all_members(batch.batch_id, after=done.name)) == []


def counted(batches: Batches, changes: Sequence[Change], **stated: Any) -> bool:
    return batches.count(stated.pop("batch", opened()), changes, now=stated.pop("now", NOW), **stated)


@pytest.mark.guards("bulk-member-as-it-was", case="aws")
def test_what_images_become_is_counted_whole_or_not_at_all(batches: Batches) -> None:
    first, second = batches.join(member(1)), batches.join(member(2))
    begun = [replace(each, state=MemberState.WORKING, version=1) for each in (first, second)]
    assert counted(batches, [Change(first, begun[0]), Change(second, begun[1])])
    assert not counted(batches, [Change(first, begun[0])]), "the same again"
    done, stale = replace(begun[0], state=MemberState.DONE, version=4), replace(begun[1], version=7)
    assert not counted(batches, [Change(begun[0], done), Change(stale, None)])
    new = member(3, MemberState.FAILED, 2)
    assert counted(batches, [Change(begun[0], done), Change(None, new)], now=NOW + 5)
    assert not counted(batches, [Change(None, new)])
    assert counted(batches, [Change(begun[1], None)], now=NOW + 7)
    assert batches.sums(opened().batch_id) == Sums(
        counts=Counts(done=1, failed=1), counted_at=NOW + 7, first_ended_at=NOW + 5
    )
    assert dict(batches.all_members(opened().batch_id)) == {done.image_id: done, new.image_id: new}
    assert batches.sums("another").counts == Counts()


@pytest.mark.guards("bulk-parallelism-in-condition", case="aws")
def test_no_more_images_are_begun_than_a_batch_allows(batches: Batches) -> None:
    batch = opened(parallelism=2)
    waiting = [member(number, MemberState.WAITING, 1) for number in range(4)]
    assert counted(batches, [Change(None, each) for each in waiting], batch=batch)
    assert {each.image_id for each in batches.waiting(batch.batch_id, 9)} == {each.image_id for each in waiting}
    assert len(batches.waiting(batch.batch_id, 2)) == 2
    turns = [Change(each, replace(each, state=MemberState.WORKING)) for each in waiting]
    assert not counted(batches, turns[:3], batch=batch, most_working=2)
    assert counted(batches, turns[:1], batch=batch, most_working=2)
    assert not counted(batches, turns[1:3], batch=batch, most_working=2)
    assert counted(batches, turns[1:2], batch=batch, most_working=2)
    assert {each.image_id for each in batches.waiting(batch.batch_id, 9)} == {each.image_id for each in waiting[2:]}
    assert batches.sums(batch.batch_id).counts == Counts(waiting=2, working=2)


def _meets(client: Any, times: int) -> list[dict[str, Any]]:
    """The first transactions meet another on their last item, which is the sum."""
    left = [times]

    def answer(arguments: dict[str, Any], call: Any) -> Any:
        if left[0] == 0:
            return call(arguments)
        left[0] -= 1
        reasons = [{"Code": "None"} for _ in arguments["TransactItems"][:-1]] + [{"Code": "TransactionConflict"}]
        response: Any = {"Error": {"Code": "TransactionCanceledException"}, "CancellationReasons": reasons}
        raise ClientError(response, "TransactWriteItems")

    return spy(client, "TransactWriteItems", answer)


@pytest.mark.parametrize(("parallelism", "sums"), [(None, 2), (3, 1)])
def test_a_transaction_that_meets_another_goes_on_with_the_next_sum(
    parallelism: int | None, sums: int, client: Any, aws: Aws
) -> None:
    batches, batch = BatchesTable(client, aws.batches_table), opened(parallelism=parallelism)
    assert counted(batches, [Change(None, member(1, MemberState.DONE, 1))], batch=batch)
    _meets(client, 1)
    assert counted(batches, [Change(None, member(2, MemberState.DONE, 1))], batch=batch)
    assert batches.sums(batch.batch_id).counts == Counts(done=2)
    parts = [item["part"]["S"] for item in client.scan(TableName=aws.batches_table)["Items"]]
    assert sum(part.startswith("sum#") for part in parts) == sums <= SUMS


def test_transactions_that_only_meet_others_are_retryable(client: Any, aws: Aws) -> None:
    _meets(client, 99)
    with pytest.raises(Retryable):
        counted(BatchesTable(client, aws.batches_table), [Change(None, member(1, MemberState.DONE, 1))])


def test_a_count_whose_answer_was_lost_is_known_to_be_done(client: Any, aws: Aws) -> None:
    lose_first_answer(client, "PutItem")
    batches = BatchesTable(client, aws.batches_table)
    assert batches.join(member()) == member()
    assert batches.create(opened()) == opened()


def test_a_row_of_a_later_version_is_named_and_does_not_hide_others(client: Any, aws: Aws) -> None:
    batches = BatchesTable(client, aws.batches_table)
    for number in (1, 2):
        batches.create(opened(number))
        batches.join(member(number))
    key = {"place": {"S": opened(1).batch_id}, "part": {"S": "batch"}}
    shard = {"place": {"S": f"{member(1).batch_id}#{member(1).shard}"}, "part": {"S": member(1).image_id}}
    for each in (key, shard):
        client.update_item(
            TableName=aws.batches_table,
            Key=each,
            UpdateExpression="SET #state = :later",
            ExpressionAttributeNames={"#state": "state"},
            ExpressionAttributeValues={":later": {"S": "pondering"}},
        )
    page = batches.of_tenant("acme", after=None, limit=9).batches
    assert [type(row) for row in page].count(UnreadableRow) == 1 and opened(2) in page
    everything = list(BatchRegistryTable(client, aws.batches_table, ManifestsBucket(client, "none")).everything())
    assert [type(row) for row in everything].count(UnreadableRow) == 1 and opened(2) in everything
    rows = batches.members(member().batch_id, [member(1).image_id, member(2).image_id])
    assert isinstance(rows[member(1).image_id], UnreadableRow) and rows[member(2).image_id] == member(2)
    listed = dict(batches.all_members(member().batch_id))
    assert isinstance(listed[member(1).image_id], UnreadableRow) and listed[member(2).image_id] == member(2)
    with pytest.raises(UnreadableRow):
        batches.get(opened(1).batch_id)


def test_a_list_of_images_goes_on_after_any_of_them(batches: Batches) -> None:
    batch = batches.create(opened())
    assert counted(batches, [Change(None, member(number, MemberState.DONE, 1)) for number in range(40)], batch=batch)
    whole = list(batches.all_members(batch.batch_id))
    assert dict(whole) == {member(number).image_id: member(number, MemberState.DONE, 1) for number in range(40)}
    for place, (image_id, _) in enumerate(whole):
        assert list(batches.all_members(batch.batch_id, after=image_id)) == whole[place + 1 :]
    look = Look(after=whole[7][0], counts=Counts(done=8), is_full=True)
    written = batches.change(batch, look_on(batch, look, now=NOW))
    assert batches.get(batch.batch_id) == written and written.look == look


def test_a_table_that_does_not_answer_is_retryable(client: Any, aws: Aws) -> None:
    batches = BatchesTable(client, aws.batches_table)
    refuse(client, code="ThrottlingException", status=400)
    for ask in (
        lambda: batches.get("b"),
        lambda: batches.create(opened()),
        lambda: batches.join(member()),
        lambda: batches.leave(member()),
        lambda: batches.members("b", ["i"]),
        lambda: list(batches.all_members("b")),
        lambda: batches.waiting("b", 1),
        lambda: counted(batches, [Change(None, member(1, MemberState.DONE, 1))]),
        lambda: batches.sums("b"),
        lambda: list(batches.due(NOW, 1)),
        lambda: batches.of_tenant("acme", after=None, limit=1),
    ):
        with pytest.raises(Retryable):
            ask()
