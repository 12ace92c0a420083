"""The result of a rehearsal, judged image by image, and how much later each neighbour was than without the poison."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from darkroom.domain.images.image import Image, Status
from darkroom.domain.kernel.instants import Milliseconds
from tests.chaos.poison import DEAD_LETTERS, End, Poison

LATER_SECONDS = 60
"""How much later than without poison an unrelated image may be."""

SWEEP_SECONDS = 60

SWEEPS_APART_SECONDS = 3 * SWEEP_SECONDS
"""The longest allowed time between two sweeps, as `longest_gap_seconds` counts it: one period, the rest of the previous
one when the clock is moved, and as much again for a busy machine or a paused emulator."""


@dataclass(frozen=True, kw_only=True)
class Life:
    """How long an image took in one rehearsal: from its acceptance, or from its time, to its end (None: it did not
    end).
    `hits` says what, other than poison, struck it, and `delays` what its functions logged that made it wait."""

    number: int
    began_at: Milliseconds
    ended_at: Milliseconds | None
    is_neighbour: bool = True
    hits: frozenset[str] = frozenset()
    delays: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """How long it took; infinite if it did not end."""
        return float("inf") if self.ended_at is None else (self.ended_at - self.began_at) / 1000


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """How much later the images of one plan were with poison than without.

    `excluded` counts the images that are not compared, by reason; `alike` is how much later those were that the same
    disturbance hit in both rehearsals. It has no goal, since how long they wait depends on a few seconds' luck.
    """

    compared: int
    excluded: Counter[str]
    late: tuple[str, ...]
    latest_seconds: float
    alike_latest_seconds: float


def compare(
    without: Mapping[int, Life], with_poison: Mapping[int, Life], *, limit_seconds: float = LATER_SECONDS
) -> Comparison:
    """Compare each image with itself. Excluded are those that the poison was meant for, and those that a kill or a
    pause hit in either rehearsal."""
    excluded: Counter[str] = Counter()
    late, latest, alike, compared = [], 0.0, 0.0, 0
    for number, before in sorted(without.items()):
        after = with_poison.get(number)
        if after is None or not (before.is_neighbour and after.is_neighbour):
            excluded["not accepted in both" if after is None else "no neighbour"] += 1
            continue
        later = _later(before, after)
        if hits := before.hits | after.hits:
            excluded[" and ".join(sorted(hits))] += 1
            if before.hits == after.hits:
                alike = max(alike, later)
            continue
        compared += 1
        latest = max(latest, later)
        if later > limit_seconds:
            took = f"image {number} took {after.seconds:.0f} s, and {before.seconds:.0f} s without poison"
            late.append("; ".join((took, *after.delays)))
    return Comparison(
        compared=compared,
        excluded=excluded,
        late=tuple(late),
        latest_seconds=latest,
        alike_latest_seconds=alike,
    )


def _later(before: Life, after: Life) -> float:
    # An image that did not end is late, whatever happened to it in the other rehearsal.
    return float("inf") if after.ended_at is None else after.seconds - before.seconds


def written_twice(row: Image, first_seen_version: int | None) -> str | None:
    """What in a finished row shows that it ended more than once in its run, or was worked on after its end."""
    if row.status is not Status.DONE:
        return None
    if first_seen_version is not None and row.version != first_seen_version:
        return f"{row.image_id} was written after its end: version {first_seen_version}, then {row.version}"
    of_run = [attempt for attempt in row.attempts if attempt.run == row.run]
    successful = [attempt for attempt in of_run if attempt.ended_at is not None and attempt.cause is None]
    if len(successful) != 1 or successful[0].number != row.attempt:
        return f"{row.image_id} is done by {len(successful)} attempts, and its latest is number {row.attempt}"
    late = [attempt for attempt in of_run if row.completed_at is not None and attempt.started_at > row.completed_at]
    return f"{row.image_id} was begun after its end" if late else None


def problems_of_dead_letters(
    rows: Iterable[Image], explained: Mapping[tuple[str, int], int], raw: Mapping[str, int]
) -> list[str]:
    """What is wrong with the dead letters of these images: `explained` counts those that carry an explanation, by image
    and run, and `raw` all others, by image.

    A run that was given up has exactly one with an explanation, and may have raw ones; a done image has none.
    """
    sentences = []
    for row in rows:
        is_final = row.dead_letter is None and row.error is not None and not row.error.retryable
        is_given_up = row.status is Status.FAILED and not is_final
        count = explained.get((row.image_id, row.run), 0)
        if count != is_given_up:
            sentences.append(f"{row.image_id} is {row.status} and has {count} dead letters that explain themselves")
        if not is_given_up and raw.get(row.image_id, 0):
            sentences.append(f"{row.image_id} is {row.status} and has {raw[row.image_id]} raw dead letters")
    return sentences


def misrouted(poisons: Sequence[Poison], dead_letters: Mapping[str, Collection[str]]) -> list[str]:
    """The poison that did not end where it should; `dead letters` are the message bodies in each dead-letter queue.

    Call this when the queues themselves are empty: by then every message that is no dead letter is settled.
    """
    sentences = []
    for poison in poisons:
        is_dead_letter = poison.body in dead_letters[DEAD_LETTERS.get(poison.queue, poison.queue)]
        if (End.DEAD_LETTER if is_dead_letter else End.SETTLED) not in poison.ends:
            sentences.append(f"{poison.queue}: {poison.name} is {'a dead letter' if is_dead_letter else 'nowhere'}")
    return sentences


def longest_gap_seconds(
    sweeps: Sequence[Milliseconds],
    jumps: Sequence[tuple[Milliseconds, int]],
    *,
    since: Milliseconds,
    until: Milliseconds,
) -> float:
    """The longest time without a sweep between two instants of the stack's clock.

    `jumps` are how many seconds that clock was moved ahead, and when. A schedule fires only once after a move, however
    far it was, so a move counts as one period at most.
    """
    marks = sorted({since, until, *(sweep for sweep in sweeps if since <= sweep <= until)})
    longest = 0.0
    for before, after in pairwise(marks):
        moved = [seconds for at, seconds in jumps if before < at + seconds * 1000 <= after]
        longest = max(
            longest, (after - before) / 1000 - sum(moved) + sum(min(seconds, SWEEP_SECONDS) for seconds in moved)
        )
    return longest


def next_moment(
    now: Milliseconds,
    *,
    instants: Iterable[Milliseconds],
    wakes: Iterable[Milliseconds] = (),
    returns: Iterable[Milliseconds] = (),
    is_gathering: bool = False,
    step_seconds: int | None = None,
) -> Milliseconds | None:
    """The instant to which the clock of a stack at rest is moved: the next known event, or a step towards what is
    overdue (None: nothing is). None if nothing is left to happen.

    `instants` are images' times, which are never skipped; `wakes` those of batches, `returns` those of hidden messages.
    `is_gathering` says that the hold queue is waiting for its window to end.
    """
    moments = [moment for instant in instants for moment in (instant - LEAD_SECONDS * 1000, instant)]
    moments += [wake + 1000 for wake in wakes]
    moments += returns
    if is_gathering:
        moments.append(now + WINDOW_SECONDS * 1000)
    if step_seconds is not None:
        moments.append(now + step_seconds * 1000)
    return min((moment for moment in moments if moment > now), default=None)


LEAD_SECONDS = 30
"""How long before images' time the clock stops, so that their messages are in their lane in time."""

WINDOW_SECONDS = 61
"""The hold queue's window, plus a second."""
