"""A stack's queues, tables and buckets as CloudFormation knows them: the local stack's, or a deployed one's by name."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, EndpointConnectionError, NoCredentialsError, NoRegionError

from console.api.client import NOT_RUNNING, ApiError
from console.stack.local import local_stack
from darkroom.aws.clients import watch
from darkroom.aws.dead_letters import DeadLetterArchive, DeadLetterQueues, DeadLetterRedrives
from darkroom.aws.images_table import ImagesTable
from darkroom.aws.original_versions import OriginalVersionsBucket
from darkroom.aws.queues import LaneQueues, SqsHoldQueue
from darkroom.aws.tenants_table import TenantsTable
from darkroom.domain.errors import Retryable
from darkroom.ports import UnreadableRow
from stacks.clients import isolated_clients
from stacks.running import NoSuchResource, RunningStack

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

# An operator waits longer than a function may, and no work of others waits for it.
_PATIENT = Config(connect_timeout=5, read_timeout=20, retries={"mode": "standard", "total_max_attempts": 4})

_DEAD_LETTERS = "DeadLetters"


class NoSuchQueue(ApiError):
    """The stack has no queue of dead letters by that name."""


@dataclass(frozen=True, kw_only=True)
class DeadLetterQueue:
    """A queue of dead letters by the name of what it serves, and the queue whose messages end in it."""

    name: str
    url: str
    arn: str
    source_url: str
    source_arn: str


@dataclass(frozen=True, kw_only=True)
class Stack(RunningStack):
    """A stack with what operators' commands work with; `options` is what reaches this stack again."""

    is_local: bool
    options: str
    clock_file: Path | None = None

    @cached_property
    def queues(self) -> Mapping[str, DeadLetterQueue]:
        """The queues of dead letters, by the names of what they serve."""
        with self.explained():
            return _dead_letter_queues(self.client("sqs"), self.physical_ids("AWS::SQS::Queue"))

    @property
    def tenants(self) -> TenantsTable:
        """The tenants and their keys."""
        return TenantsTable(self.client("dynamodb"), self._resource("TenantsTable"))

    @property
    def access(self) -> str:
        """Whom its API answers: the parameter `Access` with which it was deployed."""
        return self.parameters["Access"]

    @property
    def images(self) -> ImagesTable:
        """The rows."""
        return ImagesTable(self.client("dynamodb"), self._resource("ImagesTable"))

    @property
    def original_versions(self) -> OriginalVersionsBucket:
        """The originals with all their versions."""
        return OriginalVersionsBucket(self.client("s3"), self._resource("OriginalsBucket"))

    @property
    def dead_letters(self) -> DeadLetterQueues:
        """The queues of dead letters."""
        sqs = self.client("sqs")
        return DeadLetterQueues(sqs, sqs, {name: queue.url for name, queue in self.queues.items()})

    @property
    def lanes(self) -> LaneQueues:
        """The queues that the dead letters once were in."""
        return LaneQueues(self.client("sqs"), {name: queue.source_url for name, queue in self.queues.items()})

    @property
    def hold_queue(self) -> SqsHoldQueue:
        """The queue of what is to be held until its time."""
        return SqsHoldQueue(self.client("sqs"), self._resource("HoldQueue"))

    @property
    def redrives(self) -> DeadLetterRedrives:
        """Redrives of whole queues."""
        return DeadLetterRedrives(
            self.client("sqs"), {name: (queue.arn, queue.source_arn) for name, queue in self.queues.items()}
        )

    @property
    def archive(self) -> DeadLetterArchive:
        """Where dead letters are kept that SQS will not keep."""
        return DeadLetterArchive(self.client("s3"), self.archive_bucket)

    @property
    def archive_bucket(self) -> str:
        """The bucket of the archive."""
        return self._resource("DeadLetterArchiveBucket")

    @property
    def worker_log_group(self) -> str | None:
        """Where the worker logs."""
        return self.resources.get("TranscodeImageLogs", ("", None))[1]

    def clock(self) -> int:
        """The current instant by the stack's clock: this machine's, but where the local stack's was moved ahead."""
        return time.time_ns() // 1_000_000 + 1000 * _seconds_ahead(self.clock_file)

    def explained(self) -> AbstractContextManager[None]:
        """Turns what its ports raise inside the block into an ApiError that says what to do."""
        return explained(self.name, self.region, is_local=self.is_local)

    def chosen(self, name: str | None) -> tuple[str, ...]:
        """The names of the queues that are meant: that one, or all. Raises NoSuchQueue."""
        if name is None:
            return tuple(self.queues)
        if name not in self.queues:
            raise NoSuchQueue(f"There is no lane {name!r} in {self.name}. It has: {', '.join(self.queues)}.")
        return (name,)

    def _resource(self, logical_id: str) -> str:
        try:
            return self.physical_id(logical_id)
        except NoSuchResource as error:
            raise ApiError(f"{error}: deploy this version of Darkroom there first.") from error


def open_stack(name: str | None, region: str | None, *, environment: Mapping[str, str] = os.environ) -> Stack:
    """The deployed stack of that name, reached with the ordinary AWS credentials; without a name the local one.

    Raises ApiError where there is none or where AWS cannot be asked.
    """
    if name is None:
        record = local_stack(environment, otherwise="Or name a deployed stack: --stack NAME [--region REGION].")
        clients = isolated_clients(record.aws_endpoint_url, record.region, config=_PATIENT)
        stack = Stack(
            name=record.stack_name,
            region=record.region,
            client=_watched(clients),
            is_local=True,
            options="",
            clock_file=None if record.clock_file is None else Path(record.clock_file),
        )
    else:
        clients, region = _deployed_clients(name, region)
        options = f" --stack {name} --region {region}"
        stack = Stack(name=name, region=region, client=_watched(clients), is_local=False, options=options)
    with stack.explained():
        _ = stack.resources  # what is not there, or does not answer, is told before anything is done
    return stack


@contextmanager
def explained(name: str, region: str, *, is_local: bool) -> Iterator[None]:
    """Turns what can go wrong between here and AWS into an ApiError that says what to do."""
    try:
        yield
    except UnreadableRow as error:
        raise ApiError(f"{error}. It is left as it is.") from error
    except Retryable as error:
        raise ApiError(
            f"AWS did not answer ({error}). Nothing is lost, and what was done is done: type the same again."
        ) from error
    except NoCredentialsError as error:
        raise ApiError(
            "No AWS credentials were found. Set AWS_PROFILE, or sign in with `aws configure` or `aws sso login`."
        ) from error
    except EndpointConnectionError as error:
        raise ApiError(NOT_RUNNING if is_local else f"AWS cannot be reached: {error}") from error
    except ClientError as error:
        answer = error.response.get("Error", {})
        code, message = answer.get("Code", "an error"), answer.get("Message", "")
        if (error.operation_name, code) == ("ListStackResources", "ValidationError"):
            raise ApiError(
                f"There is no stack {name} in {region}: see --stack and --region. AWS says: {message}"
            ) from error
        raise ApiError(f"AWS refuses {error.operation_name} in {region} ({code}): {message}") from error
    except BotoCoreError as error:
        raise ApiError(f"AWS cannot be asked: {error}") from error


def _seconds_ahead(clock_file: Path | None) -> int:
    try:
        return 0 if clock_file is None else int(clock_file.read_text())
    except OSError:  # the stack has stopped
        return 0


def _deployed_clients(name: str, region: str | None) -> tuple[Callable[[str], Any], str]:
    try:
        session = boto3.session.Session(region_name=region)
        if session.region_name is None:
            raise NoRegionError
    except NoRegionError as error:
        raise ApiError(f"In which region is {name}? Say --region REGION, or set AWS_REGION.") from error
    except BotoCoreError as error:  # a profile that does not exist, a file that cannot be read
        raise ApiError(f"The AWS configuration cannot be used: {error}") from error
    return lambda service: session.client(service, config=_PATIENT), session.region_name


def _watched(make: Callable[[str], Any]) -> Callable[[str], Any]:
    clients: dict[str, Any] = {}

    def client(service: str) -> Any:
        if service not in clients:
            clients[service] = make(service)
            watch(clients[service])
        return clients[service]

    return client


def _dead_letter_queues(sqs: SQSClient, urls: Mapping[str, str]) -> dict[str, DeadLetterQueue]:
    """Whatever queue of the stack another one names in its RedrivePolicy, so that a new lane needs no new code."""
    attributes = {
        name: sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"] for name, url in urls.items()
    }
    logical_ids = {attributes[name]["QueueArn"]: name for name in urls}
    found = {}
    for source, its in attributes.items():
        target = json.loads(its.get("RedrivePolicy", "{}")).get("deadLetterTargetArn")
        if target in logical_ids:
            logical_id = logical_ids[target]
            name = name_of(logical_id)
            found[name] = DeadLetterQueue(
                name=name, url=urls[logical_id], arn=target, source_url=urls[source], source_arn=its["QueueArn"]
            )
    return dict(sorted(found.items()))


def name_of(logical_id: str) -> str:
    """What a queue of dead letters is called: "FastDeadLetters" serves "fast"."""
    served = logical_id.removesuffix(_DEAD_LETTERS) or logical_id
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", served).lower()
