"""The route that adds variants, and what is read of its request's JSON, with every problem reported by field."""

from http import HTTPStatus
from typing import NotRequired, TypedDict

from darkroom.domain.images.order import Order
from darkroom.domain.kernel.field_problems import FieldProblem
from darkroom.domain.kernel.sizes import limit_in_words
from darkroom.http.images.documents import StatusDocument
from darkroom.http.images.order_fields import IDEMPOTENCY_KEY, BatchId, PresetName
from darkroom.http.images.request_models import MAX_ORDER_BYTES, RECIPE, STRICT, VARIANTS, RequestReader, order_in
from darkroom.http.images.routes import ID
from darkroom.http.kernel.headers import LOCATION_OF_STATUS, REPLAYED, RETRY_AFTER
from darkroom.http.kernel.route import Body, Route, RouteAnswer


class Addition(TypedDict):
    """The variants to make: those of `preset`, or of them `variants`; or those of `recipe`. `batch` is one that they
    join."""

    __pydantic_config__ = STRICT  # type: ignore[misc]
    preset: NotRequired[PresetName | None]
    variants: NotRequired[VARIANTS | None]
    recipe: NotRequired[RECIPE | None]
    batch: NotRequired[BatchId | None]


POST_VARIANTS = Route(
    method="POST",
    path="/images/{id}/variants",
    name="addVariants",
    summary="Add variants",
    description=(
        "Makes more variants of an image that is done, or others in place of those with the same names. All present "
        "ones are served meanwhile. `work` in its status tells how far they are; if they fail, the image stays as it "
        "is. One such work is under way at a time."
    ),
    parameters=(ID, IDEMPOTENCY_KEY),
    body=Body(
        description=f"The variants, in at most {limit_in_words(MAX_ORDER_BYTES)}.",
        media_types=("application/json",),
        kind=Addition,
        examples={
            "own": {"recipe": {"variants": [{"name": "hero", "width": 2400, "height": 2400, "format": "webp"}]}},
            "preset": {"preset": "avatar", "variants": ["small"]},
        },
    ),
    answers=(
        RouteAnswer(
            status=HTTPStatus.ACCEPTED,
            description="The variants will be made.",
            kind=StatusDocument,
            headers=(LOCATION_OF_STATUS, RETRY_AFTER, REPLAYED),
        ),
    ),
    problems=(
        "unreadable_body",
        "unsupported_media_type",
        "invalid_variants",
        "unknown_preset",
        "unknown_variants",
        "invalid_recipe",
        "conflicting_parameters",
        "too_many_variants",
        "unknown_batch",
        "batch_closed",
        "part_not_deployed",
        "unknown_image",
        "unknown_path",
        "not_done",
        "work_under_way",
        "quota_exceeded",
        "invalid_idempotency_key",
        "idempotency_key_reused",
        "too_many_requests",
        "overloaded",
        "unavailable",
    ),
    is_rate_limited=True,
)


_reader = RequestReader(Addition, code="invalid_variants", sentence="The request for variants is invalid.")


def read_addition(body: bytes) -> Order:
    """The order in a request's JSON. Raises Rejected: `invalid_variants`, by field, and what `order_in` raises."""
    written = _reader.read(body)
    if written.get("preset") is None and written.get("recipe") is None:  # guard: works-no-preset-by-default
        raise _reader.refusal(
            FieldProblem(field="body", message="must say which: preset, perhaps with variants, or recipe")
        )
    return order_in(written)
