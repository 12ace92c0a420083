"""The queues of those who follow the events for a while, which are no resources of the stack."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from darkroom.aws.kernel.errors import pages_of, retryable
from darkroom.domain.kernel.instants import Milliseconds

if TYPE_CHECKING:
    from mypy_boto3_sns import SNSClient
    from mypy_boto3_sqs import SQSClient

PREFIX = "darkroom-tail-"
"""How their names begin."""

ALIVE_AT = "darkroom:alive-at"
"""The tag in which a follower notes, in seconds since 1970, that it is alive."""

LEFT_BEHIND_SECONDS = 600
"""A queue whose follower has been silent for that long belongs to nobody."""


class FollowersQueues:
    """Implements the `Followers` port for those that are subscribed to one topic."""

    def __init__(self, sns: SNSClient, sqs: SQSClient, topic_arn: str) -> None:
        self._sns_client = sns
        self._sqs_client = sqs
        self._topic_arn = topic_arn

    def remove_left_behind(self, now: Milliseconds) -> int:
        # Their subscriptions stay until somebody follows again: IAM allows to end either every subscription of the
        # account or none (https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonsns.html).
        removed = 0
        for _, url in self.left_behind(now):
            if url is not None:
                with retryable("removing the queue of a follower"):
                    self._sqs_client.delete_queue(QueueUrl=url)
                removed += 1
        return removed

    def left_behind(self, now: Milliseconds) -> Iterator[tuple[str, str | None]]:
        """The subscriptions of followers that died, each with its queue's URL, or None if that is gone. Raises
        Retryable."""
        pages = self._sns_client.get_paginator("list_subscriptions_by_topic").paginate(TopicArn=self._topic_arn)
        listed = pages_of(pages, "listing the subscriptions to events")
        for subscription in [subscription for page in listed for subscription in page["Subscriptions"]]:
            name = subscription["Endpoint"].rpartition(":")[2]
            if not name.startswith(PREFIX):
                continue
            url = self._url_of(name)
            if url is None or self._is_silent(url, now):  # guard: events-live-follower-queue
                yield subscription["SubscriptionArn"], url

    def _is_silent(self, url: str, now: Milliseconds) -> bool:
        try:
            alive_at = float(self._sqs_client.list_queue_tags(QueueUrl=url).get("Tags", {}).get(ALIVE_AT, "0"))
        except (ClientError, BotoCoreError):
            return False
        return now / 1000 - alive_at > LEFT_BEHIND_SECONDS

    def _url_of(self, name: str) -> str | None:
        try:
            with retryable("looking for the queue of a follower"):
                return self._sqs_client.get_queue_url(QueueName=name)["QueueUrl"]
        except self._sqs_client.exceptions.QueueDoesNotExist:
            return None
