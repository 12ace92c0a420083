"""Why a transaction was cancelled
(https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html)."""

from __future__ import annotations

from typing import Any

from botocore.exceptions import ClientError

from darkroom.aws.kernel.errors import code_of, is_passing_code
from darkroom.domain.kernel.errors import Retryable

MET = "TransactionConflict"
"""The reason of an item that another transaction changes at the same time."""

REFUSED = "ConditionalCheckFailed"
"""The reason of an item whose condition does not hold."""


def reasons_of(error: ClientError, doing: str) -> list[str]:
    """The reasons why a transaction was cancelled, in the order of its items: MET, REFUSED, or `None`. Raises Retryable
    if a reason is another that passes, saying what failed, and the error if it is no such transaction's."""
    if code_of(error) != "TransactionCanceledException":
        raise error
    reasons: Any = error.response.get("CancellationReasons", [])
    codes = [reason.get("Code", "None") for reason in reasons]
    others = [code for code in codes if code not in ("None", REFUSED, MET)]
    if others:
        if not all(map(_passes, others)):
            raise error
        raise Retryable(f"{doing}: {others[0]}") from error
    return codes


def _passes(code: str) -> bool:
    # The reasons of a cancelled transaction have names of their own.
    return code in ("ThrottlingError", "ProvisionedThroughputExceeded") or is_passing_code(code)
