"""Reads the orientation from EXIF (CIPA DC-008), and nothing else."""

from __future__ import annotations

import struct

_ORIENTATION, _SHORT, _LONG = 0x0112, 3, 4


def orientation_in(exif: bytes) -> int:
    """The orientation in the first directory of an EXIF block (a TIFF file); 1 if there is no valid one."""
    endian = {b"II": "<", b"MM": ">"}.get(exif[:2])
    if endian is None:
        return 1
    try:
        (directory,) = struct.unpack_from(f"{endian}I", exif, 4)
        (entries,) = struct.unpack_from(f"{endian}H", exif, directory)
        for index in range(min(entries, 512)):
            tag, kind, count = struct.unpack_from(f"{endian}HHI", exif, directory + 2 + 12 * index)
            if tag == _ORIENTATION and count == 1 and kind in (_SHORT, _LONG):
                layout = f"{endian}{'H' if kind == _SHORT else 'I'}"
                (value,) = struct.unpack_from(layout, exif, directory + 2 + 12 * index + 8)
                return value if 1 <= value <= 8 else 1
    except struct.error:
        return 1
    return 1
