"""Checks permission for the customer's key when IAM is evaluated and a bucket, queue or table is encrypted with one.

Gap: MiniStack records which key a store has, but checks nobody's permission to use it.
AWS: S3, SQS and DynamoDB call KMS on behalf of their caller, and fail if the caller may not use the key; a service that
calls in its own name must be named in the key's policy.
https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingKMSEncryption.html (Permissions)
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-key-management.html
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/encryption.usagenotes.html
https://docs.aws.amazon.com/sns/latest/dg/sns-key-management.html

What still differs from AWS: nothing is encrypted. KMS is asked every time, as if no data key were ever cached, and also
for objects that do not exist. The error is the store's own, about its own action. Log groups check nobody.
"""

from typing import Any

from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace

_OF_OBJECTS_AND_MESSAGES = {
    "s3:PutObject": ("kms:GenerateDataKey",),
    "s3:GetObject": ("kms:Decrypt",),
    "s3:GetObjectVersion": ("kms:Decrypt",),
    "sqs:SendMessage": ("kms:GenerateDataKey", "kms:Decrypt"),
    "sqs:ReceiveMessage": ("kms:Decrypt",),
}
_OF_ROWS = ("kms:Decrypt",)
_ROW_ACTIONS = ("Item", "Query", "Scan", "WriteItem")


def apply(emulator: Emulator) -> None:
    """Evaluate the permission for the key after that for the store."""
    replace(internals("core.iam_evaluator"), "enforce", _with_the_key)
    replace(internals("services.sqs"), "queue_policy_allows", lambda allows: _for_services(allows, _key_of_queue))
    replace(internals("services.sns"), "topic_policy_allows", lambda allows: _for_services(allows, _key_of_topic))


def _with_the_key(enforce: Any) -> Any:
    def enforce_with_the_key(
        access_key_id: str, iam_action: str, service: str, region: str, resource_arn: str = "*", **options: Any
    ) -> Any:
        denied = enforce(access_key_id, iam_action, service, region, resource_arn=resource_arn, **options)
        for key_action in _needed(iam_action):
            key = _key_of(service, resource_arn)
            if denied or key is None:
                break
            context = {"kms:ViaService": f"{service}.{region}.amazonaws.com"}
            # The caller is known by now; a form request, whose signature is in its fields, counts as anonymous.
            anonymous = internals("core.iam_evaluator")._anonymous
            token = anonymous.set(False)
            try:
                denied = enforce(access_key_id, key_action, "kms", region, resource_arn=key, service_context=context)
            finally:
                anonymous.reset(token)
        return denied

    return enforce_with_the_key


def _needed(action: str) -> tuple[str, ...]:
    service, _, name = action.partition(":")
    if service == "dynamodb":
        return _OF_ROWS if name.endswith(_ROW_ACTIONS) else ()
    return _OF_OBJECTS_AND_MESSAGES.get(action, ())


def _key_of(service: str, resource_arn: str) -> str | None:
    match service:
        case "s3":
            bucket = resource_arn.rpartition(":")[2].split("/")[0]
            headers = internals("services.s3")._bucket_default_sse_headers(bucket)
            key: str | None = headers.get("x-amz-server-side-encryption-aws-kms-key-id")
            return key
        case "sqs":
            return _key_of_queue(resource_arn)
        case "dynamodb":
            name = resource_arn.partition(":table/")[2].split("/")[0]
            table = internals("services.dynamodb")._tables.get(name) or {}
            row_key: str | None = (table.get("SSEDescription") or {}).get("KMSMasterKeyArn")
            return row_key
        case _:
            return None


def _key_of_queue(arn: str) -> str | None:
    queue = internals("services.sqs")._queue_by_arn(arn)
    return None if queue is None else queue["attributes"].get("KmsMasterKeyId") or None


def _key_of_topic(arn: str) -> str | None:
    topic = internals("services.sns")._topic_by_arn_any_scope(arn)
    return None if topic is None else topic["attributes"].get("KmsMasterKeyId") or None


def _for_services(allows: Any, key_of: Any) -> Any:
    """A service that delivers in its own name: both the target's policy and the key's must name it."""

    def allows_with_the_key(target_arn: str, service: str, source_arn: str, source_account: str) -> bool:
        if not allows(target_arn, service, source_arn, source_account):
            return False
        key = key_of(target_arn)
        if key is None or not internals("app").AUTH:
            return True
        evaluator, kms = internals("core.iam_evaluator"), internals("services.kms")
        policy = (kms.key_policy_for_arn(key) or ("",))[0]
        return all(
            evaluator.evaluate_resource_policy(
                policy, _context(action, key, source_arn, source_account), service=service
            ).decision
            == "Allow"
            for action in ("kms:GenerateDataKey", "kms:Decrypt")
        )

    return allows_with_the_key


def _context(action: str, key: str, source_arn: str, source_account: str) -> Any:
    return internals("core.iam_evaluator").EvalContext(
        principal_arn="*",
        principal_type="Service",
        principal_account="",
        action=action,
        resource_arn=key,
        region=internals("core.responses").get_region(),
        service_context={"aws:sourcearn": source_arn, "aws:sourceaccount": source_account},
    )
