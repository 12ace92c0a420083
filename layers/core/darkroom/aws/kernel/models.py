"""botocore's models of the services, loaded faster than botocore does."""

from __future__ import annotations

import marshal
from typing import Any

import botocore
from botocore.loaders import JSONFileLoader, Loader

SERVICES = ("cloudfront", "dynamodb", "lambda", "s3", "secretsmanager", "sns", "sqs", "stepfunctions")


class _Files(JSONFileLoader):
    """Prefers a model that the layer of bytecode has for exactly this botocore (layers/bytecode/models.py)."""

    def load_file(self, file_path: str) -> Any:
        try:
            # guard: cold-start-botocore-version
            with open(f"{file_path}.{botocore.__version__}.marshal", "rb") as file:  # noqa: PTH123 -- thrice as fast
                return marshal.load(file)  # noqa: S302 -- as trusted as the bytecode beside it
        except FileNotFoundError:
            return super().load_file(file_path)


class ModelLoader(Loader):
    """Knows which services are used here: botocore would list the folders of 400 to see whether these are there."""

    FILE_LOADER_CLASS = _Files

    def list_available_services(self, type_name: str) -> list[str]:
        return [*SERVICES]
