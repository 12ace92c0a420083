"""The front serves the deployed HTTP API at its root, as API Gateway's `$default` stage does."""

import http.client
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import httpx
import pytest

from local_aws.tests.emulator_server import EmulatorServer, stack
from local_aws.tests.http_apis import echo_api

pytest_plugins = ("local_aws.tests.emulator_fixtures",)


@pytest.fixture(scope="module")
def api_url(emulator: EmulatorServer) -> Iterator[str]:
    """The address of an API that answers with the event that its function got."""
    with stack(emulator, echo_api({"ANY /images/{id}": {}, "POST /images": {}, "GET /files/{path+}": {}})):
        yield emulator.front_url


def test_without_an_api_the_front_says_that_none_is_deployed(emulator: EmulatorServer, http: httpx.Client) -> None:
    answer = http.get(f"{emulator.front_url}/images")
    assert answer.status_code == 503
    assert "No HTTP API is deployed" in answer.json()["message"]


def test_the_function_gets_the_event_of_the_default_stage(api_url: str, http: httpx.Client) -> None:
    event = http.get(f"{api_url}/images/7?name=a%20b&name=c&empty=").json()
    assert event["version"] == "2.0"
    assert event["routeKey"] == "ANY /images/{id}"
    assert event["rawPath"] == "/images/7"
    assert event["rawQueryString"] == "name=a%20b&name=c&empty="
    assert event["queryStringParameters"] == {"name": "a b,c", "empty": ""}
    assert event["pathParameters"] == {"id": "7"}
    assert event["requestContext"]["stage"] == "$default"
    assert event["requestContext"]["http"]["path"] == "/images/7"


def test_an_escaped_path_reaches_the_function_decoded(api_url: str, http: httpx.Client) -> None:
    event = http.get(f"{api_url}/images/caf%C3%A9%20%2B").json()
    assert event["rawPath"] == "/images/café +"
    assert event["pathParameters"] == {"id": "café +"}


def test_a_greedy_parameter_takes_the_rest_of_the_path(api_url: str, http: httpx.Client) -> None:
    assert http.get(f"{api_url}/files/a/b/c").json()["pathParameters"] == {"path": "a/b/c"}


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/"), ("GET", "/images"), ("POST", "/images/"), ("GET", "/$default")]
)
def test_what_no_route_matches_is_the_gateways_own_404(
    api_url: str, http: httpx.Client, method: str, path: str
) -> None:
    answer = http.request(method, f"{api_url}{path}")
    assert (answer.status_code, answer.text) == (404, '{"message":"Not Found"}')
    assert answer.headers["Content-Type"] == "application/json"


def test_the_function_gets_the_clients_headers_and_the_gateways(api_url: str, http: httpx.Client) -> None:
    headers = {"X-Custom": "one", "Keep-Alive": "timeout=5", "TE": "trailers", "X-Forwarded-For": "203.0.113.7"}
    seen = http.get(f"{api_url}/images/7", headers=headers).json()["headers"]
    assert seen["x-custom"] == "one"
    assert seen["x-forwarded-for"] == "203.0.113.7, 127.0.0.1"
    assert seen["x-forwarded-port"] == str(urlsplit(api_url).port)
    assert seen["x-forwarded-proto"] == "http"
    assert seen["x-amzn-trace-id"].startswith("Root=1-")
    assert not {"keep-alive", "te", "connection"} & set(seen)


def test_repeated_headers_are_joined(api_url: str, http: httpx.Client) -> None:
    seen = http.get(f"{api_url}/images/7", headers=[("X-Custom", "one"), ("X-Custom", "two")]).json()["headers"]
    assert seen["x-custom"] == "one,two"


def test_the_client_gets_the_functions_status_and_end_to_end_headers(api_url: str, http: httpx.Client) -> None:
    answer = http.get(f"{api_url}/images/7?status=202")
    assert answer.status_code == 202
    assert answer.headers["X-Echo"] == "yes"
    assert answer.headers["apigw-requestid"]
    assert answer.headers["Date"]
    assert "close" not in answer.headers.get("Connection", "")


def test_a_head_request_gets_headers_and_no_body(api_url: str, http: httpx.Client) -> None:
    answer = http.head(f"{api_url}/images/7")
    assert (answer.status_code, answer.content) == (200, b"")
    assert int(answer.headers["Content-Length"]) > 0


def test_a_connection_serves_one_request_after_another(api_url: str) -> None:
    location = urlsplit(api_url)
    connection = http.client.HTTPConnection(location.hostname or "", location.port)
    connection.request("GET", "/images/1")
    connection.getresponse().read()
    socket = connection.sock
    connection.request("GET", "/images/2")
    assert connection.getresponse().status == 200
    assert connection.sock is socket
    connection.close()


def test_a_chunked_body_arrives_whole(api_url: str, http: httpx.Client) -> None:
    event = http.post(f"{api_url}/images", content=iter([b"1" * 300, b"2" * 600])).json()
    assert event["isBase64Encoded"]
    assert event["body"] == 900 * 4 // 3


def test_a_text_body_arrives_as_text(api_url: str, http: httpx.Client) -> None:
    event = http.post(f"{api_url}/images", json=[1, 2]).json()
    assert (event["isBase64Encoded"], event["body"]) == (False, len("[1,2]"))


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_above_10_mb_is_the_gateways_own_413(api_url: str, http: httpx.Client, chunked: bool) -> None:
    body = bytes(10 * 1024 * 1024 + 1)
    answer = http.post(f"{api_url}/images", content=iter([body]) if chunked else body)
    assert (answer.status_code, answer.text) == (413, '{"message":"Request Entity Too Large"}')


@pytest.mark.parametrize(("path_bytes", "header_bytes"), [(10_300, 0), (0, 10_300), (5_200, 5_200)])
def test_a_head_above_10240_bytes_is_the_gateways_own_431(
    api_url: str, http: httpx.Client, path_bytes: int, header_bytes: int
) -> None:
    url = f"{api_url}/images/7?a={'x' * path_bytes}"
    answer = http.get(url, headers={"X-Custom": "y" * header_bytes})
    assert (answer.status_code, answer.text) == (431, '{"message":"Request Header Fields Too Large"}')
    assert http.get(f"{api_url}/images/7?a={'x' * 5_000}", headers={"X-Custom": "y" * 4_900}).status_code == 200


def test_requests_are_served_side_by_side(api_url: str, http: httpx.Client) -> None:
    with ThreadPoolExecutor(8) as clients:
        answers = list(clients.map(lambda number: http.get(f"{api_url}/images/{number}"), range(32)))
    assert [answer.json()["pathParameters"]["id"] for answer in answers] == [str(number) for number in range(32)]
