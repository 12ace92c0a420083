"""The machine's AWS settings never reach the local stack, and the local stack's never reach AWS."""

import os
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.local.local_stack import PHOTO, REPOSITORY, LocalStack

pytestmark = pytest.mark.promise("ambient-settings")


@dataclass(frozen=True, kw_only=True)
class Elsewhere:
    """An endpoint outside the local stack, the requests that it got, and the settings that point to it."""

    url: str
    requests: list[str]
    variables: dict[str, str]


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Elsewhere]:
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
    config = tmp_path / "home" / ".aws" / "config"
    config.parent.mkdir(parents=True)
    config.write_text(f"[default]\n{profile}[profile elsewhere]\n{profile}")
    variables = {
        "HOME": str(tmp_path / "home"),
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


def test_a_photo_is_developed_and_its_event_received_without_a_call_to_where_the_ambient_settings_lead(
    another_stack: LocalStack, elsewhere: Elsewhere
) -> None:
    led_astray = LocalStack(state=another_stack.state, variables=elsewhere.variables)
    developed = led_astray.darkroom("local", "up", "--develop", PHOTO, "--then-exit")
    assert developed.returncode == 0, developed.stdout
    assert "image.done" in developed.stdout.splitlines()[-2], "then it stops"
    assert elsewhere.requests == []


def test_a_redeployment_and_the_logs_heed_no_ambient_setting(stack: LocalStack, elsewhere: Elsewhere) -> None:
    led_astray = LocalStack(state=stack.state, variables=elsewhere.variables)
    deployed = led_astray.darkroom("local", "deploy")
    assert deployed.returncode == 0, deployed.stdout
    logs = led_astray.darkroom("logs", "read_image", "--since", "1h")
    assert logs.returncode == 0, logs.stdout
    assert "START RequestId" in logs.stdout
    assert elsewhere.requests == []


@pytest.mark.parametrize("settings", ["none", "elsewhere"])
def test_sam_deploy_to_the_local_environment_is_refused_outside_the_local_stack(
    elsewhere: Elsewhere, tmp_path: Path, settings: str
) -> None:
    ambient = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    if settings == "elsewhere":
        ambient |= elsewhere.variables
    refused = subprocess.run(
        [REPOSITORY / ".darkroom" / "venvs" / "sam" / "bin" / "sam", "deploy", "--config-env", "local"],
        cwd=REPOSITORY,
        env={**ambient, "SAM_CLI_TELEMETRY": "0", "__SAM_CLI_APP_DIR": str(tmp_path / "sam")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode != 0
    assert "The config profile (darkroom-local) could not be found" in refused.stderr
    assert elsewhere.requests == []
