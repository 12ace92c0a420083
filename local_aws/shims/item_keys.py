"""Tells policies which item a DynamoDB request is about, and which attributes an update names.

Gap: MiniStack's requests have no `dynamodb:LeadingKeys`, and `dynamodb:Attributes` only for projections, so that a
policy with `ForAllValues` for either allows everything.
AWS: the first has the values of the partition key; the second has the attributes of the key and of every expression.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/specifying-conditions.html
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace

_WORD = re.compile(r"(?<![:\w#.])(#?[A-Za-z_]\w*)\b(?!\s*\()")
_KEYWORDS = frozenset({"SET", "REMOVE", "ADD", "DELETE", "AND", "OR", "NOT", "BETWEEN", "IN"})


def apply(emulator: Emulator) -> None:
    """Add the keys to the context of requests for one item, by which policies are evaluated."""
    replace(internals("core.iam_actions"), "dynamodb_service_context", _with_item)


def _with_item(context_of: Callable[[bytes], dict[str, Any]]) -> Callable[[bytes], dict[str, Any]]:
    def dynamodb_service_context(body: bytes) -> dict[str, Any]:
        context = context_of(body)
        try:
            request = json.loads(body or b"{}")
            table = internals("services.dynamodb")._tables.get(request["TableName"].rpartition("/")[2])
            context["dynamodb:LeadingKeys"] = list(request["Key"][table["pk_name"]].values())
        except (ValueError, KeyError, TypeError, AttributeError):  # it is about no item, or about nothing at all
            return context
        if "UpdateExpression" in request:
            context["dynamodb:Attributes"] = sorted({*request["Key"], *_named(request)})
        return context

    return dynamodb_service_context


def _named(request: Mapping[str, Any]) -> Iterator[str]:
    names = request.get("ExpressionAttributeNames") or {}
    for expression in ("UpdateExpression", "ConditionExpression"):
        for word in _WORD.findall(request.get(expression) or ""):
            if word.upper() not in _KEYWORDS:
                yield names.get(word, word)
