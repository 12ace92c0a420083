"""What webhooks need."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

# Functions that send nothing import this module; what its types name, only those that need it.
if TYPE_CHECKING:  # guard: wiring-types-for-checking-only
    from darkroom.domain.kernel.instants import Milliseconds
    from darkroom.domain.webhooks.delivery import Answer, Delivery, DeliveryMessage, DeliveryStatus
    from darkroom.domain.webhooks.endpoint import Endpoint, InFlight
    from darkroom.ports.kernel import UnreadableRow


class DueEndpoint(NamedTuple):
    """An entry of the endpoints' due index: when the sweeper must look at an endpoint, and which."""

    due_at: Milliseconds
    tenant_id: str
    endpoint_id: str


class Endpoints(Protocol):
    """The endpoints' rows. Every method raises Retryable if the table cannot answer. Methods for one row raise
    UnreadableRow if this version cannot read it; methods for many rows return it in the row's place."""

    def get(self, tenant_id: str, endpoint_id: str) -> Endpoint | None:
        """The current row of that tenant's endpoint (a consistent read), or None."""

    def of_tenant(self, tenant_id: str) -> Sequence[Endpoint | UnreadableRow]:
        """The current rows of all endpoints of the tenant (a consistent read), by their places."""

    def everything(self) -> Iterator[Endpoint | UnreadableRow]:
        """All rows, in no order and as they were at some moment since the call."""

    def create(self, endpoint: Endpoint) -> bool:
        """Puts the row unless its place has one; returns whether it has this endpoint now."""

    def change(self, before: Endpoint, after: Endpoint) -> Endpoint:
        """Writes what differs, as the next version; returns the row as written. A lost response is recognized. Raises
        Fenced, with the current row, if another write came first; with None, if the endpoint is gone."""

    def remove(self, tenant_id: str, endpoint_id: str) -> None:
        """Removes the endpoint's row, readable or not; one that is not there is no error."""

    def due(self, shard: str, now: Milliseconds, limit: int) -> Iterator[DueEndpoint]:
        """The first entries in one shard of the due index whose `due_at` has come, oldest first, read as the caller
        iterates; perhaps seconds out of date."""

    def postpone(self, due: DueEndpoint, until: Milliseconds) -> None:
        """Moves the next look at an endpoint to `until`, if it is still due as `due` says. Nothing else of its row is
        read or written, not even `version`: it may be unreadable."""


class DueDelivery(NamedTuple):
    """An entry of the deliveries' due index: the time of an attempt or of a look, and whose."""

    due_at: Milliseconds
    delivery_id: str


class DeliveryKey(NamedTuple):
    """Which delivery of which endpoint."""

    endpoint_id: str
    delivery_id: str


type Place = Literal["taken", "retaken", "held", "full"]
"""What came of asking for a place on a runway; with `held`, another flight of the same delivery has one, and with
`retaken`, one had it that was lost."""


@dataclass(frozen=True, kw_only=True)
class DeliveryPage:
    """Some deliveries of an endpoint; the list continues after the id `next`, None at its end."""

    deliveries: tuple[Delivery | UnreadableRow, ...]
    next: str | None


class Deliveries(Protocol):
    """The deliveries' rows. Every method raises Retryable if the table cannot answer. Methods for one row raise
    UnreadableRow if this version cannot read it; a page has it in the row's place."""

    def get(self, endpoint_id: str, delivery_id: str) -> Delivery | None:
        """The current row (a consistent read), or None."""

    def create(self, delivery: Delivery) -> Delivery:
        """Puts the row unless its id has one; returns the id's row: this one or the earlier one."""

    def change(self, before: Delivery, after: Delivery) -> Delivery:
        """Writes what differs, as the next version; returns the row as written. A lost response is recognized. Raises
        Fenced, with the current row or None, if another write came first."""

    def take_place(self, endpoint_id: str, flight: InFlight, *, now: Milliseconds, most: int) -> Place:
        """Puts the flight on the endpoint's runway for its delivery, where at most `most` are on their way. What was
        lost there does not count. A lost response is recognized."""

    def free_place(self, endpoint_id: str, flight: InFlight) -> None:
        """Takes the flight from its runway, unless it is another's by now."""

    def due(self, endpoint_id: str, limit: int) -> Sequence[DueDelivery]:
        """The first deliveries of the endpoint that have not ended, by `due_at`, whether it has come or not; perhaps
        seconds out of date."""

    def postpone(self, endpoint_id: str, due: DueDelivery, until: Milliseconds) -> None:
        """Moves the next look at a delivery to `until`, if it is still due as `due` says. Nothing else of its row is
        read or written, not even `version`: it may be unreadable."""

    def page(
        self,
        endpoint_id: str,
        *,
        limit: int,
        after: str | None = None,
        since: Milliseconds = 0,
        statuses: Sequence[DeliveryStatus] = (),
        newest_first: bool = True,
    ) -> DeliveryPage:
        """Up to `limit` deliveries of events since then, in these states or any, by the time of their events, from the
        newest or the oldest on, or from after the id `after`; perhaps seconds out of date. Fewer may be found although
        the list continues."""

    def of_image(self, image_id: str) -> Sequence[DeliveryKey]:
        """The deliveries of the image's events, to removed endpoints too; perhaps seconds out of date."""

    def remove_all(self, endpoint_id: str) -> int:
        """Removes all deliveries of an endpoint; returns how many."""

    def endpoints_of(self, tenant_ids: Collection[str]) -> Iterator[tuple[str, str]]:
        """The tenants and ids of the endpoints, removed ones too, for which these tenants, 1 to MOST_ERASED_AT_ONCE,
        have deliveries. It reads the whole table once for all of them: for operators, not for requests."""


class DeliveryQueue(Protocol):
    """The queue of deliveries, fair between endpoints."""

    def send(self, message: DeliveryMessage, *, delay_seconds: int = 0) -> None:
        """Puts the message into it; it shows after `delay_seconds`, at most 900. Raises Retryable if the queue cannot
        answer."""


class Receiver(Protocol):
    """What listens at an endpoint's URL."""

    def post(self, url: str, *, headers: Mapping[str, str], body: bytes) -> Answer:
        """Sends one request, and says what came of it, within 15 seconds. It never raises for what the other side
        does."""
