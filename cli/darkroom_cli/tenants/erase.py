"""The work of `darkroom tenants erase`."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import typer

from darkroom.domain.images.transitions import SWEEP_INTERVAL_SECONDS
from darkroom.domain.kernel.errors import UnknownImage
from darkroom.domain.kernel.instants import Milliseconds, rfc3339
from darkroom.domain.kernel.tenants import AUTHORIZER_CACHE_SECONDS, TenantState
from darkroom.domain.sweeping.due import REMOVAL_GRACE_SECONDS, TOMBSTONE_SECONDS
from darkroom.domain.usage.usage import COUNTED_DAYS, REMEMBERED_DAYS
from darkroom.operations.images.delete_image import DeleteImagePorts, delete_image
from darkroom.ports.kernel import UnreadableRow
from darkroom_cli.operator.domain.dead_letters import RETENTION_SECONDS
from darkroom_cli.operator.operations.kernel.audit_trail import AuditedAction
from darkroom_cli.operator.operations.kernel.rate_limiter import RateLimiter
from darkroom_cli.operator.operations.schedules.cancel_scheduled import REMOVALS_PER_SECOND
from darkroom_cli.operator.operations.tenants.change_tenant import ChangeTenantPorts, UnknownTenant, change_tenant
from darkroom_cli.operator.operations.tenants.erase_tenant import (
    EraseTenantPorts,
    Forgotten,
    forget_tenants,
    image_ids,
    keys_of,
)
from darkroom_cli.stack.operators import Stack
from darkroom_cli.terminal import display
from darkroom_cli.terminal.interrupts import INTERRUPTED, Interrupts
from darkroom_cli.terminal.many import AT_A_TIME, IMAGES_PER_SECOND, do_to_many
from darkroom_client.client import ApiError

_LAG_SECONDS = 10
"""How far the index of images, and what is counted from events, may be behind the table of images, and then some."""

BACKUP_DAYS, LOG_DAYS, ARCHIVE_DAYS, AUDIT_DAYS, OBJECT_EVENT_DAYS = 35, 30, 365, 1096, 365
"""What the template keeps, in tables' point-in-time backups, logs, the archive of dead letters, the audit log and the
trail of objects."""

MESSAGE_DAYS, BATCH_DAYS = 4, 400
"""How long it keeps a message in a queue, and a batch of scheduled images that is never released."""

_SHOWN = 20


def _ports(stack: Stack) -> EraseTenantPorts:
    return EraseTenantPorts(
        tenants=stack.tenants,
        images=stack.images,
        endpoints=stack.endpoints,
        deliveries=stack.deliveries,
        usage=stack.usage,
        token_buckets=stack.token_buckets,
        pauses=stack.pauses,
        batches=stack.batches,
    )


@dataclass(kw_only=True)
class _Erased:
    """What was erased of a tenant so far, and what of it could not be read."""

    is_known: bool = False
    images: int = 0
    unreadable: dict[str, UnreadableRow] = field(default_factory=dict)
    forgotten: Forgotten = field(default_factory=Forgotten)

    @property
    def is_nothing(self) -> bool:
        """Whether there was nothing of the tenant."""
        return not (self.is_known or self.images or self.unreadable) and self.forgotten == Forgotten()


@dataclass(kw_only=True)
class _Erasure:
    """Tenants' images on their way to tombstones, and what was erased of each."""

    stack: Stack
    tenants: Mapping[str, _Erased]
    interrupts: Interrupts
    report: display.ProgressReport
    begun_at: Milliseconds
    audited: AuditedAction

    @property
    def ports(self) -> EraseTenantPorts:
        """The ports of the operation."""
        return _ports(self.stack)

    @property
    def images(self) -> int:
        """How many images were erased."""
        return sum(erased.images for erased in self.tenants.values())

    @property
    def detail(self) -> str:
        """What was done so far."""
        return f"{display.of(self.images, 'image')} erased"

    @property
    def objects_until(self) -> Milliseconds:
        """When the last object is removed, unless a worker is just storing one or the sweeper is behind."""
        return self.begun_at + (self.images // REMOVALS_PER_SECOND + 2 * SWEEP_INTERVAL_SECONDS) * 1000

    def run(self) -> None:
        """Does all of it, for all of them together: it waits once, and reads all deliveries and keys once."""
        for tenant_id, erased in self.tenants.items():
            self._suspend(tenant_id, erased)  # guard: tenant-erasure-resumed-waits
        self._erase_images(self._unlisted())  # guard: erasure-unlisted-images
        # Also if they were suspended before: by an erasure that was interrupted a moment ago, perhaps.
        if any(erased.is_known for erased in self.tenants.values()) and not self.interrupts.requested:
            self.report.show("waiting", completed=0, total=None, detail="until no request is authorized any more")
            self.interrupts.wait(AUTHORIZER_CACHE_SECONDS + _LAG_SECONDS)
            self._erase_images()
        if self.images and not self.interrupts.requested:
            self.report.show("waiting", completed=0, total=None, detail="until the last events are counted")
            self.interrupts.wait(_LAG_SECONDS)  # guard: erasure-usage-after-last-events
        # guard: tenant-erasure-no-row-left
        readable = [tenant_id for tenant_id, erased in self.tenants.items() if not erased.unreadable]
        if readable and not self.interrupts.requested:  # guard: tenant-erasure-interrupt-no-forget
            for tenant_id, forgotten in forget_tenants(self.ports, readable, self.audited).items():
                self.tenants[tenant_id].forgotten = forgotten

    def _suspend(self, tenant_id: str, erased: _Erased) -> None:
        try:
            change_tenant(
                ChangeTenantPorts(tenants=self.stack.tenants, audit=self.stack.audit),
                tenant_id,
                lambda tenant: replace(tenant, state=TenantState.SUSPENDED),  # guard: tenant-erasure-suspends-first
            )
        except UnknownTenant:
            return
        except UnreadableRow as error:  # its requests go on: nothing of it is touched
            erased.unreadable[tenant_id] = error  # guard: tenant-erasure-unreadable-isolated
        else:
            erased.is_known = True

    def _unlisted(self) -> Iterator[tuple[str, str]]:
        """The tenants' images that no list shows, because an earlier version accepted them and nobody has enlisted them
        yet: it reads all rows."""
        return ((tenant_id, image_id) for image_id, tenant_id in self.ports.images.unlisted())

    def _erase_images(self, also: Iterable[tuple[str, str]] = ()) -> None:
        images, numbers = self.ports.images, itertools.count(self.images)

        def act(image: tuple[str, str]) -> bool | UnreadableRow:
            tenant_id, image_id = image
            remove_at = self.begun_at + next(numbers) * 1000 // REMOVALS_PER_SECOND
            try:
                delete_image(
                    DeleteImagePorts(images=images, clock=self.stack.clock),
                    image_id,
                    tenant_id=tenant_id,
                    remove_at=remove_at,
                )
            except UnknownImage:  # it was forgotten meanwhile
                return False
            except UnreadableRow as error:
                return error
            return True

        do_to_many(
            itertools.chain(
                (
                    image
                    for image in also
                    if image[0] in self.tenants and image[0] not in self.tenants[image[0]].unreadable
                ),
                (
                    (tenant_id, image_id)
                    for tenant_id, erased in self.tenants.items()
                    if tenant_id not in erased.unreadable  # guard: tenant-erasure-unsuspended-spared
                    for image_id in image_ids(self.ports, tenant_id)
                ),
            ),
            act,
            pace=RateLimiter(per_second=IMAGES_PER_SECOND, clock=self.stack.clock, pause=self.interrupts.wait),
            at_a_time=AT_A_TIME,
            stop=lambda: self.interrupts.requested,
            on_outcome=self._count,
        )

    def _count(self, image: tuple[str, str], outcome: bool | UnreadableRow) -> None:
        tenant_id, image_id = image
        erased = self.tenants[tenant_id]
        if isinstance(outcome, UnreadableRow):
            erased.unreadable[image_id] = outcome
        else:
            erased.images += outcome
            if outcome:
                self.audited.add(image_id, "images")
        self.report.show("erasing", completed=self.images, total=None, detail=self.detail)


def tell(stack: Stack, tenant_ids: Sequence[str]) -> None:
    """`tenants erase` without --yes."""
    ports, out = _ports(stack), display.output()
    there_are, unreadable = list[str](), dict[str, UnreadableRow]()
    with stack.explained():
        keys = keys_of(ports, tenant_ids)
    for tenant_id in tenant_ids:
        with stack.explained(), display.ProgressReport(display.errors()) as report:
            try:
                is_known = ports.tenants.tenant(tenant_id) is not None
            except UnreadableRow as error:
                unreadable[tenant_id] = error
                continue
            webhooks = len(ports.endpoints.of_tenant(tenant_id))
            days = len(list(ports.usage.days_of(tenant_id, since="0", until="9")))
            images = 0
            for images, _ in enumerate(image_ids(ports, tenant_id), start=1):
                report.show("counting", completed=images, total=None, detail=f"{images:,} images of {tenant_id}")
        if not (is_known or images or keys[tenant_id] or webhooks or days):
            display.line(out, f"There is nothing of {tenant_id} in {stack.name}.", style="green")
            continue
        there_are.append(tenant_id)
        display.line(
            out,
            f"{tenant_id} has {display.of(images, 'image')}, {display.of(len(keys[tenant_id]), 'key')}, "
            f"{display.of(webhooks, 'webhook')} and {display.of(days, 'day')} of usage.",
            style="bold",
        )
    if there_are:
        display.line(
            out,
            "All of it would be erased, with every original and variant. This cannot be undone. Nothing was changed.",
            style="bold",
        )
        display.line(out, f"Do it:  {_again(stack, there_are)}")
    for tenant_id, reason in unreadable.items():
        display.complain(_cannot_be_suspended(tenant_id, reason))
    if unreadable:
        raise typer.Exit(1)


def erase(stack: Stack, tenant_ids: Sequence[str], *, as_json: bool) -> None:
    """`tenants erase --yes`."""
    with (
        Interrupts() as interrupts,
        display.ProgressReport(display.errors()) as report,
        stack.explained(),
        stack.audit.action("erase_tenant", *tenant_ids) as audited,
    ):
        erasure = _Erasure(
            stack=stack,
            tenants={tenant_id: _Erased() for tenant_id in tenant_ids},
            interrupts=interrupts,
            report=report,
            begun_at=stack.clock(),
            audited=audited,
        )
        try:
            erasure.run()
        except Exception:
            report.complain(f"so far: {erasure.detail}")
            raise
        if interrupts.requested:
            audited.interrupt()
    if interrupts.requested:
        again = _again(stack, tenant_ids)
        detail = f"{erasure.detail}, whose objects are removed until {rfc3339(erasure.objects_until)}"
        display.line(display.errors(), f"Interrupted, {detail}. For the rest:  {again}", style="yellow")
        raise typer.Exit(INTERRUPTED)
    erased = {tenant_id: of_tenant for tenant_id, of_tenant in erasure.tenants.items() if not of_tenant.is_nothing}
    left = _what_is_left(erasure, now=stack.clock())
    if erased and as_json:
        display.print_json(
            {
                "tenants": [
                    {
                        "tenant": tenant_id,
                        "images": of_tenant.images,
                        **asdict(of_tenant.forgotten),
                        "unreadable": sorted(of_tenant.unreadable),
                    }
                    for tenant_id, of_tenant in erased.items()
                ],
                "left": {name: {"what": what, "until": until} for name, (what, until) in left.items()},
            }
        )
    elif erased:
        _report(stack, erased, left)
    if unknown := [tenant_id for tenant_id in tenant_ids if tenant_id not in erased]:
        raise ApiError(
            f"There is nothing of {', '.join(unknown)} in {stack.name}. "
            f"To list the tenants: ./darkroom tenants ls{stack.options}"
        )
    if any(of_tenant.unreadable for of_tenant in erased.values()):
        raise typer.Exit(1)


def _what_is_left(erasure: _Erasure, *, now: Milliseconds) -> dict[str, tuple[str, str]]:
    """What the stack still holds, and until when."""

    def days_from(instant: Milliseconds, days: float) -> str:
        return rfc3339(instant + round(days * 24 * 3600 * 1000))

    last_look_at = erasure.objects_until + REMOVAL_GRACE_SECONDS * 1000
    tombstones_until = rfc3339(last_look_at + TOMBSTONE_SECONDS * 1000)
    return {
        "objects": (
            "of the images that this run erased; later while `top` says that the sweeper is late",
            rfc3339(erasure.objects_until),
        ),
        "late objects": ("of workers that were just storing them", str(rfc3339(last_look_at))),
        "tombstones": ("ids, the tenant's name and times, no content", tombstones_until),
        "backups": ("the tables' point-in-time recovery has all rows as they were", days_from(now, BACKUP_DAYS)),
        "logs": ("ids, the tenant's name, and texts of errors", days_from(now, LOG_DAYS)),
        "the API's log": (
            "its requests with IP addresses, and ids of its keys; docs/privacy.md says how to delete it earlier",
            days_from(now, LOG_DAYS),
        ),
        "messages": ("ids and the tenant's name; events also variants and errors", days_from(now, MESSAGE_DAYS)),
        "counted events": ("ids, so that nothing is counted twice", days_from(now, REMEMBERED_DAYS)),
        "late usage": ("counts of events that were delayed; this command removes them", days_from(now, COUNTED_DAYS)),
        "batches": ("of scheduled images: ids, the tenant's name and times", days_from(now, BATCH_DAYS)),
        "dead letters": (
            "ids, the tenant's name and times; of events also variants and errors",
            days_from(now, RETENTION_SECONDS / 86_400),
        ),
        "archived dead letters": ("ids, the tenant's name and times", days_from(now, ARCHIVE_DAYS)),
        "object events": ("if kept: ids, callers and addresses", days_from(now, OBJECT_EVENT_DAYS)),
        "audit log": ("that operators changed something: ids and the tenant's name", days_from(now, AUDIT_DAYS)),
    }


def _report(stack: Stack, erased: Mapping[str, _Erased], left: Mapping[str, tuple[str, Any]]) -> None:
    out = display.output()
    for tenant_id, of_tenant in erased.items():
        of = of_tenant.forgotten
        done = (
            f"{display.of(of_tenant.images, 'image')}, {display.of(of.keys, 'key')}, "
            f"{display.of(of.webhooks, 'webhook')} with {display.of(of.deliveries, 'delivery', 'deliveries')}, "
            f"{display.of(of.batches, 'batch', 'batches')} and {display.of(of.usage, 'count')} of usage"
        )
        if tenant_id not in of_tenant.unreadable:
            display.line(out, f"Erased {tenant_id}: {done}.", style="bold")
    display.line(out, "What is left, and until when at the latest:", style="bold")
    display.table(
        out,
        ("left", "until", "what"),
        [(name, until, what) for name, (what, until) in left.items()],
        right=frozenset(),
    )
    for tenant_id, of_tenant in erased.items():
        if tenant_id in of_tenant.unreadable:
            display.complain(_cannot_be_suspended(tenant_id, of_tenant.unreadable[tenant_id]))
            continue
        for image_id, error in itertools.islice(of_tenant.unreadable.items(), _SHOWN):
            display.complain(f"{image_id} is not erased: {error}")
        if of_tenant.unreadable:
            display.complain(
                f"{display.of(len(of_tenant.unreadable), 'row')} of a newer version cannot be read, "
                f"so {tenant_id} stays suspended. Repeat this with that version:  {_again(stack, [tenant_id])}"
            )


def _cannot_be_suspended(tenant_id: str, error: UnreadableRow) -> str:
    return f"{tenant_id} cannot be suspended, and nothing of it is erased without the version that wrote it: {error}"


def _again(stack: Stack, tenant_ids: Sequence[str]) -> str:
    return f"./darkroom tenants erase {' '.join(tenant_ids)} --yes{stack.options}"
