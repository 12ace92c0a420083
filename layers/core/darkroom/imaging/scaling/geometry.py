"""Calculates a picture's place in a variant: the size it is scaled to, what is cropped, what is filled."""

from __future__ import annotations

from dataclasses import dataclass

from darkroom.domain.recipes.recipes import ATTENTION, FocalPoint, VariantSpec

ANCHORS: dict[str, tuple[float, float]] = {
    "northwest": (0.0, 0.0),
    "north": (0.5, 0.0),
    "northeast": (1.0, 0.0),
    "west": (0.0, 0.5),
    "centre": (0.5, 0.5),
    "east": (1.0, 0.5),
    "southwest": (0.0, 1.0),
    "south": (0.5, 1.0),
    "southeast": (1.0, 1.0),
    ATTENTION: (0.5, 0.5),  # until the point is found, which is after the picture's size is decided
}
"""How much of the free space is before the picture, across and down."""


@dataclass(frozen=True, kw_only=True)
class Placement:
    """The picture is scaled to `scaled` (width, height), and the variant is `size`, all in pixels.

    `left` and `top` are the position of the variant's corner in the scaled picture: positive if the picture is cropped,
    negative if the variant is larger and filled.
    """

    scaled: tuple[int, int]
    size: tuple[int, int]
    left: int = 0
    top: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether the variant is the scaled picture, neither cropped nor filled."""
        return self.scaled == self.size


def place(spec: VariantSpec, width: int, height: int) -> Placement:
    """How an upright picture of `width` by `height` pixels becomes the variant that `spec` asks for.

    Sides are rounded to whole pixels and are at least one.
    """
    match spec.fit:
        case "inside":
            scaled = _fitted(spec, width, height)
            return Placement(scaled=scaled, size=scaled)
        case "exact":
            box = _box(spec, width, height)
            return Placement(scaled=box, size=box)
        case "cover":
            box = _box(spec, width, height)
            scaled = _scaled(width, height, max(box[0] / width, box[1] / height))
            # Rounding must not leave the picture a pixel smaller than its box.
            scaled = (max(scaled[0], box[0]), max(scaled[1], box[1]))
            across, down = _anchor(spec.gravity, keep=True, scaled=scaled, box=box)
            return Placement(scaled=scaled, size=box, left=across, top=down)
        case "contain":
            scaled = _fitted(spec, width, height)
            across, down = _anchor(spec.gravity, keep=False, scaled=scaled, box=spec.box)
            return Placement(scaled=scaled, size=spec.box, left=across, top=down)


def _fitted(spec: VariantSpec, width: int, height: int) -> tuple[int, int]:
    """The whole picture inside the box."""
    scale = min(spec.box[0] / width, spec.box[1] / height)
    return _scaled(width, height, scale if spec.enlarge else min(scale, 1.0))


def _scaled(width: int, height: int, scale: float) -> tuple[int, int]:
    return max(1, round(width * scale)), max(1, round(height * scale))


def _box(spec: VariantSpec, width: int, height: int) -> tuple[int, int]:
    """The box of `cover` and `exact`: shrunk in its own shape until nothing is enlarged, unless `enlarge` asks for
    that."""
    if spec.enlarge:
        return spec.box
    return _scaled(*spec.box, min(1.0, width / spec.box[0], height / spec.box[1]))


def _anchor(gravity: str | FocalPoint, *, keep: bool, scaled: tuple[int, int], box: tuple[int, int]) -> tuple[int, int]:
    """The position of the box's corner in the scaled picture.

    A compass point names the side that is kept, or to which the picture moves. A focal point comes as near to the
    middle of the box as the picture allows (`cover`), or gives the share of the free space before the picture.
    """
    free = (scaled[0] - box[0], scaled[1] - box[1])
    if isinstance(gravity, str):
        x, y = ANCHORS[gravity]
        return round(free[0] * x), round(free[1] * y)
    if not keep:
        return round(free[0] * gravity.x), round(free[1] * gravity.y)
    left = round(gravity.x * scaled[0] - box[0] / 2)
    top = round(gravity.y * scaled[1] - box[1] / 2)
    return min(max(left, 0), free[0]), min(max(top, 0), free[1])
