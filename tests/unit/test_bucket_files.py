"""Files in buckets: which URL names one, and which places can be registered."""

from __future__ import annotations

import pytest

from darkroom.domain.imports.bucket_files import BucketFile, check_registered, place_of
from darkroom.domain.kernel.errors import Rejected

PLACES = ("s3://photos/acme/", "s3://archive/")


@pytest.mark.guards("fetch-registered-places-only")
@pytest.mark.parametrize(
    ("url", "file"),
    [
        ("s3://photos/acme/1.jpg", BucketFile("photos", "acme/1.jpg")),
        ("s3://photos/acme/a%2F b?c#d.jpg", BucketFile("photos", "acme/a%2F b?c#d.jpg")),
        ("s3://archive/x", BucketFile("archive", "x")),
        ("s3://photos/other/1.jpg", None),
        ("s3://photos/acme", None),
        ("s3://archive-of-others/x", None),
        ("s3://nowhere/x", None),
        ("S3://photos/acme/1.jpg", None),
        ("s3://PHOTOS/acme/1.jpg", None),
        ("s3://photos/acme/" + "x" * 1024, None),
        ("s3://archive/", None),
        ("s3://archive", None),
    ],
)
def test_a_file_is_read_only_in_a_registered_place(url: str, file: BucketFile | None) -> None:
    if file is not None:
        assert check_registered(url, PLACES) == file
        return
    with pytest.raises(Rejected) as refusal:
        check_registered(url, PLACES)
    assert refusal.value.code == "invalid_url"


@pytest.mark.guards("fetch-bucket-key-without-dots")
@pytest.mark.parametrize("url", ["s3://photos/acme/../other/1.jpg", "s3://photos/acme/./1.jpg", "s3://archive/.."])
def test_no_key_leaves_its_place_by_dots(url: str) -> None:
    with pytest.raises(Rejected, match="presign it"):
        check_registered(url, PLACES)


@pytest.mark.guards("fetch-registered-whole-folders")
@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("s3://photos", "s3://photos/"),
        ("s3://photos/", "s3://photos/"),
        ("s3://photos/a/b/", "s3://photos/a/b/"),
        ("s3://photos/a", None),
        ("s3://", None),
        ("s3:///a/", None),
        ("photos/a/", None),
        ("https://photos/a/", None),
    ],
)
def test_a_place_is_a_bucket_or_whole_folders_of_it(text: str, place: str | None) -> None:
    if place is not None:
        assert place_of(text) == place
        return
    with pytest.raises(ValueError, match="is no place to import from: write s3://bucket/"):
        place_of(text)
