"""`darkroom delay`: waiting images; single ones by the API, a whole day in the stack's own table."""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from typing import Any

import pytest

from darkroom.domain.images.image import Image, Status
from darkroom.domain.kernel.lanes import LANES
from darkroom.http.kernel.timetables import read_timetable
from darkroom_cli.delay import pages as delay_pages
from darkroom_cli.delay import work as delay_work
from darkroom_cli.terminal.interrupts import Interrupts
from darkroom_client.client import ApiError
from tests.support.fakes.observation import count
from tests.support.fakes.pictures import jpeg
from tests.support.observed import Observed
from tests.support.stack import OPTIONS, FakeStack
from tests.unit.cli.conftest import Run
from tests.unit.cli.fake_api import FakeApi, Reply, image_id_of, problem

PHOTO = jpeg(32, 24)


@pytest.fixture
def stack(stack: FakeStack, monkeypatch: pytest.MonkeyPatch) -> FakeStack:
    stack.world = Observed()
    stack.world.queues.counts["hold"] = count(waiting=1, in_flight=2)
    stack.world.given_up.counts["hold-dead-letters"] = count()
    monkeypatch.setattr("darkroom_cli.delay.work.RateLimiter.wait", lambda _: None)
    return stack


def schedule(stack: FakeStack, *times: str, lane: str = "slow", tenant: str = "default", **more: str) -> list[str]:
    """Images for those times."""
    ids = []
    for time in times:
        image = stack.world.submit(PHOTO, timetable=read_timetable(process_at=time, **more), tenant_id=tenant).image
        stack.images.rows[image.image_id] = replace(image, lane=lane)
        ids.append(image.image_id)
    return ids


def rows_of(shown: str) -> list[list[str]]:
    """The lines of the view, split into words."""
    return [line.split() for line in shown.splitlines() if line.startswith("  ")]


def columns(**images: int) -> list[str]:
    """The numbers of all lanes, in the order of the columns."""
    return [str(images.get(lane, 0)) for lane in LANES]


# ── What waits ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_empty_house_is_said_in_one_line(run: Run, stack: FakeStack) -> None:
    result = run("delay", "ls")
    assert (result.exit_code, result.stdout) == (0, "Nothing waits for its time.\n")
    assert run("delay", "ls", "--lane", "fast").stdout == "Nothing that matches waits for its time.\n"
    assert run("delay", "ls", "--day", "2026-12-24").stdout == "Nothing waits for its time on 2026-12-24.\n"


def test_days_are_listed_with_their_lanes_and_what_to_type_next(run: Run, stack: FakeStack) -> None:
    schedule(stack, "2026-12-24T08:00:00Z", "2026-12-24T09:30:00Z", "2026-12-26T00:00:00Z", "2027-01-05T12:00:00Z")
    schedule(stack, "2026-12-24T08:00:00Z", lane="fast")
    shown = run("delay", "ls").stdout
    assert shown.startswith("5 images wait for their time, from 2026-12-24 08:00:00 to 2027-01-05 12:00:00 (UTC).\n\n")
    assert rows_of(shown) == [
        ["day", "images", *LANES, "first", "last"],
        ["Thu", "2026-12-24", "3", *columns(fast=1, slow=2), "08:00:00", "09:30:00", "█" * 24],
        ["Fri", "2026-12-25", "0"],
        ["Sat", "2026-12-26", "1", *columns(slow=1), "00:00:00", "00:00:00", "█" * 8],
        ["…", "9", "days", "0"],
        ["Tue", "2027-01-05", "1", *columns(slow=1), "12:00:00", "12:00:00", "█" * 8],
    ]
    assert shown.endswith(f"One day by its hours:  ./darkroom delay ls --day 2026-12-24{OPTIONS}\n")


def test_a_day_is_listed_by_its_hours(run: Run, stack: FakeStack) -> None:
    schedule(stack, "2026-12-24T08:00:00Z", "2026-12-24T08:59:59Z", "2026-12-24T23:00:00Z", "2026-12-25T00:00:00Z")
    shown = run("delay", "ls", "--day", "2026-12-24", "--lane", "slow").stdout
    rows = rows_of(shown)
    assert (rows[0], len(rows)) == (["hour", "images", "first", "last"], 25)
    assert rows[8:11] == [["07:00", "0"], ["08:00", "2", "08:00:00", "08:59:59", "█" * 24], ["09:00", "0"]]
    assert rows[24][:2] == ["23:00", "1"]
    typed = f"--day 2026-12-24 --lane slow{OPTIONS}"
    assert f"./darkroom delay cancel {typed}" in shown
    assert f"./darkroom delay reschedule --day 2026-12-24 --lane slow --by 1d{OPTIONS}" in shown


def test_the_hours_of_a_long_and_of_a_short_day_are_told_apart(run: Run, stack: FakeStack) -> None:
    schedule(stack, "2027-10-31T00:30:00Z", "2027-10-31T01:30:00Z", "2027-03-28T01:30:00Z")
    long_day = rows_of(run("delay", "ls", "--day", "2027-10-31", "--zone", "Europe/Berlin").stdout)
    assert len(long_day) == 26
    assert [row[0] for row in long_day[3:5]] == ["02:00+02:00", "02:00+01:00"]
    assert [row[1] for row in long_day[3:5]] == ["1", "1"]
    assert len(rows_of(run("delay", "ls", "--day", "2027-03-28", "--zone", "Europe/Berlin").stdout)) == 24


def test_hours_that_are_over_are_not_shown_and_what_is_unfinished_of_them_is_told(run: Run, stack: FakeStack) -> None:
    (late,) = schedule(stack, "2026-11-21T09:01:00Z")
    schedule(stack, "2026-11-21T12:00:00Z")
    stack.world.advance(7200)
    shown = run("delay", "ls", "--day", "2026-11-21").stdout
    assert "Also 1 unfinished image whose time has come" in shown
    assert rows_of(shown)[1][:2] == ["11:00", "0"]
    assert late in run("delay", "ls", "--day", "2026-11-21", "--images").stdout, "which no worker has begun"


def test_images_are_shown_by_their_rows(run: Run, stack: FakeStack) -> None:
    (image_id,) = schedule(stack, "2026-12-24T08:00:00Z", expires_at="2026-12-25T00:00:00Z", tenant="acme")
    shown = run("delay", "ls", "--day", "2026-12-24", "--hour", "8", "--images").stdout
    assert rows_of(shown)[-1] == [
        image_id,
        "2026-12-24T08:00:00.000+00:00",
        "slow",
        "0",
        "2026-12-25T00:00:00.000+00:00",
        "acme",
    ]
    assert image_id not in run("delay", "ls", "--day", "2026-12-24", "--hour", "9", "--images").stdout


def test_more_images_than_fit_are_left_to_json(run: Run, stack: FakeStack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delay_pages, "ROWS_SHOWN", 2)
    ids = schedule(stack, "2026-12-24T08:00:00Z", "2026-12-24T08:00:01Z", "2026-12-24T08:00:02Z")
    shown = run("delay", "ls", "--images").stdout
    assert [image_id in shown for image_id in ids] == [True, True, False]
    assert "… and more than these 2; --json has them all." in shown
    assert [row["id"] for row in json.loads(run("delay", "ls", "--images", "--json").stdout)["rows"]] == ids


def test_json_holds_what_the_table_shows(run: Run, stack: FakeStack) -> None:
    schedule(stack, "2026-12-24T08:00:00Z", "2026-12-24T09:00:00Z")
    document = json.loads(run("delay", "ls", "--zone", "Europe/Berlin", "--json").stdout)
    assert document == {
        "zone": "Europe/Berlin",
        "images": 2,
        "due": 0,
        "unreadable": 0,
        "read_until": None,
        "days": [
            {
                "day": "2026-12-24",
                "starts_at": "2026-12-23T23:00:00.000Z",
                "ends_at": "2026-12-24T23:00:00.000Z",
                "images": 2,
                "lanes": dict.fromkeys(LANES, 0) | {"slow": 2},
                "first_at": "2026-12-24T08:00:00.000Z",
                "last_at": "2026-12-24T09:00:00.000Z",
            }
        ],
    }
    hours = json.loads(run("delay", "ls", "--day", "2026-12-24", "--json").stdout)["hours"]
    assert [(hour["starts_at"], hour["images"]) for hour in hours] == [
        ("2026-12-24T08:00:00.000Z", 1),
        ("2026-12-24T09:00:00.000Z", 1),
    ]


def test_a_count_that_is_not_whole_says_until_when_it_is(run: Run, stack: FakeStack) -> None:
    schedule(stack, "2026-12-24T08:00:00Z", "2026-12-25T08:00:00Z", "2026-12-26T08:00:00Z")
    shown = run("delay", "ls", "--limit", "2").stdout
    assert "That is not all: images up to 2026-12-26 08:00:00 were read, and more wait after that." in shown
    assert json.loads(run("delay", "ls", "--limit", "2", "--json").stdout)["read_until"] == "2026-12-26T08:00:00.000Z"
    assert "not all" not in run("delay", "ls", "--limit", "3").stdout


@pytest.mark.parametrize(
    ("filters", "times"),
    [
        (["--from", "2026-12-25"], 3),
        (["--from", "2026-12-25", "--to", "2026-12-25"], 2),
        (["--from", "2026-12-25T09:00"], 2),
        (["--from", "2026-12-25T09:00", "--zone", "Europe/Berlin"], 3),
        (["--from", "2026-12-25T09:00:00+01:00", "--to", "2026-12-25T17:00:00Z"], 1),
        (["--to", "2026-12-24"], 1),
        (["--day", "2026-12-25", "--tenant", "acme"], 1),
        (["--day", "2026-12-25", "--tenant", "nobody"], 0),
        (["--day", "2026-12-25", "--hour", "08:00"], 1),
    ],
)
def test_filters_leave_what_fits_all_of_them(run: Run, stack: FakeStack, filters: list[str], times: int) -> None:
    schedule(stack, "2026-12-24T08:00:00Z", "2026-12-25T08:00:00Z", "2026-12-26T08:00:00Z")
    schedule(stack, "2026-12-25T17:00:00Z", tenant="acme")
    assert json.loads(run("delay", "ls", "--json", *filters).stdout)["images"] == times


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (["ls", "--day", "tomorrow"], "--day"),
        (["ls", "--day", "2026-02-30"], "--day"),
        (["ls", "--day", "9999-12-31"], "--day"),
        (["ls", "--day", "2026-12-24", "--from", "2026-12-24"], "--day"),
        (["ls", "--hour", "8"], "--hour"),
        (["ls", "--day", "2026-12-24", "--hour", "24"], "--hour"),
        (["ls", "--day", "2027-03-28", "--hour", "2", "--zone", "Europe/Berlin"], "--hour"),
        (["ls", "--zone", "Europe/Atlantis"], "--zone"),
        (["ls", "--zone", "../../etc/passwd"], "--zone"),
        (["ls", "--zone", ""], "--zone"),
        (["ls", "--zone", "Europe"], "--zone"),
        (["ls", "--lane", "hold"], "--lane"),
        (["ls", "--tenant", "acme"], "--tenant"),
        (["ls", "--from", "noon"], "--from"),
        (["ls", "--from", "9999-12-31"], "--from"),
        (["ls", "--to", "2026-11-20T00:00"], "--to"),
        (["ls", "--limit", "0"], "--limit"),
        (["reschedule", "--day", "2026-12-24"], "--by"),
        (["reschedule", "--day", "2026-12-24", "--by", "0d"], "--by"),
        (["reschedule", "--day", "2026-12-24", "--by", "2h"], "--by"),
        (["reschedule", "--day", "2026-12-24", "--by", "1d", "--to", "2026-12-25T00:00:00Z"], "--to"),
        (["reschedule", "--day", "9998-12-24", "--by", "999d"], "--by"),
        (["reschedule"], "--day"),
        (["reschedule", "0" * 26], "--to"),
        (["reschedule", "0" * 26, "--to", "2026-12-25T00:00:00Z", "--delay", "P1D"], "--to"),
        (["reschedule", "0" * 26, "--day", "2026-12-24", "--by", "1d"], "--day"),
        (["reschedule", "0" * 26, "--delay", "P1D", "--stack", "shop"], "--stack"),
        (["cancel"], "--day"),
        (["cancel", "0" * 26, "--stack", "shop"], "--stack"),
        (["cancel", "0" * 26, "--lane", "slow"], "--lane"),
        (["cancel", "--day", "2026-12-24", "--url", "https://api.example"], "--url"),
        (["cancel", "../secrets"], "id"),
        (["cancel", "0" * 26, "--image", "0" * 26], "--image"),
        (["cancel", "--day", "2026-12-24", "--image", "../secrets"], "id"),
    ],
)
def test_what_makes_no_sense_is_a_usage_error_that_names_its_option(
    run: Run, stack: FakeStack, api: FakeApi, arguments: list[str], option: str
) -> None:
    result = run("delay", *arguments)
    assert result.exit_code == 2 and option in result.stderr
    assert api.requests == []


# ── A whole day ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_reschedule_of_a_day_says_what_it_would_do_until_it_is_told_to(run: Run, stack: FakeStack) -> None:
    ids = schedule(stack, "2026-12-24T08:00:00Z", "2026-12-24T20:00:00Z")
    (other,) = schedule(stack, "2026-12-25T08:00:00Z")
    before = dict(stack.images.rows)
    printed = run("delay", "reschedule", "--day", "2026-12-24", "--by", "1d", "--rate", "20").stdout
    assert printed.startswith(
        "2 images of 2026-12-24 would be rescheduled to 2026-12-25, to the same time of the day (UTC). "
        "Nothing was changed.\n"
    )
    assert f"Do it:  ./darkroom delay reschedule --day 2026-12-24 --by 1d --rate 20 --yes{OPTIONS}" in printed
    assert stack.images.rows == before

    done = run("delay", "reschedule", "--day", "2026-12-24", "--by", "1d", "--yes")
    assert done.exit_code == 0
    assert done.stdout.startswith(
        "Rescheduled 2 images of 2026-12-24 to 2026-12-25, to the same time of the day (UTC).\n"
    )
    assert f"Is anything left?  ./darkroom delay ls --day 2026-12-24{OPTIONS}" in done.stdout
    assert [(stack.row(image_id).schedule, stack.row(image_id).process_at) for image_id in ids] == [
        (1, (before[image_id].process_at or 0) + 86_400_000) for image_id in ids
    ]
    assert stack.row(other) == before[other]
    assert len(stack.hold_queue.held) == 3 + 2

    again = run("delay", "reschedule", "--day", "2026-12-24", "--by", "1d", "--yes").stdout
    assert again.startswith("Rescheduled 0 images of 2026-12-24.\n")
    assert {stack.row(image_id).schedule for image_id in ids} == {1}


def test_a_day_is_rescheduled_to_the_same_time_of_the_day_by_the_clocks_of_its_zone(run: Run, stack: FakeStack) -> None:
    (image_id,) = schedule(stack, "2027-03-27T08:00:00Z")
    run("delay", "reschedule", "--day", "2027-03-27", "--zone", "Europe/Berlin", "--by", "1d", "--yes")
    assert stack.row(image_id).process_at == read_timetable(process_at="2027-03-28T09:00:00+02:00").process_at


def test_an_hour_of_a_lane_of_a_tenant_is_withdrawn_alone(run: Run, stack: FakeStack) -> None:
    (wanted,) = schedule(stack, "2026-12-24T08:30:00Z", tenant="acme", lane="fast")
    others = [
        *schedule(stack, "2026-12-24T09:30:00Z", tenant="acme", lane="fast"),
        *schedule(stack, "2026-12-24T08:30:00Z", lane="fast"),
        *schedule(stack, "2026-12-24T08:30:00Z", tenant="acme"),
    ]
    filters = ["--day", "2026-12-24", "--hour", "8", "--lane", "fast", "--tenant", "acme"]
    printed = run("delay", "cancel", *filters).stdout
    assert printed.startswith("1 image of 2026-12-24 08:00 would be deleted. Nothing was changed.\n")
    assert "--day 2026-12-24 --hour 8 --lane fast --tenant acme --yes --stack shop" in printed
    done = run("delay", "cancel", *filters, "--yes")
    assert (done.exit_code, done.stdout.splitlines()[0]) == (0, "Deleted 1 image of 2026-12-24 08:00.")
    assert "Left alone" not in done.stdout
    assert stack.row(wanted).status is Status.CANCELLED
    assert {stack.row(image_id).status for image_id in others} == {Status.SCHEDULED}


@pytest.mark.guards("day-named-images-only")
def test_of_a_day_only_the_images_that_are_named_are_moved(run: Run, stack: FakeStack) -> None:
    first, second, third = schedule(stack, "2026-12-24T08:00:00Z", "2026-12-24T09:00:00Z", "2026-12-24T10:00:00Z")
    (elsewhere,) = schedule(stack, "2026-12-26T08:00:00Z")
    named = [option for image_id in (first, third, elsewhere) for option in ("--image", image_id)]
    printed = run("delay", "reschedule", "--day", "2026-12-24", *named, "--by", "1d").stdout
    assert printed.startswith("2 images of 2026-12-24 would be rescheduled")
    assert f"--image {first} --image {third} --image {elsewhere} --by 1d --yes" in printed
    run("delay", "reschedule", "--day", "2026-12-24", *named, "--by", "1d", "--yes")
    assert [stack.row(image_id).schedule for image_id in (first, second, third, elsewhere)] == [1, 0, 1, 0]


@pytest.mark.guards("day-unreadable-row-isolated")
def test_an_image_whose_row_cannot_be_read_stops_none_of_the_others(
    run: Run, stack: FakeStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, *others = schedule(stack, "2026-11-23T08:00:00Z", "2026-11-23T09:00:00Z", "2026-11-23T10:00:00Z")
    get = stack.images.get

    def trip(image_id: str) -> Any:
        if image_id == first:
            raise ValueError("'asleep' is not a valid Status")
        return get(image_id)

    monkeypatch.setattr(stack.images, "get", trip)
    outcome = run("delay", "cancel", "--day", "2026-11-23", "--yes")
    assert outcome.exit_code == 1 and first in outcome.stderr and "asleep" in outcome.stderr
    assert {stack.row(image_id).status for image_id in others} == {Status.CANCELLED}


def test_nothing_to_do_is_no_failure(run: Run, stack: FakeStack) -> None:
    result = run("delay", "cancel", "--day", "2026-12-24")
    assert (result.exit_code, result.stdout) == (0, "Nothing waits for its time on 2026-12-24.\n")
    assert run("delay", "cancel", "--day", "2026-12-24", "--yes").exit_code == 0


def test_a_failure_midway_reports_what_was_done(run: Run, stack: FakeStack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delay_work, "AT_A_TIME", 1)
    schedule(stack, "2026-12-24T08:00:00Z", "2026-12-24T08:00:01Z", "2026-12-24T08:00:02Z")
    change, written = stack.images.change, []

    def fails_at_the_third(*arguments: Any, **options: Any) -> Image:
        written.append(1)
        if len(written) == 3:
            raise ApiError("AWS did not answer")
        changed: Image = change(*arguments, **options)
        return changed

    stack.images.change = fails_at_the_third
    result = run("delay", "cancel", "--day", "2026-12-24", "--yes")
    assert result.exit_code == 1
    assert "so far: 2 done, 0 left alone, 0 refused" in result.stderr and "AWS did not answer" in result.stderr


def test_an_interrupted_reschedule_ends_in_good_order_and_is_typed_again(
    run: Run, stack: FakeStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delay_work, "AT_A_TIME", 1)
    ids = schedule(stack, "2026-12-24T08:00:00Z", "2026-12-24T08:00:01Z", "2026-12-24T08:00:02Z")
    put = stack.hold_queue.put

    def interrupted(message: Any) -> None:
        put(message)
        stack.hold_queue.put = put
        signal.raise_signal(signal.SIGINT)

    stack.hold_queue.put = interrupted
    result = run("delay", "reschedule", "--day", "2026-12-24", "--by", "1d", "--yes")
    assert result.exit_code == 130
    again = f"./darkroom delay reschedule --day 2026-12-24 --by 1d --yes{OPTIONS}"
    assert f"Interrupted. For the rest:  {again}" in result.stderr
    assert [stack.row(image_id).schedule for image_id in ids] == [1, 0, 0]
    assert run("delay", "reschedule", "--day", "2026-12-24", "--by", "1d", "--yes").exit_code == 0
    assert [stack.row(image_id).schedule for image_id in ids] == [1, 1, 1]


# ── Single images ────────────────────────────────────────────────────────────────────────────────────────────────────

NEW_TIME = "2027-03-01T09:00:00Z"


def test_images_are_rescheduled_one_by_one_with_a_line_for_each(run: Run, api: FakeApi) -> None:
    ids = [api.put("scheduled"), api.put("scheduled")]
    result = run("delay", "reschedule", *ids, "--to", NEW_TIME)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [f"{image_id}  waits until {NEW_TIME}" for image_id in ids]
    assert [json.loads(seen.body) for seen in api.requests] == [{"process_at": NEW_TIME}] * 2
    assert {api.images[image_id]["process_at"] for image_id in ids} == {NEW_TIME}


@pytest.mark.parametrize("words", [("reschedule", "--to", NEW_TIME), ("cancel",)])
def test_they_are_asked_for_with_the_callers_key(
    run: Run, api: FakeApi, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("DARKROOM_API_KEY", "of the environment")
    for given, sent in ((("--api-key", "typed"), "typed"), ((), "of the environment")):
        api.requests.clear()
        assert run("delay", words[0], api.put("scheduled"), *words[1:], *given).exit_code == 0
        assert {seen.headers["authorization"] for seen in api.requests} == {f"Bearer {sent}"}


def test_what_cannot_be_rescheduled_does_not_stop_the_others_and_fails_the_command(run: Run, api: FakeApi) -> None:
    done, unknown, scheduled = api.put("done"), image_id_of("unknown"), api.put("scheduled")
    result = run("delay", "reschedule", done, unknown, scheduled, "--to", NEW_TIME)
    assert result.exit_code == 1
    assert result.stdout == f"{scheduled}  waits until {NEW_TIME}\n"
    assert result.stderr.splitlines() == [
        f"error: {done}  not rescheduled: Only a scheduled image can be rescheduled: done.",
        f"error: {unknown}  not rescheduled: There is no image with this id.",
        "error: 2 of 3 images were not rescheduled.",
    ]


def test_a_time_that_no_image_can_have_is_said_once(run: Run, api: FakeApi) -> None:
    result = run("delay", "reschedule", api.put("scheduled"), api.put("scheduled"), "--to", "soon")
    assert (result.exit_code, len(api.requests)) == (1, 1)
    assert result.stderr == "error: process_at is an instant with its zone.\n"


def test_an_image_is_withdrawn_once_and_unknown_from_then_on(run: Run, api: FakeApi) -> None:
    image_id = api.put("scheduled")
    assert run("delay", "cancel", image_id, image_id).stdout == f"{image_id}  deleted\n"
    again = run("delay", "cancel", image_id)
    assert again.exit_code == 1
    assert again.stderr == f"error: {image_id}  not deleted: There is no image with this id.\n"
    assert [seen.method for seen in api.requests] == ["GET", "DELETE", "GET"]


@pytest.mark.guards("day-cancel-id-scheduled-only")
@pytest.mark.parametrize("status", ["pending", "processing", "done", "failed", "expired"])
def test_what_is_not_scheduled_is_not_removed(run: Run, api: FakeApi, status: str) -> None:
    image_id = api.put(status)
    api.polls_until_done = 1_000_000
    result = run("delay", "cancel", image_id)
    assert result.exit_code == 1
    assert f"{image_id}  not deleted: This command deletes only scheduled images. This one is {status}." in (
        result.stderr
    )
    assert api.images[image_id]["status"] == status


def test_ids_are_read_from_standard_input(run: Run, api: FakeApi) -> None:
    ids = [api.put("scheduled") for _ in range(3)]
    lines = f"{ids[0]}  holiday/a.jpg\n\n{ids[1]}\n{ids[0]}\n"
    shown = run("delay", "cancel", "-", ids[2], stdin=lines).stdout
    assert [line.split()[0] for line in shown.splitlines()] == ids


def test_a_line_that_is_no_id_is_a_usage_error_before_anything_is_done(run: Run, api: FakeApi) -> None:
    lines = f"{api.put('scheduled')}\nfast 3 of 4\n"
    assert run("delay", "cancel", "-", stdin=lines).exit_code == 2
    assert api.requests == []


def test_an_api_that_does_not_answer_ends_it_and_what_was_done_is_told(run: Run, api: FakeApi) -> None:
    ids = [api.put("scheduled") for _ in range(3)]
    api.faults["PATCH"] += [Reply(body=api.images[ids[0]])] + [problem(503, "unavailable", "Not now.")] * 8
    result = run("delay", "reschedule", *ids, "--to", NEW_TIME)
    assert (result.exit_code, len(api.requests)) == (1, 9)
    assert "failed 8 times, the last time with: Not now." in result.stderr
    assert "1 of 3 images were rescheduled before that." in result.stderr


def test_an_interruption_ends_it_after_the_image_on_the_way(
    run: Run, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [api.put("scheduled") for _ in range(3)]

    def interrupts(seen: Any) -> Reply:
        signal.raise_signal(signal.SIGINT)
        return Reply(body=api.images[ids[0]])

    monkeypatch.setattr(api, "_patch", interrupts)
    result = run("delay", "reschedule", *ids, "--to", NEW_TIME)
    assert (result.exit_code, len(api.requests)) == (130, 1)
    assert "Interrupted, with 2 images left: run the same command again." in result.stderr


@pytest.mark.guards("isolated-scheduled-image")
def test_an_unreadable_row_is_told_of_and_does_not_stop_a_reschedule_of_the_others(run: Run, stack: FakeStack) -> None:
    bad, good = schedule(stack, "2026-12-24T08:00:00Z", "2026-12-24T09:00:00Z")
    before = stack.row(good)
    stack.images.unreadable[bad] = stack.images.rows.pop(bad)
    listed = run("delay", "ls", "--day", "2026-12-24", "--tenant", "default").stdout
    assert "Also 1 row of a newer version, which cannot be read: see ./darkroom doctor." in listed
    result = run("delay", "reschedule", "--day", "2026-12-24", "--by", "1d", "--yes")
    assert result.exit_code == 1
    assert f"{bad} stays where it is: the row of {bad} cannot be read" in result.stderr
    assert stack.row(good).schedule == before.schedule + 1


LOST = """2 images wait for their time, in 2 batches: until 2027-03-01T09:00:00.000Z.
0 unfinished images whose time has come.
3 messages in the queue hold.
"""


def test_what_the_removal_of_a_stack_would_lose_is_said_and_nothing_is_stopped(run: Run, stack: FakeStack) -> None:
    schedule(stack, "2026-12-24T09:00:00Z", "2027-03-01T09:00:00Z")
    result = run("delay", "stop")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == (
        f"{LOST}Nothing was changed. Removing the stack would lose all of this: its owners wait for ever.\n"
        f"Do it:  ./darkroom delay stop --yes{OPTIONS}\n"
    )
    assert (stack.releases.stopped, stack.releases.holds) == ([], True)


def test_all_releases_are_stopped_and_both_ways_on_are_named(
    run: Run, stack: FakeStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Interrupts, "wait", lambda *_: None)
    schedule(stack, "2026-12-24T09:00:00Z", "2027-03-01T09:00:00Z")
    result = run("delay", "stop", "--yes")
    assert result.exit_code == 0
    assert result.stdout == (
        f"{LOST}Stopped 2 batches. No more are made.\nThe stack can be removed now: docs/deploy.md, Remove it.\n"
        f"To keep it instead:  ./darkroom doctor --repair --yes{OPTIONS}\n"
    )
    assert stack.releases.stopped == ["one", "two"]


def test_an_interrupted_stop_is_typed_again(run: Run, stack: FakeStack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Interrupts, "wait", lambda *_: signal.raise_signal(signal.SIGINT))
    result = run("delay", "stop", "--yes")
    assert result.exit_code == 130
    assert f"For the rest:  ./darkroom delay stop --yes{OPTIONS}" in result.stderr


def test_a_delay_of_nothing_is_now(run: Run, api: FakeApi) -> None:
    image_id = api.put("scheduled")
    assert (
        run("delay", "reschedule", image_id, "--delay", "PT0S").stdout
        == f"{image_id}  no longer waits: it is pending\n"
    )
    assert json.loads(api.requests[0].body) == {"delay": "PT0S"}


def test_what_is_due_and_not_begun_is_withdrawn_too_and_what_is_begun_is_left_alone(run: Run, stack: FakeStack) -> None:
    late, begun = schedule(stack, "2026-11-21T09:01:00Z", "2026-11-21T09:02:00Z")
    stack.world.advance(600)
    stack.images.rows[begun] = replace(stack.row(begun), status=Status.PROCESSING)
    printed = run("delay", "cancel", "--day", "2026-11-21").stdout
    assert "Also 2 unfinished images whose time has come: those that no worker has begun would be " in printed
    done = run("delay", "cancel", "--day", "2026-11-21", "--yes").stdout
    assert "Left alone: 1 that were begun, rescheduled or deleted meanwhile." in done
    assert (stack.row(late).status, stack.row(begun).status) == (Status.CANCELLED, Status.PROCESSING)


def test_the_originals_of_many_are_removed_one_after_the_other(
    run: Run, stack: FakeStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delay_work, "AT_A_TIME", 1)
    monkeypatch.setattr(delay_work, "REMOVALS_PER_SECOND", 1 / 32)
    ids = schedule(stack, *(f"2026-12-24T08:00:0{second}Z" for second in range(4)))
    done = run("delay", "cancel", "--day", "2026-12-24", "--yes").stdout
    assert "Their originals are removed one after the other, within 2 min, or later if the sweeper is behind." in done
    assert [(stack.row(image_id).due_at or 0) - stack.clock() for image_id in ids] == [0, 32_000, 64_000, 96_000]
