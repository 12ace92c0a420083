"""Lists images that were given up and have no dead letter: the sweeper is about to place it, or they get none."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from functools import partial
from itertools import batched, islice

from darkroom.domain.dead_letters.dead_letter import explanation_of, verdict_of
from darkroom.domain.images.image import DUE_PARTITIONS, DeadLetterState, DutyKind, Image, message_for
from darkroom.domain.imports.fetch import is_given_up_fetch
from darkroom.operations.dead_letters.cases import Case
from darkroom.ports.images import Due, Images
from darkroom.ports.kernel import AtOnce, Clock

_PAGE = 100
"""How many rows one look reads: DynamoDB's limit for a batch."""


KINDS = (DutyKind.DEAD_LETTERS, DutyKind.FETCHES, DutyKind.RESCUES)
"""Where what was given up is listed; the last has rows that were written before there were kinds."""


@dataclass(frozen=True, kw_only=True)
class ListGivenUpPorts:
    """What looking for them needs."""

    images: Images
    at_once: AtOnce
    clock: Clock


@dataclass(frozen=True, kw_only=True)
class GivenUp:
    """Those whose dead letters are `coming`, as cases without letters; and those that could not be fetched because of a
    fault of ours, which get none. `is_all` says whether all rows were read that are due by now."""

    coming: tuple[Case, ...]
    unfetched: tuple[Image, ...]
    is_all: bool


def list_given_up(ports: ListGivenUpPorts, *, ahead_seconds: int, limit: int) -> GivenUp:
    """Reads up to `limit` rows that the sweeper looks at by then, the longest due first: a given-up image is due at
    once. Raises Retryable if the table cannot answer."""
    now = ports.clock()
    until = now + ahead_seconds * 1000
    shards = [shard for kind in KINDS for shard in DUE_PARTITIONS[kind]]
    listed = iter(ports.at_once([partial(_due, ports, shard, until, limit + 1) for shard in shards]))
    # Each kind by itself, so that no pile of one hides another.
    of_kinds = [list(islice(heapq.merge(*islice(listed, len(DUE_PARTITIONS[kind]))), limit + 1)) for kind in KINDS]
    images: list[Image] = []
    for batch in batched(heapq.merge(*(due[:limit] for due in of_kinds)), _PAGE, strict=False):
        rows = ports.images.get_all([entry.image_id for entry in batch])
        images += [row for entry in batch if isinstance(row := rows.get(entry.image_id), Image)]
    return GivenUp(
        coming=tuple(case for case in map(coming_case, images) if case is not None),
        unfetched=tuple(filter(is_given_up_fetch, images)),
        is_all=all(len(due) <= limit or due[limit].due_at > now for due in of_kinds),
    )


def coming_case(image: Image) -> Case | None:
    """The given-up image as the case that its dead letter will be; None if it has one, or gets none."""
    if image.dead_letter is not DeadLetterState.OWED:  # guard: dlq-list-owed-letters
        return None
    message = message_for(image)
    return Case(
        queue=image.lane,
        dead_letters=(),
        message=message,
        image=image,
        verdict=verdict_of(message, image),
        explanation=explanation_of(image),
        problem=None,
    )


def _due(ports: ListGivenUpPorts, shard: str, until: int, limit: int) -> list[Due]:
    return list(ports.images.due(shard, until, limit))
