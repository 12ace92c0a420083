"""What the operations of pausing need of a stack."""

from __future__ import annotations

from darkroom_cli.operator.operations.kernel.rate_limiter import RateLimiter
from darkroom_cli.operator.operations.kernel.retry_transient import TransientRetry
from darkroom_cli.operator.operations.pauses.list_pauses import ListPausesPorts
from darkroom_cli.operator.operations.pauses.pause_work import PauseWorkPorts
from darkroom_cli.operator.operations.pauses.resume_work import ResumeWorkPorts
from darkroom_cli.operator.operations.webhooks.pause_webhook import PauseWebhookPorts
from darkroom_cli.stack.operators import Stack
from darkroom_cli.terminal.many import IMAGES_PER_SECOND


def to_pause(stack: Stack, patience: TransientRetry) -> PauseWorkPorts:
    """What pausing needs."""
    return PauseWorkPorts(
        pauses=stack.pauses, sources=stack.lane_sources, clock=stack.clock, patience=patience, audit=stack.audit
    )


def to_resume(stack: Stack, patience: TransientRetry) -> ResumeWorkPorts:
    """What resuming needs."""
    return ResumeWorkPorts(
        pauses=stack.pauses,
        sources=stack.lane_sources,
        images=stack.images,
        clock=stack.clock,
        patience=patience,
        pace=RateLimiter(per_second=IMAGES_PER_SECOND, clock=stack.clock, pause=patience.pause),
        audit=stack.audit,
    )


def to_change_webhook(stack: Stack) -> PauseWebhookPorts:
    """What pausing and resuming a webhook needs."""
    return PauseWebhookPorts(endpoints=stack.endpoints, clock=stack.clock, audit=stack.audit)


def to_list(stack: Stack) -> ListPausesPorts:
    """What listing needs."""
    return ListPausesPorts(
        pauses=stack.pauses,
        sources=stack.lane_sources,
        images=stack.images,
        queues=stack.queue_counts,
        endpoints=stack.endpoints,
        deliveries=stack.deliveries,
        clock=stack.clock,
        parts=stack.parts,
    )
