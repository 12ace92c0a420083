"""Clients of two tenants, one per lane, who follow a plan, repeat themselves, and never give up too early."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx

from darkroom.domain.kernel.ids import image_id_for_key
from darkroom.domain.kernel.lanes import FAST, SLOW
from darkroom.domain.kernel.tenants import MAX_BURST, MAX_REQUESTS_PER_SECOND, Tier
from tests.chaos.plan import SHORT_DELAY, Sending, Way
from tests.support.running.clock import rfc3339
from tests.support.running.load import ACCEPTED, CLIENT_PATIENCE_SECONDS, VARIANTS, Photo
from tests.support.running.stack import Stack

CLIENTS = 6
"""Concurrent requests."""

TENANTS = {FAST.name: ("patron", Tier.PAID), SLOW.name: ("crowd", Tier.FREE)}

_TRIES, _PAUSE_SECONDS = 60, 0.3
_TOO_MANY = 429


@dataclass(frozen=True, kw_only=True)
class SendResult:
    """The result of an image's first request, repetitions included: its id, whether it was accepted, how often it was
    refused, and when it was accepted by the stack's clock."""

    image_id: str
    is_accepted: bool
    status: int
    refused: int
    at: int


class Client:
    """A lane's tenant, whose photos are also on a web server: `source` is its URL."""

    def __init__(self, stack: Stack, lane: str, *, source: str, now: Callable[[], int]) -> None:
        self.tenant, tier = TENANTS[lane]
        # Allowances are the subject of another program.
        limits = {"requests_per_second": MAX_REQUESTS_PER_SECOND, "burst": MAX_BURST}
        key = stack.key_of_tenant(self.tenant, tier=tier.value, **limits)
        connections = httpx.Limits(max_connections=CLIENTS, max_keepalive_connections=CLIENTS)
        self._now, self._source = now, source
        self._http = httpx.Client(
            base_url=stack.api_url,
            headers={"authorization": f"Bearer {key}"},
            trust_env=False,
            timeout=CLIENT_PATIENCE_SECONDS,
            limits=connections,
        )
        self._storage = httpx.Client(trust_env=False, timeout=CLIENT_PATIENCE_SECONDS)

    def image_id(self, key: str) -> str:
        """The id of the image that is sent under that key."""
        return image_id_for_key(self.tenant, key)

    def send(self, sending: Sending, photo: Photo, *, key: str, process_at: int | None) -> SendResult:
        """Send an image, retrying while that makes sense, and then as often as its client repeats itself."""
        result = self._persist(sending, photo, key, process_at)
        for _ in range(sending.repetitions if result.is_accepted else 0):
            self._begin(sending, photo, key, process_at)
        return result

    def listed(self) -> int | None:
        """How many images the tenant's list has; None if it could not be read to its end."""
        count, cursor = 0, None
        while True:
            answer = self._http.get("/images", params={"limit": "100"} | ({"cursor": cursor} if cursor else {}))
            if not answer.is_success:
                return None
            page = answer.json()
            count, cursor = count + len(page["images"]), page["next"]
            if cursor is None:
                return count

    def close(self) -> None:
        """Close the connections."""
        self._http.close()
        self._storage.close()

    def _persist(self, sending: Sending, photo: Photo, key: str, process_at: int | None) -> SendResult:
        status = 0
        for refused in range(_TRIES if sending.is_repeated else 1):
            status, document = self._begin(sending, photo, key, process_at)
            form = document.get("upload") if sending.way is Way.FORM else None
            # An announcement that is repeated after its file arrived is answered without a form.
            if form is not None and not self._fill_in(form, photo):
                status = 0
            if status in (ACCEPTED, httpx.codes.CREATED):
                return SendResult(
                    image_id=self.image_id(key), is_accepted=True, status=ACCEPTED, refused=refused, at=self._now()
                )
            if 400 <= status < 500 and status != _TOO_MANY:
                break
            time.sleep(_PAUSE_SECONDS)
        return SendResult(image_id=self.image_id(key), is_accepted=False, status=status, refused=1, at=self._now())

    def _begin(self, sending: Sending, photo: Photo, key: str, process_at: int | None) -> tuple[int, dict[str, Any]]:
        headers = {"idempotency-key": key}
        try:
            if sending.way is Way.FORM:
                announced = {
                    "bytes": len(photo.body),
                    "sha256": hashlib.sha256(photo.body).hexdigest(),
                    "variants": VARIANTS.split(","),
                }
                answer = self._http.post("/uploads", json=announced, headers=headers)
            elif sending.way is Way.FETCHED:
                order = {"url": f"{self._source}/{photo.name}", "variants": VARIANTS.split(",")}
                answer = self._http.post("/images", json=order, headers=headers)
            else:
                parameters = {"variants": VARIANTS}
                if sending.way is Way.SHORTLY:
                    parameters["delay"] = SHORT_DELAY
                if process_at is not None:
                    parameters["process_at"] = rfc3339(process_at // 1000)
                answer = self._http.post(
                    "/images", params=parameters, content=photo.body, headers=headers | {"content-type": "image/jpeg"}
                )
            return answer.status_code, answer.json() if answer.is_success else {}
        except httpx.TransportError:
            return 0, {}

    def _fill_in(self, form: dict[str, Any], photo: Photo) -> bool:
        try:
            answer = self._storage.post(form["url"], data=form["fields"], files={"file": photo.body})
        except httpx.TransportError:
            return False
        return answer.is_success
