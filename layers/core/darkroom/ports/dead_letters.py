"""What dead letters need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from darkroom.domain.dead_letters.rejection import RejectedMessage
    from darkroom.domain.kernel.instants import Milliseconds
    from darkroom.domain.kernel.message import Message


@dataclass(frozen=True, kw_only=True)
class DeadLetter:
    """One message in a dead-letter queue.

    `explanation` is the JSON that Darkroom gave it, None if SQS moved it there by itself; `sent_at` is when its message
    was first sent, from which its 14 days count. `is_signed` is whether it has a signature, which is not verified:
    without one no queue takes it back.
    """

    queue: str
    message_id: str
    receipt: str
    body: str
    explanation: str | None
    is_signed: bool
    sent_at: Milliseconds


@dataclass(frozen=True, kw_only=True)
class Taken:
    """Dead letters that were taken, each once.

    `complete` is whether the queue showed no more. `asked_again` is whether an answer was lost on the way: the dead
    letters in it are hidden for a minute, and nobody has them.
    """

    dead_letters: tuple[DeadLetter, ...]
    complete: bool
    asked_again: bool = False


class DeadLetters(Protocol):
    """The dead-letter queues, each by the name of its lane or purpose (`fast`, `slow`, …). Every method raises
    Retryable if a queue cannot answer."""

    @property
    def queues(self) -> tuple[str, ...]:
        """The names of all of them."""

    def depth(self, queue: str) -> int:
        """About how many dead letters are in the queue."""

    def take(self, queue: str, limit: int) -> Taken:
        """Up to `limit` dead letters, hidden from everybody else for a minute."""

    def sample(self, queue: str) -> tuple[DeadLetter, ...]:
        """Up to ten dead letters, any of the queue's. They stay visible to everybody: nobody has to give them back, and
        their receipts are not to be used."""

    def give_back(self, dead_letters: tuple[DeadLetter, ...]) -> None:
        """Shows taken dead letters to everybody again at once."""

    def remove(self, dead_letter: DeadLetter) -> None:
        """Removes a taken dead letter permanently."""

    def put(self, queue: str, message: Message, explanation: dict[str, Any]) -> None:
        """Puts a dead letter into the queue. Tried once: a retry after a lost answer would make a second dead
        letter."""


class RejectedMessages(Protocol):
    """Where messages go that do not verify: among the dead letters of the queue that they came from."""

    def put_rejected(self, queue: str, message: RejectedMessage, explanation: dict[str, Any]) -> None:
        """Puts it there. Tried once, like `DeadLetters.put`. Raises Retryable if that may not have succeeded."""


class Archive(Protocol):
    """Where dead letters are kept that SQS will delete. Raises Retryable if it cannot answer."""

    def put_if_absent(self, key: str, document: dict[str, Any]) -> bool:
        """Stores the JSON document unless `key` has one; returns whether it was stored."""
