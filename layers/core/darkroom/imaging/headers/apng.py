"""APNG (W3C Portable Network Graphics, third edition, 11.3.6): which of a PNG's chunks are an animation's frames."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import NamedTuple

from darkroom.imaging.headers.chunks import chunks
from darkroom.imaging.headers.refusals import undecodable

_SIGNATURE = b"\x89PNG\r\n\x1a\n"

_SHARED_BYTES = {b"PLTE": 768, b"tRNS": 256}
"""The chunks that every frame needs, and the most bytes that they can have: 256 colours, and their alphas."""


class FrameControl(NamedTuple):
    """A frame's place on the canvas, its time as a fraction of a second, and what happens after and before it."""

    width: int
    height: int
    left: int
    top: int
    delay: int
    delay_parts: int
    disposal: int
    blend: int


class FrameChunks:
    """A PNG's frames, by its chunks, which `take` receives in their order.

    Nothing is an animation because it says so: a frame has a control chunk, and `claimed` frames are shown, as browsers
    do. The default picture is a frame only if a control chunk comes before it. A PNG without frames is a still.
    """

    def __init__(self) -> None:
        self.claimed = self.plays = 0
        self._controls: list[FrameControl] = []
        self._pictures: list[list[memoryview]] = []
        self._default_controls: int | None = None
        """How many control chunks came before the default picture, once it has begun."""

    def take(self, name: bytes, data: memoryview, length: int) -> None:
        """Reads a chunk; `data` is what the file has of its `length`."""
        if name == b"IDAT":
            if self._default_controls is None:
                self._default_controls = len(self._controls)
            if self._default_controls == len(self._controls) == 1:
                self._pictures[0].append(data)
        elif name == b"acTL" and length == 8 and self._default_controls is None and self.claimed == 0:
            claimed, plays = struct.unpack(">II", data)
            if claimed < 1 << 31:
                self.claimed, self.plays = claimed, plays
        elif name == b"fcTL" and length == 26:
            self._controls.append(FrameControl(*struct.unpack(">IIIIHHBB", data[4:])))
            self._pictures.append([])
        elif name == b"fdAT" and length >= 4 and self._controls:
            self._pictures[-1].append(data[4:])

    @property
    def count(self) -> int:
        """How many frames there are, of those that are claimed."""
        return min(self.claimed, len(self._controls))  # guard: animation-apng-unclaimed-frames

    @property
    def is_read(self) -> bool:
        """Whether all that comes now belongs to no frame."""
        return 0 < self.claimed < len(self._controls)

    @property
    def hides_default(self) -> bool:
        """Whether there are frames, and the default picture is none of them."""
        return self.count > 0 and self._default_controls == 0

    def frame(self, index: int, canvas: tuple[int, int]) -> tuple[FrameControl, list[memoryview]]:
        """A frame and its data. Raises Rejected (`undecodable`) if it has none, or lies outside the canvas."""
        control, picture = self._controls[index], self._pictures[index]
        if not picture or 0 in (control.width, control.height):
            raise undecodable(f"frame {index + 1} has no picture")
        if control.left + control.width > canvas[0] or control.top + control.height > canvas[1]:
            raise undecodable(f"frame {index + 1} lies outside the canvas")
        return control, picture


def shared_chunks(body: bytes) -> dict[bytes, bytes]:
    """The chunks that every frame needs. Decoders ignore those that come after the first picture."""
    shared: dict[bytes, bytes] = {}
    for name, at, length in chunks(body, 8, ">I4s", trailer=4):
        if name == b"IDAT":  # guard: animation-apng-shared-chunk-order
            break
        if name in _SHARED_BYTES:
            # guard: animation-apng-shared-chunk-once, animation-apng-shared-chunk-size
            if name in shared or length > _SHARED_BYTES[name]:
                raise undecodable(f"its {name.decode()} chunk is too long, or one of two")
            shared[name] = body[at : at + length]
    return shared


def still_png(
    body: bytes, control: FrameControl, shared: dict[bytes, bytes], picture: Sequence[memoryview], *, ended: bool
) -> bytes:
    """A PNG of one frame of `body`. Without an end its decoder takes missing data for what it is."""
    header = struct.pack(">II", control.width, control.height) + body[24:29]
    pieces = [
        _SIGNATURE,
        *_chunk(b"IHDR", header),
        *(piece for name, data in shared.items() for piece in _chunk(name, data)),
        *_chunk(b"IDAT", *picture),
        *(_chunk(b"IEND") if ended else ()),
    ]
    return b"".join(pieces)


def _chunk(name: bytes, *pieces: bytes | memoryview) -> Iterator[bytes | memoryview]:
    yield struct.pack(">I4s", sum(map(len, pieces)), name)
    yield from pieces
    yield struct.pack(">I", reduce(lambda check, piece: zlib.crc32(piece, check), pieces, zlib.crc32(name)))
