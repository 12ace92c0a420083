"""The loads, the stacks that they meet, and what is promised of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median, quantiles
from typing import Any

from benchmarks.scale.flow import Deployed, Flow, Phase
from benchmarks.scale.sample import Sample
from darkroom.domain.kernel.lanes import FAST, LANES, LIVE_LANES, lanes_with
from darkroom_cli.capacity.limits import ROW_WRITES, rush
from darkroom_cli.capacity.plan import MAX_WORKERS, MIN_WORKERS, UTILISATION, VARIANTS, Demand, TooMuch, plan_of
from darkroom_cli.capacity.quotas import Quotas
from repository.report import Goal

USUAL = 20.0
"""Uploads per second before a burst: what the default stack's workers do at ease."""

USUAL_SECONDS = 120.0

WITHIN = 0.2
"""How far `Retry-After` may be from the time that the backlog really took."""

PATIENCE_SECONDS = 3600.0

USUAL_QUOTAS = Quotas()


@dataclass(frozen=True, kw_only=True)
class Load:
    """Uploads after the usual ones, and whether the stack is sized for them; `pollers` says whether it has provisioned
    ones for the fast lane."""

    name: str
    phase: Phase
    is_sized: bool = False
    pollers: bool = False
    quotas: Quotas = USUAL_QUOTAS
    is_new: bool = False
    """Its table and its bucket have never had such a load."""


BURSTS = (
    ("15,000 in 30 s", Phase(per_second=15_000 / 30, seconds=30)),
    ("50,000 in 30 s", Phase(per_second=50_000 / 30, seconds=30)),
    ("ten times the usual for a minute", Phase(per_second=10 * USUAL, seconds=60)),
)


def loads(*, hour_seconds: float, rates: Sequence[float], bursts: int) -> Sequence[Load]:
    """The bursts, on the default stack, on one of their size, and with provisioned pollers; and the hours."""
    some = BURSTS[:bursts]
    return [
        *(Load(name=name, phase=phase) for name, phase in some),
        *(
            Load(name=f"{name}, {concurrency} executions", phase=phase, quotas=Quotas(concurrency=concurrency))
            for name, phase in some[:1]
            for concurrency in (10, 50)
        ),
        *(Load(name=name, phase=phase, is_sized=True) for name, phase in some),
        *(Load(name=name, phase=phase, is_sized=True, pollers=True) for name, phase in some[1:2]),
        *(
            Load(name=f"{rate:,.0f} a second", phase=Phase(per_second=rate, seconds=hour_seconds), is_sized=True)
            for rate in rates
        ),
        Load(
            name=f"{rates[-1]:,.0f} a second at once, all new",
            phase=Phase(per_second=rates[-1], seconds=hour_seconds / 12),
            is_sized=True,
            is_new=True,
        ),
    ]


def deployed_for(load: Load, sample: Sample) -> Deployed:
    """The stack that the load meets: the default one, or what `darkroom capacity` says for it, tables warmed."""
    if not load.is_sized:
        return Deployed(service=LANES, quotas=load.quotas)
    return sized(load.phase.per_second, sample, pollers=load.pollers, is_new=load.is_new)


def sized(rate: float, sample: Sample, *, pollers: bool = False, is_new: bool = False) -> Deployed:
    """The stack that `darkroom capacity` says for that rate, in an account with the quotas that it asks for."""
    seconds = max(sample.seconds(lane) for lane in LIVE_LANES)
    try:
        plan = plan_of(Demand(per_second=rate, seconds=seconds))
        workers = {lane.lane: lane.concurrency for lane in plan.lanes}
        more = plan.parameters
    except TooMuch:
        workers, more = dict.fromkeys(LANES, MAX_WORKERS), {"UploadsPerSecond": "10000", "UploadsAtOnce": "5000"}
    writes, puts = (ROW_WRITES * rate / UTILISATION, VARIANTS * rate / UTILISATION**2)
    deployed = Deployed(
        service=lanes_with({name: max(MIN_WORKERS, count) for name, count in workers.items()}),
        pollers={
            FAST.name: rush(messages=workers[FAST.name], within_seconds=1, each_seconds=1).pollers if pollers else 0
        },
        uploads_per_second=int(more.get("UploadsPerSecond", 500)),
        uploads_at_once=int(more.get("UploadsAtOnce", 1000)),
        quotas=Quotas(concurrency=max(1000, 2 * sum(workers.values()))),
    )
    if is_new:
        return deployed
    return replace(
        deployed, table_writes=max(deployed.table_writes, writes), object_puts=max(deployed.object_puts, puts)
    )


def play(load: Load, sample: Sample, *, seed: int) -> dict[str, Any]:
    """What became of the load."""
    deployed = deployed_for(load, sample)
    usual = Phase(per_second=USUAL, seconds=USUAL_SECONDS)
    flow = Flow(deployed, sample, [usual, load.phase], seed=seed)
    flow.run(patience_seconds=PATIENCE_SECONDS)
    ratios = [said / took for refusals in flow.refusals.values() for said, took in refusals if took > 0]
    answers = {name: count for name, count in flow.outcomes.items() if name not in ("uploads", "read for")}
    return {
        "part": "load",
        "load": load.name,
        "stack": "default" if not load.is_sized else "sized, pollers" if load.pollers else "sized",
        "is_new": load.is_new or bool(load.quotas.concurrency < 1000),
        "workers": {name: lane.concurrency for name, lane in deployed.service.items()},
        "pollers": dict(deployed.pollers),
        "uploads": flow.outcomes["uploads"],
        "answers": answers,
        "lost": sum(source.sent - source.done for source in flow.sources.values()),
        "late": {name: source.late for name, source in flow.sources.items()},
        "longest_seconds": {name: round(source.longest / 1000, 1) for name, source in flow.sources.items()},
        "retry_after": _spread(ratios),
        "bites": {name: round(at / 1000, 1) for name, at in flow.bites.first.items()},
    }


def _spread(ratios: Sequence[float]) -> dict[str, Any]:
    """What `Retry-After` said, as a share of what the backlog took: the median, the middle 90%, how many were near."""
    if len(ratios) < 20:
        return {"refused": len(ratios)}
    steps = quantiles(ratios, n=20)
    near = sum(abs(ratio - 1) <= WITHIN for ratio in ratios)
    return {
        "refused": len(ratios),
        "median": round(median(ratios), 3),
        "p5": round(steps[0], 3),
        "p95": round(steps[-1], 3),
        "near": round(near / len(ratios), 4),
    }


def goals_of(rows: Sequence[dict[str, Any]]) -> list[Goal]:
    """Nothing is lost anywhere; nothing is late, and `Retry-After` is right, where the account and its tables are not
    new."""
    known = [row for row in rows if not row["is_new"]]
    retries = [row["retry_after"] for row in known if "median" in row["retry_after"]]
    apart = max((abs(retry["median"] - 1) for retry in retries), default=0.0)
    return [
        Goal(name="accepted images that were lost", value=sum(row["lost"] for row in rows), limit=0),
        Goal(name="accepted images that were late", value=sum(sum(row["late"].values()) for row in known), limit=0),
        Goal(name="Retry-After, apart from what the backlog took", value=apart, limit=WITHIN),
        Goal(
            name="refusals whose Retry-After was within a fifth",
            value=min((retry["near"] for retry in retries), default=1.0),
            limit=0.9,
            at_least=True,
        ),
    ]
