"""A stack of a few resources that drills and repairs change."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from moto import mock_aws

from local_aws.stacks.running import RunningStack

if TYPE_CHECKING:
    from tests.contract.conftest import Aws


class Stack(RunningStack):
    """A stack of a few resources, whose physical ids are given."""

    ids: dict[str, str]

    def physical_id(self, logical_id: str) -> str:
        return self.ids[logical_id]


ALARM: dict[str, Any] = {
    "AlarmName": "unusual",
    "AlarmDescription": "More than usual.",
    "Namespace": "Darkroom/darkroom",
    "MetricName": "BytesAccepted",
    "Dimensions": [{"Name": "service", "Value": "darkroom"}],
    "Statistic": "Sum",
    "Period": 86_400,
    "EvaluationPeriods": 1,
    "ComparisonOperator": "GreaterThanOrEqualToThreshold",
    "Threshold": 100.0,
    "TreatMissingData": "notBreaching",
    "AlarmActions": ["arn:aws:sns:us-east-1:123456789012:warnings"],
    "OKActions": ["arn:aws:sns:us-east-1:123456789012:warnings"],
}


@pytest.fixture
def stack(aws: Aws) -> Iterator[Stack]:
    with mock_aws():
        session: Any = boto3.session.Session()
        client: Any = cache(session.client)

        made = Stack(name="darkroom", region=session.region_name, client=client)
        trust = {"Version": "2012-10-17", "Statement": []}
        role = client("iam").create_role(RoleName="worker", AssumeRolePolicyDocument=json.dumps(trust))["Role"]["Arn"]
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w") as zipped:
            zipped.writestr("app.py", "")
        client("lambda").create_function(
            FunctionName="worker",
            Runtime="python3.13",
            Role=role,
            Handler="app.handler",
            Code={"ZipFile": archive.getvalue()},
            Environment={"Variables": {"SLOW_CONCURRENCY": "10", "OTHER": "stays"}},
        )
        queue = aws.slow_queue_url
        arn = client("sqs").get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        mapping = client("lambda").create_event_source_mapping(FunctionName="worker", EventSourceArn=arn)["UUID"]
        client("events").put_rule(Name="every-minute", ScheduleExpression="rate(1 minute)", State="ENABLED")
        client("cloudwatch").put_metric_alarm(**ALARM)
        object.__setattr__(
            made,
            "ids",
            {
                "Mapping": mapping,
                "Worker": "worker",
                "Role": "worker",
                "Rule": "every-minute",
                "Alarm": "unusual",
                "ImagesTable": aws.images_table,
                "ThroughputTable": aws.throughput_table,
            },
        )
        yield made
