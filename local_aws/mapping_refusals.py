"""How an event source mapping is refused that a request or a stack creates or updates."""

from collections.abc import Callable, Mapping
from typing import Any

from local_aws.cloudformation_refusals import refusal
from local_aws.ministack_internals import internals, replace, replace_resource_handler

_RESOURCE_TYPE = "AWS::Lambda::EventSourceMapping"


def refuse_mappings(reason_to_refuse: Callable[[Mapping[str, Any]], str | None], *, prefix_in_stacks: str = "") -> None:
    """Refuse each mapping for which `reason_to_refuse` returns a message, which the events of stacks give after
    `prefix_in_stacks`. It gets the mapping as it will be, in the words of the API."""

    def create_after_check(create: Any) -> Any:
        def create_mapping(request: dict[str, Any]) -> Any:
            return _error_response(reason_to_refuse(request)) or create(request)

        return create_mapping

    def update_after_check(update: Any) -> Any:
        def update_mapping(mapping_id: str, request: dict[str, Any]) -> Any:
            current = internals("services.lambda_svc")._esms.get(mapping_id) or {}
            return _error_response(reason_to_refuse({**current, **request})) or update(mapping_id, request)

        return update_mapping

    def handle_after_check(position: int) -> Any:
        def build(original: Any) -> Any:
            def call(*arguments: Any) -> Any:
                if message := reason_to_refuse(arguments[position]):
                    raise refusal("Lambda", f"{prefix_in_stacks}{message}")
                return original(*arguments)

            return call

        return build

    lambda_service = internals("services.lambda_svc")
    replace(lambda_service, "_create_esm", create_after_check)
    replace(lambda_service, "_update_esm", update_after_check)
    replace_resource_handler(_RESOURCE_TYPE, "create", handle_after_check(1))
    replace_resource_handler(_RESOURCE_TYPE, "update", handle_after_check(2))


def function_of(mapping: Mapping[str, Any]) -> Mapping[str, Any]:
    """The configuration of the mapping's function, which is empty if there is none."""
    lambda_service = internals("services.lambda_svc")
    name, qualifier = lambda_service._resolve_name_and_qualifier(mapping.get("FunctionName", ""))
    _, configuration = lambda_service._get_func_record_for_qualifier(name, qualifier)
    return configuration or {}


def _error_response(message: str | None) -> Any:
    return message and internals("core.responses").error_response_json("InvalidParameterValueException", message, 400)
