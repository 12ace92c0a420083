"""How many invocations run at once, and what happens to the others: each shim next to the gap that it closes."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from local_aws import clock
from local_aws.tests.emulator_server import (
    ACCOUNT_ID,
    ENVIRONMENTS,
    ROLE,
    EmulatorServer,
    create_function,
    emulator_server,
    function_resource,
    invoke,
    output_of,
    package,
    physical_ids,
    stack,
    update_stack,
    wait_until,
)
from local_aws.tests.http_apis import ASKED, AUTHORIZER, echo_api, guarded_api
from local_aws.tests.metrics import statistic
from local_aws.tests.queues import Queue, queue

pytest_plugins = ("local_aws.tests.emulator_fixtures",)

BOUND = 2

# Records that it has begun, and its event; ends once its folder has a file `open`.
GATED = """
import json, os, pathlib, time

def handler(event, context):
    folder = pathlib.Path(os.environ["FOLDER"])
    noted = folder / f"unfinished-{context.aws_request_id}"
    noted.write_text(json.dumps({"pid": os.getpid(), "event": event}))
    noted.rename(folder / f"began-{context.aws_request_id}")
    while not (folder / "open").exists():
        time.sleep(0.01)
    return {"statusCode": 200, "body": "open"}
"""


@pytest.fixture(scope="module")
def bounded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmulatorServer]:
    """An emulator that runs two invocations of a function at once."""
    with emulator_server(tmp_path_factory.mktemp("bounded"), "--concurrency", str(BOUND)) as server:
        yield server


@dataclass(frozen=True, kw_only=True)
class Gated:
    """A function whose invocations end when it is opened."""

    server: EmulatorServer
    name: str
    folder: Path

    def began(self) -> list[Any]:
        """The events of the invocations that have begun."""
        return [json.loads(file.read_text())["event"] for file in self.folder.glob("began-*")]

    def pids(self) -> set[int]:
        """The processes that have run them."""
        return {json.loads(file.read_text())["pid"] for file in self.folder.glob("began-*")}

    def open(self) -> None:
        """Let all invocations end, later ones too."""
        (self.folder / "open").touch()

    def send(self, event: Any) -> None:
        """Invoke it asynchronously."""
        self.server.client("lambda").invoke(
            FunctionName=self.name, InvocationType="Event", Payload=json.dumps(event).encode()
        )

    def forbid(self) -> None:
        """Allow no invocation of it."""
        self.server.client("lambda").put_function_concurrency(FunctionName=self.name, ReservedConcurrentExecutions=0)

    def allow(self) -> None:
        """Undo that."""
        self.server.client("lambda").delete_function_concurrency(FunctionName=self.name)

    def throttles(self) -> float:
        """How often it was throttled."""
        return sum(statistic(self.server, "AWS/Lambda", "Throttles", {"FunctionName": self.name}))


def gated(server: EmulatorServer, folder: Path, **configuration: Any) -> Gated:
    """Create such a function."""
    name = f"gated-{uuid4().hex[:8]}"
    create_function(
        server, name, GATED, Timeout=60, Environment={"Variables": {"FOLDER": str(folder)}}, **configuration
    )
    return Gated(server=server, name=name, folder=folder)


def flood(function: Gated, clients: ThreadPoolExecutor, requests: int) -> list[Future[Any]]:
    """Request so many invocations at once."""
    return [clients.submit(invoke, function.server, function.name, {"number": number}) for number in range(requests)]


def processes_of(server: EmulatorServer) -> set[int]:
    """The processes in which an emulator runs functions: its children, without Python's own."""
    pids = set()
    for thread in Path(f"/proc/{server.process.pid}/task").iterdir():
        # A thread, as a child, may end before it is read.
        with suppress(FileNotFoundError, ProcessLookupError):
            pids.update((thread / "children").read_text().split())
    return {int(pid) for pid in pids if is_function(pid)}


def is_function(pid: str) -> bool:
    """Whether a child of the emulator still runs and is not Python's own."""
    try:
        return b"resource_tracker" not in Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False


# function_concurrency


def test_gap_stock_runs_a_function_as_often_as_anybody_asks(stock: EmulatorServer, tmp_path: Path) -> None:
    function = gated(stock, tmp_path)
    with ThreadPoolExecutor(8) as clients:
        flood(function, clients, 8)
        wait_until(lambda: len(function.began()) == 8, "all of them run")
        assert len(function.pids()) == 8
        function.open()


def test_a_flood_runs_up_to_the_bound_and_its_asynchronous_part_later(bounded: EmulatorServer, tmp_path: Path) -> None:
    function, before = gated(bounded, tmp_path), processes_of(bounded)
    too_many = bounded.client("lambda").exceptions.TooManyRequestsException
    with ThreadPoolExecutor(8) as clients:
        requests = flood(function, clients, 8)
        wait_until(lambda: sum(request.done() for request in requests) == 8 - BOUND, "what is beyond is refused")
        errors: list[Any] = [error for request in requests if request.done() and (error := request.exception())]
        assert [type(error) for error in errors] == [too_many] * (8 - BOUND)
        assert {error.response["ResponseMetadata"]["HTTPStatusCode"] for error in errors} == {429}
        for number in range(3):
            function.send({"number": 100 + number})
        wait_until(lambda: function.throttles() >= 8 - BOUND + 3, "the asynchronous ones were throttled too")
        wait_until(lambda: len(function.began()) == BOUND, "those within the bound run")
        assert len(processes_of(bounded) - before) == BOUND
        function.open()
        wait_until(lambda: len(function.began()) == BOUND + 3, "the asynchronous ones run later")
        assert sorted(request.exception() is None for request in requests) == [False] * (8 - BOUND) + [True] * BOUND
    assert {event["number"] for event in function.began()} >= {100, 101, 102}
    assert len(function.pids()) <= BOUND
    invocations = sum(statistic(bounded, "AWS/Lambda", "Invocations", {"FunctionName": function.name}))
    assert invocations == BOUND + 3


def gated_api(api: dict[str, Any], folder: Path) -> dict[str, Any]:
    """An API whose function is gated."""
    api["Echo"]["Properties"] |= {
        "Code": {"ZipFile": GATED},
        "Timeout": 60,
        "Environment": {"Variables": {"FOLDER": str(folder)}},
    }
    return api


def occupy(function: Gated, url: str, http: httpx.Client, **options: Any) -> None:
    """Start the maximum number of invocations, all by clients that then disconnect."""
    while len(function.began()) < BOUND:
        with suppress(httpx.ReadTimeout):
            http.get(url, timeout=httpx.Timeout(10, read=0.3), **options)


def test_an_invocation_whose_client_has_gone_counts_until_it_ends_and_what_is_beyond_is_unavailable(
    bounded: EmulatorServer, tmp_path: Path
) -> None:
    function = Gated(server=bounded, name="", folder=tmp_path)
    with stack(bounded, gated_api(echo_api({"$default": {}}), tmp_path)), httpx.Client(trust_env=False) as http:
        url = f"{bounded.front_url}/images"
        occupy(function, url, http)
        answer = http.get(url, timeout=60)
        assert (answer.status_code, answer.json()) == (503, {"message": "Service Unavailable"})
        assert len(function.began()) == BOUND
        function.open()
        wait_until(lambda: http.get(url, timeout=60).status_code == 200, "there is room again")
        assert len(function.pids()) <= BOUND


def test_a_function_takes_no_place_from_the_authorizer_before_it(bounded: EmulatorServer, tmp_path: Path) -> None:
    function = Gated(server=bounded, name="", folder=tmp_path)
    api = guarded_api(AUTHORIZER, {"$default": ASKED})
    opened = {"Authorization": "open"}
    with stack(bounded, gated_api(api, tmp_path)), httpx.Client(trust_env=False) as http:
        url = f"{bounded.front_url}/images"
        occupy(function, url, http, headers=opened)
        assert http.get(url, timeout=60, headers=opened).status_code == 503
        assert http.get(url, timeout=60, headers={"Authorization": "shut"}).status_code == 403
        function.open()
        wait_until(lambda: http.get(url, timeout=60, headers=opened).status_code == 200, "there is room again")


def reserving(concurrency: Any) -> dict[str, Any]:
    """A function that reserves so much; None reserves nothing."""
    properties = {} if concurrency is None else {"ReservedConcurrentExecutions": concurrency}
    return {"Reserving": function_resource(GATED, **properties)}


def reserved(server: EmulatorServer, stack_name: str) -> int | None:
    """What the stack's function has reserved."""
    name = physical_ids(server, stack_name)["Reserving"]
    answer = server.client("lambda").get_function_concurrency(FunctionName=name)
    concurrency: int | None = answer.get("ReservedConcurrentExecutions")
    return concurrency


def test_a_template_reserves_concurrency_changes_it_and_gives_it_back(emulator: EmulatorServer) -> None:
    with stack(emulator, reserving("1")) as name:
        assert reserved(emulator, name) == 1
        update_stack(emulator, name, reserving(3))
        assert reserved(emulator, name) == 3
        update_stack(emulator, name, reserving(None))
        assert reserved(emulator, name) is None


def test_a_reservation_stands_in_place_of_the_machines_bound(bounded: EmulatorServer, tmp_path: Path) -> None:
    function = gated(bounded, tmp_path)
    bounded.client("lambda").put_function_concurrency(
        FunctionName=function.name, ReservedConcurrentExecutions=BOUND + 1
    )
    with ThreadPoolExecutor(8) as clients:
        requests = flood(function, clients, 8)
        wait_until(lambda: sum(request.done() for request in requests) == 8 - BOUND - 1, "what is beyond is refused")
        wait_until(lambda: len(function.began()) == BOUND + 1, "what is reserved runs")
        function.open()


def test_the_mappings_of_a_function_receive_no_more_than_it_may_run_and_each_gets_its_part(
    bounded: EmulatorServer, tmp_path: Path
) -> None:
    function, sources = gated(bounded, tmp_path), [queue(bounded, VisibilityTimeout="600") for _ in range(2)]
    for source, workers in zip(sources, (20, 10), strict=True):
        bounded.client("lambda").create_event_source_mapping(
            EventSourceArn=source.arn,
            FunctionName=function.name,
            BatchSize=1,
            ScalingConfig={"MaximumConcurrency": workers},
        )
    for source in sources:
        for number in range(4):
            source.send(str(number))
    wait_until(lambda: [source.counts() for source in sources] == [(3, 1), (3, 1)], "each queue has its worker")
    wait_until(lambda: len(function.began()) == BOUND, "both run")
    function.open()
    wait_until(lambda: [source.counts() for source in sources] == [(0, 0), (0, 0)], "all messages are processed")
    assert len(function.began()) == 8
    assert len(function.pids()) <= BOUND


def test_a_process_that_nobody_needs_any_more_is_ended(tmp_path: Path) -> None:
    with emulator_server(tmp_path / "data", "--idle-seconds", "1") as server:
        function = gated(server, tmp_path)
        function.open()
        invoke(server, function.name)
        wait_until(lambda: processes_of(server) == set(), "the process is ended")
        invoke(server, function.name)
        assert len(function.pids()) == 2


def updated_while_it_works(function: Gated) -> Any:
    """What comes of an invocation during which its function's configuration and its code change."""
    with ThreadPoolExecutor(1) as clients:
        (answer,) = flood(function, clients, 1)
        wait_until(function.began, "it runs")
        lambda_ = function.server.client("lambda")
        lambda_.update_function_configuration(FunctionName=function.name, Timeout=59)
        lambda_.update_function_code(FunctionName=function.name, ZipFile=package({"app.py": GATED}))
        function.open()
        return answer.result()


def test_gap_stock_kills_an_invocation_when_its_function_is_updated(stock: EmulatorServer, tmp_path: Path) -> None:
    assert "errorMessage" in updated_while_it_works(gated(stock, tmp_path))


def test_an_invocation_ends_as_it_began_while_its_function_is_updated_and_the_next_one_is_new(
    emulator: EmulatorServer, tmp_path: Path
) -> None:
    function, before = gated(emulator, tmp_path), processes_of(emulator)
    assert updated_while_it_works(function) == {"statusCode": 200, "body": "open"}
    (old,) = function.pids()
    wait_until(lambda: old not in processes_of(emulator), "its process is ended")
    assert invoke(emulator, function.name)["body"] == "open"
    assert len(function.pids()) == 2
    assert processes_of(emulator) - before == function.pids() - {old}


FAILING = """
import io, pathlib, zipfile
from local_aws.emulator import Emulator
from local_aws.shims import function_concurrency

nowhere = pathlib.Path()
function_concurrency.apply(Emulator(gateway_url="", function_python=nowhere, data_dir=nowhere))
empty = io.BytesIO()
zipfile.ZipFile(empty, "w").close()
arn = "arn:aws:lambda:us-east-1:000000000000:function:failing"
config = {"FunctionName": "failing", "FunctionArn": arn, "Runtime": "provided.al2023"}
function = {"config": config, "code_zip": empty.getvalue()}
result = function_concurrency.lambda_service._execute_function_provided_warm(function, {}, "request")
print(result["body"]["errorType"], *map(len, function_concurrency.lambda_runtime._workers.values()))
"""


@pytest.mark.guards("concurrency-failed-process-forgotten")
def test_what_could_not_even_start_takes_no_place_for_ever() -> None:
    assert output_of(FAILING) == "Runtime.InvalidEntrypoint"


# throttled_invocations


def with_failures_to(failures: Queue, function: Gated) -> None:
    """Send the events that are given up to a queue."""
    function.server.client("lambda").put_function_event_invoke_config(
        FunctionName=function.name,
        MaximumRetryAttempts=0,
        MaximumEventAgeInSeconds=60,
        DestinationConfig={"OnFailure": {"Destination": failures.arn}},
    )


def test_an_asynchronous_invocation_that_is_throttled_runs_as_soon_as_it_may(
    emulator: EmulatorServer, tmp_path: Path
) -> None:
    function, failures = gated(emulator, tmp_path), queue(emulator)
    with_failures_to(failures, function)
    function.open()
    function.forbid()
    function.send({"number": 1})
    wait_until(lambda: function.throttles() >= 3, "it is tried again, though it has a single attempt")
    assert function.began() == []
    function.allow()
    wait_until(lambda: function.began() == [{"number": 1}], "it runs")
    assert failures.counts() == (0, 0)


def test_an_asynchronous_invocation_that_is_throttled_for_longer_than_its_event_lives_is_given_up(
    tmp_path: Path,
) -> None:
    file = tmp_path / "clock"
    clock.set_ahead(file, 0)
    python = ENVIRONMENTS / "emulator" / "bin" / "python"
    with emulator_server(tmp_path / "data", **clock.variables(python, file)) as server:
        function, failures = gated(server, tmp_path), queue(server)
        with_failures_to(failures, function)
        function.forbid()
        function.send({"number": 1})
        wait_until(lambda: function.throttles() >= 1, "it is throttled")
        assert failures.counts() == (0, 0)
        clock.set_ahead(file, 61)
        wait_until(lambda: failures.counts() == (1, 0), "the event is given up")
        assert function.began() == []


def rule_for(function: Gated) -> Callable[[int], None]:
    """Direct events to a function, and return a function that sends one."""
    events, source = function.server.client("events"), f"test.{function.name}"
    events.put_rule(Name=function.name, EventPattern=json.dumps({"source": [source]}))
    arn = f"arn:aws:lambda:us-east-1:{ACCOUNT_ID}:function:{function.name}"
    events.put_targets(Rule=function.name, Targets=[{"Id": "function", "Arn": arn}])

    def send(number: int) -> None:
        events.put_events(Entries=[{"Source": source, "DetailType": "test", "Detail": json.dumps({"number": number})}])

    return send


def numbers(function: Gated) -> list[int]:
    return sorted(event["detail"]["number"] for event in function.began())


def test_the_event_of_a_rule_whose_function_is_throttled_arrives_later(
    emulator: EmulatorServer, tmp_path: Path
) -> None:
    function = gated(emulator, tmp_path)
    function.open()
    send = rule_for(function)
    function.forbid()
    send(1)
    wait_until(lambda: function.throttles() >= 1, "it is throttled")
    function.allow()
    wait_until(lambda: numbers(function) == [1], "the event arrives")


def throttled_batch(server: EmulatorServer, folder: Path) -> tuple[Gated, Queue]:
    """A function that may run only once and does, and a queue whose message it therefore could not take."""
    function, source = gated(server, folder), queue(server, VisibilityTimeout="600")
    lambda_ = server.client("lambda")
    lambda_.put_function_concurrency(FunctionName=function.name, ReservedConcurrentExecutions=1)
    function.send({"Records": []})
    wait_until(function.began, "it runs")
    lambda_.create_event_source_mapping(EventSourceArn=source.arn, FunctionName=function.name)
    source.send("one")
    wait_until(lambda: source.counts() == (0, 1) and function.throttles() >= 1, "the batch is throttled")
    return function, source


def test_gap_stock_leaves_a_throttled_batch_in_flight(stock: EmulatorServer, tmp_path: Path) -> None:
    function, source = throttled_batch(stock, tmp_path)
    function.open()
    lambda_ = stock.client("lambda")
    wait_until(
        lambda: "FAILED" in str(lambda_.list_event_source_mappings(EventSourceArn=source.arn)["EventSourceMappings"]),
        "the batch has failed",
    )
    source.send("two")
    wait_until(lambda: len(function.began()) == 2, "the next message is taken")
    wait_until(lambda: source.counts() == (0, 1), "it is done, and the first is still in flight")


def test_a_throttled_batch_is_processed_as_soon_as_its_function_may_run(
    emulator: EmulatorServer, tmp_path: Path
) -> None:
    function, source = throttled_batch(emulator, tmp_path)
    assert len(function.began()) == 1
    function.open()
    wait_until(lambda: source.counts() == (0, 0), "the message is processed")
    (record,) = [record for event in function.began() for record in event["Records"]]
    assert record["attributes"]["ApproximateReceiveCount"] == "1"


def test_a_batch_that_is_throttled_until_its_messages_are_visible_again_returns_to_its_queue(
    emulator: EmulatorServer, tmp_path: Path
) -> None:
    function, source = gated(emulator, tmp_path), queue(emulator, VisibilityTimeout="60")
    lambda_ = emulator.client("lambda")
    lambda_.put_function_concurrency(FunctionName=function.name, ReservedConcurrentExecutions=1)
    function.send({"Records": []})
    wait_until(function.began, "it runs")
    mapping = lambda_.create_event_source_mapping(EventSourceArn=source.arn, FunctionName=function.name)["UUID"]
    source.send("one")  # its remaining visibility timeout is the function's timeout: too little for a second try

    def outcome() -> str:
        result: str = lambda_.get_event_source_mapping(UUID=mapping).get("LastProcessingResult", "")
        return result if result != "No records processed" else ""

    assert wait_until(outcome, "the batch was given up") == "FAILED"
    assert source.counts() == (0, 1)
    function.open()


def error_of_task(function: Gated) -> tuple[str, str]:
    """The error that a state machine gets for a task whose function is throttled."""
    arn = f"arn:aws:lambda:us-east-1:{ACCOUNT_ID}:function:{function.name}"
    definition = {"StartAt": "Task", "States": {"Task": {"Type": "Task", "Resource": arn, "End": True}}}
    states = function.server.client("stepfunctions")
    machine = states.create_state_machine(name=function.name, definition=json.dumps(definition), roleArn=ROLE)
    execution = states.start_execution(stateMachineArn=machine["stateMachineArn"])["executionArn"]
    described = wait_until(
        lambda: (answer := states.describe_execution(executionArn=execution))["status"] == "FAILED" and answer,
        "the execution has failed",
    )
    return described["error"], described["cause"]


def test_a_state_machine_knows_a_throttle_by_its_name(emulator: EmulatorServer, tmp_path: Path) -> None:
    function = gated(emulator, tmp_path)
    function.forbid()
    error, cause = error_of_task(function)
    assert error == "Lambda.TooManyRequestsException"
    assert "Rate Exceeded. (Service: AWSLambda; Status Code: 429; Error Code: TooManyRequestsException;" in cause


# function_isolation: what a start that hangs may cost

HANGING_START = """
import os, pathlib, time

folder = pathlib.Path(os.environ["FOLDER"])
if (folder / "hang").exists():
    (folder / "hangs").touch()
    time.sleep(600)

def handler(event, context):
    (folder / "hang").touch()
    while not event.get("quick") and not (folder / "hangs").exists():
        time.sleep(0.01)
    return os.getpid()
"""


def test_a_process_that_does_not_start_in_time_costs_its_own_invocation_alone(
    emulator: EmulatorServer, tmp_path: Path
) -> None:
    name = f"hanging-{uuid4().hex[:8]}"
    create_function(emulator, name, HANGING_START, Timeout=5, Environment={"Variables": {"FOLDER": str(tmp_path)}})
    with ThreadPoolExecutor(1) as clients:
        first = clients.submit(invoke, emulator, name)
        wait_until((tmp_path / "hang").exists, "the first one runs")
        error = invoke(emulator, name)
    assert (error["errorType"], error["errorMessage"]) == ("Sandbox.Timedout", "Task timed out after 5.00 seconds")
    assert invoke(emulator, name, {"quick": True}) == first.result()
