"""The one table of the API's routes. It loads what all of them take and answer, so a handler imports only its own."""

from __future__ import annotations

import re

from darkroom.http.routes import GET_OPENAPI, IMAGE_ROUTES
from darkroom.http.webhook_routes import WEBHOOK_ROUTES

ROUTES = (*IMAGE_ROUTES, *WEBHOOK_ROUTES, GET_OPENAPI)
"""Every route of the API, in the order in which a client meets them."""

_PATHS = tuple((re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(route.path))), route.methods) for route in ROUTES)


def methods_of(path: str) -> tuple[str, ...]:
    """The methods that a path allows; none if there is nothing at it."""
    return tuple(method for pattern, methods in _PATHS if pattern.fullmatch(path) for method in methods)
