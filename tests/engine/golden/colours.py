"""What colours mean: transfer curves, primaries and their maths, written out in numpy from the standards.

Nothing here uses a colour engine: colour engines are judged by it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

type Array = NDArray[Any]

D65 = (0.3127, 0.3290)
D50 = (0.3457, 0.3585)
D50_WHITE_XYZ = np.array([0.9642, 1.0, 0.8249])
"""The white of the profile connection space, as ICC.1 rounds it."""

BRADFORD = np.array([[0.8951, 0.2664, -0.1614], [-0.7502, 1.7135, 0.0367], [0.0389, -0.0685, 1.0296]])
"""The cone responses by which ICC.1:2022 Annex E adapts one white to another."""


def srgb_decode(encoded: Array) -> Array:
    """IEC 61966-2-1: encoded 0..1 → linear light."""
    return np.where(encoded <= 0.04045, encoded / 12.92, ((np.maximum(encoded, 0) + 0.055) / 1.055) ** 2.4)


def srgb_encode(linear: Array) -> Array:
    """IEC 61966-2-1: linear light → encoded 0..1, clipped to the gamut."""
    linear = np.clip(linear, 0, 1)
    return np.where(linear <= 0.0031308, linear * 12.92, 1.055 * linear ** (1 / 2.4) - 0.055)


def romm_decode(encoded: Array) -> Array:
    """ISO 22028-2 (ProPhoto): gamma 1.8 with a linear toe."""
    return np.where(encoded < 16 / 512, encoded / 16, np.maximum(encoded, 0) ** 1.8)


def romm_encode(linear: Array) -> Array:
    """The inverse of `romm_decode`."""
    return np.where(linear < 1 / 512, linear * 16, np.maximum(linear, 0) ** (1 / 1.8))


def gamma_decode(exponent: float) -> Callable[[Array], Array]:
    """A plain power curve."""
    return lambda encoded: np.maximum(encoded, 0) ** exponent


def gamma_encode(exponent: float) -> Callable[[Array], Array]:
    """The inverse of `gamma_decode`."""
    return lambda linear: np.maximum(linear, 0) ** (1 / exponent)


@dataclass(frozen=True, kw_only=True)
class Space:
    """An RGB space by its primaries, its white and its transfer curve."""

    name: str
    primaries: tuple[tuple[float, float], tuple[float, float], tuple[float, float]]
    white: tuple[float, float]
    decode: Callable[[Array], Array]
    encode: Callable[[Array], Array]

    @property
    def white_xyz(self) -> Array:
        """The space's own white, not adapted."""
        return _xyz(*self.white)

    @property
    def to_xyz(self) -> Array:
        """Linear RGB → XYZ under D50: the colorants that are the columns in an ICC profile."""
        columns = np.array([_xyz(x, y) for x, y in self.primaries]).T
        white = self.white_xyz
        scaled = columns * np.linalg.solve(columns, white)
        cones = (BRADFORD @ D50_WHITE_XYZ) / (BRADFORD @ white)
        adapted: Array = np.linalg.inv(BRADFORD) @ np.diag(cones) @ BRADFORD @ scaled
        return adapted


def _xyz(x: float, y: float) -> Array:
    return np.array([x / y, 1, (1 - x - y) / y])


SRGB_PRIMARIES = ((0.64, 0.33), (0.30, 0.60), (0.15, 0.06))

SRGB = Space(name="sRGB", primaries=SRGB_PRIMARIES, white=D65, decode=srgb_decode, encode=srgb_encode)
DISPLAY_P3 = Space(
    name="Display P3",
    primaries=((0.680, 0.320), (0.265, 0.690), (0.150, 0.060)),
    white=D65,
    decode=srgb_decode,
    encode=srgb_encode,
)
ADOBE_RGB_GAMMA = 563 / 256
ADOBE_RGB = Space(
    name="Adobe RGB (1998)",
    primaries=((0.64, 0.33), (0.21, 0.71), (0.15, 0.06)),
    white=D65,
    decode=gamma_decode(ADOBE_RGB_GAMMA),
    encode=gamma_encode(ADOBE_RGB_GAMMA),
)
PROPHOTO = Space(
    name="ProPhoto",
    primaries=((0.734699, 0.265301), (0.159597, 0.840403), (0.036598, 0.000105)),
    white=D50,
    decode=romm_decode,
    encode=romm_encode,
)


def to_srgb(encoded: Array, space: Space) -> Array:
    """Encoded 0..1 in `space` → encoded 0..1 in sRGB: media-relative, out of gamut clipped per channel."""
    linear = space.decode(encoded) @ (np.linalg.inv(SRGB.to_xyz) @ space.to_xyz).T
    return srgb_encode(linear)


def from_srgb(encoded: Array, space: Space) -> Array:
    """Encoded sRGB → encoded in a space at least as wide."""
    linear = srgb_decode(encoded) @ (np.linalg.inv(space.to_xyz) @ SRGB.to_xyz).T
    return np.clip(space.encode(linear), 0, 1)


def lab_to_srgb(lab: Array) -> Array:
    """CIE L*a*b* under D50 → encoded sRGB."""
    height = (lab[..., 0] + 16) / 116
    f = np.stack([height + lab[..., 1] / 500, height, height - lab[..., 2] / 200], axis=-1)
    xyz = np.where(f > 6 / 29, f**3, 3 * (6 / 29) ** 2 * (f - 4 / 29)) * D50_WHITE_XYZ
    return srgb_encode(xyz @ np.linalg.inv(SRGB.to_xyz).T)


PAPER_LAB = np.array([100.0, 0.0, 0.0])
INKS_LAB = np.array(
    [
        [-20.0, -32.0, -42.0],  # cyan
        [-24.0, 64.0, -4.0],  # magenta
        [-6.0, -6.0, 74.0],  # yellow
        [-50.0, 0.0, 0.0],  # black
    ]
)
"""What full cover of each ink adds to the paper. Affine on purpose: any way to interpolate a profile's table between
its corners then gives the same colour, so the truth does not depend on the colour engine's choice. All four together
are L* 0, so black-point compensation changes nothing either."""

DOT_GAIN = 0.8
"""Cover prints denser than requested: cover ** DOT_GAIN. It keeps the model from being the naive formula."""


def press_to_srgb(cmyk: Array) -> Array:
    """The made-up press of `profiles.press`: cover 0..1 of four inks → encoded sRGB."""
    return lab_to_srgb(PAPER_LAB + cmyk**DOT_GAIN @ INKS_LAB)
