"""What optional parts add to handlers of the core; `wiring.kernel.parts` loads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from darkroom.http.kernel.route import Route
from darkroom.http.kernel.router import Middleware, Router

if TYPE_CHECKING:
    from darkroom.operations.images.check_order import Accepted


class UsageRoute(Protocol):
    """`http.usage.for_core`."""

    def add_route(self, app: Router, protection: Middleware, ports: Any) -> None:
        """Has the app answer `GET /usage`, with the ports that the part's wiring has made."""


class PhotosByUrl(Protocol):
    """`http.imports.for_core.PhotosByUrl`: photos of which a request has the URL."""

    @property
    def route(self) -> Route:
        """The route of photos, as it is with them."""

    def cost_of(self, app: Router) -> int:
        """What the request costs."""

    def accept(self, app: Router) -> Accepted:
        """The image of the request. Raises Rejected or Problem."""
