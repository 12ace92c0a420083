"""The access log of the embedded gateway: the stage's format, with what is known of a request."""

from __future__ import annotations

import json
from typing import Any

import pytest

from local_aws.access_log import current, line, note, note_all
from repository.expand_template import access_log as format_of

REQUEST = {
    "requestId": "JKJaXmPLvHcESHA=",
    "requestTime": "26/Nov/2026:09:00:00 +0000",
    "identity.sourceIp": "127.0.0.1",
    "httpMethod": "GET",
    "status": 404,
    "responseLatency": 3,
    "responseLength": 23,
    "error.message": "Not Found",
}


def test_each_variable_is_replaced_by_its_value_and_a_missing_one_by_a_dash() -> None:
    form = '$context.identity.sourceIp [$context.requestTime] "$context.httpMethod $context.routeKey" $context.status.'
    assert line(form, REQUEST) == '127.0.0.1 [26/Nov/2026:09:00:00 +0000] "GET -" 404.'
    assert line("$context.authorizer.a $context.authorizer.b", {"authorizer.a": True, "authorizer.b": 5}) == "true 5"
    assert line("$context.authorizer.claims.https://shop.example/tenant!", {}) == "-!"


@pytest.mark.parametrize(
    ("access", "known", "tenant"),
    [
        ("keys", {"authorizer.tenant_id": "shop", "authorizer.key_id": "12345678"}, "shop"),
        ("jwt", {"authorizer.claims.sub": "shop"}, "shop"),
        ("iam", {}, "default"),
        ("anonymous", {}, "default"),
    ],
)
def test_a_line_in_the_templates_own_format_is_an_object_with_every_field(
    access: str, known: dict[str, str], tenant: str
) -> None:
    form = format_of(access).replace("${JwtTenantClaim}", "sub")
    entry = json.loads(line(form, REQUEST | known | {"routeKey": "GET /images/{id}"}))
    assert (entry["tenant"], entry["route"], entry["status"]) == (tenant, "GET /images/{id}", "404")
    assert [name for name, value in entry.items() if value == "-"] == ([] if access == "keys" else ["key"])
    refused = json.loads(line(form, REQUEST))
    assert (refused["route"], refused["key"], refused["error"]) == ("-", "-", "Not Found")


def test_what_is_learned_of_a_request_is_noted_for_it_alone() -> None:
    note(error_message="of no request")
    request: dict[str, Any] = {}
    token = current.set(request)
    try:
        note(error_message="Forbidden")
        note_all("authorizer.claims", {"sub": "shop"})
        note_all("authorizer", None)
    finally:
        current.reset(token)
    assert request == {"error.message": "Forbidden", "authorizer.claims.sub": "shop"}
