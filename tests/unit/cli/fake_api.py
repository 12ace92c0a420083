"""An API that keeps its images in memory and serves them on loopback, for the command line's tests."""

from __future__ import annotations

import hashlib
import json
import sys
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"

FILES = {"thumb": ("jpeg", b"thumb bytes"), "webp": ("webp", b"RIFF webp bytes")}


@dataclass(frozen=True, kw_only=True)
class Reply:
    """One answer; `lost` cuts the connection instead of sending it, after the request has taken effect."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    lost: bool = False


@dataclass(frozen=True, kw_only=True)
class Seen:
    """One request as it arrived."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: bytes


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        # Some tests are about a client that disconnects in the middle of an answer.
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class FakeApi:
    """Images are `pending` until they have been requested `polls_until_done` times. `faults` answer requests first.
    What is about webhooks or batches is answered by `webhooks` or `batches`, if that is set, and so are imports and
    their files by `imports`."""

    def __init__(self) -> None:
        self.requests: list[Seen] = []
        self.images: dict[str, dict[str, Any]] = {}
        self.fingerprints: dict[str, str] = {}
        names = ("POST", "GET", "PATCH", "DELETE", "FILE", "STORE")
        self.faults: dict[str, deque[Reply]] = {name: deque() for name in names}
        self.announced: list[dict[str, Any]] = []
        self.stored: dict[str, bytes] = {}
        self.confirmed: list[str] = []
        self.polls_until_done = 1
        self.ends_as: dict[bytes, str] = {}
        self.refuses: dict[bytes, dict[str, Any]] = {}
        self.notices: dict[bytes, list[str]] = {}
        self.on_post: Callable[[int], None] = lambda number: None
        self.webhooks: Callable[[Seen], Reply] | None = None
        self.batches: Callable[[Seen], Reply] | None = None
        self.imports: Callable[[Seen], Reply] | None = None
        self.retry_after: str | None = "0"
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.005,), daemon=True).start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def posts(self) -> list[Seen]:
        """The uploads and announcements that arrived."""
        return [
            request
            for request in self.requests
            if request.method == "POST" and request.path != "/store" and not request.path.endswith("/done")
        ]

    @property
    def forms(self) -> list[dict[str, bytes]]:
        """The forms that arrived at the store, by their fields."""
        return [fields_of(request) for request in self.requests if request.path == "/store"]

    def put(self, status: str = "done", **changes: Any) -> str:
        """Adds an image that already exists; returns its id."""
        image_id = image_id_of(f"put {len(self.images)}")
        self.images[image_id] = self.document(image_id, status) | changes
        return image_id

    def document(self, image_id: str, status: str) -> dict[str, Any]:
        """A status document with all its keys."""
        done = status == "done"
        failed = status == "failed"
        return {
            "id": image_id,
            "status": status,
            "lane": "slow",
            "preset": "standard",
            "preset_version": 1,
            "run": 1,
            "attempt": 1 if done or failed else 0,
            "retry_at": None,
            "created_at": "2026-01-01T00:00:00.000Z",
            "process_at": None,
            "expires_at": None,
            "completed_at": "2026-01-01T00:00:02.000Z" if done or failed else None,
            "progress": {"done": len(FILES) if done else 0, "total": len(FILES)},
            "variants": [
                {
                    "name": name,
                    "width": 256,
                    "height": 192,
                    "format": file_format,
                    "bytes": len(content),
                    "sha256": hashlib.sha256(content).hexdigest(),
                    "url": f"{self.url}/files/{name}?signature={len(self.requests)}",
                }
                for name, (file_format, content) in FILES.items()
                if done
            ],
            "placeholder": {"thumbhash": "k0oGLQaSVsNg", "color": "#7a8b5c"} if done else None,
            "visibility": "private",
            "picture": None,
            "attention": None,
            "notices": [],
            "error": {"code": "truncated", "message": "The file ends too early.", "retryable": False}
            if failed
            else None,
            "links": {"self": f"/images/{image_id}", "status": f"/images/{image_id}/status"},
        }

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                answers = {"/uploads": fake._announce, "/store": fake._store}
                path = urlsplit(self.path).path
                self._serve(fake._confirm if path.endswith("/done") else answers.get(path, fake._post))

            def do_GET(self) -> None:
                self._serve(fake._file if self.path.startswith("/files/") else fake._get)

            def do_PATCH(self) -> None:
                self._serve(fake._patch)

            def do_DELETE(self) -> None:
                self._serve(fake._delete)

            def _serve(self, answer: Callable[[Seen], Reply]) -> None:
                parts = urlsplit(self.path)
                seen = Seen(
                    method=self.command,
                    path=parts.path,
                    query=parse_qs(parts.query),
                    headers={name.lower(): value for name, value in self.headers.items()},
                    body=self.rfile.read(int(self.headers.get("Content-Length", 0))),
                )
                with fake._lock:
                    fake.requests.append(seen)
                    number = len(fake.posts)
                    others = {"webhooks": fake.webhooks, "batches": fake.batches}
                    others |= dict.fromkeys(("imports", "imported"), fake.imports)
                    reply = fake._reply(seen, others.get(seen.path.split("/")[1]) or answer)
                if seen.method == "POST":
                    fake.on_post(number)
                if reply.lost:
                    self.close_connection = True
                    return
                self._send(reply)

            def _send(self, reply: Reply) -> None:
                body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                if reply.status in (204, 304):
                    body = b""
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: Any) -> None:
                pass

        return Handler

    def _reply(self, seen: Seen, answer: Callable[[Seen], Reply]) -> Reply:
        kind = {"/store": "STORE", "/files": "FILE"}.get(seen.path[:6], seen.method)
        fault = self.faults[kind].popleft() if self.faults[kind] else None
        if fault is not None and not fault.lost:
            return fault
        return replace(answer(seen), lost=fault is not None)

    def _post(self, seen: Seen) -> Reply:
        if seen.body in self.refuses:
            problem = self.refuses[seen.body]
            return Reply(status=problem["status"], body=problem, headers={"Content-Type": "application/problem+json"})
        image_id = image_id_of(seen.headers.get("idempotency-key", f"no key {len(self.requests)}"))
        replayed = image_id in self.images
        pending = self.document(image_id, "pending") | {"ends_as": self.ends_as.get(seen.body)}
        self.images.setdefault(image_id, pending | {"ends_with": self.notices.get(seen.body, [])})
        headers = {"Location": f"/images/{image_id}/status"}
        if self.retry_after is not None:
            headers["Retry-After"] = self.retry_after
        if replayed:
            headers["Idempotent-Replayed"] = "true"
        return Reply(status=202, body=self.images[image_id], headers=headers)

    def _announce(self, seen: Seen) -> Reply:
        self.announced.append(json.loads(seen.body))
        image_id = image_id_of(seen.headers["idempotency-key"])
        image = self.images.setdefault(image_id, self.document(image_id, "awaiting_upload"))
        awaited = image["status"] == "awaiting_upload"
        fields = {"key": f"uploads/{image_id}", "policy": str(len(self.announced))}
        form = {"url": f"{self.url}/store", "fields": fields, "expires_at": "2026-01-01T00:05:00.000Z"}
        body = image | {"upload": form if awaited else None}
        return Reply(status=201 if awaited else 202, body=body)

    def _confirm(self, seen: Seen) -> Reply:
        image_id = seen.path.split("/")[2]
        self.confirmed.append(image_id)
        return Reply(status=200, body=self.images[image_id])

    def _store(self, seen: Seen) -> Reply:
        fields = fields_of(seen)
        image_id = fields["key"].decode().removeprefix("uploads/")
        self.stored[image_id] = fields["file"]
        self.images[image_id] |= self.document(image_id, "pending")
        return Reply(status=204, body=b"")

    def _get(self, seen: Seen) -> Reply:
        image_id = seen.path.split("/")[2]
        image = self.images.get(image_id)
        if image is None:
            return problem(404, "not_found", "There is no image with this id.")
        polls = sum(r.method == "GET" and r.path == seen.path for r in self.requests)
        if image["status"] == "pending" and polls >= self.polls_until_done:
            image |= self.document(image_id, image.get("ends_as") or "done")
            image["notices"] = image.get("ends_with", [])
        if image["variants"]:
            image["variants"] = self.document(image_id, image["status"])["variants"]  # with fresh addresses
        tag = f'W/"{image["status"]}"'
        headers = {"ETag": tag} | ({} if self.retry_after is None else {"Retry-After": self.retry_after})
        if seen.headers.get("if-none-match") == tag:
            return Reply(status=304, headers=headers)
        return Reply(body=image, headers=headers)

    def _patch(self, seen: Seen) -> Reply:
        image = self.images.get(seen.path.split("/")[2])
        words = json.loads(seen.body)
        if image is None:
            return problem(404, "unknown_image", "There is no image with this id.")
        if words.get("process_at") == "soon":
            return problem(400, "invalid_process_at", "process_at is an instant with its zone.")
        if image["status"] != "scheduled":
            return problem(409, "not_scheduled", f"Only a scheduled image can be rescheduled: {image['status']}.")
        if words.get("delay") == "PT0S":
            image["status"] = "pending"
        image["process_at"] = words.get("process_at", "2026-01-01T00:00:00.000Z")
        return Reply(body=image)

    def _delete(self, seen: Seen) -> Reply:
        del self.images[seen.path.split("/")[2]]
        return Reply(status=204)

    def _file(self, seen: Seen) -> Reply:
        return Reply(body=FILES[seen.path.removeprefix("/files/")][1])


def fields_of(seen: Seen) -> dict[str, bytes]:
    """The fields of a multipart form, in the order in which they came."""
    boundary = seen.headers["content-type"].partition("boundary=")[2].encode()
    fields = {}
    for part in seen.body.split(b"--" + boundary)[1:-1]:
        head, _, content = part.partition(b"\r\n\r\n")
        name = head.partition(b'name="')[2].partition(b'"')[0].decode()
        fields[name] = content.removesuffix(b"\r\n")
    return fields


def s3_error(status: int, code: str, message: str = "No.") -> Reply:
    """A refusal as S3 makes it."""
    body = f'<?xml version="1.0"?><Error><Code>{code}</Code><Message>{message}</Message></Error>'
    return Reply(status=status, body=body.encode(), headers={"Content-Type": "application/xml"})


def problem(status: int, code: str, detail: str, **headers: str) -> Reply:
    """A refusal as the API's own code makes it."""
    return Reply(
        status=status,
        body={
            "type": f"urn:darkroom:problem:{code.replace('_', '-')}",
            "title": "Refused",
            "status": status,
            "detail": detail,
            "code": code,
        },
        headers={"Content-Type": "application/problem+json", **headers},
    )


def image_id_of(text: str) -> str:
    """An id derived from a text."""
    return "0" + "".join(_ALPHABET[byte % 32] for byte in hashlib.sha256(text.encode()).digest()[:25])
