"""Runs each Python function with AWS's own runtime client, on a separate interpreter and in Lambda's environment.

Gap: MiniStack runs functions on its own interpreter, in its own environment: its site-packages mask what a bundle
lacks, its variables leak in, layers come before the function's code, and an exception kills the process and loses its
type. Its answers take as long as those to all others, and whatever else this machine does.
AWS: the runtime client (awslambdaric) imports the handler. A function sees its code, then its layers, then the runtime;
the variables that AWS defines and its own; and nothing of the machine. Of a version with SnapStart the client runs the
hooks, before the snapshot and after each restore. A service answers a function within milliseconds, however much others
ask of it, and a function may take a second of silence for a lost answer.
https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html (Defined runtime environment variables)
https://docs.aws.amazon.com/lambda/latest/dg/python-package.html (Dependency search path)
https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html
https://docs.aws.amazon.com/lambda/latest/dg/snapstart-runtime-hooks.html
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Introduction.html (single-digit milliseconds)

What still differs from AWS:
- Layers are merged, later over earlier, into one folder, but it holds links and is not named /opt. It is on the
  search paths of Python, programs and libraries in /opt's place; only code that spells out "/opt" misses it.
- AWS_ENDPOINT_URL points the SDK to the emulator, unless the function's configuration sets its own. However soon the
  SDK is to give up an answer of the emulator, it waits for it for 20 seconds.
- HOME and TMPDIR are in a folder of the execution environment, so functions see neither the developer's ~/.aws nor
  /tmp.
- An environment of a version with SnapStart is not restored from a snapshot: it is initialised by itself, and runs the
  hooks of both moments. Its credentials are in its environment, and a deployment does not wait for it.
- Memory, /tmp's size and a read-only file system are not enforced.
"""

import functools
import hashlib
import json
import os
import queue
import secrets
import select
import shutil
import socket
import socketserver
import subprocess
import tempfile
import threading
import time
import zipfile
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from io import BytesIO
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from local_aws import observations
from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace
from local_aws.opt import put_over
from local_aws.stacks.websites import Headers, hosts_of, refusal

# Starts the runtime client as `python -m awslambdaric` does, in a process that the kernel kills when the thread that
# started it ends (prctl PR_SET_PDEATHSIG, SIGKILL): a function never outlives an emulator that was killed.
# What is left of an invocation's time goes by the monotonic clock on both sides: AWS's clock is never moved, ours is
# (`warp.py`), also while a function runs.
# And it waits for the emulator for as long as this machine needs, whatever it allows AWS.
_START = """
import ctypes, os, runpy, socket, sys, time, types

def settimeout(self, seconds, gateway=int(sys.argv.pop()), least=%d, settimeout=socket.socket.settimeout):
    try:
        is_gateway = bool(seconds) and self.getpeername()[1:2] == (gateway,)
    except OSError:  # it is not connected
        is_gateway = False
    settimeout(self, max(seconds, least) if is_gateway else seconds)

ctypes.CDLL(None).prctl(1, 9)
sys.path[0] = os.getcwd()
socket.socket.settimeout = settimeout
import awslambdaric.lambda_context
awslambdaric.lambda_context.time = types.SimpleNamespace(time=time.monotonic)
del awslambdaric, ctypes, settimeout, socket, time, types
runpy.run_module("awslambdaric", run_name="__main__", alter_sys=True)
"""
_LEAST_ANSWER_SECONDS = 20

# Lambda ends an execution environment without asking it.
_END_GRACE_SECONDS = 0.2
_PIPE_BYTES = 65536
# A stack has a dozen: its layers, and as many as its functions put over each other.
_KEPT = 30

lambda_runtime = internals("core.lambda_runtime")
lambda_service = internals("services.lambda_svc")
_ProvidedWorker: Any = lambda_runtime.ProvidedWorker


def apply(emulator: Emulator) -> None:
    """Run Python functions in isolated workers; other runtimes stay as they are."""
    worker = functools.partial(
        RuntimeClientWorker,
        settings=WorkerSettings(
            python=str(emulator.function_python),
            code=Packages(emulator.data_dir / "functions"),
            layers=Packages(emulator.layers_dir or emulator.data_dir / "layers"),
            gateway_url=emulator.gateway_url,
            clock=emulator.clock,
            # To the kernel, the thread that starts a process is its parent: this thread lives as long as the server.
            starter=ThreadPoolExecutor(max_workers=1, thread_name_prefix="function-starter"),
        ),
    )
    lambda_runtime._REAP_GRACE = _END_GRACE_SECONDS
    replace(
        lambda_runtime,
        "_worker_class_for",
        lambda choose: lambda config: worker if _is_python(config) else choose(config),
    )
    replace(lambda_service, "_execute_function_warm", _execute_python_by_runtime_api)


def _execute_python_by_runtime_api(execute: Any) -> Any:
    def execute_function(function: Any, event: Any, request_id: str) -> Any:
        by_runtime_api = _is_python(function.get("config") or function)
        run = lambda_service._execute_function_provided_warm if by_runtime_api else execute
        return run(function, event, request_id)

    return execute_function


def _is_python(config: dict[str, Any]) -> bool:
    return str(config.get("Runtime", "")).startswith("python")


class Packages:
    """Unpacked code or layers, one folder per archive, shared by the workers that run it, and by the emulators that are
    given the same folder: each begins by deleting all but the `_KEPT` that were used last."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for unused in sorted(folder.iterdir(), key=_used_at, reverse=True)[_KEPT:]:
            shutil.rmtree(unused, ignore_errors=True)
        self._folder = folder
        self._lock = threading.Lock()

    def unpack(self, archives: Sequence[bytes]) -> Path:
        """Return a folder with the archives unpacked over each other, the last one on top."""
        digests = [_digest(archive) for archive in archives]
        with self._lock:
            folders = [
                self._made(digest, functools.partial(_extract, archive))
                for archive, digest in zip(archives, digests, strict=True)
            ]
            if len(folders) == 1:
                return folders[0]
            together = hashlib.sha256("".join(digests).encode()).hexdigest()[:32]
            return self._made(together, functools.partial(_put_all_over, folders))

    def _made(self, name: str, fill: Callable[[Path], None]) -> Path:
        target = self._folder / name
        with suppress(FileNotFoundError):
            os.utime(target)
            return target
        unfinished = Path(tempfile.mkdtemp(prefix="unpacking-", dir=self._folder))
        fill(unfinished)
        unfinished.chmod(0o755)
        try:
            unfinished.rename(target)
        except OSError:  # another emulator was faster
            shutil.rmtree(unfinished)
            os.utime(target)
        return target


@functools.lru_cache(maxsize=_KEPT)  # by which each start of a process would calculate that of 50 MB
def _digest(archive: bytes) -> str:
    return hashlib.sha256(archive).hexdigest()[:32]


def _used_at(folder: Path) -> float:
    with suppress(FileNotFoundError):  # another emulator deletes, too
        return folder.stat().st_mtime
    return 0


def _extract(archive: bytes, folder: Path) -> None:
    with zipfile.ZipFile(BytesIO(archive)) as opened:
        lambda_service._extract_zip_preserving_mode(opened, str(folder))


def _put_all_over(layers: Sequence[Path], opt: Path) -> None:
    for layer in layers:
        put_over(layer, opt)


@dataclass(frozen=True, kw_only=True)
class WorkerSettings:
    """What every worker needs besides its function's configuration."""

    python: str
    code: Packages
    layers: Packages
    gateway_url: str
    clock: Mapping[str, str]
    starter: ThreadPoolExecutor


class InitializationFailed(Exception):
    """The runtime client could not import the handler, or died before it asked for an event."""

    def __init__(self, payload: dict[str, Any], log: str) -> None:
        super().__init__(payload["errorMessage"])
        self.payload = payload
        self.log = log


class RuntimeApiServer(socketserver.ThreadingTCPServer):
    """The Runtime API of one execution environment, on its own port. It waits for connections without polling: many
    environments are idle for most of their time."""

    daemon_threads = True

    def serve_forever(self, poll_interval: float = 0) -> None:
        """Take connections until `shutdown`."""
        while True:
            try:
                connection, address = self.get_request()
            except OSError:
                return
            self.process_request(connection, address)

    def shutdown(self) -> None:
        """End `serve_forever`."""
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log nothing: the client's end of the connection closes whenever an execution environment ends."""


class Output:
    """What a process writes. A thread (`pump`) empties its pipe, so that it never has to wait; `take` returns all that
    was written before, without waiting for that thread."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._lines: deque[str] = deque(maxlen=lambda_runtime._PROVIDED_LOG_MAX_LINES)
        self._unfinished = b""
        self._has_ended = False
        os.set_blocking(stream.fileno(), False)

    def pump(self) -> None:
        """Read until the process has closed its end."""
        readable = select.poll()
        readable.register(self._stream.fileno(), select.POLLIN)
        while not self._has_ended:
            readable.poll()
            with self._lock:
                self._read()
        self._stream.close()

    def take(self) -> str:
        """Return the lines that have not been taken yet."""
        with self._lock:
            if not self._has_ended:
                self._read()
            lines = list(self._lines)
            self._lines.clear()
        return "\n".join(lines)

    def _read(self) -> None:
        while (written := self._available()) is not None:
            if not written:
                self._has_ended = True
                return
            *lines, self._unfinished = (self._unfinished + written).split(b"\n")
            self._lines.extend(line.decode(errors="replace").rstrip("\r") for line in lines)

    def _available(self) -> bytes | None:
        try:
            return os.read(self._stream.fileno(), _PIPE_BYTES)
        except BlockingIOError:
            return None


class RuntimeClientWorker(_ProvidedWorker):  # type: ignore[misc]  # MiniStack publishes no types.
    """An execution environment: MiniStack's for custom runtimes (the Runtime API), with AWS's Python client in it."""

    def __init__(self, func_name: str, config: dict[str, Any], code_zip: bytes, *, settings: WorkerSettings) -> None:
        super().__init__(func_name, config, code_zip)
        self._settings = settings
        self._output: Output | None = None

    def invoke(self, *arguments: Any, **options: Any) -> Any:
        """Run one invocation; a handler that cannot be imported fails it with the runtime client's own error.

        If anything is raised here, MiniStack replaces all processes of the function.
        """
        try:
            return super().invoke(*arguments, **options)
        except InitializationFailed as failure:
            if seen := observations.current.get():
                seen.initialisation_error = str(failure.payload.get("errorType"))
            return {"status": "error", "error": str(failure), "error_payload": failure.payload, "log": failure.log}
        except lambda_runtime.ProvidedInitTimeout as failure:
            message = f"Task timed out after {self.config['Timeout']}.00 seconds"
            payload = {"errorMessage": message, "errorType": "Sandbox.Timedout"}
            return {"status": "error", "error": message, "error_payload": payload, "log": str(failure)}
        finally:
            if (seen := observations.current.get()) and self._proc:
                seen.peak_memory_mb = _peak_memory_mb(self._proc.pid)

    def _spawn(self, init_timeout: float | None = None) -> None:
        seen, began = observations.current.get(), time.monotonic()
        if seen:
            seen.initialised_at = time.time()
        try:
            self._start(init_timeout)
        finally:
            if seen:
                seen.initialisation_seconds = time.monotonic() - began

    def _start(self, init_timeout: float | None) -> None:
        self._teardown()
        self._discard_tmpdir()
        self._tmpdir = tempfile.mkdtemp(prefix="sandbox-")
        task_root = self._settings.code.unpack([self.code_zip])
        generation = self._begin_generation()
        try:
            self._server = RuntimeApiServer(("127.0.0.1", 0), self._build_handler_class(generation, self._pending))
            self._server_thread = threading.Thread(target=self._server.serve_forever, daemon=True)
            self._server_thread.start()
            process: Any = self._settings.starter.submit(
                subprocess.Popen,
                # -B: /var/task and /opt are read-only on Lambda, so a module without bytecode is compiled on every cold
                # start. (Permissions would not stop root.)
                [
                    *(
                        self._settings.python,
                        "-B",
                        "-c",
                        _START % _LEAST_ANSWER_SECONDS,
                        self.config.get("Handler", ""),
                    ),
                    str(urlsplit(self._settings.gateway_url).port),
                ],
                cwd=task_root,
                env=self._environment(task_root, port=self._server.server_address[1]),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            ).result()
            self._proc = process
            self._output = Output(process.stdout)
            self._log_thread = threading.Thread(target=self._output.pump, daemon=True)
            self._log_thread.start()
            self._await_init(init_timeout)
        except lambda_runtime.ProvidedInitTimeout:
            self._teardown()
            raise
        except Exception as error:
            reported = self._init_error
            self._teardown()
            if isinstance(reported, dict):
                raise InitializationFailed(reported, self._drain_stderr()) from error
            log = self._drain_stderr()
            raise InitializationFailed({"errorMessage": str(error), "errorType": "Runtime.ExitError"}, log) from error
        lambda_runtime.logger.info("Lambda worker started for %s (cold start)", self.func_name)

    def _begin_generation(self) -> int:
        with self._state_lock:
            self._generation += 1
            self._stopping = False
            self._first_poll.clear()
            self._init_settled.clear()
            self._init_error = None
            self._result: dict[str, Any] = {}
            self._response_ready.clear()
            self._current_request_id = None
            self._pending: queue.Queue[Any] = queue.Queue(maxsize=1)
            self._output = None
            return int(self._generation)

    def _build_handler_class(self, generation: int, pending: Any) -> Any:
        worker = self

        class RuntimeApiHandler(super()._build_handler_class(generation, pending)):  # type: ignore[misc]
            # One packet for head and body of an answer: two would wait for each other (Nagle and delayed
            # acknowledgement).
            wbufsize = -1
            disable_nagle_algorithm = True

            def parse_request(self) -> bool:
                """Read the head of a request, and refuse that of a website: its page could take an invocation away."""
                if not super().parse_request():
                    return False
                hosts = hosts_of(self.server.server_address[1])
                headers = Headers([(name.encode(), value.encode()) for name, value in self.headers.items()])
                # guard: gate-runtime-interface
                if (reason := refusal(self.command, headers, hosts=hosts, origins=())) is not None:
                    self.send_error(HTTPStatus.FORBIDDEN, explain=reason)
                    return False
                return True

            def do_GET(self) -> None:  # noqa: N802 -- the name that http.server calls
                """The next invocation, whenever it comes; MiniStack's own looks for it ten times a second. With
                SnapStart, the restore comes first, and at once."""
                if self.path.endswith("/runtime/restore/next"):
                    self._respond(200)
                    return
                if not self.path.endswith("/runtime/invocation/next"):
                    self._respond(404)
                    return
                invocation = pending.get() if worker._mark_first_poll(generation) else None
                if invocation is None or worker._stopping or generation != worker._generation:
                    self._stopped()
                    return
                request_id, event, deadline_milliseconds, trace_id, function_arn = invocation
                deadline_milliseconds += round(1000 * (time.monotonic() - time.time()))
                body = json.dumps(event).encode()
                self.send_response(HTTPStatus.OK)
                for name, value in (
                    ("Lambda-Runtime-Aws-Request-Id", request_id),
                    ("Lambda-Runtime-Deadline-Ms", deadline_milliseconds),
                    ("Lambda-Runtime-Invoked-Function-Arn", function_arn),
                    ("Lambda-Runtime-Trace-Id", trace_id),
                    ("Content-Type", "application/json"),
                    ("Content-Length", len(body)),
                ):
                    if value:
                        self.send_header(name, str(value))
                self.end_headers()
                self.wfile.write(body)

        return RuntimeApiHandler

    def _drain_stderr(self) -> str:
        # The client flushes every line before it posts its response, so all of its output is there by now.
        return "" if self._output is None else self._output.take()

    def _drain_stderr_bounded(self, *_: float, **__: float) -> str:
        return self._drain_stderr()

    def _shutdown_server(self) -> None:
        with suppress(queue.Full, AttributeError):
            self._pending.put_nowait(None)  # so that the thread that waits for an invocation ends
        super()._shutdown_server()

    def _discard_tmpdir(self) -> None:
        super()._discard_tmpdir()
        if self._tmpdir:
            shutil.rmtree(self._tmpdir, ignore_errors=True)

    def _environment(self, task_root: Path, *, port: int) -> dict[str, str]:
        config = self.config
        _, region = lambda_runtime._account_region_from_function_config(config)
        layers = [lambda_service._resolve_layer_zip(layer) for layer in config.get("Layers") or []]
        opt = self._settings.layers.unpack([archive for archive in layers if archive])
        sandbox = Path(self._tmpdir)
        (sandbox / "tmp").mkdir()
        own = lambda_service._runtime_env_vars(config)
        return {
            **_unreserved_variables(task_root, opt),
            **self._settings.clock,
            "AWS_ENDPOINT_URL": self._settings.gateway_url,
            "HOME": str(sandbox / "home"),
            "TMPDIR": str(sandbox / "tmp"),
            **own,
            "PYTHONPATH": os.pathsep.join([*_layer_search_path(config, opt), *filter(None, [own.get("PYTHONPATH")])]),
            **_reserved_variables(config, region, task_root, port=port),
            **{name: value for name, value in lambda_runtime.execution_credentials(config).items() if value},
        }


def _peak_memory_mb(pid: int) -> int | None:
    """The largest resident set of a process so far (proc(5), VmHWM, in kB); None once it has ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return round(int(line.split()[1]) / 1024)
    return None


def _layer_search_path(config: dict[str, Any], opt: Path) -> list[str]:
    return [str(opt / "python" / "lib" / str(config["Runtime"]) / "site-packages"), str(opt / "python")]


def _unreserved_variables(task_root: Path, opt: Path) -> dict[str, str]:
    """Variables that Lambda defines and a function's configuration may change."""
    return {
        "LANG": "en_US.UTF-8",
        "TZ": ":UTC",
        "PATH": f"/usr/local/bin:/usr/bin:/bin:{opt}/bin",
        "LD_LIBRARY_PATH": f"{task_root}:{task_root}/lib:{opt}/lib",
        "AWS_XRAY_CONTEXT_MISSING": "LOG_ERROR",
        "AWS_XRAY_DAEMON_ADDRESS": "127.0.0.1:2000",
    }


def _reserved_variables(config: dict[str, Any], region: str, task_root: Path, *, port: int) -> dict[str, str]:
    """Variables that Lambda defines and nobody may change."""
    version = config.get("Version", "$LATEST")
    logging = config.get("LoggingConfig") or {}
    is_json = logging.get("LogFormat") == "JSON"
    snap_start = config.get("SnapStart") or {}
    log_stream = f"{time.strftime('%Y/%m/%d', time.gmtime())}/[{version}]{secrets.token_hex(16)}"
    reserved = {
        "_HANDLER": config.get("Handler"),
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,
        "AWS_EXECUTION_ENV": f"AWS_Lambda_{config['Runtime']}",
        "AWS_LAMBDA_FUNCTION_NAME": config.get("FunctionName"),
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": config.get("MemorySize", 128),
        "AWS_LAMBDA_FUNCTION_VERSION": version,
        "AWS_LAMBDA_INITIALIZATION_TYPE": "snap-start" if snap_start.get("OptimizationStatus") == "On" else "on-demand",
        "AWS_LAMBDA_LOG_FORMAT": logging.get("LogFormat"),
        "AWS_LAMBDA_LOG_LEVEL": logging.get("ApplicationLogLevel") or ("INFO" if is_json else None),
        "AWS_LAMBDA_LOG_GROUP_NAME": logging.get("LogGroup") or f"/aws/lambda/{config.get('FunctionName')}",
        "AWS_LAMBDA_LOG_STREAM_NAME": log_stream,
        "AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{port}",
        "LAMBDA_TASK_ROOT": str(task_root),
    }
    return {name: str(value) for name, value in reserved.items() if value is not None}
