"""A function that is initialised ahead, one whose queues keep it busy, and what processes write: by the shims."""

import os
import time
from functools import partial
from pathlib import Path
from typing import Any

from local_aws.tests.emulator_server import (
    EmulatorServer,
    create_function,
    emulator_server,
    function_resource,
    invoke,
    stack,
    wait_until,
)
from local_aws.tests.queues import queue

pytest_plugins = ("local_aws.tests.emulator_fixtures",)

# Records that it was initialised, and each invocation.
RECORDING = """
import os, pathlib, time

folder = pathlib.Path(os.environ["FOLDER"])
(folder / f"initialised-{os.getpid()}").touch()

def handler(event, context):
    noted = folder / f"began-{context.aws_request_id}"
    noted.touch()
    while not (folder / "open").exists():
        time.sleep(0.01)
    return {}
"""


def recording(folder: Path) -> dict[str, Any]:
    return function_resource(RECORDING, Environment={"Variables": {"FOLDER": str(folder)}})


def initialised(folder: Path) -> int:
    return len(list(folder.glob("initialised-*")))


def have_begun(folder: Path, invocations: int) -> bool:
    return len(list(folder.glob("began-*"))) >= invocations


def test_gap_stock_initialises_nothing_before_its_first_invocation(stock: EmulatorServer, tmp_path: Path) -> None:
    with stack(stock, {"Named": recording(tmp_path)}):
        time.sleep(1)
        assert initialised(tmp_path) == 0


def test_a_named_function_is_initialised_once_its_stack_has_created_it_and_others_are_not(tmp_path: Path) -> None:
    folders = {name: tmp_path / name for name in ("Named", "Other")}
    for folder in folders.values():
        folder.mkdir()
    with emulator_server(tmp_path / "data", "--initialise", "Named") as server:
        resources = {name: recording(folder) for name, folder in folders.items()}
        with stack(server, resources) as name:
            wait_until(lambda: initialised(folders["Named"]) == 1, "it is initialised")
            (folders["Named"] / "open").touch()
            described = server.client("cloudformation").describe_stack_resource(
                StackName=name, LogicalResourceId="Named"
            )
            physical_id = described["StackResourceDetail"]["PhysicalResourceId"]
            server.client("lambda").invoke(FunctionName=physical_id, Payload=b"{}")
            assert initialised(folders["Named"]) == 1, "and its first invocation meets that process"
            assert initialised(folders["Other"]) == 0


# Tells how it was initialised, and which hooks have run.
RESTORED = """
import os
import snapshot_restore_py

run = []
snapshot_restore_py.register_before_snapshot(run.append, "before")
snapshot_restore_py.register_after_restore(run.append, "after")

def handler(event, context):
    return {"type": os.environ["AWS_LAMBDA_INITIALIZATION_TYPE"], "version": context.function_version, "run": run}
"""


def test_a_version_with_snap_start_is_restored_by_its_hooks_and_nothing_else_is(emulator: EmulatorServer) -> None:
    name = f"restored-{os.urandom(4).hex()}"
    create_function(emulator, name, RESTORED, SnapStart={"ApplyOn": "PublishedVersions"})
    functions = emulator.client("lambda")
    version = functions.publish_version(FunctionName=name)["Version"]
    functions.create_alias(FunctionName=name, Name="live", FunctionVersion=version)
    functions.get_waiter("published_version_active").wait(FunctionName=name, Qualifier=version)
    assert invoke(emulator, f"{name}:live") == {"type": "snap-start", "version": "1", "run": ["before", "after"]}
    assert invoke(emulator, name) == {"type": "on-demand", "version": "$LATEST", "run": []}


def test_queues_keep_a_function_as_busy_as_the_machine_has_cores_and_none_waits_for_another(
    emulator: EmulatorServer, tmp_path: Path
) -> None:
    name = f"recording-{os.urandom(4).hex()}"
    create_function(emulator, name, RECORDING, Timeout=60, Environment={"Variables": {"FOLDER": str(tmp_path)}})
    sources = [queue(emulator, VisibilityTimeout="600") for _ in range(2)]
    for source in sources:
        emulator.client("lambda").create_event_source_mapping(
            EventSourceArn=source.arn, FunctionName=name, BatchSize=1, ScalingConfig={"MaximumConcurrency": 50}
        )
    cores = os.process_cpu_count() or 1
    for source, invocations in zip(sources, (cores, cores + 1), strict=True):
        for number in range(cores + 3):
            source.send(str(number))
        wait_until(partial(have_begun, tmp_path, invocations), "the queue has its invocations")
        time.sleep(1)
        assert not have_begun(tmp_path, invocations + 1)
    (tmp_path / "open").touch()
    wait_until(lambda: all(source.counts() == (0, 0) for source in sources), "all messages are processed")


def test_the_last_line_before_an_answer_is_in_its_log(emulator: EmulatorServer) -> None:
    name = f"telling-{os.urandom(4).hex()}"
    code = "def handler(event, context):\n    print(f'line {event}', flush=True)\n    return event"
    create_function(emulator, name, code)
    client = emulator.client("lambda")
    for number in range(50):
        client.invoke(FunctionName=name, Payload=str(number).encode())
    pages = emulator.client("logs").get_paginator("filter_log_events").paginate(logGroupName=f"/aws/lambda/{name}")
    messages = [event["message"].strip() for page in pages for event in page["events"]]
    assert [line for line in messages if line.startswith("line")] == [f"line {number}" for number in range(50)]
