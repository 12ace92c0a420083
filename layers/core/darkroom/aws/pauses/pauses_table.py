"""The Pauses table: one item for each lane or tenant that is paused, or was in the last days."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast, get_args

from darkroom.aws.kernel.errors import pages_of
from darkroom.bookkeeping import bookkeeping, report_failure
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.pauses.pauses import KNOWN_SECONDS, NOTHING_PAUSED, Pause, Paused, Pauses
from darkroom.ports.kernel import Clock, UnreadableRow

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

type Item = dict[str, Any]


class PausesTable:
    """Reads a DynamoDB table of pauses."""

    def __init__(self, client: DynamoDBClient, table_name: str) -> None:
        self._client = client
        self._table_name = table_name

    def all(self) -> Sequence[Pause | UnreadableRow]:
        """All pauses, in any order (consistent reads). Raises Retryable."""
        pages = self._client.get_paginator("scan").paginate(TableName=self._table_name, ConsistentRead=True)
        return [
            readable(item)
            for page in pages_of(pages, "reading the pauses")  # guard: pause-all-pages-read
            for item in page["Items"]
        ]


def readable(item: Item) -> Pause | UnreadableRow:
    """The pause that an item holds, or the error that says why it cannot be read."""
    subject = item["subject"]["S"]
    try:
        kind, _, name = subject.partition("#")
        if kind not in get_args(Paused.__value__) or not name:
            raise ValueError("a subject of another kind")
        resumed_at = item.get("resumed_at")
        return Pause(
            kind=cast("Paused", kind),
            name=name,
            since=int(item["since"]["N"]),
            reason=item.get("reason", {"S": ""})["S"],
            resumed_at=None if resumed_at is None else int(resumed_at["N"]),
        )
    # guard: pause-unreadable-isolated
    except Exception as error:  # whatever it is, it is this item's, and no reason to ignore any other
        return UnreadableRow(subject, f"{type(error).__name__}: {error}")


class RememberedPauses:
    """Implements the `KnownPauses` port, one per process: the table is asked again after KNOWN_SECONDS, and not sooner
    if it did not answer."""

    def __init__(self, table: PausesTable, clock: Clock) -> None:
        self._table = table
        self._clock = clock
        self._read_at: Milliseconds | None = None
        self._known = NOTHING_PAUSED

    def __call__(self) -> Pauses:
        now = self._clock()
        # If the clock was set back, the last answer seems to be of the future: that must not prevent the next one.
        # guard: pause-clock-set-back
        if self._read_at is None or not 0 <= now - self._read_at < KNOWN_SECONDS * 1000:
            self._read_at = now
            with bookkeeping("pauses not read"):  # guard: pause-outage-keeps-last
                self._known = Pauses.of_all(_readable(self._table.all()))
        return self._known


def _readable(rows: Iterable[Pause | UnreadableRow]) -> Iterator[Pause]:
    for row in rows:
        if isinstance(row, UnreadableRow):
            report_failure("pause not read", row)
        else:
            yield row
