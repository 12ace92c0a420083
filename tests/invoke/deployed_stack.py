"""A deployed stack in which nothing happens by itself, so that an invocation alone explains all changes."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx
from boto3.dynamodb.types import TypeDeserializer

from darkroom.aws.webhooks.deliveries_table import DeliveriesTable
from darkroom.aws.webhooks.endpoints_table import EndpointsTable
from darkroom_cli.operator.aws.tenant_registry import TenantRegistryTable
from tests.local.local_stack import REPOSITORY, LocalStack, wait_until

EVENTS = REPOSITORY / "events"


class DeployedStack:
    """The embedded stack with its event sources and schedules off, seen through its API, its rows and its objects."""

    def __init__(self, local: LocalStack) -> None:
        self._local = local
        self.outputs = local.outputs
        self._objects, self._rows, self._queues = (local.client(service) for service in ("s3", "dynamodb", "sqs"))
        self.published: dict[str, Any] = {}

    def publish(self, photo: bytes) -> None:
        """Has a photo developed that everybody may see; `published` is its status document."""
        image_id = self.submit(photo, visibility="public")
        wait_until(lambda: self.status(image_id)["status"] == "done", "the public image is done")
        self.published = self.status(image_id)

    def quieten(self) -> None:
        """Switch off everything that would run a function by itself."""
        functions, events = self._local.client("lambda"), self._local.client("events")
        for mapping in functions.list_event_source_mappings()["EventSourceMappings"]:
            functions.update_event_source_mapping(UUID=mapping["UUID"], Enabled=False)
        for rule in events.list_rules()["Rules"]:
            events.disable_rule(Name=rule["Name"])

    def invoke(self, function: str, event: dict[str, Any], folder: Path) -> Any:
        """The answer of `darkroom local invoke`; the test fails, with the function's log, if the function did."""
        file = folder / "event.json"
        file.write_text(json.dumps(event))
        command: list[str | Path] = [REPOSITORY / "darkroom", "local", "invoke", function, "--event", file]
        variables = {**os.environ, "DARKROOM_STATE_DIR": str(self._local.state)}
        ran = subprocess.run(
            command, env=variables, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, f"{ran.stdout}\n{ran.stderr}"
        return json.loads(ran.stdout)

    def submit(self, photo: bytes, **query: str) -> str:
        """Have the deployed API accept a photo; returns its id."""
        url = f"{self._local.api_url}/images"
        accepted = httpx.post(url, params=query, content=photo, trust_env=False, timeout=30)
        assert accepted.status_code == httpx.codes.ACCEPTED, accepted.text
        image_id: str = accepted.json()["id"]
        return image_id

    def ask(self, url: str) -> str:
        """Have the deployed API accept a URL; returns the image's id."""
        accepted = httpx.post(f"{self._local.api_url}/images", json={"url": url}, trust_env=False, timeout=30)
        assert accepted.status_code == httpx.codes.ACCEPTED, accepted.text
        image_id: str = accepted.json()["id"]
        return image_id

    def upload(self, photo: bytes) -> str:
        """Announce a photo to the deployed API and send it by the form; returns its id."""
        announced = {"bytes": len(photo), "sha256": hashlib.sha256(photo).hexdigest()}
        begun = httpx.post(f"{self._local.api_url}/uploads", json=announced, trust_env=False, timeout=30)
        assert begun.status_code == httpx.codes.CREATED, begun.text
        form = begun.json()["upload"]
        sent = httpx.post(form["url"], data=form["fields"], files={"file": photo}, trust_env=False, timeout=30)
        assert sent.status_code == httpx.codes.NO_CONTENT, sent.text
        image_id: str = begun.json()["id"]
        return image_id

    def status(self, image_id: str) -> dict[str, Any]:
        """The status document, by the deployed API."""
        url = f"{self._local.api_url}/images/{image_id}/status"
        document: dict[str, Any] = httpx.get(url, trust_env=False, timeout=30).json()
        return document

    def item(self, image_id: str) -> dict[str, Any]:
        """The image's row as the table has it now."""
        answer = self._rows.get_item(
            TableName=self.outputs["ImagesTableName"], Key={"image_id": {"S": image_id}}, ConsistentRead=True
        )
        item: dict[str, Any] = answer["Item"]
        return item

    def row(self, image_id: str) -> dict[str, Any]:
        """The image's row as it is now."""
        return {name: TypeDeserializer().deserialize(value) for name, value in self.item(image_id).items()}

    def usage(self, tenant_id: str) -> dict[str, dict[str, Any]]:
        """What a tenant used, by day, and what it stores, as `stored`."""
        items = self._rows.query(
            TableName=self.outputs["UsageTableName"],
            KeyConditionExpression="tenant_id = :tenant",
            ExpressionAttributeValues={":tenant": {"S": tenant_id}},
        )["Items"]
        plain = [{name: TypeDeserializer().deserialize(value) for name, value in item.items()} for item in items]
        return {day["day"]: day for day in plain}

    def take_messages(self, output: str) -> list[str]:
        """The bodies of what waits in a queue, which removes them."""
        url, bodies = self.outputs[output], []
        while messages := self._queues.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", []):
            for message in messages:
                self._queues.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
                bodies.append(message["Body"])
        return bodies

    @property
    def endpoints(self) -> EndpointsTable:
        """The tenants' webhook endpoints."""
        return EndpointsTable(self._rows, self.outputs["EndpointsTableName"])

    @property
    def deliveries(self) -> DeliveriesTable:
        """What was noted for them."""
        return DeliveriesTable(self._rows, self.outputs["DeliveriesTableName"])

    @property
    def tenants(self) -> TenantRegistryTable:
        """The tenants and their keys."""
        return TenantRegistryTable(self._rows, self.outputs["TenantsTableName"])

    def invalidations(self) -> int:
        """How many invalidations the distribution had."""
        distribution = self._local.record.extensions["delivery"]["DistributionId"]
        listed = self._local.client("cloudfront").list_invalidations(DistributionId=distribution)
        return len(listed["InvalidationList"].get("Items", []))

    def create_signing_key(self) -> None:
        """Have the distribution trust a first key, and the signer hold it."""
        created = self._local.darkroom("delivery", "keys", "create")
        assert created.returncode == 0, created.stdout

    def lose_message(self, image_id: str) -> None:
        """Leave the image as if its message was never sent: nothing in a lane, and overdue for a look."""
        for lane in ("FastQueueUrl", "SlowQueueUrl"):
            self._queues.purge_queue(QueueUrl=self.outputs[lane])
        self._rows.update_item(
            TableName=self.outputs["ImagesTableName"],
            Key={"image_id": {"S": image_id}},
            UpdateExpression="SET due_at = :past",
            ExpressionAttributeValues={":past": {"N": str(int(time.time() * 1000) - 1000)}},
        )

    def messages(self) -> list[dict[str, Any]]:
        """The messages that wait in the lanes."""
        received = [
            message
            for lane in ("FastQueueUrl", "SlowQueueUrl")
            for message in self._queues.receive_message(QueueUrl=self.outputs[lane], MaxNumberOfMessages=10).get(
                "Messages", []
            )
        ]
        return [json.loads(message["Body"]) for message in received]

    def put_dead_letter(self, body: str) -> None:
        """Put a dead letter among those of the slow lane."""
        self._queues.send_message(QueueUrl=self.outputs["SlowDeadLettersUrl"], MessageBody=body)

    def take_dead_letters(self) -> list[str]:
        """Take the dead letters of the slow lane, which removes them."""
        return self.take_messages("SlowDeadLettersUrl")

    def holds(self) -> dict[str, bytes]:
        """The batches in which images wait, by their keys."""
        bucket = self.outputs["HoldsBucketName"]
        listed = self._objects.list_objects_v2(Bucket=bucket).get("Contents", [])
        return {entry["Key"]: self._body(bucket, entry["Key"]) for entry in listed}

    def put_hold(self, key: str, dumped: bytes) -> None:
        """A batch in which images wait."""
        self._objects.put_object(Bucket=self.outputs["HoldsBucketName"], Key=key, Body=dumped)

    def turns(self) -> list[dict[str, Any]]:
        """The inputs of the executions."""
        client, machine = self._local.client("stepfunctions"), self.outputs["HoldBatchStateMachineArn"]
        return [
            json.loads(client.describe_execution(executionArn=execution["executionArn"])["input"])
            for execution in client.list_executions(stateMachineArn=machine)["executions"]
        ]

    def original(self, image_id: str) -> bytes:
        """The stored original of an image."""
        return self._body(self.outputs["OriginalsBucketName"], f"originals/{image_id}")

    def variants(self, image_id: str) -> dict[str, bytes]:
        """The stored outputs of an image, by their file names."""
        bucket, prefix = self.outputs["OutputsBucketName"], f"outputs/{image_id}/"
        listed = self._objects.list_objects_v2(Bucket=bucket, Prefix=prefix).get("Contents", [])
        return {entry["Key"].rsplit("/", 1)[1]: self._body(bucket, entry["Key"]) for entry in listed}

    def _body(self, bucket: str, key: str) -> bytes:
        body: bytes = self._objects.get_object(Bucket=bucket, Key=key)["Body"].read()
        return body


def sample_event(function: str) -> dict[str, Any]:
    """The function's sample event in `events/`."""
    event: dict[str, Any] = json.loads((EVENTS / f"{function}.json").read_text())
    return event
