"""Variants on first request: the path of one, what its instructions ask for, and who allows it.

Viewers ask for `/t/<id>/<instructions>.<extension>`. The edge looks in the store for
`public/<id>/t<engine>/<instructions>.<extension>`, and asks for that to be made if it is not there: so a path is only
rewritten letter by letter, and all caches and the store have one key for a variant. Instructions are `w_640`, or more
of them in this order: `w_400-h_300-f_cover-g_attention-q_70`; or a name that their tenant has given to some. At their
end may be a signature, `-s_…`: it is in the key, so that no answer to a request without it, or with a wrong one, ever
is one to it.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import ValidationError

from darkroom.domain.images.image import Image, Variant
from darkroom.domain.kernel.ids import DIGIT, IMAGE_ID_PATTERN, digits_of
from darkroom.domain.kernel.visibility import Visibility, folder_of
from darkroom.domain.recipes.recipes import DEFAULT_QUALITY, MAX_WORK_PIXELS, Recipe, VariantSpec

ENGINE = 1
"""The engine's version: another number wherever an unchanged recipe's bytes change, as by another encoder. It is in the
keys of what is made on request, so that behind one URL of the store there are always the same bytes."""

FORMATS: Mapping[str, str] = {"jpg": "jpeg", "png": "png", "webp": "webp", "avif": "avif"}
"""The formats by the extensions that ask for them."""

MAX_VARIANTS = 64
"""How many variants of an image are made on request, until what was made of it has been removed."""

KEPT_DAYS = 30
"""When a variant that was made on request is removed: the lifecycle rule of the outputs says the same. If it is still
asked for then, it is made once more, so that only what nobody asks for stays away."""

_DEFAULT_QUALITY = {str(output_format): quality for output_format, quality in DEFAULT_QUALITY.items()}

_NAME = "[a-z][a-z0-9]{0,31}"
_COMPASS = "north|northeast|east|southeast|south|southwest|west|northwest"
_NUMBER = "[1-9][0-9]{0,3}"
_INSTRUCTIONS = re.compile(
    rf"(?:w_(?P<width>{_NUMBER})-?)?(?:h_(?P<height>{_NUMBER})-?)?(?:f_(?P<fit>cover|contain|exact)-?)?"
    rf"(?:g_(?P<gravity>{_COMPASS}|attention)-?)?(?:q_(?P<quality>{_NUMBER}))?"
)
_KEY = re.compile(
    rf"/?public/(?P<image_id>{IMAGE_ID_PATTERN})/t{ENGINE}/"
    rf"(?P<instructions>[a-z0-9_-]{{1,100}}?)(?:-s_(?P<signature>{DIGIT}{{26}}))?\.(?P<extension>{'|'.join(FORMATS)})"
)

_LABEL = b"darkroom variant v1\0"
"""The first thing that is signed: no signature of anything else is one of a variant's path."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a key asks for: nothing of it is allowed yet."""

    image_id: str
    instructions: str
    signature: str | None
    extension: str

    @property
    def key(self) -> str:
        """Where it is stored: the very key that was asked for."""
        signed = "" if self.signature is None else f"-s_{self.signature}"
        return f"{folder_of(Visibility.PUBLIC, self.image_id)}t{ENGINE}/{self.instructions}{signed}.{self.extension}"

    def is_signed_by(self, tenant_key: str) -> bool:
        """Whether the tenant with that key has signed this image's id, instructions and format."""
        expected = signature_of(tenant_key, self.image_id, self.instructions, self.extension)
        # guard: on-request-signature
        return self.signature is not None and hmac.compare_digest(self.signature, expected)


def asked_for(path: str) -> Asked | None:
    """What a path asks for, exactly as it was sent, or None if no variant has that path."""
    match = _KEY.fullmatch(path)  # guard: on-request-whole-path
    return None if match is None else Asked(**match.groupdict())


def spec_of(instructions: str, extension: str) -> VariantSpec | None:
    """The variant that instructions ask for, or None if they ask for none, or in other than their one spelling."""
    match = _INSTRUCTIONS.fullmatch(instructions)
    if match is None:
        return None
    stated = {name: int(text) if text.isdigit() else text for name, text in match.groupdict().items() if text}
    try:
        spec = VariantSpec.model_validate({"name": "asked", "format": FORMATS[extension], **stated})
    except ValidationError:
        return None
    if written(spec) != instructions:  # guard: on-request-one-spelling
        return None
    return spec


def written(spec: VariantSpec) -> str:
    """The instructions that ask for a variant, in their one spelling: without what is the default anyway."""
    parts = {
        "w": spec.width,
        "h": spec.height,
        "f": None if spec.fit == "inside" else spec.fit,
        "g": None if spec.gravity == "centre" or spec.fit not in ("cover", "contain") else spec.gravity,
        "q": None if spec.format == "png" or spec.quality == _DEFAULT_QUALITY[spec.format] else spec.quality,
    }
    return "-".join(f"{letter}_{value}" for letter, value in parts.items() if value is not None)


def allowed_by(text: str) -> Mapping[str, str]:
    """What a list like `w_320,w_640,card=w_400-h_300-f_cover` allows: instructions by what a path says for them. A name
    without instructions, `card=`, was given up: it allows nothing, and never means anything else. Raises ValueError for
    any other list."""
    allowed: dict[str, str] = {}
    for part in filter(None, text.split(",")):
        name, is_named, instructions = part.partition("=")
        if not is_named:
            instructions = name
        elif re.fullmatch(_NAME, name) is None:
            raise ValueError(f"{name[:40]!r} is no name: 1 to 32 of a-z and 0-9, starting with a letter")
        if instructions and not any(spec_of(instructions, extension) for extension in FORMATS):
            raise ValueError(f"{instructions[:100]!r} are no instructions like w_640 or w_400-h_300-f_cover-q_70")
        if name in allowed:
            raise ValueError(f"{name[:100]!r} is there twice")
        allowed[name] = instructions
    return allowed


def recipe_for(asked: Asked, image: Image, *, allowed: Mapping[str, str], is_signed: bool) -> Recipe | None:
    """The recipe that makes what was asked for, or None if nobody has allowed it. What the image's own recipe does to
    the whole picture comes before, as for all of its variants: regions stay hidden."""
    if image.recipe is None:
        return None
    instructions = asked.instructions if is_signed else allowed.get(asked.instructions, "")  # guard: on-request-allowed
    if asked.signature is not None and not is_signed:  # guard: on-request-wrong-signature
        return None
    # A watermark is laid over variants one by one: who marks them means no picture to be without, unless it says so.
    # guard: on-request-no-unmarked
    if not is_signed and any(recipe.overlay_images for recipe in (image.recipe, *image.added)):
        return None
    spec = spec_of(instructions, asked.extension)
    if spec is None:
        return None
    recipe = image.recipe.model_copy(update={"variants": (spec,)})  # guard: on-request-edits-kept
    return recipe if work_of(recipe, image) <= MAX_WORK_PIXELS else None  # guard: on-request-work-bound


def work_of(recipe: Recipe, image: Image) -> int:
    """The work of the one variant of `recipe`. A missing side counts as what the image's shape makes it, as far as a
    variant that is there tells that: by its bound of 8192 pixels hardly an AVIF would be possible."""
    (spec,) = recipe.variants
    width, height = spec.box
    shown = _uncropped(image)
    if shown is not None and spec.height is None:
        height = min(height, width * (shown.height + 1) // shown.width + 1)
    if shown is not None and spec.width is None:
        width = min(width, height * (shown.width + 1) // shown.height + 1)
    return recipe.work_pixels - spec.work_pixels + spec.work_of(width, height)


def _uncropped(image: Image) -> Variant | None:
    """A variant that has the shape of the whole picture."""
    if image.recipe is None:
        return None
    replaced = {spec.name for recipe in image.added for spec in recipe.variants}
    whole = {spec.name for spec in image.recipe.variants if spec.fit == "inside"} - replaced
    return max((each for each in image.variants if each.name in whole), key=lambda each: each.width, default=None)


def on_request_bucket_of(tenant_id: str) -> str:
    """The name of the tenant's bucket for this work, of as much as its others: no stranger's request uses up what
    uploads need. No tenant's id has a `#`."""
    return f"{tenant_id}#on_request"


def tokens_of(work_pixels: int) -> int:
    """How many tokens making it costs: one for each million pixels of WebP, which take a worker a third of a second."""
    return max(1, -(-work_pixels // 1_000_000))


def key_of_tenant(secret: str, tenant_id: str) -> str:
    """The key with which a tenant's servers sign: it signs for no other tenant, and says nothing of the secret."""
    return hmac.new(secret.encode(), _LABEL + tenant_id.encode(), hashlib.sha256).hexdigest()


def signature_of(tenant_key: str, image_id: str, instructions: str, extension: str) -> str:
    """The signature that goes to the end of the instructions."""
    signed = hmac.new(tenant_key.encode(), _LABEL + f"{image_id}/{instructions}.{extension}".encode(), hashlib.sha256)
    return digits_of(int.from_bytes(signed.digest()[:16]), 26)
