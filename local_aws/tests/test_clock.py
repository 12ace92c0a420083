"""One clock for the emulator and its functions, which can be moved ahead."""

import math
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from local_aws import clock
from local_aws.shims.alarm_evaluation import (
    INTERVAL_SECONDS,
    ClockMoves,
    Datapoint,
    Rule,
    evaluate,
    is_silence_of_skipped_time,
)
from local_aws.shims.queue_metrics import IDLE_SECONDS
from local_aws.tests.alarms import alarm, await_state
from local_aws.tests.emulator_server import (
    ENVIRONMENTS,
    EmulatorServer,
    create_function,
    emulator_server,
    invoke,
    output_of,
    wait_until,
)
from local_aws.tests.queues import Queue, queue

NOW = "import time\ndef handler(event, context):\n    return [time.time(), context.get_remaining_time_in_millis()]"
SLOW = """
import time
def handler(event, context):
    before = time.time()
    time.sleep(event)
    return [before, time.time(), context.get_remaining_time_in_millis()]
"""
DAY_SECONDS = 86_400
EMULATOR_PYTHON = ENVIRONMENTS / "emulator" / "bin" / "python"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("clock") / "clock"
    clock.set_ahead(file, 0)
    return file


@pytest.fixture(scope="module")
def emulator(file: Path) -> Iterator[EmulatorServer]:
    """One whose clock each test moves on from where it is."""
    with emulator_server(file.parent / "data", **clock.variables(EMULATOR_PYTHON, file)) as server:
        yield server


def move(file: Path, seconds: int) -> None:
    clock.set_ahead(file, clock.seconds_ahead(file) + seconds)
    time.sleep(clock.SETTLE_SECONDS)


def test_the_emulator_and_a_function_that_runs_already_go_by_the_moved_clock(
    emulator: EmulatorServer, file: Path
) -> None:
    name, s3 = f"clock-{uuid4().hex[:8]}", emulator.client("s3")
    create_function(emulator, name, NOW, Timeout=30)
    s3.create_bucket(Bucket="clock")
    for days in (0, 2, 30):
        move(file, days * DAY_SECONDS)
        shown, left_milliseconds = invoke(emulator, name)
        assert abs(shown - time.time() - clock.seconds_ahead(file)) < 60
        assert 0 < left_milliseconds <= 30_000
        s3.put_object(Bucket="clock", Key="now", Body=b"")
        modified = s3.head_object(Bucket="clock", Key="now")["LastModified"].timestamp()
        assert abs(modified - shown) < 60


def test_a_function_that_runs_while_the_clock_is_moved_keeps_the_time_that_it_has_left(
    emulator: EmulatorServer, file: Path
) -> None:
    name = f"clock-{uuid4().hex[:8]}"
    create_function(emulator, name, SLOW, Timeout=30)
    invoke(emulator, name, 0.1)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(invoke, emulator, name, 5)
        time.sleep(1)
        move(file, 600)
        before, after, left_milliseconds = answer.result()
    assert after - before > 600, "the clock was moved meanwhile"
    assert 20_000 < left_milliseconds <= 25_000


def test_a_message_that_is_delayed_shows_when_the_clock_says_so(emulator: EmulatorServer, file: Path) -> None:
    sqs = emulator.client("sqs")
    url = sqs.create_queue(QueueName="delayed")["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="later", DelaySeconds=900)
    move(file, 600)
    assert "Messages" not in sqs.receive_message(QueueUrl=url)
    move(file, 301)
    assert len(sqs.receive_message(QueueUrl=url)["Messages"]) == 1


def test_time_that_was_skipped_is_no_silence(emulator: EmulatorServer, file: Path) -> None:
    cloudwatch = emulator.client("cloudwatch")
    silent = {"ComparisonOperator": "LessThanThreshold", "Threshold": 1, "TreatMissingData": "breaching"}
    cloudwatch.put_metric_data(Namespace="Own", MetricData=[{"MetricName": "Beats", "Value": 1}])
    name = alarm(emulator, Namespace="Own", MetricName="Beats", EvaluationPeriods=3, **silent)
    await_state(emulator, name, "OK")
    move(file, 3600)
    time.sleep(2 * INTERVAL_SECONDS)
    changes = cloudwatch.describe_alarm_history(AlarmName=name, HistoryItemType="StateUpdate")["AlarmHistoryItems"]
    assert [change["HistorySummary"] for change in changes if "ALARM" in change["HistorySummary"]] == []


BEATS = Rule(
    statistic="Maximum",
    period_seconds=60,
    evaluation_periods=3,
    datapoints_to_alarm=None,
    comparison="LessThanThreshold",
    threshold=1,
    missing_data="breaching",
)


@pytest.mark.guards("emulator-skipped-time-no-silence")
@pytest.mark.parametrize(
    ("values", "seconds", "is_skipped"),
    [([], 179, True), ([], 180, False), ([0.0], 1, True), ([0.0, 0.0, 0.0], 1, False), ([1.0], 1, False)],
)
def test_silence_counts_again_when_the_alarm_has_seen_its_own_periods(
    values: list[float], seconds: float, is_skipped: bool
) -> None:
    points = [Datapoint(begins_at=60.0 * -number, value=value) for number, value in enumerate(values)]
    verdict = evaluate(BEATS, [*points, *(Datapoint(begins_at=-300 - number, value=None) for number in range(3))])
    assert verdict is not None
    assert is_silence_of_skipped_time(BEATS, verdict, seconds_since_move=seconds) is is_skipped


def test_only_a_clock_that_gains_more_than_a_minute_on_the_monotonic_one_was_moved() -> None:
    moves = ClockMoves()
    assert moves.seconds_since_last(940, 10) == math.inf
    assert moves.seconds_since_last(1000, 70) == math.inf
    assert moves.seconds_since_last(1060, 70) == math.inf, "a step of a minute skips no period"
    assert moves.seconds_since_last(4661, 71) == 0
    assert moves.seconds_since_last(4662, 72) == 1


def test_where_no_library_fits_this_machine_nothing_is_loaded_and_the_reason_is_given(tmp_path: Path) -> None:
    python = tmp_path / "bin" / "python"
    assert clock.variables(python, tmp_path / "clock") == {}
    assert "libfaketime" in str(clock.obstacle(python))


@pytest.mark.parametrize(("folder", "machine"), [("of a foreign processor", b"\0\0"), ("with a space", b"\x3e\0")])
def test_a_library_that_the_loader_would_complain_of_is_not_loaded(tmp_path: Path, folder: str, machine: bytes) -> None:
    root = tmp_path / (folder.replace(" ", "-") if "foreign" in folder else folder)
    library = root / "lib" / "python3.13" / "site-packages" / "libfaketime" / "vendor" / "libfaketime" / "src"
    library.mkdir(parents=True)
    (library / "libfaketime.so.1").write_bytes(b"\x7fELF".ljust(18, b"\0") + machine)
    assert clock.variables(root / "bin" / "python", tmp_path / "clock") == {}


# schedule_ticks

INTERVAL = """
import sys
from pathlib import Path
from local_aws.corrections import apply_corrections
from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals

if sys.argv[1] == "corrected":
    apply_corrections(Emulator(gateway_url="", function_python=Path("python"), data_dir=Path(sys.argv[2])))
print(internals("services.eventbridge")._SCHEDULER_TICK_INTERVAL)
"""


def test_gap_stock_looks_for_due_schedules_every_ten_seconds(tmp_path: Path) -> None:
    assert float(output_of(INTERVAL, "stock", tmp_path)) == 10


def test_schedules_are_looked_at_each_second(tmp_path: Path) -> None:
    assert float(output_of(INTERVAL, "corrected", tmp_path)) <= 1


def test_a_rule_runs_when_the_clock_says_so_unless_it_is_disabled(emulator: EmulatorServer, file: Path) -> None:
    sqs, events = emulator.client("sqs"), emulator.client("events")
    url = sqs.create_queue(QueueName="rung")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    events.put_rule(Name="every-minute", ScheduleExpression="rate(1 minute)")
    events.put_targets(Rule="every-minute", Targets=[{"Id": "queue", "Arn": arn}])
    move(file, 61)
    first = sqs.receive_message(QueueUrl=url, WaitTimeSeconds=20)["Messages"]
    events.disable_rule(Name="every-minute")
    sqs.delete_message(QueueUrl=url, ReceiptHandle=first[0]["ReceiptHandle"])
    move(file, 600)
    assert "Messages" not in sqs.receive_message(QueueUrl=url, WaitTimeSeconds=2)
    events.enable_rule(Name="every-minute")
    second = sqs.receive_message(QueueUrl=url, WaitTimeSeconds=20)["Messages"]
    assert first[0]["MessageId"] != second[0]["MessageId"]


# queue_metrics


def test_a_queue_without_messages_is_measured_no_more_after_six_hours_until_it_is_used_again(
    emulator: EmulatorServer, file: Path
) -> None:
    empty, full = queue(emulator), queue(emulator)
    full.send("one")

    def data(of: Queue) -> list[dict[str, Any]]:
        moved = datetime.now(UTC) + timedelta(seconds=clock.seconds_ahead(file))
        datapoints: list[dict[str, Any]] = emulator.client("cloudwatch").get_metric_statistics(
            Namespace="AWS/SQS",
            MetricName="ApproximateNumberOfMessagesVisible",
            Dimensions=[{"Name": "QueueName", "Value": of.name}],
            StartTime=moved - timedelta(hours=1),
            EndTime=moved + timedelta(hours=1),
            Period=60,
            Statistics=["Maximum"],
        )["Datapoints"]
        return datapoints

    wait_until(lambda: data(empty), "a new queue is measured")
    move(file, IDLE_SECONDS)
    wait_until(lambda: data(full), "a queue with a message is measured")
    assert data(empty) == []
    empty.counts()
    wait_until(lambda: data(empty), "a queue that was looked at is measured")
