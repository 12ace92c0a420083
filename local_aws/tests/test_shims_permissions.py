"""What IAM's evaluation lacks on stock MiniStack, and how the shims correct it: TLS, batches, customers' keys."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import httpx
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from local_aws.stacks.clients import isolated_clients, of_account, of_role
from local_aws.tests.emulator_server import (
    ACCOUNT_ID,
    REGION,
    EmulatorServer,
    emulator_server,
    in_plain_http,
    package,
    physical_ids,
    reasons_for_failed_stack,
    stack,
    update_stack,
)
from local_aws.tests.queues import queue, topic
from local_aws.tests.streams import BY_PK, table

pytest_plugins = ("local_aws.tests.emulator_fixtures",)

ROOT = f"arn:aws:iam::{ACCOUNT_ID}:root"


@pytest.fixture(scope="module")
def emulator(enforcing: EmulatorServer) -> EmulatorServer:
    """The emulator with IAM evaluated."""
    return enforcing


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmulatorServer]:
    """MiniStack as it is, with IAM evaluated."""
    with emulator_server(tmp_path_factory.mktemp("stock-enforcing"), "--stock", "--enforce-iam") as server:
        yield server


def client(server: EmulatorServer, service: str, lent: dict[str, str] | None = None, *, plain: bool = False) -> Any:
    """A client with a role's credentials, or with the account's; `plain` uses http for AWS."""
    made = isolated_clients(
        server.gateway_url,
        REGION,
        of_role(lent) if lent else of_account(server.secret),
        config=Config(retries={"total_max_attempts": 1}),
    )(service)
    if plain:
        in_plain_http(made)
    return made


def role(server: EmulatorServer, *statements: dict[str, Any]) -> dict[str, str]:
    """The credentials of a new role with these rights."""
    iam, name = client(server, "iam"), f"role-{uuid4().hex[:8]}"
    trust = document({"Effect": "Allow", "Principal": {"AWS": ROOT}, "Action": "sts:AssumeRole"})
    arn = iam.create_role(RoleName=name, AssumeRolePolicyDocument=trust)["Role"]["Arn"]
    iam.put_role_policy(RoleName=name, PolicyName="rights", PolicyDocument=document(*statements))
    lent: dict[str, str] = client(server, "sts").assume_role(RoleArn=arn, RoleSessionName="test")["Credentials"]
    return lent


def document(*statements: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


def allow(*actions: str) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": list(actions), "Resource": "*"}


def bucket(server: EmulatorServer, **encryption: Any) -> str:
    """A new bucket, with an object in it."""
    s3, name = client(server, "s3"), f"bucket-{uuid4().hex[:8]}"
    s3.create_bucket(Bucket=name)
    if encryption:
        rule = {"ApplyServerSideEncryptionByDefault": encryption}
        s3.put_bucket_encryption(Bucket=name, ServerSideEncryptionConfiguration={"Rules": [rule]})
    s3.put_object(Bucket=name, Key="one", Body=b"one")
    return name


def bucket_that_denies(server: EmulatorServer, action: str, condition: dict[str, Any]) -> str:
    """A new bucket with an object, whose policy denies the action on it and its objects under that condition."""
    name = bucket(server)
    resources = [f"arn:aws:s3:::{name}", f"arn:aws:s3:::{name}/*"]
    denied = {"Effect": "Deny", "Principal": "*", "Action": action, "Resource": resources, "Condition": condition}
    client(server, "s3").put_bucket_policy(Bucket=name, Policy=document(denied))
    return name


def refusing_plain_http(server: EmulatorServer) -> str:
    return bucket_that_denies(server, "s3:*", {"Bool": {"aws:SecureTransport": "false"}})


# secure_transport


def test_gap_stock_takes_every_request_for_one_in_plain_http(stock: EmulatorServer) -> None:
    name = refusing_plain_http(stock)
    with pytest.raises(ClientError, match="explicit deny"):
        client(stock, "s3", role(stock, allow("s3:*"))).get_object(Bucket=name, Key="one")


def test_a_request_comes_by_tls_unless_it_says_otherwise(emulator: EmulatorServer) -> None:
    name, lent = refusing_plain_http(emulator), role(emulator, allow("s3:*"))
    assert client(emulator, "s3", lent).get_object(Bucket=name, Key="one")["Body"].read() == b"one"
    with pytest.raises(ClientError, match="explicit deny"):
        client(emulator, "s3", lent, plain=True).get_object(Bucket=name, Key="one")


# conditional_writes


def written_once(server: EmulatorServer) -> str:
    condition = {"Null": {"s3:if-none-match": "true"}, "Bool": {"s3:ObjectCreationOperation": "true"}}
    return bucket_that_denies(server, "s3:PutObject", condition)


def test_gap_stock_lets_a_policy_for_conditional_writes_never_apply(stock: EmulatorServer) -> None:
    name = written_once(stock)
    client(stock, "s3", role(stock, allow("s3:*"))).put_object(Bucket=name, Key="one", Body=b"overwritten")


def test_a_bucket_that_asks_for_conditional_writes_gets_no_others(emulator: EmulatorServer) -> None:
    name, s3 = written_once(emulator), client(emulator, "s3", role(emulator, allow("s3:*")))
    for key in ("one", "two"):
        with pytest.raises(ClientError, match="explicit deny"):
            s3.put_object(Bucket=name, Key=key, Body=b"overwritten")
    s3.put_object(Bucket=name, Key="two", Body=b"two", IfNoneMatch="*")
    with pytest.raises(ClientError, match="PreconditionFailed"):
        s3.put_object(Bucket=name, Key="two", Body=b"overwritten", IfNoneMatch="*")
    upload = {"Bucket": name, "Key": "three"}
    upload["UploadId"] = s3.create_multipart_upload(**upload)["UploadId"]
    s3.upload_part(**upload, PartNumber=1, Body=b"part")  # neither is a creation
    assert s3.get_object(Bucket=name, Key="one")["Body"].read() == b"one"


# missing_objects


def test_gap_stock_tells_everybody_who_may_read_what_is_missing(stock: EmulatorServer) -> None:
    name, s3 = bucket(stock), client(stock, "s3", role(stock, allow("s3:GetObject")))
    assert status_of(lambda: s3.head_object(Bucket=name, Key="some/missing")) == 404


@pytest.mark.parametrize("call", ["head_object", "get_object"])
@pytest.mark.parametrize(
    ("listing", "status"),
    [
        pytest.param([], 403, id="who may not list"),
        pytest.param([allow("s3:ListBucket")], 404, id="who may list"),
        pytest.param(
            [allow("s3:ListBucket") | {"Condition": {"StringLike": {"s3:prefix": "some/*"}}}], 404, id="there"
        ),
        pytest.param(
            [allow("s3:ListBucket") | {"Condition": {"StringLike": {"s3:prefix": "other/*"}}}], 403, id="elsewhere"
        ),
    ],
)
def test_only_who_may_list_is_told_what_is_missing(
    emulator: EmulatorServer, call: str, listing: list[dict[str, Any]], status: int
) -> None:
    name, s3 = bucket(emulator), client(emulator, "s3", role(emulator, allow("s3:GetObject"), *listing))
    assert status_of(lambda: getattr(s3, call)(Bucket=name, Key="some/missing")) == status
    assert status_of(lambda: getattr(s3, call)(Bucket=name, Key="one")) == 200


def status_of(call: Callable[[], Any]) -> int:
    try:
        answer = call()
    except ClientError as error:
        answer = error.response
    status: int = answer["ResponseMetadata"]["HTTPStatusCode"]
    return status


# simulated_context


def simulated(server: EmulatorServer, prefix: str) -> str:
    """What IAM says to a list of a bucket under the prefix, by a role that may list under another one's."""
    listing = allow("s3:ListBucket") | {"Condition": {"StringLike": {"s3:prefix": "some/????"}}}
    arn = client(server, "sts", role(server, listing, allow("sts:*"))).get_caller_identity()["Arn"]
    answer = client(server, "iam").simulate_principal_policy(
        PolicySourceArn=f"arn:aws:iam::000000000000:role/{arn.split('/')[1]}",
        ActionNames=["s3:ListBucket"],
        ResourceArns=["arn:aws:s3:::any"],
        ContextEntries=[{"ContextKeyName": "s3:prefix", "ContextKeyValues": [prefix], "ContextKeyType": "string"}],
    )
    (result,) = answer["EvaluationResults"]
    decision: str = result["EvalDecision"]
    return decision


def test_gap_stock_simulates_without_the_context_that_is_named(stock: EmulatorServer) -> None:
    assert simulated(stock, "some/keys") == "implicitDeny"


@pytest.mark.parametrize(("prefix", "decision"), [("some/keys", "allowed"), ("some/", "implicitDeny")])
def test_a_simulation_has_the_context_that_is_named(emulator: EmulatorServer, prefix: str, decision: str) -> None:
    assert simulated(emulator, prefix) == decision


# principal_arn


def deleted_by_few(server: EmulatorServer, lent: dict[str, str]) -> str:
    """A bucket in which only one role may delete."""
    session = client(server, "sts", lent).get_caller_identity()["Arn"]
    of_role = f"arn:aws:iam::000000000000:role/{session.split('/')[1]}"
    return bucket_that_denies(server, "s3:DeleteObject", {"ArnNotLike": {"aws:PrincipalArn": [of_role]}})


def test_gap_stock_takes_a_session_for_the_principal(stock: EmulatorServer) -> None:
    lent = role(stock, allow("s3:*", "sts:*"))
    name = deleted_by_few(stock, lent)
    with pytest.raises(ClientError, match="explicit deny"):
        client(stock, "s3", lent).delete_object(Bucket=name, Key="one")


def test_a_session_is_known_by_its_role(emulator: EmulatorServer) -> None:
    lent, others = role(emulator, allow("s3:*", "sts:*")), role(emulator, allow("s3:*"))
    name = deleted_by_few(emulator, lent)
    with pytest.raises(ClientError, match="explicit deny"):
        client(emulator, "s3", others).delete_object(Bucket=name, Key="one")
    client(emulator, "s3", lent).delete_object(Bucket=name, Key="one")


# item_keys


def noting_only(server: EmulatorServer) -> Any:
    """A client that may update one attribute of some items, and the table."""
    name = f"table-{uuid4().hex[:8]}"
    client(server, "dynamodb").create_table(TableName=name, **BY_PK)
    conditions = {
        "ForAllValues:StringLike": {"dynamodb:LeadingKeys": "key#*"},
        "ForAllValues:StringEquals": {"dynamodb:Attributes": ["pk", "last_used_on"]},
    }
    lent = role(server, allow("dynamodb:UpdateItem") | {"Condition": conditions})

    def update(item_id: str, attribute: str) -> None:
        client(server, "dynamodb", lent).update_item(
            TableName=name,
            Key={"pk": {"S": item_id}},
            UpdateExpression="SET #a = :v",
            ConditionExpression="attribute_not_exists(pk) OR #a < :v",
            ExpressionAttributeNames={"#a": attribute},
            ExpressionAttributeValues={":v": {"S": "2026"}},
        )

    return update


def test_gap_stock_knows_neither_the_item_nor_the_attributes_of_an_update(stock: EmulatorServer) -> None:
    update = noting_only(stock)
    update("tenant#1", "tier")


def test_an_update_is_judged_by_its_item_and_its_attributes(emulator: EmulatorServer) -> None:
    update = noting_only(emulator)
    update("key#1", "last_used_on")
    for item_id, attribute in (("tenant#1", "last_used_on"), ("key#1", "digest")):
        with pytest.raises(ClientError, match="AccessDenied"):
            update(item_id, attribute)


# requested_permissions


def batch(server: EmulatorServer) -> Any:
    url = client(server, "sqs").create_queue(QueueName=f"queue-{uuid4().hex[:8]}")["QueueUrl"]
    sqs = client(server, "sqs", role(server, allow("sqs:SendMessage")))
    return sqs.send_message_batch(QueueUrl=url, Entries=[{"Id": "1", "MessageBody": "one"}])


def test_gap_stock_asks_for_a_permission_that_does_not_exist(stock: EmulatorServer) -> None:
    with pytest.raises(ClientError, match="not authorized to perform: sqs:SendMessageBatch"):
        batch(stock)


def test_a_batch_needs_the_permission_of_the_single_action(emulator: EmulatorServer) -> None:
    assert len(batch(emulator)["Successful"]) == 1


def test_a_version_is_removed_by_the_permission_for_versions(emulator: EmulatorServer) -> None:
    name, own = bucket(emulator), client(emulator, "s3")
    own.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
    version = own.put_object(Bucket=name, Key="one", Body=b"1")["VersionId"]
    lent = client(emulator, "s3", role(emulator, allow("s3:DeleteObjectVersion")))
    answer = lent.delete_objects(Bucket=name, Delete={"Objects": [{"Key": "one", "VersionId": version}]})
    assert [deleted["Key"] for deleted in answer["Deleted"]] == ["one"]


def test_a_log_group_is_named_with_all_that_is_in_it(emulator: EmulatorServer) -> None:
    group = f"group-{uuid4().hex[:8]}"
    client(emulator, "logs").create_log_group(logGroupName=group)
    (made,) = client(emulator, "logs").describe_log_groups(logGroupNamePrefix=group)["logGroups"]
    lent = role(emulator, {**allow("logs:CreateLogStream"), "Resource": made["logGroupArn"] + ":*"})  # as AWS documents
    client(emulator, "logs", lent).create_log_stream(logGroupName=group, logStreamName="one")


def test_a_batch_for_a_topic_needs_the_permission_of_the_single_action(emulator: EmulatorServer) -> None:
    arn = topic(emulator)
    sns = client(emulator, "sns", role(emulator, {**allow("sns:Publish"), "Resource": arn}))
    answer = sns.publish_batch(TopicArn=arn, PublishBatchRequestEntries=[{"Id": "1", "Message": "one"}])
    assert len(answer["Successful"]) == 1


def read_stream(server: EmulatorServer, stream_arn: str, lent: dict[str, str]) -> Any:
    streams = client(server, "dynamodbstreams", lent)
    (shard,) = streams.describe_stream(StreamArn=stream_arn)["StreamDescription"]["Shards"]
    iterator = streams.get_shard_iterator(
        StreamArn=stream_arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
    )["ShardIterator"]
    return streams.get_records(ShardIterator=iterator)["Records"]


def reading(stream_arn: str) -> dict[str, Any]:
    actions = ("dynamodb:DescribeStream", "dynamodb:GetShardIterator", "dynamodb:GetRecords", "dynamodb:ListStreams")
    return {**allow(*actions), "Resource": stream_arn}


@pytest.mark.parametrize("missing", ["DescribeStream", "GetShardIterator", "GetRecords"])
def test_a_stream_is_read_by_the_permission_for_its_own_name(emulator: EmulatorServer, missing: str) -> None:
    own, other = table(emulator), table(emulator)
    own.put("a")
    rights = reading(own.stream_arn)
    lent = role(emulator, rights)
    assert len(read_stream(emulator, own.stream_arn, lent)) == 1
    others = [action for action in rights["Action"] if not action.endswith(missing)]
    lent = role(emulator, {**rights, "Action": others}, {**allow(f"dynamodb:{missing}"), "Resource": other.stream_arn})
    with pytest.raises(ClientError, match=f"not authorized to perform: dynamodb:{missing}"):
        read_stream(emulator, own.stream_arn, lent)


# stream_event_source


def function_of(server: EmulatorServer, *statements: dict[str, Any], **options: Any) -> str:
    """A function whose role has these rights."""
    iam, name = client(server, "iam"), f"function-{uuid4().hex[:8]}"
    trust = {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
    arn = iam.create_role(RoleName=name, AssumeRolePolicyDocument=document(trust), **options)["Role"]["Arn"]
    if statements:
        iam.put_role_policy(RoleName=name, PolicyName="rights", PolicyDocument=document(*statements))
    client(server, "lambda").create_function(
        FunctionName=name,
        Runtime="python3.13",
        Handler="app.handler",
        Role=arn,
        Code={"ZipFile": package({"app.py": "def handler(event, context):\n    return None"})},
    )
    return name


def map_stream(server: EmulatorServer, function: str, stream_arn: str, destination: str | None = None) -> str:
    settings = {"DestinationConfig": {"OnFailure": {"Destination": destination}}} if destination else {}
    mapping_id: str = client(server, "lambda").create_event_source_mapping(
        FunctionName=function, EventSourceArn=stream_arn, StartingPosition="LATEST", **settings
    )["UUID"]
    return mapping_id


def test_gap_stock_maps_a_stream_that_the_function_may_not_read(stock: EmulatorServer) -> None:
    assert map_stream(stock, function_of(stock), table(stock).stream_arn)


@pytest.mark.parametrize("missing", ["DescribeStream", "GetShardIterator", "GetRecords", "ListStreams"])
def test_a_function_needs_every_permission_to_read_its_stream(emulator: EmulatorServer, missing: str) -> None:
    stream_arn = table(emulator).stream_arn
    rights = reading(stream_arn)
    assert map_stream(emulator, function_of(emulator, rights), stream_arn)
    fewer = {**rights, "Action": [action for action in rights["Action"] if not action.endswith(missing)]}
    with pytest.raises(ClientError, match="Cannot access stream"):
        map_stream(emulator, function_of(emulator, fewer), stream_arn)


def boundary(server: EmulatorServer, *actions: str) -> str:
    """A policy that is to bound a role's rights."""
    policy = client(server, "iam").create_policy(
        PolicyName=f"boundary-{uuid4().hex[:8]}", PolicyDocument=document(allow(*actions))
    )["Policy"]
    arn: str = policy["Arn"]
    return arn


def test_a_functions_rights_end_where_its_boundary_does(emulator: EmulatorServer) -> None:
    stream_arn = table(emulator).stream_arn
    within = function_of(emulator, reading(stream_arn), PermissionsBoundary=boundary(emulator, "dynamodb:*"))
    assert map_stream(emulator, within, stream_arn)
    beyond = function_of(emulator, reading(stream_arn), PermissionsBoundary=boundary(emulator, "dynamodb:GetItem"))
    with pytest.raises(ClientError, match="Cannot access stream"):
        map_stream(emulator, beyond, stream_arn)


@pytest.mark.parametrize("service", ["sqs", "sns"])
def test_a_function_needs_the_permission_to_send_what_is_discarded(emulator: EmulatorServer, service: str) -> None:
    stream_arn = table(emulator).stream_arn
    if service == "sqs":
        destination, action = queue(emulator).arn, "sqs:SendMessage"
    else:
        destination, action = topic(emulator), "sns:Publish"
    without = function_of(emulator, reading(stream_arn), {**allow(action), "Resource": f"{destination}-of-another"})
    with pytest.raises(ClientError, match="does not have permissions to call"):
        map_stream(emulator, without, stream_arn, destination)
    mapping_id = map_stream(emulator, without, stream_arn)
    change = client(emulator, "lambda").update_event_source_mapping
    destinations = {"OnFailure": {"Destination": destination}}
    with pytest.raises(ClientError, match="does not have permissions to call"):
        change(UUID=mapping_id, DestinationConfig=destinations)
    having = function_of(emulator, reading(stream_arn), {**allow(action), "Resource": destination})
    assert map_stream(emulator, having, stream_arn, destination)


def test_a_stack_with_a_function_that_may_not_read_its_stream_fails(emulator: EmulatorServer) -> None:
    stream_arn = table(emulator).stream_arn
    properties = {"EventSourceArn": stream_arn, "StartingPosition": "LATEST"}

    def mapping(function: str) -> dict[str, Any]:
        return {"Type": "AWS::Lambda::EventSourceMapping", "Properties": {"FunctionName": function, **properties}}

    without, having = function_of(emulator), function_of(emulator, reading(stream_arn))
    assert "Cannot access stream" in reasons_for_failed_stack(emulator, {"Mapping": mapping(without)})
    with stack(emulator, {"Mapping": mapping(having)}) as name, pytest.raises(AssertionError, match="Cannot access"):
        update_stack(emulator, name, {"Mapping": mapping(without)})


# customer_keys


def key(server: EmulatorServer, *services: str) -> str:
    """A new key, whose policy delegates to IAM and names these services."""
    account = {"Effect": "Allow", "Principal": {"AWS": ROOT}, "Action": "kms:*", "Resource": "*"}
    named = [{**allow("kms:GenerateDataKey", "kms:Decrypt"), "Principal": {"Service": service}} for service in services]
    arn: str = client(server, "kms").create_key(Policy=document(account, *named))["KeyMetadata"]["Arn"]
    return arn


def by_form(s3: Any, bucket_name: str) -> None:
    """Upload by a form that the client signs."""
    form = s3.generate_presigned_post(bucket_name, "three")
    sent = httpx.post(form["url"], data=form["fields"], files={"file": b"three"}, trust_env=False)
    if sent.status_code == 403:
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "not authorized"}}, "PostObject")
    assert sent.status_code == 204, sent.text


def stores(server: EmulatorServer, lent: dict[str, str]) -> list[str]:
    """The stores, all encrypted with one key, that refuse these credentials."""
    arn, name = key(server), f"store-{uuid4().hex[:8]}"
    encrypted = bucket(server, SSEAlgorithm="aws:kms", KMSMasterKeyID=arn)
    url = client(server, "sqs").create_queue(QueueName=name, Attributes={"KmsMasterKeyId": arn})["QueueUrl"]
    client(server, "dynamodb").create_table(
        TableName=name,
        **BY_PK,
        SSESpecification={"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": arn},
    )
    calls: dict[str, Callable[[], object]] = {
        "put": lambda: client(server, "s3", lent).put_object(Bucket=encrypted, Key="two", Body=b"two"),
        "form": lambda: by_form(client(server, "s3", lent), encrypted),
        "get": lambda: client(server, "s3", lent).get_object(Bucket=encrypted, Key="one"),
        "send": lambda: client(server, "sqs", lent).send_message(QueueUrl=url, MessageBody="one"),
        "receive": lambda: client(server, "sqs", lent).receive_message(QueueUrl=url),
        "row": lambda: client(server, "dynamodb", lent).get_item(TableName=name, Key={"pk": {"S": "1"}}),
    }
    refused = []
    for call, make in calls.items():
        try:
            make()
        except ClientError as error:
            assert "not authorized" in str(error)
            refused.append(call)
    return refused


STORES = allow("s3:*", "sqs:*", "dynamodb:*")
VIA = {
    "StringEquals": {"kms:ViaService": [f"{service}.{REGION}.amazonaws.com" for service in ("s3", "sqs", "dynamodb")]}
}


def test_gap_stock_lets_everybody_use_a_stores_key(stock: EmulatorServer) -> None:
    assert stores(stock, role(stock, STORES)) == []


def test_whoever_may_not_use_the_key_gets_nothing_from_a_store(emulator: EmulatorServer) -> None:
    assert stores(emulator, role(emulator, STORES)) == ["put", "form", "get", "send", "receive", "row"]
    assert stores(emulator, role(emulator, STORES, allow("kms:Decrypt"))) == ["put", "form", "send"]
    both = {**allow("kms:Decrypt", "kms:GenerateDataKey"), "Condition": VIA}
    assert stores(emulator, role(emulator, STORES, both)) == []


def notified(server: EmulatorServer, *services: str) -> None:
    """Make S3 notify an encrypted queue, whose own policy allows it."""
    sqs, arn = client(server, "sqs"), key(server, *services)
    url = sqs.create_queue(QueueName=f"queue-{uuid4().hex[:8]}", Attributes={"KmsMasterKeyId": arn})["QueueUrl"]
    queue_arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    allowed = {**allow("sqs:SendMessage"), "Principal": {"Service": "s3.amazonaws.com"}}
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": document(allowed)})
    configuration = {"QueueArn": queue_arn, "Events": ["s3:ObjectCreated:*"]}
    client(server, "s3").put_bucket_notification_configuration(
        Bucket=bucket(server), NotificationConfiguration={"QueueConfigurations": [configuration]}
    )


def test_a_service_needs_the_keys_policy_to_name_it(emulator: EmulatorServer) -> None:
    with pytest.raises(ClientError, match="Unable to validate"):
        notified(emulator)
    notified(emulator, "s3.amazonaws.com")


# stack_encryption

AES = {
    "BucketEncryption": {
        "ServerSideEncryptionConfiguration": [{"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}]
    }
}


def of_a_stack(bucket: dict[str, Any], table: dict[str, Any]) -> dict[str, Any]:
    """A bucket and a table with these additional properties."""
    return {
        "Bucket": {"Type": "AWS::S3::Bucket", "Properties": bucket},
        "Table": {"Type": "AWS::DynamoDB::Table", "Properties": {**BY_PK, **table}},
    }


def with_key(arn: str) -> dict[str, Any]:
    """The stack, encrypted with that key."""
    rule = {
        "BucketKeyEnabled": True,
        "ServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": arn},
    }
    return of_a_stack(
        {"BucketEncryption": {"ServerSideEncryptionConfiguration": [rule]}},
        {"SSESpecification": {"SSEEnabled": True, "SSEType": "KMS", "KMSMasterKeyId": arn}},
    )


def keys_of(server: EmulatorServer, name: str) -> list[str | None]:
    """The keys of the stack's bucket and of its table."""
    physical = physical_ids(server, name)
    encryption = client(server, "s3").get_bucket_encryption(Bucket=physical["Bucket"])
    (rule,) = encryption["ServerSideEncryptionConfiguration"]["Rules"]
    table = client(server, "dynamodb").describe_table(TableName=physical["Table"])["Table"]
    return [
        rule["ApplyServerSideEncryptionByDefault"].get("KMSMasterKeyID"),
        table.get("SSEDescription", {}).get("KMSMasterKeyArn"),
    ]


def test_gap_stock_forgets_how_a_stack_is_encrypted(stock: EmulatorServer) -> None:
    with stack(stock, with_key(key(stock))) as name:
        assert keys_of(stock, name) == [None, None]


def test_a_stacks_buckets_and_tables_are_encrypted_as_it_says(emulator: EmulatorServer) -> None:
    first, second = key(emulator), key(emulator)
    with stack(emulator, with_key(first)) as name:
        assert keys_of(emulator, name) == [first, first]
        update_stack(emulator, name, with_key(second))
        assert keys_of(emulator, name) == [second, second]
        update_stack(emulator, name, of_a_stack(AES, {}))
        assert keys_of(emulator, name) == [None, None]
