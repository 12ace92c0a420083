"""Lets a stack's tables say whether they can be recovered, as their template says.

Gap: MiniStack ignores PointInTimeRecoverySpecification when a stack creates or updates a table, so
DescribeContinuousBackups says DISABLED of each.
AWS: the table has point-in-time recovery if the property says so.
https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-dynamodb-table-pointintimerecoveryspecification.html

What still differs from AWS: nothing that can be recovered is kept.
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
        _set_recovery(made[0], properties)
        return made

    return create_table


def _updating(update: Any) -> Any:
    def update_table(
        physical_id: str, old: dict[str, Any], new: dict[str, Any], *arguments: Any, **options: Any
    ) -> Any:
        changed = update(physical_id, old, new, *arguments, **options)
        _set_recovery(changed[0], new)
        return changed

    return update_table


def _set_recovery(table_name: str, properties: dict[str, Any]) -> None:
    wanted = properties.get("PointInTimeRecoverySpecification", {}).get("PointInTimeRecoveryEnabled", False)
    specification = {"PointInTimeRecoveryEnabled": is_true(wanted)}
    internals("services.dynamodb")._update_continuous_backups(
        {"TableName": table_name, "PointInTimeRecoverySpecification": specification}
    )
