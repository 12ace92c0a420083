"""The small program that receives webhooks believes what was signed just now with its secret, and nothing else."""

from __future__ import annotations

import time

import httpx
import pytest

from darkroom.domain.webhooks.webhook_signature import secret_text, sign
from darkroom_cli.webhooks.receiver import receiving

SECRET = b"s" * 32
BODY = '{"type":"image.done","data":"Müllers"}'.encode()


def headers(*, secret: bytes = SECRET, message_id: str = "event-3", timestamp: int | None = None) -> dict[str, str]:
    sent_at = int(time.time()) if timestamp is None else timestamp
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(sent_at),
        "webhook-signature": sign([secret], message_id=message_id, timestamp=sent_at, body=BODY),
    }


def answers(body: bytes, given: dict[str, str]) -> tuple[int, list[str]]:
    """What it answers to a request, and what it believes then."""
    with receiving(secret_text(SECRET)) as receiver:
        status = httpx.post(receiver.url, content=body, headers=given, trust_env=False).status_code
    return status, receiver.believed


@pytest.mark.parametrize("others", ["", "v1,c29tZXRoaW5nIGVsc2U= "])
def test_what_is_signed_with_its_secret_is_believed(others: str) -> None:
    given = headers()
    given["webhook-signature"] = others + given["webhook-signature"]
    assert answers(BODY, given) == (204, [BODY.decode()])


@pytest.mark.parametrize(
    "given",
    [
        {},
        headers(secret=b"t" * 32),
        headers() | {"webhook-id": "event-4"},
        headers() | {"webhook-timestamp": str(int(time.time()) + 1)},
        headers() | {"webhook-timestamp": "now"},
        headers(timestamp=int(time.time()) - 400),
        headers(timestamp=int(time.time()) + 4000),
        headers() | {"webhook-signature": ""},
    ],
)
def test_anything_else_is_refused(given: dict[str, str]) -> None:
    assert answers(BODY, given) == (401, [])


def test_a_changed_body_is_refused() -> None:
    assert answers(BODY + b" ", headers()) == (401, [])
