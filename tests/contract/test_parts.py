"""The handlers of the core without optional parts: what is asked of an absent part is refused, and says so."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType, SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from openapi_spec_validator import OpenAPIV31SpecValidator

from darkroom.aws.images.images_table import ImagesTable
from darkroom.domain.images.image import Status
from darkroom.domain.kernel.tenants import Quota
from darkroom.domain.webhooks.endpoint_ids import endpoint_id_from
from darkroom.wiring.kernel import parts
from darkroom.wiring.kernel.batches import has_turn_of
from darkroom_cli.parts.remains import KEPT, Remains
from darkroom_cli.parts.work import purge
from darkroom_client.client import ApiError
from tests.contract.conftest import Aws
from tests.contract.functions import Context, Functions, call, document, http_event, load
from tests.contract.operated import OperatedStack, operated_stack
from tests.support.fakes.pictures import jpeg
from tests.support.images import pending
from tests.support.template import functions_of_the_core

OF_PARTS = ("ENDPOINTS_TABLE", "USAGE_TABLE", "FETCH_QUEUE_URL", "BATCHES_TABLE", "PAUSES_TABLE")
NOTIFY = endpoint_id_from(1, bytes(10))


@pytest.fixture
def core(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> Aws:
    """AWS, whose environment names nothing of an optional part."""
    left = {name: value for name, value in aws.environment.items() if name not in OF_PARTS} | {
        "PARTS": "webhooks=false,usage=false,imports=false,page=false,bulk=false"
    }
    monkeypatch.setattr(type(aws), "environment", property(lambda _: left))
    # Nothing but this loads a module by its name; tests/unit/test_core_alone.py sees to what is imported.
    monkeypatch.setattr(parts, "import_module", _refuse)
    return aws


def _refuse(name: str) -> None:
    pytest.fail(f"{name} is in the layer of parts")


def refused(answer: dict[str, Any]) -> tuple[int, str, str]:
    problem = json.loads(answer["body"])
    return answer["statusCode"], problem["code"], problem["detail"]


def of_url(url: str = "https://photos.example/a.jpg") -> dict[str, Any]:
    return http_event(
        "POST", "/images", body=json.dumps({"url": url}).encode(), headers={"content-type": "application/json"}
    )


def test_a_photo_is_accepted_by_the_core_alone(core: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    submit = load("submit_image", core, monkeypatch)
    sent = call(submit, http_event("POST", "/images", body=jpeg(64, 48), headers={"content-type": "image/jpeg"}))
    assert sent["statusCode"] == 202


@pytest.mark.parametrize("name", functions_of_the_core())
def test_each_function_of_the_core_initialises_without_the_layer_of_parts(
    name: str, core: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "sweep_due_images":  # its queue stays without imports
        monkeypatch.setitem(core.environment, "FETCH_QUEUE_URL", core.fetch_queue_url)
    assert callable(load(name, core, monkeypatch).handler)


def test_an_image_of_when_there_were_webhooks_goes_its_whole_way_through_the_core_alone(
    core: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    functions = Functions(core, monkeypatch)
    posted = document(functions.post(query={"delay": "PT1H"}))["id"]
    begun = document(functions.begin())["id"]
    for image_id in (posted, begun):
        row = functions.row(image_id)
        functions.table.change(row, replace(row, notify=NOTIFY))
    moved = http_event("PATCH", f"/images/{posted}", body=b'{"delay": "PT0S"}')
    assert call(functions.reschedule_image, moved)["statusCode"] == 200
    functions.upload(begun)
    functions.hear()
    functions.work()
    listed = document(functions.get("/images"))["images"]
    assert {(image["id"], image["status"]) for image in listed} == {(posted, "done"), (begun, "done")}
    for image_id in (posted, begun):
        assert functions.get(f"/images/{image_id}/status")["statusCode"] == 200
        assert call(functions.delete_image, http_event("DELETE", f"/images/{image_id}"))["statusCode"] == 204


@pytest.mark.guards("webhooks-off-no-recipient")
@pytest.mark.parametrize("notify", [NOTIFY, "we_x"], ids=["an id", "no id"])
def test_without_webhooks_an_order_that_names_one_is_told_so(
    core: Aws, monkeypatch: pytest.MonkeyPatch, notify: str
) -> None:
    sentence = "This stack sends no webhooks. Leave notify out, and ask for the status of the image."
    submit, begin = load("submit_image", core, monkeypatch), load("begin_upload", core, monkeypatch)
    photo = http_event(
        "POST", "/images", body=jpeg(64, 48), headers={"content-type": "image/jpeg"}, query=f"notify={notify}"
    )
    announced = {"bytes": 1000, "sha256": "0" * 64, "notify": notify}
    upload = http_event(
        "POST", "/uploads", body=json.dumps(announced).encode(), headers={"content-type": "application/json"}
    )
    assert refused(call(submit, photo)) == (422, "part_not_deployed", sentence)
    assert refused(call(begin, upload)) == (422, "part_not_deployed", sentence)


@pytest.mark.guards("bulk-off-no-batch", "bulk-off-every-turn")
def test_without_bulk_an_order_for_a_batch_is_told_so_and_what_awaits_its_turn_there_begins(
    core: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit = load("submit_image", core, monkeypatch)
    photo = http_event("POST", "/images", body=jpeg(64, 48), query=f"batch=ba_{'0' * 26}")
    sentence = "This stack has no batches. Leave batch out."
    assert refused(call(submit, photo)) == (422, "part_not_deployed", sentence)
    assert has_turn_of("", boto3.client("dynamodb"))(pending(awaits_turn=True))


@pytest.mark.guards("imports-off-url-refused")
@pytest.mark.parametrize("url", ["https://photos.example/a.jpg", "no url"])
def test_without_imports_a_url_is_told_so(core: Aws, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    submit = load("submit_image", core, monkeypatch)
    sentence = "This stack does not fetch images. Post the photo itself."
    assert refused(call(submit, of_url(url))) == (422, "part_not_deployed", sentence)


@pytest.mark.guards("imports-off-fetches-end", "imports-off-pages-nobody")
def test_what_was_to_be_fetched_when_imports_went_ends_with_the_reason(
    aws: Aws, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    image_id = json.loads(call(load("submit_image", aws, monkeypatch), of_url())["body"])["id"]
    table = ImagesTable(boto3.client("dynamodb"), aws.images_table)
    row = table.get(image_id)
    assert row is not None and row.status is Status.FETCHING
    table.change(row, replace(row, due_at=1))
    gone = aws.environment | {"IMPORTS": "false"}
    monkeypatch.setattr(type(aws), "environment", property(lambda _: gone))
    capsys.readouterr()
    assert call(load("sweep_due_images", aws, monkeypatch), {})["outcomes"] == {"gave_up": 1}
    ended = table.get(image_id)
    assert ended is not None and ended.error is not None and ended.status is Status.FAILED
    assert ended.error.message.startswith("This stack does not fetch images any more.")
    assert '"ImagesGivenUp"' not in capsys.readouterr().out, "an operator chose it"


@pytest.mark.guards("usage-off-no-route")
def test_without_usage_there_is_nothing_at_its_path(core: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = load("read_image", core, monkeypatch)
    answer = reader.handler(http_event("GET", "/usage"), Context("read_image"))
    assert refused(answer)[:2] == (404, "unknown_path")


@pytest.mark.guards("usage-off-no-sums")
def test_without_usage_no_sum_of_before_refuses_anybody(core: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("submit_image", "begin_upload"):
        keeper = load(name, core, monkeypatch).ports.quotas
        keeper.require_room("acme", Quota(stored_bytes=1, images=1), size_bytes=10)


@pytest.mark.guards("parts-off-no-methods")
def test_a_path_of_an_absent_part_allows_no_method(core: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = load("read_image", core, monkeypatch)
    for method, path in (("GET", "/webhooks"), ("PUT", "/webhooks"), ("POST", "/usage"), ("GET", "/app/")):
        answer = reader.handler(http_event(method, path), Context("read_image"))
        assert refused(answer)[:2] == (404, "unknown_path"), (method, path)


@pytest.mark.guards("parts-off-undescribed")
def test_openapi_describes_what_is_deployed(core: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = json.loads(call(load("read_image", core, monkeypatch), http_event("GET", "/openapi.json"))["body"])
    assert alone["webhooks"] == {}
    assert {path.split("/")[1] for path in alone["paths"]} == {"images", "uploads", "openapi.json"}
    post, components = alone["paths"]["/images"]["post"], alone["components"]
    assert "notify" not in {parameter["name"] for parameter in post["parameters"]}
    assert "application/json" not in post["requestBody"]["content"]
    assert "notify" not in components["schemas"]["Announcement"]["properties"]
    assert {"unknown_notify", "quota_exceeded", "invalid_fetch", "invalid_url"}.isdisjoint(components["examples"])
    assert not [name for name in components["schemas"] if name.startswith(("Quota", "Webhook", "FetchOrder"))]
    assert list(OpenAPIV31SpecValidator(alone).iter_errors()) == []


def test_what_is_left_of_a_part_is_emptied_and_nothing_else(aws: Aws) -> None:
    stack = stack_of(aws, {"Webhooks": "false", "Usage": "false"})
    tables = {
        name: boto3.resource("dynamodb").Table(name) for name in ("DeliveriesTable", "EndpointsTable", "UsageTable")
    }
    for number in range(30):
        tables["DeliveriesTable"].put_item(Item={"endpoint_id": "we_1", "delivery_id": f"d{number}"})
        tables["EndpointsTable"].put_item(Item={"tenant_id": "acme", "place": number})
    tables["UsageTable"].put_item(Item={"tenant_id": "acme", "day": "2026-11-21"})
    boto3.client("sqs").send_message(QueueUrl=aws.webhooks_queue_url, MessageBody="an event")
    remains = Remains(stack=stack)
    counted = [remains.count(name) for name in ("DeliveriesTable", "EndpointsTable", "WebhooksQueue")]
    assert counted == [30, 30, 1]
    for _ in range(2):
        purge(stack, "webhooks")
        assert [remains.count(name) for name in KEPT["webhooks"]] == [0] * 7
    assert remains.count("UsageTable") == 1, "another part's"
    assert boto3.client("secretsmanager").get_secret_value(SecretId=aws.webhooks_secret)["SecretString"] == "w" * 64


@pytest.mark.guards("parts-purge-unprocessed-again")
def test_rows_that_dynamodb_left_are_removed_by_another_call(aws: Aws) -> None:
    stack, refused = stack_of(aws, {"Usage": "false"}), list[int]()
    table = boto3.resource("dynamodb").Table("UsageTable")
    for day in range(3):
        table.put_item(Item={"tenant_id": "acme", "day": f"2026-11-0{day}"})
    dynamodb = stack.client("dynamodb")

    def leaving_one(RequestItems: dict[str, Any]) -> Any:  # noqa: N803 -- boto3's
        if not refused:
            refused.append(1)
            left = {name: requests[:1] for name, requests in RequestItems.items()}
            dynamodb.whole(RequestItems={name: requests[1:] for name, requests in RequestItems.items()})
            return {"UnprocessedItems": left}
        return dynamodb.whole(RequestItems=RequestItems)

    dynamodb.whole, dynamodb.batch_write_item = dynamodb.batch_write_item, leaving_one
    Remains(stack=stack, pause=lambda _: None).empty("UsageTable", lambda _: None)
    assert table.scan()["Items"] == []


@pytest.mark.guards("parts-purge-queue-repeated")
def test_a_queue_that_was_just_emptied_is_no_failure(aws: Aws) -> None:
    stack = stack_of(aws, {"Imports": "false"})
    busy = ClientError({"Error": {"Code": "AWS.SimpleQueueService.PurgeQueueInProgress"}}, "PurgeQueue")
    stack.client("sqs").purge_queue = lambda **_: (_ for _ in ()).throw(busy)
    Remains(stack=stack).empty("FetchQueue", lambda _: None)


@pytest.mark.guards("parts-purge-no-deployment")
def test_nothing_is_said_of_a_stack_that_is_being_changed(aws: Aws) -> None:
    with pytest.raises(ApiError, match="is being changed"):
        stack_of(aws, status="UPDATE_IN_PROGRESS").parts_by_now()


def test_a_purge_trusts_no_remembered_answer_about_what_is_deployed(aws: Aws) -> None:
    given = {"Usage": "false"}
    stack = stack_of(aws, given)
    assert stack.parts == stack.parts_by_now() == {"webhooks", "imports", "page", "bulk"}
    given["Usage"] = "true"
    assert "usage" in stack.parts_by_now()
    assert "usage" not in stack.parts, "what lists and observes asks once"


def stack_of(
    aws: Aws, parameters: Mapping[str, str] = MappingProxyType({}), *, status: str = "UPDATE_COMPLETE"
) -> OperatedStack:
    """A handle on a stack that CloudFormation says to have these parameters at each moment."""

    def described(**_: str) -> Any:
        given = [{"ParameterKey": name, "ParameterValue": value} for name, value in parameters.items()]
        return {"Stacks": [{"StackStatus": status, "Parameters": given}]}

    connect: Any = boto3.client
    clients: dict[str, Any] = {"cloudformation": SimpleNamespace(describe_stacks=described)}
    queues = {
        "WebhooksQueue": aws.webhooks_queue_url,
        "WebhooksDeadLetters": aws.dead_letter_urls["events"],
        "DeliveryQueue": aws.delivery_queue_url,
        "DeliveryDeadLetters": aws.dead_letter_urls["delivery"],
        "UnpublishedEvents": aws.unpublished_events_url,
        "FetchQueue": aws.fetch_queue_url,
    }
    return operated_stack(
        aws,
        client=lambda service: clients.setdefault(service, connect(service)),
        others={name: ("AWS::SQS::Queue", url) for name, url in queues.items()},
    )
