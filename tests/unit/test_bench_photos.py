"""The set of photos: only what was chosen is taken, only once, and nothing else under its name."""

import hashlib
import io
import lzma
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.engine.photos import Archive, NoPhotos, Photo, archives, fetch

CONTENT = b"a photo"


def package(*members: tuple[str, bytes]) -> bytes:
    """A package of Debian, as deb(5) describes it."""
    files = io.BytesIO()
    with tarfile.open(fileobj=files, mode="w") as tar:
        for name, content in members:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    parts = {"debian-binary": b"2.0\n", "control.tar.xz": b"odd", "data.tar.xz": lzma.compress(files.getvalue())}
    return b"!<arch>\n" + b"".join(
        f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(part):<10}`\n".encode() + part + b"\n" * (len(part) % 2)
        for name, part in parts.items()
    )


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    """A package on a mirror in the folder `mirror`."""
    body = package(("./usr/other.jpg", b"other"), ("./usr/a.jpg", CONTENT), ("./usr/more.jpg", b"more"))
    (tmp_path / "mirror").mkdir()
    (tmp_path / "mirror" / "a.deb").write_bytes(body)
    photo = Photo(name="one.jpg", member="usr/a.jpg", sha256=sha256(CONTENT), shows="a", licence="CC0-1.0", author="me")
    return Archive(package="a", version="1", path="a.deb", sha256=sha256(body), photos=(photo,))


def mirrors(tmp_path: Path) -> list[str]:
    return [(tmp_path / "of-something-else").as_uri(), (tmp_path / "mirror").as_uri()]


def test_the_chosen_photos_are_taken_from_the_first_mirror_that_has_them(archive: Archive, tmp_path: Path) -> None:
    fetch([archive], tmp_path / "photos", mirrors(tmp_path))
    assert {file.name: file.read_bytes() for file in (tmp_path / "photos").iterdir()} == {"one.jpg": CONTENT}


@pytest.mark.parametrize(
    ("of_the_package", "of_the_photo", "message"),
    [
        ({"sha256": "0" * 64}, {}, "is another file now"),
        ({"path": "gone.deb"}, {}, "is not to be had"),
        ({}, {"sha256": "0" * 64}, "is another file now"),
        ({}, {"member": "usr/b.jpg"}, "does not contain usr/b.jpg"),
    ],
)
def test_another_package_or_photo_is_refused(
    archive: Archive, tmp_path: Path, of_the_package: dict[str, Any], of_the_photo: dict[str, Any], message: str
) -> None:
    changed = replace(archive, photos=(replace(archive.photos[0], **of_the_photo),), **of_the_package)
    with pytest.raises(NoPhotos, match=message):
        fetch([changed], tmp_path / "photos", mirrors(tmp_path))
    assert list((tmp_path / "photos").iterdir()) == []


def test_the_list_is_of_many_free_photos_each_with_a_name_of_its_own() -> None:
    photos = [photo for archive in archives() for photo in archive.photos]
    assert len(photos) >= 12
    assert len({photo.name for photo in photos}) == len({photo.sha256 for photo in photos}) == len(photos)
    assert all(photo.licence and photo.author and photo.shows for photo in photos)
    assert sum(photo.licence.startswith(("CC0", "CC-BY-4", "public domain")) for photo in photos) >= 12
