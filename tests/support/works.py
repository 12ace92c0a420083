"""Work beside a finished image, as tests begin it and have it end."""

from __future__ import annotations

from typing import Any

import pytest

from darkroom.domain.images.image import Image
from darkroom.domain.images.order import order_of
from darkroom.operations.images.add_variants import Added, AddVariantsPorts, VariantsRequest, add_variants
from tests.support.fakes import World
from tests.support.faults import raising

HERO = '{"variants": [{"name": "hero", "width": 32, "format": "webp"}]}'


def add(world: World, image_id: str, recipe: str = HERO, **request: Any) -> Added:
    """A client asks for more variants."""
    stated = {"tenant_id": "default", "correlation_id": "r", **request}
    order = order_of(recipe=recipe)
    return add_variants(world.ports(AddVariantsPorts), VariantsRequest(image_id=image_id, order=order, **stated))


def work_off(world: World) -> Image:
    """A worker gets the latest message; returns the row afterwards."""
    world.deliver(world.lanes.sent[-1], f"receipt-{len(world.lanes.sent)}")
    return world.row(world.lanes.sent[-1].image_id)


def fail(world: World, monkeypatch: pytest.MonkeyPatch) -> Image:
    """All attempts that the latest message asks for fail; returns the row afterwards."""
    with monkeypatch.context() as broken:
        broken.setattr("darkroom.operations.images.transcode_image.developing", raising(ZeroDivisionError("a bug")))
        for attempt in range(5):
            world.deliver(world.lanes.sent[-1], f"failing-{attempt}")
            world.advance(300)
    return world.row(world.lanes.sent[-1].image_id)


def names(image: Image) -> list[str]:
    """Of its variants."""
    return [variant.name for variant in image.variants]
