"""Accepts a state machine definition in a YAML file.

Gap: MiniStack keeps the text of a definition in S3 as it is, and every execution of a YAML definition fails.
AWS: "The state machine definition must be a JSON or YAML file."; the state machine stores it as JSON.
https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-stepfunctions-statemachine-s3location.html
"""

import json
from typing import Any

import yaml

from local_aws.cloudformation_refusals import refusal
from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace


def apply(emulator: Emulator) -> None:
    """Translate the definition whenever a stack's resource gets one."""
    replace(internals("services.cloudformation.provisioners"), "_sfn_definition", _in_json)


def _in_json(read: Any) -> Any:
    def read_definition(properties: dict[str, Any]) -> str:
        text: str = read(properties)
        try:
            return json.dumps(yaml.safe_load(text))  # JSON is YAML too
        except yaml.YAMLError as error:
            raise refusal("Sfn", f"Invalid State Machine Definition: neither JSON nor YAML: {error}") from error

    return read_definition
