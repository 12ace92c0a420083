"""Roles, keys and TLS by IAM's own evaluation: every function can do its work, and nothing else.

The stack runs with IAM enforced and everything encrypted with its own key. tests/unit/test_template_permissions.py
compares the roles' statements with the code; here real calls with those roles are checked.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from darkroom.aws.events.followers import PREFIX
from darkroom.aws.images.images_table import ImagesTable
from darkroom.aws.images.objects import OriginalsBucket, OutputsBucket
from darkroom.domain.images.image import Image, Variant
from darkroom.ports.images import OriginalMissing
from darkroom_cli.doctor.collect import LISTED_WHOLE, ONE_IMPORT, ONE_OBJECT
from local_aws.stacks.clients import isolated_clients, of_account, of_role
from local_aws.tests.emulator_server import in_plain_http
from tests.erasure import marks_of, traces, unlike_any_other
from tests.local.keyed import client, done, key_of
from tests.local.local_stack import LocalStack, wait_until
from tests.support.fakes.pictures import jpeg
from tests.support.template import DELETERS, FUNCTION_FOLDERS, LOG_DELIVERIES, Grant, granted, name_of, statements

pytestmark = pytest.mark.promise("permissions")

ROLES = [*(f"{name_of(folder)}FunctionRole" for folder in FUNCTION_FOLDERS), "HoldBatchStateMachineRole"]
PHOTO = jpeg(320, 240)
OF_THE_ACCOUNT = {"Effect": "Allow", "Principal": {"AWS": "arn:aws:iam::000000000000:root"}, "Action": "sts:AssumeRole"}


@dataclass(kw_only=True)
class Guarded:
    """The stack, and what its roles may do in it."""

    stack: LocalStack

    def physical(self, logical_id: str) -> str:
        """A resource's physical id."""
        return self.stack.physical_id(logical_id)

    def root(self, service: str) -> Any:
        """A client with the rights of the account."""
        return self.stack.client(service)

    def as_role(self, role: str) -> Callable[[str], Any]:
        """Clients with the rights of a role, which the account may take here besides the role's own service."""
        iam = self.root("iam")
        known = iam.get_role(RoleName=role)["Role"]
        arn, trust = known["Arn"], known["AssumeRolePolicyDocument"]
        if OF_THE_ACCOUNT not in trust["Statement"]:
            trusting = trust | {"Statement": [*trust["Statement"], OF_THE_ACCOUNT]}
            iam.update_assume_role_policy(RoleName=role, PolicyDocument=json.dumps(trusting))
        lent = self.root("sts").assume_role(RoleArn=arn, RoleSessionName="test")["Credentials"]
        record = self.stack.record
        return isolated_clients(
            record.aws_endpoint_url,
            record.region,
            of_role(lent),
            config=Config(
                retries={"total_max_attempts": 1},
                s3={"addressing_style": "path"},
                user_agent="a test",  # which need not be put together for each of the thousands of calls
            ),
        )

    def invoked(self, function: str, event: Any) -> Any:
        """A function's answer; raises AssertionError if it fails."""
        answer = self.root("lambda").invoke(FunctionName=self.physical(function), Payload=json.dumps(event).encode())
        said = json.loads(answer["Payload"].read())
        assert "FunctionError" not in answer, said
        return said

    def stream_of(self, table: str) -> str:
        """The ARN of a table's stream."""
        answer = self.root("dynamodb").describe_table(TableName=self.physical(table))
        arn: str = answer["Table"]["LatestStreamArn"]
        return arn

    def latest_of(self, stream: str) -> dict[str, Any]:
        """What asks for the place behind all records of a stream."""
        (shard,) = self.root("dynamodbstreams").describe_stream(StreamArn=stream)["StreamDescription"]["Shards"]
        return {"StreamArn": stream, "ShardId": shard["ShardId"], "ShardIteratorType": "LATEST"}

    def planted(self, bucket: str, key: str) -> str:
        """The key, at which an object is put if there is none: S3 refuses a missing one to a role that may read it and
        not list its bucket, as the worker, or who presigns reports of imports."""
        if bucket == "OutputsBucket" or key.startswith("imports/"):
            with suppress(self.root("s3").exceptions.ClientError):
                self.root("s3").put_object(Bucket=self.physical(bucket), Key=key, Body=b"", IfNoneMatch="*")
        return key

    def logged(self) -> Iterator[str]:
        """Every line that a function has logged."""
        logs = self.root("logs")
        for group in logs.describe_log_groups()["logGroups"]:
            for event in logs.filter_log_events(logGroupName=group["logGroupName"])["events"]:
                yield event["message"]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """A stack in which IAM is evaluated, and everything is encrypted with its own key."""
    made = LocalStack(state=tmp_path_factory.mktemp("guarded") / "state")
    with made.serving("--access", "keys", "--encryption", "customer", "--enforce-iam"):
        yield Guarded(stack=made)


# ── The work ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_image_goes_its_whole_way_by_the_functions_own_rights(guarded: Guarded) -> None:
    stack = guarded.stack
    assert stack.darkroom("tenants", "add", "acme", "--tier", "paid").returncode == 0
    for lane, key in (("slow", stack.record.api_key), ("fast", key_of(stack, "acme"))):
        with client(stack, key) as api:
            _in_a_request(guarded, api, lane)
            _by_form(api)
            _held(guarded, api)
    _archived(guarded)
    wait_until(lambda: _counted(guarded, "acme"), "what it used is counted", seconds=60)
    refused = [line for line in guarded.logged() if "AccessDenied" in line or "not authorized" in line]
    assert refused == []


def _in_a_request(guarded: Guarded, api: httpx.Client, lane: str) -> None:
    photo = unlike_any_other(len(lane))
    answer = api.post("/images", params={"variants": "thumb"}, content=photo)
    image_id = answer.json()["id"]
    assert answer.json()["lane"] == lane
    done(api, image_id)
    variant = httpx.get(api.get(f"/images/{image_id}/variants/thumb").headers["location"], trust_env=False)
    assert (variant.status_code, variant.headers["content-type"]) == (200, "image/jpeg")
    outputs = guarded.root("s3").head_object(
        Bucket=guarded.physical("OutputsBucket"), Key=f"outputs/{image_id}/1/thumb.jpg"
    )
    assert outputs["ServerSideEncryption"] == "aws:kms"
    marks = marks_of(photo, _row(guarded, image_id), {"thumb": variant.content})
    del marks["its variant thumb"]  # others have it too
    assert traces(marks, guarded.root)
    # It is withdrawn: the next sweeps remove whatever describes it.
    assert api.delete(f"/images/{image_id}").status_code == 204
    wait_until(lambda: _swept(guarded, image_id), "the image's objects are removed", seconds=120)
    assert traces(marks, guarded.root) == []


def _row(guarded: Guarded, image_id: str) -> Image:
    row = ImagesTable(guarded.root("dynamodb"), guarded.physical("ImagesTable")).get(image_id)
    assert row is not None
    return row


def _swept(guarded: Guarded, image_id: str) -> bool:
    guarded.invoked("SweepDueImagesFunction", {})
    s3 = guarded.root("s3")
    originals = s3.list_object_versions(Bucket=guarded.physical("OriginalsBucket"), Prefix=f"originals/{image_id}")
    outputs = s3.list_objects_v2(Bucket=guarded.physical("OutputsBucket"), Prefix=f"outputs/{image_id}/")
    return not originals.get("Versions") and outputs["KeyCount"] == 0


def _by_form(api: httpx.Client) -> None:
    announced = {"bytes": len(PHOTO), "sha256": hashlib.sha256(PHOTO).hexdigest(), "variants": ["thumb"]}
    begun = api.post("/uploads", json=announced).json()
    form = begun["upload"]
    sent = httpx.post(form["url"], data=form["fields"], files={"file": PHOTO}, trust_env=False, timeout=60)
    assert sent.status_code == 204, sent.text
    done(api, begun["id"])


def _held(guarded: Guarded, api: httpx.Client) -> None:
    later = api.post("/images", params={"variants": "thumb", "delay": "P2D"}, content=jpeg(60, 40)).json()["id"]
    assert api.patch(f"/images/{later}", json={"delay": "PT25M"}).status_code == 200
    bucket = guarded.physical("HoldsBucket")

    # The batch of its first time, which is stale: another may wait in 25 minutes, which may be tomorrow.
    after = f"holds/{datetime.now(UTC) + timedelta(hours=36):%Y-%m-%d}"

    def batch() -> Any:
        listed = guarded.root("s3").list_objects_v2(Bucket=bucket, Prefix="holds/").get("Contents", [])
        return next((entry["Key"] for entry in listed if entry["Key"] > after), None)

    key = wait_until(batch, "the image is held", seconds=120)
    event = {"key": key, "position": 0, "wake_at": "2026-01-01T00:00:00Z", "begins_at": None}
    assert guarded.invoked("ReleaseImagesFunction", event)["done"]
    assert api.delete(f"/images/{later}").status_code == 204


def _counted(guarded: Guarded, tenant_id: str) -> bool:
    days = guarded.root("dynamodb").query(
        TableName=guarded.physical("UsageTable"),
        KeyConditionExpression="tenant_id = :tenant",
        ExpressionAttributeValues={":tenant": {"S": tenant_id}},
    )["Items"]
    # One by a request, one by a form, and one that was withdrawn before its time.
    counted = [(day["images"]["N"], day["runs"]["N"]) for day in days if "images" in day]  # another has what is stored
    return counted == [("3", "2")]


def _archived(guarded: Guarded) -> None:
    dead_letters = guarded.physical("SlowDeadLetters")
    guarded.root("sqs").send_message(QueueUrl=dead_letters, MessageBody="a dead letter of somebody else's")
    assert guarded.invoked("ArchiveDeadLettersFunction", {})["incomplete"] == []


# ── What each role may do, and may not ───────────────────────────────────────────────────────────────────────────────

BEYOND: frozenset[Grant] = frozenset(
    {
        *((f"dynamodb:{action}", f"${{{table}.Arn}}") for action in ("Scan", "DeleteItem", "DescribeTable")
          for table in ("ImagesTable", "TenantsTable", "ReservationsTable")),
        *((f"dynamodb:{action}", "${TenantsTable.Arn}") for action in ("PutItem", "UpdateItem")),
        *((f"s3:{action}", f"${{{bucket}.Arn}}/elsewhere") for action in ("GetObject", "PutObject", "DeleteObject")
          for bucket in ("UploadsBucket", "OriginalsBucket", "OutputsBucket", "HoldsBucket")),
        *((f"s3:{action}", f"${{{bucket}.Arn}}") for action in ("GetBucketPolicy", "DeleteBucketPolicy")
          for bucket in ("UploadsBucket", "OriginalsBucket", "OutputsBucket", "HoldsBucket")),
        ("s3:GetObject", "${DeadLetterArchiveBucket.Arn}/*"),
        ("sqs:PurgeQueue", "${FastQueue.Arn}"),
        ("sqs:SetQueueAttributes", "${UploadQueue.Arn}"),
        ("sns:Publish", "${CriticalAlarms}"),
        ("kms:Decrypt", "${Key.Arn}"),
        ("kms:ScheduleKeyDeletion", "${Key.Arn}"),
        ("kms:PutKeyPolicy", "${Key.Arn}"),
        ("secretsmanager:PutSecretValue", "${MessageKey.Id}"),
        ("secretsmanager:DeleteSecret", "${MessageKey.Id}"),
        ("lambda:InvokeFunction", "${SubmitImageFunction.Arn}"),
        ("lambda:GetFunction", "${ReleaseImagesFunction.Arn}"),
        ("logs:FilterLogEvents", "${SubmitImageLogs.Arn}"),
        ("iam:PutRolePolicy", "${SubmitImageFunctionRole.Arn}"),
        ("iam:CreateUser", "*"),
        ("sts:AssumeRole", "${SubmitImageFunctionRole.Arn}"),
    }
)  # fmt: skip
"""Actions that no function needs, but that would be useful to an attacker who has taken one over."""


def evaluated(grants: set[Grant]) -> set[Grant]:
    """Those that a call can try here: the emulator has no X-Ray, and delivers no logs of state machines; and this stack
    is deployed without buckets of others."""
    tried = {grant for grant in grants if not grant[0].startswith("xray:") and grant[0] not in LOG_DELIVERIES}
    return {grant for grant in tried if grant[1] != "${ImportBuckets}"}


UNIVERSE = frozenset(evaluated(set().union(*(granted(role) for role in ROLES)))) | BEYOND
NOTHING = "nothing-of-this-name"
KEYS = {
    "ImagesTable": {"image_id": {"S": NOTHING}},
    "TenantsTable": {"id": {"S": f"key#{NOTHING}"}},
    "IdempotencyTable": {"id": {"S": NOTHING}},
    "ReservationsTable": {"lane": {"S": NOTHING}},
    "TokenBucketsTable": {"tenant_id": {"S": NOTHING}},
    "ThroughputTable": {"lane": {"S": NOTHING}, "minute": {"N": "1"}},
    "UsageTable": {"tenant_id": {"S": NOTHING}, "day": {"S": NOTHING}},
    "CountedEventsTable": {"event_id": {"S": NOTHING}},
    "BatchesTable": {"place": {"S": NOTHING}, "part": {"S": NOTHING}},
    "PausesTable": {"subject": {"S": NOTHING}},
    "EndpointsTable": {"tenant_id": {"S": NOTHING}, "place": {"N": "0"}},
    "DeliveriesTable": {"endpoint_id": {"S": NOTHING}, "delivery_id": {"S": NOTHING}},
}
NEVER = {"ConditionExpression": "attribute_exists(nothing)"}
"""A condition that no item meets: IAM judges the call, and it changes nothing."""


def if_there(table: str) -> dict[str, str]:
    """The condition of an update of a table of which only some attributes may be named."""
    return {"ConditionExpression": "attribute_exists(id)"} if table == "TenantsTable" else {}


def if_written(bucket: str) -> dict[str, str]:
    """A condition of a write that changes nothing: which of the two depends on whether the bucket asks for one."""
    return {"IfNoneMatch": "*"} if bucket in DELETERS else {"IfMatch": '"none"'}


def listed(listing: Callable[..., Any], bucket: str, prefix: str, otherwise: str) -> None:
    """List what begins like an object; like an import's, or all there is, if only that is allowed."""
    try:
        listing(Bucket=bucket, Prefix=prefix)
    except ClientError:
        listing(Bucket=bucket, Prefix=otherwise)


def called(guarded: Guarded, client: Callable[[str], Any], grant: Grant) -> None:
    """Make a call that needs exactly this permission, and changes nothing that any test checks."""
    action, target = grant
    logical = re.sub(r"^(?:arn:.*:)?\$\{(\w+)(?:\.\w+)?\}.*", r"\1", target)
    below = target.partition("}/")[2]
    service, name = action.split(":")
    match service:
        case "dynamodb" if "Stream" in target or name == "ListStreams":
            streams = client("dynamodbstreams")
            stream = guarded.stream_of("ImagesTable" if name == "ListStreams" else logical)
            calls: dict[str, Callable[[], Any]] = {
                "ListStreams": streams.list_streams,
                "DescribeStream": lambda: streams.describe_stream(StreamArn=stream),
                "GetShardIterator": lambda: streams.get_shard_iterator(**guarded.latest_of(stream)),
                "GetRecords": lambda: streams.get_records(
                    ShardIterator=guarded.root("dynamodbstreams").get_shard_iterator(**guarded.latest_of(stream))[
                        "ShardIterator"
                    ]
                ),
            }
        case "dynamodb":
            table, key = guarded.physical(logical), KEYS[logical]
            calls = {
                "GetItem": lambda: client(service).get_item(TableName=table, Key=key),
                "BatchGetItem": lambda: client(service).batch_get_item(RequestItems={table: {"Keys": [key]}}),
                "BatchWriteItem": lambda: client(service).batch_write_item(
                    RequestItems={table: [{"DeleteRequest": {"Key": key}}]}
                ),
                "PutItem": lambda: client(service).put_item(TableName=table, Item=key, **NEVER),
                "UpdateItem": lambda: client(service).update_item(
                    TableName=table, Key=key,
                    UpdateExpression=f"SET {'last_used_on' if logical == 'TenantsTable' else 'nothing'} = :one",
                    ExpressionAttributeValues={":one": {"S": "1"}}, **(NEVER | if_there(logical)),
                ),
                "DeleteItem": lambda: client(service).delete_item(TableName=table, Key=key, **NEVER),
                "Query": lambda: client(service).query(
                    TableName=table, **({"IndexName": below.removeprefix("index/")} if below else {}),
                    KeyConditionExpression="lane = :one", ExpressionAttributeValues={":one": {"S": NOTHING}},
                ),
                "Scan": lambda: client(service).scan(
                    TableName=table, Limit=1, **({"IndexName": below.removeprefix("index/")} if below else {})
                ),
                "DescribeTable": lambda: client(service).describe_table(TableName=table),
            }  # fmt: skip
        case "s3":
            bucket, prefix = guarded.physical(logical), ONE_OBJECT.get(logical, NOTHING)
            otherwise = ONE_IMPORT.get(logical, f"{prefix.partition('/')[0]}/")
            at = below.replace("*", prefix.partition("/")[2].removesuffix("/") or NOTHING)
            calls = {
                "GetObject": lambda: client(service).get_object(Bucket=bucket, Key=guarded.planted(logical, at)),
                "GetObjectVersion": lambda: client(service).get_object(Bucket=bucket, Key=at, VersionId=uuid4().hex),
                "PutObject": lambda: client(service).put_object(Bucket=bucket, Key=at, Body=b"", **if_written(logical)),
                "DeleteObject": lambda: client(service).delete_object(Bucket=bucket, Key=at),
                "DeleteObjectVersion": lambda: client(service).delete_object(
                    Bucket=bucket, Key=at, VersionId=uuid4().hex
                ),
                "ListBucket": lambda: listed(client(service).list_objects_v2, bucket, prefix, otherwise),
                "ListBucketVersions": lambda: listed(client(service).list_object_versions, bucket, prefix, otherwise),
                "GetBucketPolicy": lambda: client(service).get_bucket_policy(Bucket=bucket),
                "DeleteBucketPolicy": lambda: client(service).delete_bucket_policy(Bucket=bucket),
            }
        case "sqs":
            url = guarded.physical("FastQueue" if target.endswith(f":{PREFIX}*") else logical)
            if target.endswith(f":{PREFIX}*"):
                url = f"{url.rpartition('/')[0]}/{PREFIX}{NOTHING}"
            receipt = {"QueueUrl": url, "ReceiptHandle": NOTHING}
            calls = {
                "SendMessage": lambda: client(service).send_message(QueueUrl=url, MessageBody=""),
                "ReceiveMessage": lambda: client(service).receive_message(
                    QueueUrl=url, VisibilityTimeout=0, MaxNumberOfMessages=1
                ),
                "DeleteMessage": lambda: client(service).delete_message(**receipt),
                "ChangeMessageVisibility": lambda: client(service).change_message_visibility(
                    **receipt, VisibilityTimeout=0
                ),
                "GetQueueUrl": lambda: client(service).get_queue_url(QueueName=url.rpartition("/")[2]),
                "ListQueueTags": lambda: client(service).list_queue_tags(QueueUrl=url),
                "DeleteQueue": lambda: client(service).delete_queue(QueueUrl=url),
                "GetQueueAttributes": lambda: client(service).get_queue_attributes(QueueUrl=url),
                "PurgeQueue": lambda: client(service).purge_queue(QueueUrl=url),
                "SetQueueAttributes": lambda: client(service).set_queue_attributes(
                    QueueUrl=url, Attributes={"Policy": ""}
                ),
            }
        case "states":
            machine = guarded.physical("HoldBatchStateMachine")
            execution = f"{machine.replace(':stateMachine:', ':execution:')}:{NOTHING}"
            calls = {
                "StartExecution": lambda: client("stepfunctions").start_execution(
                    stateMachineArn=machine, input="no JSON"
                ),
                "DescribeExecution": lambda: client("stepfunctions").describe_execution(executionArn=execution),
            }
        case "logs":
            group = {"logGroupName": guarded.physical(logical)}
            calls = {
                "CreateLogStream": lambda: client(service).create_log_stream(**group, logStreamName=NOTHING),
                "PutLogEvents": lambda: client(service).put_log_events(
                    **group, logStreamName="none", logEvents=[{"timestamp": 1, "message": "one"}]
                ),
                "FilterLogEvents": lambda: client(service).filter_log_events(**group),
            }
        case "lambda":
            function = guarded.physical(logical)
            calls = {
                "InvokeFunction": lambda: client(service).invoke(FunctionName=function, InvocationType="DryRun"),
                "GetFunction": lambda: client(service).get_function(FunctionName=function),
            }
        case "kms":
            key_id = guarded.physical(logical)
            sealed = guarded.root("kms").encrypt(KeyId=key_id, Plaintext=b"secret")["CiphertextBlob"]
            calls = {
                "Decrypt": lambda: client(service).decrypt(CiphertextBlob=sealed, KeyId=key_id),
                "ScheduleKeyDeletion": lambda: client(service).schedule_key_deletion(KeyId=key_id),
                "PutKeyPolicy": lambda: client(service).put_key_policy(KeyId=key_id, Policy="{}"),
            }
        case "sns":
            topic = guarded.physical(logical)
            calls = {
                "Publish": lambda: client(service).publish(TopicArn=topic, Message="one"),
                "ListSubscriptionsByTopic": lambda: client(service).list_subscriptions_by_topic(TopicArn=topic),
            }
        case "secretsmanager":
            secret = guarded.physical(logical)
            calls = {
                "GetSecretValue": lambda: client(service).get_secret_value(SecretId=secret),
                "PutSecretValue": lambda: client(service).put_secret_value(SecretId=secret, SecretString=NOTHING),
                "DeleteSecret": lambda: client(service).delete_secret(SecretId=secret),
            }
        case "iam" | "sts":
            role = "" if target == "*" else guarded.physical(logical)
            calls = {
                "PutRolePolicy": lambda: client(service).put_role_policy(
                    RoleName=role, PolicyName="all", PolicyDocument="{}"
                ),
                "CreateUser": lambda: client(service).create_user(UserName=NOTHING),
                "AssumeRole": lambda: client(service).assume_role(
                    RoleArn=f"arn:aws:iam::000000000000:role/{role}", RoleSessionName="one"
                ),
            }
        case _:
            raise NotImplementedError(f"{action}: say here which call needs it")
    calls[name]()


def is_refused(guarded: Guarded, client: Callable[[str], Any], grant: Grant) -> bool:
    """Whether IAM refuses the call; other errors of the service do not matter."""
    try:
        called(guarded, client, grant)
    except ClientError as error:
        return "not authorized to perform" in error.response["Error"].get("Message", "")
    return False


@pytest.mark.parametrize("role", ROLES)
def test_a_role_can_do_what_it_is_for_and_nothing_else_that_anybody_can(guarded: Guarded, role: str) -> None:
    client = guarded.as_role(guarded.physical(role))
    own = evaluated(granted(role))
    assert {grant for grant in UNIVERSE if is_refused(guarded, client, grant)} == UNIVERSE - own


def test_nobody_overwrites_an_original_and_only_few_delete_one(guarded: Guarded) -> None:
    bucket, key = guarded.physical("OriginalsBucket"), f"originals/{NOTHING}"
    submit = guarded.as_role(guarded.physical("SubmitImageFunctionRole"))("s3")
    with pytest.raises(ClientError, match="explicit deny"):
        submit.put_object(Bucket=bucket, Key=key, Body=b"")
    everything = {"Sid": "All", "Effect": "Allow", "Action": "s3:*", "Resource": "*"}
    iam, name = guarded.root("iam"), f"intruder-{uuid4().hex[:8]}"
    trust = {"Version": "2012-10-17", "Statement": [OF_THE_ACCOUNT]}
    rights = {"Version": "2012-10-17", "Statement": [everything]}
    iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(trust))
    iam.put_role_policy(RoleName=name, PolicyName="all", PolicyDocument=json.dumps(rights))
    intruder = guarded.as_role(name)("s3")
    for outputs_or_originals in DELETERS:
        with pytest.raises(ClientError, match="explicit deny"):
            intruder.delete_object(Bucket=guarded.physical(outputs_or_originals), Key=key)


@pytest.mark.parametrize(("role", "may_list"), [("ReadImageFunctionRole", True), ("TranscodeImageFunctionRole", False)])
def test_a_missing_output_is_missing_to_all_who_look_for_it(guarded: Guarded, role: str, may_list: bool) -> None:
    s3 = guarded.as_role(guarded.physical(role))("s3")
    key = f"outputs/{'1' * 26}/1/missing.jpg"
    missing = Variant(name="a", width=1, height=1, format="jpeg", size_bytes=1, sha256="0" * 64, key=key)
    assert not OutputsBucket(s3, guarded.physical("OutputsBucket"), may_list=may_list).holds(missing)
    with pytest.raises(ClientError, match="404" if may_list else "403"):
        s3.head_object(Bucket=guarded.physical("OutputsBucket"), Key=missing.key)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("bucket", ONE_OBJECT)
def test_only_the_reconciliation_lists_more_than_one_object_or_image(guarded: Guarded, role: str, bucket: str) -> None:
    s3, name = guarded.as_role(guarded.physical(role))("s3"), guarded.physical(bucket)
    folder = ONE_OBJECT[bucket].partition("/")[0]
    if bucket in LISTED_WHOLE.get(role, ()):
        return
    for prefix in ("", folder, f"{folder}/", f"{folder}/0", ONE_OBJECT[bucket][:30]):
        for listing in (s3.list_objects_v2, s3.list_object_versions):
            with pytest.raises(ClientError, match="AccessDenied"):
                listing(Bucket=name, Prefix=prefix)


@pytest.mark.parametrize("role", ["SubmitImageFunctionRole", "TranscodeImageFunctionRole"])
def test_a_missing_original_is_missing_to_who_looks_for_it(guarded: Guarded, role: str) -> None:
    originals = OriginalsBucket(guarded.as_role(guarded.physical(role))("s3"), guarded.physical("OriginalsBucket"))
    if role == "TranscodeImageFunctionRole":
        with pytest.raises(OriginalMissing):
            originals.get("1" * 26, uuid4().hex)
    else:
        with pytest.raises(ClientError, match="404"):
            originals._client.head_object(Bucket=guarded.physical("OriginalsBucket"), Key=f"originals/{'1' * 26}")


def test_the_authorizer_notes_the_use_of_keys_and_changes_no_tenant(guarded: Guarded) -> None:
    dynamodb = guarded.as_role(guarded.physical("AuthorizeRequestFunctionRole"))("dynamodb")
    for item_id, attribute in (("tenant#acme", "last_used_on"), ("key#00000000", "digest")):
        with pytest.raises(ClientError, match="AccessDenied"):
            dynamodb.update_item(
                TableName=guarded.physical("TenantsTable"),
                Key={"id": {"S": item_id}},
                UpdateExpression="SET #attribute = :value",
                ExpressionAttributeNames={"#attribute": attribute},
                ExpressionAttributeValues={":value": {"S": "invented"}},
            )
    api_key = guarded.stack.record.api_key or ""
    bearer = {"Authorization": f"Bearer {api_key}"}
    assert httpx.get(f"{guarded.stack.api_url}/images", headers=bearer, trust_env=False).status_code == 200
    item = guarded.root("dynamodb").get_item(
        TableName=guarded.physical("TenantsTable"), Key={"id": {"S": f"key#{api_key.split('_')[1]}"}}
    )["Item"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", item["last_used_on"]["S"]), "it has noted the use of the stack's own key"


@pytest.fixture
def copy(guarded: Guarded) -> Iterator[Callable[[str, str | None], Callable[[str], Any]]]:
    """Clients with the rights of a role without one statement (None: without the key's policy)."""
    iam, name = guarded.root("iam"), f"copy-{uuid4().hex[:8]}"
    trust = {"Effect": "Allow", "Principal": {"AWS": "arn:aws:iam::000000000000:root"}, "Action": "sts:AssumeRole"}
    iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [trust]}))
    key_policy, clients = guarded.physical("UseOfTheKey"), guarded.as_role(name)

    def without(role: str, sid: str | None) -> Callable[[str], Any]:
        source = guarded.physical(role)
        (policy_name,) = iam.list_role_policies(RoleName=source)["PolicyNames"]
        document = iam.get_role_policy(RoleName=source, PolicyName=policy_name)["PolicyDocument"]
        kept = [statement for statement in document["Statement"] if statement["Sid"] != sid]
        iam.put_role_policy(
            RoleName=name, PolicyName="copied", PolicyDocument=json.dumps({**document, "Statement": kept})
        )
        if sid is not None:
            iam.attach_role_policy(RoleName=name, PolicyArn=key_policy)
        return clients

    yield without
    if iam.list_attached_role_policies(RoleName=name)["AttachedPolicies"]:
        iam.detach_role_policy(RoleName=name, PolicyArn=key_policy)
    iam.delete_role_policy(RoleName=name, PolicyName="copied")
    iam.delete_role(RoleName=name)


@pytest.mark.parametrize("role", ROLES)
def test_every_statement_is_missed(
    guarded: Guarded, copy: Callable[[str, str | None], Callable[[str], Any]], role: str
) -> None:
    for statement in statements(role):
        lost = evaluated(granted(role) - granted(role, without=statement["Sid"]))
        client = copy(role, statement["Sid"])
        assert {grant for grant in lost if not is_refused(guarded, client, grant)} == set(), statement["Sid"]
        assert lost or statement["Sid"] in ("Trace", "LogErrors", "ReadBucketsOfOthers")


ENCRYPTED = ("Item", "Query", "GetObject", "GetObjectVersion", "PutObject", "SendMessage", "ReceiveMessage")


@pytest.mark.parametrize("role", ROLES)
def test_without_the_key_a_role_reads_and_writes_nothing(
    guarded: Guarded, copy: Callable[[str, str | None], Callable[[str], Any]], role: str
) -> None:
    client = copy(role, None)
    own = {grant for grant in evaluated(granted(role)) if grant[0].endswith(ENCRYPTED)}
    assert {grant for grant in own if not is_refused(guarded, client, grant)} == set()


# ── TLS ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("role", "grant"),
    [
        ("SubmitImageFunctionRole", ("s3:GetObject", "${OriginalsBucket.Arn}/originals/*")),
        ("SubmitImageFunctionRole", ("sqs:SendMessage", "${FastQueue.Arn}")),
        ("AcceptUploadFunctionRole", ("sqs:ReceiveMessage", "${UploadQueue.Arn}")),
        ("SweepDueImagesFunctionRole", ("sqs:GetQueueAttributes", "${HoldDeadLetters.Arn}")),
    ],
)
def test_what_is_allowed_is_refused_in_plain_http(guarded: Guarded, role: str, grant: Grant) -> None:
    client = guarded.as_role(guarded.physical(role))
    assert not is_refused(guarded, client, grant)
    in_plain_http(client(grant[0].split(":")[0]))
    assert is_refused(guarded, client, grant)


def test_not_even_the_account_publishes_in_plain_http(guarded: Guarded) -> None:
    grant = ("sns:Publish", "${WarningAlarms}")
    assert not is_refused(guarded, guarded.stack.client, grant)
    record = guarded.stack.record
    plain = in_plain_http(
        isolated_clients(record.aws_endpoint_url, record.region, of_account(record.aws_secret))("sns")
    )
    assert is_refused(guarded, lambda _: plain, grant)
