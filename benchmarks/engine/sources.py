"""The originals that are developed: generated ones, kept under build/bench, and folders of photos.

The generated ones are variations of the repository's one photo, and a page of print. Those of kinds that no free photo
has, and all photos, are the set over which goals are: their median and their worst.
"""

from __future__ import annotations

import hashlib
import io
import random
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pillow_heif
from PIL import Image, ImageCms, ImageDraw, ImageFilter, ImageFont
from PIL import __version__ as pillow_version

from benchmarks.engine.jobs import ALPHA, AVIF, J1, J3, J4, PNG, Job
from benchmarks.forms import IS_SHORT, by_form
from repository.report import ROOT

PHOTO = ROOT / "tests" / "photos" / "seeding-16mp.jpg"
FOLDER = ROOT / "build" / "bench" / by_form(short="short-sources", usual="sources")
SEED = 1
"""The seed of the noise in the noisy source."""

AS_IT_IS = "as it is"
"""The note of photos, which are not generated."""

pillow_heif.register_heif_opener()

_ORIENTATION_TAG = 0x0112  # EXIF 2.32, 4.6.4 A
_LANCZOS = Image.Resampling.LANCZOS


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a source is made: its titles, its jobs, and its bytes from the photo's pixels."""

    name: str
    short_title: str
    note: str
    extension: str
    jobs: tuple[Job, ...]
    make: Callable[[Image.Image], bytes]
    is_wide_gamut: bool = False
    is_in_set: bool = False


@dataclass(frozen=True, kw_only=True)
class Source:
    """A file to develop. `width` and `height` are those of the upright picture."""

    name: str
    short_title: str
    note: str
    path: Path
    width: int
    height: int
    jobs: tuple[Job, ...]
    is_wide_gamut: bool = False
    is_in_set: bool = False

    @property
    def title(self) -> str:
        return f"{self.short_title} ({self.note})" if self.note else self.short_title

    @property
    def megapixels(self) -> float:
        return self.width * self.height / 1e6


def sources() -> tuple[Source, ...]:
    """The sources whose time is measured, generated if they do not exist yet."""
    return tuple(_made(recipe) for recipe in _TIMED if not IS_SHORT or recipe.name in _SHORTLY)


def fifty_megapixels() -> Source:
    """The largest JPEG that the product's limits allow."""
    return _made(next(recipe for recipe in _TIMED if recipe.name == "50mp"))


def sources_in(folder: Path) -> tuple[Source, ...]:
    """A folder's photos as further sources, unchanged."""
    sources = []
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() not in (".jpg", ".jpeg", ".png", ".webp"):
            continue
        width, height = _upright_size(path)
        sources.append(
            Source(
                name=path.stem,
                short_title=f"{path.name}, {width * height / 1e6:.0f} MP",
                note=AS_IT_IS,
                path=path,
                width=width,
                height=height,
                jobs=_jobs_of(path),
                is_in_set=True,
            )
        )
    return tuple(sources)


def _jobs_of(path: Path) -> tuple[Job, ...]:
    if path.suffix.lower() != ".png":
        return (J1, J3, J4)
    with Image.open(path) as image:
        return (PNG,) if image.has_transparency_data else (PNG, J4)


def _made(recipe: Recipe) -> Source:
    # The folder's name depends on everything that determines the bytes, so nothing stale is ever measured.
    made_of = PHOTO.read_bytes() + Path(__file__).read_bytes() + f"{pillow_version} {np.__version__}".encode()
    path = FOLDER / hashlib.sha256(made_of).hexdigest()[:12] / f"{recipe.name}.{recipe.extension}"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with Image.open(PHOTO) as photo:
            body = recipe.make(photo.convert("RGB"))
        unfinished = path.with_suffix(".unfinished")
        unfinished.write_bytes(body)
        unfinished.rename(path)
    width, height = _upright_size(path)
    return Source(
        name=recipe.name,
        short_title=recipe.short_title,
        note=recipe.note,
        path=path,
        width=width,
        height=height,
        jobs=recipe.jobs,
        is_wide_gamut=recipe.is_wide_gamut,
        is_in_set=recipe.is_in_set,
    )


def _upright_size(path: Path) -> tuple[int, int]:
    with Image.open(path) as image:
        turned = image.getexif().get(_ORIENTATION_TAG, 1) >= 5
        return (image.height, image.width) if turned else image.size


# ── The pictures ──────────────────────────────────────────────────────────────────────────────────────────────────


def _native(photo: Image.Image) -> Image.Image:
    """12 MP cut out of the photo's centre: the camera's own pixels, not resampled; few of them in the short form."""
    return _centre(photo, *by_form(short=(640, 480), usual=(3984, 2988)))


def _centre(photo: Image.Image, width: int, height: int) -> Image.Image:
    left, top = (photo.width - width) // 2, (photo.height - height) // 2
    return photo.crop((left, top, left + width, top + height))


def _jpeg(image: Image.Image, *, progressive: bool = False, profile: bytes = b"", orientation: int = 1) -> bytes:
    exif = Image.Exif()
    exif[_ORIENTATION_TAG] = orientation
    return _saved(
        image,
        "JPEG",
        quality=92,
        subsampling="4:2:0",
        progressive=progressive,
        icc_profile=profile,
        exif=exif.tobytes() if orientation != 1 else b"",
    )


def _saved(image: Image.Image, file_format: str, **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, file_format, **options)
    return file.getvalue()


def _two_megapixels(photo: Image.Image) -> bytes:
    return _jpeg(_native(photo).resize((1632, 1224), _LANCZOS))


def _noisy(photo: Image.Image) -> bytes:
    """Like a small sensor in poor light: 1.2% larger, and noise of four levels (one sigma) on the lightness."""
    pixels = np.asarray(_native(photo).resize((4032, 3024), _LANCZOS)).astype("f4")
    pixels += np.random.default_rng(SEED).normal(0, 4, (3024, 4032, 1)).astype("f4")
    return _jpeg(Image.fromarray(np.clip(pixels, 0, 255).astype("u1")))


def _twenty_four_megapixels(photo: Image.Image) -> bytes:
    return _jpeg(_centre(photo, 4482, 2988).resize((6000, 4000), _LANCZOS))


def _fifty_megapixels(photo: Image.Image) -> bytes:
    return _jpeg(_native(photo).resize((8160, 6120), _LANCZOS))


def _phone(photo: Image.Image) -> bytes:
    """Like the full resolution of a phone that is held upright: 48 MP, orientation 6."""
    return _jpeg(_native(photo).resize((8064, 6048), _LANCZOS), orientation=6)


def _print(_: Image.Image) -> bytes:
    """A page at 300 dots per inch: small letters on paper that is not quite white, as from a scanner."""
    chance = random.Random(SEED)
    dead_letters = "eeeeetttaaaooiiinnnssshhrrdlcumwfgypbvk       "  # about as frequent as in English
    page = Image.new("L", (2520, 3360), 238)
    font = ImageFont.load_default(size=34)
    for top in range(160, 3180, 48):
        text = "".join(chance.choices(dead_letters, k=120))
        ImageDraw.Draw(page).text((200, top), text, fill=30, font=font)
    noise = np.random.default_rng(SEED).normal(0, 3, (3360, 2520)).astype("f4")
    return _jpeg(Image.fromarray(np.clip(np.asarray(page) + noise, 0, 255).astype("u1")).convert("RGB"))


def _wide_gamut(photo: Image.Image) -> bytes:
    """Like a phone held upright: stored sideways, orientation 6, and the pixels really converted to Display P3."""
    profile = display_p3()
    converted = ImageCms.profileToProfile(
        _native(photo), ImageCms.createProfile("sRGB"), ImageCms.ImageCmsProfile(io.BytesIO(profile))
    )
    if converted is None:  # only an in-place conversion returns nothing
        raise ValueError("no converted picture")
    return _jpeg(converted, profile=profile, orientation=6)


def _transparent(photo: Image.Image) -> bytes:
    """4 MP with a soft-edged oval cut out: opaque, half transparent and transparent pixels."""
    image = _native(photo).resize((2304, 1728), _LANCZOS)
    mask = Image.new("L", image.size, 0)
    ImageDraw.Draw(mask).ellipse((120, 90, 2184, 1638), fill=255)
    image.putalpha(mask.filter(ImageFilter.GaussianBlur(40)))
    return _saved(image, "PNG")


_SHORTLY = ("native", "p3", "png")
"""The sources of the short form."""

_TIMED = (
    Recipe(
        name="native",
        short_title="12 MP JPEG",
        note="a crop of the photo, not resampled",
        extension="jpg",
        jobs=(J1, J3, J4, AVIF),
        make=lambda photo: _jpeg(_native(photo)),
        is_in_set=True,
    ),
    Recipe(
        name="noisy",
        short_title="12 MP noisy JPEG",
        note="the crop scaled to 4032×3024, noise added",
        extension="jpg",
        jobs=(J1, J3, J4),
        make=_noisy,
    ),
    Recipe(
        name="2mp",
        short_title="2 MP JPEG",
        note="the crop scaled down",
        extension="jpg",
        jobs=(J1, J3, J4),
        make=_two_megapixels,
    ),
    Recipe(
        name="24mp",
        short_title="24 MP JPEG",
        note="a crop scaled up 1.34×",
        extension="jpg",
        jobs=(J1, J3, J4),
        make=_twenty_four_megapixels,
    ),
    Recipe(
        name="p3",
        short_title="12 MP Display P3 JPEG",
        note="to be turned: EXIF orientation 6",
        extension="jpg",
        jobs=(J1, J3, J4),
        make=_wide_gamut,
        is_wide_gamut=True,
        is_in_set=True,
    ),
    Recipe(
        name="50mp",
        short_title="50 MP JPEG",
        note="the crop scaled up 2.05×",
        extension="jpg",
        jobs=(J1, J3, J4),
        make=_fifty_megapixels,
        is_in_set=True,
    ),
    Recipe(
        name="phone",
        short_title="48 MP JPEG of a phone",
        note="the crop scaled up 2.02×, to be turned",
        extension="jpg",
        jobs=(J1, J3, J4),
        make=_phone,
        is_in_set=True,
    ),
    Recipe(
        name="print",
        short_title="8 MP page of print",
        note="generated",
        extension="jpg",
        jobs=(J1, J3, J4),
        make=_print,
        is_in_set=True,
    ),
    Recipe(
        name="progressive",
        short_title="12 MP progressive JPEG",
        note="",
        extension="jpg",
        jobs=(J1, J3, J4),
        make=lambda photo: _jpeg(_native(photo), progressive=True),
    ),
    Recipe(
        name="webp",
        short_title="12 MP WebP",
        note="",
        extension="webp",
        jobs=(J1, J3, J4),
        make=lambda photo: _saved(_native(photo), "WEBP", quality=90),
    ),
    Recipe(
        name="heic",
        short_title="12 MP HEIC",
        note="",
        extension="heic",
        jobs=(J1, J4),
        make=lambda photo: _saved(_native(photo), "HEIF", quality=80),
    ),
    Recipe(
        name="png",
        short_title="12 MP PNG",
        note="",
        extension="png",
        jobs=(PNG, J4),
        make=lambda photo: _saved(_native(photo), "PNG"),
        is_in_set=True,
    ),
    Recipe(name="alpha", short_title="4 MP PNG with alpha", note="", extension="png", jobs=(ALPHA,), make=_transparent),
)


# ── The colours ───────────────────────────────────────────────────────────────────────────────────────────────────


def display_p3() -> bytes:
    """The Display P3 profile: primaries of DCI-P3, white of D65, tone curve of sRGB (ICC.1:2010, version 4.3).

    The colorants are those primaries adapted to the profile connection space's D50 by the Bradford transform.
    """
    curve = struct.pack(
        ">4s4xHxx5i", b"para", 3, *(_fixed(v) for v in (2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045))
    )
    tags = {
        b"desc": _text("Display P3"),
        b"cprt": _text("CC0"),
        b"wtpt": _xyz(0.96420, 1.0, 0.82491),
        b"rXYZ": _xyz(0.51512, 0.24120, -0.00105),
        b"gXYZ": _xyz(0.29198, 0.69225, 0.04189),
        b"bXYZ": _xyz(0.15710, 0.06657, 0.78407),
        b"rTRC": curve,
        b"gTRC": curve,
        b"bTRC": curve,
    }
    at = 128 + 4 + 12 * len(tags)
    table, data = struct.pack(">I", len(tags)), b""
    for name, body in tags.items():
        table += struct.pack(">4sII", name, at + len(data), len(body))
        data += body + b"\0" * (-len(body) % 4)
    header = struct.pack(
        ">I4sI4s4s4s12s4s4sI4s4sQI3i4s16s28x",
        at + len(data),
        b"",
        0x04300000,
        b"mntr",
        b"RGB ",
        b"XYZ ",
        struct.pack(">6H", 2026, 1, 1, 0, 0, 0),
        b"acsp",
        b"",
        0,
        b"",
        b"",
        0,
        0,
        *(_fixed(v) for v in (0.96420, 1.0, 0.82491)),
        b"",
        b"",
    )
    return header + table + data


def _fixed(value: float) -> int:
    return round(value * 65536)


def _xyz(x: float, y: float, z: float) -> bytes:
    return struct.pack(">4s4x3i", b"XYZ ", _fixed(x), _fixed(y), _fixed(z))


def _text(text: str) -> bytes:
    encoded = text.encode("utf-16-be")
    return struct.pack(">4s4xII2s2sII", b"mluc", 1, 12, b"en", b"US", len(encoded), 28) + encoded
