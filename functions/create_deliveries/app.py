"""The consumer of events that notes a webhook delivery for each endpoint that wants one."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from darkroom.domain.events.event import image_id_in, image_id_of_event, read_event
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.lanes import EVENTS
from darkroom.event_source import come_back, read_records
from darkroom.operations.kernel.check_message import check_messages
from darkroom.operations.webhooks.create_deliveries import create_deliveries
from darkroom.telemetry import entry_point, logger, metrics, report_rejected, report_unreadable
from darkroom.wiring.kernel.runtime import within
from darkroom.wiring.webhooks.create_deliveries import wire

ports, checking = wire()

LAST_WORDS_SECONDS = 1.0
"""The part of the function's time that the last AWS call leaves for the answer and the logs."""


@entry_point()
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    records = read_records(event)
    with within(context.get_remaining_time_in_millis() / 1000 - LAST_WORDS_SECONDS):
        checked = check_messages(checking, EVENTS, records)
        # guard: signatures-webhook-events
        created = create_deliveries(ports, [records[place].body for place in checked.trusted])
    for number, deliveries in created.noted.items():
        event_id = read_event(records[checked.trusted[number]].body).event_id
        if deliveries and (image_id := image_id_of_event(event_id)) is not None:
            about = {"image_id": image_id, "event_id": event_id, "deliveries": deliveries}
            logger.info("deliveries noted", extra=about)
    report_unreadable(created.unreadable)
    metrics.add_metric("DeliveriesNoted", MetricUnit.Count, created.deliveries)
    for place, mistrust in checked.rejected.items():
        report_rejected(mistrust, message_id=records[place].message_id)
    failures = {
        **checked.failures,
        **{checked.trusted[number]: failure for number, failure in created.failures.items()},
    }
    for place, failure in failures.items():
        log = logger.warning if isinstance(failure, Retryable) else logger.error
        about = {"message_id": records[place].message_id, "image_id": image_id_in(records[place].body)}
        log("an event was not noted", extra={**about, "cause": str(failure)})
    return come_back(records[place] for place in failures)
