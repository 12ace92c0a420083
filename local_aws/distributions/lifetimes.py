"""Decides how long CloudFront keeps an origin's answer.

https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/Expiration.html
https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/HTTPStatusCodes.html
https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/custom-error-pages-expiration.html
https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/http-3xx-status-codes.html
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any

ERROR_SECONDS = 10
"""The error caching minimum TTL, unless a distribution says another for a status."""

_DAY, _YEAR = 86_400, 31_536_000
_KEPT_OUT = frozenset({"no-cache", "no-store", "private"})
_ERRORS_KEPT = frozenset({404, 405, 410, 414, 500, 501, 502, 503, 504})
_ERRORS_KEPT_IF_TOLD = frozenset({400, 403, 412, 415})
_ERRORS_THAT_MAY_REFUSE = frozenset({404, 410, 414, 501})
_REDIRECTS_KEPT_IF_TOLD = frozenset({307, 308})


@dataclass(frozen=True, kw_only=True)
class Lifetimes:
    """The bounds of a cache policy, in seconds."""

    minimum: int
    default: int
    maximum: int

    @classmethod
    def of(cls, policy: Mapping[str, Any]) -> Lifetimes:
        """Those of a cache policy's configuration, with CloudFront's defaults for what it leaves out."""
        minimum = int(policy["MinTTL"])
        default = int(policy.get("DefaultTTL", max(_DAY, minimum)))
        return cls(minimum=minimum, default=default, maximum=int(policy.get("MaxTTL", max(_YEAR, minimum, default))))


def lifetime(
    status: int, headers: Mapping[str, Any], bounds: Lifetimes, *, now: float, error_seconds: int = ERROR_SECONDS
) -> float:
    """For how many seconds an answer is kept; 0 if it is not. The names of the headers are in lower case."""
    control = _directives(headers)
    told = _told(control, headers, now)
    kept_out = bool(_KEPT_OUT & control.keys())
    if status >= 400:
        if status not in _ERRORS_KEPT and (
            status not in _ERRORS_KEPT_IF_TOLD or not {"max-age", "s-maxage"} & control.keys()
        ):
            return 0
        if kept_out and status in _ERRORS_THAT_MAY_REFUSE:
            return 0
        return max(error_seconds, 0 if told is None else min(told, bounds.maximum))
    if kept_out:
        return bounds.minimum
    if status in _REDIRECTS_KEPT_IF_TOLD and not control:
        return 0
    return max(bounds.minimum, bounds.default if told is None else min(told, bounds.maximum))


def _directives(headers: Mapping[str, Any]) -> dict[str, str]:
    said = headers.get("cache-control") or ""
    parts = (",".join(said) if isinstance(said, list) else said).lower().split(",")
    pairs = (part.strip().partition("=") for part in parts if part.strip())
    return {name.strip(): value.strip().strip('"') for name, _, value in pairs}


def _told(control: Mapping[str, str], headers: Mapping[str, Any], now: float) -> float | None:
    for name in ("s-maxage", "max-age"):
        if control.get(name, "").isdecimal():
            return int(control[name])
    if "expires" not in headers:
        return None
    try:
        moment = parsedate_to_datetime(str(headers["expires"]))
    except ValueError:  # "0" and the like have expired
        return 0
    return max(0, (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - now)
