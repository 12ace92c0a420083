"""The libraries that docs/webhooks.md names for Node.js accept our webhooks and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from checks import node_packages
from repository.report import ROOT
from tests.webhook_cases import accepted_by_node, cases, mistakes

pytestmark = pytest.mark.promise("webhook-libraries")

INSTALLED = ROOT / ".darkroom" / "webhook-libraries"

# `standardwebhooks` parses the body after verifying; some of these are no JSON. `svix` ignores the option.
VERIFY = """
import { Webhook } from "%s";

function verify(secret, headers, body) {
  new Webhook(secret).verify(body, headers, { jsonParse: false });
}
"""


@pytest.mark.parametrize("library", ["standardwebhooks", "svix"])
def test_a_library_accepts_what_is_genuine_and_nothing_else(library: str) -> None:
    try:
        node_packages.install(Path(__file__).parent / "webhook_libraries", INSTALLED)
    except node_packages.NoNode as error:
        pytest.skip(str(error))
    judged = cases()
    assert mistakes(judged, accepted_by_node(judged, VERIFY % library, INSTALLED)) == []
