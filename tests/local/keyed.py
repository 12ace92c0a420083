"""Clients of a stack, with a key or without, and what becomes of their images."""

from __future__ import annotations

from typing import Any

import httpx

from tests.local.local_stack import LocalStack, wait_until


def key_of(stack: LocalStack, tenant: str) -> str:
    made = stack.darkroom("keys", "create", tenant)
    assert made.returncode == 0, made.stdout
    return next(line for line in made.stdout.splitlines() if line.startswith("dr_"))


def client(stack: LocalStack, key: str | None) -> httpx.Client:
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    return httpx.Client(base_url=stack.api_url, headers=headers, trust_env=False, timeout=60)


def ended(api: httpx.Client, image_id: str) -> dict[str, Any]:
    """The document of an image that is done or has failed."""

    def document() -> dict[str, Any] | None:
        shown: dict[str, Any] = api.get(f"/images/{image_id}/status").json()
        return shown if shown["status"] in ("done", "failed") else None

    final: dict[str, Any] = wait_until(document, f"image {image_id} ends", seconds=120)
    return final


def done(api: httpx.Client, image_id: str) -> dict[str, Any]:
    document = ended(api, image_id)
    assert document["status"] == "done", document["error"]
    return document
