"""A circuit breaker per service: while a service does not answer, nothing waits for it or is begun."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.metrics import MetricUnit, single_metric
from aws_lambda_powertools.utilities.circuit_breaker import (
    CircuitBreakerConfig,
    CircuitBreakerOpenError,
    CircuitState,
    CircuitTransition,
    circuit_breaker,
)
from aws_lambda_powertools.utilities.circuit_breaker.persistence import (
    CircuitBreakerPersistenceLayer,
    CircuitStateRecord,
)
from botocore.exceptions import ClientError

from darkroom.aws.clients import KEPT_BACK_SECONDS, within
from darkroom.aws.errors import is_outage, retryable
from darkroom.domain.errors import Retryable
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

_numbers = count(1)


class Circuit:
    """Watches all calls of one client, and refuses them with Retryable while its service does not answer.

    Its state belongs to this execution environment, and a new client's circuit is closed.
    """

    def __init__(self, client: BaseClient, service: str, harmless_read: Callable[[], object]) -> None:
        self.service = service
        self._harmless_read = harmless_read
        # Powertools counts failures by name for the whole process; each client's circuit needs its own name.
        self._name = f"{service}-{next(_numbers)}"
        self._memory = _Memory()
        call: Callable[[str, dict[str, Any]], Any] = client._make_api_call  # type: ignore[attr-defined]

        @circuit_breaker(
            name=self._name,
            persistence_store=self._memory,
            on_transition=self._tell,
            config=CircuitBreakerConfig(
                failure_threshold=FAILURES,
                recovery_timeout=RECOVERY_SECONDS,
                success_threshold=1,
                ignored_exceptions=Retryable,  # the call was not made: the work's time was up
                local_cache_max_age=0,
            ),
        )
        def outcome(operation: str, arguments: dict[str, Any]) -> Any:
            try:
                return call(operation, arguments)
            except Exception as error:
                if is_outage(error) or isinstance(error, Retryable):
                    raise
                return error  # still an answer, such as a failed condition

        def guarded(operation: str, arguments: dict[str, Any]) -> Any:
            try:
                answer = outcome(operation, arguments)
            except CircuitBreakerOpenError as error:
                raise Retryable(
                    f"{service} has not answered lately: {operation} was not tried",
                    retry_after_seconds=RECOVERY_SECONDS,
                ) from error
            if isinstance(answer, Exception):
                raise answer
            return answer

        # Below all of the client's methods, so that calls of paginators and Powertools are watched too.
        client._make_api_call = guarded  # type: ignore[attr-defined]

    def require_healthy(self) -> None:
        """Raises Retryable while the service is known not to answer. After the pause the service is probed by a
        harmless read, so that no upload or attempt has to try it out."""
        if self._memory.get_state(self._name).state is CircuitState.CLOSED:
            return
        with (
            within(PROBE_SECONDS + KEPT_BACK_SECONDS),
            suppress(ClientError),  # no such object, or access denied: an answer
            retryable(f"asking whether {self.service} answers"),
        ):
            self._harmless_read()

    def _tell(self, transition: CircuitTransition) -> None:
        states = {"from": str(transition.from_state), "to": str(transition.to_state)}
        logger.warning("circuit changed", extra={"dependency": self.service, **states})
        if transition.to_state is CircuitState.OPEN and transition.from_state is CircuitState.CLOSED:
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


class _Memory(CircuitBreakerPersistenceLayer):
    """A circuit's state in this process. Nothing competes for the probe: an environment serves one event at a time."""

    def __init__(self) -> None:
        super().__init__()
        self._records: dict[str, CircuitStateRecord] = {}

    def _get_record(self, name: str) -> CircuitStateRecord | None:
        return self._records.get(name)

    def _put_record(
        self, record: CircuitStateRecord, condition: str | None = None, expected_opened_at: int | None = None
    ) -> None:
        self._records[record.name] = record

    def _update_record(self, record: CircuitStateRecord) -> None:
        self._records[record.name] = record
