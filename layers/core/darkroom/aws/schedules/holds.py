"""The objects in which images wait, in S3, and what wakes them: one Step Functions execution per batch."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from darkroom.aws.kernel.errors import code_of, retryable
from darkroom.aws.kernel.missing import is_missing
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.instants import Milliseconds, timestamp
from darkroom.domain.schedules.hold import MAX_BATCH_BYTES, UnreadableBatch

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_stepfunctions import SFNClient

_NAMES = 10
"""How many names are tried for one batch: an execution that failed or was stopped uses up its name."""

_SERVES = frozenset({"RUNNING", "PENDING_REDRIVE", "SUCCEEDED"})
"""The statuses of executions that have woken the batch or will."""


class HoldsBucket:
    """Implements the `Holds` port with a bucket."""

    def __init__(self, client: S3Client, bucket_name: str) -> None:
        self._client = client
        self._bucket_name = bucket_name

    def put(self, key: str, dumped: bytes) -> None:
        with retryable(f"storing {key}"):
            self._client.put_object(
                Bucket=self._bucket_name,
                Key=key,
                Body=dumped,
                ContentType="application/json",
                ContentEncoding="gzip",
                ChecksumAlgorithm="SHA256",
            )

    def get(self, key: str) -> bytes | None:
        with retryable(f"fetching {key}"):
            try:
                # guard: objects-batch-checksum-mode
                answer = self._client.get_object(Bucket=self._bucket_name, Key=key, ChecksumMode="ENABLED")
            except ClientError as error:
                if not is_missing(self._client, self._bucket_name, key, error):
                    raise
                return None
            if answer["ContentLength"] > MAX_BATCH_BYTES:  # guard: hold-object-size-bound
                raise UnreadableBatch(f"its {answer['ContentLength']} bytes are more than any batch has")
            return answer["Body"].read()

    def delete(self, key: str) -> None:
        with retryable(f"removing {key}"):
            self._client.delete_object(Bucket=self._bucket_name, Key=key)


class HoldExecutions:
    """Implements the `WakeUps` port with executions of `hold_batch`."""

    def __init__(self, client: SFNClient, state_machine_arn: str) -> None:
        self._client = client
        self._state_machine_arn = state_machine_arn

    def set(self, name: str, key: str, wake_at: Milliseconds) -> None:
        document = json.dumps(
            {"key": key, "position": 0, "begins_at": None, "wake_at": timestamp(wake_at)}, sort_keys=True
        )
        for number in range(_NAMES):
            own = name if number == 0 else f"{name}-{number}"
            try:
                with retryable("setting a batch to wake"):
                    # Repeating the same name and input is no error while the first execution runs
                    # (https://docs.aws.amazon.com/step-functions/latest/apireference/API_StartExecution.html).
                    self._client.start_execution(stateMachineArn=self._state_machine_arn, name=own, input=document)
                return
            except ClientError as error:
                if code_of(error) != "ExecutionAlreadyExists":
                    raise
            if self._serves(own):
                return
        raise Retryable(f"{_NAMES} executions of {name} have ended badly")

    def _serves(self, name: str) -> bool:
        """Whether the execution with that name has woken its batch or will: one that failed or was stopped does not."""
        arn = f"{self._state_machine_arn.replace(':stateMachine:', ':execution:')}:{name}"
        with retryable("looking at an execution"):
            # guard: hold-failed-execution-not-started
            return self._client.describe_execution(executionArn=arn)["status"] in _SERVES
