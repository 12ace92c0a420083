"""Tells the errors of decoders apart: whether a file is damaged, cut off, not supported or too large, or we are wrong.

Each library has one exception or a few for all of that, so what it says decides. Without a word that is known here, an
error of a decoder means damage: that is what most of them mean.
"""

from __future__ import annotations

import pyvips

from darkroom.domain.kernel.errors import Rejected
from darkroom.imaging.headers import truncated, undecodable, unsupported

DECODERS_ERRORS = (pyvips.Error, EOFError, MemoryError, OSError, RuntimeError, SyntaxError, ValueError)
"""What libvips raises, libavif's binding in Pillow, and pillow-heif. Anything else is a bug of ours."""

_OUT_OF_MEMORY = ("out of memory", "Out of memory", "Memory allocation error")  # guard: engine-heif-memory-no-damage
"""What libvips, libavif and libheif say."""

_TOO_LARGE = "Security limit exceeded"
"""What libheif says."""

_COLOURS = "its colours are coded in a way that is not converted"
_CODING = "its picture is coded in a way that is not decoded"
_UNSUPPORTED = {
    # libavif: src/avif.c, avifResultToString
    "Reformat failed": _COLOURS,
    "Unsupported depth": _CODING,
    "No codec available": _CODING,
    "Missing or empty image item": _CODING,  # also one with an essential property that libavif does not know
    "Not implemented": "it uses a part of its format that is not supported",
    # libheif: libheif/error.cc, Error::get_error_string
    "Unsupported color conversion": _COLOURS,
    "Unknown NCLX": _COLOURS,
    "has not been built in": _CODING,
    # libheif, libde265 and libjpeg: jerror.h
    "Unsupported": _CODING,
    "unimplemented": _CODING,
    "not implemented": _CODING,
}
"""What libraries say of sound files, the first that fits, and what that means to somebody who has one."""


def refusal_of(error: Exception, *, complete: bool, is_allowance: bool) -> Exception:
    """What to raise instead of a decoder's error. `is_allowance` is whether its memory was limited for this file."""
    said = str(error)
    if isinstance(error, MemoryError) or any(words in said for words in _OUT_OF_MEMORY) or _TOO_LARGE in said:
        if is_allowance:
            return Rejected("too_many_pixels", "The image takes too much memory to decode. Send a smaller version.")
        # A file must not be refused because memory was short for reasons other than the file.
        return MemoryError(said)
    if why := next((why for words, why in _UNSUPPORTED.items() if words in said), None):
        return unsupported(why)  # guard: engine-unsupported-no-damage
    return undecodable("it could not be decoded") if complete else truncated()
