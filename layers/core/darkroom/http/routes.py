"""The one table of the API's routes: handlers are registered by it, requests are checked by it, openapi.json is made
from it. It loads what all of them take and answer, so a handler imports only its own."""

from __future__ import annotations

import re
from collections.abc import Collection

from darkroom.http.images.routes import DELETE_IMAGE, GET_IMAGE, GET_STATUS, GET_VARIANT, LIST_IMAGES
from darkroom.http.imports.routes import POST_IMAGE
from darkroom.http.kernel.openapi_route import GET_OPENAPI
from darkroom.http.kernel.route import Route
from darkroom.http.schedules.routes import PATCH_IMAGE
from darkroom.http.uploads.routes import POST_UPLOAD
from darkroom.http.usage.routes import GET_USAGE
from darkroom.http.webhooks.routes import WEBHOOK_ROUTES

ROUTES = (
    POST_IMAGE,
    POST_UPLOAD,
    LIST_IMAGES,
    GET_IMAGE,
    GET_STATUS,
    GET_VARIANT,
    GET_USAGE,
    PATCH_IMAGE,
    DELETE_IMAGE,
    *WEBHOOK_ROUTES,
    GET_OPENAPI,
)
"""Every route of the API, in the order in which a client meets them."""

_PART_OF: dict[str, str] = {GET_USAGE.name: "usage"} | {route.name: "webhooks" for route in WEBHOOK_ROUTES}


def routes_of(parts: Collection[str]) -> tuple[Route, ...]:
    """The routes of a stack with these optional parts."""
    return tuple(route for route in ROUTES if route.name not in _PART_OF or _PART_OF[route.name] in parts)


_PATHS = tuple((re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(route.path))), route.methods) for route in ROUTES)


def methods_of(path: str) -> tuple[str, ...]:
    """The methods that a path allows; none if there is nothing at it."""
    return tuple(method for pattern, methods in _PATHS if pattern.fullmatch(path) for method in methods)
