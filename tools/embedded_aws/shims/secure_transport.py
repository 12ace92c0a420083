"""Takes the loopback for TLS, which it stands in for, so that policies that ask for TLS can be deployed as they are.

Gap: MiniStack is spoken to in plain http, and says so to the policies that it evaluates: `aws:SecureTransport` is
false, in its own services' deliveries too. A bucket that refuses plain http then refuses everybody.
AWS: SDKs speak https to it, and `aws:SecureTransport` says whether the request came by TLS.
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-keys.html#condition-keys-securetransport

What still differs from AWS: a request counts as one in plain http where it says so itself, by `X-Forwarded-Proto:
http`, as a proxy that ends TLS would say it. What a service delivers by itself has the key, as true; on AWS, none.
"""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

from embedded_aws.emulator import Emulator
from embedded_aws.ministack_internals import internals, replace

_HEADER = b"x-forwarded-proto"


def apply(emulator: Emulator) -> None:
    """Say https of every request that does not say what it is, and of MiniStack's own deliveries."""
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
