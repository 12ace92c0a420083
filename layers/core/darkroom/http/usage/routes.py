"""The route of what a tenant stores and used."""

from __future__ import annotations

from http import HTTPStatus

from darkroom.domain.usage.usage import MAX_DAYS
from darkroom.http.kernel.route import Parameter, Route, RouteAnswer
from darkroom.http.usage.usage import Day, UsageDocument

GET_USAGE = Route(
    method="GET",
    path="/usage",
    name="getUsage",
    summary="Read what is stored and was used",
    description=(
        "What the tenant stores now, of its quota, and what it used, day by day in UTC. It is some seconds behind."
    ),
    parameters=(
        Parameter(
            name="since",
            place="query",
            kind=Day,
            description="The first day; 30 days before the last one by default.",
            example="2026-11-01",
        ),
        Parameter(
            name="until",
            place="query",
            kind=Day,
            description=f"The last day; today by default. They are at most {MAX_DAYS} days.",
            example="2026-11-30",
        ),
    ),
    answers=(RouteAnswer(status=HTTPStatus.OK, description="The usage of these days.", kind=UsageDocument),),
    problems=("invalid_days", "too_many_requests", "unavailable"),
    is_rate_limited=True,
)
