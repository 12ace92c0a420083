"""The simulation of scale: AWS's ramps and limits as documented, and that each upload is counted once."""

from __future__ import annotations

import pytest

from benchmarks.scale.aws import Account, Bites, Bucket, Function, Table
from benchmarks.scale.flow import Phase
from benchmarks.scale.loads import Load, play
from benchmarks.scale.sample import Sample, sample
from benchmarks.scale.saturation import measure
from darkroom.domain.kernel.lanes import LANES
from darkroom_cli.capacity.quotas import Quotas
from tests.support.virtual.virtual_time import VirtualTime

SAMPLE = Sample(
    uploads=[100.0],
    workers={name: [500.0] for name in LANES},
    calls={},
    writes={"images": 7},
    upload_writes=4,
)


def test_the_smaller_run_counts_what_an_image_takes() -> None:
    measured = sample(images=5, seed=1, day="usual")
    assert (measured.calls["outputs.put_if_absent"], measured.calls["images.claim_unseen"]) == (4, 1)
    assert measured.writes["listed"] == 1 and measured.writes["due"] == 4, "put, moved, removed"
    assert 0.3 < measured.seconds("fast") < measured.seconds("slow") < 1


def test_a_function_gets_a_thousand_environments_and_a_hundred_more_per_second() -> None:
    time = VirtualTime()
    function = Function(Bites(time), Account(concurrency=5000), object, initialisation=500)
    begun = [function.begin() for _ in range(1200)]
    assert sum(environment is not None for environment in begun) == 1000
    assert begun[0] is not None and begun[0][1] == 500
    function.end(begun[0][0])
    warm = function.begin()
    assert warm is not None and warm[1] == 0, "an environment that is idle is used again"
    time.pause(2000)
    assert sum(function.begin() is not None for _ in range(300)) == 200


def test_an_account_runs_no_more_than_its_quota_beside_what_is_reserved() -> None:
    bites = Bites(VirtualTime())
    account = Account(concurrency=10, reserved=4)
    others = Function(bites, account, object, initialisation=0)
    reserved = Function(bites, account, object, initialisation=0, reserved=4)
    assert sum(others.begin() is not None for _ in range(20)) == 6
    assert sum(reserved.begin() is not None for _ in range(20)) == 4
    assert bites.times == {"concurrent executions of the account": 30}


def test_a_bucket_holds_a_burst_and_a_table_doubles_within_half_an_hour() -> None:
    time = VirtualTime()
    bites = Bites(time)
    bucket = Bucket(bites, "a throttle", per_second=10, at_once=20)
    assert sum(bucket.take() for _ in range(30)) == 20
    time.pause(1000)
    assert sum(bucket.take() for _ in range(30)) == 10
    assert bites.first == {"a throttle": 0.0}
    table = Table(bites, "a table", warm=100)
    for _ in range(31 * 60):
        table.write(90)
        time.pause(1000)
    assert sum(table.write(1) for _ in range(300)) == pytest.approx(180, abs=1)


def test_every_upload_has_one_answer_and_what_is_accepted_is_done() -> None:
    burst = Load(name="a burst", phase=Phase(per_second=300, seconds=20))
    row = play(burst, SAMPLE, seed=1)
    assert row["uploads"] == sum(count for name, count in row["answers"].items() if name != "tried again later")
    assert row["lost"] == 0 and row["answers"]["429 overloaded"] > 100
    assert sum(row["late"].values()) == 0
    assert abs(row["retry_after"]["median"] - 1) < 0.2
    new = play(Load(name="new", phase=burst.phase, quotas=Quotas(concurrency=10)), SAMPLE, seed=1)
    assert new["answers"]["503 of Lambda"] > 100 and new["lost"] == 0


def test_the_simulation_and_the_arithmetic_name_the_same_limit_of_the_default_stack() -> None:
    (default, sized) = measure([100.0], SAMPLE, seconds=20, seed=1)
    assert default["by_arithmetic"] == "workers of the slow lane (10)"
    assert default["by_simulation"] == "workers of the slow lane"
    assert (sized["by_arithmetic"], sized["by_simulation"]) == (None, None)
