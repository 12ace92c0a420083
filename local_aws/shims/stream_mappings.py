"""Reads DynamoDB streams for functions as Lambda does: each mapping by itself, in order, and by its own settings.

Gap: MiniStack reads queues and streams in one thread, so that a slow function of a stream stops all queues and all
other streams. It retries a failed batch until its records are too old, and ignores ReportBatchItemFailures,
BisectBatchOnFunctionError, MaximumRetryAttempts and ParallelizationFactor. A failed batch that holds fresh records is
not discarded for its old ones, and records that are too old reach the function if it does not fail. It does not say how
old records are.
AWS: each shard is read by itself, four times per second, with one batch at a time, or as many as ParallelizationFactor
says, of which each has the records of its own partition keys. A batch that fails blocks its own shard. With
ReportBatchItemFailures the first failed record is where Lambda goes on; a report that is empty is a success, one that
is not understood fails the batch. BisectBatchOnFunctionError passes the halves of a failed batch on by themselves,
which is not a retry. After MaximumRetryAttempts, or older than MaximumRecordAgeInSeconds, records are discarded, and
their place in the stream goes to the on-failure destination. A function that is throttled is invoked again until the
records are too old. The metric IteratorAge is the age of a batch's last record, in milliseconds.
https://docs.aws.amazon.com/lambda/latest/dg/with-ddb.html (polling and batching, simultaneous readers)
https://docs.aws.amazon.com/lambda/latest/dg/services-ddb-batchfailurereporting.html
https://docs.aws.amazon.com/lambda/latest/dg/services-dynamodb-errors.html
https://docs.aws.amazon.com/lambda/latest/api/API_CreateEventSourceMapping.html
https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html (IteratorAge)

What still differs from AWS: a stream has one shard. MaximumBatchingWindowInSeconds is ignored, and the size of an
event. What AWS does not document: here a batch that is shortened by a report keeps its count of retries, one whose
first record is reported is not split, records that leave the stream after 24 hours are discarded without a message, and
the pauses between retries grow from 0.1 to 5 seconds. A stream that is disabled is not read to its end. After a change
of ParallelizationFactor, records that had been processed may be passed on again. The function's role is not asked
whether it may read the stream.
"""

import json
import logging
import threading
import time
import zlib
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from local_aws.emulator import Emulator
from local_aws.guards.batch_item_failures import is_understood
from local_aws.ministack_internals import internals, replace
from local_aws.shims import metric_data
from local_aws.shims.background import scope
from local_aws.shims.function_metrics import NAMESPACE as FUNCTION_METRICS
from local_aws.stream_batches import (
    RETRIES_EXHAUSTED,
    TOO_OLD,
    Batch,
    Outcome,
    Record,
    Settings,
    after_error,
    after_report,
    description_of_discarded,
    divided_by_age,
    is_true,
    sequence_number,
    settings_of,
)

# How often a shard is polled: "at a base rate of 4 times per second".
# https://docs.aws.amazon.com/lambda/latest/dg/with-ddb.html#dynamodb-polling-and-batching
_POLL_SECONDS = 0.25

# A write wakes the poller; this is how long a mapping that was created, changed or deleted waits to be noticed.
_LOOK_SECONDS = 0.5

_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 5.0
_PAGE = 1000

_logger = logging.getLogger(__name__)

dynamodb = internals("services.dynamodb")
lambda_service = internals("services.lambda_svc")


def apply(emulator: Emulator) -> None:
    """Read streams in a thread of their own, and no longer in the one that reads queues."""
    poller = Poller()
    replace(lambda_service, "_poll_dynamodb_streams", lambda _: lambda: False)
    replace(dynamodb, "_emit_stream_event", poller.wake_after)
    threading.Thread(target=poller.run, name="streams", daemon=True).start()


@dataclass(eq=False)
class Lane:
    """Where a mapping is in its stream: all that precedes `position` is processed, or waits in `batches`."""

    position: int
    batches: deque[Batch] = field(default_factory=deque)
    is_busy: bool = False
    failures: int = 0
    due: float = 0.0  # by the monotonic clock

    def go_on(self, outcome: Outcome) -> None:
        """Replace the first batch by what follows from it."""
        self.batches.popleft()
        self.batches.extendleft(reversed(outcome.again))
        if outcome.is_retry:
            self.take_a_pause()
        else:
            self.failures = 0

    def take_a_pause(self) -> None:
        """Let the first batch wait, twice as long each time."""
        seconds = _FIRST_PAUSE_SECONDS * 2 ** min(self.failures, 10)
        self.failures += 1
        self.due = time.monotonic() + min(seconds, _LONGEST_PAUSE_SECONDS)


@dataclass(eq=False)
class Shard:
    """What a mapping reads: its lanes get nothing from `polled` on. The next poll is `due` (by the monotonic clock) if
    there is something new."""

    lanes: list[Lane]
    polled: int
    due: float | None = None

    def poll(self, end: int, now: float) -> None:
        """Let the lanes have what precedes `end`, at the next of the instants at which the shard is polled."""
        if self.due is None and self.polled < end:
            self.due = (now // _POLL_SECONDS + 1) * _POLL_SECONDS
        if self.due is not None and self.due <= now:
            self.polled, self.due = end, None


class Poller:
    """Passes the records of all streams on; its lanes are changed by its own thread and, while busy, by their batch's.

    A stream has as many lanes as its mapping has batches at once, and a partition key is always in the same one.
    """

    def __init__(self) -> None:
        self._shards: dict[str, Shard] = {}
        self._wake = threading.Event()

    def wake_after(self, emit: Any) -> Any:
        """Return a function that emits a change and then wakes the poller."""

        def emit_and_wake(*arguments: Any, **options: Any) -> None:
            emit(*arguments, **options)
            self._wake.set()

        return emit_and_wake

    def run(self) -> None:
        """Start the batches that are due, for ever."""
        while True:
            self._wake.clear()
            self._wake.wait(self._start_due())

    def _start_due(self) -> float:
        """Start what is due, and return how long there is nothing to do unless something happens."""
        now = time.monotonic()
        mappings = {
            mapping["UUID"]: (account_id, region, mapping)
            for account_id, region, mapping in lambda_service._iter_all_esms()
            if _table_of(mapping)
        }
        for deleted in self._shards.keys() - mappings.keys():
            del self._shards[deleted]
        for account_id, region, mapping in mappings.values():
            try:
                with scope(account_id, region):
                    self._start_due_of(mapping, now)
            except Exception:  # such as settings that are no numbers: the other mappings go on
                _logger.exception("Reading %s went wrong", mapping["EventSourceArn"])
        shards = self._shards.values()
        dues = [shard.due for shard in shards if shard.due is not None]
        dues += [lane.due for shard in shards for lane in shard.lanes if lane.batches and not lane.is_busy]
        # What was due was started, unless its mapping is disabled; what has become due meanwhile has no pause.
        pauses = [due - time.monotonic() for due in dues if due > now]
        return max(0.0, min([_LOOK_SECONDS, *pauses]))

    def _start_due_of(self, mapping: Any, now: float) -> None:
        function, configuration = lambda_service._get_func_record_for_qualifier(
            mapping["FunctionName"], mapping.get("Qualifier")
        )
        table = dynamodb._tables.get(_table_of(mapping))
        is_read = function and table and table.get("LatestStreamArn") == mapping["EventSourceArn"]
        if not is_read or not is_true(mapping.get("Enabled", True)):
            return
        settings = settings_of(mapping)
        shard = self._shard_of(mapping, settings)
        shard.poll(dynamodb.stream_end_position(table["TableName"]), now)
        for number, lane in enumerate(shard.lanes):
            if lane.is_busy or lane.due > now:
                continue
            if not lane.batches and len(shard.lanes) == settings.lanes:
                lane.batches.extend(_read(shard, number, settings, mapping, table))
            if lane.batches:
                lane.is_busy = True
                internals("core.concurrency").spawn_background(
                    self._pass_on, lane, mapping, settings, function, configuration, thread_name="stream-batch"
                )

    def _shard_of(self, mapping: Any, settings: Settings) -> Shard:
        mapping_id = mapping["UUID"]
        shard = self._shards.get(mapping_id)
        if shard is None:
            starts_at = mapping.get("StartingPosition", "LATEST")
            lambda_service._init_stream_position(mapping_id, mapping["EventSourceArn"], starts_at)
            position = lambda_service._dynamodb_stream_positions[mapping_id]
            shard = self._shards[mapping_id] = Shard([Lane(position) for _ in range(settings.lanes)], position)
        elif len(shard.lanes) != settings.lanes and not any(lane.is_busy or lane.batches for lane in shard.lanes):
            # Only now: a partition key moves to another lane, whose batches must not overtake those of the old one.
            position = min(lane.position for lane in shard.lanes)
            shard.lanes = [Lane(position) for _ in range(settings.lanes)]
        return shard

    def _pass_on(self, lane: Lane, mapping: Any, settings: Settings, function: Any, configuration: Any) -> None:
        """Invoke the function with the lane's first batch, and note what follows."""
        try:
            batch = lane.batches[0] = _without_old(lane.batches[0], mapping, settings, configuration)
            if not batch.records:
                lane.go_on(Outcome())
                return
            _measure_age(mapping, batch)
            result = lambda_service._execute_function(function, {"Records": list(batch.records)})
            if result.get("throttle"):
                lane.take_a_pause()
                return
            outcome = _outcome(batch, result, settings)
            _note(mapping, batch, result, outcome)
            if outcome.discarded:
                _discard(mapping, configuration, outcome.discarded, RETRIES_EXHAUSTED)
            lane.go_on(outcome)
        except Exception:
            _logger.exception("A batch of %s went wrong", mapping["EventSourceArn"])
            lane.take_a_pause()
        finally:
            lane.is_busy = False
            self._wake.set()


def _table_of(mapping: Any) -> str:
    """The name of the table whose stream a mapping reads; empty if it reads something else."""
    _, _, table = mapping.get("EventSourceArn", "").partition(":table/")
    return str(table.partition("/stream/")[0])


def _read(shard: Shard, number: int, settings: Settings, mapping: Any, table: Any) -> Sequence[Batch]:
    """Read a lane's next batch of what was polled: records of its keys that the mapping's filters let through."""
    lane = shard.lanes[number]
    records: list[Record] = []
    table_name = table["TableName"]
    position = max(lane.position, dynamodb.stream_start_position(table_name))
    end = max(shard.polled, position)  # what was polled may have left the stream
    while len(records) < settings.batch_size and (
        page := dynamodb.stream_records_since(table_name, position, min(_PAGE, end - position))
    ):
        for record in page:
            position += 1
            if _lane_of(record, settings, table) == number and lambda_service._apply_filter_criteria([record], mapping):
                records.append(record)
                if len(records) == settings.batch_size:
                    break
    lane.position = position
    return [Batch(records=tuple(records))] if records else []


def _lane_of(record: Record, settings: Settings, table: Any) -> int:
    key = record["dynamodb"]["Keys"][table["pk_name"]]
    return zlib.crc32(json.dumps(key, sort_keys=True).encode()) % settings.lanes


def _without_old(batch: Batch, mapping: Any, settings: Settings, configuration: Any) -> Batch:
    """Discard the records that have left the stream, and those that the mapping calls too old."""
    _, batch = divided_by_age(batch, dynamodb._STREAM_RETENTION_SECONDS, now=time.time())
    if settings.age_seconds is None:
        return batch
    too_old, batch = divided_by_age(batch, settings.age_seconds, now=time.time())
    if too_old.records:
        _discard(mapping, configuration, too_old, TOO_OLD)
    return batch


def _measure_age(mapping: Any, batch: Batch) -> None:
    # DynamoDB's times are in seconds.
    age_seconds = max(0, int(time.time() - batch.records[-1]["dynamodb"]["ApproximateCreationDateTime"]))
    dimensions = {"FunctionName": mapping["FunctionName"]}
    metric_data.observe(FUNCTION_METRICS, "IteratorAge", dimensions, 1000 * age_seconds, "Milliseconds")


def _outcome(batch: Batch, result: Any, settings: Settings) -> Outcome:
    if result.get("error"):
        return after_error(batch, settings)
    response = result.get("body")
    if not settings.reports:
        return Outcome()
    if not is_understood(response, {sequence_number(record) for record in batch.records}):
        return after_error(batch, settings)
    failures = (response or {}).get("batchItemFailures") or []
    return after_report(batch, [failure["itemIdentifier"] for failure in failures], settings)


def _note(mapping: Any, batch: Batch, result: Any, outcome: Outcome) -> None:
    failed = bool(outcome.again or outcome.discarded)
    mapping["LastProcessingResult"] = "PROBLEM: Function call failed" if failed else "OK"
    if failed:
        cause = result.get("body") if result.get("error") else "it reported failed items"
        _logger.warning(
            "%s failed %d records of %s: %s", mapping["FunctionName"], len(batch.records), _table_of(mapping), cause
        )


def _discard(mapping: Any, configuration: Any, batch: Batch, condition: str) -> None:
    """Tell the mapping's on-failure destination, if it has one, which records the function will not get again."""
    destination = ((mapping.get("DestinationConfig") or {}).get("OnFailure") or {}).get("Destination")
    if not destination:
        return
    message = json.dumps(
        description_of_discarded(
            batch,
            condition=condition,
            request_id=str(uuid4()),
            function=configuration,
            stream_arn=mapping["EventSourceArn"],
            shard_id=internals("services.dynamodb_streams")._DEFAULT_SHARD_ID,
            now=time.time(),
        )
    )
    sqs = internals("services.sqs")
    if ":sns:" in destination:
        internals("services.sns").publish_internal(destination, message)
    elif queue := sqs._queue_by_arn(destination):
        sqs._act_send_message({"MessageBody": message}, queue["url"])
    else:
        _logger.warning("The on-failure destination %s does not exist", destination)
