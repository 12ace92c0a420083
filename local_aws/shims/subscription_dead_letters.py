"""Sends a topic's message whose queue is gone or refuses it to the subscription's dead-letter queue.

Gap: MiniStack stores a subscription's RedrivePolicy and never uses it. It also puts messages into queues that are
larger than the queue allows, or that have more attributes than SQS accepts.
AWS: a client-side error, such as a deleted queue, a policy that no longer allows the topic, or a raw message with more
than ten attributes, is not retried: the message goes to the dead-letter queue of the subscription, if there is one
whose policy allows it, and is lost otherwise.
https://docs.aws.amazon.com/sns/latest/dg/sns-dead-letter-queues.html
https://docs.aws.amazon.com/sns/latest/dg/sns-message-delivery-retries.html
https://docs.aws.amazon.com/sns/latest/dg/sns-large-payload-raw-message-delivery.html

What still differs from AWS: only subscriptions of queues are redriven. A topic has no metrics of failed deliveries.
"""

import json
from collections.abc import Mapping
from typing import Any

from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace

_MOST_ATTRIBUTES = 10
_LARGEST_BYTES = 1024 * 1024


def apply(emulator: Emulator) -> None:
    """Check each delivery to a queue before it is made."""
    replace(internals("services.sns"), "_deliver_to_sqs", _delivered_or_redriven)


def _delivered_or_redriven(deliver: Any) -> Any:
    def deliver_to_queue(queue_arn: str, envelope: str, raw: bool, message: str, **options: Any) -> None:
        topic_arn, attributes = options["topic_arn"], options.get("message_attributes") or {}
        body = message if raw else envelope
        if not _accepts(queue_arn, topic_arn, body, attributes if raw else {}):
            queue_arn = _dead_letter_arn(topic_arn, queue_arn)
        if queue_arn:
            deliver(queue_arn, envelope, raw, message, **options)

    return deliver_to_queue


def _accepts(queue_arn: str, topic_arn: str, body: str, attributes: Mapping[str, Any]) -> bool:
    sqs = internals("services.sqs")
    queue = sqs._queue_by_arn(queue_arn)
    if queue is None or len(attributes) > _MOST_ATTRIBUTES:
        return False
    if len(body.encode()) > int(queue["attributes"].get("MaximumMessageSize", _LARGEST_BYTES)):
        return False
    account_id = topic_arn.split(":")[4]
    return bool(sqs.queue_policy_allows(queue_arn, "sns.amazonaws.com", topic_arn, account_id))


def _dead_letter_arn(topic_arn: str, queue_arn: str) -> str:
    """The dead-letter queue of the topic's subscription of that queue; empty if it has none."""
    topic = internals("services.sns")._topic_by_arn_any_scope(topic_arn)
    for subscription in topic["subscriptions"]:
        if (subscription["protocol"], subscription["endpoint"]) == ("sqs", queue_arn):
            policy = json.loads(subscription["attributes"].get("RedrivePolicy") or "{}")
            return str(policy.get("deadLetterTargetArn") or "")
    return ""
