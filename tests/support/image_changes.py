"""An image as it is accepted, claimed and done: what events are made of."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from darkroom.domain.images.claim import claim
from darkroom.domain.images.image import Image, Source, Variant, message_for
from darkroom.domain.images.transitions import complete
from darkroom.domain.images.works import output_key
from tests.support.fakes.rows import accepted_image, lease

NOW = 1_795_251_600_000
VARIANT = Variant(
    name="thumb",
    width=256,
    height=192,
    format="jpeg",
    size_bytes=9_000,
    sha256="s",
    key=f"outputs/{'0' * 26}/1/thumb.jpg",
)
SOURCE = Source(version_id="v", sha256="s", size_bytes=1_234, media_type="image/png")


def accepted(**stated: Any) -> Image:
    return accepted_image(now=NOW, source=SOURCE, **stated)


def claimed(image: Image) -> Image:
    decision: Any = claim(image, message_for(image), lease(now=NOW + 400_000_000))
    return decision.image  # type: ignore[no-any-return]


def done(image: Image) -> Image:
    made = replace(VARIANT, key=output_key(image, "thumb", "jpg"))
    return complete(image, (made,), notices=(), now=NOW + 2_000)
