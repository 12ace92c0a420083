"""Every six hours: copies the dead letters that near their 14 days to a bucket, and measures the age of the oldest."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from darkroom.domain.kernel.errors import Retryable
from darkroom.operations.dead_letters.archive_dead_letters import archive_dead_letters
from darkroom.telemetry import entry_point, logger, metrics
from darkroom.wiring.dead_letters.archive_dead_letters import wire

ports = wire()

STOP_BEFORE_DEADLINE_MILLISECONDS = 30_000
"""One dead letter takes at most its three calls, retries included; the next run copies what this one leaves."""


@entry_point()
def handler(event: object, context: LambdaContext) -> dict[str, Any]:
    archiving = archive_dead_letters(
        ports,
        out_of_time=lambda: context.get_remaining_time_in_millis() < STOP_BEFORE_DEADLINE_MILLISECONDS,
    )
    oldest_seconds = max(archiving.oldest_seconds.values(), default=0.0)
    metrics.add_metric("OldestDeadLetterSeconds", MetricUnit.Seconds, oldest_seconds)
    summary = {"outcomes": dict(archiving.outcomes), "incomplete": archiving.incomplete}
    logger.info("archived", extra=summary)
    if archived := archiving.outcomes["archived"]:
        metrics.add_metric("DeadLettersArchived", MetricUnit.Count, archived)
    for queue, error in archiving.problems.items():
        logger.error("not all dead letters could be archived", exc_info=error, extra={"queue": queue})
    if archiving.problems:
        # The function fails, so that Lambda retries within minutes and the function's alarm fires if that does not
        # help.
        raise Retryable(f"not all dead letters could be archived: {', '.join(archiving.problems)}")
    return summary
