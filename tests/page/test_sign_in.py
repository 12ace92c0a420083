"""Signing in with tokens: by redirect to an issuer on this machine and back, with PKCE.

The page's function is told that the stack asks for tokens, so its settings and its policy are those of Access=jwt. The
API itself still asks for keys, and so the issuer's token is the visitor's key.
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from playwright.sync_api import Page, expect

from browser import axe
from tests.local.local_stack import LocalStack
from tests.page.uploads import all_done, choose, photo, send
from tests.page.visitor import Visitor

CLIENT = "the-page"
CODE = "one-time-code"


@dataclass
class Issuer:
    """What the issuer was asked, and what it gives: a `token`, or an `error` in the place of a code."""

    token: str
    url: str = ""
    error: str | None = None
    asked: dict[str, str] = field(default_factory=dict)
    exchanges: int = 0

    def authorize(self, asked: Mapping[str, str]) -> str:
        """Where the browser is sent: back, as if the reader had signed in."""
        self.asked = dict(asked)
        answer = {"error": self.error} if self.error else {"code": CODE}
        return f"{asked['redirect_uri']}?{urlencode({**answer, 'state': asked['state'], 'iss': self.url})}"

    def exchange(self, form: Mapping[str, str]) -> tuple[int, dict[str, Any]]:
        """The token for a code, if the verifier is that of the challenge (RFC 7636, section 4.6)."""
        self.exchanges += 1
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        expected = {"code": CODE, "client_id": CLIENT, "redirect_uri": self.asked.get("redirect_uri")}
        if challenge != self.asked.get("code_challenge") or any(
            form[name] != value for name, value in expected.items()
        ):
            return 400, {"error": "invalid_grant"}
        return 200, {"access_token": self.token, "token_type": "Bearer"}


@contextmanager
def served(issuer: Issuer) -> Iterator[None]:
    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            address = urlsplit(self.path)
            if address.path == "/authorize":
                self.send_response(302)
                self.send_header("Location", issuer.authorize(dict(parse_qsl(address.query))))
                self.end_headers()
                return
            endpoints = {"authorization_endpoint": f"{issuer.url}/authorize", "token_endpoint": f"{issuer.url}/token"}
            self._answer(200, {"issuer": issuer.url, **endpoints})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self._answer(*issuer.exchange(dict(parse_qsl(body))))

        def _answer(self, status: int, document: dict[str, Any]) -> None:
            self.send_response(status)
            self.send_header("Access-Control-Allow-Origin", "*")
            self.end_headers()
            self.wfile.write(json.dumps(document).encode())

        def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    issuer.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def configured(stack: LocalStack, variables: Mapping[str, str]) -> Iterator[None]:
    """The page's function with these variables for the length of the block."""
    functions, name = stack.client("lambda"), stack.physical_id("ServePageFunction")
    before = functions.get_function_configuration(FunctionName=name)["Environment"]["Variables"]

    def set_to(wanted: Mapping[str, str]) -> None:
        functions.update_function_configuration(FunctionName=name, Environment={"Variables": dict(wanted)})
        functions.get_waiter("function_updated_v2").wait(FunctionName=name)

    set_to({**before, **variables})
    try:
        yield
    finally:
        set_to(before)


@pytest.fixture
def issuer(stack: LocalStack, visitor: Visitor) -> Iterator[Issuer]:
    issuer = Issuer(token=visitor.account.key)
    with served(issuer):
        variables = {"ACCESS": "jwt", "JWT_ISSUER": issuer.url, "JWT_AUDIENCE": "darkroom", "JWT_CLIENT_ID": CLIENT}
        with configured(stack, variables):
            visitor.watch.hosts = {*visitor.watch.hosts, urlsplit(issuer.url).netloc}
            yield issuer


def sign_in(visitor: Visitor) -> Page:
    page = visitor.tab("#/browse", is_signed_in=False)
    page.get_by_role("button", name="Sign in").click()
    return page


def test_a_visitor_signs_in_at_the_issuer_and_goes_on_where_they_were(visitor: Visitor, issuer: Issuer) -> None:
    page = sign_in(visitor)
    expect(page.get_by_role("heading", level=1, name="Browse")).to_be_visible()
    assert (issuer.asked["response_type"], issuer.asked["code_challenge_method"]) == ("code", "S256")
    assert (issuer.asked["audience"], issuer.exchanges) == ("darkroom", 1)
    assert page.url == f"{visitor.address}#/browse"
    assert not any(issuer.token in request.url for request in visitor.watch.requests)
    page.reload()
    expect(page.get_by_role("heading", level=1, name="Browse")).to_be_visible()


def test_whoever_is_not_signed_in_is_told_why(visitor: Visitor, issuer: Issuer) -> None:
    issuer.error = "access_denied"
    page = sign_in(visitor)
    expect(page.get_by_role("alert")).to_contain_text("The issuer did not sign you in")
    assert (page.url, issuer.exchanges) == (f"{visitor.address}#/browse", 0)
    issuer.error = None
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", level=1, name="Browse")).to_be_visible()


def test_an_answer_that_this_tab_has_not_asked_for_is_not_taken(visitor: Visitor, issuer: Issuer) -> None:
    page = visitor.tab(f"?code={CODE}&state=another", is_signed_in=False)
    expect(page.get_by_role("alert")).to_contain_text("The answer does not belong to this tab")
    assert (page.url, issuer.exchanges) == (visitor.address, 0)


def with_an_expired_token(visitor: Visitor) -> Page:
    """A tab that has two photos to send when its token is refused."""
    page = visitor.tab()
    choose(page, [photo(0), photo(1)])
    refused = {"status": 401, "content_type": "application/json", "body": '{"message":"Unauthorized"}'}
    page.route("**/images?*", lambda route: route.fulfill(**refused), times=2)
    with visitor.watch.expecting("status of 401"):
        send(page)
        expect(page.get_by_text("or it has expired. Sign in again.")).to_be_visible()
    assert axe.findings(page) == []
    return page


def test_files_that_wait_for_a_new_token_are_sent_with_it(visitor: Visitor, issuer: Issuer) -> None:
    page = with_an_expired_token(visitor)
    issuer.error = "access_denied"
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("The issuer did not sign you in")
    issuer.error = None
    page.get_by_role("button", name="Sign in").click()
    all_done(page, 2)
    assert page.context.pages == [page], "both windows have closed themselves"
    assert issuer.exchanges == 1


def test_whose_browser_blocks_the_window_is_told_what_signing_in_here_costs(visitor: Visitor, issuer: Issuer) -> None:
    page = with_an_expired_token(visitor)
    page.evaluate("() => { window.open = () => null; }")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("If you sign in here instead, add 2 files again afterwards.")
    assert axe.findings(page) == []
    page.get_by_role("button", name="Sign in here").click()
    expect(page.get_by_role("button", name="Choose photos")).to_be_visible()


def test_with_signed_requests_the_page_says_that_it_cannot_be_used(visitor: Visitor, stack: LocalStack) -> None:
    with configured(stack, {"ACCESS": "iam"}):
        page = visitor.tab(is_signed_in=False)
        expect(page.get_by_role("heading", level=1, name="This page cannot be used here")).to_be_visible()
