"""Pictures as arrays of samples, and their files."""

from __future__ import annotations

from typing import Any

import numpy as np
from PIL import Image

from tests.support.fakes.pictures import encoded

type Array = np.ndarray[Any, Any]


def noise(width: int, height: int, channels: int = 3, seed: int = 1) -> Array:
    """Random samples of 8 bits, always the same for a seed."""
    return np.random.default_rng(seed).integers(0, 256, (height, width, channels), dtype=np.uint8)


def file(samples: Array, file_format: str = "PNG", **options: Any) -> bytes:
    """The samples as a file's bytes."""
    return encoded(Image.fromarray(samples.squeeze()), file_format, **options)
