"""Each function's role allows what its code calls and nothing else, by reading the code from handler to client."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from darkroom.aws.bulk import batches_table
from darkroom.aws.events.followers import PREFIX
from darkroom.aws.images.images_table import DUE_INDEX, LISTED_INDEX, NEWEST_INDEX, REFERENCES_INDEX, WAITING_INDEX
from darkroom.aws.webhooks import deliveries_table, endpoints_table
from darkroom.domain.kernel.lanes import LANES
from darkroom.domain.kernel.visibility import PREFIXES
from darkroom_cli.doctor.collect import LISTED_WHOLE
from repository.expand_template import DELIVERY, TEMPLATE, resources
from repository.report import ROOT
from tests.support.template import (
    DELIVERY_FOLDERS,
    FUNCTION_FOLDERS,
    LOG_DELIVERIES,
    Grant,
    _listed,
    _text,
    granted,
    name_of,
    statements,
)

pytestmark = pytest.mark.promise("permissions")

CORE = ROOT / "layers" / "core" / "darkroom"
VERSIONED_ROWS = CORE / "aws" / "kernel" / "versioned_rows.py"
BULK, WEBHOOKS = (CORE / "operations" / part for part in ("bulk", "webhooks"))
ADAPTERS = {
    "images": ("images_table", "ImagesTable"),
    "uploads": ("uploads", "UploadsBucket"),
    "originals": ("objects", "OriginalsBucket"),
    "outputs": ("objects", "OutputsBucket"),
    "archive": ("dead_letters", "DeadLetterArchive"),
    "lanes": ("queues", "LaneQueues"),
    "hold_queue": ("queues", "SqsHoldQueue"),
    "upload_queue": ("queues", "SqsUploadQueue"),
    "fetch_queue": ("queues", "SqsFetchQueue"),
    "edit_queue": ("queues", "SqsEditQueue"),
    "holds": ("holds", "HoldsBucket"),
    "memory": ("memory_table", "MemoryTable"),
    "once": ("once", "PowertoolsOnce"),
    "reservations": ("reservations_table", "ReservationsTable"),
    "depths": ("queues", "LaneDepths"),
    "throughput": ("throughput_table", "ThroughputTable"),
    "token_buckets": ("token_buckets_table", "TokenBucketsTable"),
    "upload_token_uses": ("upload_token_uses", "UploadTokenUsesTable"),
    "edge_budget": ("edge_budget", "EdgeBudgetTable"),
    "stale_edge": ("queues", "EdgeQueue"),
    "outcome_counts": ("outcomes_table", "OutcomesTable"),
    "event_dead_letters": ("dead_letters", "DeadLetterQueues"),
    "wake_ups": ("holds", "HoldExecutions"),
    "dead_letters": ("dead_letters", "DeadLetterQueues"),
    "tenants": ("tenants_table", "TenantsTable"),
    "topic": ("events_topic", "SnsTopic"),
    "notices": ("events_topic", "SnsTopic"),
    "unpublished": ("events_topic", "SqsUnpublished"),
    "usage": ("usage_table", "UsageTable"),
    "sums": ("usage_table", "UsageTable"),
    "endpoints": ("endpoints_table", "EndpointsTable"),
    "deliveries": ("deliveries_table", "DeliveriesTable"),
    "delivery_queue": ("delivery_queue", "SqsDeliveryQueue"),
    "master_secret": ("secrets", "StoredSecret"),
    "followers": ("followers", "FollowersQueues"),
    "message_keys": ("secrets", "StoredSecret"),
    "rejected_messages": ("dead_letters", "RejectedMessageQueues"),
    "distribution": ("distribution", "Distribution"),
    "invalidations": ("invalidations_table", "InvalidationsTable"),
    "signing_keys": ("secrets", "StoredSecret"),
    "made": ("made_variants", "MadeVariantsBucket"),
    "leases": ("variant_leases", "VariantLeasesTable"),
    "signing_secret": ("secrets", "StoredSecret"),
    "known_pauses": ("pauses_table", "PausesTable"),
    "batches": ("batches_table", "BatchesTable"),
    "imports": ("imports_table", "ImportsTable"),
    "manifests": ("manifests_bucket", "ManifestsBucket"),
    "backfills": ("backfills_table", "BackfillsTable"),
    "scan": ("backfills_table", "ImagesScan"),
    "schedules": ("schedules_table", "SchedulesTable"),
    "reconciliations": ("reconciliations_table", "ReconciliationsTable"),
    "image_listing": ("reconciliations_table", "ListedImages"),
    "stored_originals": ("stored_objects", "ListedOriginals"),
    "stored_variants": ("stored_objects", "ListedVariants"),
}
"""The adapter of each port, which has one name from the handlers to the operations."""

LANE_QUEUES = {f"${{{lane.capitalize()}Queue.Arn}}" for lane in LANES}

TABLE = "arn:${AWS::Partition}:dynamodb:${AWS::Region}:${AWS::AccountId}:table/"

RESOURCES = {
    "images": {"${ImagesTable.Arn}"},
    "uploads": {"${UploadsBucket.Arn}/uploads/*"},
    "originals": {"${OriginalsBucket.Arn}/originals/*"},
    "outputs": {f"${{OutputsBucket.Arn}}/{prefix}*" for prefix in PREFIXES.values()},
    "archive": {"${DeadLetterArchiveBucket.Arn}/*"},
    "lanes": LANE_QUEUES,
    "hold_queue": {"${HoldQueue.Arn}"},
    "upload_queue": {"${UploadQueue.Arn}"},
    "fetch_queue": {"${FetchQueue.Arn}"},
    "edit_queue": {"${EditsQueue.Arn}"},
    "holds": {"${HoldsBucket.Arn}/holds/*"},
    "memory": {"${IdempotencyTable.Arn}"},
    "once": {"${IdempotencyTable.Arn}"},
    "reservations": {"${ReservationsTable.Arn}"},
    "depths": LANE_QUEUES,
    "throughput": {"${ThroughputTable.Arn}"},
    "outcome_counts": {"${ThroughputTable.Arn}"},
    "event_dead_letters": {
        *("${UsageDeadLetters.Arn}", "${WebhooksDeadLetters.Arn}", "${DeliveryDeadLetters.Arn}"),
        "${UnpublishedEvents.Arn}",
    },
    "token_buckets": {"${TokenBucketsTable.Arn}"},
    "upload_token_uses": {"${TokenBucketsTable.Arn}"},
    "edge_budget": {"${TokenBucketsTable.Arn}"},
    "stale_edge": {"${Edge[3]}"},
    "wake_ups": {"${HoldBatchStateMachine}"},
    "dead_letters": {f"${{{name.capitalize()}DeadLetters.Arn}}" for name in (*LANES, "hold", "upload", "fetch")},
    "tenants": {"${TenantsTable.Arn}"},
    "topic": {"${EventsTopic}"},
    "notices": {"${NoticesTopic}"},
    "unpublished": {"${UnpublishedEvents.Arn}"},
    "usage": {"${CountedEventsTable.Arn}"},
    "sums": {"${UsageTable.Arn}"},
    "endpoints": {"${EndpointsTable.Arn}"},
    "deliveries": {"${DeliveriesTable.Arn}"},
    "delivery_queue": {"${DeliveryQueue.Arn}"},
    "master_secret": {"${WebhooksSecret.Id}"},
    "followers": {f"arn:${{AWS::Partition}}:sqs:${{AWS::Region}}:${{AWS::AccountId}}:{PREFIX}*"},
    "message_keys": {"${MessageKey.Id}"},
    "distribution": {"arn:${AWS::Partition}:cloudfront::${AWS::AccountId}:distribution/${Distribution}"},
    "invalidations": {f"{TABLE}${{TokenBucketsTableName}}"},
    "signing_keys": {"${SigningSecret.Id}"},
    "made": {f"arn:${{AWS::Partition}}:s3:::${{OutputsBucketName}}/public/{'?' * 26}/t*/*"},
    "leases": {f"{TABLE}${{TokenBucketsTableName}}"},
    "signing_secret": {"${VariantKey.Id}"},
    "known_pauses": {"${PausesTable.Arn}"},
    "batches": {"${BatchesTable.Arn}"},
    "imports": {"${BatchesTable.Arn}"},
    "manifests": {"${UploadsBucket.Arn}/imports/*"},
    "backfills": {"${BatchesTable.Arn}"},
    "schedules": {"${BatchesTable.Arn}"},
    "scan": {"${ImagesTable.Arn}"},
    "reconciliations": {"${BatchesTable.Arn}"},
    "image_listing": {"${ImagesTable.Arn}"},
    "stored_originals": {"${OriginalsBucket.Arn}/originals/*"},
    "stored_variants": {f"${{OutputsBucket.Arn}}/{prefix}*" for prefix in PREFIXES.values()},
}

RESOURCES_OF_THE_CORE = {
    "images": {f"{TABLE}${{ImagesTableName}}"},
    "originals": {"arn:${AWS::Partition}:s3:::${OriginalsBucketName}/originals/*"},
    "tenants": {f"{TABLE}${{TenantsTableName}}"},
    "token_buckets": {f"{TABLE}${{TokenBucketsTableName}}"},
}
"""The resources as a stack of delivery knows them, by the core's outputs."""

ACTIONS = {
    "get_item": "dynamodb:GetItem",
    "batch_get_item": "dynamodb:BatchGetItem",
    "put_item": "dynamodb:PutItem",
    "delete_item": "dynamodb:DeleteItem",
    "update_item": "dynamodb:UpdateItem",
    "query": "dynamodb:Query",
    "scan": "dynamodb:Scan",
    "put_object": "s3:PutObject",
    "generate_presigned_post": "s3:PutObject",
    "get_object": "s3:GetObject",
    "head_object": "s3:GetObject",
    "delete_object": "s3:DeleteObject",
    "batch_write_item": "dynamodb:BatchWriteItem",
    "list_objects_v2": "s3:ListBucket",
    "list_object_versions": "s3:ListBucketVersions",
    "send_message": "sqs:SendMessage",
    "send_message_batch": "sqs:SendMessage",
    "start_execution": "states:StartExecution",
    "describe_execution": "states:DescribeExecution",
    "receive_message": "sqs:ReceiveMessage",
    "delete_message": "sqs:DeleteMessage",
    "change_message_visibility": "sqs:ChangeMessageVisibility",
    "change_message_visibility_batch": "sqs:ChangeMessageVisibility",
    "get_queue_attributes": "sqs:GetQueueAttributes",
    "get_queue_url": "sqs:GetQueueUrl",
    "list_queue_tags": "sqs:ListQueueTags",
    "delete_queue": "sqs:DeleteQueue",
    "publish_batch": "sns:Publish",
    "list_subscriptions_by_topic": "sns:ListSubscriptionsByTopic",
    "get_secret_value": "secretsmanager:GetSecretValue",
    "create_invalidation": "cloudfront:CreateInvalidation",
    "transact_write_items": "dynamodb:PutItem",  # and what else is in the transaction: see below
}
"""The permission that each call of a client needs
(https://docs.aws.amazon.com/service-authorization/latest/reference/reference_policies_actions-resources-contextkeys.html).
"""

SIGNED = {"lanes", "hold_queue", "upload_queue", "fetch_queue", "edit_queue", "dead_letters", "delivery_queue", "topic"}
"""The ports whose messages are signed."""

EXECUTIONS = "arn:${AWS::Partition}:states:${AWS::Region}:${AWS::AccountId}:execution:${HoldBatchStateMachine.Name}:*"
"""Executions have a separate ARN, with their machine's name."""

INDEXES = {
    ("images", "due"): f"${{ImagesTable.Arn}}/index/{DUE_INDEX}",
    ("images", "oldest_waiting"): f"${{ImagesTable.Arn}}/index/{WAITING_INDEX}",
    ("images", "newest"): f"${{ImagesTable.Arn}}/index/{LISTED_INDEX}",
    ("images", "with_reference"): f"${{ImagesTable.Arn}}/index/{REFERENCES_INDEX}",
    ("endpoints", "due"): f"${{EndpointsTable.Arn}}/index/{endpoints_table.DUE_INDEX}",
    ("deliveries", "due"): f"${{DeliveriesTable.Arn}}/index/{deliveries_table.DUE_INDEX}",
    ("batches", "due"): f"${{BatchesTable.Arn}}/index/{batches_table.DUE_INDEX}",
    ("batches", "waiting"): f"${{BatchesTable.Arn}}/index/{batches_table.WAITING_INDEX}",
    ("batches", "of_tenant"): f"${{BatchesTable.Arn}}/index/{batches_table.LISTED_INDEX}",
    ("image_listing", "between"): f"${{ImagesTable.Arn}}/index/{LISTED_INDEX}",
    ("deliveries", "of_image"): f"${{DeliveriesTable.Arn}}/index/{deliveries_table.IMAGE_INDEX}",
}
"""The index that a port's method reads."""


BEYOND_THE_CODE: dict[str, set[Grant]] = {
    "submit_image": {
        # Without it S3 answers 403 for an object that does not exist.
        ("s3:ListBucket", "${OriginalsBucket.Arn}"),
        ("dynamodb:GetItem", "${UsageTable.Arn}"),
    },
    "begin_upload": {("dynamodb:GetItem", "${UsageTable.Arn}"), ("s3:ListBucket", "${UploadsBucket.Arn}")},
    "hold_images": {("s3:ListBucket", "${HoldsBucket.Arn}")},
    "accept_upload": {("s3:ListBucket", "${UploadsBucket.Arn}"), ("s3:ListBucket", "${OriginalsBucket.Arn}")},
    # Which buckets tenants' imports may name only an operator knows.
    "fetch_original": {("s3:ListBucket", "${OriginalsBucket.Arn}"), ("s3:GetObject", "${ImportBuckets}")},
    "sweep_due_images": {
        ("s3:ListBucket", "${UploadsBucket.Arn}"),
        ("dynamodb:DeleteItem", "${IdempotencyTable.Arn}"),
    },
    "sweep_due_endpoints": {("dynamodb:GetItem", "${EndpointsTable.Arn}")},
    "read_image": {
        ("lambda:InvokeFunction", "${Edge[4]}"),
        ("s3:ListBucket", "${OutputsBucket.Arn}"),
        ("dynamodb:GetItem", "${UsageTable.Arn}"),
        ("dynamodb:Query", f"${{ImagesTable.Arn}}/index/{NEWEST_INDEX}"),
    },
    "release_images": {("s3:ListBucket", "${HoldsBucket.Arn}")},
    # A transaction changes and removes items, too.
    "count_batches": {("dynamodb:UpdateItem", "${BatchesTable.Arn}"), ("dynamodb:DeleteItem", "${BatchesTable.Arn}")},
    "sweep_due_bulk": {("dynamodb:DeleteItem", "${BatchesTable.Arn}"), ("s3:ListBucket", "${UploadsBucket.Arn}")},
    "count_usage": {("dynamodb:UpdateItem", "${UsageTable.Arn}")},
    "deliver_event": {("dynamodb:GetItem", "${EndpointsTable.Arn}")},
    "manage_webhooks": {("dynamodb:GetItem", "${EndpointsTable.Arn}")},
    "transcode_image": {
        ("s3:ListBucket", "${OriginalsBucket.Arn}"),
        ("s3:ListBucketVersions", "${OriginalsBucket.Arn}"),  # it reads one version
        ("dynamodb:GetItem", "${IdempotencyTable.Arn}"),  # Powertools asks its layer for it
        ("sqs:ChangeMessageVisibility", "${EditsQueue.Arn}"),  # as of a lane
    },
    "make_variant": {
        ("s3:ListBucket", "arn:${AWS::Partition}:s3:::${OriginalsBucketName}"),
        ("s3:ListBucketVersions", "arn:${AWS::Partition}:s3:::${OriginalsBucketName}"),
        # What is put has a tag.
        ("s3:PutObjectTagging", f"arn:${{AWS::Partition}}:s3:::${{OutputsBucketName}}/public/{'?' * 26}/t*/*"),
    },
}
"""What a role allows besides what its ports call: to tell what is missing (aws/kernel/missing.py), what the version
before calls (a role changes before its function does), and what Powertools has called."""


@dataclass(frozen=True)
class Module:
    """A module's top-level definitions by name, and the origin of the names that it imports from its neighbours."""

    definitions: dict[str, ast.AST]
    imports: dict[str, Path]


@functools.cache
def module(path: Path) -> Module:
    tree = ast.parse(path.read_text())
    definitions: dict[str, ast.AST] = {
        node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }
    imports = {
        alias.asname or alias.name: CORE.joinpath(*node.module.split(".")[1:]).with_suffix(".py")
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        and node.module
        and node.module.startswith(("darkroom.operations.", "darkroom.http."))
        for alias in node.names
    }
    return Module(definitions=definitions, imports=imports)


def port_calls(path: Path, name: str, seen: set[tuple[Path, str]]) -> Iterator[tuple[str, str]]:
    """The ports' methods that a definition uses, as ("images", "get")."""
    here = module(path)
    if (path, name) in seen or name not in here.definitions:  # a constant calls nothing
        return
    seen.add((path, name))
    for node in ast.walk(here.definitions[name]):
        if isinstance(node, ast.Attribute) and (port := _last_name(node.value)) in ADAPTERS:
            yield port, node.attr
        elif isinstance(node, ast.Attribute) and node.attr in ("change_visibility", "hide"):
            yield "lanes", "change_visibility"
        elif isinstance(node, ast.Attribute) and node.attr == "pauses":
            yield "known_pauses", "all"
        elif isinstance(node, ast.Attribute) and node.attr == "is_suspended":
            yield "tenants", "tenant"
        elif isinstance(node, ast.Attribute) and node.attr == "has_recipient":
            yield from port_calls(WEBHOOKS / "find_recipient.py", "has_recipient", seen)
        elif isinstance(node, ast.Attribute) and node.attr in ("join_batch", "has_turn"):
            yield from port_calls(BULK / "join_batch.py", node.attr, seen)
        elif isinstance(node, ast.Attribute) and node.attr == "cleanups":
            yield from port_calls(WEBHOOKS / "blank_deliveries.py", "blank_deliveries", seen)
        elif isinstance(node, ast.Name) and node.id in here.definitions:
            yield from port_calls(path, node.id, seen)
        elif isinstance(node, ast.Name) and node.id in here.imports:
            yield from port_calls(here.imports[node.id], node.id, seen)


def client_calls(path: Path, method: str, members: dict[str, ast.AST], seen: set[str]) -> Iterator[str]:
    """The permissions that an adapter's method, or a function next to it, needs: those of its own calls to a client,
    and those of the helpers that it calls."""
    if method in seen:
        return
    seen.add(method)
    known = module(path).definitions | members
    for node in ast.walk(known[method]):
        match node:
            case ast.Call(func=ast.Attribute(value=receiver, attr=name), args=arguments, keywords=keywords):
                if (_last_name(receiver) or "").endswith("client"):
                    if name in ("get_paginator", "generate_presigned_url"):
                        name = ast.literal_eval(arguments[0])
                    versioned = any(keyword.arg == "VersionId" for keyword in keywords)
                    yield ACTIONS[name] + ("Version" if versioned else "")
                elif _last_name(receiver) == "rows":
                    yield from client_calls(VERSIONED_ROWS, name, members_of(VERSIONED_ROWS, "VersionedRows"), set())
                elif _last_name(receiver) == "self" and name in members:
                    yield from client_calls(path, name, members, seen)
            case ast.Call(func=ast.Name(id="remove_objects")):  # aws/kernel/removal.py
                yield "s3:DeleteObjectVersion" if method == "remove_versions" else "s3:DeleteObject"
            case ast.Call(func=ast.Name(id="remove_items")):
                yield "dynamodb:BatchWriteItem"
            case ast.Call(func=ast.Name(id="items_at")):  # aws/kernel/errors.py
                yield "dynamodb:BatchGetItem"
            case ast.Call(func=ast.Name(id=name)) if name in module(path).definitions:
                yield from client_calls(path, name, members, seen)


def members_of(path: Path, class_name: str) -> dict[str, ast.AST]:
    """The methods of a class by name."""
    children = ast.iter_child_nodes(module(path).definitions[class_name])
    return {node.name: node for node in children if isinstance(node, ast.FunctionDef)}


def _last_name(node: ast.AST) -> str | None:
    """`images` of `images`, `self._images` and `stores.images`."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.removeprefix("_")
        case _:
            return None


def needed(folder: str) -> set[Grant]:
    """The AWS permissions that the function's code needs."""
    app = ROOT / "functions" / folder / "app.py"
    by_name = [
        CORE.joinpath(*name.split(".")).with_suffix(".py")
        for name in re.findall(r'load_part\("([\w.]+)"\)', app.read_text())
    ]
    calls = {
        call for path in (app, *by_name) for name in module(path).definitions for call in port_calls(path, name, set())
    }
    known = RESOURCES | RESOURCES_OF_THE_CORE if folder in DELIVERY_FOLDERS else RESOURCES
    grants: set[Grant] = set()
    for port, method in calls:
        file, class_name = ADAPTERS[port]
        (path,) = CORE.glob(f"aws/*/{file}.py")
        for action in client_calls(path, method, members_of(path, class_name), set()):
            if action.startswith("s3:List"):
                on = {resource.split("/")[0] for resource in known[port]}
            elif action.startswith("sns:") and port == "followers":
                on = RESOURCES["topic"]
            elif action == "states:DescribeExecution":
                on = {EXECUTIONS}
            elif action in ("dynamodb:Query", "dynamodb:Scan") and (port, method) in INDEXES:
                on = {INDEXES[port, method]}
            elif port == "rejected_messages":
                named = {queue.replace("EditsQueue", "SlowQueue") for queue in sources_of(folder)}
                on = {queue.replace("Queue", "DeadLetters") for queue in named}
            else:
                on = known[port]
            if action in ("sqs:SendMessage", "sns:Publish") and port in SIGNED:
                grants |= {("secretsmanager:GetSecretValue", key) for key in RESOURCES["message_keys"]}
            grants |= {(action, resource) for resource in on}
    return grants


def needed_by_lambda(folder: str) -> set[Grant]:
    """The permissions that Lambda needs on the function's behalf: for its log, its traces, and its source queues and
    streams.

    https://docs.aws.amazon.com/lambda/latest/dg/lambda-intro-execution-role.html and
    https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html#events-sqs-permissions and
    https://docs.aws.amazon.com/lambda/latest/dg/services-dynamodb-eventsourcemapping.html#events-dynamodb-permissions
    """
    name, sources = name_of(folder), sources_of(folder)
    is_traced = folder not in DELIVERY_FOLDERS
    streams = {source for source in sources if source.endswith(".StreamArn}")}
    queues = sources - streams
    return {
        *((f"logs:{action}", f"${{{name}Logs.Arn}}") for action in ("CreateLogStream", "PutLogEvents")),
        *((f"xray:{action}", "*") for action in ("PutTraceSegments", "PutTelemetryRecords") if is_traced),
        *(
            (f"sqs:{action}", queue)
            for queue in queues
            for action in ("ReceiveMessage", "DeleteMessage", "GetQueueAttributes")
        ),
        *(
            (f"dynamodb:{action}", stream)
            for stream in streams
            for action in ("DescribeStream", "GetRecords", "GetShardIterator")
        ),
        *(("dynamodb:ListStreams", "*") for _ in streams),
    }


def sources_of(folder: str) -> set[str]:
    """The ARNs of the queues and streams that invoke the function."""
    return {
        _text(source["EventSourceArn"])
        for template in (TEMPLATE, DELIVERY)
        for source in resources("AWS::Lambda::EventSourceMapping", template).values()
        if source["FunctionName"] == {"Ref": f"{name_of(folder)}Function"}
    }


def needed_of_the_key(folder: str) -> set[Grant]:
    """What a stack of delivery grants on the core's key to who uses its tables; the core has a policy for all of its
    roles (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/encryption.usagenotes.html)."""
    if folder not in DELIVERY_FOLDERS or not any(action.startswith("dynamodb:") for action, _ in needed(folder)):
        return set()
    names = "Encrypt", "Decrypt", "ReEncryptFrom", "ReEncryptTo", "GenerateDataKey", "GenerateDataKeyWithoutPlaintext"
    reads_objects = any(action.startswith("s3:GetObject") for action, _ in needed(folder))
    former = {("kms:Decrypt", "${FormerKeys}")} if reads_objects else set()
    return {(f"kms:{name}", "${KeyArn}") for name in (*names, "DescribeKey")} | former


CALLS_NOTHING = {"serve_page"}
"""The functions that have all that they need in their layers."""


@pytest.mark.parametrize("folder", [*FUNCTION_FOLDERS, *DELIVERY_FOLDERS])
def test_a_role_allows_what_its_function_calls_and_nothing_else(folder: str) -> None:
    assert bool(needed(folder)) != (folder in CALLS_NOTHING), "the reading has found nothing: something was renamed"
    allowed = needed(folder) | needed_by_lambda(folder) | BEYOND_THE_CODE.get(folder, set()) | needed_of_the_key(folder)
    assert granted(f"{name_of(folder)}FunctionRole", optional=True) == allowed


def test_the_state_machine_may_do_what_its_definition_does_and_nothing_else() -> None:
    definition = (ROOT / "statemachines" / "hold_batch.asl.yaml").read_text()
    assert set(re.findall(r"Resource: (\S+)", definition)) == {
        "${ReleaseImagesFunctionArn}",
        "arn:${Partition}:states:::sqs:sendMessage",
    }
    assert granted("HoldBatchStateMachineRole") == {
        ("lambda:InvokeFunction", "${ReleaseImagesFunction.Arn}"),
        ("sqs:SendMessage", "${HoldDeadLetters.Arn}"),
        *((action, "*") for action in LOG_DELIVERIES),
    }


@pytest.mark.guards("objects-worker-may-not-list")
@pytest.mark.parametrize("folder", ["read_image", "transcode_image"])
def test_who_looks_for_outputs_knows_whether_it_may_list_them(folder: str) -> None:
    (file,) = CORE.glob(f"wiring/*/{folder}.py")
    wiring = ast.parse(file.read_text())
    (outputs,) = [
        node for node in ast.walk(wiring) if isinstance(node, ast.Call) and _last_name(node.func) == "OutputsBucket"
    ]
    may_list = {keyword.arg: ast.literal_eval(keyword.value) for keyword in outputs.keywords}.get("may_list", True)
    listed = [
        prefix
        for statement in statements(f"{name_of(folder)}FunctionRole")
        if statement["Action"] == "s3:ListBucket" and statement["Resource"] == {"Fn::GetAtt": ["OutputsBucket", "Arn"]}
        for prefix in _listed(statement["Condition"]["StringLike"]["s3:prefix"])
    ]
    assert may_list == (f"outputs/{'?' * 26}/*" in listed), "all of them, and not only what an edge reads"


A_WHOLE_KEY = {
    "Uploads": [f"uploads/{'?' * 26}", f"imports/{'?' * 29}/*"],
    "Originals": f"originals/{'?' * 26}",
    "Outputs": [f"{prefix}{'?' * 26}/*" for prefix in PREFIXES.values()],
    "Holds": f"holds/*/{'?' * 40}.json.gz",
}
"""The prefixes that may be listed, by bucket: each has a whole id, so that nothing is found by listing."""


def bucket_of(statement: Mapping[str, Any]) -> str:
    """The bucket that a statement is about."""
    return _text(statement["Resource"]).removeprefix("${").partition(".")[0]


LISTS_ALL = {"ListOriginals": "originals/", "ListVariants": [*PREFIXES.values()]}
"""What the reconciliation lists: all there is."""


def test_the_reconciliation_can_read_and_remove_no_picture() -> None:
    objects = {action for action, resource in granted("SweepDueBulkFunctionRole") if "UploadsBucket" not in resource}
    assert {action for action in objects if action.startswith("s3:")} == {"s3:ListBucket", "s3:ListBucketVersions"}
    assert ("dynamodb:DeleteItem", "${ImagesTable.Arn}") not in granted("SweepDueBulkFunctionRole")


def test_a_role_lists_a_bucket_only_under_a_whole_id() -> None:
    for role in resources("AWS::IAM::Role"):
        for statement in statements(role, optional=True):
            if any(action.startswith("s3:List") for action in _listed(statement["Action"])):
                (prefix,) = [
                    prefix for bucket, prefix in A_WHOLE_KEY.items() if f"{bucket}Bucket" in str(statement["Resource"])
                ]
                ((prefixes,),) = (condition.values() for condition in statement["Condition"].values())
                if statement["Sid"] in LISTS_ALL:
                    assert bucket_of(statement) in LISTED_WHOLE[role]
                    assert statement["Condition"] == {"StringEquals": {"s3:prefix": LISTS_ALL[statement["Sid"]]}}
                    continue
                assert statement["Condition"].keys() == {"StringLike"}, statement["Sid"]
                assert {*_listed(prefixes)} <= {*_listed(prefix)}, statement["Sid"]


def calls_by_messages() -> dict[str, set[str]]:
    """The functions that each function may invoke by what it sends to a queue or a topic or stores in a bucket: what
    Lambda follows. It does not follow tables, their streams, and executions of Step Functions."""
    receivers = {source: folder for folder in FUNCTION_FOLDERS for source in sources_of(folder)}
    queues: dict[str, set[str]] = {queue: {queue} for queue in receivers}
    for subscription in resources("AWS::SNS::Subscription").values():
        if subscription["Protocol"] == "sqs":
            queue = subscription["Endpoint"]["Fn::Select"][1][0]
            queues.setdefault(_text(subscription["TopicArn"]), set()).add(_text(queue))
    for bucket, properties in resources("AWS::S3::Bucket").items():
        for configuration in properties.get("NotificationConfiguration", {}).get("QueueConfigurations", []):
            queues.setdefault(f"${{{bucket}.Arn}}", set()).add(_text(configuration["Queue"]))
    sends = {"sqs:SendMessage", "sns:Publish", "s3:PutObject"}
    return {
        folder: {
            receivers[queue]
            for action, resource in granted(f"{name_of(folder)}FunctionRole")
            if action in sends
            for queue in queues.get(resource.split("/")[0], ())
        }
        for folder in FUNCTION_FOLDERS
    }


def test_lambda_lets_those_functions_go_round_that_call_themselves_on_purpose_and_no_others() -> None:
    """Lambda drops what a function sends itself after about 16 rounds
    (https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html)."""
    calls = calls_by_messages()
    assert calls["publish_events"] == {"count_usage", "create_deliveries"}
    assert "accept_upload" in calls["begin_upload"], "by the form that it signs"

    def reached(folder: str) -> set[str]:
        reached, new = set[str](), calls[folder]
        while new:
            reached |= new
            new = {called for function in new for called in calls[function]} - reached
        return reached

    going_round = {folder for folder in FUNCTION_FOLDERS if folder in reached(folder)}
    functions = resources("AWS::Lambda::Function")
    allowed = {folder: functions[f"{name_of(folder)}Function"].get("RecursiveLoop") for folder in FUNCTION_FOLDERS}
    assert allowed == {folder: "Allow" if folder in going_round else None for folder in FUNCTION_FOLDERS}
    assert going_round == {"deliver_event"}
