"""The bounds of when a client may want its image."""

from datetime import UTC, datetime

import pytest

from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.schedules.schedule import MAX_DELAY_SECONDS, Appointment, Timetable, appoint
from darkroom.http.kernel.timetables import read_timetable

NOW = 1_795_251_600_000  # 2026-11-21T09:00:00Z
DAY = 24 * 3600 * 1000


def code_of(refusal: pytest.ExceptionInfo[Rejected]) -> str:
    return refusal.value.code


@pytest.mark.parametrize("text", ["P365D", "PT99999999999999999999S", "P" + "9" * 300 + "W"])
def test_a_delay_of_over_364_days_is_refused_with_the_bound(text: str) -> None:
    with pytest.raises(Rejected, match="at most P364D") as refusal:
        appoint(read_timetable(delay=text), now=NOW)
    assert code_of(refusal) == "invalid_delay"


def test_nothing_said_is_at_once_and_a_delay_counts_from_when_it_is_accepted() -> None:
    assert appoint(read_timetable(), now=NOW) == Appointment(process_at=None, expires_at=None)
    assert appoint(read_timetable(delay="PT1H"), now=NOW).process_at == NOW + 3_600_000


@pytest.mark.parametrize("past_milliseconds", [0, 1, 60_000])
def test_what_has_just_passed_means_now(past_milliseconds: int) -> None:
    assert appoint(Timetable(process_at=NOW - past_milliseconds), now=NOW).process_at is None


@pytest.mark.parametrize("process_at", [NOW - 60_001, NOW + MAX_DELAY_SECONDS * 1000 + 1])
def test_past_and_too_distant_instants_are_refused_with_the_bounds(process_at: int) -> None:
    with pytest.raises(Rejected, match=r"2026-11-21T09:00:00.000Z to 2027-11-20T09:00:00.000Z") as refusal:
        appoint(Timetable(process_at=process_at), now=NOW)
    assert code_of(refusal) == "invalid_process_at"


def test_364_days_are_allowed_across_the_years_end() -> None:
    latest = NOW + MAX_DELAY_SECONDS * 1000
    assert appoint(Timetable(process_at=latest), now=NOW).process_at == latest
    assert datetime.fromtimestamp(latest / 1000, UTC).year == 2027


@pytest.mark.parametrize(
    ("process_at", "expires_at"),
    [(None, NOW), (NOW + DAY, NOW + DAY), (NOW + DAY, NOW + 1), (None, NOW + 365 * DAY), (NOW + DAY, NOW + 366 * DAY)],
)
def test_an_image_expires_after_its_time_and_within_364_days_of_it(process_at: int | None, expires_at: int) -> None:
    with pytest.raises(Rejected, match="expires_at must be after the image's time") as refusal:
        appoint(Timetable(process_at=process_at, expires_at=expires_at), now=NOW)
    assert code_of(refusal) == "invalid_expires_at"


def test_requests_that_ask_for_the_same_say_the_same() -> None:
    assert read_timetable().asked_for == ""
    same = {read_timetable(process_at=text).asked_for for text in ("2027-03-01T09:00:00Z", "2027-03-01T10:00:00+01:00")}
    assert len(same) == 1
    assert len({read_timetable(delay=text).asked_for for text in ("PT1H", "PT60M", "PT3600S")}) == 1
    assert read_timetable(delay="PT1H").asked_for != read_timetable(process_at="1970-01-01T01:00:00Z").asked_for
