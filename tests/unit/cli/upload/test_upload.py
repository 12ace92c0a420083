from __future__ import annotations

import hashlib
import json
import signal
import threading
from pathlib import Path

import pytest

from darkroom_cli.terminal.interrupts import Interrupted, Interrupts
from darkroom_cli.upload import work
from darkroom_cli.upload.order import UploadOrder
from darkroom_cli.upload.sender import content_key
from tests.unit.cli.conftest import Run
from tests.unit.cli.fake_api import FakeApi, Reply, image_id_of, problem


def photos(*names: str) -> None:
    for name in names:
        Path(name).write_bytes(f"photo {name}".encode())


def test_uploading_tells_the_id_of_each_file_and_standard_output_holds_the_ids_alone(run: Run, api: FakeApi) -> None:
    photos("a.jpg", "b.png")
    result = run("upload", "a.jpg", "b.png")
    assert result.exit_code == 0, result.output
    assert sorted(result.stdout.splitlines()) == sorted(api.images)
    id_by_name = {
        line.split("  ")[1]: line.split("  ")[0] for line in result.stderr.splitlines() if "  " in line[20:30]
    }
    assert set(id_by_name) == {"a.jpg", "b.png"}
    assert set(id_by_name.values()) == set(api.images)
    assert "2 of 2 files" in result.stderr


@pytest.mark.guards("bodies-no-file-as-text")
@pytest.mark.parametrize("name", ["a.png", "a.txt", "a.json", "a.xml", "a.js", "a"])
def test_bytes_are_sent_as_they_are_with_the_type_that_the_name_suggests_but_no_text_and_the_preset(
    run: Run, api: FakeApi, name: str
) -> None:
    photos(name)
    assert run("upload", name, "--preset", "tiny").exit_code == 0
    post = api.posts[0]
    sent_as = "image/png" if name == "a.png" else "application/octet-stream"
    assert (post.body, post.headers["content-type"]) == (f"photo {name}".encode(), sent_as)
    assert post.query == {"preset": ["tiny"]}
    assert post.headers["content-length"] == str(len(post.body))


def test_the_same_photo_twice_is_one_image_when_the_key_comes_from_the_content(run: Run, api: FakeApi) -> None:
    photos("a.jpg")
    result = run("upload", "a.jpg", "a.jpg", "--idempotency-key-from", "content")
    assert result.exit_code == 0
    assert len(api.images) == 1
    assert "1 distinct (1 repeated)" in result.stderr


def test_a_content_key_depends_on_the_bytes_and_on_what_is_asked_for_alone(tmp_path: Path) -> None:
    def key(body: bytes, order: UploadOrder) -> str:
        file = tmp_path / "photo.jpg"
        file.write_bytes(body)
        return content_key(file, order)

    orders = [
        UploadOrder(),
        UploadOrder(preset="tiny"),
        UploadOrder(preset="b"),
        UploadOrder(preset="tiny", variants="a"),
        UploadOrder(variants="a"),
        UploadOrder(recipe="a"),
        UploadOrder(delay="P2D"),
        UploadOrder(notify="we_01kyvb60cwewgmgx"),
        UploadOrder(reference="a"),
        UploadOrder(tags="a"),
    ]
    assert key(b"a", UploadOrder()) == key(b"a", UploadOrder())
    assert len({key(body, order) for body in (b"a", b"b") for order in orders}) == 20


def test_a_content_key_for_a_preset_is_the_one_that_it_always_was(tmp_path: Path) -> None:
    file = tmp_path / "photo.jpg"
    file.write_bytes(b"photo")
    of_old = hashlib.sha256(b"tiny" + bytes(1) + b"photo").hexdigest()
    assert content_key(file, UploadOrder(preset="tiny")) == f"content-{of_old}"


def test_what_is_asked_for_is_sent_in_the_callers_words(run: Run, api: FakeApi) -> None:
    photos("a.jpg")
    when = "2027-03-01T09:00:00+01:00"
    assert run("upload", "a.jpg", "--process-at", when, "--expires-at", "2027-04-01T00:00:00Z").exit_code == 0
    assert run("upload", "a.jpg", "--preset", "tiny", "--delay", "P2D", "--notify", "we_01").exit_code == 0
    assert run("upload", "a.jpg", "--preset", "tiny", "--variants", " webp,thumb, webp").exit_code == 0
    words = ("--reference", "order-17", "--tag", "shoes", "--tag", "summer 2027", "--metadata", '{ "b": 1, "a": "ä" }')
    assert run("upload", "a.jpg", *words).exit_code == 0
    assert api.posts[3].query == {
        "reference": ["order-17"],
        "tags": ["shoes,summer 2027"],
        "metadata": ['{"b":1,"a":"ä"}'],
    }
    assert run("upload", "a.jpg", "--reuse").exit_code == 0
    assert api.posts[4].query == {"on_duplicate": ["reuse"]}
    assert ["idempotency-key" in post.headers for post in api.posts] == [True] * 4 + [False]
    assert run("upload", "a.jpg", "--reuse", "--idempotency-key-from", "content").exit_code == 2
    refused = run("upload", "a.jpg", "--metadata", "[]")
    assert refused.exit_code == 2 and "metadata is a JSON object" in " ".join(refused.output.split())
    assert api.posts[0].query == {"process_at": [when], "expires_at": ["2027-04-01T00:00:00Z"]}
    assert api.posts[1].query == {"preset": ["tiny"], "delay": ["P2D"], "notify": ["we_01"]}
    assert api.posts[2].query == {"preset": ["tiny"], "variants": ["thumb,webp"]}


def test_a_recipe_is_sent_from_its_file_as_short_as_can_be(run: Run, api: FakeApi) -> None:
    photos("a.jpg")
    Path("card.json").write_text('{ "variants": [\n  {"width": 600, "name": "caf\\u00e9 #&+"}\n]}')
    assert run("upload", "a.jpg", "--recipe", "card.json").exit_code == 0
    assert api.posts[0].query == {"recipe": ['{"variants":[{"name":"caf\\u00e9 #&+","width":600}]}']}


@pytest.mark.parametrize(
    ("options", "written", "refusal"),
    [
        ("--recipe card.json", None, "card.json cannot be read: No such file or directory."),
        ("--recipe card.json", "{", "card.json is not JSON"),
        ("--recipe card.json", "[" * 100_000, "card.json is not JSON"),
        ("--recipe card.json", "\udcff", "card.json is not JSON"),
        ("--recipe card.json", "[]", "card.json is not a recipe. A recipe looks like"),
        ("--recipe card.json", '{"variants": {}}', "card.json is not a recipe. A recipe looks like"),
        (
            "--recipe card.json",
            '{"variants": ["' + "x" * 4080 + '"]}',
            "card.json has 4,097 bytes, and the limit is 4 KiB.",
        ),
        ("--recipe card.json --preset tiny", None, "leave out --preset and --variants"),
        ("--recipe card.json --variants a", None, "leave out --preset and --variants"),
        ("--variants=,", None, "it names no variant"),
    ],
    ids=["absent", "cut", "deep", "bytes", "list", "object", "large", "and a preset", "and variants", "no variant"],
)
def test_what_does_not_say_what_to_make_is_reported_and_nothing_is_sent(
    run: Run, api: FakeApi, options: str, written: str | None, refusal: str
) -> None:
    photos("a.jpg")
    if written is not None:
        Path("card.json").write_text(written, errors="surrogateescape")
    result = run("upload", "a.jpg", *options.split())
    assert result.exit_code == 2
    assert refusal in " ".join(result.stderr.replace("│", " ").split())
    assert api.requests == []


def test_waiting_shows_the_notices_about_each_image(run: Run, api: FakeApi) -> None:
    photos("a.jpg", "b.jpg")
    api.notices[b"photo b.jpg"] = ["The file is animated:\x1b only its first frame was developed."]
    result = run("upload", "a.jpg", "b.jpg", "--wait")
    assert result.exit_code == 0
    (notice,) = [line for line in result.stderr.splitlines() if line.startswith("notice: ")]
    assert notice.endswith("b.jpg: The file is animated:\ufffd only its first frame was developed.")


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(Reply(lost=True), id="the answer is lost"),
        pytest.param(problem(503, "unavailable", "Not now.", **{"Retry-After": "0"}), id="503"),
        pytest.param(problem(429, "busy", "Too many.", **{"Retry-After": "0"}), id="429"),
    ],
)
def test_a_fault_is_met_with_another_attempt_that_cannot_make_a_second_image(
    run: Run, api: FakeApi, fault: Reply
) -> None:
    photos("a.jpg")
    api.faults["POST"].append(fault)
    result = run("upload", "a.jpg")
    assert result.exit_code == 0, result.output
    first, second = api.posts
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]
    assert list(api.images) == [image_id_of(first.headers["idempotency-key"])]


def test_a_refused_file_is_reported_by_its_detail_and_does_not_stop_the_others(run: Run, api: FakeApi) -> None:
    photos("a.jpg", "b.jpg", "c.jpg")
    api.refuses[b"photo b.jpg"] = {"status": 415, "code": "unsupported_media_type", "detail": "This is text."}
    result = run("upload", "a.jpg", "b.jpg", "c.jpg")
    assert result.exit_code == 1
    assert "not accepted: b.jpg: This is text." in result.stderr
    assert len(api.images) == 2
    assert "error: 1 of 3 files were not accepted." in result.stderr


def test_waiting_ends_when_every_image_has_ended_and_tells_the_drain_rate(run: Run, api: FakeApi) -> None:
    photos(*(f"{number}.jpg" for number in range(11)), "b\x1b[31m.jpg")
    result = run("upload", ".", "--wait")
    assert result.exit_code == 0, result.output
    assert {image["status"] for image in api.images.values()} == {"done"}
    for fact in (
        "ids         12 distinct, none twice",
        "done        12\n",
        "failed      0\n",
        "drain rate  6.00 images/s = 12 done / 2.00 s from the first acceptance to the last completion",
    ):
        assert fact in result.stderr
    assert all(character.isprintable() or character == "\n" for character in result.stdout + result.stderr)


def test_waiting_reports_each_image_that_failed_and_the_reason(run: Run, api: FakeApi) -> None:
    photos("a.jpg", "b.jpg")
    api.ends_as[b"photo b.jpg"] = "failed"
    result = run("upload", "a.jpg", "b.jpg", "--wait")
    assert result.exit_code == 1
    assert "b.jpg: The file ends too early. (truncated)" in result.stderr
    assert "error: 1 of 2 images were not developed." in result.stderr


def test_waiting_gives_up_after_the_time_it_is_given(run: Run, api: FakeApi) -> None:
    photos("a.jpg")
    api.polls_until_done = 1_000_000
    result = run("upload", "a.jpg", "--wait", "--timeout-seconds", "0.05")
    assert result.exit_code == 1
    assert "1 of 1 images had not ended. They are not lost" in result.stderr


def test_an_image_that_the_api_no_longer_knows_is_reported_as_lost(run: Run, api: FakeApi) -> None:
    photos("a.jpg", "b.jpg")
    api.faults["GET"].append(problem(404, "not_found", "There is no image with this id."))
    result = run("upload", "a.jpg", "b.jpg", "--wait")
    assert result.exit_code == 1
    assert "lost: " in result.stderr
    assert "done        1\n" in result.stderr


def test_the_json_report_is_all_that_standard_output_holds(run: Run, api: FakeApi) -> None:
    photos("a.jpg", "b.jpg")
    api.refuses[b"photo b.jpg"] = {"status": 415, "code": "unsupported_media_type", "detail": "This is text."}
    result = run("upload", "a.jpg", "b.jpg", "--wait", "--json")
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    by_file = {upload["file"]: upload for upload in report["uploads"]}
    assert by_file["a.jpg"]["image"]["status"] == "done"
    assert by_file["b.jpg"] == {"file": "b.jpg", "image": None, "replayed": False, "problem": "This is text."}
    assert (report["summary"]["done"], report["interrupted"], report["unknown"]) == (1, False, [])


def test_an_interrupt_lets_the_files_on_the_way_arrive_and_lists_what_was_accepted(run: Run, api: FakeApi) -> None:
    photos(*(f"{number}.jpg" for number in range(20)))

    def interrupt(number: int) -> None:
        if number == 3:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    api.on_post = interrupt
    result = run("upload", ".", "--concurrency", "1")
    assert result.exit_code == 130
    assert 3 <= len(api.images) < 20
    assert all(image_id in result.stdout for image_id in api.images)
    assert f"Interrupted. {len(api.images)} of 20 files were accepted" in result.stderr


def test_a_file_that_does_not_arrive_in_time_after_an_interrupt_is_told_as_unknown(
    run: Run, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "_SECONDS_TO_FINISH", 0.05)
    photos(*(f"{number}.jpg" for number in range(20)))
    released = threading.Event()

    def interrupt(number: int) -> None:
        if number == 3:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            released.wait(10)

    api.on_post = interrupt
    result = run("upload", ".", "--concurrency", "1")
    released.set()
    assert result.exit_code == 130
    assert "Interrupted. 2 of 20 files were accepted" in result.stderr
    assert "unknown     10.jpg (it may have been accepted)" in result.stderr


def test_the_first_interrupt_is_a_request_and_the_second_is_an_exception() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Interrupts() as interrupts:
        interrupts.pause(0.0)
        signal.raise_signal(signal.SIGINT)
        assert interrupts.requested
        with pytest.raises(Interrupted):
            interrupts.pause(60.0)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_stack_that_does_not_answer_is_reported_once_however_many_files_there_are(
    run: Run, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    photos("a.jpg", "b.jpg", "c.jpg")
    with FakeApi() as gone:
        pass
    monkeypatch.setenv("DARKROOM_URL", gone.url)
    result = run("upload", "a.jpg", "b.jpg", "c.jpg")
    assert result.exit_code == 1
    assert result.stderr.count(f"Nothing listens at {gone.url}.") == 1


def test_a_credential_that_is_refused_ends_the_upload_at_once(run: Run, api: FakeApi) -> None:
    photos(*(f"{number}.jpg" for number in range(9)))
    api.faults["POST"].extend([Reply(status=403, body={"message": "Forbidden"})] * 9)
    result = run("upload", ".", "--concurrency", "1")
    assert result.exit_code == 1
    assert result.stderr.count("--iam") == 1
    assert len(api.posts) < 9


def test_what_is_no_file_is_a_usage_error_and_nothing_is_sent(run: Run, api: FakeApi) -> None:
    photos("a.jpg")
    result = run("upload", "a.jpg", "missing.jpg")
    assert result.exit_code == 2
    assert "missing.jpg: there is no such file" in result.stderr
    assert api.requests == []


def test_a_url_is_sent_as_one_for_the_stack_to_fetch_with_what_is_asked_for(run: Run, api: FakeApi) -> None:
    url = "https://photos.example/harbour.jpg?a=b"
    result = run("upload", url, "--variants", "thumb,webp", "--delay", "P2D")
    assert result.exit_code == 0, result.output
    (post,) = api.posts
    assert (post.headers["content-type"], post.query) == ("application/json", {})
    assert json.loads(post.body) == {"url": url, "variants": ["thumb", "webp"], "delay": "P2D"}
    assert result.stdout.splitlines() == list(api.images)
