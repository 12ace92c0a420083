"""What the benchmark of crops by attention goes by: free photographs, boxes of subjects, and shares that are kept."""

from benchmarks.attention.__main__ import FOLDER, listed, photos

FREE = ("CC0-1.0", "CC-BY-", "CC-BY-SA-", "public domain")


def test_every_photograph_has_a_box_a_free_licence_and_an_author() -> None:
    assert sorted(f"{photo.name}.jpg" for photo in photos()) == sorted(
        path.name for path in (FOLDER / "photos").iterdir()
    )
    assert len(photos()) >= 60
    for entry, photo in zip(listed(), photos(), strict=True):
        left, top, right, bottom = photo.box
        assert 0 <= left < right <= 1 and 0 <= top < bottom <= 1, photo.name
        assert entry["licence"].startswith(FREE) and entry["author"] and entry["package"], photo.name
