"""`sam local invoke` of manage_batches."""

import json
from pathlib import Path

from tests.invoke.deployed_stack import DeployedStack, sample_event


def test_a_batch_is_made(stack: DeployedStack, tmp_path: Path) -> None:
    answer = stack.invoke("manage_batches", sample_event("manage_batches"), tmp_path)

    assert answer["statusCode"] == 201
    made = json.loads(answer["body"])
    assert (made["name"], made["parallelism"], made["state"]) == ("catalogue", 20, "open")
