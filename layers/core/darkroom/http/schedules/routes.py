"""The route that reschedules an image."""

from __future__ import annotations

from http import HTTPStatus

from darkroom.domain.kernel.sizes import limit_in_words
from darkroom.http.images.documents import StatusDocument
from darkroom.http.images.order_fields import IN_SCHEDULE
from darkroom.http.images.routes import ID
from darkroom.http.kernel.route import Body, Route, RouteAnswer
from darkroom.http.schedules.reschedules import MAX_RESCHEDULE_BYTES, Reschedule

PATCH_IMAGE = Route(
    method="PATCH",
    path="/images/{id}",
    name="rescheduleImage",
    summary="Reschedule an image",
    description=f"Gives a scheduled image another time, {IN_SCHEDULE}, or now. It can be changed any number of times, "
    "to the last second.",
    parameters=(ID,),
    body=Body(
        description=f"The new time, in at most {limit_in_words(MAX_RESCHEDULE_BYTES)}.",
        media_types=("application/json",),
        kind=Reschedule,
        examples={"instant": {"process_at": "2027-03-01T09:00:00+01:00"}, "delay": {"delay": "PT2H"}},
    ),
    answers=(RouteAnswer(status=HTTPStatus.OK, description="The image after the change.", kind=StatusDocument),),
    problems=(
        "unreadable_body",
        "unsupported_media_type",
        "invalid_schedule",
        "invalid_process_at",
        "invalid_delay",
        "invalid_expires_at",
        "conflicting_parameters",
        "unknown_image",
        "unknown_path",
        "not_scheduled",
        "too_many_requests",
        "overloaded",
        "unavailable",
    ),
    is_rate_limited=True,
)
