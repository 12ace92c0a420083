"""The frames of an animation with their times, read from the file's structure without decoding a pixel."""

from __future__ import annotations

import struct

from darkroom.imaging.animation.frames import Timeline
from darkroom.imaging.animation.gif import gif_timeline
from darkroom.imaging.animation.png import png_timeline
from darkroom.imaging.animation.webp import webp_timeline
from darkroom.imaging.headers import truncated


def timeline_of(original: bytes, *, most: int) -> Timeline | None:
    """The timeline of an animated GIF, WebP or PNG; None if the file is another one, or has fewer than two frames. Of
    more frames than `most` it has only so many.

    Raises Rejected: `truncated` if a frame is not all there, `undecodable` if one breaks its format's rules.
    """
    try:
        if original.startswith(b"GIF8"):
            timeline = gif_timeline(original, most)
        elif original.startswith(b"\x89PNG"):
            timeline = png_timeline(original, most)
        elif original[8:12] == b"WEBP":
            timeline = webp_timeline(original, most)
        else:
            return None
    except (struct.error, IndexError) as error:  # the file is too short for a field
        raise truncated() from error
    return timeline if len(timeline.frames) > 1 else None
