"""Limits how many invocations of a function run at once, and ends idle processes.

Gap: MiniStack limits all functions together to half of the memory at 21 MB per invocation, hundreds on a laptop, and a
single function only by PutFunctionConcurrency: a template's ReservedConcurrentExecutions is dropped. It keeps one
process of each version of each function for ever, and an update of a function kills those that are at work.
AWS: an account has a quota of concurrent executions, a function at most its reservation. Anything above either is
refused: `Invoke` answers 429 TooManyRequestsException, and nothing waits. An execution counts until it ends, whether or
not its caller still waits. Execution environments that are idle for some minutes are ended. An update of a function
ends no invocation: those that have begun go on with the code and the configuration of before.
https://docs.aws.amazon.com/lambda/latest/dg/lambda-concurrency.html
https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html
https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html
https://docs.aws.amazon.com/lambda/latest/dg/functions-states.html (Function states during updates)

What still differs from AWS: the quota is this machine's (`local_aws.concurrency`), not 1,000, and every function
without a reservation has its own, so no function takes all of it from the others. If the event source mappings of a
function together want more than it may have, each gets its share and receives no more messages than that: on AWS's
quota they would not be throttled either. Queues keep a function as busy as the machine has cores; each has at least one
invocation at a time, and what is free goes to the one that has messages.
"""

import os
import threading
import time
from fnmatch import fnmatchcase
from typing import Any

from local_aws.concurrency import Bounds, Pool, bounds_of, share
from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace, replace_resource_handler
from local_aws.shims import background

_FUNCTION = "AWS::Lambda::Function"
_RESERVED = "ReservedConcurrentExecutions"

lambda_runtime = internals("core.lambda_runtime")
lambda_service = internals("services.lambda_svc")


def apply(emulator: Emulator) -> None:
    """Limit the executions where MiniStack counts them, and its processes where it takes and returns them."""
    bounds = bounds_of(
        cores=os.process_cpu_count() or 1,
        memory_bytes=lambda_service._memory_budget_bytes(),
        function=emulator.concurrency,
    )
    _bound(bounds)
    # Taking a worker requires a slot of the account, so if all slots' workers exist, one of the others is idle.
    pool = Pool(lambda_runtime._workers, lambda_runtime._lock, most=bounds.account, end=lambda_runtime.kill_workers)
    _use(pool)
    background.every(
        min(10.0, emulator.idle_seconds / 2),
        lambda: pool.end_unused_since(time.monotonic() - emulator.idle_seconds),
        name="idle functions",
    )
    replace_resource_handler(_FUNCTION, "create", _creating)
    replace_resource_handler(_FUNCTION, "update", _updating)


def _bound(bounds: Bounds) -> None:
    def reserved_or_bound(reserved_concurrency: Any) -> Any:
        def bound_of(function: Any, config: dict[str, Any]) -> int:
            # The current version: a retry carries the function as it was when it was requested.
            current = lambda_service._functions.get(config["FunctionName"]) or function
            reserved = reserved_concurrency(current, config)
            return bounds.function if reserved is None else int(reserved)

        return bound_of

    replace(lambda_service, "_ACCOUNT_CONCURRENCY_CAP", lambda _: bounds.account)
    replace(lambda_service, "_reserved_concurrency", reserved_or_bound)
    replace(lambda_service, "_sqs_esm_concurrency", lambda concurrency: _shared(concurrency, bounds))


def _use(pool: Pool[Any]) -> None:
    taken = threading.local()

    def acquire(
        name: str, config: dict[str, Any], code: bytes, qualifier: str = "$LATEST", *_: object, **__: object
    ) -> tuple[Any, str]:
        key = lambda_runtime._worker_key(name, config, qualifier)
        worker, is_new = pool.take(key, lambda: lambda_runtime._worker_class_for(config)(name, config, code))
        taken.worker = worker
        return worker, "spawn" if is_new else "reused"

    def release(worker: Any) -> None:
        # MiniStack gives nothing back if running it raised an exception: it takes it for invalidated.
        process = None if worker is None else worker._proc
        if process is None or process.poll() is not None:
            # As the last used it would be reused next, and would have to start again.
            pool.discard(taken.worker)  # guard: concurrency-failed-process-forgotten
        else:
            pool.give_back(worker, now=time.monotonic())

    def invalidate(
        name: str, qualifier: str | None = None, account: str | None = None, region: str | None = None
    ) -> None:
        keys = ":".join((account or "*", region or "*", name, qualifier or "*"))
        pool.replace(lambda key: fnmatchcase(key, keys))

    for module in (lambda_runtime, lambda_service):
        replace(module, "invalidate_worker", lambda _: invalidate)
        replace(module, "acquire_worker", lambda _: acquire)
        replace(module, "release_worker", lambda _: release)
        replace(module, "reap_idle_workers", lambda _: lambda: 0)


def _shared(concurrency: Any, bounds: Bounds) -> Any:
    def shared_concurrency(mapping: dict[str, Any], function: Any, config: dict[str, Any], *queue: Any) -> int:
        siblings = [
            other
            for other in lambda_service._esms.values()
            if other["FunctionName"] == mapping["FunctionName"]
            and ":sqs:" in other["EventSourceArn"]
            and other.get("Enabled", True)
        ]
        bound = lambda_service._reserved_concurrency(function, config)
        alone: int = concurrency(mapping, function, config, *queue)
        shared = share(_workers(mapping), wanted_together=sum(map(_workers, siblings)), bound=bound)
        busy: int = sum(
            lambda_service._esm_inflight.get(other["UUID"], 0) for other in siblings if other is not mapping
        )
        return min(alone, shared, max(1, bounds.by_queues - busy))

    return shared_concurrency


def _workers(mapping: dict[str, Any]) -> int:
    scaling = mapping.get("ScalingConfig") or {}
    return int(scaling.get("MaximumConcurrency") or lambda_service._ESM_SQS_DEFAULT_CONCURRENCY)


def _creating(create: Any) -> Any:
    def create_function(logical_id: str, properties: dict[str, Any], *arguments: Any) -> Any:
        created = create(logical_id, properties, *arguments)
        _reserve(created[0], {}, properties)
        return created

    return create_function


def _updating(update: Any) -> Any:
    def update_function(physical_id: str, old: dict[str, Any], new: dict[str, Any], *arguments: Any) -> Any:
        updated = update(physical_id, old, new, *arguments)
        _reserve(updated[0], old, new)
        return updated

    return update_function


def _reserve(function_name: str, old: dict[str, Any], new: dict[str, Any]) -> None:
    if _RESERVED in new:
        # A parameter's value is text: see mapping_concurrency.
        lambda_service._put_function_concurrency(function_name, {_RESERVED: int(new[_RESERVED])})
    elif _RESERVED in old:
        lambda_service._delete_function_concurrency(function_name)
