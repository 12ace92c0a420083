"""Colour profiles: which are used, which are sRGB under another name, and which are ignored with a notice."""

import struct

import pytest
import pyvips
from PIL import ImageCms

from darkroom.imaging.colour import PROFILE_IGNORED, to_srgb

SRGB = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


def grid() -> pyvips.Image:
    return pyvips.Image.new_from_memory(bytes(range(240)), 10, 8, 3, "uchar").copy(interpretation="srgb")


def with_tag_type(profile: bytes, tag: bytes, kind: bytes) -> bytes:
    """The profile with the type of one of its tags changed."""
    changed = bytearray(profile)
    (tags,) = struct.unpack_from(">I", profile, 128)
    for index in range(tags):
        name, at = struct.unpack_from(">4sI", profile, 132 + 12 * index)
        if name == tag:
            changed[at : at + 4] = kind
    return bytes(changed)


def with_class(profile: bytes, kind: bytes) -> bytes:
    return profile[:12] + kind + profile[16:]


def test_srgb_under_any_name_costs_nothing_and_changes_nothing() -> None:
    image = grid()
    converted, notice = to_srgb(image, with_tag_type(SRGB, b"desc", b"text"))
    assert converted is image
    assert notice is None


@pytest.mark.parametrize(
    "profile",
    [
        b"",
        SRGB[:100],
        SRGB[:400],
        with_class(SRGB, b"link"),
        with_class(SRGB, b"abst"),
        with_tag_type(SRGB, b"cprt", b"mpet"),
        SRGB[:16] + b"CMYK" + SRGB[20:],
    ],
    ids=["empty", "cut in the header", "cut in the tags", "link", "abstract", "stages", "another space"],
)
def test_a_profile_that_is_broken_or_no_pictures_is_left_aside_with_a_notice(profile: bytes) -> None:
    image = grid()
    converted, notice = to_srgb(image, profile)
    assert notice == PROFILE_IGNORED
    assert converted.write_to_memory() == image.write_to_memory()
