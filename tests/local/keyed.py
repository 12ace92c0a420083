"""Clients of a stack that requires keys."""

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


def done(api: httpx.Client, image_id: str) -> dict[str, Any]:
    def document() -> dict[str, Any] | None:
        shown: dict[str, Any] = api.get(f"/images/{image_id}/status").json()
        return shown if shown["status"] == "done" else None

    document_of_image: dict[str, Any] = wait_until(document, f"image {image_id} is done", seconds=120)
    return document_of_image
