"""Stands in for `aws`, which no package index has for this Python: calls the operation with the options' values.

Of what `aws` does beyond the services' own operations it has `s3 rb --force`, and of `cloudformation deploy` the change
set.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import boto3
from botocore import xform_name


def main(service: str, operation: str, *arguments: str) -> None:
    """Runs one command."""
    given = dict(_options(arguments))
    session: Any = boto3.session.Session()
    client = session.client(service, region_name=given.pop("region", None))
    if (service, operation) == ("s3", "rb"):
        bucket = session.resource("s3").Bucket(arguments[0].removeprefix("s3://"))
        if "force" in given:
            bucket.objects.delete()
        bucket.delete()
    elif (service, operation) == ("cloudformation", "deploy"):
        parameters = [text.split("=", 1) for text in str(given["parameter-overrides"]).split()]
        client.create_change_set(
            StackName=given["stack-name"],
            ChangeSetName="deploy",
            ChangeSetType="CREATE",
            TemplateBody=Path(str(given["template-file"])).read_text(),
            Parameters=[{"ParameterKey": name, "ParameterValue": value} for name, value in parameters],
        )
    else:
        name = operation.replace("-", "_")
        model = client.meta.service_model.operation_model(client.meta.method_to_api_mapping[name])
        members = {xform_name(member, "-"): member for member in model.input_shape.members}
        if service == "sns":  # `aws` renames it, since `--endpoint-url` begins alike
            members["notification-endpoint"] = "Endpoint"
        answer = getattr(client, name)(**{members[option]: value for option, value in given.items()})
        print(json.dumps(answer, default=str))


def _options(arguments: Sequence[str]) -> Iterator[tuple[str, str | bool]]:
    words = [(position, word) for position, word in enumerate(arguments) if word.startswith("--")]
    ends = [*(position for position, _ in words[1:]), len(arguments)][: len(words)]
    for (position, word), end in zip(words, ends, strict=True):
        value = " ".join(arguments[position + 1 : end])
        name = word.removeprefix("--")
        yield (name, value) if value else (name.removeprefix("no-"), not name.startswith("no-"))


if __name__ == "__main__":
    main(*sys.argv[1:])
