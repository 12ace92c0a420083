"""Headers that the owner of a webhook adds: which are allowed, who sees them, and where they are sent."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from darkroom.domain.webhooks.custom_headers import (
    MAX_HEADERS,
    MAX_NAME_CHARACTERS,
    NONCE_BYTES,
    SealBroken,
    opened,
    problem_with_name,
    seal,
    size_of,
)
from darkroom.domain.webhooks.delivery import Answer
from darkroom.domain.webhooks.endpoint import Endpoint
from tests.support.fakes.world import event
from tests.support.webhooks import URL, Api, endpoint, webhooks_api

MASTER = b"m" * 64
TOKEN = "Bearer s3cret-t0ken/of.the+shop="
SECRET = {"name": "Authorization", "value": TOKEN}
PLAIN = {"name": "X-Shop", "value": "42", "secret": False}
SHOWN = [
    {"name": "Authorization", "value": None, "secret": True},
    {"name": "X-Shop", "value": "42", "secret": False},
]


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Api:
    return webhooks_api(monkeypatch)


def refused(api: Api, headers: Any, *, path: str = "/webhooks") -> str:
    """What is said about headers that are not taken."""
    answer = api("POST" if path == "/webhooks" else "PATCH", path, {"url": f"{URL}/2", "headers": headers})
    assert answer.status == 400, answer.body
    return str(answer.body["detail"])


# ── What may be added ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.guards("webhook-header-reserved-name")
@pytest.mark.parametrize(
    "name",
    [
        *("Host", "content-length", "Content-Type", "CONTENT-ENCODING", "Transfer-Encoding", "Connection", "Upgrade"),
        *("TE", "Trailer", "Expect", "Keep-Alive", "Proxy-Authorization", "Via", "Date", "User-Agent", "Range"),
        *("Accept-Encoding", "Cookie", "Forwarded", "X-Forwarded-For", "X-Real-IP", "If-Match", "Sec-Fetch-Mode"),
        *("webhook-id", "Webhook-Signature", "svix-signature", "Darkroom-Anything", "X-Amz-Security-Token"),
    ],
)
def test_a_header_that_http_the_signature_or_the_stack_uses_is_refused(api: Api, name: str) -> None:
    assert "choose another name" in refused(api, [{"name": name, "value": "x"}])
    assert not api.world.endpoints.rows


@pytest.mark.guards("webhook-header-underscore-name")
def test_a_name_with_underscores_is_the_one_with_hyphens(api: Api) -> None:
    assert "choose another name" in refused(api, [{"name": "Content_Length", "value": "0"}])


@pytest.mark.guards("webhook-header-name-token")
@pytest.mark.parametrize(
    "name", ["", "X Shop", "X-Shop:", "X-Shöp", "X\r\nHost", "X\0", "x" * (MAX_NAME_CHARACTERS + 1)]
)
def test_what_is_no_name_is_refused(api: Api, name: str) -> None:
    assert "must be a header's name" in refused(api, [{"name": name, "value": "x"}])


@pytest.mark.guards("webhook-header-value-text")
@pytest.mark.parametrize("value", ["", " x", "x ", "a\r\nHost: b", "a\nb", "a\0", "a\tb", "é", "x" * 1025])
def test_what_is_no_value_is_refused_and_not_repeated(api: Api, value: str) -> None:
    said = refused(api, [{"name": "X-Shop", "value": value}])
    assert said.endswith("headers.0.value: must be 1 to 1,024 visible ASCII characters, with spaces only inside.")


def test_a_secret_in_the_wrong_place_is_not_repeated(api: Api, capsys: pytest.CaptureFixture[str]) -> None:
    wrong: list[Any] = [
        [{"name": f"Authorization: {TOKEN}", "value": "x"}],
        [{"name": "Authorization", "value": [TOKEN]}],
        {"Authorization": TOKEN},
        [f"Authorization: {TOKEN}"],
    ]
    for headers in wrong:
        assert "s3cret" not in refused(api, headers)
    assert "s3cret" not in capsys.readouterr().out


@pytest.mark.guards("webhook-header-twice-refused")
def test_names_are_equal_in_any_case(api: Api) -> None:
    assert "twice" in refused(api, [SECRET, {"name": "authorization", "value": "x"}])


def test_there_are_at_most_five(api: Api) -> None:
    headers = [{"name": f"X-{number}", "value": "x"} for number in range(MAX_HEADERS + 1)]
    assert "at most 5" in refused(api, headers)
    assert len(api.make(headers=headers[1:])["headers"]) == MAX_HEADERS


@pytest.mark.guards("webhook-headers-size-bound")
def test_their_values_together_have_a_bound_those_that_are_kept_included(api: Api) -> None:
    first, second = ({"name": name, "value": "x" * 1024} for name in ("X-First", "X-Second"))
    path = f"/webhooks/{api.make(headers=[first, second])['id']}"
    more = [{"name": "X-First"}, {"name": "X-Second"}, {"name": "X-Third", "value": "x"}]
    assert "more than 2,048 bytes together" in refused(api, more, path=path)


# ── What is shown ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.guards("webhook-header-secret-by-default")
def test_a_value_is_secret_unless_its_owner_says_otherwise_and_then_is_never_seen_again(
    api: Api, capsys: pytest.CaptureFixture[str]
) -> None:
    made = api.make(headers=[SECRET, PLAIN])
    path = f"/webhooks/{made['id']}"
    documents = [
        made,
        api("GET", path).body,
        api("PATCH", path, {"description": "the shop"}).body,
        api("POST", f"{path}/rotate").body,
        *api("GET", "/webhooks").body["webhooks"],
    ]
    assert [document["headers"] for document in documents] == [SHOWN] * 5
    api.world.send(event())
    everything = repr(api.world.endpoints.rows) + repr(api.world.deliveries.rows) + capsys.readouterr().out
    assert "s3cret" not in everything


def test_a_change_without_headers_keeps_them_and_one_with_headers_names_all(api: Api) -> None:
    path = f"/webhooks/{api.make(headers=[SECRET, PLAIN])['id']}"
    assert api("PATCH", path, {"events": ["image.done"]}).body["headers"] == SHOWN
    kept = [{"name": "authorization"}, {"name": "X-Shop", "value": "43", "secret": False}]
    assert [header["value"] for header in api("PATCH", path, {"headers": kept}).body["headers"]] == [None, "43"]
    api.world.send(event(1))
    assert api("PATCH", path, {"headers": [{"name": "X-Shop", "secret": True}]}).body["headers"] == [
        {"name": "X-Shop", "value": None, "secret": True}
    ]
    api.world.send(event(2))
    assert api("PATCH", path, {"headers": []}).body["headers"] == []
    api.world.send(event(3))
    sent = [dict(request.headers) for request in api.world.receiver.requests]
    assert [(one.get("authorization"), one.get("X-Shop")) for one in sent] == [
        (TOKEN, "43"),
        (None, "43"),
        (None, None),
    ]


@pytest.mark.guards("webhook-header-secret-stays")
def test_a_secret_value_is_not_made_visible(api: Api) -> None:
    path = f"/webhooks/{api.make(headers=[SECRET])['id']}"
    answer = api("PATCH", path, {"headers": [{"name": "Authorization", "secret": False}]})
    assert (answer.status, answer.body["code"]) == (400, "invalid_headers")
    assert api("GET", path).body["headers"] == SHOWN[:1]


def test_a_header_that_is_new_needs_a_value(api: Api) -> None:
    path = f"/webhooks/{api.make()['id']}"
    assert api.refusal("PATCH", path, {"headers": [{"name": "X-Shop"}]}) == (400, "invalid_headers")
    assert "headers.0.value: is missing" in refused(api, [{"name": "X-Shop"}])


# ── Where they are sent ──────────────────────────────────────────────────────────────────────────────────────────────


def test_every_attempt_has_them_beside_darkrooms_own(api: Api) -> None:
    api.make(headers=[SECRET, PLAIN])
    api.world.receiver.behaves = lambda _: Answer(milliseconds=9, status=500, body="no")
    api.world.send(event())
    api.world.run_for(60)
    assert len(api.world.receiver.requests) == 2
    for request in api.world.receiver.requests:
        assert (request.headers["Authorization"], request.headers["X-Shop"]) == (TOKEN, "42")
        assert request.headers["Content-Type"] == "application/json"
        assert request.headers["webhook-signature"].startswith("v1,")


@pytest.mark.guards("webhook-header-other-host")
@pytest.mark.parametrize("more", [{}, {"headers": [{"name": "Authorization"}]}])
def test_who_does_not_know_a_secret_value_cannot_have_it_sent_to_another_host(api: Api, more: dict[str, Any]) -> None:
    path = f"/webhooks/{api.make(headers=[SECRET, PLAIN])['id']}"
    elsewhere = {"url": "https://hooks.example.net/darkroom"}
    assert api.refusal("PATCH", path, elsewhere | more) == (400, "invalid_headers")
    assert api("PATCH", path, {"url": f"{URL}/new"}).body["headers"] == SHOWN
    assert api("PATCH", path, elsewhere | {"headers": [PLAIN]}).body["headers"] == SHOWN[1:]
    assert api("PATCH", path, {"url": URL, "headers": [SECRET]}).status == 200
    api.world.send(event())
    assert api.world.receiver.requests[-1].headers["Authorization"] == TOKEN


@pytest.mark.guards("webhook-header-seal-broken-told", "webhook-header-sealed-for-host")
def test_a_row_whose_url_an_older_version_changed_sends_no_secret_value_there(api: Api) -> None:
    path = f"/webhooks/{api.make(headers=[SECRET])['id']}"
    (row,) = api.world.endpoints.rows.values()
    api.world.endpoints.change(row, replace(row, url="https://hooks.example.net/"))
    assert api.world.send(event()) == ["failed"]
    assert not api.world.receiver.requests
    (delivery,) = api("GET", f"{path}/deliveries").body["deliveries"]
    assert "Set it again" in delivery["attempts"][0]["error"]


@pytest.mark.guards("webhook-header-echo-not-kept")
@pytest.mark.parametrize(
    "answer", [f"got {TOKEN}", json.dumps({"a": TOKEN.upper()}), "S3CRET-T0KEN%2Fof.the", "<b>s3cret-t0ken</b>"]
)
def test_an_answer_that_repeats_a_secret_value_is_not_kept(api: Api, answer: str) -> None:
    path = f"/webhooks/{api.make(headers=[SECRET, PLAIN])['id']}"
    api.world.receiver.behaves = lambda _: Answer(milliseconds=9, status=500, body=answer)
    api.world.send(event())
    (delivery,) = api("GET", f"{path}/deliveries").body["deliveries"]
    assert delivery["attempts"][0]["response"] == "(not kept: the answer repeats a secret header)"


def test_an_answer_that_repeats_what_is_not_secret_is_kept(api: Api) -> None:
    path = f"/webhooks/{api.make(headers=[SECRET, PLAIN])['id']}"
    api.world.receiver.behaves = lambda _: Answer(milliseconds=9, status=500, body="Bearer of shop 42 unknown")
    api.world.send(event())
    (delivery,) = api("GET", f"{path}/deliveries").body["deliveries"]
    assert delivery["attempts"][0]["response"] == "Bearer of shop 42 unknown"


def test_they_are_gone_with_their_webhook(api: Api) -> None:
    api("DELETE", f"/webhooks/{api.make(headers=[SECRET, PLAIN])['id']}")
    assert not api.world.endpoints.rows
    assert api.make()["headers"] == [], "in the same place"


# ── How they are stored ──────────────────────────────────────────────────────────────────────────────────────────────


def sealed(value: str = TOKEN, *, row: Endpoint | None = None, name: str = "Authorization", nonce: int = 1) -> Endpoint:
    row = row or endpoint()
    header = seal(value, name=name, endpoint=row, master=MASTER, nonce=nonce.to_bytes(NONCE_BYTES))
    return replace(row, headers=(header,))


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=300))
def test_a_sealed_value_is_opened_as_it_was(value: str) -> None:
    row = sealed(value)
    assert opened(row, MASTER) == {"Authorization": value}
    assert size_of(row.headers[0]) == len(value)


def test_equal_values_are_not_seen_to_be_equal() -> None:
    assert sealed(nonce=1).headers != sealed(nonce=2).headers
    assert sealed(nonce=1).headers == sealed(nonce=1).headers


@pytest.mark.guards("webhook-header-seal-checked")
def test_a_seal_holds_for_its_endpoint_its_host_its_name_and_its_bytes_alone() -> None:
    row = sealed()
    (header,) = row.headers
    assert header.sealed is not None
    cut = header.sealed[:40] + ("B" if header.sealed[40] == "A" else "A") + header.sealed[41:]
    others = [
        replace(row, tenant_id="globex"),
        replace(row, endpoint_id=endpoint(1).endpoint_id),
        replace(row, url="https://hooks.example.net/"),
        replace(row, headers=(replace(header, name="X-Shown"),)),
        replace(row, headers=(replace(header, sealed=cut),)),
    ]
    for other in others:
        with pytest.raises(SealBroken, match="Set it again"):
            opened(other, MASTER)
    with pytest.raises(SealBroken):
        opened(row, MASTER[::-1] + b"x")
    assert opened(replace(row, url=f"{row.url}other"), MASTER) == {"Authorization": TOKEN}


def test_a_name_may_be_any_other_token() -> None:
    assert [problem_with_name(name) for name in ("Authorization", "X-Api-Key", "X-Shop.2", "traceparent")] == [None] * 4
