"""Priority: what is critical has queues, workers and capacity of its own."""

from __future__ import annotations

from collections.abc import Iterator

from darkroom.domain.kernel.lanes import LANES, LIVE_LANES
from darkroom_cli.doctor.checks import Check, Finding
from darkroom_cli.doctor.facts import EventSource, Facts

GROUP = "Priority"

WORKER = "TranscodeImageFunction"

ROOM_FOR_THE_API = 0.2
"""The share of the account's concurrent executions that is left to the API and what runs on a schedule."""


def lane_queue(lane: str) -> str:
    """The logical id of a lane's queue."""
    return f"{lane.capitalize()}Queue"


def _served_lanes(facts: Facts) -> list[str]:
    """All lanes but that of bulk work in a stack without it, whose messages go to another."""
    has_bulk = facts.parameters.get("Bulk") != "false"
    return [name for name in LANES if name in LIVE_LANES or has_bulk]


def _lanes(facts: Facts) -> Iterator[tuple[str, list[tuple[str, EventSource]]]]:
    """Each lane with the mappings that take from its queue."""
    for lane in _served_lanes(facts):
        yield (
            lane,
            [(name, source) for name, source in facts.event_sources.items() if source.source == lane_queue(lane)],
        )


def _own_queues(facts: Facts) -> Iterator[Finding]:
    for lane in _served_lanes(facts):
        queue = facts.queues.get(lane_queue(lane))
        if queue is None:
            yield Finding(subject=lane_queue(lane), problem="the stack has no such queue")
            continue
        variable = f"{lane.upper()}_QUEUE_URL"
        for name, function in facts.functions.items():
            given = function.variables.get(variable)
            if given is not None and given != queue.url:
                yield Finding(subject=name, problem=f"it sends the lane {lane} to {given}")


def _served_first(facts: Facts) -> Iterator[Finding]:
    for lane, sources in _lanes(facts):
        if not sources:
            yield Finding(subject=lane_queue(lane), problem="nothing takes its messages")
        for name, source in sources:
            if not source.is_enabled and facts.pause_of(name) is None:  # guard: doctor-paused-lane-served
                yield Finding(subject=name, problem=f"it is disabled: nobody serves the lane {lane}")
            if source.window_seconds:
                problem = f"the lane {lane} waits {source.window_seconds} seconds for a batch to fill"
                yield Finding(subject=name, problem=problem)
            if source.batch_size > LANES[lane].batch_size:
                problem = f"a worker takes {source.batch_size} images at once, which wait for one another"
                yield Finding(subject=name, problem=problem)


def most_workers(facts: Facts) -> int:
    """The most workers that the lanes may have together."""
    return sum(source.maximum_concurrency or 0 for _, sources in _lanes(facts) for _, source in sources)


def _within_the_account(facts: Facts) -> Iterator[Finding]:
    worker = facts.functions.get(WORKER)
    if worker is not None and worker.reserved is not None and worker.reserved < most_workers(facts):
        problem = (
            f"{worker.reserved} executions are reserved for it, and its lanes may have {most_workers(facts)}: "
            "what is throttled is received again until it is a dead letter"
        )
        yield Finding(subject=WORKER, problem=problem, by_template=False)
    unreserved = facts.concurrency["unreserved"]
    wanted = sum(
        source.maximum_concurrency or 0 for _, source, _, function in facts.consumers() if function.reserved is None
    )
    most = int(unreserved * (1 - ROOM_FOR_THE_API))
    # guard: doctor-unreserved-concurrency
    if wanted > most and not facts.is_local:  # this machine's memory is the local stack's account
        problem = (
            f"its {unreserved:,} concurrent executions that nothing reserves are too few: consumers may take {wanted}, "
            f"and a fifth is left for the API ({most})"
        )
        yield Finding(subject="account", problem=problem)


def _reserved(facts: Facts) -> Iterator[Finding]:
    worker = facts.functions.get(WORKER)
    if worker is not None and worker.reserved is None:
        yield Finding(subject=WORKER, problem="no executions are reserved for it", by_template=False)


CHECKS = (
    Check(
        name="own-queues",
        group=GROUP,
        question="critical work has queues of its own",
        remedy="Deploy this checkout again: each lane has a queue, and every sender has its URL.",
        look=_own_queues,
    ),
    Check(
        name="served-first",
        group=GROUP,
        question="it is served first: workers of its own, or polled first",
        remedy="Enable the lane's mapping again (aws lambda update-event-source-mapping --uuid ID --enabled), "
        "or deploy this checkout again.",
        look=_served_first,
    ),
    Check(
        name="reserved-concurrency",
        group=GROUP,
        question="it has concurrency reserved that others cannot take",
        remedy="Deploy with ReservedWorkers=<the Concurrency of all lanes together>, as ./darkroom capacity prints it; "
        "if the account has too few executions, ask for more in Service Quotas (L-B99A9384), and deploy meanwhile with "
        "the parameters for small accounts in docs/deploy.md, Before the first deployment.",
        look=_within_the_account,
        look_in_production=_reserved,
        in_production="that capacity is reserved (ReservedWorkers)",
        decisions=["0011-load-shedding"],
    ),
    Check(
        name="expires-when-useless",
        group=GROUP,
        question="it expires where it would be useless late",
        decisions=["0033-operators-tools"],
    ),
)
