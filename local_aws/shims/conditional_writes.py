"""Tells policies whether a request creates an object, and under which condition.

Gap: MiniStack's requests have neither `s3:if-none-match` nor `s3:ObjectCreationOperation`, so that a policy that asks
for conditional writes never applies, or refuses every write.
AWS: a PutObject or CompleteMultipartUpload has `s3:ObjectCreationOperation` true, parts and the beginning of a
multipart upload have it false; `s3:if-none-match` is the header's value, and is missing without it.
https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes-enforce.html
"""

from collections.abc import Callable
from typing import Any

from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace

_HEADER = "if-none-match"


def apply(emulator: Emulator) -> None:
    """Add the two keys to the context of writes, by which policies are evaluated."""
    replace(internals("core.iam_actions"), "s3_service_context", _with_condition)


def _with_condition(context_of: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    def s3_service_context(iam_action: str, query_params: Any, path: str = "", headers: Any = None) -> dict[str, Any]:
        context = context_of(iam_action, query_params, path, headers)
        if iam_action == "s3:PutObject":
            query, headers = query_params or {}, headers or {}
            is_part = "partNumber" in query or "uploads" in query
            context["s3:ObjectCreationOperation"] = "false" if is_part else "true"
            if headers.get(_HEADER):
                context[f"s3:{_HEADER}"] = headers[_HEADER]
        return context

    return s3_service_context
