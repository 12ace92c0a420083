"""Creates the routes, authorizers and CORS configuration of an HTTP API from its OpenAPI `Body`.

Gap: MiniStack drops the `Body` of `AWS::ApiGatewayV2::Api`, which is all that `AWS::Serverless::HttpApi` expands to;
the stack succeeds and every route answers 404.
AWS: the body is imported when the API is created, and again when it is updated, under the same API id.
https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-open-api.html
https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-swagger-extensions.html
https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-swagger-extensions-authorizer.html

What still differs from AWS: a function may be invoked as an authorizer without the permission that AWS requires
(tests/unit/test_template.py checks that it is there), and a token without `exp` never expires.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace_resource_handler

_RESOURCE_TYPE = "AWS::ApiGatewayV2::Api"
_METHODS = {name: name.upper() for name in ("get", "put", "post", "delete", "options", "head", "patch", "trace")}
_METHODS["x-amazon-apigateway-any-method"] = "ANY"

# The names of the extension's types where authorizers are resources, and the type of a route that uses one.
_AUTHORIZER_TYPES = {"request": "REQUEST", "jwt": "JWT"}
_AUTHORIZATION_TYPES = {"REQUEST": "CUSTOM", "JWT": "JWT"}


@dataclass(frozen=True, kw_only=True)
class ImportedRoute:
    """One operation of the OpenAPI body, as API Gateway imports it."""

    route_key: str
    authorization_type: str
    authorizer: str | None
    integration: Mapping[str, Any] | None


def apply(emulator: Emulator) -> None:
    """Import the body whenever CloudFormation creates or updates an HTTP API."""
    replace_resource_handler(_RESOURCE_TYPE, "create", _create_with_body)
    replace_resource_handler(_RESOURCE_TYPE, "update", _update_with_body)


def _create_with_body(create: Any) -> Any:
    def create_api(logical_id: str, properties: dict[str, Any], stack_name: str) -> Any:
        body = properties.get("Body") or {}
        routes = list(imported_routes(body))  # Refuses an invalid body before anything is created.
        api_id, attributes = create(logical_id, _with_imported_properties(properties, body), stack_name)
        _reconcile_routes(api_id, [], routes, _reconcile_authorizers(api_id, body))
        return api_id, attributes

    return create_api


def _update_with_body(update: Any) -> Any:
    def update_api(
        api_id: str,
        old_properties: dict[str, Any],
        new_properties: dict[str, Any],
        stack_name: str,
        logical_id: str | None = None,
    ) -> Any:
        old_body, new_body = old_properties.get("Body") or {}, new_properties.get("Body") or {}
        routes = list(imported_routes(new_body))
        updated_id, attributes = update(
            api_id,
            _with_imported_properties(old_properties, old_body),
            _with_imported_properties(new_properties, new_body),
            stack_name,
            logical_id,
        )
        old_route_keys = [route.route_key for route in imported_routes(old_body)]
        _reconcile_routes(updated_id, old_route_keys, routes, _reconcile_authorizers(updated_id, new_body))
        return updated_id, attributes

    return update_api


def imported_routes(body: Mapping[str, Any]) -> Iterator[ImportedRoute]:
    """Read the routes that API Gateway creates from an OpenAPI body."""
    schemes = _security_schemes(body)
    for path, operations in (body.get("paths") or {}).items():
        for name, method in _METHODS.items():
            operation = (operations or {}).get(name)
            if operation is None:
                continue
            is_default = operation.get("isDefaultRoute") or path in ("$default", "/$default")
            route_key = "$default" if is_default else f"{method} {path}"
            authorization_type, authorizer = _authorization(
                route_key, operation.get("security", body.get("security")), schemes
            )
            yield ImportedRoute(
                route_key=route_key,
                authorization_type=authorization_type,
                authorizer=authorizer,
                integration=_integration(route_key, operation.get("x-amazon-apigateway-integration")),
            )


def imported_authorizers(body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Read the authorizers that API Gateway creates from an OpenAPI body's security schemes."""
    for name, scheme in _security_schemes(body).items():
        extension = scheme.get("x-amazon-apigateway-authorizer")
        kind = _AUTHORIZER_TYPES.get(str((extension or {}).get("type", "")).lower())
        if extension is None or kind is None:
            continue
        sources = extension.get("identitySource") or []
        renamed = {
            "name": name,
            "authorizerType": kind,
            "identitySource": [source.strip() for source in sources.split(",")]
            if isinstance(sources, str)
            else sources,
            "authorizerCredentialsArn": extension.get("authorizerCredentials"),
        }
        kept = ("authorizerUri", "authorizerPayloadFormatVersion", "enableSimpleResponses", "jwtConfiguration")
        # CloudFormation may pass numbers as text.
        numbers = {"authorizerResultTtlInSeconds": int(extension.get("authorizerResultTtlInSeconds", 300))}
        copied = {option: extension[option] for option in kept if option in extension}
        yield {option: value for option, value in {**renamed, **numbers, **copied}.items() if value is not None}


def _security_schemes(body: Mapping[str, Any]) -> Mapping[str, Any]:
    return (body.get("components") or {}).get("securitySchemes") or {}


def _authorization(route_key: str, security: Any, schemes: Mapping[str, Any]) -> tuple[str, str | None]:
    """The route's authorization type, and the name of its authorizer if it has one."""
    required = [name for requirement in security or [] for name in requirement]
    if not required:
        return "NONE", None
    (name, *others) = required
    scheme = schemes.get(name, {})
    if not others and str(scheme.get("x-amazon-apigateway-authtype", "")).lower() == "awssigv4":
        return "AWS_IAM", None
    kind = str(scheme.get("x-amazon-apigateway-authorizer", {}).get("type", "")).lower()
    if not others and kind in _AUTHORIZER_TYPES:
        return _AUTHORIZATION_TYPES[_AUTHORIZER_TYPES[kind]], name
    # Silently skipping an authorizer would open the route.
    raise ValueError(
        f"Route '{route_key}' requires the security scheme '{', '.join(required)}', and the embedded AWS knows only "
        "one a route: x-amazon-apigateway-authtype awsSigv4, or x-amazon-apigateway-authorizer of type request or jwt. "
        "Extend local_aws/shims/http_api_body.py."
    )


def _integration(route_key: str, extension: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if extension is None:
        return None
    integration_type = str(extension.get("type", "")).upper()
    if integration_type == "AWS_PROXY" and str(extension.get("payloadFormatVersion")) != "2.0":
        raise ValueError(
            f"Route '{route_key}' needs payloadFormatVersion 2.0, the only one that the embedded AWS speaks."
        )
    renamed = {
        "integrationType": integration_type,
        "integrationUri": extension.get("uri"),
        "integrationMethod": extension.get("httpMethod"),
    }
    kept = ("payloadFormatVersion", "timeoutInMillis", "requestParameters", "responseParameters", "connectionType")
    copied = {name: extension[name] for name in kept if name in extension}
    return {name: value for name, value in {**renamed, **copied}.items() if value is not None}


def _with_imported_properties(properties: dict[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
    if not body:
        return properties
    info = body.get("info") or {}
    imported = {
        "Name": info.get("title"),
        "Version": info.get("version"),
        "Description": info.get("description"),
        "CorsConfiguration": body.get("x-amazon-apigateway-cors"),
    }
    return {**{name: value for name, value in imported.items() if value}, **properties}


def _reconcile_authorizers(api_id: str, body: Mapping[str, Any]) -> dict[str, str]:
    """Make the API's authorizers match the body; return their ids by name. An unchanged one keeps its id."""
    api_gateway = internals("services.apigateway")
    existing = {
        (authorizer["name"], authorizer["authorizerType"]): authorizer["authorizerId"]
        for authorizer in api_gateway._authorizers.get(api_id, {}).values()
    }
    ids = {}
    for settings in imported_authorizers(body):
        authorizer_id = existing.pop((settings["name"], settings["authorizerType"]), None)
        if authorizer_id is None:
            made = _checked(api_gateway._create_authorizer(api_id, settings))
        else:
            made = _checked(api_gateway._update_authorizer(api_id, authorizer_id, settings))
        ids[settings["name"]] = made["authorizerId"]
    for authorizer_id in existing.values():
        api_gateway._delete_authorizer(api_id, authorizer_id)
    return ids


def _reconcile_routes(
    api_id: str, old_route_keys: list[str], routes: list[ImportedRoute], authorizer_ids: Mapping[str, str]
) -> None:
    api_gateway = internals("services.apigateway")
    existing = {route["routeKey"]: route for route in api_gateway._routes.get(api_id, {}).values()}
    for route_key in set(old_route_keys) - {route.route_key for route in routes}:
        if removed := existing.get(route_key):
            api_gateway._delete_route(api_id, removed["routeId"])
            api_gateway._delete_integration(api_id, _integration_id(removed))
    for route in routes:
        old = existing.get(route.route_key)
        settings = {
            "routeKey": route.route_key,
            "authorizationType": route.authorization_type,
            "authorizerId": "" if route.authorizer is None else authorizer_ids[route.authorizer],
            "target": _reconcile_integration(api_id, old, route.integration),
        }
        if old:
            _checked(api_gateway._update_route(api_id, old["routeId"], settings))
        else:
            _checked(api_gateway._create_route(api_id, settings))


def _reconcile_integration(api_id: str, route: Any, integration: Mapping[str, Any] | None) -> str:
    api_gateway = internals("services.apigateway")
    if route:
        api_gateway._delete_integration(api_id, _integration_id(route))
    if integration is None:
        return ""
    return f"integrations/{_checked(api_gateway._create_integration(api_id, integration))['integrationId']}"


def _integration_id(route: Mapping[str, Any]) -> str:
    return str(route.get("target", "")).removeprefix("integrations/")


def _checked(response: tuple[int, Any, bytes]) -> Any:
    status, _, payload = response
    if status >= 400:
        raise ValueError(f"API Gateway refused a part of the imported body: {payload.decode()}")
    return json.loads(payload)
