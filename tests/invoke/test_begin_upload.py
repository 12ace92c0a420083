"""`sam local invoke` of begin_upload."""

import json
from pathlib import Path

from tests.invoke.deployed_stack import DeployedStack, sample_event


def test_an_upload_is_announced_and_given_a_form(stack: DeployedStack, tmp_path: Path) -> None:
    event = sample_event("begin_upload")
    announced = json.loads(event["body"])

    answer = stack.invoke("begin_upload", event, tmp_path)

    assert answer["statusCode"] == 201
    document = json.loads(answer["body"])
    assert document["upload"]["fields"]["key"] == f"uploads/{document['id']}"
    row = stack.row(document["id"])
    assert (row["status"], row["source"]["sha256"]) == ("awaiting_upload", announced["sha256"])
