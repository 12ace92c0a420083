"""What each check of `darkroom doctor` says about a stack's facts: a table per group."""

from __future__ import annotations

from dataclasses import replace

import pytest

from darkroom_cli.doctor import alarms
from darkroom_cli.doctor.checks import Check, CheckStatus, Finding, judge
from darkroom_cli.doctor.facts import (
    ApiKeyFacts,
    Missing,
    ServiceQuota,
)
from darkroom_cli.doctor.template import UNKNOWN
from darkroom_cli.doctor.work import CHECKS
from tests.unit.cli.doctor.sound import (
    DAY_MS,
    NOW,
    SOUND,
    allowing,
    arn,
)
from tests.unit.cli.doctor.wrong import (
    BY_NAME,
    CHILD,
    COMPOSITE,
    ENCRYPTED_BY_OURS,
    ENOUGH,
    OF_LANES,
    WRONG,
    Case,
    Change,
    all_of,
    cases_of,
    change_of,
    changed,
    parameters,
    stated,
    with_alarm,
    with_role,
)


def test_nothing_is_wrong_with_a_sound_stack() -> None:
    for production in (False, True):
        results = [judge(check, SOUND, production=production) for check in CHECKS]
        assert {result.check.name: result.findings for result in results if result.findings} == {}
        assert CheckStatus.UNKNOWN not in {result.status for result in results}


@pytest.mark.guards(
    "doctor-composite-names-alarm",
    "doctor-disabled-alarm-actions",
    "doctor-foreign-alarm-topic",
    "doctor-lease-beside-p99",
    "doctor-non-consumers-only-send",
    "doctor-plain-http-for-anybody",
    "doctor-retention-beside-p99",
    "doctor-stream-retention",
    "doctor-visibility-with-window",
)
@pytest.mark.guards(
    "doctor-deleted-subscription",
    case="dead-letters-are-heard: CriticalAlarms b@example.com is not subscribed any more",
)
@pytest.mark.guards("doctor-unwatched-dead-letters", case="each-dead-letter-tells: UnpublishedEvents no alarm watches")
@pytest.mark.guards("doctor-unwatched-dead-letters", case="each-dead-letter-tells: UsageDeadLetters no alarm watches")
@pytest.mark.guards(
    "doctor-unreserved-concurrency",
    case="reserved-concurrency: account consumers may take 30, and a fifth is left for the API (29)",
)
@pytest.mark.parametrize(("check", "change", "subject", "words"), cases_of(WRONG))
def test_what_is_wrong_is_found_without_production(check: Check, change: Change, subject: str, words: str) -> None:
    findings = judge(check, change(SOUND), production=False).findings
    assert {finding.subject for finding in findings if words in finding.problem} == {subject}, findings


IN_PRODUCTION: dict[str, list[Case]] = {
    "messages-signed": [
        (change_of("secrets", "MessageKey", changed_at=NOW - 366 * DAY_MS), "366 days"),
    ],
    "dead-letters-are-heard": [
        (change_of("topics", "CriticalAlarms", subscriptions=()), "nobody"),
    ],
    "reserved-concurrency": [
        (change_of("functions", "TranscodeImageFunction", reserved=None), "no executions"),
    ],
    "nothing-is-public": [
        (parameters(Access="anonymous"), "anonymous"),
        (parameters(Environment="local"), "local"),
    ],
    "api-keys": [
        (
            changed(
                "api_keys", abc=ApiKeyFacts(tenant_id="acme", created_at=NOW - 366 * DAY_MS, last_used_on="2024-10-04")
            ),
            "366 days old",
        ),
        (
            changed("api_keys", abc=ApiKeyFacts(tenant_id="acme", created_at=NOW - 91 * DAY_MS, last_used_on=None)),
            "never used",
        ),
        (
            changed(
                "api_keys", abc=ApiKeyFacts(tenant_id="acme", created_at=NOW - 300 * DAY_MS, last_used_on="2024-07-01")
            ),
            "last used",
        ),
    ],
}


@pytest.mark.guards("doctor-production-checks")
@pytest.mark.parametrize(("check", "change", "subject", "words"), cases_of(IN_PRODUCTION))
def test_a_production_stack_is_asked_for_more(check: Check, change: Change, subject: str, words: str) -> None:
    assert judge(check, change(SOUND), production=False).findings == ()
    findings = judge(check, change(SOUND), production=True).findings
    assert {finding.subject for finding in findings if words in finding.problem} == {subject}, findings


RIGHT: dict[str, Change] = {
    "quotas: nothing is allowed and nothing used": changed(
        "quotas", **{"L-1": ServiceQuota(name="Some", service="s3", limit=0, used=0)}
    ),
    "queues-encrypted: the stack's own key, by its id": all_of(
        ENCRYPTED_BY_OURS, change_of("queues", "FastQueue", key="ours")
    ),
    "everything-is-encrypted: the stack's own key": ENCRYPTED_BY_OURS,
    "senders-only-send: who looks after dead letters": with_role(
        "SweepDueImagesFunctionRole", allowing("sqs:DeleteMessage", arn("sqs", "SlowDeadLetters"))
    ),
    "senders-only-send: the stack's own managed policies": with_role(
        "SubmitImageFunctionRole", managed=("shop-UseOfTheKey-1A2B", "shop-UseOfFormerKeys-3C4D")
    ),
    "dead-letters-are-heard: a composite alarm speaks": all_of(CHILD, changed("alarms", IncidentAlarm=COMPOSITE)),
    "dead-letters-are-heard: a composite alarm speaks for a child whose own actions are off": all_of(
        CHILD, with_alarm("DeadLettersAlarm", actions=(), is_acting=False), changed("alarms", IncidentAlarm=COMPOSITE)
    ),
    "dead-letters-are-heard: an alarm of another name on that metric": all_of(
        changed("alarms", ImagesGivenUpAlarm=None), changed("alarms", Other=SOUND.alarms["ImagesGivenUpAlarm"])
    ),
    "reconciled: a stack of three minutes has not swept": stated(sweeps={}, updated_at=NOW - 180000),
    "dead-letters-are-heard: the address is subscribed": parameters(AlarmEmail="on-call@example.com"),
    "alarms-are-heard: the deployer's own topic is told too": all_of(
        parameters(AlarmTopic=arn("sns", "of-the-company")),
        change_of(
            "alarms",
            "DeadLettersAlarm",
            actions=(*SOUND.alarms["DeadLettersAlarm"].actions, arn("sns", "of-the-company")),
        ),
    ),
    "reserved-concurrency: nothing is reserved": change_of("functions", "TranscodeImageFunction", reserved=None),
    "reserved-concurrency: what is left of the account is just enough": all_of(
        change_of("functions", "TranscodeImageFunction", reserved=None),
        stated(concurrency={"limit": 1000, "unreserved": ENOUGH}),
    ),
    "reserved-concurrency: the local stack has what this machine has": all_of(
        change_of("functions", "TranscodeImageFunction", reserved=None),
        stated(is_local=True, concurrency={"limit": 16, "unreserved": 16}),
    ),
    "reserved-concurrency: what has a reservation takes nothing of the rest": stated(
        concurrency={"limit": 1000, "unreserved": 10}
    ),
    "each-dead-letter-tells: a queue that an alarm of its own watches": all_of(
        with_alarm("DeadLettersAlarm", queues=frozenset(OF_LANES.split(","))),
        with_alarm("EventDeadLettersAlarm", queues=frozenset()),
        changed("alarms", Own=replace(SOUND.alarms["DeadLettersAlarm"], queues=frozenset({"UsageDeadLetters"}))),
    ),
    "nothing-is-public: an anonymous stack has open routes": all_of(
        parameters(Access="anonymous"), changed("routes", **{"POST /images": "NONE"})
    ),
    **dict.fromkeys(
        (
            f"{check}: nothing observes the stack"
            for check in ("each-dead-letter-tells", "growth-is-told", "lag-is-watched", "time-is-tracked")
        ),
        all_of(
            parameters(Observability="false"),
            changed("alarms", **dict.fromkeys(SOUND.alarms.keys() - alarms.OF_THE_CORE)),
        ),
    ),
    "code: the local stack knows what it deployed": stated(
        is_local=True, checkout=replace(SOUND.checkout, sources={"F": {"app.py": "1"}})
    ),
    "consumers-have-dead-letters: the queue of edits, which needs none": all_of(
        changed("queues", EditsQueue=replace(SOUND.queues["FastQueue"], dead_letters=None)),
        changed("event_sources", Edits=replace(SOUND.event_sources["FastLane"], source="EditsQueue")),
    ),
    "settings: a value that only CloudFormation knows": stated(
        checkout=replace(
            SOUND.checkout, resources={"FastQueue": {"VisibilityTimeout": UNKNOWN, "RedrivePolicy": UNKNOWN}}
        )
    ),
}


@pytest.mark.guards("doctor-new-stack-without-sweep", "doctor-unresolved-not-compared")
@pytest.mark.parametrize("case", RIGHT)
def test_what_is_right_is_not_reported(case: str) -> None:
    assert judge(BY_NAME[case.partition(":")[0]], RIGHT[case](SOUND), production=False).findings == ()


# ── What could not be read, and what is not asked ────────────────────────────────────────────────────────────────────


def test_a_check_whose_facts_are_missing_is_unknown_and_says_why() -> None:
    facts = replace(SOUND, quotas=Missing("AWS refuses ListServiceQuotas (AccessDenied)"))
    result = judge(BY_NAME["quotas"], facts, production=False)
    assert (result.status, result.reason) == (CheckStatus.UNKNOWN, "AWS refuses ListServiceQuotas (AccessDenied)")
    assert judge(BY_NAME["served-first"], facts, production=False).status is CheckStatus.SOUND


@pytest.mark.guards("doctor-partial-findings-count")
def test_what_was_found_counts_although_the_rest_is_missing() -> None:
    facts = change_of("queues", "FastQueue", policy=())(replace(SOUND, topics=Missing("AWS refuses")))
    result = judge(BY_NAME["tls-only"], facts, production=False)
    assert (result.status, [finding.subject for finding in result.findings]) == (CheckStatus.WRONG, ["FastQueue"])
    assert result.reason == "AWS refuses"


def test_a_check_for_production_stacks_is_not_asked_of_others() -> None:
    assert judge(BY_NAME["api-keys"], SOUND, production=False).status is CheckStatus.NOT_ASKED
    assert judge(BY_NAME["api-keys"], SOUND, production=True).status is CheckStatus.SOUND


def test_a_check_without_a_look_is_answered_by_its_decisions() -> None:
    decided = Check(name="x", group="g", question="q", decisions=["0001-the-forms-that-last"])
    assert judge(decided, SOUND, production=True).status is CheckStatus.DECIDED


def test_a_finding_that_two_looks_make_is_reported_once() -> None:
    finding = Finding(subject="a", problem="b")
    twice = Check(name="x", group="g", question="q", look=lambda _: [finding], look_in_production=lambda _: [finding])
    assert judge(twice, SOUND, production=True).findings == (finding,)


@pytest.mark.guards("doctor-alarm-of-absent-part")
def test_a_stack_without_a_part_needs_none_of_its_alarms() -> None:
    def gone(**parameters: str) -> list[str]:
        facts = changed("alarms", EventsStuckAlarm=None)(changed("parameters", **parameters)(SOUND))
        return [
            finding.subject for finding in alarms.unheard(facts, alarms.LAG) if finding.subject == "EventsStuckAlarm"
        ]

    assert gone() == ["EventsStuckAlarm"]
    assert gone(Webhooks="false") == []


def test_a_stack_without_bulk_needs_nobody_who_takes_from_its_lane() -> None:
    (name,) = [name for name, source in SOUND.event_sources.items() if source.source == "BulkQueue"]

    def unserved(**parameters: str) -> list[str]:
        facts = changed("event_sources", **{name: None})(changed("parameters", **parameters)(SOUND))
        return [finding.subject for check in CHECKS for finding in judge(check, facts, production=False).findings]

    assert "BulkQueue" in unserved(Bulk="true")
    assert "BulkQueue" not in unserved(Bulk="false")
