"""Refuses a message with a delay of more than 15 minutes.

Gap: MiniStack accepts any `DelaySeconds` of a message (it does check the queue attribute of that name).
AWS: valid values are 0 to 900; SendMessage answers InvalidParameterValue, a batch fails only that entry.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatchRequestEntry.html
"""

from typing import Any

from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace

MAXIMUM_DELAY_SECONDS = 900


def apply(emulator: Emulator) -> None:
    """Check the delay of every message that is sent: alone, in a batch or by another service."""
    sqs = internals("services.sqs")
    replace(sqs, "_act_send_message", _check_delay)
    sqs._HANDLERS["SendMessage"] = sqs._act_send_message


def _check_delay(send_message: Any) -> Any:
    def send(request: dict[str, Any], queue_url: str) -> Any:
        delay = request.get("DelaySeconds")
        if delay is not None and not 0 <= int(delay) <= MAXIMUM_DELAY_SECONDS:
            raise internals("services.sqs")._Err(
                "InvalidParameterValue",
                f"Value {delay} for parameter DelaySeconds is invalid. "
                f"Reason: DelaySeconds must be >= 0 and <= {MAXIMUM_DELAY_SECONDS}.",
            )
        return send_message(request, queue_url)

    return send
