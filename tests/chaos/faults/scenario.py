"""A stack under test: behind a wire that can be disturbed, at a given pace, with known undisturbed outputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local_aws.paths import State
from tests.support.running.conditions import Conditions, Pace, conditions
from tests.support.running.load import Answer, Photo, marked_photo, photos, upload
from tests.support.running.outcome import Evidence, Outcome, Prints, outcome_of, prints_of, settle
from tests.support.running.stack import Stack
from tests.support.running.wire import Wire, wire_to

MARK = "one-bug"
"""The mark in a photo that triggers the bug."""

_PHOTOS = 8


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How hard a stack is tried. `victims` are the functions whose processes are killed, one after every so many
    requests on the wire. With `pace` None the stack keeps the product's real timing."""

    uploads: int
    clients: int
    victims: frozenset[str]
    requests_a_kill: int
    silence_seconds: float
    seconds_an_upload: float
    patience_seconds: float
    seed: int
    pace: Pace | None

    @property
    def is_quick(self) -> bool:
        """Whether minutes pass in seconds: then the sweeper's schedule is too slow, and it is run again and again."""
        return self.pace is not None


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A stack under conditions, the plan of its disturbances, and its outputs when undisturbed."""

    stack: Stack
    wire: Wire
    conditions: Conditions
    plan: Plan
    photos: Sequence[Photo]
    marked: Photo
    undisturbed: Prints

    def upload(self, bodies: Sequence[Photo], **options: Any) -> list[Answer]:
        """Post these photos by the plan's number of clients."""
        return upload(self.stack.api_url, bodies, clients=self.plan.clients, **options)

    def settled(self, answers: Sequence[Answer]) -> Outcome:
        """The account of these uploads, once they have ended."""
        settle(self.stack, answers, patience_seconds=self.plan.patience_seconds, sweeping=self.plan.is_quick)
        return outcome_of(Evidence.of(self.stack), answers, undisturbed=self.undisturbed)


@contextmanager
def scenario_of(stack: Stack, plan: Plan, *, folder: Path) -> Iterator[Scenario]:
    """Run a stack under these conditions for the length of the block; the logs of the wire go to `folder`."""
    samples = photos(_PHOTOS)
    marked = marked_photo(MARK)
    answers = upload(stack.api_url, [*samples, marked], clients=2)
    settle(stack, answers, patience_seconds=plan.patience_seconds, sweeping=False)
    undisturbed = prints_of(stack, answers)
    with (
        wire_to(stack.gateway_url, relay_file=State(folder=stack.state).relay_file, folder=folder) as wire,
        conditions(stack, wire_url=wire.url, pace=plan.pace) as imposed,
    ):
        yield Scenario(
            stack=stack,
            wire=wire,
            conditions=imposed,
            plan=plan,
            photos=samples,
            marked=marked,
            undisturbed=undisturbed,
        )
