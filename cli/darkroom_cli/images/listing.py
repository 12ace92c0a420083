"""The work of `darkroom ls`, once the command line is parsed."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

from darkroom.domain.images.image import Cause, Image, Status
from darkroom.domain.images.listing import MAX_PAGE_IMAGES
from darkroom.domain.kernel.instants import Milliseconds, day_of, rfc3339
from darkroom.domain.kernel.lanes import LANES
from darkroom.domain.kernel.tenants import DEFAULT_TENANT, Tenant
from darkroom_cli.operator.operations.images.list_late_images import ListLateImagesPorts, list_late_images
from darkroom_cli.stack.operators import Stack
from darkroom_cli.terminal import display

_HEADS = ("id", "tenant", "lane", "status", "attempt", "cause")


@dataclass(frozen=True, kw_only=True)
class ImageFilters:
    """Which images to list: accepted at `since` or later, of that tenant (None: all), with one of these statuses
    (empty: any), with that reference and tag (None: any), whose error's code or whose latest attempt's exception is
    `cause` (None: any); with `late` only those
    that are unfinished for longer than their lane's service level, the longest waiting first."""

    since: Milliseconds
    tenant_id: str | None = None
    statuses: Collection[Status] = ()
    reference: str | None = None
    tag: str | None = None
    cause: str | None = None
    late: bool = False

    def match(self, image: Image) -> bool:
        """Whether it is to be listed, its time of acceptance apart."""
        if self.tenant_id not in (None, image.tenant_id):
            return False
        if self.reference not in (None, image.reference) or (self.tag is not None and self.tag not in image.tags):
            return False
        if self.statuses and image.outcome not in self.statuses:
            return False
        return self.cause is None or self.cause in _causes(image)


def ls(stack: Stack, filters: ImageFilters, *, limit: int, as_json: bool) -> None:
    """`ls`."""
    with stack.explained():
        images = list(islice(images_of(stack, filters), limit + 1))
    shown, is_all = images[:limit], len(images) <= limit
    if as_json:
        display.print_json({"images": [_document(image) for image in shown], "complete": is_all})
        return
    out = display.output()
    if not shown:
        since = f" was accepted since {rfc3339(filters.since)}" if filters.since else ""
        display.line(out, f"No such image{since or ' is late'}.")
        return
    heads = ("waiting" if filters.late else "accepted", *_HEADS)
    rows = [_row(image, stack.clock(), late=filters.late) for image in shown]
    display.table(out, heads, rows, right=frozenset({"attempt"}))
    if not is_all:
        display.line(display.errors(), f"There are more: --limit {2 * limit} shows twice as many.")


def images_of(stack: Stack, filters: ImageFilters) -> Iterator[Image]:
    """The images that match, newest first, or those that have waited longest first."""
    if filters.late:
        ports = ListLateImagesPorts(images=stack.images, clock=stack.clock, service=LANES)
        late = (image for image in list_late_images(ports) if image.created_at >= filters.since)
        return filter(filters.match, late)
    tenants = _tenants(stack, filters) if filters.tenant_id is None else [filters.tenant_id]
    each = [_of_tenant(stack, tenant_id, since=filters.since, reference=filters.reference) for tenant_id in tenants]
    newest_first = heapq.merge(*each, key=lambda image: (image.created_at, image.image_id), reverse=True)
    return filter(filters.match, newest_first)


def _tenants(stack: Stack, filters: ImageFilters) -> Sequence[str]:
    """Everybody who may have images: tenants of tokens have no row of their own, but used something since."""
    known = {row.tenant_id for row in stack.tenants.all_tenants() if isinstance(row, Tenant)}
    used = stack.usage.days(since=day_of(filters.since), until=day_of(stack.clock()))
    return sorted({DEFAULT_TENANT, *known, *(usage.tenant_id for usage in used if usage.tenant_id)})


def _of_tenant(stack: Stack, tenant_id: str, *, since: Milliseconds, reference: str | None) -> Iterator[Image]:
    newest, with_reference = stack.images.newest, stack.images.with_reference
    look = partial(newest, tenant_id) if reference is None else partial(with_reference, tenant_id, reference)
    cursor = None
    while True:
        listed = look(after=cursor, limit=MAX_PAGE_IMAGES)
        rows = stack.images.get_all([entry.image_id for entry in listed.cursors])
        for entry in listed.cursors:
            if entry.created_at < since:  # guard: ls-since-bound
                return
            row = rows.get(entry.image_id)
            if isinstance(row, Image) and not row.is_deleted:  # `doctor` tells of those that cannot be read
                yield row
        if listed.next is None:
            return
        cursor = listed.next


def _latest(image: Image) -> Cause | None:
    return next((attempt.cause for attempt in reversed(image.attempts) if attempt.cause is not None), None)


def _causes(image: Image) -> set[str]:
    latest = _latest(image)
    causes = {latest.error_type} if latest is not None else set()
    return causes if image.failure is None else causes | {image.failure.code}


def _words(image: Image) -> str:
    if image.failed_work is not None and image.failed_work.error is not None:
        work, error = image.failed_work, image.failed_work.error
        return f"its {work.kind} of run {work.run} failed: {error.code}: {error.message}"
    if image.status is Status.DONE:
        return ""
    latest = _latest(image)
    if image.error is not None:
        return f"{image.error.code}: {image.error.message}"
    return "" if latest is None else f"{latest.error_type}: {latest.message}"


def _row(image: Image, now: Milliseconds, *, late: bool) -> tuple[str, ...]:
    since = image.waiting_since if late and image.waiting_since is not None else image.created_at
    how_long = display.age((now - since) / 1000)
    return (
        *(
            how_long if late else f"{how_long} ago",
            image.image_id,
            image.tenant_id,
            image.lane,
            image.outcome if image.work is None else f"{image.outcome}, {image.work.kind} {image.status}",
            str(image.attempt),
        ),
        _words(image),
    )


def _document(image: Image) -> dict[str, Any]:
    latest = _latest(image)
    return {
        "id": image.image_id,
        "tenant": image.tenant_id,
        "lane": image.lane,
        "status": image.outcome,
        "run": image.run,
        "attempt": image.attempt,
        "created_at": rfc3339(image.created_at),
        "waiting_since": rfc3339(image.waiting_since),
        "completed_at": rfc3339(image.completed_at),
        "error": None if image.error is None else {"code": image.error.code, "message": image.error.message},
        "work": None if image.work is None else {"kind": image.work.kind, "status": image.status},
        "cause": None if latest is None else {"type": latest.error_type, "message": latest.message},
    }
