"""The emulator says what AWS says about an account's quotas, and its tables, topics and subscriptions."""

from typing import Any
from uuid import uuid4

import pytest

from local_aws.tests.emulator_server import EmulatorServer, physical_ids, stack, update_stack
from local_aws.tests.queues import topic
from local_aws.tests.streams import BY_PK

pytest_plugins = ("local_aws.tests.emulator_fixtures",)

# service_quotas

CONCURRENCY = {"ServiceCode": "lambda", "QuotaCode": "L-B99A9384"}


def test_gap_stock_has_no_service_quotas(stock: EmulatorServer) -> None:
    client = stock.client("service-quotas")
    with pytest.raises(client.exceptions.ClientError) as refused:
        client.get_service_quota(**CONCURRENCY)
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400


def test_quotas_are_awss_defaults_and_say_that_they_are_a_stub(emulator: EmulatorServer) -> None:
    client = emulator.client("service-quotas")
    quota = client.get_service_quota(**CONCURRENCY)["Quota"]
    assert (quota["QuotaName"], quota["Value"]) == ("Concurrent executions", 1000)
    assert quota["UsageMetric"]["MetricName"] == "ConcurrentExecutions"
    assert "stub" in quota["Description"]
    assert quota in client.list_service_quotas(ServiceCode="lambda")["Quotas"]
    assert client.list_service_quotas(ServiceCode="sqs")["Quotas"] == []


def test_an_unknown_quota_or_service_is_none(emulator: EmulatorServer) -> None:
    client = emulator.client("service-quotas")
    for unknown in ({**CONCURRENCY, "QuotaCode": "L-00000000"}, {**CONCURRENCY, "ServiceCode": "nothing"}):
        with pytest.raises(client.exceptions.NoSuchResourceException):
            client.get_service_quota(**unknown)


# point_in_time_recovery


def table(**properties: Any) -> dict[str, Any]:
    return {"Rows": {"Type": "AWS::DynamoDB::Table", "Properties": {**BY_PK, **properties}}}


RECOVERABLE = {"PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True}}


def recovery(server: EmulatorServer, stack_name: str) -> str:
    name = physical_ids(server, stack_name)["Rows"]
    backups = server.client("dynamodb").describe_continuous_backups(TableName=name)["ContinuousBackupsDescription"]
    status: str = backups["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"]
    return status


def test_gap_stock_ignores_that_a_table_shall_be_recoverable(stock: EmulatorServer) -> None:
    with stack(stock, table(**RECOVERABLE)) as name:
        assert recovery(stock, name) == "DISABLED"


def test_a_table_is_recoverable_if_its_template_says_so(emulator: EmulatorServer) -> None:
    with stack(emulator, table(**RECOVERABLE)) as name:
        assert recovery(emulator, name) == "ENABLED"
        update_stack(emulator, name, table())
        assert recovery(emulator, name) == "DISABLED"


def copied(server: EmulatorServer, stack_name: str) -> dict[str, Any]:
    """Restores the stack's table under another name, and describes the copy."""
    name, dynamodb = physical_ids(server, stack_name)["Rows"], server.client("dynamodb")
    copy = f"copy-{uuid4().hex}"
    dynamodb.put_item(TableName=name, Item={"pk": {"S": "1"}})
    dynamodb.restore_table_to_point_in_time(
        SourceTableName=name, TargetTableName=copy, UseLatestRestorableTime=True, GlobalSecondaryIndexOverride=[]
    )
    assert dynamodb.scan(TableName=copy)["Items"] == [{"pk": {"S": "1"}}]
    table: dict[str, Any] = dynamodb.describe_table(TableName=copy)["Table"]
    return table | {"source": dynamodb.describe_table(TableName=name)["Table"]["TableArn"]}


def test_gap_stock_restores_any_table_and_does_not_say_whose_copy_it_is(stock: EmulatorServer) -> None:
    with stack(stock, table()) as name:
        assert "RestoreSummary" not in copied(stock, name)


def test_a_copy_says_which_table_it_was_restored_from_and_one_without_recovery_is_refused(
    emulator: EmulatorServer,
) -> None:
    with stack(emulator, table(**RECOVERABLE)) as name:
        copy = copied(emulator, name)
        assert copy["RestoreSummary"]["SourceTableArn"] == copy["source"]
        update_stack(emulator, name, table())
        with pytest.raises(emulator.client("dynamodb").exceptions.PointInTimeRecoveryUnavailableException):
            copied(emulator, name)


# topic_encryption


def encrypted(key: str | None) -> dict[str, Any]:
    return {"Alarms": {"Type": "AWS::SNS::Topic", "Properties": {} if key is None else {"KmsMasterKeyId": key}}}


def topics_key(server: EmulatorServer, stack_name: str) -> str | None:
    arn = physical_ids(server, stack_name)["Alarms"]
    key: str | None = server.client("sns").get_topic_attributes(TopicArn=arn)["Attributes"].get("KmsMasterKeyId")
    return key


def test_gap_stock_ignores_a_topics_key(stock: EmulatorServer) -> None:
    with stack(stock, encrypted("alias/ours")) as name:
        assert topics_key(stock, name) is None


def test_a_topic_has_the_key_of_its_template(emulator: EmulatorServer) -> None:
    with stack(emulator, encrypted("alias/ours")) as name:
        assert topics_key(emulator, name) == "alias/ours"
        update_stack(emulator, name, encrypted(None))
        assert topics_key(emulator, name) is None


# subscription_confirmation


def by_mail(server: EmulatorServer, topic_arn: str, **options: Any) -> str:
    subscribe = server.client("sns").subscribe
    arn: str = subscribe(TopicArn=topic_arn, Protocol="email", Endpoint="a@example.com", **options)["SubscriptionArn"]
    return arn


def listed(server: EmulatorServer, topic_arn: str) -> list[str]:
    answer = server.client("sns").list_subscriptions_by_topic(TopicArn=topic_arn)
    return [subscription["SubscriptionArn"] for subscription in answer["Subscriptions"]]


def test_gap_stock_needs_nobody_to_confirm_a_mail(stock: EmulatorServer) -> None:
    some = topic(stock)
    assert listed(stock, some) == [] and by_mail(stock, some).startswith(some)
    assert listed(stock, some)[0].startswith(some)


def test_a_subscription_by_mail_waits_until_it_is_confirmed(emulator: EmulatorServer) -> None:
    some = topic(emulator)
    assert by_mail(emulator, some) == "pending confirmation"
    assert listed(emulator, some) == ["PendingConfirmation"]
    assert {
        subscription["SubscriptionArn"] for subscription in emulator.client("sns").list_subscriptions()["Subscriptions"]
    } >= {"PendingConfirmation"}
    another = topic(emulator)
    arn = by_mail(emulator, another, ReturnSubscriptionArn=True)
    attributes = emulator.client("sns").get_subscription_attributes(SubscriptionArn=arn)["Attributes"]
    assert attributes["PendingConfirmation"] == "true"
