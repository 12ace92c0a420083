"""The golden set: files of every kind that phones, browsers and scanners make, each with the picture it was made from.

A case has the true samples, their meaning in sRGB by `colours`, and how an independent decoder reads them back.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import imagecodecs
import numpy as np
from PIL import Image

from darkroom.domain.images.limits import InputFormat
from tests.engine.golden import colours, gif_files, isobmff_files, jpeg_files, png_files, profiles, scenes, webp_files
from tests.engine.golden.colours import Array
from tests.engine.golden.exif import exif, stored
from tests.engine.golden.gif_files import Frame
from tests.engine.golden.png_files import GREY, GREY_ALPHA, RGB, RGBA
from tests.engine.golden.scenes import levels

FIRST_FRAME, PROFILE = "first frame", "profile"
"""Words by which a notice is recognised."""


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """How far two pictures may differ, in levels of 255: on average and at the worst sample, and why by so much."""

    mean: float
    most: float
    why: str


SAME = Bounds(mean=0, most=0, why="every step is lossless")
ROUNDED = Bounds(mean=0.5, most=1, why="one rounding to 8 bits, which may fall the other way")
WEIGHED = Bounds(mean=0.3, most=1, why="colours are weighed by alpha in 8 bits and back; compared as they are weighed")
CONVERTED = Bounds(mean=0.3, most=2.5, why="colour engines work in fixed point, and round once before and once after")
CONVERTED_WEIGHED = Bounds(mean=0.4, most=3, why="as both: what weighing rounds away, converting makes larger")
DCT = Bounds(mean=0.6, most=4, why="the transform's coefficients and YCbCr are whole numbers: half a level each")
HALVED_CHROMA = Bounds(mean=0.8, most=5, why="as DCT, and chroma is interpolated from every other pixel")
QUARTERED_CHROMA = Bounds(mean=1.0, most=7, why="as DCT, and chroma is interpolated from every fourth pixel")
WIDE_DCT = Bounds(mean=0.8, most=8, why="as DCT, and a level of a wide space is up to two of sRGB")
VP8 = Bounds(mean=1.6, most=14, why="VP8 halves chroma, takes 16-235 of 255 levels, and quantises even at quality 100")
PRESS = Bounds(mean=0.7, most=4, why="four-dimensional tables are resampled by colour engines, which bends dark tones")


@dataclass(frozen=True, kw_only=True)
class Case:
    """One file. `colours` and `alpha` are the true samples in 0..1, upright, in the file's own colour space.

    `meaning` converts colours to sRGB; `read` is an independent decoder of the file's samples, (colours, alpha), or
    None if there is none. `loss` bounds what the file itself loses, `conversion` what an engine may add to it.
    """

    format: InputFormat
    body: bytes
    colours: Array
    alpha: Array | None = None
    meaning: Callable[[Array], Array] = lambda samples: samples
    read: Callable[[bytes], tuple[Array, Array | None]] | None = None
    loss: Bounds = SAME
    conversion: Bounds = SAME
    notices: tuple[str, ...] = ()

    @property
    def size(self) -> tuple[int, int]:
        """Width and height, upright."""
        return self.colours.shape[1], self.colours.shape[0]


CASES: dict[str, Callable[[], Case]] = {}
"""Every case by its name, made on demand."""


def add(name: str, make: Callable[..., Case], *arguments: Any, **options: Any) -> None:
    """Names a case, to be made later and once."""
    assert name not in CASES, name
    CASES[name] = cache(lambda: make(*arguments, **options))


def _unit(samples: Array, maximum: int | None = None) -> Array:
    """Samples as decoders give them → 0..1."""
    return samples.astype(np.float64) / (maximum or np.iinfo(samples.dtype).max)


def _as_they_are(samples: Array) -> tuple[Array, Array | None]:
    """Grey, grey and alpha, RGB or RGBA → colours, alpha."""
    if samples.ndim == 3 and samples.shape[2] in (2, 4):
        return samples[..., :-1].squeeze(), samples[..., -1]
    return samples, None


# ── Colour spaces: (profile, sRGB → file's colours, file's colours → sRGB) ────────────────────────────────────────────


@dataclass(frozen=True, kw_only=True)
class Tagged:
    """A profile, and its meaning in numpy."""

    profile: bytes
    encode: Callable[[Array], Array]
    meaning: Callable[[Array], Array]


def _rgb_space(space: colours.Space, **options: Any) -> Tagged:
    return Tagged(
        profile=profiles.rgb(space, **options),
        encode=lambda picture: colours.from_srgb(picture, space),
        meaning=lambda samples: colours.to_srgb(samples, space),
    )


def _grey_space(gamma: float) -> Tagged:
    return Tagged(
        profile=profiles.grey(gamma),
        encode=lambda picture: colours.srgb_decode(picture) ** (1 / gamma),
        meaning=lambda samples: colours.srgb_encode(samples**gamma),
    )


def _grey_of(space: Tagged) -> Tagged:
    """The neutral axis of an RGB space, with that space's profile."""

    def neutral(convert: Callable[[Array], Array]) -> Callable[[Array], Array]:
        return lambda samples: convert(np.repeat(samples[..., None], 3, axis=-1))[..., 1]

    return Tagged(profile=space.profile, encode=neutral(space.encode), meaning=neutral(space.meaning))


SPACES: dict[str, Tagged] = {
    "srgb": _rgb_space(colours.SRGB),
    "srgb-v4": _rgb_space(colours.SRGB, curve="parametric"),
    "display-p3": _rgb_space(colours.DISPLAY_P3, curve="parametric"),
    "adobe-rgb": _rgb_space(colours.ADOBE_RGB, curve="gamma", gamma=colours.ADOBE_RGB_GAMMA),
    "prophoto": _rgb_space(colours.PROPHOTO),
    "grey-gamma-2.2": _grey_space(2.2),
    "grey-gamma-1.8": _grey_space(1.8),
}


def _conversion(space: Tagged | None, alpha: Array | None, depth: int = 8) -> Bounds:
    """What a colour conversion, weighting by alpha and a change of depth may cost."""
    if alpha is None:
        return CONVERTED if space else ROUNDED if depth > 8 else SAME
    return CONVERTED_WEIGHED if space or depth > 8 else WEIGHED


# ── PNG ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _png_case(
    colour_type: int,
    picture: Array | None = None,
    *,
    depth: int = 8,
    space: Tagged | None = None,
    before: Sequence[png_files.Chunk] = (),
    after: Sequence[png_files.Chunk] = (),
    orientation: int = 1,
    interlaced: bool = False,
    notices: tuple[str, ...] = (),
) -> Case:
    maximum = (1 << depth) - 1
    if picture is None:
        picture = scenes.scene() if colour_type in (RGB, RGBA) else scenes.grey_scene()
    alpha = scenes.alpha_scene() if colour_type in (RGBA, GREY_ALPHA) else None
    picture = space.encode(picture) if space else picture
    samples = levels(picture if alpha is None else np.dstack([picture, alpha]), maximum)
    chunks = [*([png_files.iccp(space.profile)] if space else []), *before]
    file = png_files.png(
        stored(samples, orientation), colour_type, depth=depth, interlaced=interlaced, before=chunks, after=after
    )
    true, opacity = _as_they_are(samples / maximum)
    return Case(
        format="png",
        body=file,
        colours=true,
        alpha=opacity,
        meaning=space.meaning if space else lambda samples: samples,
        # libpng without its transformations returns packed bits and palette indices: only whole bytes are read back.
        read=(lambda body: _as_they_are(_upright(_unit(imagecodecs.png_decode(body)), orientation)))
        if depth >= 8
        else None,
        conversion=_conversion(space, alpha, depth),
        notices=notices,
    )


def _upright(samples: Array, orientation: int) -> Array:
    """The inverse of `exif.stored`: each is its own inverse, but quarter turns are each other's."""
    return stored(samples, {6: 8, 8: 6}.get(orientation, orientation))


def _png_palette_case(
    depth: int = 8, *, opacities: Sequence[int] = (), interlaced: bool = False, space: Tagged | None = None
) -> Case:
    count = 1 << depth
    table = scenes.vivid(count, 3)[1] * 0.8 + 0.1
    table = levels(space.encode(table) if space else table)
    indices = levels(scenes.grey_scene(), count - 1)
    chunks = [*([png_files.iccp(space.profile)] if space else []), *png_files.palette(table, opacities)]
    file = png_files.png(indices, png_files.PALETTE, depth=depth, interlaced=interlaced, before=chunks)
    alpha = None
    if opacities:
        alpha = np.array([*opacities, *[255] * (count - len(opacities))])[indices] / 255
    return Case(
        format="png",
        body=file,
        colours=table[indices] / 255,
        alpha=alpha,
        meaning=space.meaning if space else lambda samples: samples,
        read=lambda body: _as_they_are(_unit(imagecodecs.png_decode(body))),
        conversion=_conversion(space, alpha),
    )


def _png_key_case(colour_type: int, depth: int) -> Case:
    """One colour is declared transparent: a block of it at the upper left, and no similar colour nearby."""
    maximum = (1 << depth) - 1
    picture = scenes.grey_scene() if colour_type == GREY else scenes.scene()
    samples = levels(picture, maximum)
    key = [maximum // 3] * (1 if colour_type == GREY else 3)
    samples[(samples == key).reshape(*samples.shape[:2], -1).all(axis=-1)] += 1
    hole = (slice(8, 28), slice(10, 40))
    samples[hole] = key if colour_type == RGB else key[0]
    alpha = np.ones(samples.shape[:2])
    alpha[hole] = 0
    return Case(
        format="png",
        body=png_files.png(samples, colour_type, depth=depth, before=[png_files.colour_key(*key)]),
        colours=samples / maximum,
        alpha=alpha,
        conversion=WEIGHED if depth <= 8 else ROUNDED,
    )


def _apng_case(*, hidden: bool = False, frames: int = 3) -> Case:
    first = levels(scenes.scene())
    apart = [255 - first] * hidden  # no browser shows it
    return Case(
        format="png",
        body=png_files.apng([*apart, *[first, first[::-1], 255 - first][:frames]], RGB, hidden=hidden),
        colours=first / 255,
        # It knows no animations, and shows what is apart from one.
        read=None if hidden else (lambda body: (_unit(imagecodecs.png_decode(body)), None)),
        notices=(FIRST_FRAME,) if frames > 1 else (),
    )


def _apng_apart_case(colour_type: int) -> Case:
    """A first frame of 16 bits, smaller than its canvas, behind a picture that is no part of the animation."""
    picture = scenes.scene(48, 32) if colour_type in (RGB, RGBA) else scenes.grey_scene(48, 32)
    alpha = scenes.alpha_scene(48, 32) if colour_type in (RGBA, GREY_ALPHA) else None
    samples = picture if alpha is None else np.dstack([picture, alpha])
    colours, opacity = np.zeros((64, 96, *picture.shape[2:])), np.zeros((64, 96))
    place = slice(20, 52), slice(30, 78)
    frame = levels(samples, 65535)
    colours[place] = levels(picture, 65535) / 65535
    opacity[place] = 1 if alpha is None else levels(alpha, 65535) / 65535
    apart = np.full((64, 96, *samples.shape[2:]), 30_000)
    shown = [png_files.Shown(samples=frame, left=30, top=20)]
    return Case(
        format="png",
        body=png_files.timed_apng((96, 64), shown, colour_type, depth=16, apart=apart),
        colours=colours,
        alpha=opacity,
        conversion=WEIGHED if alpha is None else CONVERTED_WEIGHED,
    )


_KINDS = {"rgb": RGB, "grey": GREY, "rgba": RGBA, "grey-alpha": GREY_ALPHA}
for _interlaced in (False, True):
    _kind, _options = "-interlaced" * _interlaced, {"interlaced": _interlaced}
    add(f"png-rgb{_kind}", _png_case, RGB, scenes.scene(97, 65), **_options)
    for _depth in (1, 2, 4, 8):
        _name = f"png-grey-{_depth}-bit{_kind}" if _depth < 8 else f"png-grey{_kind}"
        add(_name, _png_case, GREY, scenes.grey_scene(97, 65), depth=_depth, **_options)
        add(f"png-palette-{_depth}-bit{_kind}", _png_palette_case, _depth, **_options)
    add(f"png-palette-transparent{_kind}", _png_palette_case, 8, opacities=range(0, 256, 2), **_options)
    add(f"png-rgba{_kind}", _png_case, RGBA, **_options)
    add(f"png-grey-alpha{_kind}", _png_case, GREY_ALPHA, **_options)
    for _name in ("rgb", "grey", "rgba"):
        add(f"png-{_name}-16-bit{_kind}", _png_case, _KINDS[_name], depth=16, **_options)
add("png-grey-alpha-16-bit", _png_case, GREY_ALPHA, depth=16)
add("png-palette-transparent-2-bit", _png_palette_case, 2, opacities=(0, 128, 200))
add("png-rgb-colour-key", _png_key_case, RGB, 8)
add("png-grey-colour-key", _png_key_case, GREY, 8)
add("png-grey-4-bit-colour-key", _png_key_case, GREY, 4)
add("png-rgb-16-bit-colour-key", _png_key_case, RGB, 16)
add("png-animated", _apng_case)
add("png-animated-behind-a-still", _apng_case, hidden=True)
add("png-animated-behind-a-still-with-one-frame", _apng_case, hidden=True, frames=1)
for _name, _colour_type in _KINDS.items():
    add(f"png-animated-behind-a-still-16-bit-{_name}", _apng_apart_case, _colour_type)
for _name in ("srgb", "srgb-v4", "display-p3", "adobe-rgb", "prophoto", "grey-gamma-2.2", "grey-gamma-1.8"):
    for _depth in (8, 16):
        _colour_type = GREY if _name.startswith("grey") else RGB
        _suffix = "-16-bit" * (_depth == 16)
        add(f"png-{_name}{_suffix}", _png_case, _colour_type, space=SPACES[_name], depth=_depth)
for _depth in (8, 16):
    add(f"png-display-p3-alpha-{_depth}-bit", _png_case, RGBA, depth=_depth, space=SPACES["display-p3"])
add("png-display-p3-palette", _png_palette_case, 8, space=SPACES["display-p3"])
add("png-grey-alpha-gamma-2.2", _png_case, GREY_ALPHA, space=SPACES["grey-gamma-2.2"])
for _orientation in range(1, 9):
    _turned = (b"eXIf", exif(_orientation, big_endian=_orientation % 2 == 0))
    add(f"png-orientation-{_orientation}", _png_case, RGB, orientation=_orientation, before=[_turned])
add("png-orientation-6-behind-the-data", _png_case, RGB, orientation=6, after=[(b"eXIf", exif(6))])
add("png-broken-profile", _png_case, RGB, before=[png_files.iccp(b"nonsense" * 40)], notices=(PROFILE,))
for _name in ("display-p3", "adobe-rgb"):
    _as_encoded = replace(SPACES[_name], encode=lambda picture: picture)
    add(f"png-{_name}-vivid", _png_case, RGB, scenes.vivid(), space=_as_encoded)


# ── JPEG ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

SAMPLINGS = {
    "444": ((1, 1), (1, 1), (1, 1)),
    "422": ((2, 1), (1, 1), (1, 1)),
    "440": ((1, 2), (1, 1), (1, 1)),
    "420": ((2, 2), (1, 1), (1, 1)),
    "411": ((4, 1), (1, 1), (1, 1)),
}


def _jpeg_case(
    picture: Array,
    *,
    space: Tagged | None = None,
    profile: bytes = b"",
    orientation: int = 1,
    segments: Sequence[jpeg_files.Segment] = (jpeg_files.JFIF,),
    loss: Bounds = DCT,
    notices: tuple[str, ...] = (),
    edit: Callable[[bytes], bytes] = lambda file: file,
    **options: Any,
) -> Case:
    picture = space.encode(picture) if space else picture
    profile = space.profile if space else profile
    parts = [*segments, *(jpeg_files.icc_segments(profile, 2) if profile else [])]
    file = jpeg_files.jpeg(stored(picture, orientation) * 255, segments=parts, **options)
    return Case(
        format="jpeg",
        body=edit(file),
        colours=picture,
        meaning=space.meaning if space else lambda samples: samples,
        read=lambda body: (_upright(_unit(imagecodecs.jpeg8_decode(body)), orientation), None),
        loss=loss,
        conversion=CONVERTED if space else ROUNDED,
        notices=notices,
    )


def _libjpeg_case() -> Case:
    """libjpeg's own script of scans refines coefficients bit by bit; `jpeg_files` does not."""
    picture = levels(scenes.scene(97, 65))
    file = io.BytesIO()
    Image.fromarray(picture).save(file, "JPEG", quality=100, subsampling=0, progressive=True)
    return Case(
        format="jpeg",
        body=file.getvalue(),
        colours=picture / 255,
        read=lambda body: (_unit(imagecodecs.jpeg8_decode(body)), None),
        loss=DCT,
        conversion=ROUNDED,
    )


def _inverted(samples: Array) -> Array:
    return 1 - samples


def _cmyk_case(transform: jpeg_files.Transform, orientation: int = 1) -> Case:
    """As Photoshop writes it: inverted, with Adobe's marker and a press profile."""
    cover = scenes.inks(97, 65)
    adobe = jpeg_files.adobe(2 if transform == "ycck" else 0)
    segments = [adobe, *jpeg_files.icc_segments(profiles.press(), 3), jpeg_files.exif_segment(exif(orientation))]
    file = jpeg_files.jpeg(stored((1 - cover), orientation) * 255, transform=transform, segments=segments)
    return Case(
        format="jpeg",
        body=file,
        colours=cover,
        meaning=lambda samples: colours.press_to_srgb(np.clip(samples, 0, 1)),
        read=lambda body: (_upright(1 - _unit(imagecodecs.jpeg8_decode(body)), orientation), None),
        loss=PRESS,
        conversion=PRESS,
    )


_SCENE, _ODD = scenes.scene(), scenes.scene(97, 65)
for _name, _sampling in SAMPLINGS.items():
    _loss = {"444": DCT, "411": QUARTERED_CHROMA}.get(_name, HALVED_CHROMA)
    for _scans in ("baseline", "progressive"):
        _is_progressive = _scans == "progressive"
        add(f"jpeg-{_name}-{_scans}", _jpeg_case, _ODD, sampling=_sampling, progressive=_is_progressive, loss=_loss)
add("jpeg-progressive-by-libjpeg", _libjpeg_case)
add("jpeg-restart-markers", _jpeg_case, _ODD, restart_interval=3)
_HALVED: dict[str, Any] = {"sampling": SAMPLINGS["420"], "loss": HALVED_CHROMA}
add("jpeg-restart-markers-420", _jpeg_case, _ODD, restart_interval=1, **_HALVED)
add("jpeg-grey", _jpeg_case, scenes.grey_scene(97, 65))
add("jpeg-grey-2x2", _jpeg_case, scenes.grey_scene(97, 65), sampling=[(2, 2)])
add("jpeg-rgb-by-adobe-marker", _jpeg_case, _ODD, transform="none", segments=[jpeg_files.adobe(0)])
add("jpeg-ycc-by-adobe-marker", _jpeg_case, _ODD, segments=[jpeg_files.adobe(1)])
add("jpeg-without-application-markers", _jpeg_case, _ODD, segments=())
add("jpeg-fill-bytes", _jpeg_case, _SCENE, edit=lambda file: file.replace(b"\xff\xdb", b"\xff\xff\xff\xdb", 1))
for _name in ("srgb", "srgb-v4", "display-p3", "adobe-rgb", "prophoto"):
    add(f"jpeg-{_name}", _jpeg_case, _SCENE, space=SPACES[_name], loss=WIDE_DCT)
for _name in ("grey-gamma-2.2", "grey-gamma-1.8"):
    add(f"jpeg-{_name}", _jpeg_case, scenes.grey_scene(), space=SPACES[_name])
add("jpeg-cmyk", _cmyk_case, "none")
add("jpeg-ycck", _cmyk_case, "ycck")
add("jpeg-cmyk-orientation-6", _cmyk_case, "none", 6)
# Editors that turn a photo grey keep its profile. Grey then means red = green = blue in that space.
for _name in ("srgb", "display-p3", "adobe-rgb"):
    add(f"jpeg-grey-with-{_name}-profile", _jpeg_case, scenes.grey_scene(), space=_grey_of(SPACES[_name]))
add("jpeg-broken-profile", _jpeg_case, _SCENE, profile=b"nonsense" * 40, notices=(PROFILE,))


def _turned_jpeg(name: str, orientation: int, *segments: jpeg_files.Segment, **options: Any) -> None:
    add(f"jpeg-{name}", _jpeg_case, _SCENE, orientation=orientation, segments=segments, **options)


_EXIF = {orientation: jpeg_files.exif_segment(exif(orientation)) for orientation in (*range(10), 65535)}
_WIDE = {**_HALVED, "space": SPACES["display-p3"]}
for _orientation in range(1, 9):
    _either = jpeg_files.exif_segment(exif(_orientation, big_endian=_orientation % 2 == 1))
    _turned_jpeg(f"orientation-{_orientation}", _orientation, _either)
    _turned_jpeg(f"display-p3-420-orientation-{_orientation}", _orientation, _EXIF[_orientation], **_WIDE)
_XMP = (jpeg_files.APP1, b"http://ns.adobe.com/xap/1.0/\0<x:xmpmeta/>")
_CAMERAS = jpeg_files.exif_segment(exif(6, text=b"camera", gps=b"52.5N"))
_turned_jpeg("orientation-6-behind-jfif-and-xmp", 6, jpeg_files.JFIF, _XMP, _CAMERAS)


def _behind_the_tables(file: bytes) -> bytes:
    """The first application segment moved to the frame header: no rule says that it must come first."""
    (size,) = struct.unpack_from(">H", file, 4)
    start = file.index(b"\xff\xc0")
    return file[:2] + file[4 + size : start] + file[2 : 4 + size] + file[start:]


_BIG_ENDIAN = jpeg_files.exif_segment(exif(5, big_endian=True))
_turned_jpeg("orientation-5-behind-the-tables", 5, _BIG_ENDIAN, edit=_behind_the_tables)
_PIECES = jpeg_files.icc_segments(SPACES["adobe-rgb"].profile, 5)
_OUT_OF_ORDER = [_PIECES[3], _PIECES[0], jpeg_files.JFIF, *_PIECES[1:3], _PIECES[4]]
_UNTAGGED = replace(SPACES["adobe-rgb"], profile=b"")
_turned_jpeg("adobe-rgb-in-pieces-out-of-order", 1, *_OUT_OF_ORDER, space=_UNTAGGED, loss=WIDE_DCT)
for _orientation in (0, 9, 65535):
    _turned_jpeg(f"orientation-{_orientation}-means-none", 1, _EXIF[_orientation])


# ── WebP ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _webp_case(
    picture: Array,
    *,
    alpha: Array | None = None,
    quality: int | None = None,
    space: Tagged | None = None,
    orientation: int = 1,
    after: Sequence[webp_files.Chunk] = (),
    loss: Bounds = SAME,
) -> Case:
    picture = space.encode(picture) if space else picture
    samples = levels(picture if alpha is None else np.dstack([picture, alpha]))
    before = [(b"ICCP", space.profile)] if space else []
    file = webp_files.webp(stored(samples, orientation), quality=quality, before=before, after=after)
    true, opacity = _as_they_are(samples / 255)
    return Case(
        format="webp",
        body=file,
        colours=true,
        alpha=opacity,
        meaning=space.meaning if space else lambda samples: samples,
        read=lambda body: _as_they_are(_upright(_unit(imagecodecs.webp_decode(body)), orientation)),
        loss=loss,
        conversion=_conversion(space, alpha),
    )


def _webp_animation_case(*, offset: bool) -> Case:
    first = levels(scenes.scene(48, 32) if offset else scenes.scene())
    canvas = np.zeros((64, 96, 3), np.uint8)
    alpha = np.zeros((64, 96))
    left, top = (30, 20) if offset else (0, 0)
    place = (slice(top, top + first.shape[0]), slice(left, left + first.shape[1]))
    canvas[place], alpha[place] = first, 1
    frames = [(first, left, top), (255 - first, 0, 0)]
    return Case(
        format="webp",
        body=webp_files.animation((96, 64), frames),
        colours=canvas / 255,
        alpha=alpha if offset else None,
        read=lambda body: _without_idle(*_as_they_are(_unit(imagecodecs.webp_decode(body, index=0)))),
        conversion=WEIGHED if offset else SAME,
        notices=(FIRST_FRAME,),
    )


def _without_idle(picture: Array, alpha: Array | None) -> tuple[Array, Array | None]:
    """Drops an alpha that is opaque everywhere."""
    return picture, None if alpha is None or alpha.min() == 1 else alpha


_ALPHA = scenes.alpha_scene()
add("webp-lossless", _webp_case, _ODD)
add("webp-lossless-alpha", _webp_case, _SCENE, alpha=_ALPHA)
add("webp-lossy", _webp_case, _SCENE, quality=100, loss=VP8)
add("webp-lossy-alpha", _webp_case, _SCENE, alpha=_ALPHA, quality=100, loss=VP8)
for _name in ("srgb", "display-p3", "adobe-rgb"):
    add(f"webp-{_name}", _webp_case, _SCENE, space=SPACES[_name])
add("webp-display-p3-alpha", _webp_case, _SCENE, alpha=_ALPHA, space=SPACES["display-p3"])
for _orientation in range(1, 9):
    _after = [(b"EXIF", exif(_orientation))]
    add(f"webp-orientation-{_orientation}", _webp_case, _SCENE, orientation=_orientation, after=_after)
# Some writers keep JPEG's prefix.
_prefixed = [(b"EXIF", b"Exif\0\0" + exif(8))]
add("webp-orientation-8-with-prefix", _webp_case, _SCENE, orientation=8, after=_prefixed)
add("webp-animated", _webp_animation_case, offset=False)
add("webp-animated-offset", _webp_animation_case, offset=True)


# ── GIF ───────────────────────────────────────────────────────────────────────────────────────────────────────────────

_TABLE = levels(scenes.vivid(256, 3)[1] * 0.8 + 0.1)
_CLEAR = 200


def _gif_case(
    *frames: dict[str, Any], screen: tuple[int, int] = (97, 65), local: bool = False, notices: tuple[str, ...] = ()
) -> Case:
    """Frames of one asymmetric picture; the truth is the first on an empty screen."""
    width, height = screen
    made = []
    for number, options in enumerate(frames):
        size = options.pop("size", screen)
        indices = levels(scenes.grey_scene(*size))
        if number:
            indices = indices[::-1, ::-1]
        made.append(Frame(indices=indices, colours=_TABLE if local else None, **options))
    file = gif_files.gif(screen, made, colours=None if local else _TABLE, background=7)
    first = made[0]
    picture, alpha = np.zeros((height, width, 3)), np.zeros((height, width))
    place = (
        slice(first.top, first.top + first.indices.shape[0]),
        slice(first.left, first.left + first.indices.shape[1]),
    )
    picture[place] = _TABLE[first.indices] / 255
    alpha[place] = 1 if first.transparent is None else first.indices != first.transparent
    is_opaque = alpha.min() == 1
    return Case(
        format="gif",
        body=file,
        colours=picture,
        alpha=None if is_opaque else alpha,
        # giflib returns one frame on black: comparable if the frame is complete.
        read=(lambda body: (_unit(imagecodecs.gif_decode(body, index=0)), None)) if is_opaque else None,
        conversion=SAME if is_opaque else WEIGHED,
        notices=notices,
    )


add("gif-plain", _gif_case, {})
add("gif-interlaced", _gif_case, {"interlaced": True})
add("gif-local-table", _gif_case, {}, local=True)
add("gif-transparent", _gif_case, {"transparent": _CLEAR})
add("gif-animated", _gif_case, {}, {}, notices=(FIRST_FRAME,))
add("gif-animated-transparent", _gif_case, {"transparent": _CLEAR}, {}, notices=(FIRST_FRAME,))
for _name, _more, _notices in (("gif", (), ()), ("gif-animated-first", ({},), (FIRST_FRAME,))):
    _small = {"size": (50, 30), "left": 21, "top": 13}
    add(f"{_name}-frame-smaller-than-the-screen", _gif_case, _small, *_more, notices=_notices)
for _disposal, _name in ((1, "keep"), (2, "background"), (3, "previous")):
    add(f"gif-animated-disposal-{_name}", _gif_case, {"disposal": _disposal}, {}, notices=(FIRST_FRAME,))


# ── AVIF and HEIC, by setting ─────────────────────────────────────────────────────────────────────────────────────────

_Transformation = tuple[bytes, Callable[[Array], Array]]

_TURNS: dict[str, _Transformation] = {
    **{f"irot-{n}": (isobmff_files.irot(n), partial(np.rot90, k=n)) for n in (1, 2, 3)},
    "imir-0": (isobmff_files.imir(0), lambda picture: picture[::-1]),
    "imir-1": (isobmff_files.imir(1), lambda picture: picture[:, ::-1]),
}
TRANSFORMATIONS: dict[str, tuple[_Transformation, ...]] = {
    **{name: (turn,) for name, turn in _TURNS.items()},
    **{f"irot-1-{mirror}": (_TURNS["irot-1"], _TURNS[mirror]) for mirror in ("imir-0", "imir-1")},
}
"""Properties of a picture, in the order in which they are applied for display."""

_AVIF_420 = Bounds(mean=1.2, most=6, why="chroma is halved and YCbCr rounded to whole levels")


def _container_case(
    write: Callable[..., bytes],
    picture: Array,
    *,
    alpha: Array | None = None,
    depth: int = 8,
    space: Tagged | None = None,
    transformations: Sequence[_Transformation] = (),
    exif_orientation: int = 0,
    properties: Sequence[bytes] = (),
    loss: Bounds = SAME,
    **settings: Any,
) -> Case:
    maximum = (1 << depth) - 1
    samples = levels(space.encode(picture) if space else picture, maximum)
    opacity = None if alpha is None else levels(alpha, maximum)
    all_properties = [
        *([isobmff_files.colour_profile(space.profile)] if space else []),
        *properties,
        *(transformation for transformation, _ in transformations),
    ]
    options: dict[str, Any] = {"properties": all_properties, **settings}
    if write is not isobmff_files.heic_grid:
        options |= {"depth": depth, "alpha": opacity}
    else:
        options |= {"tile": 64}
    if exif_orientation:
        options["others"] = [isobmff_files.exif_item(exif(exif_orientation))]

    def displayed(stored_picture: Array) -> Array:
        for _, transform in transformations:
            stored_picture = transform(stored_picture)
        return stored_picture

    is_avif = write is isobmff_files.avif
    return Case(
        format="avif" if is_avif else "heic",
        body=write(samples, **options),
        colours=displayed(samples / maximum),
        alpha=None if opacity is None else displayed(opacity / maximum),
        meaning=space.meaning if space else lambda samples: samples,
        # libavif leaves turning to its caller. No other decoder of HEVC is available: for HEIC the truth is what was
        # written, sample by sample.
        read=(lambda body: _as_they_are(displayed(_unit(imagecodecs.avif_decode(body), maximum)))) if is_avif else None,
        loss=loss,
        conversion=_conversion(space, alpha, depth),
    )


# Phones add a smaller picture for lists, and a gain map for bright displays: neither is the picture.
_COMPANIONS = (
    isobmff_files.hevc_item(levels(scenes.scene(32, 32))[::-1], refers=((b"thmb", (1,)),)),
    isobmff_files.hevc_item(
        levels(scenes.grey_scene(48, 32)),
        properties=[isobmff_files.auxiliary(b"urn:com:apple:photo:2020:aux:hdrgainmap")],
        refers=((b"auxl", (1,)),),
    ),
)

for _format, _write in (("avif", isobmff_files.avif), ("heic", isobmff_files.heic)):
    add(f"{_format}-8-bit", _container_case, _write, _ODD)
    add(f"{_format}-10-bit", _container_case, _write, _SCENE, depth=10)
    add(f"{_format}-12-bit", _container_case, _write, _SCENE, depth=12)
    add(f"{_format}-grey", _container_case, _write, scenes.grey_scene())
    add(f"{_format}-alpha", _container_case, _write, _SCENE, alpha=_ALPHA)
    add(f"{_format}-display-p3", _container_case, _write, _SCENE, space=SPACES["display-p3"])
    add(f"{_format}-adobe-rgb-10-bit", _container_case, _write, _SCENE, space=SPACES["adobe-rgb"], depth=10)
    for _name, _transformations in TRANSFORMATIONS.items():
        add(f"{_format}-{_name}", _container_case, _write, _SCENE, transformations=_transformations)
    # The container turns the picture; EXIF only says how it was turned, and phones write both.
    _once = {"transformations": TRANSFORMATIONS["irot-3"], "exif_orientation": 6}
    add(f"{_format}-irot-3-and-exif-6-turn-once", _container_case, _write, _SCENE, **_once)
    add(f"{_format}-exif-6-alone-turns-nothing", _container_case, _write, _SCENE, exif_orientation=6)
_LIMITED: dict[str, Any] = {"pixelformat": "420", "matrix": 1, "loss": _AVIF_420}
add("avif-420-limited-range", _container_case, isobmff_files.avif, _SCENE, **_LIMITED)
add("heic-with-thumbnail-and-gain-map", _container_case, isobmff_files.heic, _SCENE, others=_COMPANIONS)
_GRID, _LARGE = isobmff_files.heic_grid, scenes.scene(150, 100)
add("heic-grid", _container_case, _GRID, _LARGE)
add("heic-grid-with-thumbnail-and-gain-map", _container_case, _GRID, _LARGE, others=_COMPANIONS)
add("heic-grid-display-p3-irot-3", _container_case, _GRID, _LARGE, space=SPACES["display-p3"], **_once)
