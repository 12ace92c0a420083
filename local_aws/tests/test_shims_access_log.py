"""The front writes the access log of its stage, as an HTTP API does."""

import json
from typing import Any
from uuid import uuid4

import httpx
import pytest

from local_aws.tests.emulator_server import ACCOUNT_ID, REGION, EmulatorServer, stack
from local_aws.tests.http_apis import ASKED, AUTHORIZER, guarded_api

pytest_plugins = ("local_aws.tests.emulator_fixtures",)

FIELDS = {
    "id": "requestId",
    "ip": "identity.sourceIp",
    "asked": "authorizer.path",
    "method": "httpMethod",
    "route": "routeKey",
    "status": "status",
    "bytes": "responseLength",
    "error": "error.message",
    "integration": "integrationStatus",
}
FORMAT = json.dumps({name: f"$context.{variable}" for name, variable in FIELDS.items()})
TOO_LARGE = bytes(10 * 1024 * 1024 + 1)


def logged_api(group: str) -> dict[str, Any]:
    resources = guarded_api(AUTHORIZER, {"GET /images/{id}": ASKED, "POST /free": {}})
    arn = f"arn:aws:logs:{REGION}:{ACCOUNT_ID}:log-group:{group}"
    resources["Stage"]["Properties"]["AccessLogSettings"] = {"DestinationArn": arn, "Format": FORMAT}
    return {"Logs": {"Type": "AWS::Logs::LogGroup", "Properties": {"LogGroupName": group}}, **resources}


def lines(server: EmulatorServer, group: str) -> list[dict[str, str]]:
    events = server.client("logs").filter_log_events(logGroupName=group)["events"]
    return [json.loads(event["message"]) for event in events]


def test_gap_stock_writes_no_access_log(stock: EmulatorServer, http: httpx.Client) -> None:
    group = f"api-{uuid4().hex[:8]}"
    stock.client("logs").create_log_group(logGroupName=group)
    with stack(stock, {name: value for name, value in logged_api(group).items() if name != "Logs"}):
        http.get(f"{stock.front_url}/nowhere")
        assert lines(stock, group) == []


def test_every_answer_is_a_line_whoever_gave_it(emulator: EmulatorServer, http: httpx.Client) -> None:
    group, ids = f"api-{uuid4().hex[:8]}", list[str]()

    def ask(path: str, word: str | None = None, **more: Any) -> httpx.Response:
        headers = {} if word is None else {"Authorization": word}
        answer = http.request("POST" if more else "GET", f"{emulator.front_url}{path}", headers=headers, **more)
        ids.append(answer.headers["apigw-requestid"])
        return answer

    with stack(emulator, logged_api(group)):
        good = ask("/images/7", "open")
        missing = ask("/images/7?status=404", "open")
        for path, word in (("/images/7?fail=1", "open"), ("/images/7?malformed=1", "open"), ("/images/7", None)):
            ask(path, word)
        for path, word in (("/images/7", "closed"), ("/images/7", "fail"), ("/nowhere", None)):
            ask(path, word)
        ask("/free", content=TOO_LARGE)
        logged = lines(emulator, group)
    assert [each["id"] for each in logged] == ids
    assert good.json()["requestContext"]["requestId"] == ids[0]
    route, size = "GET /images/{id}", str(len(good.content))
    assert logged[0] == {
        "id": ids[0],
        "ip": "127.0.0.1",
        "asked": "/images/7",
        "method": "GET",
        "route": route,
        "status": "200",
        "bytes": size,
        "error": "-",
        "integration": "200",
    }
    assert (logged[1]["status"], logged[1]["error"]) == (str(missing.status_code), "-"), "the function's own answer"
    assert [tuple(each[name] for name in ("status", "route", "error", "asked")) for each in logged[2:]] == [
        ("500", route, "Internal Server Error", "/images/7"),
        ("500", route, "Internal Server Error", "/images/7"),
        ("401", route, "Unauthorized", "-"),
        ("403", route, "Forbidden", "-"),
        ("500", route, "Internal Server Error", "-"),
        ("404", "-", "Not Found", "-"),
        ("413", "-", "Request Entity Too Large", "-"),
    ]


@pytest.mark.parametrize("destination", ["", f"arn:aws:logs:{REGION}:{ACCOUNT_ID}:log-group:nowhere"])
def test_a_stage_without_a_log_answers_all_the_same(
    emulator: EmulatorServer, http: httpx.Client, destination: str
) -> None:
    resources = logged_api("unused")
    resources["Stage"]["Properties"]["AccessLogSettings"]["DestinationArn"] = destination
    with stack(emulator, resources):
        assert http.get(f"{emulator.front_url}/nowhere").status_code == 404
