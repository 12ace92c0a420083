"""What saturates first at a steady rate: by arithmetic, and by letting so many uploads come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.scale.flow import Deployed, Flow, Phase
from benchmarks.scale.loads import sized
from benchmarks.scale.sample import Sample
from darkroom.domain.kernel.lanes import LANES, LIVE_LANES
from darkroom_cli.capacity.limits import limits
from darkroom_cli.capacity.plan import Demand

RATES = (10.0, 100.0, 1_000.0, 10_000.0)


def measure(rates: Sequence[float], sample: Sample, *, seconds: float, seed: int) -> list[dict[str, Any]]:
    """A row for each rate and stack: the default one, and one that is sized for the rate, with AWS's default quotas and
    tables that are new."""
    rows = []
    for rate in rates:
        for stack, deployed in (
            ("default", Deployed(service=LANES)),
            ("sized", _in_a_usual_account(sized(rate, sample, is_new=True))),
        ):
            rows.append(_row(rate, stack, deployed, sample, seconds=seconds, seed=seed))
    return rows


def _in_a_usual_account(deployed: Deployed) -> Deployed:
    return Deployed(
        service=deployed.service,
        uploads_per_second=deployed.uploads_per_second,
        uploads_at_once=deployed.uploads_at_once,
    )


def _row(rate: float, stack: str, deployed: Deployed, sample: Sample, *, seconds: float, seed: int) -> dict[str, Any]:
    mean = sum(sample.seconds(lane) for lane in LIVE_LANES) / len(LIVE_LANES)
    workers = {name: lane.concurrency for name, lane in deployed.service.items()}
    limiting = limits(Demand(per_second=rate, seconds=mean), workers, deployed.uploads_per_second, deployed.quotas)
    flow = Flow(deployed, sample, [Phase(per_second=rate, seconds=seconds)], seed=seed)
    flow.run(patience_seconds=0)
    bites = sorted(flow.bites.first.items(), key=lambda bite: bite[1])
    steady = [(name, at) for name, at in bites if not name.startswith("ramp")]
    return {
        "part": "saturation",
        "per_second": rate,
        "stack": stack,
        "workers": workers,
        "by_arithmetic": limiting[0].name if limiting[0].uploads_per_second < rate else None,
        "at": round(limiting[0].uploads_per_second, 1),
        "limits": {limit.name: round(limit.uploads_per_second, 1) for limit in limiting},
        "by_simulation": steady[0][0] if steady else None,
        "after_seconds": round(steady[0][1] / 1000, 1) if steady else None,
        "bites": {name: round(at / 1000, 1) for name, at in bites},
    }
