"""The machine's AWS settings never reach the local stack, and the local stack's never reach AWS."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.local.elsewhere import Elsewhere
from tests.local.local_stack import PHOTO, REPOSITORY, LocalStack

pytestmark = pytest.mark.promise("ambient-settings")


def test_a_photo_is_developed_and_its_event_received_without_a_call_to_where_the_ambient_settings_lead(
    another_stack: LocalStack, elsewhere: Elsewhere
) -> None:
    led_astray = LocalStack(state=another_stack.state, variables=elsewhere.variables)
    developed = led_astray.darkroom("local", "up", "--develop", PHOTO, "--then-exit")
    assert developed.returncode == 0, developed.stdout
    assert "image.done" in developed.stdout.splitlines()[-2], "then it stops"
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
