"""How a request says when it wants its image."""

import json
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.schedules.schedule import Timetable
from darkroom.http.kernel.timetables import read_timetable
from darkroom.http.schedules.reschedules import MAX_RESCHEDULE_BYTES, read_change

DAY = 24 * 3600 * 1000


def milliseconds(*when: int, zone: str = "UTC") -> int:
    return round(datetime(*when, tzinfo=ZoneInfo(zone)).timestamp() * 1000)  # type: ignore[arg-type, misc]


def code_of(refusal: pytest.ExceptionInfo[Rejected]) -> str:
    return refusal.value.code


@pytest.mark.guards("schedules-rounded-up")
@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2027-03-01T09:00:00Z", milliseconds(2027, 3, 1, 9)),
        ("2027-03-01t09:00:00z", milliseconds(2027, 3, 1, 9)),
        ("2027-03-01T09:00:00+01:00", milliseconds(2027, 3, 1, 8)),
        ("2027-03-01T09:00:00 01:00", milliseconds(2027, 3, 1, 8)),
        ("2027-03-01T09:00:00-05:30", milliseconds(2027, 3, 1, 14, 30)),
        # Summer time begins in Berlin at 01:00 UTC: an hour later by the zone's own offsets is two by its clocks.
        ("2027-03-28T01:59:59+01:00", milliseconds(2027, 3, 28, 0, 59, 59)),
        ("2027-03-28T03:00:00+02:00", milliseconds(2027, 3, 28, 3, zone="Europe/Berlin")),
        ("2028-02-29T12:00:00Z", milliseconds(2028, 2, 29, 12)),
        ("2026-12-31T23:59:59.999Z", milliseconds(2027, 1, 1) - 1),
        ("2027-01-01T00:00:00.0001Z", milliseconds(2027, 1, 1) + 1),
        # As .NET and Go write them, and as nothing does.
        ("2027-01-01T00:00:00.1230000Z", milliseconds(2027, 1, 1) + 123),
        ("2027-01-01T00:00:00.123456789+00:00", milliseconds(2027, 1, 1) + 124),
        ("2026-12-31T23:59:59.99900000000000000000000000000001Z", milliseconds(2027, 1, 1)),
        ("2027-01-01T00:00:00.1" + "0" * 999 + "1Z", milliseconds(2027, 1, 1) + 101),
        ("1969-12-31T23:59:59.0000001Z", -999),
    ],
)
def test_an_instant_is_taken_with_its_zone_and_never_made_earlier(text: str, instant: int) -> None:
    assert read_timetable(process_at=text) == Timetable(process_at=instant)


@pytest.mark.guards("schedules-nameable-instant")
@pytest.mark.parametrize(
    "text",
    [
        *("", "tomorrow", "2027-03-01", "2027-03-01T09:00:00", "1800000000", "2027-02-29T09:00:00Z"),
        *("2027-13-01T09:00:00Z", "2027-03-01T24:00:00Z", "2026-12-31T23:59:60Z", "2027-03-01T09:00Z", "é" * 99),
        *("2027-03-01T09:00:00+99:99", "2027-03-01T09:00:00Z\n", "20270301T090000Z", "2027-03-01T09:00:00.Z"),
        *("9999-12-31T23:59:59.9999999Z", "9999-12-31T23:59:59-01:00", "0001-01-01T00:00:00+01:00"),
    ],
)
def test_what_is_no_instant_with_a_zone_is_refused_by_example(text: str) -> None:
    with pytest.raises(Rejected, match="as in RFC 3339") as refusal:
        read_timetable(process_at=text)
    assert code_of(refusal) == "invalid_process_at"
    with pytest.raises(Rejected, match="as in RFC 3339") as refusal:
        read_timetable(expires_at=text)
    assert code_of(refusal) == "invalid_expires_at"


@pytest.mark.guards("schedules-rounded-up")
@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("PT1S", 1_000),
        ("PT0S", 0),
        ("PT1.5S", 1_500),
        ("PT1,5S", 1_500),
        ("PT0.0001S", 1),
        ("PT0.0000000001S", 1),
        ("P1DT1M1,000000001S", DAY + 61_001),
        ("PT1." + "0" * 999 + "1S", 1_001),
        ("PT15M", 900_000),
        ("P2DT12H", 60 * 3_600_000),
        ("P52W", 364 * DAY),
        ("P364D", 364 * DAY),
        ("PT90M30S", 5_430_000),
    ],
)
def test_a_delay_counts_in_whole_milliseconds_rounded_up(text: str, duration: int) -> None:
    assert read_timetable(delay=text) == Timetable(delay_milliseconds=duration)


@pytest.mark.parametrize(
    "text", ["", "P", "PT", "P1Y", "P1M", "1h", "3600", "-PT5M", "PT-5M", "P1DT", "PT1H ", "P1.5D"]
)
def test_what_is_no_duration_is_refused_by_example(text: str) -> None:
    with pytest.raises(Rejected, match="PT90S, PT15M, P2DT12H") as refusal:
        read_timetable(delay=text)
    assert code_of(refusal) == "invalid_delay"


def test_an_instant_and_a_delay_exclude_each_other() -> None:
    with pytest.raises(Rejected) as refusal:
        read_timetable(process_at="2027-03-01T09:00:00Z", delay="PT1H")
    assert code_of(refusal) == "conflicting_parameters"


def test_a_move_says_when_as_an_upload_does_in_few_bytes() -> None:
    assert read_change(b'{"delay": "PT1H"}') == read_timetable(delay="PT1H")
    assert read_change(b"{}") == Timetable()
    body = json.dumps({"delay": "PT1H"}).encode()
    assert read_change(body.ljust(MAX_RESCHEDULE_BYTES)) == read_timetable(delay="PT1H")
    with pytest.raises(Rejected):
        read_change(body.ljust(MAX_RESCHEDULE_BYTES + 1))


@pytest.mark.parametrize(
    "body",
    [b"", b"when?", b"[]", b'{"delay": 60}', b'{"delay": null}', b'{"at": "PT1H"}', b"[" * 1000, b'{"delay": "\xff"}'],
)
def test_what_is_no_object_of_strings_is_no_move(body: bytes) -> None:
    with pytest.raises(Rejected) as refusal:
        read_change(body)
    assert code_of(refusal) == "invalid_schedule"
