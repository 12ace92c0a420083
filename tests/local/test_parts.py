"""A stack whose optional parts go and come back: the core, then everything, then the core, with images in between."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx
import pytest

from tests.local.local_stack import PHOTO, LocalStack, wait_until

PARTS = ("Webhooks", "Usage", "Imports", "Page")
STATE = ("AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::SQS::Queue", "AWS::SNS::Topic", "AWS::SecretsManager::Secret")


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """A core alone, in which each function may do only what its role allows."""
    local = LocalStack(state=tmp_path_factory.mktemp("parts") / "state")
    local.borrow_downloads()
    with local.serving("--core", "--enforce-iam"):
        yield local


@pytest.mark.xfail(
    strict=False,
    reason="the embedded AWS forgets the Arn of alarms that stay as they are when a stack in the stack is updated",
)
def test_parts_come_and_go_and_nothing_is_lost_or_counted_twice(stack: LocalStack) -> None:
    kept = state_of(stack)
    develop(stack)
    assert asked(stack, "/usage").status_code == asked(stack, "/webhooks").status_code == 404
    assert asked(stack, "/app/").status_code == 404

    switch(stack, "true")
    assert state_of(stack) == kept
    develop(stack)
    wait_until(lambda: images_counted(stack) == 2, "the usage of both photos, that of the core's time included")
    secret = asked(stack, "/webhooks", post={"url": "https://hooks.example.com/darkroom"}).json()["id"]

    switch(stack, "false")
    assert state_of(stack) == kept
    develop(stack)
    refused = asked(stack, "/images", post={"url": "https://photos.example/a.jpg"})
    assert (refused.status_code, refused.json()["code"]) == (400, "invalid_url")

    switch(stack, "true")
    assert state_of(stack) == kept
    wait_until(lambda: images_counted(stack) == 3, "the usage of three photos, each counted once")
    assert [webhook["id"] for webhook in asked(stack, "/webhooks").json()["webhooks"]] == [secret]


def switch(stack: LocalStack, value: str) -> None:
    chosen = [word for name in PARTS for word in ("--set", f"{name}={value}")]
    deployed = stack.darkroom("local", "deploy", *chosen)
    assert deployed.returncode == 0, deployed.stdout


def develop(stack: LocalStack) -> None:
    uploaded = stack.darkroom("upload", PHOTO, "--wait")
    assert uploaded.returncode == 0, uploaded.stdout


def state_of(stack: LocalStack) -> dict[str, str]:
    """What holds something: the same resources, by their physical ids."""
    return {name: physical_id for kind in STATE for name, physical_id in stack.running.physical_ids(kind).items()}


def asked(stack: LocalStack, path: str, post: dict[str, str] | None = None) -> httpx.Response:
    with httpx.Client(trust_env=False, timeout=60) as client:
        url = f"{stack.api_url}{path}"
        return client.get(url) if post is None else client.post(url, content=json.dumps(post), headers=JSON)


JSON = {"content-type": "application/json"}


def images_counted(stack: LocalStack) -> int:
    return sum(day["images"] for day in asked(stack, "/usage").json()["days"])
