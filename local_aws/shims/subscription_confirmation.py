"""Lets a subscription by email wait until it is confirmed.

Gap: in MiniStack a subscription by email is confirmed at once, and one that is not (http) is listed by its ARN.
AWS: SNS sends a mail with a token, and delivers nothing to that address until ConfirmSubscription is called with it.
Until then, Subscribe answers "pending confirmation", unless ReturnSubscriptionArn asks for the ARN, and lists have
"PendingConfirmation" in place of the ARN.
https://docs.aws.amazon.com/sns/latest/api/API_Subscribe.html
https://docs.aws.amazon.com/sns/latest/dg/sns-email-notifications.html

What still differs from AWS: no mail is sent, so nobody on this machine can confirm; and a subscription that waits can
be removed, and does not end after some days by itself.
"""

from typing import Any

from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace

_BY_MAIL = ("email", "email-json")


def apply(emulator: Emulator) -> None:
    """Leave new subscriptions by email unconfirmed, and list all that are as such."""
    sns = internals("services.sns")
    replace(sns, "_subscribe", _waiting)
    for listing in ("_list_subscriptions", "_list_subscriptions_by_topic"):
        replace(sns, listing, _without_arns)


def _waiting(subscribe: Any) -> Any:
    def subscribe_and_wait(params: Any) -> Any:
        sns = internals("services.sns")
        known = set(sns._sub_arn_to_topic)
        answer = subscribe(params)
        if sns._p(params, "Protocol") not in _BY_MAIL:
            return answer
        for arn in set(sns._sub_arn_to_topic) - known:
            topic = sns._topic_by_arn_any_scope(sns._sub_arn_to_topic[arn])
            (subscription,) = [candidate for candidate in topic["subscriptions"] if candidate["arn"] == arn]
            subscription.update(confirmed=False, token=sns.new_uuid())
            subscription["attributes"].update(PendingConfirmation="true", ConfirmationWasAuthenticated="false")
            sns._refresh_subscription_counts(topic)
            if sns._p(params, "ReturnSubscriptionArn") != "true":
                status, headers, body = answer
                return status, headers, body.replace(arn.encode(), b"pending confirmation")
        return answer

    return subscribe_and_wait


def _without_arns(listing: Any) -> Any:
    def list_subscriptions(params: Any) -> Any:
        status, headers, body = listing(params)
        for topic in internals("services.sns")._topics.values():
            for subscription in topic["subscriptions"]:
                if not subscription.get("confirmed"):
                    body = body.replace(subscription["arn"].encode(), b"PendingConfirmation")
        return status, headers, body

    return list_subscriptions
