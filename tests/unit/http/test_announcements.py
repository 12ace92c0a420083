"""What a client announces about a file before it uploads it."""

import json
from typing import Any

import pytest

from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.kernel.field_problems import InvalidFields
from darkroom.domain.kernel.sizes import limit_in_words
from darkroom.http.images.request_models import MAX_ORDER_BYTES
from darkroom.http.uploads.announcements import read_announcement

SHA256 = "ab" * 32
PLAIN = {"bytes": 5_000_000, "sha256": SHA256}


def read(**changes: Any) -> Any:
    return read_announcement(json.dumps({**PLAIN, **changes}).encode())


def test_size_and_hash_suffice_and_either_may_be_written_in_another_way() -> None:
    announced = read()
    assert (announced.size_bytes, announced.sha256) == (5_000_000, SHA256)
    assert (announced.media_type, announced.order.preset) == ("application/octet-stream", "standard")
    assert read(sha256=SHA256.upper()) == read()
    assert read(bytes=5_000_000.0) == read()


def test_what_is_to_become_of_it_is_said_as_with_a_photo() -> None:
    announced = read(preset="standard", variants=["webp", "thumb"], delay="PT1H", content_type="image/png")
    assert [spec.name for spec in announced.order.recipe.variants] == ["thumb", "webp"]
    assert announced.order.timetable.delay_milliseconds == 3_600_000
    assert announced.media_type == "image/png"
    own = read(recipe={"variants": [{"name": "card", "width": 600}]})
    assert (own.order.preset, [spec.name for spec in own.order.recipe.variants]) == (None, ["card"])


def test_the_same_announcement_is_one_and_any_other_is_another() -> None:
    same = [read(), read(content_type="image/jpeg"), read(preset="standard")]
    others = [
        read(preset="avatar"),
        read(variants=["thumb"]),
        read(delay="PT1H"),
        read(expires_at="2027-01-01T00:00:00Z"),
    ]
    assert len({announced.request_signature for announced in same}) == 1
    assert len({announced.request_signature for announced in (*same, *others)}) == 5


@pytest.mark.parametrize(
    ("body", "field", "message"),
    [
        (b"", "body", "is not JSON"),
        (b"\xff\xd8\xff", "body", "is not JSON"),
        (b"\xef\xbb\xbf" + json.dumps(PLAIN).encode(), "body", "begins with a byte order mark"),
        (json.dumps(PLAIN).encode("utf-16"), "body", "begins with a byte order mark"),
        (b"[]", "body", "must be an object"),
        (b'{"bytes": 1}', "sha256", "is missing"),
        (json.dumps({**PLAIN, "bytes": 0}).encode(), "bytes", "must be at least 1"),
        (json.dumps({**PLAIN, "bytes": "5"}).encode(), "bytes", "must be a whole number"),
        (json.dumps({**PLAIN, "bytes": 10**4000}).encode(), "bytes", "must be at most 1e+15"),
        (json.dumps({**PLAIN, "bytes": 1.5}).encode(), "bytes", "must be a whole number"),
        (
            json.dumps({**PLAIN, "bytes": "5" * MAX_ORDER_BYTES}).encode(),
            "body",
            f"at most {limit_in_words(MAX_ORDER_BYTES)} are allowed",
        ),
        (json.dumps({**PLAIN, "sha256": "ab"}).encode(), "sha256", "64 hexadecimal digits"),
        (json.dumps({**PLAIN, "sha256": SHA256 + "\n"}).encode(), "sha256", "64 hexadecimal digits"),
        (json.dumps({**PLAIN, "content_type": "image"}).encode(), "content_type", "must be a media type"),
        (json.dumps({**PLAIN, "content_type": "a/b\r\nx: y"}).encode(), "content_type", "must be a media type"),
        (json.dumps({**PLAIN, "variants": "thumb"}).encode(), "variants", "must be a list"),
        (json.dumps({**PLAIN, "recipe": "{}"}).encode(), "recipe", "must be an object"),
        (
            json.dumps({**PLAIN, "size": 1}).encode(),
            "size",
            "is not a known field. Known fields: bytes, sha256, content_type",
        ),
    ],
)
def test_errors_are_reported_by_field(body: bytes, field: str, message: str) -> None:
    with pytest.raises(InvalidFields) as refusal:
        read_announcement(body)
    (problem,) = refusal.value.problems
    assert problem.field == field
    assert message in problem.message
    assert field in refusal.value.message


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"preset": "no-such"}, "unknown_preset"),
        ({"variants": []}, "unknown_variants"),
        ({"recipe": {"variants": [{"name": "a", "width": 0}]}}, "invalid_recipe"),
        ({"recipe": {"variants": [{"name": "a", "width": 1}]}, "preset": "standard"}, "conflicting_parameters"),
        ({"recipe": {"variants": [{"name": "a", "width": 1}] * 300}}, "invalid_recipe"),
        ({"delay": "tomorrow"}, "invalid_delay"),
        ({"process_at": "2027-03-01T09:00:00Z", "delay": "PT1H"}, "conflicting_parameters"),
    ],
)
def test_what_cannot_be_asked_of_a_photo_cannot_be_asked_of_an_upload(changes: dict[str, Any], code: str) -> None:
    with pytest.raises(Rejected) as refusal:
        read(**changes)
    assert refusal.value.code == code
