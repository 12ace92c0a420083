"""The pipeline that can be copied: its deployer may make every resource of the templates, and no more than those."""

from __future__ import annotations

import json
import re
from fnmatch import fnmatchcase
from typing import Any

import pytest
import yaml

from repository.expand_template import expanded_template, without_loops
from repository.report import ROOT

PIPELINE = ROOT / "docs" / "pipeline"
POLICIES = {path.name: json.loads(path.read_text()) for path in sorted(PIPELINE.glob("deployer*.json"))}
WORKFLOW = yaml.safe_load((PIPELINE / "github.yaml").read_text())

MOST_CHARACTERS = 6144
"""Of a managed policy, without blanks (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html)."""

PLACEHOLDERS = {"STACK": "x" * 40, "REGION": "ap-southeast-1", "ACCOUNT": "1" * 12}

MAKES_AND_REMOVES = {
    "AWS::ApiGatewayV2::Api": "apigateway:POST apigateway:DELETE",
    "AWS::ApiGatewayV2::ApiMapping": "apigateway:POST apigateway:DELETE",
    "AWS::ApiGatewayV2::DomainName": "apigateway:POST apigateway:DELETE",
    "AWS::ApiGatewayV2::Stage": "apigateway:PATCH logs:CreateLogDelivery logs:DeleteLogDelivery logs:PutResourcePolicy",
    "AWS::CloudFormation::Stack": "cloudformation:CreateStack cloudformation:UpdateStack cloudformation:DeleteStack "
    "cloudformation:DescribeStacks",
    "AWS::CloudFront::Distribution": "cloudfront:CreateDistribution cloudfront:DeleteDistribution",
    "AWS::CloudTrail::Trail": "cloudtrail:CreateTrail cloudtrail:PutEventSelectors cloudtrail:DeleteTrail",
    "AWS::CloudWatch::Alarm": "cloudwatch:PutMetricAlarm cloudwatch:DeleteAlarms",
    "AWS::CloudWatch::CompositeAlarm": "cloudwatch:PutCompositeAlarm cloudwatch:DeleteAlarms",
    "AWS::CloudWatch::Dashboard": "cloudwatch:PutDashboard cloudwatch:DeleteDashboards",
    "AWS::DynamoDB::Table": "dynamodb:CreateTable dynamodb:UpdateTimeToLive dynamodb:UpdateContinuousBackups "
    "dynamodb:DescribeTable dynamodb:DeleteTable",
    "AWS::Events::Rule": "events:PutRule events:PutTargets events:RemoveTargets events:DeleteRule",
    "AWS::IAM::ManagedPolicy": "iam:CreatePolicy iam:CreatePolicyVersion iam:DeletePolicyVersion iam:DeletePolicy",
    "AWS::IAM::Role": "iam:CreateRole iam:GetRole iam:PutRolePolicy iam:AttachRolePolicy iam:DetachRolePolicy "
    "iam:PutRolePermissionsBoundary iam:DeleteRolePolicy iam:DeleteRole iam:PassRole",
    "AWS::KMS::Key": "kms:CreateKey kms:PutKeyPolicy kms:EnableKeyRotation kms:ScheduleKeyDeletion",
    "AWS::Lambda::EventInvokeConfig": "lambda:PutFunctionEventInvokeConfig lambda:DeleteFunctionEventInvokeConfig",
    "AWS::Lambda::EventSourceMapping": "lambda:CreateEventSourceMapping lambda:UpdateEventSourceMapping "
    "lambda:GetEventSourceMapping lambda:DeleteEventSourceMapping",
    "AWS::Lambda::Alias": "lambda:CreateAlias lambda:UpdateAlias lambda:DeleteAlias",
    "AWS::Lambda::Function": "lambda:CreateFunction lambda:UpdateFunctionCode lambda:UpdateFunctionConfiguration "
    "lambda:PutFunctionConcurrency lambda:GetFunction lambda:DeleteFunction",
    "AWS::Lambda::LayerVersion": "lambda:PublishLayerVersion lambda:GetLayerVersion lambda:DeleteLayerVersion",
    "AWS::Lambda::Permission": "lambda:AddPermission lambda:GetPolicy lambda:RemovePermission",
    "AWS::Lambda::Version": "lambda:PublishVersion lambda:DeleteFunction",
    "AWS::Logs::LogGroup": "logs:CreateLogGroup logs:PutRetentionPolicy logs:AssociateKmsKey logs:DeleteLogGroup",
    "AWS::Logs::MetricFilter": "logs:PutMetricFilter logs:DeleteMetricFilter",
    "AWS::Logs::QueryDefinition": "logs:PutQueryDefinition logs:DeleteQueryDefinition",
    "AWS::Route53::RecordSet": "route53:ChangeResourceRecordSets route53:GetChange",
    "AWS::S3::Bucket": "s3:CreateBucket s3:PutLifecycleConfiguration s3:PutBucketCORS s3:PutEncryptionConfiguration "
    "s3:PutBucketVersioning s3:PutBucketPublicAccessBlock s3:PutBucketNotification s3:DeleteBucket",
    "AWS::S3::BucketPolicy": "s3:PutBucketPolicy s3:GetBucketPolicy s3:DeleteBucketPolicy",
    "AWS::SNS::Subscription": "sns:Subscribe sns:SetSubscriptionAttributes sns:Unsubscribe",
    "AWS::SNS::Topic": "sns:CreateTopic sns:SetTopicAttributes sns:DeleteTopic",
    "AWS::SNS::TopicPolicy": "sns:SetTopicAttributes",
    "AWS::SQS::Queue": "sqs:CreateQueue sqs:SetQueueAttributes sqs:GetQueueAttributes sqs:DeleteQueue",
    "AWS::SQS::QueuePolicy": "sqs:SetQueueAttributes",
    "AWS::SecretsManager::Secret": "secretsmanager:CreateSecret secretsmanager:GetRandomPassword "
    "secretsmanager:DeleteSecret",
    "AWS::StepFunctions::StateMachine": "states:CreateStateMachine states:UpdateStateMachine "
    "states:DescribeStateMachine states:DeleteStateMachine",
    "AWS::WAFv2::WebACL": "wafv2:CreateWebACL wafv2:UpdateWebACL wafv2:GetWebACL wafv2:DeleteWebACL",
}
"""Per type, what CloudFormation calls in the deployer's name to make, change and remove it, the least of it."""


def statements() -> list[dict[str, Any]]:
    return [statement for policy in POLICIES.values() for statement in policy["Statement"]]


def is_allowed(action: str) -> bool:
    return any(fnmatchcase(action, allowed) for statement in statements() for allowed in statement["Action"])


def test_the_table_has_every_type_of_the_templates() -> None:
    templates = [
        expanded_template(),
        expanded_template(snap_start="PublishedVersions"),
        without_loops(ROOT / "edge.yaml"),
    ]
    types = {resource["Type"] for template in templates for resource in template["Resources"].values()}
    assert MAKES_AND_REMOVES.keys() == types


@pytest.mark.parametrize("kind", MAKES_AND_REMOVES)
def test_the_deployer_may_make_and_remove_every_type_of_the_templates(kind: str) -> None:
    assert [action for action in MAKES_AND_REMOVES[kind].split() if not is_allowed(action)] == []


def test_the_deployer_may_do_nothing_to_a_service_that_the_templates_do_not_use() -> None:
    used = {action.partition(":")[0] for actions in MAKES_AND_REMOVES.values() for action in actions.split()}
    allowed = {action.partition(":")[0] for statement in statements() for action in statement["Action"]}
    assert allowed == used
    for action in ("s3:DeleteObjectVersion", "dynamodb:PutItem", "sqs:SendMessage", "lambda:InvokeFunction"):
        assert not is_allowed(action), "it deploys, and touches no data"
    deleting = [statement for statement in statements() if "cloudformation:DeleteStack" in statement["Action"]]
    assert [statement["Sid"] for statement in deleting] == ["StacksInTheStack"], "not the stack itself"
    assert not is_allowed("secretsmanager:GetSecretValue")


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_of_the_deployer_fits_into_a_managed_one_whatever_the_stack_is_called(name: str) -> None:
    text = json.dumps(POLICIES[name], separators=(",", ":"))
    for placeholder, longest in PLACEHOLDERS.items():
        text = re.sub(rf"\b{placeholder}\b", longest, text)
    assert len(text) <= MOST_CHARACTERS


def test_the_workflow_has_no_stored_key_and_runs_no_action_that_can_change() -> None:
    assert WORKFLOW["permissions"] == {"id-token": "write", "contents": "read"}
    steps = [step for job in WORKFLOW["jobs"].values() for step in job["steps"]]
    for step in steps:
        if "uses" in step:
            assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", step["uses"])
    assert "secrets." not in (PIPELINE / "github.yaml").read_text()


def test_the_workflow_asks_nobody_and_protects_prod_and_looks_every_week() -> None:
    typed = [step["run"] for job in WORKFLOW["jobs"].values() for step in job["steps"] if "run" in step]
    (deploy,) = [line for line in typed if "sam deploy" in line]
    assert deploy.endswith(" --no-confirm-changeset")
    assert any("--enable-termination-protection" in line for line in typed)
    assert typed[-1] == "./darkroom doctor --stack darkroom-prod --production"
    # `on` is a truth value in YAML 1.1.
    assert WORKFLOW[True]["schedule"] and WORKFLOW["jobs"]["doctor"]["if"] == "github.event_name == 'schedule'"
