"""Images scheduled two days ahead, on a local stack whose clock is then moved: none early, lost, doubled or stuck.

    python -m tests.chaos.time_travel [--images N]

One is cancelled, one rescheduled by a day, one rescheduled there and back; a message comes before its time; and
`release_images` is killed in the middle of its work, twice. Starts its own local stack. Exits with 1 if a promise was
broken.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from darkroom.domain.images.image import Image, Status
from darkroom.domain.kernel.message import Message
from repository.report import ROOT, Goal, write_report
from tests.support.running.clock import PATIENCE_SECONDS, TimeTravel, rfc3339
from tests.support.running.conditions import INJECTED, configuration, configure
from tests.support.running.load import TENANT, Answer, photos, upload
from tests.support.running.outcome import Evidence, Outcome, outcome_of, prints_of, settle
from tests.support.running.serving import serving
from tests.support.running.stack import Stack

STATE = ROOT / "build" / "prove" / "time_travel"

AHEAD_SECONDS = 2 * 86_400
DAY_SECONDS = 86_400
DEATHS = 2
SENDS_BEFORE_DEATH = 3
"""Batches of ten that a release sends before it is killed: it has many more images."""

_CLIENTS = 8
_PHOTOS = 8
_REST_SECONDS = 5.0
"""How long nothing may begin before the rows are checked to show that nothing has."""

_SHOWN = 10


@dataclass(frozen=True, kw_only=True)
class Found:
    """The result. `broken` describes each broken promise."""

    outcome: Outcome
    broken: tuple[str, ...]
    early: int
    executions: int
    interrupted: int
    last_begin_seconds: float

    @property
    def all_broken(self) -> list[str]:
        """Every broken promise."""
        return [*self.outcome.broken, *self.broken]


def travel(stack: Stack, *, images: int, tell: Callable[[str], None] = lambda _: None) -> Found:
    """Schedule so many images two days ahead, disturb them, and go there."""
    samples = photos(_PHOTOS)
    now_answers = upload(stack.api_url, samples, clients=2)
    settle(stack, now_answers, patience_seconds=PATIENCE_SECONDS, sweeping=False)
    undisturbed = prints_of(stack, now_answers)
    travel = _Disturbed(stack=stack, process_at=int(time.time()) + AHEAD_SECONDS)

    tell(f"scheduling {images} images two days ahead")
    answers = upload(
        stack.api_url,
        [samples[number % _PHOTOS] for number in range(images)],
        clients=_CLIENTS,
        persistent=True,
        parameters={"process_at": rfc3339(travel.process_at)},
    )
    cancelled, moved, there_and_back, premature, *_ = answers
    travel.hold()
    tell("cancelling one, moving one by a day, moving one there and back, sending one's message before its time")
    travel.cancel(cancelled)
    travel.move(moved, travel.process_at + DAY_SECONDS)
    travel.move(there_and_back, travel.process_at + DAY_SECONDS)
    travel.move(there_and_back, travel.process_at)
    travel.hold()
    travel.send_before_its_time(premature)
    travel.nothing_has_begun(answers, "at once")

    tell("going to a quarter of an hour before their time")
    travel.go_to(travel.process_at - 16 * 60)
    travel.nothing_has_begun(answers, "a quarter of an hour before its time")
    travel.go_to(travel.process_at - 4 * 60)
    travel.nothing_has_begun(answers, "minutes before its time")
    tell(f"letting them go, in processes of which {DEATHS} die")
    with _dying_releases(stack):
        travel.let_go(travel.process_at, still_waiting=1)  # the moved one waits on
    tell("going to their time")
    travel.go_to(travel.process_at)
    due = [answer for answer in answers if answer not in (cancelled, moved)]
    # As fast as a release lets them begin or as this machine develops them, whichever is slower.
    settle(stack, due, patience_seconds=PATIENCE_SECONDS + images, sweeping=False)
    travel.expect(travel.row(moved).status is Status.SCHEDULED, "the moved image begins with the others")
    tell("going a day further, for the one that was moved")
    travel.go_to(travel.process_at + DAY_SECONDS)
    travel.hold()
    settle(stack, [moved], patience_seconds=PATIENCE_SECONDS, sweeping=False)
    tell("making the account")
    return travel.account(answers, cancelled=cancelled, moved=moved, undisturbed=undisturbed)


class _Disturbed(TimeTravel):
    """A time travel on which images are cancelled and rescheduled, and messages come before their time."""

    def __init__(self, *, stack: Stack, process_at: int) -> None:
        super().__init__(stack)
        self.process_at = process_at

    def row(self, answer: Answer) -> Image:
        row = self.stack.row(answer.image_id)
        if row is None:
            raise RuntimeError(f"{answer.image_id} was answered {answer.status} and has no row")
        return row

    def cancel(self, answer: Answer) -> None:
        self._ask("DELETE", answer)
        self._ask("DELETE", answer)

    def move(self, answer: Answer, instant: int) -> None:
        self._ask("PATCH", answer, json={"process_at": rfc3339(instant)})

    def _ask(self, method: str, answer: Answer, **options: Any) -> None:
        with httpx.Client(base_url=self.stack.api_url, trust_env=False, timeout=60) as api:
            response = api.request(method, f"/images/{answer.image_id}", **options)
            self.expect(response.is_success, f"{method} of a scheduled image: {response.status_code} {response.text}")

    def send_before_its_time(self, answer: Answer) -> None:
        row = self.row(answer)
        message = Message(
            image_id=row.image_id, tenant_id=TENANT, lane=row.lane, run=row.run, schedule=row.schedule
        ).model_dump_json()
        self.stack.send("SlowQueueUrl", message, group=TENANT)

    def nothing_has_begun(self, answers: Sequence[Answer], when: str) -> None:
        time.sleep(_REST_SECONDS)
        rows = {row.image_id: row for row in self.stack.rows()}
        for answer in answers:
            row = rows[answer.image_id]
            self.expect(not row.attempts and row.status is not Status.DONE, f"{row.image_id} has begun {when}")

    def account(
        self, answers: Sequence[Answer], *, cancelled: Answer, moved: Answer, undisturbed: Mapping[str, Any]
    ) -> Found:
        stack = self.stack
        evidence = Evidence.of(stack)
        outcome = outcome_of(
            evidence, [answer for answer in answers if answer is not cancelled], undisturbed=undisturbed
        )
        self.expect(evidence.rows[cancelled.image_id].status is Status.CANCELLED, "the cancelled image is not")
        self.expect(not evidence.rows[cancelled.image_id].attempts, "the cancelled image was begun")
        self.expect(not stack.holds(), f"batches are left: {stack.holds()[:3]}")
        early, last = 0, 0.0
        for answer in answers:
            attempts = evidence.rows[answer.image_id].attempts
            due = self.process_at + (DAY_SECONDS if answer is moved else 0)
            early += sum(attempt.started_at < due * 1000 for attempt in attempts)
            if attempts and answer is not moved:
                last = max(last, attempts[0].started_at / 1000 - due)
        self.expect(not early, f"{early} attempts began before their time")
        executions = stack.executions()
        failed = [execution for execution in executions if execution["status"] != "SUCCEEDED"]
        self.expect(not failed, f"executions did not succeed: {failed[:3]}")
        interrupted = sum(stack.failed_tasks(execution["executionArn"]) for execution in executions)
        self.expect(interrupted >= DEATHS, f"{DEATHS} releases were to be killed, and {interrupted} were")
        return Found(
            outcome=outcome,
            broken=tuple(self.broken),
            early=early,
            executions=len(executions),
            interrupted=interrupted,
            last_begin_seconds=round(last, 1),
        )


@contextmanager
def _dying_releases(stack: Stack) -> Iterator[None]:
    shipped = configuration(stack, "ReleaseImagesFunction")
    with tempfile.TemporaryDirectory(prefix="darkroom-lives-") as lives:
        variables = shipped["Environment"]["Variables"] | {
            "PYTHONPATH": str(INJECTED),
            "INJECTED_LIVES": lives,
            "INJECTED_DEATHS": str(DEATHS),
            "INJECTED_SENDS": str(SENDS_BEFORE_DEATH),
        }
        configure(
            stack,
            "ReleaseImagesFunction",
            shipped | {"Handler": "dying.handler", "Environment": {"Variables": variables}},
        )
        try:
            yield
        finally:
            configure(stack, "ReleaseImagesFunction", shipped)


def main(arguments: Sequence[str]) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.time_travel", description="Travel two days ahead.")
    long = os.environ.get("LONG") == "1"
    parser.add_argument("--images", type=int, default=5000 if long else 270, help="270; with LONG=1, 5000")
    images = parser.parse_args(arguments).images
    started = time.monotonic()
    with serving(STATE) as stack:
        results = travel(
            stack,
            images=images,
            tell=lambda doing: print(f"{time.monotonic() - started:5.0f} s  {doing}", flush=True),
        )
    row = {
        "images": images,
        "done": results.outcome.done,
        "lost": len(results.outcome.lost),
        "doubled": len(results.outcome.doubled),
        "stuck": len(results.outcome.stuck),
        "differing": len(results.outcome.differing),
        "early": results.early,
        "executions": results.executions,
        "releases_killed": results.interrupted,
        "last_begin_seconds": results.last_begin_seconds,
        "broken": results.all_broken,
    }
    print(", ".join(f"{name} {value}" for name, value in row.items() if name != "broken"))
    for sentence in results.all_broken[:_SHOWN]:
        print(f"    BROKEN: {sentence}")
    goals = [
        *(
            Goal(name=name, value=row[name], limit=0, at_least=False)
            for name in ("lost", "doubled", "stuck", "differing", "early")
        ),
        Goal(name="broken promises", value=len(results.all_broken), limit=0, at_least=False),
        Goal(name="executions", value=results.executions, limit=10 + images // 100, at_least=False),
        Goal(name="releases killed", value=results.interrupted, limit=DEATHS, at_least=True),
    ]
    write_report("time_travel", seed=None, rows=[row], goals=goals)
    return 1 if results.all_broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
