"""Lets the items of a stack's table expire as its template says.

Gap: MiniStack ignores TimeToLiveSpecification when a stack creates or updates a table, so nothing in it ever expires.
AWS: items whose attribute of that name is in the past are removed within a few days; without the property none are.
https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-dynamodb-table-timetolivespecification.html

What still differs from AWS: items are removed within a minute of their time, also those whose time is more than five
years past, which AWS keeps.
"""

from typing import Any

from embedded_aws.emulator import Emulator
from embedded_aws.ministack_internals import internals, replace_resource_handler
from embedded_aws.stream_batches import is_true

_TABLE = "AWS::DynamoDB::Table"


def apply(emulator: Emulator) -> None:
    """Tell DynamoDB whenever a stack creates or changes a table."""
    replace_resource_handler(_TABLE, "create", _creating)
    replace_resource_handler(_TABLE, "update", _updating)


def _creating(create: Any) -> Any:
    def create_table(logical_id: str, properties: dict[str, Any], *arguments: Any, **options: Any) -> Any:
        made = create(logical_id, properties, *arguments, **options)
        _let_expire(made[0], properties)
        return made

    return create_table


def _updating(update: Any) -> Any:
    def update_table(
        physical_id: str, old: dict[str, Any], new: dict[str, Any], *arguments: Any, **options: Any
    ) -> Any:
        changed = update(physical_id, old, new, *arguments, **options)
        _let_expire(changed[0], new)
        return changed

    return update_table


def _let_expire(table_name: str, properties: dict[str, Any]) -> None:
    dynamodb = internals("services.dynamodb")
    wanted = properties.get("TimeToLiveSpecification")
    if wanted and is_true(wanted["Enabled"]):
        specification = {"AttributeName": wanted["AttributeName"], "Enabled": True}
        dynamodb._update_ttl({"TableName": table_name, "TimeToLiveSpecification": specification})
    else:
        dynamodb._ttl_settings.pop(table_name, None)
