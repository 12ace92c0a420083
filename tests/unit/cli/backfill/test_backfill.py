"""`darkroom backfill`, over the fakes: what it prints, and what is refused before anything is read or written."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from darkroom.domain.bulk.backfills import BackfillState, Selection
from darkroom.domain.recipes import presets
from darkroom.operations.bulk.feed_backfill import FeedBackfillPorts, feed_backfill
from darkroom.ports.kernel import UnreadableRow
from tests.support.fakes.batches import BODY, BatchesWorld
from tests.support.stack import OPTIONS, FakeStack
from tests.unit.cli.conftest import Run

STANDARD = ("--preset", "standard@2")
UNKNOWN = "bf_" + "0" * 26


@pytest.fixture
def stack(stack: FakeStack, monkeypatch: pytest.MonkeyPatch) -> FakeStack:
    """With a done image of the first version of `standard`, of which the second one is deployed."""
    monkeypatch.setattr(presets, "VERSIONS", presets.VERSIONS | {"standard": 2})
    stack.world = world = BatchesWorld()
    world.presets = world.presets | {"standard": (presets.PRESETS["standard"], 2)}
    world.submit(BODY)
    work(world)
    return stack


def work(world: BatchesWorld) -> None:
    sent, world.lanes.sent = world.lanes.sent, []
    for message in sent:
        world.develop(message)


def started(run: Run, stack: FakeStack, *options: str) -> str:
    result = run("backfill", "start", *STANDARD, *options, "--yes")
    (backfill_id,) = stack.backfills.rows
    assert f"./darkroom backfill show {backfill_id}{OPTIONS}" in result.stdout
    return str(backfill_id)


def test_without_yes_it_says_what_it_would_do_and_writes_nothing(run: Run, stack: FakeStack) -> None:
    chosen = ("--since", "2026-11-20", "--until", "2026-11-21T09:00+01:00", "--tag", "summer", "--tenant", "acme")
    result = run("backfill", "start", *STANDARD, "--status", "done", *chosen, "--rate", "1200")
    assert (result.exit_code, result.stdout.splitlines()) == (
        0,
        [
            "Every image of the preset standard before version 2, from 2026-11-20T00:00:00.000Z on, "
            "before 2026-11-21T08:00:00.000Z, with the tag summer, of the tenant acme would be developed again, "
            "at most 1,200 per second, and stay done meanwhile. Nothing was changed.",
            "Do it:  the same with --yes",
        ],
    )
    assert stack.backfills.rows == {} and not stack.audit_log.lines


def test_it_is_started_followed_and_ends(run: Run, stack: FakeStack) -> None:
    assert run("backfill", "ls").stdout == "shop has no backfills.\n"
    chosen = ("--since", "2026-11-20", "--tenant", "default")
    backfill_id = started(run, stack, *chosen, "--rate", "20")
    row = stack.backfills.rows[backfill_id]
    assert (row.rate, row.selection) == (
        20,
        Selection(preset="standard", version=2, since=1_795_132_800_000, tenant_id="default"),
    )
    feed_backfill(stack.world.ports(FeedBackfillPorts), backfill_id)
    assert run("backfill", "show", backfill_id).stdout.splitlines() == [
        f"{backfill_id} is running: images of the preset standard before version 2, "
        "from 2026-11-20T00:00:00.000Z on, of the tenant default",
        "Read all rows, found 1 image, 1 of them in work",
        "Ended: 0 done, 0 failed, 0 skipped, 0 unreadable",
    ]
    work(stack.world)
    feed_backfill(stack.world.ports(FeedBackfillPorts), backfill_id)
    document = json.loads(run("backfill", "show", backfill_id, "--json").stdout)
    ended = (document["state"], document["found"], document["in_work"], document["ended"]["done"])
    assert ended == ("completed", 1, 0, 1)
    assert (document["ended_at"], document["waits_for"]) == ("2026-11-21T09:00:00.000Z", None)


def test_it_is_paused_goes_on_and_is_cancelled_for_good(run: Run, stack: FakeStack) -> None:
    backfill_id = started(run, stack)
    for command, state in (("pause", "paused"), ("pause", "paused"), ("resume", "running"), ("pause", "paused")):
        said = run("backfill", command, backfill_id)
        assert (said.exit_code, said.stdout) == (0, f"{backfill_id} is {state}.\n")
    feed_backfill(stack.world.ports(FeedBackfillPorts), backfill_id)
    assert run("backfill", "show", backfill_id).stdout.splitlines()[-1] == "Waits for paused"
    assert run("backfill", "ls").stdout.splitlines()[1].split() == [
        *(backfill_id, "paused", "standard@2", "0", "0", "paused")
    ]
    for _ in range(2):
        assert run("backfill", "cancel", backfill_id).stdout == f"{backfill_id} is cancelled.\n"
    refused = run("backfill", "resume", backfill_id)
    assert (refused.exit_code, "is cancelled, and stays so." in refused.stderr) == (1, True)
    assert stack.backfills.rows[backfill_id].state is BackfillState.CANCELLED


@pytest.mark.parametrize("command", ["show", "pause", "resume", "cancel"])
def test_an_unknown_one_is_named(run: Run, stack: FakeStack, command: str) -> None:
    said = run("backfill", command, UNKNOWN)
    assert (said.exit_code, f"There is no backfill '{UNKNOWN}'" in said.stderr) == (1, True)


def test_one_of_a_newer_version_hides_no_other(run: Run, stack: FakeStack, monkeypatch: pytest.MonkeyPatch) -> None:
    backfill_id = started(run, stack)
    own = stack.backfills.all
    monkeypatch.setattr(stack.backfills, "all", lambda: [UnreadableRow("bf_newer", "newer"), *own()])
    listed = run("backfill", "ls")
    assert (listed.exit_code, "bf_newer" in listed.stderr, backfill_id in listed.stdout) == (1, True, True)
    document = json.loads(run("backfill", "ls", "--json").stdout)
    assert (document["unreadable"], [each["id"] for each in document["backfills"]]) == (["bf_newer"], [backfill_id])


def test_a_stack_without_the_part_starts_none(run: Run, stack: FakeStack) -> None:
    stack.parts = {"webhooks"}
    refused = run("backfill", "start", *STANDARD, "--yes")
    assert (refused.exit_code, "deployed without bulk" in refused.stderr, stack.backfills.rows) == (1, True, {})


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--preset", "standard"), "is no preset with its version, as standard@2"),
        (("--preset", "nothing@2"), "'nothing@2' is no preset"),
        (("--preset", "standard@0"), "'standard@0' is no preset"),
        (("--preset", "standard@3"), "standard has version 2 in this checkout"),
        (("--preset", "standard@1"), "nothing is older than version 1"),
        ((*STANDARD, "--since", "yesterday"), "'yesterday' is neither a day nor a time"),
        ((*STANDARD, "--until", "2026-13-01"), "'2026-13-01' is neither a day nor a time"),
        ((*STANDARD, "--rate", "0"), "--rate"),
        ((*STANDARD, "--status", "failed"), "Replay what failed: ./darkroom dlq replay"),
        ((), "--preset"),
    ],
)
@pytest.mark.guards("bulk-backfill-done-alone")
def test_what_is_not_understood_is_a_usage_error(
    run: Run, stack: FakeStack, arguments: tuple[str, ...], why: str
) -> None:
    refused = run("backfill", "start", *arguments, "--yes")
    said = " ".join(refused.stderr.replace("│", " ").split())
    assert (refused.exit_code, why in said) == (2, True), said
    assert stack.backfills.rows == {}


def test_a_faulty_preset_fails_none_of_the_other_commands() -> None:
    """`local deploy` says what is wrong with it."""
    program = (
        "import sys; sys.modules['darkroom.domain.recipes.presets'] = None; import darkroom_cli.main as it; it.whole()"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", program], check=False, env=environment).returncode == 0
