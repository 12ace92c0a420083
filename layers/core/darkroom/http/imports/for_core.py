"""What imports add to `submit_image`, which loads it by its name: photos of which a request has the URL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.tenants.rate_limits import cost_of_file
from darkroom.http.imports.fetches import read_fetch
from darkroom.http.imports.routes import POST_IMAGE
from darkroom.http.kernel.callers import caller_of
from darkroom.http.kernel.problems import Problem
from darkroom.http.kernel.requests import correlation_id_of, idempotency_key_of, raw_body
from darkroom.operations.imports.begin_fetch import BeginFetchPorts, Wanted, begin_fetch

if TYPE_CHECKING:
    from darkroom.domain.imports.fetch import UrlOrder
    from darkroom.http.kernel.route import Route
    from darkroom.http.kernel.router import Router
    from darkroom.operations.images.check_order import Accepted


def fetch_of(app: Router) -> UrlOrder:
    """What the request wants to be fetched. Raises Rejected or Problem."""
    return read_fetch(raw_body(app))


@dataclass(frozen=True)
class PhotosByUrl:
    """Accepts them, with the ports of `begin_fetch`."""

    ports: BeginFetchPorts
    route: Route = POST_IMAGE

    def cost_of(self, app: Router) -> int:
        """What the largest file costs, since nobody knows its size yet; a request that makes no sense costs what every
        request does."""
        try:
            app.read_once(fetch_of)
        except (Rejected, Problem):
            return 1
        return cost_of_file(self.ports.max_bytes)  # guard: allowances-fetch-costs-largest

    def accept(self, app: Router) -> Accepted:
        """The image of a request that has a URL in its body, and how to develop it beside it."""
        if app.current_event.query_string_parameters:
            sentence = "With a URL, write the parameters into the JSON, not into the query."
            raise Problem("conflicting_parameters", sentence)
        caller = caller_of(app)
        return begin_fetch(
            self.ports,
            Wanted(
                fetch=app.read_once(fetch_of),
                tenant_id=caller.tenant_id,
                tier=caller.tier,
                lane=caller.lane,
                quota=caller.quota,
                visibility=caller.visibility,
                viewer_seconds=caller.viewer_seconds,
                correlation_id=correlation_id_of(app),
                idempotency_key=idempotency_key_of(app),
            ),
        )
