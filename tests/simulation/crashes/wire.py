"""The wire between the functions and AWS: each HTTP attempt passes here, below the SDK's retries, and may be struck."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Protocol

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.compat import HTTPHeaders
from botocore.exceptions import ConnectionClosedError
from moto.core.botocore_stubber import MockRawResponse

from tests.support.fakes.damage import flipped
from tests.support.faults import BEFORE, Mode, ProcessDied

MODES: tuple[Mode, ...] = ("dies before", "dies after", "answer lost", "throttled", "read damaged", "denied")
"""What can happen at one attempt of a call. The SDK repeats a call whose answer is lost, and every attempt of a
throttled one is refused until it gives up; a damaged object comes without a checksum by which it would notice."""

READS = ("BatchGetItem", "GetItem", "GetQueueAttributes", "Query")
"""Operations that change nothing and have a small answer."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """One HTTP attempt that a process makes: the place where a fault may strike. `number` counts them from 0."""

    number: int
    function: str
    operation: str

    def __str__(self) -> str:
        return f"{self.number} {self.function} {self.operation}"


def modes_at(point: Point) -> tuple[Mode, ...]:
    """The faults that make a history of their own there. A read whose answer is lost reads the same when the SDK makes
    it again, and fails as if it were throttled when it may be made once only."""
    left_out = {"answer lost"} if point.operation in READS else set()
    if point.operation != "GetObject":
        left_out.add("read damaged")
    return tuple(mode for mode in MODES if mode not in left_out)


class Faults(Protocol):
    """Decides at each point whether a fault strikes there."""

    def before(self, point: Point) -> Mode | None:
        """Called before the call is made: the process may die now, or be throttled."""

    def after(self, point: Point) -> Mode | None:
        """Called after the call was applied: the process may die now, or the answer may be lost or damaged."""


@dataclass(frozen=True, kw_only=True)
class Planned:
    """Faults at points that are given by their numbers."""

    modes: Mapping[int, Mode] = field(default_factory=dict)

    def before(self, point: Point) -> Mode | None:
        mode = self.modes.get(point.number)
        return mode if mode in BEFORE else None

    def after(self, point: Point) -> Mode | None:
        return self.modes.get(point.number)


@dataclass(eq=False)
class Invocation:
    """A running function. Once it is dying, nothing reaches the wire any more, whatever its code still tries."""

    function: str
    dying: bool = False
    throttled_call: str | None = None
    struck: list[str] = field(default_factory=list)
    """The faults that it has survived so far."""


@dataclass
class Wire:
    """Passes attempts on to `apply` and counts those of functions; the world's own are not counted."""

    apply: Callable[[str, AWSPreparedRequest], AWSResponse | None]
    faults: Faults
    applied: Callable[[str, str], None]
    """Called with the service and the operation of each call of a function that was applied."""
    points: list[Point] = field(default_factory=list)
    running: list[Invocation] = field(default_factory=list)

    @contextmanager
    def of(self, invocation: Invocation) -> Iterator[None]:
        """Within this block, everything that is sent is sent by `invocation`."""
        self.running.append(invocation)
        try:
            yield
        finally:
            self.running.remove(invocation)

    def send(self, event_name: str, request: AWSPreparedRequest) -> AWSResponse | None:
        """One HTTP attempt, as botocore's event `before-send` passes it."""
        if not self.running:
            return self.apply(event_name, request)
        invocation = self.running[-1]
        if invocation.dying:
            raise ProcessDied
        _, service, operation = event_name.split(".")
        call = str(request.headers["amz-sdk-invocation-id"])  # the same in all attempts of one call
        if call == invocation.throttled_call:
            return throttling_answer(service, request)
        point = Point(number=len(self.points), function=invocation.function, operation=operation)
        self.points.append(point)
        mode = self.faults.before(point)
        if mode == "denied":
            invocation.struck.append(f"{mode} at {operation}")
            return refusal(service, request, *_DENIAL[service])
        if mode == "throttled":
            invocation.throttled_call = call
            invocation.struck.append(f"{mode} at {operation}")
            return throttling_answer(service, request)
        if mode is None:
            answer = self.apply(event_name, request)
            self.applied(service, operation)
            mode = self.faults.after(point)
            if mode is None:
                return answer
            if mode in ("answer lost", "read damaged"):
                invocation.struck.append(f"{mode} at {operation}")
            if mode == "read damaged":
                return _damaged(answer)
            if mode == "answer lost":
                raise ConnectionClosedError(endpoint_url=request.url)
        invocation.dying = True
        raise ProcessDied


def _damaged(answer: AWSResponse | None) -> AWSResponse | None:
    if answer is None or answer.status_code != HTTPStatus.OK:
        return answer
    headers = HTTPHeaders()
    for name, value in answer.headers.items():
        if not name.lower().startswith("x-amz-checksum-"):
            headers[name] = value
    return AWSResponse(answer.url, answer.status_code, headers, MockRawResponse(flipped(answer.content)))


_DENIAL = {
    "s3": (403, "AccessDenied"),
    "dynamodb": (400, "AccessDeniedException"),
    "sqs": (403, "AccessDenied"),
    "sns": (403, "AuthorizationError"),
    "secrets-manager": (400, "AccessDeniedException"),
}

_THROTTLING = {
    # https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html
    "s3": (503, "SlowDown"),
    # https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html
    "dynamodb": (400, "ProvisionedThroughputExceededException"),
    # https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html#API_SendMessage_Errors
    "sqs": (400, "RequestThrottled"),
    # https://docs.aws.amazon.com/sns/latest/api/API_PublishBatch.html#API_PublishBatch_Errors
    "sns": (429, "Throttled"),
    # https://docs.aws.amazon.com/secretsmanager/latest/apireference/CommonErrors.html
    "secrets-manager": (400, "ThrottlingException"),
}


def throttling_answer(service: str, request: AWSPreparedRequest) -> AWSResponse:
    """How the service says that it is throttling."""
    if service not in _THROTTLING:
        raise NotImplementedError(f"say in {__name__} how {service} throttles")
    return refusal(service, request, *_THROTTLING[service])


def refusal(service: str, request: AWSPreparedRequest, status: int, code: str) -> AWSResponse:
    """An error's answer, in the form of its service."""
    if request.method == "HEAD":  # has a status and no body
        content_type, body = "application/xml", ""
    elif service == "s3":
        content_type = "application/xml"
        body = f"<Error><Code>{code}</Code><Message>Refused.</Message></Error>"
    elif service == "sns":  # the query protocol
        content_type = "text/xml"
        body = f"<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code></Error></ErrorResponse>"
    else:
        content_type = "application/x-amz-json-1.0"
        body = json.dumps({"__type": f"com.amazonaws.{service}#{code}", "message": "Refused."})
    headers = HTTPHeaders()
    headers["content-type"], headers["content-length"] = content_type, str(len(body))
    return AWSResponse(request.url, status, headers, MockRawResponse(body))
