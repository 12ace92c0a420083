"""What the benchmark of crops by attention goes by: free photographs, boxes of subjects, and shares that are kept."""

import tomllib

from benchmarks.attention.__main__ import FOLDER, LIST, photos

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
