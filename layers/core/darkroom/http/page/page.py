"""How the page is served: its settings, the headers that protect it, and its files as answers of Lambda."""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Any, TypedDict

from darkroom.domain.recipes.presets import PRESETS
from darkroom.domain.recipes.recipes import MAX_SIDE_PIXELS, MAX_VARIANTS, MAX_WORK_PIXELS, WORK_OF_FORMAT
from darkroom.domain.recipes.written_recipes import MAX_RECIPE_BYTES
from darkroom.domain.schedules.schedule import MAX_DELAY_SECONDS
from darkroom.http.images.entity_tags import matches_entity_tag
from darkroom.http.kernel.headers import NO_SNIFFING
from darkroom.http.kernel.problems import Problem, problem_document
from darkroom.operations.page.serve_page import ROOT, File, FoundFile, WebPage
from darkroom.parts import PARTS
from darkroom.settings import Access

type PageAnswer = dict[str, Any]
"""An answer of Lambda's to an HTTP API, payload 2.0."""

_A_YEAR = "public, max-age=31536000, immutable"
_REVALIDATED = "no-cache"  # kept, but asked for each time: a deployment takes effect with the next reload


class PageSettings(TypedDict):
    """What the stack tells the page."""

    access: Access
    issuer: str | None
    client_id: str | None
    audience: str | None
    sign_in_origin: str | None
    max_upload_bytes: int
    limits: dict[str, Any]
    presets: dict[str, dict[str, Any]]
    parts: list[str]


def page_settings(
    *,
    access: Access,
    issuer: str,
    client_id: str,
    audience: str,
    sign_in_origin: str,
    max_upload_bytes: int,
    parts: Collection[str] = PARTS,
) -> PageSettings:
    """The settings of a page that the stack itself serves. Those about tokens are empty unless `access` is "jwt".
    `parts` are the optional parts that are deployed."""
    by_token = access == "jwt"

    def if_by_token(text: str) -> str | None:
        return text or None if by_token else None

    return {
        "access": access,
        "issuer": if_by_token(issuer),
        "client_id": if_by_token(client_id),
        "audience": if_by_token(audience),
        "sign_in_origin": if_by_token(sign_in_origin),
        "max_upload_bytes": max_upload_bytes,
        "limits": {
            "variants": MAX_VARIANTS,
            "side_pixels": MAX_SIDE_PIXELS,
            "work_pixels": MAX_WORK_PIXELS,
            "work_of_format": WORK_OF_FORMAT,
            "recipe_bytes": MAX_RECIPE_BYTES,
            "delay_seconds": MAX_DELAY_SECONDS,
        },
        "presets": {
            name: preset.model_dump(mode="json", exclude_unset=True, exclude_none=True)
            for name, preset in PRESETS.items()
        },
        "parts": [part for part in PARTS if part in parts],
    }


def shell_with(shell: bytes, settings: Mapping[str, Any]) -> bytes:
    """The shell with its settings, in the place of `{settings}` in an attribute."""
    # guard: operate-settings-escaped
    return shell.replace(b"{settings}", html.escape(json.dumps(settings, sort_keys=True)).encode())


def content_security_policy(*, uploads: str = "", outputs: str = "", sign_in: Iterable[str] = ()) -> str:
    """What a browser lets the page do (https://www.w3.org/TR/CSP3/): run its own files, show variants, and send
    requests to the stack's API and buckets, and to the issuer's origins (`sign_in`) if callers need a token. No inline
    code, no evaluation of text, no markup made of text."""
    directives = {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": _listed("'self'", "blob:", outputs),
        "connect-src": _listed("'self'", uploads, outputs, *sign_in),
        "worker-src": "'self'",
        "manifest-src": "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "darkroom",
    }
    return "; ".join(f"{name} {sources}" for name, sources in directives.items())


def _listed(*sources: str) -> str:
    return " ".join(dict.fromkeys(filter(None, sources)))


_PROTECTION = {
    NO_SNIFFING.name: NO_SNIFFING.example,
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}


def file_answer(
    found_file: FoundFile, *, policy: str, accept_encoding: str | None, if_none_match: str | None
) -> PageAnswer:
    """The file, compressed if the client takes that; without a body if its copy is current."""
    file = found_file.file
    headers = {
        **_PROTECTION,
        "Content-Security-Policy": policy,
        "Cache-Control": _A_YEAR if found_file.is_final else _REVALIDATED,
        "ETag": file.etag,
        "Vary": "Accept-Encoding",
    }
    if matches_entity_tag(if_none_match, file.etag):
        return {"statusCode": HTTPStatus.NOT_MODIFIED.value, "headers": headers}
    headers["Content-Type"] = file.media_type
    if takes_gzip(accept_encoding):
        headers["Content-Encoding"] = "gzip"
        return _with_bytes(headers, file.compressed)
    return _with_bytes(headers, gzip.decompress(file.compressed))


def _with_bytes(headers: dict[str, str], content: bytes) -> PageAnswer:
    return {
        "statusCode": HTTPStatus.OK.value,
        "headers": headers,
        "body": base64.b64encode(content).decode(),
        "isBase64Encoded": True,
    }


def redirect_to_page() -> PageAnswer:
    """Sends a browser to the page's root."""
    headers = {**_PROTECTION, "Location": ROOT, "Cache-Control": "no-store"}
    return {"statusCode": HTTPStatus.MOVED_PERMANENTLY.value, "headers": headers}


def unknown_file_answer(correlation_id: str) -> PageAnswer:
    """Says that the page has no such file; nobody keeps that, since a deployment may bring it."""
    problem = Problem("unknown_path", "The page has no such file. It may be of an earlier version: reload the page.")
    return {  # guard: page-unknown-file-uncached
        "statusCode": problem.status.value,
        "headers": {**_PROTECTION, "Content-Type": "application/problem+json", "Cache-Control": "no-store"},
        "body": json.dumps(problem_document(problem, correlation_id)),
    }


def takes_gzip(accept_encoding: str | None) -> bool:
    """Whether an `Accept-Encoding` header accepts gzip (RFC 9110, section 12.5.3)."""
    weights: dict[str, bool] = {}
    for coding in (accept_encoding or "").lower().split(","):
        name, *parameters = (part.strip() for part in coding.split(";"))
        weights[name] = not any(_is_zero(parameter) for parameter in parameters)  # guard: page-gzip-refusal-respected
    return weights.get("gzip", weights.get("x-gzip", weights.get("*", False)))


def _is_zero(parameter: str) -> bool:
    name, _, value = parameter.partition("=")
    return name.strip() == "q" and value.strip() in ("0", "0.", "0.0", "0.00", "0.000")


def with_settings(shell: File, settings: Mapping[str, Any], *, etag: str) -> File:
    """The shell as it is served, with its settings."""
    content = shell_with(gzip.decompress(shell.compressed), settings)
    return File(media_type=shell.media_type, etag=etag, compressed=gzip.compress(content, mtime=0))


def finished(page: WebPage, settings: PageSettings, policy: str) -> WebPage:
    """The page with its settings in its shell, whose tag changes with them and with the policy, too."""
    # guard: page-tag-covers-settings
    digest = hashlib.sha256(json.dumps([page.tree, settings, policy]).encode()).hexdigest()
    return replace(page, shell=with_settings(page.shell, settings, etag=f'W/"{digest[:16]}"'))
