"""Headers: facts read without decoding, limits with a code each, and image data with nothing but the picture."""

import io
import random
import re
import struct
import zlib
from dataclasses import replace
from typing import Any

import pytest
import pyvips
from PIL import Image, ImageCms, PngImagePlugin

from darkroom.domain.images.limits import Limits
from darkroom.domain.kernel.errors import Rejected
from darkroom.imaging.decode import check_limits, open_original
from darkroom.imaging.headers import MAX_PIECES, ImageHeader, read_header
from tests.support.fakes.pictures import encoded, jpeg, opened, picture

SECRET = b"SECRET-52.5200N"
PROFILE = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


def header_of(body: bytes) -> ImageHeader:
    header = read_header(body)
    assert header is not None
    return header


def code_of(body: bytes, limits: Limits | None = None) -> str:
    with pytest.raises(Rejected) as refusal:
        open_original(body, limits or Limits())
    return refusal.value.code


def exif_with(orientation: int) -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = orientation
    exif[0x010E] = SECRET.decode()
    return exif


def full_of_metadata(file_format: str, mode: str = "RGB", **options: Any) -> bytes:
    options |= {"exif": exif_with(6), "icc_profile": PROFILE}
    if file_format == "PNG":
        info = PngImagePlugin.PngInfo()
        info.add_text("Comment", SECRET.decode(), zip=True)
        info.add_itxt("XML:com.adobe.xmp", SECRET.decode())
        options["pnginfo"] = info
    elif file_format in ("JPEG", "WEBP"):
        options["xmp"] = b"<x:xmpmeta>" + SECRET
    if file_format == "JPEG":
        options["comment"] = SECRET
    return encoded(noisy(mode), file_format, **options)


def noisy(mode: str = "RGB") -> Image.Image:
    pixels = random.Random(7).randbytes(80 * 60 * len(mode))
    return Image.frombytes(mode, (80, 60), pixels)


@pytest.mark.parametrize(
    ("file_format", "options"),
    [
        ("JPEG", {}),
        ("JPEG", {"progressive": True}),
        ("PNG", {}),
        ("PNG", {"mode": "RGBA"}),
        ("WEBP", {}),
        ("WEBP", {"lossless": True}),
        ("WEBP", {"mode": "RGBA"}),
    ],
)
def test_the_image_data_is_the_same_picture_without_its_metadata(file_format: str, options: dict[str, Any]) -> None:
    body = full_of_metadata(file_format, **options)
    header = header_of(body)
    image_data = header.image_data()
    for trace in (
        SECRET,
        b"Exif",
        b"EXIF",
        b"ICC_PROFILE",
        b"ICCP",
        b"iCCP",
        b"xmp",
        b"tEXt",
        b"zTXt",
        b"iTXt",
        b"eXIf",
    ):
        assert trace not in image_data
    assert opened(image_data).tobytes() == opened(body).tobytes()
    assert header.orientation == 6
    assert header.icc_profile == PROFILE
    assert header.complete


@pytest.mark.parametrize("file_format", ["GIF", "PNG", "WEBP"])
def test_the_state_of_an_animation_is_its_first_frame(file_format: str) -> None:
    frames = [Image.new("RGB", (20, 20), colour) for colour in ("red", "blue", "green")]
    options = {"lossless": True} if file_format == "WEBP" else {}
    header = header_of(encoded(frames[0], file_format, save_all=True, append_images=frames[1:], **options))
    assert header.frames == 3
    image_data = Image.open(io.BytesIO(header.image_data()))
    assert getattr(image_data, "n_frames", 1) == 1
    assert image_data.convert("RGB").getpixel((5, 5)) == (255, 0, 0)


@pytest.mark.parametrize("endian", ["<", ">"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_the_orientation_is_read_in_either_byte_order(orientation: int, endian: str) -> None:
    exif = exif_with(orientation)
    exif.endian = endian
    assert header_of(jpeg(exif=exif)).orientation == orientation


def jpeg_with_exif(tiff: bytes) -> bytes:
    segment = b"Exif\0\0" + tiff
    return b"\xff\xd8\xff\xe1" + struct.pack(">H", len(segment) + 2) + segment + jpeg()[2:]


def tiff(*entries: tuple[int, int, int, int], at: int = 8, count: int | None = None) -> bytes:
    body = b"".join(struct.pack("<HHIHxx", *entry) for entry in entries)
    return b"II*\0" + struct.pack("<I", at) + struct.pack("<H", len(entries) if count is None else count) + body


@pytest.mark.parametrize(
    "exif",
    [
        b"",
        b"II*\0",
        tiff((0x0112, 3, 1, 0)),
        tiff((0x0112, 3, 1, 9)),
        tiff((0x0112, 3, 1, 65535)),
        tiff((0x0112, 2, 1, 6)),
        tiff((0x0112, 3, 7, 6)),
        tiff((0x0112, 3, 1, 6), at=4_000_000_000),
        tiff((0x8769, 4, 1, 8), count=65535),
    ],
    ids=["empty", "cut off", "0", "9", "65535", "text", "many", "outside", "endless"],
)
def test_an_orientation_that_makes_no_sense_is_upright(exif: bytes) -> None:
    assert header_of(jpeg_with_exif(exif)).orientation == 1


def test_a_frame_that_is_smaller_than_its_canvas_lies_where_it_says() -> None:
    small = encoded(Image.new("RGB", (10, 10), "red"), "WEBP", lossless=True)[12:]
    frame = struct.pack("<HBHBHBHBHBB", 4, 0, 3, 0, 9, 0, 9, 0, 100, 0, 0) + small
    canvas = struct.pack("<4sIB3xHBHB", b"VP8X", 10, 2, 39, 0, 29, 0)
    animation = struct.pack("<4sIIH", b"ANIM", 6, 0, 0)
    body = canvas + animation + struct.pack("<4sI", b"ANMF", len(frame)) + frame
    header = header_of(struct.pack("<4sI4s", b"RIFF", len(body) + 4, b"WEBP") + body)
    assert (header.width, header.height, header.frame, header.offset) == (40, 30, (10, 10), (8, 6))
    original = open_original(struct.pack("<4sI4s", b"RIFF", len(body) + 4, b"WEBP") + body, Limits())
    image = original.opened(1).copy_memory()
    assert (image.width, image.height) == (40, 30)
    assert image(8, 6) == [255, 0, 0, 255] and image(17, 15) == [255, 0, 0, 255]
    assert image(7, 6)[3] == 0 and image(18, 15)[3] == 0


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        (Limits(max_bytes=100), "file_too_large"),
        (Limits(max_pixels=4799), "too_many_pixels"),
        (Limits(max_side=79), "side_too_long"),
        (Limits(max_scans=9), "too_many_scans"),
        (Limits(max_scan_samples=20_000), "too_many_scans"),
        (Limits(max_decoder_bytes=14_000), "too_many_pixels"),
        (Limits(max_aspect=1), "aspect_too_extreme"),
        (Limits(input_formats=frozenset({"png"})), "unsupported_format"),
    ],
)
def test_each_limit_has_its_code(limits: Limits, code: str) -> None:
    # 80 by 60 pixels in 10 scans; 4:2:0 has half as many chroma samples as luma, and a coefficient has two bytes.
    body = encoded(noisy(), "JPEG", progressive=True, quality=90, subsampling="4:2:0")
    assert header_of(body).scans == 10
    assert header_of(body).decoder_bytes == 14_400
    open_original(body, Limits())
    assert code_of(body, limits) == code


def test_every_scan_counts_with_the_samples_that_it_touches() -> None:
    header = header_of(jpeg(64, 48))
    assert (header.scans, header.scan_samples, header.decoder_bytes) == (1, 64 * 48 * 3 // 2, 0)


def png_chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


@pytest.mark.guards("engine-progressive-scans-complete")
def test_a_progressive_jpeg_that_lacks_whole_scans_is_truncated() -> None:
    body = encoded(noisy(), "JPEG", progressive=True)
    scans = [match.start() for match in re.finditer(rb"\xff\xda", body)]
    assert not header_of(body[:-2]).complete
    for start in scans[1:]:
        assert code_of(body[:start]) == "truncated"
        assert code_of(body[: start + 6]) == "truncated"


def test_a_scan_header_that_is_too_short_is_refused() -> None:
    body = encoded(noisy(), "JPEG", progressive=True)
    at = body.index(b"\xff\xda\0\x0c")  # of three components
    for length in range(2, 12):
        short = body[: at + 2] + struct.pack(">H", length) + body[at + 4 : at + 2 + length] + body[at + 14 :]
        assert code_of(short) in ("truncated", "undecodable", "too_many_scans")


PNG = encoded(picture(), "PNG")
PIECEMEAL = {
    "JPEG": b"\xff\xd8" + b"\xff\xe5\0\2" * (MAX_PIECES + 1) + jpeg()[2:],
    "PNG": PNG[:33] + png_chunk(b"teXt", b"") * (MAX_PIECES + 1) + PNG[33:],
    "GIF": b"GIF89a\4\0\4\0\0\0\0" + b"!\xfe\0" * (MAX_PIECES + 1) + b"\x3b",
    "WEBP": b"RIFF\0\0\x10\0WEBPVP8X\x0a\0\0\0" + bytes(10) + b"JUNK\0\0\0\0" * (MAX_PIECES + 1),
}


@pytest.mark.guards("animation-still-pieces-tolerated", case="GIF")
@pytest.mark.parametrize("file_format", PIECEMEAL)
def test_a_file_in_too_many_pieces_is_refused_without_walking_over_all(file_format: str) -> None:
    with pytest.raises(Rejected, match="more pieces than cameras and editors make") as refusal:
        read_header(PIECEMEAL[file_format])
    assert refusal.value.code == "unsupported_format"


def test_a_compressed_profile_is_inflated_no_further_than_profiles_go() -> None:
    bomb = png_chunk(b"iCCP", b"bomb\0\0" + zlib.compress(bytes(10_000_000), 9))
    assert header_of(PNG[:33] + bomb + PNG[33:]).icc_profile == b""


@pytest.mark.parametrize("file_format", ["JPEG", "PNG", "WEBP", "GIF"])
def test_what_comes_behind_the_picture_is_not_in_the_image_data(file_format: str) -> None:
    body = encoded(picture(), file_format)
    image_data = header_of(body + b"PK\3\4 an archive").image_data()
    assert b"PK\3\4" not in image_data


@pytest.mark.parametrize("file_format", ["JPEG", "PNG", "WEBP", "GIF"])
def test_a_file_that_stops_anywhere_is_truncated_or_damaged_and_never_an_error(file_format: str) -> None:
    body = encoded(picture(16, 12), file_format)
    for length in range(len(body)):
        try:
            read_header(body[:length])
        except Rejected as refusal:
            assert refusal.code in ("truncated", "undecodable")


def sof(marker: int, *, precision: int = 8, width: int = 8, height: int = 8, sampling: int = 0x11) -> bytes:
    return bytes((0xFF, marker)) + struct.pack(">HBHHBBBB", 11, precision, height, width, 1, 1, sampling, 0)


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        (sof(0xC3), "unsupported_format"),
        (sof(0xC9), "unsupported_format"),
        (sof(0xC1, precision=12), "unsupported_format"),
        (sof(0xC0, width=0), "undecodable"),
        (sof(0xC0, height=0), "unsupported_format"),
        (sof(0xC0, sampling=0), "undecodable"),
        (sof(0xC0) * 2, "undecodable"),
        (b"", "undecodable"),
    ],
    ids=["lossless", "arithmetic", "12 bits", "no width", "a height to come", "no sampling", "two frames", "no frame"],
)
def test_a_frame_header_that_no_camera_writes_is_refused(frame: bytes, code: str) -> None:
    scan = b"\xff\xda\0\x08\1\1\0\0\x3f\0" + b"\0" * 20 + b"\xff\xd9"
    assert code_of(b"\xff\xd8" + frame + scan) == code


def test_a_limit_is_checked_against_what_the_decoder_will_hold() -> None:
    header = header_of(encoded(picture(100, 100), "PNG"))
    assert header.decoder_bytes == 0
    check_limits(header, Limits(max_decoder_bytes=1))
    with pytest.raises(Rejected):
        check_limits(replace(header, decoder_bytes=2), Limits(max_decoder_bytes=1))


def test_a_warning_of_libvips_does_not_come_back_into_python(caplog: pytest.LogCaptureFixture) -> None:
    # pyvips' own handler does so, and GLib aborts the process if the garbage collector makes it warn again.
    body = bytearray(encoded(noisy(), "JPEG"))
    body[-400:-380] = b"\xff\x00" * 10
    caplog.set_level("DEBUG")
    original = open_original(bytes(body), Limits())
    with original.decoding():
        original.opened(1).copy_memory()
    assert not [record for record in caplog.records if "VIPS" in record.getMessage()]


@pytest.mark.guards("libvips-loaders-blocked", case="AVIF")
@pytest.mark.guards("libvips-loaders-blocked", case="TIFF")
@pytest.mark.parametrize("file_format", ["AVIF", "TIFF"])
def test_libvips_takes_no_file_for_a_format_but_those_that_the_engine_gives_it(file_format: str) -> None:
    assert pyvips.Image.new_from_buffer(encoded(noisy(), "PNG"), "").width == 80
    with pytest.raises(pyvips.Error, match="not in a known format"):
        pyvips.Image.new_from_buffer(encoded(noisy(), file_format), "")


def test_a_webps_alpha_may_hide_as_much_as_a_lossless_picture() -> None:
    lossy, alpha, lossless = (
        header_of(encoded(noisy(mode), "WEBP", lossless=is_lossless))
        for mode, is_lossless in (("RGB", False), ("RGBA", False), ("RGB", True))
    )
    assert lossy.allowance_bytes is None and alpha.allowance_bytes and lossless.allowance_bytes
    assert lossy.lossy_bytes > 0 and alpha.lossy_bytes > 0 and lossless.lossy_bytes == 0
    assert code_of(encoded(noisy(), "WEBP"), Limits(max_webp_bytes=100)) == "file_too_large"


@pytest.mark.parametrize(
    ("options", "mode", "pixel_bytes"),
    [({}, "RGB", 3), ({}, "RGBA", 4), ({}, "L", 1), ({"transparency": (1, 2, 3)}, "RGB", 4)],
)
def test_a_pngs_cost_is_what_its_rows_come_to(options: dict[str, Any], mode: str, pixel_bytes: int) -> None:
    body = encoded(noisy(mode), "PNG", **options)
    assert header_of(body).raw_bytes == 80 * 60 * pixel_bytes
    assert code_of(body, Limits(max_png_bytes=80 * 60 * pixel_bytes - 1)) == "too_many_pixels"


def test_an_interlaced_png_costs_twice_as_much_and_is_held_whole() -> None:
    body = bytearray(encoded(noisy(), "PNG"))
    body[28] = 1
    header = header_of(bytes(body))
    assert (header.raw_bytes, header.decoder_bytes) == (2 * 80 * 60 * 3, 80 * 60 * 4)


def test_a_scan_of_more_components_than_there_can_be_is_refused() -> None:
    scan = b"\xff\xda" + struct.pack(">HB", 2 + 1 + 2 * 255 + 3, 255) + bytes(2 * 255 + 3)
    assert code_of(b"\xff\xd8" + sof(0xC0) + scan + b"\xff\xd9") == "undecodable"
