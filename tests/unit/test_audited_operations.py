"""Every operation of operators is in the audit log, and changes nothing while the log is silent."""

from __future__ import annotations

import ast
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from darkroom.domain.bulk.backfills import BackfillState, Selection, start
from darkroom.domain.bulk.schedules import Plan, add
from darkroom.domain.images.image import Status
from darkroom.domain.images.stored_by import StoredVersion
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.tenants import Tenant, TenantState, Tier
from darkroom.domain.pauses.pauses import Pause
from darkroom.domain.webhooks.endpoint import DisabledBy, disable, pause
from darkroom_cli.operator.domain.periods import Period
from darkroom_cli.operator.operations.backfills import decide_backfill as backfilling
from darkroom_cli.operator.operations.dead_letters import drop_dead_letters as dropping
from darkroom_cli.operator.operations.dead_letters import replay_dead_letters as replaying
from darkroom_cli.operator.operations.dead_letters.list_dead_letters import EVERYTHING
from darkroom_cli.operator.operations.events import republish_events as republishing
from darkroom_cli.operator.operations.images import redo_image as redoing
from darkroom_cli.operator.operations.images import remove_orphans as removing
from darkroom_cli.operator.operations.images.list_orphans import Look, Orphan
from darkroom_cli.operator.operations.kernel.rate_limiter import RateLimiter
from darkroom_cli.operator.operations.kernel.retry_transient import TransientRetry
from darkroom_cli.operator.operations.pauses import pause_work as pausing
from darkroom_cli.operator.operations.pauses import resume_work as resuming
from darkroom_cli.operator.operations.recurring import decide_schedule as recurring
from darkroom_cli.operator.operations.schedules import cancel_scheduled as cancelling
from darkroom_cli.operator.operations.schedules import reschedule_scheduled as rescheduling
from darkroom_cli.operator.operations.schedules import stop_releases as stopping
from darkroom_cli.operator.operations.schedules.list_scheduled import ScheduledSelection
from darkroom_cli.operator.operations.tenants import add_tenant as adding
from darkroom_cli.operator.operations.tenants import change_tenant as changing
from darkroom_cli.operator.operations.tenants import create_key as creating
from darkroom_cli.operator.operations.tenants import revoke_key as revoking
from darkroom_cli.operator.operations.tenants import rotate_key as rotating
from darkroom_cli.operator.operations.tenants.erase_tenant import EraseTenantPorts, forget_tenants
from darkroom_cli.operator.operations.usage import recount_stored as recounting
from darkroom_cli.operator.operations.webhooks import enable_webhook as mending
from darkroom_cli.operator.operations.webhooks import pause_webhook as webhook_pausing
from repository.report import ROOT
from tests.support.fakes.audit import FakeAudit, trail_of
from tests.support.fakes.batch_rows import FakeBackfills, FakeSchedules
from tests.support.fakes.dead_letters import FakeRedrives
from tests.support.fakes.events import FakeTopic, FakeUsage
from tests.support.fakes.load_shedding import FakeTokenBuckets
from tests.support.fakes.originals import FakeVersionedOriginals
from tests.support.fakes.stores import FakeReleases
from tests.support.fakes.tenants import FakeTenants
from tests.support.observed import Observed

DAY = 24 * 3_600_000
REMOVED = f"{77:026d}"
NIGHTLY = Plan(name="nightly", cron="0 4 * * *", job="announce", target="acme")


@dataclass
class Operated(Observed):
    """A world with everything that operators change: a tenant with a key and a webhook, images that failed, are done
    or wait, and an original without a row."""

    tenants: Any = field(default_factory=FakeTenants)
    log: FakeAudit = field(default_factory=FakeAudit)
    topic: Any = field(default_factory=FakeTopic)
    usage: Any = field(default_factory=FakeUsage)
    token_buckets: Any = field(default_factory=FakeTokenBuckets)
    backfills: Any = field(default_factory=FakeBackfills)
    schedules: Any = field(default_factory=FakeSchedules)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.tenants.tenants["acme"] = Tenant(tenant_id="acme", tier=Tier.FREE, created_at=1)
        with_key = self.ports(creating.MakePorts, randomness=lambda size: bytes(range(size)))
        _, self.key = creating.make_key(with_key, "acme", label=None, scopes=None, lives_seconds=None)
        webhook = self.endpoint(0)
        self.webhook = self.endpoints.change(webhook, disable(webhook, DisabledBy.GONE, now=self.now))
        self.paused = self.endpoints.change(row := self.endpoint(1), pause(row, now=self.now))
        self.backfill = self.backfills.create(
            start("bf_1", Selection(preset="standard", version=2), rate=None, now=self.now)
        )
        self.schedules.create(add(NIGHTLY, now=self.now))
        self.failed = self.give_up(1)
        self.done = self.put(2, status=Status.DONE)
        self.waiting = self.put(3, status=Status.SCHEDULED, process_at=self.now + DAY)
        self.versions = FakeVersionedOriginals(self.clock)
        self.releases = FakeReleases(batches=["one"])
        self.audit = trail_of(self.log, clock=self.clock)
        self.pauses.pause(Pause(kind="tenant", name="acme", since=1))
        self.patience = TransientRetry(pause=lambda _: None, stop=lambda: False)
        self.redrives = FakeRedrives(self.dead_letters, self.lanes, per_look=100)

    @property
    def state(self) -> Any:
        """All that an operation could change."""
        return deepcopy(
            (
                self.images.rows,
                self.backfills.rows,
                self.schedules.rows,
                self.dead_letters.messages,
                self.lanes.sent,
                self.tenants.tenants,
                self.tenants.keys,
                [self.endpoints.get(row.tenant_id, row.endpoint_id) for row in (self.webhook, self.paused)],
                self.topic.published,
                self.usage.store,
                self.versions.kept,
                self.releases,
                self.pauses,
                self.sources,
            )
        )

    @property
    def tomorrow(self) -> ScheduledSelection:
        """What waits for tomorrow."""
        return ScheduledSelection(period=Period(starts_at=self.now, ends_at=self.now + 2 * DAY), lanes=("fast", "slow"))

    @property
    def pace(self) -> RateLimiter:
        """One that never waits."""
        return RateLimiter(per_second=1000, clock=self.clock, pause=lambda _: None)


def _replay(world: Operated) -> object:
    ports = world.ports(replaying.ReplayDeadLettersPorts)
    return replaying.replay_dead_letters(
        ports, "slow", EVERYTHING, pace=world.pace, stop=lambda: False, counts=replaying.Counts()
    )


def _replay_all(world: Operated) -> object:
    ports = world.ports(replaying.QueuePorts, pause=lambda _: None)
    return replaying.replay_queue(ports, "slow", per_second=10, stop=lambda: False, counts=replaying.Counts())


def _drop(world: Operated) -> object:
    return dropping.drop_dead_letters(
        world.ports(dropping.DropDeadLettersPorts),
        "slow",
        EVERYTHING,
        force=True,
        stop=lambda: False,
        counts=replaying.Counts(),
    )


def _change(world: Operated) -> object:
    return changing.change_tenant(
        world.ports(changing.ChangeTenantPorts), "acme", lambda tenant: replace(tenant, state=TenantState.SUSPENDED)
    )


def _remove_orphans(world: Operated) -> object:
    version = StoredVersion(
        key=REMOVED, image_id=REMOVED, version_id="v1", stored_at=1, size_bytes=3, is_marker=False, is_latest=True
    )
    orphan = Orphan(image_id=REMOVED, versions=(version,), markers=())
    look = Look(
        originals=1000, orphans=1, size_bytes=3, oldest_at=1, young=0, held=(orphan,), foreign=0, foreign_keys=()
    )
    patience = TransientRetry(pause=lambda _: None, stop=lambda: False)
    ports = world.ports(removing.RemoveOrphansPorts, originals=world.versions, patience=patience)
    return removing.remove_orphans(ports, look, table_is_whole=False)


def _stop_releases(world: Operated) -> object:
    patience = TransientRetry(pause=lambda _: None, stop=lambda: False)
    return stopping.stop_releases(world.ports(stopping.StopReleasesPorts, patience=patience))


def _in_a_day(world: Operated, work: Callable[[Any], object]) -> object:
    with world.audit.action("a_day", is_certain=False) as audited:
        return work(audited)


def _cancel(world: Operated) -> object:
    return _in_a_day(
        world,
        lambda audited: cancelling.cancel_scheduled(
            world.ports(cancelling.CancelScheduledPorts, audited=audited),
            world.waiting,
            world.tomorrow,
            remove_at=world.now,
        ),
    )


def _reschedule(world: Operated) -> object:
    return _in_a_day(
        world,
        lambda audited: rescheduling.reschedule_scheduled(
            world.ports(rescheduling.RescheduleScheduledPorts, audited=audited),
            world.waiting,
            world.tomorrow,
            lambda at: at + 7 * DAY,
        ),
    )


def _erase(world: Operated) -> object:
    return _in_a_day(world, lambda audited: forget_tenants(world.ports(EraseTenantPorts), ["acme"], audited))


def _republish(world: Operated) -> object:
    ports = world.ports(republishing.RepublishEventsPorts)
    return republishing.republish_events(ports, republishing.RepublishSelection(since=0), pace=world.pace)


def _recount(world: Operated) -> object:
    ports = world.ports(recounting.RecountStoredPorts)
    return recounting.correct_stored(ports, recounting.recount_stored(ports))


def _mend(world: Operated, since: int | None) -> object:
    ports = world.ports(mending.EnableWebhookPorts)
    return mending.enable_webhook(ports, world.webhook.tenant_id, world.webhook.endpoint_id, since=since)


def _pause(world: Operated) -> object:
    return pausing.pause_work(world.ports(pausing.PauseWorkPorts), "lane", "slow", reason="a bug")


def _resume(world: Operated) -> object:
    return resuming.resume_work(world.ports(resuming.ResumeWorkPorts), "tenant", "acme")


def _pause_webhook(world: Operated, is_paused: bool) -> object:
    ports = world.ports(webhook_pausing.PauseWebhookPorts)
    row = world.paused if not is_paused else world.webhook
    return webhook_pausing.pause_webhook(ports, row, is_paused=is_paused)


def _start_backfill(world: Operated) -> object:
    ports = world.ports(backfilling.DecideBackfillPorts)
    return backfilling.start_backfill(ports, Selection(preset="standard", version=2), rate=None)


def _pause_backfill(world: Operated) -> object:
    ports = world.ports(backfilling.DecideBackfillPorts)
    return backfilling.decide_backfill(ports, world.backfill.backfill_id, BackfillState.PAUSED)


def _decide_schedule(world: Operated, decision: Any) -> object:
    return recurring.decide_schedule(world.ports(recurring.DecideSchedulePorts), "nightly", decision)


def _add_schedule(world: Operated) -> object:
    return recurring.add_schedule(world.ports(recurring.DecideSchedulePorts), replace(NIGHTLY, name="new"))


OPERATIONS: dict[str, tuple[str, Callable[[Operated], object]]] = {
    "add_tenant": (
        "add_tenant",
        lambda world: adding.add_tenant(
            world.ports(adding.AddTenantPorts), "new", tier=Tier.PAID, requests_per_second=None, burst=None
        ),
    ),
    "change_tenant": ("change_tenant", _change),
    "create_key": (
        "create_key",
        lambda world: creating.create_key(world.ports(creating.CreateKeyPorts), "acme", label="ci"),
    ),
    "rotate_key": (
        "rotate_key",
        lambda world: rotating.rotate_key(world.ports(creating.CreateKeyPorts), world.key.key_id, overlap_seconds=60),
    ),
    "revoke_key": (
        "revoke_key",
        lambda world: revoking.revoke_key(world.ports(revoking.RevokeKeyPorts), world.key.key_id),
    ),
    "replay_dead_letters": ("replay", _replay),
    "replay_image": (
        "replay",
        lambda world: replaying.replay_image(world.ports(replaying.ReplayDeadLettersPorts), world.failed),
    ),
    "replay_queue": ("replay_all", _replay_all),
    "drop_dead_letters": ("drop", _drop),
    "redo_image": ("redo", lambda world: redoing.redo_image(world.ports(redoing.RedoImagePorts), world.done)),
    "cancel_scheduled": ("a_day", _cancel),
    "reschedule_scheduled": ("a_day", _reschedule),
    "erase_tenant": ("a_day", _erase),
    "remove_orphans": ("remove_orphans", _remove_orphans),
    "stop_releases": ("stop_releases", _stop_releases),
    "republish_events": ("republish", _republish),
    "recount_stored": ("recount", _recount),
    "pause_work": ("pause", _pause),
    "resume_work": ("resume", _resume),
    "decide_backfill new": ("start_backfill", _start_backfill),
    "decide_backfill": ("decide_backfill", _pause_backfill),
    "decide_schedule new": ("add_schedule", _add_schedule),
    "decide_schedule": ("pause_schedule", lambda world: _decide_schedule(world, "pause")),
    "decide_schedule remove": ("remove_schedule", lambda world: _decide_schedule(world, "remove")),
    "pause_webhook": ("pause_webhook", lambda world: _pause_webhook(world, is_paused=True)),
    "pause_webhook again": ("resume_webhook", lambda world: _pause_webhook(world, is_paused=False)),
    "enable_webhook": ("enable_webhook", lambda world: _mend(world, None)),
    "enable_webhook since": ("recover_webhook", lambda world: _mend(world, world.now - DAY)),
}

EACH = pytest.mark.parametrize("name", OPERATIONS)

READING = {
    "archive_dead_letters",  # copies what a function of the stack copies too, and changes nothing
    "audit_trail",
    "cases",
    "delete_image",  # a tenant's own; erasing a tenant uses it as a part of an action
    *("list_dead_letters", "list_given_up", "list_late_images", "list_orphans", "list_retrying", "list_scheduled"),
    *("list_pauses", "list_unreadable_rows", "observe_stack", "rate_limiter", "retry_transient", "trace_image"),
    *("manage_batches", "measure_lanes", "serve_page"),  # of the first only the type of what it read
}


@EACH
def test_it_is_in_the_audit_log_once_with_its_end(name: str) -> None:
    world, (action, work) = Operated(), OPERATIONS[name]
    work(world)
    assert world.log.actions == [(action, "begun"), (action, "done")]
    assert len({line.entry.action_id for line in world.log.lines}) == 1


@pytest.mark.guards("audit-backfill-announced", case="decide_backfill")
@pytest.mark.guards("audit-cancel-announced", case="cancel_scheduled")
@pytest.mark.guards("audit-drop-announced", case="drop_dead_letters")
@pytest.mark.guards("audit-erase-tenant-announced", case="erase_tenant")
@pytest.mark.guards("audit-pause-announced", case="pause_work")
@pytest.mark.guards("audit-replay-announced", case="replay_dead_letters")
@pytest.mark.guards("audit-republish-announced", case="republish_events")
@pytest.mark.guards("audit-schedule-announced", case="decide_schedule")
@pytest.mark.guards("audit-reschedule-announced", case="reschedule_scheduled")
@pytest.mark.guards("audit-resume-announced", case="resume_work")
@EACH
def test_it_changes_nothing_while_the_log_is_silent(name: str) -> None:
    world, (_, work) = Operated(), OPERATIONS[name]
    before, world.log.is_down = world.state, True
    with pytest.raises(Retryable, match="audit log"):
        work(world)
    assert world.state == before


def test_no_entry_has_more_than_ids_and_words_of_the_code() -> None:
    world = Operated()
    for _, work in OPERATIONS.values():
        world = Operated(log=world.log)
        work(world)
    text = repr(world.log.lines)
    for content in ("'gamma'", "Traceback", "a bug", "https://", world.key.digest, "label='ci'"):
        assert content not in text


def test_every_operation_that_a_command_imports_is_audited_or_only_reads() -> None:
    modules = [
        f"{node.module}.{name.name}" if (ROOT / folder / str(node.module).replace(".", "/")).is_dir() else node.module
        for file in (ROOT / "cli/darkroom_cli").rglob("*.py")
        if not file.is_relative_to(ROOT / "cli/darkroom_cli/operator")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ImportFrom)
        for folder, package in (("layers/core", "darkroom.operations."), ("cli", "darkroom_cli.operator.operations."))
        if node.module is not None and node.module.startswith(package)
        for name in node.names
    ]
    imported = {module.rpartition(".")[2] for module in modules}
    driven = {name.partition(" ")[0] for name in OPERATIONS} | {"replay_dead_letters"}
    assert imported - driven - READING == set()
