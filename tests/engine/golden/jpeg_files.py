"""JPEG files written from ITU-T T.81: any sampling, colour transform, restart interval and order of scans.

The quantiser is one, so only the rounding of the transform is lost.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from tests.engine.golden.colours import Array
from tests.fuzz.handmade.jpeg import segment

type Segment = tuple[int, bytes]

APP0, APP1, APP2, APP11, APP13, APP14, COM = 0xE0, 0xE1, 0xE2, 0xEB, 0xED, 0xEE, 0xFE

type Transform = Literal["ycc", "none", "ycck"]
"""What is done to the colours before they are coded: RGB → YCbCr, nothing, or CMYK → YCCK."""

YCC = np.array([[0.299, 0.587, 0.114], [-0.168736, -0.331264, 0.5], [0.5, -0.418688, -0.081312]])
"""ITU-T T.871, clause 7."""

JFIF: Segment = (APP0, b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0")


def adobe(transform: int) -> Segment:
    """Adobe's marker: 0 for unconverted colours, 1 for YCbCr, 2 for YCCK (ITU-T T.872, 6.5.3)."""
    return APP14, b"Adobe" + struct.pack(">HHHB", 100, 0, 0, transform)


def exif_segment(block: bytes) -> Segment:
    """EXIF."""
    return APP1, b"Exif\0\0" + block


def icc_segments(profile: bytes, pieces: int = 1) -> list[Segment]:
    """A colour profile, cut into that many segments (ICC.1:2022, B.4)."""
    size = -(-len(profile) // pieces)
    parts = [profile[index * size : (index + 1) * size] for index in range(pieces)]
    return [(APP2, b"ICC_PROFILE\0" + bytes([index + 1, pieces]) + part) for index, part in enumerate(parts)]


def jpeg(
    levels: Array,
    *,
    sampling: Sequence[tuple[int, int]] | None = None,
    transform: Transform = "ycc",
    segments: Sequence[Segment] = (JFIF,),
    restart_interval: int = 0,
    progressive: bool = False,
) -> bytes:
    """The file of `levels` 0..255, (rows, columns[, 1, 3 or 4]).

    `sampling` is (across, down) of each component, as in the frame header; all 1×1 by default. `progressive` sends
    the DC of all components first, then low and high bands of each. CMYK is written as given: invert it for Adobe.
    """
    planes = _planes(levels.astype(np.float64), transform)
    sampling = sampling or [(1, 1)] * len(planes)
    height, width = levels.shape[:2]
    widest, tallest = max(h for h, _ in sampling), max(v for _, v in sampling)
    across, down = -(-width // (8 * widest)), -(-height // (8 * tallest))
    blocks = [
        _blocks(_subsampled(plane, widest // h, tallest // v), across * h, down * v)
        for plane, (h, v) in zip(planes, sampling, strict=True)
    ]
    out = b"\xff\xd8" + b"".join(segment(marker, body) for marker, body in segments)
    out += segment(0xDB, b"\0" + b"\x01" * 64)
    components = b"".join(bytes([i + 1, h << 4 | v, 0]) for i, (h, v) in enumerate(sampling))
    out += segment(0xC2 if progressive else 0xC0, struct.pack(">BHHB", 8, height, width, len(planes)) + components)
    out += segment(0xC4, _DC.table(0x00) + _AC.table(0x10))
    if restart_interval:
        out += segment(0xDD, struct.pack(">H", restart_interval))
    everything = range(len(planes))
    # A scan of one component has no padding blocks: it has as many as the component itself (T.81, A.2.2).
    own = [
        all_blocks[: -(-height * v // (8 * tallest)), : -(-width * h // (8 * widest))]
        for all_blocks, (h, v) in zip(blocks, sampling, strict=True)
    ]
    together = blocks if len(planes) > 1 else own
    if not progressive:
        return out + _scan(together, sampling, everything, (0, 63), restart_interval) + b"\xff\xd9"
    out += _scan(together, sampling, everything, (0, 0), restart_interval)
    for band in ((1, 5), (6, 63)):
        for index in everything:
            out += _scan(own, sampling, [index], band, restart_interval)
    return out + b"\xff\xd9"


def _planes(levels: Array, transform: Transform) -> list[Array]:
    if levels.ndim == 2:
        return [levels]
    if transform == "ycc":
        levels = levels @ YCC.T + [0, 128, 128]
    elif transform == "ycck":  # the first three channels as if they were an inverted RGB; K unchanged
        levels = np.concatenate([(255 - levels[..., :3]) @ YCC.T + [0, 128, 128], levels[..., 3:]], axis=-1)
    return [levels[..., channel] for channel in range(levels.shape[2])]


def _subsampled(plane: Array, across: int, down: int) -> Array:
    height, width = plane.shape
    plane = np.pad(plane, ((0, -height % down), (0, -width % across)), mode="edge")
    tiles: Array = plane.reshape(plane.shape[0] // down, down, plane.shape[1] // across, across)
    return np.mean(tiles, axis=(1, 3))


def _blocks(plane: Array, columns: int, rows: int) -> Array:
    """The quantised coefficients, (rows of blocks, columns of blocks, 64), in zigzag order."""
    height, width = plane.shape
    padded = np.pad(plane, ((0, rows * 8 - height), (0, columns * 8 - width)), mode="edge") - 128
    tiles = padded.reshape(rows, 8, columns, 8).swapaxes(1, 2)
    coefficients = np.rint(_DCT @ tiles @ _DCT.T).astype(np.int64).reshape(rows, columns, 64)
    made: Array = np.clip(coefficients[..., _ZIGZAG], -1023, 1023)  # what the standard tables can code
    return made


def _scan(
    blocks: Sequence[Array],
    sampling: Sequence[tuple[int, int]],
    which: Sequence[int],
    band: tuple[int, int],
    restart_interval: int,
) -> bytes:
    header = bytes([len(which)]) + b"".join(bytes([index + 1, 0]) for index in which) + bytes([*band, 0])
    bits = _Bits()
    out = segment(0xDA, header)
    predictions = dict.fromkeys(which, 0)
    for count, unit in enumerate(_units(blocks, sampling, which)):
        if restart_interval and count and count % restart_interval == 0:
            out += bits.flushed() + bytes([0xFF, 0xD0 + (count // restart_interval - 1) % 8])
            predictions = dict.fromkeys(which, 0)
        for index, block in unit:
            if band[0] == 0:
                _DC.signed(bits, 0, int(block[0]) - predictions[index])
                predictions[index] = int(block[0])
            if band[1] > 0:
                _code_ac(bits, block[max(1, band[0]) : band[1] + 1])
    return out + bits.flushed()


def _units(blocks: Sequence[Array], sampling: Sequence[tuple[int, int]], which: Sequence[int]) -> Any:
    """The minimum coded units of a scan: interleaved by sampling if it has several components."""
    if len(which) == 1:
        (index,) = which
        yield from ([(index, block)] for row in blocks[index] for block in row)
        return
    h, v = sampling[which[0]]
    for y in range(blocks[which[0]].shape[0] // v):
        for x in range(blocks[which[0]].shape[1] // h):
            yield [
                (i, blocks[i][y * sampling[i][1] + down, x * sampling[i][0] + across])
                for i in which
                for down in range(sampling[i][1])
                for across in range(sampling[i][0])
            ]


def _code_ac(bits: _Bits, coefficients: Array) -> None:
    run = 0
    places = np.flatnonzero(coefficients)
    last = places[-1] if len(places) else -1
    for value in coefficients[: last + 1].tolist():
        if value == 0:
            run += 1
            continue
        while run > 15:
            _AC.code(bits, 0xF0)
            run -= 16
        _AC.signed(bits, run << 4, value)
        run = 0
    if last + 1 < len(coefficients):
        _AC.code(bits, 0)


class _Bits:
    """Packs bits into bytes, with a zero stuffed after every FF."""

    def __init__(self) -> None:
        self._text: list[str] = []

    def put(self, value: int, width: int) -> None:
        self._text.append(f"{value:0{width}b}")

    def flushed(self) -> bytes:
        """Everything that was put, padded with ones."""
        text = "".join(self._text)
        text += "1" * (-len(text) % 8)
        self._text = []
        return int(text, 2).to_bytes(len(text) // 8, "big").replace(b"\xff", b"\xff\0") if text else b""


class _Huffman:
    """A Huffman table by the number of codes of each length and the symbols in order (T.81, annex C)."""

    def __init__(self, counts: bytes, symbols: bytes) -> None:
        self._counts, self._symbols = counts, symbols
        self._codes: dict[int, tuple[int, int]] = {}
        code, at = 0, 0
        for length, count in enumerate(counts, start=1):
            for symbol in symbols[at : at + count]:
                self._codes[symbol] = (code, length)
                code += 1
            at += count
            code <<= 1

    def table(self, destination: int) -> bytes:
        """The definition for a DHT segment."""
        return bytes([destination]) + self._counts + self._symbols

    def code(self, bits: _Bits, symbol: int) -> None:
        """One symbol."""
        bits.put(*self._codes[symbol])

    def signed(self, bits: _Bits, prefix: int, value: int) -> None:
        """A symbol with the value's size in its lower bits, then the value (T.81, F.1.2.1)."""
        size = abs(value).bit_length()
        self.code(bits, prefix | size)
        if size:
            bits.put(value if value > 0 else value + (1 << size) - 1, size)


_STEPS = np.arange(8)
_DCT = np.sqrt(np.where(_STEPS == 0, 1 / 8, 1 / 4))[:, None] * np.cos((2 * _STEPS + 1) * _STEPS[:, None] * np.pi / 16)
_ZIGZAG = np.array(sorted(range(64), key=lambda i: (i // 8 + i % 8, i // 8 if (i // 8 + i % 8) % 2 else i % 8)))

# T.81, tables K.3 and K.5, which serve luminance and chrominance alike here.
_DC = _Huffman(bytes.fromhex("00010501010101010100000000000000"), bytes(range(12)))
_AC = _Huffman(
    bytes.fromhex("0002010303020403050504040000017d"),
    bytes.fromhex(
        "01020300041105122131410613516107227114328191a1082342b1c11552d1f02433627282090a161718191a25262728292a3435363738"
        "393a434445464748494a535455565758595a636465666768696a737475767778797a838485868788898a92939495969798999aa2a3a4a5"
        "a6a7a8a9aab2b3b4b5b6b7b8b9bac2c3c4c5c6c7c8c9cad2d3d4d5d6d7d8d9dae1e2e3e4e5e6e7e8e9eaf1f2f3f4f5f6f7f8f9fa"
    ),
)
