"""Checks that a request to the AWS port was signed with a secret of this run, as AWS's services do.

MiniStack takes any credentials, and those of the account's root without looking at the signature. The secret is made
anew at each start and is only in files that their owner alone may read: who can read them may use this account.
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv.html

Not checked, since a website that had a signature could do what it says anyway: when a request was signed (the machine's
clock and the stack's differ after `local warp`; an expired link is refused by S3), and whether the body is the one that
a signed digest names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

from local_aws.asgi import Scope
from local_aws.ministack_internals import internals

_ALGORITHM = "AWS4-HMAC-SHA256"
_ACCOUNT_DIGITS = 12


def headers_of(scope: Scope) -> dict[str, str]:
    """By their names in lower case; of a header that is there several times, the values with commas, as they are
    signed."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]},{value}" if name in headers else value
    return headers


def query_of(scope: Scope) -> dict[str, list[str]]:
    """The parameters by their names."""
    return parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)


def needs_body(headers: Mapping[str, str], query: Mapping[str, Any]) -> bool:
    """Whether a signature can be checked only with the body: nothing else says what was sent."""
    return "x-amz-content-sha256" not in headers and "X-Amz-Signature" not in query


def is_signed(scope: Scope, headers: Mapping[str, str], query: Mapping[str, Any], body: bytes) -> bool:
    """Whether the request has a valid signature, in its Authorization header or in its query."""
    sigv4 = internals("core.sigv4")
    presigned = "authorization" not in headers
    algorithm = _first(query, "X-Amz-Algorithm") if presigned else headers["authorization"].partition(" ")[0]
    if algorithm != _ALGORITHM:  # guard: gate-signature-algorithm
        return False
    signature = sigv4.parse_query_signature(query) if presigned else sigv4.parse_header_signature(headers)
    if isinstance(signature, tuple):  # why it is none
        return False
    token = _first(query, "X-Amz-Security-Token") if presigned else headers.get("x-amz-security-token", "")
    secret = secret_of(signature.access_key_id, token)
    if secret is None:
        return False
    path = (scope.get("raw_path") or scope["path"].encode()).decode("latin-1")
    failure = sigv4.header_signature_failure(
        signature, secret, scope["method"], path, query, headers, body, presigned=presigned
    )
    return failure is None


def secret_of(access_key_id: str, token: str) -> str | None:
    """The secret of the account's root, of a role's session with this token, or of a user; None if there is no such
    key. MiniStack also takes the number of an account for the key of its root."""
    is_account = len(access_key_id) == _ACCOUNT_DIGITS and access_key_id.isdecimal()
    credential = internals("core.iam_evaluator").resolve_credential(
        access_key_id, access_key_id if is_account else None, token
    )
    secret: str | None = getattr(credential, "secret_access_key", None)
    return secret or None


def _first(query: Mapping[str, Any], name: str) -> str:
    values: list[str] = query.get(name) or [""]
    return values[0]
