"""An endpoint outside the local stack, and a machine whose AWS settings all lead there."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Elsewhere:
    """An endpoint outside the local stack, the requests that it got, and the settings that point to it."""

    url: str
    requests: list[str]
    variables: dict[str, str]


@contextmanager
def settings_that_lead_elsewhere(home: Path) -> Iterator[Elsewhere]:
    """A server that records and refuses every request, and an environment in which everything points to it."""
    requests: list[str] = []

    class Recorder(BaseHTTPRequestHandler):
        def handle_one_request(self) -> None:
            self.raw_requestline = self.rfile.readline(65_537)
            if self.raw_requestline:
                requests.append(self.raw_requestline.decode(errors="replace").strip())
            self.close_connection = True

    server = ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}"
    keys = "aws_access_key_id = AKIAEXAMPLE\naws_secret_access_key = secret\n"
    profile = f"endpoint_url = {url}\nregion = eu-north-1\n{keys}"
    config = home / ".aws" / "config"
    config.parent.mkdir(parents=True)
    config.write_text(f"[default]\n{profile}[profile elsewhere]\n{profile}")
    variables = {
        "HOME": str(home),
        "AWS_PROFILE": "elsewhere",
        "AWS_DEFAULT_PROFILE": "elsewhere",
        "AWS_CONFIG_FILE": str(config),
        "AWS_SHARED_CREDENTIALS_FILE": str(config),
        "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_SESSION_TOKEN": "token",
        "AWS_REGION": "eu-north-1",
        "AWS_DEFAULT_REGION": "eu-north-1",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{url}/credentials",
        "AWS_EC2_METADATA_SERVICE_ENDPOINT": url,
        "HTTP_PROXY": url,
        "http_proxy": url,
    }
    for service in ("", "_S3", "_SQS", "_DYNAMODB", "_LAMBDA", "_CLOUDFORMATION", "_STS", "_LOGS"):
        variables[f"AWS_ENDPOINT_URL{service}"] = url
    yield Elsewhere(url=url, requests=requests, variables=variables)
    server.shutdown()
    server.server_close()
    thread.join()
