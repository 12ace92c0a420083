"""How `doctor` reads a stack: by operations that change nothing, and each answer as plain data."""

from __future__ import annotations

import ast
import hashlib
import io
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import botocore.session
import pytest
from botocore import xform_name
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from darkroom.domain.pauses.pauses import Pause
from darkroom_cli.doctor import collect
from darkroom_cli.doctor.checkout import source_files
from darkroom_cli.doctor.collect import READING, SERVICES, WouldChange, only_reading
from darkroom_cli.doctor.facts import Checkout
from darkroom_cli.doctor.policies import actions_on, covers, is_for_anybody, refuses_plain_http, statements_of
from tests.support.stack import FakeStack

SOURCE = Path(collect.__file__)
QUEUE_URL = "https://sqs.eu-west-1.amazonaws.com/123456789012/FastQueue"


def client(service: str) -> Any:
    session: Any = boto3.Session("nobody", "nothing", region_name="eu-west-1")
    return session.client(service)


def calls() -> set[str]:
    """The methods in doctor's own code that have the name of an operation of the services that it asks."""
    tree = ast.parse(SOURCE.read_text())
    session = botocore.session.get_session()
    operations = {
        xform_name(name): name for service in SERVICES for name in session.get_service_model(service).operation_names
    }
    named = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    named |= {
        str(node.args[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "get_paginator"
        and isinstance(node.args[0], ast.Constant)
    }
    return {operations[name] for name in named if name in operations}


def test_every_operation_that_it_calls_only_reads() -> None:
    operations = calls()
    assert {"GetQueueAttributes", "ListSubscriptionsByTopic", "DescribeAlarms", "ListServiceQuotas"} <= operations
    assert {name for name in operations if not READING.match(name)} == set()


@pytest.mark.parametrize(
    "name",
    ["PutObject", "SendMessage", "ReceiveMessage", "DeleteQueue", "UpdateItem", "GetsAnything", "Invoke", "Listen"],
)
def test_these_may_change_something(name: str) -> None:
    assert not READING.match(name)


@pytest.mark.guards("doctor-read-only")
def test_a_client_that_only_reads_refuses_the_rest_before_it_is_sent() -> None:
    sqs = only_reading(client("sqs"))
    with Stubber(sqs) as stub:
        stub.add_response("get_queue_attributes", {"Attributes": {}})
        assert sqs.get_queue_attributes(QueueUrl=QUEUE_URL)["Attributes"] == {}
    sqs = only_reading(client("sqs"))
    with pytest.raises(WouldChange, match="PurgeQueue"):
        sqs.purge_queue(QueueUrl=QUEUE_URL)


def test_a_queue_is_read_from_its_attributes() -> None:
    sqs = client("sqs")
    attributes = {
        "QueueArn": "arn:aws:sqs:eu-west-1:123456789012:FastQueue",
        "VisibilityTimeout": "360",
        "MessageRetentionPeriod": "345600",
        "SqsManagedSseEnabled": "true",
        "ApproximateNumberOfMessages": "2",
        "ApproximateNumberOfMessagesNotVisible": "1",
        "RedrivePolicy": '{"deadLetterTargetArn": "arn:dead", "maxReceiveCount": "5"}',
    }
    with Stubber(sqs) as stub:
        stub.add_response("get_queue_attributes", {"Attributes": attributes})
        queue = collect._queue(sqs, QUEUE_URL)
    assert (queue.name, queue.visibility_seconds, queue.messages) == ("FastQueue", 360, 3)
    assert (queue.dead_letters, queue.max_receives, queue.is_encrypted, queue.policy) == ("arn:dead", 5, True, ())


@pytest.mark.parametrize(
    ("results", "reason"),
    [
        ([], None),
        ([{"Status": "COMPLETED"}], None),
        ([{"Status": "FAILED", "FailureReason": "AccessDenied"}], "AccessDenied"),
        ([{"Status": "FAILED"}], "AWS gives no reason"),
    ],
)
def test_only_a_redrive_that_failed_is_one(results: list[dict[str, str]], reason: str | None) -> None:
    sqs = client("sqs")
    with Stubber(sqs) as stub:
        stub.add_response("list_message_move_tasks", {"Results": results})
        assert collect._failed_redrive(sqs, "arn") == reason


@pytest.mark.guards("doctor-pause-without-part")
def test_pauses_are_those_in_force_where_workers_go_by_them() -> None:
    stack: Any = FakeStack()
    active = stack.pauses.pause(Pause(kind="lane", name="fast", since=1))
    stack.pauses.pause(Pause(kind="tenant", name="acme", since=1))
    stack.pauses.resume("tenant", "acme", 2)
    assert collect._pauses(stack) == {"lane#fast": active}
    stack.parts = {"webhooks"}
    assert collect._pauses(stack) == {}


@pytest.mark.parametrize(
    ("listed", "is_confirmed"), [("PendingConfirmation", False), ("arn:aws:sns:eu-west-1:123456789012:t:1", True)]
)
def test_a_subscription_by_mail_is_confirmed_once_it_has_an_arn(listed: str, is_confirmed: bool) -> None:
    subscription = {"SubscriptionArn": listed, "Protocol": "email", "Endpoint": "a@example.com"}
    assert collect._subscription(client("sns"), subscription).is_confirmed is is_confirmed


def test_what_a_bucket_does_not_have_is_nothing_and_what_is_refused_stays_refused() -> None:
    def raising(code: str) -> Any:
        def call() -> Any:
            raise ClientError({"Error": {"Code": code}}, "GetBucketPolicy")

        return call

    assert collect._if_there_is(raising("NoSuchBucketPolicy"), "NoSuchBucketPolicy") is None
    with pytest.raises(ClientError):
        collect._if_there_is(raising("AccessDenied"), "NoSuchBucketPolicy")


def test_the_code_that_is_compared_is_what_lambda_would_run(monkeypatch: pytest.MonkeyPatch) -> None:
    class FakeLambda:
        def get_function(self, FunctionName: str) -> Any:  # noqa: N803 - AWS's name
            return {"Code": {"Location": f"https://s3/{FunctionName}"}}

        def get_layer_version_by_arn(self, Arn: str) -> Any:  # noqa: N803 - AWS's name
            return {"Content": {"Location": f"https://s3/{Arn}"}}

    stack: Any = SimpleNamespace(
        is_local=False,
        client=lambda service: FakeLambda() if service == "lambda" else None,
        clock=lambda: 0,
        physical_ids=lambda _: {"CoreLayer0123456789": "arn:core", "ImagingLayer0123456789": "arn:imaging"},
        physical_id=lambda name: f"shop-{name}",
    )

    def package(location: str) -> bytes:
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w") as opened:
            opened.writestr("app.py", location)
        return archive.getvalue()

    monkeypatch.setattr(collect, "only_reading", lambda client: client)
    monkeypatch.setattr(collect, "_downloaded", package)
    sources: Any = {"SubmitImageFunction": {}, "CoreLayer": {}}
    checkout = Checkout(types={}, resources={}, runbook={}, sources=sources)
    with ThreadPoolExecutor(2) as pool:
        reader = collect._StackReader(stack, pool, lambda _: None)
        assert reader._deployed_sources(checkout) == {
            "SubmitImageFunction": {"app.py": hashlib.sha256(b"https://s3/shop-SubmitImageFunction").hexdigest()},
            "CoreLayer": {"app.py": hashlib.sha256(b"https://s3/arn:core").hexdigest()},
        }


def test_this_checkout_has_a_source_of_each_function_and_of_both_layers() -> None:
    sources = source_files(["SubmitImageFunction", "CustomResourceFunction"])
    assert sources.keys() == {"SubmitImageFunction", "CoreLayer", "PartsLayer"}
    assert sources["SubmitImageFunction"].keys() == {"app.py"}
    assert "python/darkroom/domain/images/image.py" in sources["CoreLayer"]
    assert "python/darkroom/ports/webhooks.py" in sources["PartsLayer"]
    assert sources["CoreLayer"].keys().isdisjoint(sources["PartsLayer"])


# ── Policies ─────────────────────────────────────────────────────────────────────────────────────────────────────────

DENY = {
    "Effect": "Deny",
    "Principal": "*",
    "Action": "sqs:*",
    "Resource": "*",
    "Condition": {"Bool": {"aws:SecureTransport": "false"}},
}


def policy(*statements: dict[str, Any]) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": list(statements)}


def test_a_policy_is_read_as_text_or_parsed_and_with_single_values() -> None:
    text = '{"Statement": {"Effect": "Allow", "Action": "a:b", "Resource": ["x", "y"]}}'
    (statement,) = statements_of(text)
    assert (statement.is_allowed, sorted(statement.actions), sorted(statement.resources)) == (True, ["a:b"], ["x", "y"])
    assert statements_of(None) == statements_of("") == ()


def test_what_is_not_named_is_everything() -> None:
    (statement,) = statements_of(policy({"Effect": "Allow", "NotAction": "iam:*", "NotResource": "x"}))
    assert (sorted(statement.actions), sorted(statement.resources)) == (["*"], ["*"])


@pytest.mark.parametrize(
    ("change", "refused"),
    [
        ({}, True),
        ({"Principal": {"AWS": "*"}}, True),
        ({"Condition": {"Bool": {"AWS:SecureTransport": ["false"]}}}, True),
        ({"Effect": "Allow"}, False),
        ({"Principal": {"AWS": "arn:aws:iam::1:root"}}, False),
        ({"Action": "sqs:SendMessage"}, False),
        ({"Condition": {}}, False),
        ({"Condition": {"Bool": {"aws:SecureTransport": "true"}}}, False),
    ],
)
def test_plain_http_is_refused_to_everybody_or_not_at_all(change: dict[str, Any], refused: bool) -> None:
    assert refuses_plain_http(statements_of(policy(DENY | change)), "sqs:*") is refused


def test_actions_on_a_resource_include_those_by_wildcards() -> None:
    allow = {"Effect": "Allow", "Action": ["sqs:SendMessage", "s3:GetObject", "*"], "Resource": "arn:queue:*"}
    assert actions_on(statements_of(policy(allow)), "arn:queue:fast", "sqs") == {"sqs:SendMessage", "*"}
    assert actions_on(statements_of(policy(allow)), "arn:topic:fast", "sqs") == frozenset()
    assert covers("secretsmanager:Get*", "secretsmanager:GetSecretValue")
    assert not covers("secretsmanager:Put*", "secretsmanager:GetSecretValue")


@pytest.mark.parametrize(
    ("principal", "anybody"),
    [
        ("*", True),
        ({"AWS": "*"}, True),
        ({"AWS": ["arn:a", "*"]}, True),
        ({"Service": "s3.amazonaws.com"}, False),
        (None, False),
    ],
)
def test_everybody_is_a_star_anywhere(principal: Any, anybody: bool) -> None:
    statement = {"Effect": "Allow", "Action": "a", "Resource": "*"} | (
        {} if principal is None else {"Principal": principal}
    )
    (read_statement,) = statements_of(policy(statement))
    assert is_for_anybody(read_statement) is anybody
