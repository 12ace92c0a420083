"""The kinds of harm that no history may do, in one word each, and the error that reports a broken promise."""

from __future__ import annotations

from enum import StrEnum


class ViolationKind(StrEnum):
    """The harm that a broken promise does."""

    LOST = "lost"
    DOUBLED = "doubled"
    STUCK = "stuck"
    DIFFERING = "differing"


class Broken(BaseException):
    """A promise was broken: how, and which. No handler catches this, as it may be raised while one is running."""

    def __init__(self, harm: ViolationKind, otherwise: str) -> None:
        super().__init__(otherwise)
        self.harm = harm


def check(promise: bool, harm: ViolationKind, otherwise: str) -> None:
    """Raises Broken if the promise does not hold."""
    if not promise:
        raise Broken(harm, otherwise)
