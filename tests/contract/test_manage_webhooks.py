"""The real handler of webhooks over AWS by moto, and what becomes of an image that names one."""

from __future__ import annotations

import json

import boto3
import pytest

from tests.contract.functions import (
    PHOTO,
    URL,
    Functions,
    asked,
    call,
    document,
    http_event,
    made,
    problem,
    received,
    written,
)


def published(functions: Functions) -> None:
    """Has every event of the images' rows become deliveries."""
    call(functions.publish_events, {"Records": written(functions.aws.images_table)})
    assert call(functions.create_deliveries, received(functions.aws.webhooks_queue_url)) == {"batchItemFailures": []}


def test_a_webhook_is_made_changed_tried_and_deleted(functions: Functions) -> None:
    path = f"/webhooks/{made(functions)}"
    changed = asked(functions, "PATCH", path, {"events": ["image.done"], "description": "the shop"})
    assert changed["statusCode"] == 200
    assert document(asked(functions, "GET", path)) == document(changed)
    assert document(asked(functions, "GET", "/webhooks"))["webhooks"] == [document(changed)]
    assert document(asked(functions, "POST", f"{path}/rotate"))["earlier_secrets_until"] is not None
    assert asked(functions, "POST", f"{path}/recover", {"since": "P1D"})["statusCode"] == 202
    pinged = document(asked(functions, "POST", f"{path}/ping"))
    assert document(asked(functions, "GET", f"{path}/deliveries"))["deliveries"] == [pinged]
    (record,) = received(functions.aws.delivery_queue_url)["Records"]
    assert json.loads(record["body"])["delivery_id"] == pinged["id"]
    assert record["attributes"]["MessageGroupId"] == path.rpartition("/")[2]
    assert asked(functions, "DELETE", path)["statusCode"] == 204
    problem(asked(functions, "GET", path), 404, "unknown_webhook")


def test_an_image_that_names_a_webhook_is_heard_of_there_alone(functions: Functions) -> None:
    named, other = made(functions), made(functions, f"{URL}/2")
    assert functions.post(query={"notify": named})["statusCode"] == 202
    announced = json.dumps({"bytes": len(PHOTO), "sha256": "ab" * 32, "notify": other}).encode()
    image_id = document(call(functions.begin_upload, http_event("POST", "/uploads", body=announced)))["id"]
    call(functions.delete_image, http_event("DELETE", f"/images/{image_id}"))
    published(functions)
    assert {name: types_of(functions, name) for name in (named, other)} == {
        named: ["image.accepted"],
        other: ["image.cancelled"],
    }


def types_of(functions: Functions, webhook_id: str) -> list[str]:
    """The types of a webhook's deliveries."""
    listed = document(asked(functions, "GET", f"/webhooks/{webhook_id}/deliveries"))["deliveries"]
    return [delivery["type"] for delivery in listed]


@pytest.mark.guards("webhook-unreadable-row-tenant")
@pytest.mark.parametrize(("attribute", "value"), [("state", {"S": "paused"}), ("secrets", {"S": "x"})])
def test_a_webhook_that_a_newer_version_wrote_is_unavailable_and_left_alone(
    functions: Functions, attribute: str, value: dict[str, str]
) -> None:
    webhook_id = made(functions)
    table, dynamodb = functions.aws.endpoints_table, boto3.client("dynamodb")
    (item,) = dynamodb.scan(TableName=table)["Items"]
    dynamodb.put_item(TableName=table, Item={**item, attribute: value})
    for method, path, body in (("GET", "", None), ("PATCH", "", {"enabled": False}), ("POST", "/ping", None)):
        response = asked(functions, method, f"/webhooks/{webhook_id}{path}", body)
        problem(response, 503, "unavailable")
        assert response["headers"]["Retry-After"] == "60"
    sibling = made(functions, "https://hooks.example.com/2")
    assert [webhook["id"] for webhook in document(asked(functions, "GET", "/webhooks"))["webhooks"]] == [sibling]
    assert document(functions.post(query={"notify": webhook_id}))["id"]
    asked(functions, "DELETE", f"/webhooks/{sibling}")
    assert dynamodb.scan(TableName=table)["Items"] == [{**item, attribute: value}]
