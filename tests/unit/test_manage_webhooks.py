"""What a tenant may do with its webhooks: requests through the real router, over the fakes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import time_machine
from standardwebhooks import Webhook

from darkroom.domain.events.event import PATTERNS, EventType
from darkroom.domain.kernel.instants import rfc3339
from darkroom.domain.webhooks.delivery import (
    KEPT_SECONDS,
    MAX_PAGE_DELIVERIES,
    REMEMBERED_ATTEMPTS,
    RESEND_SECONDS,
    RESPONSE_CHARACTERS,
    Answer,
    Delivery,
    DeliveryAttempt,
    DeliveryStatus,
    claim,
)
from darkroom.domain.webhooks.endpoint import MAX_SECRETS, QUIET_SECONDS, ROTATION_SECONDS, DisabledBy, disable
from darkroom.domain.webhooks.endpoint_ids import MAX_ENDPOINTS, place_of
from darkroom.http.webhooks.webhooks import MAX_WEBHOOK_BYTES
from darkroom.ports.kernel import UnreadableRow
from darkroom.ports.webhooks import DeliveryPage
from tests.support.fakes.webhooks import Request
from tests.support.fakes.world import TENANT, WebhooksWorld, event
from tests.support.webhooks import URL, Api, webhooks_api

UNKNOWN = "we_0000000000000000"
DAY = 24 * 3600


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Api:
    return webhooks_api(monkeypatch)


# ── Making and reading ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.promise("webhook-secret-shown-once")
def test_a_webhook_is_made_and_its_secret_is_shown_once(api: Api) -> None:
    made = api("POST", "/webhooks", {"url": URL, "events": ["image.done", "image.*"], "description": "the shop"})
    assert made.status == 201
    secret = made.body.pop("secret")
    path = f"/webhooks/{made.body['id']}"
    assert made.headers["Location"] == path
    assert made.headers["Cache-Control"] == "no-store"
    assert made.body == {
        "id": made.body["id"],
        "url": URL,
        "events": ["image.done", "image.*"],
        "description": "the shop",
        "headers": [],
        "enabled": True,
        "disabled_by": None,
        "disabled_at": None,
        "paused_at": None,
        "failing_since": None,
        "warned_at": None,
        "last_success_at": None,
        "last_failure_at": None,
        "rests_until": None,
        "recovering_since": None,
        "earlier_secrets_until": None,
        "created_at": rfc3339(api.world.now),
        "links": {"self": path, "deliveries": f"{path}/deliveries"},
    }
    read = api("GET", path)
    assert (read.status, read.body) == (200, made.body)
    assert secret not in json.dumps([api("GET", "/webhooks").body, api("PATCH", path, {"enabled": False}).body])


def test_its_secret_verifies_what_is_sent_to_it(api: Api) -> None:
    made = api.make()
    api.world.send(event())
    (sent,) = api.world.receiver.requests
    with time_machine.travel(api.world.now / 1000, tick=False):
        assert Webhook(made["secret"]).verify(sent.body, dict(sent.headers))


def test_a_webhook_gets_everything_unless_it_says_what_and_each_pattern_counts_once(api: Api) -> None:
    assert api.make()["events"] == ["*"]
    again = ["image.done", "*", "image.done"]
    assert api.make(f"{URL}/2", events=again, description="")["events"] == ["image.done", "*"]
    assert api("GET", "/webhooks").body["webhooks"][1]["description"] is None


def test_all_webhooks_of_the_tenant_are_listed_the_oldest_first_and_nobody_elses(api: Api) -> None:
    assert api("GET", "/webhooks").body == {"webhooks": []}
    first = api.make()["id"]
    api.world.advance(1)
    second = api.make(f"{URL}/2")["id"]
    api("DELETE", f"/webhooks/{first}")
    api.world.advance(1)
    third = api.make(f"{URL}/3")["id"]  # in the first one's place
    assert [webhook["id"] for webhook in api("GET", "/webhooks").body["webhooks"]] == [second, third]
    assert api("GET", "/webhooks", tenant="globex").body == {"webhooks": []}


EACH: tuple[tuple[str, str, Any], ...] = (
    ("GET", "", None),
    ("PATCH", "", {"enabled": True}),
    ("DELETE", "", None),
    ("POST", "/rotate", None),
    ("POST", "/ping", None),
    ("POST", "/recover", None),
    ("GET", "/deliveries", None),
    ("POST", "/deliveries/01795251601300-1kyvb60cwewgmgxx48pc1nwmdc-3/resend", None),
)


@pytest.mark.parametrize(("method", "path", "body"), EACH)
def test_what_is_not_there_is_unknown_and_so_is_anothers(api: Api, method: str, path: str, body: Any) -> None:
    gone, existing = api.make()["id"], api.make(f"{URL}/2")["id"]
    api("DELETE", f"/webhooks/{gone}")
    before = dict(api.world.endpoints.rows)
    for webhook_id in (UNKNOWN, gone, "we_", "we_x", existing[:-1], f"{existing}0", "default", "1"):
        assert api.refusal(method, f"/webhooks/{webhook_id}{path}", body) == (404, "unknown_webhook"), webhook_id
    assert api.refusal(method, f"/webhooks/{existing}{path}", body, tenant="globex") == (404, "unknown_webhook")
    assert api.world.endpoints.rows == before
    assert api.world.delivery_queue.sent == []


# ── What is refused ──────────────────────────────────────────────────────────────────────────────────────────────────

BAD: tuple[tuple[Any, str], ...] = (
    ("", "body"),
    ("{", "body"),
    ("[]", "body"),
    ('"\\ud800"', "body"),
    ({"url": URL, "description": "x" * MAX_WEBHOOK_BYTES}, "body"),
    ({"url": 1}, "url"),
    ({"url": None}, "url"),
    ({"url": URL, "events": []}, "events"),
    ({"url": URL, "events": "*"}, "events"),
    ({"url": URL, "events": None}, "events"),
    ({"url": URL, "events": ["*"] * 33}, "events"),
    ({"url": URL, "events": ["*", 1]}, "events.1"),
    ({"url": URL, "events": ["image.done", "image.dne"]}, "events.1"),
    ({"url": URL, "events": ["image"]}, "events.0"),
    ({"url": URL, "events": ["image.d*"]}, "events.0"),
    ({"url": URL, "description": "x" * 201}, "description"),
    ({"url": URL, "description": 1}, "description"),
    ({"url": URL, "secret": "whsec_bWluZQ=="}, "secret"),
    ({"url": URL, "tenant_id": "globex"}, "tenant_id"),
    ({"url": URL, "enabled": "yes"}, "enabled"),
)


@pytest.mark.guards("webhook-body-bound")
@pytest.mark.parametrize(("body", "field"), [*BAD, ({}, "url"), ({"url": URL, "enabled": False}, "enabled")])
def test_a_bad_webhook_is_a_problem_that_names_the_field(api: Api, body: Any, field: str) -> None:
    response = api("POST", "/webhooks", body)
    assert (response.status, response.body["code"]) == (400, "invalid_webhook")
    assert [error["field"] for error in response.body["errors"]] == [field]
    assert api.world.endpoints.rows == {}


@pytest.mark.parametrize(("body", "field"), [*BAD, ({}, "body"), ({"enabled": None}, "enabled")])
def test_a_bad_change_is_a_problem_that_names_the_field_and_changes_nothing(api: Api, body: Any, field: str) -> None:
    made = api.make()
    response = api("PATCH", f"/webhooks/{made['id']}", body)
    assert (response.status, response.body["code"]) == (400, "invalid_webhook")
    assert [error["field"] for error in response.body["errors"]] == [field]
    assert {**api("GET", f"/webhooks/{made['id']}").body, "secret": made["secret"]} == made


def test_an_unknown_event_is_told_what_there_is(api: Api) -> None:
    message = api("POST", "/webhooks", {"url": URL, "events": ["image.dne"]}).body["errors"][0]["message"]
    assert all(pattern in message for pattern in PATTERNS)
    assert ("*", "image.*", "webhook.*", "batch.*", "schedule.*", *EventType) == PATTERNS


@pytest.mark.guards("webhook-url-checked-first")
@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://hooks.example.com/", "https://"),
        ("http://127.0.0.1:9001/", "https://"),
        ("https://10.0.0.1/", "names an address"),
        ("https://localhost/", "local network"),
        ("https://me@hooks.example.com/", "user name"),
        ("https://hooks.example.com:9001/", "port 443 or 8443"),
        ("https://hooks.example.com/" + "x" * 2048, "at most 2048"),
    ],
)
def test_a_url_that_may_never_be_used_is_refused(api: Api, url: str, reason: str) -> None:
    made = api.make()
    for method, path in (("POST", "/webhooks"), ("PATCH", f"/webhooks/{made['id']}")):
        refused = api(method, path, {"url": url})
        assert (refused.status, refused.body["code"]) == (400, "invalid_url")
        assert reason in refused.body["detail"]
    assert len(api.world.endpoints.rows) == 1


def test_there_are_ten_webhooks_at_most_and_one_for_a_url(api: Api) -> None:
    made = [api.make(f"{URL}/{number}")["id"] for number in range(MAX_ENDPOINTS)]
    response = api("POST", "/webhooks", {"url": URL})
    assert (response.status, response.body["code"]) == (409, "too_many_webhooks")
    assert "Delete one" in response.body["detail"]
    assert api.refusal("POST", "/webhooks", {"url": f"{URL}/3"}) == (409, "webhook_exists")
    assert api.refusal("PATCH", f"/webhooks/{made[0]}", {"url": f"{URL}/3"}) == (409, "webhook_exists")
    assert api("PATCH", f"/webhooks/{made[3]}", {"url": f"{URL}/3"}).status == 200, "its own"
    assert api("POST", "/webhooks", {"url": f"{URL}/3"}, tenant="globex").status == 201
    api("DELETE", f"/webhooks/{made[7]}")
    api.make(f"{URL}/new")
    assert len(api.world.endpoints.rows) == MAX_ENDPOINTS + 1


@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_a_body_that_is_not_called_json_is_refused(api: Api, method: str) -> None:
    path = "/webhooks" if method == "POST" else f"/webhooks/{UNKNOWN}"
    assert api.refusal(method, path, {"url": URL}, content_type="text/plain") == (415, "unsupported_media_type")


@pytest.mark.guards("webhook-own-scopes")
@pytest.mark.parametrize(
    ("scopes", "may_read", "may_write"),
    [
        (frozenset({"webhooks:read"}), True, False),
        (frozenset({"webhooks:write"}), False, True),
        (frozenset({"images:read", "images:write"}), False, False),
        (frozenset[str](), False, False),
        (None, True, True),
    ],
)
def test_a_key_needs_the_scopes_of_webhooks(
    api: Api, scopes: frozenset[str] | None, may_read: bool, may_write: bool
) -> None:
    path = f"/webhooks/{api.make()['id']}"
    for method, ending, body in (*EACH[:2], *EACH[3:]):
        response = api(method, path + ending, body, scopes=scopes)
        may = may_read if method == "GET" else may_write
        assert (response.status != 403) == may, (method, ending)
        assert may or response.headers["WWW-Authenticate"].endswith(
            f'"webhooks:{"read" if method == "GET" else "write"}"'
        )


def test_without_the_stacks_secret_nothing_is_made_and_everything_else_goes_on(api: Api) -> None:
    path = f"/webhooks/{api.make()['id']}"
    api.world.master_secret.is_down = True
    assert api.refusal("POST", "/webhooks", {"url": f"{URL}/2"}) == (503, "unavailable")
    assert api.refusal("POST", f"{path}/rotate") == (503, "unavailable")
    assert len(api("GET", "/webhooks").body["webhooks"]) == 1
    assert api("GET", path).body["earlier_secrets_until"] is None
    assert api("PATCH", path, {"events": ["image.done"]}).status == 200


# ── Changing ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_change_concerns_what_it_names_alone(api: Api) -> None:
    made = api.make(description="the shop")
    path, expected = f"/webhooks/{made['id']}", {name: value for name, value in made.items() if name != "secret"}
    for change in (
        {"events": ["image.failed"]},
        {"url": f"{URL}/2"},
        {"description": "the other shop"},
        {"description": None},
        {"description": "again"},
        {"description": "", "events": ["*"]},
    ):
        expected |= change | ({"description": None} if change.get("description") == "" else {})
        response = api("PATCH", path, change)
        assert (response.status, response.body) == (200, expected)
    assert api("GET", path).body == expected


def test_a_disabled_webhook_says_who_did_it_and_when_until_it_is_enabled(api: Api) -> None:
    path = f"/webhooks/{api.make()['id']}"
    api.world.advance(5)
    at = rfc3339(api.world.now)
    for _ in range(2):
        document = api("PATCH", path, {"enabled": False}).body
        assert (document["enabled"], document["disabled_by"], document["disabled_at"]) == (False, "client", at)
        api.world.advance(1)
    document = api("PATCH", path, {"enabled": True}).body
    assert (document["enabled"], document["disabled_by"], document["disabled_at"]) == (True, None, None)


@pytest.mark.parametrize("by", DisabledBy)
def test_a_webhook_tells_why_it_is_disabled(api: Api, by: DisabledBy) -> None:
    made = api.make()
    (row,) = api.world.endpoints.rows.values()
    api.world.endpoints.change(row, disable(row, by, now=api.world.now))
    assert api("GET", f"/webhooks/{made['id']}").body["disabled_by"] == by.value


def test_a_webhook_tells_how_it_does(api: Api) -> None:
    path = f"/webhooks/{api.make()['id']}"
    api.world.send(event(1))
    well_at = rfc3339(api.world.now)
    api.world.receiver.behaves = _fails
    api.world.advance(10)
    failing_since = rfc3339(api.world.now)
    for number in (2, 3, 4):
        api.world.send(event(number))
    document = api("GET", path).body
    assert (document["last_success_at"], document["failing_since"], document["last_failure_at"]) == (
        well_at,
        failing_since,
        failing_since,
    )
    assert document["rests_until"] > failing_since
    api.world.run_for(DAY + 8 * 3600)
    assert api("GET", path).body["warned_at"] > failing_since


def _fails(_: Request) -> Answer:
    return Answer(milliseconds=9, status=500, body="Bad day.")


def test_a_deleted_webhook_hears_of_nothing(api: Api) -> None:
    path = f"/webhooks/{api.make()['id']}"
    deleted = api("DELETE", path)
    assert (deleted.status, deleted.body) == (204, None)
    assert api.world.tell(event()).deliveries == 0
    assert api.refusal("DELETE", path) == (404, "unknown_webhook")


def test_a_new_secret_signs_beside_the_one_before_for_a_day(api: Api) -> None:
    made = api.make()
    path = f"/webhooks/{made['id']}"
    rotated = api("POST", f"{path}/rotate")
    assert (rotated.status, rotated.headers["Cache-Control"]) == (200, "no-store")
    assert rotated.body["secret"] != made["secret"]
    until = rfc3339(api.world.now + ROTATION_SECONDS * 1000)
    assert rotated.body["earlier_secrets_until"] == until == api("GET", path).body["earlier_secrets_until"]
    api.world.advance(ROTATION_SECONDS)
    assert api("GET", path).body["earlier_secrets_until"] is None


def test_too_many_rotations_say_when_the_next_is_possible(api: Api) -> None:
    path = f"/webhooks/{api.make()['id']}/rotate"
    secrets = {api("POST", path).body["secret"] for _ in range(MAX_SECRETS - 1)}
    assert len(secrets) == MAX_SECRETS - 1
    response = api("POST", path)
    assert (response.status, response.body["code"]) == (409, "too_many_secrets")
    assert "in 1440 minutes" in response.body["detail"]
    api.world.advance(DAY)
    assert api("POST", path).status == 200


# ── Trying, recovering, looking ──────────────────────────────────────────────────────────────────────────────────────


def test_a_ping_is_a_delivery_that_can_be_followed(api: Api) -> None:
    path = f"/webhooks/{api.make()['id']}"
    pinged = api("POST", f"{path}/ping")
    assert (pinged.status, pinged.body["type"], pinged.body["status"]) == (202, "webhook.ping", "waiting")
    assert pinged.body["attempts"] == []
    api.world.run()
    (sent,) = api.world.receiver.requests
    assert json.loads(sent.body)["data"] == {"tenant_id": TENANT, "webhook_id": path.rpartition("/")[2]}
    (listed,) = api("GET", f"{path}/deliveries").body["deliveries"]
    assert (listed["id"], listed["status"], listed["attempts"][0]["status"]) == (pinged.body["id"], "delivered", 200)
    api("PATCH", path, {"enabled": False})
    assert api.refusal("POST", f"{path}/ping") == (409, "webhook_disabled")


def resent(api: Api, path: str) -> Any:
    """Asks to send the one delivery of a webhook again."""
    (delivery,) = api("GET", f"{path}/deliveries").body["deliveries"]
    return api("POST", f"{path}/deliveries/{delivery['id']}/resend")


def test_what_was_delivered_is_sent_again_as_the_same_event(api: Api) -> None:
    path = f"/webhooks/{api.make()['id']}"
    api("POST", f"{path}/ping")
    api.world.run()
    api.world.advance(RESEND_SECONDS)
    response = resent(api, path)
    assert (response.status, response.body["status"], response.body["ended_at"]) == (202, "waiting", None)
    assert len(response.body["attempts"]) == 1, "what was tried before stays known"
    api.world.run()
    first, again = api.world.receiver.requests
    assert (first.headers["webhook-id"], first.body) == (again.headers["webhook-id"], again.body)
    (listed,) = api("GET", f"{path}/deliveries").body["deliveries"]
    assert (listed["status"], [attempt["number"] for attempt in listed["attempts"]]) == ("delivered", [1, 1])


def test_a_delivery_that_waits_for_its_retry_is_tried_at_once(api: Api) -> None:
    path = f"/webhooks/{api.make()['id']}"
    api.world.receiver.behaves = lambda _: Answer(milliseconds=5, status=500)
    api("POST", f"{path}/ping")
    api.world.run()
    api.world.advance(RESEND_SECONDS + 1)
    api.world.receiver.behaves = lambda _: Answer(milliseconds=5, status=200)
    assert resent(api, path).body["status"] == "waiting"
    api.world.run()
    (listed,) = api("GET", f"{path}/deliveries").body["deliveries"]
    assert (listed["status"], len(listed["attempts"])) == ("delivered", 2)


@pytest.mark.guards("resend-once-when-asked-twice")
def test_who_asks_twice_sends_once(api: Api) -> None:
    path = f"/webhooks/{api.make()['id']}"
    api("POST", f"{path}/ping")
    api.world.run()
    assert resent(api, path).body["status"] == "delivered", "it was sent a moment ago"
    api.world.advance(RESEND_SECONDS)
    assert [resent(api, path).body["status"] for _ in range(2)] == ["waiting"] * 2
    api.world.run()
    assert resent(api, path).body["status"] == "delivered"
    api.world.run()
    assert len(api.world.receiver.requests) == 2


@pytest.mark.guards("resend-place-while-resting")
def test_a_webhook_that_rests_gets_what_is_sent_again_at_once(api: Api) -> None:
    path = f"/webhooks/{api.make()['id']}"
    api("POST", f"{path}/ping")
    api.world.run()
    api.world.advance(RESEND_SECONDS)
    ((key, endpoint),) = api.world.endpoints.rows.items()
    resting = replace(endpoint, rests_until=api.world.now + 3_600_000, probe="00000000000000-0", failures=3)
    api.world.endpoints.rows[key] = resting
    resent(api, path)
    api.world.run()
    assert len(api.world.receiver.requests) == 2


@pytest.mark.guards("resend-disabled-refused")
def test_what_is_not_there_is_not_sent_again_and_nothing_to_a_disabled_webhook(api: Api) -> None:
    path = f"/webhooks/{api.make()['id']}"
    for delivery_id in ("1", "01795251601300-x", "01795251601300-", "x" * 200, "0" * 14 + "-a'b"):
        assert api.refusal("POST", f"{path}/deliveries/{delivery_id}/resend") == (404, "unknown_delivery"), delivery_id
    api("POST", f"{path}/ping")
    api.world.run()
    api("PATCH", path, {"enabled": False})
    api.world.advance(RESEND_SECONDS)
    (delivery,) = api("GET", f"{path}/deliveries").body["deliveries"]
    assert api.refusal("POST", f"{path}/deliveries/{delivery['id']}/resend") == (409, "webhook_disabled")
    assert len(api.world.receiver.requests) == 1


@pytest.mark.guards("webhook-recovery-retention-bound")
@pytest.mark.parametrize(
    ("body", "seconds_ago"),
    [
        (None, KEPT_SECONDS),
        ("", KEPT_SECONDS),
        ({}, KEPT_SECONDS),
        ({"since": "P2D"}, 2 * DAY),
        ({"since": "PT90S"}, 90),
        ({"since": "PT0S"}, 0),
        ({"since": rfc3339(WebhooksWorld.now - DAY * 1000)}, DAY),
        ({"since": "2026-11-20T09:00:00+01:00"}, (WebhooksWorld.now - 1_795_161_600_000) // 1000),
        ({"since": "P40D"}, KEPT_SECONDS),
        ({"since": "1999-01-01T00:00:00Z"}, KEPT_SECONDS),
    ],
)
def test_a_recovery_goes_back_as_far_as_it_says_and_to_all_that_is_kept_by_default(
    api: Api, body: Any, seconds_ago: int
) -> None:
    path = f"/webhooks/{api.make()['id']}"
    api("PATCH", path, {"enabled": False})
    response = api("POST", f"{path}/recover", body)
    since = rfc3339(api.world.now - seconds_ago * 1000)
    assert (response.status, response.body["enabled"], response.body["recovering_since"]) == (202, True, since)


@pytest.mark.guards("webhook-recovery-body-bound", "webhook-recovery-in-the-past")
@pytest.mark.parametrize(
    "body",
    [
        "{",
        "[]",
        "[" * 900,
        '{"since": "P2D"}' + " " * 1024,
        {"since": 1},
        {"since": None},
        {"since": "yesterday"},
        {"since": "P"},
        {"since": "P1M"},
        {"since": "P99999999999D"},
        {"since": "2099-01-01T00:00:00Z"},
        {"since": "2026-11-20T09:00:00"},
        {"since": "P2D", "until": "P1D"},
        {"from": "P2D"},
    ],
)
def test_a_recovery_that_does_not_say_since_when_is_refused(api: Api, body: Any) -> None:
    path = f"/webhooks/{api.make()['id']}"
    assert api.refusal("POST", f"{path}/recover", body) == (400, "invalid_since")
    assert api("GET", path).body["recovering_since"] is None


def test_deliveries_are_listed_page_by_page_the_newest_event_first(api: Api) -> None:
    path = f"/webhooks/{api.make()['id']}/deliveries"
    api.world.send(*(event(number) for number in range(1, 6)))
    pages, place = [], ""
    while True:
        response = api("GET", f"{path}?limit=2{place}")
        pages.append([delivery["event_id"] for delivery in response.body["deliveries"]])
        if response.body["next"] is None:
            break
        place = f"&cursor={response.body['next']}"
    listed = [event_id for page in pages for event_id in page]
    assert listed == [event(number).event_id for number in (5, 4, 3, 2, 1)]
    assert max(map(len, pages)) == 2


def test_a_delivery_tells_its_attempts_and_when_the_next_is(api: Api) -> None:
    path = f"/webhooks/{api.make()['id']}/deliveries"
    api.world.receiver.behaves = _fails
    api.world.send(event())
    (listed,) = api("GET", f"{path}?status=waiting").body["deliveries"]
    assert listed == {
        "id": listed["id"],
        "event_id": event().event_id,
        "type": "image.done",
        "status": "waiting",
        "attempts": [
            {
                "number": 1,
                "started_at": rfc3339(api.world.now),
                "milliseconds": 9,
                "status": 500,
                "error": None,
                "response": "Bad day.",
            }
        ],
        "created_at": rfc3339(api.world.now),
        "next_attempt_at": rfc3339(api.world.now + 5_000),
        "ended_at": None,
    }
    assert api("GET", f"{path}?status=delivered").body == {"deliveries": [], "next": None}


def test_the_lease_of_a_delivery_that_is_being_sent_is_not_told_as_its_next_attempt(api: Api) -> None:
    path = f"/webhooks/{api.make()['id']}/deliveries"
    api.world.tell(event())
    ((row,),) = (list(rows.values()) for rows in api.world.deliveries.rows.values())
    sending = claim(row, claimed_by="worker", now=api.world.now)
    assert isinstance(sending, Delivery)
    api.world.deliveries.change(row, sending)
    (listed,) = api("GET", f"{path}?status=sending").body["deliveries"]
    assert (listed["next_attempt_at"], listed["attempts"][0]["milliseconds"]) == (None, None)


@pytest.mark.guards("webhook-cursor-checked")
@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("limit=0", "invalid_limit"),
        ("limit=41", "invalid_limit"),
        ("limit=many", "invalid_limit"),
        ("status=pending", "unknown_status"),
        ("status=failed,waiting", "unknown_status"),
        ("status=", "unknown_status"),
        ("cursor=", "invalid_cursor"),
        ("cursor=1", "invalid_cursor"),
        ("cursor=01795251600001-a%23b", "invalid_cursor"),
        ("since=P1D", "unknown_parameter"),
    ],
)
def test_a_list_that_cannot_be_shown_is_a_problem(api: Api, query: str, code: str) -> None:
    assert api.refusal("GET", f"/webhooks/{api.make()['id']}/deliveries?{query}") == (400, code)


def test_a_page_costs_what_it_may_read(api: Api) -> None:
    path = f"/webhooks/{api.make()['id']}/deliveries"
    costs = {
        query: api("GET", f"{path}?{query}").headers["RateLimit-Policy"].partition(";cost=")[2]
        for query in ("", "limit=40", "status=failed", "limit=1", "limit=0", "limit=x")
    }
    assert costs == {"": "4", "limit=40": "6", "status=failed": "14", "limit=1": "2", "limit=0": "", "limit=x": ""}


@pytest.mark.guards("webhook-page-size-bound")
def test_the_largest_page_fits_into_an_answer_of_lambda(api: Api) -> None:
    made = api.make()
    attempts = tuple(
        DeliveryAttempt(
            number=10,
            started_at=api.world.now,
            milliseconds=15_000,
            status=500,
            error="e" * 60,
            response="\0" * RESPONSE_CHARACTERS,
        )
        for _ in range(REMEMBERED_ATTEMPTS)
    )
    api.world.tell(*(event(number) for number in range(MAX_PAGE_DELIVERIES)))
    rows = api.world.deliveries.rows[made["id"]]
    for delivery_id, row in rows.items():
        rows[delivery_id] = replace(row, status=DeliveryStatus.FAILED, attempts=attempts, due_at=None)
    response = api("GET", f"/webhooks/{made['id']}/deliveries?limit={MAX_PAGE_DELIVERIES}")
    assert len(response.body["deliveries"]) == MAX_PAGE_DELIVERIES
    assert len(json.dumps({"body": json.dumps(response.body)})) < 6 * 1024 * 1024


def test_a_delivery_that_cannot_be_read_is_left_out_and_reported(
    api: Api, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = f"/webhooks/{api.make()['id']}/deliveries"
    api.world.tell(event())
    readable = api.world.deliveries.page
    page: Callable[..., DeliveryPage] = lambda *place, **query: replace(  # noqa: E731
        readable(*place, **query), deliveries=(UnreadableRow("we_x/x", "a newer status"), *_all_of(api))
    )
    monkeypatch.setattr(api.world.deliveries, "page", page)
    assert [delivery["event_id"] for delivery in api("GET", path).body["deliveries"]] == [event().event_id]
    assert '"RowsUnreadable":[1.0]' in capsys.readouterr().out.replace(" ", "")


def _all_of(api: Api) -> list[Delivery]:
    return [row for rows in api.world.deliveries.rows.values() for row in rows.values()]


def test_an_unreadable_webhook_is_left_out_of_the_list_and_keeps_its_place(
    api: Api, capsys: pytest.CaptureFixture[str]
) -> None:
    bad, good = api.make(URL)["id"], api.make(f"{URL}2")["id"]
    api.world.endpoints.unreadable.add(bad)
    response = api("GET", "/webhooks")
    assert (response.status, [webhook["id"] for webhook in response.body["webhooks"]]) == (200, [good])
    assert '"RowsUnreadable":[1.0]' in capsys.readouterr().out.replace(" ", "")
    made = api.make(f"{URL}3")["id"]
    assert len({place_of(webhook) for webhook in (bad, good, made)}) == 3
    assert api("PATCH", f"/webhooks/{good}", {"url": f"{URL}4"}).status == 200
    assert api.refusal("DELETE", f"/webhooks/{bad}") == (503, "unavailable")
    assert api.world.endpoints.lookup(TENANT, bad) is not None


@pytest.mark.guards("unreadable-endpoint-hourly-look")
def test_the_sweeper_looks_within_an_hour_at_a_webhook_that_nobody_could_wake(api: Api) -> None:
    row = api.world.endpoints.get(TENANT, api.make()["id"])
    assert row.due_at == api.world.now + QUIET_SECONDS * 1000
