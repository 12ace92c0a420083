"""What operators' commands need."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from darkroom.ports.images import Images
from darkroom.ports.tenants import Tenants

if TYPE_CHECKING:
    from darkroom.domain.bulk.batches import Batch
    from darkroom.domain.images.image import Image
    from darkroom.domain.images.stored_by import StoredVersion
    from darkroom.domain.kernel.instants import Milliseconds
    from darkroom.domain.kernel.tenants import Tenant
    from darkroom.domain.pauses.pauses import Pause, Paused
    from darkroom.domain.tenants.api_keys import ApiKey
    from darkroom.ports.kernel import UnreadableRow
    from darkroom_cli.operator.domain.audit import AuditEntry, Recorded
    from darkroom_cli.operator.domain.budgets import Budget
    from darkroom_cli.operator.domain.observation import Alarm, History, Measured, QueueCount
    from darkroom_cli.operator.domain.redrives import Redrive
    from darkroom_cli.operator.domain.trace import LogLine


class QueueCounts(Protocol):
    """How many messages the queues of a stack have, each by its name. Raises Retryable if a queue cannot answer."""

    @property
    def queues(self) -> tuple[str, ...]:
        """The names of all of them."""

    def count(self, queue: str) -> QueueCount:
        """About how many it has now."""


class Alarms(Protocol):
    """The alarms of a stack. Raises Retryable if they cannot be listed."""

    def on(self) -> Sequence[Alarm]:
        """Those that are on, the longest first."""


class Measurements(Protocol):
    """What is measured of a stack, in the last minutes and over its error budgets' days. Raises Retryable if it cannot
    be read."""

    def latest(self, now: Milliseconds) -> Measured:
        """The latest whole minutes, which may be minutes ago."""

    def history(self, now: Milliseconds) -> History:
        """The lanes in the last HISTORY_MINUTES whole minutes (`domain.observation`), of which the newest may not be
        measured yet."""

    def budgets(self, now: Milliseconds) -> Mapping[str, Budget]:
        """What each lane, and under WEBHOOKS first attempts, have spent their error budgets on until minutes ago."""

    def function_errors(self, now: Milliseconds) -> Mapping[str, int]:
        """How many invocations of each function ended in an error in the last ERROR_MINUTES (`domain.observation`),
        those with the most first; functions without errors are left out."""


class Audit(Protocol):
    """The audit log. Raises Retryable if it does not answer."""

    def write(self, entries: Sequence[AuditEntry]) -> None:
        """Appends the entries, with who acts and on which stack. After Retryable some of them may be there."""

    def entries(self, *, since: Milliseconds, until: Milliseconds) -> Iterator[Recorded]:
        """What was written from `since` until `until`, in any order, read as the caller iterates; without what this
        version cannot read."""


class LogLines(Protocol):
    """The lines that the functions and the gateway have logged. Every method raises Retryable if the logs cannot be
    searched."""

    @property
    def sources(self) -> Collection[str]:
        """Whose logs there are: the names of functions, and that of the gateway."""

    def containing(self, source: str, text: str, *, since: Milliseconds, until: Milliseconds) -> Iterator[LogLine]:
        """The lines of a source in which `text` is, in that time, read as the caller iterates. A line may take seconds
        until it can be found; those that are no JSON objects are left out."""


class Redrives(Protocol):
    """Redrives of whole dead-letter queues to their lanes, made by SQS. Every method raises Retryable if SQS cannot
    answer."""

    def latest(self, queue: str) -> Redrive | None:
        """The redrive that was started last, or None."""

    def start(self, queue: str, per_second: int) -> None:
        """Starts to move all dead letters of the queue at that rate; a redrive that is already running continues."""

    def cancel(self, move: Redrive) -> None:
        """Stops a running redrive; what it has moved stays moved. One that has ended is no error."""


@dataclass(frozen=True, kw_only=True)
class VersionPage:
    """Some versions, in the order of their keys; the list continues after `next`, None at its end. The versions of one
    object may be on both sides of it."""

    versions: tuple[StoredVersion, ...]
    next: tuple[str, str] | None


class OriginalVersions(Protocol):
    """The raw contents of the originals' bucket. Every method raises Retryable if the store cannot answer."""

    def page(self, after: tuple[str, str] | None) -> VersionPage:
        """Up to 1,000 versions and delete markers of everything there, from the first or from after `after` on."""

    def hide(self, image_ids: Sequence[str]) -> Mapping[str, str]:
        """Puts a delete marker on each image's original, and returns the markers' version ids by image. From then on
        `Originals.put_if_absent` does not find it; a reader that knows its version can read it. At most 1,000 images; a
        repetition puts markers on markers."""

    def remove(self, versions: Sequence[tuple[str, str]]) -> Mapping[str, Exception]:
        """As `Originals.remove`: these versions permanently, and no others."""


class Releases(Protocol):
    """The batches that wait for their release. Every method raises Retryable if AWS cannot answer."""

    def hold_no_more(self) -> None:
        """Stops the consumer that makes batches; what it has received it may still finish. A stack that has no such
        consumer any more is not an error."""

    def waiting(self) -> Iterator[str]:
        """The batches that wait or are being released, read as the caller iterates; seconds out of date."""

    def stop(self, name: str) -> None:
        """Keeps that batch from being released; one that has ended is not an error."""


class TenantRegistry(Tenants, Protocol):
    """The tenants and their API keys, to list and to change. Raises what `Tenants` raises."""

    def all_tenants(self) -> Sequence[Tenant | UnreadableRow]:
        """All of them, by id, the unreadable ones last. It reads the whole table."""

    def all_keys(self) -> Sequence[ApiKey | UnreadableRow]:
        """All of them, by tenant and time of creation; read like `all_tenants`."""

    def add_tenant(self, tenant: Tenant) -> Tenant:
        """Puts the tenant unless its id has one; returns the id's tenant: this one or the earlier one."""

    def add_key(self, key: ApiKey) -> ApiKey:
        """Puts the key unless its id has one; returns the id's key: this one or the earlier one."""

    def change_tenant(self, before: Tenant, after: Tenant) -> Tenant | None:
        """Writes what differs between `before` and `after`, whatever else was changed meanwhile; returns the tenant as
        written, or None if there is none."""

    def revoke_key(self, key_id: str, now: Milliseconds) -> ApiKey | None:
        """Marks the key as revoked at `now`, unless it already was; returns the key as written, or None if there is
        none."""

    def expire_key(self, key_id: str, at: Milliseconds) -> ApiKey | None:
        """Lets the key expire at that instant, unless it does so earlier; returns the key as written, or None if there
        is none."""

    def remove_key(self, key_id: str) -> None:
        """Removes the key's row; one that is not there is no error."""

    def remove_tenant(self, tenant_id: str) -> None:
        """Removes the tenant's row; one that is not there is no error."""


class PauseRegistry(Protocol):
    """The pauses of lanes and tenants. Every method raises Retryable if the table cannot answer."""

    def all(self) -> Sequence[Pause | UnreadableRow]:
        """All that are remembered, in any order (consistent reads)."""

    def pause(self, pause: Pause) -> Pause:
        """Begins the pause, unless one of its subject is in force; returns the one that is in force then."""

    def resume(self, kind: Paused, name: str, resumed_at: Milliseconds) -> Pause | None:
        """Ends the pause of that lane or tenant, if one is in force; returns the latest that it had, or None."""

    def forget(self, kind: Paused, name: str) -> None:
        """Removes its pause, in force or not; one that is not there is no error."""


class BatchRegistry(Protocol):
    """The tenants' batches. Raises Retryable if the table cannot answer."""

    def everything(self) -> Iterator[Batch | UnreadableRow]:
        """The rows of all batches, in any order, read as the caller iterates; perhaps seconds out of date."""

    def forget(self, tenant_id: str) -> int:
        """Removes the tenant's batches with all that they know of their images; returns how many."""


class LaneSources(Protocol):
    """What makes workers take each lane's messages. Every method raises Retryable if AWS cannot answer."""

    def is_on(self, lane: str) -> bool:
        """Whether they do, or soon will."""

    def switch(self, lane: str, on: bool) -> None:
        """Lets them do so, or stops it; what they have received they still finish. Raises Retryable also while the
        change before is not done."""


class ImageRegistry(Images, Protocol):
    """The image rows, to read all of them and to list them. Raises what `Images` raises."""

    def everything(self) -> Iterator[Image | UnreadableRow]:
        """Every row of the table, read as the caller iterates."""

    def known(self, image_ids: Sequence[str]) -> frozenset[str]:
        """Which of the ids have a row now (a consistent read), whatever it says; at most 100 ids."""

    def parked(self, until: Milliseconds) -> Iterator[Image]:
        """The rows that are `parked` and due by `until`, read as the caller iterates; perhaps seconds out of date. It
        reads all rows that are due by then."""

    def enlist(self, image_id: str, tenant_id: str) -> None:
        """Lists such an image, unless it was deleted meanwhile. Nothing else of its row is read or written, not even
        `version`: it may be unreadable."""
