"""Applies the filters of event source mappings to what an event lacks, and by all of their operators.

Gap: MiniStack knows neither `$or` nor `equals-ignore-case`. It lets no event through whose path ends early, even if the
filter says that the value must not exist; it takes an object for a value that exists, and one that is missing for any
other value than those of `anything-but`. It compares text with numbers, and lists as a whole.
AWS: a pattern matches values at the ends of their paths, so `exists` says nothing of objects in between, and what lacks
an object lacks all values in it. `anything-but` and the other operators want a value. Numbers match numbers only, so
not DynamoDB's, which are text. Of a list, one element is enough.
https://docs.aws.amazon.com/lambda/latest/dg/invocation-eventfiltering.html#filtering-syntax
https://docs.aws.amazon.com/lambda/latest/dg/with-ddb-filtering.html
https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-create-pattern-operators.html

What still differs from AWS: AWS documents filters of DynamoDB's events by the key `dynamodb` only; here they may use
`eventName` and the others too, as AWS's examples do. A mapping with an invalid filter is not refused.
"""

from local_aws.emulator import Emulator
from local_aws.event_patterns import matches
from local_aws.ministack_internals import internals, replace


def apply(emulator: Emulator) -> None:
    """Replace the comparison of an event with a pattern."""
    replace(internals("services.lambda_svc"), "_match_esm_filter", lambda _: matches)
