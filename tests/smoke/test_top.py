"""`darkroom top` on the local stack: an image that is stuck is seen, with its age, its failure and its worker."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from darkroom.aws.images.images_table import to_item
from darkroom.domain.images.image import Attempt, Cause, Image, Status
from darkroom.domain.kernel.lanes import LANES
from tests.local.local_stack import LocalStack
from tests.support.fakes.rows import accepted_image

HOUR = 3_600_000


@pytest.fixture
def stuck(stack: LocalStack) -> Iterator[Image]:
    """An image whose second attempt a worker began an hour ago; no sweep looks at it meanwhile."""
    now = round(time.time() * 1000)
    frame = '  File "/opt/python/darkroom/operations/images/transcode_image.py", line 7, in _develop\n'
    cause = Cause(error_type="KeyError", message="'gamma'", stack=frame)
    attempts = (
        Attempt(run=1, number=1, request_id="first", started_at=now - HOUR, ended_at=now - HOUR + 1, cause=cause),
        Attempt(run=1, number=2, request_id="second", started_at=now - HOUR + 60_000),
    )
    row = replace(
        accepted_image(now=now - HOUR, image_id="7" * 26),
        status=Status.PROCESSING,
        attempt=2,
        attempts=attempts,
        lease_until=now - HOUR + 150_000,
        due_at=now + HOUR,
    )
    dynamodb, table = stack.client("dynamodb"), stack.outputs["ImagesTableName"]
    dynamodb.put_item(TableName=table, Item=to_item(row))
    try:
        yield row
    finally:
        dynamodb.delete_item(TableName=table, Key={"image_id": {"S": row.image_id}})


def test_an_image_that_is_stuck_is_seen_with_its_failure_and_its_worker(stack: LocalStack, stuck: Image) -> None:
    ran = stack.darkroom("top", "--once", "--json")
    assert ran.returncode == 0, ran.stdout
    seen: dict[str, Any] = json.loads(ran.stdout)
    assert (seen["stack"], seen["problems"]) == (stack.record.stack_name, {})
    assert [lane["lane"] for lane in seen["lanes"]] == list(LANES)
    (lane,) = [lane for lane in seen["lanes"] if lane["lane"] == stuck.lane]
    assert lane["oldest_seconds"] >= HOUR / 1000
    assert lane["late"]["number"] >= 1
    (worker,) = [worker for worker in seen["working"] if worker["id"] == stuck.image_id]
    assert (worker["request_id"], worker["attempt"], worker["lease_lapsed"]) == ("second", 2, True)
    (defect,) = [defect for defect in seen["retrying"] if stuck.image_id in defect["images"]]
    assert defect["fingerprint"] == "KeyError@operations/transcode_image.py:_develop"
    page = stack.darkroom("top", "--once")
    assert page.returncode == 0 and stuck.image_id in page.stdout, page.stdout
    late = stack.darkroom("ls", "--late", "--json")
    assert stuck.image_id in [image["id"] for image in json.loads(late.stdout)["images"]]
