"""The route that changes an image: its time, or its visibility."""

from __future__ import annotations

from http import HTTPStatus

from darkroom.domain.kernel.sizes import limit_in_words
from darkroom.http.images.documents import StatusDocument
from darkroom.http.images.order_fields import IN_SCHEDULE
from darkroom.http.images.routes import ID
from darkroom.http.kernel.headers import LOCATION_OF_STATUS, RETRY_AFTER
from darkroom.http.kernel.route import Body, Route, RouteAnswer
from darkroom.http.schedules.reschedules import MAX_RESCHEDULE_BYTES, ImageChange

PATCH_IMAGE = Route(
    method="PATCH",
    path="/images/{id}",
    name="rescheduleImage",
    summary="Change an image's time or visibility",
    description=f"Gives a scheduled image another time, {IN_SCHEDULE}, or now. It can be changed any number of times, "
    "to the last second. Or changes whom the edge serves an image to that is done: `work` in its status tells when it "
    "has, and its variants then have other URLs.",
    parameters=(ID,),
    body=Body(
        description=f"The new time or visibility, in at most {limit_in_words(MAX_RESCHEDULE_BYTES)}.",
        media_types=("application/json",),
        kind=ImageChange,
        examples={
            "instant": {"process_at": "2027-03-01T09:00:00+01:00"},
            "delay": {"delay": "PT2H"},
            "visibility": {"visibility": "public"},
        },
    ),
    answers=(
        RouteAnswer(status=HTTPStatus.OK, description="The image after the change.", kind=StatusDocument),
        RouteAnswer(
            status=HTTPStatus.ACCEPTED,
            description="The visibility will change.",
            kind=StatusDocument,
            headers=(LOCATION_OF_STATUS, RETRY_AFTER),
        ),
    ),
    problems=(
        "unreadable_body",
        "unsupported_media_type",
        "invalid_schedule",
        "invalid_process_at",
        "invalid_delay",
        "invalid_expires_at",
        "conflicting_parameters",
        "unknown_visibility",
        "part_not_deployed",
        "unknown_image",
        "unknown_path",
        "not_scheduled",
        "not_done",
        "work_under_way",
        "too_many_requests",
        "overloaded",
        "unavailable",
    ),
    is_rate_limited=True,
)
