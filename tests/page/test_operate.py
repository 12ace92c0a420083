"""The operators' page: it only reads without --write, says what an action would do, and replays what was given up."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, Route, expect

from browser import axe
from browser.layout import holes_between, settle, what_sticks_out
from browser.tabs import NARROW, WIDE
from darkroom.aws.bulk.backfills_table import BackfillsTable
from darkroom.domain.bulk.backfills import Selection, backfill_id_from_bits, start
from darkroom.domain.images.image import DeadLetterState, Failure, Status
from darkroom.domain.kernel.errors import INTERNAL
from darkroom.domain.kernel.instants import rfc3339
from tests.local.dead_letter_fixture import DeadLetterFixture
from tests.local.local_stack import LocalStack, interrupt, wait_until
from tests.page.hostile import MARKUP
from tests.page.visitor import LOOKS, Visitor
from tests.support.planted import clock, image, plant

pytestmark = pytest.mark.long

type Operating = Callable[..., AbstractContextManager[str]]

PARTS = (
    "",
    *(
        f"operate/{name}"
        for name in (
            *("failures", "images", "delays", "tenants", "webhooks", "pauses", "batches", "backfills", "drills"),
            "audit",
        )
    ),
)


@pytest.fixture
def dead_letters(stack: LocalStack) -> Iterator[DeadLetterFixture]:
    """Images that were given up; what is left of them is removed."""
    yield (dead_letters := DeadLetterFixture(stack))
    dead_letters.empty()


@pytest.fixture(scope="module")
def addresses(stack: LocalStack) -> Iterator[Callable[..., str]]:
    """Starts `darkroom operate`, once with each set of options, and returns the address that it prints, with its
    token."""
    with ExitStack() as at_the_end:

        @cache
        def address(*options: str) -> str:
            process, printed = stack.operate(*options)
            at_the_end.callback(interrupt, process)
            return printed

        yield address


@pytest.fixture
def operating(visitor: Visitor, addresses: Callable[..., str]) -> Operating:
    """The address of the page, which the visitor leaves after the block."""

    @contextmanager
    def address(*options: str) -> Iterator[str]:
        printed = addresses(*options)
        visitor.watch.hosts = {*visitor.watch.hosts, urlsplit(printed).netloc}
        try:
            yield printed
        finally:
            visitor.close()  # an open page goes on asking

    return address


def opened(visitor: Visitor, address: str, *, width: int = WIDE, dark: bool = False) -> Page:
    page = visitor.context(width=width, dark=dark).new_page()
    page.goto(address)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    return page


def test_what_was_given_up_is_replayed_after_its_dry_run(
    visitor: Visitor, operating: Operating, dead_letters: DeadLetterFixture
) -> None:
    given_up = dead_letters.give_up()
    with operating("--write") as address:
        page = opened(visitor, address)
        assert "token" not in page.url
        page.get_by_role("link", name="Failures").first.click()
        page.get_by_role("button", name="Replay 1 image").click()
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text("Nothing was changed yet.")
        expect(dialog).to_contain_text("What would happen")
        assert dead_letters.row(given_up.image_id).run == 1
        dialog.get_by_role("button", name="Replay", exact=True).click()
        expect(dialog).to_contain_text("The command has ended.")
        dialog.get_by_role("button", name="Close").click()
        expect(page.get_by_text("There are none.")).to_be_visible()
        wait_until(lambda: dead_letters.is_done_again(given_up), "the image is done again", seconds=60)


def test_what_takes_long_shows_how_far_it_is_goes_on_when_closed_and_can_be_stopped(
    visitor: Visitor, operating: Operating, dead_letters: DeadLetterFixture
) -> None:
    dead_letters.give_up()
    run: dict[str, Any] = {
        "run": "a" * 16,
        "action": "replay",
        "began_at": "2026-12-24T08:00:00.000Z",
        "stopping": False,
    }
    run |= {"ended": False, "says": ["Replaying."], "notes": []}
    run |= {"step": {"name": "replaying", "completed": 3, "total": 10, "detail": "3 of 10"}}
    answer: dict[str, Any] = {
        "action": "replay",
        "dry_run": False,
        "complete": False,
        "says": ["Stopped."],
        "notes": [],
        "count": 3,
    }
    answer |= {"ids": []}

    def of_the_run(route: Route) -> None:
        if route.request.method == "DELETE":
            run["stopping"] = True
            route.fulfill(json=run)
        else:
            route.fulfill(json=answer if run["stopping"] else run)

    def of_replays(route: Route) -> None:
        is_dry = json.loads(route.request.post_data or "{}")["dry_run"]
        route.continue_() if is_dry else route.fulfill(json=run)

    with operating("--write") as address:
        page = opened(visitor, address)
        page.route("**/operate/api/replay", of_replays)
        page.route("**/operate/api/runs", lambda route: route.fulfill(json={"runs": [run]}))
        page.route(f"**/operate/api/runs/{run['run']}", of_the_run)
        page.get_by_role("link", name="Failures").first.click()
        page.get_by_role("button", name="Replay 1 image").click()
        page.get_by_role("dialog").get_by_role("button", name="Replay", exact=True).click()
        expect(page.get_by_role("dialog").get_by_role("progressbar", name="replaying")).to_have_attribute("value", "3")
        page.get_by_role("button", name="Close; it goes on").click()
        page.get_by_role("list", name="Actions").get_by_role("button", name="Show").click()
        page.get_by_role("dialog").get_by_role("button", name="Stop it").click()
        expect(page.get_by_role("dialog")).to_contain_text("Done, but not all of it")
        assert axe.findings(page) == []


def test_a_new_key_is_there_until_its_dialog_is_closed_on_purpose(visitor: Visitor, operating: Operating) -> None:
    answer = {"action": "rotate_key", "dry_run": False, "complete": True, "says": [], "notes": [], "count": 1}
    answer |= {"ids": [], "key": "dr_the_new_one"}
    held: list[Route] = []

    def of_rotations(route: Route) -> None:
        is_dry = json.loads(route.request.post_data or "{}")["dry_run"]
        route.continue_() if is_dry else held.append(route)

    def escape_often(page: Page) -> None:
        for _ in range(3):  # a browser lets a page prevent it once
            page.keyboard.press("Escape")

    with operating("--write") as address:
        page = opened(visitor, address)
        page.route("**/operate/api/rotate_key", of_rotations)
        page.goto(f"{page.url.partition('#')[0]}#/operate/tenants/{visitor.account.tenant_id}")
        rotate, dialog = page.get_by_role("button", name="Rotate"), page.get_by_role("dialog")
        rotate.click()
        dialog.get_by_role("button", name="Replace it").click()
        expect(dialog).to_contain_text("Doing it…")
        escape_often(page)
        expect(dialog.get_by_role("button", name="Close")).to_be_disabled()
        held[0].fulfill(json=answer)
        key = dialog.get_by_text("dr_the_new_one")
        expect(key).to_be_visible()
        escape_often(page)
        expect(key).to_be_visible()
        dialog.get_by_role("button", name="Close").click()
        expect(dialog).to_have_count(0)
        rotate.click()
        expect(dialog).to_contain_text("Nothing was changed yet.")
        page.keyboard.press("Escape")
        expect(dialog).to_have_count(0)


def test_one_scheduled_image_is_moved_alone(visitor: Visitor, operating: Operating) -> None:
    tenant, at = visitor.account.tenant_id, clock() + 5 * 86_400_000
    ends: dict[str, Any] = {"completed_at": None, "completed_version": None}
    rows = [
        replace(
            image(tenant, number, status=Status.SCHEDULED, attempt=0, process_at=at, **ends),
            waiting_since=at,
            enqueued_at=at,
        )
        for number in (1, 2)
    ]
    plant(visitor.stack, rows)
    day = rfc3339(at)[:10]
    with operating("--write") as address:
        page = opened(visitor, address)
        page.goto(f"{page.url.partition('#')[0]}#/operate/delays?day={day}&zone=UTC&images=true")
        row = page.get_by_role("row").filter(has_text=rows[0].image_id)
        row.get_by_role("button", name="Move").click()
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text("1 image of ")
        dialog.get_by_role("button", name="Move", exact=True).click()
        expect(dialog).to_contain_text("Rescheduled 1 image")
        dialog.get_by_role("button", name="Close").click()
        expect(page.get_by_role("row").filter(has_text=rows[1].image_id)).to_be_visible()
        expect(page.get_by_role("row").filter(has_text=rows[0].image_id)).to_have_count(0)


def test_without_write_it_only_reads(visitor: Visitor, operating: Operating, dead_letters: DeadLetterFixture) -> None:
    dead_letters.give_up()
    error = Failure(code=INTERNAL, message="It failed 5 times.", retryable=True)
    owed = image(visitor.account.tenant_id, 1, status=Status.FAILED, error=error, dead_letter=DeadLetterState.OWED)
    plant(visitor.stack, [replace(owed, due_at=clock() + 1_800_000)])  # so long the sweeper leaves it alone
    with operating() as address:
        page = opened(visitor, address)
        page.get_by_role("link", name="Failures").first.click()
        expect(page.get_by_role("button", name="Replay 1 image")).to_be_disabled()
        expect(page.get_by_text("This page only reads").first).to_be_visible()
        expect(page.get_by_text("1 image given up whose dead letter is coming")).to_be_visible()
        expect(page.get_by_role("link", name=owed.image_id)).to_be_visible()
    plant(visitor.stack, [replace(owed, dead_letter=DeadLetterState.KEPT)])


def test_the_browser_is_led_from_its_private_file_to_the_page_which_may_be_loaded_again(
    visitor: Visitor, operating: Operating, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opener, given = tmp_path / "opener", tmp_path / "given"
    opener.write_text(f'#!/bin/sh\nprintf %s "$1" > {given}.unfinished\nmv {given}.unfinished {given}\n')
    opener.chmod(0o755)
    monkeypatch.setenv("BROWSER", str(opener))
    monkeypatch.setenv("HOME", str(tmp_path))
    with operating("--open"):
        wait_until(given.exists, "the browser is opened")
        visitor.watch.hosts = {*visitor.watch.hosts, ""}  # of the file itself
        page = opened(visitor, given.read_text())
        for _ in range(2):
            expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
            assert "token" not in page.url
            page.reload()


def test_without_the_token_nothing_is_shown(visitor: Visitor, operating: Operating) -> None:
    with operating() as address:
        page = opened(visitor, address.partition("#")[0])
        expect(page.get_by_role("heading", level=1)).to_have_text("Open the whole address")
        with visitor.watch.expecting("status of 401"):
            page.goto(f"{address.partition('#')[0]}#token={'A' * 43}")
            page.reload()
            expect(page.get_by_role("alert")).to_contain_text("The token of this run is missing or wrong")


def test_hostile_failures_are_shown_as_text(
    visitor: Visitor, operating: Operating, dead_letters: DeadLetterFixture
) -> None:
    given_up = dead_letters.give_up(error_type=MARKUP, message=MARKUP)
    with operating("--write") as address:
        page = opened(visitor, address)
        root = page.url.partition("#")[0]
        for part in ("failures", f"failures/{given_up.image_id}", f"images/{given_up.image_id}", "images"):
            page.goto(f"{root}#/operate/{part}")
            expect(page.get_by_role("heading", level=1)).to_be_visible()
            settle(page)
        page.goto(f"{root}#/operate/failures/{given_up.image_id}")
        expect(page.get_by_text(MARKUP).first).to_be_visible()
        assert page.locator("img[src=x]").count() == 0


def of_a_bad_hour(route: Route) -> None:
    """The overview with three alarms, a lane with late images and a dead letter; everything else is quiet."""
    seen = route.fetch().json()
    at = seen["observed_at"]
    alarm = {"severity": "warning", "since": at, "effect": "It is late.", "command": "./darkroom top", "reason": ""}
    alarm |= {"caused_by": [], "section": "docs/runbook.md#late"}
    seen["alarms"] = [alarm | {"name": name} for name in ("FirstAlarm", "SecondAlarm", "ThirdAlarm")]
    quiet = {"retrying": [], "function_errors": {"minutes": 15, "functions": {}}, "working": []}
    empty = {"waiting": 0, "in_flight": 0, "delayed": 0}
    seen |= quiet | {"queues": {queue: dict(empty) for queue in seen["queues"]}, "unreadable_rows": 0}
    calm: dict[str, Any] = {"backlog": 0, "oldest_since": None, "failing_percent": 0, "tenants": []}
    for lane in seen["lanes"]:
        lane.update(calm, late={"number": 0, "is_all": True})
        lane["error_budget"].update({"left_percent": None, "fast_burn": 0, "slow_burn": 0})
    late = seen["lanes"][0]
    late["late"]["number"] = 4
    share = {"tenant": "noisy-tenant", "busy_seconds": 9000.0, "work_percent": 98.0, "capacity_percent": 50.0}
    late["tenants"] = [share | {"times_median": 49.2, "is_noisy": True}]
    seen["queues"][late["lane"]]["waiting"] = 100
    seen["dead_letters"] = {"queues": {"delivery": 2}, "causes": [], "coming": {"number": 0, "is_all": True}}
    seen["sweeper_late_seconds"] = {"removals": 2700.0}
    seen["function_errors"]["functions"] = {"TranscodeImageFunction": 3, "SubmitImageFunction": 1}
    seen |= {"accept_p99_milliseconds": 310.4, "receives_p99": 2.0}
    first = {"counted": 50_000, "bad": 20, "left_percent": 60.0, "repeated": 3, "p50_seconds": 0.34, "p99_seconds": 4.5}
    seen["webhooks"] |= {"conditions": {"healthy": 2}, "unhealthy": [], "first_attempts": first}
    route.fulfill(json=seen)


def of_no_history(route: Route) -> None:
    history = route.fetch().json()
    for lane in history["lanes"].values():
        lane.update({name: [0] * len(values) for name, values in lane.items()})
    route.fulfill(json=history)


def test_the_overview_has_no_holes_folds_alarms_on_a_phone_and_shows_what_is_quiet_small(
    visitor: Visitor, operating: Operating
) -> None:
    with operating() as address:
        page = opened(visitor, address)
        page.route("**/operate/api/overview", of_a_bad_hour)
        page.route("**/operate/api/history", of_no_history)
        page.reload()
        effects = page.locator(".alarms .effect")
        expect(effects).to_have_count(3)
        quiet = page.get_by_role("region", name="What is quiet")
        expect(quiet).to_contain_text("None is busy.")
        expect(page.get_by_text("last hour: accepting 310 ms, receives of a message 2.")).to_be_visible()
        first = "First attempts in 28 days: 99.96 % good, error budget left: 60.0 %; p50 0.34 s, p99 4.5 s"
        expect(quiet).to_contain_text(f"2 healthy. {first}; 3 perhaps sent twice.")
        for name, is_loud in {
            **dict.fromkeys(("Failures", "Functions", "Sweeper", "Tenants", "Queues"), True),
            "Busy workers": False,
        }.items():
            expect(page.get_by_role("heading", name=name, exact=True)).to_have_count(int(is_loud))
            expect(quiet.get_by_role("term").filter(has_text=name)).to_have_count(int(not is_loud))
        slow = page.get_by_role("region", name="Lane slow")
        expect(slow.get_by_text("Figures and charts")).to_be_visible()
        expect(slow.locator(".chart")).to_have_count(0)
        slow.get_by_text("Figures and charts").click()
        expect(slow.locator(".chart")).to_have_count(3)
        for width in (WIDE, 1920, 1024, NARROW):
            page.set_viewport_size({"width": width, "height": 900})
            settle(page)
            assert (
                holes_between(page, ".panels > .card") + holes_between(page, "[aria-labelledby=lane-fast] .charts > *")
                == []
            ), width
            assert what_sticks_out(page) == [], width
        assert axe.findings(page) == []
        assert [effect.is_visible() for effect in effects.all()] == [True, False, False]
        page.get_by_text("SecondAlarm").click()
        expect(effects.nth(1)).to_be_visible()
        page.unroute_all(behavior="ignoreErrors")


def test_a_backfill_is_paused_resumed_and_ended_from_its_row(visitor: Visitor, operating: Operating) -> None:
    stack, backfill_id = visitor.stack, backfill_id_from_bits(secrets.token_bytes(16))
    backfills = BackfillsTable(stack.client("dynamodb"), stack.physical_id("BatchesTable"))
    backfills.create(start(backfill_id, Selection(preset="standard", version=2), rate=None, now=clock()))
    with operating("--write") as address:
        page = opened(visitor, address)
        page.get_by_role("link", name="Backfills").click()
        row = page.get_by_role("row").filter(has_text=backfill_id)
        for label, state in (("Pause", "paused"), ("Resume", "running"), ("End", "cancelled")):
            row.get_by_role("button", name=label).click()
            dialog = page.get_by_role("dialog")
            expect(dialog).to_contain_text(f"would be {state}. What is begun ends.")
            dialog.get_by_role("button", name=f"{label} it").click()
            expect(dialog).to_contain_text("The command has ended.")
            dialog.get_by_role("button", name="Close").click()
            expect(row).to_contain_text(state)
            assert (kept := backfills.get(backfill_id)) is not None and kept.state == state
        expect(row.get_by_role("button")).to_have_count(0)
        for width in (WIDE, NARROW):
            page.set_viewport_size({"width": width, "height": 900})
            settle(page)
            assert axe.findings(page) == []
            assert what_sticks_out(page) == [], width


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_every_part_is_accessible_and_fits(
    visitor: Visitor, operating: Operating, dead_letters: DeadLetterFixture, width: int, dark: bool
) -> None:
    given_up = dead_letters.give_up()
    with operating("--write") as address:
        page = opened(visitor, address, width=width, dark=dark)
        root = page.url.partition("#")[0]
        for part in (*PARTS, f"operate/failures/{given_up.image_id}", f"operate/images/{given_up.image_id}"):
            page.goto(f"{root}#/{part}")
            expect(page.get_by_role("heading", level=1)).to_be_visible()
            expect(page.locator("main .starting")).to_have_count(0)
            settle(page)
            assert axe.findings(page) == [], part
            assert what_sticks_out(page) == [], part
        page.goto(f"{root}#/operate/drills")
        page.get_by_role("button", name="Run… the drill lane-stopped").click()
        expect(page.get_by_role("dialog")).to_contain_text("Nothing was changed yet.")
        assert axe.findings(page) == []
        assert what_sticks_out(page) == []
