"""What a schema cannot say about requests: photos are photos, times are in the future, some parameters are exclusive.

Requests that should be good are made good here; those that should be bad stay as they are. Schemathesis loads this by
schemathesis.toml.
"""

from __future__ import annotations

import itertools
import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import schemathesis
from hypothesis import strategies
from schemathesis import Case, HookContext, Response

from darkroom.domain.images.annotations import metadata_of
from darkroom.domain.imports.fetch import MAX_SOURCE_URL_LENGTH
from darkroom.domain.kernel.endpoint_ids import MAX_ENDPOINT_URL_LENGTH
from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.recipes.presets import DEFAULT_PRESET, PRESETS
from darkroom.domain.recipes.written_recipes import InvalidRecipe, recipe_from_json
from darkroom.domain.webhooks.custom_headers import MAX_ALL_VALUES_BYTES, MAX_HEADERS, MAX_NAME_CHARACTERS
from tests.support.fakes.pictures import encoded, picture

_LONGEST = timedelta(days=364)

_CHEAP_PIXELS = 500_000
"""A recipe of more work than this is replaced: it would keep the workers busy, which other benchmarks cover."""

_SMALL_BYTES = 1_000_000
"""No stack has a limit below."""

_RUN = uuid4().hex
_keys = itertools.count(1)

_filenames = itertools.cycle(
    ["Grüße".encode("latin-1"), "表示".encode("shift-jis"), "照片".encode("gbk"), "照片".encode()[:-1]]
)

_NOBODY = "http://127.0.0.1:9/"
"""Where nothing listens: what is sent to a webhook of this attack, or fetched for it, leaves no machine."""

_webhooks: list[str] = []
"""The ids of those there are: a tenant may have ten, so the same ones are asked about in every phase."""

_batches: list[str] = []
"""The ids of the open ones, which images may join."""

_images: list[str] = []
"""The ids of those that were sent in their request and not deleted: there is nothing left to confirm."""

PHOTOS = {
    media_type: [encoded(picture(width, height), file_format) for width, height in ((1, 1), (64, 48), (33, 200))]
    for media_type, file_format in (
        ("image/jpeg", "JPEG"),
        ("image/png", "PNG"),
        ("image/webp", "WEBP"),
        ("image/gif", "GIF"),
    )
}

for media_type, photos in PHOTOS.items():
    schemathesis.openapi.media_type(media_type, strategies.sampled_from(photos))
schemathesis.openapi.media_type(
    "application/octet-stream", strategies.sampled_from([photo for photos in PHOTOS.values() for photo in photos])
)


@strategies.composite
def _instants(draw: strategies.DrawFn) -> str:
    """An instant in the coming year, written in one of the ways of RFC 3339."""
    ahead = draw(strategies.timedeltas(min_value=timedelta(minutes=5), max_value=timedelta(days=360)))
    minutes = draw(strategies.integers(min_value=-23 * 60, max_value=23 * 60))
    local = datetime.now(UTC) + ahead + timedelta(minutes=minutes)
    fraction = draw(
        strategies.sampled_from(["", ".0", ".25", ".123456", ".1234567", ".123456789", ".9999999999999999999"])
    )
    hours, rest = divmod(abs(minutes), 60)
    zone = "Z" if minutes == 0 else f"{'-' if minutes < 0 else '+'}{hours:02d}:{rest:02d}"
    return f"{local:%Y-%m-%dT%H:%M:%S}{fraction}{zone}"


schemathesis.openapi.format("date-time", _instants())


@schemathesis.hook
def before_call(context: HookContext, case: Case[Any], kwargs: dict[str, Any]) -> None:
    """Turns what the schema allows into a request that the API promises to accept."""
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    kind = case.method, case.path, case.media_type
    if kind == ("POST", "/images", "application/json") and isinstance(case.body, dict):
        case.query = {}  # a URL's parameters are in the JSON
        wanted: dict[str, Any] = {name: value for name, value in case.body.items() if value is not None}
        case.body = _good_order(wanted) | {"url": _of_nobody(MAX_SOURCE_URL_LENGTH)}
    elif (case.method, case.path) == ("POST", "/images"):
        case.query = _good_order(dict(case.query or {}))
        if case.media_type == "multipart/form-data" and isinstance(case.body, dict):
            case.headers["Content-Type"] = f"multipart/form-data; boundary={_RUN}"
            kwargs["data"] = _form(case.body["file"])
    elif case.path.startswith("/uploads"):
        _make_upload_good(case)
    elif (case.method, case.path) == ("POST", "/images/{id}/variants") and isinstance(case.body, dict):
        case.body = _good_addition({name: value for name, value in case.body.items() if value is not None})
    elif (case.method, case.path) == ("POST", "/images/{id}/edits") and isinstance(case.body, dict):
        edits = {name: value for name, value in case.body.items() if value is not None}
        recipe = _good_order({name: edits.pop(name) for name in ("recipe",) if name in edits})
        case.body = edits | {name: recipe[name] for name in ("recipe",) if name in recipe and "delay" not in recipe}
    elif case.path == "/usage" and case.query:
        # The schema cannot say that a day exists, nor how many lie between two.
        first, last = datetime.now(UTC) - timedelta(days=next(_keys) % 366), datetime.now(UTC)
        days = {"since": first, "until": last}
        case.query = {name: days[name].strftime("%Y-%m-%d") for name in case.query if name in days}
    elif case.path.startswith("/webhooks"):
        _make_webhook_good(case)
    elif case.path.startswith(("/batches", "/imports")):
        _make_batch_good(case)
    elif case.method == "PATCH" and isinstance(case.body, dict) and "visibility" in case.body:
        case.body = {"visibility": "private"}  # an attacked stack has no edge
    elif case.method == "PATCH" and isinstance(case.body, dict):
        # The image's present expiry may be before its new time.
        case.body = _good_times(dict(case.body)) | {"expires_at": _text(datetime.now(UTC) + _LONGEST)}
    if case.headers is not None and any(
        isinstance(said, dict) and "on_duplicate" in said for said in (case.query, case.body)
    ):
        case.headers.pop("Idempotency-Key", None)
    if case.method == "POST" and case.headers is not None and "Idempotency-Key" in case.headers:
        # Two different requests with one key are a conflict.
        case.headers["Idempotency-Key"] = f"{case.headers['Idempotency-Key'][:200]}-{_RUN}-{next(_keys)}"


@schemathesis.hook
def after_call(context: HookContext, case: Case[Any], response: Response) -> None:
    """Remembers which images, webhooks and open batches there are."""
    if (case.method, case.path, response.status_code) == ("POST", "/images", 202):
        _images.append(response.json()["id"])
    elif (case.method, case.path, response.status_code) == ("DELETE", "/images/{id}", 204):
        _images[:] = [image for image in _images if image != case.path_parameters["id"]]
    elif (case.method, case.path, response.status_code) == ("POST", "/webhooks", 201):
        _webhooks.append(response.json()["id"])
    elif (case.method, case.path, response.status_code) == ("DELETE", "/webhooks/{id}", 204):
        _webhooks[:] = [webhook for webhook in _webhooks if webhook != case.path_parameters["id"]]
    elif (case.method, case.path, response.status_code) == ("POST", "/batches", 201):
        _batches.append(response.json()["id"])
    elif case.path.startswith("/batches/") and case.method in ("POST", "DELETE") and response.status_code == 200:
        _batches[:] = [batch for batch in _batches if batch != case.path_parameters["id"]]


def _make_upload_good(case: Case[Any]) -> None:
    if case.path == "/uploads/{id}/done":
        case.path_parameters["id"] = [case.path_parameters["id"], *_images][-1]
    elif case.method == "POST" and isinstance(case.body, dict):
        said: dict[str, Any] = {name: value for name, value in case.body.items() if value is not None}
        case.body = _good_order(said) | {"bytes": min(said["bytes"], _SMALL_BYTES)}


def _form(photo: Any) -> bytes:
    """A form as clients of other countries and ages send it: its file's name is in any encoding or cut in the middle of
    a character, and its headers are folded."""
    content = photo if isinstance(photo, bytes) else bytes(photo.data)
    about = b'Content-Disposition: form-data; name="file";\r\n filename="' + next(_filenames) + b'"\r\n'
    boundary = _RUN.encode()
    return b"--" + boundary + b"\r\n" + about + b"\r\n" + content + b"\r\n--" + boundary + b"--\r\n"


def _of_nobody(most: int) -> str:
    """Another URL each time; every other one is as long as it may be."""
    number = next(_keys)
    return f"{_NOBODY}{number}?".ljust(most if number % 2 else 0, "x")


def _make_webhook_good(case: Case[Any]) -> None:
    if _webhooks and case.path_parameters and "id" in case.path_parameters:
        case.path_parameters["id"] = _webhooks[-1]
    if isinstance(case.body, dict) and "url" in case.body:
        case.body["url"] = _of_nobody(MAX_ENDPOINT_URL_LENGTH)
    if isinstance(case.body, dict) and "since" in case.body:
        case.body["since"] = _text(datetime.now(UTC) - timedelta(days=next(_keys) % 40))
    if isinstance(case.body, dict) and "headers" in case.body:
        case.body["headers"] = _good_headers(case.body["headers"])


def _make_batch_good(case: Case[Any]) -> None:
    if _batches and case.path_parameters and case.path.startswith("/batches"):
        case.path_parameters["id"] = _batches[-1]
    if isinstance(case.body, dict) and case.body.get("notify") is not None:
        case.body["notify"] = _webhooks[-1] if _webhooks else None
    if isinstance(case.body, dict) and "bytes" in case.body:
        case.body["bytes"] = _SMALL_BYTES


def _good_headers(headers: Any) -> Any:
    """Headers whose names differ in any case and are not reserved, each with a value, few bytes together."""
    return [
        {
            **header,
            "name": f"{number}{header['name']}"[:MAX_NAME_CHARACTERS],
            "value": header.get("value", "x")[: MAX_ALL_VALUES_BYTES // MAX_HEADERS].strip(),
        }
        for number, header in enumerate(headers)
    ]


def _instant(text: str) -> datetime:
    """What RFC 3339 allows in small letters, Python's reader takes in capitals alone."""
    return datetime.fromisoformat(text.upper())


def _good_order(said: dict[str, Any]) -> dict[str, Any]:
    if "notify" in said:
        del said["notify"]
        said |= {"notify": _webhooks[-1]} if _webhooks else {}
    if "recipe" in said:
        said.pop("preset", None)
        said.pop("variants", None)
        recipe = said["recipe"] if isinstance(said["recipe"], str) else json.dumps(said["recipe"])
        recipe = _without_overlays(recipe)
        said["recipe"] = recipe if isinstance(said["recipe"], str) else json.loads(recipe)
        try:
            if recipe_from_json(recipe).work_pixels > _CHEAP_PIXELS and not said.keys() & {"process_at", "delay"}:
                said["delay"] = "P1D"  # only whether it is accepted matters
        except InvalidRecipe as error:
            # Equal names, too many bytes, too much work: the schema cannot express these.
            if re.search(r"share the name|are allowed", error.message):
                del said["recipe"]
    if "visibility" in said:
        said["visibility"] = "private"  # an attacked stack has no edge
    if "metadata" in said:
        try:
            metadata_of(said["metadata"])
        except Rejected as error:
            if "are allowed" in error.message:  # the schema cannot say how many bytes the shortest text has
                del said["metadata"]
    if "variants" in said:
        known = {spec.name for spec in PRESETS[said.get("preset", DEFAULT_PRESET)].variants}
        given = said["variants"] if isinstance(said["variants"], list) else str(said["variants"]).split(",")
        said["variants"] = [name for name in given if name in known] or sorted(known)
    said = _good_times(said)
    if "batch" in said:
        del said["batch"]
        if _batches and not said.keys() & {"process_at", "delay"}:  # the batch may say when its images begin
            said.pop("on_duplicate", None)
            said["batch"] = _batches[-1]
    return said


def _good_addition(said: dict[str, Any]) -> dict[str, Any]:
    """Variants that replace those of the addition before: an image has room for so many, and for so many edits."""
    order = _good_order(said)
    if "recipe" not in order or order.pop("delay", None):
        return {"preset": DEFAULT_PRESET} | {name: order[name] for name in ("preset", "variants") if name in order}
    named = [{**variant, "name": f"v{number}"} for number, variant in enumerate(order["recipe"]["variants"])]
    return {"recipe": {"variants": named}}


def _without_overlays(recipe: str) -> str:
    """The recipe without overlays, which would have to be images of the caller."""
    written = json.loads(recipe)
    for variant in written["variants"]:
        variant.pop("overlays", None)
    return json.dumps(written)


def _good_times(said: dict[str, Any]) -> dict[str, Any]:
    """Exactly one of process_at and delay, within 364 days, and an expiry after that."""
    now = datetime.now(UTC)
    begins_at = now
    if "process_at" in said:
        said.pop("delay", None)
        begins_at = _instant(said["process_at"])
        if not now < begins_at < now + _LONGEST:  # a value that Schemathesis has seen in an answer
            begins_at = now + timedelta(hours=1)
            said["process_at"] = _text(begins_at)
    elif "delay" in said:
        delay = _duration(said["delay"])
        if delay > _LONGEST:
            said["delay"], delay = "P1D", timedelta(days=1)
        begins_at = now + delay
    if "expires_at" in said and not begins_at < _instant(said["expires_at"]) <= begins_at + _LONGEST:
        said["expires_at"] = _text(begins_at + timedelta(days=1))
    return said


def _duration(text: str) -> timedelta:
    """Reads an ISO 8601 duration, independently of our own reader."""
    units = {"W": "weeks", "D": "days", "H": "hours", "M": "minutes", "S": "seconds"}
    said = {units[unit]: float(count.replace(",", ".")) for count, unit in re.findall(r"([\d.,]+)([WDHMS])", text)}
    try:
        return timedelta(**said)
    except OverflowError:
        return timedelta.max


def _text(instant: datetime) -> str:
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
