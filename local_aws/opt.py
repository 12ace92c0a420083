"""Puts the layers of a function over each other, as Lambda does in /opt."""

from pathlib import Path


def put_over(layer: Path, opt: Path) -> None:
    """Put links to the layer's content into `opt`: to whole folders if no earlier layer has the same one."""
    for entry in layer.iterdir():
        place = opt / entry.name
        if not (place.is_dir() and entry.is_dir()):
            place.unlink(missing_ok=True)
            place.symlink_to(entry)
            continue
        if place.is_symlink():
            earlier = place.readlink()
            place.unlink()
            place.mkdir()
            put_over(earlier, place)
        put_over(entry, place)
