"""The one handle on a running stack: its resources, and clients to query it with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from botocore.config import Config

from local_aws.stacks.clients import isolated_clients, of_account
from local_aws.stacks.record import StackRecord, read_record, record_file

NESTED_STACK = "AWS::CloudFormation::Stack"


class NoSuchResource(LookupError):
    """The stack has no resource with that logical id."""


@dataclass(frozen=True, kw_only=True)
class RunningStack:
    """A stack as CloudFormation knows it, here or on AWS. CloudFormation is asked once, so a handle is valid until the
    next deployment."""

    name: str
    region: str
    client: Callable[[str], Any] = field(repr=False)

    @cached_property
    def resources(self) -> Mapping[str, tuple[str, str]]:
        """The type and the physical id of each resource, by its logical id; those of stacks in the stack too."""
        resources = self._resources_of(self.name)
        for kind, physical_id in list(resources.values()):
            if kind == NESTED_STACK and physical_id:
                resources = {**self._resources_of(physical_id), **resources}
        return resources

    def _resources_of(self, name: str) -> dict[str, tuple[str, str]]:
        pages = self.client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=name)
        return {
            resource["LogicalResourceId"]: (resource["ResourceType"], resource.get("PhysicalResourceId", ""))
            for page in pages
            for resource in page["StackResourceSummaries"]
        }

    @cached_property
    def parameters(self) -> Mapping[str, str]:
        """The parameters with which it was deployed."""
        return self.status_and_parameters()[1]

    def status_and_parameters(self) -> tuple[str, Mapping[str, str]]:
        """Its status and its parameters by now: CloudFormation is asked anew."""
        (stack,) = self.client("cloudformation").describe_stacks(StackName=self.name)["Stacks"]
        given = {parameter["ParameterKey"]: parameter["ParameterValue"] for parameter in stack.get("Parameters", ())}
        return stack["StackStatus"], given

    def physical_ids(self, resource_type: str) -> dict[str, str]:
        """The physical ids of all resources of a type, by their logical ids."""
        return {
            name: physical_id
            for name, (kind, physical_id) in self.resources.items()
            if kind == resource_type and physical_id
        }

    def __contains__(self, logical_id: str) -> bool:
        """Whether the stack has this resource: an optional part may not be deployed."""
        return bool(self.resources.get(logical_id, ("", ""))[1])

    def physical_id(self, logical_id: str) -> str:
        """The physical id of a resource of the template. Raises NoSuchResource."""
        _, physical_id = self.resources.get(logical_id, ("", ""))
        if not physical_id:
            raise NoSuchResource(f"The stack {self.name} has no {logical_id}")
        return physical_id


def recorded_stack(record: StackRecord, *, config: Config | None = None) -> RunningStack:
    """The local stack that a record describes."""
    return RunningStack(
        name=record.stack_name,
        region=record.region,
        client=isolated_clients(record.aws_endpoint_url, record.region, of_account(record.aws_secret), config=config),
    )


@dataclass(frozen=True, kw_only=True)
class LocalStack:
    """The local stack of a state folder: whichever runs at the time of the call."""

    state: Path

    @property
    def record(self) -> StackRecord:
        """The stack's record. Raises FileNotFoundError if none runs."""
        return self._now[0]

    @property
    def running(self) -> RunningStack:
        """The handle on it."""
        return self._now[1]

    @property
    def api_url(self) -> str:
        """The root of the API."""
        return self.record.api_url

    @property
    def outputs(self) -> Mapping[str, str]:
        """The outputs of the CloudFormation stack."""
        return self.record.outputs

    def output(self, name: str) -> str:
        """One of the outputs."""
        return self.outputs[name]

    def client(self, service: str) -> Any:
        """An SDK client of the emulator."""
        return self.running.client(service)

    def physical_id(self, logical_id: str) -> str:
        """The physical id of a resource of the template."""
        return self.running.physical_id(logical_id)

    @property
    def _now(self) -> tuple[StackRecord, RunningStack]:
        file = record_file(self.state)
        return _recorded(file, file.stat().st_mtime_ns)


@lru_cache(maxsize=64)
def _recorded(file: Path, written_at: int) -> tuple[StackRecord, RunningStack]:
    """When the file was last written: each start and each deployment writes it anew."""
    record = read_record(file)
    return record, recorded_stack(record)
