"""Lets a stack's tables say whether they can be recovered, as their template says, and copies of them whose they are.

Gap: MiniStack ignores PointInTimeRecoverySpecification when a stack creates or updates a table, so
DescribeContinuousBackups says DISABLED of each. It restores any table all the same, and DescribeTable has no
RestoreSummary of the copy.
AWS: the table has point-in-time recovery if the property says so; a table without it cannot be restored
(PointInTimeRecoveryUnavailableException); a copy names the table that it was restored from, and the time.
https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-dynamodb-table-pointintimerecoveryspecification.html
https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_RestoreTableToPointInTime.html
https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_RestoreSummary.html

What still differs from AWS: a copy is of the present, whatever time was asked for, and it is there at once.
"""

import time
from typing import Any

from local_aws.emulator import Emulator
from local_aws.ministack_internals import after_stack_sets, internals, replace
from local_aws.stream_batches import is_true

dynamodb = internals("services.dynamodb")


def apply(emulator: Emulator) -> None:
    """Tell DynamoDB whenever a stack creates or changes a table, and have it say what it restored."""
    after_stack_sets("AWS::DynamoDB::Table", _set_recovery)
    replace(dynamodb, "_restore_table_to_point_in_time", _restored)
    replace(dynamodb, "_table_description", _described)


def _set_recovery(table_name: str, properties: dict[str, Any]) -> None:
    wanted = properties.get("PointInTimeRecoverySpecification", {}).get("PointInTimeRecoveryEnabled", False)
    specification = {"PointInTimeRecoveryEnabled": is_true(wanted)}
    dynamodb._update_continuous_backups({"TableName": table_name, "PointInTimeRecoverySpecification": specification})


def _restored(restore: Any) -> Any:
    def restore_table(data: dict[str, Any]) -> Any:
        source = data.get("SourceTableName") or dynamodb._normalize_table_name(data.get("SourceTableArn") or "")
        if source in dynamodb._tables and not dynamodb._pitr_settings.get(source):
            message = f"Point in time recovery is not enabled for table '{source}'"
            return dynamodb.error_response_json("PointInTimeRecoveryUnavailableException", message, 400)
        answer = restore(data)
        if answer[0] != 200:
            return answer
        dynamodb._tables[data["TargetTableName"]]["RestoreSummary"] = {
            "SourceTableArn": dynamodb._tables[source]["TableArn"],
            "RestoreDateTime": data.get("RestoreDateTime") or int(time.time()),
            "RestoreInProgress": False,
        }
        return dynamodb.json_response({"TableDescription": dynamodb._table_description(data["TargetTableName"])})

    return restore_table


def _described(describe: Any) -> Any:
    def table_description(name: str) -> Any:
        summary = dynamodb._tables[name].get("RestoreSummary")
        return describe(name) | ({} if summary is None else {"RestoreSummary": summary})

    return table_description
