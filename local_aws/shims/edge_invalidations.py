"""Removes from the edge's cache what an invalidation names, and refuses invalidations as CloudFront does.

Gap: MiniStack records an invalidation of whatever it names, as completed.
AWS: an invalidation removes paths, all that begin with a path before a final `*`, and objects by their tags, which the
origin gave in the header of `CacheTagConfig`; a tag follows `#`, and its case does not matter. At most 3,000 paths are
in progress for a distribution, and 15 with `*`.
https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/invalidation-specifying-objects.html
https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/invalidation-by-tags.html
https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/invalidation-specifying-tags.html
https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/InvalidationLimits.html
https://docs.aws.amazon.com/cloudfront/latest/APIReference/API_CreateInvalidation.html

What still differs from AWS: it takes effect at once, and is in progress for 10 seconds. AWS does not say to which limit
tags count: here to that of paths without `*`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import Any

from local_aws.distributions.cache import CACHE
from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace

_PROGRESS_SECONDS = 10
_PATHS, _WILDCARDS = 3_000, 15
_PATH = re.compile(r"/[^*]*\*?")
_TAG = re.compile(r"#[!-+\--~]{1,256}")
_MAXIMUM_CHARACTERS = 4_000


def apply(emulator: Emulator) -> None:
    """Check each new invalidation, and let it take effect."""
    cloudfront = internals("services.cloudfront")
    replace(cloudfront, "_create_invalidation", _taking_effect)
    for name in ("_get_invalidation", "_list_invalidations"):
        replace(cloudfront, name, _after_progress)


def _taking_effect(create: Any) -> Any:
    def create_invalidation(distribution_id: str, body: bytes) -> Any:
        cloudfront = internals("services.cloudfront")
        known = cloudfront._invalidations.get(distribution_id)
        batch = cloudfront._parse_body(body)
        if known is None or batch is None:
            return create(distribution_id, body)
        paths = cloudfront._find(batch, "Paths")
        listed = cloudfront._find(paths, "Items") if paths is not None else None
        items = [item.text or "" for item in listed] if listed is not None else []
        is_repeated = any(
            record["InvalidationBatch"]["CallerReference"] == cloudfront._text(batch, "CallerReference")
            for record in known
        )
        said = cloudfront._text(paths, "Quantity") if paths is not None else "0"
        refused = None if is_repeated else _refusal(items, said, _in_progress(known))
        if refused is not None:
            return cloudfront._error(*refused)
        answer = create(distribution_id, body)
        if answer[0] == 201 and not is_repeated:
            known[-1] |= {"Status": "InProgress", "began_at": time.time()}
            CACHE.invalidate(distribution_id, items)
        return answer

    return create_invalidation


def _refusal(items: Sequence[str], said: str, in_progress: Sequence[str]) -> tuple[str, str, int] | None:
    if said != str(len(items)):
        return "InconsistentQuantities", "The value of Quantity and the size of Items don't match.", 400
    if not items or not all(
        len(item) <= _MAXIMUM_CHARACTERS and (_TAG if item.startswith("#") else _PATH).fullmatch(item) for item in items
    ):
        return "InvalidArgument", "Your request contains one or more invalid invalidation paths.", 400
    if len(items) > _PATHS:
        return "BatchTooLarge", "Invalidation batch specified is too large.", 413
    everything = [*in_progress, *items]
    wildcards = sum(_is_wildcard(item) for item in everything)
    if wildcards > _WILDCARDS or len(everything) - wildcards > _PATHS:
        message = "Processing your request will cause you to exceed the maximum number of in-progress invalidations."
        return "TooManyInvalidationsInProgress", message, 400
    return None


def _is_wildcard(item: str) -> bool:
    return item.startswith("/") and item.endswith("*")


def _in_progress(records: Sequence[dict[str, Any]]) -> list[str]:
    return [
        item
        for record in records
        if time.time() - record.get("began_at", 0) < _PROGRESS_SECONDS
        for item in record["InvalidationBatch"]["Paths"]["Items"]
    ]


def _after_progress(describe: Any) -> Any:
    def described(distribution_id: str, *arguments: Any) -> Any:
        for record in internals("services.cloudfront")._invalidations.get(distribution_id) or ():
            if time.time() - record.get("began_at", 0) >= _PROGRESS_SECONDS:
                record["Status"] = "Completed"
        return describe(distribution_id, *arguments)

    return described
