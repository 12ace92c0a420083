"""What must hold in every history, in one word each, and how it is said that it does not."""

from __future__ import annotations

from enum import StrEnum


class Harm(StrEnum):
    """What a broken promise comes to."""

    LOST = "lost"
    DOUBLED = "doubled"
    STUCK = "stuck"
    DIFFERING = "differing"


class Broken(BaseException):
    """A promise was broken: how, and which. No handler sees this, as it may be noticed while one is at work."""

    def __init__(self, harm: Harm, otherwise: str) -> None:
        super().__init__(otherwise)
        self.harm = harm


def check(promise: bool, harm: Harm, otherwise: str) -> None:
    """Raises Broken where the promise does not hold."""
    if not promise:
        raise Broken(harm, otherwise)
