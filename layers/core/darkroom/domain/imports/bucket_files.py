"""Files in buckets that an operator has registered for a tenant: `s3://bucket/key`, with the key as S3 has it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from darkroom.domain.imports.fetch import MAX_SOURCE_URL_LENGTH
from darkroom.domain.kernel.errors import Rejected

_SCHEME = "s3://"

_PLACE = re.compile(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])/(.*)", re.DOTALL)
"""A bucket's name (https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html) and what follows."""

_MAX_KEY_BYTES = 1024

NOT_REGISTERED = "No bucket and prefix of it is registered for you: ask the operator, or presign it as an https:// URL."
"""What is said of every file outside of the registered places, whether or not it, or its bucket, is there."""


class BucketFile(NamedTuple):
    """A file in a bucket."""

    bucket: str
    key: str


def is_bucket_url(url: str) -> bool:
    """Whether it names a file in a bucket, or tries to."""
    return url[: len(_SCHEME)].lower() == _SCHEME


def bucket_file_at(url: str) -> BucketFile:
    """The file that a URL of a bucket names. Raises Rejected (`invalid_url`)."""
    match = _PLACE.fullmatch(url)
    if match is None or not match[2] or len(url) > MAX_SOURCE_URL_LENGTH or len(match[2].encode()) > _MAX_KEY_BYTES:
        raise Rejected("invalid_url", "The url names no file in a bucket: write s3://bucket/key, the key as S3 has it.")
    # Whatever takes such a path for a relative one would leave the registered prefix.
    if not {".", ".."}.isdisjoint(match[2].split("/")):  # guard: fetch-bucket-key-without-dots
        raise Rejected("invalid_url", "The key has a part that is . or .. alone: presign it as an https:// URL.")
    return BucketFile(match[1], match[2])


def place_of(text: str) -> str:
    """A place to register, a bucket with or without a prefix of folders: `s3://bucket/` or `s3://bucket/folder/`.
    Raises ValueError."""
    match = _PLACE.fullmatch(text if "/" in text.removeprefix(_SCHEME) else f"{text}/")
    # Without the slash, `photos` would be a prefix of `photos-private`.
    if match is None or (match[2] and not match[2].endswith("/")):  # guard: fetch-registered-whole-folders
        raise ValueError(f"{text!r} is no place to import from: write s3://bucket/ or s3://bucket/folder/.")
    return match[0]


def check_registered(url: str, places: Iterable[str]) -> BucketFile:
    """The file that the URL names, if one of the registered places has it. Raises Rejected (`invalid_url`)."""
    file = bucket_file_at(url)
    if not any(url.startswith(place) for place in places):  # guard: fetch-registered-places-only
        raise Rejected("invalid_url", NOT_REGISTERED)
    return file
