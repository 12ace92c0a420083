"""Which outcomes of an input are wrong."""

from __future__ import annotations

from tests.fuzz.attack import CRASH, PHOTOGRAPH, is_mutant
from tests.fuzz.hostile import DEVELOPED, hostile_cases
from tests.fuzz.worker import NO_CODE, NO_MEMORY, UNEXPECTED, WRONG, Result

OTHERWISE = "ends otherwise than it should"


def problem_of(result: Result) -> str | None:
    """What is wrong about an input's outcome, or None. A mutant may end with any refusal that has a code."""
    if result.outcome in (CRASH, UNEXPECTED, NO_MEMORY, NO_CODE, WRONG):
        return result.outcome
    if is_mutant(result.name):
        return None
    wanted = {DEVELOPED} if result.name.startswith(PHOTOGRAPH) else hostile_cases()[result.name].outcomes
    return OTHERWISE if result.outcome not in wanted else None
