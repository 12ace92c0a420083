"""The only access to MiniStack, which publishes no types: shims and guards replace its parts through this module."""

import importlib
from collections.abc import Callable
from typing import Any


def internals(name: str) -> Any:
    """Return MiniStack's module of that name, such as `services.sqs`."""
    return importlib.import_module(f"ministack.{name}")


def replace(module: Any, attribute: str, build: Callable[[Any], Any]) -> None:
    """Replace a module's attribute by `build(original)`."""
    if not hasattr(module, attribute):
        raise AttributeError(
            f"{module.__name__} has no '{attribute}' any more: MiniStack changed. "
            "Compare the shim that replaces it with the new source, and drop the shim if its test of the gap went red."
        )
    setattr(module, attribute, build(getattr(module, attribute)))


def replace_resource_handler(resource_type: str, action: str, build: Callable[[Any], Any]) -> None:
    """Replace the function with which CloudFormation handles `create`, `update` or `delete` by `build(original)`."""
    handlers = internals("services.cloudformation.provisioners")._RESOURCE_HANDLERS[resource_type]
    handlers[action] = build(handlers[action])
