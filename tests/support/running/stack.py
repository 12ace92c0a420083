"""A stack on the embedded AWS, as a test sees it from outside: its outputs, its functions, its clients."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from darkroom.aws.dead_letters.dead_letters import EXPLANATION
from darkroom.aws.images.images_table import from_item
from darkroom.aws.kernel.secrets import StoredSecret
from darkroom.aws.kernel.signing import MessageSigner
from darkroom.domain.images.image import Image
from local_aws.stacks.running import LocalStack
from repository.report import ROOT

LANE = "slow"
"""The lane that every upload uses."""


@dataclass(frozen=True, kw_only=True)
class DeadLetter:
    """A dead letter: its image and run, and its explanation, if it has one."""

    image_id: str
    run: int
    explanation: dict[str, Any] | None


def _clock() -> int:
    return time.time_ns() // 1_000_000


def _dead_letter(message: dict[str, Any]) -> DeadLetter:
    body = json.loads(message["Body"])
    attribute = message.get("MessageAttributes", {}).get(EXPLANATION)
    explanation = None if attribute is None else json.loads(attribute["StringValue"])
    return DeadLetter(image_id=body["image_id"], run=body["run"], explanation=explanation)


@dataclass(frozen=True, kw_only=True)
class Stack(LocalStack):
    """The stack whose `stack.json` lies in the folder `state`."""

    @property
    def gateway_url(self) -> str:
        """The address of AWS's own services, bypassing any disturbance."""
        return self.record.aws_endpoint_url

    def darkroom(self, *arguments: str) -> str:
        """Run a command of `./darkroom` against this stack and return its output."""
        done = subprocess.run(
            [ROOT / "darkroom", *arguments],
            env={**os.environ, "DARKROOM_STATE_DIR": str(self.state)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return f"exit status {done.returncode}: {done.stdout}"

    def key_of_tenant(self, tenant: str, *, tier: str, requests_per_second: int, burst: int) -> str:
        """A new key of a tenant."""
        limits = ("--requests-per-second", str(requests_per_second), "--burst", str(burst))
        added = self.darkroom("tenants", "add", tenant, "--tier", tier, *limits)
        made = self.darkroom("keys", "create", tenant)
        key = re.search(r"\bdr_\w+", made)
        if key is None:
            raise RuntimeError(f"There is no key for {tenant}:\n{added}{made}")
        return key[0]

    def send(self, output: str, body: str, *, group: str) -> None:
        """Send a message to a queue, by the output that names it, signed as the stack's own are."""
        keys = StoredSecret(lambda: self.client("secretsmanager"), self.physical_id("MessageKey"), clock=_clock)
        queue = output.removesuffix("QueueUrl").lower()
        signed = MessageSigner(keys, _clock).signed(queue, group=group, body=body)
        self.client("sqs").send_message(QueueUrl=self.output(output), **signed)

    def sweep(self) -> dict[str, Any]:
        """Run the sweeper now, as its schedule does every minute."""
        answer = self.client("lambda").invoke(FunctionName=self.physical_id("SweepDueImagesFunction"), Payload=b"{}")
        summary: dict[str, Any] = json.loads(answer["Payload"].read())
        return summary

    def rows(self) -> Iterator[Image]:
        """Every row of the Images table."""
        return map(from_item, self.items())

    def items(self, **projection: Any) -> Iterator[dict[str, Any]]:
        """The item of every row, readable or not."""
        pages = self.client("dynamodb").get_paginator("scan")
        for page in pages.paginate(TableName=self.output("ImagesTableName"), ConsistentRead=True, **projection):
            yield from page["Items"]

    def row(self, image_id: str) -> Image | None:
        """One row, as it is now."""
        answer = self.client("dynamodb").get_item(
            TableName=self.output("ImagesTableName"), Key={"image_id": {"S": image_id}}, ConsistentRead=True
        )
        return from_item(answer["Item"]) if "Item" in answer else None

    def dead_letters(self) -> tuple[DeadLetter, ...]:
        """The dead letters of the lane, up to ten; they stay as visible as they are."""
        answer = self.client("sqs").receive_message(
            QueueUrl=self.output("SlowDeadLettersUrl"),
            MaxNumberOfMessages=10,
            VisibilityTimeout=0,
            MessageAttributeNames=[EXPLANATION],
        )
        return tuple(_dead_letter(message) for message in answer.get("Messages", ()))

    def waiting_messages(self) -> int:
        """Messages in the lane, hidden or not, without delayed ones."""
        return self.messages("SlowQueueUrl", "", "NotVisible")

    def messages(self, output: str, *kinds: str) -> int:
        """Messages in a queue, by the output that names it: those of the given kinds, or all."""
        names: Any = [f"ApproximateNumberOfMessages{kind}" for kind in kinds or ("", "NotVisible", "Delayed")]
        attributes = self.client("sqs").get_queue_attributes(QueueUrl=self.output(output), AttributeNames=names)
        return sum(map(int, attributes["Attributes"].values()))

    def entity_tags(self) -> dict[str, str]:
        """The ETags of all variants' objects, by key: S3 computes them from the bytes."""
        pages = self.client("s3").get_paginator("list_objects_v2")
        return {
            item["Key"]: item["ETag"]
            for page in pages.paginate(Bucket=self.output("OutputsBucketName"), Prefix="outputs/")
            for item in page.get("Contents", ())
        }

    def holds(self) -> list[str]:
        """The keys of the batches that are waiting."""
        pages = self.client("s3").get_paginator("list_objects_v2").paginate(Bucket=self.output("HoldsBucketName"))
        return [item["Key"] for page in pages for item in page.get("Contents", ())]

    def executions(self) -> list[dict[str, Any]]:
        """The executions that hold batches, or held them."""
        pages = self.client("stepfunctions").get_paginator("list_executions")
        arn = self.output("HoldBatchStateMachineArn")
        return [execution for page in pages.paginate(stateMachineArn=arn) for execution in page["executions"]]

    def failed_tasks(self, execution_arn: str) -> int:
        """How often a task of an execution failed, whether it was retried or not."""
        pages = self.client("stepfunctions").get_paginator("get_execution_history").paginate(executionArn=execution_arn)
        return sum(event["type"] in ("TaskFailed", "TaskTimedOut") for page in pages for event in page["events"])

    def log_messages(self, logical_id: str) -> Iterator[str]:
        """The events of a log group, oldest first."""
        pages = self.client("logs").get_paginator("filter_log_events")
        for page in pages.paginate(logGroupName=self.physical_id(logical_id)):
            yield from (event["message"] for event in page["events"])

    def log_lines(self, logical_id: str) -> Iterator[dict[str, Any]]:
        """What a function has logged in JSON, oldest first."""
        return (json.loads(message) for message in self.log_messages(logical_id) if message.startswith("{"))
