"""Refuses to invoke a function with an event that is larger than Lambda accepts.

Gap: MiniStack passes events of any size to a function.
AWS: 6 MB for a synchronous invocation, 1 MB for an asynchronous one; more is a RequestEntityTooLargeException (413).
https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html (Errors)
"""

from typing import Any

from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace

MAXIMUM_SYNCHRONOUS_BYTES = 6 * 1024 * 1024
MAXIMUM_ASYNCHRONOUS_BYTES = 1024 * 1024


def apply(emulator: Emulator) -> None:
    """Check the payload of every Invoke request."""
    replace(internals("services.lambda_svc"), "handle_request", _check_payload)


def _check_payload(handle: Any) -> Any:
    async def handle_request(method: str, path: str, headers: dict[str, str], body: bytes, query: Any) -> Any:
        message = None
        if method == "POST" and path.rstrip("/").endswith("/invocations"):
            message = _reason_to_refuse(len(body), headers.get("x-amz-invocation-type", "RequestResponse"))
        if message:
            return internals("core.responses").error_response_json("RequestEntityTooLargeException", message, 413)
        return await handle(method, path, headers, body, query)

    return handle_request


def _reason_to_refuse(size_bytes: int, invocation_type: str) -> str | None:
    if invocation_type == "Event" and size_bytes > MAXIMUM_ASYNCHRONOUS_BYTES:
        return (
            f"{size_bytes} byte payload is too large for the Event invocation type "
            f"(limit {MAXIMUM_ASYNCHRONOUS_BYTES} bytes)"
        )
    if size_bytes > MAXIMUM_SYNCHRONOUS_BYTES:
        return f"Request must be smaller than {MAXIMUM_SYNCHRONOUS_BYTES} bytes for the InvokeFunction operation"
    return None
