"""The simulation of scale: AWS's ramps and limits as documented, and that each upload is counted once."""

from __future__ import annotations

from benchmarks.scale.flow import Phase
from benchmarks.scale.loads import Load, play
from benchmarks.scale.sample import Sample
from darkroom.domain.kernel.lanes import LANES
from darkroom_cli.capacity.quotas import Quotas

SAMPLE = Sample(
    uploads=[100.0],
    workers={name: [500.0] for name in LANES},
    calls={},
    writes={"images": 7},
    upload_writes=4,
)


def test_every_upload_has_one_answer_and_what_is_accepted_is_done() -> None:
    burst = Load(name="a burst", phase=Phase(per_second=300, seconds=20))
    row = play(burst, SAMPLE, seed=1)
    assert row["uploads"] == sum(count for name, count in row["answers"].items() if name != "tried again later")
    assert row["lost"] == 0 and row["answers"]["429 overloaded"] > 100
    assert sum(row["late"].values()) == 0
    assert abs(row["retry_after"]["median"] - 1) < 0.2
    new = play(Load(name="new", phase=burst.phase, quotas=Quotas(concurrency=10)), SAMPLE, seed=1)
    assert new["answers"]["503 of Lambda"] > 100 and new["lost"] == 0
