"""Encrypts a stack's topics as its template says.

Gap: MiniStack ignores KmsMasterKeyId when a stack creates or updates a topic, so GetTopicAttributes names no key.
AWS: the topic is encrypted with that key.
https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-sns-topic.html

What still differs from AWS: nothing is encrypted here, and the key is not asked for.
"""

from typing import Any

from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace_resource_handler

_TOPIC, _KEY = "AWS::SNS::Topic", "KmsMasterKeyId"


def apply(emulator: Emulator) -> None:
    """Note the key whenever a stack creates or changes a topic."""
    replace_resource_handler(_TOPIC, "create", _creating)
    replace_resource_handler(_TOPIC, "update", _updating)


def _creating(create: Any) -> Any:
    def create_topic(logical_id: str, properties: dict[str, Any], *arguments: Any, **options: Any) -> Any:
        made = create(logical_id, properties, *arguments, **options)
        _set_key(made[0], properties)
        return made

    return create_topic


def _updating(update: Any) -> Any:
    def update_topic(
        physical_id: str, old: dict[str, Any], new: dict[str, Any], *arguments: Any, **options: Any
    ) -> Any:
        changed = update(physical_id, old, new, *arguments, **options)
        _set_key(changed[0], new)
        return changed

    return update_topic


def _set_key(topic_arn: str, properties: dict[str, Any]) -> None:
    attributes = internals("services.sns")._topics[topic_arn]["attributes"]
    if properties.get(_KEY):
        attributes[_KEY] = properties[_KEY]
    else:
        attributes.pop(_KEY, None)
