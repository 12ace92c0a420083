"""`darkroom capacity`: how many workers a load needs, what the lanes can then hold, and what a month costs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, cast

import typer

from darkroom.domain.kernel.lanes import FAST, LANES, SLOW
from darkroom_cli.capacity.bill import Kept, Storage, bill
from darkroom_cli.capacity.limits import Limit, limits, rush
from darkroom_cli.capacity.plan import (
    MAX_WORKERS,
    THROTTLES,
    UTILISATION,
    WORKER_TIMEOUT_SECONDS,
    Demand,
    Plan,
    TooMuch,
    plan_of,
)
from darkroom_cli.capacity.prices import AS_OF
from darkroom_cli.capacity.quotas import POLLER_DOLLARS_A_MONTH, Quotas, quotas_of
from darkroom_cli.stack.target import RegionOption, StackOption, reach
from darkroom_cli.terminal import display
from darkroom_client.client import ApiError

LATER_MONTHS = (2, 3, 6, 12, 24, 36)

WORKER_MEMORY_MB = 1769
"""`MemorySize` of the transcoder in template.yaml."""

_DEPLOY = (
    "./darkroom build --config-env prod --architecture arm64 && .darkroom/venvs/sam/bin/sam deploy --config-env prod "
    "--parameter-overrides Environment=prod Architecture=arm64"
)
"""What is named replaces the parameters in samconfig.toml, and a stack keeps those that are not named. The processor is
named twice: what is built must be what is deployed."""

_OF_A_NEW_STACK = "Access=keys AlarmEmail=you@example.com"

EPILOG = """[bold]Examples[/bold]

  ./darkroom capacity --rate 200 --seconds 3
  ./darkroom capacity --rate 5 --peak 4 --seconds 0.5 --paid 0.2
  ./darkroom capacity --messages 15000 --minutes 2 --seconds 0.5 --stack darkroom-prod

[bold]How long an image takes[/bold]

  In a deployed stack: the number of workers, divided by the metric
  DrainPerSecond. A photo with the preset standard takes about a quarter of a
  second."""


RateOption = Annotated[
    float | None, typer.Option(metavar="N", min=0.001, help="Uploads per second, on average.", show_default=False)
]
MessagesOption = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="Instead of --rate: so many messages wait at once.", show_default=False),
]
MinutesOption = Annotated[
    float | None,
    typer.Option(metavar="M", min=0.01, help="With --messages: they are done in M minutes.", show_default=False),
]
SecondsOption = Annotated[
    float, typer.Option(metavar="S", min=0.001, help="Seconds that a worker needs for one.", show_default=False)
]
PeakOption = Annotated[float, typer.Option(metavar="N", min=1, help="The busiest rate, as a multiple of the average.")]
PaidOption = Annotated[
    float, typer.Option(metavar="SHARE", min=0, max=1, help="Share of paying tenants, who use the fast lane.")
]
ShareOption = Annotated[
    list[str] | None,
    typer.Option(metavar="LANE=SHARE", show_default=False, help="Share of one lane; --paid divides what is left."),
]
FastSlaOption = Annotated[
    int, typer.Option("--fast-sla", metavar="S", min=1, help="Seconds within which the fast lane is done.")
]
SlowSlaOption = Annotated[
    int, typer.Option("--slow-sla", metavar="S", min=1, help="Seconds within which the slow lane is done.")
]
MemoryOption = Annotated[int, typer.Option(metavar="MB", min=128, max=10240, help="Memory of a worker.")]
OriginalOption = Annotated[float, typer.Option(metavar="MB", min=0.001, help="Size of an original, kept for good.")]
VariantsOption = Annotated[float, typer.Option(metavar="MB", min=0, help="Size of its variants, kept for good.")]


def command(
    *,
    rate: RateOption = None,
    messages: MessagesOption = None,
    minutes: MinutesOption = None,
    seconds: SecondsOption,
    peak: PeakOption = 1,
    paid: PaidOption = 0.5,
    share: ShareOption = None,
    fast_sla: FastSlaOption = FAST.sla_seconds,
    slow_sla: SlowSlaOption = SLOW.sla_seconds,
    memory: MemoryOption = WORKER_MEMORY_MB,
    original: OriginalOption = 2.0,
    variants: VariantsOption = 0.6,
    stack: StackOption = None,
    region: RegionOption = None,
) -> None:
    """Calculate the workers that a load needs, the first quota that bites, and what a month costs.

    It also prints high-water marks, timeouts and the template's parameters.
    With --stack it asks the account for its quotas and the stack for its
    parameters, otherwise AWS's defaults and the template's count.
    """
    if (rate is None) == (messages is None) or (messages is None) != (minutes is None):
        raise typer.BadParameter("give either --rate, or --messages and --minutes.", param_hint="--rate")
    out = display.output()
    at = None if stack is None and region is None else reach(stack, region)
    quotas = Quotas() if at is None else quotas_of(at.client)
    if rate is None:
        uploads = THROTTLES["Uploads"][0] if at is None else int(at.parameters["UploadsPerSecond"])
        for line in rush_report(messages or 0, minutes or 0, seconds, uploads, quotas):
            display.line(out, line)
        return
    try:
        demand = Demand(
            per_second=rate,
            seconds=seconds,
            peak=peak,
            paid_share=paid,
            shares=_shares(share or []),
            memory_mb=memory,
            sla_seconds={FAST.name: fast_sla, SLOW.name: slow_sla},
        )
        plan = plan_of(demand)
    except TooMuch as error:
        raise ApiError(str(error)) from error
    parameters = {} if at is None else at.parameters
    kept = Kept(
        original_megabytes=original,
        variants_megabytes=variants,
        storage=cast("Storage", parameters.get("OriginalsStorage", "standard")),
        traced=parameters.get("Tracing", "PassThrough") == "Active",
        logged=parameters.get("InvocationLogs", "sampled") == "all",
    )
    for line in report(demand, kept, plan, quotas):
        display.line(out, line)


def _shares(texts: Sequence[str]) -> dict[str, float]:
    shares = {}
    for text in texts:
        lane, _, share = text.partition("=")
        if lane not in LANES or not re.fullmatch(r"0?\.\d+|[01](\.0*)?", share):
            raise typer.BadParameter(
                f"{text!r} is not a share of a lane: name one of {', '.join(LANES)}, and a number from 0 to 1, as in "
                f"{FAST.name}=0.25.",
                param_hint="--share",
            )
        shares[lane] = float(share)
    if sum(shares.values()) > 1:
        raise typer.BadParameter("the lanes' shares add up to more than 1.", param_hint="--share")
    return shares


def report(demand: Demand, kept: Kept, plan: Plan, quotas: Quotas) -> list[str]:
    """The lines of the whole report."""
    return [
        f"{demand.per_second:g} uploads per second on average, {demand.per_second * demand.peak:g} at the busiest, "
        f"{demand.seconds:g} s each with {demand.memory_mb:,} MB",
        "",
        *_lanes(plan),
        "",
        *_table(
            [
                ("worker timeout", f"{plan.worker_timeout_seconds} s"),
                ("visibility timeout", f"{plan.visibility_seconds} s (6 × timeout + window)"),
                ("functions at once", f"{plan.concurrency:,}, {plan.api_functions:,} of them for the API"),
            ]
        ),
        "",
        *_month(demand, kept, plan),
        "",
        *_quotas(_limits(demand, plan, quotas), quotas, demand.per_second * demand.peak),
        "",
        *_advice(demand, plan, quotas),
        "An existing stack keeps its other parameters, AlarmEmail among them, with:",
        f"{_DEPLOY} {' '.join(f'{name}={value}' for name, value in plan.parameters.items())}",
        f"For a new one, name these too: {_OF_A_NEW_STACK}",
    ]


def rush_report(messages: int, minutes: float, seconds: float, uploads_per_second: int, quotas: Quotas) -> list[str]:
    """The lines about messages that wait at once, in one lane."""
    needs = rush(messages=messages, within_seconds=60 * minutes, each_seconds=seconds)
    if needs.workers is None:
        soonest = f"not in time: in {needs.soonest_seconds / 60:,.1f} minutes at the soonest"
    elif needs.workers > MAX_WORKERS:
        soonest = f"{needs.workers:,} workers: an event source has at most {MAX_WORKERS:,}"
    else:
        soonest = f"{needs.workers:,} workers"
    pollers = f"{needs.pollers:,}, ${POLLER_DOLLARS_A_MONTH * needs.pollers:,.2f} a month"
    per_second = messages / (60 * minutes)
    limited = limits(Demand(per_second=per_second, seconds=seconds), {}, uploads_per_second, quotas)
    return [
        f"{messages:,} messages in {minutes:g} minutes, {seconds:g} s each: {per_second:,.4g} a second",
        "",
        *_table(
            [
                ("busy workers on average", f"{needs.busy_workers:,.4g}"),
                ("as Lambda begins them, 5 and 300 more per minute", soonest),
                ("provisioned pollers instead, whose workers are there at once", pollers),
            ]
        ),
        "",
        *_quotas(limited, quotas, per_second),
    ]


def _limits(demand: Demand, plan: Plan, quotas: Quotas) -> Sequence[Limit]:
    workers = {lane.lane: lane.concurrency for lane in plan.lanes}
    uploads = int(plan.parameters.get("UploadsPerSecond", THROTTLES["Uploads"][0]))
    return limits(demand, workers, uploads, quotas)


def _quotas(limits: Sequence[Limit], quotas: Quotas, per_second: float) -> list[str]:
    """The limits, the lowest first, and whether this load meets one."""
    lowest = limits[0]
    bites = "bites" if lowest.uploads_per_second < per_second else "would bite"
    known = "the account's own" if not quotas.unread else f"AWS's defaults ({'; '.join(quotas.unread)})"
    return [
        f"The first limit that {bites}: {lowest.name}, at {lowest.uploads_per_second:,.4g} uploads per second.",
        f"It helps: {lowest.remedy}.",
        *_table(
            [
                ("limits, in uploads per second", ""),
                *((f"  {limit.name}", f"{limit.uploads_per_second:,.4g}") for limit in limits),
            ]
        ),
        f"The quotas are {known}.",
    ]


def _lanes(plan: Plan) -> list[str]:
    rows: list[Sequence[str]] = [
        ("", *(lane.lane for lane in plan.lanes)),
        ("uploads per second, at the busiest", *(f"{lane.peak_per_second:,.4g}" for lane in plan.lanes)),
        ("busy workers (rate × seconds)", *(f"{lane.busy_workers:,.4g}" for lane in plan.lanes)),
        (f"workers, {UTILISATION:.0%} of them busy", *(f"{lane.concurrency:,}" for lane in plan.lanes)),
        ("drain, images per second", *(f"{lane.drain_per_second:,.4g}" for lane in plan.lanes)),
        ("service level, seconds", *(f"{lane.sla_seconds:,}" for lane in plan.lanes)),
        ("high-water mark, images", *(f"{lane.high_water_mark:,}" for lane in plan.lanes)),
    ]
    rows += [
        (f"{tier} tenants are turned away at", *(f"{lane.shed_at[tier]:,}" for lane in plan.lanes))
        for tier in plan.lanes[0].shed_at
    ]
    return _table(rows)


def _month(demand: Demand, kept: Kept, plan: Plan) -> list[str]:
    """The first month, line by line, and what the stores make of it later."""
    lines = bill(demand, kept)
    total = sum(line.dollars for line in lines)
    rows = [
        (f"a month of 30 days, {plan.images:,.0f} images", f"${total:,.2f}", ""),
        *((f"  {line.name}", f"${line.dollars:,.2f}", line.basis) for line in lines),
        ("  a thousand images", f"${1000 * total / plan.images:,.4f}", ""),
    ]
    later = [sum(line.dollars for line in bill(demand, kept, month=month)) for month in LATER_MONTHS]
    width, dollars = (max(len(row[column]) for row in rows) for column in range(2))
    return [
        *(f"{name.ljust(width)}  {cost.rjust(dollars)}  {basis}".rstrip() for name, cost, basis in rows),
        "",
        *_table(
            [
                ("the month", *(f"{month}." for month in LATER_MONTHS)),
                ("as nothing is deleted", *(f"${amount:,.2f}" for amount in later)),
            ]
        ),
        f"(list prices of {AS_OF}, us-east-1, arm64, without free tiers; without traffic to clients, $0.09 a GB)",
    ]


def _advice(demand: Demand, plan: Plan, quotas: Quotas) -> list[str]:
    advice = []
    if plan.concurrency > quotas.concurrency:
        advice.append(
            f"The account runs {quotas.concurrency:,} functions at once: ask for "
            f"{plan.concurrency:,} (Service Quotas, Lambda, Concurrent executions) before you deploy."
        )
    if plan.worker_timeout_seconds != WORKER_TIMEOUT_SECONDS:
        advice.append(
            f"In template.yaml set TranscodeImageFunction's Timeout to {plan.worker_timeout_seconds}, and the "
            f"VisibilityTimeout of the lanes' queues and VISIBILITY_SECONDS to {plan.visibility_seconds}."
        )
    if demand.memory_mb != WORKER_MEMORY_MB:
        advice.append(f"In template.yaml set TranscodeImageFunction's MemorySize to {demand.memory_mb}.")
    if any(seconds != LANES[lane].sla_seconds for lane, seconds in demand.sla_seconds.items()):
        advice.append("In domain/kernel/lanes.py set sla_seconds, and in template.yaml LateSeconds and StuckSeconds.")
    return [*advice, ""] if advice else []


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns, the first aligned to the left and the others to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
