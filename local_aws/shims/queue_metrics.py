"""Emits the metrics of queues: how many messages are in each, how old they are, and how many come and go.

Gap: MiniStack emits no metrics of SQS.
AWS: SQS emits them once a minute in the namespace AWS/SQS with the dimension QueueName. A dead letter's age counts from
its move; a message that was received three times no longer counts for ApproximateAgeOfOldestMessage, with or without a
dead-letter queue, unless the queue is FIFO: there it keeps its place. A queue that has had no message and no request
for six hours is not measured.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/setting-up-dead-letter-queue-retention.html

A queue is measured every second and has one datum per minute, as on AWS; the datum is updated until the minute is over.
So a reader sees now what AWS would show in a minute, and never more data than AWS would have.

What still differs from AWS: a queue that is used again after six hours is measured at once, without the delay of up to
15 minutes. An empty queue's oldest message is 0 seconds old. A dead letter's receives before its move do not count; AWS
does not document it. NumberOfMessagesSent does not include what SNS, S3 and EventBridge deliver.
"""

import json
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace
from local_aws.shims import metric_data
from local_aws.shims.background import every, scope, scopes
from local_aws.shims.queue_actions import queues_lock, replace_action

NAMESPACE = "AWS/SQS"
INTERVAL_SECONDS = 1
RECEIVES_THAT_HIDE_AN_AGE = 3
IDLE_SECONDS = 6 * 3600

_SENT, _RECEIVED, _DELETED = "NumberOfMessagesSent", "NumberOfMessagesReceived", "NumberOfMessagesDeleted"
# Events since the last measurement, by the queue's ARN and the metric's name.
_happened: Counter[tuple[str, str]] = Counter()
# When each queue was used last, by its ARN.
_used: dict[str, float] = {}


def apply(emulator: Emulator) -> None:
    """Count what happens to messages, and measure every queue periodically."""
    sqs = internals("services.sqs")
    replace(sqs, "_dlq_sweep", _mark_moved)
    replace(sqs, "_collect_msgs", _count_received)
    replace(sqs, "_dispatch", _note_use)
    replace_action("SendMessage", _counting(_SENT, lambda answer: 1))
    replace_action("DeleteMessage", _counting(_DELETED, lambda answer: 1))
    replace_action("DeleteMessageBatch", _counting(_DELETED, lambda answer: len(answer["Successful"])))
    replace(sqs, "_delete_messages_for_esm", _count_deleted_by_mapping)
    every(INTERVAL_SECONDS, _measure_all, name="queue-metrics")


def _mark_moved(sweep: Any) -> Any:
    def sweep_and_mark(queue: Any) -> None:
        before = len(queue["messages"])
        sweep(queue)
        if len(queue["messages"]) == before:
            return
        policy = json.loads(queue["attributes"]["RedrivePolicy"])
        for dead_letter in internals("services.sqs")._queue_by_arn(policy["deadLetterTargetArn"])["messages"]:
            if dead_letter.get("sys", {}).get("DeadLetterQueueSourceArn"):
                dead_letter.setdefault("moved_at", time.time())
                dead_letter.setdefault("receives_before_move", dead_letter["receive_count"])

    return sweep_and_mark


def _note_use(dispatch: Any) -> Any:
    async def dispatch_and_note(action: str, request: Any, queue_url: str) -> Any:
        answer = await dispatch(action, request, queue_url)
        sqs = internals("services.sqs")
        with suppress(sqs._Err):  # a request for no queue, or for one that it has deleted
            _used[sqs._get_q(request.get("QueueUrl", queue_url))["attributes"]["QueueArn"]] = time.time()
        return answer

    return dispatch_and_note


def _count_received(collect: Any) -> Any:
    def collect_messages(queue: Any, *arguments: Any) -> Any:
        messages = collect(queue, *arguments)
        _used[queue["attributes"]["QueueArn"]] = time.time()  # by a mapping, too
        _happened[queue["attributes"]["QueueArn"], _RECEIVED] += len(messages)
        return messages

    return collect_messages


def _counting(metric: str, count: Callable[[Any], int]) -> Callable[[Any], Any]:
    def build(act: Any) -> Any:
        def act_and_count(request: Any, queue_url: str) -> Any:
            answer = act(request, queue_url)
            queue = internals("services.sqs")._get_q(request.get("QueueUrl", queue_url))
            _happened[queue["attributes"]["QueueArn"], metric] += count(answer)
            return answer

        return act_and_count

    return build


def _count_deleted_by_mapping(delete: Any) -> Any:
    def delete_messages(queue_url: str, handles: Any) -> None:
        delete(queue_url, handles)
        arn = internals("services.sqs")._get_q(queue_url)["attributes"]["QueueArn"]
        with queues_lock():
            _happened[arn, _DELETED] += len(handles)

    return delete_messages


def _measure_all() -> None:
    queues = internals("services.sqs")._queues
    for account_id, region in scopes(queues):
        with scope(account_id, region):
            for queue in list(queues.values()):
                _measure(queue)


def _measure(queue: Any) -> None:
    attributes, now = queue["attributes"], time.time()
    used_at = _used.setdefault(attributes["QueueArn"], now)
    if not queue["messages"] and now - used_at >= IDLE_SECONDS:
        return
    with queues_lock():
        internals("services.sqs")._refresh_counts(queue)
        levels = {
            "ApproximateNumberOfMessagesVisible": int(attributes["ApproximateNumberOfMessages"]),
            "ApproximateNumberOfMessagesNotVisible": int(attributes["ApproximateNumberOfMessagesNotVisible"]),
            "ApproximateNumberOfMessagesDelayed": int(attributes["ApproximateNumberOfMessagesDelayed"]),
        }
        age_seconds = oldest_age_seconds(queue["messages"], now=now, is_fifo=queue["is_fifo"])
        counts = {metric: _happened.pop((attributes["QueueArn"], metric), 0) for metric in (_SENT, _RECEIVED, _DELETED)}
    dimensions = {"QueueName": queue["name"]}
    for metric, level in levels.items():
        metric_data.measure(NAMESPACE, metric, dimensions, level)
    metric_data.measure(NAMESPACE, "ApproximateAgeOfOldestMessage", dimensions, age_seconds, "Seconds")
    for metric, number in counts.items():
        metric_data.count(NAMESPACE, metric, dimensions, number)


def oldest_age_seconds(messages: list[dict[str, Any]], *, now: float, is_fifo: bool = False) -> float:
    """Return how long the oldest message has been in its queue, among those that count for it."""
    ages = [
        now - message.get("moved_at", message["sent_at"])
        for message in messages
        if is_fifo or message["receive_count"] - message.get("receives_before_move", 0) < RECEIVES_THAT_HIDE_AN_AGE
    ]
    return float(int(max(ages, default=0)))
