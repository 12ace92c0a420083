"""`darkroom webhooks`: a tenant's webhooks, by requests to the real function over the fakes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from darkroom.domain.kernel.instants import rfc3339
from darkroom.domain.webhooks.delivery import Answer
from darkroom.domain.webhooks.endpoint import DisabledBy, Endpoint, disable, pause
from tests.support.fakes.world import TENANT, WebhooksWorld, event
from tests.support.faults import ProcessDied
from tests.support.webhooks import webhooks_api
from tests.unit.cli.conftest import Run
from tests.unit.cli.fake_api import FakeApi, Reply, Seen

URL = "https://hooks.example.com/darkroom"
UNKNOWN = "we_0000000000000000"
HOUR = 3600


@pytest.fixture
def world(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> WebhooksWorld:
    """The webhooks behind the API: the real function over the fakes."""

    function = webhooks_api(monkeypatch)

    def answer(seen: Seen) -> Reply:
        path = f"{seen.path}?{urlencode(seen.query, doseq=True)}" if seen.query else seen.path
        sent = seen.body.decode() or None
        response = function(seen.method, path, sent, content_type=seen.headers.get("content-type", ""))
        return Reply(status=response.status, body=response.body, headers=response.headers)

    api.webhooks = answer
    return function.world


@pytest.mark.guards("cli-absent-part-named")
def test_a_stack_without_webhooks_is_named_as_that(api: FakeApi, run: Run) -> None:
    body = {"status": 404, "code": "unknown_path", "detail": "There is nothing at this path."}
    api.webhooks = lambda _: Reply(status=404, body=body, headers={"Content-Type": "application/problem+json"})
    listed = run("webhooks", "ls")
    assert listed.exit_code == 2
    assert "deployed without the part" in " ".join(listed.stderr.split())


@pytest.fixture
def added(world: WebhooksWorld) -> Endpoint:
    """A webhook of the tenant."""
    return world.add(URL)


def answering(status: int, body: str = "") -> Callable[[Any], Answer]:
    return lambda _: Answer(milliseconds=31, status=status, body=body)


def fail(world: WebhooksWorld, times: int) -> None:
    """So many events that the webhook does not take."""
    world.receiver.behaves = answering(500, "Bad day.\nMore.")
    for number in range(times):
        world.tell(event(number))
        world.run()


def lines_of(shown: str) -> list[list[str]]:
    return [line.split() for line in shown.splitlines()]


# ── Making them ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_new_webhooks_secret_is_all_that_is_on_standard_output(run: Run, api: FakeApi, world: WebhooksWorld) -> None:
    result = run("webhooks", "add", URL, "--type", "image.done", "--type", "image.*", "--description", "the shop")
    assert result.exit_code == 0
    (endpoint,) = world.endpoints.of_tenant(TENANT)
    assert (endpoint.url, endpoint.events, endpoint.description) == (URL, ("image.done", "image.*"), "the shop")
    assert result.stdout.startswith("whsec_") and result.stdout.count("\n") == 1
    assert "shown only this once" in result.stderr and "docs/webhooks.md" in result.stderr
    assert f"./darkroom webhooks ping {endpoint.endpoint_id}" in result.stderr
    assert "whsec_" not in result.stderr


def test_what_is_not_said_is_not_sent(run: Run, api: FakeApi, world: WebhooksWorld) -> None:
    result = run("webhooks", "add", URL, "--json")
    assert json.loads(api.requests[0].body) == {"url": URL}
    made = json.loads(result.stdout)
    assert (made["events"], made["description"], made["secret"][:6]) == (["*"], None, "whsec_")


def test_a_key_goes_with_every_request_and_the_address_with_what_to_type_next(
    run: Run, api: FakeApi, world: WebhooksWorld, added: Endpoint
) -> None:
    shown = run("webhooks", "show", added.endpoint_id, "--url", api.url, "--api-key", "secret").stdout
    assert [seen.headers["authorization"] for seen in api.requests] == ["Bearer secret"]
    assert f"./darkroom webhooks ping {added.endpoint_id} --url {api.url}\n" in shown
    assert "secret" not in shown


def test_what_the_api_refuses_is_told_in_its_words(run: Run, world: WebhooksWorld) -> None:
    result = run("webhooks", "add", "https://a.example.com", "--type", "image.gone")
    assert (result.exit_code, result.stdout, world.endpoints.rows) == (1, "", {})
    assert "The webhook is invalid. events.0: is not known. Known: *, " in result.stderr


def test_a_webhook_whose_answer_was_lost_is_made_once_and_found(run: Run, api: FakeApi, world: WebhooksWorld) -> None:
    api.faults["POST"].append(Reply(lost=True))
    result = run("webhooks", "add", URL)
    (endpoint,) = world.endpoints.of_tenant(TENANT)
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"{endpoint.endpoint_id} has this URL already" in result.stderr
    assert "rotate its secret if you have lost it" in result.stderr


# ── How they fare ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_without_webhooks_the_list_says_how_to_make_one(run: Run, world: WebhooksWorld) -> None:
    assert run("webhooks", "ls").stdout == "No webhooks yet. The first one:  ./darkroom webhooks add URL\n"
    assert json.loads(run("webhooks", "ls", "--json").stdout) == {"webhooks": []}


def test_webhooks_are_listed_with_what_is_wrong_and_since_when(run: Run, world: WebhooksWorld, added: Endpoint) -> None:
    other = world.add("https://other.example.com/", events=("image.deleted",))
    fail(world, 1)
    failed_at = rfc3339(world.now)
    run("webhooks", "disable", other.endpoint_id)
    assert lines_of(run("webhooks", "ls").stdout) == [
        ["webhook", "state", "since", "events", "url"],
        [added.endpoint_id, "failing", failed_at, "*", URL],
        [other.endpoint_id, "disabled", failed_at, "image.deleted", "https://other.example.com/"],
    ]


def test_a_webhook_that_fails_is_shown_resting_since_when_and_until_when(
    run: Run, world: WebhooksWorld, added: Endpoint
) -> None:
    since = world.now
    fail(world, 1)
    world.advance(60)
    assert "  failing      since " in run("webhooks", "show", added.endpoint_id).stdout
    fail(world, 3)
    rests_until = world.endpoint(added).rests_until
    assert rests_until is not None
    shown = run("webhooks", "show", added.endpoint_id).stdout
    assert shown.startswith(f"{added.endpoint_id}  resting\n")
    assert f"  failing      since {rfc3339(since)}: every attempt has failed\n" in shown
    assert f"  resting      until {rfc3339(rests_until)}: then one delivery tries it" in shown
    assert f"  last failure {rfc3339(world.now)}\n" in shown
    assert f"./darkroom webhooks deliveries {added.endpoint_id}\n" in shown


def test_a_webhook_that_its_operator_has_paused_is_shown_as_such(
    run: Run, world: WebhooksWorld, added: Endpoint
) -> None:
    world.endpoints.change(added, pause(added, now=world.now))
    assert lines_of(run("webhooks", "ls").stdout)[1][:3] == [added.endpoint_id, "paused", rfc3339(world.now)]
    shown = run("webhooks", "show", added.endpoint_id).stdout
    assert shown.startswith(f"{added.endpoint_id}  paused\n")
    assert f"  paused       since {rfc3339(world.now)}, by whoever operates it" in shown


@pytest.mark.parametrize(
    ("by", "why"),
    [
        (DisabledBy.CLIENT, "by you"),
        (DisabledBy.GONE, "it answered 410 (Gone)"),
        (DisabledBy.FAILING, "everything failed for five days"),
    ],
)
def test_a_disabled_webhook_is_shown_with_why_and_how_to_enable_it(
    run: Run, world: WebhooksWorld, added: Endpoint, by: DisabledBy, why: str
) -> None:
    world.advance(60)
    world.endpoints.change(added, disable(added, by, now=world.now))
    shown = run("webhooks", "show", added.endpoint_id).stdout
    assert shown.startswith(f"{added.endpoint_id}  disabled\n")
    assert f"  disabled     since {rfc3339(world.now)}: {why}\n" in shown
    for command in ("enable", "recover"):
        assert f"./darkroom webhooks {command} {added.endpoint_id}" in shown


def test_json_is_the_document_as_the_api_gives_it_with_keys_of_later_versions(
    run: Run, api: FakeApi, world: WebhooksWorld, added: Endpoint
) -> None:
    document = json.loads(run("webhooks", "show", added.endpoint_id, "--json").stdout)
    assert (document["id"], document["enabled"], document["rests_until"]) == (added.endpoint_id, True, None)
    api.faults["GET"].append(Reply(body=document | {"region": "moon"}))
    assert json.loads(run("webhooks", "show", added.endpoint_id, "--json").stdout)["region"] == "moon"


# ── What was sent ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_deliveries_are_shown_with_their_attempts_and_the_next_one(
    run: Run, world: WebhooksWorld, added: Endpoint
) -> None:
    world.tell(event(1))
    world.run()
    world.receiver.behaves = answering(500, "Bad \x1b[31mday.\nMore.")
    world.tell(event(2))
    world.run()
    world.receiver.behaves = lambda _: Answer(milliseconds=15_000, error="the time was up", was_too_slow=True)
    world.tell(event(3))
    world.run()
    now = rfc3339(world.now)
    third, second, _ = (row.due_at for row in reversed(world.rows(added)))
    assert run("webhooks", "deliveries", added.endpoint_id).stdout.splitlines() == [
        f"{now}  image.done       {event(3).event_id}  waiting, next attempt not before {rfc3339(third)}",
        f"   1  {now}  no response after 15,000 ms: the time was up",
        f"{now}  image.done       {event(2).event_id}  waiting, next attempt not before {rfc3339(second)}",
        f"   1  {now}  500 after 31 ms: Bad \N{REPLACEMENT CHARACTER}[31mday",
        f"{now}  image.done       {event(1).event_id}  delivered at {now}",
        f"   1  {now}  200 after 5 ms: ok",
    ]


def test_an_attempt_that_nobody_heard_of_is_shown_as_such(run: Run, world: WebhooksWorld, added: Endpoint) -> None:
    def kill(_: Any) -> Answer:
        raise ProcessDied

    world.receiver.behaves = kill
    world.tell(event())
    with pytest.raises(ProcessDied):
        world.run()
    shown = run("webhooks", "deliveries", added.endpoint_id).stdout
    assert shown.splitlines()[0].endswith("  sending")
    assert shown.endswith("  nothing was heard of it yet\n")


def test_deliveries_are_read_page_by_page_up_to_the_limit(
    run: Run, api: FakeApi, world: WebhooksWorld, added: Endpoint
) -> None:
    world.tell(*map(event, range(100)))

    def shown(*options: object) -> list[str]:
        result = run("webhooks", "deliveries", added.endpoint_id, *options, "--json")
        return [delivery["event_id"] for delivery in json.loads(result.stdout)["deliveries"]]

    newest_first = [event(number).event_id for number in reversed(range(100))]
    assert shown() == newest_first[:20]
    api.requests.clear()
    assert shown("--limit", 45) == newest_first[:45]
    assert [seen.query["limit"] for seen in api.requests] == [["40"], ["5"]]
    assert shown("--limit", 1000) == newest_first


def test_a_list_that_goes_on_says_how_to_see_the_rest(run: Run, world: WebhooksWorld, added: Endpoint) -> None:
    world.tell(event(1), event(2), event(3))
    shown = run("webhooks", "deliveries", added.endpoint_id, "--status", "waiting", "--limit", 2).stdout
    *_, last = shown.splitlines()
    assert last.startswith("Older ones:  ./darkroom webhooks deliveries ")
    rest = run(*last.partition("./darkroom ")[2].split()).stdout
    assert event(1).event_id in rest and event(2).event_id not in rest
    assert "Older ones" not in rest


@pytest.mark.guards("cli-empty-page-continues")
def test_a_page_without_what_is_asked_for_is_not_the_end(
    run: Run, api: FakeApi, world: WebhooksWorld, added: Endpoint
) -> None:
    world.tell(event(1))
    world.run()
    api.faults["GET"].append(Reply(body={"deliveries": [], "next": world.rows(added)[0].delivery_id + "-9"}))
    shown = run("webhooks", "deliveries", added.endpoint_id, "--status", "delivered").stdout
    assert event(1).event_id in shown
    assert [seen.query.get("cursor") is None for seen in api.requests] == [True, False]


def test_what_there_is_not_is_said(run: Run, world: WebhooksWorld, added: Endpoint) -> None:
    assert run("webhooks", "deliveries", added.endpoint_id).stdout == "No deliveries yet.\n"
    shown = run("webhooks", "deliveries", added.endpoint_id, "--status", "failed").stdout
    assert shown == "No failed deliveries.\n"


# ── What their owner does ────────────────────────────────────────────────────────────────────────────────────────────


def test_a_ping_is_sent_and_its_delivery_can_be_looked_at(run: Run, world: WebhooksWorld, added: Endpoint) -> None:
    result = run("webhooks", "ping", added.endpoint_id)
    world.run()
    (request,) = world.receiver.requests
    event_id = json.loads(request.body)["id"]
    first, second = result.stdout.splitlines()
    assert first == f"{event_id} (webhook.ping) is on its way."
    shown = run(*second.partition("./darkroom ")[2].split()).stdout
    assert f"webhook.ping     {event_id}  delivered" in shown


def test_a_delivery_is_sent_again_by_its_id(run: Run, world: WebhooksWorld, added: Endpoint) -> None:
    run("webhooks", "ping", added.endpoint_id)
    world.run()
    (delivery,) = json.loads(run("webhooks", "deliveries", added.endpoint_id, "--json").stdout)["deliveries"]
    again = run("webhooks", "resend", added.endpoint_id, delivery["id"])
    assert again.stdout.startswith(f"{delivery['event_id']} (webhook.ping) was sent a moment ago.")
    world.advance(5)
    again = run("webhooks", "resend", added.endpoint_id, delivery["id"])
    assert again.stdout.startswith(f"{delivery['event_id']} (webhook.ping) is on its way.")
    world.run()
    assert len(world.receiver.requests) == 2


@pytest.mark.guards("resend-id-format")
def test_a_text_that_is_no_deliverys_id_is_not_sent(run: Run, world: WebhooksWorld, added: Endpoint) -> None:
    result = run("webhooks", "resend", added.endpoint_id, "../ping")
    assert (result.exit_code, result.stdout, world.receiver.requests) == (2, "", [])
    assert "is not a delivery's id" in " ".join(result.stderr.split())


def test_a_disabled_webhook_is_not_pinged_and_the_api_says_why(run: Run, world: WebhooksWorld, added: Endpoint) -> None:
    assert run("webhooks", "disable", added.endpoint_id).stdout == (
        f"{added.endpoint_id} is disabled: its events wait, for 30 days.\n"
    )
    result = run("webhooks", "ping", added.endpoint_id)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "This webhook is disabled, and nothing is sent to it." in result.stderr
    assert run("webhooks", "enable", added.endpoint_id).stdout == (
        f"{added.endpoint_id} is enabled: what waits is sent, slowly at first.\n"
    )
    assert run("webhooks", "ping", added.endpoint_id).exit_code == 0


@pytest.mark.parametrize(
    ("since", "seconds"),
    [("2h", 2 * HOUR), ("90m", 5400), (None, 30 * 24 * HOUR), ("1.5h", 5400)],
)
def test_a_recovery_begins_so_long_ago(
    run: Run, world: WebhooksWorld, added: Endpoint, since: str | None, seconds: int
) -> None:
    result = run("webhooks", "recover", added.endpoint_id, *(("--since", since) if since else ()))
    assert result.exit_code == 0
    recovery = world.endpoint(added).recovery
    assert recovery is not None and recovery.since == world.now - seconds * 1000
    assert f"failed deliveries of events since {rfc3339(recovery.since)} are tried again" in result.stdout


@pytest.mark.parametrize(
    ("since", "instant"),
    [
        ("2026-11-21", "2026-11-21T00:00:00.000Z"),
        ("2026-11-21T06:00Z", "2026-11-21T06:00:00.000Z"),
        ("2026-11-21T06:00:00+01:00", "2026-11-21T05:00:00.000Z"),
    ],
)
def test_a_recovery_begins_at_a_time(run: Run, world: WebhooksWorld, added: Endpoint, since: str, instant: str) -> None:
    shown = run("webhooks", "recover", added.endpoint_id, "--since", since, "--json").stdout
    assert json.loads(shown)["recovering_since"] == instant


@pytest.mark.guards("cli-webhook-rotation-consent")
def test_a_secret_is_replaced_only_with_yes(run: Run, api: FakeApi, world: WebhooksWorld, added: Endpoint) -> None:
    result = run("webhooks", "rotate", added.endpoint_id)
    assert result.exit_code == 0
    assert f"{added.endpoint_id} ({URL}) would be replaced" in result.stdout and "--yes" in result.stdout
    assert [seen.method for seen in api.requests] == ["GET"]
    result = run("webhooks", "rotate", added.endpoint_id, "--yes")
    assert result.stdout.startswith("whsec_") and result.stdout.count("\n") == 1
    assert "shown only this once" in result.stderr
    assert f"The secret before it signs too, until {rfc3339(world.now + 24 * HOUR * 1000)}." in result.stderr
    assert "  secrets      those that were replaced sign too" in run("webhooks", "show", added.endpoint_id).stdout


@pytest.mark.guards("cli-webhook-removal-consent")
def test_a_webhook_is_removed_only_with_yes(run: Run, world: WebhooksWorld, added: Endpoint) -> None:
    result = run("webhooks", "rm", added.endpoint_id)
    assert f"{added.endpoint_id} ({URL}) would be deleted" in result.stdout and "--yes" in result.stdout
    assert world.endpoint(added) == added
    result = run("webhooks", "rm", added.endpoint_id, "--yes")
    assert result.stdout.startswith(f"{added.endpoint_id} is deleted: nothing is sent to it any more")
    assert world.endpoints.rows == {}


# ── What goes wrong ──────────────────────────────────────────────────────────────────────────────────────────────────

OF_ONE = [
    *(("show",), ("deliveries",), ("recover",), ("ping",), ("enable",), ("disable",)),
    *(("rotate",), ("rotate", "--yes"), ("rm",), ("rm", "--yes")),
]


@pytest.mark.parametrize("command", OF_ONE, ids=" ".join)
def test_a_webhook_that_there_is_not_is_told_in_the_apis_words(
    run: Run, api: FakeApi, world: WebhooksWorld, command: tuple[str, ...]
) -> None:
    name, *options = command
    result = run("webhooks", name, UNKNOWN, *options)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "error: There is no webhook with this id.\n"


@pytest.mark.parametrize("command", OF_ONE, ids=" ".join)
def test_what_is_no_webhooks_id_is_not_sent(
    run: Run, api: FakeApi, world: WebhooksWorld, command: tuple[str, ...]
) -> None:
    name, *options = command
    result = run("webhooks", name, "../images", *options)
    assert (result.exit_code, api.requests) == (2, [])
    assert "is not a webhook's id" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("recover", UNKNOWN, "--since", "yesterday"), "is neither a day nor a time"),
        (("deliveries", UNKNOWN, "--status", "lost"), "'lost' is not one of"),
        (("deliveries", UNKNOWN, "--limit", "0"), "--limit"),
    ],
)
def test_what_is_not_understood_is_not_sent(
    run: Run, api: FakeApi, world: WebhooksWorld, arguments: tuple[str, ...], problem: str
) -> None:
    result = run("webhooks", *arguments)
    assert (result.exit_code, api.requests) == (2, [])
    assert problem in result.stderr


@pytest.mark.guards("cli-webhook-id-matches", case="changes0-an invalid id")
@pytest.mark.guards("cli-webhook-answer-checked", case="changes1-id: ")
@pytest.mark.guards("cli-webhook-answer-checked", case="changes2-enabled: ")
@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"id": UNKNOWN}, "an invalid id"),
        ({"id": "we_$(reboot)"}, "id: "),
        ({"enabled": "yes"}, "enabled: "),
        ({"events": None}, "events: "),
    ],
)
def test_a_server_is_not_believed_that_answers_something_else(
    run: Run, api: FakeApi, added: Endpoint, changes: dict[str, Any], problem: str
) -> None:
    document = json.loads(run("webhooks", "show", added.endpoint_id, "--json").stdout)
    api.faults["GET"].append(Reply(body=document | changes))
    result = run("webhooks", "show", added.endpoint_id)
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"({problem}" in result.stderr and "Is this the address of a Darkroom API?" in result.stderr


@pytest.mark.guards("cli-delivery-cursor-checked")
def test_a_server_is_not_believed_whose_list_goes_on_where_no_list_can(
    run: Run, api: FakeApi, world: WebhooksWorld, added: Endpoint
) -> None:
    api.faults["GET"].append(Reply(body={"deliveries": [], "next": "1; reboot"}))
    result = run("webhooks", "deliveries", added.endpoint_id)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "an invalid next" in result.stderr


def test_what_a_server_says_cannot_move_the_cursor(
    run: Run, api: FakeApi, world: WebhooksWorld, added: Endpoint
) -> None:
    document = json.loads(run("webhooks", "show", added.endpoint_id, "--json").stdout)
    moving: dict[str, Any] = {
        "url": "a\x1b[2J",
        "events": ["b\x1b[2J"],
        "description": "c\nd",
        "failing_since": "e\x1b[2J",
        "paused_at": "e\x1b[2J",
    }
    moving |= {"rests_until": "f\x1b[2J", "enabled": False, "disabled_by": "g\x1b[2J", "disabled_at": "h\x1b[2J"}
    api.faults["GET"].extend([Reply(body=document | moving), Reply(body={"webhooks": [document | moving]})])
    for command in (("show", added.endpoint_id), ("ls",)):
        result = run("webhooks", *command)
        assert result.exit_code == 0
        assert "\x1b" not in result.stdout and "c\nd" not in result.stdout


# ── Headers ──────────────────────────────────────────────────────────────────────────────────────────────────────────

TOKEN = "Bearer s3cret-t0ken"


def headers_sent(world: WebhooksWorld) -> dict[str, str]:
    """The last delivery's own headers."""
    world.send(event(len(world.receiver.requests)))
    sent = world.receiver.requests[-1].headers
    return {name: value for name, value in sent.items() if name in ("Authorization", "X-Shop", "X-Other")}


@pytest.mark.guards("cli-authorization-header-secret")
def test_headers_come_from_the_command_line_a_file_or_standard_input(
    world: WebhooksWorld, run: Run, tmp_path: Path
) -> None:
    file = tmp_path / "headers"
    file.write_text("X-Other: one\n\n")
    options = ["--header", f"Authorization: {TOKEN}", "--header", "X-Shop: 42", "--secret-header", f"@{file}"]
    assert run("webhooks", "add", URL, *options).exit_code == 0
    assert headers_sent(world) == {"Authorization": TOKEN, "X-Shop": "42", "X-Other": "one"}
    (row,) = world.endpoints.rows.values()
    shown = run("webhooks", "show", row.endpoint_id).stdout
    assert "Authorization: (secret), X-Shop: 42, X-Other: (secret)" in " ".join(shown.split())
    changed = run(
        "webhooks", "change", row.endpoint_id, "--secret-header", "-", "--no-header", "x-shop", stdin="X-Other: 2"
    )
    assert changed.exit_code == 0, changed.stderr
    assert headers_sent(world) == {"Authorization": TOKEN, "X-Other": "2"}


def test_a_change_names_what_changes_alone(added: Endpoint, world: WebhooksWorld, run: Run) -> None:
    webhook_id = added.endpoint_id
    assert run("webhooks", "change", webhook_id).exit_code == 2
    options = ["--address", f"{URL}/2", "--type", "image.done", "--description", "the shop"]
    assert run("webhooks", "change", webhook_id, *options).exit_code == 0
    row = world.endpoint(added)
    assert (row.url, row.events, row.description) == (f"{URL}/2", ("image.done",), "the shop")


@pytest.mark.parametrize("header", [TOKEN, "@/no/such/file"])
def test_a_header_that_is_none_is_not_repeated(world: WebhooksWorld, run: Run, header: str) -> None:
    refused = run("webhooks", "add", URL, "--secret-header", header)
    assert refused.exit_code == 2
    assert "s3cret" not in refused.stdout + refused.stderr
    assert not world.endpoints.rows
