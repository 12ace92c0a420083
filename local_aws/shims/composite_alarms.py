"""Lets stacks have composite alarms, and describes the alarms above and below one.

Gap: MiniStack evaluates composite alarms, but refuses them in a stack, and DescribeAlarms ignores ChildrenOfAlarmName
and ParentsOfAlarmName. (What a notification says of a composite alarm is in alarm_evaluation.)
AWS: CloudFormation creates them, named like other resources. Both parameters stand alone, besides those of pages; they
return the names and ARNs of an alarm's relatives, and of children the state.
https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-cloudwatch-compositealarm.html
https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_DescribeAlarms.html

What still differs from AWS: a suppressor of actions is refused.
"""

import json
from collections.abc import Mapping
from typing import Any

from local_aws.cloudformation_refusals import refusal
from local_aws.emulator import Emulator
from local_aws.ministack_internals import add_resource_type, internals, replace

_TYPE = "AWS::CloudWatch::CompositeAlarm"
_LONGEST_NAME = 255
_CONFIGURATION = ("AlarmRule", "AlarmDescription", "AlarmActions", "OKActions", "InsufficientDataActions")
_RELATIONS = ("ChildrenOfAlarmName", "ParentsOfAlarmName")
_OF_PARENTS = ("AlarmName", "AlarmArn")
_OF_CHILDREN = ("StateValue", "StateUpdatedTimestamp")
_PAGES = ("MaxRecords", "NextToken")
_DEFAULT_PAGE = 50


def apply(emulator: Emulator) -> None:
    """Add the type of resource, and answer requests for relatives."""
    add_resource_type(_TYPE, create=_create, update=_update, delete=_delete)
    internals("services.cloudformation.provisioners")._STACK_TAG_PROPERTY[_TYPE] = ("Tags", "list")
    replace(internals("services.cloudwatch"), "_describe_alarms", _with_relatives)


# ── In a stack ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _create(logical_id: str, properties: Mapping[str, Any], stack_name: str) -> tuple[str, dict[str, str]]:
    return _put(_name(logical_id, properties, stack_name), properties)


def _update(
    physical_id: str, old: Mapping[str, Any], new: Mapping[str, Any], stack_name: str, logical_id: str
) -> tuple[str, dict[str, str]]:
    replaced = internals("services.cloudformation.provisioners")._rename_replacement(
        *(physical_id, old, new, stack_name, logical_id),
        *(_name(logical_id, new, stack_name), physical_id, _create, _delete),
    )
    return replaced or _put(physical_id, new)


def _delete(physical_id: str, properties: Mapping[str, Any]) -> None:
    _request("_delete_alarms", {"AlarmNames": [physical_id]})


def _name(logical_id: str, properties: Mapping[str, Any], stack_name: str) -> str:
    generate = internals("services.cloudformation.provisioners")._physical_name
    return str(properties.get("AlarmName") or generate(stack_name, logical_id, max_len=_LONGEST_NAME))


def _put(name: str, properties: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    if unknown := [key for key in properties if key.startswith("ActionsSuppressor")]:
        raise refusal("CloudWatch", f"the embedded AWS does not suppress actions: leave out {', '.join(unknown)}")
    cloudwatch = internals("services.cloudwatch")
    configuration = {key: properties[key] for key in _CONFIGURATION if properties.get(key)}
    are_enabled = str(properties.get("ActionsEnabled", True)).lower() == "true"
    _request("_put_composite_alarm", {"AlarmName": name, "ActionsEnabled": are_enabled, **configuration})
    cloudwatch.cloudformation_set_metric_alarm_tags(name, properties.get("Tags") or [])
    return name, {"Arn": cloudwatch._composite_alarms[name]["AlarmArn"]}


def _request(operation: str, parameters: Mapping[str, Any]) -> None:
    status, _, body = getattr(internals("services.cloudwatch"), operation)({}, parameters, False, is_json=True)
    if status >= 300:
        raise refusal("CloudWatch", json.loads(body)["message"])


# ── Relatives ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _with_relatives(describe: Any) -> Any:
    def describe_alarms(query: Any, parameters: Any, is_cbor: bool, is_json: bool = False) -> Any:
        cloudwatch = internals("services.cloudwatch")
        # The query protocol has lists of values, and the names Action and Version.
        asked = (
            parameters
            if is_cbor or is_json
            else {key: cloudwatch._p(query, key) for key in query if key not in ("Action", "Version")}
        )
        asked = {key: value for key, value in asked.items() if value is not None}
        if asked.keys().isdisjoint(_RELATIONS):
            return describe(query, parameters, is_cbor, is_json)
        encoding = {"use_json": is_json, "use_cbor": is_cbor}
        if len(asked.keys() - _PAGES) > 1:  # guard: emulator-alarm-relations-alone
            message = f"{' and '.join(_RELATIONS)} can be combined with nothing but {' and '.join(_PAGES)}."
            return cloudwatch._error("ValidationError", message, 400, **encoding)
        if invalid := cloudwatch._max_records_error(asked.get("MaxRecords")):
            return cloudwatch._error("ValidationError", invalid, 400, **encoding)
        return _answer(_page(asked), is_cbor, is_json)

    return describe_alarms


def _page(asked: Mapping[str, Any]) -> dict[str, Any]:
    cloudwatch = internals("services.cloudwatch")
    metric_alarms, composites = cloudwatch._alarms, cloudwatch._composite_alarms
    if "ChildrenOfAlarmName" in asked:
        members = [*_OF_PARENTS, *_OF_CHILDREN]
        parent = composites.get(asked["ChildrenOfAlarmName"])
        names = cloudwatch._composite_children(parent) if parent else []
    else:
        members = [*_OF_PARENTS]
        child = asked["ParentsOfAlarmName"]
        names = [name for name, alarm in composites.items() if child in cloudwatch._composite_children(alarm)]
    # As in MiniStack's other pages, the token is the name of the next alarm.
    listed = sorted(name for name in names if name >= asked.get("NextToken", ""))
    size = int(asked.get("MaxRecords") or _DEFAULT_PAGE)
    page: dict[str, Any] = {
        kind: [{member: alarms[name][member] for member in members} for name in listed[:size] if name in alarms]
        for kind, alarms in (("MetricAlarms", metric_alarms), ("CompositeAlarms", composites))
    }
    return page | ({"NextToken": listed[size]} if len(listed) > size else {})


def _answer(page: dict[str, Any], is_cbor: bool, is_json: bool) -> Any:
    cloudwatch = internals("services.cloudwatch")
    if is_cbor:
        kinds = ("MetricAlarms", "CompositeAlarms")
        return cloudwatch._cbor_ok(
            page | {kind: [cloudwatch._cbor_alarm(alarm) for alarm in page[kind]] for kind in kinds}
        )
    if is_json:
        return cloudwatch._json_ok(page)
    return cloudwatch._xml(
        200, "DescribeAlarmsResponse", f"<DescribeAlarmsResult>{_written(page)}</DescribeAlarmsResult>"
    )


def _written(value: Any) -> str:
    """A page as elements of the query protocol."""
    cloudwatch = internals("services.cloudwatch")
    if isinstance(value, dict):
        moments = {key: cloudwatch._ts_iso(each) for key, each in value.items() if key.endswith("Timestamp")}
        return "".join(f"<{key}>{_written(each)}</{key}>" for key, each in {**value, **moments}.items())
    if isinstance(value, list):
        return "".join(f"<member>{_written(each)}</member>" for each in value)
    return str(cloudwatch._xml_escape(str(value)))
