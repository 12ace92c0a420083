"""Reads a request for an upload token: its JSON, with every problem reported by field; and the document about one."""

from typing import Annotated, NotRequired, TypedDict

from pydantic import AfterValidator, Field
from pydantic_core import PydanticKnownError

from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.kernel.field_problems import FieldProblem
from darkroom.domain.kernel.instants import rfc3339
from darkroom.domain.recipes.recipes import WHOLE
from darkroom.domain.tenants.upload_tokens import (
    MAX_COUNT,
    MAX_ORIGINS,
    MAX_SECONDS,
    ORIGIN,
    USUAL_SECONDS,
    UploadToken,
)
from darkroom.http.images.documents import Instant
from darkroom.http.images.order_fields import Metadata, PresetName, Reference, Tags, VisibilityName, WrittenDuration
from darkroom.http.images.request_models import NOTIFY, RECIPE, STRICT, VARIANTS, RequestReader, order_in
from darkroom.http.kernel.timetables import read_duration
from darkroom.http.uploads.announcements import MAX_ANNOUNCED_BYTES
from darkroom.operations.uploads.create_upload_token import TokenTerms


def _origin(text: str) -> str:
    if not ORIGIN.fullmatch(text):
        raise PydanticKnownError("string_pattern_mismatch", {"pattern": ORIGIN.pattern})
    return text


class TokenOrder(TypedDict):
    """How images are developed that are uploaded with a token."""

    __pydantic_config__ = STRICT  # type: ignore[misc]
    preset: NotRequired[PresetName | None]
    variants: NotRequired[VARIANTS | None]
    recipe: NotRequired[RECIPE | None]
    notify: NotRequired[NOTIFY | None]
    reference: NotRequired[Reference | None]
    tags: NotRequired[Tags | None]
    metadata: NotRequired[Metadata | None]
    visibility: NotRequired[VisibilityName | None]


class TokenRequest(TokenOrder):
    """What a browser may upload, until when, and how it is developed."""

    expires_in: NotRequired[
        Annotated[
            WrittenDuration, Field(description="How long the token is valid: an hour unless stated, at most P1D.")
        ]
    ]
    count: NotRequired[
        Annotated[int, Field(ge=1, le=MAX_COUNT, description="How many images; one unless stated."), WHOLE]
    ]
    max_bytes: NotRequired[
        Annotated[
            int,
            Field(ge=1, le=MAX_ANNOUNCED_BYTES, description="Of each; the stack's own limit unless less is stated."),
            WHOLE,
        ]
    ]
    origins: NotRequired[
        Annotated[
            list[Annotated[str, Field(json_schema_extra={"pattern": f"^{ORIGIN.pattern}$"}), AfterValidator(_origin)]],
            Field(
                min_length=1,
                max_length=MAX_ORIGINS,
                description="Whose scripts may use it, as browsers name them in Origin; anything else can name any.",
            ),
        ]
    ]


class UploadTokenDocument(TypedDict):
    """A token for one browser. No other answer shows it."""

    token: Annotated[str, Field(description="What the browser sends: `Authorization: Bearer dru_…`.")]
    id: Annotated[str, Field(description="Names it in the operator's logs.")]
    expires_at: Instant
    count: int
    max_bytes: int


_reader = RequestReader(
    TokenRequest, code="invalid_upload_token", sentence="The request for an upload token is invalid."
)


def read_token_request(body: bytes) -> TokenTerms:
    """Returns what a request's JSON asks for. Raises Rejected: `invalid_upload_token`, by field, and what `order_in`
    raises."""
    written = _reader.read(body)
    stated = {name: written[name] for name in TokenOrder.__annotations__ if written.get(name) is not None}  # type: ignore[literal-required]
    return TokenTerms(
        seconds=_seconds(written.get("expires_in")),
        count=written.get("count", 1),
        max_bytes=written.get("max_bytes"),
        origins=tuple(written.get("origins", ())),
        written_order=stated,
        order=order_in(stated),
    )


def _seconds(duration: str | None) -> int:
    if duration is None:
        return USUAL_SECONDS
    try:
        seconds = read_duration(duration) // 1000
    except Rejected:
        seconds = 0
    if not 1 <= seconds <= MAX_SECONDS:  # guard: upload-token-a-day-at-most
        message = "must be an ISO 8601 duration from PT1S to P1D, as in PT1H"
        raise _reader.refusal(FieldProblem(field="expires_in", message=message))
    return seconds


def upload_token_document(token: UploadToken, text: str) -> UploadTokenDocument:
    """Returns the document."""
    return {
        "token": text,
        "id": token.token_id,
        "expires_at": rfc3339(token.expires_at),
        "count": token.count,
        "max_bytes": token.max_bytes,
    }
