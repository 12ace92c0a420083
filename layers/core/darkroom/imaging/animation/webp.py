"""The frames of an animated WebP (RFC 9649, 2.7.1.1)."""

from __future__ import annotations

import struct

from darkroom.imaging.animation.frames import Frame, Timeline, shown
from darkroom.imaging.headers.chunks import chunks
from darkroom.imaging.headers.refusals import truncated, undecodable
from darkroom.imaging.headers.webp import lacks_frames, picture_at, uint24

_DISPOSES, _REPLACES = 0x01, 0x02


def webp_timeline(body: bytes, most: int) -> Timeline:
    """The timeline of a WebP, up to `most` frames. One that only lacks metadata is whole.

    The background colour in the file is ignored, as browsers do: it is transparent.
    """
    (riff_size,) = struct.unpack_from("<I", body, 4)
    if lacks_frames(body):
        raise truncated()
    width = height = plays = 0
    frames: list[Frame] = []
    for name, at, length in chunks(body, 12, "<4sI", trailer=0):
        if at > riff_size + 8 or len(frames) == most:  # the rest does not belong to the file, or is not asked for
            break
        if name == b"VP8X" and width == 0 and length >= 10:
            width, height = uint24(body, at + 4) + 1, uint24(body, at + 7) + 1
        elif name == b"ANIM" and length >= 6:
            (plays,) = struct.unpack_from("<H", body, at + 4)
        elif name == b"ANMF" and length >= 16:
            picture = picture_at(body, at + 16, at + length)
            left, top = 2 * uint24(body, at), 2 * uint24(body, at + 3)
            size = uint24(body, at + 6) + 1, uint24(body, at + 9) + 1
            if at + length > len(body) and not (picture and picture.is_whole):  # guard: animation-webp-frame-truncated
                raise truncated()
            if picture is None or picture.size != size:
                raise undecodable(f"frame {len(frames) + 1} has no picture of its size")
            if left + size[0] > width or top + size[1] > height:
                raise undecodable(f"frame {len(frames) + 1} lies outside the canvas")
            flags = body[at + 15]
            frames.append(
                Frame(
                    left=left,
                    top=top,
                    width=size[0],
                    height=size[1],
                    milliseconds=shown(uint24(body, at + 12)),
                    file=picture.file,
                    disposal="background" if flags & _DISPOSES else "none",
                    replaces=bool(flags & _REPLACES),
                    lossless_bytes=picture.lossless_bytes,
                )
            )
    return Timeline(width=width, height=height, plays=plays, frames=tuple(frames))
