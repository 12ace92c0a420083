"""The route of photos that also takes URLs from which to fetch them."""

from __future__ import annotations

from dataclasses import replace

from darkroom.domain.recipes.presets import DEFAULT_PRESET
from darkroom.http.images import routes as images
from darkroom.http.images.order_fields import OF_EVERY_ORDER
from darkroom.http.imports.fetches import FetchOrder

POST_IMAGE = replace(
    images.POST_IMAGE,
    description=(
        "Accepts a photo, or the URL of one, and promises to develop it. Its bytes decide its format, not its name or "
        "media type; but sent as text (text/*, application/xml) it is damaged on its way, and refused with 415. Send "
        "an Idempotency-Key, so that the request can be repeated safely."
    ),
    body=replace(
        images.PHOTO,
        description="The file's bytes, at most 4 MiB; or a form with the bytes in its one part, `file`; or JSON with "
        "the URL from which to fetch it, and the parameters beside it instead of in the query.",
        or_kind=FetchOrder,
        examples={"url": {"url": "https://photos.example/harbour.jpg", "preset": DEFAULT_PRESET}},
    ),
    answers=tuple(
        replace(answer, description="The photo is accepted and will be developed; the photo of a URL is fetched first.")
        for answer in images.POST_IMAGE.answers
    ),
    problems=(
        "empty_upload",
        "unreadable_body",
        "invalid_form",
        "invalid_fetch",
        "invalid_url",
        "upload_too_large",
        "unsupported_format",
        *OF_EVERY_ORDER,
    ),
)
"""The route of photos that also takes the URL of one."""
