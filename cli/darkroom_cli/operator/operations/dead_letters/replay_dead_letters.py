"""Replays failed images: each row is reopened for a new run, then its message is sent, then its dead letter removed.

After a crash midway the row decides: a run that it has left is never opened again, and if no message was sent for a
reopened row, the sweeper sends it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from darkroom.domain.dead_letters.dead_letter import Verdict, verdict_of
from darkroom.domain.images.image import Image
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.lanes import UPLOAD
from darkroom.operations.dead_letters.cases import Case, CasePorts
from darkroom.operations.images.enqueue import EnqueuePorts
from darkroom_cli.operator.domain.dead_letters import why_not_replayable
from darkroom_cli.operator.domain.next_run import reopened
from darkroom_cli.operator.domain.redrives import Redrive, RedriveStatus
from darkroom_cli.operator.operations.dead_letters.list_dead_letters import DeadLetterSelection, list_dead_letters
from darkroom_cli.operator.operations.dead_letters.work_through import work_through
from darkroom_cli.operator.operations.images.reopen_run import reopen_run, send_first_message
from darkroom_cli.operator.operations.kernel.audit_trail import AuditedAction, Trail
from darkroom_cli.operator.operations.kernel.rate_limiter import RateLimiter
from darkroom_cli.operator.ports import Redrives

REDRIVE_LIMIT = 30_000
"""The most dead letters in a queue for a redrive as a whole: about as many as can be read while they stay hidden."""

_LOOKS = 5
"""Dead letters may still be arriving while the rows of the others are opened."""

_POLL_SECONDS = 1.0

_POLLS_FOR_A_START = 30


class NotReplayable(Exception):
    """This cannot be replayed; the message says why, and what to do."""


@dataclass(frozen=True, kw_only=True)
class ReplayDeadLettersPorts(CasePorts, EnqueuePorts):
    """What a replay needs besides the ports of reading dead letters and sending messages."""

    audit: Trail


@dataclass(frozen=True, kw_only=True)
class QueuePorts(ReplayDeadLettersPorts):
    """What replaying a whole queue needs in addition."""

    redrives: Redrives
    pause: Callable[[float], None]


@dataclass(kw_only=True)
class Counts:
    """Progress so far: `replayed` opened a row, `finished` completed what an interrupted replay had begun; anything
    else is the verdict of a case that was left alone. `on_change` is called for each."""

    counts: Counter[str] = field(default_factory=Counter)
    on_change: Callable[[], None] = lambda: None

    def add(self, outcome: str) -> None:
        """Counts one more."""
        self.counts[outcome] += 1
        self.on_change()


def replay_dead_letters(
    ports: ReplayDeadLettersPorts,
    queue: str,
    selection: DeadLetterSelection,
    *,
    pace: RateLimiter,
    stop: Callable[[], bool],
    counts: Counts,
) -> bool:
    """Replays the queue's selected cases with the verdict `failed`; returns whether the whole queue was seen.

    A dead letter whose run its row has left is removed too: the replay that opened the row died before it could. Raises
    Retryable if AWS cannot answer: what was done stays done, and a repetition continues from there.
    """
    with ports.audit.action("replay", is_certain=False, queue=queue, **selection.words) as audited:
        is_whole = _replay(ports, queue, selection, audited, pace=pace, stop=stop, counts=counts)
        if stop():
            audited.interrupt()
    return is_whole


def _replay(
    ports: ReplayDeadLettersPorts,
    queue: str,
    selection: DeadLetterSelection,
    audited: AuditedAction,
    *,
    pace: RateLimiter,
    stop: Callable[[], bool],
    counts: Counts,
) -> bool:
    opened: set[str] = set()

    def wants(case: Case) -> bool:
        if not selection.covers(case, ports.clock()):
            return False
        if is_replayable(case) or is_left_over(case):
            # An image that failed again in the meantime waits for the operator's next decision.
            return case.message is not None and case.message.image_id not in opened
        counts.add(case.verdict.value)
        return False

    def act(case: Case) -> bool:
        image, message = case.image, case.message
        if image is None or message is None:  # such a case is not wanted
            return False
        audited.begin(image.image_id)  # guard: audit-replay-announced
        pace.spend()
        opened.add(image.image_id)
        if message.run >= image.run:
            now = ports.clock()
            image, is_ours = _reopen(ports, image, now=now, message_at=now)
            if image is None or not (is_ours or verdict_of(message, image) is Verdict.SETTLED):
                counts.add("changed")
                return False
            outcome = "replayed" if is_ours else "finished"
        else:
            outcome = "finished"
        counts.add(outcome)
        send_first_message(ports, image)
        audited.add(image.image_id, outcome)
        return True

    return work_through(ports, queue, act, wants=wants, before_each=pace.wait, stop=stop)


def is_replayable(case: Case) -> bool:
    """Whether a replay opens the case's row."""
    return case.verdict is Verdict.FAILED


def is_left_over(case: Case) -> bool:
    """Whether its row has left the run that the dead letters describe: a replay that died has left them behind."""
    return (
        case.verdict is Verdict.SETTLED
        and case.image is not None
        and case.message is not None
        and case.message.run < case.image.run
    )


def replay_image(ports: ReplayDeadLettersPorts, image_id: str) -> Image:
    """Replays a failed image by its row, whether or not it has a dead letter; returns the row afterwards.

    Raises NotReplayable, and Retryable if the table cannot answer.
    """
    image = ports.images.get(image_id)
    reason = why_not_replayable(image)
    if image is None or reason is not None:
        raise NotReplayable(reason)
    with ports.audit.action("replay", image_id):
        now = ports.clock()
        after, _ = _reopen(ports, image, now=now, message_at=now)
        if after is None or after.run == image.run:
            raise NotReplayable(why_not_replayable(after) or "It kept changing under the attempts to replay it.")
        send_first_message(ports, after)
    return after


def _reopen(
    ports: ReplayDeadLettersPorts, image: Image, *, now: Milliseconds, message_at: Milliseconds
) -> tuple[Image | None, bool]:
    return reopen_run(
        ports,
        image,
        why_not=why_not_replayable,
        opened=lambda row: reopened(row, now=now, message_at=message_at),
    )


def replay_queue(
    ports: QueuePorts,
    queue: str,
    *,
    per_second: int,
    stop: Callable[[], bool],
    counts: Counts,
    on_redrive: Callable[[Redrive], None] = lambda redrive: None,
) -> Redrive | None:
    """Replays a whole queue: opens the row of every image with the verdict `failed`, then has SQS move all dead letters
    back.

    A moved dead letter describes the previous run, but wakes a worker for the new one as well as its own message would.
    Returns the redrive when it has ended, cancelled if `stop` asked for the end, or None if it was not begun. Raises
    NotReplayable if dead letters must not be moved or the redrive failed, and Retryable if AWS cannot answer.
    """
    with ports.audit.action("replay_all", queue=queue) as audited:
        redrive = _replay_queue(
            ports, queue, audited, per_second=per_second, stop=stop, counts=counts, on_redrive=on_redrive
        )
        if redrive is None or redrive.status is RedriveStatus.CANCELLED:
            audited.interrupt()
    return redrive


def _replay_queue(
    ports: QueuePorts,
    queue: str,
    audited: AuditedAction,
    *,
    per_second: int,
    stop: Callable[[], bool],
    counts: Counts,
    on_redrive: Callable[[Redrive], None],
) -> Redrive | None:
    if not _open_all(ports, queue, audited, per_second=per_second, stop=stop, counts=counts):
        return None
    running = ports.redrives.latest(queue)
    if running is not None and not running.status.is_over:
        # An earlier command started it and died; its dead letters may have been moved before these rows were opened.
        running = _followed(ports, running, stop=stop, on_redrive=on_redrive)
        if running.status is RedriveStatus.CANCELLED or ports.dead_letters.depth(queue) == 0:
            return running
    before = None if running is None else running.started_at
    ports.redrives.start(queue, per_second)
    for _ in range(_POLLS_FOR_A_START):
        started = ports.redrives.latest(queue)
        if started is not None and started.started_at != before:
            return _followed(ports, started, stop=stop, on_redrive=on_redrive)
        ports.pause(_POLL_SECONDS)
    raise Retryable("SQS does not describe the move that it has started")


def _open_all(
    ports: ReplayDeadLettersPorts,
    queue: str,
    audited: AuditedAction,
    *,
    per_second: int,
    stop: Callable[[], bool],
    counts: Counts,
) -> bool:
    """Opens every failed row that a dead letter in the queue describes, until a look finds no more; False if stopped.

    Each row expects its message when the redrive will have reached it, so that the sweeper does not overtake the
    redrive.
    """
    opened: set[str] = set()
    for _ in range(_LOOKS):
        listing = list_dead_letters(ports, (queue,), limit=REDRIVE_LIMIT)
        refuse_what_cannot_be_moved(queue, listing.cases, complete=not listing.incomplete)
        failed = [case for case in listing.cases if is_replayable(case) and _image_id(case) not in opened]
        if not failed:
            for case in listing.cases:
                if _image_id(case) not in opened:
                    counts.add(case.verdict.value)
            return True
        for case in failed:
            if stop():
                return False
            if case.image is None or case.message is None:  # such a case is not `failed`
                continue
            now = ports.clock()
            message_at = now + round(1000 * len(opened) / per_second)
            _, is_ours = _reopen(ports, case.image, now=now, message_at=message_at)
            opened.add(case.image.image_id)
            if is_ours:
                counts.add("replayed")
                audited.add(case.image.image_id, "replayed")
    raise Retryable("dead letters keep arriving faster than their rows can be opened")


def _image_id(case: Case) -> str | None:
    return None if case.message is None else case.message.image_id


def refuse_what_cannot_be_moved(queue: str, cases: tuple[Case, ...], *, complete: bool) -> None:
    """Raises NotReplayable if a redrive of the whole queue would do harm."""
    if not complete:
        raise NotReplayable(
            f"More than {REDRIVE_LIMIT:,} dead letters are in {queue}: too many to open all rows before they move. "
            "Leave --all out: one by one, any number can be replayed."
        )
    unreadable = sum(case.verdict is Verdict.UNREADABLE for case in cases)
    unknown = sum(case.verdict is Verdict.UNKNOWN for case in cases)
    rows = sum(case.verdict is Verdict.UNREADABLE_ROW for case in cases)
    if rows:  # guard: unreadable-blocks-whole-redrive
        raise NotReplayable(
            f"{queue} holds {rows} dead letters of images whose rows a newer version wrote: they would vanish before "
            "anybody can read those rows. Deploy that version again, or leave --all out."
        )
    unsigned = sum(
        case.message is not None and not all(dead_letter.is_signed for dead_letter in case.dead_letters)
        for case in cases
    )
    rejected = sum(case.verdict is Verdict.REJECTED for case in cases)
    if rejected:  # guard: signatures-rejected-unmoved
        raise NotReplayable(
            f"{queue} holds {rejected} rejected messages, which this stack has not sent: each would be rejected again. "
            "Drop those first (darkroom dlq drop --verdict rejected --force), or leave --all out."
        )
    if unsigned and queue != UPLOAD:  # guard: signatures-unsigned-unmoved
        raise NotReplayable(
            f"{queue} holds dead letters of {unsigned} images without a signature, from a version before signatures: "
            "each would be rejected. Leave --all out: one by one, each gets a new, signed message."
        )
    if unreadable or unknown:
        raise NotReplayable(
            f"{queue} holds {unreadable} unreadable dead letters, which would come back after five more receives, and "
            f"{unknown} of images that do not exist, which would vanish without a trace. A redrive takes them all: "
            "drop those first, or leave --all out."
        )


def _followed(
    ports: QueuePorts, redrive: Redrive, *, stop: Callable[[], bool], on_redrive: Callable[[Redrive], None]
) -> Redrive:
    cancelled = False
    while True:
        on_redrive(redrive)
        if redrive.status is RedriveStatus.FAILED:
            raise NotReplayable(
                f"SQS stopped moving the dead letters of {redrive.queue}: {redrive.failure or 'it gives no reason'}."
            )
        if redrive.status.is_over:
            return redrive
        if stop() and not cancelled and redrive.handle is not None:
            ports.redrives.cancel(redrive)
            cancelled = True
        ports.pause(_POLL_SECONDS)
        redrive = ports.redrives.latest(redrive.queue) or redrive
