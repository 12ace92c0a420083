"""The router of an API function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver
from aws_lambda_powertools.metrics import MetricUnit

from darkroom.http.headers import NO_SNIFFING
from darkroom.settings import AccessSettings
from darkroom.telemetry import metrics

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext


@dataclass(frozen=True, kw_only=True)
class AnswerMetrics:
    """The metrics that count a function's answers: requests that were `refused`, those that `failed` here (status 500
    and more) if they are counted separately, and all others (`served`) unless the handler counts these."""

    refused: str
    failed: str | None = None
    served: str | None = None

    def of(self, status: int) -> str | None:
        """The metric for an answer with that status."""
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR and self.failed is not None:
            return self.failed
        return self.refused if status >= HTTPStatus.BAD_REQUEST else self.served


class Router(APIGatewayHttpResolver):
    """A router for HTTP API events (payload 2.0) that knows which credential callers use; `nosniff` on every answer
    keeps browsers from guessing another media type.

    `answer_headers` are set on the answer to the current request, whatever it is, even a problem.
    """

    def __init__(self, access: AccessSettings, counted: AnswerMetrics | None = None) -> None:
        super().__init__()
        self.access = access
        self.counted = counted
        self.answer_headers: dict[str, str] = {}
        self._read: dict[Callable[[Router], Any], Any] = {}

    def resolve(self, event: Mapping[str, Any], context: LambdaContext) -> dict[str, Any]:
        self.answer_headers = {NO_SNIFFING.name: NO_SNIFFING.example}
        self._read = {}
        answer = super().resolve(event, context)
        # Set here and not in a middleware, because errors bypass middlewares.
        answer["headers"] |= self.answer_headers
        if self.counted is not None and (name := self.counted.of(answer["statusCode"])) is not None:
            metrics.add_metric(name, MetricUnit.Count, 1)
        return answer

    def read_once[Read](self, read: Callable[[Router], Read]) -> Read:
        """What `read` reads from the current request: its price and its operation need the same, and parse it once."""
        if read not in self._read:
            self._read[read] = read(self)
        result: Read = self._read[read]
        return result
