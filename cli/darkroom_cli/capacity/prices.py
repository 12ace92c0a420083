"""List prices of the AWS requests that Darkroom makes, in US dollars, us-east-1, without free tier or volume discount.

As of November 2026: https://aws.amazon.com/sqs/pricing, /sns/pricing, /s3/pricing, /step-functions/pricing,
/dynamodb/pricing/on-demand, /lambda/pricing, /api-gateway/pricing, /cloudwatch/pricing, /eventbridge/pricing,
/secrets-manager/pricing, /xray/pricing.
"""

from __future__ import annotations

from collections.abc import Mapping

AS_OF = "November 2026"

PER_MILLION = {
    "SQS requests": 0.40,
    "SQS FIFO requests": 0.50,
    "SNS requests": 0.50,
    "S3 puts": 5.00,
    "S3 gets": 0.40,
    "S3 deletes": 0.0,
    "Step Functions transitions": 25.00,
    "DynamoDB read units": 0.125,
    "DynamoDB write units": 0.625,
    "Lambda requests": 0.20,
    "Lambda GB-milliseconds": 0.0133334,  # arm64, $0.0000133334 per GB-second
    "API requests": 1.00,
    "Log kilobytes": 0.50,  # $0.50 per GB ingested
    "Scheduler invocations": 1.00,
    "CloudWatch requests": 10.00,
    "CloudWatch metrics read": 10.00,
    "X-Ray traces": 5.00,
    "S3 transitions": 10.00,  # into infrequent access or intelligent tiering
    "S3 objects watched": 2.50,  # by intelligent tiering, per month
}

ALARM, COMPOSITE_ALARM, METRIC, SECRET = 0.10, 0.50, 0.30, 0.40
"""Dollars per month; an alarm is billed for each metric that it uses, a metric for the hours in which it has data."""

STORED_GB = {
    "S3 standard": 0.023,
    "S3 infrequent": 0.0125,
    "S3 intelligent, read": 0.023,
    "S3 intelligent, 30 days unread": 0.0125,
    "S3 intelligent, 90 days unread": 0.004,
    "DynamoDB": 0.25,
    "DynamoDB, to any second": 0.20,  # point-in-time recovery
    "Logs": 0.03,
}
"""Dollars per GB and month; S3's first 50 TB."""

TRANSFERRED_GB = 0.09
"""Dollars from AWS to the internet, first 10 TB a month (https://aws.amazon.com/ec2/pricing/on-demand)."""

IDLE_DOLLARS = 7.67
"""An idle stack's month: `python -m checks.idle_cost --write` puts it here."""


def cost(counts: Mapping[str, float]) -> float:
    """What the requests cost."""
    return sum(PER_MILLION[name] * count for name, count in counts.items()) / 1_000_000
