from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from rich.console import Console

from darkroom_cli.local.develop import curl_lines, develop_photo, print_curl_lines
from darkroom_client import Darkroom, polling
from repository.report import ROOT
from tests.unit.cli.fake_api import FILES, FakeApi, Reply, image_id_of

_SHELL_ENVIRONMENT = {"PATH": os.environ["PATH"], "no_proxy": "127.0.0.1"}


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polling, "FIRST_PAUSE_SECONDS", 0.0)


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    file = tmp_path / "photo.jpg"
    file.write_bytes(b"a photo")
    return file


def paper(*, terminal: bool = False) -> Console:
    return Console(file=io.StringIO(), width=100, force_terminal=terminal)


def written(out: Console) -> str:
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue()


@pytest.mark.parametrize("terminal", [False, True])
def test_a_photo_is_developed_and_its_variants_are_saved_and_listed(
    api: FakeApi, photo: Path, tmp_path: Path, terminal: bool
) -> None:
    out = paper(terminal=terminal)
    with Darkroom(api.url) as client:
        image_id = develop_photo(client, photo, out, tmp_path / "developed")
    assert (tmp_path / "developed" / "webp.webp").read_bytes() == FILES["webp"][1]
    assert [image_id] == list(api.images)
    for text in ("uploading photo.jpg (7 bytes)", f"accepted as {image_id}", "done after", "dimensions", "webp.webp"):
        assert text in written(out)
    assert "colour     #7a8b5c" in written(out)


def test_an_image_that_fails_is_told_with_its_reason(api: FakeApi, photo: Path, tmp_path: Path) -> None:
    api.ends_as[b"a photo"] = "failed"
    out = paper()
    with Darkroom(api.url) as client:
        assert develop_photo(client, photo, out, tmp_path) is None
    assert "photo.jpg was not developed: The file ends too early. (truncated)" in written(out)


def test_a_refused_or_missing_photo_is_reported(api: FakeApi, photo: Path, tmp_path: Path) -> None:
    api.refuses[b"a photo"] = {"status": 415, "code": "unsupported_media_type", "detail": "This is text."}
    out = paper()
    with Darkroom(api.url) as client:
        assert develop_photo(client, photo, out, tmp_path) is None
        assert develop_photo(client, tmp_path / "missing.jpg", out, tmp_path) is None
    assert "photo.jpg was not developed: This is text." in written(out)
    assert "missing.jpg was not developed: It cannot be read: No such file or directory." in written(out)


def test_variants_that_cannot_be_fetched_make_it_fail(api: FakeApi, photo: Path, tmp_path: Path) -> None:
    api.faults["FILE"].append(Reply(body=b"something else"))
    with Darkroom(api.url) as client:
        assert develop_photo(client, photo, paper(), tmp_path) is None


def test_the_curl_lines_are_printed_unbroken_however_narrow_the_window_is() -> None:
    out = Console(file=io.StringIO(), width=20)
    print_curl_lines("http://127.0.0.1:12345", out)
    lines = [line.strip() for line in written(out).splitlines()]
    assert all(line in lines for line in curl_lines("http://127.0.0.1:12345"))


def test_the_readme_has_the_curl_lines_and_takes_the_address_from_the_stack_that_serves(tmp_path: Path) -> None:
    (block,) = re.findall(r"^```sh\n(API=.*?)^```$", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    address, *lines = re.sub(r" *\\\n *", " ", block).splitlines()
    assert tuple(lines) == curl_lines("$API")
    (tmp_path / ".darkroom").mkdir()
    stack = {"api_url": "http://127.0.0.1:12345", "page_url": "http://127.0.0.1:12345/app/"}
    for indent in (None, 2):
        (tmp_path / ".darkroom/stack.json").write_text(json.dumps(stack, indent=indent))
        script = f'{address}; printf %s "$API"'
        result = subprocess.run(["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
        assert result.stdout == "http://127.0.0.1:12345"


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
@pytest.mark.parametrize("key", [None, "dr_key"])
def test_the_curl_lines_upload_poll_and_fetch_when_they_are_pasted_and_no_argument_of_curl_has_the_key(
    api: FakeApi, photo: Path, tmp_path: Path, key: str | None
) -> None:
    arguments, curl = tmp_path / "arguments", tmp_path / "bin/curl"
    curl.parent.mkdir()
    curl.write_text(f'#!/bin/sh\necho "$@" >> {arguments}\nexec {shutil.which("curl")} "$@"\n')
    curl.chmod(0o755)
    # The fake does not redirect: it answers the last line's request directly.
    script = "set -eu\n" + "\n".join(curl_lines(api.url, key)[:2]) + "\nprintf '%s' \"$id\""
    environment = {**_SHELL_ENVIRONMENT, "PATH": f"{curl.parent}:{os.environ['PATH']}"}
    result = subprocess.run(
        ["sh", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    (image_id,) = api.images
    assert result.stdout.endswith(image_id)
    assert api.posts[0].body == b"a photo"
    assert api.posts[0].headers["content-type"] == "image/jpeg"
    assert {seen.headers.get("authorization") for seen in api.requests} == {key and f"Bearer {key}"}
    assert "dr_key" not in arguments.read_text()
    assert curl_lines(api.url)[2] == f"curl -sS -f -L -o photo.webp {api.url}/images/$id/variants/webp"


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_the_curl_lines_end_and_say_why_when_the_photo_is_refused(api: FakeApi, photo: Path, tmp_path: Path) -> None:
    api.refuses[b"a photo"] = {"status": 415, "code": "unsupported_media_type", "detail": "This is text."}
    script = "\n".join(curl_lines(api.url))
    result = subprocess.run(
        ["sh", "-c", script], cwd=tmp_path, env=_SHELL_ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert "This is text." in result.stderr
    assert result.returncode != 0
    assert not (tmp_path / "photo.webp").exists()


def test_the_id_is_read_from_a_location_in_any_case() -> None:
    image_id = image_id_of("x")
    sed = curl_lines("http://api.test")[0].split(" | ", 1)[1].removesuffix(")")
    for header in (f"Location: /images/{image_id}/status\r\n", f"location: /images/{image_id}/status\r\n"):
        result = subprocess.run(
            ["sh", "-c", sed], input=f"HTTP/2 202\r\n{header}\r\n", capture_output=True, text=True, check=True
        )
        assert result.stdout == f"{image_id}\n"
