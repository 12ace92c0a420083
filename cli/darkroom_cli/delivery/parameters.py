"""The parameters that extensions/delivery.yaml takes from the stack whose images it delivers."""

from __future__ import annotations

from collections.abc import Mapping

_SAME = (
    *("OriginalsBucketName", "OutputsBucketName", "OutputsBucketDomainName", "ImagesTableName", "TenantsTableName"),
    *("TokenBucketsTableName", "KeyArn"),
)
_SHARED = ("Architecture", "PermissionsBoundary", "RolePath", "FormerKeys")


def delivery_stack_of(core: str) -> str:
    """The name of the stack that delivers the images of a stack."""
    return f"{core}-delivery"


def parameters_of(core: str, outputs: Mapping[str, str], parameters: Mapping[str, str]) -> dict[str, str]:
    """The delivery stack's parameters, by the name, the outputs and the parameters of the other one."""
    return {
        "CoreStack": core,
        **{name: outputs[name] for name in _SAME if outputs.get(name)},
        "AlarmTopic": outputs["WarningAlarmsTopicArn"],
        **{name: parameters[name] for name in _SHARED if parameters.get(name)},
    }
