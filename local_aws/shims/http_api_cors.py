"""Answers CORS preflights as an HTTP API does, and routes OPTIONS like any other method if CORS is not configured.

Gap: MiniStack answers every OPTIONS request itself: with 403 if the API has no CORS configuration or the origin is not
allowed. It reads the configuration of a raw `AWS::ApiGatewayV2::Api` only in lower camel case, and adds CORS headers to
all answers if every origin is allowed.
AWS: with a CORS configuration the gateway answers the preflight with 204, and an origin that is not allowed gets no
CORS headers; without one, OPTIONS is an ordinary request, and its route decides. "To return CORS headers, your request
must contain an origin header."
https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-cors.html
"""

from typing import Any

from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace, replace_resource_handler

# MiniStack compares the method with "OPTIONS" before it looks up a route. A trailing space gets a request past that
# comparison; the two functions that read the method afterwards strip it again.
_ROUTED_OPTIONS = "OPTIONS "

_API = "AWS::ApiGatewayV2::Api"


def apply(emulator: Emulator) -> None:
    """Replace MiniStack's answer to OPTIONS."""
    api_gateway = internals("services.apigateway")
    replace(api_gateway, "_handle_execute_in_scope", _route_options_without_cors)
    replace(api_gateway, "_match_route", _with_method_at(1))
    replace(api_gateway, "_invoke_lambda_proxy", _with_method_at(4))
    replace(api_gateway, "_cors_preflight_response", _answer_preflight)
    replace(api_gateway, "_cors_response_headers", _only_with_an_origin)
    replace_resource_handler(_API, "create", _with_camel_case_cors_at(1))
    replace_resource_handler(_API, "update", _with_camel_case_cors_at(2))


def _route_options_without_cors(execute: Any) -> Any:
    async def execute_in_scope(api_id: str, stage: str, path: str, method: str, *arguments: Any) -> Any:
        if method == "OPTIONS" and not internals("services.apigateway")._apis.get(api_id, {}).get("corsConfiguration"):
            method = _ROUTED_OPTIONS
        return await execute(api_id, stage, path, method, *arguments)

    return execute_in_scope


def _with_method_at(position: int) -> Any:
    def build(original: Any) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            return original(*arguments[:position], arguments[position].strip(), *arguments[position + 1 :], **options)

        return call

    return build


def _answer_preflight(answer: Any) -> Any:
    def answer_preflight(configuration: dict[str, Any], origin: str) -> Any:
        status, headers, body = answer(configuration, origin)
        return (204, {}, b"") if status == 403 else (status, headers, body)

    return answer_preflight


def _only_with_an_origin(build: Any) -> Any:
    def cors_response_headers(configuration: dict[str, Any], origin: str) -> Any:
        return build(configuration, origin) if origin else {}

    return cors_response_headers


def _with_camel_case_cors_at(position: int) -> Any:
    def build(original: Any) -> Any:
        def call(*arguments: Any) -> Any:
            properties = arguments[position]
            if isinstance(configuration := properties.get("CorsConfiguration"), dict):
                camel_case = {name[:1].lower() + name[1:]: value for name, value in configuration.items()}
                properties = {**properties, "CorsConfiguration": camel_case}
            return original(*arguments[:position], properties, *arguments[position + 1 :])

        return call

    return build
