"""Runs named tests in one fork after another of a process that has imported all of them, with one file changed.

`tests.guards` starts it in a copy of the repository. The first line of standard input is a JSON list of all tests that
will be asked for. Each further line is a request:

    {"tests": ["tests/unit/test_due.py::test_late"], "from_scratch": false, "file": "…/due.py", "before": "its text"}

`file` is what has changed since the tests were imported, and `before` what it said then; both null if nothing has. A
fork does not import the file again: functions get the code that the file has now, whoever holds them. What a function
does not hold (a constant, a class's fields, a decorator) has taken effect elsewhere long ago, so the answer is
`NOT_EXCHANGEABLE` then, and the request must be made `from_scratch`: in a fork of a process that has imported only
third-party packages. Tests read other files, and start programs, as they are now.

Each line of the answer is JSON: `[status, failed]`, pytest's exit status (negative, as of a process, if a signal ended
it) and the node ids of the tests that failed. With a changed file, no more cases run once each named test has failed in
one. pytest's output goes to standard error.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import gc
import importlib
import json
import os
import resource
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

TIMEOUT_SECONDS = 300
# pytest's exit statuses: https://docs.pytest.org/en/stable/reference/exit-codes.html
_PASSED, _FAILED, _INTERNAL_ERROR, _NOT_FOUND = 0, 1, 3, 4
NOT_EXCHANGEABLE = 100

_NO_CODE = ("NameError", "UnboundLocalError", "ImportError", "ModuleNotFoundError", "SyntaxError", "IndentationError")

# None of them starts a thread, which would not survive a fork.
_PRELOADED = (
    "PIL.ImageCms",
    "PIL.ImageFile",
    "PIL.ImageSequence",
    "anyio.pytest_plugin",
    "aws_lambda_powertools.metrics",
    "aws_lambda_powertools.utilities.idempotency",
    "boto3.dynamodb.transform",
    "boto3.s3.inject",
    "boto3.s3.transfer",
    "cfnlint.template.transforms._language_extensions",
    "cryptography.hazmat.backends.openssl.backend",
    "cryptography.x509",
    "h2.connection",
    "httpcore",
    "httpx",
    "hypothesis.stateful",
    "jsonschema",
    "jsonschema_rs",
    "moto.awslambda.models",
    "moto.dynamodb.urls",
    "moto.dynamodbstreams.urls",
    "moto.iam.access_control",
    "moto.s3.urls",
    "moto.secretsmanager.urls",
    "moto.sns.urls",
    "moto.sqs.urls",
    "moto.stepfunctions.urls",
    "pybase64",
    "pydantic.json_schema",
    "pydantic.type_adapter",
    "pytest",
    "pyvips",
    "samtranslator.parser.parser",
    "samtranslator.translator.transform",
    "samtranslator.yaml_helper",
    "time_machine",
    "typer._adapters",
    "xdist.plugin",
)


_SERVICES = ("dynamodb", "lambda", "s3", "secretsmanager", "sns", "sqs", "stepfunctions")

_PREPARED = "functions"
"""The fixture of which one test runs before all forks, which find what it has imported and read. That changes no other
test's result, because tests run in any order; each must still be green with all guards, in such a fork."""


type Request = dict[str, Any]
type Answer = tuple[int, list[str]]


def main() -> None:
    """Serves until standard input ends."""
    for name in _PRELOADED:
        importlib.import_module(name)
    _read_models()
    gc.freeze()  # pytest collects garbage at its end: without that, among all that was imported here
    with _collected(json.loads(sys.stdin.readline())) as ask_collected:
        for line in sys.stdin:
            request = json.loads(line)
            answer = _in_a_fork(_run, request) if request["from_scratch"] else ask_collected(request)
            print(json.dumps(answer), flush=True)


def _read_models() -> None:
    """Has botocore and moto read their models of services here: by default each session reads them anew."""
    botocore_session: Any = importlib.import_module("botocore.session")
    moto_utils: Any = importlib.import_module("moto.core.utils")
    botocore_session.create_loader = functools.cache(botocore_session.create_loader)
    session = botocore_session.Session()
    session.set_credentials("unused", "unused")
    for service in _SERVICES:
        session.create_client(service, region_name="us-east-1")
        moto_utils.get_service_model(service)


@contextlib.contextmanager
def _collected(tests: list[str]) -> Iterator[Callable[[Request], Answer]]:
    """Forks the process that imports the tests; in the block it can be asked. It is waited for at the end, so that
    the time that it took counts as this process's children's."""
    (asked, ask), (answers, answer) = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ask)
        os.close(answers)
        with os.fdopen(asked) as requests, os.fdopen(answer, "w") as out:
            status = _pytest(tests, _Collected(requests, out))
        os._exit(status)
    os.close(asked)
    os.close(answer)
    requests, out = os.fdopen(ask, "w"), os.fdopen(answers)

    def ask_collected(request: Request) -> Answer:
        with contextlib.suppress(BrokenPipeError):  # it has ended: pytest could not collect the tests, and says which
            print(json.dumps(request), file=requests, flush=True)
        answer: Answer = json.loads(out.readline() or f"[{_INTERNAL_ERROR}, []]")
        return answer

    try:
        yield ask_collected
    finally:
        with contextlib.suppress(BrokenPipeError):
            requests.close()
        os.waitpid(child, 0)


def turned_red(test: str, failed: Iterable[str]) -> bool:
    """Whether a test, by its node id, is among the failed ones; without parameters, any of its cases counts."""
    return any(name == test or name.startswith(f"{test}[") for name in failed)


class _Failed:
    """Notes which tests fail; neither an error in a fixture is a failure, nor code that cannot run at all."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" and report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            if not (crash.message if crash else str(report.longrepr)).startswith(_NO_CODE):
                self.names.append(report.nodeid)


class _Collected(_Failed):
    """Serves requests in the place of pytest's loop over the collected tests: each in a fork of its own."""

    def __init__(self, requests: Any, out: Any) -> None:
        super().__init__()
        self._requests = requests
        self._out = out
        self._functions: dict[str, list[FunctionType]] = {}
        self._after_report: Callable[[], None] = lambda: None

    def pytest_runtest_logreport(self, report: Any) -> None:
        super().pytest_runtest_logreport(report)
        self._after_report()

    def pytest_runtestloop(self, session: Any) -> bool:
        if prepared := [item for item in session.items if _PREPARED in item.fixturenames]:
            item = min(prepared, key=lambda item: len(item.fixturenames))
            item.ihook.pytest_runtest_protocol(item=item, nextitem=None)
            assert threading.active_count() == 1, f"{item.nodeid} has left a thread, which no fork would have"
            gc.collect()
        gc.unfreeze()  # what is frozen is not among the objects
        path_of = functools.cache(os.path.realpath)
        for function in [each for each in gc.get_objects() if isinstance(each, FunctionType)]:
            self._functions.setdefault(path_of(function.__code__.co_filename), []).append(function)
        gc.freeze()
        for line in self._requests:
            request = json.loads(line)
            file = request["file"] and os.path.realpath(request["file"])
            codes: Mapping[CodeType, CodeType] | None = {}
            if file in self._functions:  # what has not been imported yet is read as it is now
                codes = exchanged_codes(request["before"], Path(file).read_text(), request["file"])
            work = functools.partial(self._answer, session, self._functions.get(file, []), codes or {})
            answer = (NOT_EXCHANGEABLE, []) if codes is None else _in_a_fork(work, request)
            print(json.dumps(answer), file=self._out, flush=True)
        return True

    def _answer(
        self, session: Any, functions: Iterable[FunctionType], codes: Mapping[CodeType, CodeType], request: Request
    ) -> Answer:
        try:
            for function in functions:
                function.__code__ = codes.get(function.__code__, function.__code__)
        except ValueError:  # a closure that was made before and holds another number of variables
            return NOT_EXCHANGEABLE, []
        names = request["tests"]
        chosen = [item for item in session.items if item.nodeid in names or item.nodeid.partition("[")[0] in names]
        if not chosen:
            return _NOT_FOUND, []

        def stop_once_all_are_red() -> None:
            if request["file"] and all(turned_red(name, self.names) for name in names):
                # Other cases would show no more. pytest hears of it before it tears down the case, and then tears down
                # everything that later ones would have used.
                session.shouldstop = "each named test has failed"

        self._after_report = stop_once_all_are_red
        for item, following in zip(chosen, [*chosen[1:], None], strict=True):
            item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.shouldstop:
                break
        return _FAILED if session.testsfailed else _PASSED, self.names


def exchanged_codes(before: str, after: str, file: str) -> dict[CodeType, CodeType] | None:
    """The code of each function of a file as it was and as it is; None if more has changed than functions' bodies."""
    outside, was = _parted(before, file)
    outside_now, now = _parted.__wrapped__(after, file)
    return dict(_pairs(was, now)) if outside == outside_now else None


@functools.cache
def _parted(text: str, file: str) -> tuple[str, CodeType]:
    """A file without the bodies of its functions, and its code."""
    tree = ast.parse(text)
    code = compile(tree, file, "exec", dont_inherit=True)
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            node.body = []
    return ast.dump(tree), code


def _pairs(was: CodeType, now: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    inner, inner_now = ([part for part in code.co_consts if isinstance(part, CodeType)] for code in (was, now))
    # In a function that has changed, functions may have come or gone: then those that it has made stay as they are.
    if [code.co_name for code in inner] == [code.co_name for code in inner_now]:
        for pair in zip(inner, inner_now, strict=True):
            yield pair
            yield from _pairs(*pair)


def _in_a_fork(work: Callable[[Request], Answer], request: Request) -> Answer:
    answer = tempfile.TemporaryFile("w+")  # noqa: SIM115 - a pipe would be full if many tests fail, or end too late
    child = os.fork()
    if child == 0:
        said: Answer = (_INTERNAL_ERROR, [])
        try:
            os.setsid()  # processes that the tests start end with them
            # A loop that nothing ends any more outlives whoever kills this server, but not by much.
            resource.setrlimit(resource.RLIMIT_CPU, (TIMEOUT_SECONDS, TIMEOUT_SECONDS))
            if request["file"]:  # bytecode of code that is soon changed must not be kept
                sys.dont_write_bytecode = True
                os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
            said = work(request)
        except BaseException:  # pytest's own failure, which os._exit would hide
            traceback.print_exc()
        finally:
            json.dump(said, answer)
            answer.flush()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            break
        if time.monotonic() > deadline:
            os.killpg(child, signal.SIGKILL)
        time.sleep(0.005)
    with answer:
        answer.seek(0)
        of_child: Answer = json.load(answer) if status == 0 else (os.waitstatus_to_exitcode(status), [])
        return of_child


def _run(request: Request) -> Answer:
    failed = _Failed()
    return _pytest(request["tests"], failed), failed.names


def _pytest(tests: Sequence[str], plugin: object) -> int:
    import pytest  # noqa: PLC0415 - imported above, by name

    os.dup2(2, 1)
    os.close(0)
    os.open(os.devnull, os.O_RDONLY)
    # Only whether a test fails matters here: explaining why may take minutes, if what differs is long.
    options = ["-q", "--tb=line", "--assert=plain", *sys.argv[1:]]
    # The plugins are already imported, and need no rewritten assertions.
    return pytest.main(["-W", "ignore::pytest.PytestAssertRewriteWarning", *options, *tests], plugins=[plugin])


if __name__ == "__main__":
    main()
