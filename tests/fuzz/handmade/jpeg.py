"""JPEG by hand (ITU-T T.81): grey pictures whose entropy-coded data is all zeros, so any size gives a small file."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

SOI, EOI = b"\xff\xd8", b"\xff\xd9"
SOF0, SOF1, SOF2, SOF3, SOF5, SOF9, SOF10, SOF15 = 0xC0, 0xC1, 0xC2, 0xC3, 0xC5, 0xC9, 0xCA, 0xCF
DHT, RST0, SOS, DQT, DNL, DRI, APP0, APP1, APP2, COM = 0xC4, 0xD0, 0xDA, 0xDB, 0xDC, 0xDD, 0xE0, 0xE1, 0xE2, 0xFE


def segment(marker: int, payload: bytes = b"", *, length: int | None = None) -> bytes:
    """A marker segment; `length` is the false length that it claims, if any."""
    return struct.pack(">BBH", 0xFF, marker, len(payload) + 2 if length is None else length) + payload


def quantisation() -> bytes:
    """One table, the same divisor for all."""
    return segment(DQT, b"\x00" + b"\x10" * 64)


def huffman(*, progressive: bool = False) -> bytes:
    """Tables in which a zero bit means "no difference" (DC) and "end of block" (AC).

    In a progressive picture, the AC table's zero bit is the longest run of ends of blocks: 16,384 of them, and 14 more
    bits that lengthen it.
    """
    only_zero = b"\x01" + bytes(15)
    return segment(DHT, b"\x00" + only_zero + b"\x00") + segment(
        DHT, b"\x10" + only_zero + (b"\xe0" if progressive else b"\x00")
    )


def frame(
    width: int, height: int, *, process: int = SOF0, sampling: Sequence[int] = (0x11, 0x11, 0x11), precision: int = 8
) -> bytes:
    """A frame header; `sampling` has each component's factors, horizontal in the upper four bits."""
    components = b"".join(bytes((index + 1, factors, 0)) for index, factors in enumerate(sampling))
    return segment(process, struct.pack(">BHHB", precision, height, width, len(sampling)) + components)


def scan(components: Sequence[int], *, first: int = 0, last: int = 63, high: int = 0, low: int = 0) -> bytes:
    """A scan header of these components (numbered from 1) and their coefficients `first` to `last`."""
    chosen = b"".join(bytes((component, 0)) for component in components)
    return segment(SOS, bytes([len(components)]) + chosen + bytes((first, last, high << 4 | low)))


def blocks(width: int, height: int) -> int:
    """How many blocks of 8 by 8 pixels a component of that size has."""
    return -(-width // 8) * -(-height // 8)


def solid(width: int, height: int, *, components: int = 3, process: int = SOF0) -> bytes:
    """A complete valid grey baseline picture in one scan: two bits per block."""
    every = range(1, components + 1)
    head = SOI + quantisation() + frame(width, height, process=process, sampling=[0x11] * components) + huffman()
    return head + scan(every) + bytes(blocks(width, height) * components // 4 + 1) + EOI


def baseline_scans(width: int, height: int, count: int) -> bytes:
    """A baseline picture whose three components come in separate scans, over and over."""
    data = bytes(blocks(width, height) // 4 + 1)
    scans = b"".join(scan([index % 3 + 1]) + data for index in range(count))
    return SOI + quantisation() + frame(width, height) + huffman() + scans + EOI


def progressive_scans(width: int, height: int, count: int, *, components: int = 3) -> bytes:
    """A progressive picture in `count` scans that all carry zeros.

    The order is legal for as long as possible: DC first, then each component's AC by successive approximation, from the
    thirteenth bit down. Further scans refine the lowest bit again, which decoders only warn about.
    """
    every = range(1, components + 1)
    number = blocks(width, height)
    out = [SOI, quantisation(), frame(width, height, process=SOF2, sampling=[0x11] * components)]
    out += [huffman(progressive=True), scan(every, last=0), bytes(number * components // 8 + 1)]
    runs = bytes(number // 16384 * 15 // 8 + 4)
    levels = dict.fromkeys(every, 14)
    for index in range(count - 1):
        component = index % components + 1
        level = max(0, levels[component] - 1)
        first_pass = levels[component] == 14
        out += [scan([component], first=1, high=0 if first_pass else level + 1, low=level), runs]
        levels[component] = level
    return b"".join([*out, EOI])


def restarted(width: int, height: int, *, process: int = SOF0, refinements: int = 0) -> bytes:
    """A grey picture in three components, with a restart marker after every block.

    A progressive one (SOF2) has the AC of its components in `refinements` scans, in turn.
    """
    number = blocks(width, height)
    progressive = process == SOF2
    out = [SOI, quantisation(), frame(width, height, process=process), huffman(progressive=progressive)]
    out += [segment(DRI, b"\x00\x01"), scan((1, 2, 3), last=0 if progressive else 63), _with_restarts(b"\x00", number)]
    for index in range(refinements):
        low = 13 - index // 3
        out += [scan([index % 3 + 1], first=1, high=0 if low == 13 else low + 1, low=low)]
        out += [_with_restarts(b"\x00\x00", number)]
    return b"".join([*out, EOI])


def _with_restarts(block: bytes, count: int) -> bytes:
    eight = b"".join(block + bytes((0xFF, RST0 + number)) for number in range(8))
    return (eight * -(-count // 8))[: count * (len(block) + 2) - 2]


def tiled(strip: bytes, repeats: int) -> bytes:
    """The picture of `strip`, one row of blocks without subsampling, repeated `repeats` times downwards, in every scan.

    Its entropy-coded data is repeated after restart markers, so a file of any size and density is made as fast as it
    can be copied.
    """
    out = [SOI]
    width = 0
    for marker, at, end in segments(strip):
        piece = strip[at:end]
        if marker in (SOF0, SOF1, SOF2):
            height, width = struct.unpack_from(">HH", piece, 5)
            piece = piece[:5] + struct.pack(">H", height * repeats) + piece[7:]
        if marker == SOS:
            (length,) = struct.unpack_from(">H", piece, 2)
            head, data = piece[: 2 + length], piece[2 + length :]
            restart = segment(DRI, struct.pack(">H", -(-width // 8)))
            rows = (data + bytes((0xFF, RST0 + row % 8)) for row in range(repeats - 1))
            piece = b"".join([restart, head, *rows, data])
        out.append(piece)
    return b"".join(out)


def inserted(body: bytes, *pieces: bytes) -> bytes:
    """The file with these segments first."""
    return body[:2] + b"".join(pieces) + body[2:]


def segments(body: bytes) -> Iterator[tuple[int, int, int]]:
    """Every segment after the start: its marker, start and end; a scan's end includes its data."""
    at = 2
    while at + 2 <= len(body) and body[at] == 0xFF:
        marker = body[at + 1]
        if marker == 0xD9:
            yield marker, at, at + 2
            return
        if at + 4 > len(body):
            return
        end = at + 2 + int(struct.unpack_from(">H", body, at + 2)[0])
        if marker == SOS:
            end = _end_of_data(body, end)
        yield marker, at, min(end, len(body))
        at = end


def _end_of_data(body: bytes, at: int) -> int:
    while True:
        at = body.find(b"\xff", at)
        if at < 0 or at + 1 >= len(body):
            return len(body)
        if body[at + 1] == 0 or RST0 <= body[at + 1] < RST0 + 8:
            at += 2
            continue
        return at
