"""A stack's queues, tables and buckets, found through CloudFormation: the local stack's, or a deployed one's."""

from __future__ import annotations

import json
import os
import re
import secrets
import threading
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

from darkroom.aws.bulk.backfills_table import BackfillsTable
from darkroom.aws.bulk.batches_table import BatchesTable
from darkroom.aws.bulk.manifests_bucket import ManifestsBucket
from darkroom.aws.bulk.reconciliations_table import ReconciliationsTable
from darkroom.aws.bulk.schedules_table import SchedulesTable
from darkroom.aws.dead_letters.dead_letters import DeadLetterArchive, DeadLetterQueues
from darkroom.aws.events.events_topic import SnsTopic
from darkroom.aws.images.outcomes_table import OutcomesTable
from darkroom.aws.images.queues import LaneQueues, SqsHoldQueue
from darkroom.aws.images.throughput_table import ThroughputTable
from darkroom.aws.kernel.clients import watch
from darkroom.aws.kernel.secrets import StoredSecret
from darkroom.aws.kernel.signing import MessageSigner
from darkroom.aws.tenants.token_buckets_table import TokenBucketsTable
from darkroom.aws.usage.usage_table import UsageTable
from darkroom.aws.webhooks.deliveries_table import DeliveriesTable
from darkroom.aws.webhooks.endpoints_table import EndpointsTable
from darkroom.domain.images.pictures import EdgeUrls
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.lanes import LANES, Lane, lanes_with
from darkroom.parts import PARTS
from darkroom.ports.kernel import UnreadableRow
from darkroom_cli.operator.aws.alarms import CloudWatchAlarms
from darkroom_cli.operator.aws.audit_log import AuditLog
from darkroom_cli.operator.aws.batch_registry import BatchRegistryTable
from darkroom_cli.operator.aws.hold_releases import HoldReleases
from darkroom_cli.operator.aws.image_registry import ImageRegistryTable
from darkroom_cli.operator.aws.lane_event_sources import LaneEventSources
from darkroom_cli.operator.aws.log_groups import LogGroups
from darkroom_cli.operator.aws.measurements import CloudWatchMeasurements
from darkroom_cli.operator.aws.original_versions import OriginalVersionsBucket
from darkroom_cli.operator.aws.pause_registry import PauseRegistryTable
from darkroom_cli.operator.aws.queue_counts import SqsQueueCounts
from darkroom_cli.operator.aws.redrives import DeadLetterRedrives
from darkroom_cli.operator.aws.tenant_registry import TenantRegistryTable
from darkroom_cli.operator.operations.kernel.audit_trail import Trail
from darkroom_cli.stack.local import local_stack
from darkroom_cli.terminal import display
from darkroom_client.client import NOT_RUNNING, ApiError
from local_aws.stacks.clients import isolated_clients, of_account
from local_aws.stacks.running import NoSuchResource, RunningStack

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

# An operator can wait longer than a function may, and no other work waits for it. `top` reads in up to 40 threads.
_PATIENT = Config(
    connect_timeout=5, read_timeout=20, retries={"mode": "standard", "total_max_attempts": 4}, max_pool_connections=40
)

_QUEUE, _DEAD_LETTERS = "Queue", "DeadLetters"
_AUDIT = "AuditLogs"
_NO_LINES = frozenset({"HoldBatchLogs", _AUDIT})
"""Log groups without lines of functions."""


class NoSuchQueue(ApiError):
    """The stack has no dead-letter queue by that name."""


@dataclass(frozen=True, kw_only=True)
class DeadLetterQueue:
    """A dead-letter queue, named after what it serves, and the queue whose messages end in it."""

    name: str
    url: str
    arn: str
    source_url: str
    source_arn: str


@dataclass(frozen=True, kw_only=True)
class Stack(RunningStack):
    """A stack with everything that operators' commands use; `options` are those that reach this stack again."""

    is_local: bool
    options: str
    clock_file: Path | None = None

    @cached_property
    def queues(self) -> Mapping[str, DeadLetterQueue]:
        """The dead-letter queues, by the names of what they serve, but those of consumers and of deliveries: no image's
        row says what to do with their letters."""
        with self.explained():
            return _dead_letter_queues(self.client("sqs"), self._queues_of_images)

    @property
    def _queues_of_images(self) -> Mapping[str, str]:
        """The URLs of the queues by their logical ids, but those of consumers and of deliveries."""
        consumers = {name.removesuffix("Subscription") for name in self.physical_ids("AWS::SNS::Subscription")}
        consumers |= {"Usage", "Webhooks"}  # whose queues stay when their part goes
        others = {*consumers, "Delivery"}
        return {
            name: url
            for name, url in self.physical_ids("AWS::SQS::Queue").items()
            if name.removesuffix("Queue").removesuffix(_DEAD_LETTERS) not in others
        }

    @property
    def work_queues(self) -> Mapping[str, str]:
        """The URLs of the queues of work, by the names of what they serve."""
        urls = self.physical_ids("AWS::SQS::Queue").items()
        return {name_of(name.removesuffix(_QUEUE)): url for name, url in urls if name.endswith(_QUEUE)}

    @property
    def queues_of_given_up(self) -> Mapping[str, str]:
        """The URLs of the queues of what was given up, by the names of what they serve: all others."""
        urls = self.physical_ids("AWS::SQS::Queue").items()
        return {name_of(name): url for name, url in urls if not name.endswith(_QUEUE)}

    @property
    def dead_letters_of_images(self) -> DeadLetterQueues:
        """The dead-letter queues of `queues`, told by their names alone, without asking SQS for each queue's policy."""
        sqs = self.client("sqs")
        urls = {name_of(name): url for name, url in self._queues_of_images.items() if name.endswith(_DEAD_LETTERS)}
        return DeadLetterQueues(sqs, sqs, urls)

    @property
    def queue_counts(self) -> SqsQueueCounts:
        """How many messages the queues of work have."""
        return SqsQueueCounts(self.client("sqs"), self.work_queues)

    @property
    def given_up_counts(self) -> SqsQueueCounts:
        """How many messages the queues of what was given up have."""
        return SqsQueueCounts(self.client("sqs"), self.queues_of_given_up)

    @property
    def service(self) -> Mapping[str, Lane]:
        """The lanes, each with the number of workers that it was deployed with."""
        with self.explained():
            return lanes_with({name: int(self.parameters[f"{name.capitalize()}Concurrency"]) for name in LANES})

    @property
    def throughput(self) -> ThroughputTable:
        """What the workers of each lane did."""
        return ThroughputTable(self.client("dynamodb"), self._resource("ThroughputTable"))

    @property
    def outcome_counts(self) -> OutcomesTable:
        """How the attempts and images of each lane ended."""
        return OutcomesTable(self.client("dynamodb"), self._resource("ThroughputTable"))

    @property
    def alarms(self) -> CloudWatchAlarms:
        """The alarms."""
        kinds = ("AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm")
        names = {physical_id: name for kind in kinds for name, physical_id in self.physical_ids(kind).items()}
        return CloudWatchAlarms(self.client("cloudwatch"), names, warnings=self._resource("WarningAlarms"))

    @property
    def measurements(self) -> CloudWatchMeasurements:
        """What CloudWatch measures."""
        urls = self.work_queues
        names = {lane: urls[lane].rpartition("/")[2] for lane in LANES if lane in urls}
        functions = self.physical_ids("AWS::Lambda::Function").items()
        return CloudWatchMeasurements(
            self.client("cloudwatch"),
            names,
            namespace=f"Darkroom/{self.name}",
            function_names={in_words(name.removesuffix("Function")): physical_id for name, physical_id in functions},
        )

    @property
    def tenants(self) -> TenantRegistryTable:
        """The tenants and their keys."""
        return TenantRegistryTable(self.client("dynamodb"), self._resource("TenantsTable"))

    @property
    def access(self) -> str:
        """Who may call its API: the parameter `Access` with which it was deployed."""
        return self.parameters["Access"]

    @property
    def parts(self) -> frozenset[str]:
        """The optional parts with which it was deployed; what an older version deployed has all."""
        return _parts_with(self.parameters)

    def parts_by_now(self) -> frozenset[str]:
        """The same, by now: CloudFormation is asked anew. Raises ApiError while the stack is being changed: functions
        of a part may still run then."""
        status, parameters = self.status_and_parameters()
        if status.endswith("_IN_PROGRESS"):  # guard: parts-purge-no-deployment
            raise ApiError(f"{self.name} is being changed ({status}). Wait until that has ended.")
        return _parts_with(parameters)

    @property
    def pauses(self) -> PauseRegistryTable:
        """The pauses of lanes and tenants; the table stays when its part goes."""
        return PauseRegistryTable(self.client("dynamodb"), self._resource("PausesTable"))

    @property
    def batches(self) -> BatchRegistryTable:
        """The tenants' batches; the table stays when its part goes."""
        manifests = ManifestsBucket(self.client("s3"), self._resource("UploadsBucket"))
        return BatchRegistryTable(self.client("dynamodb"), self._resource("BatchesTable"), manifests)

    @property
    def batch_rows(self) -> BatchesTable:
        """The same, as the product reads them."""
        return BatchesTable(self.client("dynamodb"), self._resource("BatchesTable"))

    @property
    def reconciliations(self) -> ReconciliationsTable:
        """The reconciliation and the differences that it knows, in the batches' table."""
        return ReconciliationsTable(self.client("dynamodb"), self._resource("BatchesTable"))

    @property
    def backfills(self) -> BackfillsTable:
        """The backfills; they are in the batches' table."""
        return BackfillsTable(self.client("dynamodb"), self._resource("BatchesTable"))

    @property
    def schedules(self) -> SchedulesTable:
        """The schedules of recurring jobs; they are in the batches' table."""
        return SchedulesTable(self.client("dynamodb"), self._resource("BatchesTable"))

    @property
    def lane_sources(self) -> LaneEventSources:
        """What makes workers take the lanes' messages."""
        names = {lane: f"TranscodeImageFunction{lane.capitalize()}Lane" for lane in LANES}
        return LaneEventSources(
            self.client("lambda"),
            {lane: self.physical_id(logical_id) for lane, logical_id in names.items() if logical_id in self},
        )

    @property
    def images(self) -> ImageRegistryTable:
        """The images' rows."""
        return ImageRegistryTable(self.client("dynamodb"), self._resource("ImagesTable"))

    @property
    def events_topic(self) -> str:
        """The ARN of the topic of all events."""
        return self._resource("EventsTopic")

    @property
    def topic(self) -> SnsTopic:
        """The topic of all events."""
        return SnsTopic(self.client("sns"), self.events_topic, self.signer, source=f"/darkroom/{self.name}")

    @property
    def edge(self) -> EdgeUrls:
        """Where public images are, by the parameter of that name."""
        return EdgeUrls(base=self.parameters.get("Edge", "").partition(",")[0])

    @property
    def usage(self) -> UsageTable:
        """What tenants used."""
        return UsageTable(self.client("dynamodb"), self._resource("UsageTable"), self._resource("CountedEventsTable"))

    @property
    def token_buckets(self) -> TokenBucketsTable:
        """What tenants may still ask for at this moment."""
        return TokenBucketsTable(self.client("dynamodb"), self._resource("TokenBucketsTable"))

    @property
    def endpoints(self) -> EndpointsTable:
        """The tenants' webhooks."""
        return EndpointsTable(self.client("dynamodb"), self._resource("EndpointsTable"))

    @property
    def deliveries(self) -> DeliveriesTable:
        """What was delivered to webhooks, or is to be."""
        return DeliveriesTable(self.client("dynamodb"), self._resource("DeliveriesTable"))

    @property
    def original_versions(self) -> OriginalVersionsBucket:
        """The originals with all their versions."""
        return OriginalVersionsBucket(self.client("s3"), self._resource("OriginalsBucket"))

    @property
    def dead_letters(self) -> DeadLetterQueues:
        """The dead-letter queues."""
        sqs = self.client("sqs")
        return DeadLetterQueues(sqs, sqs, {name: queue.url for name, queue in self.queues.items()})

    @property
    def signer(self) -> MessageSigner:
        """Signs messages, as the functions do."""
        arn = self._resource("MessageKey")
        return MessageSigner(StoredSecret(lambda: self.client("secretsmanager"), arn, clock=self.clock), self.clock)

    @property
    def lanes(self) -> LaneQueues:
        """The queues from which the dead letters came."""
        return LaneQueues(
            self.client("sqs"), {name: queue.source_url for name, queue in self.queues.items()}, self.signer
        )

    @property
    def hold_queue(self) -> SqsHoldQueue:
        """The queue of images to hold until their time."""
        return SqsHoldQueue(self.client("sqs"), self._resource("HoldQueue"), self.signer)

    @property
    def releases(self) -> HoldReleases:
        """The batches that wait for their release; also while the stack is being removed."""
        mappings = self.physical_ids("AWS::Lambda::EventSourceMapping")
        return HoldReleases(
            self.client("stepfunctions"),
            self.client("lambda"),
            self._resource("HoldBatchStateMachine"),
            mappings.get("HoldImagesFunctionHoldQueue"),
        )

    @property
    def redrives(self) -> DeadLetterRedrives:
        """Redrives of whole queues."""
        return DeadLetterRedrives(
            self.client("sqs"), {name: (queue.arn, queue.source_arn) for name, queue in self.queues.items()}
        )

    @property
    def archive(self) -> DeadLetterArchive:
        """The archive of dead letters that SQS deletes."""
        return DeadLetterArchive(self.client("s3"), self.archive_bucket)

    @property
    def archive_bucket(self) -> str:
        """The bucket of the archive."""
        return self._resource("DeadLetterArchiveBucket")

    @property
    def log_lines(self) -> LogGroups:
        """The logs of the functions and of the API, by the names of the functions' folders and "api"."""
        return LogGroups(self.client("logs"), self.log_groups)

    @property
    def log_groups(self) -> Mapping[str, str]:
        """The names of these logs' groups."""
        names = self.physical_ids("AWS::Logs::LogGroup")
        return {in_words(name.removesuffix("Logs")): group for name, group in names.items() if name not in _NO_LINES}

    @cached_property
    def audit_log(self) -> AuditLog:
        """What operators did."""
        return AuditLog(
            self.client("logs"),
            self._resource(_AUDIT),
            stack=self.name,
            caller=lambda: str(self.client("sts").get_caller_identity()["Arn"]),
        )

    @property
    def audit(self) -> Trail:
        """Where the operations write what they do."""
        return Trail(log=self.audit_log, clock=self.clock, randomness=secrets.token_bytes, on_missed=display.complain)

    def clock(self) -> int:
        """The current instant by the stack's clock: this machine's, unless the local stack's was moved ahead."""
        return time.time_ns() // 1_000_000 + 1000 * _seconds_ahead(self.clock_file)

    def explained(self) -> AbstractContextManager[None]:
        """Turns what its ports raise inside the block into an ApiError that says what to do."""
        return explained(self.name, self.region, is_local=self.is_local)

    def chosen(self, name: str | None) -> tuple[str, ...]:
        """The names of the chosen queues: that one, or all. Raises NoSuchQueue."""
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


def _parts_with(parameters: Mapping[str, str]) -> frozenset[str]:
    return frozenset(part for part in PARTS if parameters.get(part.capitalize(), "true") == "true")


def open_stack(name: str | None, region: str | None, *, environment: Mapping[str, str] = os.environ) -> Stack:
    """The deployed stack of that name, reached with the ordinary AWS credentials; without a name the local one.

    Raises ApiError if there is none or AWS cannot be asked.
    """
    if name is None:
        record = local_stack(environment, otherwise="name a deployed stack: --stack NAME [--region REGION].")
        credentials = of_account(record.aws_secret)
        clients = isolated_clients(record.aws_endpoint_url, record.region, credentials, config=_PATIENT)
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
        _ = stack.resources  # a missing or silent stack is reported before anything is done
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
            f"AWS did not answer ({error}). Nothing is lost, and what was done is done: run the same command again."
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
        # The AWS command line reads AWS_REGION, and boto3 only AWS_DEFAULT_REGION.
        session = boto3.session.Session(region_name=region or os.environ.get("AWS_REGION") or None)
        if session.region_name is None:
            raise NoRegionError
    except NoRegionError as error:
        raise ApiError(f"In which region is {name}? Use --region REGION, or set AWS_REGION.") from error
    except BotoCoreError as error:  # a profile that does not exist, a file that cannot be read
        raise ApiError(f"The AWS configuration cannot be used: {error}") from error
    return lambda service: session.client(service, config=_PATIENT), session.region_name


def _watched(make: Callable[[str], Any]) -> Callable[[str], Any]:
    clients: dict[str, Any] = {}
    lock = threading.Lock()  # threads may share clients, but not the session that creates them

    def client(service: str) -> Any:
        with lock:
            if service not in clients:
                clients[service] = make(service)
                watch(clients[service])
            return clients[service]

    return client


def _dead_letter_queues(sqs: SQSClient, urls: Mapping[str, str]) -> dict[str, DeadLetterQueue]:
    """Every queue of the stack that another one names in its RedrivePolicy, so a new lane needs no new code."""
    attributes = {
        name: sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"] for name, url in urls.items()
    }
    logical_ids = {attributes[name]["QueueArn"]: name for name in urls}
    queues = {}
    for source, queue in attributes.items():
        target = json.loads(queue.get("RedrivePolicy", "{}")).get("deadLetterTargetArn")
        if target in logical_ids:
            logical_id = logical_ids[target]
            name = name_of(logical_id)
            queues[name] = DeadLetterQueue(
                name=name, url=urls[logical_id], arn=target, source_url=urls[source], source_arn=queue["QueueArn"]
            )
    return dict(sorted(queues.items()))


def name_of(logical_id: str) -> str:
    """The name of a dead-letter queue: "FastDeadLetters" serves "fast"."""
    return in_words(logical_id.removesuffix(_DEAD_LETTERS) or logical_id)


def in_words(name: str) -> str:
    """SubmitImage → submit_image."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
