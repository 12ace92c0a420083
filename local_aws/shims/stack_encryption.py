"""Encrypts the buckets and tables of a stack as its template says.

Gap: MiniStack ignores BucketEncryption and SSESpecification when a stack creates a bucket or a table, and on an update
of SSESpecification notes only that there was one.
AWS: they say whether everything in them is encrypted, and by which KMS key.
https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-s3-bucket-bucketencryption.html
https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-dynamodb-table-ssespecification.html
"""

from functools import partial
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring

from local_aws.cloudformation_refusals import refusal
from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace_resource_handler

_BUCKET, _TABLE = "AWS::S3::Bucket", "AWS::DynamoDB::Table"


def apply(emulator: Emulator) -> None:
    """Tell the stores whenever a stack creates or changes one."""
    for resource_type, encrypt in ((_BUCKET, _encrypt_bucket), (_TABLE, _encrypt_table)):
        replace_resource_handler(resource_type, "create", partial(_creating, encrypt))
        replace_resource_handler(resource_type, "update", partial(_updating, encrypt))


def _creating(encrypt: Any, create: Any) -> Any:
    def create_encrypted(logical_id: str, properties: dict[str, Any], stack_name: str) -> Any:
        made = create(logical_id, properties, stack_name)
        encrypt(made[0], properties)
        return made

    return create_encrypted


def _updating(encrypt: Any, update: Any) -> Any:
    def update_encrypted(
        physical_id: str, old: dict[str, Any], new: dict[str, Any], stack_name: str, *further: Any, **named: Any
    ) -> Any:
        changed = update(physical_id, old, new, stack_name, *further, **named)
        encrypt(changed[0], new)
        return changed

    return update_encrypted


def _encrypt_bucket(name: str, properties: dict[str, Any]) -> None:
    s3 = internals("services.s3")
    rules = properties.get("BucketEncryption", {}).get("ServerSideEncryptionConfiguration")
    if not rules:
        s3._bucket_encryption.pop(name, None)
        return
    root = Element("ServerSideEncryptionConfiguration", xmlns="http://s3.amazonaws.com/doc/2006-03-01/")
    for rule in rules:
        written = SubElement(root, "Rule")
        by_default = SubElement(written, "ApplyServerSideEncryptionByDefault")
        for field, value in rule["ServerSideEncryptionByDefault"].items():
            SubElement(by_default, field).text = value
        SubElement(written, "BucketKeyEnabled").text = str(rule.get("BucketKeyEnabled", False)).lower()
    answer = s3._put_bucket_encryption(name, tostring(root))
    if answer[0] >= 300:
        raise refusal("S3", f"the encryption of {name} was refused: {answer[2]!r}")


def _encrypt_table(name: str, properties: dict[str, Any]) -> None:
    dynamodb = internals("services.dynamodb")
    said = properties.get("SSESpecification")
    # A template calls it SSEEnabled, the API Enabled.
    specification = said and {**said, "Enabled": said["SSEEnabled"]}
    dynamodb._tables[name]["SSEDescription"] = dynamodb._sse_description_from_spec(specification)
