"""Batches on the local stack whose workers are killed and whose messages come twice: each ends once, with true counts.

    python -m tests.chaos.batches [--images N] [--seed S]

Half of the batches have a parallelism, and one photo in fifty is damaged. Whoever accepts, develops, counts and looks
is killed, about once in a hundred images; a message in twenty comes twice. Starts its own local stack, on which a dead
worker's message comes back in seconds. What a dead counter leaves is found by looks, in the product's own minutes:
whenever the stack is at rest, its clock is moved ahead to them. Exits with 1 if a promise was broken.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import batched
from typing import Any
from uuid import uuid4

import httpx

from darkroom.domain.events.event import EventType
from darkroom.domain.images.image import Image
from darkroom.domain.kernel.message import Message
from repository.report import ROOT, Goal, write_report
from tests.chaos.faults.scenario import Plan, Scenario, scenario_of
from tests.chaos.machinery import Clock
from tests.support.running.conditions import FUNCTIONS, QUICK, have_workers
from tests.support.running.kills import killing
from tests.support.running.load import TENANT, Answer, Photo, truncated_photo
from tests.support.running.serving import serving
from tests.support.running.stack import LANE, Stack

STATE = ROOT / "build" / "prove" / "batches"

COUNTERS = ("CountBatchesFunction", "SweepDueBulkFunction")

IMAGES_A_BATCH, PARALLELISM = 100, 20
DAMAGED_EVERY, DOUBLED_EVERY, KILLED_EVERY = 50, 20, 100

_REQUESTS_AN_IMAGE = 8
"""About how many calls the accepting and the developing of one make."""

_AT_REST_LOOKS, _STEP_SECONDS = 4, 300
"""After so many looks that saw nothing change, the clock is moved by that much: to the next look at batches."""

_ENDED = (EventType.BATCH_COMPLETED, EventType.BATCH_FAILED, EventType.BATCH_CANCELLED)
_LOOK_SECONDS = 5.0
_SHOWN = 10


@dataclass(kw_only=True)
class Filled:
    """A batch and the uploads that were sent to it; `document` is what the API says of it at its end."""

    batch_id: str
    parallelism: int | None
    answers: list[Answer] = field(default_factory=list)
    document: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Found:
    """The batches at their end, the events of theirs that were published, by subject and id, and the disturbances."""

    batches: Sequence[Filled]
    rows: Mapping[str, Image]
    events: Counter[tuple[str, str]]
    kills: Mapping[str, int]
    duplicates: int
    most_working: int

    def broken(self) -> Iterator[str]:
        """Every broken promise."""
        for batch in self.batches:
            shown, images = batch.document, batch.document["images"]
            rows = [self.rows.get(answer.image_id) for answer in batch.answers if answer.is_accepted]
            ended = Counter("lost" if row is None else row.status.value for row in rows)
            counted = Counter({state: number for state, number in images.items() if number})
            if shown["state"] != "completed":
                yield f"{batch.batch_id} is {shown['state']}, counts {dict(counted)}, rows {dict(ended)}"
            elif counted != ended:
                yield f"{batch.batch_id} counts {dict(counted)}, its rows are {dict(ended)}"
            published = {event_id for subject, event_id in self.events if subject == batch.batch_id}
            if len(published) != 1:
                yield f"{batch.batch_id} has {len(published)} events of its end"
        if self.most_working > PARALLELISM:
            yield f"{self.most_working} images of one batch were at work, not at most {PARALLELISM}"

    @property
    def counts(self) -> Counter[str]:
        """All batches' counts together."""
        total: Counter[str] = Counter()
        for batch in self.batches:
            total.update(batch.document["images"])
        return +total


@dataclass(kw_only=True)
class _Load:
    """Uploads to batches, and what comes twice of them: `owed` are the images whose first message is yet to come."""

    scenario: Scenario
    api: httpx.Client
    chance: random.Random
    owed: set[str] = field(default_factory=set)
    sent: list[str] = field(default_factory=list)
    most_working: int = 0

    def fill(self, place: int, photos: Sequence[Photo]) -> Filled:
        """Makes a batch, uploads to it, and closes it."""
        limit = PARALLELISM if place % 2 else None
        made = self.api.post("/batches", json={"name": f"batch {place}"} | ({"parallelism": limit} if limit else {}))
        batch = Filled(batch_id=made.raise_for_status().json()["id"], parallelism=limit)

        def double(answer: Answer) -> None:
            if answer.is_accepted and self.chance.random() < 1 / DOUBLED_EVERY:
                (self.owed.add if limit else self._send_again)(answer.image_id)

        parameters = {"batch": batch.batch_id}
        batch.answers = self.scenario.upload(photos, persistent=True, parameters=parameters, on_answer=double)
        _persist(partial(self.api.post, f"/batches/{batch.batch_id}/close"))
        return batch

    def follow(self, batches: Sequence[Filled]) -> None:
        """Returns when all have ended, or patience has."""
        clock, quiet = Clock(self.scenario.stack), 0
        limited = [batch.batch_id for batch in batches if batch.parallelism]
        deadline = time.monotonic() + self.scenario.plan.patience_seconds
        while time.monotonic() < deadline:
            self.scenario.stack.sweep()
            rows = {row.image_id: row for row in self.scenario.stack.rows()}
            for image_id in [name for name in self.owed if name in rows and not rows[name].awaits_turn]:
                self._send_again(image_id)
                self.owed.remove(image_id)
            begun = self._at_work(rows.values())
            self.most_working = max([self.most_working, *(begun[batch_id] for batch_id in limited)])
            before = [batch.document.get("images") for batch in batches]
            for batch in batches:
                batch.document = _persist(partial(self.api.get, f"/batches/{batch.batch_id}")).json()
            if all(batch.document["ended_at"] for batch in batches):
                return
            quiet = quiet + 1 if [batch.document["images"] for batch in batches] == before else 0
            if quiet >= _AT_REST_LOOKS and self.scenario.stack.waiting_messages() == 0:
                clock.go_to(clock.now() + _STEP_SECONDS * 1000)
                quiet = 0
            time.sleep(_LOOK_SECONDS)

    def _at_work(self, scanned: Iterable[Image]) -> Counter[str | None]:
        """How many images of each batch were at work at the instant between a scan, which is none, and another."""
        before = {row.image_id for row in scanned if not (row.awaits_turn or row.status.is_terminal)}
        return Counter(
            row.batch for row in self.scenario.stack.rows() if row.image_id in before and not row.status.is_terminal
        )

    def _send_again(self, image_id: str) -> None:
        message = Message(image_id=image_id, tenant_id=TENANT, lane=LANE, run=1, schedule=0)
        self.scenario.stack.send("SlowQueueUrl", message.model_dump_json(), group=TENANT)
        self.sent.append(image_id)


def fill_and_follow(scenario: Scenario, *, tell: Callable[[str], None]) -> Found:
    """Fills batches, disturbs those who work for them, closes them, and returns when all have ended."""
    stack, plan, chance = scenario.stack, scenario.plan, random.Random(scenario.plan.seed)
    bodies = [
        truncated_photo() if number % DAMAGED_EVERY == DAMAGED_EVERY - 1 else chance.choice(scenario.photos)
        for number in range(plan.uploads)
    ]
    requests, every = scenario.wire.requests, plan.requests_a_kill
    with (
        httpx.Client(base_url=stack.api_url, trust_env=False, timeout=60) as api,
        _events(stack) as events,
        killing(stack.state, plan.victims, progress=requests, every=every, seed=plan.seed) as kills,
    ):
        load = _Load(scenario=scenario, api=api, chance=chance)
        tell(f"uploading {plan.uploads} photos to batches of {IMAGES_A_BATCH}")
        with ThreadPoolExecutor(2) as pool:
            numbered = enumerate(batched(bodies, IMAGES_A_BATCH, strict=False))
            batches = list(pool.map(lambda each: load.fill(*each), numbered))
        tell("waiting for the batches to end")
        load.follow(batches)
        time.sleep(_LOOK_SECONDS)  # for the last event
        return Found(
            batches=batches,
            rows={row.image_id: row for row in stack.rows()},
            events=events(),
            kills=dict(kills),
            duplicates=len(load.sent),
            most_working=load.most_working,
        )


def _persist(ask: Callable[[], httpx.Response]) -> httpx.Response:
    """The first good answer."""
    while not (answer := ask()).is_success:
        time.sleep(1)
    return answer


@contextmanager
def _events(stack: Stack) -> Iterator[Callable[[], Counter[tuple[str, str]]]]:
    """Collects the events of batches' ends meanwhile; the block gets what reads them."""
    sqs, sns = stack.client("sqs"), stack.client("sns")
    queue_url: str = sqs.create_queue(QueueName=f"batches-{uuid4().hex[:8]}")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    attributes = {"RawMessageDelivery": "true", "FilterPolicy": json.dumps({"type": [kind.value for kind in _ENDED]})}
    topic = stack.physical_id("EventsTopic")
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn, Attributes=attributes)

    def read() -> Counter[tuple[str, str]]:
        events: Counter[tuple[str, str]] = Counter()
        while messages := sqs.receive_message(QueueUrl=queue_url, MaxNumberOfMessages=10).get("Messages"):
            bodies = [json.loads(message["Body"]) for message in messages]
            events.update((body["subject"], body["id"]) for body in bodies)
            for message in messages:
                sqs.delete_message(QueueUrl=queue_url, ReceiptHandle=message["ReceiptHandle"])
        return events

    try:
        yield read
    finally:
        sqs.delete_queue(QueueUrl=queue_url)


def main(arguments: Sequence[str]) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.batches", description="Batches amid kills.")
    long = os.environ.get("LONG") == "1"
    parser.add_argument("--images", type=int, default=2000 if long else 200, help="200; with LONG=1, 2,000")
    parser.add_argument("--seed", type=int, default=1, help="of who is killed and doubled (1)")
    chosen = parser.parse_args(arguments)
    plan = Plan(
        uploads=chosen.images,
        clients=4,
        victims=frozenset((*FUNCTIONS, *COUNTERS)),
        requests_a_kill=KILLED_EVERY * _REQUESTS_AN_IMAGE,
        silence_seconds=0,
        seconds_an_upload=0,
        patience_seconds=2400,
        seed=chosen.seed,
        pace=QUICK,
    )
    started = time.monotonic()
    with serving(STATE) as stack:
        have_workers(stack, 4)
        with scenario_of(stack, plan, folder=STATE / "logs") as scenario:
            found = fill_and_follow(
                scenario, tell=lambda doing: print(f"{time.monotonic() - started:5.0f} s  {doing}", flush=True)
            )
    row = _row(found) | {"seconds": round(time.monotonic() - started)}
    print(", ".join(f"{name} {value}" for name, value in row.items() if name != "broken"), flush=True)
    for sentence in row["broken"][:_SHOWN]:
        print(f"    BROKEN: {sentence}")
    write_report("batches", seed=chosen.seed, rows=[row], goals=_goals(row))
    return 1 if row["broken"] else 0


def _row(found: Found) -> dict[str, Any]:
    return {
        "images": sum(len(batch.answers) for batch in found.batches),
        "batches": len(found.batches),
        "counts": dict(found.counts),
        "kills": dict(sorted(found.kills.items())),
        "duplicates": found.duplicates,
        "events": len(found.events),
        "most_working": found.most_working,
        "broken": list(found.broken()),
    }


def _goals(row: Mapping[str, Any]) -> list[Goal]:
    images = row["images"]
    return [
        Goal(name="broken promises", value=len(row["broken"]), limit=0, at_least=False),
        Goal(name="done", value=row["counts"].get("done", 0), limit=images - images // DAMAGED_EVERY, at_least=True),
        Goal(name="kills", value=sum(row["kills"].values()), limit=images // KILLED_EVERY, at_least=True),
        Goal(name="duplicates", value=row["duplicates"], limit=images // (2 * DOUBLED_EVERY), at_least=True),
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
