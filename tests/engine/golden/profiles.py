"""ICC profiles generated from the same numbers as `colours`: versions 2 and 4, curves of every kind."""

from __future__ import annotations

import struct
from itertools import product
from typing import Literal

import numpy as np

from tests.engine.golden.colours import D50_WHITE_XYZ, DOT_GAIN, INKS_LAB, PAPER_LAB, Array, Space

type CurveKind = Literal["table", "parametric", "gamma"]


def rgb(space: Space, *, curve: CurveKind = "table", gamma: float = 2.2, description: str = "") -> bytes:
    """A matrix profile of `space`; `parametric` makes it version 4, as phones write it, otherwise it is version 2."""
    version = 4 if curve == "parametric" else 2
    tone = {"table": lambda: _table(space), "parametric": lambda: _SRGB_PARAMETRIC, "gamma": lambda: _gamma(gamma)}[
        curve
    ]()
    colorants = space.to_xyz.T
    return _profile(
        b"mntr",
        b"RGB ",
        b"XYZ ",
        version,
        {
            b"desc": _text(description or space.name, version),
            b"cprt": _copyright(version),
            # Version 2 states the medium's own white here, and only absolute intents use it.
            b"wtpt": _xyz(D50_WHITE_XYZ if version == 4 else space.white_xyz),
            b"rXYZ": _xyz(colorants[0]),
            b"gXYZ": _xyz(colorants[1]),
            b"bXYZ": _xyz(colorants[2]),
            b"rTRC": tone,
            b"gTRC": tone,
            b"bTRC": tone,
        },
    )


def grey(gamma: float) -> bytes:
    """A grey profile with a plain power curve."""
    tags = {
        b"desc": _text(f"Grey gamma {gamma}", 2),
        b"cprt": _copyright(2),
        b"wtpt": _xyz(D50_WHITE_XYZ),
        b"kTRC": _gamma(gamma),
    }
    return _profile(b"mntr", b"GRAY", b"XYZ ", 2, tags)


def press() -> bytes:
    """A CMYK output profile whose table is the press of `colours.press_to_srgb`: Lab, 16 bits, two points per axis."""
    cover = np.arange(256) / 255
    curve = _words(cover**DOT_GAIN * 65535)
    corners = np.array(list(product((0.0, 1.0), repeat=4)))
    lab = PAPER_LAB + corners @ INKS_LAB
    # ICC.1:2022 10.10: the older 16-bit Lab encoding, in which 0xFF00 is L* 100 and 0x8000 is a* 0.
    table = _words((lab + np.array([0, 128, 128])) * [652.8, 256, 256])
    straight = _words(np.array([0, 65535]))
    lut = (
        b"mft2\0\0\0\0"
        + struct.pack(">BBBx", 4, 3, 2)
        + struct.pack(">9i", 65536, 0, 0, 0, 65536, 0, 0, 0, 65536)
        + struct.pack(">HH", 256, 2)
        + curve * 4
        + table
        + straight * 3
    )
    tags = {b"desc": _text("Made-up press", 2), b"cprt": _copyright(2), b"wtpt": _xyz(_PAPER_XYZ), b"A2B0": lut}
    return _profile(b"prtr", b"CMYK", b"Lab ", 2, tags)


_PAPER_XYZ = np.array([0.8430, 0.8744, 0.7250])
"""The measurement of white paper. Colours are relative to it: the table still says L* 100 for paper."""


def _profile(device: bytes, space: bytes, connection: bytes, version: int, tags: dict[bytes, bytes]) -> bytes:
    offset = 128 + 4 + 12 * len(tags)
    directory, body = struct.pack(">I", len(tags)), b""
    placed: dict[bytes, int] = {}
    for name, data in tags.items():
        if data not in placed:  # the three curves share one offset, as in most profiles
            placed[data] = offset + len(body)
            body += data + bytes(-len(data) % 4)
        directory += name + struct.pack(">II", placed[data], len(data))
    header = struct.pack(
        ">I4sI4s4s4s12s4s4sIIIQI12s4s44x",
        offset + len(body),
        b"\0" * 4,
        version << 24,
        device,
        space,
        connection,
        struct.pack(">6H", 2020, 1, 1, 0, 0, 0),
        b"acsp",
        b"\0" * 4,
        0,
        0,
        0,
        0,
        0,  # perceptual
        struct.pack(">3i", *_fixed(D50_WHITE_XYZ)),
        b"\0" * 4,
    )
    return header + directory + body


def _fixed(values: Array | list[float]) -> list[int]:
    return [round(float(value) * 65536) for value in values]


def _words(values: Array) -> bytes:
    return np.rint(values).astype(">u2").tobytes()


def _xyz(values: Array) -> bytes:
    return b"XYZ \0\0\0\0" + struct.pack(">3i", *_fixed(values))


def _gamma(exponent: float) -> bytes:
    return b"curv\0\0\0\0" + struct.pack(">IH", 1, round(exponent * 256)) + b"\0\0"


def _table(space: Space) -> bytes:
    points = np.linspace(0, 1, 1024)
    return b"curv\0\0\0\0" + struct.pack(">I", len(points)) + _words(space.decode(points) * 65535)


_SRGB_PARAMETRIC = b"para\0\0\0\0" + struct.pack(
    ">Hxx5i", 3, *_fixed([2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045])
)
"""ICC.1:2022 10.18, function type 3: the sRGB curve, which Display P3 shares."""


def _text(text: str, version: int) -> bytes:
    if version == 4:
        utf16 = text.encode("utf-16-be")
        return b"mluc\0\0\0\0" + struct.pack(">II2s2sII", 1, 12, b"en", b"US", len(utf16), 28) + utf16
    ascii_text = text.encode("ascii") + b"\0"
    return b"desc\0\0\0\0" + struct.pack(">I", len(ascii_text)) + ascii_text + bytes(4 + 4 + 2 + 1 + 67)


def _copyright(version: int) -> bytes:
    return _text("None", 4) if version == 4 else b"text\0\0\0\0None\0"
