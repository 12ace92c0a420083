"""The work of `darkroom tenants erase`."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import typer

from console.api.client import ApiError
from console.stack.operators import Stack
from console.terminal import display
from console.terminal.interrupts import INTERRUPTED, Interrupts
from console.terminal.many import AT_A_TIME, IMAGES_PER_SECOND, do_to_many
from darkroom.domain.dead_letter import RETENTION_SECONDS
from darkroom.domain.due import REMOVAL_GRACE_SECONDS, TOMBSTONE_SECONDS
from darkroom.domain.errors import UnknownImage
from darkroom.domain.instants import Milliseconds, rfc3339
from darkroom.domain.tenants import AUTHORIZER_CACHE_SECONDS, TenantState
from darkroom.domain.transitions import SWEEP_INTERVAL_SECONDS
from darkroom.domain.usage import COUNTED_DAYS, REMEMBERED_DAYS
from darkroom.operations.audit_trail import Deeds
from darkroom.operations.cancel_scheduled import REMOVALS_PER_SECOND
from darkroom.operations.change_tenant import Ports as ChangePorts
from darkroom.operations.change_tenant import UnknownTenant, change_tenant
from darkroom.operations.delete_image import Ports as DeletePorts
from darkroom.operations.delete_image import delete_image
from darkroom.operations.erase_tenant import Forgotten, Ports, forget_tenant, image_ids, keys_of
from darkroom.operations.pace import Pace
from darkroom.ports import UnreadableRow

_LAG_SECONDS = 10
"""How far the index of images, and what is counted from events, may be behind the table of images, and then some."""

BACKUP_DAYS, LOG_DAYS, ARCHIVE_DAYS, AUDIT_DAYS, OBJECT_EVENT_DAYS = 35, 30, 365, 1096, 365
"""What the template keeps, in tables' point-in-time backups, logs, the archive of dead letters, the audit log and the
trail of objects."""

MESSAGE_DAYS, BATCH_DAYS = 4, 400
"""How long it keeps a message in a queue, and a batch of scheduled images that is never released."""

_SHOWN = 20


def _ports(stack: Stack) -> Ports:
    return Ports(
        tenants=stack.tenants,
        images=stack.images,
        endpoints=stack.endpoints,
        deliveries=stack.deliveries,
        usage=stack.usage,
        token_buckets=stack.token_buckets,
    )


@dataclass(kw_only=True)
class _Erasure:
    """A tenant's images on their way to tombstones: how many are, and which could not be read."""

    stack: Stack
    tenant_id: str
    interrupts: Interrupts
    report: display.Report
    begun_at: Milliseconds
    deeds: Deeds
    erased: int = 0
    unreadable: dict[str, UnreadableRow] = field(default_factory=dict)
    forgotten: Forgotten = field(default_factory=Forgotten)

    @property
    def ports(self) -> Ports:
        """The ports of the operation."""
        return _ports(self.stack)

    @property
    def detail(self) -> str:
        """What was done so far."""
        return f"{display.of(self.erased, 'image')} erased"

    @property
    def objects_until(self) -> Milliseconds:
        """When the last object is removed, unless a worker is just storing one."""
        return self.begun_at + (self.erased // REMOVALS_PER_SECOND + 2 * SWEEP_INTERVAL_SECONDS) * 1000

    def run(self) -> bool:
        """Does all of it; returns whether the tenant had a row."""
        is_known = self._suspend()
        self._erase_images()
        # Also if it was suspended before: by an erasure that was interrupted a moment ago, perhaps.
        if is_known and not self.interrupts.requested:
            self.report.show("waiting", completed=0, total=None, detail="until no request is authorized any more")
            self.interrupts.wait(AUTHORIZER_CACHE_SECONDS + _LAG_SECONDS)
            self._erase_images()
        if self.erased and not self.interrupts.requested:
            self.report.show("waiting", completed=0, total=None, detail="until the last events are counted")
            self.interrupts.wait(_LAG_SECONDS)
        if not self.interrupts.requested and not self.unreadable:
            self.forgotten = forget_tenant(self.ports, self.tenant_id, self.deeds)
        return is_known

    def _suspend(self) -> bool:
        try:
            change_tenant(
                ChangePorts(tenants=self.stack.tenants, audit=self.stack.audit),
                self.tenant_id,
                lambda tenant: replace(tenant, state=TenantState.SUSPENDED),
            )
        except UnknownTenant:
            return False
        return True

    def _erase_images(self) -> None:
        images, numbers = self.ports.images, itertools.count(self.erased)

        def act(image_id: str) -> bool | UnreadableRow:
            remove_at = self.begun_at + next(numbers) * 1000 // REMOVALS_PER_SECOND
            try:
                delete_image(
                    DeletePorts(images=images, clock=self.stack.clock),
                    image_id,
                    tenant_id=self.tenant_id,
                    remove_at=remove_at,
                )
            except UnknownImage:  # it was forgotten meanwhile
                return False
            except UnreadableRow as error:
                return error
            return True

        do_to_many(
            image_ids(self.ports, self.tenant_id),
            act,
            pace=Pace(per_second=IMAGES_PER_SECOND, clock=self.stack.clock, pause=self.interrupts.wait),
            at_a_time=AT_A_TIME,
            stop=lambda: self.interrupts.requested,
            on_outcome=self._count,
        )

    def _count(self, image_id: str, outcome: bool | UnreadableRow) -> None:
        if isinstance(outcome, UnreadableRow):
            self.unreadable[image_id] = outcome
        else:
            self.erased += outcome
            if outcome:
                self.deeds.add(image_id, "images")
        self.report.show("erasing", completed=self.erased, total=None, detail=self.detail)


def tell(stack: Stack, tenant_id: str) -> None:
    """`tenants erase` without --yes."""
    ports = _ports(stack)
    with stack.explained(), display.Report(display.errors()) as report:
        tenant = ports.tenants.tenant(tenant_id)
        keys = len(keys_of(ports, tenant_id))
        webhooks = len(ports.endpoints.of_tenant(tenant_id))
        days = len(list(ports.usage.days_of(tenant_id, since="0", until="9")))
        images = 0
        for images, _ in enumerate(image_ids(ports, tenant_id), start=1):
            report.show("counting", completed=images, total=None, detail=f"{images:,} images")
    out = display.output()
    if tenant is None and not (images or keys or webhooks or days):
        display.line(out, f"There is nothing of {tenant_id} in {stack.name}.", style="green")
        return
    display.line(
        out,
        f"{tenant_id} has {display.of(images, 'image')}, {display.of(keys, 'key')}, {display.of(webhooks, 'webhook')} "
        f"and {display.of(days, 'day')} of usage. All of it would be erased, with every original and variant. "
        "This cannot be undone. Nothing was changed.",
        style="bold",
    )
    display.line(out, f"Do it:  {_again(stack, tenant_id)}")


def erase(stack: Stack, tenant_id: str, *, as_json: bool) -> None:
    """`tenants erase --yes`."""
    with (
        Interrupts() as interrupts,
        display.Report(display.errors()) as report,
        stack.explained(),
        stack.audit.action("erase_tenant", tenant_id) as deeds,
    ):
        erasure = _Erasure(
            stack=stack,
            tenant_id=tenant_id,
            interrupts=interrupts,
            report=report,
            begun_at=stack.clock(),
            deeds=deeds,
        )
        try:
            is_known = erasure.run()
        except Exception:
            report.complain(f"so far: {erasure.detail}")
            raise
        if interrupts.requested:
            deeds.interrupt()
    if interrupts.requested:
        again = _again(stack, tenant_id)
        display.line(display.errors(), f"Interrupted, {erasure.detail}. For the rest:  {again}", style="yellow")
        raise typer.Exit(INTERRUPTED)
    if not (is_known or erasure.erased or erasure.forgotten != Forgotten() or erasure.unreadable):
        raise ApiError(
            f"There is nothing of {tenant_id} in {stack.name}. "
            f"To list the tenants: ./darkroom tenants ls{stack.options}"
        )
    left = _what_is_left(erasure, now=stack.clock())
    if as_json:
        display.print_json(
            {
                "tenant": tenant_id,
                "images": erasure.erased,
                **asdict(erasure.forgotten),
                "unreadable": sorted(erasure.unreadable),
                "left": {name: {"what": what, "until": until} for name, (what, until) in left.items()},
            }
        )
    else:
        _report(stack, tenant_id, erasure, left)
    if erasure.unreadable:
        raise typer.Exit(1)


def _what_is_left(erasure: _Erasure, *, now: Milliseconds) -> dict[str, tuple[str, str]]:
    """What the stack still holds, and until when."""

    def days_from(instant: Milliseconds, days: float) -> str:
        return rfc3339(instant + round(days * 24 * 3600 * 1000))

    last_look_at = erasure.objects_until + REMOVAL_GRACE_SECONDS * 1000
    tombstones_until = rfc3339(last_look_at + TOMBSTONE_SECONDS * 1000)
    return {
        "objects": ("are removed by the sweeper, one image after the other", rfc3339(erasure.objects_until)),
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


def _report(stack: Stack, tenant_id: str, erasure: _Erasure, left: Mapping[str, tuple[str, Any]]) -> None:
    out = display.output()
    its = erasure.forgotten
    done = (
        f"{display.of(erasure.erased, 'image')}, {display.of(its.keys, 'key')}, {display.of(its.webhooks, 'webhook')} "
        f"with {display.of(its.deliveries, 'delivery', 'deliveries')} and {display.of(its.usage, 'count')} of usage"
    )
    display.line(out, f"Erased {tenant_id}: {done}. What is left, and until when at the latest:", style="bold")
    display.table(
        out,
        ("left", "until", "what"),
        [(name, until, what) for name, (what, until) in left.items()],
        right=frozenset(),
    )
    for image_id, error in itertools.islice(erasure.unreadable.items(), _SHOWN):
        display.complain(f"{image_id} is not erased: {error}")
    if erasure.unreadable:
        display.complain(
            f"{display.of(len(erasure.unreadable), 'row')} of a newer version cannot be read, so the tenant stays "
            f"suspended. Repeat this with that version:  {_again(stack, tenant_id)}"
        )


def _again(stack: Stack, tenant_id: str) -> str:
    return f"./darkroom tenants erase {tenant_id} --yes{stack.options}"
