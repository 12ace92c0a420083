"""`darkroom variants add` and `visibility`, and what `status` says of work beside an image."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.conftest import Run
from tests.unit.cli.fake_api import FakeApi, Reply, problem


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    file = tmp_path / "hero.json"
    file.write_text('{"variants": [{"name": "hero", "width": 2400}]}')
    return file


def work(status: str, **changes: Any) -> dict[str, Any]:
    ended_at = "2026-01-01T00:01:00.000Z" if status in ("done", "failed") else None
    stated = {"kind": "variants", "status": status, "run": 2, "attempt": 0, "retry_at": None, "ended_at": ended_at}
    return stated | {"requested_at": "2026-01-01T00:00:30.000Z", "variants": ["hero"], "error": None, **changes}


def accepted(api: FakeApi, image_id: str) -> Reply:
    return Reply(status=202, body=api.images[image_id] | {"work": work("pending")}, headers={"Retry-After": "0"})


def test_what_is_asked_for_is_sent_with_a_key_and_its_state_is_shown(run: Run, api: FakeApi, recipe: Path) -> None:
    image_id = api.put("done")
    api.faults["POST"].append(accepted(api, image_id))
    result = run("variants", "add", image_id, "--recipe", str(recipe), "--idempotency-key", "k-1")
    assert (result.exit_code, "variants of run 2: pending (hero)" in result.stdout) == (0, True)
    sent = api.posts[-1]
    assert (sent.path, sent.headers["idempotency-key"]) == (f"/images/{image_id}/variants", "k-1")
    assert json.loads(sent.body) == {"recipe": {"variants": [{"name": "hero", "width": 2400}]}}


def test_waiting_ends_with_the_work_and_not_before(run: Run, api: FakeApi) -> None:
    image_id = api.put("done")
    api.faults["POST"].append(accepted(api, image_id))
    answers = [work("pending"), work("processing"), work("done")]
    api.faults["GET"].extend(Reply(body=api.images[image_id] | {"work": one}) for one in answers)
    result = run("variants", "add", image_id, "--preset", "avatar", "--variants", "small", "--wait")
    assert (result.exit_code, "variants of run 2: done (hero)" in result.stdout) == (0, True)
    assert json.loads(api.posts[-1].body) == {"preset": "avatar", "variants": ["small"]}


def test_work_that_failed_says_why_and_fails_the_command_though_the_image_is_done(run: Run, api: FakeApi) -> None:
    error = {"code": "internal", "message": "Developing failed 5 times.", "retryable": True}
    image_id = api.put("done", work=work("failed", error=error))
    api.faults["POST"].append(accepted(api, image_id))
    result = run("variants", "add", image_id, "--preset", "avatar", "--wait")
    assert (result.exit_code, "internal: Developing failed 5 times." in result.stdout) == (1, True)
    assert run("status", image_id).exit_code == 0, "the image itself is as it was"


def test_it_waits_for_its_turn_under_the_same_key(run: Run, api: FakeApi) -> None:
    image_id = api.put("done")
    busy = problem(409, "work_under_way", "Other work on this image is under way.")
    api.faults["POST"].extend([busy, accepted(api, image_id)])
    assert run("variants", "add", image_id, "--preset", "avatar").exit_code == 0
    assert len({sent.headers["idempotency-key"] for sent in api.posts}) == 1
    assert len(api.posts) == 2


def test_a_refusal_is_told_in_its_words(run: Run, api: FakeApi) -> None:
    image_id = api.put("pending")
    api.faults["POST"].append(problem(409, "not_done", "Variants can be added to an image that is done."))
    result = run("variants", "add", image_id, "--preset", "avatar")
    assert (result.exit_code, "Variants can be added to an image that is done." in result.stderr) == (1, True)
    assert len(api.posts) == 1


def test_without_variants_nothing_is_sent(run: Run, api: FakeApi, tmp_path: Path) -> None:
    image_id = api.put("done")
    (tmp_path / "no.json").write_text("[]")
    for words in ((), ("--recipe", str(tmp_path / "no.json")), ("--variants", ",")):
        assert run("variants", "add", image_id, *words).exit_code == 2
    assert api.posts == []


def test_an_edit_says_all_of_it_and_is_followed_until_no_edit_waits(run: Run, api: FakeApi, recipe: Path) -> None:
    def edited(status: str) -> dict[str, Any]:
        edit = {"number": 1, "status": status, "accepted_at": "2026-01-01T00:00:30.000Z", "overtaken": []}
        return api.images[image_id] | {"work": work("done", kind="edit"), "edit": edit}

    image_id = api.put("done")
    api.faults["POST"] += [Reply(status=202, body=edited("accepted"), headers={"Retry-After": "0"})] * 2
    api.faults["GET"] += [Reply(body=edited(status)) for status in ("accepted", "done")]
    options = "--crop 0.1,0,0.8,1 --focus 0.4,0.3 --rotate 90 --flip none --wait"
    result = run("edit", image_id, *options.split(), "--recipe", str(recipe))
    assert (result.exit_code, "edit of run 2: done" in result.stdout, len(api.faults["GET"])) == (0, True, 0)
    assert json.loads(api.posts[-1].body) == {
        "crop": {"x": 0.1, "y": 0, "width": 0.8, "height": 1},
        "focus": {"x": 0.4, "y": 0.3},
        "rotate": 90,
        "flip": "none",
        "recipe": json.loads(recipe.read_text()),
    }
    assert (run("edit", image_id).exit_code, json.loads(api.posts[-1].body)) == (0, {}), "takes all edits back"
    assert api.posts[-1].path == f"/images/{image_id}/edits" and api.posts[-1].headers["idempotency-key"]
    for wrong in (("--crop", "0.1,0"), ("--focus", "a,b"), ("--flip", "up"), ("--recipe", "none.json")):
        assert run("edit", image_id, *wrong).exit_code == 2
    assert len(api.posts) == 2


def test_another_visibility_is_asked_for_in_turn_and_followed_until_it_holds(run: Run, api: FakeApi) -> None:
    image_id = api.put("done")
    documents = [api.images[image_id] | {"work": work(status, kind="visibility")} for status in ("pending", "done")]
    api.faults["PATCH"] += [
        problem(409, "work_under_way", "Other work on this image is under way."),
        Reply(status=202, body=documents[0], headers={"Retry-After": "0"}),
    ]
    api.faults["GET"].append(Reply(body=documents[1]))
    assert run("visibility", image_id, "public", "--wait").exit_code == 0
    asked = [sent for sent in api.requests if sent.method == "PATCH"]
    assert [(sent.path, json.loads(sent.body)) for sent in asked] == 2 * [
        (f"/images/{image_id}", {"visibility": "public"})
    ]


def test_a_visibility_that_is_refused_or_unknown_fails_the_command(run: Run, api: FakeApi) -> None:
    image_id = api.put("done")
    api.faults["PATCH"].append(problem(422, "part_not_deployed", "This stack delivers no images by CloudFront."))
    refused = run("visibility", image_id, "public")
    assert (refused.exit_code, "This stack delivers no images by CloudFront." in refused.stderr) == (1, True)
    assert run("visibility", image_id, "shown").exit_code == 2
