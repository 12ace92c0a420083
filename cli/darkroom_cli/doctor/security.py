"""Security: who may send and receive, TLS, encryption and signatures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from darkroom_cli.doctor.checks import Check, Finding
from darkroom_cli.doctor.drift import is_hidden
from darkroom_cli.doctor.facts import Facts, FunctionFacts, Role
from darkroom_cli.doctor.policies import (
    actions_on,
    allowed,
    covers,
    is_for_anybody,
    refuses_plain_http,
    services,
)
from darkroom_cli.doctor.template import UNKNOWN

GROUP = "Security"

DAY_MS = 24 * 60 * 60 * 1000
YEAR_MS = 365 * DAY_MS

SENDING = frozenset({"sqs:SendMessage", "sqs:GetQueueAttributes", "sqs:GetQueueUrl"})
"""What a sender may do with a queue. It sees how full the queue is, and receives nothing."""

KEEPERS = frozenset({"SweepDueImagesFunction", "ArchiveDeadLettersFunction"})
"""The functions that look after dead letters, besides sending them."""

OWN_MANAGED_POLICIES = ("UseOfTheKey", "UseOfFormerKeys")
"""The stack's managed policies: what each role needs to use the stack's own key, and those that it had before."""


def worker_roles(facts: Facts) -> frozenset[str]:
    """The ARNs of the roles of functions that take messages from a queue."""
    return frozenset(function.role for _, _, _, function in facts.consumers())


def role_of(facts: Facts, function: FunctionFacts) -> tuple[str, Role] | None:
    """A function's role and its logical id, if it is of this stack."""
    return next(((name, role) for name, role in facts.roles.items() if role.arn == function.role), None)


def _senders_only_send(facts: Facts) -> Iterator[Finding]:
    dead_letters = facts.dead_letter_queues
    keepers = {function.role for name, function in facts.functions.items() if name in KEEPERS}
    for name, queue in facts.queues.items():
        for statement in queue.policy:
            if not statement.is_allowed:
                continue
            if is_for_anybody(statement) or not services(statement):
                problem = f"its policy lets {_principals(statement.principals)} in"
                yield Finding(subject=name, problem=problem)
            elif not statement.condition:
                problem = (
                    f"its policy lets {_principals(statement.principals)} in for whoever asks: it has no condition"
                )
                yield Finding(subject=name, problem=problem)
            if more := sorted(action for action in statement.actions if action not in SENDING):
                yield Finding(subject=name, problem=f"its policy allows more than to send: {', '.join(more)}")
        consumers = {function.role for _, source, _, function in facts.consumers() if source.source == name}
        for role_name, role in facts.roles.items():
            # guard: doctor-non-consumers-only-send
            if role.arn in consumers or (name in dead_letters and role.arn in keepers):
                continue
            if more := sorted(actions_on(role.statements, queue.arn, "sqs") - SENDING):
                yield Finding(subject=role_name, problem=f"it may do more than send to {name}: {', '.join(more)}")
    workers = worker_roles(facts)
    for name, role in facts.roles.items():
        if role.arn not in workers:
            yield from _managed(name, role)


def _principals(principals: Any) -> str:
    match principals:
        case str():
            return "everybody" if principals == "*" else principals
        case Mapping():
            return ", ".join(str(principal) for principal in principals.values())
        case _:
            return str(principals)


def _managed(name: str, role: Role) -> Iterator[Finding]:
    for policy in role.managed:
        if not any(own in policy for own in OWN_MANAGED_POLICIES):
            yield Finding(subject=name, problem=f"the managed policy {policy} is attached to it")


def _workers_only_receive(facts: Facts) -> Iterator[Finding]:
    workers = worker_roles(facts)
    for name, role in facts.roles.items():
        if role.arn in workers:
            yield from _managed(name, role)
            yield from excessive(facts, name, role)


def excessive(facts: Facts, name: str, role: Role) -> Iterator[Finding]:
    """What a role may do and this checkout's template does not let it do, and who else may use it."""
    written = granted_by_template(facts, name)
    for action, resource in sorted(allowed(role.statements)):
        if not any(action == allowed and (on is UNKNOWN or on == resource) for allowed, on in written):
            yield Finding(subject=name, problem=f"it may {action} on {resource}, which the template does not say")
    for statement in role.trusted:
        if statement.is_allowed and (is_for_anybody(statement) or not services(statement)):
            yield Finding(subject=name, problem=f"{_principals(statement.principals)} may act as this role")


def granted_by_template(facts: Facts, role: str) -> list[tuple[str, Any]]:
    """The actions and the resources of a role's statements in this checkout's template."""
    return [
        (action, resource)
        for policy in facts.checkout.resources.get(role, {}).get("Policies", [])
        for statement in policy["PolicyDocument"]["Statement"]
        for action in _list(statement["Action"])
        for resource in _list(statement["Resource"])
    ]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _tls_only(facts: Facts) -> Iterator[Finding]:
    problem = "its policy does not refuse what comes without TLS"
    for name, queue in facts.queues.items():
        if not refuses_plain_http(queue.policy, "sqs:*"):
            yield Finding(subject=name, problem=problem)
    for name, topic in facts.topics.items():
        if not refuses_plain_http(topic.policy, "sns:Publish"):
            yield Finding(subject=name, problem=problem)
    for name, bucket in facts.buckets.items():
        if not refuses_plain_http(bucket.policy, "s3:*"):
            yield Finding(subject=name, problem=problem)


def _queues_encrypted(facts: Facts) -> Iterator[Finding]:
    ours = {key.arn for key in facts.keys.values()} if facts.parameters.get("Encryption") == "customer" else set()
    for name, queue in facts.queues.items():
        if not queue.is_encrypted and queue.key is None:
            yield Finding(subject=name, problem="nothing encrypts it")
        elif ours and not is_one_of(queue.key, ours):
            yield Finding(subject=name, problem="another key than the stack's own encrypts it")


def is_one_of(key: str | None, arns: set[str]) -> bool:
    """Whether a key, named by its ARN or its id, is one of these."""
    return key is not None and any(key in (arn, arn.rpartition("/")[2]) for arn in arns)


def _signed(facts: Facts) -> Iterator[Finding]:
    secret = facts.secrets.get("MessageKey")
    if secret is None:
        yield Finding(subject="MessageKey", problem="the stack has no such secret")
        return
    if secret.is_being_deleted:
        yield Finding(subject="MessageKey", problem="it is being deleted", by_template=False)
    consumers = {source.function for _, source, _, _ in facts.consumers()}
    for name, function in facts.functions.items():
        expected = facts.checkout.resources.get(name, {}).get("Environment", {}).get("Variables", {})
        if "MESSAGE_KEY" not in expected and name not in consumers:
            continue
        given = function.variables.get("MESSAGE_KEY")
        if given != secret.arn:
            other = "something else" if is_hidden(secret.arn, given or "") else given
            problem = "it has no key for messages" if not given else f"its key for messages is not the stack's: {other}"
            yield Finding(subject=name, problem=problem)
        elif (role := role_of(facts, function)) is not None and not any(
            covers(action, "secretsmanager:GetSecretValue")
            for action in actions_on(role[1].statements, secret.arn, "secretsmanager")
        ):
            yield Finding(subject=name, problem="its role may not read the key for messages")


def _key_is_young(facts: Facts) -> Iterator[Finding]:
    secret = facts.secrets.get("MessageKey")
    if secret is not None and facts.now - secret.changed_at > YEAR_MS:
        days = (facts.now - secret.changed_at) // DAY_MS
        yield Finding(subject="MessageKey", problem=f"it was last replaced {days} days ago", by_template=False)


CHECKS = (
    Check(
        name="senders-only-send",
        group=GROUP,
        question="senders may only send, on each queue",
        remedy="Remove the statement, or deploy this checkout again: the template writes out every role and policy.",
        look=_senders_only_send,
        decisions=["0028-roles-and-encryption"],
    ),
    Check(
        name="workers-only-receive",
        group=GROUP,
        question="workers may only receive, and send to nothing but what their work needs",
        remedy="Remove what was added to the role; if it is needed, add it to the template and deploy.",
        look=_workers_only_receive,
        decisions=["0028-roles-and-encryption"],
    ),
    Check(
        name="tls-only",
        group=GROUP,
        question="everything travels by TLS, and what comes without is refused",
        remedy="Deploy this checkout again: its policies have a statement RefusePlainHttp each.",
        look=_tls_only,
        decisions=["0028-roles-and-encryption"],
    ),
    Check(
        name="queues-encrypted",
        group=GROUP,
        question="queues are encrypted at rest",
        remedy="Deploy this checkout again: SqsManagedSseEnabled, or with Encryption=customer the stack's own key.",
        look=_queues_encrypted,
        decisions=["0028-roles-and-encryption"],
    ),
    Check(
        name="no-payloads",
        group=GROUP,
        question=(
            "sensitive payloads are encrypted by the application, or there are none in messages (a reference only)"
        ),
        decisions=["0001-the-forms-that-last"],
    ),
    Check(
        name="messages-signed",
        group=GROUP,
        question="messages are signed, and a replayed one does nothing",
        remedy="Deploy this checkout again; docs/runbook.md, The messages' key, says how the key is replaced.",
        look=_signed,
        look_in_production=_key_is_young,
        in_production="that the messages' key is younger than a year",
        decisions=["0029-signed-messages"],
    ),
)
