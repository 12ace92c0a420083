"""Lets the items of a stack's table expire as its template says.

Gap: MiniStack ignores TimeToLiveSpecification when a stack creates or updates a table, so nothing in it ever expires.
AWS: items whose attribute of that name is in the past are removed within a few days; without the property none are.
https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-dynamodb-table-timetolivespecification.html

What still differs from AWS: items are removed within a minute of their time, also those whose time is more than five
years past, which AWS keeps.
"""

from typing import Any

from local_aws.emulator import Emulator
from local_aws.ministack_internals import after_stack_sets, internals
from local_aws.stream_batches import is_true


def apply(emulator: Emulator) -> None:
    """Tell DynamoDB whenever a stack creates or changes a table."""
    after_stack_sets("AWS::DynamoDB::Table", _let_expire)


def _let_expire(table_name: str, properties: dict[str, Any]) -> None:
    dynamodb = internals("services.dynamodb")
    wanted = properties.get("TimeToLiveSpecification")
    if wanted and is_true(wanted["Enabled"]):
        specification = {"AttributeName": wanted["AttributeName"], "Enabled": True}
        dynamodb._update_ttl({"TableName": table_name, "TimeToLiveSpecification": specification})
    else:
        dynamodb._ttl_settings.pop(table_name, None)
