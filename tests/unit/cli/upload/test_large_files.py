"""`darkroom upload` of files that are too large for a request: announced, then sent to the store by a form."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from darkroom_client.client import Api, Refused, RequestRetries
from tests.unit.cli.conftest import Run
from tests.unit.cli.fake_api import FakeApi, Reply, problem, s3_error

LARGE = b"a large photo " * 20_000


@pytest.fixture(autouse=True)
def small_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("darkroom_client.darkroom.MAX_BODY_BYTES", 100)


def large_photo(name: str = "large.png") -> None:
    Path(name).write_bytes(LARGE)


def test_a_large_file_is_announced_and_sent_by_the_form_and_a_small_one_in_its_request(run: Run, api: FakeApi) -> None:
    large_photo()
    Path("small.jpg").write_bytes(b"x" * 100)
    result = run("upload", "large.png", "small.jpg", "--wait")
    assert result.exit_code == 0, result.output
    assert sorted(post.path for post in api.posts) == ["/images", "/uploads"]
    assert api.announced == [
        {"bytes": len(LARGE), "sha256": hashlib.sha256(LARGE).hexdigest(), "content_type": "image/png"}
    ]
    (image_id,) = api.stored
    assert (api.stored[image_id], api.confirmed) == (LARGE, [image_id])
    assert api.images[image_id]["status"] == "done"


def test_all_fields_of_the_form_come_first_and_the_file_last_without_our_credential(run: Run, api: FakeApi) -> None:
    large_photo()
    assert run("upload", "large.png", "--api-key", "secret").exit_code == 0
    (form,) = api.forms
    assert list(form) == ["key", "policy", "file"]
    (stored,) = [request for request in api.requests if request.path == "/store"]
    assert "authorization" not in stored.headers
    (announcement,) = api.posts
    assert announcement.headers["authorization"] == "Bearer secret"
    assert int(stored.headers["content-length"]) == len(stored.body)


def test_what_is_to_be_made_and_when_goes_with_the_announcement(run: Run, api: FakeApi) -> None:
    large_photo()
    Path("card.json").write_text('{"variants": [{"name": "a", "width": 600}]}')
    assert run("upload", "large.png", "--preset", "tiny", "--variants", "webp,thumb", "--delay", "P2D").exit_code == 0
    assert run("upload", "large.png", "--recipe", "card.json").exit_code == 0
    first, second = api.announced
    assert (first["preset"], first["variants"], first["delay"]) == ("tiny", ["thumb", "webp"], "P2D")
    assert second["recipe"] == {"variants": [{"name": "a", "width": 600}]}


@pytest.mark.parametrize(
    "trouble",
    [
        Reply(status=503, body=b"<Error><Code>SlowDown</Code></Error>"),
        Reply(status=500, body=b""),
        s3_error(400, "RequestTimeout"),
        s3_error(400, "IncompleteBody"),
        s3_error(403, "AccessDenied", "Invalid according to Policy: Policy expired."),
        s3_error(400, "ExpiredToken", "The provided token has expired."),
    ],
)
def test_what_the_store_cannot_take_now_is_sent_again_by_a_fresh_form(run: Run, api: FakeApi, trouble: Reply) -> None:
    large_photo()
    api.faults["STORE"].append(trouble)
    result = run("upload", "large.png")
    assert result.exit_code == 0, result.output
    assert [form["policy"] for form in api.forms] == [b"1", b"2"]
    assert len({post.headers["idempotency-key"] for post in api.posts}) == 1 == len(api.images)


@pytest.mark.guards("cli-upload-unconfirmed-accepted", case="lost")
@pytest.mark.parametrize(
    "trouble",
    [Reply(lost=True), problem(404, "unknown_path", "There is nothing."), Reply(status=503)],
    ids=["lost", "older", "busy"],
)
def test_a_file_that_cannot_be_confirmed_is_accepted_all_the_same(api: FakeApi, tmp_path: Path, trouble: Reply) -> None:
    (tmp_path / "large.png").write_bytes(LARGE)
    answer = api._announce

    def announced(seen: Any) -> Reply:
        api.faults["POST"].append(trouble)  # for the next request, the confirmation
        return answer(seen)

    api._announce = announced  # type: ignore[method-assign]
    with Api(api.url) as client:
        sent = client.send_announced(tmp_path / "large.png", announcement={}, idempotency_key="k")
    assert (sent.document["status"], len(api.stored)) == ("awaiting_upload", 1)


def test_a_file_that_the_store_took_without_our_hearing_of_it_is_not_sent_again(run: Run, api: FakeApi) -> None:
    large_photo()
    api.faults["STORE"].append(Reply(lost=True))
    assert run("upload", "large.png").exit_code == 0
    assert (len(api.forms), len(api.announced)) == (1, 2)


def test_an_announcement_whose_answer_was_lost_is_repeated_under_the_same_key(run: Run, api: FakeApi) -> None:
    large_photo()
    api.faults["POST"].append(Reply(lost=True))
    assert run("upload", "large.png").exit_code == 0
    assert (len(api.images), len(api.stored)) == (1, 1)


@pytest.mark.parametrize(
    ("answer", "explanation"),
    [
        (s3_error(400, "BadDigest"), "The file has changed since its hash was taken (BadDigest). Upload it again."),
        (s3_error(400, "EntityTooLarge"), "The file has changed since its hash was taken"),
        (s3_error(403, "AccessDenied", "Not yours."), "The store of uploads answered 403 (AccessDenied: Not yours)."),
        (Reply(status=418, body=b"tea"), "The store of uploads answered 418 (I'm a Teapot)."),
    ],
)
def test_what_the_store_will_not_take_is_told_and_does_not_stop_the_others(
    run: Run, api: FakeApi, answer: Reply, explanation: str
) -> None:
    large_photo()
    large_photo("other.png")
    api.faults["STORE"].append(answer)
    result = run("upload", "large.png", "other.png", "--concurrency", "1")
    assert result.exit_code == 1
    assert explanation in result.stderr
    assert len(api.stored) == 1


def test_forms_that_are_always_out_of_date_are_not_asked_for_without_end(run: Run, api: FakeApi) -> None:
    large_photo()
    expired = s3_error(403, "AccessDenied", "Invalid according to Policy: Policy expired.")
    api.faults["STORE"].extend([expired] * 20)
    result = run("upload", "large.png")
    assert result.exit_code == 1
    assert "Policy expired" in result.stderr
    assert len(api.forms) == 3


def test_what_cannot_be_announced_is_told_in_the_words_of_the_api(run: Run, api: FakeApi) -> None:
    large_photo()
    api.faults["POST"].append(problem(413, "upload_too_large", "The file has 280000 bytes; at most 5 are allowed."))
    result = run("upload", "large.png")
    assert result.exit_code == 1
    assert "not accepted: large.png: The file has 280000 bytes; at most 5 are allowed." in result.stderr
    assert api.forms == []


@pytest.mark.parametrize("upload", [{}, {"upload": {"url": "u"}}, {"upload": 5}])
def test_an_answer_without_a_form_is_not_that_of_a_darkroom_api(api: FakeApi, tmp_path: Path, upload: Any) -> None:
    (tmp_path / "large.png").write_bytes(LARGE)
    api.faults["POST"].append(Reply(status=201, body=api.document("0" * 26, "awaiting_upload") | upload))
    with Api(api.url) as client, pytest.raises(Refused, match="did not return a form"):
        client.send_announced(tmp_path / "large.png", announcement={}, idempotency_key="k")


def test_progress_is_told_in_bytes_of_the_file_and_begins_again_with_each_attempt(api: FakeApi, tmp_path: Path) -> None:
    (tmp_path / "large.png").write_bytes(LARGE)
    api.faults["STORE"].append(Reply(status=503, body=b""))
    sent: list[int] = []
    with Api(api.url, retry=RequestRetries(first_pause_seconds=0), pause=lambda _: None) as client:
        client.send_announced(tmp_path / "large.png", announcement={}, idempotency_key="k", on_sent=sent.append)
    assert (sent[0], sent.count(0), sent[-1], max(sent)) == (0, 2, len(LARGE), len(LARGE))


def test_a_file_that_vanishes_before_it_is_sent_is_reported(run: Run, api: FakeApi) -> None:
    large_photo()
    api.on_post = lambda number: Path("large.png").unlink()
    result = run("upload", "large.png")
    assert result.exit_code == 1
    assert "It cannot be read: No such file or directory." in result.stderr
