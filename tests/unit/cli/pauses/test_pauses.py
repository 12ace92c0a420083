"""`darkroom pause` and `darkroom resume`, over the fakes: what they print, and what is refused."""

from __future__ import annotations

import json

import pytest

from darkroom.domain.images.transitions import park
from darkroom.domain.kernel.tenants import Tenant, Tier
from darkroom.domain.pauses.pauses import REASON_CHARACTERS, Pause
from darkroom.ports.kernel import UnreadableRow
from darkroom_cli.terminal.interrupts import Interrupts
from tests.support.fakes.observation import count
from tests.support.observed import Observed
from tests.support.stack import OPTIONS, FakeStack
from tests.support.webhooks import delivery
from tests.unit.cli.conftest import Run

SINCE = "since 2026-11-21T09:00:00.000Z"


@pytest.fixture
def stack(stack: FakeStack, monkeypatch: pytest.MonkeyPatch) -> FakeStack:
    stack.world = Observed()
    stack.tenants.tenants["acme"] = Tenant(tenant_id="acme", tier=Tier.FREE, created_at=1)
    monkeypatch.setattr(Interrupts, "wait", lambda self, seconds: None)
    return stack


def set_aside(world: Observed, number: int, tenant_id: str) -> None:
    image_id = world.put(number, tenant_id=tenant_id)
    world.images.rows[image_id] = park(world.images.rows[image_id], now=world.now)


def test_a_lane_is_paused_listed_and_resumed(run: Run, stack: FakeStack) -> None:
    stack.queues.counts["slow"] = count(waiting=40, in_flight=2)
    set_aside(stack.world, 1, "acme")
    paused = run("pause", "lane", "slow", "--reason", "the disk\nis full")
    assert paused.stdout.splitlines() == [
        "Paused lane slow. Within a minute no worker begins an image of it. New ones are accepted, and wait.",
        f"Go on:  ./darkroom resume lane slow{OPTIONS}",
    ]
    stack.world.advance(7200)
    again = run("pause", "lane", "slow", "--reason", "another")
    assert (
        again.stdout.splitlines()[0]
        == f"Lane slow is paused already, {SINCE}: the disk\N{REPLACEMENT CHARACTER}is full."
    )
    listed = run("pause", "ls")
    assert listed.stdout.splitlines()[1].split()[:6] == ["lane", "slow", "2", "h", "0", "min"]
    (pause,) = json.loads(run("pause", "ls", "--json").stdout)["pauses"]
    assert (pause["kind"], pause["name"], pause["waiting"], pause["served"]) == (
        *("lane", "slow"),
        {"number": 43, "is_all": True},
        False,
    )
    resumed = run("resume", "lane", "slow")
    assert resumed.stdout.splitlines() == [
        "Resumed lane slow: its workers take what waits. It was paused "
        f"{SINCE}: the disk\N{REPLACEMENT CHARACTER}is full.",
        "1 image that workers had set aside will be sent within a minute or two.",
    ]
    assert run("pause", "ls").stdout == "Nothing is paused in shop.\n"
    assert run("resume", "lane", "slow").stdout.startswith("Lane slow is not paused.\n")
    assert [result.exit_code for result in (paused, again, listed, resumed)] == [0, 0, 0, 0]


def test_a_lane_whose_workers_still_run_is_told_apart(run: Run, stack: FakeStack) -> None:
    stack.pauses.pause(Pause(kind="lane", name="slow", since=stack.world.now))
    assert f"./darkroom pause lane slow{OPTIONS}" in run("pause", "ls").stdout
    run("pause", "lane", "slow")
    assert stack.world.sources.off == {"slow"}


def test_tenants_are_counted_apart(run: Run, stack: FakeStack) -> None:
    for number, tenant_id in enumerate(("acme", "acme", "zeta")):
        set_aside(stack.world, number, tenant_id)
    assert run("pause", "tenant", "acme").exit_code == 0
    (pause,) = json.loads(run("pause", "ls", "--json").stdout)["pauses"]
    assert (pause["name"], pause["reason"], pause["waiting"]["number"]) == ("acme", None, 2)


@pytest.mark.guards("pause-unknown-tenant")
def test_a_tenant_that_there_is_not_is_not_paused_unless_the_stack_does_not_know_its_tenants(
    run: Run, stack: FakeStack
) -> None:
    refused = run("pause", "tenant", "acne")
    assert (refused.exit_code, "There is no tenant acne in shop." in refused.stderr) == (1, True)
    assert not stack.pauses.pauses
    stack.access = "jwt"
    assert run("pause", "tenant", "acne").exit_code == 0
    stack.access = "keys"
    assert run("resume", "tenant", "acne").exit_code == 0


@pytest.mark.guards("pause-absent-part")
def test_a_stack_without_the_part_pauses_nothing_and_resumes_what_was_paused_before(run: Run, stack: FakeStack) -> None:
    run("pause", "lane", "slow")
    stack.parts = {"webhooks"}
    refused = run("pause", "lane", "fast")
    assert (refused.exit_code, "deployed without bulk" in refused.stderr) == (1, True)
    assert stack.world.sources.off == {"slow"}
    assert "lane  slow" in run("pause", "ls").stdout
    assert run("resume", "lane", "slow").exit_code == 0
    assert stack.world.sources.off == set()


def test_a_webhook_is_found_by_its_id_alone_and_paused_by_its_own_row(run: Run, stack: FakeStack) -> None:
    row, other = stack.world.endpoint(0), stack.world.endpoint(1)
    stack.deliveries.create(delivery(to=row))
    assert run("pause", "webhook", row.endpoint_id).stdout.startswith(f"Paused webhook {row.endpoint_id}. ")
    assert stack.endpoints.get("shop", row.endpoint_id).paused_at == stack.world.now
    assert stack.endpoints.get("shop", other.endpoint_id) == other
    stack.world.advance(60)
    assert f"is paused already, {SINCE}." in run("pause", "webhook", row.endpoint_id).stdout
    (pause,) = json.loads(run("pause", "ls", "--json").stdout)["pauses"]
    assert (pause["kind"], pause["tenant"], pause["waiting"]["number"]) == ("webhook", "shop", 1)
    assert f"It was paused {SINCE}." in run("resume", "webhook", row.endpoint_id).stdout
    assert stack.endpoints.get("shop", row.endpoint_id).paused_at is None
    unknown = run("pause", "webhook", "we_" + "1" * 16)
    assert (unknown.exit_code, "There is no webhook" in unknown.stderr) == (1, True)
    stack.parts = {"bulk"}
    refused = run("resume", "webhook", row.endpoint_id)
    assert (refused.exit_code, "deployed without webhooks" in refused.stderr) == (1, True)


def test_a_pause_of_a_newer_version_is_told_and_hides_no_other(
    run: Run, stack: FakeStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("pause", "tenant", "acme")
    own = stack.pauses.all
    monkeypatch.setattr(stack.pauses, "all", lambda: [UnreadableRow("batch#1", "newer"), *own()])
    listed = run("pause", "ls")
    assert (listed.exit_code, "batch#1" in listed.stderr, "acme" in listed.stdout) == (1, True, True)
    assert json.loads(run("pause", "ls", "--json").stdout)["unreadable"] == ["batch#1"]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("pause", "lane", "medium"), "is no lane: fast, slow"),
        (("resume", "lane", "medium"), "is no lane"),
        (("pause", "tenant", "a b"), "cannot name a tenant"),
        (("pause", "webhook", "acme"), "is not a webhook's id"),
        (("pause", "lane", "slow", "--reason", "x" * (REASON_CHARACTERS + 1)), "at most 200 characters"),
    ],
)
def test_what_is_not_understood_is_a_usage_error(
    run: Run, stack: FakeStack, arguments: tuple[str, ...], why: str
) -> None:
    refused = run(*arguments)
    assert (refused.exit_code, why in " ".join(refused.stderr.replace("│", " ").split())) == (2, True)
