"""The requests about webhooks, with every problem reported by field, and the documents that answer them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache
from typing import Annotated, Any, NotRequired, TypedDict

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from darkroom.domain.events.event import PATTERNS
from darkroom.domain.kernel.endpoint_ids import MAX_ENDPOINT_URL_LENGTH
from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.kernel.field_problems import FieldProblem, InvalidFields, problems_of
from darkroom.domain.kernel.instants import Milliseconds, rfc3339
from darkroom.domain.kernel.paths import deliveries_path, webhook_path
from darkroom.domain.kernel.sizes import excess_in_words, limit_in_words
from darkroom.domain.webhooks.custom_headers import (
    MAX_ALL_VALUES_BYTES,
    MAX_HEADERS,
    MAX_NAME_CHARACTERS,
    MAX_VALUE_BYTES,
    NAME_PATTERN,
    VALUE_PATTERN,
    AskedHeader,
    has_twice,
    problem_with_name,
    problem_with_value,
)
from darkroom.domain.webhooks.delivery import (
    DELIVERY_ID_PATTERN,
    KEPT_SECONDS,
    MAX_PAGE_DELIVERIES,
    Delivery,
    DeliveryQuery,
    DeliveryStatus,
    is_delivery_id,
)
from darkroom.domain.webhooks.endpoint import MAX_DESCRIPTION_CHARACTERS, DisabledBy, Endpoint, signing_secrets
from darkroom.http.images.documents import Count, Instant, Path, WebhookId
from darkroom.http.images.list_queries import invalid_cursor, read_limit
from darkroom.http.kernel.timetables import DURATION_PATTERN, INSTANT_PATTERN, read_duration, read_instant

MAX_WEBHOOK_BYTES = 12_288
"""The largest body of a request to make or change a webhook. Its longest URL, description and headers, with every
character escaped that has to be, take three quarters of it."""

MAX_RECOVERY_BYTES = 1024

DEFAULT_PAGE_DELIVERIES = 20
"""The size of a page unless the client asks for another."""

EVERYTHING = ("*",)
"""What a webhook gets whose owner does not say what."""

_MOST_EVENTS = 32
"""How many patterns a request may list, repetitions included."""


# ── Requests ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _known(pattern: str) -> str:
    if pattern not in PATTERNS:
        raise PydanticCustomError("unknown_event", f"is not known. Known: {', '.join(PATTERNS)}")
    return pattern


def _once(patterns: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(patterns))


_Url = Annotated[
    str,
    Field(
        json_schema_extra={"format": "uri", "maxLength": MAX_ENDPOINT_URL_LENGTH},
        description="https, to a public host by its name; the stack says which ports may be used.",
    ),
]
_Events = Annotated[
    tuple[Annotated[str, AfterValidator(_known), Field(json_schema_extra={"enum": list(PATTERNS)})], ...],
    Field(
        min_length=1,
        max_length=_MOST_EVENTS,
        description="The types of events that it gets: all (`*`), those that begin with a word (`image.*`), or one.",
    ),
    AfterValidator(_once),
]
_Description = Annotated[str, Field(max_length=MAX_DESCRIPTION_CHARACTERS, description="Its owner's note about it.")]


def _checked(problem_with: Callable[[str], str | None]) -> AfterValidator:
    def check(text: str) -> str:
        if problem := problem_with(text):  # a clause without the text: what is sent may be a secret in the wrong place
            raise PydanticCustomError("invalid_header", "{problem}", {"problem": problem})
        return text

    return AfterValidator(check)


_Name = Annotated[
    str,
    Field(json_schema_extra={"pattern": f"^{NAME_PATTERN}$", "maxLength": MAX_NAME_CHARACTERS}),
    _checked(problem_with_name),
]
_Value = Annotated[
    str,
    Field(
        json_schema_extra={"pattern": f"^{VALUE_PATTERN}$", "maxLength": MAX_VALUE_BYTES},
        description=f"All values together have at most {MAX_ALL_VALUES_BYTES:,} bytes.",
    ),
    _checked(problem_with_value),
]
_IsSecret = Annotated[bool, Field(description="Whether its value is never shown again; true unless you say false.")]


class NewHeader(TypedDict):
    """A header that is added to what is sent."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)  # type: ignore[misc]
    name: _Name
    value: _Value
    secret: NotRequired[_IsSecret]


class ChangedHeader(TypedDict):
    """The same; without a `value`, a header that there is keeps its own."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)  # type: ignore[misc]
    name: _Name
    value: NotRequired[_Value]
    secret: NotRequired[_IsSecret]


def _distinct[Asked: NewHeader | ChangedHeader](headers: tuple[Asked, ...]) -> tuple[Asked, ...]:
    if has_twice(header["name"] for header in headers):  # guard: webhook-header-twice-refused
        raise PydanticCustomError("repeated_header", "have a name twice: upper and lower case are the same")
    return headers


_NewHeaders = Annotated[tuple[NewHeader, ...], Field(max_length=MAX_HEADERS), AfterValidator(_distinct)]
_ChangedHeaders = Annotated[
    tuple[ChangedHeader, ...],
    Field(max_length=MAX_HEADERS, description="All that it has from now on; those that are not named are removed."),
    AfterValidator(_distinct),
]


class NewWebhook(TypedDict):
    """A webhook to be made."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)  # type: ignore[misc]
    url: _Url
    events: NotRequired[Annotated[_Events, Field(json_schema_extra={"default": list(EVERYTHING)})]]
    description: NotRequired[_Description | None]
    headers: NotRequired[_NewHeaders]


class WebhookChange(TypedDict, total=False):
    """What is to change of a webhook; the rest stays. A `description` of null removes it."""

    __pydantic_config__ = ConfigDict(  # type: ignore[misc]
        extra="forbid", strict=True, json_schema_extra={"minProperties": 1}
    )
    url: _Url
    events: _Events
    description: _Description | None
    headers: _ChangedHeaders
    enabled: Annotated[
        bool,
        Field(
            description="false: events wait, for 30 days. true: what waited is sent, slowly at first; and a webhook "
            "that rests is tried at once."
        ),
    ]


class Recovery(TypedDict, total=False):
    """Which failed deliveries are tried again: those of events since then."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)  # type: ignore[misc]
    since: Annotated[
        str,
        Field(
            json_schema_extra={
                "anyOf": [
                    {"format": "date-time", "pattern": f"^{INSTANT_PATTERN}$"},
                    {"pattern": f"^{DURATION_PATTERN}$"},
                ]
            },
            description="An instant in the past, or how long ago that was. By default all that are kept: 30 days.",
        ),
    ]


class InvalidWebhook(InvalidFields):
    """The JSON is not valid; `body` names the whole document."""

    def __init__(self, problems: tuple[FieldProblem, ...]) -> None:
        super().__init__("invalid_webhook", "The webhook is invalid.", problems)


def read_new_webhook(body: bytes) -> NewWebhook:
    """Returns the webhook that a request's JSON asks for. Raises InvalidWebhook."""
    webhook: NewWebhook = _read(NewWebhook, body)
    return webhook


def read_webhook_change(body: bytes) -> WebhookChange:
    """Returns the change that a request's JSON asks for. Raises InvalidWebhook."""
    change: WebhookChange = _read(WebhookChange, body)
    if not change:
        known = ", ".join(WebhookChange.__annotations__)
        raise InvalidWebhook((FieldProblem(field="body", message=f"changes nothing. Known fields: {known}"),))
    return change


def asked_headers(headers: Sequence[NewHeader | ChangedHeader]) -> tuple[AskedHeader, ...]:
    """Returns the headers that a request asks for."""
    return tuple(
        AskedHeader(name=header["name"], value=header.get("value"), is_secret=header.get("secret"))
        for header in headers
    )


def _read(kind: Any, body: bytes) -> Any:
    if len(body) > MAX_WEBHOOK_BYTES:  # guard: webhook-body-bound
        message = f"has {excess_in_words(len(body), MAX_WEBHOOK_BYTES)} are allowed"
        raise InvalidWebhook((FieldProblem(field="body", message=message),))
    try:
        return _adapter(kind).validate_json(body)
    except ValidationError as error:
        raise InvalidWebhook(problems_of(error, known=kind.__annotations__)) from error


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def read_recovery(body: bytes, *, now: Milliseconds) -> Milliseconds:
    """Returns since when failed deliveries are to be tried again, by a request's JSON or without a body: an instant of
    the last 30 days. Raises Rejected (`invalid_since`)."""
    oldest = now - KEPT_SECONDS * 1000
    try:
        # guard: webhook-recovery-body-bound
        asked = (json.loads(body) if body else {}) if len(body) <= MAX_RECOVERY_BYTES else None
    except (ValueError, RecursionError):  # no JSON, or a thousand brackets
        asked = None
    if asked == {}:
        return oldest
    if not isinstance(asked, dict) or asked.keys() != {"since"} or not isinstance(asked["since"], str):
        raise Rejected(
            "invalid_since",
            f"Send no body, or a JSON object of at most {limit_in_words(MAX_RECOVERY_BYTES)} that says since when: "
            '{"since": "2027-03-01T09:00:00Z"} or {"since": "P2D"}.',
        )
    return max(_since(asked["since"], now=now), oldest)  # guard: webhook-recovery-retention-bound


def _since(text: str, *, now: Milliseconds) -> Milliseconds:
    """Returns the instant that a text names, or that is as long ago as it says. Raises Rejected (`invalid_since`) for
    anything else, and for an instant that is yet to come."""
    try:
        since = now - read_duration(text) if text.startswith("P") else read_instant("since", text)
    except Rejected:
        since = now + 1
    if since > now:  # guard: webhook-recovery-in-the-past
        raise Rejected(
            "invalid_since",
            "since is an instant in the past with its zone, as in RFC 3339, or how long ago that was, as an ISO 8601 "
            f'duration: 2027-03-01T09:00:00+01:00, PT6H, P2D. It is "{text[:40]}".',
        )
    return since


def read_delivery_query(
    *, limit: str | None = None, status: str | None = None, cursor: str | None = None
) -> DeliveryQuery:
    """Returns what a request's query asks for. Raises Rejected (`invalid_limit`, `unknown_status`,
    `invalid_cursor`)."""
    return DeliveryQuery(
        limit=DEFAULT_PAGE_DELIVERIES if limit is None else read_limit(limit, most=MAX_PAGE_DELIVERIES),
        status=None if status is None else _status(status),
        after=None if cursor is None else _cursor(cursor),
    )


def _status(text: str) -> DeliveryStatus:
    if text not in tuple(DeliveryStatus):
        raise Rejected("unknown_status", f"status is one of these: {', '.join(DeliveryStatus)}.")
    return DeliveryStatus(text)


def _cursor(text: str) -> str:
    if not is_delivery_id(text):  # guard: webhook-cursor-checked
        raise invalid_cursor()
    return text


# ── Documents ────────────────────────────────────────────────────────────────────────────────────────────────────────


class WebhookLinksDocument(TypedDict):
    """Where to ask about the webhook, and about what was sent to it."""

    self: Path
    deliveries: Path


class HeaderDocument(TypedDict):
    """A header that is added to what is sent."""

    name: str
    value: Annotated[str | None, Field(description="null if it is secret.")]
    secret: bool


class WebhookDocument(TypedDict):
    """A webhook as it is now: always with all keys, perhaps with more in later versions."""

    id: WebhookId
    url: Annotated[str, Field(json_schema_extra={"format": "uri"})]
    events: Annotated[list[str], Field(description="The types of events that it gets: `*`, `image.*`, `image.done`.")]
    description: str | None
    headers: Annotated[list[HeaderDocument], Field(description="What is sent besides Darkroom's own headers.")]
    enabled: bool
    disabled_by: Annotated[
        str | None,
        Field(
            json_schema_extra={"enum": [*DisabledBy, None]},
            description="`client`: you did it. `gone`: it answered 410. `failing`: everything failed for five days.",
        ),
    ]
    disabled_at: Instant | None
    paused_at: Annotated[
        Instant | None, Field(description="Since when the operator has paused it: events wait, and nothing is sent.")
    ]
    failing_since: Annotated[Instant | None, Field(description="Since when every attempt has failed.")]
    warned_at: Annotated[Instant | None, Field(description="When it had failed for a day.")]
    last_success_at: Instant | None
    last_failure_at: Instant | None
    rests_until: Annotated[
        Instant | None,
        Field(
            description="After three deliveries in a row whose first attempts failed, one of them tries it then; most "
            "others wait for that one. After three without a connection, all your webhooks at its host wait for one."
        ),
    ]
    recovering_since: Annotated[
        Instant | None, Field(description="Failed deliveries of events since then are being opened again.")
    ]
    earlier_secrets_until: Annotated[
        Instant | None, Field(description="Until then, secrets that were replaced sign too.")
    ]
    created_at: Instant
    links: WebhookLinksDocument


class NewWebhookDocument(WebhookDocument):
    """A webhook as it is now, with its newest secret, which no other answer shows."""

    secret: Annotated[
        str,
        Field(
            pattern="^whsec_[A-Za-z0-9+/]+=*$",
            description="It signs what is sent, as Standard Webhooks says. Keep it: it is shown only here.",
        ),
    ]


class WebhooksDocument(TypedDict):
    """All webhooks of the tenant, the oldest first."""

    webhooks: list[WebhookDocument]


class AttemptDocument(TypedDict):
    """One attempt of a delivery."""

    number: Annotated[int, Field(ge=1, description="From 1 again after a recovery.")]
    started_at: Instant
    milliseconds: Annotated[Count | None, Field(description="null if nothing was heard of it.")]
    status: Annotated[int | None, Field(ge=100, le=999, description="Of the response; null if there was none.")]
    error: Annotated[str | None, Field(description="Why there was no response.")]
    response: Annotated[str | None, Field(description="The beginning of its body.")]


class DeliveryDocument(TypedDict):
    """One event on its way to one webhook."""

    id: Annotated[str, Field(pattern=f"^{DELIVERY_ID_PATTERN}$")]
    event_id: Annotated[str, Field(description="The header `webhook-id`: the same in every attempt.")]
    type: str
    status: Annotated[str, Field(json_schema_extra={"enum": list(DeliveryStatus)})]
    attempts: Annotated[list[AttemptDocument], Field(description="The latest, oldest first.")]
    created_at: Instant
    next_attempt_at: Annotated[
        Instant | None,
        Field(description="The earliest time of the next one; later if the webhook is disabled, rests or is busy."),
    ]
    ended_at: Instant | None


class DeliveriesDocument(TypedDict):
    """Some of a webhook's deliveries, the newest event first."""

    deliveries: list[DeliveryDocument]
    next: Annotated[str | None, Field(description="The `cursor` of the next page; null at the end of the list.")]


def webhook_document(endpoint: Endpoint, *, now: Milliseconds) -> WebhookDocument:
    """Returns the document of an endpoint, without any secret."""
    return {
        "id": endpoint.endpoint_id,
        "url": endpoint.url,
        "events": list(endpoint.events),
        "description": endpoint.description,
        "headers": [
            {"name": header.name, "value": header.value, "secret": header.sealed is not None}
            for header in endpoint.headers
        ],
        "enabled": endpoint.is_enabled,
        "disabled_by": None if endpoint.disabled_by is None else endpoint.disabled_by.value,
        "disabled_at": rfc3339(endpoint.disabled_at),
        "paused_at": rfc3339(endpoint.paused_at),
        "failing_since": rfc3339(endpoint.failing_since),
        "warned_at": rfc3339(endpoint.warned_at),
        "last_success_at": rfc3339(endpoint.last_success_at),
        "last_failure_at": rfc3339(endpoint.last_failure_at),
        "rests_until": rfc3339(endpoint.rests_until),
        "recovering_since": None if endpoint.recovery is None else rfc3339(endpoint.recovery.since),
        "earlier_secrets_until": rfc3339(
            max((secret.until for secret in signing_secrets(endpoint, now=now) if secret.until), default=None)
        ),
        "created_at": rfc3339(endpoint.created_at),
        "links": {"self": webhook_path(endpoint.endpoint_id), "deliveries": deliveries_path(endpoint.endpoint_id)},
    }


def new_webhook_document(endpoint: Endpoint, secret: str, *, now: Milliseconds) -> NewWebhookDocument:
    """Returns the same with the newest secret."""
    return {**webhook_document(endpoint, now=now), "secret": secret}


def delivery_document(delivery: Delivery) -> DeliveryDocument:
    """Returns the document of a delivery, without what is sent."""
    is_waiting = delivery.status is DeliveryStatus.WAITING  # one that is being sent is due when its worker is lost
    return {
        "id": delivery.delivery_id,
        "event_id": delivery.event_id,
        "type": delivery.event_type,
        "status": delivery.status.value,
        "attempts": [
            {
                "number": attempt.number,
                "started_at": rfc3339(attempt.started_at),
                "milliseconds": attempt.milliseconds,
                "status": attempt.status,
                "error": attempt.error,
                "response": attempt.response,
            }
            for attempt in delivery.attempts
        ],
        "created_at": rfc3339(delivery.created_at),
        "next_attempt_at": rfc3339(delivery.due_at) if is_waiting else None,
        "ended_at": rfc3339(delivery.ended_at),
    }
