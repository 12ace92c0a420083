from __future__ import annotations

from pathlib import Path

import pytest

from darkroom_cli.images.download import NotSaved, file_name
from darkroom_client.client import ReceivedVariant
from tests.unit.cli.conftest import Run
from tests.unit.cli.fake_api import FILES, FakeApi, Reply


def saved(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


EXPECTED = {"thumb.jpg": FILES["thumb"][1], "webp.webp": FILES["webp"][1]}


def test_every_variant_is_saved_and_listed(run: Run, api: FakeApi) -> None:
    result = run("download", api.put("done"), "-o", "new/folder")
    assert result.exit_code == 0, result.output
    assert saved(Path("new/folder")) == EXPECTED
    assert "new/folder/webp.webp" in result.stdout


def test_one_variant_can_be_chosen(run: Run, api: FakeApi) -> None:
    image_id = api.put("done")
    assert run("download", image_id, "-o", "out", "--variant", "webp").exit_code == 0
    assert list(saved(Path("out"))) == ["webp.webp"]
    result = run("download", image_id, "--variant", "huge")
    assert result.exit_code == 1
    assert "There is no variant huge: this image has thumb, webp." in result.stderr


def test_a_different_file_in_the_way_stops_everything_unless_forced(run: Run, api: FakeApi) -> None:
    image_id = api.put("done")
    Path("webp.webp").write_bytes(b"mine")
    result = run("download", image_id)
    assert result.exit_code == 1
    assert "webp.webp: there is a different file of this name" in result.stderr
    assert saved(Path()) == {"webp.webp": b"mine"}
    assert run("download", image_id, "--force").exit_code == 0
    assert saved(Path()) == EXPECTED


def test_a_file_that_is_the_same_is_kept_and_not_fetched_again(run: Run, api: FakeApi) -> None:
    image_id = api.put("done")
    run("download", image_id)
    fetched = len(api.requests)
    assert run("download", image_id).exit_code == 0
    assert [request.path for request in api.requests[fetched:]] == [f"/images/{image_id}/status"]


def test_an_expired_address_is_replaced_by_a_new_one(run: Run, api: FakeApi) -> None:
    image_id = api.put("done")
    api.faults["FILE"].append(Reply(status=403, body=b"<Error><Message>Request has expired</Message></Error>"))
    assert run("download", image_id, "--variant", "webp").exit_code == 0
    first, second = (request for request in api.requests if request.path == "/files/webp")
    assert first.query != second.query
    assert saved(Path()) == {"webp.webp": FILES["webp"][1]}


def test_a_store_that_refuses_every_address_ends_the_command(run: Run, api: FakeApi) -> None:
    image_id = api.put("done")
    api.faults["FILE"].extend([Reply(status=403)] * 10)
    result = run("download", image_id)
    assert result.exit_code == 1
    assert "The store keeps refusing the URL of thumb." in result.stderr


@pytest.mark.parametrize("wrong", [b"thumb byteZ", b"thumb", b"thumb bytes and more"])
def test_bytes_that_are_not_those_promised_are_never_saved(run: Run, api: FakeApi, wrong: bytes) -> None:
    image_id = api.put("done")
    api.faults["FILE"].append(Reply(body=wrong))
    result = run("download", image_id)
    assert result.exit_code == 1
    assert "is not the one in the status document" in result.stderr
    assert saved(Path()) == {}


def test_an_image_on_its_way_has_no_files_yet(run: Run, api: FakeApi) -> None:
    api.polls_until_done = 1_000_000
    result = run("download", api.put("pending"))
    assert result.exit_code == 1
    assert "its files are not made yet" in result.stderr
    assert "--wait" in result.stderr


def test_waiting_downloads_as_soon_as_the_image_is_done(run: Run, api: FakeApi) -> None:
    image_id = api.put("pending")
    api.polls_until_done = 2
    assert run("download", image_id, "--wait").exit_code == 0
    assert saved(Path()) == EXPECTED


def test_a_failed_image_has_no_files_and_says_why(run: Run, api: FakeApi) -> None:
    result = run("download", api.put("failed"))
    assert result.exit_code == 1
    assert "The image is failed: it has no files. The file ends too early. (truncated)" in result.stderr


def test_a_folder_that_cannot_be_created_is_reported(run: Run, api: FakeApi) -> None:
    Path("taken").write_bytes(b"x")
    result = run("download", api.put("done"), "-o", "taken/below")
    assert result.exit_code == 1
    assert "error: Cannot write" in result.stderr


@pytest.mark.parametrize(
    ("name", "file_format"),
    [("../thumb", "jpeg"), ("a/b", "png"), (".hidden", "png"), ("x", "../../etc/passwd"), ("", "jpeg"), ("x\0", "png")],
)
def test_a_name_that_would_leave_the_folder_is_refused(name: str, file_format: str) -> None:
    variant = ReceivedVariant(name=name, width=1, height=1, format=file_format, bytes=1, sha256="", url="")
    with pytest.raises(NotSaved):
        file_name(variant)
