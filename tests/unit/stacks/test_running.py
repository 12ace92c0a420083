"""`stack.json`, and the handle on the stack that it describes."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from darkroom_cli.stack.local import HOME
from local_aws.stacks.record import AnotherVersion, StackRecord, read_record, record_file, state_folder, write_record
from local_aws.stacks.running import LocalStack, NoSuchResource, RunningStack


def record(port: int = 1) -> StackRecord:
    return StackRecord(
        api_url=f"http://127.0.0.1:{port}",
        aws_endpoint_url=f"http://127.0.0.1:{port + 1}",
        region="us-east-1",
        stack_name="darkroom-local",
        aws_secret="secret of this run",
        outputs={"ImagesTableName": f"images-{port}"},
    )


def test_what_was_written_is_read_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    write_record(record_file(tmp_path), record())
    assert read_record(record_file(tmp_path)) == record()
    assert [file.name for file in tmp_path.iterdir()] == ["stack.json"]
    assert stat.S_IMODE(record_file(tmp_path).stat().st_mode) == 0o600, "it has the stack's key and secret"
    assert "secret of this run" not in repr(record())


@pytest.mark.parametrize("content", ['{"version": 2}', "[]", "{}"])
def test_another_versions_file_is_known_as_one(tmp_path: Path, content: str) -> None:
    record_file(tmp_path).write_text(content)
    with pytest.raises(AnotherVersion):
        read_record(record_file(tmp_path))


def test_a_file_that_lacks_a_field_is_invalid(tmp_path: Path) -> None:
    record_file(tmp_path).write_text(json.dumps({"version": 1, "api_url": "http://127.0.0.1:1"}))
    with pytest.raises(ValueError, match="aws_endpoint_url"):
        read_record(record_file(tmp_path))


def test_the_state_is_where_the_environment_says_or_in_the_checkout(tmp_path: Path) -> None:
    assert state_folder({"STATE": str(tmp_path)}, variable="STATE", otherwise=HOME) == tmp_path
    assert (state_folder({}, variable="STATE", otherwise=HOME).parent / "template.yaml").exists()


def test_a_local_stack_is_the_one_that_runs_when_it_is_asked(tmp_path: Path) -> None:
    stack = LocalStack(state=tmp_path)
    with pytest.raises(FileNotFoundError):
        _ = stack.api_url
    for number, port in enumerate((1, 5)):
        write_record(record_file(tmp_path), record(port))
        os.utime(record_file(tmp_path), (number, number))
        assert stack.output("ImagesTableName") == f"images-{port}"
        assert stack.client("sqs").meta.endpoint_url == f"http://127.0.0.1:{port + 1}"
        assert stack.running is stack.running


class FakeCloudFormation:
    def __init__(self) -> None:
        self.asked = 0

    def get_paginator(self, operation: str) -> FakeCloudFormation:
        assert operation == "list_stack_resources"
        return self

    def paginate(self, **parameters: Any) -> Any:
        self.asked += 1
        assert parameters == {"StackName": "shop"}
        made = {"LogicalResourceId": "FastQueue", "ResourceType": "AWS::SQS::Queue", "PhysicalResourceId": "url"}
        yield {"StackResourceSummaries": [made]}
        yield {"StackResourceSummaries": [{"LogicalResourceId": "SlowQueue", "ResourceType": "AWS::SQS::Queue"}]}


class NestingCloudFormation(FakeCloudFormation):
    def paginate(self, **parameters: Any) -> Any:
        if parameters == {"StackName": "arn:nested"}:
            made = {
                "LogicalResourceId": "Alarm",
                "ResourceType": "AWS::CloudWatch::Alarm",
                "PhysicalResourceId": "rings",
            }
            yield {"StackResourceSummaries": [made]}
        else:
            yield from super().paginate(**parameters)
            nested = {"ResourceType": "AWS::CloudFormation::Stack", "PhysicalResourceId": "arn:nested"}
            yield {"StackResourceSummaries": [{"LogicalResourceId": "Watching", **nested}]}


def test_what_is_in_a_stack_in_the_stack_is_found_as_if_it_were_in_the_stack() -> None:
    cloudformation = NestingCloudFormation()
    stack = RunningStack(name="shop", region="eu-west-1", client=lambda service: cloudformation)
    assert stack.physical_id("Alarm") == "rings"
    assert stack.physical_id("FastQueue") == "url"


def test_a_resource_is_found_by_its_logical_id_once_it_is_made() -> None:
    cloudformation = FakeCloudFormation()
    stack = RunningStack(name="shop", region="eu-west-1", client=lambda service: cloudformation)
    assert stack.physical_id("FastQueue") == "url"
    assert stack.physical_ids("AWS::SQS::Queue") == {"FastQueue": "url"}
    for missing in ("SlowQueue", "BulkQueue"):
        with pytest.raises(NoSuchResource, match=missing):
            stack.physical_id(missing)
    assert cloudformation.asked == 1
