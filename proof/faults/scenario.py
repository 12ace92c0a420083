"""A stack on scenario: led through a wire that can be disturbed, at a pace, and known by what it does undisturbed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proof.running.conditions import Conditions, Pace, conditions
from proof.running.load import Answer, Photo, marked_photo, photos, upload
from proof.running.outcome import Evidence, Outcome, Prints, outcome_of, prints_of, settle
from proof.running.stack import Stack
from proof.running.wire import Wire, wire_to

MARK = "proof-of-a-bug"
"""What the photo carries that brings the bug out."""

_PHOTOS = 8


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How hard a stack is tried. `victims` are the functions whose processes are killed, one after so many requests on
    the wire. `pace` is None where the stack keeps the product's own time."""

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
    """A stack under conditions, how hard it is tried, and what its outputs are when nothing disturbs them."""

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
        """The account of these uploads, once they have come to rest."""
        settle(self.stack, answers, patience_seconds=self.plan.patience_seconds, sweeping=self.plan.is_quick)
        return outcome_of(Evidence.of(self.stack), answers, undisturbed=self.undisturbed)


@contextmanager
def scenario_of(stack: Stack, plan: Plan, *, folder: Path) -> Iterator[Scenario]:
    """Put a stack on scenario for the length of the block; the logs of the wire go to `folder`."""
    samples = photos(_PHOTOS)
    marked = marked_photo(MARK)
    answers = upload(stack.api_url, [*samples, marked], clients=2)
    settle(stack, answers, patience_seconds=plan.patience_seconds, sweeping=False)
    undisturbed = prints_of(stack, answers)
    with (
        wire_to(stack.gateway_url, folder=folder) as wire,
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
