"""A stack whose optional parts go and come back: the core, then everything, then the core, with images in between.

Each function may do only what its role allows.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from darkroom.domain.images.transitions import PARKED_SECONDS
from darkroom.domain.pauses.pauses import KNOWN_SECONDS, Pause
from darkroom.ports.images import Due
from darkroom_cli.operator.aws.image_registry import ImageRegistryTable
from darkroom_cli.operator.aws.pause_registry import PauseRegistryTable
from tests.local.keyed import client, done, ended
from tests.local.local_stack import LocalStack, document_in, wait_until
from tests.support.fakes.pictures import jpeg
from tests.unit.cli.fake_api import FakeApi

pytestmark = pytest.mark.promise("parts")

PARTS = ("Webhooks", "Usage", "Imports", "Page", "Bulk")
STATE = ("AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::SQS::Queue", "AWS::SNS::Topic", "AWS::SecretsManager::Secret")
PHOTO = jpeg(640, 480)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """A core alone."""
    local = LocalStack(state=tmp_path_factory.mktemp("parts") / "state")
    with local.serving("--core", "--enforce-iam"):
        yield local


@pytest.fixture(scope="module")
def api(stack: LocalStack) -> Iterator[httpx.Client]:
    with client(stack, None) as api:
        yield api


@pytest.fixture(scope="module")
def accepted() -> list[str]:
    """The ids of all images that the stack accepted."""
    return []


def test_the_core_alone_takes_a_photo_delays_one_fails_one_and_deletes_one(
    api: httpx.Client, accepted: list[str]
) -> None:
    delayed = submit(api, accepted, "?delay=PT5S")
    taken, deleted = submit(api, accepted), submit(api, accepted)
    damaged = submit(api, accepted, photo=PHOTO[: len(PHOTO) // 2])
    assert delayed["status"] == "scheduled"
    for image in (taken, deleted, delayed):
        done(api, image["id"])
    assert ended(api, damaged["id"])["error"]["code"] == "truncated"
    assert api.delete(f"/images/{deleted['id']}").status_code == 204
    assert api.get(f"/images/{deleted['id']}/status").json()["code"] == "unknown_image"


def test_parts_come_and_go_and_nothing_is_lost_or_counted_twice(
    stack: LocalStack, api: httpx.Client, accepted: list[str]
) -> None:
    kept = state_of(stack)
    develop(api, accepted)
    assert api.get("/usage").status_code == api.get("/webhooks").status_code == api.get("/app/").status_code == 404

    switch(stack, "true")
    assert state_of(stack) == kept
    develop(api, accepted)
    wait_until(lambda: images_counted(api) == len(accepted), "the usage of all photos, those of the core's time too")
    webhook = post(api, "/webhooks", url="https://hooks.example.com/darkroom").json()["id"]

    switch(stack, "false")
    assert state_of(stack) == kept
    develop(api, accepted)
    refused = post(api, "/images", url="https://photos.example/a.jpg")
    assert (refused.status_code, refused.json()["code"]) == (422, "part_not_deployed")

    switch(stack, "true")
    assert state_of(stack) == kept
    wait_until(lambda: images_counted(api) == len(accepted), "the usage of all photos, each counted once")
    assert [each["id"] for each in api.get("/webhooks").json()["webhooks"]] == [webhook]


def test_what_is_paused_waits_says_so_and_goes_on(stack: LocalStack, api: httpx.Client, accepted: list[str]) -> None:
    dynamodb, tables = stack.client("dynamodb"), stack.running.physical_ids("AWS::DynamoDB::Table")
    pauses = PauseRegistryTable(dynamodb, tables["PausesTable"])
    images = ImageRegistryTable(dynamodb, tables["ImagesTable"])

    def parked() -> list[str]:
        return [row.image_id for row in images.parked(now() + PARKED_SECONDS * 1000)]

    pauses.pause(Pause(kind="lane", name="slow", since=now()))
    time.sleep(KNOWN_SECONDS + 1)
    image_id = submit(api, accepted)["id"]
    wait_until(lambda: parked() == [image_id], "the worker parks it")
    shown = api.get(f"/images/{image_id}/status").json()
    assert (shown["status"], shown["attempt"], shown["paused"]) == ("pending", 0, True)
    pauses.resume("lane", "slow", now())
    time.sleep(KNOWN_SECONDS + 1)
    for row in images.parked(now() + PARKED_SECONDS * 1000):
        images.postpone(Due(row.due_at or 0, row.image_id), now())
    assert "paused" not in done(api, image_id)
    assert parked() == []


def test_a_batch_is_filled_followed_and_ended_by_its_commands_and_a_webhook_hears_of_it_once(
    stack: LocalStack, tmp_path: Path
) -> None:
    bodies = {f"{number}.jpg": jpeg(64 + number, 48) for number in range(4)} | {"bad.jpg": PHOTO[: len(PHOTO) // 2]}
    for name, body in bodies.items():
        (tmp_path / name).write_bytes(body)
    photos = [tmp_path / name for name in bodies]

    def run(*arguments: str | Path, status: int = 0) -> str:
        answer = stack.darkroom(*arguments)
        assert answer.returncode == status, answer.stdout
        return answer.stdout

    def create(*options: str) -> str:
        made: str = re.findall(r"ba_\w+", run("batches", "create", *options))[0]
        return made

    def counts(batch_id: str) -> dict[str, int]:
        images = document_in(run("batches", "show", batch_id, "--json"))["images"]
        return {state: number for state, number in images.items() if number}

    with FakeApi() as program:
        run("webhooks", "add", f"{program.url}/webhooks", "--type", "batch.*")
        batch, cancelled = create("--name", "catalogue", "--parallelism", "2"), create()
        run("upload", *photos, "--batch", batch)
        run("upload", *photos, "--batch", cancelled, "--delay", "PT1H")
        assert all(each in run("batches", "ls") for each in (batch, cancelled))
        run("batches", "close", batch)
        run("batches", "cancel", cancelled, "--yes")
        assert "completed" in run("batches", "wait", batch, "--timeout-seconds", "200", status=1), "one has failed"
        run("batches", "wait", cancelled, "--timeout-seconds", "200", status=1)
        assert counts(batch) == {"done": 4, "failed": 1}
        assert counts(cancelled) == {"cancelled": 5}
        wait_until(lambda: len(program.posts) == 2, "the webhook hears of both ends")
        told = [json.loads(request.body) for request in program.posts]
        assert {event["subject"]: event["type"] for event in told} == {
            batch: "batch.completed",
            cancelled: "batch.cancelled",
        }


def now() -> int:
    return time.time_ns() // 1_000_000


def switch(stack: LocalStack, value: str) -> None:
    chosen = [word for name in PARTS for word in ("--set", f"{name}={value}")]
    deployed = stack.darkroom("local", "deploy", *chosen)
    assert deployed.returncode == 0, deployed.stdout


def submit(api: httpx.Client, accepted: list[str], when: str = "", *, photo: bytes = PHOTO) -> dict[str, Any]:
    answer = api.post(f"/images{when}", content=photo, headers={"content-type": "image/jpeg"})
    assert answer.status_code == 202, answer.text
    document: dict[str, Any] = answer.json()
    accepted.append(document["id"])
    return document


def develop(api: httpx.Client, accepted: list[str]) -> None:
    done(api, submit(api, accepted)["id"])


def state_of(stack: LocalStack) -> dict[str, str]:
    """What holds something: the same resources, by their physical ids."""
    return {name: physical_id for kind in STATE for name, physical_id in stack.running.physical_ids(kind).items()}


def post(api: httpx.Client, path: str, **document: str) -> httpx.Response:
    return api.post(path, content=json.dumps(document), headers={"content-type": "application/json"})


def images_counted(api: httpx.Client) -> int:
    return sum(day["images"] for day in api.get("/usage").json()["days"])
