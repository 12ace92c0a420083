"""Resources of small HTTP APIs, as `AWS::Serverless::HttpApi` expands to them."""

from typing import Any
from uuid import uuid4

from local_aws.tests.emulator_server import EmulatorServer, create_function, function_resource

# Answers with its event, or as the event's query asks.
ECHO = """
import json, time

def handler(event, context):
    query = event.get("queryStringParameters") or {}
    if "malformed" in query:
        return {"statusCode": "no number"}
    time.sleep(float(query.get("sleep", 0)))
    if "fail" in query:
        raise KeyError("the function's own business")
    print("invoked")
    event = {**event, "body": len(event.get("body") or "")}
    headers = {"Content-Type": "application/json", "Connection": "close", "X-Echo": "yes"}
    return {"statusCode": int(query.get("status", 200)), "headers": headers, "body": json.dumps(event)}
"""

INTEGRATION = {
    "type": "aws_proxy",
    "httpMethod": "POST",
    "payloadFormatVersion": "2.0",
    "uri": {"Fn::Sub": "arn:aws:apigateway:${AWS::Region}:lambda:path/2015-03-31/functions/${Echo.Arn}/invocations"},
}
# Allows "open", with something that distinguishes invocations.
GATE = """
import os

def handler(event, context):
    (word,) = event["identitySource"]
    if word == "fail":
        raise KeyError("the authorizer's own business")
    if word == "nonsense":
        return {"isAuthorized": "yes"}
    context = {"asked": os.urandom(8).hex(), "path": event["rawPath"], "burst": 5}
    return {"isAuthorized": word == "open", "context": context}
"""

AUTHORIZER = {
    "type": "request",
    "authorizerPayloadFormatVersion": "2.0",
    "enableSimpleResponses": True,
    "authorizerResultTtlInSeconds": 0,
}
"""For `guarded_api`: the function is asked for each request."""

ASKED: dict[str, Any] = {"security": [{"gate": []}]}
"""For its routes: the function is asked."""

SIGV4 = {"type": "apiKey", "name": "Authorization", "in": "header", "x-amazon-apigateway-authtype": "awsSigv4"}


def echo_api(
    routes: dict[str, dict[str, Any]], body: dict[str, Any] | None = None, **properties: Any
) -> dict[str, Any]:
    """Return the resources of an API whose routes ("GET /path", "ANY /path" or "$default") all lead to one function."""
    paths: dict[str, Any] = {}
    for route_key, operation in routes.items():
        method, _, path = route_key.rpartition(" ")
        name = "x-amazon-apigateway-any-method" if method in ("", "ANY") else method.lower()
        paths.setdefault(path, {})[name] = {"x-amazon-apigateway-integration": INTEGRATION, **operation}
    openapi = {
        "openapi": "3.0.1",
        "info": {"title": "Echo", "version": "1"},
        "paths": paths,
        "components": {"securitySchemes": {"sigv4": SIGV4}},
        **(body or {}),
    }
    return {
        "Echo": function_resource(ECHO),
        "Api": {"Type": "AWS::ApiGatewayV2::Api", "Properties": {"Body": openapi, **properties}},
        "Stage": {
            "Type": "AWS::ApiGatewayV2::Stage",
            "Properties": {"ApiId": {"Ref": "Api"}, "StageName": "$default", "AutoDeploy": True},
        },
    }


def guarded_api(authorizer: dict[str, Any], routes: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The same, but a route may require the security scheme "gate": a function, or what `authorizer` says."""
    uri = "arn:aws:apigateway:${AWS::Region}:lambda:path/2015-03-31/functions/${Gate.Arn}/invocations"
    extension = {"identitySource": "$request.header.Authorization", "authorizerUri": {"Fn::Sub": uri}, **authorizer}
    gate = {"type": "apiKey", "name": "Authorization", "in": "header", "x-amazon-apigateway-authorizer": extension}
    schemes = {"components": {"securitySchemes": {"sigv4": SIGV4, "gate": gate}}}
    return {"Gate": function_resource(GATE), **echo_api(routes, schemes)}


def routed_by_hand(server: EmulatorServer, *route_keys: str, source: str = ECHO, **configuration: Any) -> str:
    """Create an API without a body, which stock MiniStack can route too, and return its URL."""
    api_gateway = server.client("apigatewayv2")
    arn = create_function(server, f"by-hand-{uuid4().hex[:8]}", source, **configuration)
    api_id = api_gateway.create_api(Name="by hand", ProtocolType="HTTP", Target=arn)["ApiId"]
    integration = api_gateway.create_integration(
        ApiId=api_id, IntegrationType="AWS_PROXY", IntegrationUri=arn, PayloadFormatVersion="2.0"
    )
    for route_key in route_keys or ("$default",):
        api_gateway.create_route(
            ApiId=api_id, RouteKey=route_key, Target=f"integrations/{integration['IntegrationId']}"
        )
    api_gateway.create_stage(ApiId=api_id, StageName="$default", AutoDeploy=True)
    return f"{server.gateway_url}/_aws/execute-api/{api_id}/$default"
