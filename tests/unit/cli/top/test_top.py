"""`darkroom top`: what its page and its document show, at any width, and how it ends."""

from __future__ import annotations

import io
import json
import signal
from dataclasses import replace
from typing import Any

import pytest
import typer
from rich.console import Console

from darkroom.domain.images.image import Attempt, DeadLetterState, Status
from darkroom.domain.images.load_shedding import Work
from darkroom.domain.images.service_level import FAST_BURN, SLOW_BURN, Outcomes
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.lanes import LANES
from darkroom.domain.pauses.pauses import Pause
from darkroom.domain.webhooks.delivery import new_delivery
from darkroom.domain.webhooks.endpoint import DisabledBy, disable
from darkroom_cli.operator.domain.budgets import Budget
from darkroom_cli.operator.domain.observation import Alarm, Flow, Measured
from darkroom_cli.operator.operations.observation.observe_stack import PANELS, observe_stack
from darkroom_cli.terminal import display
from darkroom_cli.terminal.interrupts import Interrupts
from darkroom_cli.top import pages, work
from darkroom_cli.top.document import document
from repository.expand_template import resources
from repository.report import ROOT
from tests.support.dead_letters import given_up
from tests.support.fakes.observation import count
from tests.support.observed import Observed
from tests.support.stack import FakeStack
from tests.unit.cli.conftest import Run

MINUTE = 60_000
STUCK = "A lane stands still. First: ./darkroom ls --late --stack shop. See docs/runbook.md#stuck."
INCIDENT = (
    "Users are affected, or will be soon; the alarms that caused this say how. First: ./darkroom top --stack shop. "
    "See docs/runbook.md#what-is-going-on."
)


@pytest.fixture
def stack(stack: FakeStack) -> FakeStack:
    stack.world = Observed()
    return stack


def trouble(world: Observed) -> None:
    """Everything at once."""
    now = world.now
    world.alarms.raised += [
        Alarm(name="ImagesLateAlarm", description="Late.", reason="", since=now - 5000, is_critical=False),
        Alarm(name="ImagesStuckAlarm", description=STUCK, reason="", since=now - 3000, is_critical=True),
        Alarm(
            name="IncidentAlarm",
            description=INCIDENT,
            reason="",
            since=now - 2000,
            is_critical=True,
            children=frozenset({"ImagesStuckAlarm", "ApiFailingAlarm"}),
        ),
    ]
    world.queues.counts |= {"slow": count(waiting=1200, in_flight=30), "hold": count(waiting=4)}
    world.measurements.measured = Measured(
        flows={"slow": Flow(minute_at=now - 3 * MINUTE, incoming=321, outgoing=123)},
        release_lateness_seconds=90.0,
        accept_p99_milliseconds=2400.4,
        receives_p99=3.0,
    )
    marks = frozenset({1, 2, 3})
    bad = Outcomes(attempts=8, failed_attempts=2, failing_marks=marks, ended=1000, late=20)
    world.outcome_counts.add("slow", now, bad)
    world.outcome_counts.add("slow", now - 120 * MINUTE, Outcomes(ended=1500))
    world.measurements.spent |= {"slow": Budget(ended=100_000, bad=60)}
    world.throughput.add("slow", Work(settled=100, busy_milliseconds=500_000), now)
    world.throughput.add_of_tenants("slow", {"acme": 4_500_000, "globex": 450_000, "initech": 50_000}, now)
    for number in range(1, 31):
        attempts = (Attempt(run=1, number=2, request_id=f"{number:08d}-84d8-4f06-b9a7", started_at=now - 4000),)
        lease_until = now + 60_000 if number > 1 else now - 5000
        world.put(
            number,
            seconds_ago=700 - number,
            status=Status.PROCESSING,
            attempt=2,
            attempts=attempts,
            lease_until=lease_until,
        )
    for number in range(31, 41):
        world.fail(number, seconds_ago=650, not_before=now + 12_000)
    world.fail(41, "ValueError", seconds_ago=20)
    world.put(50, seconds_ago=-1800, status=Status.SCHEDULED)
    world.put(51, seconds_ago=70, status=Status.SCHEDULED, process_at=now - 70_000)
    world.give_up(60)
    world.give_up(61)
    gone = disable(world.endpoint(1), DisabledBy.GONE, now=now - 7_200_000)
    world.endpoints.rows["shop", 1] = gone
    world.endpoint(2)
    row = new_delivery(
        endpoint_id=gone.endpoint_id, tenant_id="shop", event_id="e", event_type="image.done", time=1, body="", now=1
    )
    world.deliveries.create(row)


def drawn(stack: FakeStack, width: int, height: int | None = None, problems: dict[str, str] | None = None) -> list[str]:
    """The page's lines, as text."""
    ports: Any = work.ports_of(stack)  # type: ignore[arg-type]
    view = pages.View(
        observation=observe_stack(ports),
        problems=problems or {},
        now=stack.clock(),
        stack=stack.name,
        region=stack.region,
        options=stack.options,
    )
    return [line.plain for line in pages.page(view, width=width, height=height)]


def test_a_quiet_stack_is_said_in_a_few_lines(stack: FakeStack) -> None:
    lines = drawn(stack, 80)
    assert lines[0].split() == ["shop", "no", "alarm", "eu-west-1", "2026-11-21", "09:00:00", "UTC"]
    said = "\n".join(lines)
    for section in ("ALARMS  none is on", "RETRYING  nothing that failed", "DEAD LETTERS  none", "WEBHOOKS  none"):
        assert section in said
    assert len(lines) < 24


@pytest.mark.parametrize("width", [40, 80, 120, 149, 150, 200, 300])
@pytest.mark.parametrize("height", [10, 24, 50])
def test_the_page_fits_every_window(stack: FakeStack, width: int, height: int) -> None:
    trouble(stack.world)
    lines = drawn(stack, width, height)
    assert len(lines) <= height
    assert max(map(len, lines)) <= width
    assert "incident" in lines[0]


def test_eighty_columns_show_what_is_wrong_first_and_every_id_whole(stack: FakeStack) -> None:
    trouble(stack.world)
    lines = drawn(stack, 80)
    said = "\n".join(lines)
    assert [line.split("  ")[0] for line in lines if line[:1].isupper()] == [
        *("ALARMS", "LANES", "RETRYING", "DEAD LETTERS", "WORKERS", "TENANTS", "SCHEDULED"),
        *("WEBHOOKS", "OTHER QUEUES"),
    ]
    assert lines[0].split()[1:5] == ["incident:", "1", "critical", "alarm"]
    assert lines[2:12] == [
        "ALARMS  3 on",
        "  INCIDENT  IncidentAlarm  for 2 s  docs/runbook.md#what-is-going-on",
        "            Users are affected, or will be soon; the alarms that caused this say",
        "            how.",
        "    CRITICAL  ImagesStuckAlarm  for 3 s  docs/runbook.md#stuck",
        "              A lane stands still.",
        "              ./darkroom ls --late --stack shop --region eu-west-1",
        "  warning   ImagesLateAlarm  for 5 s",
        "            Late.",
        "",
    ]
    budgets = [line.split() for line in lines[lines.index("") :] if " left" in line or " — " in line]
    of_slow = ["slow", "40.0%", "left", "20.0×", "8.0×", "25%"]
    assert budgets == [of_slow if lane == "slow" else [lane, "—", "-", "-", "-"] for lane in LANES]
    assert "in and out: the minute 08:57, which ended 2 min ago" in said
    slow = next(line.split() for line in lines if line.startswith("  slow "))
    assert slow[1:10] == ["1,200", "30", "11", "min", "10", "min", "40", "321", "123"]
    place = lines.index("     10  KeyError: 'gamma'")
    assert lines[place + 1 : place + 3] == [
        "         KeyError@operations/transcode_image.py:_develop  line 12",
        f"         {31:026d}  up to attempt 1 of 5, next in 12 s",
    ]
    assert "WORKERS  busy: fast 0 of 20, slow 30 of 10" in said
    rows = [line.split() for line in lines]
    assert [f"{2:026d}", "slow", "2/5", "4", "s", "1", "min", "00000002…", "default"] in rows
    assert [f"{1:026d}", "slow", "2/5", "4", "s", "lapsed", "00000001…", "default"] in rows
    assert "  … and 18 more" in lines
    place = lines.index(next(line for line in lines if line.startswith("TENANTS")))
    assert [line.split() for line in lines[place + 2 : place + 5]] == [
        ["acme", "slow", "90%", "50%", "18.0"],
        ["globex", "slow", "9%", "5%", "0.2"],
        ["initech", "slow", "1%", "1%", "0.0"],
    ]
    assert "./darkroom tenants move TENANT LANE" in "\n".join(drawn(stack, 120)), "there is room for it"
    assert "SCHEDULED  1, the next in 30 min" in said
    assert "1 due and not begun, the latest for 1 min" in said
    assert "in the last hour they reached their lanes at most 1 min late" in said
    assert "WEBHOOKS  2: 1 healthy, 1 disabled" in said
    assert any(" ".join(row[1:]) == "disabled for 2 h 0 min 1 shop shop.example" for row in rows)
    assert "hold 4" in said


@pytest.mark.parametrize(("due_in_seconds", "said"), [(30, "back by 09:01:30"), (-70, "the sweeper is late for them")])
def test_an_image_whose_worker_died_is_counted_among_those_that_are_tried_again(
    stack: FakeStack, due_in_seconds: int, said: str
) -> None:
    now = stack.clock()
    stack.world.put(1, status=Status.PROCESSING, attempt=2, lease_until=now - 1, due_at=now + due_in_seconds * 1000)
    lines = drawn(stack, 80)
    (place,) = [at for at, line in enumerate(lines) if line.startswith("RETRYING")]
    assert lines[place : place + 3] == [
        "RETRYING  worker lost: 1",
        f"      1  worker lost, {said}",
        f"         {1:026d}  attempt 2 of 5",
    ]


def test_functions_that_failed_are_named_and_without_any_nothing_is_said(run: Run, stack: FakeStack) -> None:
    for width in (80, 200):
        assert "FUNCTIONS" not in "\n".join(drawn(stack, width))
    stack.world.measurements.failed = failed = {"transcode_image": 2, "create_deliveries": 1}
    said = "FUNCTIONS  errors in 15 min: transcode_image 2, create_deliveries 1"
    assert said in drawn(stack, 80)
    assert said in "\n".join(drawn(stack, 200))
    errors = json.loads(run("top", "--json").stdout)["function_errors"]
    assert errors == {"minutes": 15, "functions": failed}


def test_wide_windows_show_two_columns_whole_request_ids_and_paths(stack: FakeStack) -> None:
    trouble(stack.world)
    said = "\n".join(drawn(stack, 120))
    assert "00000002-84d8-4f06-b9a7" in said
    assert "_develop  layers/core/darkroom/operations/images/transcode_image.py:12\n" in said
    lines = drawn(stack, 200)
    (beside,) = [line for line in lines if line.startswith("ALARMS")]
    assert "DEAD LETTERS  2: slow 2" in beside
    assert any("LANES" in line and "./darkroom ls --late --stack shop" in line for line in lines)


def test_a_part_that_could_not_be_read_says_why_beside_the_others(run: Run, stack: FakeStack) -> None:
    def fails() -> None:
        raise Retryable("reading the alarms: ThrottlingException")

    stack.world.alarms.on = fails
    stack.world.give_up(1)
    result = run("top", "--once")
    assert result.exit_code == 1
    assert "alarms cannot be read" in result.stdout
    assert "ALARMS  unknown" in result.stdout
    assert "not read: AWS did not answer (reading the alarms: ThrottlingException)" in result.stdout
    assert "DEAD LETTERS  1: slow 1" in result.stdout
    as_json = run("top", "--once", "--json")
    assert as_json.exit_code == 1
    document = json.loads(as_json.stdout)
    assert (document["alarms"], list(document["problems"])) == (None, ["alarms"])
    assert document["dead_letters"]["queues"]["slow"] == 1


def test_what_is_shown_of_an_earlier_look_says_how_old_it_is(stack: FakeStack) -> None:
    world = stack.world
    ports: Any = work.ports_of(stack)  # type: ignore[arg-type]
    before = observe_stack(ports)
    world.advance(20)
    world.alarms.on = lambda: 1 / 0
    seen = observe_stack(ports, before)
    problems = work.problems_of(stack, seen)  # type: ignore[arg-type]
    view = pages.View(
        observation=seen, problems=problems, now=stack.clock(), stack="shop", region="", options=stack.options
    )
    said = "\n".join(line.plain for line in pages.page(view, width=120, height=None))
    assert "ALARMS  none is on" in said
    assert "not read for 20 s: ZeroDivisionError: division by zero" in said


def test_parts_that_could_never_be_read_are_unknown_and_not_zero(stack: FakeStack) -> None:
    def fails(*_: object, **__: object) -> None:
        raise Retryable("down")

    world = stack.world
    for store, methods in {
        "measurements": ("latest", "budgets", "function_errors"),
        "queues": ("count",),
        "given_up": ("count",),
        "throughput": ("latest", "of_tenants"),
        "outcome_counts": ("since",),
        "endpoints": ("everything",),
        "images": ("waiting",),
    }.items():
        for method in methods:
            setattr(getattr(world, store), method, fails)
    ports: Any = work.ports_of(stack)  # type: ignore[arg-type]
    seen = observe_stack(ports)
    said = drawn(stack, 100, problems=dict.fromkeys(PANELS, "down"))
    assert said[0].startswith("shop  nothing can be read")
    assert ["fast", "?", "?", "?", "30", "s", "?", "?", "?", "?", "?"] in [line.split() for line in said]
    assert ["fast", "?", "?", "?", "?"] in [line.split() for line in said]
    for panel in ("RETRYING", "DEAD LETTERS", "FUNCTIONS", "WORKERS", "SCHEDULED", "WEBHOOKS", "OTHER QUEUES"):
        assert f"{panel}  unknown" in said
    shown = document(seen, {}, stack="shop", region="", options="")
    parts = (
        *("working", "retrying", "looked_at", "dead_letters", "function_errors"),
        *("scheduled", "webhooks", "queues", "error_budget"),
    )
    assert {name: shown[name] for name in parts} == dict.fromkeys(parts)
    assert (shown["lanes"][0]["oldest_seconds"], shown["lanes"][0]["backlog"]) == (None, None)
    assert set(shown["lanes"][0]["error_budget"].values()) == {shown["lanes"][0]["failing_percent"]} == {None}


def test_the_document_has_the_whole_observation(run: Run, stack: FakeStack) -> None:
    trouble(stack.world)
    result = run("top", "--json")
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    assert (document["version"], document["stack"], document["region"], document["problems"]) == (
        1,
        "shop",
        "eu-west-1",
        {},
    )
    incident, stuck, late = document["alarms"]
    assert (incident["severity"], incident["caused_by"]) == ("critical", ["ImagesStuckAlarm"])
    assert (late["severity"], late["command"], late["effect"]) == ("warning", None, "Late.")
    assert stuck == {
        "name": "ImagesStuckAlarm",
        "severity": "critical",
        "since": "2026-11-21T08:59:57.000Z",
        "caused_by": [],
        "description": STUCK,
        "effect": "A lane stands still.",
        "command": "./darkroom ls --late --stack shop --region eu-west-1",
        "section": "docs/runbook.md#stuck",
        "reason": "",
    }
    assert [lane["lane"] for lane in document["lanes"]] == [*LANES]
    fast, slow, *_ = document["lanes"]
    assert (fast["lane"], fast["oldest_since"], fast["oldest_seconds"]) == ("fast", None, 0.0)
    idle = {"ended": 0, "bad": 0, "left_percent": None, "fast_burn": 0, "slow_burn": 0}
    assert (fast["error_budget"], fast["failing_percent"]) == (idle, 0)
    assert slow == {
        "lane": "slow",
        "sla_seconds": 600,
        "workers": 10,
        "backlog": 1230,
        "high_water_mark": 1200,
        "drain_per_second": 2.0,
        "clears_in_seconds": 615.0,
        "unfinished": {"number": 42, "is_all": True},
        "late": {"number": 40, "is_all": True},
        "oldest_since": "2026-11-21T08:48:21.000Z",
        "oldest_seconds": 699.0,
        "paused_since": None,
        "minute": {"begins_at": "2026-11-21T08:57:00.000Z", "in": 321, "out": 123},
        "error_budget": {"ended": 100_000, "bad": 60, "left_percent": 40.0, "fast_burn": 20.0, "slow_burn": 8.0},
        "failing_percent": 25.0,
        "tenants": [
            {
                "tenant": tenant,
                "busy_seconds": seconds,
                "work_percent": work,
                "capacity_percent": capacity,
                "times_median": times,
                "is_noisy": tenant == "acme",
            }
            for tenant, seconds, work, capacity, times in (
                ("acme", 4500, 90, 50, 18),
                ("globex", 450, 9, 5, 0.2),
                ("initech", 50, 1, 0.56, 0.02),
            )
        ],
    }
    assert document["error_budget"] == {"fast_burn": 20.0, "slow_burn": 8.0}
    assert len(document["working"]) == 30
    assert document["working"][0] == {
        "id": f"{1:026d}",
        "tenant": "default",
        "lane": "slow",
        "attempt": 2,
        "request_id": "00000001-84d8-4f06-b9a7",
        "since": "2026-11-21T08:59:56.000Z",
        "lease_until": "2026-11-21T08:59:55.000Z",
        "lease_lapsed": True,
        "returns_by": "2026-11-21T09:09:21.000Z",
    }
    assert [(defect["fingerprint"], len(defect["images"])) for defect in document["retrying"]] == [
        ("KeyError@operations/transcode_image.py:_develop", 10),
        ("ValueError@operations/transcode_image.py:_develop", 1),
    ]
    assert document["retrying"][0]["next_attempt_at"] == "2026-11-21T09:00:12.000Z"
    assert (document["looked_at"], document["unreadable_rows"]) == ({"images": 42, "is_all": True}, 0)
    (cause,) = document["dead_letters"]["causes"]
    assert (document["dead_letters"]["sampled"], cause["dead_letters"], cause["cause"]) == (2, 2, "KeyError")
    assert document["scheduled"]["images"] == {"number": 1, "is_all": True}
    assert (document["scheduled"]["overdue"], document["scheduled"]["release_lateness_seconds"]) == (1, 90.0)
    assert (document["accept_p99_milliseconds"], document["receives_p99"]) == (2400.4, 3.0)
    (unhealthy,) = document["webhooks"]["unhealthy"]
    assert (unhealthy["condition"], unhealthy["disabled_by"], unhealthy["deliveries"]["number"]) == (
        *("disabled", "gone", 1),
    )
    assert document["function_errors"] == {"minutes": 15, "functions": {}}
    assert document["queues"]["hold"] == {"waiting": 4, "in_flight": 0, "delayed": 0}


def test_without_a_terminal_it_is_shown_once(run: Run, stack: FakeStack) -> None:
    trouble(stack.world)
    result = run("top")
    assert result.exit_code == 0
    assert "\x1b" not in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 100  # as wide as the environment says


def test_what_a_row_or_an_alarm_says_cannot_move_the_cursor(run: Run, stack: FakeStack) -> None:
    stack.world.put(1, tenant_id="a\x1b[2J", status=Status.PROCESSING, lease_until=stack.clock() + 1)
    description = "\x1b[2J First: ./darkroom \x1b[2J. See docs/a.md#\x1b[2J."
    stack.world.alarms.raised.append(Alarm(name="A", description=description, reason="", since=1, is_critical=True))
    assert "\x1b" not in run("top", "--once").stdout


@pytest.mark.parametrize(
    ("ended", "bad", "shown"), [(5000, 0, "100.0% left"), (5000, 4, "20.0% left"), (10, 1, "spent 100.0×")]
)
def test_a_budget_is_what_is_left_of_it_or_how_often_it_was_spent(
    stack: FakeStack, ended: int, bad: int, shown: str
) -> None:
    stack.world.measurements.spent["slow"] = Budget(ended=ended, bad=bad)
    assert any(line.startswith("  slow") and shown in line for line in drawn(stack, 80))


def test_first_attempts_at_webhooks_are_told_with_their_budget_and_times(run: Run, stack: FakeStack) -> None:
    trouble(stack.world)
    assert "first attempts" not in "\n".join(drawn(stack, 80)), "none has counted"
    stack.world.measurements.spent["webhooks"] = Budget(ended=50_000, bad=20, repeated=3)
    stack.world.measurements.measured = replace(
        stack.world.measurements.measured, first_attempt_p50_seconds=0.34, first_attempt_p99_seconds=4.5
    )
    lines = drawn(stack, 80)
    place = lines.index("  first attempts: 99.96% good, 60.0% left of the budget of 28 days")
    assert lines[place + 1 : place + 3] == [
        "  answered after p50 0.3 s, p99 4.5 s of their events",
        "  perhaps sent twice: 3",
    ]
    assert json.loads(run("top", "--json").stdout)["webhooks"]["first_attempts"] == {
        "counted": 50_000,
        "bad": 20,
        "left_percent": 60.0,
        "repeated": 3,
        "p50_seconds": 0.34,
        "p99_seconds": 4.5,
    }


def test_why_nothing_burns_beside_a_spent_budget_is_said(stack: FakeStack) -> None:
    assert "budget:" not in "\n".join(drawn(stack, 80)), "nothing was bad"
    stack.world.measurements.spent["slow"] = Budget(ended=197, bad=45)
    said = " ".join("\n".join(drawn(stack, 80)).split())
    assert "slow spent 228.4× - - -" in said
    assert (
        "budget: bad images of 28 days: slow 45 of 197; 0.1% may be. burn: how fast it is spent now, the lower of "
        "5 min and 1 h (fast), 30 min and 6 h (slow); - for fewer than 10 bad images"
    ) in said


@pytest.mark.parametrize("width", [140, 250])
def test_what_is_paused_is_said_and_what_waits_for_it_is_no_trouble(run: Run, stack: FakeStack, width: int) -> None:
    stack.world.put(1, seconds_ago=4000)
    assert any("ls --late" in line for line in drawn(stack, width))
    for kind, name, minutes in (("tenant", "acme", 5), ("lane", "slow", 120)):
        pause = Pause(kind=kind, name=name, since=stack.world.now - minutes * MINUTE, reason="a\x1b bug")  # type: ignore[arg-type]
        stack.pauses.pause(pause)
    lines = drawn(stack, width)
    assert any(line.startswith("  slow, paused") for line in lines) and not any("ls --late" in line for line in lines)
    place = next(place for place, line in enumerate(lines) if line.startswith("PAUSED  2  ./darkroom pause ls --stack"))
    assert [line.split()[:4] for line in lines[place + 1 : place + 3]] == [
        ["lane", "slow", "for", "2"],
        ["tenant", "acme", "for", "5"],
    ]
    told = json.loads(run("top", "--json").stdout)
    paused = {lane["lane"]: lane["paused_since"] for lane in told["lanes"]}
    assert paused == {**dict.fromkeys(LANES), "slow": "2026-11-21T07:00:00.000Z"}
    assert told["pauses"][0] == {
        "kind": "lane",
        "name": "slow",
        "since": "2026-11-21T07:00:00.000Z",
        "reason": "a\x1b bug",
    }


@pytest.mark.guards("dlq-list-owed-letters")
def test_what_was_given_up_is_among_the_dead_letters_before_the_sweeper_has_placed_its_own(stack: FakeStack) -> None:
    row = replace(given_up(1), dead_letter=DeadLetterState.OWED, due_at=stack.world.now)
    stack.world.images.rows[row.image_id] = row
    (line,) = [line for line in drawn(stack, 120) if line.startswith("DEAD LETTERS")]
    assert line.startswith("DEAD LETTERS  0: 1 coming within a minute  ./darkroom dlq ls --stack shop")
    ports = work.ports_of(stack)  # type: ignore[arg-type]
    first = observe_stack(ports)
    del stack.world.images.rows[row.image_id]
    then = observe_stack(ports, first)
    windows = [
        document(each, {}, stack="shop", region="r", options="")["dead_letters"]["coming"] for each in (first, then)
    ]
    assert windows == [{"number": number, "is_all": True} for number in (1, 0)]


def test_burns_and_failing_attempts_are_red_from_where_the_alarms_go_off() -> None:
    assert resources("AWS::CloudWatch::Alarm")["AttemptsFailingAlarm"]["Threshold"] == pages.FAILING_PERCENT
    page = (ROOT / "cli/darkroom_cli/operate/web/screens/operate/overview.js").read_text()
    for name, limit in {"FAST_BURN": FAST_BURN, "SLOW_BURN": SLOW_BURN}.items():
        assert f"const {name} = {limit:g};" in page


@pytest.mark.parametrize("interval", ["0.5", "0", "-1", "often"])
def test_an_interval_below_a_second_is_a_usage_error(run: Run, stack: FakeStack, interval: str) -> None:
    assert run("top", "--interval", interval).exit_code == 2


class Terminal:
    """A terminal of that many looks: then somebody presses Ctrl-C."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, looks: int) -> None:
        self.written = io.StringIO()
        self.waits: list[float] = []
        console = Console(file=self.written, force_terminal=True, width=100, height=30)
        monkeypatch.setattr(display, "output", lambda: console)

        def wait(interrupts: Interrupts, seconds: float) -> None:
            self.waits.append(seconds)
            if len(self.waits) == looks:
                signal.raise_signal(signal.SIGINT)

        monkeypatch.setattr(Interrupts, "wait", wait)


def test_a_terminal_shows_it_live_until_ctrl_c_and_is_as_it_was_after(
    run: Run, stack: FakeStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal(monkeypatch, looks=3)
    with pytest.raises(typer.Exit) as ended:
        work.show_live(stack, interval_seconds=None)  # type: ignore[arg-type]
    assert ended.value.exit_code == 130
    assert terminal.waits == [work.DEPLOYED_SECONDS] * 3
    written = terminal.written.getvalue()
    assert written.index("\x1b[?1049h") < written.index("LANES") < written.index("\x1b[?1049l")
    assert written.rindex("\x1b[?25l") < written.rindex("\x1b[?25h")


def test_the_local_stack_is_looked_at_more_often_unless_told_otherwise(
    stack: FakeStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = replace(stack, is_local=True)
    for given, waits in ((None, work.LOCAL_SECONDS), (7.0, 7.0)):
        terminal = Terminal(monkeypatch, looks=1)
        with pytest.raises(typer.Exit):
            work.show_live(local, interval_seconds=given)  # type: ignore[arg-type]
        assert terminal.waits == [waits]


def test_of_webhooks_that_the_stack_has_not_nothing_is_said(run: Run, stack: FakeStack) -> None:
    stack.parts = ("imports",)
    assert "WEBHOOKS" not in run("top", "--once").stdout
    document = json.loads(run("top", "--json").stdout)
    assert (document["parts"], document["webhooks"], document["problems"]) == (["imports"], None, {})
