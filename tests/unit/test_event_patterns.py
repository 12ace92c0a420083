"""Which events the filters of an event source mapping let through."""

from __future__ import annotations

from typing import Any

import pytest

from local_aws.event_patterns import matches

EVENT: dict[str, Any] = {
    "eventName": "MODIFY",
    "dynamodb": {
        "NewImage": {
            "state": {"S": "Ready"},
            "size": {"N": "7"},
            "tags": {"SS": ["red", "green"]},
            "hidden": {"BOOL": True},
            "empty": {"S": ""},
            "nothing": {"NULL": None},
        },
        "SizeBytes": 26,
    },
}


def image(name: str, kind: str, *rules: Any) -> dict[str, Any]:
    return {"dynamodb": {"NewImage": {name: {kind: list(rules)}}}}


@pytest.mark.parametrize(
    "pattern",
    [
        {},
        {"eventName": ["INSERT", "MODIFY"]},
        image("state", "S", "Ready"),
        image("state", "S", {"equals-ignore-case": "READY"}),
        image("state", "S", {"prefix": "Re"}),
        image("state", "S", {"suffix": "dy"}),
        image("state", "S", {"anything-but": ["Failed", "Held"]}),
        image("state", "S", {"anything-but": "Failed"}),
        image("state", "S", {"anything-but": {"prefix": "Fa"}}),
        image("state", "S", {"exists": True}),
        image("state", "N", {"exists": False}),
        image("missing", "S", {"exists": False}),
        image("empty", "S", ""),
        image("nothing", "NULL", None),
        image("hidden", "BOOL", True),
        image("tags", "SS", "green"),
        {"dynamodb": {"OldImage": {"state": {"S": [{"exists": False}]}}}},
        {"dynamodb": {"OldImage": [{"exists": False}]}},
        {"dynamodb": {"SizeBytes": [{"numeric": [">", 20, "<=", 26]}]}},
        {"dynamodb": {"SizeBytes": [{"numeric": ["=", 26]}]}},
        {"$or": [{"eventName": ["INSERT"]}, image("state", "S", "Ready")]},
        image("state", "S", "Failed", {"prefix": "R"}),
    ],
)
def test_an_event_that_has_what_a_pattern_wants_is_let_through(pattern: dict[str, Any]) -> None:
    assert matches(EVENT, pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        {"eventName": ["INSERT"]},
        {"eventName": "MODIFY"},
        {"eventName": ["MODIFY"], "dynamodb": {"SizeBytes": [1]}},
        image("state", "S", "ready"),
        image("state", "S", {"anything-but": ["Ready"]}),
        image("state", "S", {"anything-but": {"prefix": "Re"}}),
        image("missing", "S", {"anything-but": ["Ready"]}),
        image("state", "N", {"anything-but": ["Ready"]}),
        image("missing", "S", {"prefix": ""}),
        image("state", "S", {"exists": False}),
        image("missing", "S", {"exists": True}),
        image("hidden", "BOOL", 1),
        image("size", "N", {"numeric": [">", 5]}),
        image("size", "N", 7),
        image("tags", "SS", "blue"),
        image("state", "S", {"unheard-of": "Ready"}),
        {"dynamodb": {"NewImage": [{"exists": True}]}},
        {"dynamodb": {"OldImage": {"state": {"S": ["Ready"]}}}},
        {"eventName": {"S": ["MODIFY"]}},
        {"dynamodb": {"SizeBytes": [{"numeric": [">", 26]}]}},
        {"dynamodb": {"SizeBytes": [{"numeric": [">=", 27]}]}},
        {"dynamodb": {"SizeBytes": [{"numeric": [">", 0, "<", 26]}]}},
        {"$or": [{"eventName": ["INSERT"]}, {"eventName": ["REMOVE"]}]},
    ],
)
def test_an_event_that_lacks_what_a_pattern_wants_is_not(pattern: dict[str, Any]) -> None:
    assert not matches(EVENT, pattern)
