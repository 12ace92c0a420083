"""What an animation is made of, whichever format it comes in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

type Disposal = Literal["none", "background", "previous"]
"""What happens to a frame's rectangle after its time: it stays, becomes transparent, or is what it was before."""

_FLASH_MILLISECONDS, _INSTEAD_MILLISECONDS = 10, 100
"""Browsers show a frame of at most 10 ms for 100 ms, so files with such times are meant to be seen like that
(https://webkit.org/b/36082)."""

MAX_FRAME_MILLISECONDS = 655_350
"""The longest time that a GIF's frame can have. A thousand of them still fit the 31 bits of libwebp's clock."""

MAX_PLAYS = 65_535
"""The highest number of plays that WebP's 16 bits can have."""


@dataclass(frozen=True, kw_only=True)
class Frame:
    """A picture at (left, top) of the canvas, and how long it is seen. Only a GIF's frame may reach beyond the canvas.

    `file` makes a still file of the picture alone, in the animation's format. `replaces` is whether its pixels take the
    place of the canvas's, instead of being blended over them. `lossless_bytes` is the size of what is coded without
    loss in a WebP: the picture, or its alpha.
    """

    left: int
    top: int
    width: int
    height: int
    milliseconds: int
    file: Callable[[], bytes]
    disposal: Disposal = "none"
    replaces: bool = False
    lossless_bytes: int = 0


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """An animation: its canvas in pixels, how often it is played (0 is for ever), and its frames.

    `grey` is whether all frames are grey because of the file's colour type, which its colour profile may rely on.
    """

    width: int
    height: int
    plays: int
    frames: tuple[Frame, ...]
    grey: bool = False


def shown[Time: (int, Fraction)](milliseconds: Time) -> Time:
    """How long browsers show a frame that says `milliseconds`, and animations here do."""
    if milliseconds <= _FLASH_MILLISECONDS:  # guard: animation-flash-duration
        return type(milliseconds)(_INSTEAD_MILLISECONDS)
    return min(milliseconds, type(milliseconds)(MAX_FRAME_MILLISECONDS))
