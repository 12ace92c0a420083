"""Which outcomes of an input are wrong."""

from __future__ import annotations

from proof.fuzz.attack import CRASH
from proof.fuzz.hostile import hostile_cases
from proof.fuzz.worker import NO_CODE, NO_MEMORY, UNEXPECTED, WRONG, Result

OTHERWISE = "ends otherwise than it should"


def problem_of(result: Result) -> str | None:
    """What is wrong about an input's outcome, or None. A mutant may end with any refusal that has a code."""
    if result.outcome in (CRASH, UNEXPECTED, NO_MEMORY, NO_CODE, WRONG):
        return result.outcome
    if result.name.isdecimal():
        return None
    return OTHERWISE if result.outcome not in hostile_cases()[result.name].outcomes else None
