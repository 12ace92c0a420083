"""Logs, metrics and traces, by Powertools; the service name and namespace come from template.yaml."""

from __future__ import annotations

from collections.abc import Collection

from aws_lambda_powertools import Logger, Metrics, Tracer
from aws_lambda_powertools.metrics import MetricUnit, single_metric

from darkroom.ports import UnreadableRow

logger = Logger()
metrics = Metrics()
tracer = Tracer()


def report_unreadable(rows: Collection[UnreadableRow]) -> None:
    """Names each row that was met and could not be read, and counts them, zero included: an alarm watches for them."""
    for row in rows:
        logger.error("a row cannot be read", extra={"row_id": row.row_id, "reason": row.reason})
    with single_metric("RowsUnreadable", MetricUnit.Count, len(rows), default_dimensions={"service": logger.service}):
        pass
