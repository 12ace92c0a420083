"""What load shedding decides by: its fakes and adapters by one suite, and the handlers by what clients get."""

from __future__ import annotations

import io
import itertools
import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from darkroom.aws.images.queues import LaneDepths
from darkroom.aws.images.throughput_table import ThroughputTable
from darkroom.aws.tenants.token_buckets_table import TokenBucketsTable
from darkroom.domain.images.image import Status
from darkroom.domain.images.load_shedding import Work
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.tenants import Allowance, Tier
from darkroom.domain.tenants.token_bucket import interval_of
from darkroom.ports.images import Depths, QueueDepth, Throughput
from darkroom.ports.tenants import TokenBuckets
from darkroom.wiring.kernel import runtime
from tests.contract.conftest import Aws
from tests.contract.functions import (
    SMALL_PHOTO,
    Functions,
    announce,
    call,
    emitted,
    http_event,
    keyed,
    load,
    post,
    problem_of,
    received,
)
from tests.support.fakes.load_shedding import FakeDepths, FakeThroughput, FakeTokenBuckets
from tests.support.faults import refuse

NOW = 1_795_251_600_000
MINUTE, DAY = 60_000, 86_400_000


def buckets_of(kind: str, aws: Aws) -> TokenBuckets:
    return (
        FakeTokenBuckets() if kind == "fake" else TokenBucketsTable(boto3.client("dynamodb"), aws.token_buckets_table)
    )


@pytest.mark.guards("allowances-conditional-take")
def test_a_bucket_gives_a_burst_then_nothing_and_then_the_rate(kind: str, aws: Aws) -> None:
    buckets, allowance, now = buckets_of(kind, aws), Allowance(requests_per_second=10, burst=3), NOW * 1000
    at_once = [buckets.take("acme", allowance, now) for _ in range(4)]
    assert [take.is_taken for take in at_once] == [True, True, True, False]
    assert [take.tat - now for take in at_once] == [100_000, 200_000, 300_000, 300_000]
    later = [buckets.take("acme", allowance, now + after) for after in (99_999, 100_000, 100_001)]
    assert [take.is_taken for take in later] == [False, True, False]
    assert buckets.take("globex", allowance, now).is_taken, "buckets are apart"


def test_a_bucket_that_is_forgotten_is_full(kind: str, aws: Aws) -> None:
    buckets, allowance, now = buckets_of(kind, aws), Allowance(requests_per_second=10, burst=1), NOW * 1000
    for name in ("acme", "globex"):
        assert buckets.take(name, allowance, now).is_taken
    for _ in range(2):
        buckets.forget("acme")
    assert [buckets.take(name, allowance, now).is_taken for name in ("acme", "globex")] == [True, False]


def test_a_bucket_that_nobody_has_used_for_long_is_full_and_no_more(kind: str, aws: Aws) -> None:
    buckets, allowance = buckets_of(kind, aws), Allowance(requests_per_second=10, burst=2)
    buckets.take("acme", allowance, NOW * 1000)
    tomorrow = (NOW + DAY) * 1000
    answers = [buckets.take("acme", allowance, tomorrow) for _ in range(3)]
    assert [take.is_taken for take in answers] == [True, True, False]
    assert answers[0].tat == tomorrow + interval_of(allowance)


def test_a_bucket_is_forgotten_only_when_it_is_full(aws: Aws) -> None:
    buckets = TokenBucketsTable(boto3.client("dynamodb"), aws.token_buckets_table)
    allowance = Allowance(requests_per_second=1, burst=7200)
    for _ in range(2):  # both writes
        tat = buckets.take("acme", allowance, NOW * 1000).tat
    (item,) = boto3.client("dynamodb").scan(TableName=aws.token_buckets_table)["Items"]
    assert int(item["tat"]["N"]) == tat
    assert int(item["forget_at"]["N"]) >= NOW // 1000 + 7200


@pytest.mark.guards("allowances-bucket-start-race")
def test_two_that_find_a_bucket_full_at_once_take_a_token_each(aws: Aws) -> None:
    client = boto3.client("dynamodb")
    others: list[Any] = []

    def another_comes(**_: Any) -> None:
        if not others:
            others.append(client)
            TokenBucketsTable(boto3.client("dynamodb"), aws.token_buckets_table).take("acme", allowance, NOW * 1000)

    allowance = Allowance(requests_per_second=10, burst=5)
    client.meta.events.register("before-call.dynamodb.UpdateItem", another_comes)
    take = TokenBucketsTable(client, aws.token_buckets_table).take("acme", allowance, NOW * 1000)
    assert (take.is_taken, take.tat) == (True, NOW * 1000 + 2 * interval_of(allowance))


def test_a_token_costs_one_write_in_a_burst_and_now_and_then(aws: Aws) -> None:
    client, writes = boto3.client("dynamodb"), []
    client.meta.events.register("before-call.dynamodb.UpdateItem", lambda **_: writes.append("write"))
    buckets, allowance = TokenBucketsTable(client, aws.token_buckets_table), Allowance(requests_per_second=10, burst=3)
    takes = [buckets.take("acme", allowance, now) for now in (NOW * 1000 + hours * 3_600_000_000 for hours in range(5))]
    assert (len(writes), all(take.is_taken for take in takes)) == (5, True)
    writes.clear()
    at_once = [buckets.take("globex", allowance, NOW * 1000).is_taken for _ in range(4)]
    assert at_once == [True, True, True, False]
    assert len(writes) == 4


def test_throughput_add_up_by_the_minute_and_the_latest_come_first(kind: str, aws: Aws) -> None:
    throughput: Throughput = (
        FakeThroughput() if kind == "fake" else ThroughputTable(boto3.client("dynamodb"), aws.throughput_table)
    )
    assert throughput.latest("slow", NOW) == []
    for minutes_ago in range(8):
        throughput.add("slow", Work(settled=minutes_ago, busy_milliseconds=1), NOW - minutes_ago * MINUTE)
    throughput.add("slow", Work(settled=10, busy_milliseconds=20), NOW)
    throughput.add("fast", Work(settled=99, busy_milliseconds=99), NOW)
    latest = throughput.latest("slow", NOW)
    assert [work.settled for work in latest] == [10, 1, 2, 3, 4]
    assert [work.busy_milliseconds for work in latest] == [21, 1, 1, 1, 1]


@pytest.mark.guards("noisy-own-partition")
def test_whom_a_lane_worked_for_adds_up_by_the_minute_beside_its_throughput(kind: str, aws: Aws) -> None:
    throughput: Throughput = (
        FakeThroughput() if kind == "fake" else ThroughputTable(boto3.client("dynamodb"), aws.throughput_table)
    )
    assert throughput.of_tenants("slow", NOW - DAY) == {}
    minute = NOW // MINUTE * MINUTE
    for minutes_ago in (0, 0, 1, 2):
        busy = {"acme": 10, "auth0|5f:7@-._": minutes_ago + 1}
        throughput.add_of_tenants("slow", busy, minute - minutes_ago * MINUTE)
    throughput.add_of_tenants("fast", {"acme": 99}, NOW)
    throughput.add("slow", Work(settled=1, busy_milliseconds=1), NOW)
    assert throughput.of_tenants("slow", minute - MINUTE) == {"acme": 30, "auth0|5f:7@-._": 4}
    assert throughput.latest("slow", NOW) == [Work(settled=1, busy_milliseconds=1)]


def test_a_rate_of_hours_ago_is_remembered_and_one_of_yesterday_is_not(kind: str, aws: Aws) -> None:
    throughput: Throughput = (
        FakeThroughput() if kind == "fake" else ThroughputTable(boto3.client("dynamodb"), aws.throughput_table)
    )
    throughput.add("slow", Work(settled=30, busy_milliseconds=1), NOW)
    assert [work.settled for work in throughput.latest("slow", NOW + DAY - MINUTE)] == [30]
    assert throughput.latest("slow", NOW + DAY) == []


def test_a_lanes_depth_counts_waiting_and_in_flight_messages(kind: str, aws: Aws) -> None:
    sqs = boto3.client("sqs")
    for delay_seconds in (0, 0, 0, 900):
        sqs.send_message(QueueUrl=aws.slow_queue_url, MessageBody="{}", DelaySeconds=delay_seconds)
    sqs.receive_message(QueueUrl=aws.slow_queue_url, MaxNumberOfMessages=1)
    depths: Depths = FakeDepths({"slow": 3}, waiting={"slow": 2}) if kind == "fake" else LaneDepths(sqs, aws.queue_urls)
    assert depths.depth("slow") == QueueDepth(waiting=2, taken=1)
    assert depths.depth("fast") == QueueDepth(waiting=0, taken=0)


@pytest.mark.guards("allowances-prefetch-fuller-half")
def test_several_tokens_are_given_at_once_while_half_the_bucket_is_left(kind: str, aws: Aws) -> None:
    buckets, allowance, now = buckets_of(kind, aws), Allowance(requests_per_second=10, burst=10), NOW * 1000
    takes = [buckets.take("acme", allowance, now, 3) for _ in range(9)]
    assert [take.tokens for take in takes] == [3, 1, 1, 1, 1, 1, 1, 1, 0]
    assert takes[-1].tat == now + 10 * interval_of(allowance)
    assert buckets.take("globex", Allowance(requests_per_second=10, burst=4), now, 3).tokens == 1


# ── The handlers ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def with_keys(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> Aws:
    monkeypatch.setenv("ACCESS", "keys")
    # The clock stands still, so that no bucket fills up during a test.
    monkeypatch.setattr(runtime, "time", SimpleNamespace(time_ns=lambda: NOW * 1_000_000))
    return aws


@pytest.fixture
def submit_image(with_keys: Aws, monkeypatch: pytest.MonkeyPatch) -> Any:
    return load("submit_image", with_keys, monkeypatch)


@pytest.fixture
def functions(with_keys: Aws, monkeypatch: pytest.MonkeyPatch) -> Functions:
    return Functions(with_keys, monkeypatch)


def fill(aws: Aws, lane: str, messages: int) -> None:
    sqs = boto3.client("sqs")
    for start in range(0, messages, 10):
        entries = [{"Id": str(n), "MessageBody": "{}"} for n in range(start, min(start + 10, messages))]
        sqs.send_message_batch(QueueUrl=aws.queue_urls[lane], Entries=entries)  # type: ignore[arg-type]


def drain(aws: Aws, lane: str, seconds_an_image: float) -> None:
    work = Work(settled=100, busy_milliseconds=round(100_000 * seconds_an_image))
    ThroughputTable(boto3.client("dynamodb"), aws.throughput_table).add(lane, work, NOW)


ONE_AT_ONCE = Allowance(requests_per_second=1, burst=1)


@pytest.mark.guards("allowances-page-cost-by-rows", "list-signing-cost")
def test_reads_cost_what_they_may_read_and_nothing_that_uploads_need(
    functions: Functions, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(path: str, query: str = "", **caller: Any) -> dict[str, Any]:
        return call(functions.read_image, keyed(http_event("GET", path, query=query), **caller))

    image_id = json.loads(post(functions.submit_image)["body"])["id"]
    first = read(f"/images/{image_id}/status")
    assert first["headers"]["RateLimit-Policy"] == '"reads";q=50;w=5'
    assert first["headers"]["RateLimit"] == '"reads";r=49;t=5'
    page = read("/images", "limit=100")
    assert page["headers"]["RateLimit-Policy"] == '"reads";q=50;w=5;cost=15'
    assert page["headers"]["RateLimit"] == '"reads";r=34;t=4'
    signed = read("/images", "limit=100&urls=thumb", tenant_id="initech")
    assert signed["headers"]["RateLimit-Policy"] == '"reads";q=50;w=5;cost=16'
    assert read("/images", "limit=many")["statusCode"] == 400
    filtered = read("/images", "status=failed")
    assert problem_of(filtered) == (429, "too_many_requests")
    assert filtered["headers"]["RateLimit-Policy"] == '"reads";q=50;w=5;cost=50'
    assert filtered["headers"]["Retry-After"] == "2"
    assert post(functions.submit_image)["headers"]["RateLimit"] == '"tenant";r=48;t=5'
    assert read("/images", tenant_id="globex")["statusCode"] == 200, "another's bucket"


@pytest.mark.guards("allowances-cost-by-file-size", "allowances-fetch-costs-largest")
def test_a_photo_costs_by_its_size_and_one_from_a_url_what_the_largest_costs(functions: Functions) -> None:
    def policy_of(answer: dict[str, Any]) -> tuple[int, str]:
        return answer["statusCode"], answer["headers"]["RateLimit-Policy"]

    def sent(path: str, document: object) -> dict[str, Any]:
        module = functions.submit_image if path == "/images" else functions.begin_upload
        headers = {"content-type": "application/json"}
        return call(module, keyed(http_event("POST", path, body=json.dumps(document).encode(), headers=headers)))

    larger = SMALL_PHOTO + bytes(1_000_001 - len(SMALL_PHOTO))
    assert policy_of(post(functions.submit_image, body=larger)) == (202, '"tenant";q=50;w=5;cost=2')
    assert policy_of(post(functions.submit_image, body=larger[:-1])) == (202, '"tenant";q=50;w=5')
    url = {"url": "https://photos.example/harbour.jpg"}
    answer = sent("/images", url)
    assert policy_of(answer) == (202, '"tenant";q=50;w=5;cost=25')
    assert answer["headers"]["RateLimit"] == '"tenant";r=22;t=3'
    answer = sent("/images", url)
    assert problem_of(answer) == (429, "too_many_requests")
    assert "This one counts as 25." in json.loads(answer["body"])["detail"]
    assert policy_of(sent("/images", {"url": 7})) == (400, '"tenant";q=50;w=5'), "a mistake costs what others do"
    announced = {"bytes": 18_000_000, "sha256": "a" * 64}
    assert policy_of(sent("/uploads", announced)) == (201, '"tenant";q=50;w=5;cost=18')
    assert policy_of(sent("/uploads", announced | {"bytes": 25_000_001})) == (413, '"tenant";q=50;w=5')
    assert policy_of(sent("/uploads", {"bytes": 1})) == (400, '"tenant";q=50;w=5')


@pytest.mark.guards("shedding-alarm-by-tier", "shedding-lower-tiers-first")
def test_the_next_step_sheds_tenants_who_pay_less_and_somebody_is_told(
    submit_image: Any, aws: Aws, capsys: pytest.CaptureFixture[str]
) -> None:
    shed = ("PayingTenantsShed", frozenset({("service", "darkroom")}))
    free_shed = ("FreeTenantsShed", frozenset({("service", "darkroom")}))
    drain(aws, "slow", 60)
    fill(aws, "slow", 55)
    assert problem_of(post(submit_image)) == (429, "overloaded")
    assert post(submit_image, tier=Tier.PLUS)["statusCode"] == 202
    emitted_metrics = set(emitted(capsys.readouterr().out))
    assert free_shed in emitted_metrics and shed not in emitted_metrics, "free tenants wake nobody"
    fill(aws, "slow", 10)
    submit_image.ports.load_shedder._views.clear()
    assert problem_of(post(submit_image, tier=Tier.PLUS)) == (429, "overloaded")
    emitted_metrics = set(emitted(capsys.readouterr().out))
    assert shed in emitted_metrics and free_shed not in emitted_metrics


def test_a_repeated_upload_whose_row_exists_is_never_shed(submit_image: Any, aws: Aws) -> None:
    accepted = json.loads(post(submit_image, key="order-17")["body"])
    drain(aws, "slow", 60)
    fill(aws, "slow", 60)
    submit_image.ports.load_shedder._views.clear()
    repeated = post(submit_image, key="order-17")
    assert (repeated["statusCode"], json.loads(repeated["body"])["id"]) == (202, accepted["id"])
    assert problem_of(post(submit_image, key="order-18")) == (429, "overloaded")


@pytest.mark.guards("allowances-request-charged")
def test_an_announcement_is_held_to_its_tenants_allowance_as_an_upload_is(functions: Functions, aws: Aws) -> None:
    assert announce(functions, allowance=ONE_AT_ONCE)["statusCode"] == 201
    answer = announce(functions, allowance=ONE_AT_ONCE)
    assert problem_of(answer) == (429, "too_many_requests")
    assert (answer["headers"]["Retry-After"], answer["headers"]["RateLimit"]) == ("1", '"tenant";r=0;t=1')
    assert problem_of(post(functions.submit_image, allowance=ONE_AT_ONCE)) == (429, "too_many_requests"), "one bucket"
    assert len(boto3.client("dynamodb").scan(TableName=aws.images_table)["Items"]) == 1


@pytest.mark.guards("load-shedding-announcement")
def test_a_full_lane_sheds_announcements_and_lets_in_what_was_announced(functions: Functions, aws: Aws) -> None:
    begun = announce(functions, key="order-17")
    assert (begun["statusCode"], begun["headers"]["RateLimit"]) == (201, '"tenant";r=49;t=5')
    drain(aws, "slow", 60)
    fill(aws, "slow", 50)
    functions.begin_upload.ports.load_shedder._views.clear()
    answer = announce(functions, key="order-18")
    assert problem_of(answer) == (429, "overloaded")
    assert answer["headers"]["Retry-After"] == "301", "its workers begin within a second"
    assert announce(functions, tier=Tier.PAID)["statusCode"] == 201
    assert announce(functions, key="order-17")["statusCode"] == 201, "a fresh form"
    image_id = json.loads(begun["body"])["id"]
    functions.upload(image_id, SMALL_PHOTO)
    assert functions.hear() == {"batchItemFailures": []}
    assert functions.row(image_id).status is Status.PENDING


@pytest.mark.guards("load-shedding-start-in-backlog")
def test_what_is_scheduled_for_later_takes_no_part_in_a_present_backlog_until_it_is_moved_to_now(
    submit_image: Any, aws: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    drain(aws, "slow", 60)
    fill(aws, "slow", 60)
    later = post(submit_image, query="delay=PT1H")
    assert later["statusCode"] == 202
    assert problem_of(post(submit_image, query="delay=PT1S")) == (429, "overloaded")
    reschedule_image = load("reschedule_image", aws, monkeypatch)

    def move(delay: str) -> dict[str, Any]:
        path = f"/images/{json.loads(later['body'])['id']}"
        return call(reschedule_image, keyed(http_event("PATCH", path, body=json.dumps({"delay": delay}).encode())))

    assert problem_of(move("PT0S")) == (429, "overloaded")
    moved = move("PT2H")
    assert (moved["statusCode"], json.loads(moved["body"])["status"]) == (200, "scheduled")
    assert moved["headers"]["RateLimit"].startswith('"tenant";r=')


@pytest.mark.guards("allowances-fail-open")
@pytest.mark.parametrize(
    "error",
    [
        ClientError({"Error": {"Code": "ProvisionedThroughputExceededException"}}, "UpdateItem"),
        ReadTimeoutError(endpoint_url="https://dynamodb"),
    ],
    ids=["throttled", "silent"],
)
def test_a_bucket_that_does_not_answer_stops_no_upload_and_opens_no_circuit(
    submit_image: Any, capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    refuse(submit_image.edge.rate_limit.token_buckets._client, "UpdateItem", error=error)
    for _ in range(4):
        answer = post(submit_image, allowance=ONE_AT_ONCE)
        assert answer["statusCode"] == 202
        assert answer["headers"]["RateLimit-Policy"] == '"tenant";q=1;w=1'
        assert "RateLimit" not in answer["headers"], "nobody knows what is left"
    assert ("AllowancesUnknown", frozenset({("service", "darkroom")})) in set(emitted(capsys.readouterr().out))


def test_a_worker_reports_its_time_once_it_is_enough_for_a_write(
    submit_image: Any, aws: Aws, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    transcode_image = load("transcode_image", aws, monkeypatch)
    for _ in range(2):
        post(submit_image, query="variants=thumb")
    first, second = received(aws.slow_queue_url)["Records"]
    assert call(transcode_image, {"Records": [first]})["batchItemFailures"] == []
    throughput = ThroughputTable(boto3.client("dynamodb"), aws.throughput_table)
    assert transcode_image.counter.work["slow"].settled == 1
    assert throughput.latest("slow", NOW) == [], "one short image is worth no write"
    transcode_image.counter.count("slow", is_settled=True, busy_milliseconds=12_000)
    assert call(transcode_image, {"Records": [second]})["batchItemFailures"] == []
    assert throughput.latest("slow", NOW) == [Work(settled=3, busy_milliseconds=12_000)]
    drained = frozenset({("service", "darkroom"), ("lane", "slow")})
    assert ("DrainPerSecond", drained) in set(emitted(capsys.readouterr().out))


def test_a_worker_counts_for_whom_it_was_busy(submit_image: Any, aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    transcode_image, ticks = load("transcode_image", aws, monkeypatch), itertools.count(NOW, 10)
    monkeypatch.setattr(transcode_image, "ports", replace(transcode_image.ports, clock=lambda: next(ticks)))
    post(submit_image, query="variants=thumb")
    call(transcode_image, received(aws.slow_queue_url))
    assert transcode_image.counter.busy_for["slow"].keys() == {"acme"}


def test_a_message_that_must_come_back_was_time_and_no_work_done(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    transcode_image = load("transcode_image", aws, monkeypatch)
    fill(aws, "slow", 1)  # an unreadable body
    assert len(call(transcode_image, received(aws.slow_queue_url))["batchItemFailures"]) == 1
    assert transcode_image.counter.work["slow"].settled == 0


@pytest.mark.guards("drain-report-failure-contained", case="removed")
@pytest.mark.parametrize("lane", ["slow", "removed"])
def test_a_throughput_that_cannot_be_handed_in_brings_no_delivery_back(
    submit_image: Any, aws: Aws, monkeypatch: pytest.MonkeyPatch, log: io.StringIO, lane: str
) -> None:
    transcode_image = load("transcode_image", replace(aws, throughput_table="gone"), monkeypatch)
    if lane == "removed":  # also a bug: its rate is that of a lane that is not deployed
        transcode_image = load("transcode_image", aws, monkeypatch)
    transcode_image.counter.count(lane, is_settled=True, busy_milliseconds=12_000)
    post(submit_image, query="variants=thumb")
    assert call(transcode_image, received(aws.slow_queue_url)) == {"batchItemFailures": []}
    (failed,) = [json.loads(line) for line in log.getvalue().splitlines() if "not reported" in line]
    assert failed["message"] == {"slow": "throughput not reported"}.get(lane, "counts not reported")
    assert failed["errorType"], "the alarm of functions' errors counts it"


def test_an_adapter_turns_throttling_into_what_is_worth_repeating(aws: Aws) -> None:
    client = boto3.client("dynamodb")
    refuse(client, code="ThrottlingException", status=400)
    with pytest.raises(Retryable):
        TokenBucketsTable(client, aws.token_buckets_table).take("acme", ONE_AT_ONCE, NOW * 1000)
    with pytest.raises(Retryable):
        ThroughputTable(client, aws.throughput_table).latest("slow", NOW)
    with pytest.raises(Retryable):
        ThroughputTable(client, aws.throughput_table).add("slow", Work(settled=1, busy_milliseconds=1), NOW)
