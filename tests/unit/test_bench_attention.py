"""What the benchmark of crops by attention goes by: free photographs, boxes of subjects, and shares that are kept."""

import tomllib

import pytest

from benchmarks.attention.__main__ import FOLDER, LIST, Photo, kept, photos
from darkroom.domain.recipes.recipes import VariantSpec

FREE = ("CC0-1.0", "CC-BY-", "CC-BY-SA-", "public domain")


def test_every_photograph_has_a_box_a_free_licence_and_an_author() -> None:
    entries = tomllib.loads(LIST.read_text())["photo"]
    assert sorted(f"{entry['name']}.jpg" for entry in entries) == sorted(
        path.name for path in (FOLDER / "photos").iterdir()
    )
    assert len(photos()) >= 60
    for entry in entries:
        left, top, right, bottom = entry["box"]
        assert 0 <= left < right <= 1 and 0 <= top < bottom <= 1, entry["name"]
        assert entry["licence"].startswith(FREE) and entry["author"] and entry["package"], entry["name"]


@pytest.mark.parametrize(
    ("gravity", "share"),
    [("west", 0.0), ("centre", 0.5), ("east", 1.0), ({"x": 0.7, "y": 0.1}, 1.0), ({"x": 0.4, "y": 0.1}, 0.0)],
)
def test_kept_is_the_share_of_the_box_that_is_in_the_crop(gravity: object, share: float) -> None:
    # Of 400×200 a square keeps half the width: in the middle from 0.25 to 0.75.
    spec = VariantSpec.model_validate({"name": "a", "width": 50, "height": 50, "fit": "cover", "gravity": gravity})
    assert kept(Photo(name="a", box=(0.65, 0.2, 0.85, 0.9)), spec, (400, 200)) == pytest.approx(share)
