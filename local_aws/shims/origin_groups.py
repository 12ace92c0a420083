"""Asks the second origin of an origin group where the first one answers as the group's criteria say.

Gap: MiniStack keeps origin groups, and answers 502 to whatever a behaviour sends to one.
AWS: a GET, HEAD or OPTIONS request goes to the primary origin, and the same request to the secondary one if the primary
answers with a status of the criteria, cannot be reached and 503 is one of them, or takes too long and 504 is. What the
secondary answers is the answer. Other methods get the primary's.
https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/high_availability_origin_failover.html
https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/RequestAndResponseBehaviorOriginGroups.html

What still differs from AWS: an origin is asked once. The selection by media quality is not known.
"""

from __future__ import annotations

from typing import Any

from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace

_METHODS = ("GET", "HEAD", "OPTIONS")


def apply(emulator: Emulator) -> None:
    """Let a group be found like an origin, and be fetched from in turn."""
    cloudfront = internals("services.cloudfront")
    replace(cloudfront, "parse_distribution_dataplane_config", _with_groups)
    replace(cloudfront, "_fetch_from_origin", _failing_over)


def _with_groups(parse: Any) -> Any:
    def parse_distribution_dataplane_config(distribution: dict[str, Any]) -> Any:
        cloudfront = internals("services.cloudfront")
        parsed = parse(distribution)
        groups = cloudfront._find(cloudfront._dist_config_el(distribution), "OriginGroups")
        for group in _named(groups, "OriginGroup"):
            primary, secondary = (
                parsed["origins"][cloudfront._text(member, "OriginId")] for member in _named(group, "OriginGroupMember")
            )
            statuses = {int(code.text) for code in _named(group, "StatusCode")}
            parsed["origins"][cloudfront._text(group, "Id")] = {**primary, "failover": (statuses, secondary)}
        return parsed

    return parse_distribution_dataplane_config


def _named(element: Any, name: str) -> list[Any]:
    tag = internals("services.cloudfront")._local_tag_name
    return [] if element is None else [inner for inner in element.iter() if tag(inner) == name]


def _failing_over(fetch: Any) -> Any:
    async def fetch_from_origin(origin: dict[str, Any], method: str, *arguments: Any) -> Any:
        cloudfront = internals("services.cloudfront")
        statuses, secondary = origin.get("failover", (set(), None))
        try:
            answer = await fetch(origin, method, *arguments)
            failed_as = answer[0]
        except (cloudfront.OriginUnreachable, cloudfront.OriginTimeout) as failure:
            failed_as = 504 if isinstance(failure, cloudfront.OriginTimeout) else 503
            if failed_as not in statuses or method not in _METHODS:
                raise
        if failed_as in statuses and method in _METHODS:
            return await fetch(secondary, method, *arguments)
        return answer

    return fetch_from_origin
