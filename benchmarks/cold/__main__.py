"""Cold starts: how long each function takes to initialise, and a cold POST /images to be answered.

    python -m benchmarks.cold [--base COMMIT] [--runs 9]

Each function is started with AWS's runtime client, from only its own bundle and layers, all of them read-only as on
Lambda. With `--base`, those of an earlier commit are built in a clone of their own and started in turn with these,
so that both meet the same machine; the goals are the ratios of the medians. The cold POST is a start of submit_image
that answers an upload of 30 KB: its calls go to the embedded stack, whose lanes are paused.

The processor's time of an initialisation, from the start of a fresh interpreter with Lambda's runtime client, is
compared with that of a usual function (`usual.py`: boto3, three clients, Powertools) in the same layers, in turns: the
least of each, because other programs only add to it.
Prints tables and writes build/reports/cold.json.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.api.__main__ import events, lanes_paused
from benchmarks.earlier import build, tree_of
from benchmarks.forms import FOLDER, IS_SHORT, by_form
from benchmarks.stage import stack_of
from checks.initialise_functions import (
    BuiltFunction,
    Initialisation,
    built_functions,
    environment_of,
    initialise,
    unpacked_layers,
)
from darkroom_cli.local.project import PROJECT
from local_aws.build import build as whole_build
from local_aws.paths import State
from local_aws.processes import Interrupts
from local_aws.stacks.clients import of_account
from repository.report import ROOT, Goal, write_report

STATE = ROOT / "build" / "bench-cold"

LIMIT_MILLISECONDS = 550
"""How long any function may take to initialise on an idle machine."""

COLD_POST = "a cold POST"
SUBMIT = "SubmitImageFunction"
RATIOS = {"AuthorizeRequestFunction": 0.36, "ReadImageFunction": 0.38, COLD_POST: 0.4}
OTHERS_RATIO = 0.42
"""The most that each takes of the base's time."""

UPLOAD_BYTES = 30_000

SHORTLY = ("AuthorizeRequestFunction", SUBMIT, "TranscodeImageFunction")
"""The functions that the short form starts."""

USUAL = "a usual function"
USUAL_RATIOS = {SUBMIT: 1.1, "TranscodeImageFunction": 1.1}
"""The most that each takes of a usual function's processor time."""

# Lambda's runtime client is loaded before the function, and so is what both need.
_INITIALISE = "import awslambdaric.bootstrap, time, {module}; print(time.process_time() * 1000)"


@dataclass(frozen=True)
class Build:
    """The functions of one commit, and each one's unpacked layers."""

    functions: dict[str, BuiltFunction]
    layers: dict[tuple[Path, ...], Path]

    def start(self, name: str, **request: Any) -> Initialisation:
        """A cold start of the function."""
        function = self.functions[name]
        started = initialise(function, self.layers[function.layers], **request)
        if started.error is not None:
            raise RuntimeError(f"{name} does not initialise: {started.error}")
        return started

    def processor_milliseconds(self, name: str) -> float:
        """The processor's time until the function, or the usual one, is initialised in a fresh interpreter."""
        function = self.functions[SUBMIT if name == USUAL else name]
        code, module = (Path(__file__).parent, "usual") if name == USUAL else (function.code, "app")
        environment = environment_of(function, self.layers[function.layers])
        environment["PYTHONPATH"] = environment["PYTHONPATH"].replace(str(function.code), str(code))
        ran = subprocess.run(
            [PROJECT.function_python, "-c", _INITIALISE.format(module=module)],
            cwd=code,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if ran.returncode != 0:
            raise RuntimeError(f"{name} does not initialise: {ran.stderr}")
        return float(ran.stdout.split()[-1])


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, prints and writes the report; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.cold", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--base", metavar="COMMIT", help="an earlier commit to compare with")
    parser.add_argument("--runs", type=int, default=by_form(short=1, usual=9, long=25))
    options = parser.parse_args(arguments)
    trees = {"now": ROOT} | ({"base": tree_of(options.base)} if options.base else {})
    with ExitStack() as held:
        builds = {}
        for name, tree in trees.items():
            functions = built_functions(template_of(tree, STATE / name))
            layers = held.enter_context(unpacked_layers(functions))
            builds[name] = Build({function.name: function for function in functions}, layers)
        processor = processor_times(builds, options.runs)
        milliseconds = initialisations(builds, options.runs)
        posts = cold_posts(builds, options.runs)
    rows = [
        {"function": function, **{f"{name}_ms": round(median(taken), 1) for name, taken in sorted(by_build.items())}}
        for function, by_build in {**milliseconds, COLD_POST: posts}.items()
    ]
    usual = min(processor[USUAL]["now"])
    for row in rows:
        if row["function"] in processor:
            least = {name: min(taken) for name, taken in sorted(processor[row["function"]].items())}
            row.update({f"{name}_processor_ms": round(taken, 1) for name, taken in least.items()})
            row["of_usual"] = round(least["now"] / usual, 3)
    show(rows, usual)
    rows.append({"function": USUAL, "now_processor_ms": round(usual, 1)})
    write_report("cold", seed=None, rows=rows, goals=goals_of(rows[:-1]), folder=FOLDER)
    return 0


def template_of(tree: Path, folder: Path) -> Path:
    """The template that is built in a tree; in the short form with the packages that the stack has downloaded."""
    if not IS_SHORT:
        return build(tree, folder)
    with stack_of(STATE / "stack") as stack, Interrupts() as interrupts:
        return whole_build(State(folder=stack.state), interrupts=interrupts, show=lambda _: None)


def processor_times(builds: dict[str, Build], runs: int) -> dict[str, dict[str, list[float]]]:
    """The processor's time of each function's initialisation by build, and of a usual one's, taken in turns."""
    taken: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for run in range(runs):
        print(f"processor time: run {run + 1} of {runs}", file=sys.stderr, flush=True)
        for function in (USUAL, *(SHORTLY if IS_SHORT else builds["now"].functions)):
            for name, built in builds.items():
                if function in built.functions or (function, name) == (USUAL, "now"):
                    taken[function][name].append(built.processor_milliseconds(function))
    return taken


def initialisations(builds: dict[str, Build], runs: int) -> dict[str, dict[str, list[float]]]:
    """Each function's times by build, taken in turns."""
    taken: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for run in range(runs):
        print(f"initialising: run {run + 1} of {runs}", file=sys.stderr, flush=True)
        for function in SHORTLY if IS_SHORT else builds["now"].functions:
            for name, built in builds.items():
                if function in built.functions:
                    taken[function][name].append(built.start(function).milliseconds)
    return taken


def cold_posts(builds: dict[str, Build], runs: int) -> dict[str, list[float]]:
    """The times of cold uploads by build, taken in turns."""
    taken = defaultdict(list)
    print("starting a stack for cold uploads", file=sys.stderr, flush=True)
    with stack_of(STATE / "stack") as stack, lanes_paused(stack):
        function = stack.physical_id(SUBMIT)
        configured = stack.client("lambda").get_function_configuration(FunctionName=function)["Environment"]
        account = {name.upper(): value for name, value in of_account(stack.record.aws_secret).items()}
        here = {"ACCESS": "keys", "AWS_ENDPOINT_URL": stack.gateway_url, "AWS_SESSION_TOKEN": ""} | account
        variables = configured["Variables"] | here
        event = json.loads(*events(UPLOAD_BYTES, 1))
        for run in range(runs):
            print(f"cold uploads: run {run + 1} of {runs}", file=sys.stderr, flush=True)
            for name, built in builds.items():
                started = built.start(SUBMIT, event=event, variables=variables)
                if started.answer.get("statusCode") != HTTPStatus.ACCEPTED:
                    raise RuntimeError(f"the upload was not accepted: {started.answer}")
                taken[name].append(started.answer_milliseconds)
    return taken


def goals_of(rows: Sequence[dict[str, Any]]) -> list[Goal]:
    """No function is slow; and if there is a base, all are faster than that."""
    functions = [row for row in rows if row["function"] != COLD_POST]
    slowest = max(functions, key=lambda row: row["now_ms"])
    goals = [
        Goal(name=f"the slowest function, {slowest['function']}, ms", value=slowest["now_ms"], limit=LIMIT_MILLISECONDS)
    ]
    goals += [
        Goal(name=f"{row['function']}, of a usual function's processor time", value=row["of_usual"], limit=limit)
        for row in functions
        if (limit := USUAL_RATIOS.get(row["function"])) is not None
    ]
    return goals + [
        Goal(
            name=f"{row['function']}, of the base's time",
            value=round(row["now_ms"] / row["base_ms"], 3),
            limit=RATIOS.get(row["function"], OTHERS_RATIO),
        )
        for row in rows
        if "base_ms" in row
    ]


def show(rows: Sequence[dict[str, Any]], usual: float) -> None:
    """The tables."""
    print(f"{'least processor time, ms':<28}{'base':>8}{'now':>8}{'of usual':>10}")
    print(f"{USUAL:<28}{'-':>8}{usual:>8.0f}{1:>10.2f}")
    for row in rows:
        if "of_usual" in row:
            base = row.get("base_processor_ms", "-")
            print(f"{row['function']:<28}{base:>8}{row['now_processor_ms']:>8.0f}{row['of_usual']:>10.2f}")
    print(f"\n{'median, ms':<28}{'base':>8}{'now':>8}{'ratio':>8}")
    for row in rows:
        base = row.get("base_ms")
        figures = f"{'-':>8}{row['now_ms']:>8.0f}{'-':>8}"
        if base is not None:
            figures = f"{base:>8.0f}{row['now_ms']:>8.0f}{row['now_ms'] / base:>8.2f}"
        print(f"{row['function']:<28}{figures}")


if __name__ == "__main__":
    sys.exit(main())
