"""Rows of images in the states that tests begin with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from darkroom.domain.images.image import (
    Attempt,
    Cause,
    Image,
    Source,
    Status,
)
from darkroom.domain.images.transitions import await_upload
from tests.support.fakes import World
from tests.support.fakes.pictures import jpeg
from tests.support.fakes.rows import accepted_image

NOW = 1_795_251_600_000
LEASE_UNTIL = NOW + 90_000
NOT_BEFORE = LEASE_UNTIL + 20_000
DUE_AT = NOW + 420_000
CAUSE = Cause(error_type="ZeroDivisionError", message="a bug", stack="Traceback")


def pending(**changes: object) -> Image:
    return replace(accepted_image(now=NOW), **changes)  # type: ignore[arg-type]


def processing(**changes: object) -> Image:
    return pending(
        **{
            "status": Status.PROCESSING,
            "attempt": 1,
            "lease_until": LEASE_UNTIL,
            "not_before": NOT_BEFORE,
            "claimed_by": "somebody",
            "attempts": (Attempt(run=1, number=1, request_id="r", started_at=NOW),),
            "due_at": DUE_AT,
            **changes,
        }
    )


def awaiting(**changes: object) -> Image:
    """An image whose upload has not arrived yet."""
    stated = Source(version_id="", sha256="s", size_bytes=1, media_type="application/octet-stream")
    return replace(await_upload(pending(source=stated), now=NOW), **changes)  # type: ignore[arg-type]


def developed(world: World, **upload: Any) -> str:
    """The id of an image of that world that is done."""
    image_id = world.submit(jpeg(), **upload).image.image_id
    world.deliver(world.lanes.sent[-1])
    assert world.row(image_id).status is Status.DONE
    return image_id
