"""The executions that wake held batches, ended by an operator who releases the images at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from darkroom.aws.kernel.errors import code_of, retryable
from darkroom.domain.kernel.errors import Retryable

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_stepfunctions import SFNClient


class HoldReleases:
    """Implements the `Releases` port with the running executions of `hold_batch`. `mapping` is the hold queue's event
    source, if the stack still has it."""

    def __init__(
        self, client: SFNClient, lambda_client: LambdaClient, state_machine_arn: str, mapping: str | None
    ) -> None:
        self._client = client
        self._lambda = lambda_client
        self._state_machine_arn = state_machine_arn
        self._mapping = mapping

    def hold_no_more(self) -> None:
        if self._mapping is None:
            return
        with retryable("disabling the hold queue's event source"):
            try:
                self._lambda.update_event_source_mapping(UUID=self._mapping, Enabled=False)
            except ClientError as error:
                if code_of(error) == "ResourceInUseException":  # it is being changed or deleted
                    raise Retryable("the hold queue's event source is being changed") from error
                if code_of(error) != "ResourceNotFoundException":
                    raise

    def waiting(self) -> Iterator[str]:
        pages = self._client.get_paginator("list_executions").paginate(
            stateMachineArn=self._state_machine_arn, statusFilter="RUNNING"
        )
        with retryable("listing executions"):
            for page in pages:
                yield from [execution["executionArn"] for execution in page["executions"]]

    def stop(self, name: str) -> None:
        with retryable("stopping an execution"):
            try:
                self._client.stop_execution(executionArn=name, cause="darkroom delay stop")
            except ClientError as error:
                # An ended one is answered by the first, and by the emulator with the second.
                if code_of(error) not in ("ExecutionDoesNotExist", "ValidationException"):
                    raise
