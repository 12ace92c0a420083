"""Colour profiles that are garbage, belong elsewhere, or cost a minute: they may cost only exact colours."""

from __future__ import annotations

import functools
import random
import struct
import zlib
from collections.abc import Iterator, Mapping

from tests.fuzz.corpus import corpus
from tests.fuzz.handmade import icc, jpeg, png, webp
from tests.fuzz.hostile.case import DAMAGED, DEVELOPED, Case, case


def _jpeg_profile(profile: bytes, *, name: str = "jpeg-420", size: int = 65_519) -> bytes:
    """A valid JPEG with that profile, in as many segments as necessary."""
    parts = [profile[at : at + size] for at in range(0, len(profile), size)]
    segments = (_profile_segment(part, number, len(parts)) for number, part in enumerate(parts, 1))
    return jpeg.inserted(corpus()[name], *segments)


def _profile_segment(part: bytes, number: int, count: int) -> bytes:
    return jpeg.segment(jpeg.APP2, b"ICC_PROFILE\x00" + bytes((number & 255, count & 255)) + part)


def _png_profile(profile: bytes, *, name: str = "png-rgb") -> bytes:
    return png.inserted(corpus()[name], png.chunk(b"iCCP", b"profile\x00\x00" + zlib.compress(profile, 9)))


def _webp_profile(profile: bytes) -> bytes:
    return webp.webp(webp.extended(webp.ICC, 72, 56), webp.chunk(b"ICCP", profile), corpus()["webp-lossy"][12:])


def _with_tags(tags: Mapping[bytes, bytes]) -> bytes:
    return _png_profile(icc.profile(tags))


def cases() -> Iterator[Case]:
    """A bad profile may cost exact colours, but never the picture."""
    plain, good = corpus()["jpeg-420"], icc.profile()
    lab = icc.profile(space=b"Lab ")
    swapped = {**icc.MATRIX, b"rXYZ": icc.MATRIX[b"gXYZ"], b"gXYZ": icc.MATRIX[b"rXYZ"]}
    singular = {**icc.MATRIX, **dict.fromkeys((b"rXYZ", b"gXYZ", b"bXYZ"), icc.xyz(0, 0, 0))}
    long_curve = b"curv\0\0\0\0" + struct.pack(">I", 2**31)
    profiles = {
        "good": good,
        "nonsense": b"nonsense" * 40,
        "empty": b"",
        "one-byte": b"\x00",
        "header-only": good[:128],
        "half": good[: len(good) // 2],
        "ones": b"\xff" * 3000,
        "zeros": bytes(3000),
        "noise": random.Random(5).randbytes(5000),
        "claims-4-gigabytes": icc.profile(size=2**32 - 1),
        "claims-0-bytes": icc.profile(size=0),
        "claims-100-tags": icc.profile(count=100),
        "claims-all-tags": icc.profile(count=2**32 - 1),
        "no-tags": icc.profile({}),
        "grey": icc.profile(icc.GREY, space=b"GRAY"),
        "cmyk": icc.profile(space=b"CMYK"),
        "lab": lab,
        "unknown-space": icc.profile(space=b"\xff\xff\xff\xff"),
        "fifteen-colours": icc.profile(space=b"FCLR"),
        "device-link": icc.profile({**icc.MATRIX, b"A2B0": icc.table()}, kind=b"link", connection=b"RGB "),
        "abstract": icc.profile({**icc.MATRIX, b"A2B0": icc.table()}, kind=b"abst", space=b"Lab ", connection=b"Lab "),
        "named-colours": icc.profile({b"ncl2": bytes(100)}, kind=b"nmcl", connection=b"Lab "),
        "unknown-class": icc.profile(kind=b"\x00\x00\x00\x00"),
        "version-255": icc.profile(version=0xFF000000),
        "singular": icc.profile(singular),
        "swapped": icc.profile(swapped),
        "curve-of-gigabytes": icc.profile({**icc.MATRIX, b"rTRC": long_curve}),
        "gamma-0": icc.profile({**icc.MATRIX, b"rTRC": icc.gamma(0)}),
        "table": icc.profile({**icc.MATRIX, b"A2B0": icc.table()}, connection=b"Lab "),
        "table-of-1-point": icc.profile({**icc.MATRIX, b"A2B0": icc.table(points=1)}, connection=b"Lab "),
        "table-of-0-points": icc.profile({**icc.MATRIX, b"A2B0": icc.table(points=0)}, connection=b"Lab "),
        "table-of-4-inputs": icc.profile({**icc.MATRIX, b"A2B0": icc.table(inputs=4, points=9)}, connection=b"Lab "),
        "stages": icc.profile({**icc.MATRIX, b"D2B0": icc.stages(10), b"D2B1": icc.stages(10)}),
    }
    for name, profile in profiles.items():
        yield case(f"jpeg-profile-{name}", _jpeg_profile(profile), DEVELOPED)
        yield case(f"png-profile-{name}", _png_profile(profile), DEVELOPED, *DAMAGED)
        yield case(f"webp-profile-{name}", _webp_profile(profile), DEVELOPED)
        for kind in ("jpeg-grey", "jpeg-cmyk"):
            yield case(f"{kind}-profile-{name}", _jpeg_profile(profile, name=kind), DEVELOPED)
        for kind in ("png-grey-16", "png-palette", "png-rgba-16-interlaced"):
            yield case(f"{kind}-profile-{name}", _png_profile(profile, name=kind), DEVELOPED, *DAMAGED)
    # Valid, and a minute of work: see icc.stages.
    slow = {**icc.MATRIX, b"D2B0": icc.stages(8000), b"D2B1": icc.stages(8000)}
    yield case("jpeg-profile-8000-stages", lambda: _jpeg_profile(icc.profile(slow)), DEVELOPED, heavy=True)
    yield case("png-profile-8000-stages", lambda: _png_profile(icc.profile(slow)), DEVELOPED, *DAMAGED, heavy=True)
    grid = {**icc.MATRIX, b"A2B0": icc.table(points=170)}
    large = functools.partial(icc.profile, grid, connection=b"Lab ")
    yield case("jpeg-profile-large-table", lambda: _jpeg_profile(large()), DEVELOPED, heavy=True)
    yield case("webp-profile-large-table", lambda: _webp_profile(large()), DEVELOPED, heavy=True)
    larger = functools.partial(icc.profile, {**icc.MATRIX, b"A2B0": icc.table(points=255)}, connection=b"Lab ")
    yield case("png-profile-larger-table", lambda: _png_profile(larger()), DEVELOPED, *DAMAGED, heavy=True)
    # A cache of profiles must not retain their size.
    for number in range(100):
        weighty = {**icc.MATRIX, b"test": struct.pack(">I", number) * 950_000}
        made = functools.partial(_with_tags, weighty)
        yield case(f"png-profile-of-4-megabytes-{number}", made, DEVELOPED, heavy=True)
    tags = {b"t%03d" % number: icc.MATRIX[b"rTRC"] for number in range(999)}
    yield case("jpeg-profile-999-tags", _jpeg_profile(icc.profile({**icc.MATRIX, **tags})), DEVELOPED)
    # Profiles come in parts, which may lie about their number and order.
    parts = [good[at : at + 100] for at in range(0, len(good), 100)]
    count = len(parts)
    numbering = {
        "parts": range(1, count + 1),
        "parts-backwards": range(count, 0, -1),
        "parts-from-0": range(count),
        "parts-all-1": [1] * count,
        "parts-all-255": [255] * count,
    }
    for name, numbers in numbering.items():
        pieces = [_profile_segment(part, number, count) for part, number in zip(parts, numbers, strict=True)]
        yield case(f"jpeg-profile-{name}", jpeg.inserted(plain, *pieces), DEVELOPED)
    for claimed in (0, 1, count - 1, 255, 1000):
        pieces = [_profile_segment(part, number, claimed) for number, part in enumerate(parts, 1)]
        yield case(f"jpeg-profile-parts-claims-{claimed}", jpeg.inserted(plain, *pieces), DEVELOPED)
    cut = [_profile_segment(part, number, count) for number, part in enumerate(parts[:-2], 1)]
    yield case("jpeg-profile-parts-missing", jpeg.inserted(plain, *cut), DEVELOPED)
    pieces = [_profile_segment(bytes(60_000), number, 255) for number in range(1, 256)]
    yield case("jpeg-profile-of-15-megabytes", jpeg.inserted(plain, *pieces), DEVELOPED)
    yield case(
        "jpeg-profile-thousand-parts",
        jpeg.inserted(plain, *(_profile_segment(b"", n, 255) for n in range(1000))),
        DEVELOPED,
    )
