"""What was changed by hand is told apart from what a deployment would change, and each gets what really mends it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from darkroom.ports.kernel import UnreadableRow
from darkroom_cli.doctor.checks import REPAIR, REVERT, Check, CheckStatus, Finding, advice, judge
from darkroom_cli.doctor.drift import SETTINGS, SWITCHES, drifts, is_written_alike
from darkroom_cli.doctor.facts import Missing
from darkroom_cli.doctor.repair import WRITES
from darkroom_cli.doctor.template import UNKNOWN
from tests.unit.cli.doctor.sound import KEY, SOUND, deployed
from tests.unit.cli.doctor.wrong import BY_NAME, PAUSED, WRONG, Change, cases_of, change_of


@pytest.mark.guards("drift-manual-change-reverted")
@pytest.mark.parametrize(("check", "change", "_subject", "_words"), cases_of(WRONG))
def test_what_was_changed_by_hand_is_never_answered_by_deploying_again(
    check: Check, change: Change, _subject: str, _words: str
) -> None:
    if change(SOUND).checkout != SOUND.checkout or change(SOUND).types != SOUND.types:
        return  # what this checkout says was changed, and nothing by hand
    facts = deployed(change(SOUND))
    for finding in judge(check, facts, production=False).findings:
        if finding.by_template and finding.resource in facts.deployed:
            assert set(advice(check, [finding], facts)) <= {REPAIR, REVERT}, finding


CHANGED = change_of(
    "functions", "CountUsageFunction", variables={"MESSAGE_KEY": KEY, "COUNTED_EVENTS_TABLE": "another"}
)
RESERVED = SOUND.functions["CountUsageFunction"].reserved
FUNCTION = {"Timeout": 60, "Environment": {"Variables": {"MESSAGE_KEY": KEY, "COUNTED_EVENTS_TABLE": "counted"}}}


@pytest.mark.guards("drift-manual-change-repaired")
def test_a_variable_that_was_changed_by_hand_is_set_back_by_a_command() -> None:
    facts = deployed(CHANGED(SOUND), CountUsageFunction={**FUNCTION, "ReservedConcurrentExecutions": RESERVED})
    (drift,) = [each for each in drifts(facts) if each.resource == "CountUsageFunction"]
    assert drift.words("it was deployed as") == (
        "its variable COUNTED_EVENTS_TABLE is another, and it was deployed as counted"
    )
    for name in ("consumers-are-idempotent", "settings"):
        findings = [
            finding
            for finding in judge(BY_NAME[name], facts, production=False).findings
            if "another" in finding.problem
        ]
        assert advice(BY_NAME[name], findings, facts) == (REPAIR,)


def test_what_only_this_checkout_says_is_deployed_and_what_was_changed_beside_it_is_set_back() -> None:
    facts = deployed(CHANGED(SOUND), CountUsageFunction={**FUNCTION, "ReservedConcurrentExecutions": RESERVED})
    newer = {**facts.checkout.resources, "UsageQueue": {"VisibilityTimeout": 720}}
    facts = replace(facts, checkout=replace(facts.checkout, resources=newer))
    check = BY_NAME["settings"]
    findings = [
        finding
        for finding in judge(check, facts, production=False).findings
        if finding.subject.startswith(("Co", "Us"))
    ]
    assert set(advice(check, findings, facts)) == {REPAIR, check.remedy}


def test_without_the_deployed_template_nobody_can_tell_and_the_checks_own_advice_stands() -> None:
    facts = replace(CHANGED(SOUND), deployed=Missing("AWS refuses GetTemplate (AccessDenied)"))
    check = BY_NAME["consumers-are-idempotent"]
    result = judge(check, facts, production=False)
    assert (result.advice, len(result.findings)) == ((check.remedy,), 1)


@pytest.mark.parametrize(
    ("written", "deployed_as", "alike"),
    [
        ({"A": 1}, {"A": "1"}, True),
        ({"A": 1}, {"A": 2}, False),
        ({"A": {"B": [1, UNKNOWN]}}, {"A": {"B": [1, "x"]}}, True),
        ({"A": {"B": [1]}}, {"A": {"B": [1, 2]}}, False),
        ({"A": 1, "Code": "here"}, {"A": 1, "Code": {"S3Key": "there"}}, True),
        ({"A": 1, "B": 2}, {"A": 1}, False),
    ],
)
def test_two_templates_say_the_same_of_a_resource(
    written: dict[str, Any], deployed_as: dict[str, Any], alike: bool
) -> None:
    facts = deployed(SOUND, FastQueue=written)
    facts = replace(facts, deployed={**facts.deployed, "FastQueue": deployed_as})
    assert is_written_alike(facts, "FastQueue") is alike
    assert is_written_alike(facts, "SlowQueue")


@pytest.mark.guards("drift-checkout-change-deployed")
def test_a_policy_that_this_checkout_changes_is_deployed() -> None:
    facts = deployed(SOUND, FastQueuePolicy={"PolicyDocument": {"Statement": ["new"]}})
    types = {**facts.types, "FastQueuePolicy": "AWS::SQS::QueuePolicy"}
    was = {**facts.deployed, "FastQueuePolicy": {"PolicyDocument": {"Statement": ["old"]}}}
    facts = replace(facts, deployed=was, checkout=replace(facts.checkout, types=types))
    check = BY_NAME["tls-only"]
    assert advice(check, [Finding(subject="FastQueue", problem="plain http")], facts) == (check.remedy,)


@pytest.mark.guards("drift-secret-not-shown")
def test_what_somebody_put_into_a_variable_is_not_shown_where_it_may_be_a_secret() -> None:
    hand = change_of("functions", "CountUsageFunction", variables={"MESSAGE_KEY": "s3cret", "NEW": "s3cret"})(SOUND)
    facts = deployed(hand, CountUsageFunction=FUNCTION)
    shown = [drift.words("it was deployed as") for drift in drifts(facts) if drift.resource == "CountUsageFunction"]
    problems = [
        finding.problem for check in BY_NAME.values() for finding in judge(check, facts, production=True).findings
    ]
    assert any("NEW is something else" in text for text in shown) and any("MESSAGE_KEY" in text for text in problems)
    assert not any("s3cret" in text for text in (*shown, *problems))


@pytest.mark.guards("doctor-paused-lane-served")
@pytest.mark.guards("drift-paused-lane-stays-off", case="paused and off")
@pytest.mark.guards("drift-unreadable-pause-left", case="a pause of a newer version, on")
@pytest.mark.parametrize(
    ("pauses", "is_enabled", "drifted", "is_served"),
    [
        pytest.param({}, True, [], True, id="not paused"),
        pytest.param({}, False, [(True, "it was deployed as True")], False, id="switched off by hand"),
        pytest.param(PAUSED(SOUND).pauses, False, [], True, id="paused and off"),
        pytest.param(
            PAUSED(SOUND).pauses, True, [(False, "while its lane is paused it should be False")], True, id="still on"
        ),
        *(
            pytest.param(
                {"lane#fast": UnreadableRow("lane#fast", "newer")},
                is_on,
                [],
                True,
                id=f"a pause of a newer version{on}",
            )
            for is_on, on in ((False, ""), (True, ", on"))
        ),
        pytest.param(
            {"tenant#fast": None}, False, [(True, "it was deployed as True")], False, id="a tenant of its name"
        ),
    ],
)
def test_a_paused_lane_is_to_be_off_and_that_is_no_drift(
    pauses: dict[str, Any], is_enabled: bool, drifted: list[tuple[bool, str]], is_served: bool
) -> None:
    facts = replace(change_of("event_sources", "FastLane", is_enabled=is_enabled)(SOUND), pauses=pauses)
    found = [each for each in drifts(deployed(facts)) if each.setting == "Enabled"]
    assert [(each.expected, each.words("it was deployed as").partition(", and ")[2]) for each in found] == drifted
    assert (not judge(BY_NAME["served-first"], facts, production=False).findings) is is_served


def test_without_the_pauses_nobody_can_tell_whether_a_lane_is_to_be_off() -> None:
    facts = replace(change_of("event_sources", "FastLane", is_enabled=False)(SOUND), pauses=Missing("no answer"))
    assert [each for each in drifts(deployed(facts)) if each.setting == "Enabled"] == []
    assert judge(BY_NAME["nothing-is-paused"], facts, production=False).status is CheckStatus.UNKNOWN


def test_each_kind_of_resource_that_is_compared_can_be_set_back() -> None:
    assert WRITES.keys() == SETTINGS.keys() | SWITCHES.keys()
