"""A circuit breaker per service: while a service does not answer, nothing waits for it or is begun."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.metrics import MetricUnit, single_metric
from botocore.exceptions import ClientError

from darkroom.aws.kernel.clients import KEPT_BACK_SECONDS, within
from darkroom.aws.kernel.errors import is_outage, retryable
from darkroom.domain.kernel.errors import Retryable
from darkroom.telemetry import logger

if TYPE_CHECKING:
    from botocore.client import BaseClient
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client

FAILURES = 3
"""Calls in a row, each with its retry, after which the service is considered down."""

RECOVERY_SECONDS = 20
"""How long the service is then left alone before it is probed."""

PROBE_SECONDS = 3.0
"""The time limit of a probe: the event that it falls into waits for it."""

NOBODY = "0" * 26
"""No image has this id, so asking for it is harmless, and every answer is a sign of life."""


class Circuit:
    """Watches all calls of one client, and refuses them with Retryable while its service does not answer.

    It is closed, and opens after `FAILURES` failed calls in a row. After `RECOVERY_SECONDS` one call is let through:
    an answer closes it, a failure leaves it open for as long again. Its state belongs to this execution environment,
    and a new client's circuit is closed.
    """

    def __init__(self, client: BaseClient, service: str, harmless_read: Callable[[], object]) -> None:
        self.service = service
        self._harmless_read = harmless_read
        self._lock = threading.Lock()  # calls may be made in parallel
        self._failures = 0
        self._open_until: float | None = None
        self._call: Callable[[str, dict[str, Any]], Any] = client._make_api_call  # type: ignore[attr-defined]
        # Below all of the client's methods, so that calls of paginators and Powertools are watched too.
        client._make_api_call = self._guarded_call  # type: ignore[attr-defined]

    def require_healthy(self) -> None:
        """Raises Retryable while the service is known not to answer. After the pause the service is probed by a
        harmless read, so that no upload or attempt has to try it out."""
        if self._open_until is None:
            return
        with (
            within(PROBE_SECONDS + KEPT_BACK_SECONDS),
            suppress(ClientError),  # no such object, or access denied: an answer
            retryable(f"asking whether {self.service} answers"),
        ):
            self._harmless_read()

    def _guarded_call(self, operation: str, arguments: dict[str, Any]) -> Any:
        self._require_passage(operation)
        try:
            answer = self._call(operation, arguments)
        except Retryable:  # guard: circuit-unmade-call-ignored
            raise  # the call was not made: the work's time was up
        except Exception as error:
            if is_outage(error):
                self._note_failure()
            else:
                # guard: circuit-answer-resets-count
                self._note_answer()  # such as a failed condition
            raise
        self._note_answer()
        return answer

    def _require_passage(self, operation: str) -> None:
        with self._lock:
            if self._open_until is None:
                return
            now = time.time()  # a monotonic clock may stand still while Lambda freezes the process
            if now < self._open_until:  # guard: circuit-open-refuses-calls
                raise Retryable(
                    f"{self.service} has not answered lately: {operation} was not tried",
                    retry_after_seconds=RECOVERY_SECONDS,
                )
            # guard: circuit-single-probe
            self._open_until = now + RECOVERY_SECONDS  # this call finds out for all others

    def _note_answer(self) -> None:
        with self._lock:
            was_open, self._failures, self._open_until = self._open_until is not None, 0, None
        if was_open:
            logger.warning("circuit closed", extra={"dependency": self.service})

    def _note_failure(self) -> None:
        with self._lock:
            self._failures += 1
            if self._failures < FAILURES:
                return
            was_open, self._open_until = self._open_until is not None, time.time() + RECOVERY_SECONDS
        if not was_open:
            logger.warning("circuit opened", extra={"dependency": self.service})
            dimensions = {"service": logger.service, "dependency": self.service}
            with single_metric("CircuitOpened", MetricUnit.Count, 1, default_dimensions=dimensions):
                pass


def of_dynamodb(client: DynamoDBClient, table_name: str, key: str = "image_id") -> Circuit:
    """Adds a circuit to a client that may read a table with that key, such as the table of image rows."""
    return Circuit(client, "dynamodb", lambda: client.get_item(TableName=table_name, Key={key: {"S": NOBODY}}))


def of_s3(client: S3Client, bucket_name: str, prefix: str = "outputs") -> Circuit:
    """Adds a circuit to a client that may read the bucket's objects under that prefix."""
    return Circuit(client, "s3", lambda: client.head_object(Bucket=bucket_name, Key=f"{prefix}/{NOBODY}"))


def require_all_healthy(*circuits: Circuit) -> Callable[[], None]:
    """Returns a function that raises Retryable while one of the services is known not to answer."""

    def require_healthy() -> None:
        for circuit in circuits:
            circuit.require_healthy()

    return require_healthy
