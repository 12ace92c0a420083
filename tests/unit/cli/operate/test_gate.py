"""Who is served by `darkroom operate`: the page of this run, and nobody else."""

from __future__ import annotations

import html
import json
import re
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from botocore.exceptions import ClientError

from darkroom_cli.operate.server import HEADERS, MAX_BODY_BYTES
from darkroom_cli.operate.work import serve
from darkroom_client.client import ApiError
from tests.support.observed import Observed
from tests.support.stack import FakeStack
from tests.unit.cli.operate.conftest import TOKEN, Served, serving, write_page

EVERYTHING = pytest.mark.parametrize("path", ["/", "/app/", "/app/x/main.js", "/operate/api/overview", "/nothing"])


@pytest.mark.guards("operate-own-host-only")
@EVERYTHING
@pytest.mark.parametrize(
    "host", ["attacker.example", "attacker.example:{port}", "127.0.0.1", "127.0.0.1:1", "[::1]:{port}", "127.1:{port}"]
)
def test_a_name_that_leads_to_this_machine_is_refused(reading: Served, path: str, host: str) -> None:
    answer = reading.client.get(path, headers={"Host": host.format(port=reading.port)})
    assert (answer.status_code, answer.json()["code"]) == (403, "another_website")


@pytest.mark.guards("operate-links-refused")
@EVERYTHING
@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://attacker.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"},
        {"Sec-Fetch-Site": "cross-site", "Referer": "http://127.0.0.1:{port}/app/"},
    ],
)
def test_no_request_of_another_website_is_served_not_even_with_the_token(
    reading: Served, path: str, headers: dict[str, str]
) -> None:
    headers = {name: value.format(port=reading.port) for name, value in headers.items()}
    answer = reading.client.get(path, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (403, "another_website")
    assert "access-control-allow-origin" not in answer.headers
    may_it = {**headers, "Access-Control-Request-Headers": "authorization"}
    assert reading.client.request("OPTIONS", path, headers=may_it).status_code == 403


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_the_page_of_this_run_is_served_under_both_names(reading: Served, name: str) -> None:
    headers = {
        "Host": f"{name}:{reading.port}",
        "Origin": f"http://{name}:{reading.port}",
        "Sec-Fetch-Site": "same-origin",
    }
    assert reading.client.get("/operate/api/overview", headers=headers).status_code == 200


@pytest.mark.guards("operate-read-token", "operate-request-token")
@pytest.mark.parametrize("path", ["overview", "failures", "tenants", "nothing"])
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
@pytest.mark.parametrize(
    "given",
    [None, "", TOKEN, "Bearer", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"bearer {TOKEN}", f"Basic {TOKEN}"],
)
def test_nothing_is_read_or_done_without_the_token_of_this_run(
    writing: Served, path: str, method: str, given: str | None
) -> None:
    with httpx.Client(base_url=f"http://127.0.0.1:{writing.port}", trust_env=False) as client:
        headers = {} if given is None else {"Authorization": given}
        answer = client.request(method, f"/operate/api/{path}", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")
    assert TOKEN not in answer.text


def test_a_token_in_the_address_opens_nothing(reading: Served) -> None:
    with httpx.Client(base_url=f"http://127.0.0.1:{reading.port}", trust_env=False) as client:
        for query in ("token", "access_token", "authorization"):
            assert client.get("/operate/api/overview", params={query: TOKEN}).status_code == 401
        assert client.get("/operate/api/overview", headers={"Cookie": f"token={TOKEN}"}).status_code == 401


def answer_to(served: Served, path: str, *headers: str) -> bytes:
    """To a request that no client would send."""
    with socket.create_connection(("127.0.0.1", served.port)) as connection:
        request = "\r\n".join([f"GET {path} HTTP/1.1", *headers, "Connection: close", "", ""])
        connection.sendall(request.encode())
        return b"".join(iter(lambda: connection.recv(65536), b""))


@pytest.mark.parametrize("twice", ["Host", "Authorization", "Origin", "Sec-Fetch-Site"])
def test_a_header_that_is_there_twice_is_refused(reading: Served, twice: str) -> None:
    own = f"127.0.0.1:{reading.port}"
    values = {
        "Host": own,
        "Authorization": f"Bearer {TOKEN}",
        "Origin": f"http://{own}",
        "Sec-Fetch-Site": "same-origin",
    }
    lines = [f"{name}: {value}" for name, value in values.items()] + [f"{twice}: {values[twice]}"]
    assert int(answer_to(reading, "/operate/api/overview", *lines).split()[1]) in (400, 401, 403)


@EVERYTHING
def test_every_answer_forbids_what_the_page_does_not_need(reading: Served, path: str) -> None:
    for headers in ({}, {"Host": "attacker.example"}, {"Authorization": "no"}):
        answer = reading.client.get(path, headers=headers)
        assert {name: answer.headers.get_list(name) for name in HEADERS} == {
            name: [value] for name, value in HEADERS.items()
        }
        assert "server" not in answer.headers


@pytest.mark.guards("operate-settings-escaped")
def test_the_page_is_told_what_it_serves_and_nothing_can_leave_its_attribute(tmp_path: Path) -> None:
    stack = FakeStack(world=Observed(), name='"><script>alert(1)</script>{tree}{settings}')
    with serving(stack, write_page(tmp_path / "web"), is_writable=False) as served:
        text = served.client.get("/app/").text
        script = re.findall(r'src="([^"]*)"', text)[0]
        answer = served.client.get(script)
    assert "<script>alert" not in text
    (content,) = re.findall(r'content="([^"]*)"', text)
    settings: dict[str, Any] = json.loads(html.unescape(content))
    assert settings["stack"] == stack.name
    assert (settings["write"], settings["production"]) == (False, True)
    assert TOKEN not in text
    assert (answer.text, answer.headers["content-type"]) == (
        "export const one = 1;\n",
        "text/javascript; charset=utf-8",
    )


class Unreachable(FakeStack):
    """A stack that the operator may not ask any more."""

    @property
    def parameters(self) -> Mapping[str, str]:
        raise ClientError({"Error": {"Code": "ExpiredToken", "Message": "It has expired."}}, "DescribeStacks")

    @parameters.setter
    def parameters(self, _: Mapping[str, str]) -> None: ...


def test_no_page_is_served_of_a_stack_that_does_not_answer() -> None:
    stack: Any = Unreachable(world=Observed())
    refused = pytest.raises(ApiError, match=r"AWS refuses DescribeStacks .* \(ExpiredToken\)")
    with socket.create_server(("127.0.0.1", 0)) as taken, refused:  # the port is taken, so that it ends in any case
        serve(stack, write=False, port=taken.getsockname()[1], open_it=False)


def test_the_root_leads_to_the_page(reading: Served) -> None:
    for path in ("/", "/app"):
        answer = reading.client.get(path)
        assert answer.is_redirect and answer.headers["location"].endswith("/app/")


@pytest.mark.guards("operate-path-confinement")
@pytest.mark.parametrize(
    "path",
    ["../secret.js", "..%2fsecret.js", "%2e%2e/secret.js", "parts/../../secret.js", "/etc/passwd", "none.js", "parts"],
)
def test_no_path_leads_out_of_the_pages_folder(reading: Served, path: str) -> None:
    answer = answer_to(reading, f"/app/x/{path}", f"Host: 127.0.0.1:{reading.port}")
    assert b" 404 " in answer.splitlines()[0]
    assert b"not of the page" not in answer


def test_a_file_of_a_folder_of_the_page_is_served(reading: Served) -> None:
    assert reading.client.get("/app/x/parts/table.js").text == "export const two = 2;\n"


@pytest.mark.guards("operate-body-size-bound")
def test_a_body_is_read_no_further_than_an_action_may_be_long(writing: Served) -> None:
    sent = 0

    def endless() -> Any:
        nonlocal sent
        while sent < 100 * MAX_BODY_BYTES:
            sent += 16_384
            yield b"x" * 16_384

    try:
        answer = writing.client.post(
            "/operate/api/replay", content=endless(), headers={"Content-Type": "application/json"}
        )
        assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    except (httpx.WriteError, httpx.ReadError):  # it hung up while this was still sending
        assert sent < 100 * MAX_BODY_BYTES


def test_a_form_of_a_website_is_no_action(writing: Served) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        answer = writing.client.post("/operate/api/replay", content=b"{}", headers={"Content-Type": kind})
        assert answer.status_code == 415


def test_a_document_that_names_no_icon_gets_the_pages_own(reading: Served) -> None:
    answer = reading.client.get("/favicon.ico")
    assert answer.is_redirect and answer.headers["location"].endswith("/icon.svg")
