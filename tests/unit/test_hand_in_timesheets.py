"""Workers' timesheets: one write for five seconds of work, whatever the images were, and no failure that matters."""

from darkroom.domain.admission import Work
from darkroom.domain.errors import Retryable
from darkroom.operations.hand_in_timesheets import Ports, Tally, hand_in_timesheets
from proof.fakes.admission import FakeTimesheets

NOW = 1_795_251_600_000


def hand_in(tally: Tally, timesheets: FakeTimesheets) -> dict[str, Work]:
    return hand_in_timesheets(Ports(timesheets=timesheets, clock=lambda: NOW), tally)


def test_nothing_is_handed_in_before_five_seconds_of_work_and_all_of_it_then() -> None:
    tally, timesheets = Tally(), FakeTimesheets()
    for _ in range(19):
        tally.count("slow", is_settled=True, busy_milliseconds=250)
        assert hand_in(tally, timesheets) == {}
    tally.count("slow", is_settled=False, busy_milliseconds=250)
    done = Work(settled=19, busy_milliseconds=5000)
    assert hand_in(tally, timesheets) == {"slow": done}
    assert timesheets.latest("slow", NOW) == [done]
    assert hand_in(tally, timesheets) == {}, "it was handed in"


def test_lanes_are_counted_apart() -> None:
    tally, timesheets = Tally(), FakeTimesheets()
    tally.count("slow", is_settled=True, busy_milliseconds=4999)
    tally.count("fast", is_settled=True, busy_milliseconds=6000)
    assert hand_in(tally, timesheets) == {"fast": Work(settled=1, busy_milliseconds=6000)}


def test_what_cannot_be_handed_in_is_forgotten() -> None:
    class Silent(FakeTimesheets):
        def add(self, lane: str, work: Work, now: int) -> None:
            raise Retryable("adding to the timesheet: timeout")

    tally = Tally()
    tally.count("slow", is_settled=True, busy_milliseconds=9000)
    assert hand_in(tally, Silent()) == {}
    assert hand_in(tally, FakeTimesheets()) == {}


def test_a_clock_that_was_set_back_takes_no_time_away() -> None:
    tally = Tally()
    tally.count("slow", is_settled=True, busy_milliseconds=-3_600_000)
    assert tally.work == {"slow": Work(settled=1, busy_milliseconds=0)}
