"""Converts colours to sRGB with eight bits per channel, by the file's own profile if it has one."""

from __future__ import annotations

import io
import struct
from enum import Enum
from functools import lru_cache

import pyvips
from PIL import Image, ImageCms

PROFILE_IGNORED = "The embedded colour profile could not be used: the colours were read as sRGB."

_PROBE_STEPS = (0, 26, 51, 77, 102, 128, 153, 179, 204, 230, 255)


class _Verdict(Enum):
    BROKEN = "broken"
    SRGB = "srgb"
    OTHER = "other"


def to_srgb(image: pyvips.Image, icc_profile: bytes | None) -> tuple[pyvips.Image, str | None]:
    """The picture, which is in memory, in sRGB with 1 (grey) or 3 bands of eight bits, then its alpha unless that is
    opaque everywhere; a notice if its profile could not be used.

    The conversion uses relative colorimetric intent, as browsers do. A file without a profile is treated as sRGB, or,
    in CMYK, by libvips's default press profile.
    """
    stored, alpha = _split(image)
    colours = stored
    grey, notice = colours.bands == 1, None
    if icc_profile is not None:
        if grey and icc_profile[16:20] == b"RGB ":  # some programs write this into grey files
            colours = colours.bandjoin([colours, colours]).copy(interpretation="srgb")
        match _judged(icc_profile, {1: "L", 4: "CMYK"}.get(colours.bands, "RGB")):
            case _Verdict.OTHER:
                colours = _by_profile(colours, icc_profile)
            case _Verdict.BROKEN:
                # A broken profile costs its owner the exact colours, not the picture.
                notice = PROFILE_IGNORED
    if colours.interpretation == "cmyk":
        colours = colours.icc_transform("srgb", input_profile="cmyk", intent="relative")
    elif colours.format != "uchar":
        colours = colours.colourspace("b-w" if colours.bands == 1 else "srgb")
    if grey and colours.bands == 3:
        colours = colours[1]
    meaning = "b-w" if colours.bands == 1 else "srgb"
    if colours.interpretation != meaning:
        colours = colours.copy(interpretation=meaning)
    if alpha is not None:
        colours = image if colours is stored else colours.bandjoin(alpha)
    return colours, notice


def _split(image: pyvips.Image) -> tuple[pyvips.Image, pyvips.Image | None]:
    if not image.hasalpha():
        return image, None
    alpha = image[image.bands - 1]
    if alpha.format == "ushort":
        alpha = (alpha >> 8).cast("uchar")
    return image.extract_band(0, n=image.bands - 1), None if alpha.min() == 255 else alpha


def _by_profile(colours: pyvips.Image, icc_profile: bytes) -> pyvips.Image:
    tagged = colours.copy()
    tagged.set_type(pyvips.GValue.blob_type, "icc-profile-data", icc_profile)
    return tagged.icc_transform("srgb", embedded=True, intent="relative", depth=8)


_REMEMBERED_BYTES = 65_536
"""Results for smaller profiles are cached: those of cameras and phones are smaller, those of presses have megabytes."""


def _judged(profile: bytes, mode: str) -> _Verdict:
    return (_remembered if len(profile) <= _REMEMBERED_BYTES else _judge)(profile, mode)


@lru_cache(maxsize=64)
def _remembered(profile: bytes, mode: str) -> _Verdict:
    return _judge(profile, mode)


def _judge(profile: bytes, mode: str) -> _Verdict:
    """Whether the profile can be used for pictures of that mode, and whether it is sRGB under another name.

    Most photos carry sRGB, and converting them would be wasted work: a profile counts as sRGB if no colour of a grid
    over the whole cube moves by more than one level in 255. libvips itself takes a broken profile for sRGB and only
    warns.
    """
    if not _is_sound(profile):
        return _Verdict.BROKEN
    try:
        transform = ImageCms.buildTransform(
            ImageCms.ImageCmsProfile(io.BytesIO(profile)),
            ImageCms.createProfile("sRGB"),
            mode,
            "RGB",
            ImageCms.Intent.RELATIVE_COLORIMETRIC,
        )
    except (ImageCms.PyCMSError, OSError, ValueError):
        return _Verdict.BROKEN
    if mode != "RGB":
        return _Verdict.OTHER
    cube = bytes(step for r in _PROBE_STEPS for g in _PROBE_STEPS for b in _PROBE_STEPS for step in (r, g, b))
    moved = transform.apply(Image.frombytes("RGB", (len(_PROBE_STEPS) ** 3, 1), cube)).tobytes()
    return _Verdict.SRGB if max(abs(a - b) for a, b in zip(cube, moved, strict=True)) <= 1 else _Verdict.OTHER


_CLASSES = frozenset({b"scnr", b"mntr", b"prtr", b"spac"})


def _is_sound(profile: bytes) -> bool:
    """Whether the profile is of a class that pictures carry, and has no multi-process elements.

    Those (ICC.1:2022, 10.17) may chain any number of stages, and lcms runs a whole table through all of them: 150 kB
    took three seconds in a test. Profiles of photos and presses use matrices, curves and tables.
    """
    if len(profile) < 132 or profile[12:16] not in _CLASSES or profile[36:40] != b"acsp":
        return False
    (tags,) = struct.unpack_from(">I", profile, 128)
    if tags > 100 or 132 + 12 * tags > len(profile):
        return False
    places = (struct.unpack_from(">I", profile, 136 + 12 * index)[0] for index in range(tags))
    return all(profile[at : at + 4] != b"mpet" for at in places)
