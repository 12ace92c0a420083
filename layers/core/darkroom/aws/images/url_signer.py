"""URLs of the edge, signed by a function of its own stack: the private key stays there."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING

from darkroom.aws.kernel.errors import retryable
from darkroom.domain.images.pictures import EdgeUrls
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.instants import from_rfc3339
from darkroom.domain.kernel.visibility import Visibility, folder_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from mypy_boto3_lambda import LambdaClient


_QUERY = {
    "Policy": "policy",
    "Signature": "signature",
    "Key-Pair-Id": "key_pair_id",
    "Hash-Algorithm": "hash_algorithm",
}
"""The parts of a signed URL's query, each with its name in the function's answer."""


class UrlSigningFunction:
    """Implements the `UrlSigner` port by invoking a function; its client is made for the first image that is signed."""

    def __init__(self, client: Callable[[], LambdaClient], function_arn: str, *, base: str) -> None:
        self._client = cache(client)
        self._function_arn = function_arn
        self._base = base

    def sign(self, image_id: str) -> EdgeUrls:
        # One policy for all of an image's variants
        # (https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/private-content-creating-signed-url-custom-policy.html).
        resource = f"{self._base}/{folder_of(Visibility.SIGNED, image_id)}*"
        with retryable("having URLs signed"):
            answer = self._client().invoke(
                FunctionName=self._function_arn, Payload=json.dumps({"resource": resource}).encode()
            )
            body = answer["Payload"].read()
        if "FunctionError" in answer:
            raise Retryable("having URLs signed: the function failed")  # its log says why
        try:
            signed = json.loads(body)
            query = "&".join(f"{name}={signed[field]}" for name, field in _QUERY.items())
            return EdgeUrls(base=self._base, signature=query, expires_at=from_rfc3339(signed["expires_at"]))
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            # Of the edge's stack, which may be of another version; what it said is a credential.
            raise Retryable(f"having URLs signed: the answer was not understood: {type(error).__name__}") from None
