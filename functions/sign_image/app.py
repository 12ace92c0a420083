"""Called by `read_image`: signs a policy for the variants of one image. Its answer is a credential, never logged."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from darkroom.operations.edge.sign_image import sign_image
from darkroom.telemetry import entry_point
from darkroom.wiring.edge.sign_image import wire
from darkroom.wiring.kernel.runtime import within

ports = wire()

LAST_WORDS_SECONDS = 1.0
"""The part of the function's time that the last AWS call leaves for the answer and the logs."""


@entry_point(has_metrics=False)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, str]:
    with within(context.get_remaining_time_in_millis() / 1000 - LAST_WORDS_SECONDS):
        return sign_image(ports, event.get("resource"))
