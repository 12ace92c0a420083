"""The drills: what each rehearses, the switches it throws, the load, and the alarms that must fire."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from darkroom.domain.kernel.tenants import Tier
from darkroom.parts import Part
from darkroom_cli.drill.loads import (
    AnnouncedUploads,
    DamagedBatch,
    Fetches,
    Flood,
    Garbage,
    Load,
    Nothing,
    OldGarbage,
    Scheduled,
    TenantUploads,
    UndeliverableEvents,
    UploadsEachMinute,
    UploadsThatGoWell,
    UploadsToReplay,
)
from darkroom_cli.drill.scene import tenant_of
from darkroom_cli.drill.switches import Value

INCIDENT = "IncidentAlarm"
CRITICAL = frozenset(
    {
        "ImagesGivenUpAlarm",
        "ImagesStuckAlarm",
        "SweeperSilentAlarm",
        "ApiFailingAlarm",
        "PayingTenantsShedAlarm",
        "MessagesStuckAlarm",
        "FetchMessagesStuckAlarm",
        "ReleasesFailingAlarm",
        "EventsStuckAlarm",
        "RowsUnreadableAlarm",
    }
)
"""The alarms of which one makes an incident."""


class Where(StrEnum):
    """On which stacks a drill may run."""

    ANYWHERE = "anywhere"
    NOT_IN_PRODUCTION = "not in production"
    LOCAL = "the local stack"


@dataclass(frozen=True, kw_only=True)
class Throw:
    """A switch and where to put it. `target` is a logical id; {row} is the id of a row that there is not yet."""

    kind: str
    target: str
    during: Value


@dataclass(frozen=True, kw_only=True)
class Drill:
    """A game day.

    `alarms` are those that must fire, besides the incident, and `perhaps` those that may. They are expected
    `lead_minutes` after the switches were thrown, and within `patience_minutes` more; they clear within `clear_minutes`
    once everything was put back. `shows` is what the operator sees, and `because` why it may not run everywhere.
    Only a stack with its `part` can rehearse it.
    """

    name: str
    rehearses: str
    throws: Sequence[Throw] = ()
    load: Load = field(default_factory=Nothing)
    alarms: frozenset[str]
    perhaps: frozenset[str] = frozenset()
    shows: str
    lead_minutes: int = 0
    patience_minutes: int = 15
    clear_minutes: int = 40
    where: Where = Where.ANYWHERE
    because: str = ""
    needs_keys: bool = False
    part: Part | None = None
    minute_lasts_seconds: float = 0.0

    @property
    def pages(self) -> bool:
        """Whether somebody is woken."""
        return bool(self.alarms & CRITICAL)

    @property
    def expected(self) -> frozenset[str]:
        """All alarms that must fire."""
        return self.alarms | {INCIDENT} if self.pages else self.alarms

    @property
    def allowed(self) -> frozenset[str]:
        """All alarms that may fire."""
        return self.expected | self.perhaps | ({INCIDENT} if self.perhaps & CRITICAL else frozenset())


_ALL = [
    Drill(
        name="overload",
        rehearses="a lane is full: free tenants are turned away, then paying ones",
        throws=(
            Throw(kind="event_source", target="TranscodeImageFunctionSlowLane", during=False),
            Throw(kind="variable", target="SubmitImageFunction.SLOW_CONCURRENCY", during="2"),
        ),
        load=Flood(tiers=(Tier.FREE, Tier.PLUS), workers=2, most=480),
        alarms=frozenset({"FreeTenantsShedAlarm", "PayingTenantsShedAlarm"}),
        shows="the lane's depth at its high-water mark; clients get 429 with an honest Retry-After",
        where=Where.LOCAL,
        because="the lanes of a deployed stack are too fast to be filled by one client",
        needs_keys=True,
    ),
    Drill(
        name="lane-stopped",
        rehearses="the fast lane's workers receive nothing",
        throws=(Throw(kind="event_source", target="TranscodeImageFunctionFastLane", during=False),),
        load=TenantUploads(3, Tier.PAID),
        alarms=frozenset({"ImagesLateAlarm", "ImagesStuckAlarm"}),
        shows="the lane with its depth and an age that grows, and no worker that is busy",
        lead_minutes=3,
        needs_keys=True,
    ),
    Drill(
        name="sweeper-off",
        rehearses="the sweeper's schedule is disabled",
        throws=(Throw(kind="schedule", target="SweepDueImagesFunctionEveryMinute", during=False),),
        alarms=frozenset({"SweeperSilentAlarm"}),
        shows="that no sweep has completed for minutes",
    ),
    Drill(
        name="endpoint-sweeper-off",
        part="webhooks",
        rehearses="the schedule of the endpoints' sweeper is disabled",
        throws=(Throw(kind="schedule", target="SweepDueEndpointsFunctionEveryMinute", during=False),),
        alarms=frozenset({"EndpointSweeperSilentAlarm"}),
        shows="that no webhook is sent again whose receiver did not answer",
    ),
    Drill(
        name="sweeper-behind",
        rehearses="messages cannot be sent, neither at once nor by the sweeper, and its alarm is set to half a minute",
        throws=(
            Throw(kind="threshold", target="SweeperBehindAlarm", during=0.1),
            Throw(kind="denied", target="SubmitImageFunctionRole", during=["sqs:SendMessage"]),
            Throw(kind="denied", target="SweepDueImagesFunctionRole", during=["sqs:SendMessage"]),
        ),
        load=TenantUploads(1, Tier.PLUS),
        alarms=frozenset({"SweeperBehindAlarm", "FunctionErrorsAlarm"}),
        perhaps=frozenset({"ImagesLateAlarm"}),
        shows="the line SWEEPER of `top`: rescues, and how late",
        where=Where.NOT_IN_PRODUCTION,
        because="everybody's uploads would wait",
    ),
    Drill(
        name="api-off",
        rehearses="the function that takes uploads is throttled to nothing",
        throws=(Throw(kind="concurrency", target="SubmitImageFunction", during=0),),
        load=UploadsEachMinute(3, Tier.PAID),
        alarms=frozenset({"ApiErrorsAlarm", "ApiFailingAlarm"}),
        shows="503 for every upload; images that were accepted go on",
    ),
    Drill(
        name="poison",
        part="usage",
        rehearses="messages that nobody can read, in a lane and in a consumer's queue",
        load=Garbage(("SlowQueue", "UsageQueue")),
        alarms=frozenset({"DeadLettersAlarm", "EventDeadLettersAlarm"}),
        shows="`dlq ls` with the verdict `rejected`, and how many dead letters of events there are",
    ),
    Drill(
        name="permission-removed",
        rehearses="a deployment that takes a permission from the worker: every attempt fails",
        throws=(Throw(kind="denied", target="TranscodeImageFunctionRole", during=["s3:GetObjectVersion"]),),
        load=UploadsToReplay(12, Tier.PLUS),
        alarms=frozenset(
            {"AttemptsFailingAlarm", "ImagesGivenUpAlarm", "ImagesStuckAlarm", "ImagesLateAlarm", "DeadLettersAlarm"}
        ),
        shows="`dlq ls` with one defect, AccessDenied, while it is still retried, and later the images given up",
        patience_minutes=20,
        where=Where.NOT_IN_PRODUCTION,
        because="the attempts of everybody's images would fail",
    ),
    Drill(
        name="bad-deployment",
        part="usage",
        rehearses="a deployment of a consumer that cannot start",
        throws=(Throw(kind="handler", target="CountUsageFunction", during="missing.handler"),),
        load=UploadsThatGoWell(1, Tier.PLUS),
        alarms=frozenset({"FunctionErrorsAlarm"}),
        shows="which function's invocations end in an error; no image is affected",
    ),
    Drill(
        name="throttled-table",
        rehearses="the table of images takes one write per second",
        throws=(Throw(kind="write_limit", target="ImagesTable", during=1),),
        load=UploadsEachMinute(24, Tier.PLUS),
        alarms=frozenset({"ApiErrorsAlarm"}),
        shows="503 with Retry-After, and the circuit of DynamoDB open",
        where=Where.NOT_IN_PRODUCTION,
        because="everybody's uploads would be refused, and retried for minutes",
    ),
    Drill(
        name="dead-endpoint",
        part="webhooks",
        rehearses="a tenant's webhook at which nobody listens",
        load=UndeliverableEvents(1, Tier.PLUS),
        alarms=frozenset(),
        shows="nothing rings: it is the tenant's; `webhooks deliveries` shows the attempts and their errors",
        patience_minutes=6,
    ),
    Drill(
        name="uploads-stuck",
        rehearses="files that were uploaded are not noticed",
        throws=(Throw(kind="event_source", target="AcceptUploadFunctionUploadQueue", during=False),),
        load=AnnouncedUploads(1, Tier.PLUS),
        alarms=frozenset({"MessagesStuckAlarm"}),
        shows="images that stay `awaiting_upload` although their files are there",
        lead_minutes=14,
    ),
    Drill(
        name="fetches-stuck",
        part="imports",
        rehearses="images are not fetched from the URLs that clients gave",
        throws=(Throw(kind="event_source", target="FetchOriginalFunctionFetchQueue", during=False),),
        load=Fetches(1, Tier.PLUS),
        alarms=frozenset({"FetchMessagesStuckAlarm"}),
        shows="images that stay `fetching` although nothing was tried",
        lead_minutes=14,
    ),
    Drill(
        name="holds-stuck",
        rehearses="scheduled images are not set aside",
        throws=(Throw(kind="event_source", target="HoldImagesFunctionHoldQueue", during=False),),
        load=Scheduled(1, Tier.PLUS, "P2D"),
        alarms=frozenset({"MessagesStuckAlarm"}),
        shows="the depth and age of the hold queue",
        lead_minutes=14,
    ),
    Drill(
        name="deliveries-stuck",
        part="webhooks",
        rehearses="webhooks wait for a worker",
        throws=(Throw(kind="event_source", target="DeliverEventFunctionDeliveryQueue", during=False),),
        load=UndeliverableEvents(1, Tier.PLUS),
        alarms=frozenset({"DeliveriesLateAlarm"}),
        shows="the depth of the queue of deliveries, and the budget of first attempts",
        lead_minutes=20,
        clear_minutes=130,  # where nothing else is sent, the alarm looks back at three more half hours
    ),
    Drill(
        name="events-stuck",
        part="webhooks",
        rehearses="the function that publishes events is throttled to nothing",
        throws=(Throw(kind="concurrency", target="PublishEventsFunction", during=0),),
        load=UploadsThatGoWell(1, Tier.PLUS),
        alarms=frozenset({"EventsStuckAlarm"}),
        shows="how old the oldest event is that was not published",
        lead_minutes=15,
        minute_lasts_seconds=6.0,
    ),
    Drill(
        name="damaged-batch",
        rehearses="a batch of scheduled images that cannot be released",
        load=DamagedBatch(),
        alarms=frozenset({"ReleasesFailingAlarm", "DeadLettersAlarm", "FunctionErrorsAlarm"}),
        shows="`delay ls`, and a dead letter of the hold queue that names the batch",
    ),
    Drill(
        name="unreadable-row",
        rehearses="a version that wrote rows of its own was rolled back",
        throws=(Throw(kind="planted_row", target="{row}", during=True),),
        alarms=frozenset({"RowsUnreadableAlarm"}),
        shows="`doctor` with the row's id, and why it cannot be read",
        where=Where.LOCAL,
        because="nothing but a newer version should write such a row to a table with customers' images",
    ),
    Drill(
        name="work-paused",
        part="bulk",
        rehearses="a pause that is forgotten: a tenant's images wait, and the alarm that reminds is set to a minute",
        throws=(
            Throw(kind="threshold", target="PausedAlarm", during=60),
            Throw(kind="pause", target=tenant_of(Tier.PLUS), during=True),
        ),
        load=TenantUploads(2, Tier.PLUS),
        alarms=frozenset({"PausedAlarm"}),
        shows="`pause ls` with the tenant and its images, none of which counts as late",
        needs_keys=True,
    ),
    Drill(
        name="differences",
        part="bulk",
        rehearses="an original without a row, which two nights have seen",
        throws=(Throw(kind="difference", target="{row}", during=True),),
        alarms=frozenset({"DifferencesAlarm"}),
        shows="`differences ls` with the original's key, and what to do",
    ),
    Drill(
        name="unusual-day",
        rehearses="more is uploaded in a day than is usual",
        throws=(Throw(kind="threshold", target="UnusualDayAlarm", during=1),),
        load=UploadsThatGoWell(1, Tier.PLUS),
        alarms=frozenset({"UnusualDayAlarm"}),
        shows="`usage` with the tenant whose bytes of the day they are",
    ),
    Drill(
        name="old-dead-letter",
        rehearses="a dead letter that nobody has looked at for twelve days",
        load=OldGarbage(("SlowQueue",), 12),
        alarms=frozenset({"DeadLettersAlarm", "DeadLettersExpiringAlarm"}),
        # The clock leaps, so there were no sweeps in between: it fires if it is evaluated before the next sweep ends.
        perhaps=frozenset({"SweeperSilentAlarm"}),
        shows="`dlq ls --older-than 12d`",
        where=Where.LOCAL,
        because="twelve days pass only where the clock can be moved",
    ),
]

DRILLS = {drill.name: drill for drill in _ALL}
"""In the order in which `drill all` runs them: `overload` needs a lane that has done little, and after the leap the
drills' keys have expired."""
