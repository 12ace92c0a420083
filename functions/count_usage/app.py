"""The consumer of events that counts what each tenant uses in a day."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from darkroom.domain.errors import Retryable
from darkroom.event_source import come_back, read_records
from darkroom.operations.count_usage import count_usage
from darkroom.telemetry import entry_point, logger, metrics
from darkroom.wiring.count_usage import wire
from darkroom.wiring.runtime import within

ports = wire()

LAST_WORDS_SECONDS = 1.0
"""The part of the function's time that the last AWS call leaves for the answer and the logs."""


@entry_point()
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    records = read_records(event)
    with within(context.get_remaining_time_in_millis() / 1000 - LAST_WORDS_SECONDS):
        counting = count_usage(ports, [record.body for record in records])
    logger.info("counted", extra={"events": counting.counted})
    metrics.add_metric("EventsCounted", MetricUnit.Count, counting.counted)
    for place, failure in counting.failures.items():
        told = logger.warning if isinstance(failure, Retryable) else logger.error
        told("an event was not counted", extra={"message_id": records[place].message_id, "cause": str(failure)})
    return come_back(records[place] for place in counting.failures)
