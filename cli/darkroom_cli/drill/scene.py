"""What a drill acts with: the stack, tenants and keys of its own, and small photos."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx

from darkroom.domain.images.image import Image, Status
from darkroom.domain.kernel.signature import SIGNATURE
from darkroom.domain.kernel.tenants import DEFAULT_TENANT, MAX_BURST, MAX_REQUESTS_PER_SECOND, Tier
from darkroom_cli.drill.clocks import MINUTE_SECONDS, DrillClock
from darkroom_cli.operator.operations.tenants.add_tenant import AddTenantPorts, TenantExists, add_tenant
from darkroom_cli.operator.operations.tenants.create_key import CreateKeyPorts, create_key
from darkroom_cli.operator.operations.tenants.revoke_key import RevokeKeyPorts, revoke_key
from darkroom_cli.stack.operators import Stack
from darkroom_client import Darkroom
from darkroom_client.client import ApiError

MARK = "darkroom-drill"
"""What each message says that a drill has planted, so that it can be found again."""

_AT_A_TIME = 8
_KEY_LIVES_SECONDS = 86_400
_SIDE = 8
_TIMEOUT_SECONDS = 60
_PATIENCE_SECONDS = 120
_DONE_WITHIN_MINUTES = 30
_BEFORE_A_STEP_SECONDS = 6
"""How long a few images take at most that nothing keeps back: moving the clock meanwhile would make them late."""

_LOOK_SECONDS = 0.5


def tenant_of(tier: Tier) -> str:
    """The drills' own tenant with that tier."""
    return f"drill-{tier}"


def tiny_photo() -> bytes:
    """A PNG of eight by eight random pixels: no two are the same image."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + secrets.token_bytes(3 * _SIDE) for _ in range(_SIDE))
    header = struct.pack(">IIBBBBB", _SIDE, _SIDE, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


@dataclass(kw_only=True)
class Scene:
    """A stack on which a drill runs. `accepted` are the ids of its images that were accepted; `is_hurried` if it was
    interrupted, and should end."""

    stack: Stack
    api_url: str
    clock: DrillClock
    pause: Callable[[float], None]
    token: str | None = None
    is_hurried: bool = False
    accepted: list[str] = field(default_factory=list)
    answers: Counter[int] = field(default_factory=Counter)
    _done: set[str] = field(default_factory=set)
    _keys: dict[Tier, tuple[str, str]] = field(default_factory=dict)

    # ── Clients ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def upload(self, count: int, *, tier: Tier, **parameters: str) -> Counter[int]:
        """Posts so many photos, several at a time and each once; returns how often which status came back, 0 for no
        answer."""
        with self._client(tier) as client, ThreadPoolExecutor(_AT_A_TIME) as pool:
            posted = list(pool.map(lambda _: self._post(client, parameters), range(count)))
        self.accepted += [image_id for _, image_id in posted if image_id is not None]
        answers = Counter(status for status, _ in posted)
        self.answers += answers
        return answers

    def announce_and_send(self, count: int, *, tier: Tier) -> None:
        """Uploads so many photos directly to S3, as large files are."""
        with self.api(tier) as api, tempfile.TemporaryDirectory(prefix="darkroom-drill-") as folder:
            for number in range(count):
                photo = Path(folder) / f"{number}.png"
                photo.write_bytes(tiny_photo())
                digest = hashlib.sha256(photo.read_bytes()).hexdigest()
                announcement = {"bytes": photo.stat().st_size, "sha256": digest, "content_type": "image/png"}
                answer = api.send_announced(photo, announcement=announcement, idempotency_key=secrets.token_hex(16))
                self.accepted.append(answer.image_id)

    def have_fetched(self, url: str, count: int, *, tier: Tier) -> None:
        """Asks for so many images from a URL."""
        with self.api(tier) as api:
            for _ in range(count):
                self.accepted.append(api.upload(url).image_id)

    def api(self, tier: Tier) -> Darkroom:
        """The API, as a client of that tier."""
        return Darkroom(self.api_url, self._key(tier), auth=self._auth, is_local_stack=self.stack.is_local)

    def _client(self, tier: Tier) -> httpx.Client:
        key = self._key(tier)
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        return httpx.Client(
            base_url=self.api_url,
            headers=headers,
            auth=self._auth,
            timeout=_TIMEOUT_SECONDS,
            trust_env=not self.stack.is_local,
        )

    def _post(self, client: httpx.Client, parameters: Mapping[str, str]) -> tuple[int, str | None]:
        headers = {"Content-Type": "image/png", "Idempotency-Key": secrets.token_hex(16)}
        query = {"variants": "thumb", **parameters}
        try:
            answer = client.post("/images", params=query, content=tiny_photo(), headers=headers)
        except httpx.TransportError:
            return 0, None
        is_accepted = answer.status_code == httpx.codes.ACCEPTED
        return answer.status_code, answer.json()["id"] if is_accepted else None

    def _key(self, tier: Tier) -> str | None:
        if self.stack.access != "keys":
            return self.token if self.stack.access == "jwt" else None
        if tier not in self._keys:
            tenants, clock = self.stack.tenants, self.stack.clock
            with suppress(TenantExists):  # added by an earlier drill
                add_tenant(
                    AddTenantPorts(tenants=tenants, clock=clock, audit=self.stack.audit),
                    tenant_of(tier),
                    tier=tier,
                    requests_per_second=MAX_REQUESTS_PER_SECOND,
                    burst=MAX_BURST,
                )
            ports = CreateKeyPorts(tenants=tenants, clock=clock, randomness=secrets.token_bytes, audit=self.stack.audit)
            key, stored = create_key(ports, tenant_of(tier), label="drill", lives_seconds=_KEY_LIVES_SECONDS)
            self._keys[tier] = key, stored.key_id
        return self._keys[tier][0]

    @cached_property
    def _auth(self) -> httpx.Auth | None:
        if self.stack.access != "iam":
            return None
        from darkroom_client import signing  # noqa: PLC0415

        return signing.ordinary_credentials(httpx.URL(self.api_url).host)

    def revoke_keys(self) -> None:
        """Revokes what was created here; it would expire within a day anyway."""
        for _, key_id in self._keys.values():
            ports = RevokeKeyPorts(tenants=self.stack.tenants, clock=self.stack.clock, audit=self.stack.audit)
            revoke_key(ports, key_id)
        self._keys.clear()

    @property
    def tenants(self) -> frozenset[str]:
        """The tenants whose images these may be."""
        return frozenset({*map(tenant_of, Tier)} if self.stack.access == "keys" else {DEFAULT_TENANT})

    # ── What became of the images ────────────────────────────────────────────────────────────────────────────────────

    def rows(self) -> list[Image]:
        """The rows of the accepted images."""
        rows = (self.stack.images.get(image_id) for image_id in self.accepted)
        return [row for row in rows if row is not None]

    def unfinished(self) -> list[Image]:
        """Those of the accepted images that are neither done nor waiting for a time of their own."""
        left = []
        for image_id in self.accepted:
            row = None if image_id in self._done else self.stack.images.get(image_id)
            if row is not None and row.status is Status.DONE:
                self._done.add(image_id)
            elif row is not None and row.status is not Status.SCHEDULED:
                left.append(row)
        return left

    def _is_done(self) -> bool:
        """Whether nothing is unfinished; asks no further than the first that is, because each question takes time from
        those who work."""
        for image_id in self.accepted:
            if image_id not in self._done:
                row = self.stack.images.get(image_id)
                if row is not None and row.status not in (Status.DONE, Status.SCHEDULED):
                    return False
                self._done.add(image_id)
        return True

    def await_done(self, each_minute: Callable[[], None] = lambda: None) -> None:
        """Waits until the accepted images are done, or for half an hour of the stack's time; does `each_minute` at
        first and then once a minute."""
        for _ in range(_DONE_WITHIN_MINUTES):
            each_minute()
            if self.await_that(self._is_done, seconds=_BEFORE_A_STEP_SECONDS):
                return
            if self.is_hurried:
                return
            self.clock.pass_seconds(MINUTE_SECONDS)

    def await_that(self, is_so: Callable[[], bool], *, seconds: float = _PATIENCE_SECONDS) -> bool:
        """Waits for it, a while at most; returns whether it became so."""
        deadline = time.monotonic() + seconds
        while not is_so():
            if time.monotonic() > deadline:
                return False
            self.pause(_LOOK_SECONDS)
        return True

    def delete_waiting(self) -> None:
        """Deletes the accepted images that will not become done by themselves, as they wait for a time or a file."""
        for row in self.rows():
            if row.status is not Status.DONE and not row.is_deleted:
                tier = next((tier for tier in Tier if tenant_of(tier) == row.tenant_id), Tier.FREE)
                with self.api(tier) as api:
                    api.delete(row.image_id)

    # ── Queues ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def send_garbage(self, queue: str, count: int = 1) -> None:
        """Sends messages that no Darkroom wrote to a queue, by its logical id."""
        for _ in range(count):
            body = json.dumps({MARK: secrets.token_hex(8)})
            self.stack.client("sqs").send_message(
                QueueUrl=self.stack.physical_id(queue),
                MessageBody=body,
                # Without any, it would be tried again and again for a while: an earlier version signed nothing.
                MessageAttributes={SIGNATURE: {"DataType": "String", "StringValue": MARK}},
            )

    def remove_garbage(self, queue: str) -> int:
        """Removes the messages of `send_garbage` from a queue of dead letters, by its logical id; returns how many."""
        sqs, url = self.stack.client("sqs"), self.stack.physical_id(queue)
        removed, seen, others = 0, set[str](), list[str]()
        while messages := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=60).get(
            "Messages", []
        ):
            for message in messages:
                if MARK in message["Body"]:
                    sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
                    removed += 1
                else:
                    others.append(message["ReceiptHandle"])
            ids = {message["MessageId"] for message in messages}
            if ids <= seen:
                break
            seen |= ids
        for handle in others:
            sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=handle, VisibilityTimeout=0)
        return removed

    def depth(self, queue: str) -> int:
        """How many messages are in a queue, by its logical id, hidden ones and delayed ones too."""
        names: Any = [f"ApproximateNumberOfMessages{kind}" for kind in ("", "NotVisible", "Delayed")]
        answer = self.stack.client("sqs").get_queue_attributes(
            QueueUrl=self.stack.physical_id(queue), AttributeNames=names
        )
        return sum(map(int, answer["Attributes"].values()))

    # ── The operator ─────────────────────────────────────────────────────────────────────────────────────────────────

    def darkroom(self, *arguments: str) -> tuple[int, str]:
        """Runs a command against this stack, as an operator does; returns its exit status and what it printed."""
        return run_command([*arguments, *self.stack.options.split()])


def run_command(arguments: Sequence[str]) -> tuple[int, str]:
    """Runs `./darkroom` with these arguments."""
    done = subprocess.run(
        [sys.executable, "-m", "darkroom_cli", *arguments],
        env={**os.environ, "COLUMNS": "120"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout


def api_url_of(stack: Stack) -> str:
    """The root of the stack's API."""
    if stack.is_local:
        from darkroom_cli.stack.local import local_stack  # noqa: PLC0415

        return local_stack(os.environ).api_url
    (described,) = stack.client("cloudformation").describe_stacks(StackName=stack.name)["Stacks"]
    outputs = {output["OutputKey"]: output["OutputValue"] for output in described.get("Outputs", ())}
    if "ApiUrl" not in outputs:
        raise ApiError(f"The stack {stack.name} has no output ApiUrl: deploy this version of Darkroom there first.")
    return str(outputs["ApiUrl"])
