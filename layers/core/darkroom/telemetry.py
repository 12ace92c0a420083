"""Logs and metrics, with Powertools; the service name and namespace come from template.yaml."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from functools import wraps
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.logging import correlation_paths
from aws_lambda_powertools.metrics import MetricUnit, single_metric

from darkroom.domain.signature import Mistrust
from darkroom.ports import UnreadableRow

logger = Logger()
metrics = Metrics()

type Handler = Callable[..., dict[str, Any]]

_calls: list[tuple[str, float]] = []
"""The operations of AWS that the current invocation has called, each with its seconds. Lists may be appended to in
several threads."""


def entry_point(*, of_gateway: bool = False, has_metrics: bool = True) -> Callable[[Handler], Handler]:
    """Decorates a Lambda handler: its log lines carry the invocation, and the request's id if API Gateway calls it
    (`of_gateway`); its last line says what took its time; and its metrics are emitted at the end.

    Without `has_metrics` the metrics are left out, because a function that emits none would get a warning at every end.
    """

    def decorate(handler: Handler) -> Handler:
        measured: Handler = metrics.log_metrics(handler, capture_cold_start_metric=True) if has_metrics else handler
        path = correlation_paths.API_GATEWAY_HTTP if of_gateway else None
        logged: Handler = logger.inject_lambda_context(_timed(measured), correlation_id_path=path, clear_state=True)
        return logged

    return decorate


def _timed(handler: Handler) -> Handler:
    @wraps(handler)
    def timed(*arguments: Any, **options: Any) -> dict[str, Any]:
        began = time.perf_counter()
        _calls.clear()
        try:
            return handler(*arguments, **options)
        finally:
            total = time.perf_counter() - began
            logger.info("timing", extra={"milliseconds": _milliseconds(total), "aws_calls": _summary()})
            _calls.clear()

    return timed


def count_call(operation: str, seconds: float) -> None:
    """Counts a call to AWS, its retries included, for the invocation's last line."""
    _calls.append((operation, seconds))


def _summary() -> dict[str, dict[str, float]]:
    """How often each operation was called, and the milliseconds of all these calls."""
    taken: dict[str, list[float]] = {}
    for operation, seconds in _calls:
        taken.setdefault(operation, []).append(seconds)
    return {
        operation: {"count": len(seconds), "milliseconds": _milliseconds(sum(seconds))}
        for operation, seconds in taken.items()
    }


def _milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 1)


def report_unreadable(rows: Collection[UnreadableRow]) -> None:
    """Logs each unreadable row that was met, and counts them, zero included: an alarm watches the count."""
    for row in rows:
        logger.error("a row cannot be read", extra={"row_id": row.row_id, "reason": row.reason})
    with single_metric("RowsUnreadable", MetricUnit.Count, len(rows), default_dimensions={"service": logger.service}):
        pass


def report_rejected(mistrust: Mistrust, **details: str) -> None:
    """Logs and counts a message that did not verify."""
    logger.error("message rejected", extra={"reason": mistrust.value, **details})
    metrics.add_metric("MessagesRejected", MetricUnit.Count, 1)
