"""Delivers webhooks: each message of a batch in a thread of its own, because a delivery is a wait."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import partial
from typing import Any

from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from darkroom.domain.events.event import image_id_of_event
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.lanes import DELIVERY
from darkroom.domain.kernel.signature import NotVerified, VerificationFailure
from darkroom.domain.webhooks.delivery import UnreadableDeliveryMessage, event_id_of, read_delivery_message
from darkroom.domain.webhooks.first_attempts import burn_of
from darkroom.event_source import Record, come_back, read_records
from darkroom.operations.kernel.check_message import reject_message, verify
from darkroom.operations.webhooks.deliver_event import Delivered, deliver_event
from darkroom.ports.kernel import UnreadableRow
from darkroom.telemetry import emit_unless_zero, entry_point, logger, metrics, report_rejected, report_unreadable
from darkroom.wiring.kernel.runtime import at_once, within
from darkroom.wiring.webhooks.deliver_event import wire

ports, checking = wire()

LAST_WORDS_SECONDS = 1.0
"""The part of the function's time that the last AWS call leaves for the answer and the logs."""


def attempt(record: Record) -> Delivered | VerificationFailure | Exception:
    """What the message came to, why it does not verify, or what went wrong."""
    try:
        verify(checking.message_keys, DELIVERY, record)  # guard: signatures-delivery-worker
        # The receipt is another each time that the message comes; a row holds some of them, so they are kept short.
        receipt = hashlib.sha256(record.receipt_handle.encode()).hexdigest()[:32]
        return deliver_event(ports, read_delivery_message(record.body), claimed_by=receipt)
    except NotVerified as error:
        return error.mistrust
    except Exception as error:  # whatever it is, it is this message's, and no reason to fail any other
        return error


def is_rejected(record: Record, mistrust: VerificationFailure) -> bool:
    """Whether the dead letter of a message that does not verify is placed. If not, the message must come again, because
    no row stands for it."""
    try:
        reject_message(checking, DELIVERY, record, mistrust)
    except Exception as error:  # guard: signatures-delivery-isolated
        logger.error("a dead letter was not placed", exc_info=error, extra={"message_id": record.message_id})
        return False
    report_rejected(mistrust, message_id=record.message_id)
    return True


@entry_point()
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    records = read_records(event)
    with within(context.get_remaining_time_in_millis() / 1000 - LAST_WORDS_SECONDS):
        results = at_once([partial(attempt, record) for record in records])
        # Last: however many somebody sends, no delivery waits for them.
        failed = [
            record
            for record, result in zip(records, results, strict=True)
            if isinstance(result, VerificationFailure)
            and not is_rejected(record, result)  # guard: signatures-delivery-retried
        ]
    sent: list[Delivered] = []
    unreadable: list[UnreadableRow] = []
    for record, result in zip(records, results, strict=True):
        message = {"message_id": record.message_id, **about(record.body)}
        if isinstance(result, Delivered):
            log_delivery(result, message)
            sent += [] if result.answer is None else [result]
            unreadable += result.unreadable
        elif isinstance(result, Retryable):
            unreadable += [result] if isinstance(result, UnreadableRow) else []
            # Its row is due, and the sweeper sends another message: this one would only come back later than that.
            logger.warning("a delivery was postponed", extra={**message, "cause": str(result)})
        elif isinstance(result, Exception):
            logger.error("a delivery failed here", exc_info=result, extra=message)
            failed.append(record)
    report_unreadable(unreadable)
    count(sent)
    return come_back(failed)


def count(sent: Sequence[Delivered]) -> None:
    """Counts the attempts that were made, and for the service level the first ones that count for it."""
    answers = [delivered.answer for delivered in sent if delivered.answer is not None]
    metrics.add_metric("DeliveriesSent", MetricUnit.Count, len(answers))
    metrics.add_metric("DeliveriesFailed", MetricUnit.Count, sum(not answer.is_success for answer in answers))
    for first in (delivered.first for delivered in sent if delivered.first is not None):
        metrics.add_metric("FirstAttemptSeconds", MetricUnit.Seconds, first.seconds)
        metrics.add_metric("FirstAttemptBurn", MetricUnit.NoUnit, burn_of(is_bad=first.is_bad))
    emit_unless_zero("DeliveriesRepeated", MetricUnit.Count, sum(delivered.may_repeat for delivered in sent))


def about(body: str) -> dict[str, str | None]:
    """What a message's log lines say about its delivery: its endpoint, its event, and the image that this is about."""
    try:
        message = read_delivery_message(body)
    except UnreadableDeliveryMessage:
        return {"delivery": body}
    event_id = event_id_of(message.delivery_id)
    return {
        "tenant_id": message.tenant_id,
        "webhook_id": message.endpoint_id,
        "delivery_id": message.delivery_id,
        "event_id": event_id,
        "image_id": image_id_of_event(event_id),
    }


def log_delivery(delivered: Delivered, message: dict[str, str | None]) -> None:
    """Logs one delivery."""
    answer = delivered.answer
    details = {} if answer is None else {"status": answer.status, "ms": answer.milliseconds, "error": answer.error}
    if delivered.first is not None and delivered.first.is_bad:
        details["bad_first_attempt"] = f"{delivered.first.seconds:.1f} s"
    logger.info("delivery", extra={**message, "outcome": delivered.outcome, **details})
