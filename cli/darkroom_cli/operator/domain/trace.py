"""The life of one image as steps in time: what its row, the functions' log lines and its deliveries say of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from darkroom.domain.images.image import Attempt, Image, Status
from darkroom.domain.images.timeline import MARKS
from darkroom.domain.kernel.instants import Milliseconds, from_rfc3339, timestamp
from darkroom.domain.webhooks.delivery import Delivery, DeliveryStatus
from darkroom.domain.webhooks.row_events import events_of

type StepKind = Literal["request", "wait", "attempt", "end", "event", "delivery", "note"]
type Level = Literal["info", "warning", "error"]

ROUTES = {
    "submit_image": "POST /images",
    "begin_upload": "POST /uploads",
    "reschedule_image": "PATCH /images/{id}",
    "delete_image": "DELETE /images/{id}",
}
"""The functions that answer requests about one image, but for those that only read it."""

API = "api"
"""The source of the gateway's own lines, one for each request."""

PHASES = {"decoded": "decode", "developed": "develop", "stored": "store", "finished": "finish"}
"""What a worker does until it reaches a mark."""

_OUTCOMES: Mapping[str, tuple[str, Level]] = {
    "done": ("done", "info"),
    "failed": ("refused for good", "error"),
    "gave_up": ("given up", "error"),
    "put_back": ("failed", "warning"),
    "postponed": ("postponed", "warning"),
    "crashed": ("failed", "error"),
    "fenced": ("lost to another", "warning"),
}
"""The outcomes of attempts, in words."""

_LOST = "its worker was lost"

_TOLD_BY_ATTEMPTS = frozenset({"attempt failed", "image given up", "delivery postponed", "run"})
"""Messages of lines that repeat what an attempt's step says."""


@dataclass(frozen=True, kw_only=True)
class LogLine:
    """One line of a log: when it was written, by which function (or `API`), and its fields."""

    at: Milliseconds
    source: str
    fields: Mapping[str, Any]

    @property
    def message(self) -> str:
        """Its message; the gateway's lines have none."""
        return str(self.fields.get("message", ""))

    def text(self, name: str) -> str:
        """A field as text; empty if it has none."""
        value = self.fields.get(name)
        return "" if value is None else str(value)


@dataclass(frozen=True, kw_only=True)
class Phase:
    """A part of an attempt: what the worker did, and until when."""

    name: str
    until: Milliseconds


@dataclass(frozen=True, kw_only=True)
class Step:
    """One thing in the life of an image, from `at` until `until`: a moment, if both are equal; not over yet, if `until`
    is None. An attempt may have `phases`."""

    kind: StepKind
    at: Milliseconds
    until: Milliseconds | None
    title: str
    detail: str = ""
    level: Level = "info"
    phases: tuple[Phase, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Trace:
    """The life of an image: `began` is when it was accepted with its bytes, or announced; `lines` is how many log lines
    belong to it, and `requests` the ids of the requests about it, the one that it came with first."""

    image: Image
    began: Milliseconds
    requests: tuple[str, ...]
    steps: tuple[Step, ...]
    lines: int

    def count(self, kind: StepKind) -> int:
        """How many steps are of this kind."""
        return sum(step.kind == kind for step in self.steps)


def requests_in(image: Image, lines: Iterable[LogLine]) -> tuple[str, ...]:
    """The ids of the requests about an image: the one that it came with first, which its row knows unless it is a
    tombstone, then those that its lines know."""
    request_ids = [image.correlation_id] if image.correlation_id else []
    ordered = sorted(lines, key=lambda line: (line.message != "run", line.at))
    request_ids += [line.text("correlation_id") for line in ordered if line.message == "run" or line.source in ROUTES]
    return tuple(dict.fromkeys(filter(None, request_ids)))


def trace_of(image: Image, lines: Sequence[LogLine], deliveries: Sequence[Delivery], *, now: Milliseconds) -> Trace:
    """Puts together what is known of the image."""
    began = image.accepted_at or image.created_at
    attempts = list(_attempts(image, lines, now))
    steps = [
        *_requests(lines),
        *_waits(image, attempts),
        *(attempt.step for attempt in attempts),
        *_ends(image),
        *_events(image, lines, now),
        *_deliveries(image, deliveries, lines),
        *_notes(lines, has_attempts=bool(attempts)),
    ]
    order = ("request", "wait", "attempt", "end", "event", "delivery", "note")
    return Trace(
        image=image,
        began=began,
        requests=requests_in(image, lines),
        steps=tuple(sorted(steps, key=lambda step: (step.at, order.index(step.kind)))),
        lines=len(lines),
    )


def _requests(lines: Sequence[LogLine]) -> Iterator[Step]:
    """The requests, by their function's own time; by the gateway's where that was not logged."""
    answers = {line.text("correlation_id"): line for line in lines if line.source == API}
    timed = [line for line in lines if line.source in ROUTES and line.message == "timing"]
    for line in timed:
        answer = answers.get(line.text("correlation_id"))
        yield _request(
            line, line.text("milliseconds"), ROUTES[line.source], "" if answer is None else answer.text("status")
        )
    for correlation_id in answers.keys() - {line.text("correlation_id") for line in timed}:
        answer = answers[correlation_id]
        route = re.sub(r"\{\w+\}", "{id}", answer.text("route"))
        if route in ROUTES.values():
            yield _request(answer, answer.text("latency_ms"), route, answer.text("status"))


def _request(line: LogLine, milliseconds: str, title: str, status: str) -> Step:
    return Step(
        kind="request",
        at=line.at - round(float(milliseconds or 0)),
        until=line.at,
        title=title,
        detail=status,
        level="error" if status.startswith("5") else "warning" if status.startswith("4") else "info",
    )


@dataclass(frozen=True, kw_only=True)
class _Attempted:
    """An attempt's step, when its worker received the message, and when that was sent, if a line says so."""

    run: int
    number: int
    step: Step
    received: Milliseconds
    enqueued: Milliseconds | None = None
    cause: str = ""

    @property
    def sent(self) -> Milliseconds:
        """When its message was sent, as far as is known."""
        return self.received if self.enqueued is None else self.enqueued

    @property
    def ended(self) -> Milliseconds:
        """When it had ended, as far as is known."""
        return self.step.at if self.step.until is None else self.step.until


def _attempts(image: Image, lines: Sequence[LogLine], now: Milliseconds) -> Iterator[_Attempted]:
    described = {(attempt.run, attempt.number): attempt for attempt in image.attempts}
    run_line_by_key = {
        (int(line.fields["run"]), int(line.fields["attempt"])): line
        for line in lines
        if line.message == "run" and {"run", "attempt", "milliseconds", "accepted_at"} <= line.fields.keys()
    }
    causes = _causes_in(lines)
    for key in sorted(described.keys() | run_line_by_key.keys()):
        attempt = described.get(key)
        cause = causes.get(key, "")
        if attempt is not None and attempt.cause is not None:
            cause = f"{attempt.cause.error_type}: {attempt.cause.message}"
        line = run_line_by_key.get(key)
        if line is not None:
            yield _told_attempt(*key, line, cause)
        elif attempt is not None:
            yield _described_attempt(image, attempt, cause, now)


def _causes_in(lines: Sequence[LogLine]) -> Mapping[tuple[int, int], str]:
    """What went wrong, from the lines of failed attempts, for a tombstone whose row has forgotten it."""
    return {
        (int(line.fields["run"]), int(line.fields["attempt"])): line.text("exception").strip().rpartition("\n")[2]
        for line in lines
        if line.message == "attempt failed" and {"run", "attempt"} <= line.fields.keys()
    }


def _told_attempt(run: int, number: int, line: LogLine, cause: str) -> _Attempted:
    accepted = from_rfc3339(line.text("accepted_at"))
    marks = {mark: accepted + since for mark in MARKS if (since := line.fields["milliseconds"].get(mark)) is not None}
    until = max(marks.get("finished", line.at), marks["claimed"])
    words, level = _OUTCOMES.get(line.text("outcome"), (line.text("outcome"), "info"))
    return _Attempted(
        run=run,
        number=number,
        received=marks.get("received", marks["claimed"]),
        enqueued=marks.get("enqueued"),
        cause=cause or line.text("cause"),
        step=Step(
            kind="attempt",
            at=marks["claimed"],
            until=until,
            title=_title(run, number),
            detail=": ".join(filter(None, (words, cause or line.text("cause")))),
            level=level,
            phases=tuple(Phase(name=name, until=marks[mark]) for mark, name in PHASES.items() if mark in marks),
        ),
    )


def _described_attempt(image: Image, attempt: Attempt, cause: str, now: Milliseconds) -> _Attempted:
    is_current = (image.run, image.attempt, image.status) == (attempt.run, attempt.number, Status.PROCESSING)
    level: Level = "info"
    until = attempt.ended_at
    if until is not None:
        words = f"failed: {cause}" if cause else "ended"
        level = "warning" if cause else "info"
    elif is_current and (image.lease_until or 0) >= now:  # guard: trace-lost-worker-lease-lapsed
        words = "at work"
    elif (image.run, image.attempt) == (attempt.run, attempt.number) and image.status.is_terminal:
        until, words = image.ended_at, "failed" if image.failed_work is not None else image.status.value
    else:
        until, words, level = attempt.started_at, _LOST, "error"
    return _Attempted(
        run=attempt.run,
        number=attempt.number,
        received=attempt.started_at,
        cause=_LOST if words == _LOST else cause,
        step=Step(
            kind="attempt",
            at=attempt.started_at,
            until=until,
            title=_title(attempt.run, attempt.number),
            detail=words,
            level=level,
        ),
    )


def _to_the_second(instant: Milliseconds) -> str:
    return timestamp(instant // 1000 * 1000)


def _title(run: int, number: int) -> str:
    return f"attempt {number}" if run == 1 else f"run {run}, attempt {number}"


def _waits(image: Image, attempts: Sequence[_Attempted]) -> Iterator[Step]:
    """What the image waited for: its upload, its time, its lane, and after each failed attempt the next one."""
    began = image.accepted_at or image.created_at
    is_fetched = image.status is Status.FETCHING or image.fetched is not None
    comes = "is fetched from its URL" if is_fetched else "waits for its upload"
    if image.status in (Status.AWAITING_UPLOAD, Status.FETCHING):
        yield _wait(image.created_at, None, comes)
        return
    if began - image.created_at > SOON_MILLISECONDS or image.accepted_version not in (None, 1):
        yield _wait(image.created_at, began, comes)
    ready = max(began, image.process_at or 0)
    if ready > began:
        until = min([ready, *filter(None, [image.completed_at]), *(attempt.step.at for attempt in attempts)])
        is_waiting = image.status is Status.SCHEDULED
        yield _wait(began, None if is_waiting else until, "waits for its time", f"until {_to_the_second(ready)}")
        if is_waiting or (until < ready and not attempts):
            return
    before: _Attempted | None = None
    for attempt in attempts:
        if before is not None and before.run == attempt.run:
            yield _wait(before.ended, attempt.step.at, "waits to try again", before.cause)
        else:
            yield from _waits_in_lane(image.lane, attempt, ready if before is None else attempt.sent)
        before = attempt
    if image.status is Status.PENDING:
        if before is not None and before.run == image.run:
            # The time of day alone: it is minutes away, and a narrow window would cut off what follows a date.
            since = "" if image.not_before is None else f"next at {_to_the_second(image.not_before)[11:]}"
            yield _wait(before.ended, None, "waits to try again", since or before.cause)
        else:
            yield _wait(image.waiting_since or ready, None, f"{image.lane} lane")


def _waits_in_lane(lane: str, attempt: _Attempted, ready: Milliseconds) -> Iterator[Step]:
    """A run's way to its first attempt. A message that was sent much later than the image was ready is another one than
    the first, which was lost, or came late from where it was held."""
    if attempt.sent - ready > SOON_MILLISECONDS:
        yield _wait(ready, attempt.sent, "no message in its lane", level="warning")
        ready = attempt.sent
    took = "" if attempt.enqueued is None else f"received after {attempt.received - attempt.enqueued} ms"
    yield _wait(ready, attempt.step.at, f"{lane} lane", took)


def _wait(at: Milliseconds, until: Milliseconds | None, title: str, detail: str = "", *, level: Level = "info") -> Step:
    at = at if until is None else min(at, until)
    return Step(kind="wait", at=at, until=until, title=title, detail=detail, level=level)


def _ends(image: Image) -> Iterator[Step]:
    """How its runs ended, where an attempt does not say so."""
    if (
        image.completed_at is not None
        and image.status is not Status.DONE
        and not (image.is_deleted and image.completed_at == image.deleted_at)
    ):
        detail = "" if image.error is None else f"{image.error.code}: {image.error.message}"
        level: Level = "error" if image.status is Status.FAILED else "warning"
        at = image.completed_at
        yield Step(kind="end", at=at, until=at, title=image.status.value, detail=detail, level=level)
    for work in image.works:
        if work.failed and work.ended_at is not None:
            title = f"{work.kind.value} of run {work.run} failed"
            detail = "" if work.error is None else f"{work.error.code}: {work.error.message}"
            yield Step(kind="end", at=work.ended_at, until=work.ended_at, title=title, detail=detail, level="error")
    if image.deleted_at is not None:
        yield Step(kind="end", at=image.deleted_at, until=image.deleted_at, title="deleted", level="warning")


def _events(image: Image, lines: Sequence[LogLine], now: Milliseconds) -> Iterator[Step]:
    """Its events: each line that says that one was published, and those of which no line does."""
    published = [line for line in lines if line.message == "event published"]
    seen = set()
    for line in published:
        is_again = line.text("event_id") in seen
        seen.add(line.text("event_id"))
        detail = "published again" if is_again else "published"
        yield Step(kind="event", at=line.at, until=line.at, title=line.text("type"), detail=detail)
    for event in events_of(image):
        if event.event_id in seen:
            continue
        is_new = now - event.time < SOON_MILLISECONDS
        yield Step(
            kind="event",
            at=event.time,
            until=event.time,
            title=event.type.value,
            detail="not published yet" if is_new else "no line says that it was published",
            level="info" if is_new or not lines else "warning",
        )


SOON_MILLISECONDS = 60_000
"""How long an event may take to be published, and its line to be found, until that is strange."""


def _deliveries(image: Image, deliveries: Sequence[Delivery], lines: Sequence[LogLine]) -> Iterator[Step]:
    """Its deliveries to webhooks, attempt by attempt: from their rows, and where there is none any more, from lines."""
    for delivery in deliveries:
        for attempt in delivery.attempts:
            is_success = attempt.status is not None and 200 <= attempt.status < 300
            is_open = attempt.milliseconds is None and delivery.status is DeliveryStatus.SENDING
            what = (
                "under way"
                if is_open
                else attempt.error or ("no answer" if attempt.status is None else str(attempt.status))
            )
            yield Step(
                kind="delivery",
                at=attempt.started_at,
                until=None if is_open else attempt.started_at + (attempt.milliseconds or 0),
                title=f"{delivery.event_type} to {delivery.endpoint_id}",
                detail=what if attempt.number == 1 else f"{what}, attempt {attempt.number}",
                level="info" if is_success or is_open else "warning",
            )
        if delivery.status is DeliveryStatus.WAITING:
            last = delivery.attempts[-1] if delivery.attempts else None
            yield Step(
                kind="delivery",
                at=delivery.created_at if last is None else last.started_at + (last.milliseconds or 0),
                until=None,
                title=f"{delivery.event_type} to {delivery.endpoint_id}",
                detail="waits" if delivery.due_at is None else f"waits until {_to_the_second(delivery.due_at)}",
            )
    types = {event.event_id: event.type.value for event in events_of(image)}
    known = {(delivery.endpoint_id, delivery.event_id) for delivery in deliveries}
    for line in lines:
        of = (line.text("webhook_id"), line.text("event_id"))
        # guard: trace-delivery-told-once
        if line.message != "delivery" or of in known or line.fields.get("ms") is None:
            continue
        is_delivered = line.text("outcome") == "delivered"
        yield Step(
            kind="delivery",
            at=line.at - int(line.fields["ms"]),
            until=line.at,
            title=f"{types.get(of[1], 'event')} to {of[0]}",
            detail=line.text("error") or line.text("status"),
            level="info" if is_delivered else "warning",
        )


def _notes(lines: Sequence[LogLine], *, has_attempts: bool) -> Iterator[Step]:
    """What else was logged about it as a warning or an error."""
    for line in lines:
        level = line.text("level")
        if level not in ("WARNING", "ERROR", "CRITICAL") or (has_attempts and line.message in _TOLD_BY_ATTEMPTS):
            continue
        why = line.text("cause") or line.text("reason") or line.text("exception").strip().rpartition("\n")[2]
        yield Step(
            kind="note",
            at=line.at,
            until=line.at,
            title=line.source,
            detail=": ".join(filter(None, (line.message, why))),
            level="warning" if level == "WARNING" else "error",
        )
