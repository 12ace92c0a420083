"""What reading the running stack needs: the names of its functions' folders, and clients that never wait for long."""

from __future__ import annotations

from botocore.config import Config

_SUFFIX = "Function"

IMPATIENT = Config(connect_timeout=2, read_timeout=4, retries={"total_max_attempts": 1})
"""For clients whose user may stop them at any moment."""


def folder_name(logical_id: str) -> str:
    """SubmitImageFunction → submit_image; a folder's name is returned unchanged."""
    words = "".join(
        f"_{dead_letter.lower()}" if dead_letter.isupper() else dead_letter
        for dead_letter in logical_id.removesuffix(_SUFFIX)
    )
    return words.removeprefix("_").replace("-", "_")
