"""Writes what Lambda itself logs of an invocation as JSON, for functions whose LogFormat is JSON.

Gap: MiniStack writes START, END and REPORT as text for every function.
AWS: the log has an object for the start of an initialisation, for a failed one, for the start of each invocation, and a
report of each, if SystemLogLevel (INFO, if it is not set) is not above theirs.
https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs-logformat.html
https://docs.aws.amazon.com/lambda/latest/dg/telemetry-schema-reference.html
https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs-log-level.html (System log level event mapping)
https://github.com/aws-samples/aws-lambda-extensions/issues/85 (An exception of the handler, which the runtime reports,
is a success of the runtime: its log has the runtime's own object with the level ERROR.)

What still differs from AWS: every invocation has its own log stream; whatever it logs has the time of its end; what a
function prints while it is initialised comes after the object of the start. Objects of the level DEBUG are left out,
what a function prints is not filtered by ApplicationLogLevel, and a version with SnapStart is initialised like others.
"""

import json
import logging
import math
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from local_aws import observations
from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace
from local_aws.observations import Observation

_LEVELS = ("DEBUG", "INFO", "WARN")
_TIMEOUT = "Sandbox.Timedout"
_PHASE = {"initializationType": "on-demand", "phase": "init"}

_logger = logging.getLogger(__name__)


def apply(emulator: Emulator) -> None:
    """Observe every invocation, and write its log."""
    lambda_service = internals("services.lambda_svc")
    replace(lambda_service, "_execute_function_warm", _observe)
    replace(lambda_service, "_emit_lambda_logs", _write)


def _observe(execute: Any) -> Any:
    def execute_function(function: Any, event: Any, request_id: str) -> Any:
        seen = Observation(request_id=request_id, started_at=time.time())
        observations.current.set(seen)
        began = time.monotonic()
        seen.result = execute(function, event, request_id)
        seen.seconds = time.monotonic() - began
        return seen.result

    return execute_function


def _write(write_text: Any) -> Any:
    def write_log(function: Any, request_id: str, log: str, *arguments: Any, **options: Any) -> None:
        config = function.get("config") or function
        seen = observations.current.get()
        is_json = (config.get("LoggingConfig") or {}).get("LogFormat") == "JSON"
        if not is_json or seen is None or seen.request_id != request_id:
            write_text(function, request_id, log, *arguments, **options)
        elif not seen.result.get("throttle"):
            try:
                _store(config, [*system_logs(config, seen, log.splitlines())])
            except Exception:  # a log that cannot be written is no reason to fail the invocation
                _logger.exception("The log of %s was not written", config.get("FunctionName"))

    return write_log


# ── What is logged ───────────────────────────────────────────────────────────────────────────────────────────────────


def system_logs(config: Mapping[str, Any], seen: Observation, printed: list[str]) -> Iterator[str]:
    """The log of an invocation: what the function printed, between Lambda's own objects."""
    least = _LEVELS.index((config.get("LoggingConfig") or {}).get("SystemLogLevel") or "INFO")
    for level, written in _objects(config, seen):
        if written is None:
            yield from printed
        elif _LEVELS.index(level) >= least:  # guard: emulator-system-log-level
            yield json.dumps(written, separators=(",", ":"))


def _objects(config: Mapping[str, Any], seen: Observation) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """Lambda's objects with their levels; None stands for the function's lines."""
    version = config.get("Version", "$LATEST")
    if seen.initialised_at is not None:
        yield "INFO", _object("initStart", seen.initialised_at, _initialisation(config, version))
    started_at = seen.started_at + seen.initialisation_seconds
    if seen.initialisation_error is not None:
        failed = {"status": "error", "errorType": _known(seen.initialisation_error)}
        metrics = {"durationMs": _milliseconds(seen.initialisation_seconds)}
        yield "WARN", _object("initReport", started_at, {**_PHASE, **failed, "metrics": metrics})
    arn = str(config.get("FunctionArn", ""))
    yield "INFO", _object("start", started_at, {"requestId": seen.request_id, "functionArn": arn, "version": version})
    yield "INFO", None
    outcome = _outcome(seen)
    level = "INFO" if outcome["status"] == "success" else "WARN"
    report = {"requestId": seen.request_id, "metrics": _metrics(config, seen), **outcome}
    yield level, _object("report", seen.started_at + seen.seconds, report)


def _initialisation(config: Mapping[str, Any], version: str) -> dict[str, Any]:
    return {
        **_PHASE,
        "runtimeVersion": str(config.get("Runtime", "")).replace("python", "python:"),
        "functionName": config.get("FunctionName"),
        "functionVersion": version,
        "instanceMaxMemory": int(config.get("MemorySize", 128)) * 1024 * 1024,
    }


def _outcome(seen: Observation) -> dict[str, str]:
    if not seen.result.get("error"):
        return {"status": "success"}
    if seen.initialisation_error is not None:
        return {"status": "error", "errorType": _known(seen.initialisation_error)}
    body = seen.result.get("body")
    error_type = str(body.get("errorType")) if isinstance(body, dict) else ""
    if error_type == _TIMEOUT:
        return {"status": "timeout"}
    # The runtime reports an exception of the handler by its name, and goes on.
    # guard: emulator-runtime-error-is-success
    return {"status": "error", "errorType": error_type} if error_type.startswith("Runtime.") else {"status": "success"}


def _known(error_type: str) -> str:
    """Lambda names no exceptions of functions."""
    return error_type if error_type.startswith(("Runtime.", "Sandbox.")) else "Runtime.Unknown"


def _metrics(config: Mapping[str, Any], seen: Observation) -> dict[str, float]:
    metrics: dict[str, float] = {
        "durationMs": _milliseconds(seen.seconds - seen.initialisation_seconds),
        # Initialisation is billed too.
        "billedDurationMs": math.ceil(seen.seconds * 1000),
        "memorySizeMB": int(config.get("MemorySize", 128)),
    }
    if seen.peak_memory_mb is not None:
        metrics["maxMemoryUsedMB"] = seen.peak_memory_mb
    if seen.initialised_at is not None and seen.initialisation_error is None:
        metrics["initDurationMs"] = _milliseconds(seen.initialisation_seconds)
    return metrics


def _milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 3)


def _object(kind: str, at: float, record: dict[str, Any]) -> dict[str, Any]:
    moment = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
    return {"time": f"{moment}Z", "type": f"platform.{kind}", "record": record}


# ── Where it is logged ───────────────────────────────────────────────────────────────────────────────────────────────


def _store(config: Mapping[str, Any], lines: list[str]) -> None:
    logs = internals("services.cloudwatch_logs")
    group = config["LoggingConfig"].get("LogGroup") or f"/aws/lambda/{config['FunctionName']}"
    if group not in logs._log_groups:
        logs._create_log_group({"logGroupName": group})
    stream = f"{datetime.now(UTC):%Y/%m/%d}/[{config.get('Version', '$LATEST')}]{uuid4().hex}"
    logs._create_log_stream({"logGroupName": group, "logStreamName": stream})
    now_ms = int(time.time() * 1000)
    events = [{"timestamp": now_ms, "message": line, "ingestionTime": now_ms} for line in lines]
    logs._append_log_events(logs._log_groups[group]["streams"][stream], events)
    logs._fanout_to_subscription_filters(group, stream, events)
