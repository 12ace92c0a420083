"""Placing a picture in a variant: scaled, cropped or padded, to whole pixels."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from darkroom.domain.recipes.recipes import VariantSpec
from darkroom.imaging.scaling.geometry import Placement, place


def placed(size: tuple[int, int], **spec: Any) -> Placement:
    return place(VariantSpec(name="one", **spec), *size)


@pytest.mark.parametrize(
    ("spec", "scaled", "size", "corner"),
    [
        ({"width": 200, "height": 200}, (200, 150), (200, 150), (0, 0)),
        ({"width": 200}, (200, 150), (200, 150), (0, 0)),
        ({"height": 150}, (200, 150), (200, 150), (0, 0)),
        ({"width": 800, "height": 800}, (400, 300), (400, 300), (0, 0)),
        ({"width": 800, "height": 800, "enlarge": True}, (800, 600), (800, 600), (0, 0)),
        ({"width": 100, "height": 100, "fit": "exact"}, (100, 100), (100, 100), (0, 0)),
        ({"width": 600, "height": 600, "fit": "exact"}, (300, 300), (300, 300), (0, 0)),
        ({"width": 600, "height": 600, "fit": "exact", "enlarge": True}, (600, 600), (600, 600), (0, 0)),
        ({"width": 150, "height": 150, "fit": "cover"}, (200, 150), (150, 150), (25, 0)),
        ({"width": 150, "height": 150, "fit": "cover", "gravity": "west"}, (200, 150), (150, 150), (0, 0)),
        ({"width": 150, "height": 150, "fit": "cover", "gravity": "southeast"}, (200, 150), (150, 150), (50, 0)),
        ({"width": 200, "height": 50, "fit": "cover", "gravity": "south"}, (200, 150), (200, 50), (0, 100)),
        ({"width": 600, "height": 600, "fit": "cover"}, (400, 300), (300, 300), (50, 0)),
        ({"width": 600, "height": 600, "fit": "cover", "enlarge": True}, (800, 600), (600, 600), (100, 0)),
        ({"width": 200, "height": 200, "fit": "contain"}, (200, 150), (200, 200), (0, -25)),
        ({"width": 200, "height": 200, "fit": "contain", "gravity": "north"}, (200, 150), (200, 200), (0, 0)),
        ({"width": 200, "height": 200, "fit": "contain", "gravity": "south"}, (200, 150), (200, 200), (0, -50)),
        ({"width": 500, "height": 300, "fit": "contain", "gravity": "east"}, (400, 300), (500, 300), (-100, 0)),
        ({"width": 600, "height": 600, "fit": "contain", "enlarge": True}, (600, 450), (600, 600), (0, -75)),
    ],
)
def test_each_fit_places_a_picture_of_400_by_300(
    spec: dict[str, Any], scaled: tuple[int, int], size: tuple[int, int], corner: tuple[int, int]
) -> None:
    placement = placed((400, 300), **spec)
    assert (placement.scaled, placement.size, (placement.left, placement.top)) == (scaled, size, corner)


@pytest.mark.parametrize(
    ("x", "left"), [(0.0, 0), (0.1, 0), (0.5, 25), (0.6, 45), (1.0, 50)], ids=["edge", "near", "middle", "right", "end"]
)
def test_a_focal_point_comes_as_near_to_the_middle_as_the_picture_reaches(x: float, left: int) -> None:
    spec = {"width": 150, "height": 150, "fit": "cover", "gravity": {"x": x, "y": 0.5}}
    assert placed((400, 300), **spec).left == left


def test_a_focal_point_shares_out_the_free_space_around_a_contained_picture() -> None:
    spec = {"width": 200, "height": 250, "fit": "contain", "gravity": {"x": 0.5, "y": 0.25}}
    assert placed((400, 300), **spec).top == -25


@given(
    size=st.tuples(st.integers(1, 16_383), st.integers(1, 16_383)),
    box=st.tuples(st.integers(1, 8192), st.integers(1, 8192)),
    fit=st.sampled_from(["inside", "cover", "contain", "exact"]),
    enlarge=st.booleans(),
)
def test_no_placement_is_empty_uncovered_or_unasked_larger(
    size: tuple[int, int], box: tuple[int, int], fit: str, enlarge: bool
) -> None:
    placement = placed(size, width=box[0], height=box[1], fit=fit, enlarge=enlarge)
    assert min(*placement.scaled, *placement.size) >= 1
    assert placement.size[0] <= box[0] and placement.size[1] <= box[1]
    if fit == "cover":
        right, bottom = placement.left + placement.size[0], placement.top + placement.size[1]
        assert placement.left >= 0 and right <= placement.scaled[0]
        assert placement.top >= 0 and bottom <= placement.scaled[1]
    if not enlarge:
        # Rounding may make one side half a pixel larger if the other is less than a pixel.
        assert placement.scaled[0] <= size[0] and placement.scaled[1] <= size[1]
