"""Operation: redriving, ending, taking, waiting, keeping and reconciling."""

from __future__ import annotations

import re
from collections.abc import Iterator

from darkroom.domain.images.claim import LEASE_MARGIN_SECONDS
from darkroom.domain.images.transitions import SWEEP_INTERVAL_SECONDS
from darkroom.domain.kernel.lanes import LANES, WORST_CASE_PHOTO_SECONDS
from darkroom.domain.webhooks.delivery import LEASE_SECONDS
from darkroom_cli.doctor import alarms
from darkroom_cli.doctor.checks import Check, Finding
from darkroom_cli.doctor.facts import Facts
from darkroom_cli.doctor.priority import WORKER, lane_queue
from darkroom_cli.doctor.template import at

GROUP = "Operation"

SWEEPER, DELIVERER = "SweepDueImagesFunction", "DeliverEventFunction"
ENDPOINT_SWEEPER = "SweepDueEndpointsFunction"
SWEEPERS_RULE = f"{SWEEPER}EveryMinute"

VISIBILITY_FACTOR = 6
"""Lambda's advice: a throttled batch is tried again within the visibility timeout
(https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html)."""

P99_ROOM = 2
"""How many times what images take a lease or a queue's retention is at least."""

OLD_DEAD_LETTER_SECONDS = 12 * 24 * 60 * 60
"""Two days before SQS deletes it."""

SILENT_MS = 5 * 60 * 1000
"""A sweeper that has completed no sweep for so long has stopped."""


def _redriving_is_described(facts: Facts) -> Iterator[Finding]:
    if "./darkroom dlq replay" not in facts.checkout.runbook.get("dead-letters", ""):
        yield Finding(subject="docs/runbook.md", problem="its section Dead letters does not say how to replay them")
    for watch in (*alarms.DEAD_LETTERS, *alarms.GIVEN_UP):
        for name, alarm in alarms.watching(facts, watch).items():
            section = re.search(r"docs/runbook\.md#([a-z-]+)", alarm.description)
            if section is None:
                yield Finding(subject=name, problem="its description names no section of the runbook")
            elif section[1] not in facts.checkout.runbook:
                yield Finding(subject=name, problem=f"its description names #{section[1]}, which the runbook lacks")
    for name, queue in facts.dead_letter_queues.items():
        if queue.failed_redrive is not None:
            yield Finding(
                subject=name,
                problem=f"the latest redrive of all its messages failed: {queue.failed_redrive}",
                by_template=False,
            )


def _work_ends_in_time(facts: Facts) -> Iterator[Finding]:
    worker = facts.functions.get(WORKER)
    if worker is not None:
        variable = worker.variables.get("VISIBILITY_SECONDS")
        for lane in LANES:
            queue = facts.queues.get(lane_queue(lane))
            if queue is not None and variable != str(queue.visibility_seconds):
                problem = (
                    f"it is told that a message of {lane_queue(lane)} comes again after {variable} seconds, "
                    f"and it does after {queue.visibility_seconds}"
                )
                yield Finding(subject=WORKER, problem=problem)
        lease_seconds, p99 = worker.timeout_seconds + LEASE_MARGIN_SECONDS, facts.p99_seconds.get(WORKER, 0)
        if p99 * P99_ROOM > lease_seconds:  # guard: doctor-lease-beside-p99
            problem = (
                f"it is busy for {p99:.0f} seconds (p99 of an hour), over half of a claim's lease of {lease_seconds}: "
                "give it more memory or a longer Timeout, or the lane smaller recipes"
            )
            yield Finding(subject=WORKER, problem=problem, by_template=False)
    bounds = {
        DELIVERER: (LEASE_SECONDS, "the lease of a delivery"),
        SWEEPER: (SWEEP_INTERVAL_SECONDS, "the time between two sweeps"),
        ENDPOINT_SWEEPER: (SWEEP_INTERVAL_SECONDS, "the time between two sweeps"),
    }
    for name, (seconds, what) in bounds.items():
        function = facts.functions.get(name)
        if function is not None and function.timeout_seconds >= seconds:
            problem = f"its timeout of {function.timeout_seconds} seconds is not under {what}, {seconds}"
            yield Finding(subject=name, problem=problem)
    for name in sorted({source.function for _, source, _, _ in facts.consumers()}):
        written = at(facts.checkout.resources.get(name, {}), "Timeout")
        if isinstance(written, int) and facts.functions[name].timeout_seconds < written:
            problem = (
                f"it is stopped after {facts.functions[name].timeout_seconds} seconds; its work may need {written}"
            )
            yield Finding(subject=name, problem=problem)


def _no_more_than_they_can(facts: Facts) -> Iterator[Finding]:
    for name, source, _, function in facts.consumers():
        if source.maximum_concurrency is None:
            yield Finding(subject=name, problem="it has no maximum concurrency: a burst takes every execution there is")
        written = at(facts.checkout.resources.get(name, {}), "BatchSize")
        if isinstance(written, int) and source.batch_size > written:
            yield Finding(subject=name, problem=f"a batch has up to {source.batch_size:,} messages, not {written:,}")
        elif source.function == WORKER and source.batch_size * WORST_CASE_PHOTO_SECONDS > function.timeout_seconds:
            problem = (
                f"{source.batch_size} images may take {source.batch_size * WORST_CASE_PHOTO_SECONDS:.0f} seconds, "
                f"and the worker is stopped after {function.timeout_seconds}"
            )
            yield Finding(subject=name, problem=problem)


def _visibility_is_enough(facts: Facts) -> Iterator[Finding]:
    for _, source, queue, function in facts.consumers():
        # guard: doctor-visibility-with-window
        least = VISIBILITY_FACTOR * function.timeout_seconds + source.window_seconds
        if queue.visibility_seconds < least:
            problem = (
                f"a message comes again after {queue.visibility_seconds} seconds; {source.function} needs {least} "
                f"(6 × its timeout of {function.timeout_seconds}, and a batching window of {source.window_seconds})"
            )
            yield Finding(subject=source.source, problem=problem)


def _dead_letters_are_kept(facts: Facts) -> Iterator[Finding]:
    for name, queue in facts.queues.items():
        dead_letter_queue = facts.queue_by_arn(queue.dead_letters) if queue.dead_letters else None
        if dead_letter_queue is not None and dead_letter_queue[1].retention_seconds <= queue.retention_seconds:
            problem = (
                f"it keeps dead letters for {dead_letter_queue[1].retention_seconds:,} seconds, "
                f"and {name} keeps its messages for {queue.retention_seconds:,}: a message keeps its age when it "
                "moves, and may be deleted at once"
            )
            yield Finding(subject=dead_letter_queue[0], problem=problem)
    for name, seconds in facts.oldest_dead_letters.items():
        if seconds >= OLD_DEAD_LETTER_SECONDS:
            problem = f"a dead letter is {seconds / 86_400:.0f} days old, and is deleted after 14"
            yield Finding(subject=name, problem=problem, by_template=False)


def _reconciled(facts: Facts) -> Iterator[Finding]:
    rule = facts.rules.get(SWEEPERS_RULE)
    if rule is None:
        yield Finding(subject=SWEEPERS_RULE, problem="the stack has no such schedule")
    else:
        if not rule.is_enabled:
            yield Finding(subject=SWEEPERS_RULE, problem="it is disabled: nothing is swept")
        if facts.functions[SWEEPER].arn not in rule.targets:
            yield Finding(subject=SWEEPERS_RULE, problem="it does not invoke the sweeper")
    latest = facts.sweeps.get("latest")
    is_new = facts.now - facts.updated_at < SILENT_MS
    if not is_new and (latest is None or facts.now - latest > SILENT_MS):  # guard: doctor-new-stack-without-sweep
        since = "an hour" if latest is None else f"{(facts.now - latest) // 60_000} minutes"
        yield Finding(subject=SWEEPER, problem=f"no sweep has completed for {since}", by_template=False)
    yield from alarms.unheard(facts, alarms.SWEEPS)


CHECKS = (
    Check(
        name="redriving-is-described",
        group=GROUP,
        question="redriving dead letters is in the runbook, and was tried",
        remedy="Deploy this checkout again: each alarm names its section. A redrive that failed is repeated by "
        "./darkroom dlq replay --all.",
        look=_redriving_is_described,
        decisions=["0006-dead-letters-and-replay", "0033-operators-tools"],
    ),
    Check(
        name="work-ends-in-time",
        group=GROUP,
        question="workers finish what they hold before they end",
        remedy="Deploy this checkout again: its timeouts and leases belong together.",
        look=_work_ends_in_time,
        decisions=["0003-retries-and-backoff"],
    ),
    Check(
        name="no-more-than-they-can",
        group=GROUP,
        question="nobody takes more messages than they can work on",
        remedy="Deploy this checkout again: BatchSize and MaximumConcurrency of the mapping.",
        look=_no_more_than_they_can,
    ),
    Check(
        name="visibility-is-enough",
        group=GROUP,
        question="visibility outlasts the longest work",
        remedy="Deploy this checkout again: VisibilityTimeout of the queue.",
        look=_visibility_is_enough,
        decisions=["0003-retries-and-backoff"],
    ),
    Check(
        name="dead-letters-are-kept",
        group=GROUP,
        question="dead letters are kept longer than their source keeps messages",
        remedy="Deploy this checkout again: MessageRetentionPeriod is 14 days for dead letters, 4 for others. "
        "Replay or drop what is old: docs/runbook.md, Expiring.",
        look=_dead_letters_are_kept,
    ),
    Check(
        name="reconciled",
        group=GROUP,
        question="what was accepted is reconciled with what was finished",
        remedy="Enable the schedule again (aws events enable-rule), then docs/runbook.md, Sweeper.",
        look=_reconciled,
        decisions=["0007-what-the-sweeper-owes"],
    ),
)
