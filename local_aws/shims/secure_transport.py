"""Treats plain http on the loopback as TLS, so that policies that require TLS can be deployed unchanged.

Gap: MiniStack is reached by plain http, and says so to the policies that it evaluates: `aws:SecureTransport` is false,
also in its own services' deliveries. A bucket that refuses plain http then refuses everybody.
AWS: SDKs use https, and `aws:SecureTransport` says whether the request came by TLS.
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-keys.html#condition-keys-securetransport

What still differs from AWS: a request counts as plain http only if it says so itself, with `X-Forwarded-Proto: http`,
as a proxy that terminates TLS would. For a service's own deliveries the key is true; on AWS it does not exist.
"""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace

_HEADER = b"x-forwarded-proto"


def apply(emulator: Emulator) -> None:
    """Report https for every request that does not say otherwise, and for MiniStack's own deliveries."""
    if internals("app").AUTH:
        replace(internals("app"), "app", _by_tls)
        replace(
            internals("core.iam_evaluator"),
            "_request_origin",
            lambda _: ContextVar("request_origin", default=("127.0.0.1", True)),
        )


def _by_tls(app: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    async def serve(scope: Any, receive: Any, send: Any) -> None:
        headers = scope.get("headers", ())
        if scope["type"] == "http" and not any(name.lower() == _HEADER for name, _ in headers):
            scope = {**scope, "headers": [*headers, (_HEADER, b"https")]}
        await app(scope, receive, send)

    return serve
