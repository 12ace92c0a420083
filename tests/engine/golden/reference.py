"""What an engine should make of a picture, in numpy: Lanczos, flattening, and the difference of two pictures."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.engine.golden.colours import Array

LANCZOS_LOBES = 3


def resized(samples: Array, width: int, height: int) -> Array:
    """Samples in 0..1, (rows, columns[, channels]), at another size by Lanczos, with a wider support when shrinking.

    Rows first, then columns, and values beyond 0..1 are clipped after each: engines keep whole levels in between.
    """
    high = np.clip(np.tensordot(_weights(samples.shape[0], height), samples, axes=(1, 0)), 0, 1)
    wide = np.tensordot(_weights(samples.shape[1], width), high, axes=(1, 1)).swapaxes(0, 1)
    return np.clip(wide, 0, 1)


def resized_with_alpha(colours: Array, alpha: Array, width: int, height: int) -> tuple[Array, Array]:
    """The same with pixels weighted by their opacity: hidden pixels have no influence."""
    weight = alpha if colours.ndim == 2 else alpha[..., None]
    opacity = resized(alpha, width, height)
    weighed = resized(colours * weight, width, height)
    divisor = opacity if colours.ndim == 2 else opacity[..., None]
    return np.clip(np.divide(weighed, divisor, out=np.zeros_like(weighed), where=divisor > 0), 0, 1), opacity


def _weights(size: int, new_size: int) -> Array:
    """Row by row, what each old sample contributes to a new one; beyond the edges the edge is repeated."""
    scale = max(1.0, size / new_size)
    reach = int(np.ceil(LANCZOS_LOBES * scale))
    places = np.arange(-reach, size + reach)
    centres = (np.arange(new_size) + 0.5) * size / new_size
    distance = (places + 0.5 - centres[:, None]) / scale
    kernel = np.where(np.abs(distance) < LANCZOS_LOBES, np.sinc(distance) * np.sinc(distance / LANCZOS_LOBES), 0)
    kernel /= kernel.sum(axis=1, keepdims=True)
    weights = kernel[:, reach : reach + size].copy()
    weights[:, 0] += kernel[:, :reach].sum(axis=1)
    weights[:, -1] += kernel[:, reach + size :].sum(axis=1)
    return weights


def rgba(colours: Array, alpha: Array | None, meaning: Callable[[Array], Array] = lambda samples: samples) -> Array:
    """Samples in 0..1 in a file's own colours → sRGB and opacity in levels of 255, always four channels."""
    true = meaning(colours)
    true = np.repeat(true[..., None], 3, axis=2) if true.ndim == 2 else true
    opacity = np.ones(true.shape[:2]) if alpha is None else alpha
    made: Array = np.clip(np.dstack([true, opacity]), 0, 1) * 255
    return made


def flattened(picture: Array, background: tuple[int, int, int]) -> Array:
    """RGBA in levels → opaque RGBA over a colour, blended as browsers do it: in sRGB, not in linear light."""
    opacity = picture[..., 3:] / 255
    blended = picture[..., :3] * opacity + np.array(background) * (1 - opacity)
    return np.dstack([blended, np.full(picture.shape[:2], 255.0)])


def apart(left: Array, right: Array) -> tuple[float, float]:
    """Mean and greatest difference of two RGBA pictures in levels; colours count by their opacity."""
    assert left.shape == right.shape, (left.shape, right.shape)

    def weighed(picture: Array) -> Array:
        return np.dstack([picture[..., :3] * picture[..., 3:] / 255, picture[..., 3]])

    difference = np.abs(weighed(left) - weighed(right))
    return float(difference.mean()), float(difference.max())
