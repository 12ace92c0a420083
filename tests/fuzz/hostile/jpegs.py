"""JPEGs that are too large, come in too many scans or pieces, or have an absurd header."""

from __future__ import annotations

import functools
import random
import struct
from collections.abc import Iterator

import pyvips

from tests.fuzz.corpus import corpus, picture
from tests.fuzz.handmade import jpeg
from tests.fuzz.hostile.case import (
    DAMAGED,
    DEVELOPED,
    FLOODED,
    LIMITS,
    NEARLY_ALL_BYTES,
    SIDE,
    TOO_LARGE,
    UNSUPPORTED,
    WITHIN_MEMORY,
    Case,
    case,
    flooded,
)


def cases() -> Iterator[Case]:
    """All of them."""
    yield from _large()
    yield from _scans()
    yield from _odd()
    yield from _colours()
    yield from _floods()


def _large() -> Iterator[Case]:
    within = WITHIN_MEMORY
    yield case("jpeg-52mp", lambda: jpeg.solid(SIDE, SIDE), DEVELOPED, heavy=True)
    yield case("jpeg-52mp-grey", lambda: jpeg.solid(SIDE, SIDE, components=1), DEVELOPED, heavy=True)
    yield case("jpeg-52mp-dense", lambda: _dense_jpeg(progressive=False), DEVELOPED, heavy=True)
    yield case("jpeg-52mp-dense-progressive", lambda: _dense_jpeg(progressive=True), *within, heavy=True)
    yield case("jpeg-52mp-progressive", lambda: jpeg.progressive_scans(SIDE, SIDE, 4), *within, heavy=True)
    yield case("jpeg-52mp-cmyk", lambda: jpeg.solid(SIDE, SIDE, components=4), *within, heavy=True)
    yield case("jpeg-52mp-restarts", lambda: jpeg.restarted(SIDE, SIDE), DEVELOPED, heavy=True)
    restarts = functools.partial(jpeg.restarted, SIDE, SIDE, process=jpeg.SOF2, refinements=6)
    yield case("jpeg-52mp-progressive-restarts", restarts, *within, "too_many_scans", heavy=True)
    for width, height in (
        (65535, 65535),
        (30000, 30000),
        (65500, 1000),
        (65501, 700),
        (7216, 7216),
        (60000, 1),
        (1, 60000),
    ):
        yield case(f"jpeg-claims-{width}x{height}", _claimed_jpeg(width, height), *TOO_LARGE)
    for width, height in ((60000, 1), (1, 60000), (65501, 328), (201, 1), (1, 201)):
        yield case(f"jpeg-{width}x{height}", jpeg.solid(width, height), *TOO_LARGE)
    for width, height in ((65500, 328), (328, 65500), (200, 1), (1, 200), (1, 1)):
        yield case(f"jpeg-{width}x{height}", jpeg.solid(width, height), DEVELOPED)
    # The data is missing: the pixels cost nothing, unless the end of the file is checked.
    yield case("jpeg-52mp-of-nothing", _claimed_jpeg(SIDE, SIDE), DEVELOPED, *DAMAGED, heavy=True)


def _claimed_jpeg(width: int, height: int) -> bytes:
    head = jpeg.SOI + jpeg.quantisation() + jpeg.frame(width, height) + jpeg.huffman()
    return head + jpeg.scan((1, 2, 3)) + bytes(100) + jpeg.EOI


def _dense_jpeg(*, progressive: bool) -> bytes:
    """52 megapixels of noise in the maximum number of bytes."""
    noise = pyvips.Image.new_from_memory(picture(SIDE, 8, noise=255).tobytes(), SIDE, 8, 3, "uchar")
    noise = noise.copy(interpretation="srgb")
    for quality in range(95, 0, -2):
        strip = noise.jpegsave_buffer(Q=quality, interlace=progressive, subsample_mode="off", keep="none")
        body = jpeg.tiled(strip, SIDE // 8)
        if len(body) <= NEARLY_ALL_BYTES:
            return body
    raise ValueError("no quality is low enough")


def _scans() -> Iterator[Case]:
    # The maximum number of scans, of the maximum number of pixels: the product must be limited too.
    most = LIMITS.max_scans
    within = (DEVELOPED, "too_many_scans", "too_many_pixels")
    yield case("jpeg-52mp-most-scans", lambda: jpeg.progressive_scans(SIDE, SIDE, most), *within, heavy=True)
    yield case("jpeg-25mp-most-scans", lambda: jpeg.progressive_scans(5000, 5000, most), *within, heavy=True)
    yield case(
        "jpeg-52mp-most-scans-grey",
        lambda: jpeg.progressive_scans(SIDE, SIDE, most, components=1),
        *within,
        heavy=True,
    )
    yield case("jpeg-52mp-most-baseline-scans", lambda: jpeg.baseline_scans(SIDE, SIDE, most), *within, heavy=True)
    yield case("jpeg-most-scans", jpeg.progressive_scans(300, 200, most), DEVELOPED)
    yield case("jpeg-3-baseline-scans", jpeg.baseline_scans(300, 200, 3), DEVELOPED)
    too_many = ("too_many_scans", "too_many_pixels")
    yield case("jpeg-one-scan-too-many", jpeg.progressive_scans(300, 200, most + 1), "too_many_scans")
    yield case("jpeg-scan-bomb", jpeg.progressive_scans(4000, 3000, 110), *too_many)
    yield case("jpeg-scan-bomb-baseline", jpeg.baseline_scans(2000, 1500, 100), *too_many)
    yield case(
        "jpeg-million-scans", lambda: jpeg.progressive_scans(8, 8, 1_000_000), *too_many, UNSUPPORTED, heavy=True
    )
    # A marker in a scan's data may be preceded by any number of FF bytes.
    filled = jpeg.progressive_scans(4000, 3000, 110).replace(b"\xff\xda", b"\xff\xff\xff\xda")
    yield case("jpeg-scan-bomb-filled", filled, *too_many)
    # The scans come after the end of a first picture, or before a second start.
    hidden = jpeg.progressive_scans(2000, 1500, 110)
    yield case("jpeg-scan-bomb-behind-end", corpus()["jpeg-420"] + hidden, DEVELOPED)
    yield case(
        "jpeg-scan-bomb-in-thumbnail",
        jpeg.inserted(corpus()["jpeg-420"], jpeg.segment(jpeg.APP1, hidden[:60_000])),
        DEVELOPED,
    )


def _odd() -> Iterator[Case]:
    refused = (*DAMAGED, UNSUPPORTED)
    plain = corpus()["jpeg-420"]
    head, coded = jpeg.SOI + jpeg.quantisation(), jpeg.scan((1, 2, 3)) + bytes(200) + jpeg.EOI
    tables = jpeg.huffman()

    def framed(**options: object) -> bytes:
        return head + jpeg.frame(64, 48, **options) + tables + coded  # type: ignore[arg-type]

    for width, height in ((0, 48), (64, 0), (0, 0)):
        yield case(f"jpeg-size-{width}x{height}", head + jpeg.frame(width, height) + tables + coded, *refused)
    dnl = jpeg.segment(jpeg.DNL, struct.pack(">H", 48))
    yield case("jpeg-height-by-dnl", head + jpeg.frame(64, 0) + tables + coded[:-2] + dnl + jpeg.EOI, *refused)
    tall = jpeg.segment(jpeg.DNL, struct.pack(">H", 65535))
    yield case("jpeg-other-height-by-dnl", framed()[:-2] + tall + jpeg.EOI)
    for process in range(jpeg.SOF3, jpeg.SOF15 + 1):
        if process not in (jpeg.DHT, 0xC8, 0xCC):
            yield case(f"jpeg-process-{process - 0xC0}", framed(process=process), *refused)
    for process in (jpeg.SOF9, jpeg.SOF10):
        # Any bytes are valid arithmetic-coded data, and a decoder makes up what is missing.
        body = head + jpeg.frame(SIDE, SIDE, process=process) + jpeg.scan((1, 2, 3), last=0 if process == 0xCA else 63)
        noise = random.Random(process).randbytes(2_000_000).replace(b"\xff", b"\xfe")
        yield case(f"jpeg-arithmetic-{process - 0xC0}", body + noise + jpeg.EOI, *refused)
    for precision in (0, 1, 7, 12, 16, 255):
        yield case(f"jpeg-precision-{precision}", framed(precision=precision), *refused)
    for sampling in ((), (0x11,) * 2, (0x11,) * 5, (0x11,) * 255, (0, 0, 0), (0x44,) * 3, (0x55,) * 3, (0xFF,) * 3):
        what = f"{len(sampling)}-of-{sampling[0]:02x}" if sampling else "none"
        yield case(f"jpeg-components-{what}", framed(sampling=sampling))
    yield case("jpeg-odd-sampling", framed(sampling=(0x31, 0x14, 0x21)))
    yield case("jpeg-no-frame", head + tables + coded, *refused)
    yield case("jpeg-two-frames", head + jpeg.frame(64, 48) * 2 + tables + coded, *refused)
    larger = head + jpeg.frame(64, 48) + jpeg.frame(60000, 60000) + tables + coded
    yield case("jpeg-second-frame-larger", larger, *refused, *TOO_LARGE)
    yield case("jpeg-frame-behind-scan", head + tables + coded[:-2] + jpeg.frame(64, 48) + jpeg.EOI, *refused)
    late = head + jpeg.frame(64, 48) + tables + coded[:-2] + jpeg.frame(60000, 60000) + coded
    yield case("jpeg-larger-frame-behind-scan", late)
    yield case("jpeg-no-quantisation", jpeg.SOI + jpeg.frame(64, 48) + tables + coded)
    yield case("jpeg-no-huffman", head + jpeg.frame(64, 48) + coded)
    yield case("jpeg-no-scan", head + jpeg.frame(64, 48) + tables + jpeg.EOI, *refused)
    yield case("jpeg-no-end", framed()[:-2], DEVELOPED, "truncated")  # no pixel is missing
    yield case("jpeg-end-first", jpeg.SOI + jpeg.EOI, *refused)
    yield case("jpeg-starts-twice", jpeg.SOI + framed(), *refused)
    overfull = jpeg.segment(jpeg.DHT, b"\x00" + b"\xff" * 16 + bytes(256))
    yield case("jpeg-overfull-huffman", head + jpeg.frame(64, 48) + overfull + coded, *refused)
    for length in (0, 1, 2, 65535):
        lying = jpeg.SOI + jpeg.segment(jpeg.APP0, bytes(50), length=length) + framed()[2:]
        yield case(f"jpeg-segment-of-{length}", lying)
        yield case(f"jpeg-huffman-of-{length}", head + jpeg.segment(jpeg.DHT, bytes(20), length=length) + framed()[71:])
    for interval in (1, 65535):
        restart = jpeg.segment(jpeg.DRI, struct.pack(">H", interval))
        yield case(f"jpeg-restart-interval-{interval}", head + restart + framed()[len(head) :], *DAMAGED, DEVELOPED)
    yield case("jpeg-unknown-component", framed().replace(jpeg.scan((1, 2, 3)), jpeg.scan((7, 8, 9))), *refused)
    yield case("jpeg-same-component", framed().replace(jpeg.scan((1, 2, 3)), jpeg.scan((1, 1, 1))))
    for first, last, high, low in ((5, 2, 0, 0), (0, 255, 0, 0), (1, 63, 15, 14), (1, 63, 0, 15)):
        odd = head + jpeg.frame(64, 48, process=jpeg.SOF2) + jpeg.huffman(progressive=True)
        odd += jpeg.scan([1], first=first, last=last, high=high, low=low) + bytes(50) + jpeg.EOI
        yield case(f"jpeg-scan-of-{first}-{last}-{high}-{low}", odd)
    thumbnail = jpeg.segment(jpeg.APP0, b"JFIF\x00\x01\x02\x00\x00\x01\x00\x01\xff\xff" + bytes(300))
    yield case("jpeg-thumbnail-lies", jpeg.inserted(plain, thumbnail), DEVELOPED)
    marked = framed().replace(bytes(200), bytes(50) + b"\xff\xd3" + bytes(50) + b"\xff\x01\xff\x66")
    yield case("jpeg-markers-in-data", marked)


def _colours() -> Iterator[Case]:
    """What the Adobe segment says about the colours."""
    for transform in (0, 1, 2, 255):
        adobe = jpeg.segment(0xEE, b"Adobe\x00\x64\x00\x00\x00\x00" + bytes([transform]))
        yield case(f"jpeg-adobe-{transform}", jpeg.inserted(corpus()["jpeg-420"], adobe), DEVELOPED)
        yield case(f"jpeg-cmyk-adobe-{transform}", jpeg.inserted(corpus()["jpeg-cmyk"], adobe), DEVELOPED)


def _floods() -> Iterator[Case]:
    """25 MB of the smallest pieces that a JPEG can consist of."""
    plain, start = corpus()["jpeg-420"], jpeg.solid(64, 48)[:-2]
    pieces = {
        "app0": jpeg.segment(jpeg.APP0),
        "app1": jpeg.segment(jpeg.APP1),
        "app2": jpeg.segment(jpeg.APP2),
        "app13": jpeg.segment(0xED),
        "comments": jpeg.segment(jpeg.COM),
        "fill": b"\xff",
        "restarts": b"\xff\xd0\xff\xd1",
        "unknown-standalone": b"\xff\x01",
        "tables": jpeg.huffman(),
        "quantisation": jpeg.quantisation(),
        "intervals": jpeg.segment(jpeg.DRI, b"\x00\x10"),
    }
    for name, piece in pieces.items():
        made = flooded(plain[:2], piece, plain[2:])
        yield case(f"jpeg-flood-{name}", made, *FLOODED, heavy=True)
    in_data = {"restarts": b"\xff\xd0\xff\xd1", "stuffing": b"\xff\x00", "fill": b"\xff", "zeros": b"\x00"}
    for name, piece in in_data.items():
        yield case(f"jpeg-data-flood-{name}", flooded(start, piece, jpeg.EOI), *FLOODED, heavy=True)
    # Scan headers may name at most four components, and a segment has room for 255.
    wide = jpeg.SOI + jpeg.quantisation() + jpeg.frame(64, 48, process=jpeg.SOF2) + jpeg.huffman(progressive=True)
    scans = flooded(wide, jpeg.scan([1] * 255), jpeg.EOI)
    yield case("jpeg-flood-scans-of-255-components", scans, "too_many_scans", *FLOODED, heavy=True)
    few = wide + jpeg.scan([1] * 255) * 1000 + jpeg.EOI
    yield case("jpeg-1000-scans-of-255-components", few, "too_many_scans", *DAMAGED)
    hundred = (jpeg.segment(jpeg.APP1, bytes(number)) for number in range(100))
    yield case("jpeg-100-segments", jpeg.inserted(plain, *hundred), DEVELOPED)
