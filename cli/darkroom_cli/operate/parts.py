"""What the operators' page reads: each part is a document of the command line's, made by the command's own work."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import typer

from darkroom.domain.dead_letters.dead_letter import Verdict
from darkroom.domain.images.image import Status
from darkroom.domain.kernel.instants import rfc3339
from darkroom.domain.kernel.lanes import LANES
from darkroom.domain.webhooks.endpoint import Endpoint
from darkroom.http.webhooks.webhooks import webhook_document
from darkroom_cli.audit import work as audit
from darkroom_cli.backfill import work as backfill
from darkroom_cli.batches.in_work import in_work
from darkroom_cli.delay import work as delay
from darkroom_cli.delay.choice import Choice
from darkroom_cli.dlq import work as dlq
from darkroom_cli.dlq.filters import DeadLetterFilters
from darkroom_cli.drill import work as drill
from darkroom_cli.images import listing
from darkroom_cli.images.ids import checked_image_id
from darkroom_cli.operate.problems import invalid
from darkroom_cli.operator.domain.observation import condition_of
from darkroom_cli.operator.operations.observation.observe_stack import Observation, observe_stack
from darkroom_cli.pauses import work as pauses
from darkroom_cli.stack.operators import Stack
from darkroom_cli.tenants import work as tenants
from darkroom_cli.tenants.commands import tenant_named
from darkroom_cli.terminal import display
from darkroom_cli.terminal.durations import seconds_of
from darkroom_cli.top import work as top
from darkroom_cli.top.document import document
from darkroom_cli.trace import work as trace
from darkroom_cli.usage import work as usage
from darkroom_client.client import ApiError

type Query = Mapping[str, Sequence[str]]
"""A request's parameters, each with all its values."""

HISTORY_SECONDS = 30
"""How long a history is shown again instead of being asked for: its newest minute is late by more than that."""

MOST_IMAGES = 1000
"""The most images of a list."""

PRODUCTION = "prod"
"""The parameter `Environment` of a production stack."""


class Parts:
    """Reads the parts of one stack for a page that asks again and again, and remembers what costs money to ask for."""

    def __init__(self, stack: Stack, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._stack, self._monotonic = stack, monotonic
        self._turn, self._ports = threading.Lock(), top.ports_of(stack)
        self._observation: Observation | None = None
        self._history: tuple[float, dict[str, Any]] | None = None
        self._parts: Mapping[str, Callable[[Query], Any]] = {
            "overview": self._overview,
            "history": self._over_time,
            "failures": self._failures,
            "images": self._images,
            "delays": self._delays,
            "tenants": lambda query: _told(tenants.list_tenants, stack, as_json=True),
            "webhooks": self._webhooks,
            "pauses": lambda query: {"lanes": list(LANES), **_told(pauses.list_, stack, as_json=True)},
            "batches": lambda query: in_work(stack),
            "backfills": lambda query: _told(backfill.list_, stack, as_json=True),
            "alarms": lambda query: {"alarms": self._overview(query)["alarms"]},
            "audit": self._audit,
            "drills": lambda query: _told(drill.list_, stack, as_json=True),
        }
        self._details: Mapping[str, Callable[[str], Any]] = {
            "failures": lambda name: _told(dlq.show, stack, name, limit=10_000, as_json=True),
            "trace": lambda name: _told(trace.trace, stack, checked_image_id(name), as_json=True),
            "tenants": self._tenant,
        }

    def about(self) -> dict[str, Any]:
        """Which stack this is."""
        with self._stack.explained():
            environment, parts = self._stack.parameters.get("Environment"), self._stack.parts
        return {
            "stack": self._stack.name,
            "region": self._stack.region,
            "local": self._stack.is_local,
            "production": environment == PRODUCTION,
            "access": self._stack.access,
            "parts": sorted(parts),
            "issuer": None,
            "client_id": None,
            "audience": None,
        }

    def read(self, path: str, query: Query) -> Any:
        """The document at `path`: a part, or one thing of a part. Raises ApiError, and Problem for what is not
        understood."""
        part, _, name = path.partition("/")
        if name and part in self._details:
            return self._details[part](name)
        if name or part not in self._parts:
            raise ApiError(f"There is no part {display.printable(path)!r}. There are: {', '.join(self._names())}.")
        return self._parts[part](query)

    def _names(self) -> list[str]:
        return sorted({*self._parts, *(f"{part}/<id>" for part in self._details)})

    def _overview(self, _: Query) -> Any:
        stack = self._stack
        with self._turn:  # two windows look at the same
            seen = self._observation = observe_stack(self._ports, self._observation)
        return document(
            seen, top.problems_of(stack, seen), stack=stack.name, region=stack.region, options=stack.options
        )

    def _over_time(self, _: Query) -> Any:
        with self._turn:
            if self._history is None or self._monotonic() - self._history[0] >= HISTORY_SECONDS:
                with self._stack.explained():
                    past = self._stack.measurements.history(self._stack.clock())
                self._history = (
                    self._monotonic(),
                    {
                        "minutes": [rfc3339(at) for at in past.minutes],
                        "lanes": {
                            lane: {
                                "depth": list(history.depth),
                                "oldest_seconds": list(history.oldest_seconds),
                                "in": list(history.incoming),
                                "out": list(history.outgoing),
                            }
                            for lane, history in past.lanes.items()
                        },
                    },
                )
            return self._history[1]

    def _failures(self, query: Query) -> Any:
        names = ("lane", "cause", "fingerprint", "tenant", "image", "verdict", "older_than", "newer_than")
        filters = DeadLetterFilters(**{name: only(query, name) for name in names})
        checked_filters(filters)
        return _told(dlq.list_, self._stack, filters, limit=1000, as_json=True)

    def _images(self, query: Query) -> Any:
        statuses, since, is_late = query.get("status", ()), only(query, "since"), only(query, "late") == "true"
        unknown = sorted(set(statuses) - set(Status))
        if unknown:
            raise invalid(f"{display.printable(unknown[0])!r} is none of {', '.join(Status)}.")
        seconds = checked_seconds(since or (None if is_late else "1d"))
        filters = listing.ImageFilters(
            since=0 if seconds is None else self._stack.clock() - round(1000 * seconds),
            tenant_id=tenant_named(only(query, "tenant")),
            statuses=frozenset(map(Status, statuses)),
            cause=only(query, "cause"),
            late=is_late,
        )
        limit = only(query, "limit") or "50"
        if not (limit.isascii() and limit.isdecimal()) or not 1 <= int(limit) <= MOST_IMAGES:
            raise invalid(f"limit is a number from 1 to {MOST_IMAGES:,}.")
        return _told(listing.ls, self._stack, filters, limit=int(limit), as_json=True)

    def _delays(self, query: Query) -> Any:
        choice = Choice(
            day=only(query, "day"),
            hour=only(query, "hour"),
            from_=only(query, "from"),
            to=only(query, "to"),
            lane=only(query, "lane"),
            zone=only(query, "zone"),
        )
        with_images = only(query, "images") == "true"
        limit = MOST_IMAGES if with_images else delay.LIMIT
        return _told(delay.list_, self._stack, choice, limit=limit, with_images=with_images, as_json=True)

    def _tenant(self, name: str) -> Any:
        tenant_id, stack = tenant_named(name), self._stack
        tenants_found = [
            tenant for tenant in _told(tenants.list_tenants, stack, as_json=True) if tenant["tenant"] == tenant_id
        ]
        if not tenants_found:
            raise ApiError(f"There is no tenant {display.printable(name)} in {stack.name}.")
        return {
            **tenants_found[0],
            "lanes": tenants.served_lanes(stack),
            "all_keys": _told(tenants.list_keys, stack, tenant_id, only_closed=False, as_json=True),
            "usage": _told(usage.show, stack, since=None, until=None, tenant=tenant_id, as_json=True),
        }

    def _audit(self, query: Query) -> Any:
        wanted = audit.ActionFilters(
            seconds=checked_seconds(only(query, "since") or "7d") or 0,
            action=only(query, "action"),
            about=only(query, "about"),
        )
        return _told(audit.show, self._stack, wanted, limit=100, as_json=True)

    def _webhooks(self, query: Query) -> Any:
        tenant_id, stack = tenant_named(only(query, "tenant")), self._stack
        with stack.explained():
            rows = [row for row in stack.endpoints.everything() if isinstance(row, Endpoint)]
        return [
            {
                "tenant": row.tenant_id,
                "condition": condition_of(row).value,
                **webhook_document(row, now=stack.clock()),
            }
            for row in sorted(rows, key=lambda row: (row.tenant_id, row.created_at))
            if tenant_id in (None, row.tenant_id)
        ]


def _told(work: Callable[..., None], *arguments: Any, **options: Any) -> Any:
    """The document that a command prints with --json."""
    with display.listening() as shown:
        try:
            work(*arguments, **options)
        except typer.Exit:  # the document says what is wrong
            if not shown.documents:
                raise ApiError("\n".join(shown.complaints) or "It ended without an answer.") from None
    (document,) = shown.documents
    return document


def only(query: Query, name: str) -> str | None:
    """A parameter's one value; None without it. Raises Problem if there are several."""
    values = query.get(name, ())
    if len(values) > 1:
        raise invalid(f"{name} is there {len(values)} times.")
    return values[0] if values else None


def checked_seconds(duration: str | None) -> float | None:
    """How long a duration is. Raises Problem."""
    try:
        return seconds_of(duration)
    except ValueError as error:
        raise invalid(str(error)) from error


def checked_filters(filters: DeadLetterFilters) -> None:
    """Raises Problem for filters that cannot be meant."""
    if filters.verdict is not None and filters.verdict not in set(Verdict):
        raise invalid(f"{display.printable(filters.verdict)!r} is not one of: {', '.join(Verdict)}.")
    if filters.image is not None:
        checked_image_id(filters.image)
    for duration in (filters.older_than, filters.newer_than):
        checked_seconds(duration)
