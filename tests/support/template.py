"""What several tests read from template.yaml and the template of delivery."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from repository.expand_template import DELIVERY, TEMPLATE, is_optional, raw_template, resources

PAGE_ROUTES = frozenset(f"{method} {path}" for method in ("GET", "HEAD") for path in ("/app", "/app/{path+}"))
"""The routes of the page, which asks for a credential itself."""

LOG_DELIVERIES = (
    *("logs:CreateLogDelivery", "logs:GetLogDelivery", "logs:UpdateLogDelivery", "logs:DeleteLogDelivery"),
    *("logs:ListLogDeliveries", "logs:PutResourcePolicy", "logs:DescribeResourcePolicies", "logs:DescribeLogGroups"),
)
"""What a state machine needs for its log (https://docs.aws.amazon.com/step-functions/latest/dg/cw-logs.html)."""


def unless_polled(source: dict[str, Any]) -> dict[str, Any]:
    """The bound of an event source without provisioned pollers."""
    match source["ScalingConfig"]:
        case {"Fn::If": [_, {}, bound]} | bound:
            return dict(bound)


DELETERS = {
    "OriginalsBucket": ("AcceptUploadFunctionRole", "SweepDueImagesFunctionRole"),
    "OutputsBucket": ("TranscodeImageFunctionRole", "SweepDueImagesFunctionRole"),
}
"""The functions that delete from each bucket that is written once."""


def _folders(template: Path) -> list[str]:
    functions = raw_template(template)["Resources"].values()
    return sorted(Path(each["Properties"]["CodeUri"]).name for each in functions if each["Type"] == FUNCTION)


FUNCTION = "AWS::Serverless::Function"

FUNCTION_FOLDERS = _folders(TEMPLATE)

DELIVERY_FOLDERS = _folders(DELIVERY)
"""The functions that only a stack of delivery has."""

type Grant = tuple[str, str]
"""An action and its resources."""


def name_of(folder: str) -> str:
    """submit_image → SubmitImage."""
    return "".join(word.capitalize() for word in folder.split("_"))


def statements(role: str, *, optional: bool = False) -> list[dict[str, Any]]:
    """The statements of a role; with `optional`, also those that it has only if a parameter asks for them."""
    return [
        statement["Fn::If"][1] if is_optional(statement) else statement
        for policy in _roles()[role]["Policies"]
        for statement in policy["PolicyDocument"]["Statement"]
        if optional or not is_optional(statement)
    ]


@cache
def _roles() -> dict[str, dict[str, Any]]:
    return resources("AWS::IAM::Role") | resources("AWS::IAM::Role", DELIVERY)


def granted(role: str, without: str | None = None, *, optional: bool = False) -> set[Grant]:
    """What a role allows without one statement."""
    return {
        (action, _text(resource))
        for statement in statements(role, optional=optional)
        if without is None or statement["Sid"] != without
        for action in _listed(statement["Action"])
        for resource in _listed(statement["Resource"])
    }


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _text(resource: Any) -> str:
    match resource:
        case {"Ref": name}:
            return f"${{{name}}}"
        case {"Fn::GetAtt": [name, attribute]}:
            return f"${{{name}.{attribute}}}"
        case {"Fn::Sub": text}:
            return str(text)
        case {"Fn::Select": [int(place), {"Fn::Split": [",", {"Fn::Sub": "${Edge},,,,,"}]}]}:
            return f"${{Edge[{place}]}}"
        case _:
            return str(resource)


def functions_of_the_core() -> list[str]:
    """Those of the functions without a condition."""
    return [
        Path(resource["Properties"]["CodeUri"]).name
        for resource in raw_template()["Resources"].values()
        if resource["Type"] == FUNCTION and "Condition" not in resource
    ]
