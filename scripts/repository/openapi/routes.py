"""The one table of the API's routes, of which openapi.json is made. Handlers import only their own routes: the table
loads what all of them take and answer."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from darkroom.http.bulk.routes import BATCH_ROUTES
from darkroom.http.images import routes as images
from darkroom.http.images.additions import POST_VARIANTS
from darkroom.http.images.edits import POST_EDIT
from darkroom.http.images.routes import DELETE_IMAGE, GET_IMAGE, GET_STATUS, GET_VARIANT, LIST_IMAGES
from darkroom.http.imports.routes import POST_IMAGE
from darkroom.http.kernel.openapi_route import GET_OPENAPI
from darkroom.http.kernel.route import Route
from darkroom.http.schedules.routes import PATCH_IMAGE
from darkroom.http.uploads.routes import POST_UPLOAD, POST_UPLOAD_DONE, POST_UPLOAD_TOKEN
from darkroom.http.usage.routes import GET_USAGE
from darkroom.http.webhooks.routes import WEBHOOK_ROUTES
from darkroom.settings import Access

ROUTES = (
    POST_IMAGE,
    POST_UPLOAD,
    POST_UPLOAD_DONE,
    POST_UPLOAD_TOKEN,
    LIST_IMAGES,
    GET_IMAGE,
    GET_STATUS,
    GET_VARIANT,
    POST_VARIANTS,
    POST_EDIT,
    GET_USAGE,
    PATCH_IMAGE,
    DELETE_IMAGE,
    *BATCH_ROUTES,
    *WEBHOOK_ROUTES,
    GET_OPENAPI,
)
"""Every route of the API, in the order in which a client meets them."""

_PART_OF: dict[str, str] = (
    {GET_USAGE.name: "usage"}
    | {route.name: "bulk" for route in BATCH_ROUTES}
    | {route.name: "webhooks" for route in WEBHOOK_ROUTES}
)

_PROBLEMS_OF = {
    "webhooks": ("unknown_notify",),
    "usage": ("quota_exceeded",),
    "bulk": ("unknown_batch", "batch_closed"),
}
"""The problems of core routes that only a stack with the part has."""

_PARAMETERS_OF = {"notify": "webhooks", "batch": "bulk"}
"""The parts that a stack must have for a parameter of core routes."""


def routes_of(access: Access, parts: Collection[str]) -> tuple[Route, ...]:
    """The routes of a stack with that access mode and these optional parts, as they are there."""
    return tuple(
        _without(parts, route)
        for route in ROUTES
        if (route.name not in _PART_OF or _PART_OF[route.name] in parts)
        and (route is not POST_UPLOAD_TOKEN or access == "keys")
    )


def _without(parts: Collection[str], route: Route) -> Route:
    """The route without what belongs to other parts."""
    if route is POST_IMAGE and "imports" not in parts:
        route = images.POST_IMAGE
    absent = {code for part, codes in _PROBLEMS_OF.items() if part not in parts for code in codes}
    return replace(
        route,
        problems=tuple(code for code in route.problems if code not in absent),
        parameters=tuple(
            parameter
            for parameter in route.parameters
            if parameter.place != "query" or _PARAMETERS_OF.get(parameter.name) in (None, *parts)
        ),
    )
