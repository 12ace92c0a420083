"""The emulator logs what Lambda logs of an invocation, as JSON where a function asks for it."""

import json
from typing import Any
from uuid import uuid4

import pytest

from local_aws.observations import Observation
from local_aws.shims.system_logs import system_logs
from local_aws.tests.emulator_server import EmulatorServer, create_function, invoke

pytest_plugins = ("local_aws.tests.emulator_fixtures",)

PRINTS = """
import json, logging

print(json.dumps({"level": "INFO", "message": "initialised"}))

def handler(event, context):
    print(json.dumps({"level": "INFO", "message": "invoked"}))
    logging.getLogger().warning("warned")
    return 1 / 0 if event.get("fail") else "good"
"""


def logging_function(server: EmulatorServer, source: str, log_format: str = "JSON", **configuration: Any) -> str:
    """Create a function with a format for its log, and return its name."""
    name = f"logging-{uuid4().hex[:8]}"
    levels = configuration.pop("levels", {})
    create_function(server, name, source, LoggingConfig={"LogFormat": log_format, **levels}, **configuration)
    return name


def logged(server: EmulatorServer, name: str) -> list[str]:
    events = server.client("logs").filter_log_events(logGroupName=f"/aws/lambda/{name}")["events"]
    return [event["message"] for event in events]


def objects(server: EmulatorServer, name: str) -> list[dict[str, Any]]:
    return [json.loads(message) for message in logged(server, name)]


def reported(server: EmulatorServer, name: str) -> dict[str, Any]:
    record: dict[str, Any]
    [record] = [each["record"] for each in objects(server, name) if each.get("type") == "platform.report"]
    return record


def test_gap_stock_logs_text_for_every_function(stock: EmulatorServer) -> None:
    name = logging_function(stock, PRINTS)
    invoke(stock, name)
    assert logged(stock, name)[0].startswith("START RequestId: ")


def test_a_function_that_logs_text_has_text_about_its_invocations(emulator: EmulatorServer) -> None:
    name = logging_function(emulator, PRINTS, "Text")
    invoke(emulator, name)
    messages = logged(emulator, name)
    assert messages[0].startswith("START RequestId: ")
    assert messages[-1].startswith("REPORT RequestId: ")


def test_a_function_that_logs_json_has_objects_about_its_invocations_around_its_own(emulator: EmulatorServer) -> None:
    name = logging_function(emulator, PRINTS, MemorySize=256)
    invoke(emulator, name)
    first, own = objects(emulator, name), ["initialised", "invoked", "warned"]
    assert [each.get("type", each.get("message")) for each in first] == [
        *("platform.initStart", "platform.start", *own, "platform.report"),
    ]
    initialised, started, report = first[0]["record"], first[1]["record"], first[-1]["record"]
    assert (initialised["functionName"], initialised["runtimeVersion"]) == (name, "python:3.13")
    assert (started["version"], started["functionArn"].rpartition(":")[2]) == ("$LATEST", name)
    assert report["requestId"] == started["requestId"]
    assert report["status"] == "success"
    metrics = report["metrics"]
    assert metrics["memorySizeMB"] == 256
    assert metrics["maxMemoryUsedMB"] > 0
    assert metrics["billedDurationMs"] >= metrics["initDurationMs"] + metrics["durationMs"]

    invoke(emulator, name)
    second = objects(emulator, name)[len(first) :]
    assert [each["type"] for each in second if "type" in each] == ["platform.start", "platform.report"]
    assert "initDurationMs" not in second[-1]["record"]["metrics"]


@pytest.mark.guards("emulator-runtime-error-is-success")
def test_an_exception_is_an_object_of_the_runtime_and_a_success_of_lambda(emulator: EmulatorServer) -> None:
    name = logging_function(emulator, PRINTS)
    invoke(emulator, name, {"fail": True})
    [error] = [each for each in objects(emulator, name) if each.get("level") == "ERROR"]
    assert (error["errorType"], error["errorMessage"]) == ("ZeroDivisionError", "division by zero")
    assert "1 / 0" in "".join(error["stackTrace"])
    assert error["requestId"] == reported(emulator, name)["requestId"]
    assert reported(emulator, name)["status"] == "success"


@pytest.mark.parametrize(
    ("source", "error_type"),
    [
        ("import nothing_of_this_name", "Runtime.ImportModuleError"),
        ("def handler(:", "Runtime.UserCodeSyntaxError"),
        ("1 / 0", "Runtime.Unknown"),
    ],
)
def test_a_failed_initialisation_is_reported_for_itself_and_for_its_invocation(
    emulator: EmulatorServer, source: str, error_type: str
) -> None:
    name = logging_function(emulator, source)
    invoke(emulator, name)
    records = [each for each in objects(emulator, name) if "type" in each]
    assert [each["type"].removeprefix("platform.") for each in records] == [
        "initStart",
        "initReport",
        "start",
        "report",
    ]
    for report in (records[1], records[3]):
        assert (report["record"]["status"], report["record"]["errorType"]) == ("error", error_type)
    assert [each["level"] for each in objects(emulator, name) if "errorMessage" in each] == ["ERROR"]


def test_the_end_of_the_process_is_an_error(emulator: EmulatorServer) -> None:
    name = logging_function(emulator, "import os\n\ndef handler(event, context):\n    os._exit(1)")
    invoke(emulator, name)
    record = reported(emulator, name)
    assert (record["status"], record["errorType"]) == ("error", "Runtime.ExitError")


def test_a_timeout_is_reported_as_one(emulator: EmulatorServer) -> None:
    name = logging_function(emulator, "import time\n\ndef handler(event, context):\n    time.sleep(60)", Timeout=1)
    invoke(emulator, name)
    record = reported(emulator, name)
    assert record["status"] == "timeout"
    assert record["metrics"]["durationMs"] >= 1000


def test_a_throttled_request_leaves_nothing_in_the_log(emulator: EmulatorServer) -> None:
    name, lambda_ = logging_function(emulator, PRINTS), emulator.client("lambda")
    invoke(emulator, name)
    before = logged(emulator, name)
    lambda_.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=0)
    with pytest.raises(lambda_.exceptions.TooManyRequestsException):
        invoke(emulator, name)
    assert logged(emulator, name) == before


@pytest.mark.guards("emulator-system-log-level")
def test_from_the_level_warn_only_what_went_wrong_is_reported(emulator: EmulatorServer) -> None:
    name = logging_function(emulator, PRINTS, levels={"SystemLogLevel": "WARN"})
    invoke(emulator, name)
    assert [each["message"] for each in objects(emulator, name)] == ["initialised", "invoked", "warned"]
    failing = logging_function(emulator, "import nothing_of_this_name", levels={"SystemLogLevel": "WARN"})
    invoke(emulator, failing)
    types = [each["type"] for each in objects(emulator, failing) if "type" in each]
    assert types == ["platform.initReport", "platform.report"]


def test_a_level_of_the_function_is_its_runtimes(emulator: EmulatorServer) -> None:
    name = logging_function(emulator, PRINTS, levels={"ApplicationLogLevel": "ERROR"})
    invoke(emulator, name)
    assert "warned" not in [each.get("message") for each in objects(emulator, name)]


def test_an_objects_times_are_those_of_its_event() -> None:
    seen = Observation(request_id="1", started_at=1_000, seconds=2.5, initialised_at=1_000, initialisation_seconds=2)
    config = {"FunctionName": "some", "Runtime": "python3.13", "LoggingConfig": {"LogFormat": "JSON"}}
    first, started, printed, report = system_logs(config, seen, ["printed"])
    assert printed == "printed"
    assert [json.loads(each)["time"] for each in (first, started, report)] == [
        "1970-01-01T00:16:40.000Z",
        "1970-01-01T00:16:42.000Z",
        "1970-01-01T00:16:42.500Z",
    ]
    assert json.loads(report)["record"]["metrics"] == {
        "durationMs": 500.0,
        "billedDurationMs": 2500,
        "memorySizeMB": 128,
        "initDurationMs": 2000.0,
    }
