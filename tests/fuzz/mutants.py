"""Mutants: valid files of the corpus with a few changes, always the same for the same seed and number.

Some changes know nothing about the format; others know where its pieces and its numbers are, because a random change
seldom gets past a decoder's first check. PNG's checksums are always corrected, the size in a RIFF header every other
time.
"""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.fuzz.corpus import corpus
from tests.fuzz.handmade import gif, isobmff, jpeg, png, webp

_INTERESTING = (
    *(0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 31, 32, 63, 64, 100, 127, 128, 129, 200),
    *(254, 255, 256, 257, 511, 512, 1000, 1024),
    *(4096, 16383, 16384, 32767, 32768, 65500, 65535, 65536, 2**24 - 1, 2**24, 2**31 - 1, 2**31, 2**32 - 8, 2**32 - 1),
)
_MARKERS = bytes((*range(0xC0, 0xE3), 0xEE, 0xFE, 0x00, 0x01))
_KEPT = {"png": slice(0, 16), "jpeg": slice(0, 3), "gif": slice(0, 6), "webp": slice(8, 15)}
_BYTES_OF_LAYOUT = {"B": 1, "H": 2, "I": 4}

type Files = Callable[[], dict[str, bytes]]
type _Change = Callable[[random.Random, bytearray], None]


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One mutant: the corpus file that it comes from, and its bytes."""

    index: int
    source: str
    body: bytes


@dataclass(frozen=True)
class _Number:
    """A number in the format: its offset and encoding."""

    at: int
    layout: str


def source_of(index: int, *, seed: int, files: Files = corpus) -> str:
    """The name of the file that the mutant of that number is made of."""
    return random.Random(f"{seed}:{index}").choice(list(files()))


def mutant(index: int, *, seed: int, files: Files = corpus) -> Mutant:
    """The mutant of that number, of one of `files`."""
    chance = random.Random(f"{seed}:{index}")
    source = chance.choice(list(files()))
    original = files()[source]
    body = bytearray(original)
    for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 4, 8))):
        changes = _AWARE if chance.random() < 0.5 else _BLIND
        chance.choice(changes)(chance, body)
    if chance.random() < 0.95:  # decoders reject a file without its signature at once
        kept = _KEPT.get(_format(original), slice(4, 12))
        body[kept] = original[kept]
    mended = png.with_mended_crcs(bytes(body))
    if chance.random() < 0.5:
        mended = webp.with_mended_size(mended)
    return Mutant(index=index, source=source, body=mended)


# ── Changes that know nothing about the format ────────────────────────────────────────────────────────────────────────


def _place(chance: random.Random, body: bytearray) -> int:
    """Anywhere, and every other time near the start, where headers are."""
    return chance.randrange(min(len(body), 200) if chance.random() < 0.5 else len(body)) if body else 0


def _block(chance: random.Random, body: bytearray) -> slice:
    start = _place(chance, body)
    return slice(start, start + chance.choice((1, 2, 4, 8, 16, 64, 256, 1024)))


def _flip_bits(chance: random.Random, body: bytearray) -> None:
    for _ in range(chance.choice((1, 1, 1, 2, 8)) if body else 0):
        body[_place(chance, body)] ^= 1 << chance.randrange(8)


def _set_byte(chance: random.Random, body: bytearray) -> None:
    if body:
        body[_place(chance, body)] = chance.choice((0, 1, 0x7F, 0x80, 0xFE, 0xFF, chance.randrange(256)))


def _set_number(chance: random.Random, body: bytearray) -> None:
    _write(chance, body, _Number(_place(chance, body), chance.choice((">H", ">I", "<H", "<I"))))


def _copy_block(chance: random.Random, body: bytearray) -> None:
    block = body[_block(chance, body)]
    at = _place(chance, body)
    body[at : at + len(block)] = block


def _insert_block(chance: random.Random, body: bytearray) -> None:
    at = _place(chance, body)
    block = (
        body[_block(chance, body)]
        if chance.random() < 0.5
        else bytes([chance.randrange(256)]) * chance.randrange(1, 99)
    )
    body[at:at] = block


def _delete_block(chance: random.Random, body: bytearray) -> None:
    del body[_block(chance, body)]


def _splice(chance: random.Random, body: bytearray) -> None:
    other = corpus()[chance.choice(list(corpus()))]
    at = _place(chance, body)
    body[at:] = other[min(at, len(other)) :]


def _truncate(chance: random.Random, body: bytearray) -> None:
    del body[_place(chance, body) :]


def _noise(chance: random.Random, body: bytearray) -> None:
    block = _block(chance, body)
    body[block] = chance.randbytes(len(body[block]))


_BLIND: tuple[_Change, ...] = (
    *(_flip_bits, _flip_bits, _flip_bits, _set_byte, _set_byte, _set_number, _set_number),
    *(_copy_block, _insert_block, _delete_block, _splice, _truncate, _noise),
)


# ── Changes that know where the format's pieces and numbers are ───────────────────────────────────────────────────────


def _format(body: bytes | bytearray) -> str:
    """The format by the first bytes; anything unknown is treated as a file of boxes."""
    return next((name for name, signature in _SIGNATURES.items() if body.startswith(signature)), "boxes")


_SIGNATURES = {"png": png.SIGNATURE, "jpeg": jpeg.SOI, "webp": b"RIFF", "gif": b"GIF8"}


def _pieces(body: bytes) -> list[slice]:
    """The file's chunks, segments, blocks or boxes, as far as they can be parsed."""
    match _format(body):
        case "png":
            return [slice(at - 8, at + length + 4) for _, at, length in png.chunks(body)]
        case "jpeg":
            return [slice(start, end) for _, start, end in jpeg.segments(body)]
        case "webp":
            return [slice(at - 8, at + length + length % 2) for _, at, length in webp.chunks(body)]
        case "gif":
            return [slice(start, end) for start, end in gif.blocks(body)]
        case _:
            return [slice(at, at + size) for _, at, size in isobmff.boxes(body)]


def _numbers(body: bytes) -> list[_Number]:
    """Lengths, sizes, counts and flags of the format."""
    readers = {"png": _png_numbers, "jpeg": _jpeg_numbers, "webp": _webp_numbers, "gif": _gif_numbers}
    return list(readers.get(_format(body), _box_numbers)(body))


def _png_numbers(body: bytes) -> Iterator[_Number]:
    for name, at, length in png.chunks(body):
        yield _Number(at - 8, ">I")
        if name in (b"IHDR", b"acTL", b"fcTL", b"fdAT"):
            yield from (_Number(at + field, ">I") for field in range(0, min(length, 20) // 4 * 4, 4))
        if name == b"IHDR":
            yield from (_Number(at + 8 + field, "B") for field in range(5))


def _jpeg_numbers(body: bytes) -> Iterator[_Number]:
    for marker, start, end in jpeg.segments(body):
        yield from (_Number(start + 1, "B"), _Number(start + 2, ">H"))
        if marker in (jpeg.SOF0, jpeg.SOF1, jpeg.SOF2):
            yield from (_Number(start + 5, ">H"), _Number(start + 7, ">H"))
        if marker not in (jpeg.APP0, jpeg.APP1, jpeg.APP2, jpeg.COM):  # all fields that the decoder reads
            yield from (_Number(start + field, "B") for field in range(4, min(end - start, 24)))


def _webp_numbers(body: bytes) -> Iterator[_Number]:
    yield _Number(4, "<I")
    for name, at, length in webp.chunks(body):
        yield _Number(at - 4, "<I")
        if name in (b"VP8 ", b"VP8L", b"VP8X", b"ANMF", b"ANIM", b"ALPH"):
            yield from (_Number(at + field, "B") for field in range(min(length, 16)))


def _gif_numbers(body: bytes) -> Iterator[_Number]:
    yield from (_Number(6, "<H"), _Number(8, "<H"), *(_Number(at, "B") for at in (10, 11, 12)))
    for start, _ in gif.blocks(body):
        yield from (_Number(start + field, "<H") for field in (1, 3, 5, 7))
        yield from (_Number(start + field, "B") for field in (9, 10, 11, 12))


_NUMERIC_BOXES = (b"ispe", b"iloc", b"ipma", b"pitm", b"infe", b"iref", b"av1C", b"hvcC", b"pixi", b"irot", b"clap")


def _box_numbers(body: bytes) -> Iterator[_Number]:
    for name, at, size in isobmff.boxes(body):
        yield _Number(at, ">I")
        if name in _NUMERIC_BOXES:
            yield from (_Number(at + field, ">H") for field in range(8, min(size, 40), 2))


def _write(chance: random.Random, body: bytearray, number: _Number) -> None:
    size = _BYTES_OF_LAYOUT[number.layout[-1]]
    if number.at + size > len(body):
        return
    (old,) = struct.unpack_from(number.layout, body, number.at)
    new = chance.choice((old + 1, old - 1, old * 2, old // 2, old ^ 1 << chance.randrange(8 * size), *_INTERESTING))
    struct.pack_into(number.layout, body, number.at, new % 256**size)


def _change_number(chance: random.Random, body: bytearray) -> None:
    numbers = _numbers(bytes(body))
    if numbers:
        _write(chance, body, chance.choice(numbers))


def _rename_piece(chance: random.Random, body: bytearray) -> None:
    pieces = _pieces(bytes(body))
    if not pieces:
        return
    piece, other = chance.choice(pieces), chance.choice(pieces)
    kind = _format(body)
    if kind == "jpeg":
        body[piece.start + 1] = chance.choice(_MARKERS)
    elif kind != "gif":
        at = 0 if kind == "webp" else 4  # where a piece has its name
        body[piece.start + at : piece.start + at + 4] = body[other.start + at : other.start + at + 4]
    else:
        body[piece.start + 1] = chance.choice((0x01, 0xF9, 0xFE, 0xFF))


def _repeat_piece(chance: random.Random, body: bytearray) -> None:
    pieces = _pieces(bytes(body))
    if pieces:
        at = chance.choice(pieces).start
        body[at:at] = body[chance.choice(pieces)] * chance.choice((1, 1, 2, 20))


def _delete_piece(chance: random.Random, body: bytearray) -> None:
    pieces = _pieces(bytes(body))
    if pieces:
        del body[chance.choice(pieces)]


def _swap_pieces(chance: random.Random, body: bytearray) -> None:
    pieces = _pieces(bytes(body))
    if pieces:
        first, second = sorted((chance.choice(pieces), chance.choice(pieces)), key=lambda piece: int(piece.start))
        if first.stop <= second.start:
            body[first.start : second.stop] = body[second] + body[first.stop : second.start] + body[first]


def _take_piece(chance: random.Random, body: bytearray) -> None:
    """A piece of another file, most often of the same format."""
    kind = _format(body)
    others = [other for other in corpus().values() if _format(other) == kind or chance.random() < 0.05]
    other = chance.choice(others or [bytes(body)])
    pieces, mine = _pieces(other), _pieces(bytes(body))
    if pieces and mine:
        at = chance.choice(mine)
        body[at if chance.random() < 0.5 else slice(at.start, at.start)] = other[chance.choice(pieces)]


def _change_inside(chance: random.Random, body: bytearray) -> None:
    """Changes what is compressed in a PNG: its rows, or another chunk's content. Elsewhere, a piece's content."""
    pieces = _pieces(bytes(body))
    if not pieces:
        return
    piece = chance.choice(pieces)
    if _format(body) != "png":
        inside = body[piece]
        chance.choice(_BLIND)(chance, inside)
        body[piece] = inside
        return
    compressed = [
        slice(at + (9 if name == b"iCCP" else 0), at + length)
        for name, at, length in png.chunks(bytes(body))
        if name in (b"IDAT", b"iCCP")
    ]
    for place in compressed[:1] if chance.random() < 0.8 else compressed[-1:]:
        try:
            content = bytearray(zlib.decompress(bytes(body[place])))
        except zlib.error:
            return
        chance.choice(_BLIND)(chance, content)
        again = zlib.compress(content)
        start = place.start - (9 if body[place.start - 13 : place.start - 9] == b"iCCP" else 0) - 8
        struct.pack_into(">I", body, start, place.stop - start - 8 - (place.stop - place.start) + len(again))
        body[place] = again


_AWARE: tuple[_Change, ...] = (
    *(_change_number, _change_number, _change_number, _change_number, _change_inside, _change_inside, _change_inside),
    *(_rename_piece, _repeat_piece, _delete_piece, _swap_pieces, _take_piece, _take_piece),
)
