"""The worker of the tables' streams that counts how far the images of batches are, and does what follows."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from darkroom.domain.bulk.batches import Batch
from darkroom.domain.images.image import Image
from darkroom.domain.kernel.errors import Retryable
from darkroom.event_source import begin_again_at
from darkroom.operations.bulk.count_batches import count_batches
from darkroom.ports.kernel import UnreadableRow
from darkroom.telemetry import entry_point, logger, metrics
from darkroom.wiring.bulk.count_batches import wire
from darkroom.wiring.kernel.runtime import within

ports, read_changes = wire()

LAST_WORDS_SECONDS = 1.0
"""The part of the function's time that the last AWS call leaves for the answer and the logs."""


@entry_point()
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    # A row that this version cannot read is counted by a look at its batch, as is whatever no repetition helps.
    writes = [(change, change.after) for change in read_changes(event) if isinstance(change.after, Image | Batch)]
    with within(context.get_remaining_time_in_millis() / 1000 - LAST_WORDS_SECONDS):
        counting = count_batches(ports, [row for _, row in writes])
    logger.info("counted", extra={"images": counting.counted, "ended": counting.ended})
    metrics.add_metric("BatchImagesCounted", MetricUnit.Count, counting.counted)
    again: list[int] = []
    for number, failure in counting.failures.items():
        # guard: bulk-unretryable-left-to-the-look
        comes_again = isinstance(failure, Retryable) and not isinstance(failure, UnreadableRow)
        log = logger.error
        if comes_again:
            again.append(number)
            log = logger.warning
        change, row = writes[number]
        name = "image_id" if isinstance(row, Image) else "batch_id"
        log("a batch was not counted", extra={name: change.subject, "cause": str(failure)})
    return begin_again_at(writes[min(again)][0].place if again else None)
