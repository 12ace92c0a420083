"""The HTTP API as Python calls: requests are retried if that is safe, and refusals are explained."""

from __future__ import annotations

import email.utils
import json
import random
import re
import secrets
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypedDict, cast
from urllib.parse import quote, urlencode, urlsplit

import httpx

from darkroom_client.forms import FormPost, form_in, is_out_of_date, refusal, send_form

type Pause = Callable[[float], None]
"""Waits that many seconds; may raise to end the wait early."""

NOT_RUNNING = "The local stack is not running. Start it with: make run"

TERMINAL_STATUSES = frozenset({"done", "failed", "expired"})

IMAGE_ID_PATTERN = re.compile(r"[0-7][0-9a-hjkmnp-tv-z]{25}")
"""128 bits in lower-case Crockford base32."""

_INSTANT_PATTERN = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})"
)
"""A date and time of RFC 3339, section 5.6, in upper case."""

_STATUS_PATTERN = re.compile(r"[a-z_]{1,32}")


class ReceivedVariant(TypedDict):
    """One finished output; `url` is presigned and valid for about 15 minutes."""

    name: str
    width: int
    height: int
    format: str
    bytes: int
    sha256: str
    url: str


class ReceivedProgress(TypedDict):
    """How many of the recipe's variants are made."""

    done: int
    total: int


class ReceivedError(TypedDict):
    """Why an image failed."""

    code: str
    message: str
    retryable: bool


class ReceivedLinks(TypedDict):
    """Paths from the API's root."""

    self: str
    status: str


class ReceivedWork(TypedDict):
    """The latest work beside an image that is done."""

    kind: str
    status: str
    run: int
    attempt: int
    retry_at: str | None
    requested_at: str
    ended_at: str | None
    variants: list[str]
    error: ReceivedError | None


class ReceivedEdit(TypedDict):
    """The last edit of an image that was accepted, and which before it were skipped."""

    number: int
    status: str
    accepted_at: str
    overtaken: list[int]


class _Later(TypedDict, total=False):
    reference: str | None
    tags: list[str]
    metadata: dict[str, Any] | None
    work: ReceivedWork | None
    edit: ReceivedEdit | None


class ReceivedStatus(_Later):
    """What the API says about an image: always with all of these keys, but those that stacks of an earlier version do
    not have, and perhaps with new ones."""

    id: str
    status: str
    lane: str
    preset: str | None
    run: int
    attempt: int
    retry_at: str | None
    created_at: str
    process_at: str | None
    expires_at: str | None
    completed_at: str | None
    progress: ReceivedProgress
    variants: list[ReceivedVariant]
    placeholder: dict[str, str] | None
    attention: dict[str, float] | None
    notices: list[str]
    error: ReceivedError | None
    links: ReceivedLinks


class ApiError(Exception):
    """A request failed; the message says why and what to do."""


class Unreachable(ApiError):
    """No request can get through (nothing listens, no such host, no trusted certificate): fix that, then try again."""


class Unavailable(ApiError):
    """The API could not be reached or was overloaded until the attempts ran out: try again later."""


class Refused(ApiError):
    """The API refused the request; sending the same again gives the same response."""

    def __init__(self, message: str, *, status_code: int, code: str | None = None) -> None:
        super().__init__(message)
        self.status_code = status_code
        self.code = code


class Unauthorized(Refused):
    """The caller may not use this API: no request succeeds until the caller uses another credential."""


class NotFinished(ApiError):
    """The timeout passed before the image, or the batch, had ended."""


class AddressExpired(ApiError):
    """A presigned URL is no longer valid: get the image's status again for a new one."""


@dataclass(frozen=True, kw_only=True)
class RequestRetries:
    """How often a request is sent, and how long to wait between attempts."""

    max_attempts: int = 8
    first_pause_seconds: float = 0.25
    longest_pause_seconds: float = 16.0
    longest_retry_after_seconds: float = 60.0


def pause_before_retry(
    policy: RequestRetries, *, attempt: int, retry_after_seconds: float | None, jitter: float
) -> float:
    """Seconds to wait after failed attempt number `attempt` (from 1); `jitter` is a random number in [0, 1).

    The backoff is exponential, and the upper half of each pause is random, so clients that failed together do not come
    back together. The pause is never shorter than the server's `Retry-After`, up to the policy's cap.
    """
    ceiling = min(policy.first_pause_seconds * 2.0 ** (attempt - 1), policy.longest_pause_seconds)
    backoff = ceiling * (0.5 + 0.5 * jitter)
    if retry_after_seconds is None:
        return backoff
    floor = min(retry_after_seconds, policy.longest_retry_after_seconds)
    return max(backoff, floor + min(floor, ceiling) * 0.25 * jitter)


def retry_after_seconds(header: str | None, *, now: datetime) -> float | None:
    """A `Retry-After` header in seconds (RFC 9110, section 10.2.3: a number or a date), or None."""
    if header is None:
        return None
    if header.strip().isdecimal():
        return float(header)
    try:
        moment = email.utils.parsedate_to_datetime(header)
    except ValueError:
        return None
    if moment.tzinfo is None:  # the date was given with the zone "-0000"
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())


@dataclass(frozen=True, kw_only=True)
class StatusAnswer:
    """A status document, and what the response's headers say about the next request."""

    document: ReceivedStatus
    entity_tag: str | None = None
    retry_after_seconds: float | None = None
    replayed: bool = False

    @property
    def image_id(self) -> str:
        """The image that the document is about."""
        return self.document["id"]

    @property
    def is_terminal(self) -> bool:
        """Whether neither the image nor work beside it is under way, and no edit waits."""
        # A stack of an earlier version has no such keys.
        work, edit = self.document.get("work"), self.document.get("edit")
        is_quiet = (work is None or work["ended_at"] is not None) and (edit is None or edit["status"] != "accepted")
        return self.document["status"] in TERMINAL_STATUSES and is_quiet


# 429 throttles, 503 is the API's own "not now"; API Gateway answers 500, 502 and 504 if a function crashed, returned
# something invalid or timed out. Everything this client sends may be repeated: a POST carries an Idempotency-Key,
# or reuses duplicates.
_RETRIED_STATUS_CODES = frozenset({429, 500, 502, 503, 504})

_CHUNK_BYTES = 64 * 1024

_TURNS, _UNDER_WAY = 120, "urn:darkroom:problem:work-under-way"
"""How often a request for variants is sent while other work on its image is under way."""

_FORMS = 3
"""How many forms in a row may be out of date by the time the file has been sent."""

# A function behind an HTTP API may take 30 s to answer
# (https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-quotas.html).
_TIMEOUT = httpx.Timeout(connect=10.0, read=35.0, write=60.0, pool=None)


class Api:
    """One stack's API: a pool of connections that several threads may use at once."""

    def __init__(
        self,
        url: str,
        api_key: str | None = None,
        *,
        auth: httpx.Auth | None = None,
        is_local_stack: bool = False,
        connections: int = 8,
        transport: httpx.BaseTransport | None = None,
        retry: RequestRetries | None = None,
        pause: Pause = time.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.url = url.rstrip("/")
        self._is_local_stack = is_local_stack
        self._is_on_this_machine = is_loopback(self.url)
        self._retry = retry or RequestRetries()
        self._pause = pause
        self._jitter = jitter
        limits = httpx.Limits(max_connections=connections, max_keepalive_connections=connections)
        # A proxy in the environment is for other hosts, never for this machine.
        trust_environment = not self._is_on_this_machine
        certificates = certificates_for(self.url)
        credentials = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
        self._client = httpx.Client(
            base_url=self.url,
            headers={"User-Agent": "darkroom", "Accept": "application/json", **credentials},
            auth=auth,
            timeout=_TIMEOUT,
            limits=limits,
            transport=transport,
            trust_env=trust_environment,
            verify=certificates,
        )
        # Presigned URLs carry their own credential, and S3 refuses a request with a second one.
        self._storage = httpx.Client(
            headers={"User-Agent": "darkroom"},
            timeout=_TIMEOUT,
            limits=limits,
            transport=transport,
            trust_env=trust_environment,
            verify=certificates,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()
        self._storage.close()

    def submit(
        self,
        body: bytes,
        *,
        content_type: str,
        idempotency_key: str | None,
        parameters: Mapping[str, str] | None = None,
        on_sent: Callable[[int], None] | None = None,
    ) -> StatusAnswer:
        """Posts an image; returns once it is accepted (202). `parameters` say what to make of it.

        All attempts carry the same key, so a lost response cannot make a second image; without one the parameters must
        say that duplicates are reused. `on_sent` gets the number of bytes of the body that have been sent; it starts
        from zero with each attempt.
        """
        headers = {"Content-Type": content_type, "Content-Length": str(len(body)), **_keyed(idempotency_key)}
        # A space must travel as %20: SigV4 knows no "+", and the signature would not be the one that AWS computes.
        query = urlencode(parameters or {}, quote_via=quote)
        path = f"/images?{query}" if query else "/images"

        def send() -> httpx.Response:
            content = body if on_sent is None else _chunks(body, on_sent)
            return self._client.post(path, content=content, headers=headers)

        response = self._send_patiently(send, self.url)
        if response.status_code != 202:
            raise self._refusal(response)
        return self._answer(response)

    def send_announced(
        self,
        file: Path,
        *,
        announcement: Mapping[str, Any],
        idempotency_key: str | None,
        on_sent: Callable[[int], None] | None = None,
    ) -> StatusAnswer:
        """Announces a file that is too large for a request, and sends it to S3 with the form that this returns.

        Each attempt begins with the announcement: it returns a form that is still valid, or says that an attempt whose
        response was lost did deliver the file. `on_sent` is as in `submit`. Raises OSError if the file is unreadable.
        """
        answer: StatusAnswer | None = None

        def send() -> httpx.Response:
            nonlocal answer
            answer, form = self._announce(announcement, idempotency_key)
            if form is None:
                return httpx.Response(httpx.codes.NO_CONTENT)
            return send_form(self._storage, form, file, on_sent or (lambda sent_bytes: None))

        for _ in range(_FORMS):
            response = self._send_patiently(send, "The store of uploads")
            if not is_out_of_date(response):
                break
        if answer is None or not response.is_success:
            raise Refused(refusal(response), status_code=response.status_code)
        return self._confirmed(answer) if answer.document["status"] == "awaiting_upload" else answer

    def _confirmed(self, answer: StatusAnswer) -> StatusAnswer:
        """The answer to a confirmation that the file was sent; `answer` if there is none: S3 tells the stack, too."""
        image_id = answer.document["id"]
        try:
            response = self._client.post(f"/uploads/{image_id}/done")
        except httpx.HTTPError:  # guard: cli-upload-unconfirmed-accepted
            return answer
        if response.status_code != httpx.codes.OK:
            return answer
        return replace(self._answer(response, asked_for=image_id), replayed=answer.replayed)

    def _announce(
        self, announcement: Mapping[str, Any], idempotency_key: str | None
    ) -> tuple[StatusAnswer, FormPost | None]:
        headers = _keyed(idempotency_key)
        response = self._send_patiently(
            lambda: self._client.post("/uploads", json=announcement, headers=headers), self.url
        )
        if response.status_code not in (201, 202):
            raise self._refusal(response)
        answer = self._answer(response)
        try:
            return answer, form_in(_json_object(response))
        except (KeyError, TypeError) as error:
            raise Refused(
                f"{self.url} did not return a form. Is this the address of a Darkroom API?",
                status_code=response.status_code,
            ) from error

    def status(self, image_id: str, *, seen: StatusAnswer | None = None) -> StatusAnswer:
        """Gets an image's status; with `seen`, an earlier answer, the document is sent only if it has changed."""
        headers = {} if seen is None or seen.entity_tag is None else {"If-None-Match": seen.entity_tag}
        response = self._send_patiently(
            lambda: self._client.get(f"/images/{image_id}/status", headers=headers), self.url
        )
        if response.status_code == 304 and seen is not None:
            return StatusAnswer(
                document=seen.document,
                entity_tag=seen.entity_tag,
                retry_after_seconds=_retry_after(response),
                replayed=seen.replayed,
            )
        if response.status_code != 200:
            raise self._refusal(response)
        return self._answer(response, asked_for=image_id)

    def reschedule(self, image_id: str, when: Mapping[str, str]) -> ReceivedStatus:
        """Moves a scheduled image to another time, in the API's terms (`process_at` or `delay`); returns the document
        after that. If it is sent again after a lost response, the image moves to the same time again, or with `delay`
        to a moment later."""
        response = self._exchange("PATCH", f"/images/{image_id}", answered_by=httpx.codes.OK, body=when)
        return self._answer(response, asked_for=image_id).document

    def add_variants(
        self, image_id: str, what: Mapping[str, Any], *, idempotency_key: str | None = None
    ) -> StatusAnswer:
        """Asks for more variants of a done image, in the API's terms (`preset`, `variants`, `recipe`, `batch`); returns
        once they are accepted, when nothing can lose them any more. While other work on the image is under way, it is
        asked again for some minutes."""
        headers = {"Idempotency-Key": idempotency_key or f"variants-{secrets.token_hex(16)}"}
        path, body = f"/images/{image_id}/variants", dict(what)
        response = self._in_turn(lambda: self._client.post(path, json=body, headers=headers))
        return self._answer(response, asked_for=image_id)

    def edit(self, image_id: str, edits: Mapping[str, Any], *, idempotency_key: str | None = None) -> StatusAnswer:
        """Edits an image, in the API's terms (`crop`, `focus`, `rotate`, `flip`, `recipe`), in the place of all earlier
        edits; returns once that is accepted, when nothing can lose it any more."""
        key = idempotency_key or f"edit-{secrets.token_hex(16)}"
        path, accepted = f"/images/{image_id}/edits", httpx.codes.ACCEPTED
        response = self._exchange("POST", path, answered_by=accepted, body=edits, idempotency_key=key)
        return self._answer(response, asked_for=image_id)

    def change_visibility(self, image_id: str, visibility: str) -> StatusAnswer:
        """Asks that a done image become `private`, `public` or `signed`; returns once that is accepted, or if it is so
        already. While other work on the image is under way, it is asked again for some minutes."""
        path, body = f"/images/{image_id}", {"visibility": visibility}
        return self._answer(self._in_turn(lambda: self._client.patch(path, json=body)), asked_for=image_id)

    def _in_turn(self, send: Callable[[], httpx.Response]) -> httpx.Response:
        """The answer that accepts work beside an image, after other work on it. Raises Refused."""
        for _ in range(_TURNS):
            response = self._send_patiently(send, self.url)
            if response.status_code != 409 or _json_object(response).get("type") != _UNDER_WAY:
                break
            self._pause(max(1.0, _retry_after(response) or 0.0))
        if response.status_code not in (httpx.codes.OK, httpx.codes.ACCEPTED):
            raise self._refusal(response)
        return response

    def delete(self, image_id: str) -> None:
        """Deletes an image: an unfinished one is cancelled, and its objects are removed."""
        self._exchange("DELETE", f"/images/{image_id}", answered_by=httpx.codes.NO_CONTENT)

    def ask(
        self,
        method: str,
        path: str,
        *,
        answered_by: int = httpx.codes.OK,
        body: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> dict[str, Any]:
        """Sends a request, with `body` as JSON, until it is answered; returns the answer's JSON object, or an empty one
        if it has none. Raises Refused for any other status than `answered_by`."""
        return _json_object(
            self._exchange(method, path, answered_by=answered_by, body=body, idempotency_key=idempotency_key)
        )

    def _exchange(
        self,
        method: str,
        path: str,
        *,
        answered_by: int,
        body: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> httpx.Response:
        content, headers = None if body is None else dict(body), _keyed(idempotency_key)
        response = self._send_patiently(
            lambda: self._client.request(method, path, json=content, headers=headers), self.url
        )
        if response.status_code != answered_by:
            raise self._refusal(response)
        return response

    def fetch(self, url: str, *, size_bytes: int) -> bytes:
        """The object behind a presigned URL, which has `size_bytes` bytes; not much more is read if it is longer.

        Raises AddressExpired if the URL is no longer valid.
        """

        def send() -> httpx.Response:
            with self._storage.stream("GET", url) as response:
                body = bytearray()
                for chunk in response.iter_bytes():
                    body += chunk
                    if len(body) > max(size_bytes, _CHUNK_BYTES):
                        break
                return httpx.Response(response.status_code, headers=_plain_headers(response), content=bytes(body))

        response = self._send_patiently(send, f"{urlsplit(url).scheme}://{urlsplit(url).netloc}")
        if response.status_code == 403:
            raise AddressExpired("The file's URL has expired.")
        if response.status_code != 200:
            raise Refused(
                f"The file could not be fetched: the store answered {response.status_code} {response.reason_phrase}.",
                status_code=response.status_code,
            )
        return response.content

    def _send_patiently(self, send: Callable[[], httpx.Response], address: str) -> httpx.Response:
        attempt = 0
        while True:
            attempt += 1
            wait_seconds: float | None = None
            try:
                response = send()
            except httpx.TransportError as error:
                if self._is_on_this_machine and _caused_by(error, ConnectionRefusedError):
                    # guard: cli-not-running-local-only
                    raise Unreachable(NOT_RUNNING if self._is_local_stack else _nobody_listens(address)) from error
                if _is_hopeless(error):
                    raise Unreachable(f"Cannot reach {address}: {_reason(error)} Is the address right?") from error
                trouble = _reason(error)
            else:
                if response.status_code not in _RETRIED_STATUS_CODES:
                    return response
                trouble = explanation(response)
                wait_seconds = _retry_after(response)
            if attempt >= self._retry.max_attempts:
                raise Unavailable(f"{address} failed {attempt} times, the last time with: {trouble} Try again later.")
            self._pause(
                pause_before_retry(
                    self._retry, attempt=attempt, retry_after_seconds=wait_seconds, jitter=self._jitter()
                )
            )

    def _answer(self, response: httpx.Response, *, asked_for: str | None = None) -> StatusAnswer:
        """What the response says of the image that was asked for. The commands show it, and people paste what they
        show into a shell, so a server may not say just anything."""
        document = _json_object(response)
        missing = ReceivedStatus.__required_keys__ - document.keys()
        invalid = [] if missing else _invalid_fields(document, asked_for)  # guard: cli-image-answer-checked
        if missing or invalid:
            reason = f"no {', '.join(sorted(missing))}" if missing else f"an invalid {', '.join(invalid)}"
            raise Refused(
                f"{self.url} did not return a status document ({reason}). Is this the address of a Darkroom API?",
                status_code=response.status_code,
            )
        return StatusAnswer(
            document=cast(ReceivedStatus, document),
            entity_tag=response.headers.get("etag"),
            retry_after_seconds=_retry_after(response),
            replayed=response.headers.get("idempotent-replayed", "").lower() == "true",
        )

    def _refusal(self, response: httpx.Response) -> Refused:
        message = explanation(response)
        code = _json_object(response).get("code")
        if code is None:
            # Not a problem document, so it comes not from Darkroom's own code but from what is in front of it.
            message += _HINTS.get(response.status_code, "")
        if response.is_redirect:
            message = f"{self.url} redirects to {response.headers.get('location', 'elsewhere')}: give that address."
        refusal = Unauthorized if response.status_code in (401, 403) else Refused
        return refusal(message, status_code=response.status_code, code=code if isinstance(code, str) else None)


def _invalid_fields(document: Mapping[str, Any], asked_for: str | None) -> list[str]:
    """The fields of a status document that cannot be what they should."""

    def matches(name: str, pattern: re.Pattern[str]) -> bool:
        return isinstance(document[name], str) and pattern.fullmatch(document[name]) is not None

    optional = ("process_at", "expires_at", "completed_at")
    is_valid = {  # guard: cli-image-id-matches
        "id": matches("id", IMAGE_ID_PATTERN) and asked_for in (None, document["id"]),
        "status": matches("status", _STATUS_PATTERN),
        "created_at": matches("created_at", _INSTANT_PATTERN),
    } | {name: document[name] is None or matches(name, _INSTANT_PATTERN) for name in optional}
    return [name for name, valid in is_valid.items() if not valid]


_HINTS = {
    401: " This stack needs a credential: set DARKROOM_API_KEY, or use --api-key KEY, which `ps` shows.",
    403: " This stack refuses the caller. With --api-key: the key belongs to another stack, was revoked, or its tenant "
    "is suspended. For a stack with Access=iam: use --iam (your AWS credentials need execute-api:Invoke).",
    404: " Is this the address of a Darkroom API (the ApiUrl output of the stack)?",
    413: " API Gateway accepts images up to about 4.6 MB: announce a larger one with POST /uploads.",
}


def explanation(response: httpx.Response) -> str:
    """What an error response says, as a sentence: a problem's detail, or whatever else it has."""
    document = _json_object(response)
    # Problem documents have `detail` and `title` (RFC 9457); API Gateway's own answers have `message`.
    for key in ("detail", "title", "message"):
        text = document.get(key)
        if isinstance(text, str) and text.strip():
            sentence = text.strip()
            break
    else:
        sentence = f"The server answered {response.status_code} {response.reason_phrase}".rstrip()
    return sentence if sentence.endswith((".", "!", "?")) else sentence + "."


def is_loopback(url: str) -> bool:
    """Whether an address is on this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _nobody_listens(address: str) -> str:
    return (
        f"Nothing listens at {address}. Start the server there, or give another address with --url or "
        "DARKROOM_URL; without either it is the local stack."
    )


def certificates_for(url: str) -> ssl.SSLContext:
    """The certificate authorities that a client of this address needs."""
    if is_loopback(url) and urlsplit(url).scheme == "http":
        # No TLS is used here, and loading the certificate authorities takes longer than the whole command.
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return httpx.create_ssl_context()


def _chunks(body: bytes, on_sent: Callable[[int], None]) -> Iterator[bytes]:
    on_sent(0)
    view = memoryview(body)
    for start in range(0, len(body), _CHUNK_BYTES):
        yield bytes(view[start : start + _CHUNK_BYTES])
        on_sent(min(start + _CHUNK_BYTES, len(body)))


def _keyed(idempotency_key: str | None) -> dict[str, str]:
    return {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}


def _plain_headers(response: httpx.Response) -> dict[str, str]:
    # The body is already decoded, and its length may differ from what was sent.
    return {name: value for name, value in response.headers.items() if name in ("content-type", "retry-after")}


def _json_object(response: httpx.Response) -> dict[str, Any]:
    try:
        document = json.loads(response.content)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _retry_after(response: httpx.Response) -> float | None:
    return retry_after_seconds(response.headers.get("retry-after"), now=datetime.now(UTC))


def _causes(error: BaseException) -> Iterator[BaseException]:
    current: BaseException | None = error
    while current is not None:
        yield current
        current = current.__cause__ or current.__context__


def _caused_by(error: BaseException, kind: type[BaseException]) -> bool:
    return any(isinstance(cause, kind) for cause in _causes(error))


def _is_hopeless(error: httpx.TransportError) -> bool:
    if isinstance(error, httpx.UnsupportedProtocol | httpx.LocalProtocolError):
        return True
    return any(
        isinstance(cause, ssl.SSLCertVerificationError)
        or (isinstance(cause, socket.gaierror) and cause.errno == socket.EAI_NONAME)
        for cause in _causes(error)
    )


def _reason(error: httpx.TransportError) -> str:
    if isinstance(error, httpx.TimeoutException):
        return "no answer in time."
    text = str(error).strip().rstrip(".")
    return f"{text or type(error).__name__}."
