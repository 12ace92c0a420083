"""The verifiers in docs/webhooks.md, and the libraries that it names for Python, accept our webhooks and no others."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import standardwebhooks
import svix.webhooks

from tests.webhook_cases import Verify, accepted, accepted_by_node, cases, documented, mistakes

pytestmark = pytest.mark.promise("webhook-libraries")


def test_the_documented_verifier_in_python_accepts_what_is_genuine_and_nothing_else() -> None:
    names: dict[str, Any] = {}
    exec(documented("python"), names)
    judged = cases()
    assert mistakes(judged, accepted(judged, names["verify"], rejects_by=ValueError)) == []


def test_the_documented_verifier_in_javascript_accepts_what_is_genuine_and_nothing_else(tmp_path: Path) -> None:
    if shutil.which("node") is None:
        pytest.skip("there is no node")
    judged = cases()
    assert mistakes(judged, accepted_by_node(judged, documented("js"), tmp_path)) == []


@pytest.mark.parametrize(
    "verify",
    [
        # It parses the body after verifying, and some of these are no JSON.
        lambda secret, headers, body: standardwebhooks.Webhook(secret).verify(body, dict(headers), json_parse=False),
        lambda secret, headers, body: svix.webhooks.Webhook(secret).verify(body, dict(headers)),
    ],
    ids=["standardwebhooks", "svix"],
)
def test_a_library_in_python_accepts_what_is_genuine_and_nothing_else(verify: Verify) -> None:
    judged = cases()
    assert mistakes(judged, accepted(judged, verify)) == []
