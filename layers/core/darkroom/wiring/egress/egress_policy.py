"""Where webhooks may be delivered and images fetched from, by a function's settings."""

from __future__ import annotations

from darkroom.egress import EgressPolicy
from darkroom.settings import ReachSettings


def policy_of(settings: ReachSettings) -> EgressPolicy:
    """What the deployment allows."""
    return EgressPolicy(ports=settings.webhook_ports, allows_loopback=settings.webhook_hosts == "loopback")
