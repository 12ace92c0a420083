"""Writes botocore's models of the services that Darkroom calls in the form in which `darkroom.aws.kernel.models` loads
them.

botocore has them as compressed JSON with their documentation, whose reading is a tenth of a cold start.

    python models.py PACKAGES FOLDER
"""

from __future__ import annotations

import marshal
import sys
from pathlib import Path
from typing import Any

SERVICES = ("cloudfront", "dynamodb", "lambda", "s3", "secretsmanager", "sns", "sqs", "stepfunctions")


def main(packages: str, folder: str) -> None:
    """Writes the models of the botocore in `packages` to the same places in `folder`."""
    sys.path.insert(0, packages)
    import botocore  # noqa: PLC0415 -- that of `packages`
    from botocore.loaders import Loader  # noqa: PLC0415

    loader = Loader(include_default_search_paths=False, extra_search_paths=[Loader.BUILTIN_DATA_PATH])
    documents = {"endpoints": of_services(loader.load_data("endpoints"))}
    for service in SERVICES:
        for kind in ("service-2", "endpoint-rule-set-1"):
            name = f"{service}/{loader.determine_latest_version(service, kind)}/{kind}"
            documents[name] = loader.load_data(name)
    for name, document in documents.items():
        file = Path(folder, "botocore", "data", f"{name}.{botocore.__version__}.marshal")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(marshal.dumps(without_documentation(document)))


def without_documentation(document: Any) -> Any:
    """The same with empty texts for people, since botocore requires some of them; a member that happens to have that
    name is no text."""
    if isinstance(document, list):
        return [without_documentation(element) for element in document]
    if not isinstance(document, dict):
        return document
    return {
        name: "" if name == "documentation" and isinstance(value, str) else without_documentation(value)
        for name, value in document.items()
    }


def of_services(endpoints: dict[str, Any]) -> dict[str, Any]:
    """The same with these services alone; botocore makes the usual address of a service that is not listed."""
    listed = {"states" if service == "stepfunctions" else service for service in SERVICES}
    for partition in endpoints["partitions"]:
        services = partition["services"]
        partition["services"] = {name: services[name] for name in listed & services.keys()}
    return endpoints


if __name__ == "__main__":
    main(*sys.argv[1:])
