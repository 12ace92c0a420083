"""The quality of the variants: ssimulacra2 against a full decode resized by Lanczos.

The score is that of vszip's port (100: identical; 90: no visible difference at normal distance; 70: high quality).
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import vapoursynth
from PIL import Image, ImageCms, ImageOps

from benchmarks.engine.curve import Curve
from benchmarks.engine.darkroom_itself import recipe_of
from benchmarks.engine.findings import Judged
from benchmarks.engine.jobs import ENCODING, Format, Job, fitted_inside, request_of
from benchmarks.engine.kinds import kind_of
from benchmarks.engine.sources import Source
from darkroom.domain.images.limits import Limits
from darkroom.imaging import develop

_SRGB_TRANSFER, _RGB_MATRIX, _BT709_PRIMARIES = 13, 0, 1  # ITU-T H.273, tables 2 to 4: how vszip interprets RGB


class WrongVariant(Exception):
    """An engine made something other than requested, so its time does not count."""


_CURVE_QUALITIES = (68, 74, 80, 86, 92)


@dataclass(frozen=True, kw_only=True)
class References:
    """What the variants of one job should look like, and what Darkroom makes of them without shrink-on-load."""

    pictures: Mapping[str, Image.Image]
    full_decodes: Mapping[str, Judged]

    def curve(self, name: str, variant_format: Format) -> Curve:
        """What the formats' usual encoders make of that variant's reference: the standard's tables, and method 4."""
        picture, points = self.pictures[name].convert("RGB"), []
        for quality in _CURVE_QUALITIES:
            file = io.BytesIO()
            if variant_format == "jpeg":
                picture.save(file, "JPEG", quality=quality, subsampling="4:2:0")
            else:
                picture.save(file, "WEBP", quality=quality, method=ENCODING.webp_method)
            with Image.open(file) as opened:
                points.append((len(file.getvalue()), ssimulacra2(picture, opened)))
        return Curve(points=tuple(points))


def references_of(source: Source, job: Job) -> References:
    """Made once for each source, and used for all engines."""
    with Image.open(source.path) as opened:
        opened.load()
        profile = opened.info.get("icc_profile")
        exif = opened.getexif()
        stored = opened.convert("RGBA") if opened.has_transparency_data else opened.convert("RGB")
    # Converted before the resize and at full size: slow, but as accurate as possible.
    upright = _upright(_in_srgb(stored, profile), exif)
    pictures = {
        variant.name: upright.resize(fitted_inside(*upright.size, variant.side), Image.Resampling.LANCZOS)
        for variant in job.variants
    }
    # The same pixels as a PNG, which has no shrink-on-load, go through the product's own code at the requested quality.
    png = io.BytesIO()
    stored.info = {}
    stored.save(png, "PNG", compress_level=1, icc_profile=profile, exif=exif)
    request = request_of(job, "")
    unbounded = Limits(max_bytes=2**31, max_pixels=2**31, max_decoder_bytes=2**40)
    developed = develop(png.getvalue(), recipe_of(request["variants"], request["encoding"]), limits=unbounded)
    bodies = {rendered.name: rendered.body for rendered in developed.variants}
    return References(
        pictures=pictures, full_decodes={name: _judged(bodies[name], pictures[name], name) for name in bodies}
    )


def judge(folder: Path, references: References, *, may_round: bool = False) -> Mapping[str, Judged]:
    """The variants that an engine has written to `folder`. Raises WrongVariant.

    `may_round` is whether they may be a pixel off: sharp's cascade rounds at each of its steps.
    """
    return {
        name: _judged((folder / name).read_bytes(), picture, f"{folder.name}: {name}", may_round=may_round)
        for name, picture in references.pictures.items()
    }


def _judged(body: bytes, reference: Image.Image, what: str, *, may_round: bool = False) -> Judged:
    with Image.open(io.BytesIO(body)) as opened:
        opened.load()
    if may_round and opened.size != reference.size and _differs_by_a_pixel(opened.size, reference.size):
        reference = reference.resize(opened.size, Image.Resampling.LANCZOS)
    if opened.size != reference.size:
        raise WrongVariant(f"{what} is {opened.size}, and {reference.size} was asked for")
    if leak := sorted({"exif", "icc_profile", "xmp", "comment"} & opened.info.keys()):
        raise WrongVariant(f"{what} still carries metadata: {', '.join(leak)}")
    return Judged(score=ssimulacra2(reference, opened), size=len(body), kind=kind_of(opened, body))


def _differs_by_a_pixel(left: tuple[int, int], right: tuple[int, int]) -> bool:
    return all(abs(a - b) <= 1 for a, b in zip(left, right, strict=True))


def ssimulacra2(reference: Image.Image, picture: Image.Image) -> float:
    """The score of `picture`. Transparent pictures are judged on white."""
    scores: dict[str, Any] = _clip(reference).vszip.SSIMULACRA2(_clip(picture)).get_frame(0).props
    return next(float(value) for name, value in scores.items() if "SSIMULACRA2" in name.upper())


def _upright(image: Image.Image, exif: Image.Exif) -> Image.Image:
    image.info = {"exif": exif.tobytes()}
    return ImageOps.exif_transpose(image)


def _in_srgb(image: Image.Image, profile: bytes | None) -> Image.Image:
    if not profile:
        return image.copy()
    embedded = ImageCms.ImageCmsProfile(io.BytesIO(profile))
    converted = ImageCms.profileToProfile(image, embedded, ImageCms.createProfile("sRGB"), outputMode="RGB")
    if converted is None:  # only an in-place conversion returns nothing
        raise ValueError("no converted picture")
    return converted


def _clip(image: Image.Image) -> Any:
    if image.has_transparency_data:
        flat = Image.new("RGB", image.size, "white")
        flat.paste(image, mask=image.convert("RGBA").getchannel("A"))
        image = flat
    pixels = np.asarray(image.convert("RGB"))
    blank = vapoursynth.core.std.BlankClip(width=image.width, height=image.height, format=vapoursynth.RGB24, length=1)

    def painted(n: int, f: Any) -> Any:
        frame = f.copy()
        for plane in range(3):
            np.asarray(frame[plane])[:] = pixels[:, :, plane]
        return frame

    clip = blank.std.ModifyFrame(blank, painted)
    for name, value in (("_Transfer", _SRGB_TRANSFER), ("_Matrix", _RGB_MATRIX), ("_Primaries", _BT709_PRIMARIES)):
        clip = clip.std.SetFrameProp(name, intval=value)
    return clip
