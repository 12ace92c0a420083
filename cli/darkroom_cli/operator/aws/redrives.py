"""The moves of dead letters back to their queues by SQS itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from darkroom.aws.kernel.errors import code_of, retryable
from darkroom_cli.operator.domain.redrives import Redrive, RedriveStatus

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import ListMessageMoveTasksResultEntryTypeDef


class DeadLetterRedrives:
    """Implements the `Redrives` port with SQS's message move tasks, one at a time per queue.

    `arns` maps each name to the ARNs of the dead-letter queue and of the lane that its messages return to. The lane is
    always named: SQS does not know the source of dead letters that were sent to their queue instead of moved there by
    SQS.
    """

    def __init__(self, client: SQSClient, arns: Mapping[str, tuple[str, str]]) -> None:
        self._client = client
        self._arns = arns

    def latest(self, queue: str) -> Redrive | None:
        with retryable("asking how the move of dead letters gets on"):
            answer = self._client.list_message_move_tasks(SourceArn=self._arns[queue][0], MaxResults=1)
        tasks = answer.get("Results", [])
        return _redrive(queue, tasks[0]) if tasks else None

    def start(self, queue: str, per_second: int) -> None:
        source, destination = self._arns[queue]
        try:
            with retryable("starting to move dead letters"):
                self._client.start_message_move_task(
                    SourceArn=source, DestinationArn=destination, MaxNumberOfMessagesPerSecond=per_second
                )
        except ClientError as error:
            # A task is already running: another operator's, or this call's own, started by an attempt whose answer was
            # lost.
            running = self.latest(queue) if code_of(error).endswith("UnsupportedOperation") else None
            if running is None or running.status.is_over:
                raise

    def cancel(self, redrive: Redrive) -> None:
        if redrive.handle is None:
            return
        try:
            with retryable("cancelling the move of dead letters"):
                self._client.cancel_message_move_task(TaskHandle=redrive.handle)
        except ClientError as error:
            # Only a running task can be cancelled; this one has ended meanwhile.
            latest = self.latest(redrive.queue)
            if latest is None or latest.status is RedriveStatus.RUNNING:
                raise error from None


def _redrive(queue: str, task: ListMessageMoveTasksResultEntryTypeDef) -> Redrive:
    return Redrive(
        queue=queue,
        status=RedriveStatus(task.get("Status", "RUNNING")),
        started_at=task.get("StartedTimestamp", 0),
        moved=task.get("ApproximateNumberOfMessagesMoved", 0),
        to_move=task.get("ApproximateNumberOfMessagesToMove"),
        handle=task.get("TaskHandle"),
        failure=task.get("FailureReason"),
    )
