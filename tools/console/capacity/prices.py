"""List prices of the AWS requests that Darkroom makes, in US dollars, us-east-1, without free tier or volume discount.

As of November 2026: https://aws.amazon.com/sqs/pricing, /sns/pricing, /s3/pricing, /step-functions/pricing,
/dynamodb/pricing/on-demand, /lambda/pricing, /api-gateway/pricing, /cloudwatch/pricing, /eventbridge/pricing.
"""

from __future__ import annotations

from collections.abc import Mapping

AS_OF = "November 2026"

PER_MILLION = {
    "SQS requests": 0.40,
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
}


def cost(counts: Mapping[str, float]) -> float:
    """What the requests cost."""
    return sum(PER_MILLION[name] * count for name, count in counts.items()) / 1_000_000
