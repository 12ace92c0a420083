"""Lets a stack's tables say whether they can be recovered, as their template says.

Gap: MiniStack ignores PointInTimeRecoverySpecification when a stack creates or updates a table, so
DescribeContinuousBackups says DISABLED of each.
AWS: the table has point-in-time recovery if the property says so.
https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-dynamodb-table-pointintimerecoveryspecification.html

What still differs from AWS: nothing that can be recovered is kept.
"""

from typing import Any

from embedded_aws.emulator import Emulator
from embedded_aws.ministack_internals import after_stack_sets, internals
from embedded_aws.stream_batches import is_true


def apply(emulator: Emulator) -> None:
    """Tell DynamoDB whenever a stack creates or changes a table."""
    after_stack_sets("AWS::DynamoDB::Table", _set_recovery)


def _set_recovery(table_name: str, properties: dict[str, Any]) -> None:
    wanted = properties.get("PointInTimeRecoverySpecification", {}).get("PointInTimeRecoveryEnabled", False)
    specification = {"PointInTimeRecoveryEnabled": is_true(wanted)}
    internals("services.dynamodb")._update_continuous_backups(
        {"TableName": table_name, "PointInTimeRecoverySpecification": specification}
    )
