"""Looking at every unfinished image whose time has come: whatever was lost on the way is sent again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from darkroom.domain.errors import Retryable
from darkroom.domain.image import DUE_SHARD_NAMES, GiveUp, NothingToDo, Rescue, look_at_due
from darkroom.operations.enqueue import DUE_FENCE, enqueue
from darkroom.ports import Clock, Fenced, Images, Lanes

SHARD_LIMIT = 500
"""Images that one sweep looks at in a shard; the oldest come first, and the next sweep goes on."""


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """What one sweep did, by outcome: `rescued`, `gave_up`, `unsent`, or the reason why there was nothing to do.

    `errors` holds, by image id, what should not have happened; `complete` is False where time ran out.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    errors: dict[str, Exception] = field(default_factory=dict)
    complete: bool = True


def sweep_due_images(*, images: Images, lanes: Lanes, clock: Clock, out_of_time: Callable[[], bool]) -> Sweep:
    """Looks at what is due in every shard until done or `out_of_time`.

    An image that a queue or the table cannot serve now stays due; one that trips a bug does not stop the others.
    Raises Retryable where the due index itself cannot answer: the next sweep looks again.
    """
    outcomes: Counter[str] = Counter()
    errors: dict[str, Exception] = {}
    for shard in DUE_SHARD_NAMES:
        for image_id in images.due(shard, clock(), SHARD_LIMIT):
            if out_of_time():
                return Sweep(outcomes=outcomes, errors=errors, complete=False)
            try:
                outcomes[_look_at(image_id, images=images, lanes=lanes, clock=clock)] += 1
            except Exception as error:  # a row that trips a bug must not keep the sweeper from all the others
                outcomes["error"] += 1
                errors[image_id] = error
    return Sweep(outcomes=outcomes, errors=errors)


def _look_at(image_id: str, *, images: Images, lanes: Lanes, clock: Clock) -> str:
    # The index is eventually consistent, so a sweep acts only on the row that it has read.
    try:
        before = images.get(image_id)
        if before is None:
            return "gone"
        match look_at_due(before, now=clock()):
            case NothingToDo(reason=reason):
                return reason
            case GiveUp(image=after):
                images.change(before, after, fence=DUE_FENCE)
                return "gave_up"
            case Rescue(image=after):
                # Pushed out before it is sent: of two sweeps at once only one sends. What cannot be sent is due at
                # once, because a queue's outage is no reason to look less often afterwards.
                pushed = images.change(before, after, fence=DUE_FENCE)
                return "rescued" if enqueue(pushed, images=images, lanes=lanes, clock=clock) else "unsent"
    except Fenced:
        return "fenced"
    except Retryable:
        return "unreachable"
