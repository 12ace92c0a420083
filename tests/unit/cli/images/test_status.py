from __future__ import annotations

import json

import pytest

from tests.unit.cli.conftest import Run
from tests.unit.cli.fake_api import FakeApi, image_id_of


def test_a_finished_image_is_shown_with_its_variants_and_what_to_do_next(run: Run, api: FakeApi) -> None:
    image_id = api.put("done")
    result = run("status", image_id)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0] == f"{image_id}  done"
    assert "(2.0 s after it was accepted)" in result.stdout
    rows = [line.split() for line in result.stdout.splitlines() if "256\N{MULTIPLICATION SIGN}192" in line]
    assert [row[0] for row in rows] == ["thumb", "webp"]
    assert f"./darkroom download {image_id} -o DIR" in result.stdout


def test_an_image_with_a_recipe_of_its_own_says_so_and_its_colour_and_notices_are_shown(run: Run, api: FakeApi) -> None:
    placeholder = {"thumbhash": "k0oGLQaSVsNg", "color": "#7a8b5c"}
    image_id = api.put(
        "done", preset=None, placeholder=placeholder, notices=["card: 300\u00d7200 instead of 600\u00d7400.", "\x1b[2J"]
    )
    api.images[image_id]["attention"] = {"x": 0.6251, "y": 0}
    api.images[image_id] |= {"reference": "order-17\x1b", "tags": ["a", "b c"], "metadata": {"ä": [1]}}
    shown = run("status", image_id).stdout
    assert "preset     none: a recipe of your own" in shown
    assert "colour     #7a8b5c" in shown
    for fact in ("reference  order-17\ufffd", "tags       a, b c", 'metadata   {"ä": [1]}'):
        assert fact in shown
    assert "attention  63% from the left, 0% from the top" in shown
    assert "notice     \ufffd[2J" in shown
    api.images[image_id]["placeholder"] = {"thumbhash": "", "color": "red on blue"}
    assert "colour" not in run("status", image_id).stdout
    assert "notice     card: 300\u00d7200 instead of 600\u00d7400." in shown


@pytest.mark.parametrize(
    ("code", "message", "advice"),
    [
        ("truncated", "The file ends too early.", "This photo will fail again as it is."),
        ("original_missing", "Its original is no longer stored.", "its original is gone: send it again."),
        ("internal", "Developing failed 5 times.", "The photo itself may be fine."),
        ("x", "\x1b[2Jgone [bold]markup[/bold]", "gone [bold]markup[/bold]"),
    ],
)
def test_a_failed_image_is_shown_with_its_error_and_fails_the_command(
    run: Run, api: FakeApi, code: str, message: str, advice: str
) -> None:
    error = {"code": code, "message": message, "retryable": code == "internal"}
    result = run("status", api.put("failed", error=error))
    assert (result.exit_code, advice in result.stdout) == (1, True)
    assert f"{code}: {message.replace('\x1b', '\ufffd')}" in result.stdout
    assert run("status", api.put("expired")).exit_code == 1


@pytest.mark.parametrize("status", ["awaiting_upload", "fetching", "scheduled", "pending", "processing"])
def test_an_image_on_its_way_is_no_failure_and_gets_a_hint(run: Run, api: FakeApi, status: str) -> None:
    result = run("status", api.put(status, process_at="2026-01-02T00:00:00.000Z"))
    assert result.exit_code == 0
    assert len(result.stdout.strip().splitlines()[-1]) > 20


def test_an_image_that_waits_for_the_end_of_a_pause_says_so(run: Run, api: FakeApi) -> None:
    image_id, api.polls_until_done = api.put("pending"), 9
    assert run("status", image_id).stdout.startswith(f"{image_id}  pending\n")
    api.images[image_id]["paused"] = True
    assert run("status", image_id).stdout.startswith(f"{image_id}  pending, paused by whoever operates the service\n")


def test_json_is_the_document_as_the_api_gives_it(run: Run, api: FakeApi) -> None:
    image_id = api.put("done")
    result = run("status", image_id, "--json")
    assert json.loads(result.stdout)["variants"][0]["name"] == "thumb"
    assert json.loads(result.stdout)["id"] == image_id


def test_waiting_asks_until_the_image_has_ended_and_reuses_what_has_not_changed(run: Run, api: FakeApi) -> None:
    image_id = api.put("pending")
    api.polls_until_done = 3
    result = run("status", image_id, "--wait")
    assert result.exit_code == 0
    assert "  done" in result.stdout
    tags = [request.headers.get("if-none-match") for request in api.requests]
    assert tags == [None, 'W/"pending"', 'W/"pending"']


def test_waiting_ends_with_a_failure_when_it_takes_too_long(run: Run, api: FakeApi) -> None:
    image_id = api.put("pending")
    api.polls_until_done = 1_000_000
    result = run("status", image_id, "--wait", "--timeout-seconds", "0.02")
    assert result.exit_code == 1
    assert "is still pending after 0.02 s. It is not lost" in result.stderr


def test_an_unknown_id_is_told_in_the_words_of_the_api(run: Run, api: FakeApi) -> None:
    result = run("status", image_id_of("unknown"))
    assert result.exit_code == 1
    assert "error: There is no image with this id." in result.stderr


def test_a_malformed_id_is_a_usage_error_and_is_not_sent(run: Run, api: FakeApi) -> None:
    result = run("status", "../secrets")
    assert result.exit_code == 2
    assert api.requests == []


def test_a_stack_that_is_not_there_is_told_with_the_way_to_start_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DARKROOM_URL")
    result = run("status", image_id_of("any"))
    assert result.exit_code == 1
    assert "error: The local stack is not running. Start it with: make run" in result.stderr
