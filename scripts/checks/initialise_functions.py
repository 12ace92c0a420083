"""Initialises each built function from only its own artifact and layers, with Lambda's runtime client, and times it.

The emulator, the tests and the development environment all have more on their paths than a function has on AWS, so a
package that is missing from a bundle shows up only here. AWS's runtime interface emulator (it ships with SAM CLI) and
runtime client load the real handler. The invocation that triggers the load is not awaited.

    python -m checks.initialise_functions [--template BUILT_TEMPLATE] [--runs 5] [--report build/reports/init.json]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from darkroom_cli.local.project import PROJECT
from local_aws import stack
from local_aws.build import build
from local_aws.environment import NOWHERE, write_aws_config
from local_aws.failures import CommandFailed
from local_aws.lambda_base_image import host_architecture
from local_aws.opt import put_over
from local_aws.paths import State
from local_aws.processes import Interrupts, tail
from repository.expand_template import is_optional, with_all_parts, without_loops

_INIT_TIMEOUT_SECONDS = 60
# "Deployment package (.zip file archive) size … 250 MB (unzipped)", layers included.
# https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
_UNPACKED_LIMIT_BYTES = 250 * 1024 * 1024
_STATUS = re.compile(r"INIT RTDONE\(status: (\w+)")
_DURATION = re.compile(r"INIT REPORT\(durationMs: ([\d.]+)")
# What a reference in a function's environment resolves to on AWS, if the bare name would not be a plausible value.
_PLAUSIBLE = {
    "AWS::SQS::Queue": "https://sqs.us-east-1.amazonaws.com/123456789012/{}",
    "AWS::SNS::Topic": "arn:aws:sns:us-east-1:123456789012:{}",
    "AWS::S3::Bucket": "darkroom-{}-example",
}
# A value of the parameter Edge: every part is taken as there, and some of the edge's items are no text.
_EDGE = f"https://images.example,arn:distribution,{_PLAUSIBLE['AWS::SQS::Queue']},arn:queue,arn:signer,86400"


@dataclass(frozen=True, kw_only=True)
class BuiltFunction:
    """A built function: the paths of its code and its layers, in the order in which Lambda unpacks them."""

    name: str
    handler: str
    code: Path
    layers: tuple[Path, ...]
    variables: dict[str, str]
    memory_megabytes: int
    timeout_seconds: int

    @property
    def unpacked_bytes(self) -> int:
        """The size that counts against Lambda's limit."""
        folders = (self.code, *self.layers)
        return sum(file.stat().st_size for folder in folders for file in folder.rglob("*") if file.is_file())


@dataclass(frozen=True, kw_only=True)
class Initialisation:
    """How long a function took to initialise, or why it did not; and its first answer, if one was waited for, with the
    milliseconds from the request to it, initialisation included."""

    milliseconds: float
    error: str | None = None
    answer: Any = None
    answer_milliseconds: float = 0


def built_functions(template: Path) -> list[BuiltFunction]:
    """The functions of a template that `sam build` made; at least one."""
    document = without_loops(template)
    resources = document["Resources"]
    defaults = document.get("Globals", {}).get("Function", {})
    functions = []
    for name, resource in resources.items():
        if resource["Type"] != "AWS::Serverless::Function":
            continue
        own = resource["Properties"]
        # SAM appends a function's own layers to those of Globals, and its own variables override theirs.
        # https://docs.aws.amazon.com/serverless-application-model/latest/developerguide/sam-specification-template-anatomy-globals.html
        layers = [
            layer
            for part in (defaults, own)
            for layer in with_all_parts(part.get("Layers", []))
            if not is_optional(layer)
        ]
        variables = {
            variable: _plausible(value, document)
            for part in (defaults, own)
            for variable, value in with_all_parts(part.get("Environment", {}).get("Variables", {})).items()
            if not is_optional(value)
        }
        properties = {**defaults, **own}
        functions.append(
            BuiltFunction(
                name=name,
                handler=properties["Handler"],
                code=template.parent / properties["CodeUri"],
                layers=tuple(template.parent / resources[layer["Ref"]]["Properties"]["ContentUri"] for layer in layers),
                variables=variables,
                memory_megabytes=properties.get("MemorySize", 128),
                timeout_seconds=properties.get("Timeout", 3),
            )
        )
    if not functions:
        raise ValueError(f"{template} has no functions")
    return functions


def _plausible(value: Any, template: Mapping[str, Any]) -> str:
    if isinstance(value, str | int | float):
        return str(value)
    match value:
        case {"Ref": str(target)} if target in template.get("Parameters", {}):
            return str(template["Parameters"][target].get("Default", "example"))
        case {"Ref": str(target)}:
            resource = template["Resources"].get(target, {"Type": ""})
            return _PLAUSIBLE.get(resource["Type"], "{}").format(target)
        case {"Fn::If": [_, _, str(otherwise)]}:
            return otherwise
        case {"Fn::Select": [int(place), {"Fn::Split": [",", {"Fn::Sub": str(text)}]}]}:
            return text.replace("${Edge}", _EDGE).split(",")[place]
        case {"Fn::GetAtt": [str(target), str(attribute)]}:
            return f"arn:aws:service:us-east-1:123456789012:{target}" if attribute == "Arn" else f"{target}.{attribute}"
        case _:
            return "example"


@contextmanager
def unpacked_layers(functions: Iterable[BuiltFunction]) -> Iterator[dict[tuple[Path, ...], Path]]:
    """Each function's /opt by its layers: all unpacked into one folder, later layers over earlier ones."""
    with tempfile.TemporaryDirectory(prefix="darkroom-opt-") as scratch:
        folders: dict[tuple[Path, ...], Path] = {}
        for layers in {function.layers for function in functions}:
            folders[layers] = Path(scratch, str(len(folders)))
            folders[layers].mkdir()
            for layer in layers:
                put_over(layer.absolute(), folders[layers])
        yield folders


def initialise(
    function: BuiltFunction,
    opt: Path,
    *,
    event: Mapping[str, Any] | None = None,
    variables: Mapping[str, str] | None = None,
) -> Initialisation:
    """Load the function as Lambda does on a cold start, with its layers in `opt`; if there is an `event`, let it answer
    that. `variables` replace those of its environment."""
    entry, runtime_api = (f"127.0.0.1:{port}" for port in _free_ports(2))
    emulator = subprocess.Popen(
        [
            *(_runtime_interface_emulator(), "--log-level", "info"),
            *("--runtime-interface-emulator-address", entry, "--runtime-api-address", runtime_api),
            *(PROJECT.function_python, "-m", "awslambdaric", function.handler),
        ],
        env=environment_of(function, opt) | dict(variables or {}),
        cwd=function.code,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    assert emulator.stdout is not None  # noqa: S101 -- it is a pipe
    answers: list[dict[str, Any]] = []
    seconds: list[float] = []
    # The emulator initialises a function on its first invocation.
    request = (f"http://{entry}", json.dumps(event or {}).encode(), answers, seconds)
    invocation = threading.Thread(target=_invoke, args=request, daemon=True)
    invocation.start()
    deadline = threading.Timer(_INIT_TIMEOUT_SECONDS, emulator.kill)
    deadline.start()
    status, log = None, []
    try:
        for line in emulator.stdout:
            log.append(line.rstrip())
            if match := _STATUS.search(line):
                status = match[1]
            if match := _DURATION.search(line):
                milliseconds = float(match[1])
                break
        else:
            return Initialisation(milliseconds=0, error="\n".join(["The runtime ended without a word:", *log[-20:]]))
        if status == "success" and event is None:
            return Initialisation(milliseconds=milliseconds)
        if status == "success":
            # Whatever the handler prints must be read, or it would stop at a full pipe.
            threading.Thread(target=emulator.stdout.read, daemon=True).start()
            invocation.join(_INIT_TIMEOUT_SECONDS)
            return Initialisation(milliseconds=milliseconds, answer=answers[0], answer_milliseconds=1000 * seconds[0])
        invocation.join(_INIT_TIMEOUT_SECONDS)
        return Initialisation(milliseconds=milliseconds, error=_explain(answers, log))
    finally:
        deadline.cancel()
        emulator.terminate()  # this ends the runtime too
        with suppress(subprocess.TimeoutExpired):
            emulator.wait(5)
        emulator.kill()
        emulator.wait()
        emulator.stdout.close()


def _explain(answers: Sequence[Mapping[str, Any]], log: Sequence[str]) -> str:
    if answers and "errorType" in answers[0]:
        answer = answers[0]
        trace = "".join(answer.get("stackTrace", []))
        return f"{answer['errorType']}: {answer['errorMessage']}\n{trace}".rstrip()
    return "\n".join(["The runtime's process ended while it loaded the function:", *log[-20:]])


def _invoke(url: str, event: bytes, answers: list[dict[str, Any]], seconds: list[float]) -> None:
    request = urllib.request.Request(f"{url}/2015-03-31/functions/function/invocations", data=event)  # noqa: S310 -- always http
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + _INIT_TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        began = time.perf_counter()
        try:
            with opener.open(request, timeout=_INIT_TIMEOUT_SECONDS) as answer:
                answers.append(json.loads(answer.read() or b"{}"))
                seconds.append(time.perf_counter() - began)
        except urllib.error.HTTPError as failure:
            with suppress(ValueError):
                answers.append(json.loads(failure.read()))
        except urllib.error.URLError:  # not listening yet
            time.sleep(0.02)
            continue
        except (OSError, ValueError):  # stopped while the handler ran: the answer is not needed
            pass
        return


def environment_of(function: BuiltFunction, opt: Path) -> dict[str, str]:
    """Lambda's environment variables, with no address that anything could be sent to.

    https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html#configuration-envvars-runtime
    """
    return {
        "PATH": os.defpath,
        "LANG": "en_US.UTF-8",
        "TZ": ":UTC",
        "LAMBDA_TASK_ROOT": str(function.code),
        "LAMBDA_RUNTIME_DIR": str(PROJECT.function_python.parent),
        "AWS_EXECUTION_ENV": "AWS_Lambda_python3.13",
        "AWS_LAMBDA_FUNCTION_NAME": function.name,
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(function.memory_megabytes),
        "AWS_LAMBDA_FUNCTION_TIMEOUT": str(function.timeout_seconds),
        "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
        "AWS_LAMBDA_LOG_GROUP_NAME": f"/aws/lambda/{function.name}",
        "AWS_LAMBDA_LOG_STREAM_NAME": "2026/01/01/[$LATEST]00000000000000000000000000000000",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
        "AWS_SESSION_TOKEN": "local",
        "AWS_ENDPOINT_URL": NOWHERE,
        "AWS_XRAY_SDK_ENABLED": "false",
        # /var/task and /opt are read-only on Lambda, so modules are compiled on every cold start.
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
        "PYTHONPATH": f"{function.code}:{opt}/python/lib/python3.13/site-packages:{opt}/python",
        **function.variables,
    }


def _runtime_interface_emulator() -> Path:
    pattern = f"lib/python*/site-packages/samcli/local/rapid/aws-lambda-rie-{host_architecture()}"
    path = next(PROJECT.sam.parents[1].glob(pattern), None)
    if path is None:
        raise FileNotFoundError("SAM CLI is not installed: run scripts/setup/environments.sh sam runtime")
    return path


def _free_ports(count: int) -> list[int]:
    with ExitStack() as held:
        sockets = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [listener.getsockname()[1] for listener in sockets]


@contextmanager
def built_template() -> Iterator[Path]:
    """Build the project as `local up` does, next to a stack that may be running; no other build runs there meanwhile.

    Raises CommandFailed.
    """
    state = State(folder=State.current().folder / "checks")
    state.temporary.mkdir(parents=True, exist_ok=True)
    with stack.deploying(state, time.sleep):
        write_aws_config(state, NOWHERE, "of no use")  # `sam build` requires the profile, and calls no service
        # Without signal handlers: Ctrl-C raises an exception here, and stops the build too.
        yield build(state, interrupts=Interrupts(), show=lambda _: None)


def _report(functions: Sequence[BuiltFunction], results: Mapping[str, Sequence[Initialisation]]) -> dict[str, Any]:
    rows = [
        {
            "function": function.name,
            "init_milliseconds": round(statistics.median(run.milliseconds for run in results[function.name]), 1),
            "unpacked_bytes": function.unpacked_bytes,
            "error": next((run.error for run in results[function.name] if run.error), None),
            "runs": len(results[function.name]),
            "architecture": host_architecture(),
        }
        for function in functions
    ]
    failed = sum(row["error"] is not None for row in rows)
    largest = max(function.unpacked_bytes for function in functions)
    goals = [
        {"name": "functions that do not initialise", "value": failed, "limit": 0, "holds": failed == 0},
        {
            "name": "largest function with its layers, bytes",
            "value": largest,
            "limit": _UNPACKED_LIMIT_BYTES,
            "holds": largest <= _UNPACKED_LIMIT_BYTES,
        },
    ]
    revision = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=PROJECT.root, check=False, capture_output=True, text=True
    ).stdout
    return {"commit": revision.strip() or None, "seed": None, "rows": rows, "goals": goals}


def _show(report: Mapping[str, Any]) -> None:
    width = max(len(row["function"]) for row in report["rows"])
    print(f"{'function':<{width}}  {'init ms':>8}  {'unpacked MB':>11}")
    for row in report["rows"]:
        took = "failed" if row["error"] else f"{row['init_milliseconds']:.0f}"
        print(f"{row['function']:<{width}}  {took:>8}  {row['unpacked_bytes'] / 1e6:>11.1f}")
    for row in report["rows"]:
        if row["error"]:
            print(f"\n{row['function']} does not initialise from its own bundle and layers:\n{row['error']}")
    held = sum(goal["holds"] for goal in report["goals"])
    print(f"goals: {held} hold, {len(report['goals']) - held} miss")


def main(arguments: Sequence[str] | None = None) -> int:
    """Initialise every function of the built template; return 1 if one fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--template", type=Path, help="what `sam build` made; without it, the project is built first")
    parser.add_argument("--runs", type=int, default=1, help="cold starts per function; the median is shown")
    parser.add_argument("--report", type=Path, help="also write the result to this file, as JSON")
    options = parser.parse_args(arguments)
    with ExitStack() as held:
        try:
            template = options.template or held.enter_context(built_template())
        except CommandFailed as failure:
            print(failure, *tail(failure.log, lines=20), sep="\n", file=sys.stderr)
            return 1
        functions = built_functions(template.resolve())
        results: dict[str, list[Initialisation]] = {function.name: [] for function in functions}
        layers = held.enter_context(unpacked_layers(functions))
        for _ in range(options.runs):
            for function in functions:
                results[function.name].append(initialise(function, layers[function.layers]))
        report = _report(functions, results)
    _show(report)
    if options.report:
        options.report.parent.mkdir(parents=True, exist_ok=True)
        options.report.write_text(json.dumps(report, indent=2) + "\n")
    return 0 if all(goal["holds"] for goal in report["goals"]) else 1


if __name__ == "__main__":
    sys.exit(main())
