"""The life of an image as steps in time, from its row, from log lines and from deliveries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from darkroom.domain.images.image import Attempt, Cause, Image, Status
from darkroom.domain.images.timeline import AttemptTimeline
from darkroom.domain.images.transitions import delete, put_back
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.instants import rfc3339
from darkroom.domain.webhooks.delivery import Answer, Delivery, claim, delivery_id_of, new_delivery, record
from darkroom.ports.kernel import UnreadableRow
from darkroom_cli.operator.domain.trace import SOON_MILLISECONDS, LogLine, Step, Trace, trace_of
from darkroom_cli.operator.operations.observation.trace_image import (
    AFTERWARDS_MILLISECONDS,
    MARGIN_MILLISECONDS,
    TraceImagePorts,
    trace_image,
)
from tests.support.fakes import FakeImages
from tests.support.fakes.logs import FakeLogLines
from tests.support.fakes.webhooks import FakeDeliveries, FakeEndpoints
from tests.support.faults import raising
from tests.support.images import NOW, pending, processing
from tests.support.traces import DONE, LATER, PUBLISHED, REQUEST, accepted, done, line, run_line
from tests.support.webhooks import endpoint

CAUSE = Cause(error_type="KeyError", message="'a bug'", stack="Traceback")


def steps(image: Image, lines: Sequence[LogLine] = (), deliveries: Sequence[Delivery] = (), *, now: int = LATER) -> Any:
    return trace_of(image, lines, deliveries, now=now).steps


def of_kind(shown: Sequence[Step], kind: str) -> list[Step]:
    return [step for step in shown if step.kind == kind]


def titles_of(shown: Sequence[Step], kind: str) -> list[tuple[str, str]]:
    return [(step.title, step.detail) for step in of_kind(shown, kind)]


# ── What lines and the row say ───────────────────────────────────────────────────────────────────────────────────────


def test_a_life_without_trouble_is_a_request_a_wait_and_an_attempt_with_its_phases() -> None:
    shown = steps(done(), [DONE, REQUEST, PUBLISHED])
    assert [step.kind for step in shown[:4]] == ["request", "wait", "event", "attempt"]
    (request,), (wait,), (attempt,) = (of_kind(shown, kind) for kind in ("request", "wait", "attempt"))
    assert (request.title, request.at, request.until) == ("POST /images", NOW - 5, NOW + 40)
    assert (wait.title, wait.at, wait.until) == ("slow lane", NOW, NOW + 90)
    assert wait.detail == "received after 50 ms"
    assert (attempt.title, attempt.detail, attempt.at, attempt.until) == ("attempt 1", "done", NOW + 90, NOW + 420)
    assert [(phase.name, phase.until - NOW) for phase in attempt.phases] == [
        ("decode", 200),
        ("develop", 400),
        ("store", 410),
        ("finish", 420),
    ]


def test_each_retry_is_drawn_with_what_it_waited_for() -> None:
    lines = [
        run_line(1, "put_back", cause="KeyError", claimed=90, decoded=200, finished=210),
        run_line(2, claimed=21_000, decoded=21_100, developed=21_200, stored=21_300, finished=21_400),
    ]
    shown = steps(done(), lines)
    assert titles_of(shown, "attempt") == [("attempt 1", "failed: KeyError"), ("attempt 2", "done")]
    assert titles_of(shown, "wait") == [("slow lane", ""), ("waits to try again", "KeyError")]
    again = of_kind(shown, "wait")[1]
    assert (again.at, again.until) == (NOW + 210, NOW + 21_000)
    assert of_kind(shown, "attempt")[0].level == "warning"


def test_the_row_tells_the_attempts_of_which_there_are_no_lines() -> None:
    failed = put_back(processing(accepted_at=NOW), now=NOW + 300, delay_seconds=20, cause=CAUSE, message_returns=True)
    shown = steps(failed, now=NOW + 1000)
    assert titles_of(shown, "attempt") == [("attempt 1", "failed: KeyError: 'a bug'")]
    (_, again) = of_kind(shown, "wait")
    assert (again.title, again.at, again.until) == ("waits to try again", NOW + 300, None)
    assert again.detail == f"next at {rfc3339(failed.not_before)[11:19]}Z"  # type: ignore[index]


def test_a_tombstone_has_forgotten_its_attempts_and_its_request_but_the_lines_have_not() -> None:
    deleted = delete(done(), now=NOW + 9000)
    why = line("attempt failed", 211, "transcode_image", run=1, attempt=1, exception="Traceback\nKeyError: 'a bug'")
    lines = [REQUEST, why, run_line(1, "put_back", claimed=90, finished=210), line("timing", 9000, "delete_image")]
    trace = trace_of(deleted, lines, [], now=LATER)
    assert trace.requests == ("c",)
    assert titles_of(trace.steps, "attempt") == [("attempt 1", "failed: KeyError: 'a bug'")]
    assert titles_of(trace.steps, "end") == [("deleted", "")]
    assert [step.title for step in of_kind(trace.steps, "request")] == ["POST /images", "DELETE /images/{id}"]


def test_a_withdrawn_image_ends_once() -> None:
    shown = steps(delete(accepted(), now=NOW + 9000))
    assert titles_of(shown, "end") == [("deleted", "")]


@pytest.mark.guards("trace-lost-worker-lease-lapsed")
def test_a_lost_worker_is_told_apart_from_one_that_is_at_work() -> None:
    at_work = steps(processing(accepted_at=NOW), now=NOW + 10)
    assert [(step.detail, step.until) for step in of_kind(at_work, "attempt")] == [("at work", None)]
    lost = Attempt(run=1, number=1, request_id="r", started_at=NOW + 5)
    second = Attempt(run=1, number=2, request_id="s", started_at=NOW + 400_000)
    shown = steps(processing(accepted_at=NOW, attempt=2, attempts=(lost, second), lease_until=LATER + 1))
    assert titles_of(shown, "attempt") == [("attempt 1", "its worker was lost"), ("attempt 2", "at work")]
    assert titles_of(shown, "wait") == [("slow lane", ""), ("waits to try again", "its worker was lost")]
    assert of_kind(shown, "attempt")[0].level == "error"


def test_a_scheduled_image_waits_for_its_time_then_in_its_lane() -> None:
    at = NOW + 1_800_000
    waiting = steps(accepted(status=Status.SCHEDULED, process_at=at), now=NOW + 5000)
    assert [(step.title, step.until) for step in of_kind(waiting, "wait")] == [("waits for its time", None)]
    begun = run_line(enqueued=1_500_000, claimed=1_800_050, finished=1_801_000)
    waits = of_kind(steps(done(process_at=at, completed_at=NOW + 1_801_000), [begun]), "wait")
    assert [(step.title, step.at - NOW, step.until) for step in waits] == [
        ("waits for its time", 0, at),
        ("slow lane", 1_800_000, NOW + 1_800_050),
    ]


def test_a_message_that_came_late_is_a_warning() -> None:
    late = SOON_MILLISECONDS + 1
    shown = steps(done(), [run_line(enqueued=late, received=late + 1, claimed=late + 2, finished=late + 9)])
    waits = of_kind(shown, "wait")
    assert [(step.title, step.level) for step in waits] == [
        ("no message in its lane", "warning"),
        ("slow lane", "info"),
    ]
    assert waits[0].until == waits[1].at == NOW + late


def test_each_run_is_told_with_its_attempts() -> None:
    lines = [DONE, run_line(1, "done", run=2, enqueued=900_000, claimed=900_100, finished=900_200)]
    shown = steps(done(run=2), lines)
    assert [title for title, _ in titles_of(shown, "attempt")] == ["attempt 1", "run 2, attempt 1"]
    assert [(step.at - NOW, step.until) for step in of_kind(shown, "wait")][1] == (900_000, NOW + 900_100)


def test_an_announced_image_waits_for_its_upload() -> None:
    awaited = pending(status=Status.AWAITING_UPLOAD, accepted_at=None, accepted_version=None)
    assert [(step.title, step.until) for step in steps(awaited)] == [("waits for its upload", None)]
    arrived = pending(accepted_at=NOW + 8000, accepted_version=2)
    uploaded, waiting = of_kind(steps(arrived), "wait")
    assert (uploaded.title, uploaded.at, uploaded.until) == ("waits for its upload", NOW, NOW + 8000)
    assert (waiting.title, waiting.until) == ("slow lane", None)


def test_an_event_of_which_no_line_tells_is_a_warning_once_it_should_have_been_published() -> None:
    lines = [REQUEST, PUBLISHED]
    titles = titles_of(steps(done(), lines, now=NOW + 700), "event")
    assert titles == [("image.accepted", "published"), ("image.done", "not published yet")]
    late = of_kind(steps(done(), lines), "event")
    assert [step.level for step in late] == ["info", "warning"]
    assert of_kind(steps(done(), []), "event")[1].level == "info", "without any lines nobody knows"


def test_an_event_that_was_published_twice_is_told_twice() -> None:
    again = replace(PUBLISHED, at=NOW + 5000)
    assert titles_of(steps(accepted(), [PUBLISHED, again]), "event") == [
        ("image.accepted", "published"),
        ("image.accepted", "published again"),
    ]


def test_other_warnings_about_it_are_notes() -> None:
    warning = line("message not sent", 50, "submit_image", level="WARNING", cause="the queue does not answer")
    (note,) = of_kind(steps(done(), [warning, REQUEST]), "note")
    assert (note.title, note.detail) == ("submit_image", "message not sent: the queue does not answer")
    failed = line("attempt failed", 211, "transcode_image", level="ERROR", run=1, attempt=1, exception="KeyError")
    lines = [run_line(1, "put_back", claimed=90, finished=210), failed]
    assert of_kind(steps(done(), lines), "note") == [], "the attempt says it"


# ── Deliveries ───────────────────────────────────────────────────────────────────────────────────────────────────────


def delivery(*answers: Answer) -> Delivery:
    row = new_delivery(
        endpoint_id=endpoint().endpoint_id,
        tenant_id="default",
        event_id=f"{'0' * 26}-3",
        event_type="image.done",
        time=NOW + 500,
        body='{"data":{"bytes":7}}',
        now=NOW + 600,
    )
    for number, answer in enumerate(answers):
        begun = claim(row, claimed_by="w", now=NOW + 1000 + 400_000 * number)
        assert isinstance(begun, Delivery)
        row = record(begun, answer, unit_random=0.5, now=NOW + 1100 + 400_000 * number)
    return row


def test_each_attempt_of_a_delivery_is_told_and_what_is_to_come() -> None:
    refused, taken = Answer(milliseconds=20, status=500), Answer(milliseconds=30, status=204)
    shown = steps(done(), [], [delivery(refused)])
    to = f"image.done to {endpoint().endpoint_id}"
    assert [(step.title, step.level) for step in of_kind(shown, "delivery")] == [(to, "warning"), (to, "info")]
    refusal, waiting = of_kind(shown, "delivery")
    assert (refusal.detail, waiting.until) == ("500", None)
    shown = steps(done(), [], [delivery(refused, taken)])
    assert [(step.at - NOW, step.detail) for step in of_kind(shown, "delivery")] == [
        (1000, "500"),
        (401_000, "204, attempt 2"),
    ]


@pytest.mark.guards("trace-delivery-told-once")
def test_lines_tell_of_deliveries_to_an_endpoint_that_is_gone_and_of_no_delivery_twice() -> None:
    row = delivery(Answer(milliseconds=20, status=204))
    of = {"event_id": row.event_id, "ms": 20, "outcome": "delivered", "status": 204}
    lines = [
        line("delivery", 1020, "deliver_event", webhook_id=row.endpoint_id, **of),
        line("delivery", 1020, "deliver_event", webhook_id="we_gone", **of),
    ]
    assert titles_of(steps(done(), lines, [row]), "delivery") == [
        (f"image.done to {row.endpoint_id}", "204"),
        ("image.done to we_gone", "204"),
    ]


# ── The operation ────────────────────────────────────────────────────────────────────────────────────────────────────


def world(image: Image | None, *lines: LogLine) -> TraceImagePorts:
    ports = TraceImagePorts(
        images=FakeImages(),
        endpoints=FakeEndpoints(),
        deliveries=FakeDeliveries(),
        log_lines=FakeLogLines(lines=list(lines), sources=("api", "submit_image", "transcode_image", "read_image")),
        clock=lambda: LATER,
    )
    if image is not None:
        ports.images.create(image)
    return ports


def found_by(ports: TraceImagePorts) -> Trace:
    return trace_image(ports, "0" * 26)


@pytest.mark.guards("trace-line-matched-by-fields")
def test_lines_about_other_images_and_other_requests_are_left_out() -> None:
    other = line("run", 1, "transcode_image", image_id="1" * 26, correlation_id="other", batch=f"with {'0' * 26}")
    gateway = LogLine(at=NOW, source="api", fields={"correlation_id": "c", "status": "202"})
    of_other = LogLine(at=NOW, source="api", fields={"correlation_id": "d", "status": "202", "agent": "c"})
    trace = found_by(world(done(), DONE, REQUEST, other, gateway, of_other))
    assert trace.lines == 3
    assert titles_of(trace.steps, "request") == [("POST /images", "202")]


def test_a_request_whose_function_logged_no_time_has_the_gateways() -> None:
    said = {"correlation_id": "c", "status": "202", "route": "POST /images", "latency_ms": "52"}
    about = line("accepted", 38, "submit_image")
    trace = found_by(world(done(), about, LogLine(at=NOW + 40, source="api", fields=said)))
    (request,) = of_kind(trace.steps, "request")
    assert (request.title, request.detail, request.at - NOW, request.until) == ("POST /images", "202", -12, NOW + 40)
    other = LogLine(at=NOW, source="api", fields=said | {"route": "GET /images/{image_id}"})
    assert not found_by(world(done(), about, other)).count("request"), "one who only asks for it"


def test_lines_are_sought_from_its_creation_until_some_minutes_after_its_end() -> None:
    edges = (
        -MARGIN_MILLISECONDS - 1,
        -MARGIN_MILLISECONDS,
        500 + AFTERWARDS_MILLISECONDS,
        501 + AFTERWARDS_MILLISECONDS,
    )
    noted = [line("noted", at, "transcode_image", level="WARNING") for at in edges]
    trace = found_by(world(done(), *noted))
    assert [step.at - NOW for step in of_kind(trace.steps, "note")] == [*edges[1:3]]
    assert found_by(world(accepted(), *noted)).lines == 3, "an unfinished one, until now"


@pytest.mark.guards("trace-reader-logs-excluded")
def test_the_lines_of_those_who_only_ask_for_it_are_not_even_read() -> None:
    ports = world(done(), line("timing", 700, "read_image", milliseconds=5))
    assert found_by(ports).lines == 0
    assert "read_image" not in ports.log_lines.searched  # type: ignore[attr-defined]


def test_its_deliveries_are_found_by_the_events_that_its_row_tells() -> None:
    ports = world(done())
    ports.endpoints.create(endpoint(tenant_id="default"))
    made = delivery(Answer(milliseconds=20, status=204))
    assert made.delivery_id == delivery_id_of(made.event_id, NOW + 500)
    ports.deliveries.create(made)
    assert found_by(ports).count("delivery") == 1


@pytest.mark.guards("trace-open-delivery-until-now")
def test_while_a_delivery_waits_lines_are_sought_until_now() -> None:
    late = line("delivery failed", 2 * AFTERWARDS_MILLISECONDS, "transcode_image", level="WARNING")
    assert found_by(world(done(), late)).lines == 0
    ports = world(done(), late)
    ports.endpoints.create(endpoint(tenant_id="default"))
    ports.deliveries.create(delivery(Answer(milliseconds=20, status=500)))
    assert found_by(ports).lines == 1


def test_an_unreadable_delivery_does_not_hide_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    ports = world(done(), REQUEST)
    ports.endpoints.create(endpoint(tenant_id="default"))
    monkeypatch.setattr(ports.deliveries, "get", raising(UnreadableRow("delivery", "invented later")))
    assert found_by(ports).count("request") == 1


def test_an_outage_is_no_empty_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    ports = world(done())
    monkeypatch.setattr(ports.log_lines, "containing", raising(Retryable("the logs do not answer")))
    with pytest.raises(Retryable):
        found_by(ports)


# ── Marks ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_marks_count_from_when_the_image_was_accepted() -> None:
    marks = AttemptTimeline(instants={"enqueued": NOW - 3, "received": NOW + 20})
    assert marks.attempt == 0
    marks.begin(processing(accepted_at=NOW, run=2), NOW + 30)
    marks.reach("finished", NOW + 90)
    assert (marks.run, marks.attempt) == (2, 1)
    assert marks.since_accepted() == {"accepted": 0, "enqueued": -3, "received": 20, "claimed": 30, "finished": 90}
    of_an_earlier_version = AttemptTimeline()
    of_an_earlier_version.begin(processing(accepted_at=None), NOW + 30)
    assert of_an_earlier_version.since_accepted()["claimed"] == 30
