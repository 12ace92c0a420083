"""What API handlers need around their operations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from darkroom.aws.images.queues import LaneDepths
from darkroom.aws.images.throughput_table import ThroughputTable
from darkroom.aws.kernel import circuits, clients
from darkroom.aws.tenants.upload_token_uses import UploadTokenUsesTable
from darkroom.domain.images.pictures import EdgeUrls
from darkroom.operations.images.load_shedder import LoadShedder
from darkroom.operations.tenants.quota_keeper import QuotaKeeper
from darkroom.operations.tenants.take_token import TakeTokenPorts
from darkroom.ports.images import Outputs
from darkroom.settings import LoadSheddingSettings, QuotaSettings
from darkroom.wiring.kernel.parts import UsageForCore, load_part
from darkroom.wiring.kernel.pauses import known_pauses_of
from darkroom.wiring.kernel.rate_limit import rate_limit_of
from darkroom.wiring.kernel.runtime import clock

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_sqs import SQSClient


class SettingsOfApi(Protocol):
    """The settings of every handler that answers with an image's document."""

    @property
    def token_buckets_table(self) -> str:
        """The table of rate limits."""

    @property
    def edge_url(self) -> str:
        """Where the edge serves variants."""


@dataclass(frozen=True, kw_only=True)
class Edge:
    """What an API handler needs around its operation: what its rate limit needs, and where variants are, at the edge
    and in the store.

    `require_healthy` raises Retryable while a store that the operation needs is known not to answer: nothing is begun
    then.
    """

    rate_limit: TakeTokenPorts
    outputs: Outputs
    urls: EdgeUrls
    require_healthy: Callable[[], None]


def edge_of(settings: SettingsOfApi, dynamodb: DynamoDBClient, outputs: Outputs, *needed: circuits.Circuit) -> Edge:
    """The surroundings of a handler that begins nothing while one of the `needed` stores does not answer."""
    rate_limit = rate_limit_of(dynamodb, settings.token_buckets_table)
    return Edge(
        rate_limit=rate_limit,
        outputs=outputs,
        urls=EdgeUrls(base=settings.edge_url),
        require_healthy=circuits.require_all_healthy(*needed),
    )


def load_shedder_of(settings: LoadSheddingSettings, dynamodb: DynamoDBClient, sqs: SQSClient) -> LoadShedder:
    """Decides by the lanes' depths and throughput whether work is accepted."""
    return LoadShedder(
        depths=LaneDepths(clients.impatient(sqs), settings.queue_urls),
        throughput=ThroughputTable(clients.impatient(dynamodb), settings.throughput_table),
        clock=clock,
        service=settings.service,
        pauses=known_pauses_of(settings, dynamodb),
    )


def upload_token_uses_of(settings: LoadSheddingSettings, dynamodb: DynamoDBClient) -> UploadTokenUsesTable:
    """Counts the uses of upload tokens. Its client is unseen by the circuits, as that of token buckets: one token's
    item that is throttled must not stop everybody."""
    return UploadTokenUsesTable(clients.impatient(dynamodb), settings.token_buckets_table)


def quota_keeper_of(settings: QuotaSettings, dynamodb: DynamoDBClient) -> QuotaKeeper:
    """Decides by what a tenant stores whether it may store more; a stack that counts nothing refuses nobody."""
    if not settings.usage_table:  # guard: usage-off-no-sums
        return QuotaKeeper(sums=None, clock=clock)
    usage: UsageForCore = load_part("wiring.usage.for_core")
    return QuotaKeeper(sums=usage.sums_of(settings.usage_table, dynamodb), clock=clock)
