"""ICC profiles by hand (ICC.1:2022): valid ones, absurd ones, and a valid one that costs a minute."""

from __future__ import annotations

import struct
from collections.abc import Mapping


def _s15f16(*values: float) -> bytes:
    return b"".join(struct.pack(">i", round(value * 65536)) for value in values)


def xyz(x: float, y: float, z: float) -> bytes:
    """A tag of type XYZ."""
    return b"XYZ \0\0\0\0" + _s15f16(x, y, z)


def text(value: str) -> bytes:
    """A tag of type multiLocalizedUnicode."""
    encoded = value.encode("utf-16be")
    return b"mluc\0\0\0\0" + struct.pack(">II2s2sII", 1, 12, b"en", b"US", len(encoded), 28) + encoded


def gamma(value: float) -> bytes:
    """A tag of type curve: one exponent."""
    return b"curv\0\0\0\0" + struct.pack(">IH", 1, round(value * 256))


_WHITE = xyz(0.9642, 1.0, 0.8249)

MATRIX: Mapping[bytes, bytes] = {
    b"desc": text("by hand"),
    b"cprt": text("none"),
    b"wtpt": _WHITE,
    b"rXYZ": xyz(0.436, 0.222, 0.014),
    b"gXYZ": xyz(0.385, 0.717, 0.097),
    b"bXYZ": xyz(0.143, 0.061, 0.714),
    b"rTRC": gamma(2.2),
    b"gTRC": gamma(2.2),
    b"bTRC": gamma(2.2),
}
"""The tags of a display's profile."""

GREY: Mapping[bytes, bytes] = {b"desc": text("grey"), b"cprt": text("none"), b"wtpt": _WHITE, b"kTRC": gamma(2.2)}


def profile(
    tags: Mapping[bytes, bytes] = MATRIX,
    *,
    space: bytes = b"RGB ",
    connection: bytes = b"XYZ ",
    kind: bytes = b"mntr",
    version: int = 0x04300000,
    size: int | None = None,
    count: int | None = None,
) -> bytes:
    """A profile; `size` and `count` (of tags) are the false values that it claims, if any."""
    table, body = b"", b""
    start = 132 + 12 * len(tags)
    for name, data in tags.items():
        table += name + struct.pack(">II", start + len(body), len(data))
        body += data + bytes(-len(data) % 4)
    head = struct.pack(
        ">I4sI4s4s4s", start + len(body) if size is None else size, b"none", version, kind, space, connection
    )
    head += struct.pack(">6H4s4s", 2026, 1, 1, 0, 0, 0, b"acsp", b"APPL") + bytes(20) + bytes(4)
    head += _s15f16(0.9642, 1.0, 0.8249)
    head += bytes(128 - len(head))
    return head + struct.pack(">I", len(tags) if count is None else count) + table + body


def stages(count: int) -> bytes:
    """A tag of type multiProcessElements: `count` stages, alternately three power curves and a matrix.

    A colour engine runs its table through all of them, 35,937 times.
    """
    segment = b"parf\0\0\0\0" + struct.pack(">HH4f", 0, 0, 1.01, 1, 0, 0)
    curve = b"curf\0\0\0\0" + struct.pack(">HH", 1, 0) + segment
    curves = b"cvst\0\0\0\0" + struct.pack(">HH", 3, 3) + struct.pack(">II", 36, len(curve)) * 3 + curve
    mixing = (1.0, 0.001, 0.0, 0.0, 1.0, 0.0, 0.001, 0.0, 1.0, 0.0, 0.0, 0.0)
    matrix = b"matf\0\0\0\0" + struct.pack(">HH12f", 3, 3, *mixing)
    places, body = b"", b""
    start = 16 + 8 * count
    for index in range(count):
        element = matrix if index % 2 else curves
        places += struct.pack(">II", start + len(body), len(element))
        body += element
    return b"mpet\0\0\0\0" + struct.pack(">HHI", 3, 3, count) + places + body


def table(*, inputs: int = 3, points: int = 33) -> bytes:
    """A tag of type lut8: a grid of `points` in each of `inputs` dimensions."""
    head = b"mft1\0\0\0\0" + bytes((inputs, 3, points, 0)) + _s15f16(1, 0, 0, 0, 1, 0, 0, 0, 1)
    ramp = bytes(range(256))
    return head + ramp * inputs + bytes(points**inputs * 3) + ramp * 3
