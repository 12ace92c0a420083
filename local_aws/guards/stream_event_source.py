"""Refuses an event source mapping whose function's role may not read the stream, or send what is discarded.

Gap: MiniStack lets every mapping of its own account read and send, also if it evaluates IAM.
AWS: the execution role needs DescribeStream, GetRecords, GetShardIterator and ListStreams for the stream, and
SendMessage or Publish for the on-failure destination; a mapping without them is not created.
https://docs.aws.amazon.com/lambda/latest/dg/services-dynamodb-eventsourcemapping.html (permissions)
https://docs.aws.amazon.com/lambda/latest/dg/services-dynamodb-errors.html

What still differs from AWS: a mapping whose role loses its rights later goes on. The keys of encrypted destinations are
not asked for. AWS documents what is needed, but not the wording of the refusals.
"""

from collections.abc import Mapping
from typing import Any

from local_aws.emulator import Emulator
from local_aws.mapping_refusals import function_of, refuse_mappings
from local_aws.ministack_internals import internals

_READING = ("GetRecords", "GetShardIterator", "DescribeStream", "ListStreams")


def apply(emulator: Emulator) -> None:
    """Check each mapping that a request or a stack creates or updates."""
    refuse_mappings(_reason_to_refuse)


def _reason_to_refuse(mapping: Mapping[str, Any]) -> str | None:
    stream_arn = mapping.get("EventSourceArn", "")
    role_arn = str(function_of(mapping).get("Role", ""))
    if not internals("app").AUTH or ":dynamodb:" not in stream_arn or not role_arn:
        return None
    if not all(_allows(role_arn, f"dynamodb:{action}", stream_arn) for action in _READING):
        return (
            f"Cannot access stream {stream_arn}. Please ensure the role can perform the "
            f"{', '.join(_READING[:-1])}, and {_READING[-1]} Actions on your stream in IAM."
        )
    destination = ((mapping.get("DestinationConfig") or {}).get("OnFailure") or {}).get("Destination") or ""
    for service, action in (("sqs", "SendMessage"), ("sns", "Publish")):
        if f":{service}:" in destination and not _allows(role_arn, f"{service}:{action}", destination):
            return f"The function execution role does not have permissions to call {action} on {destination}"
    return None


def _allows(role_arn: str, action: str, resource_arn: str) -> bool:
    evaluator = internals("core.iam_evaluator")
    account_id, name = role_arn.split(":")[4], role_arn.rpartition("/")[2]
    context = evaluator.EvalContext(
        principal_arn=f"arn:aws:sts::{account_id}:assumed-role/{name}/lambda",
        principal_type="AssumedRole",
        principal_account=account_id,
        action=action,
        resource_arn=resource_arn,
        region=resource_arn.split(":")[3],
    )
    boundaries = evaluator._permissions_boundary(internals("services.iam")._roles, name, account_id)
    decided = evaluator.evaluate(context, evaluator._gather_role_policies(name, account_id), *boundaries)
    return bool(decided.decision == "Allow")
