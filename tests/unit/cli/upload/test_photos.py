from __future__ import annotations

import os
from pathlib import Path

import pytest

from darkroom_cli.upload.photos import NoFile, files_named


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("b.jpg", "a.JPG", "notes.txt", ".hidden.jpg", "deep/c.webp", ".git/d.jpg"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"x")
    return tmp_path


def names(*arguments: str) -> list[str]:
    return [str(file) for file in files_named(arguments)]


def test_a_file_is_taken_whatever_it_is_called_and_as_often_as_it_is_named(folder: Path) -> None:
    (folder / "x[1].jpg").write_bytes(b"x")
    assert names("x[1].jpg") == ["x[1].jpg"]
    assert names("notes.txt", ".hidden.jpg", "notes.txt") == ["notes.txt", ".hidden.jpg", "notes.txt"]


def test_a_folder_stands_for_the_images_in_it_and_below_but_not_for_hidden_ones(folder: Path) -> None:
    assert names(".") == ["a.JPG", "b.jpg", "deep/c.webp"]


def test_a_pattern_that_the_shell_left_alone_is_expanded(folder: Path) -> None:
    assert names("*.jpg") == ["b.jpg"]
    assert names("**/*.webp") == ["deep/c.webp"]
    assert names(f"{folder}/*.txt") == [f"{folder}/notes.txt"]


def test_every_argument_that_names_no_file_is_reported(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "empty").mkdir()
    with pytest.raises(NoFile) as error:
        names("b.jpg", "missing.jpg", "pipe", "empty", "*.bmp")
    problems = str(error.value).splitlines()
    assert problems[0] == "missing.jpg: there is no such file"
    assert problems[1] == "pipe: not a regular file"
    assert problems[2].startswith("empty: no image in this folder")
    assert problems[3] == "*.bmp: no file matches this pattern"
