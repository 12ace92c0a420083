"""What `doctor` knows about a deployed stack: plain data, which `gather` reads and the groups of checks judge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Never

from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.lanes import LANES
from darkroom.domain.pauses.pauses import Pause, subject_of
from darkroom.ports.kernel import UnreadableRow


class CouldNotBeRead(Exception):
    """A check needs facts that AWS did not tell; the text says why."""


class Missing[Fact](Mapping[str, Fact]):
    """Facts that could not be read: any use of them raises CouldNotBeRead with the reason."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def _refuse(self) -> Never:
        raise CouldNotBeRead(self.reason)

    def __getitem__(self, name: str) -> Fact:
        self._refuse()

    def __iter__(self) -> Iterator[str]:
        self._refuse()

    def __len__(self) -> int:  # noqa: PLE0303 - it has no length
        self._refuse()


@dataclass(frozen=True, kw_only=True)
class Statement:
    """One statement of a policy, with lists where a policy may have single values. `principals` and `condition` are
    JSON, as the policy has them; a role's statement has no principals."""

    sid: str
    is_allowed: bool
    actions: frozenset[str]
    resources: frozenset[str]
    principals: Any = None
    condition: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Queue:
    """A queue. `key` is the KMS key that encrypts it; without one, SQS's own does if `is_encrypted`. `messages` is how
    many it has, and `oldest_seconds` the age of its oldest during the last hour, as SQS measured it."""

    arn: str
    name: str
    url: str
    visibility_seconds: int
    retention_seconds: int
    is_encrypted: bool
    key: str | None
    policy: tuple[Statement, ...]
    dead_letters: str | None = None
    max_receives: int | None = None
    messages: int = 0
    failed_redrive: str | None = None


@dataclass(frozen=True, kw_only=True)
class EventSource:
    """A mapping that makes Lambda poll a queue or a stream for a function; both are logical ids."""

    function: str
    source: str
    is_queue: bool
    is_enabled: bool
    batch_size: int
    window_seconds: int
    reports_items: bool
    maximum_concurrency: int | None = None
    maximum_retries: int | None = None
    maximum_age_seconds: int | None = None
    failures: str | None = None


@dataclass(frozen=True, kw_only=True)
class FunctionFacts:
    """A function's configuration; `role` is the ARN of its role."""

    arn: str
    role: str
    timeout_seconds: int
    memory_mb: int
    runtime: str
    handler: str
    variables: Mapping[str, str]
    log_group: str | None
    is_traced: bool
    reserved: int | None = None
    problem: str | None = None


@dataclass(frozen=True, kw_only=True)
class Role:
    """A role's own statements, and the names of the managed policies that are attached to it."""

    arn: str
    statements: tuple[Statement, ...]
    managed: tuple[str, ...] = ()
    trusted: tuple[Statement, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Listing:
    """What a role may find by listing, as IAM decides it: the buckets that it may list as a whole, and those whose list
    of one object it is refused although a statement of its own is about it."""

    everything: frozenset[str]
    nothing: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class AlarmFacts:
    """An alarm. A composite one has a `rule`, which names its children, and no metric. One that calculates with several
    metrics has these in `calculation`, as CloudWatch describes them; `metric` is then their common name. `queues` are
    the names of those that it watches."""

    name: str
    description: str
    actions: tuple[str, ...]
    is_acting: bool
    namespace: str = ""
    metric: str = ""
    queues: frozenset[str] = frozenset()
    calculation: Sequence[Mapping[str, Any]] = ()
    comparison: str = ""
    threshold: float = 0
    period_seconds: int = 0
    periods: int = 0
    datapoints: int = 0
    missing_data: str = ""
    rule: str | None = None


@dataclass(frozen=True, kw_only=True)
class Subscription:
    """A subscription to a topic. `dead_letters` is the ARN of the queue that gets what cannot be delivered."""

    protocol: str
    endpoint: str
    is_confirmed: bool
    dead_letters: str | None = None


@dataclass(frozen=True, kw_only=True)
class TopicFacts:
    """A topic with its subscriptions."""

    arn: str
    policy: tuple[Statement, ...]
    key: str | None
    subscriptions: tuple[Subscription, ...]


@dataclass(frozen=True, kw_only=True)
class Bucket:
    """A bucket. `algorithm` encrypts it; `is_closed` if all four blocks of public access are on."""

    name: str
    policy: tuple[Statement, ...]
    is_closed: bool
    algorithm: str | None
    key: str | None = None
    is_versioned: bool = False


@dataclass(frozen=True, kw_only=True)
class TableFacts:
    """A table. `key` is a KMS key that is not DynamoDB's own; `expires_by` is the attribute of its time to live."""

    arn: str
    name: str
    stream_arn: str | None
    is_protected: bool
    is_recoverable: bool
    key: str | None = None
    expires_by: str | None = None


@dataclass(frozen=True, kw_only=True)
class SecretFacts:
    """A secret, and when its value was last changed."""

    arn: str
    changed_at: Milliseconds
    is_being_deleted: bool = False


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A rule of EventBridge with a schedule, and the ARNs of what it invokes."""

    schedule: str
    is_enabled: bool
    targets: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class LogGroup:
    """A log group."""

    retention_days: int | None
    key: str | None = None


@dataclass(frozen=True, kw_only=True)
class StateMachine:
    """A state machine and the definition of its states."""

    arn: str
    name: str
    definition: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class ApiKeyFacts:
    """A tenant's API key that opens the API, by its id."""

    tenant_id: str
    created_at: Milliseconds
    last_used_on: str | None


@dataclass(frozen=True, kw_only=True)
class ServiceQuota:
    """A quota of the account and the most of it that was used in the last day; None where AWS does not measure it."""

    name: str
    service: str
    limit: float
    used: float | None = None


@dataclass(frozen=True, kw_only=True)
class Kms:
    """The stack's own KMS key."""

    arn: str
    is_enabled: bool
    is_rotated: bool


@dataclass(frozen=True, kw_only=True)
class Checkout:
    """What this checkout says: its template with the stack's parameters and names filled in (a value that cannot be
    known is `darkroom_cli.doctor.template.UNKNOWN`), the sections of its runbook by their anchors, and the hashes of
    its source files by function or layer, file by file."""

    types: Mapping[str, str]
    resources: Mapping[str, Mapping[str, Any]]
    runbook: Mapping[str, str]
    sources: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Everything that is judged, by logical ids. `types` has the type of each resource that the stack has. `now` is the
    stack's own time, `updated_at` the end of its latest deployment, `deployed` what the template of that one says, with
    values filled in as in `checkout`, and `swept_at` the time of the latest complete
    sweep within the last hour. `oldest_dead_letters` has ages in seconds by what measured them, `p99_seconds` those of
    the worker and of each lane's images in the last day's worst hour, and `pauses` those in force, by what is paused,
    and those that cannot be read."""

    name: str
    is_local: bool
    now: Milliseconds
    updated_at: Milliseconds
    status: str
    parameters: Mapping[str, str]
    types: Mapping[str, str]
    checkout: Checkout
    deployed: Mapping[str, Mapping[str, Any]]
    queues: Mapping[str, Queue]
    event_sources: Mapping[str, EventSource]
    functions: Mapping[str, FunctionFacts]
    roles: Mapping[str, Role]
    listings: Mapping[str, Listing]
    alarms: Mapping[str, AlarmFacts]
    topics: Mapping[str, TopicFacts]
    buckets: Mapping[str, Bucket]
    tables: Mapping[str, TableFacts]
    secrets: Mapping[str, SecretFacts]
    rules: Mapping[str, Rule]
    log_groups: Mapping[str, LogGroup]
    state_machines: Mapping[str, StateMachine]
    routes: Mapping[str, str]
    api_keys: Mapping[str, ApiKeyFacts]
    keys: Mapping[str, Kms]
    quotas: Mapping[str, ServiceQuota]
    concurrency: Mapping[str, int]
    sweeps: Mapping[str, Milliseconds]
    oldest_dead_letters: Mapping[str, float]
    p99_seconds: Mapping[str, float]
    deployed_sources: Mapping[str, Mapping[str, str]]
    pauses: Mapping[str, Pause | UnreadableRow] = field(default_factory=dict)

    def queue_by_arn(self, arn: str) -> tuple[str, Queue] | None:
        """The stack's queue with that ARN, and its logical id."""
        return next(((name, queue) for name, queue in self.queues.items() if queue.arn == arn), None)

    def consumers(self) -> Iterator[tuple[str, EventSource, Queue, FunctionFacts]]:
        """Each mapping from a queue of the stack, with its name, its queue and its function."""
        for name, source in self.event_sources.items():
            if source.is_queue and source.source in self.queues and source.function in self.functions:
                yield name, source, self.queues[source.source], self.functions[source.function]

    def pause_of(self, name: str) -> Pause | UnreadableRow | None:
        """The pause of the lane whose messages that mapping takes, if it is paused."""
        source = self.event_sources[name].source
        lane = next((lane for lane in LANES if source == f"{lane.capitalize()}Queue"), None)
        return None if lane is None else self.pauses.get(subject_of("lane", lane))

    @property
    def dead_letter_queues(self) -> dict[str, Queue]:
        """The queues that others name in their RedrivePolicy."""
        targets = {queue.dead_letters for queue in self.queues.values()}
        return {name: queue for name, queue in self.queues.items() if queue.arn in targets}
