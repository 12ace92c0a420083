"""Redrives dead letters back: StartMessageMoveTask, ListMessageMoveTasks and CancelMessageMoveTask.

Gap: MiniStack answers all three with InvalidAction.
AWS: a task moves the visible messages of a dead-letter queue to one queue, or each message back to the queue that it
came from; only one task at a time runs for a source. A moved message is a new one: a new id, a new sent time, no
receives. Its body, attributes and group stay.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_StartMessageMoveTask.html
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ListMessageMoveTasks.html
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_CancelMessageMoveTask.html
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-configure-dead-letter-queue-redrive.html
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/troubleshooting-dlq-redrive.html

What still differs from AWS: a task without MaxNumberOfMessagesPerSecond moves 500 per second from its start, and its
counts are exact at once. It stops at the first message whose source is unknown, that is, one that was sent to the
dead-letter queue directly. AWS does not document the wording of the refusals of a rate, of an equal destination, of
another kind of queue and of the cancellation of a task that has ended.
"""

import base64
import binascii
import contextvars
import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals
from local_aws.shims.queue_actions import error, queues_lock

MAXIMUM_PER_SECOND = 500
MAXIMUM_RESULTS = 10


@dataclass(kw_only=True)
class MoveTask:
    """A task that moves messages, run by its thread; every reader and writer holds the queues' lock."""

    source_arn: str
    destination_arn: str | None
    per_second: int | None
    to_move: int
    started_at: int
    task_id: str = field(default_factory=lambda: str(uuid4()))
    status: str = "RUNNING"
    failure_reason: str | None = None
    moved: int = 0
    cancelled: threading.Event = field(default_factory=threading.Event)

    @property
    def handle(self) -> str:
        """The handle that the caller gets."""
        return base64.b64encode(json.dumps({"taskId": self.task_id, "sourceArn": self.source_arn}).encode()).decode()

    @property
    def is_active(self) -> bool:
        """Whether it keeps another task from starting."""
        return self.status in ("RUNNING", "CANCELLING")

    def described(self) -> dict[str, Any]:
        """Return the task as ListMessageMoveTasks shows it."""
        members = {
            "TaskHandle": self.handle if self.status == "RUNNING" else None,
            "Status": self.status,
            "SourceArn": self.source_arn,
            "DestinationArn": self.destination_arn,
            "MaxNumberOfMessagesPerSecond": self.per_second,
            "ApproximateNumberOfMessagesMoved": self.moved,
            "ApproximateNumberOfMessagesToMove": self.to_move,
            "FailureReason": self.failure_reason,
            "StartedTimestamp": self.started_at,
        }
        return {name: value for name, value in members.items() if value is not None}


# The tasks of each source queue by its ARN, which is unique across accounts and regions; oldest first.
_tasks: dict[str, list[MoveTask]] = {}


def apply(emulator: Emulator) -> None:
    """Add the three actions."""
    internals("services.sqs")._HANDLERS.update(
        StartMessageMoveTask=_start, ListMessageMoveTasks=_list, CancelMessageMoveTask=_cancel
    )


def _start(request: Mapping[str, Any], _: str) -> dict[str, Any]:
    source_arn, destination_arn = request.get("SourceArn", ""), request.get("DestinationArn")
    per_second = request.get("MaxNumberOfMessagesPerSecond")
    with queues_lock():
        source = _existing_queue(source_arn, "SourceArn")
        _check_rate(per_second)
        if not any(_dead_letter_arn(queue) == source_arn for _, queue in internals("services.sqs")._queues.all_items()):
            raise error("InvalidParameterValue", "Source queue must be configured as a Dead Letter Queue.")
        if destination_arn:
            _check_destination(source, destination_arn)
        tasks = _tasks.setdefault(source_arn, [])
        if any(task.is_active for task in tasks):
            raise error(
                "InvalidParameterValue",
                "There is already a task running. "
                "Only one active task is allowed for a source queue arn at a given time.",
            )
        task = MoveTask(
            source_arn=source_arn,
            destination_arn=destination_arn or None,
            per_second=per_second,
            to_move=len(_visible(source)),
            # A task is identified by its source and start: no two of a source start at once.
            started_at=max(int(time.time() * 1000), *(earlier.started_at + 1 for earlier in tasks), 0),
        )
        tasks.append(task)
    # The thread acts for the account and region of this request.
    carry_on = contextvars.copy_context().run
    threading.Thread(target=carry_on, args=(_run, task), name="move-task", daemon=True).start()
    return {"TaskHandle": task.handle}


def _list(request: Mapping[str, Any], _: str) -> dict[str, Any]:
    source_arn, limit = request.get("SourceArn", ""), request.get("MaxResults", 1)
    _existing_queue(source_arn, "SourceArn")
    if not 1 <= limit <= MAXIMUM_RESULTS:
        raise error(
            "InvalidParameterValue",
            f"Value {limit} for parameter MaxResults is invalid. Reason: Must be between 1 and {MAXIMUM_RESULTS}.",
        )
    with queues_lock():
        return {"Results": [task.described() for task in reversed(_tasks.get(source_arn, [])[-limit:])]}


def _cancel(request: Mapping[str, Any], _: str) -> dict[str, Any]:
    try:
        named = json.loads(base64.b64decode(request.get("TaskHandle", ""), validate=True))
        task_id, source_arn = named["taskId"], named["sourceArn"]
    except (binascii.Error, ValueError, KeyError, TypeError):
        raise error("InvalidParameterValue", "Value for parameter TaskHandle is invalid.") from None
    _existing_queue(source_arn, "SourceArn")
    with queues_lock():
        task = next((task for task in _tasks.get(source_arn, []) if task.task_id == task_id), None)
        if task is None:
            raise error("ResourceNotFoundException", "Task does not exist.", 404)
        if task.status != "RUNNING":
            raise error("InvalidParameterValue", "Only active tasks can be cancelled.")
        task.status = "CANCELLING"
        task.cancelled.set()
        return {"ApproximateNumberOfMessagesMoved": task.moved}


def _existing_queue(arn: str, parameter: str) -> Any:
    queue = internals("services.sqs")._queue_by_arn(arn)
    if queue is None:
        message = f"The resource that you specified for the {parameter} parameter doesn't exist."
        raise error("ResourceNotFoundException", message, 404)
    return queue


def _check_rate(per_second: int | None) -> None:
    if per_second is not None and not 1 <= per_second <= MAXIMUM_PER_SECOND:
        raise error(
            "InvalidParameterValue",
            f"Value {per_second} for parameter MaxNumberOfMessagesPerSecond is invalid. "
            f"Reason: Must be between 1 and {MAXIMUM_PER_SECOND}.",
        )


def _check_destination(source: Any, destination_arn: str) -> None:
    destination = _existing_queue(destination_arn, "DestinationArn")
    if destination is source:
        raise error("InvalidParameterValue", "Source queue arn and destination queue arn cannot be the same.")
    if destination["is_fifo"] != source["is_fifo"]:
        message = "The source queue and destination queue must be of the same queue type."
        raise error("InvalidParameterValue", message)


def _dead_letter_arn(queue: Any) -> str | None:
    policy = json.loads(queue["attributes"].get("RedrivePolicy") or "{}")
    arn: str | None = policy.get("deadLetterTargetArn")
    return arn


def _visible(queue: Any) -> list[Any]:
    return [message for message in queue["messages"] if message["visible_at"] <= time.time()]


def _run(task: MoveTask) -> None:
    while not task.cancelled.is_set() and _move_one(task):
        task.cancelled.wait(1 / (task.per_second or MAXIMUM_PER_SECOND))
    with queues_lock():
        if task.is_active:
            task.status = "CANCELLED" if task.cancelled.is_set() else "COMPLETED"


def _move_one(task: MoveTask) -> bool:
    """Redrive the oldest visible message; return whether there may be another."""
    sqs = internals("services.sqs")
    with queues_lock():
        source = sqs._queue_by_arn(task.source_arn)
        if source is None:
            return _fail(task, "AWS.SimpleQueueService.NonExistentQueue")
        sqs._expire_retained(source)
        message = next(iter(_visible(source)), None)
        if message is None:
            return False
        sqs._ensure_msg_fields(message)
        destination_arn = task.destination_arn or message["sys"].get("DeadLetterQueueSourceArn")
        if destination_arn is None:
            return _fail(task, "CouldNotDetermineMessageSource")
        destination = sqs._queue_by_arn(destination_arn)
        if destination is None:
            return _fail(task, "AWS.SimpleQueueService.NonExistentQueue")
        try:
            sqs._act_send_message(_sent_again(message), destination["url"])
        except sqs._Err as refused:
            return _fail(task, refused.code)
        source["messages"].remove(message)
        task.moved += 1
        return True


def _fail(task: MoveTask, reason: str) -> bool:
    task.status, task.failure_reason = "FAILED", reason
    return False


def _sent_again(message: Any) -> dict[str, Any]:
    trace = message["sys"].get("AWSTraceHeader")
    return {
        "MessageBody": message["body"],
        "MessageAttributes": message["message_attributes"],
        "MessageSystemAttributes": {"AWSTraceHeader": {"StringValue": trace}} if trace else {},
        "MessageGroupId": message["group_id"],
        "MessageDeduplicationId": message["dedup_id"],
    }
