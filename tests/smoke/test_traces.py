"""On the local stack, everything that is logged and delivered of an image is found by its id: requests, attempts,
events and deliveries to webhooks."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pytest

from darkroom.domain.kernel.instants import Milliseconds
from darkroom_cli.operator.aws.log_groups import LogGroups
from darkroom_cli.operator.domain.trace import LogLine, Trace
from darkroom_cli.operator.operations.observation.trace_image import TraceImagePorts, trace_image
from darkroom_cli.stack.operators import open_stack
from tests.local.local_stack import LocalStack, document_in, wait_until
from tests.support.fakes.pictures import jpeg
from tests.unit.cli.fake_api import FakeApi

OF_IMAGES = {
    "submit_image": {"accepted", "timing"},
    "transcode_image": {"run"},
    "publish_events": {"event published"},
    "create_deliveries": {"deliveries noted"},
    "deliver_event": {"delivery"},
}
"""The lines that each image leaves behind, by their functions."""

KINDS = ("request", "attempt", "event", "delivery")


class ReadOnce:
    """The stack's logs as they were, each read once: a search in them for each of many images takes no time."""

    def __init__(self, logs: LogGroups) -> None:
        self._lines = {source: list(logs.containing(source, "", since=0, until=FOREVER)) for source in logs.sources}

    @property
    def sources(self) -> Collection[str]:
        return self._lines.keys()

    def lines(self, source: str) -> list[LogLine]:
        return self._lines[source]

    def containing(self, source: str, text: str, *, since: Milliseconds, until: Milliseconds) -> Iterator[LogLine]:
        for line in self._lines[source]:
            if since <= line.at <= until and text in line.fields.values():
                yield line


FOREVER = 2_000_000_000_000


@pytest.mark.parametrize("count", [12, pytest.param(500, marks=pytest.mark.long)])
def test_every_request_attempt_event_and_delivery_joins_by_the_images_id(
    stack: LocalStack, tmp_path: Path, count: int
) -> None:
    for number in range(count):
        (tmp_path / f"{number:03d}.jpg").write_bytes(jpeg(40 + number % 20, 30 + number // 20))
    since = round(time.time() * 1000)
    with FakeApi() as program:
        added = stack.darkroom("webhooks", "add", f"{program.url}/webhooks", "--type", "image.*")
        webhook_id = re.findall(r"we_\w+", added.stdout)[0]
        try:
            uploaded = stack.darkroom("upload", tmp_path, "--variants", "thumb", "--wait", "--json")
            assert uploaded.returncode == 0, uploaded.stdout
            rows = rows_since(stack, since)
            assert len(rows) == count
            sent = {f"{image_id}-{version}" for image_id, version in rows.items()}
            wait_until(lambda: sent <= {post.headers["webhook-id"] for post in program.posts}, "all are delivered")
            logs, traces = traced(stack, rows)
            first = next(iter(traces))
            document = document_in(stack.darkroom("trace", first, "--json").stdout)
            drawn = stack.darkroom("trace", first).stdout
            _, later = traced(stack, [first])
            found_by_query = {image_id: found_by_the_saved_query(stack, image_id, since=since) for image_id in rows}
        finally:
            stack.darkroom("webhooks", "rm", webhook_id, "--yes")
    for image_id, trace in traces.items():
        of = {kind: [step for step in trace.steps if step.kind == kind] for kind in KINDS}
        assert [step.title for step in of["request"]] == ["POST /images"], image_id
        (attempt,) = of["attempt"]
        assert [phase.name for phase in attempt.phases] == ["decode", "develop", "store", "finish"]
        events = ["image.accepted", "image.done"]
        assert [(step.title, step.detail) for step in of["event"]] == [(event, "published") for event in events]
        # One more, if many at once made an attempt wait: a delivery that is made again says so.
        assert {step.title for step in of["delivery"]} == {f"{event} to {webhook_id}" for event in events}
        assert {step.detail for step in of["delivery"]} == {"202"}
    # And the other way round: no such line is about nothing, and each function told of every image.
    for function, messages in OF_IMAGES.items():
        lines = [line for line in logs.lines(function) if line.at >= since and line.message in messages]
        assert {line.fields.get("image_id") for line in lines} >= rows.keys(), function
        of_none = [line for line in lines if "image_id" not in line.fields and line.message != "timing"]
        assert of_none == [], function
    # The saved query of an operator who has no checkout finds the same.
    told_of_an_image = {message for messages in OF_IMAGES.values() for message in messages}
    for image_id, messages_of_image in found_by_query.items():
        assert set(messages_of_image) >= told_of_an_image, image_id
        assert messages_of_image.count("event published") == len(events), image_id
    # Between the two traces a delivery may have been made again.
    shown = Counter(step["title"] for step in document["steps"])
    before, after = (Counter(step.title for step in each[first].steps) for each in (traces, later))
    assert before <= shown <= after
    assert f"image.done to {webhook_id}  202" in drawn and "decode" in drawn


def found_by_the_saved_query(stack: LocalStack, image_id: str, *, since: Milliseconds) -> list[str]:
    """The messages of the lines that the query "one image by its id" finds in the logs."""
    logs = stack.client("logs")
    (query,) = logs.describe_query_definitions(queryDefinitionNamePrefix=f"{stack.record.stack_name}/one image")[
        "queryDefinitions"
    ]
    started = logs.start_query(
        logGroupNames=query["logGroupNames"],
        queryString=query["queryString"].replace("IMAGE_ID", image_id),
        startTime=since // 1000 - 1,
        endTime=round(time.time()) + 1,
    )
    answer = wait_until(
        lambda: (results := logs.get_query_results(queryId=started["queryId"]))["status"] == "Complete" and results,
        "the query is complete",
    )
    lines = [{field["field"]: field["value"] for field in result} for result in answer["results"]]
    return [line["message"] for line in lines if "message" in line]


def rows_since(stack: LocalStack, since: Milliseconds) -> dict[str, int]:
    """The images that were accepted since then, each with the version of its row when it had ended."""
    pages = stack.client("dynamodb").get_paginator("scan").paginate(TableName=stack.outputs["ImagesTableName"])
    items: Any = [item for page in pages for item in page["Items"] if int(item["created_at"]["N"]) >= since]
    return {item["image_id"]["S"]: int(item["completed_version"]["N"]) for item in items}


def traced(stack: LocalStack, image_ids: Collection[str]) -> tuple[ReadOnce, dict[str, Trace]]:
    """The traces of images, once all of their lines can be read."""
    operators = open_stack(None, None, environment={"DARKROOM_STATE_DIR": str(stack.state)})
    traces: dict[str, Trace] = {}

    def all_are_complete() -> ReadOnce | None:
        logs = ReadOnce(operators.log_lines)
        ports = TraceImagePorts(
            images=operators.images,
            endpoints=operators.endpoints,
            deliveries=operators.deliveries,
            log_lines=logs,
            clock=operators.clock,
        )
        for image_id in image_ids:
            traces[image_id] = trace_image(ports, image_id)
            if traces[image_id].count("event") < 2 or traces[image_id].count("delivery") < 2:
                return None
            if any(step.until is None or step.detail.startswith("no") for step in traces[image_id].steps):
                return None
        return logs

    return wait_until(all_are_complete, "every image's lines can be read", seconds=60), traces
