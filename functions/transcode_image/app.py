"""The lanes' worker: develops each delivered image; a failed record comes back later without the rest of its batch."""

from __future__ import annotations

import traceback
from functools import partial
from typing import Any, NoReturn

from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit, single_metric
from aws_lambda_powertools.utilities.typing import LambdaContext

from darkroom.bookkeeping import bookkeeping
from darkroom.domain.images.image import Image
from darkroom.domain.images.service_level import NO_OUTCOMES, SUCCEEDED, Outcomes, end_of, failed_attempt
from darkroom.domain.images.timeline import AttemptTimeline
from darkroom.domain.kernel.errors import NeedsOperator, Retryable
from darkroom.domain.kernel.fingerprint import fingerprint
from darkroom.domain.kernel.instants import Milliseconds, rfc3339
from darkroom.domain.kernel.message import read_message
from darkroom.event_source import Record, read_records, settle_each
from darkroom.operations.images.transcode_image import (
    Early,
    Finished,
    Outcome,
    Postponed,
    ReceivedMessage,
    TryAgain,
    postponed_by,
    transcode_image,
)
from darkroom.operations.kernel.check_message import check_message
from darkroom.operations.sweeping.worker_counts import (
    OutcomeCounter,
    ThroughputCounter,
    report_outcomes,
    report_throughput,
)
from darkroom.telemetry import entry_point, follow, lines_about, logger, metrics, report_rejected
from darkroom.wiring.images.transcode_image import wire
from darkroom.wiring.kernel.runtime import within

ports, worker = wire()
counter, outcomes = ThroughputCounter(), OutcomeCounter()

LAST_WORDS_SECONDS = 1.0
"""The part of the function's time that the last AWS call leaves for the answer and the logs."""


def settle(record: Record, lambda_context: LambdaContext, *, received_at: Milliseconds) -> None:
    began, is_settled, is_paused = ports.clock(), False, False
    marks = AttemptTimeline(instants={"enqueued": record.sent_at, "received": received_at})
    try:
        with lines_about(message_id=record.message_id, receive_count=record.receive_count):
            is_paused = develop(record, lambda_context, marks) == "paused"
        is_settled = True
    finally:
        # What is only put aside says nothing of how fast the lane works.
        if (lane := worker.lane_of(record.queue)) is not None and not is_paused:  # guard: pause-parking-is-no-work
            # A lane's message has its tenant as its group, and one by somebody else takes no time.
            busy = ports.clock() - began
            counter.count(lane, is_settled=is_settled, busy_milliseconds=busy, tenant_id=record.group)


def develop(record: Record, lambda_context: LambdaContext, marks: AttemptTimeline) -> str | None:
    """Returns why the delivery is settled, if its message was processed."""
    try:
        remaining_milliseconds = lambda_context.get_remaining_time_in_millis()
        with within(remaining_milliseconds / 1000 - LAST_WORDS_SECONDS):
            mistrust = check_message(worker.checking, worker.source_of(record.queue), record)
            if mistrust is not None:  # guard: signatures-lane-worker
                report_rejected(mistrust)
                return None
            metrics.add_metric("ReceiveCount", MetricUnit.NoUnit, record.receive_count)
            message = read_message(record.body)
            logger.append_keys(
                image_id=message.image_id, tenant_id=message.tenant_id, lane=message.lane, run=message.run
            )
            outcome: Outcome = transcode_image(
                ports,
                ReceivedMessage(
                    message=message,
                    receipt=f"{lambda_context.aws_request_id}/{record.message_id}",
                    request_id=lambda_context.aws_request_id,
                    receive_count=record.receive_count,
                    deadline=ports.clock() + remaining_milliseconds,
                    marks=marks,
                    on_row=follow,
                    hide=partial(worker.hide, worker.source_of(record.queue), record.receipt_handle),
                ),
            )
    # guard: signatures-no-key-postpones
    except Retryable as outage:  # no key can be read, or a dead letter cannot be placed
        outcome = postponed_by(outage, receive_count=record.receive_count, jitter=ports.jitter)
    except Exception as bug:
        # The message stays hidden for its visibility timeout, comes back by itself and ends as a dead letter.
        logger.exception("delivery failed")
        metrics.add_metric("MessagesFailed", MetricUnit.Count, 1)
        if (lane := worker.lane_of(record.queue)) is not None:
            outcomes.count(lane, failed_attempt(record.message_id), ports.clock())
        _report_run(marks, "crashed", bug)
        raise
    _report(outcome, marks)
    _count(outcome)
    if outcome.returns_in_seconds is not None:
        _come_back(record, outcome.returns_in_seconds, outcome.cause or Retryable("an edit waits"))
    return outcome.reason if isinstance(outcome, Finished) else None


def _report(outcome: Outcome, marks: AttemptTimeline) -> None:
    match outcome:
        case Finished(reason=reason, cause=cause):
            if cause is not None:
                logger.error("image given up", exc_info=cause)
            if marks.attempt:  # guard: logs-run-needs-attempt
                _report_run(marks, reason, cause)
            else:
                logger.info("delivery settled", extra={"outcome": reason})
            metrics.add_metric(_METRICS.get(reason, "DeliveriesWithoutWork"), MetricUnit.Count, 1)
        case TryAgain(delay_seconds=delay_seconds, cause=cause, image=image):
            logger.error(
                "attempt failed",
                exc_info=cause,
                extra={"attempt": image.attempt, "status": image.status, "delay_seconds": delay_seconds},
            )
            metrics.add_metric("AttemptsFailed", MetricUnit.Count, 1)
            _report_run(marks, "put_back", cause)
        case Early(delay_seconds=delay_seconds):
            logger.info("delivery before its time", extra={"delay_seconds": delay_seconds})
            metrics.add_metric("DeliveriesEarly", MetricUnit.Count, 1)
        case Postponed(delay_seconds=delay_seconds, cause=cause):
            logger.warning("delivery postponed", extra={"cause": str(cause), "delay_seconds": delay_seconds})
            metrics.add_metric("DeliveriesPostponed", MetricUnit.Count, 1)
            _report_run(marks, "postponed", cause)


def _report_run(marks: AttemptTimeline, outcome: str, cause: Exception | None) -> None:
    """Logs the one line of an attempt, if the delivery has begun one: what became of it, and when it reached what."""
    if marks.attempt:
        logger.info(
            "run",
            extra={
                "run": marks.run,
                "attempt": marks.attempt,
                "outcome": outcome,
                "cause": None if cause is None else type(cause).__name__,
                "fingerprint": None if cause is None else _fingerprint(cause),
                "accepted_at": rfc3339(marks.instants["accepted"]),
                "milliseconds": marks.since_accepted(),
            },
        )


def _fingerprint(cause: Exception) -> str:
    """The same as that of the attempt in the row."""
    guilty = (cause.__cause__ or cause) if isinstance(cause, NeedsOperator) else cause
    return fingerprint(type(guilty).__name__, "".join(traceback.format_exception(guilty)))


def _count(outcome: Outcome) -> None:
    """Counts an attempt, and an image that ended, for its lane's service level."""
    match outcome:
        case TryAgain(image=image):
            outcomes.count(image.lane, failed_attempt(image.image_id), ports.clock())
        case Finished(image=image, reason=reason, cause=cause, waiting_since=since) if image is not None:
            if since is not None:  # guard: pause-worker-counts-from-resume
                since = ports.pauses().counted_since(since, image.lane, image.tenant_id)
            end = end_of(image, waiting_since=since, lane=ports.service[image.lane])
            outcomes.count(image.lane, _attempt_of(image, reason, cause) + end, ports.clock())
            if since is not None and image.dead_letter is not None:
                metrics.add_metric("ImagesGivenUp", MetricUnit.Count, 1)
            if end.ended and since is not None and image.completed_at is not None:
                lane_metrics = EphemeralMetrics()  # `single_metric` would drop all but the first
                lane_metrics.add_dimension("lane", image.lane)
                lane_metrics.add_metric("ImageSeconds", MetricUnit.Seconds, (image.completed_at - since) / 1000)
                lane_metrics.add_metric("ImagesEnded", MetricUnit.Count, end.ended)  # guard: worker-ended-images-metric
                if end.bad:
                    lane_metrics.add_metric("ImagesBad", MetricUnit.Count, end.bad)
                lane_metrics.flush_metrics()


def _attempt_of(image: Image, reason: str, cause: Exception | None) -> Outcomes:
    if cause is not None:
        return failed_attempt(image.image_id)
    return SUCCEEDED if reason in ("done", "failed") else NO_OUTCOMES


def _report_counts(lambda_context: LambdaContext) -> None:
    """Reports how the attempts and images ended to the sweeper, and how fast the lanes drain to load shedding, when
    there is enough to report."""
    # The deliveries are settled: raising would bring all of them back.
    with (
        bookkeeping("counts not reported"),  # guard: drain-report-failure-contained
        within(lambda_context.get_remaining_time_in_millis() / 1000 - LAST_WORDS_SECONDS),
    ):
        report_outcomes(worker.outcomes, outcomes)
        for lane, work in report_throughput(worker.throughput, counter).items():
            drain = ports.service[lane].concurrency * work.settled * 1000 / work.busy_milliseconds
            dimensions = {"service": logger.service, "lane": lane}
            with single_metric("DrainPerSecond", MetricUnit.CountPerSecond, drain, default_dimensions=dimensions):
                pass


def _come_back(record: Record, delay_seconds: int, cause: Exception) -> NoReturn:
    """Reports the record as failed, so that its message comes back after `delay_seconds` to the queue it came from."""
    try:
        worker.change_visibility(worker.source_of(record.queue), record.receipt_handle, delay_seconds)
    except Retryable as error:
        logger.warning("the message comes back after its visibility timeout", extra={"cause": str(error)})
    raise cause  # guard: retry-failed-record-reported


_METRICS = {
    "done": "ImagesDone",
    "failed": "ImagesFailed",
    "gave_up": "ImagesFailed",
    "expired": "ImagesExpired",
}


@entry_point()
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    received_at = ports.clock()
    answer = settle_each(read_records(event), lambda record: settle(record, context, received_at=received_at))
    _report_counts(context)
    return answer
