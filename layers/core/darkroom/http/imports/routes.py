"""The route of photos that also takes URLs from which to fetch them."""

from __future__ import annotations

from dataclasses import replace

from darkroom.domain.recipes.presets import DEFAULT_PRESET
from darkroom.http.images import routes as images
from darkroom.http.imports.fetches import FetchOrder

_AFTER_THE_FORM = images.POST_IMAGE.problems.index("invalid_form") + 1
"""Where the problems of JSON stand, which are like a form's."""

POST_IMAGE = replace(
    images.POST_IMAGE,
    description=f"Accepts a photo, or the URL of one, and {images.PROMISE}",
    body=replace(
        images.PHOTO,
        description=f"{images.PHOTO.description.removesuffix('.')}; or JSON with the URL from which to fetch it, and "
        "the parameters beside it instead of in the query.",
        or_kind=FetchOrder,
        examples={"url": {"url": "https://photos.example/harbour.jpg", "preset": DEFAULT_PRESET}},
    ),
    answers=tuple(
        replace(answer, description="The photo is accepted and will be developed; the photo of a URL is fetched first.")
        for answer in images.POST_IMAGE.answers
    ),
    problems=(
        *images.POST_IMAGE.problems[:_AFTER_THE_FORM],
        "invalid_fetch",
        "invalid_url",
        *images.POST_IMAGE.problems[_AFTER_THE_FORM:],
    ),
)
"""The route of photos that also takes the URL of one."""
