"""The Images table: one item per image, written only with conditions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from darkroom.aws.kernel.attributes import from_attributes, to_attributes
from darkroom.aws.kernel.errors import code_of, items_at, pages_of, retryable
from darkroom.aws.kernel.row_reader import REASON_CHARACTERS, reader
from darkroom.domain.images.image import (
    VERSION_FIELDS,
    Image,
    Status,
    due_shard_of,
    list_shards_of,
    reference_key_of,
    waiting_shard_of,
)
from darkroom.domain.images.listing import Cursor
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.lanes import LANES
from darkroom.ports.images import Due, Listed, Waiting
from darkroom.ports.kernel import Fenced, UnreadableRow

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from darkroom.domain.images.claim import Lease
    from darkroom.domain.kernel.message import Message

DUE_INDEX = "due"
WAITING_INDEX = "waiting"
LISTED_INDEX = "listed"
REFERENCES_INDEX = "references"
NEWEST_INDEX = "newest"
"""The index that lists all images, in stacks that are older than the other one and keep it."""

DERIVED = ("due_shard", "waiting_shard", "list_shard", "reference_key", "work_batch")
"""The attributes of an item that are no fields of its row, but follow from them: the keys of indexes, and what a
stream's filter asks for."""

_INDEX_OF = {"list_shard": LISTED_INDEX, "reference_key": REFERENCES_INDEX}
"""The indexes of lists, by their keys."""

_CANDIDATES = 25
"""How many of the oldest entries in a partition of the waiting index are read: the index is seconds behind its table,
so the first images may have finished, and some rows may be unreadable."""

_NEWEST_LOOKS, _NEWEST_ENTRIES = 3, 400
"""How many times one call reads the index, and how many entries each time that it continues past deleted images: 40 KB,
5 read units. With the first time, which reads no more than a page, that is INDEX_UNITS."""

_REMEMBERED_TENANTS = 200_000
"""Of how many images the tenant is remembered, which never changes: about 40 MB."""
_NO_INDEX = frozenset({"ValidationException", "ResourceNotFoundException"})
"""What DynamoDB says of an index that is not there or not yet built; the second, if the table is not there either."""

type Item = dict[str, Any]

_WATCH = frozenset({"due_at", "due_shard", "rescues", "enqueued_at"})
"""The fields that only the sweeper may have changed since a write of ours."""


def to_item(image: Image) -> Item:
    """The item of a row: one attribute per field, none if the field is None; and the partitions of the indexes that
    list it.

    Its recipes have no field that only says the default, as in its digest: an earlier version, which works beside this
    one during a deployment and after a rollback, cannot read a recipe with a field that it does not know.
    """
    plain = vars(image) | {
        "status": image.status.value,
        **{name: getattr(image, name) for name in DERIVED},
        # Most images have none: not a byte for it.
        "tags": image.tags or None,
        "visibilities": image.visibilities or None,
        "parked": image.parked or None,
        "awaits_turn": image.awaits_turn or None,
        "chooses": image.chooses or None,
    }
    return to_attributes(plain)


def from_item(item: Item) -> Image:
    """The row that an item holds. Attributes that this version does not know are skipped: a write leaves them as they
    are. Raises UnreadableRow if a known attribute has an unknown value, at any depth: writing such a part back would
    lose what was not understood."""
    try:
        known = from_attributes({name: item[name] for name in _IMAGE if name in item})
        image: Image = reader(Image)(known)
        if image.lane not in LANES:  # guard: unreadable-unknown-lane
            raise ValueError(f"lane: there is no lane {image.lane}")
        if image.recipe is None and not image.is_deleted:  # guard: rows-recipe-required
            raise ValueError("recipe: it is missing")
        if image.metadata is not None and not _is_object(image.metadata):  # guard: unreadable-metadata-no-json
            raise ValueError("metadata: it is no JSON object")
    # guard: unreadable-row-any-error
    except Exception as error:  # whatever it is, it is this row's, and no reason to fail any other
        raise UnreadableRow(
            item["image_id"]["S"],
            str(error)[:REASON_CHARACTERS] or type(error).__name__,
            tenant_id=item.get("tenant_id", {}).get("S"),
            due_at=_instant(item, "due_at"),
            waiting_since=_instant(item, "waiting_since"),
        ) from error
    return image


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def readable(item: Item) -> Image | UnreadableRow:
    """The row that an item holds, or the error that says why it cannot be read."""
    try:
        return from_item(item)
    except UnreadableRow as error:
        return error


def _instant(item: Item, name: str) -> Milliseconds | None:
    # Keys of indexes, so no version can have written anything but a number there.
    return int(item[name]["N"]) if name in item else None


_IMAGE = tuple(Image.__dataclass_fields__)


class ImagesTable:
    """Implements the `Images` port with one DynamoDB table and its index of due images."""

    def __init__(self, client: DynamoDBClient, table_name: str) -> None:
        self._client = client
        self._table_name = table_name
        self._tenants: dict[str, str] = {}
        self._has_newest = True

    def get(self, image_id: str) -> Image | None:
        with retryable("reading the image row"):
            answer = self._client.get_item(
                TableName=self._table_name, Key={"image_id": {"S": image_id}}, ConsistentRead=True
            )
        item = answer.get("Item")
        return None if item is None else from_item(item)

    def get_all(self, image_ids: Sequence[str]) -> Mapping[str, Image | UnreadableRow]:
        return {item["image_id"]["S"]: readable(item) for item in self._batch(image_ids)}

    def tenants_of(self, image_ids: Sequence[str]) -> Mapping[str, str]:
        if len(self._tenants) > _REMEMBERED_TENANTS:
            self._tenants.clear()
        unknown = [image_id for image_id in image_ids if image_id not in self._tenants]
        items = self._batch(unknown, ProjectionExpression="image_id, tenant_id", is_consistent=False)
        self._tenants |= {item["image_id"]["S"]: item["tenant_id"]["S"] for item in items}
        asked = ((image_id, self._tenants.get(image_id)) for image_id in image_ids)  # another thread may clear them
        return {image_id: tenant_id for image_id, tenant_id in asked if tenant_id is not None}

    def _batch(self, image_ids: Sequence[str], *, is_consistent: bool = True, **projection: str) -> list[Item]:
        keys = [{"image_id": {"S": image_id}} for image_id in dict.fromkeys(image_ids)]
        how = {"ConsistentRead": is_consistent, **projection}
        return items_at(self._client, self._table_name, keys, "reading image rows", **how)

    def create(self, image: Image) -> Image:
        try:
            with retryable("writing the image row"):
                self._client.put_item(
                    TableName=self._table_name,
                    Item=to_item(image),
                    ConditionExpression="attribute_not_exists(image_id)",
                )
        except ClientError as error:
            if code_of(error) != "ConditionalCheckFailedException":
                raise
            # guard: read-back-of-new-row
            # Somebody's row is there: another request's, or this one's own, put by an attempt whose answer was lost.
            existing = self.get(image.image_id)
            if existing is None:
                raise Retryable("the image row came and went") from error
            return existing
        return image

    def change(self, before: Image, after: Image, *, fence: tuple[str, ...] = ("status", "run", "attempt")) -> Image:
        old, new = to_item(before), to_item(after)
        changed = {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
        try:
            with retryable("changing the image row"):
                answer = self._client.update_item(
                    TableName=self._table_name,
                    Key={"image_id": {"S": before.image_id}},
                    ReturnValues="ALL_NEW",
                    **_update(old, new, changed, fence),
                )
        except ClientError as error:
            if code_of(error) != "ConditionalCheckFailedException":
                raise
            return self._read_back(before.image_id, new, changed)  # guard: read-back-of-change
        return from_item(answer["Attributes"])

    def claim_unseen(self, message: Message, lease: Lease) -> Image:
        new = {
            "status": Status.PROCESSING.value,
            "attempts": (lease.attempt(message.run, 1),),
            "due_shard": due_shard_of(message.image_id),
            **lease.fields(1),
        }
        try:
            with retryable("claiming the image row"):
                answer = self._client.update_item(
                    TableName=self._table_name,
                    Key={"image_id": {"S": message.image_id}},
                    ReturnValues="ALL_OLD",
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                    **_unseen_claim(message, new, now=lease.now),
                )
        except ClientError as error:
            if code_of(error) == "ValidationException":  # guard: unseen-claim-type-conflict-read
                # An attribute is of another type than this version writes, such as a `version` that is no number.
                raise Fenced(self.get(message.image_id)) from error
            if code_of(error) != "ConditionalCheckFailedException":
                raise
            return _claimed_before(error, lease)
        old, written = answer["Attributes"], to_attributes(new)
        try:
            return from_item({**old, **written, "version": _next(old["version"])})
        except UnreadableRow:
            # guard: unseen-claim-unreadable-given-back
            self._give_back(old, [*new, "version"], claimed_by=written["claimed_by"])
            raise

    def _give_back(self, old: Item, names: Sequence[str], *, claimed_by: Any) -> None:
        """Restores what a claim has changed in a row that proved unreadable: it is for a version that can read it, and
        no attempt was made. If that fails, the row waits for its lease to lapse, one attempt poorer."""
        kept, gone = [name for name in names if name in old], [name for name in names if name not in old]
        sets = ", ".join(f"#{name} = :{name}" for name in kept)
        with suppress(ClientError, Retryable), retryable("giving back the image row"):
            self._client.update_item(
                TableName=self._table_name,
                Key={"image_id": old["image_id"]},
                UpdateExpression=f"SET {sets}" + (f" REMOVE {', '.join(f'#{name}' for name in gone)}" if gone else ""),
                # guard: unseen-claim-give-back-fence
                ConditionExpression="#claimed_by = :mine",
                ExpressionAttributeNames={f"#{name}": name for name in names},
                ExpressionAttributeValues={":mine": claimed_by, **{f":{name}": old[name] for name in kept}},
            )

    def _read_back(self, image_id: str, new: Item, changed: set[str]) -> Image:
        # The SDK retries a write whose answer was lost, and the retry fails on what the first attempt wrote. The
        # attempt number and the claim's owner are in every write that they matter for, so a row with exactly what we
        # meant to write was written by us. Only the time of the next look may have changed since.
        current = self.get(image_id)
        if current is not None:
            item = to_item(current)
            telling = changed - _WATCH - VERSION_FIELDS or changed  # guard: events-lost-answer-recognised
            if all(item.get(name) == new.get(name) for name in telling):  # guard: read-back-comparison
                return current
        raise Fenced(current)

    def postpone(self, due: Due, until: Milliseconds) -> bool:
        try:
            with retryable("postponing a look at an image"):
                self._client.update_item(
                    TableName=self._table_name,
                    Key={"image_id": {"S": due.image_id}},
                    UpdateExpression="SET due_at = :until",
                    ConditionExpression="due_at = :due_at",  # guard: unreadable-postponed-only-if-due
                    ExpressionAttributeValues={":until": {"N": str(until)}, ":due_at": {"N": str(due.due_at)}},
                )
        except ClientError as error:
            if code_of(error) != "ConditionalCheckFailedException":
                raise
            return False  # somebody has moved it; if that was this call's own first attempt, it is done
        return True

    def due(self, shard: str, now: Milliseconds, limit: int, *, latest_first: bool = False) -> Iterator[Due]:
        pages = self._client.get_paginator("query").paginate(
            TableName=self._table_name,
            IndexName=DUE_INDEX,
            KeyConditionExpression="due_shard = :shard AND due_at <= :now",
            ExpressionAttributeValues={":shard": {"S": shard}, ":now": {"N": str(now)}},
            ScanIndexForward=not latest_first,
            PaginationConfig={"MaxItems": limit},
        )
        for page in pages_of(pages, "reading the due index"):
            for item in page["Items"]:
                yield Due(int(item["due_at"]["N"]), item["image_id"]["S"])

    def waiting(
        self, lane: str, shard: str, *, since: Milliseconds, until: Milliseconds, page_size: int
    ) -> Iterator[Waiting]:
        if since >= until:  # BETWEEN refuses bounds in the wrong order
            return
        pages = self._client.get_paginator("query").paginate(
            TableName=self._table_name,
            IndexName=WAITING_INDEX,
            KeyConditionExpression="waiting_shard = :shard AND waiting_since BETWEEN :since AND :last",
            ExpressionAttributeValues={
                ":shard": {"S": waiting_shard_of(lane, shard)},
                ":since": {"N": str(since)},
                ":last": {"N": str(until - 1)},
            },
            ProjectionExpression="waiting_since, image_id",  # the third key is what we asked for
            PaginationConfig={"PageSize": page_size},
        )
        for page in pages_of(pages, "reading the waiting index"):
            for item in page["Items"]:
                yield Waiting(int(item["waiting_since"]["N"]), item["image_id"]["S"])

    def newest(self, tenant_id: str, *, after: Cursor | None, limit: int) -> Listed:
        if self._has_newest:
            try:
                return self._all_of(tenant_id, after=after, limit=limit)
            except ClientError as error:
                if code_of(error) not in _NO_INDEX:  # guard: list-former-index-fallback
                    raise
            self._has_newest = False  # guard: list-missing-index-remembered
        return self._listed(tenant_id, after=after, limit=limit)

    def _all_of(self, tenant_id: str, *, after: Cursor | None, limit: int) -> Listed:
        cursors: list[Cursor] = []
        entries = limit + 1  # one more than asked for shows whether the list continues
        for _ in range(_NEWEST_LOOKS):
            beginning: Any = {} if after is None else {"ExclusiveStartKey": _newest_key(tenant_id, after)}
            with retryable("reading the index of newest images"):
                answer = self._client.query(
                    TableName=self._table_name,
                    IndexName=NEWEST_INDEX,
                    KeyConditionExpression="tenant_id = :tenant",
                    FilterExpression="attribute_not_exists(deleted_at)",
                    ExpressionAttributeValues={":tenant": {"S": tenant_id}},
                    ScanIndexForward=False,
                    Limit=entries,  # counted before the filter
                    **beginning,
                )
            cursors += map(_cursor, answer["Items"])
            if len(cursors) > limit:
                return Listed(cursors=tuple(cursors[:limit]), next=cursors[limit - 1])
            if "LastEvaluatedKey" not in answer:
                return Listed(cursors=tuple(cursors), next=None)
            after = _cursor(answer["LastEvaluatedKey"])
            entries = _NEWEST_ENTRIES
        return Listed(cursors=tuple(cursors), next=after)

    def with_reference(self, tenant_id: str, reference: str, *, after: Cursor | None, limit: int) -> Listed:
        partition = reference_key_of(tenant_id, reference)
        try:
            return _page(self._part_of_list("reference_key", partition, after, limit + 1), limit)
        except ClientError as error:
            # DynamoDB builds it while the stack is updated; no list without it would be exact.
            if code_of(error) in _NO_INDEX:  # guard: list-no-references-yet
                raise Retryable("the index of references is not there, or not built yet") from error
            raise

    def _listed(self, tenant_id: str, *, after: Cursor | None, limit: int) -> Listed:
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415  # most functions list nothing

        parts = [
            partial(self._part_of_list, "list_shard", shard, after, limit + 1) for shard in list_shards_of(tenant_id)
        ]
        with ThreadPoolExecutor(max_workers=len(parts)) as threads:
            asked = [threads.submit(copy_context().run, part) for part in parts]
        return _page([cursor for part in asked for cursor in part.result()], limit)

    def _part_of_list(self, name: str, partition: str, after: Cursor | None, wanted: int) -> list[Cursor]:
        """The places of a partition, of the index with that key, after that one, in our order: at least as many as
        wanted, if there are.

        DynamoDB has an order of its own in a millisecond, so each is read as a whole.
        """
        bound: Any = {} if after is None else {":until": {"N": str(after.created_at)}}
        cursors: list[Cursor] = []
        beginning: Any = {}
        while True:
            with retryable("reading the index of listed images"):
                answer = self._client.query(
                    TableName=self._table_name,
                    IndexName=_INDEX_OF[name],
                    KeyConditionExpression=f"{name} = :partition" + (" AND created_at <= :until" if bound else ""),
                    ExpressionAttributeValues={":partition": {"S": partition}, **bound},
                    ScanIndexForward=False,
                    Limit=wanted + 2,  # the cursor's own place, and the one that shows that its millisecond is over
                    **beginning,
                )
            places = map(_cursor, answer["Items"])
            cursors += [cursor for cursor in places if after is None or _place(cursor) < _place(after)]
            if "LastEvaluatedKey" not in answer:
                return cursors
            last = _cursor(answer["LastEvaluatedKey"]).created_at
            complete = [cursor for cursor in cursors if cursor.created_at > last]  # guard: list-whole-millisecond
            if len(complete) >= wanted:
                return complete
            beginning = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}

    def unlisted(self, *, pages: int | None = None) -> Iterator[tuple[str, str]]:
        answers: Any = self._client.get_paginator("scan").paginate(
            TableName=self._table_name,
            FilterExpression="attribute_not_exists(list_shard) AND attribute_not_exists(deleted_at)",
            ProjectionExpression="image_id, tenant_id",
        )
        for page in islice(pages_of(answers, "reading the table"), pages):  # guard: doctor-row-pages-bound
            yield from ((item["image_id"]["S"], item["tenant_id"]["S"]) for item in page["Items"])

    def oldest_waiting(self, lane: str, shard: str) -> Milliseconds | None:
        waiting_shard = waiting_shard_of(lane, shard)
        with retryable("reading the waiting index"):
            answer = self._client.query(
                TableName=self._table_name,
                IndexName=WAITING_INDEX,
                KeyConditionExpression="waiting_shard = :shard",
                ExpressionAttributeValues={":shard": {"S": waiting_shard}},
                Limit=_CANDIDATES,
            )
        since = None
        for item in answer["Items"]:
            since = int(item["waiting_since"]["N"])
            try:
                image = self.get(item["image_id"]["S"])
            # guard: unreadable-oldest-looks-behind
            except UnreadableRow:  # it is reported when it is due, and must not hide those behind it
                continue
            if image is not None and image.waiting_shard == waiting_shard and image.waiting_since is not None:
                return image.waiting_since
        # If none of the candidates counts, the oldest that does is at most as old as the last of them.
        return since if "LastEvaluatedKey" in answer else None


def _next(version: Any) -> Any:
    return {"N": str(int(version["N"]) + 1)}


def _newest_key(tenant_id: str, cursor: Cursor) -> Item:
    """A cursor's place in the index; the entry itself may be gone."""
    return {
        "tenant_id": {"S": tenant_id},
        "created_at": {"N": str(cursor.created_at)},
        "image_id": {"S": cursor.image_id},
    }


def _page(cursors: list[Cursor], limit: int) -> Listed:
    """The first of those places, of which there is one more than asked for if the list continues."""
    newest_first = sorted(cursors, key=_place, reverse=True)
    shown = tuple(newest_first[:limit])
    return Listed(cursors=shown, next=shown[-1] if len(newest_first) > limit else None)


def _place(cursor: Cursor) -> tuple[Milliseconds, str]:
    """By what places are in order: the latest first, and of one millisecond by their ids."""
    return cursor.created_at, cursor.image_id


def _cursor(entry: Mapping[str, Any]) -> Cursor:
    return Cursor(created_at=int(entry["created_at"]["N"]), image_id=entry["image_id"]["S"])


def _unseen_claim(message: Message, new: Mapping[str, Any], *, now: Milliseconds) -> dict[str, Any]:
    """The update that writes `new` to a row that was not read, and its condition: that the message may be claimed."""
    given = {
        "tenant_id": message.tenant_id,  # guard: unseen-claim-tenant-matches
        "lane": message.lane,  # guard: unseen-claim-lane-matches
        "run": message.run,  # guard: unseen-claim-run-matches
        "schedule": message.schedule,  # guard: unseen-claim-schedule-matches
    }
    sets = ["#version = #version + :one", *(f"#{name} = :{name}" for name in new)]
    # The conditions of `claim_unseen` in domain/images/claim.py; the contract tests compare the two.
    conditions = [
        *(f"#{name} = :{name}" for name in given),
        # guard: unseen-claim-status
        "#status IN (:scheduled, :pending)",
        # guard: unseen-claim-first-attempt
        "#attempt = :none",
        # guard: unseen-claim-no-earlier-attempts
        "size(#attempts) = :none",
        # guard: unseen-claim-backoff
        "attribute_not_exists(#not_before)",
        # guard: unseen-claim-no-dead-letter
        "attribute_not_exists(#dead_letter)",
        # guard: unseen-claim-not-parked
        "attribute_not_exists(#parked)",
        # guard: unseen-claim-process-at
        "(attribute_not_exists(#process_at) OR #process_at <= :now)",
        # guard: unseen-claim-not-expired
        "(attribute_not_exists(#expires_at) OR #expires_at > :now)",
    ]
    fixed = {"one": 1, "none": 0, "now": now, "scheduled": "scheduled", "pending": "pending"}
    names = {"version", "dead_letter", "parked", "process_at", "expires_at", *new, *given}
    values = to_attributes({**new, **given, **fixed})
    return {
        "UpdateExpression": f"SET {', '.join(sets)}",
        "ConditionExpression": " AND ".join(conditions),
        "ExpressionAttributeNames": {f"#{name}": name for name in names},
        "ExpressionAttributeValues": {f":{name}": value for name, value in values.items()},
    }


def _claimed_before(refused: ClientError, lease: Lease) -> Image:
    """The row whose claim was refused, if it is this very lease that it has; raises Fenced if not."""
    item: Any = refused.response.get("Item")
    current = None if item is None else from_item(item)
    # The SDK retries a claim whose answer was lost, and the retry meets its own lease: no other has this name.
    # guard: unseen-claim-lost-answer, unseen-claim-own-still-processing, unseen-claim-receipt-matches
    if current is not None and (current.status, current.claimed_by) == (Status.PROCESSING, lease.claimed_by):
        return current
    raise Fenced(current) from refused


def _update(old: Item, new: Item, changed: set[str], fence: tuple[str, ...]) -> dict[str, Any]:
    """The update and its condition. Every name uses a placeholder: `status` and `source` are reserved words."""
    names: dict[str, str] = {"#version": "version"}
    values: Item = {":one": {"N": "1"}}
    sets, removes = ["#version = #version + :one"], []
    for name in sorted(changed - {"version"}):
        names[f"#{name}"] = name
        if name in new and name in VERSION_FIELDS:  # guard: events-true-version-in-row
            sets.append(f"#{name} = #version + :one")
        elif name in new:
            values[f":{name}"] = new[name]
            sets.append(f"#{name} = :{name}")
        else:
            removes.append(f"#{name}")
    conditions = []  # guard: fence-in-table-condition
    for name in fence:
        names[f"#{name}"] = name
        if name in old:
            values[f":was_{name}"] = old[name]
            conditions.append(f"#{name} = :was_{name}")
        else:
            conditions.append(f"attribute_not_exists(#{name})")
    return {
        "UpdateExpression": f"SET {', '.join(sets)}" + (f" REMOVE {', '.join(removes)}" if removes else ""),
        "ConditionExpression": " AND ".join(conditions),
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": values,
    }
