"""Carries the trace of a request on: into the messages that it sends, and into the function that answers it.

Gap: MiniStack ignores the header X-Amzn-Trace-Id of SendMessage, SendMessageBatch, Publish and PublishBatch, and gives
a function that an API invokes another trace than the one in its event. (It does give each invocation of a function with
active tracing a trace, and does pass a message's attribute AWSTraceHeader on.)
AWS: the header belongs to all messages of the request: each gets it as its system attribute AWSTraceHeader, unless it
has one. SNS passes it on to its subscriptions. In a function, the SDK sends it by itself. What a queue invokes has a
trace of its own, which X-Ray links to those of the messages. API Gateway adds the header to the event, and invokes the
function in that trace.
https://docs.aws.amazon.com/xray/latest/devguide/xray-services-sqs.html
https://docs.aws.amazon.com/sns/latest/dg/sns-active-tracing.html
https://docs.aws.amazon.com/lambda/latest/dg/services-xray.html

What still differs from AWS: every trace is sampled, there is no X-Ray to send segments to, and S3 and Step Functions
pass no header on.
"""

import re
from contextvars import ContextVar
from typing import Any

from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace

HEADER = "x-amzn-trace-id"
ATTRIBUTE = "AWSTraceHeader"

_ROOT = re.compile(r"(?:^|;)(Root=1-[0-9a-f]{8}-[0-9a-f]{24})(?:;|$)")

_header_of_request: ContextVar[str | None] = ContextVar("trace_header_of_request", default=None)
_root_of_event: ContextVar[str | None] = ContextVar("trace_root_of_event", default=None)


def apply(emulator: Emulator) -> None:
    """Remember the header of each request to SQS and SNS, and the one in each event of an API."""
    sqs = internals("services.sqs")
    for service in (sqs, internals("services.sns")):
        replace(service, "handle_request", _remember_header)
    replace(sqs, "_build_send_sys_attrs", _with_header)
    replace(sqs, "_ensure_msg_fields", _with_header_if_new)
    replace(internals("services.apigateway"), "run_reentrant", _remember_root)
    replace(internals("services.lambda_svc"), "_xray_trace_id_for_invocation", _in_trace_of_event)


def _remember_header(handle: Any) -> Any:
    async def handle_request(method: str, path: str, headers: dict[str, str], body: bytes, query: Any) -> Any:
        token = _header_of_request.set(headers.get(HEADER))
        try:
            return await handle(method, path, headers, body, query)
        finally:
            _header_of_request.reset(token)

    return handle_request


def _with_header(build: Any) -> Any:
    def build_attributes(*arguments: Any) -> Any:
        attributes = build(*arguments)
        if header := _header_of_request.get():
            attributes.setdefault(ATTRIBUTE, header)
        return attributes

    return build_attributes


def _with_header_if_new(complete: Any) -> Any:
    def complete_message(message: dict[str, Any]) -> Any:
        is_new = "sys" not in message  # SNS puts messages without system attributes into queues
        completed = complete(message)
        if is_new and (header := _header_of_request.get()):
            message["sys"].setdefault(ATTRIBUTE, header)
        return completed

    return complete_message


def _remember_root(run: Any) -> Any:
    async def invoke(function: Any, record: Any, event: Any, **options: Any) -> Any:
        root = _ROOT.search(event.get("headers", {}).get(HEADER, "")) if isinstance(event, dict) else None
        token = _root_of_event.set(None if root is None else root[1])
        try:
            return await run(function, record, event, **options)
        finally:
            _root_of_event.reset(token)

    return invoke


def _in_trace_of_event(choose: Any) -> Any:
    def trace_of_invocation(config: dict[str, Any], inbound: str | None = None) -> str | None:
        chosen: str | None = choose(config, inbound)
        root = _root_of_event.get()
        return chosen if chosen is None or root is None else ";".join([root, *chosen.split(";")[1:]])

    return trace_of_invocation
