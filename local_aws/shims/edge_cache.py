"""Lets distributions keep what their origins answered, as long as the cache policy and the origin say.

Gap: MiniStack asks the origin again for every request, answers "Miss from cloudfront" each time, and passes viewers'
conditions on.
AWS: a GET or HEAD request is answered from the cache by the path after the viewer-request function and by what the
cache policy names of headers, cookies and query; `Age` and `X-Cache` say so. Errors are kept too, for 10 seconds unless
the distribution says otherwise. Viewers' conditions are decided at the edge. Requests for one object that come while it
is fetched wait for the same answer. What has expired is asked for by its ETag, and served on if the origin fails.
https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/Expiration.html
https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/understanding-the-cache-key.html
https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/HTTPStatusCodes.html
https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/RequestAndResponseBehaviorCustomOrigin.html#request-custom-traffic-spikes

What still differs from AWS: there is one edge, with 256 MiB for everything. A behaviour without a cache policy keeps
nothing. A range is answered with the whole object, a HEAD request is answered from the cache but keeps nothing, and
nothing is compressed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

from local_aws.distributions.cache import CACHE, Answer, Kept, tags_of
from local_aws.distributions.lifetimes import ERROR_SECONDS, Lifetimes, lifetime
from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace

_HIT, _MISS, _REFRESHED = (f"{word} from cloudfront" for word in ("Hit", "Miss", "RefreshHit"))
_ERROR = "Error from cloudfront"
_CONDITIONS = frozenset({"if-match", "if-modified-since", "if-none-match", "if-range", "if-unmodified-since", "range"})

Fetch = Callable[..., Awaitable[tuple[int, str, dict[str, Any], bytes]]]


def apply(emulator: Emulator) -> None:
    """Put the cache between the viewer's request and the origin."""
    cloudfront = internals("services.cloudfront")
    replace(cloudfront, "_fetch_from_origin", lambda fetch: _Edge(fetch).answer)
    replace(cloudfront, "handle_viewer_request", _telling_what_was_kept)


@dataclass(kw_only=True)
class _Request:
    """A viewer's request, and how the cache answered it."""

    distribution: dict[str, Any]
    path: str
    headers: Mapping[str, str]
    fetches: int = 0
    outcome: str = _MISS
    age: int | None = None


_request = ContextVar[_Request | None]("request", default=None)


class _Asked(NamedTuple):
    """A request to the origin that may be answered from the cache."""

    distribution: dict[str, Any]
    bounds: Lifetimes
    key: Hashable
    address: str


def _telling_what_was_kept(serve: Any) -> Any:
    async def handle_viewer_request(distribution: dict[str, Any], *arguments: Any) -> Any:
        _, path, _, _, headers, *_ = arguments
        request = _Request(distribution=distribution, path=path, headers=headers)
        token = _request.set(request)
        try:
            status, answered, body = await serve(distribution, *arguments)
        finally:
            _request.reset(token)
        if answered.get("X-Cache") == _MISS:
            answered = {**answered, "X-Cache": _ERROR if status >= 400 else request.outcome}
        if request.age is not None:
            answered = {**answered, "Age": str(request.age)}
        return status, answered, body

    return handle_viewer_request


class _Edge:
    """Answers from the cache, and fetches what it lacks, once at a time for each key."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._running = dict[Hashable, asyncio.Future[tuple[Kept, str]]]()

    async def answer(self, origin: dict[str, Any], method: str, *arguments: Any) -> Any:
        """What a viewer gets instead of what the origin answers each time."""
        uri, query, headers, *rest = arguments
        request = _request.get()
        asked = _asked(request, uri, query, headers) if request and method in ("GET", "HEAD") else None
        if request is None or asked is None:
            return await self._fetch(origin, method, *arguments)
        now, kept = time.time(), CACHE.get(asked.key)
        if kept is not None and now < kept.expires_at:
            request.outcome, request.age = _HIT, int(now - kept.stored_at)
            return _answer_to(headers, kept.answer)
        if method == "HEAD":
            return await self._fetch(origin, method, *arguments)
        running = self._running.get(asked.key)
        if is_first := running is None:
            asking = {name: value for name, value in headers.items() if name not in _CONDITIONS}

            def fetch(conditions: Mapping[str, str]) -> Any:
                return self._fetch(origin, method, uri, query, {**asking, **conditions}, *rest)

            running = asyncio.ensure_future(_fetched(fetch, asked, kept))
            self._running[asked.key] = running
            running.add_done_callback(lambda _: self._running.pop(asked.key))
        new, request.outcome = await asyncio.shield(running)
        if not is_first and new.expires_at <= new.stored_at:  # it is for nobody else
            return await self._fetch(origin, method, *arguments)
        return _answer_to(headers, new.answer)


async def _fetched(
    fetch: Callable[[Mapping[str, str]], Awaitable[Any]], asked: _Asked, old: Kept | None
) -> tuple[Kept, str]:
    """What the origin answers now, kept if it may be, and what that is called."""
    cloudfront = internals("services.cloudfront")
    distribution_id = asked.distribution["Id"]
    before = CACHE.invalidations(distribution_id)
    stale = old.answer if old and isinstance(old.answer, Answer) and old.answer.status < 400 else None
    etag = stale.headers.get("etag") if stale else None
    answer: Answer | Exception
    try:
        answer = Answer(*await fetch({"if-none-match": etag} if etag else {}))
        status, headers = answer.status, answer.headers
    except (cloudfront.OriginTimeout, cloudfront.OriginUnreachable) as failure:
        answer, status, headers = failure, 504 if isinstance(failure, cloudfront.OriginTimeout) else 502, {}
    outcome, tags = _MISS, _tags(asked.distribution, headers)
    if old and stale and status >= 500:  # the origin is out of order
        answer, tags, outcome = stale, old.tags, _HIT
    elif old and stale and status == 304:
        renewed = {name: headers[name] for name in ("cache-control", "expires") if name in headers}
        headers = {**stale.headers, **renewed}
        answer, tags, outcome, status = stale._replace(headers=headers), old.tags, _REFRESHED, stale.status
    now = time.time()
    error_seconds = _error_seconds(asked.distribution, status)
    seconds = lifetime(status, headers, asked.bounds, now=now, error_seconds=error_seconds)
    kept = Kept(
        answer=answer,
        distribution_id=distribution_id,
        address=asked.address,
        tags=tags,
        stored_at=now,
        expires_at=now + seconds,
    )
    CACHE.drop(asked.key)
    if seconds and CACHE.invalidations(distribution_id) == before:
        CACHE.put(asked.key, kept)
    return kept, outcome


def _asked(request: _Request, uri: str, query: str, headers: Mapping[str, Any]) -> _Asked | None:
    """By what the answer is looked up; None if the behaviour keeps nothing."""
    cloudfront = internals("services.cloudfront")
    parsed = cloudfront.parse_distribution_dataplane_config(request.distribution)
    # The first thing that is fetched is the viewer's; the second is the page for its error.
    behaviour = cloudfront._match_behavior(parsed, uri if request.fetches else request.path)
    request.fetches += 1
    policy_id = behaviour["cache_policy_id"]
    policy = cloudfront._cache_policies.get(policy_id) or cloudfront._MANAGED_CACHE_POLICIES.get(policy_id)
    if policy is None or (bounds := Lifetimes.of(policy["Config"])).maximum == 0:
        return None
    named = policy["Config"].get("Parameters") or {}
    in_key = {
        kind: cloudfront._behavior_kind(named.get(f"{kind}Behavior", "none"), named.get(f"{kind}s"), kind == "Header")
        for kind in ("Header", "Cookie", "QueryString")
    }

    def of(kind: str, name: str) -> bool:
        return bool(cloudfront._combine_forward(in_key[kind], None, name))

    cookies = cloudfront._event_cookies_from_header(headers.get("cookie", ""))
    kept_query = urlencode([pair for pair in parse_qsl(query, keep_blank_values=True) if of("QueryString", pair[0])])
    address = f"{uri}?{kept_query}" if kept_query else uri
    key = (
        request.distribution["Id"],
        address,
        tuple((name, str(value)) for name, value in sorted(headers.items()) if name != "cookie" and of("Header", name)),
        tuple((name, cookie["value"]) for name, cookie in sorted(cookies.items()) if of("Cookie", name)),
        _encodings(named, request.headers),
    )
    return _Asked(request.distribution, bounds, key, address)


def _encodings(named: Mapping[str, Any], headers: Mapping[str, str]) -> str:
    """Accept-Encoding as CloudFront normalises it: what the policy enables of what the viewer accepts."""
    accepted = {coding.partition(";")[0].strip() for coding in headers.get("accept-encoding", "").lower().split(",")}
    enabled = (("br", "EnableAcceptEncodingBrotli"), ("gzip", "EnableAcceptEncodingGzip"))
    return ",".join(coding for coding, setting in enabled if named.get(setting) and coding in accepted)


def _tags(distribution: dict[str, Any], headers: Mapping[str, Any]) -> frozenset[str]:
    cloudfront = internals("services.cloudfront")
    configuration = cloudfront._find(cloudfront._dist_config_el(distribution), "CacheTagConfig")
    if configuration is None:
        return frozenset()
    said = headers.get(cloudfront._text(configuration, "HeaderName").lower(), "")
    return tags_of(",".join(said) if isinstance(said, list) else said)


def _error_seconds(distribution: dict[str, Any], status: int) -> int:
    cloudfront = internals("services.cloudfront")
    for element in cloudfront._dist_config_el(distribution).iter():
        is_for_errors = cloudfront._local_tag_name(element) == "CustomErrorResponse"
        if is_for_errors and cloudfront._text(element, "ErrorCode") == str(status):
            return int(cloudfront._text(element, "ErrorCachingMinTTL") or ERROR_SECONDS)
    return ERROR_SECONDS


def _answer_to(headers: Mapping[str, Any], kept: Answer | Exception) -> tuple[int, str, dict[str, Any], bytes]:
    """What a viewer with these headers is answered; raises how the origin failed."""
    if isinstance(kept, Exception):
        raise kept
    if kept.status == 200 and _has_it(headers, kept.headers):
        return 304, "Not Modified", {n: v for n, v in kept.headers.items() if not n.startswith("content-")}, b""
    return kept.status, kept.reason, dict(kept.headers), kept.body


def _has_it(headers: Mapping[str, Any], kept: Mapping[str, Any]) -> bool:
    if wanted := str(headers.get("if-none-match", "")):
        etags = [etag.strip().removeprefix("W/") for etag in wanted.split(",")]
        return "*" in etags or str(kept.get("etag", "")).removeprefix("W/") in etags
    try:
        return parsedate_to_datetime(headers["if-modified-since"]) >= parsedate_to_datetime(kept["last-modified"])
    except (LookupError, TypeError, ValueError):
        return False
