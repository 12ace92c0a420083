"""What a deployment of this version deletes or replaces in a stack of the release before."""

from __future__ import annotations

from dataclasses import replace

import pytest

from checks.identities import changed, create_only, identities, read_changes, read_identities
from repository.report import ROOT

pytestmark = pytest.mark.promise("resource-identities")

RECORDED = (ROOT / "tests" / "unit" / "former_resources.txt").read_text()
BEFORE, ON_PURPOSE = read_identities(RECORDED), read_changes(RECORDED)
STATEFUL = (
    *("AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::SQS::Queue", "AWS::SNS::Topic", "AWS::KMS::Key"),
    *("AWS::SecretsManager::Secret", "AWS::Logs::LogGroup", "AWS::ApiGatewayV2::Api", "AWS::CloudTrail::Trail"),
    *("AWS::StepFunctions::StateMachine", "AWS::Lambda::EventSourceMapping"),
)
"""What would be lost, or not be found by its clients: rows, objects, messages, keys, lines, and places in a stream."""


def test_nothing_is_deleted_or_replaced_unawares() -> None:
    assert sorted(changed(BEFORE, identities())) == sorted(ON_PURPOSE), "name it in former_resources.txt, or keep it"


def test_nothing_that_holds_something_is_ever_among_it() -> None:
    assert {BEFORE[name].kind for name in ON_PURPOSE}.isdisjoint(STATEFUL)
    assert {identity.kind for identity in BEFORE.values()} >= set(STATEFUL)


def test_another_name_key_type_or_stack_is_another_resource() -> None:
    table = BEFORE["ImagesTable"]
    assert "KeySchema" in create_only(table.kind)
    for other in (
        replace(table, fixed="{}"),
        replace(table, kind="AWS::DynamoDB::GlobalTable"),
        replace(table, stack="ObservabilityStack"),
    ):
        assert changed({"ImagesTable": table}, {"ImagesTable": other}) == {"ImagesTable"}
    assert changed({"ImagesTable": table}, {}) == {"ImagesTable"}
    assert changed({"ImagesTable": table}, {"ImagesTable": table, "New": table}) == set()
