"""What a function may answer for a batch, as Lambda understands it
(https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html#services-sqs-batchfailurereporting)."""

from collections.abc import Mapping
from typing import Any


def not_understood(misspelt_key: str) -> Mapping[str, Any]:
    """The answers after which the whole batch fails, by what is wrong with them. `misspelt_key` is what a record calls
    its identifier, which a report must not."""
    return {
        "an empty identifier": {"batchItemFailures": [{"itemIdentifier": ""}]},
        "a null identifier": {"batchItemFailures": [{"itemIdentifier": None}]},
        "a misspelt key": {"batchItemFailures": [{misspelt_key: "1"}]},
        "a record that is not of the batch": {"batchItemFailures": [{"itemIdentifier": "1"}]},
        "no list": {"batchItemFailures": "1"},
        "no object": "done",
    }


UNDERSTOOD_AS_SUCCESS: Mapping[str, Any] = {
    "an empty list": {"batchItemFailures": []},
    "a null list": {"batchItemFailures": None},
    "an empty object": {},
    "null": None,
}
