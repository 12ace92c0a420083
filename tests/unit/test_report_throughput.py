"""Workers' throughput: one write per ten seconds of work, however long each image took, and failures are harmless."""

import pytest

from darkroom.domain.images.load_shedding import Work
from darkroom.operations.sweeping.worker_counts import (
    MOST_TENANTS,
    TENANTS_MILLISECONDS,
    ReportThroughputPorts,
    ThroughputCounter,
    report_throughput,
)
from tests.failures import ANY_FAILURE
from tests.support.fakes.load_shedding import FakeThroughput

NOW = 1_795_251_600_000


def hand_in(counter: ThroughputCounter, throughput: FakeThroughput) -> dict[str, Work]:
    return report_throughput(ReportThroughputPorts(throughput=throughput, clock=lambda: NOW), counter)


def test_nothing_is_handed_in_before_ten_seconds_of_work_and_all_of_it_then() -> None:
    counter, throughput = ThroughputCounter(), FakeThroughput()
    for _ in range(19):
        counter.count("slow", is_settled=True, busy_milliseconds=500)
        assert hand_in(counter, throughput) == {}
    counter.count("slow", is_settled=False, busy_milliseconds=500)
    done = Work(settled=19, busy_milliseconds=10_000)
    assert hand_in(counter, throughput) == {"slow": done}
    assert throughput.latest("slow", NOW) == [done]
    assert hand_in(counter, throughput) == {}, "it was reported"


def test_lanes_are_counted_apart() -> None:
    counter, throughput = ThroughputCounter(), FakeThroughput()
    counter.count("slow", is_settled=True, busy_milliseconds=9_999)
    counter.count("fast", is_settled=True, busy_milliseconds=11_000)
    assert hand_in(counter, throughput) == {"fast": Work(settled=1, busy_milliseconds=11_000)}


@pytest.mark.guards("noisy-named-bound", "noisy-told-seldom")
def test_whom_a_minute_of_work_was_for_is_told_of_those_that_took_the_most() -> None:
    counter, throughput = ThroughputCounter(), FakeThroughput()
    counter.count("slow", is_settled=True, busy_milliseconds=TENANTS_MILLISECONDS - 1, tenant_id="7")
    assert hand_in(counter, throughput) and not throughput.of_tenants("slow", NOW - 60_000)
    for number in range(MOST_TENANTS + 2):
        counter.count("slow", is_settled=True, busy_milliseconds=1000 + number, tenant_id=f"{number}")
    counter.count("slow", is_settled=False, busy_milliseconds=500, tenant_id="7")
    counter.count("slow", is_settled=True, busy_milliseconds=500)
    hand_in(counter, throughput)
    told = throughput.of_tenants("slow", NOW - 60_000)
    assert (len(told), told["7"]) == (MOST_TENANTS, 1507 + TENANTS_MILLISECONDS - 1)
    assert told.keys().isdisjoint({"0", "1"}) and not counter.busy_for


@ANY_FAILURE
def test_what_cannot_be_handed_in_is_forgotten(failure: Exception) -> None:
    class Silent(FakeThroughput):
        def add(self, lane: str, work: Work, now: int) -> None:
            raise failure

    counter = ThroughputCounter()
    counter.count("slow", is_settled=True, busy_milliseconds=19_000)
    assert hand_in(counter, Silent()) == {}
    assert hand_in(counter, FakeThroughput()) == {}


def test_a_clock_that_was_set_back_takes_no_time_away() -> None:
    counter = ThroughputCounter()
    counter.count("slow", is_settled=True, busy_milliseconds=-3_600_000)
    assert counter.work == {"slow": Work(settled=1, busy_milliseconds=0)}
