"""Logs and metrics, with Powertools; the service name and namespace come from template.yaml.

Every line has a `trace_id`, X-Ray's id of the invocation, and a `correlation_id`: the id of the request that is
answered, or that accepted the image which the line is about; where neither is known, the id of the invocation. A line
about an image has its `image_id`.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Protocol

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter
from aws_lambda_powertools.metrics import MetricUnit, single_metric

from darkroom import IS_IN_LAMBDA
from darkroom.bookkeeping import log as bookkeeping_log
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.ids import is_image_id
from darkroom.domain.kernel.signature import VerificationFailure
from darkroom.ports.kernel import UnreadableRow
from darkroom.settings import TelemetrySettings

if TYPE_CHECKING:
    from collections import Counter

    from aws_lambda_powertools.logging.types import LogRecord

    from darkroom.domain.images.image import Image


class _Lines(LambdaPowertoolsFormatter):
    """Powertools' lines, in which the trace's id is named as the other ids are; without what is the same on each line
    of a function, which costs by the byte."""

    def serialize(self, log: LogRecord) -> str:
        line: Any = log
        for name in ("function_arn", "function_memory_size"):
            line.pop(name, None)
        if (trace_id := line.pop("xray_trace_id", None)) is not None:
            line["trace_id"] = trace_id
        return super().serialize(line)


logger = Logger(logger_formatter=_Lines())
# guard: metrics-cold-starts-in-one
metrics = Metrics(function_name="all")  # of cold starts, which are one metric: each function's would cost $0.30 a month

bookkeeping_log.handlers, bookkeeping_log.propagate = [logger.registered_handler], False

type LambdaHandler = Callable[..., dict[str, Any]]

TIMING_SHARE = TelemetrySettings.read().timing_share

SLOW_SECONDS = 3.0
"""The time of an invocation is always logged if it took so long, or failed in whole or in part."""

_calls: list[tuple[str, float]] = []
"""The operations of AWS that the current invocation has called, each with its seconds. Lists may be appended to in
several threads."""


def entry_point(*, of_gateway: bool = False, has_metrics: bool = True) -> Callable[[LambdaHandler], LambdaHandler]:
    """Decorates a Lambda handler: its log lines carry the invocation, and the request's id if API Gateway calls it
    (`of_gateway`); its last line says what took its time; and its metrics are emitted at the end.

    Without `has_metrics` the metrics are left out, because a function that emits none would get a warning at every end.
    """

    def decorate(handler: LambdaHandler) -> LambdaHandler:
        measured: LambdaHandler = (
            metrics.log_metrics(handler, capture_cold_start_metric=True) if has_metrics else handler
        )
        identified = _identified(_timed(measured), of_gateway=of_gateway)
        logged: LambdaHandler = logger.inject_lambda_context(identified, clear_state=True)
        if IS_IN_LAMBDA:
            gc.freeze()  # invocations need not look for garbage among all that was imported either
            gc.enable()  # guard: cold-start-garbage-collection
        return logged

    return decorate


def _identified(handler: LambdaHandler, *, of_gateway: bool) -> LambdaHandler:
    @wraps(handler)
    def identified(event: Any, context: Any) -> dict[str, Any]:
        request = event.get("requestContext", {}) if of_gateway else {}
        logger.set_correlation_id(request.get("requestId") or context.aws_request_id)
        return handler(event, context)

    return identified


@contextmanager
def lines_about(**keys: object) -> Iterator[None]:
    """In this block each line has these keys, and those that are appended in it; after it, those of before again."""
    before = dict(logger.get_current_keys())
    logger.append_keys(**keys)
    try:
        yield
    finally:
        logger.remove_keys(logger.get_current_keys().keys() - before.keys())  # guard: logs-keys-per-record
        logger.append_keys(**before)  # guard: logs-request-per-record


def follow(image: Image) -> None:
    """From here on, each line has the id of the request that accepted the image; a tombstone does not know it."""
    if image.correlation_id:  # guard: logs-tombstone-keeps-request
        logger.set_correlation_id(image.correlation_id)


def _timed(handler: LambdaHandler) -> LambdaHandler:
    @wraps(handler)
    def timed(*arguments: Any, **options: Any) -> dict[str, Any]:
        began = time.perf_counter()
        _calls.clear()
        answer: dict[str, Any] | None = None
        try:
            answer = handler(*arguments, **options)
            return answer
        finally:
            total = time.perf_counter() - began
            # guard: logs-failed-invocation-timing
            if has_failed(answer) or total >= SLOW_SECONDS or random.random() < TIMING_SHARE:
                logger.info("timing", extra={"milliseconds": _milliseconds(total), "aws_calls": _summary()})
            _calls.clear()

    return timed


def has_failed(answer: Mapping[str, Any] | None) -> bool:
    """Whether a handler with this answer failed: it raised, had an internal error, or reported a record."""
    if answer is None:
        return True
    # guard: logs-failed-record-timing
    return bool(answer.get("batchItemFailures")) or answer.get("statusCode", 0) >= HTTPStatus.INTERNAL_SERVER_ERROR


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
    """Logs each unreadable row that was met, and counts them if there are any: an alarm watches the count."""
    if not rows:
        return
    for row in rows:
        about = {"image_id": row.row_id} if is_image_id(row.row_id) else {}
        logger.error("a row cannot be read", extra={"row_id": row.row_id, "reason": row.reason, **about})
    with single_metric("RowsUnreadable", MetricUnit.Count, len(rows), default_dimensions={"service": logger.service}):
        pass


def emit_unless_zero(name: str, unit: MetricUnit, value: float, **dimension: str) -> None:
    """Emits a metric that is not zero: an idle stack pays for none of them."""
    if value == 0:  # guard: metrics-zero-not-emitted
        return
    with single_metric(name, unit, value, default_dimensions={"service": logger.service, **dimension}):
        pass


def report_unmeasured(problems: Mapping[str, Exception]) -> None:
    """Logs what could not be measured, by its name: a warning if it can be later."""
    for what, error in problems.items():
        if isinstance(error, Retryable):
            logger.warning("it cannot be measured now", extra={"what": what, "cause": str(error)})
        else:
            logger.error("it cannot be measured", exc_info=error, extra={"what": what})


class SweepResult(Protocol):
    """What a sweep did, by outcome, and what it could not do."""

    outcomes: Counter[str]
    complete: bool
    unreadable: list[UnreadableRow]
    errors: dict[str, Exception]
    unlisted: dict[str, Exception]

    @property
    def late_seconds(self) -> object:
        """How late what it could not do is, as it is logged."""


def report_sweep(sweep: SweepResult, *, of: str, late_seconds: Mapping[str, float], behind: float) -> dict[str, Any]:
    """Emits how late each kind is of what a sweep could not do, and how far `behind` the worst is, which an alarm
    watches; logs what could not be looked at `of` its rows (`image`), and a summary, which it returns."""
    for kind, seconds in late_seconds.items():
        emit_unless_zero("SweepLateSeconds", MetricUnit.Seconds, seconds, kind=kind)
    emit_unless_zero("SweepBehind", MetricUnit.NoUnit, behind)
    report_unreadable(sweep.unreadable)
    for row_id, error in sweep.errors.items():
        logger.error(f"an {of} could not be looked at", exc_info=error, extra={f"{of}_id": row_id})
    summary = {"outcomes": dict(sweep.outcomes), "complete": sweep.complete, "late_seconds": sweep.late_seconds}
    logger.info("swept", extra=summary)
    for shard, error in sweep.unlisted.items():
        logger.error("what is due could not be listed", exc_info=error, extra={"shard": shard})
    return summary


def report_rejected(mistrust: VerificationFailure, **details: str) -> None:
    """Logs and counts a message that did not verify."""
    logger.error("message rejected", extra={"reason": mistrust.value, **details})
    metrics.add_metric("MessagesRejected", MetricUnit.Count, 1)
