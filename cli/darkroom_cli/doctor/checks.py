"""One question of `doctor` about a stack, and what came of it: values, which the command prints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, field
from enum import StrEnum

from darkroom_cli.doctor.drift import drifts, is_written_alike
from darkroom_cli.doctor.facts import CouldNotBeRead, Facts


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that is wrong: what it is about, why, and facts about it by their names. `about` is the resource's
    logical id where the subject is something of it, and `setting` the one that is wrong if it is one that is compared.
    What no template decides is not `by_template`."""

    subject: str
    problem: str
    facts: dict[str, str | None] = field(default_factory=dict)
    about: str = ""
    setting: str = ""
    by_template: bool = True

    @property
    def resource(self) -> str:
        """The logical id of the resource that it is about, if it is about one."""
        return self.about or self.subject


class CheckStatus(StrEnum):
    """What came of a check."""

    SOUND = "sound"
    WRONG = "wrong"
    DECIDED = "decided"
    NOT_ASKED = "not asked"
    UNKNOWN = "unknown"


type CheckLook = Callable[[Facts], Iterable[Finding]]


@dataclass(frozen=True, kw_only=True)
class Check:
    """A question about a stack. `look` finds what is wrong, and `remedy` says what to do then, unless it was changed by
    hand (`advice`). `look_in_production`
    finds what is wrong with a production stack besides, and `in_production` says what that is. `decisions` are pages of
    docs/decisions/ that answer the question together with the looks; without any look, they answer it alone."""

    name: str
    group: str
    question: str
    remedy: str = ""
    look: CheckLook | None = None
    look_in_production: CheckLook | None = None
    in_production: str = ""
    decisions: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """What came of a check: its findings if it is wrong and what to do about them, and the reason if it is unknown."""

    check: Check
    status: CheckStatus
    findings: tuple[Finding, ...] = ()
    reason: str | None = None
    advice: tuple[str, ...] = ()


def judge(check: Check, facts: Facts, *, production: bool) -> CheckResult:
    """What a check says about a stack. What was found counts even if the rest could not be read."""
    if check.look is None and check.look_in_production is None:
        return CheckResult(check=check, status=CheckStatus.DECIDED)
    looks = [check.look, check.look_in_production if production else None]  # guard: doctor-production-checks
    if not any(looks):
        return CheckResult(check=check, status=CheckStatus.NOT_ASKED)
    findings: list[Finding] = []
    reason = None
    for look in filter(None, looks):
        try:
            for finding in look(facts):
                if finding not in findings:
                    findings.append(finding)
        except CouldNotBeRead as error:  # guard: isolated-doctor-check
            reason = str(error)
    return result_of(check, findings, reason, advice(check, findings, facts))


REPAIR = (
    "It was changed by hand since it was deployed, and deploying again does not change it back: "
    "./darkroom doctor --repair says what it would set back, and with --yes does it."
)
REVERT = (
    "It was changed by hand since it was deployed, and deploying again does not change it back: "
    "docs/runbook.md, Drift, has the change set that does."
)


def advice(check: Check, findings: Sequence[Finding], facts: Facts) -> tuple[str, ...]:
    """What mends the findings. A deployment changes only what its template has and the latest one's has not."""
    if not findings:
        return ()
    try:
        drifted = {(drift.resource, setting) for drift in drifts(facts) for setting in ("", drift.setting)}
        return tuple(dict.fromkeys(_mends(check, finding, facts, drifted) for finding in findings))
    except CouldNotBeRead:
        return (check.remedy,)


def _mends(check: Check, finding: Finding, facts: Facts, drifted: Set[tuple[str, str]]) -> str:
    name = finding.resource
    if (name, finding.setting) in drifted:  # guard: drift-manual-change-repaired
        return REPAIR
    may_be = finding.by_template and not finding.setting and name in facts.deployed
    is_by_hand = may_be and is_written_alike(facts, name)  # guard: drift-checkout-change-deployed
    return REVERT if is_by_hand else check.remedy  # guard: drift-manual-change-reverted


def result_of(
    check: Check, findings: Sequence[Finding], reason: str | None = None, advised: tuple[str, ...] = ()
) -> CheckResult:
    """The result of a check that was made."""
    if findings:  # guard: doctor-partial-findings-count
        advised = advised or (check.remedy,)
        return CheckResult(
            check=check, status=CheckStatus.WRONG, findings=tuple(findings), reason=reason, advice=advised
        )
    if reason is not None:
        return CheckResult(check=check, status=CheckStatus.UNKNOWN, reason=reason)
    return CheckResult(check=check, status=CheckStatus.SOUND)
