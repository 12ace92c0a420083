"""Reading what the engine wrote with decoders that are not the engine's."""

from __future__ import annotations

import imagecodecs
import numpy as np

from tests.engine.golden.colours import Array

_DECODERS = {
    "jpeg": imagecodecs.jpeg8_decode,
    "png": imagecodecs.png_decode,
    "webp": imagecodecs.webp_decode,
    "avif": imagecodecs.avif_decode,
}


def decoded(body: bytes, file_format: str) -> Array:
    """The picture as RGBA in levels of 255, whatever channels the file has; asserts eight bits per channel."""
    samples = _DECODERS[file_format](body)
    assert samples.dtype == np.uint8, samples.dtype
    samples = samples[..., None] if samples.ndim == 2 else samples
    height, width, channels = samples.shape
    colours = samples[..., : 3 if channels >= 3 else 1].repeat(3 if channels < 3 else 1, axis=2)
    alpha = samples[..., -1:] if channels in (2, 4) else np.full((height, width, 1), 255)
    return np.dstack([colours, alpha]).astype(np.float64)
