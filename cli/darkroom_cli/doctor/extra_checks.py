"""What the checklist does not ask, and a stack may lack all the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from typing import Any

from darkroom.domain.kernel.instants import rfc3339
from darkroom.domain.kernel.lanes import LANES
from darkroom.ports.kernel import UnreadableRow
from darkroom_cli.doctor import alarms
from darkroom_cli.doctor.checks import Check, Finding
from darkroom_cli.doctor.drift import SETTINGS, differences
from darkroom_cli.doctor.facts import Facts
from darkroom_cli.doctor.operation import P99_ROOM, SWEEPERS_RULE
from darkroom_cli.doctor.policies import allowed, is_for_anybody
from darkroom_cli.doctor.priority import lane_queue
from darkroom_cli.doctor.security import DAY_MS, YEAR_MS, excessive, granted_by_template, is_one_of, worker_roles
from darkroom_cli.doctor.template import UNKNOWN, at

GROUP = "Also"

NEAR = 0.8
"""The share of a quota from which on it is near its limit."""

UNUSED_DAYS = 90
"""A key that nobody has used for so long is forgotten, not needed."""

OPEN_ROUTES = frozenset(
    f"{method} {path}" for method in ("GET", "HEAD") for path in ("/openapi.json", "/app", "/app/{path+}")
)
"""Routes without a credential: they reveal nothing about any tenant."""

VERSIONED = frozenset({"OriginalsBucket"})
"""A row pins the version of its original."""


def _alarms_are_heard(facts: Facts) -> Iterator[Finding]:
    of_lines = {name for watch in alarms.OF_THE_CHECKLIST for name in alarms.watching(facts, watch)}
    for name, alarm in facts.alarms.items():
        if name not in of_lines:
            yield from alarms.silent(facts, name, alarm)


def _messages_outlive_their_images(facts: Facts) -> Iterator[Finding]:
    for lane in LANES:
        queue, p99 = facts.queues.get(lane_queue(lane)), facts.p99_seconds.get(lane, 0)
        if queue is not None and p99 * P99_ROOM > queue.retention_seconds:  # guard: doctor-retention-beside-p99
            problem = (
                f"it keeps a message for {queue.retention_seconds:,} seconds, and an image of the lane {lane} takes "
                f"{p99:,.0f} (p99 of an hour): a message that SQS drops costs its image a look of the sweeper"
            )
            yield Finding(subject=lane_queue(lane), problem=problem, by_template=False)


def _everything_runs(facts: Facts) -> Iterator[Finding]:
    if not facts.status.endswith("_COMPLETE") or "ROLLBACK" in facts.status:
        yield Finding(subject=facts.name, problem=f"its latest deployment has not succeeded: {facts.status}")
    lanes = {lane_queue(lane) for lane in LANES}
    for name, source in facts.event_sources.items():
        if not source.is_enabled and source.source not in lanes:
            yield Finding(subject=name, problem=f"it is disabled: nothing takes from {source.source}")
    for name, function in facts.functions.items():
        if function.reserved == 0:
            yield Finding(subject=name, problem="its concurrency is zero: it is never invoked")
        if function.problem is not None:
            yield Finding(subject=name, problem=function.problem, by_template=False)
    for name, rule in facts.rules.items():
        if not rule.is_enabled and name != SWEEPERS_RULE:
            yield Finding(subject=name, problem="its schedule is disabled")


def _nothing_is_paused(facts: Facts) -> Iterator[Finding]:
    served = [facts.pause_of(name) for name, source in facts.event_sources.items() if source.is_enabled]
    for subject, pause in facts.pauses.items():
        if isinstance(pause, UnreadableRow):
            yield Finding(subject=subject, problem=str(pause), by_template=False)
            continue
        named, why = f"{pause.kind} {pause.name}", f": {pause.reason}" if pause.reason else ""
        yield Finding(subject=named, problem=f"it is paused since {rfc3339(pause.since)}{why}", by_template=False)
        if pause in served:
            problem = "workers still take its messages and set each image aside, which costs more"
            yield Finding(subject=named, problem=problem, by_template=False)


def _nothing_is_public(facts: Facts) -> Iterator[Finding]:
    for name, bucket in facts.buckets.items():
        if not bucket.is_closed:
            yield Finding(subject=name, problem="public access to it is not blocked")
        if any(statement.is_allowed and is_for_anybody(statement) for statement in bucket.policy):
            yield Finding(subject=name, problem="its policy lets everybody in")
    for name, topic in facts.topics.items():
        for statement in topic.policy:
            if statement.is_allowed and is_for_anybody(statement) and not statement.condition:
                yield Finding(subject=name, problem="its policy lets everybody in")
    if facts.parameters.get("Access") != "anonymous":
        for route, authorization in facts.routes.items():
            if authorization == "NONE" and route not in OPEN_ROUTES:
                yield Finding(subject=route, problem="it asks for no credential", about="Api")


def _callers_are_known(facts: Facts) -> Iterator[Finding]:
    if facts.parameters.get("Access") == "anonymous":
        yield Finding(subject="Access", problem="it is anonymous: everybody may upload, read and delete")
    if facts.parameters.get("Environment") == "local":
        yield Finding(subject="Environment", problem="it is local: webhooks are delivered to its own machine alone")


def _everything_is_encrypted(facts: Facts) -> Iterator[Finding]:
    for name, bucket in facts.buckets.items():
        if bucket.algorithm is None:
            yield Finding(subject=name, problem="nothing encrypts its objects by default")
    if facts.parameters.get("Encryption") != "customer":
        return
    ours = {key.arn for key in facts.keys.values()}
    if not ours:
        yield Finding(subject="Key", problem="the stack has no key of its own, and Encryption=customer asks for one")
    for name, key in facts.keys.items():
        if not key.is_enabled:
            yield Finding(subject=name, problem="it is disabled or about to be deleted: nothing can be read")
        if not key.is_rotated:
            yield Finding(subject=name, problem="it is not rotated every year")
    kinds: tuple[Mapping[str, Any], ...] = (facts.buckets, facts.tables, facts.topics, facts.log_groups)
    for things in kinds:
        for name, thing in things.items():
            if not is_one_of(thing.key, ours):
                yield Finding(subject=name, problem="another key than the stack's own encrypts it")


def _data_is_kept(facts: Facts) -> Iterator[Finding]:
    for name, table in facts.tables.items():
        written = facts.checkout.resources.get(name, {})
        if at(written, "DeletionProtectionEnabled") and not table.is_protected:
            yield Finding(subject=name, problem="it is not protected against deletion")
        if at(written, "PointInTimeRecoverySpecification") and not table.is_recoverable:
            yield Finding(subject=name, problem="it has no point-in-time recovery")
    for name in sorted(VERSIONED & facts.buckets.keys()):
        if not facts.buckets[name].is_versioned:
            yield Finding(subject=name, problem="its objects have no versions, and rows pin them")


def _logs_end(facts: Facts) -> Iterator[Finding]:
    for name, group in facts.log_groups.items():
        if group.retention_days is None:
            yield Finding(subject=name, problem="its lines are kept for ever")


def _keys_are_used(facts: Facts) -> Iterator[Finding]:
    today = datetime.fromtimestamp(facts.now / 1000, UTC).date()
    for key_id, key in facts.api_keys.items():
        age_days = (facts.now - key.created_at) // DAY_MS
        if facts.now - key.created_at > YEAR_MS:
            yield Finding(subject=key_id, problem=f"this key of {key.tenant_id} is {age_days} days old")
        used = None if key.last_used_on is None else (today - date.fromisoformat(key.last_used_on)).days
        if used is None and age_days > UNUSED_DAYS:
            yield Finding(subject=key_id, problem=f"this key of {key.tenant_id} was never used, in {age_days} days")
        elif used is not None and used > UNUSED_DAYS:
            yield Finding(subject=key_id, problem=f"this key of {key.tenant_id} was last used {used} days ago")


def _quotas_are_far(facts: Facts) -> Iterator[Finding]:
    for quota in facts.quotas.values():
        if quota.limit > 0 and quota.used is not None and quota.used >= NEAR * quota.limit:
            problem = (
                f"{quota.used:,.0f} of {quota.limit:,.0f} {quota.name} ({quota.service}) were used in the last day"
            )
            yield Finding(subject="account", problem=problem)


def _as_this_checkout_says(facts: Facts) -> Iterator[Finding]:
    written = facts.checkout.types
    yield from (
        Finding(subject=name, problem=f"this checkout has a {written[name]} that the stack does not have")
        for name in sorted(written.keys() - facts.types.keys())
    )
    yield from (
        Finding(subject=name, problem=f"the stack has a {facts.types[name]} that this checkout does not have")
        for name in sorted(facts.types.keys() - written.keys())
    )
    for name in sorted(written.keys() & facts.types.keys()):
        yield from _settings(facts, name, written[name])
        if written[name] == "AWS::IAM::Role" and name in facts.roles:
            yield from _grants(facts, name)


def _settings(facts: Facts, name: str, kind: str) -> Iterator[Finding]:
    for difference in differences(facts, name, kind, facts.checkout.resources[name], SETTINGS):
        yield Finding(subject=name, problem=difference.words("this checkout says"), setting=difference.setting)


def _grants(facts: Facts, name: str) -> Iterator[Finding]:
    role = facts.roles[name]
    live = set(allowed(role.statements))
    for action, resource in granted_by_template(facts, name):
        if resource is not UNKNOWN and (action, resource) not in live:
            yield Finding(subject=name, problem=f"it may not {action} on {resource}, which its function needs")
    if role.arn not in worker_roles(facts):
        yield from excessive(facts, name, role)


def _code_is_this_checkouts(facts: Facts) -> Iterator[Finding]:
    for name, files in facts.checkout.sources.items():
        deployed = facts.deployed_sources[name]
        for path in sorted(files.keys() | deployed.keys()):
            if path not in deployed:
                yield Finding(subject=name, problem=f"{path} is not deployed", by_template=False)
            elif path not in files:
                problem = f"{path} is deployed, and this checkout does not have it"
                yield Finding(subject=name, problem=problem, by_template=False)
            elif files[path] != deployed[path]:
                yield Finding(subject=name, problem=f"{path} is deployed in another version", by_template=False)


def _code(facts: Facts) -> Iterator[Finding]:
    if not facts.is_local:
        yield from _code_is_this_checkouts(facts)


def _nobody_lists(facts: Facts) -> Iterator[Finding]:
    for role, listing in facts.listings.items():
        for bucket in sorted(listing.everything):
            yield Finding(subject=role, problem=f"it may list the whole of {bucket}: the ids of everybody's images")
        for bucket in sorted(listing.nothing):
            yield Finding(subject=role, problem=f"it cannot tell a missing object of {bucket} from a forbidden one")


_DEPLOY = "Deploy this checkout, or check out the version that is deployed."

CHECKS = (
    Check(
        name="alarms-are-heard",
        group=GROUP,
        question="every other alarm tells somebody, too",
        remedy="Enable the alarm's actions again (aws cloudwatch enable-alarm-actions), or deploy this checkout again.",
        look=_alarms_are_heard,
    ),
    Check(
        name="messages-outlive-their-images",
        group=GROUP,
        question="a lane's queue keeps a message for longer than its images take",
        remedy="Give the lane more workers (./darkroom capacity), or a longer retention: retention_seconds in "
        "domain/kernel/lanes.py and RetentionSeconds in template.yaml.",
        look=_messages_outlive_their_images,
    ),
    Check(
        name="everything-runs",
        group=GROUP,
        question="no mapping, function or schedule is switched off",
        remedy="Switch it on again, or undo the drill that switched it off; docs/runbook.md, A bad deployment, if the "
        "stack's deployment failed.",
        look=_everything_runs,
    ),
    Check(
        name="nothing-is-paused",
        group=GROUP,
        question="nothing is paused",
        remedy="When it may go on: ./darkroom resume, as ./darkroom pause ls says (docs/runbook.md, Paused). Workers "
        "that still take the messages of a paused lane are stopped by ./darkroom doctor --repair --yes.",
        look=_nothing_is_paused,
    ),
    Check(
        name="nothing-is-public",
        group=GROUP,
        question="nothing is public, and every caller is known",
        remedy="Deploy this checkout again, with Access=keys, jwt or iam.",
        look=_nothing_is_public,
        look_in_production=_callers_are_known,
        in_production="that Access is not anonymous and Environment not local",
    ),
    Check(
        name="nobody-lists",
        group=GROUP,
        question="no function may list a bucket, and each knows a missing object from a forbidden one",
        remedy="Remove what was added to the role, or give it back its statement Tell… or Find… of the template.",
        look=_nobody_lists,
        decisions=["0028-roles-and-encryption"],
    ),
    Check(
        name="everything-is-encrypted",
        group=GROUP,
        question="objects, rows, alarms and logs are encrypted by the key that was asked for",
        remedy="Deploy this checkout again; docs/runbook.md, The key.",
        look=_everything_is_encrypted,
        decisions=["0028-roles-and-encryption"],
    ),
    Check(
        name="data-is-kept",
        group=GROUP,
        question="what clients gave is protected: against deletion, with recovery, with versions",
        remedy="Deploy this checkout again.",
        look=_data_is_kept,
        decisions=["0021-deletion-and-retention"],
    ),
    Check(
        name="logs-end",
        group=GROUP,
        question="logs forget",
        remedy="Deploy this checkout again: RetentionInDays of the log group.",
        look=_logs_end,
    ),
    Check(
        name="api-keys",
        group=GROUP,
        question="no API key is old or forgotten",
        remedy="./darkroom keys rotate ID, or revoke ID if nobody needs it.",
        look_in_production=_keys_are_used,
        in_production="that no API key is older than a year or was unused for 90 days",
    ),
    Check(
        name="quotas",
        group=GROUP,
        question="no quota of the account is near its limit",
        remedy="Ask for a higher one in Service Quotas.",
        look=_quotas_are_far,
    ),
    Check(
        name="settings",
        group=GROUP,
        question="the stack is what this checkout's template says",
        remedy=_DEPLOY,
        look=_as_this_checkout_says,
    ),
    Check(
        name="code",
        group=GROUP,
        question="the functions' code is this checkout's",
        remedy=f"{_DEPLOY} If this checkout is what was deployed, somebody has replaced the code since, and deploying "
        "again does not change it back: docs/runbook.md, Drift.",
        look=_code,
    ),
)
