"""Animations: the frames of a GIF, WebP or APNG file, composed into whole pictures, and files that move."""

from __future__ import annotations

from darkroom.imaging.animation.compositor import composed, is_uniform
from darkroom.imaging.animation.frames import Frame, Timeline
from darkroom.imaging.animation.timeline import timeline_of
from darkroom.imaging.animation.work import require_little_work
from darkroom.imaging.animation.writers import AnimationWriter, animation_writer, still_gif

__all__ = [
    "AnimationWriter",
    "Frame",
    "Timeline",
    "animation_writer",
    "composed",
    "is_uniform",
    "require_little_work",
    "still_gif",
    "timeline_of",
]
