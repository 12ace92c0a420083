"""Creates the API key for the local stack's own commands, if its API requires keys."""

from __future__ import annotations

import secrets
import time

import boto3
from botocore.config import Config

from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.tenants import DEFAULT_TENANT, Tenant, Tier
from darkroom_cli.operator.aws.tenant_registry import TenantRegistryTable
from darkroom_cli.operator.operations.tenants.create_key import MakePorts, make_key
from darkroom_cli.operator.ports import TenantRegistry
from local_aws.failures import ApiSilent
from local_aws.processes import Interrupts

# Stopping waits for the call in progress, so no call may take long; on a busy machine it takes several.
_CLIENT = Config(connect_timeout=2, read_timeout=4, retries={"total_max_attempts": 1})
_TRIES = 20
_PAUSE_SECONDS = 0.5


def make_first_key(table_name: str, interrupts: Interrupts) -> str:
    """Create a key of the tenant `default`, whose images use the slow lane, as they do if no keys are required.

    Raises ApiSilent if the table does not answer, and Interrupted.
    """
    return first_key(TenantRegistryTable(boto3.client("dynamodb", config=_CLIENT), table_name), interrupts)


def first_key(tenants: TenantRegistry, interrupts: Interrupts) -> str:
    """The same, for these tenants. A try whose answer is lost leaves a key that nobody knows."""
    trouble = ""
    for _ in range(_TRIES):
        try:
            return _made(tenants)
        except Retryable as error:
            trouble = str(error)
        interrupts.pause(_PAUSE_SECONDS)
    raise ApiSilent(f"The API asks for keys, and none could be made for this stack's own commands: {trouble}")


def _made(tenants: TenantRegistry) -> str:
    tenants.add_tenant(Tenant(tenant_id=DEFAULT_TENANT, tier=Tier.FREE, created_at=_clock()))
    ports = MakePorts(tenants=tenants, clock=_clock, randomness=secrets.token_bytes)
    key, _ = make_key(ports, DEFAULT_TENANT, label="the local stack's own", scopes=None, lives_seconds=None)
    return key


def _clock() -> int:
    return time.time_ns() // 1_000_000
