"""The preview of a crop is the crop: the page places a picture in a variant to the pixel as the engine does."""

from __future__ import annotations

import json
import random
from typing import Any, get_args

import pytest

from darkroom.domain.images.limits import Limits
from darkroom.domain.recipes.recipes import Compass, Recipe, VariantSpec
from darkroom.imaging.decode import open_original
from darkroom.imaging.edits import edited
from darkroom.imaging.scaling.geometry import place
from tests.page.visitor import Visitor
from tests.support.fakes.pictures import jpeg

pytestmark = pytest.mark.long

CASES = 5_000

_PLACES = """async (cases) => {
    const tree = new URL(".", document.querySelector("script[type=module]").src);
    const { place } = await import(new URL("screens/upload/placement.js", tree));
    return cases.map(([variant, width, height]) => {
        const { scaled, size, left, top } = place(variant, width, height);
        return [...scaled, ...size, left, top];
    });
}"""


def variants_and_pictures() -> list[tuple[dict[str, Any], int, int]]:
    """Variants of every fit, each with the sides of a picture: small ones too, where rounding shows."""
    dice = random.Random(7)

    def side(most: int) -> int:
        return dice.randint(1, dice.choice([9, 900, most]))

    cases: list[tuple[dict[str, Any], int, int]] = []
    for _ in range(CASES):
        fit = dice.choice(["inside", "cover", "contain", "exact"])
        point = {"x": dice.choice([0, 0.5, 1, round(dice.random(), 3)]), "y": round(dice.random(), 3)}
        variant = {
            "name": "a",
            "fit": fit,
            "width": side(8192),
            "height": side(8192),
            "enlarge": dice.random() < 0.3,
            "gravity": dice.choice([dice.choice(get_args(Compass.__value__)), point]),
        }
        if fit == "cover" and dice.random() < 0.1:
            variant["gravity"] = "attention"  # in the middle, until it is found
        if fit == "inside":
            variant[dice.choice(["width", "height"])] = None
        cases.append((variant, side(9000), side(9000)))
    return cases


def test_the_page_places_pictures_as_the_engine_does(visitor: Visitor) -> None:
    cases = variants_and_pictures()
    shown = visitor.tab().evaluate(_PLACES, cases)
    for (variant, width, height), placed in zip(cases, shown, strict=True):
        made = place(VariantSpec.model_validate_json(json.dumps(variant)), width, height)
        assert placed == [*made.scaled, *made.size, made.left, made.top], (variant, width, height)


_TURNS = """async ([edits, points, variant, size]) => {
    const tree = new URL(".", document.querySelector("script[type=module]").src);
    const module = (name) => import(new URL(`screens/upload/${name}.js`, tree));
    const { turnedPoint, turnedSize, turnedVariant, unturnedPoint } = await module("turn");
    const { place } = await module("placement");
    return points.map((point) => {
        const back = unturnedPoint(turnedPoint(point, edits), edits);
        const { width, height } = turnedSize(size, edits);
        const { scaled, left, top } = place(turnedVariant({ ...variant, gravity: point }, edits), width, height);
        return [back.x, back.y, ...scaled, left, top];
    });
}"""


@pytest.mark.parametrize("rotate", [0, 90, 180, 270])
def test_the_page_turns_the_point_that_a_crop_keeps_as_the_engine_does(visitor: Visitor, rotate: int) -> None:
    tab = visitor.tab()
    variant = {"name": "a", "width": 30, "height": 20, "fit": "cover"}
    points = [{"x": 0.1, "y": 0.2}, {"x": 0.75, "y": 1}]
    source = open_original(jpeg(70, 90), Limits())
    for flip in (None, "horizontal", "vertical", "both"):
        edits = {"rotate": rotate, "flip": flip}
        shown = tab.evaluate(_TURNS, [edits, points, variant, {"width": 70, "height": 90}])
        for point, (x, y, *placed) in zip(points, shown, strict=True):
            assert (round(x, 6), round(y, 6)) == (point["x"], point["y"])
            recipe = Recipe.model_validate({"variants": [{**variant, "gravity": point}], **edits})
            made, left, *_ = edited(source, recipe, max_aspect=200)
            upright = (made.height, made.width) if made.orientation >= 5 else (made.width, made.height)
            expected = place(left.variants[0], *upright)
            assert placed == [*expected.scaled, expected.left, expected.top], (edits, point)
