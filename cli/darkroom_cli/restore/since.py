"""What was deleted, erased, revoked or changed since a table's point in time, by the records that a lost table leaves:
the audit log for what operators did, and the functions' logs for what clients did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from darkroom.domain.kernel.instants import Milliseconds
from darkroom_cli.operator.domain.audit import AuditEntry, State
from darkroom_cli.operator.ports import Audit, LogLines

CLOCK_MILLISECONDS = 15 * 60_000
"""How far an operator's clock may be off (S3 and IAM refuse a request that is further): so much before the point the
records are read, too. What was deleted before it is a tombstone in the restored table."""

LONGEST_ACTION_MILLISECONDS = 7 * 24 * 3_600_000
"""How long an action may have been going on at the point: to erase a million images takes 28 hours."""


@dataclass(frozen=True, kw_only=True)
class Since:
    """What happened since the point. `erased` and `half_erased` are tenants by when their erasure ended, or was last
    heard of; `changed_tenants` has what each tenant was changed to, by the names of the row's fields."""

    erased: Mapping[str, Milliseconds] = field(default_factory=dict)
    half_erased: Mapping[str, Milliseconds] = field(default_factory=dict)
    deleted_images: frozenset[str] = frozenset()
    revoked_keys: Mapping[str, Milliseconds] = field(default_factory=dict)
    changed_tenants: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    deleted_webhooks: frozenset[str] = frozenset()
    changed_webhooks: frozenset[str] = frozenset()

    def is_erased(self, tenant_id: str, created_at: Milliseconds) -> bool:
        """Whether a row of the tenant, made at that time, was erased: a tenant may have been added again since."""
        return created_at <= self.erased.get(tenant_id, -1)  # guard: restore-erasure-cutoff-time

    def is_half_erased(self, tenant_id: str, created_at: Milliseconds) -> bool:
        """Whether somebody began to erase it and did not end."""
        return created_at <= self.half_erased.get(tenant_id, -1)  # guard: restore-unfinished-erasure


def read_since(audit: Audit, logs: LogLines, point: Milliseconds, *, now: Milliseconds) -> Since:
    """Reads the records from the point until now. Raises Retryable if one cannot be read: then nothing is known."""
    since = max(0, point - CLOCK_MILLISECONDS)
    span: Any = {"since": since, "until": now + CLOCK_MILLISECONDS}
    actions: dict[str, list[AuditEntry]] = {}
    # guard: restore-spanning-erasure
    for recorded in audit.entries(since=max(0, point - LONGEST_ACTION_MILLISECONDS), until=span["until"]):
        actions.setdefault(recorded.entry.action_id, []).append(recorded.entry)
    ordered = sorted((sorted(entries, key=_order) for entries in actions.values()), key=lambda entries: entries[0].at)
    erased: dict[str, Milliseconds] = {}
    half_erased: dict[str, Milliseconds] = {}
    revoked: dict[str, Milliseconds] = {}
    changed: dict[str, dict[str, Any]] = {}
    deleted: set[str] = set()
    for entries in ordered:
        first, last = entries[0], entries[-1]
        match first.action:
            case "erase_tenant":
                ended = erased if last.state is State.DONE else half_erased
                ended |= dict.fromkeys(_announced(entries), last.at)
            case "revoke_key" | "rotate_key" if first.at >= since:
                revoked |= dict.fromkeys(_announced(entries), first.at)
            case "change_tenant" if first.at >= since and last.state is not State.FAILED:
                for tenant_id in _announced(entries):
                    changed.setdefault(tenant_id, {}).update(first.about)
            case "cancel_day":
                deleted.update(target for entry in entries for target in entry.targets)
    deleted.update(_ids(logs, "delete_image", "image_id", ("deleted",), span))
    return Since(
        erased=erased,
        half_erased={name: at for name, at in half_erased.items() if at > erased.get(name, -1)},
        deleted_images=frozenset(deleted),
        revoked_keys=revoked,
        changed_tenants=changed,
        deleted_webhooks=frozenset(_ids(logs, "manage_webhooks", "webhook_id", ("webhook deleted",), span)),
        changed_webhooks=frozenset(
            _ids(logs, "manage_webhooks", "webhook_id", ("webhook changed", "secret rotated"), span)
        ),
    )


def _order(entry: AuditEntry) -> tuple[bool, bool, Milliseconds]:
    """An action's entries as they were written: several may have the same time."""
    return entry.state is not State.BEGUN, entry.state is not State.GOING_ON, entry.at


def _announced(entries: list[AuditEntry]) -> tuple[str, ...]:
    """What the action was announced for: later entries name what it changed, of every kind."""
    return tuple(entries[0].targets) if entries[0].state is State.BEGUN else ()


def _ids(logs: LogLines, source: str, name: str, messages: tuple[str, ...], span: Any) -> Iterator[str]:
    for message in messages:
        for line in logs.containing(source, message, **span):
            if line.fields.get("message") == message and isinstance(value := line.fields.get(name), str):
                yield value
