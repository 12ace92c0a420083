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


def after_stack_sets(resource_type: str, act: Callable[[str, dict[str, Any]], None]) -> None:
    """Call `act(physical_id, properties)` whenever a stack has created or updated a resource of the type."""

    def creating(create: Any) -> Any:
        def create_and_act(logical_id: str, properties: dict[str, Any], *arguments: Any, **options: Any) -> Any:
            made = create(logical_id, properties, *arguments, **options)
            act(made[0], properties)
            return made

        return create_and_act

    def updating(update: Any) -> Any:
        def update_and_act(
            physical_id: str, old: dict[str, Any], new: dict[str, Any], *arguments: Any, **options: Any
        ) -> Any:
            changed = update(physical_id, old, new, *arguments, **options)
            act(changed[0], new)
            return changed

        return update_and_act

    replace_resource_handler(resource_type, "create", creating)
    replace_resource_handler(resource_type, "update", updating)


def add_resource_type(
    resource_type: str, *, create: Callable[..., Any], update: Callable[..., Any], delete: Callable[..., Any]
) -> None:
    """Let stacks have resources of a type that MiniStack does not know.

    `create(logical_id, properties, stack_name)` and `update(physical_id, old, new, stack_name, logical_id)` return the
    physical id and the attributes; `delete(physical_id, properties)` returns nothing.
    """
    handlers = internals("services.cloudformation.provisioners")._RESOURCE_HANDLERS
    if resource_type in handlers:
        raise AttributeError(
            f"MiniStack knows '{resource_type}' now. Compare the shim that adds it, and drop what MiniStack does."
        )
    handlers[resource_type] = {"create": create, "update": update, "update_with_logical_id": True, "delete": delete}
