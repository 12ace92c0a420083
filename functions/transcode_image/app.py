"""The lanes' worker: develops each delivered image; a failed record comes back later without its neighbours."""

from __future__ import annotations

import random
from typing import Any, NamedTuple, NoReturn

from aws_lambda_powertools.metrics import MetricUnit, single_metric
from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.typing import LambdaContext

from darkroom import wiring
from darkroom.domain.errors import Retryable
from darkroom.domain.hold import LANE_DELAY_SECONDS
from darkroom.domain.message import read_message
from darkroom.domain.retry import MAX_RECEIVES, OUTAGE
from darkroom.operations.enqueue import seconds_until
from darkroom.operations.hand_in_timesheets import Tally, hand_in_timesheets
from darkroom.operations.transcode_image import Delivery, Early, Finished, TryAgain, transcode_image
from darkroom.telemetry import entry_point, logger, metrics, tracer

ports = wiring.transcode_image()
# A handler that raises because every record failed counts as a function error, and Lambda slows the whole lane down.
processor = BatchProcessor(event_type=EventType.SQS, raise_on_entire_batch_failure=False)
tally = Tally()


COSTLIEST_IMAGE_MILLISECONDS = 30_000
"""The costliest recipe takes 25 seconds on the worst of pictures, and its objects a few to be read and put."""

NEXT_TURN_SECONDS = 10
"""When a message comes back for which too little time was left: another worker may have it at once."""

LAST_WORDS_SECONDS = 1.0
"""What the last call to AWS leaves of the function's time: the answer and the logs."""


class PutOff(NamedTuple):
    """The delivery came to nothing, through no fault of the image: `cause` says why.

    The image was not claimed, or what came of it could not be written; either way its row is due for a look some day.
    """

    delay_seconds: int
    cause: Retryable


def record_handler(record: SQSRecord, lambda_context: LambdaContext) -> None:
    began, is_settled = wiring.clock(), False
    try:
        settle(record, lambda_context)
        is_settled = True
    finally:
        if (lane := _lane_of(record)) is not None:
            tally.count(lane, is_settled=is_settled, busy_milliseconds=wiring.clock() - began)


@tracer.capture_method(capture_response=False)
def settle(record: SQSRecord, lambda_context: LambdaContext) -> None:
    logger.remove_keys(["image_id", "lane", "run"])  # of the batch's record before this one
    logger.set_correlation_id(None)
    receive_count = int(record.attributes.approximate_receive_count)
    logger.append_keys(message_id=record.message_id, receive_count=receive_count)
    try:
        message = read_message(record.body)
        logger.append_keys(image_id=message.image_id, lane=message.lane, run=message.run)
        if _lane_of(record) not in (message.lane, None):
            # Put there by hand, or sent wrong: it is developed all the same, by workers that others wait for.
            logger.warning("a message of another lane", extra={"queue": record.event_source_arn})
            metrics.add_metric("DeliveriesMisrouted", MetricUnit.Count, 1)
        outcome = _deliver(
            Delivery(
                message=message,
                receipt=f"{lambda_context.aws_request_id}/{record.message_id}",
                request_id=lambda_context.aws_request_id,
                receive_count=receive_count,
                deadline=wiring.clock() + lambda_context.get_remaining_time_in_millis(),
                visibility_seconds=ports.visibility_seconds,
            ),
            lambda_context,
        )
    except Exception:
        # The message stays hidden for its visibility timeout, comes back by itself and ends as a dead letter.
        logger.exception("delivery failed")
        metrics.add_metric("DeliveriesFailed", MetricUnit.Count, 1)
        raise
    match outcome:
        case Finished(image=image, reason=reason, cause=cause):
            if image is not None:
                logger.set_correlation_id(image.correlation_id)
            if cause is not None:
                logger.error("image given up", exc_info=cause)
            logger.info("delivery settled", extra={"outcome": reason})
            metrics.add_metric(_METRICS.get(reason, "DeliveriesWithoutWork"), MetricUnit.Count, 1)
        case TryAgain(delay_seconds=delay_seconds, cause=cause, image=image, returns=returns):
            logger.set_correlation_id(image.correlation_id)
            logger.error(
                "attempt failed",
                exc_info=cause,
                extra={"attempt": image.attempt, "status": image.status, "delay_seconds": delay_seconds},
            )
            metrics.add_metric("AttemptsFailed", MetricUnit.Count, 1)
            if returns:
                _come_back(record, image.lane, delay_seconds, cause)
        case Early(image=image, process_at=process_at):
            logger.set_correlation_id(image.correlation_id)
            delay_seconds = seconds_until(process_at, wiring.clock())
            logger.info("delivery before its time", extra={"delay_seconds": delay_seconds})
            metrics.add_metric("DeliveriesEarly", MetricUnit.Count, 1)
            # Clocks differ by seconds. What comes much too early was put into the lane by hand: the row has it sent.
            if delay_seconds <= LANE_DELAY_SECONDS and receive_count < MAX_RECEIVES:
                _come_back(record, image.lane, delay_seconds, Retryable("before its time"))
        case PutOff(delay_seconds=delay_seconds, cause=cause):
            logger.warning("delivery put off", extra={"cause": str(cause), "delay_seconds": delay_seconds})
            metrics.add_metric("DeliveriesPutOff", MetricUnit.Count, 1)
            # After its last receive the message would come back as a dead letter of an image that has nothing wrong
            # with it. It may go: the row was written before it was sent, and is due for a look until the image ends,
            # so the sweeper sends another.
            if receive_count < MAX_RECEIVES:
                _come_back(record, message.lane, delay_seconds, cause)


def _deliver(delivery: Delivery, lambda_context: LambdaContext) -> Finished | TryAgain | Early | PutOff:
    """What comes of the delivery; nothing is claimed that cannot be finished, for that would use up an attempt."""
    remaining_milliseconds = lambda_context.get_remaining_time_in_millis()
    if remaining_milliseconds < COSTLIEST_IMAGE_MILLISECONDS:
        return PutOff(delay_seconds=NEXT_TURN_SECONDS, cause=Retryable("too little time is left for another image"))
    try:
        with wiring.within(remaining_milliseconds / 1000 - LAST_WORDS_SECONDS):
            ports.admit()
            return transcode_image(
                delivery,
                images=ports.images,
                originals=ports.originals,
                outputs=ports.outputs,
                once=ports.once(lambda_context),
                clock=wiring.clock,
                unit_random=random.random(),
                limits=ports.limits,
            )
    except Retryable as outage:
        return PutOff(delay_seconds=OUTAGE.delay_seconds(delivery.receive_count, random.random()), cause=outage)


def _lane_of(record: SQSRecord) -> str | None:
    """The lane whose queue the record came from, whatever its body says."""
    queue = record.event_source_arn.rpartition(":")[2]
    return next((lane for lane, url in ports.queue_urls.items() if url.rpartition("/")[2] == queue), None)


def _hand_in(lambda_context: LambdaContext) -> None:
    """Tells admission how fast the lanes drain, when there is enough to tell."""
    try:
        with wiring.within(lambda_context.get_remaining_time_in_millis() / 1000 - LAST_WORDS_SECONDS):
            handed_in = hand_in_timesheets(tally, timesheets=ports.timesheets, clock=wiring.clock)
    except Exception:  # the deliveries are settled: to raise would have all of them come again
        logger.exception("the timesheet could not be handed in")
        return
    for lane, work in handed_in.items():
        drain = ports.service[lane].concurrency * work.settled * 1000 / work.busy_milliseconds
        dimensions = {"service": logger.service, "lane": lane}
        with single_metric("DrainPerSecond", MetricUnit.CountPerSecond, drain, default_dimensions=dimensions):
            pass


def _come_back(record: SQSRecord, lane: str, delay_seconds: int, cause: Exception) -> NoReturn:
    """Reports the record as failed, so that its message comes back, after `delay_seconds`, to where it came from: the
    image's `lane`, as a rule."""
    try:
        ports.hide_for(_lane_of(record) or lane, record.receipt_handle, delay_seconds)
    except Retryable as error:
        logger.warning("the message comes back after its visibility timeout", extra={"cause": str(error)})
    raise cause


_METRICS = {
    "done": "ImagesDone",
    "failed": "ImagesFailed",
    "gave_up": "ImagesFailed",
    "expired": "ImagesExpired",
}


@entry_point()
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    answer = process_partial_response(event=event, record_handler=record_handler, processor=processor, context=context)
    _hand_in(context)
    return dict(answer)
