"""The account's quotas that a load meets: read from the account, or as AWS documents them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

INVOCATIONS_OF_A_POLLER = 10
"""How many batches a provisioned poller of a queue has at a time, at most
(https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html)."""

POLLER_DOLLARS_A_MONTH = 0.00925 * 24 * 30
"""What a provisioned poller costs, idle or not, in us-east-1 (https://aws.amazon.com/lambda/pricing)."""

PREFIX_PUTS = 3500
"""The writes per second to a part of a bucket's keys. S3 divides parts that get more, within minutes, and answers 503
meanwhile (https://docs.aws.amazon.com/AmazonS3/latest/userguide/optimizing-performance.html)."""

NEW_TABLE_WRITES = 4000
"""The write units per second of a new on-demand table. More than twice its peak within 30 minutes may be throttled
(https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode.html)."""


@dataclass(frozen=True, kw_only=True)
class Quotas:
    """What the account may have per second or at a time; `unread` names what could not be read, and why: those are
    AWS's defaults. A new account has 10 to 50 concurrent executions, and a smaller region a quarter of the requests
    (https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html,
    https://docs.aws.amazon.com/apigateway/latest/developerguide/limits.html)."""

    concurrency: int = 1000
    gateway_per_second: int = 10_000
    gateway_at_once: int = 5_000
    table_writes: int = 40_000
    topic_messages: int = 30_000
    unread: tuple[str, ...] = ("the account was not asked",)


_NAMED = {
    "gateway_per_second": ("apigateway", "Throttle rate"),
    "gateway_at_once": ("apigateway", "Throttle burst rate"),
    "table_writes": ("dynamodb", "Table-level write throughput limit"),
    "topic_messages": ("sns", "Messages Published per Second for Standard Topics"),
}
"""The quotas that Service Quotas lists, by service and the beginning of its name: it knows no default of a region that
the account may not see otherwise."""


def quotas_of(client: Callable[[str], Any]) -> Quotas:
    """The quotas of the account that `client` reaches. What it may not read is as AWS documents it."""
    values: dict[str, int] = {}
    unread: list[str] = []

    def read(what: str, reading: Callable[[], Iterator[tuple[str, float]]]) -> None:
        try:
            values.update((name, int(value)) for name, value in reading())
        except (BotoCoreError, ClientError) as error:
            unread.append(f"{what}: {error}")

    def concurrency() -> Iterator[tuple[str, float]]:
        yield "concurrency", client("lambda").get_account_settings()["AccountLimit"]["ConcurrentExecutions"]

    def listed(service: str) -> Iterator[tuple[str, float]]:
        for page in client("service-quotas").get_paginator("list_service_quotas").paginate(ServiceCode=service):
            for quota in page["Quotas"]:
                for name, (code, begin) in _NAMED.items():
                    if code == service and quota["QuotaName"].lower().startswith(begin.lower()):
                        yield name, quota["Value"]

    read("lambda", concurrency)
    for service in sorted({code for code, _ in _NAMED.values()}):
        read(service, lambda service=service: listed(service))  # type: ignore[misc]
    unread += [
        f"{code}: Service Quotas does not list {begin}"
        for name, (code, begin) in _NAMED.items()
        if name not in values and not any(reason.startswith(f"{code}: ") for reason in unread)
    ]
    return Quotas(**values, unread=tuple(unread))
