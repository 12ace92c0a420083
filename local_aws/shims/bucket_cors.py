"""Sends the CORS headers of a bucket's own configuration, and none to a request without an Origin.

Gap: unless it evaluates IAM, MiniStack allows every origin in every answer of S3, asked or not.
AWS: S3 answers a request that has an Origin by the first rule of the bucket's CORS configuration that matches, and one
without as if there were no configuration. "Vary" is in the former alone, so a browser may take its copy of the latter
for both, and then refuses it to a page of another origin.
https://docs.aws.amazon.com/AmazonS3/latest/userguide/cors.html
https://docs.aws.amazon.com/AmazonS3/latest/userguide/cors-troubleshooting.html

What still differs from AWS: answers to requests that name the bucket in their host.
"""

from typing import Any

from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace


def apply(emulator: Emulator) -> None:
    """Replace the headers that MiniStack adds to all answers."""
    app = internals("app")
    replace(app, "_dispatch_service_request", _with_its_own_headers)
    replace(app, "_handle_options_request", _answer_preflight)


def _with_its_own_headers(dispatch: Any) -> Any:
    async def dispatch_request(method: str, path: str, headers: dict[str, str], *arguments: Any) -> Any:
        status, answered, body = await dispatch(method, path, headers, *arguments)
        if (target := _bucket_and_key(path, headers)) is not None:
            kept = {name: value for name, value in answered.items() if not name.lower().startswith("access-control-")}
            answered = kept | internals("services.s3").cors_response_headers(target[0], method, headers)
        return status, answered, body

    return dispatch_request


def _answer_preflight(answer: Any) -> Any:
    def answer_options(method: str, path: str, headers: dict[str, str], *arguments: Any) -> Any:
        if method == "OPTIONS" and (target := _bucket_and_key(path, headers)) is not None:
            return internals("services.s3").cors_preflight(*target, headers)
        return answer(method, path, headers, *arguments)

    return answer_options


def _bucket_and_key(path: str, headers: dict[str, str]) -> tuple[str, str] | None:
    """What a request is about; None unless it is a bucket that exists."""
    target: tuple[str, str] | None = internals("app")._s3_cors_target(headers.get("host", ""), path)
    return target
