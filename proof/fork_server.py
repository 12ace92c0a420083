"""Runs pytest again and again in forks of one process that has imported the third-party packages that tests import.

`proof.guards` starts it in a copy of the repository. Each line of standard input is a JSON list: whether bytecode is
kept, and pytest's arguments. Each line of the answer is the exit status. The parent imports nothing of the repository,
so every fork sees the current code. pytest's output goes to standard error.
"""

from __future__ import annotations

import functools
import gc
import importlib
import json
import os
import signal
import sys
import time
import traceback

TIMEOUT_SECONDS = 300

# None of them starts a thread, which would not survive a fork.
_PRELOADED = (
    "PIL.ImageCms",
    "PIL.ImageFile",
    "PIL.ImageSequence",
    "anyio.pytest_plugin",
    "aws_lambda_powertools.metrics",
    "aws_lambda_powertools.utilities.idempotency",
    "boto3.s3.transfer",
    "cryptography.x509",
    "h2.connection",
    "httpcore",
    "httpx",
    "hypothesis.stateful",
    "jsonschema",
    "jsonschema_rs",
    "moto.dynamodb.models",
    "moto.dynamodb.responses",
    "moto.s3.models",
    "moto.s3.responses",
    "moto.secretsmanager.models",
    "moto.secretsmanager.responses",
    "moto.sns.models",
    "moto.sns.responses",
    "moto.sqs.models",
    "moto.sqs.responses",
    "moto.stepfunctions.models",
    "moto.stepfunctions.responses",
    "pybase64",
    "pydantic.json_schema",
    "pydantic.type_adapter",
    "pytest",
    "pyvips",
    "samtranslator.parser.parser",
    "samtranslator.translator.transform",
    "samtranslator.yaml_helper",
    "time_machine",
    "xdist.plugin",
)


_SERVICES = ("dynamodb", "lambda", "s3", "secretsmanager", "sns", "sqs", "stepfunctions")


def main() -> None:
    """Serves until standard input ends."""
    for name in _PRELOADED:
        importlib.import_module(name)
    _read_models()
    gc.freeze()  # pytest collects garbage at its end: without that, among all that was imported here
    for line in sys.stdin:
        print(_status_of(*json.loads(line)), flush=True)


def _read_models() -> None:
    """Has botocore read its models of services here: by default each session reads them anew."""
    import botocore.session  # noqa: PLC0415 - imported above, by name

    botocore.session.create_loader = functools.cache(botocore.session.create_loader)
    session = botocore.session.Session()
    session.set_credentials("unused", "unused")
    for service in _SERVICES:
        session.create_client(service, region_name="us-east-1")


def _status_of(keeps_bytecode: bool, arguments: list[str]) -> int:
    """pytest's exit status; negative, as of a process, if a signal ended it."""
    child = os.fork()
    if child == 0:
        sys.dont_write_bytecode = not keeps_bytecode
        _run(arguments)
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            os.killpg(child, signal.SIGKILL)
        time.sleep(0.02)


def _run(arguments: list[str]) -> None:
    status = 3  # pytest's own for an internal error
    try:
        os.setsid()  # processes that the tests start end with them
        os.dup2(2, 1)
        os.close(0)
        os.open(os.devnull, os.O_RDONLY)
        import pytest  # noqa: PLC0415 - the parent has imported it, by name

        # The plugins are already imported, and need no rewritten assertions.
        status = pytest.main(["-W", "ignore::pytest.PytestAssertRewriteWarning", *arguments])
    except BaseException:  # pytest's own failure, which os._exit would hide
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    main()
