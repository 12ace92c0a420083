"""Logs, metrics and traces, with Powertools; the service name and namespace come from template.yaml."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from aws_lambda_powertools import Logger, Metrics, Tracer
from aws_lambda_powertools.logging import correlation_paths
from aws_lambda_powertools.metrics import MetricUnit, single_metric

from darkroom.ports import UnreadableRow

logger = Logger()
metrics = Metrics()
tracer = Tracer()

type Handler = Callable[..., dict[str, Any]]


def entry_point(*, of_gateway: bool = False, has_metrics: bool = True) -> Callable[[Handler], Handler]:
    """Decorates a Lambda handler: its log lines carry the invocation, and the request's id if API Gateway calls it
    (`of_gateway`), it is traced, and its metrics are emitted at the end.

    Without `has_metrics` the metrics are left out, because a function that emits none would get a warning at every end.
    """

    def decorate(handler: Handler) -> Handler:
        measured: Handler = metrics.log_metrics(handler, capture_cold_start_metric=True) if has_metrics else handler
        traced: Handler = tracer.capture_lambda_handler(measured, capture_response=False)
        path = correlation_paths.API_GATEWAY_HTTP if of_gateway else None
        logged: Handler = logger.inject_lambda_context(traced, correlation_id_path=path, clear_state=True)
        return logged

    return decorate


def report_unreadable(rows: Collection[UnreadableRow]) -> None:
    """Logs each unreadable row that was met, and counts them, zero included: an alarm watches the count."""
    for row in rows:
        logger.error("a row cannot be read", extra={"row_id": row.row_id, "reason": row.reason})
    with single_metric("RowsUnreadable", MetricUnit.Count, len(rows), default_dimensions={"service": logger.service}):
        pass
