"""Tables, buckets and queues by moto, as template.yaml declares them, and access to them that bypasses their APIs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import boto3
from moto.backends import get_backend
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.dynamodb.models.dynamo_type import DynamoType
from moto.sqs.exceptions import InvalidParameterValue, ReceiptHandleIsInvalid
from moto.sqs.models import Message, SQSBackend

from darkroom.domain.images.image import VERSION_FIELDS, Status
from darkroom.domain.kernel.instants import Milliseconds
from repository.expand_template import is_optional
from tests.simulation.crashes import deployment
from tests.simulation.crashes.scale import AS_DEPLOYED, Scale

REGION = "us-east-1"

EVERYTHING_HEARD = "EverythingHeard"
FORGOTTEN_AT_THE_EDGE = "ForgottenAtTheEdge"
"""A queue that gets all events, and that nobody drains."""

_TOLD_TO_PEOPLE = frozenset({"claimed_by", "correlation_id", "version", *VERSION_FIELDS}) | {
    *("created_at", "accepted_at", "completed_at", "earlier_ends")
}
"""Attributes of a row of which only whether they changed matters: names, counts and past instants."""


@dataclass(frozen=True, kw_only=True)
class DeadLetter:
    """A message in a dead-letter queue."""

    queue: str
    body: str
    explanation: str | None


class Stores:
    """All of them. `references` are the values of `!Ref` in the template, by logical name."""

    def __init__(self, scale: Scale) -> None:
        self.references = {"AWS::StackName": "simulation"}
        self.dead_letter_queues: set[str] = set()
        self.s3 = boto3.client("s3")
        self._make_tables()
        self._make_buckets()
        self._make_queues(scale)
        self._make_topics()
        self._make_secrets()

    def _make_tables(self) -> None:
        dynamodb = boto3.client("dynamodb")
        wanted = ("BillingMode", "AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes")
        for name, properties in deployment.of_type("AWS::DynamoDB::Table").items():
            made: dict[str, Any] = {key: properties[key] for key in wanted if key in properties}
            for several in ("AttributeDefinitions", "GlobalSecondaryIndexes"):
                if several in made:
                    made[several] = [definition for definition in made[several] if not is_optional(definition)]
            if "StreamSpecification" in properties:
                made["StreamSpecification"] = {"StreamEnabled": True, **properties["StreamSpecification"]}
            dynamodb.create_table(TableName=name, **made)
            self.references[name] = name

    def _make_buckets(self) -> None:
        for name, properties in deployment.of_type("AWS::S3::Bucket").items():
            bucket = self.references[name] = name.lower()
            self.s3.create_bucket(Bucket=bucket)
            if versioning := properties.get("VersioningConfiguration"):
                self.s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration=versioning)

    def _make_queues(self, scale: Scale) -> None:
        sqs, queues = boto3.client("sqs"), deployment.of_type("AWS::SQS::Queue")
        for name in sorted(queues, key=lambda name: "RedrivePolicy" in queues[name]):  # dead-letter queues come first
            wanted = ("VisibilityTimeout", "MessageRetentionPeriod")
            attributes: dict[Any, str] = {key: str(queues[name][key]) for key in wanted if key in queues[name]}
            if redrive := queues[name].get("RedrivePolicy"):
                target = deployment.logical_name(redrive["deadLetterTargetArn"])
                self.dead_letter_queues.add(target)
                # A smaller scale follows the template's rule: as many receives as a run has attempts.
                most = redrive["maxReceiveCount"] - AS_DEPLOYED.attempts + scale.attempts
                redriven = {"deadLetterTargetArn": _arn_of(target), "maxReceiveCount": most}
                attributes["RedrivePolicy"] = json.dumps(redriven)
            self.references[name] = sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
        sqs.create_queue(QueueName=EVERYTHING_HEARD)
        owed = sqs.create_queue(QueueName=FORGOTTEN_AT_THE_EDGE)["QueueUrl"]
        self.references["Edge"] = f"https://edge.example,arn:of:distribution,{owed},arn:of:queue,arn:of:signer,86400"

    def _make_topics(self) -> None:
        sns = boto3.client("sns")
        self.references["EventsTopic"] = topic = sns.create_topic(Name="EventsTopic")["TopicArn"]
        attributes = {"RawMessageDelivery": "true"}
        sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=_arn_of(EVERYTHING_HEARD), Attributes=attributes)
        for properties in deployment.of_type("AWS::SNS::Subscription").values():
            if properties["Protocol"] == "sqs":
                wanted = {"FilterPolicy": json.dumps(properties["FilterPolicy"]), **attributes}
                place, named = properties["Endpoint"]["Fn::Select"]
                endpoint = _arn_of(deployment.logical_name(named[place]))
                sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=endpoint, Attributes=wanted)

    def _make_secrets(self) -> None:
        """Secrets of a stack that was updated long ago: nothing comes without a signature any more."""
        client = boto3.client("secretsmanager")
        for name in deployment.of_type("AWS::SecretsManager::Secret"):
            self.references[name] = client.create_secret(Name=name, SecretString=name * 8)["ARN"]
        for secret in get_backend("secretsmanager")[DEFAULT_ACCOUNT_ID][REGION].secrets.values():
            for version in secret.versions.values():
                version["createdate"] -= 24 * 3600

    def environment(self, variables: Mapping[str, Any]) -> dict[str, str]:
        """A function's environment variables with the names of these stores."""
        asked_for = {name: value for name, value in variables.items() if not is_optional(value)}
        return {name: deployment.resolved(value, self.references) for name, value in asked_for.items()}

    def items(self, table: str) -> list[dict[str, Any]]:
        """The items of a table."""
        items = get_backend("dynamodb")[DEFAULT_ACCOUNT_ID][REGION].tables[table].all_items()
        return [{name: _in_json(attribute) for name, attribute in item.attrs.items()} for item in items]

    def put_item(self, table: str, item: dict[str, Any]) -> None:
        """Puts an item into a table without its API, so that no fault strikes."""
        get_backend("dynamodb")[DEFAULT_ACCOUNT_ID][REGION].put_item(table, item)

    def written(self, table: str) -> list[dict[str, Any]]:
        """All writes of a table, as its stream has them."""
        shard = get_backend("dynamodb")[DEFAULT_ACCOUNT_ID][REGION].tables[table].stream_shard
        return [] if shard is None else [record.to_json() for record in shard.items]

    def objects(self, bucket: str) -> dict[str, list[tuple[str, bytes]]]:
        """The versions of each object in the bucket with that logical name, by key, oldest first."""
        keys = get_backend("s3")[DEFAULT_ACCOUNT_ID]["aws"].buckets[self.references[bucket]].keys
        return {
            key: [(str(version.version_id), getattr(version, "value", b"")) for version in keys.getlist(key)]
            for key in keys
        }

    def version_ids(self) -> list[str]:
        """The versions of all objects in versioned buckets."""
        return [
            version_id
            for bucket, properties in deployment.of_type("AWS::S3::Bucket").items()
            if "VersioningConfiguration" in properties
            for _, versions in sorted(self.objects(bucket).items())
            for version_id, _ in versions
        ]

    @property
    def _sqs(self) -> SQSBackend:
        backend: SQSBackend = get_backend("sqs")[DEFAULT_ACCOUNT_ID][REGION]
        return backend

    def messages(self, queue: str) -> list[Any]:
        """All messages in a queue, hidden ones included, as moto keeps them."""
        return list(self._sqs.queues[queue]._messages)

    def send(self, queue: str, body: str, attributes: Mapping[str, Any] | None = None) -> None:
        """Sends a message, as somebody outside Darkroom or SQS itself does."""
        self._sqs.send_message(queue, body, message_attributes=dict(attributes or {}))

    def receive(self, queue: str, most: int) -> list[Message]:
        """What SQS gives to an event source mapping: up to so many messages, with all of their attributes."""
        kept: Any = self._sqs.queues[queue]
        return self._sqs.receive_message(queue, most, 0, int(kept.visibility_timeout), ["All"])

    def delete(self, queue: str, message: Message) -> None:
        """Deletes a message that was received."""
        self._sqs.delete_message(queue, str(message.receipt_handle))

    def tellings_of_the_edge(self) -> list[int]:
        """After how many seconds the edge was told to forget the image, each time."""
        owed = self.messages(FORGOTTEN_AT_THE_EDGE)
        return [max(0, round((message.delayed_until - message.sent_timestamp) / 1000)) for message in owed]

    def dead_letters(self) -> list[DeadLetter]:
        """All dead letters, hidden ones included."""
        return [
            DeadLetter(
                queue=queue,
                body=message.body,
                explanation=message.message_attributes.get("explanation", {}).get("StringValue"),
            )
            for queue in sorted(self.dead_letter_queues)
            for message in self.messages(queue)
        ]

    def state(self, now: Milliseconds) -> tuple[Any, ...]:
        """Everything in them, at that instant, that the future depends on."""
        return (
            [
                (table, [_state_of_item(item) for item in self.items(table)])
                for table in deployment.of_type("AWS::DynamoDB::Table")
            ],
            [
                (bucket, key, version_id, hashlib.sha256(body).digest())
                for bucket in deployment.of_type("AWS::S3::Bucket")
                for key, versions in sorted(self.objects(bucket).items())
                for version_id, body in versions
            ],
            [
                (queue, [self._state_of_message(queue, message, now) for message in self.messages(queue)])
                for queue in deployment.of_type("AWS::SQS::Queue")
            ],
            # How often each was heard does not matter.
            sorted({message.body for message in self.messages(EVERYTHING_HEARD)}),
            self.tellings_of_the_edge(),
        )

    def _state_of_message(self, queue: str, message: Any, now: Milliseconds) -> tuple[Any, ...]:
        return (
            message.body,
            sorted(message.message_attributes),
            message.approximate_receive_count,
            max(now, message.visible_at, message.delayed_until),
            None if queue in self.dead_letter_queues else message.sent_timestamp,
        )


def _in_json(attribute: Any) -> Any:
    """What moto's `to_json` returns, which copies the whole of a value at each of its levels."""
    if not isinstance(attribute, DynamoType):  # an element of a set
        return attribute
    value = attribute.value
    if isinstance(value, dict):
        value = {name: _in_json(inner) for name, inner in value.items()}
    elif isinstance(value, list):
        value = [_in_json(element) for element in value]
    return {attribute.type: value}


def _arn_of(queue: str) -> str:
    return f"arn:aws:sqs:{REGION}:{DEFAULT_ACCOUNT_ID}:{queue}"


def change_visibility(backend: SQSBackend, queue_name: str, receipt_handle: str, visibility_timeout: int) -> None:
    """Makes moto's queues handle ChangeMessageVisibility as SQS does.

    moto counts the twelve hours for which a message may stay hidden from its sending, SQS from its receive; and SQS
    refuses a message that has become visible again
    (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ChangeMessageVisibility.html).
    """
    queue = backend.get_queue(queue_name)
    for message in queue._messages:
        if message.had_receipt_handle(receipt_handle):
            if message.visible:
                raise InvalidParameterValue("Message does not exist or is not available for visibility timeout change.")
            message.change_visibility(visibility_timeout)
            return
    raise ReceiptHandleIsInvalid


def _state_of_item(item: dict[str, Any]) -> list[tuple[str, Any]]:
    if "event_id" in item:
        return [("event_id", item["event_id"])]
    state = {name: value for name, value in item.items() if name not in _TOLD_TO_PEOPLE}
    if "image_id" in item:
        state["works"] = [
            (work["M"]["run"], work["M"]["failed"], "ended_at" in work["M"])
            for work in item.get("works", {"L": []})["L"]
        ]
        if Status(item["status"]["S"]).is_terminal:
            for name in ("enqueued_at", "attempt", "attempts"):  # nothing reads these once the image has ended
                state.pop(name, None)
        else:  # who made the attempts, when, and their error texts are only for people
            state["attempts"] = [
                (attempt["M"]["run"], attempt["M"]["number"], "ended_at" in attempt["M"], "cause" in attempt["M"])
                for attempt in item.get("attempts", {"L": []})["L"]
            ]
    return sorted(state.items())
