"""The consumer of events that counts what each tenant uses in a day, and what it stores."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from darkroom.domain.events.event import image_id_in
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.lanes import EVENTS
from darkroom.event_source import come_back, read_records
from darkroom.operations.kernel.check_message import check_messages
from darkroom.operations.usage.count_usage import count_usage
from darkroom.telemetry import entry_point, logger, metrics, report_rejected
from darkroom.wiring.kernel.runtime import within
from darkroom.wiring.usage.count_usage import wire

ports, checking = wire()

LAST_WORDS_SECONDS = 1.0
"""The part of the function's time that the last AWS call leaves for the answer and the logs."""


@entry_point()
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    records = read_records(event)
    with within(context.get_remaining_time_in_millis() / 1000 - LAST_WORDS_SECONDS):
        checked = check_messages(checking, EVENTS, records)
        # guard: signatures-usage-events
        counting = count_usage(ports, [records[place].body for place in checked.trusted])
    logger.info("counted", extra={"events": counting.counted})
    metrics.add_metric("EventsCounted", MetricUnit.Count, counting.counted)
    if counting.accepted_bytes:  # guard: quotas-accepted-bytes-metric
        metrics.add_metric("BytesAccepted", MetricUnit.Bytes, counting.accepted_bytes)
    for place, mistrust in checked.rejected.items():
        report_rejected(mistrust, message_id=records[place].message_id)
    failures = {
        **checked.failures,
        **{checked.trusted[number]: failure for number, failure in counting.failures.items()},
    }
    for place, failure in failures.items():
        log = logger.warning if isinstance(failure, Retryable) else logger.error
        about = {"message_id": records[place].message_id, "image_id": image_id_in(records[place].body)}
        log("an event was not counted", extra={**about, "cause": str(failure)})
    return come_back(records[place] for place in failures)
