"""Entries of the audit log: who changed what of a stack by hand. They hold ids and words of the code, no contents."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import batched
from typing import Any

from darkroom.domain.kernel.instants import Milliseconds, rfc3339

MOST_TARGETS = 500
"""The most ids in an entry: about 20 KB. An action on more of them has several entries."""

VERSION = 1


class State(StrEnum):
    """How far an action is: `begun` is written before anything is changed, `going_on` names more of what was changed,
    and the others end it."""

    BEGUN = "begun"
    GOING_ON = "going_on"
    DONE = "done"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True)
class AuditEntry:
    """What one action did, or is about to: entries of an action share `action_id`.

    `about` are the words by which it was chosen (a queue, a cause, a tenant's id), `targets` the ids of what was
    changed since the entry before (in the first one: of what is to be), `counts` how many of what there were in all,
    and `error` the type of what ended a failed action.
    """

    action_id: str
    action: str
    state: State
    at: Milliseconds
    about: Mapping[str, Any] = field(default_factory=dict)
    targets: Sequence[str] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    error: str | None = None


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """An entry as it is in the log: who acted, by the ARN that AWS knows them by, and on which stack."""

    entry: AuditEntry
    actor: str
    stack: str


def split(entry: AuditEntry) -> Iterator[AuditEntry]:
    """The entry, as several if it has many targets; all but the last are `going_on`."""
    *earlier, last = list(batched(entry.targets, MOST_TARGETS, strict=False)) or [()]
    for targets in earlier:
        yield AuditEntry(
            action_id=entry.action_id, action=entry.action, state=State.GOING_ON, at=entry.at, targets=targets
        )
    yield AuditEntry(**{**vars(entry), "targets": last})


def document(recorded: Recorded) -> dict[str, Any]:
    """An entry as JSON, in the log and for operators; `read_document` reads it."""
    entry = recorded.entry
    return {
        "v": VERSION,
        "at": rfc3339(entry.at),
        "action_id": entry.action_id,
        "action": entry.action,
        "state": entry.state.value,
        "actor": recorded.actor,
        "stack": recorded.stack,
        "about": dict(entry.about),
        "targets": list(entry.targets),
        "counts": dict(entry.counts),
        "error": entry.error,
    }


def read_document(text: str, at: Milliseconds) -> Recorded | None:
    """The entry that a line of the log holds, written at `at`; None if this version cannot read it."""
    try:
        document = json.loads(text)
        entry = AuditEntry(
            action_id=str(document["action_id"]),
            action=str(document["action"]),
            state=State(document["state"]),
            at=at,
            about=dict(document["about"]),
            targets=tuple(map(str, document["targets"])),
            counts={str(name): int(count) for name, count in document["counts"].items()},
            error=None if document["error"] is None else str(document["error"]),
        )
        return Recorded(entry=entry, actor=str(document["actor"]), stack=str(document["stack"]))
    except (ValueError, LookupError, TypeError, AttributeError):
        return None
