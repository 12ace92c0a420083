"""Initialises a function before its first invocation, if the emulator was told to.

Gap: MiniStack starts a function's process when it is first invoked, so the first request of a day meets cold starts one
after the other.
AWS: Lambda may initialise execution environments ahead of invocations ("proactive initialization"); a function must not
rely on being invoked right after.
https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html

What still differs from AWS: it always happens, to the functions named by `--initialise` alone, as soon as a stack has
created or updated them. A function with SnapStart is left out: MiniStack initialises the versions that are published.
"""

import contextvars
import logging
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace_resource_handler

_FUNCTION = "AWS::Lambda::Function"

_logger = logging.getLogger(__name__)
lambda_runtime = internals("core.lambda_runtime")
lambda_service = internals("services.lambda_svc")


def apply(emulator: Emulator) -> None:
    """Initialise the named functions in parallel whenever a stack has created or updated them."""
    # Each start keeps a core busy: more at once would only delay all of them.
    threads = ThreadPoolExecutor(max_workers=os.process_cpu_count() or 1, thread_name_prefix="initialisation")

    def ahead(handle: Any) -> Any:
        def handle_function(*arguments: Any) -> Any:
            handled = handle(*arguments)
            physical_id = handled[0]
            if any(f"-{logical_id}-" in physical_id for logical_id in emulator.initialised_ahead):
                threads.submit(contextvars.copy_context().run, _initialise, physical_id)
            return handled

        return handle_function

    for action in ("create", "update"):
        replace_resource_handler(_FUNCTION, action, ahead)


def _initialise(name: str) -> None:
    try:
        function = lambda_service._functions[name]
        if function["config"]["SnapStart"]["ApplyOn"] == "PublishedVersions":
            return
        worker, _ = lambda_service.acquire_worker(name, function["config"], function["code_zip"])
        try:
            lambda_runtime.ensure_spawned(worker)
        finally:
            lambda_service.release_worker(worker)
    except Exception as error:  # its first invocation fails in the same way, and tells its caller
        _logger.info("%s could not be initialised ahead: %s", name, error)
