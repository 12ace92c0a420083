"""Keeps a receipt handle valid after its message was received again, deleted or made visible again.

Gap: MiniStack forgets a receipt handle at the next receive and at the deletion, and calls it invalid from then on; it
also changes the visibility of messages that are not in flight.
AWS: deleting by an outdated handle succeeds, though the message may stay, and so does deleting again, which makes a
repeated DeleteMessage harmless. Visibility can be changed only while the message is in flight.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_DeleteMessage.html
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ChangeMessageVisibility.html

What still differs from AWS: deleting by an outdated handle never deletes anything here; AWS leaves it open. Receipt
handles do not survive a renamed queue, and are readable: they name the queue and the message.
"""

import base64
import binascii
import time
from typing import Any
from uuid import uuid4

from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace
from local_aws.shims.queue_actions import error, replace_action

_INVALID = "ReceiptHandleIsInvalid"


def apply(emulator: Emulator) -> None:
    """Issue handles that can be recognised, and recognise them."""
    replace(internals("services.sqs"), "_collect_msgs", _give_recognisable_handles)
    replace_action("DeleteMessage", _delete)
    replace_action("DeleteMessageBatch", _delete_batch)
    replace_action("ChangeMessageVisibility", _change_visibility)
    replace_action("ChangeMessageVisibilityBatch", _change_visibility_batch)


def _give_recognisable_handles(collect: Any) -> Any:
    def collect_messages(queue: Any, *arguments: Any) -> Any:
        messages = collect(queue, *arguments)
        for message in messages:
            named = f"{queue['attributes']['QueueArn']} {message['id']} {uuid4()}"
            message["receipt_handle"] = base64.urlsafe_b64encode(named.encode()).decode()
        return messages

    return collect_messages


def _is_of_queue(handle: str, queue: Any) -> bool:
    try:
        named = base64.urlsafe_b64decode(handle).decode()
    except (binascii.Error, ValueError):
        return False
    return named.startswith(f"{queue['attributes']['QueueArn']} ")


def _delete(delete: Any) -> Any:
    def delete_message(request: Any, queue_url: str) -> Any:
        sqs = internals("services.sqs")
        try:
            return delete(request, queue_url)
        except sqs._Err as refused:
            queue = sqs._get_q(request.get("QueueUrl", queue_url))
            if refused.code == _INVALID and _is_of_queue(request["ReceiptHandle"], queue):
                return {}
            raise

    return delete_message


def _delete_batch(delete: Any) -> Any:
    def delete_messages(request: Any, queue_url: str) -> Any:
        answer = delete(request, queue_url)
        queue = internals("services.sqs")._get_q(request.get("QueueUrl", queue_url))
        known = {entry["Id"] for entry in request["Entries"] if _is_of_queue(entry.get("ReceiptHandle", ""), queue)}
        outdated = [failure for failure in answer["Failed"] if failure["Id"] in known]
        return {
            "Successful": [*answer["Successful"], *({"Id": failure["Id"]} for failure in outdated)],
            "Failed": [failure for failure in answer["Failed"] if failure not in outdated],
        }

    return delete_messages


def _change_visibility(change: Any) -> Any:
    def change_visibility(request: Any, queue_url: str) -> Any:
        queue = internals("services.sqs")._get_q(request.get("QueueUrl", queue_url))
        if reason := _reason_to_refuse(queue, request.get("ReceiptHandle", "")):
            raise error("InvalidParameterValue", reason)
        return change(request, queue_url)

    return change_visibility


def _change_visibility_batch(change: Any) -> Any:
    def change_visibilities(request: Any, queue_url: str) -> Any:
        queue = internals("services.sqs")._get_q(request.get("QueueUrl", queue_url))
        changed, refused = [], []
        for entry in request.get("Entries", []):
            if reason := _reason_to_refuse(queue, entry.get("ReceiptHandle", "")):
                failure = {"Id": entry["Id"], "Code": "InvalidParameterValue", "Message": reason, "SenderFault": True}
                refused.append(failure)
            else:
                changed.append(entry)
        if refused and not changed:
            return {"Successful": [], "Failed": refused}
        answer = change({**request, "Entries": changed}, queue_url)
        return {**answer, "Failed": [*answer["Failed"], *refused]}

    return change_visibilities


def _reason_to_refuse(queue: Any, handle: str) -> str | None:
    """Explain why the visibility of this handle's message cannot change; MiniStack itself refuses unknown handles."""
    in_flight = {message["receipt_handle"] for message in queue["messages"] if message["visible_at"] > time.time()}
    if handle in in_flight or not _is_of_queue(handle, queue):
        return None
    return (
        f"Value {handle} for parameter ReceiptHandle is invalid. "
        "Reason: Message does not exist or is not available for visibility timeout change."
    )
