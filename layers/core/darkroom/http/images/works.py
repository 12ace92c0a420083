"""The refusal of work beside an image while that cannot begin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from darkroom.domain.images.image import Status
from darkroom.domain.kernel.paths import status_path
from darkroom.http.images.documents import RETRY_AFTER_SECONDS, retry_after_seconds
from darkroom.http.kernel.problems import Problem

if TYPE_CHECKING:
    from darkroom.domain.images.image import Image
    from darkroom.domain.kernel.instants import Milliseconds


def not_done(image: Image, what: str, *, now: Milliseconds) -> Problem:
    """The refusal while the image, or other work beside it, is not done; `what` can be done to one that is."""
    again = retry_after_seconds(image, now)
    headers = {} if again is None else {"Retry-After": str(again)}
    if image.outcome is Status.DONE:
        return Problem(
            "work_under_way",
            "Other work on this image is under way. Send the same request again when it has ended: "
            f"{status_path(image.image_id)} tells.",
            headers={"Retry-After": str(again or RETRY_AFTER_SECONDS)},
        )
    advice = "upload the photo again" if again is None else "ask again when it is"
    return Problem("not_done", f"{what} an image that is done. This one is {image.outcome}: {advice}.", headers=headers)
