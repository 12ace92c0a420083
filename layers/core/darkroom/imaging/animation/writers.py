"""Writes animations frame by frame: WebP by libwebp, and GIF, of which Pillow encodes each frame."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol, cast

from PIL import GifImagePlugin, Image, ImageChops, _webp

from darkroom.domain.kernel.lanes import Effort
from darkroom.imaging.headers.webp import WEBP_ALPHA

if TYPE_CHECKING:
    from darkroom.imaging.rights import Carriers

_METHOD: dict[Effort, int] = {"fast": 0, "balanced": 2, "small": 4}
"""libwebp's methods for frames: two less than for stills, of which there are fewer."""


class AnimationWriter(Protocol):
    """An animation that is being written, of frames in RGB or RGBA."""

    def add(self, frame: Image.Image, milliseconds: int) -> None:
        """Appends a frame that is seen so long. Equal frames become one that is seen as long as all of them."""

    def done(self) -> bytes:
        """The file."""


def animation_writer(
    file_format: str,
    size: tuple[int, int],
    *,
    plays: int,
    quality: float,
    effort: Effort,
    carriers: Carriers | None = None,
) -> AnimationWriter:
    """A writer of `webp` or `gif`; `plays` is how often it is played, 0 is for ever. GIF has no
    quality and carries no rights."""
    if file_format == "gif":
        return _GifWriter(size, plays=plays)
    return _WebpWriter(size, plays=plays, quality=quality, method=_METHOD[effort], carriers=carriers)


class _WebpWriter:
    """Pillow's `save` would want all frames at once, so its encoder is called as it calls it (WebPImagePlugin)."""

    def __init__(
        self, size: tuple[int, int], *, plays: int, quality: float, method: int, carriers: Carriers | None
    ) -> None:
        # Transparent background; no search for the smallest file; no key frames (their distances are 0); not mixed with
        # lossless frames; silent.
        self._encoder = _webp.WebPAnimEncoder(size, 0, plays, False, 0, 0, False, False)
        self._quality, self._method = quality, method
        self._exif, self._xmp = (b"", b"") if carriers is None else (carriers.exif, carriers.xmp)
        self._end = 0
        self._is_clear = False  # whether something is transparent in any frame

    def add(self, frame: Image.Image, milliseconds: int) -> None:
        self._is_clear = self._is_clear or not _is_opaque(frame)
        self._encoder.add(frame.getim(), self._end, False, self._quality, 100, self._method)
        self._end += milliseconds

    def done(self) -> bytes:
        self._encoder.add(None, self._end, False, self._quality, 100, 0)
        body = bytearray(self._encoder.assemble(b"", self._exif, self._xmp))
        # What no frame's rectangle covers is transparent too, which libwebp does not count.
        if self._is_clear and body[12:16] == b"VP8X":  # guard: animation-webp-alpha-flag
            body[20] |= WEBP_ALPHA
        return bytes(body)


def _is_opaque(frame: Image.Image) -> bool:
    return frame.mode == "RGB" or frame.getextrema()[-1] == (255, 255)


_SAMPLED_PIXELS = 8192
"""A frame with more colours than fit gets the palette of so many of its pixels: choosing that of all would take a
second for each megapixel of noise."""

_COLOURS, _OPAQUE_FROM, _MOST_HUNDREDTHS = 256, 128, 0xFFFF
_LEAST_HUNDREDTHS = 2
"""Browsers show a frame of one hundredth for a tenth of a second."""

_STAYS, _LEAVES = 1, 2
"""GIF's numbers of disposals."""

type _Box = tuple[int, int, int, int]


class _GifWriter:
    """A frame is written when the next one is known, because it must leave if that one uncovers something.

    Only what has changed is written; a frame that must leave, and the one after it, are written whole.
    """

    def __init__(self, size: tuple[int, int], *, plays: int) -> None:
        width, height = size
        self._parts = [b"GIF89a", width.to_bytes(2, "little"), height.to_bytes(2, "little"), b"\x70\0\0"]
        if plays != 1:  # it counts how often the animation is repeated after the first time
            self._parts.append(b"!\xff\x0bNETSCAPE2.0\x03\x01" + max(0, plays - 1).to_bytes(2, "little") + b"\0")
        self._frame: Image.Image | None = None  # the next one to be written
        self._under: Image.Image | None = None  # what is on the canvas before it; None is nothing
        self._end = 0  # of that frame, in milliseconds
        self._written = 0  # hundredths of a second

    def add(self, frame: Image.Image, milliseconds: int) -> None:
        frame = _with_sharp_alpha(frame)
        if self._frame is None:
            self._frame = frame
        elif _changed(self._frame, frame) is not None:
            uncovered = ImageChops.subtract(self._frame.getchannel("A"), frame.getchannel("A"))
            leaves = uncovered.getbbox() is not None  # guard: animation-gif-uncover-disposal
            self._write(self._frame, leaves=leaves)
            self._under, self._frame = None if leaves else self._frame, frame
        self._end += milliseconds

    def done(self) -> bytes:
        if self._frame is not None:
            self._write(self._frame, leaves=False)
        return b"".join((*self._parts, b";"))

    def _write(self, frame: Image.Image, *, leaves: bool) -> None:
        full_box = (0, 0, *frame.size)
        box = full_box if leaves or self._under is None else _changed(self._under, frame) or full_box
        # Rounded where frames end, so that the errors do not add up.
        hundredths = max(_LEAST_HUNDREDTHS, round(self._end / 10) - self._written)
        self._written += hundredths
        for more in range(hundredths, 0, -_MOST_HUNDREDTHS):
            disposal = _LEAVES if leaves and more <= _MOST_HUNDREDTHS else _STAYS
            self._parts += _encoded(frame, box, hundredths=min(more, _MOST_HUNDREDTHS), disposal=disposal)


def still_gif(picture: Image.Image) -> bytes:
    """A GIF of one picture in RGB or RGBA."""
    writer = _GifWriter(picture.size, plays=1)
    writer.add(picture, 0)
    return writer.done()


def _with_sharp_alpha(frame: Image.Image) -> Image.Image:
    """The frame in RGBA with pixels that are opaque or, in black, transparent: that is all that GIF can say."""
    if frame.mode == "RGB":
        return frame.convert("RGBA")
    alpha = frame.getchannel("A").point([255 * (level >= _OPAQUE_FROM) for level in range(256)])
    sharp = Image.new("RGBA", frame.size)
    sharp.paste(frame.convert("RGB"), mask=alpha)
    return sharp


def _changed(before: Image.Image, after: Image.Image) -> _Box | None:
    """The rectangle outside of which the two frames are equal; None if they are equal everywhere."""
    return ImageChops.difference(before, after).getbbox(alpha_only=False)


def _encoded(frame: Image.Image, box: _Box, *, hundredths: int, disposal: int) -> list[bytes]:
    """The blocks of what a frame has in the box."""
    part = frame.crop(box)
    alpha = part.getchannel("A")
    options: dict[str, Any] = {"duration": 10 * hundredths, "disposal": disposal, "include_color_table": True}
    # Browsers clear any frame that leaves, libvips and Pillow only one that has a transparent colour.
    if alpha.getextrema() == (255, 255) and disposal != _LEAVES:  # guard: animation-gif-leaving-frame-clear
        return GifImagePlugin.getdata(_indexed(part.convert("RGB"), _COLOURS), box[:2], **options)
    colours = Image.new("RGB", part.size, _visible_colour(part, alpha))
    colours.paste(part.convert("RGB"), mask=alpha)
    indexed = _indexed(colours, _COLOURS - 1)
    palette = indexed.getpalette() or []
    clear = len(palette) // 3  # guard: animation-gif-transparent-index
    indexed.putpalette([*palette, 0, 0, 0])
    indexed.paste(clear, mask=ImageChops.invert(alpha))
    return GifImagePlugin.getdata(indexed, box[:2], transparency=clear, **options)


def _visible_colour(part: Image.Image, alpha: Image.Image) -> tuple[int, ...]:
    """A colour that the part has, so that its transparent pixels need no further one; black if nothing is visible."""
    if (box := alpha.getbbox()) is None:
        return (0, 0, 0)
    row = part.crop((box[0], box[1], box[2], box[1] + 1))
    colour_counts = cast("list[tuple[int, tuple[int, ...]]]", row.getcolors(row.width))
    return max((colour for _, colour in colour_counts), key=lambda colour: colour[3])[:3]


def _indexed(picture: Image.Image, colours: int) -> Image.Image:
    """The picture in RGB with at most so many colours: its own if it has no more, otherwise those that represent a
    sample best. They are not dithered: the dots would flicker, and compress badly."""
    if picture.getcolors(colours) is not None:
        return picture.quantize(colours, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    step = max(1, math.ceil(math.sqrt(picture.width * picture.height / _SAMPLED_PIXELS)))
    size = max(1, picture.width // step), max(1, picture.height // step)
    sample = picture.resize(size, Image.Resampling.NEAREST)
    palette = sample.quantize(colours, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    return picture.quantize(palette=palette, dither=Image.Dither.NONE)
