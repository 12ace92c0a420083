"""`sam local invoke` of serve_page."""

import base64
import gzip
from pathlib import Path

from tests.invoke.deployed_stack import DeployedStack, sample_event


def test_a_browser_gets_the_shell(stack: DeployedStack, tmp_path: Path) -> None:
    answer = stack.invoke("serve_page", sample_event("serve_page"), tmp_path)

    assert answer["statusCode"] == 200
    assert b"<title>Darkroom</title>" in gzip.decompress(base64.b64decode(answer["body"]))
