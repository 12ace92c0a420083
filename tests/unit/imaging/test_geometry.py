"""Placing a picture in a variant: scaled, cropped or padded, to whole pixels."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from darkroom.domain.recipes.recipes import VariantSpec
from darkroom.imaging.scaling.geometry import Placement, place


def placed(size: tuple[int, int], **spec: Any) -> Placement:
    return place(VariantSpec(name="one", **spec), *size)


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
