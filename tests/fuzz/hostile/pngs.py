"""PNGs that are too large, come in too many pieces, have an absurd header, or contain text bombs."""

from __future__ import annotations

import functools
import math
import random
import struct
import zlib
from collections.abc import Iterator

from PIL import Image

from tests.fuzz.corpus import corpus, picture
from tests.fuzz.handmade import exif, png
from tests.fuzz.hostile.case import (
    DAMAGED,
    DEVELOPED,
    FLOODED,
    LIMITS,
    NEARLY_ALL_BYTES,
    SIDE,
    TOO_LARGE,
    WITHIN_MEMORY,
    Case,
    case,
    flooded,
)


def cases() -> Iterator[Case]:
    """All of them."""
    yield from _large()
    yield from _odd()
    yield from _texts()
    yield from _animations()


def _large() -> Iterator[Case]:
    within = WITHIN_MEMORY
    kinds = (
        ("grey-1", png.GREY, 1),
        ("grey-alpha", png.GREY_ALPHA, 8),
        ("palette", png.PALETTE, 8),
        ("rgb", png.RGB, 8),
        ("rgba", png.RGBA, 8),
        ("rgb-16", png.RGB, 16),
        ("rgba-16", png.RGBA, 16),
    )
    for name, colour, depth in kinds:
        # As large as the limits on pixels and on inflated bytes allow.
        pixel_bytes = max(1, png.CHANNELS[colour] * depth // 8)
        side = math.isqrt(min(LIMITS.max_pixels, LIMITS.max_png_bytes // pixel_bytes))
        for interlace in (0, 1):
            label = f"{name}{'-interlaced' * interlace}"
            solid = functools.partial(png.solid, colour=colour, depth=depth, interlace=interlace, row_filter=4)
            yield case(f"png-52mp-{label}", functools.partial(solid, SIDE, SIDE), *within, heavy=True)
            yield case(f"png-largest-{label}", functools.partial(solid, side, side), *within, heavy=True)
            dense = functools.partial(_dense_png, side, colour, depth, interlace=interlace)
            yield case(f"png-largest-dense-{label}", dense, *within, heavy=True)
    # A separate transparency chunk turns any picture into one of four channels.
    for name, colour, alpha in (("grey", png.GREY, 2), ("palette", png.PALETTE, 256), ("rgb", png.RGB, 6)):
        for interlace in (0, 1):
            keyed = functools.partial(_keyed, colour, alpha, interlace=interlace)
            yield case(f"png-52mp-{name}-key{'-interlaced' * interlace}", keyed, *within, heavy=True)
    yield case("png-16mp-interlaced", lambda: png.solid(4000, 4000, colour=png.RGBA, interlace=1), *within, heavy=True)
    nothing = png.chunk(b"IDAT", zlib.compress(b"\x00"))
    for width, height in ((2**31 - 1, 2**31 - 1), (30000, 30000), (7216, 7216), (2**31 - 1, 1), (60000, 1), (1, 60000)):
        yield case(f"png-claims-{width}x{height}", png.png(png.header(width, height), nothing), *TOO_LARGE)
    for width, height in ((60000, 1), (1, 60000), (65501, 328), (201, 1)):
        yield case(f"png-{width}x{height}", png.solid(width, height), *TOO_LARGE)
    for width, height in ((65500, 328), (328, 65500), (200, 1), (1, 1)):
        yield case(f"png-{width}x{height}", png.solid(width, height), DEVELOPED)
    yield case("png-52mp-of-nothing", png.png(png.header(SIDE, SIDE), nothing), *DAMAGED, heavy=True)
    bomb = functools.partial(png.solid, 30000, 30000, colour=png.GREY, depth=1)
    yield case("png-bomb-900mp", bomb, *TOO_LARGE, heavy=True)


def _keyed(colour: int, alpha_bytes: int, *, interlace: int) -> bytes:
    body = png.solid(SIDE, SIDE, colour=colour, interlace=interlace, row_filter=4)
    at = body.index(b"IDAT") - 4
    return body[:at] + png.chunk(b"tRNS", bytes(alpha_bytes)) + body[at:]


def _dense_png(side: int, colour: int, depth: int, *, interlace: int = 0) -> bytes:
    """Rows of short matches, the most expensive for an inflater, up to nearly the maximum size; then zeros."""
    noise = random.Random(depth)
    words = [noise.randbytes(noise.randrange(3, 30)) for _ in range(300)]
    left, checksum, streams = NEARLY_ALL_BYTES - 500_000, 1, []  # half a megabyte is left for the zeros
    for row_bytes, count in png.rows(side, side, depth=depth, colour=colour, interlace=interlace):
        rows = bytearray(b"".join(noise.choice(words) for _ in range(64 * row_bytes // 10)))[: 64 * row_bytes]
        rows[::row_bytes] = b"\x04" * 64
        # Compressed once: after a full flush the same bytes stand for the same rows again.
        block, blank = _flushed(rows), _flushed(bytes(64 * row_bytes))
        repeats = min(count // 64, left // len(block))
        left -= repeats * len(block)
        for _ in range(repeats):
            checksum = zlib.adler32(rows, checksum)
        empty, rest = divmod(count - 64 * repeats, 64)
        for part in (*[bytes(64 * row_bytes)] * empty, bytes(rest * row_bytes)):
            checksum = zlib.adler32(part, checksum)
        streams += [block * repeats, blank * empty, _flushed(bytes(rest * row_bytes))]
    data = b"\x78\x9c" + b"".join(streams) + b"\x03\x00" + struct.pack(">I", checksum)
    header = png.header(side, side, depth=depth, colour=colour, interlace=interlace)
    return png.png(header, *png.palette(colour), png.chunk(b"IDAT", data))


def _flushed(data: bytes | bytearray) -> bytes:
    compressor = zlib.compressobj(6, wbits=-15)
    return compressor.compress(data) + compressor.flush(zlib.Z_FULL_FLUSH)


def _odd() -> Iterator[Case]:
    def rows(width: int, height: int, pixel: int = 3) -> bytes:
        return png.chunk(b"IDAT", zlib.compress((b"\x00" + bytes(width * pixel)) * height))

    idat = rows(64, 48)
    for width, height in ((0, 48), (64, 0), (0, 0), (2**31, 48), (64, 2**31), (2**32 - 1, 2**32 - 1)):
        yield case(f"png-size-{width}x{height}", png.png(png.header(width, height), idat), *DAMAGED, *TOO_LARGE)
    for depth, colour in ((3, 2), (0, 2), (255, 2), (16, 3), (1, 2), (4, 6), (8, 1), (8, 5), (8, 255), (32, 0)):
        yield case(
            f"png-depth-{depth}-colour-{colour}",
            png.png(png.header(64, 48, depth=depth, colour=colour), idat),
            *DAMAGED,
        )
    yield case("png-interlace-2", png.png(png.header(64, 48, interlace=2), idat), *DAMAGED)
    yield case("png-interlace-255", png.png(png.header(64, 48, interlace=255), idat), *DAMAGED)
    yield case("png-compression-1", png.png(png.header(64, 48, compression=1), idat), *DAMAGED)
    header = png.header(64, 48)
    yield case("png-no-header", png.png(idat), *DAMAGED)
    yield case("png-late-header", png.png(idat, header), *DAMAGED)
    yield case("png-two-headers", png.png(header, png.header(30000, 30000), idat), *DAMAGED, *TOO_LARGE)
    for size in (0, 12, 14, 1000):
        fields = struct.pack(">IIBBBBB", 64, 48, 8, 2, 0, 0, 0) + bytes(1000)
        yield case(f"png-header-of-{size}", png.png(png.chunk(b"IHDR", fields[:size]), idat), *DAMAGED, *TOO_LARGE)
    for length in (2**31 - 1, 2**31, 2**32 - 1, 2**32 - 12, 1_000_000, 3):
        yield case(f"png-data-of-{length}", png.png(header, png.chunk(b"IDAT", bytes(50), length=length)), *DAMAGED)
        odd = png.png(header, png.chunk(b"teSt", bytes(50), length=length), idat)
        yield case(f"png-chunk-of-{length}", odd, *DAMAGED)
    yield case("png-no-data", png.png(header), *DAMAGED)
    yield case("png-empty-data", png.png(header, png.chunk(b"IDAT")), *DAMAGED)
    yield case("png-empty-data-many", png.png(header, png.chunk(b"IDAT") * 1000, idat), DEVELOPED, *DAMAGED)
    yield case("png-half-data", png.png(header, rows(64, 24)), *DAMAGED)
    yield case("png-noise", png.png(header, png.chunk(b"IDAT", random.Random(1).randbytes(5000))), *DAMAGED)
    noise = zlib.compress(random.Random(2).randbytes(48 * 193))
    yield case("png-filters-of-noise", png.png(header, png.chunk(b"IDAT", noise)), DEVELOPED, *DAMAGED)
    body = zlib.compress((b"\x00" + bytes(64 * 3)) * 48)
    single = b"".join(png.chunk(b"IDAT", body[at : at + 1]) for at in range(len(body)))
    yield case("png-data-byte-by-byte", png.png(header, single), DEVELOPED)
    yield case("png-large-data-byte-by-byte", _png_byte_by_byte, *FLOODED, heavy=True)
    yield case("png-more-data-than-rows", _more_data_than_rows, DEVELOPED, *DAMAGED, heavy=True)
    two = png.png(header, idat, png.chunk(b"tEXt", b"a\x00b"), idat)
    yield case("png-data-in-two-places", two, DEVELOPED, *DAMAGED)
    palette = png.header(64, 48, colour=png.PALETTE)
    indices = png.chunk(b"IDAT", zlib.compress((b"\x00" + b"\xff" * 64) * 48))
    yield case("png-no-palette", png.png(palette, indices), *DAMAGED)
    for size in (0, 1, 3, 4, 767, 769, 3000):
        table = png.chunk(b"PLTE", bytes(size))
        yield case(f"png-palette-of-{size}", png.png(palette, table, indices), DEVELOPED, *DAMAGED)
        alpha = png.chunk(b"tRNS", bytes(size))
        odd = png.png(palette, png.chunk(b"PLTE", bytes(6)), alpha, indices)
        yield case(f"png-transparency-of-{size}", odd, DEVELOPED, *DAMAGED)
    plain = corpus()["png-rgb"]
    yield case("png-unknown-critical", png.inserted(plain, png.chunk(b"TEST")), DEVELOPED, *DAMAGED)
    wrong_crc = bytearray(png.solid(64, 48))
    wrong_crc[-20] ^= 1
    yield case("png-wrong-crc", bytes(wrong_crc), DEVELOPED, *DAMAGED)
    yield case("png-no-end", png.solid(64, 48)[:-12], DEVELOPED, "truncated")  # no pixel is missing
    for name in (b"gAMA", b"cHRM", b"sBIT", b"pHYs", b"bKGD", b"hIST", b"sRGB", b"cICP", b"sPLT", b"tIME", b"mDCV"):
        label = name.decode().lower()
        for size in (0, 1, 4, 32, 100_000):
            yield case(
                f"png-{label}-of-{size}", png.inserted(plain, png.chunk(name, b"\xff" * size)), DEVELOPED, *DAMAGED
            )
            yield case(
                f"png-{label}-of-{size}-zeros", png.inserted(plain, png.chunk(name, bytes(size))), DEVELOPED, *DAMAGED
            )


def _more_data_than_rows() -> bytes:
    return png.png(png.header(64, 48), png.chunk(b"IDAT", zlib.compress(bytes(500_000_000), 9)))


def _png_byte_by_byte() -> bytes:
    data = zlib.compress(b"".join(b"\x00" + row for row in _rows(picture(900, 700, noise=255))), 0)
    return png.png(png.header(900, 700), b"".join(png.chunk(b"IDAT", data[at : at + 1]) for at in range(len(data))))


def _rows(image: Image.Image) -> Iterator[bytes]:
    stride = image.width * len(image.getbands())
    pixels = image.tobytes()
    for at in range(0, len(pixels), stride):
        yield pixels[at : at + stride]


def _texts() -> Iterator[Case]:
    """Compressed texts and profiles that are bombs, and 25 MB of the smallest chunks."""
    ends = (DEVELOPED, *DAMAGED)
    plain = corpus()["png-rgb"]
    bomb = zlib.compress(bytes(8_000_000), 9)
    yield case("png-ztxt-bombs", png.inserted(plain, png.chunk(b"zTXt", b"a\x00\x00" + bomb) * 100), *ends)
    international = [png.chunk(b"iTXt", b"k%d\x00\x01\x00\x00\x00" % number + bomb) for number in range(100)]
    yield case("png-itxt-bombs", png.inserted(plain, *international), *ends)
    for name in (b"zTXt", b"iCCP"):
        label = name.decode().lower()
        yield case(f"png-{label}-bomb", functools.partial(_with_half_a_gigabyte, name), *ends, heavy=True)
    yield case("png-iccp-bombs", png.inserted(plain, png.chunk(b"iCCP", b"a\x00\x00" + bomb) * 100), *ends)
    yield case("png-iccp-garbage", png.inserted(plain, png.chunk(b"iCCP", b"a\x00\x00" + bytes(100))), *ends)
    yield case("png-iccp-no-name", png.inserted(plain, png.chunk(b"iCCP", b"\xff" * 200)), *ends)
    for name in (b"teSt", b"tEXt", b"zTXt", b"iTXt", b"IDAT", b"fdAT", b"eXIf"):
        data = b"a\x00b" if name == b"tEXt" else b""
        flood = flooded(plain[:33], png.chunk(name, data), plain[33:])
        yield case(f"png-flood-{name.decode().lower()}", flood, *FLOODED, heavy=True)
    entries = [exif.entry(0x010E, exif.ASCII, 1, 8)] * 512
    pieces = {
        "iccp-bombs": png.chunk(b"iCCP", b"a\x00\x00" + zlib.compress(bytes(4_000_000), 9)),
        "directories": png.chunk(b"eXIf", exif.exif(exif.directory(entries))),
    }
    for label, piece in pieces.items():
        yield case(f"png-flood-{label}", flooded(plain[:33], piece, plain[33:]), *FLOODED, heavy=True)
    yield case("png-some-texts", png.inserted(plain, png.chunk(b"tEXt", b"a\x00b") * 100), DEVELOPED)


def _with_half_a_gigabyte(name: bytes) -> bytes:
    return png.inserted(corpus()["png-rgb"], png.chunk(name, b"a\x00\x00" + zlib.compress(bytes(500_000_000), 9)))


def _animations() -> Iterator[Case]:
    def control(frames: int, *, plays: int = 0) -> bytes:
        return png.chunk(b"acTL", struct.pack(">II", frames, plays))

    def frame(number: int, width: int, height: int, left: int = 0, top: int = 0) -> bytes:
        return png.chunk(b"fcTL", struct.pack(">5I2H2B", number, width, height, left, top, 1, 10, 0, 0))

    def data(number: int, width: int, height: int) -> bytes:
        rows = zlib.compress((b"\x00" + bytes(width * 3)) * height)
        return png.chunk(b"fdAT", struct.pack(">I", number) + rows)

    header, idat = png.header(64, 48), png.chunk(b"IDAT", zlib.compress((b"\x00" + bytes(192)) * 48))
    for frames in (0, 2**31, 2**32 - 1, LIMITS.max_frames + 1):
        claimed = png.png(header, control(frames), frame(0, 64, 48), idat)
        yield case(f"png-animation-claims-{frames}", claimed, DEVELOPED)
    for width, height, left, top in ((30000, 30000, 0, 0), (0, 0, 0, 0), (64, 48, 2**31, 2**31), (64, 48, 1, 1)):
        odd = png.png(
            header, control(2), frame(0, width, height, left, top), idat, frame(1, width, height), data(2, 64, 48)
        )
        yield case(f"png-frame-{width}x{height}+{left}+{top}", odd, DEVELOPED, *DAMAGED, *TOO_LARGE)
    yield case("png-frame-without-control", png.png(header, frame(0, 64, 48), idat), DEVELOPED)
    yield case("png-control-behind-data", png.png(header, idat, control(5000)), DEVELOPED)
    larger = (frame(1, 30000, 30000), data(2, 1000, 1000))
    yield case("png-larger-second-picture", png.png(header, control(2), frame(0, 64, 48), idat, *larger), DEVELOPED)
    many = [piece for number in range(2000) for piece in (frame(2 * number, 8, 8), data(2 * number + 1, 8, 8))]
    yield case("png-2000-frames", png.png(header, control(2000), idat, *many), DEVELOPED)
    yield case("png-2000-frames-uncounted", png.png(header, control(2), idat, *many), DEVELOPED)
    # A picture apart from the animation is never decoded, and its first frame is.
    noise = random.Random(4).randbytes(500)
    first = (frame(0, 64, 48), data(1, 64, 48))
    yield case("png-apart-of-noise", png.png(header, control(1), png.chunk(b"IDAT", noise), *first), DEVELOPED)
    spoiled = (frame(0, 64, 48), png.chunk(b"fdAT", b"\0\0\0\1" + noise))
    yield case("png-frame-of-noise", png.png(header, control(1), idat, *spoiled), "undecodable")
    yield case("png-apart-alone", png.png(header, control(2), idat), DEVELOPED)
    yield case("png-apart-alone-and-cut", png.png(header, control(2), idat)[:-12], "truncated")
    yield case("png-frame-without-data", png.png(header, control(1), idat, frame(0, 64, 48)), "undecodable")
    for width, height, left, top in ((30000, 30000, 0, 0), (0, 0, 0, 0), (64, 48, 2**31, 2**31), (64, 48, 1, 1)):
        apart = png.png(header, control(1), idat, frame(0, width, height, left, top), data(1, 64, 48))
        yield case(f"png-apart-and-{width}x{height}+{left}+{top}", apart, "undecodable")
    canvas = png.png(png.header(SIDE, SIDE), control(1), idat, frame(0, 64, 48, SIDE - 64, SIDE - 48), data(1, 64, 48))
    yield case("png-apart-canvas-52mp", canvas, DEVELOPED, *TOO_LARGE, heavy=True)
