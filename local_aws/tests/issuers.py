"""An issuer of tokens on this machine: its keys by OpenID Connect's discovery, and tokens that it signs."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa


@dataclass(frozen=True, kw_only=True)
class Issuer:
    """A signer of tokens, and the address of its public key."""

    url: str
    key: rsa.RSAPrivateKey

    def token(self, **claims: Any) -> str:
        """A signed token (RS256), valid for an hour unless its claims say otherwise."""
        now = int(time.time())
        header = {"alg": "RS256", "kid": "key-1", "typ": "JWT"}
        payload = {"iss": self.url, "iat": now, "exp": now + 3600, **claims}
        signed = ".".join(_encoded(json.dumps(part).encode()) for part in (header, payload))
        signature = self.key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{_encoded(signature)}"


@contextmanager
def issuer() -> Iterator[Issuer]:
    """An issuer that answers until the end of the block."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    numbers = key.public_key().public_numbers()
    public = {
        "kty": "RSA",
        "kid": "key-1",
        "alg": "RS256",
        "use": "sig",
        "n": _number(numbers.n),
        "e": _number(numbers.e),
    }
    documents: dict[str, Any] = {"/keys": {"keys": [public]}}

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            document = documents.get(self.path)
            self.send_response(404 if document is None else 200)
            self.end_headers()
            self.wfile.write(json.dumps(document).encode())

        def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    url = f"http://127.0.0.1:{server.server_port}"
    documents["/.well-known/openid-configuration"] = {"issuer": url, "jwks_uri": f"{url}/keys"}
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield Issuer(url=url, key=key)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _number(value: int) -> str:
    return _encoded(value.to_bytes((value.bit_length() + 7) // 8))


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
