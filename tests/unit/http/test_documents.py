"""The status document."""

import pytest

from darkroom.domain.images.image import Image, Status, Variant
from darkroom.domain.images.transitions import complete, reject
from darkroom.http.images.documents import (
    StatusDocument,
    retry_after_seconds,
    status_document,
)
from tests.support.images import NOW, pending, processing

VARIANT = Variant(name="thumb", width=2, height=1, format="jpeg", size_bytes=3, sha256="ab", key="outputs/k.jpg")


def document(image: Image) -> StatusDocument:
    return status_document(image, lambda variant: f"https://x/{variant.key}")


def test_a_finished_image_shows_its_variants() -> None:
    done = document(complete(processing(), (VARIANT,), notices=("Animated.",), now=NOW))
    assert done["progress"] == {"done": 4, "total": 4}
    assert done["variants"] == [
        {
            "name": "thumb",
            "width": 2,
            "height": 1,
            "format": "jpeg",
            "bytes": 3,
            "sha256": "ab",
            "url": "https://x/outputs/k.jpg",
        }
    ]
    assert done["notices"] == ["Animated."]
    assert done["completed_at"] == "2026-11-21T09:00:00.000Z"


def test_a_finished_image_shows_what_can_be_painted_before_it_arrives_and_the_point_that_its_crops_keep() -> None:
    placeholder = {"thumbhash": "k0oGLQaSVsNg", "color": "#7a8b5c"}
    assert (
        document(complete(processing(), (), notices=(), placeholder=placeholder, now=NOW))["placeholder"] == placeholder
    )
    assert document(processing())["placeholder"] is None
    done = complete(processing(), (), notices=(), attention={"x": 6251, "y": 0}, now=NOW)
    assert document(done)["attention"] == {"x": 0.6251, "y": 0}
    assert document(processing())["attention"] is None


def test_an_unfinished_image_shows_no_variants_and_no_progress_and_links_relative_to_the_root() -> None:
    unfinished = document(processing())
    assert (unfinished["variants"], unfinished["progress"]) == ([], {"done": 0, "total": 4})
    assert unfinished["links"] == {"self": f"/images/{'0' * 26}", "status": f"/images/{'0' * 26}/status"}


def test_a_refused_image_says_why() -> None:
    refused = document(reject(processing(), code="undecodable", message="Broken.", now=NOW))
    assert refused["error"] == {"code": "undecodable", "message": "Broken.", "retryable": False}


@pytest.mark.parametrize(
    ("ahead_milliseconds", "seconds"), [(-5_000, 1), (0, 1), (500, 1), (1_500, 2), (60_000, 60), (9 * 10**9, 3600)]
)
def test_a_scheduled_image_is_asked_for_at_its_time_or_within_the_hour(ahead_milliseconds: int, seconds: int) -> None:
    assert retry_after_seconds(pending(status=Status.SCHEDULED, process_at=NOW + ahead_milliseconds), NOW) == seconds


def test_an_unfinished_image_is_asked_for_in_a_second_and_one_that_has_ended_no_more() -> None:
    assert retry_after_seconds(processing(), NOW) == 1
    assert retry_after_seconds(pending(status=Status.EXPIRED), NOW) is None
