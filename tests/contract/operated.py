"""A stack whose stores are moto's, as the commands of operators find it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import boto3

from darkroom_cli.operator.operations.kernel.audit_trail import Trail
from darkroom_cli.stack.operators import Stack
from repository.expand_template import resources
from tests.support.fakes.audit import FakeAudit, trail_of
from tests.support.fakes.logs import FakeLogLines

if TYPE_CHECKING:
    from tests.contract.conftest import Aws


@dataclass(frozen=True, kw_only=True)
class OperatedStack(Stack):
    """Its audit log and the functions' logs are in memory; its clock may be behind."""

    audited: FakeAudit = field(default_factory=FakeAudit)
    logged: FakeLogLines = field(default_factory=FakeLogLines)
    seconds_behind: int = 0

    @property
    def audit_log(self) -> Any:
        return self.audited

    @cached_property
    def audit(self) -> Trail:
        return trail_of(self.audited, clock=self.clock)

    @property
    def log_lines(self) -> Any:
        return self.logged

    def clock(self) -> int:
        return time.time_ns() // 1_000_000 - 1000 * self.seconds_behind


def operated_stack(
    aws: Aws,
    *,
    client: Callable[[str], Any] = boto3.client,  # type: ignore[assignment]
    others: Mapping[str, tuple[str, str]] | None = None,
    seconds_behind: int = 0,
) -> OperatedStack:
    """The stack, with the tables of the template and `others` of its resources: type and physical id by logical id."""
    stack = OperatedStack(
        name="shop",
        region="us-east-1",
        client=client,
        is_local=False,
        options=" --stack shop",
        seconds_behind=seconds_behind,
    )
    buckets = {
        "OriginalsBucket": aws.originals_bucket,
        "OutputsBucket": aws.outputs_bucket,
        "UploadsBucket": aws.uploads_bucket,
    }
    stack.__dict__["resources"] = (
        {name: ("AWS::DynamoDB::Table", name) for name in resources("AWS::DynamoDB::Table")}
        | {name: ("AWS::S3::Bucket", physical_id) for name, physical_id in buckets.items()}
        | dict(others or {})
    )
    return stack
