"""Powertools' idempotency without its stores: its package imports that of DynamoDB, and so boto3 with s3transfer and
multiprocessing, a fifteenth of a worker's start."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from types import ModuleType

_PACKAGE = "aws_lambda_powertools.utilities.idempotency"


@contextmanager
def _without_stores() -> Iterator[None]:
    """In this block the package's modules are imported without the package's own. After it, the package is as it was:
    an import of it imports all."""
    spec = None if _PACKAGE in sys.modules else find_spec(_PACKAGE)
    if spec is None or spec.submodule_search_locations is None:
        yield
        return
    stand_in = ModuleType(_PACKAGE)
    stand_in.__path__ = spec.submodule_search_locations
    sys.modules[_PACKAGE] = stand_in
    try:
        yield
    finally:
        del sys.modules[_PACKAGE]


with _without_stores():
    from aws_lambda_powertools.utilities.idempotency.config import IdempotencyConfig
    from aws_lambda_powertools.utilities.idempotency.exceptions import IdempotencyItemAlreadyExistsError
    from aws_lambda_powertools.utilities.idempotency.idempotency import idempotent_function
    from aws_lambda_powertools.utilities.idempotency.persistence.base import BasePersistenceLayer
    from aws_lambda_powertools.utilities.idempotency.persistence.datarecord import STATUS_CONSTANTS, DataRecord

__all__ = [
    "STATUS_CONSTANTS",
    "BasePersistenceLayer",
    "DataRecord",
    "IdempotencyConfig",
    "IdempotencyItemAlreadyExistsError",
    "idempotent_function",
]
