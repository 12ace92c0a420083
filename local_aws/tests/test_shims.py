"""The emulator does what AWS does: each shim next to the gap that it closes in stock MiniStack."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import httpx
import pytest

from local_aws.tests.emulator_server import (
    ROLE,
    EmulatorServer,
    create_function,
    invoke,
    output_of,
    package,
    physical_ids,
    reasons_for_failed_stack,
    stack,
    update_stack,
)
from local_aws.tests.http_apis import ASKED, AUTHORIZER, INTEGRATION, echo_api, guarded_api, routed_by_hand
from local_aws.tests.issuers import issuer

pytest_plugins = ("local_aws.tests.emulator_fixtures",)

PREFLIGHT = {"Origin": "https://app.example", "Access-Control-Request-Method": "GET"}
CORS = {"allowOrigins": ["https://app.example"], "allowMethods": ["GET", "POST"], "maxAge": 600}


def routes(server: EmulatorServer, api_id: str) -> dict[str, str]:
    """Return the authorization type of each route."""
    listed = server.client("apigatewayv2").get_routes(ApiId=api_id)["Items"]
    return {route["RouteKey"]: route["AuthorizationType"] for route in listed}


def stock_url(server: EmulatorServer, stack_name: str) -> str:
    """Return where stock MiniStack serves an API."""
    return f"{server.gateway_url}/_aws/execute-api/{physical_ids(server, stack_name)['Api']}/$default"


# http_api_body


def test_gap_stock_drops_the_body_of_an_http_api(stock: EmulatorServer) -> None:
    with stack(stock, echo_api({"GET /images": {}})) as name:
        assert routes(stock, physical_ids(stock, name)["Api"]) == {}


def test_an_http_api_has_the_routes_of_its_body(emulator: EmulatorServer, http: httpx.Client) -> None:
    resources = echo_api(
        {
            "GET /images/{id}": {},
            "POST /images": {"security": [{"sigv4": []}]},
            "DELETE /images": {"security": []},
            "ANY /any": {},
            "$default": {},
        }
    )
    with stack(emulator, resources) as name:
        api_id = physical_ids(emulator, name)["Api"]
        assert routes(emulator, api_id) == {
            "GET /images/{id}": "NONE",
            "POST /images": "AWS_IAM",
            "DELETE /images": "NONE",
            "ANY /any": "NONE",
            "$default": "NONE",
        }
        api = emulator.client("apigatewayv2").get_api(ApiId=api_id)
        assert (api["Name"], api["Version"]) == ("Echo", "1")
        assert http.get(f"{emulator.front_url}/images/7").json()["pathParameters"] == {"id": "7"}
        assert http.put(f"{emulator.front_url}/any").json()["routeKey"] == "ANY /any"
        assert http.get(f"{emulator.front_url}/elsewhere").json()["routeKey"] == "$default"


# http_api_greedy_routes


GREEDY: dict[str, dict[str, Any]] = {"GET /app": {}, "GET /app/{path+}": {}, "GET /{path+}": {}}


def test_gap_stock_has_another_route_for_what_ends_with_a_greedy_routes_slash(
    stock: EmulatorServer, http: httpx.Client
) -> None:
    url = routed_by_hand(stock, "$default", "GET /app/{path+}")
    assert http.get(f"{url}/app/1").json()["routeKey"] == "GET /app/{path+}"
    assert http.get(f"{url}/app/").json()["routeKey"] == "$default"


def test_a_greedy_route_has_what_ends_with_its_slash(emulator: EmulatorServer, http: httpx.Client) -> None:
    with stack(emulator, echo_api(GREEDY)):
        event = http.get(f"{emulator.front_url}/app/").json()
        assert (event["routeKey"], event["rawPath"]) == ("GET /app/{path+}", "/app/")
        assert http.get(f"{emulator.front_url}/app").json()["routeKey"] == "GET /app"
        deeper = http.get(f"{emulator.front_url}/app/1/main.js").json()
        assert (deeper["routeKey"], deeper["pathParameters"]) == ("GET /app/{path+}", {"path": "1/main.js"})
        assert http.get(f"{emulator.front_url}/other/").json()["routeKey"] == "GET /{path+}"


def test_a_route_that_requires_sigv4_refuses_an_unsigned_request(emulator: EmulatorServer, http: httpx.Client) -> None:
    with stack(emulator, echo_api({"GET /images": {"security": [{"sigv4": []}]}})):
        answer = http.get(f"{emulator.front_url}/images")
        assert (answer.status_code, answer.json()) == (403, {"message": "Forbidden"})


def test_a_body_wide_security_holds_for_operations_without_their_own(emulator: EmulatorServer) -> None:
    resources = echo_api({"GET /a": {}, "GET /b": {"security": []}}, {"security": [{"sigv4": []}]})
    with stack(emulator, resources) as name:
        assert routes(emulator, physical_ids(emulator, name)["Api"]) == {"GET /a": "AWS_IAM", "GET /b": "NONE"}


def test_an_update_changes_the_routes_and_keeps_the_rest_of_the_api(
    emulator: EmulatorServer, http: httpx.Client
) -> None:
    with stack(emulator, echo_api({"GET /kept": {}, "GET /removed": {}, "GET /secured": {}})) as name:
        api_id = physical_ids(emulator, name)["Api"]
        api_gateway = emulator.client("apigatewayv2")
        stage = api_gateway.get_stage(ApiId=api_id, StageName="$default")

        changed: dict[str, Any] = {"GET /kept": {}, "GET /added": {}, "GET /secured": {"security": [{"sigv4": []}]}}
        update_stack(emulator, name, echo_api(changed, {"x-amazon-apigateway-cors": CORS}))

        assert physical_ids(emulator, name)["Api"] == api_id
        assert routes(emulator, api_id) == {"GET /kept": "NONE", "GET /added": "NONE", "GET /secured": "AWS_IAM"}
        assert len(api_gateway.get_integrations(ApiId=api_id)["Items"]) == len(changed)
        assert api_gateway.get_api(ApiId=api_id)["CorsConfiguration"]["MaxAge"] == CORS["maxAge"]
        assert api_gateway.get_stage(ApiId=api_id, StageName="$default")["CreatedDate"] == stage["CreatedDate"]
        assert http.get(f"{emulator.front_url}/added").status_code == 200
        assert http.get(f"{emulator.front_url}/removed").status_code == 404

        update_stack(emulator, name, echo_api(changed))
        assert "CorsConfiguration" not in api_gateway.get_api(ApiId=api_id)


def test_deleting_the_stack_deletes_the_api(emulator: EmulatorServer) -> None:
    with stack(emulator, echo_api({"GET /images": {}})) as name:
        api_id = physical_ids(emulator, name)["Api"]
    assert api_id not in [api["ApiId"] for api in emulator.client("apigatewayv2").get_apis()["Items"]]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"security": [{"unknown": []}]}, "security scheme 'unknown'"),
        ({"components": {"securitySchemes": {"sigv4": {"type": "oauth2"}}}}, "security scheme 'sigv4'"),
    ],
)
def test_a_security_scheme_that_would_not_be_enforced_fails_the_stack(
    emulator: EmulatorServer, body: dict[str, Any], reason: str
) -> None:
    resources = echo_api(
        {"GET /images": {"security": [{next(iter(body.get("security", [{"sigv4": []}])[0])): []}]}}, body
    )
    assert reason in reasons_for_failed_stack(emulator, resources)


REMEMBERING = AUTHORIZER | {"authorizerResultTtlInSeconds": 60}


def test_a_function_decides_who_passes_and_its_word_is_handed_on_and_remembered(
    emulator: EmulatorServer, http: httpx.Client
) -> None:
    routes: dict[str, Any] = {"GET /images/{id}": ASKED, "GET /other": ASKED, "GET /free": {}}
    with stack(emulator, guarded_api(REMEMBERING, routes)):

        def get(path: str, *word: str) -> httpx.Response:
            headers = {"Authorization": word[0]} if word else {}
            return http.get(f"{emulator.front_url}{path}", headers=headers)

        for nothing in ((), ("",)):
            answer = get("/images/7", *nothing)
            assert (answer.status_code, answer.json()) == (401, {"message": "Unauthorized"})
        answer = get("/images/7", "closed")
        assert (answer.status_code, answer.json()) == (403, {"message": "Forbidden"})
        for word in ("fail", "nonsense"):
            answer = get("/images/7", word)
            assert (answer.status_code, answer.json()) == (500, {"message": "Internal Server Error"})
        first = get("/images/7", "open").json()["requestContext"]["authorizer"]
        assert first["lambda"]["path"] == "/images/7" and first["lambda"]["burst"] == 5
        assert get("/other", "open").json()["requestContext"]["authorizer"] == first, "by the word alone, not the route"
        assert "authorizer" not in get("/free").json()["requestContext"]


def test_without_a_time_to_remember_the_function_is_asked_each_time(
    emulator: EmulatorServer, http: httpx.Client
) -> None:
    with stack(emulator, guarded_api(AUTHORIZER, {"GET /images": ASKED})):
        url, headers = f"{emulator.front_url}/images", {"Authorization": "open"}
        said = [http.get(url, headers=headers).json()["requestContext"]["authorizer"]["lambda"]["asked"] for _ in "ab"]
        assert said[0] != said[1]


def test_an_update_of_the_body_changes_an_authorizer_and_removes_one_that_is_gone(emulator: EmulatorServer) -> None:
    api_gateway = emulator.client("apigatewayv2")

    def authorizers() -> dict[str, tuple[str, int, str]]:
        listed = api_gateway.get_authorizers(ApiId=api_id)["Items"]
        return {a["Name"]: (a["AuthorizerType"], a["AuthorizerResultTtlInSeconds"], a["AuthorizerId"]) for a in listed}

    with stack(emulator, guarded_api(REMEMBERING, {"GET /a": ASKED, "GET /b": ASKED})) as name:
        api_id = physical_ids(emulator, name)["Api"]
        assert routes(emulator, api_id) == {"GET /a": "CUSTOM", "GET /b": "CUSTOM"}
        kind, ttl, authorizer_id = authorizers()["gate"]
        assert (kind, ttl) == ("REQUEST", 60)
        changed = guarded_api(AUTHORIZER | {"authorizerResultTtlInSeconds": 30}, {"GET /a": ASKED, "GET /b": {}})
        update_stack(emulator, name, changed)
        assert routes(emulator, api_id) == {"GET /a": "CUSTOM", "GET /b": "NONE"}
        assert authorizers() == {"gate": ("REQUEST", 30, authorizer_id)}
        jwt = {"type": "jwt", "jwtConfiguration": {"issuer": "https://issuer.example", "audience": ["example"]}}
        update_stack(emulator, name, guarded_api(jwt, {"GET /a": ASKED, "GET /b": ASKED}))
        assert routes(emulator, api_id) == {"GET /a": "JWT", "GET /b": "JWT"}
        assert [kind for kind, _, _ in authorizers().values()] == ["JWT"]
        update_stack(emulator, name, echo_api({"GET /a": {}}))
        assert authorizers() == {}


def test_a_token_of_the_issuer_for_the_audience_passes_and_its_claims_are_handed_on(
    emulator: EmulatorServer, http: httpx.Client
) -> None:
    with issuer() as ours, issuer() as others:
        jwt = {"type": "jwt", "jwtConfiguration": {"issuer": ours.url, "audience": ["example"]}}
        with stack(emulator, guarded_api(jwt, {"GET /images": ASKED})):

            def get(token: str | None) -> httpx.Response:
                headers = {} if token is None else {"Authorization": f"Bearer {token}"}
                return http.get(f"{emulator.front_url}/images", headers=headers)

            passed = get(ours.token(aud="example", sub="acme", tier="paid", admin=True))
            claims = passed.json()["requestContext"]["authorizer"]["jwt"]["claims"]
            assert (claims["sub"], claims["tier"], claims["admin"]) == ("acme", "paid", "true"), "claims are text"
            for refused in (
                None,
                "no.token.at-all",
                others.token(aud="example", sub="acme"),
                others.token(aud="example", sub="acme", iss=ours.url),
                ours.token(aud="elsewhere", sub="acme"),
                ours.token(aud="example", sub="acme", exp=1),
            ):
                answer = get(refused)
                assert (answer.status_code, answer.json()) == (401, {"message": "Unauthorized"})


# http_api_cors


def test_gap_stock_answers_options_itself_where_cors_is_not_configured(
    stock: EmulatorServer, http: httpx.Client
) -> None:
    with stack(stock, echo_api({})) as name:
        assert http.options(f"{stock_url(stock, name)}/images", headers=PREFLIGHT).status_code == 403


def test_a_request_without_an_origin_gets_no_cors_headers(emulator: EmulatorServer, http: httpx.Client) -> None:
    with stack(emulator, echo_api({"$default": {}}, {"x-amazon-apigateway-cors": {**CORS, "allowOrigins": ["*"]}})):
        url = f"{emulator.front_url}/images"
        assert not [name for name in http.get(url).headers if name.startswith("access-control-")]
        assert http.get(url, headers=PREFLIGHT).headers["Access-Control-Allow-Origin"] == "*"


def test_the_gateway_answers_a_preflight_of_its_origin_alone_and_adds_headers_to_what_the_function_answers(
    emulator: EmulatorServer, http: httpx.Client
) -> None:
    with stack(emulator, echo_api({"$default": {}}, {"x-amazon-apigateway-cors": CORS})):
        url = f"{emulator.front_url}/images"
        answer = http.options(url, headers=PREFLIGHT)
        assert (answer.status_code, answer.content) == (204, b"")
        assert answer.headers["Access-Control-Allow-Origin"] == "https://app.example"
        assert answer.headers["Access-Control-Allow-Methods"] == "GET,POST"
        assert answer.headers["Access-Control-Max-Age"] == "600"
        of_another = http.options(url, headers={**PREFLIGHT, "Origin": "https://other.example"})
        assert of_another.status_code == 403, "the gateway would answer 204, without them too; the gate is before it"
        assert not [name for name in of_another.headers if name.startswith("access-control-")]
        answered = http.get(url, headers={"Origin": "https://app.example"})
        assert answered.headers["Access-Control-Allow-Origin"] == "https://app.example"


def test_without_cors_options_is_routed_like_any_other_method(emulator: EmulatorServer, http: httpx.Client) -> None:
    with stack(emulator, echo_api({"OPTIONS /own": {}, "ANY /any": {}, "GET /images": {}})):
        preflight = {**PREFLIGHT, "Origin": emulator.front_url}
        own = http.options(f"{emulator.front_url}/own", headers=preflight).json()
        assert (own["routeKey"], own["requestContext"]["http"]["method"]) == ("OPTIONS /own", "OPTIONS")
        assert http.options(f"{emulator.front_url}/any", headers=preflight).json()["routeKey"] == "ANY /any"
        unrouted = http.options(f"{emulator.front_url}/images", headers=preflight)
        assert (unrouted.status_code, unrouted.json()) == (404, {"message": "Not Found"})


def test_cors_may_be_configured_beside_the_body(emulator: EmulatorServer, http: httpx.Client) -> None:
    configuration = {"AllowOrigins": ["*"], "AllowMethods": ["GET"]}
    with stack(emulator, echo_api({"$default": {}}, CorsConfiguration=configuration)):
        answer = http.options(f"{emulator.front_url}/images", headers=PREFLIGHT)
        assert answer.headers["Access-Control-Allow-Origin"] == "*"


# joined_conditions


def has_resources(server: EmulatorServer, members: str) -> bool:
    """Whether a stack has a resource that it has only if a list parameter has members."""
    template = {
        "Parameters": {"Members": {"Type": "CommaDelimitedList", "Default": ""}},
        "Conditions": {"HasMembers": {"Fn::Not": [{"Fn::Equals": [{"Fn::Join": ["", {"Ref": "Members"}]}, ""]}]}},
        "Resources": {
            "Always": {"Type": "AWS::SNS::Topic"},
            "Sometimes": {"Type": "AWS::SNS::Topic", "Condition": "HasMembers"},
        },
    }
    cloudformation, name = server.client("cloudformation"), f"stack-{uuid4().hex[:8]}"
    parameters: Any = [{"ParameterKey": "Members", "ParameterValue": members}] if members else []
    cloudformation.create_stack(StackName=name, TemplateBody=json.dumps(template), Parameters=parameters)
    cloudformation.get_waiter("stack_create_complete").wait(StackName=name, WaiterConfig={"Delay": 1})
    listed = cloudformation.list_stack_resources(StackName=name)["StackResourceSummaries"]
    cloudformation.delete_stack(StackName=name)
    return "Sometimes" in [each["LogicalResourceId"] for each in listed]


def test_gap_stock_takes_a_list_parameter_without_members_for_one_with_some(stock: EmulatorServer) -> None:
    assert has_resources(stock, "")


def test_a_condition_tells_whether_a_list_parameter_has_members(emulator: EmulatorServer) -> None:
    assert (has_resources(emulator, ""), has_resources(emulator, "a,b")) == (False, True)


# nested_stack_attributes


def inner_stack(server: EmulatorServer, output: dict[str, Any]) -> dict[str, Any]:
    """A stack in a stack with a topic, and an output that may refer to it; its template is where SAM CLI uploads it."""
    template = {"Resources": {"Kept": {"Type": "AWS::SNS::Topic"}}, "Outputs": {"Shown": {"Value": output}}}
    s3, bucket = server.client("s3"), f"bucket-{uuid4()}"
    s3.create_bucket(Bucket=bucket)
    s3.put_object(Bucket=bucket, Key="inner.json", Body=json.dumps(template))
    address = f"{server.gateway_url}/{bucket}/inner.json"
    return {"Inner": {"Type": "AWS::CloudFormation::Stack", "Properties": {"TemplateURL": address}}}


def update_what_stays(server: EmulatorServer) -> None:
    """Updates a stack in a stack, whose topic stays and is referred to."""
    with stack(server, inner_stack(server, {"Ref": "Kept"})) as name:
        update_stack(server, name, inner_stack(server, {"Fn::GetAtt": ["Kept", "TopicName"]}))
        inner_id = physical_ids(server, name)["Inner"]
        (described,) = server.client("cloudformation").describe_stacks(StackName=inner_id)["Stacks"]
        assert "-Kept-" in described["Outputs"][0]["OutputValue"]


def test_gap_stock_forgets_the_attributes_of_what_stays_in_an_updated_stack_in_a_stack(stock: EmulatorServer) -> None:
    with pytest.raises(AssertionError, match="Requested attribute TopicName does not exist"):
        update_what_stays(stock)


def test_what_stays_in_an_updated_stack_in_a_stack_keeps_its_attributes(emulator: EmulatorServer) -> None:
    update_what_stays(emulator)


# template_addresses


def address_of_the_inner_template(server: EmulatorServer) -> str:
    with stack(server, inner_stack(server, {"Ref": "Kept"})) as name:
        template: Any = server.client("cloudformation").get_template(StackName=name)["TemplateBody"]
    address: str = template["Resources"]["Inner"]["Properties"]["TemplateURL"]
    return address


def test_gap_stock_shows_a_nested_template_at_its_own_address(stock: EmulatorServer) -> None:
    assert address_of_the_inner_template(stock).startswith(f"{stock.gateway_url}/bucket-")


def test_a_nested_template_is_shown_at_the_address_of_s3(emulator: EmulatorServer) -> None:
    assert address_of_the_inner_template(emulator).startswith("https://s3.us-east-1.amazonaws.com/bucket-")


# bucket_cors


def presigned(server: EmulatorServer, origin: str) -> str:
    """The address of an object, which pages of one origin may read."""
    s3, name = server.client("s3"), f"bucket-{uuid4()}"
    s3.create_bucket(Bucket=name)
    rule = {"AllowedOrigins": [origin], "AllowedMethods": ["GET"], "AllowedHeaders": ["*"]}
    s3.put_bucket_cors(Bucket=name, CORSConfiguration={"CORSRules": [rule]})
    s3.put_object(Bucket=name, Key="one", Body=b"one")
    address: str = s3.generate_presigned_url("get_object", Params={"Bucket": name, "Key": "one"})
    return address


def test_gap_stock_allows_every_origin_to_read_a_bucket(stock: EmulatorServer, http: httpx.Client) -> None:
    answer = http.get(presigned(stock, "https://app.example"))
    assert answer.headers["access-control-allow-origin"] == "*"


def test_a_bucket_allows_the_origins_of_its_configuration_if_one_asks(
    emulator: EmulatorServer, http: httpx.Client
) -> None:
    own = emulator.front_url
    address = presigned(emulator, own)
    silent = http.get(address)
    assert (silent.status_code, [name for name in silent.headers if name.startswith("access-control-")]) == (200, [])
    asked = http.get(address, headers={"Origin": own})
    assert (asked.status_code, asked.headers["access-control-allow-origin"]) == (200, own)
    assert "Origin" in asked.headers["vary"]
    other = http.get(presigned(emulator, "https://app.example"), headers={"Origin": own})
    assert (other.status_code, "access-control-allow-origin" in other.headers) == (200, False)
    for method, status in (("GET", 200), ("PUT", 403)):
        preflight = {"Origin": own, "Access-Control-Request-Method": method}
        assert http.options(address, headers=preflight).status_code == status


# http_api_integration


def test_gap_stock_shows_the_client_how_a_function_failed(stock: EmulatorServer, http: httpx.Client) -> None:
    answer = http.get(f"{routed_by_hand(stock)}/images?fail=1")
    assert answer.status_code == 502
    assert "the function's own business" in answer.text


def test_a_throttled_function_is_unavailable_to_the_client(emulator: EmulatorServer, http: httpx.Client) -> None:
    with stack(emulator, echo_api({"$default": {}})) as name:
        emulator.client("lambda").put_function_concurrency(
            FunctionName=physical_ids(emulator, name)["Echo"], ReservedConcurrentExecutions=0
        )
        answer = http.get(f"{emulator.front_url}/images")
        assert (answer.status_code, answer.json()) == (503, {"message": "Service Unavailable"})


def test_a_function_that_fails_or_answers_nonsense_is_an_internal_server_error_to_the_client(
    emulator: EmulatorServer, http: httpx.Client
) -> None:
    with stack(emulator, echo_api({"$default": {}})):
        for query in ("fail=1", "malformed=1"):
            answer = http.get(f"{emulator.front_url}/images?{query}")
            assert (answer.status_code, answer.json()) == (500, {"message": "Internal Server Error"})


def test_a_function_that_outlasts_the_integrations_timeout_is_unavailable_to_the_client(
    emulator: EmulatorServer, http: httpx.Client
) -> None:
    impatient = {**INTEGRATION, "timeoutInMillis": 50}
    with stack(emulator, echo_api({"$default": {"x-amazon-apigateway-integration": impatient}})):
        answer = http.get(f"{emulator.front_url}/images?sleep=1")
        assert (answer.status_code, answer.json()) == (503, {"message": "Service Unavailable"})


def test_a_request_whose_event_is_too_large_never_reaches_the_function(
    emulator: EmulatorServer, http: httpx.Client
) -> None:
    with stack(emulator, echo_api({"$default": {}})) as name:
        answer = http.post(f"{emulator.front_url}/images", content=bytes(4_800_000))
        assert (answer.status_code, answer.json()) == (413, {"message": "Request Entity Too Large"})
        group = f"/aws/lambda/{physical_ids(emulator, name)['Echo']}"
        assert not emulator.client("logs").describe_log_groups(logGroupNamePrefix=group)["logGroups"]
        # Base64 makes it 4/3 as large: 4.6 MB of photo still fit into 6 MB of event.
        assert http.post(f"{emulator.front_url}/images", content=bytes(4_600_000)).status_code == 200


def test_the_event_holds_cookies_apart_and_only_path_parameters_that_exist(
    emulator: EmulatorServer, http: httpx.Client
) -> None:
    with stack(emulator, echo_api({"$default": {}})):
        event = http.get(f"{emulator.front_url}/images", headers={"Cookie": "a=1; b=2"}).json()
        assert event["cookies"] == ["a=1", "b=2"]
        assert "cookie" not in event["headers"]
        assert "pathParameters" not in event
        assert event["requestContext"]["domainPrefix"] == event["requestContext"]["apiId"]


# function_isolation

LOOK_AROUND = """
import importlib.util, os, sys

def handler(event, context):
    if event.get("fail"):
        raise KeyError("gone")
    return {
        "variables": dict(os.environ),
        "packages": [name for name in event.get("packages", []) if importlib.util.find_spec(name)],
        "pid": os.getpid(),
        "cwd": os.getcwd(),
        "search_path": sys.path,
        "home_exists": os.path.exists(os.path.expanduser("~")),
        "context": [context.function_name, context.memory_limit_in_mb, context.log_group_name],
    }
"""
EMULATORS_PACKAGES = {"packages": ["boto3", "ministack", "hypercorn", "local_aws"]}


def test_gap_stock_lets_a_function_see_the_emulators_packages_and_variables(stock: EmulatorServer) -> None:
    create_function(stock, "look-around", LOOK_AROUND)
    seen = invoke(stock, "look-around", EMULATORS_PACKAGES)
    assert {"boto3", "ministack"} <= set(seen["packages"])
    assert "GATEWAY_PORT" in seen["variables"]


def test_a_function_sees_the_variables_that_lambda_defines_and_its_own(emulator: EmulatorServer) -> None:
    create_function(emulator, "variables", LOOK_AROUND, MemorySize=512, Environment={"Variables": {"OWN": "1"}})
    seen = invoke(emulator, "variables", EMULATORS_PACKAGES)
    assert seen["packages"] == []
    variables = seen["variables"]
    defined_by_lambda = {
        *("_HANDLER", "AWS_ACCESS_KEY_ID", "AWS_DEFAULT_REGION", "AWS_EXECUTION_ENV"),
        *("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "AWS_LAMBDA_FUNCTION_NAME", "AWS_LAMBDA_FUNCTION_VERSION"),
        *("AWS_LAMBDA_INITIALIZATION_TYPE", "AWS_LAMBDA_LOG_FORMAT", "AWS_LAMBDA_LOG_GROUP_NAME"),
        *("AWS_LAMBDA_LOG_STREAM_NAME", "AWS_LAMBDA_RUNTIME_API", "AWS_REGION", "AWS_SECRET_ACCESS_KEY"),
        *("AWS_XRAY_CONTEXT_MISSING", "AWS_XRAY_DAEMON_ADDRESS"),
        *("LAMBDA_TASK_ROOT", "LANG", "LD_LIBRARY_PATH", "PATH", "PYTHONPATH", "TZ"),
    }
    of_the_emulator = {"AWS_ENDPOINT_URL", "HOME", "TMPDIR"}
    of_python = {"LC_CTYPE"}  # Python sets it if the machine has no locale named LANG (PEP 538).
    assert set(variables) - of_python == defined_by_lambda | of_the_emulator | {"OWN"}
    assert variables["AWS_ENDPOINT_URL"] == emulator.gateway_url
    assert variables["AWS_EXECUTION_ENV"] == "AWS_Lambda_python3.13"
    assert variables["TZ"] == ":UTC"
    assert variables["LANG"] == "en_US.UTF-8"
    assert seen["cwd"] == variables["LAMBDA_TASK_ROOT"]
    assert seen["context"] == ["variables", "512", "/aws/lambda/variables"]
    assert not seen["home_exists"]


def test_a_functions_exception_keeps_its_type_and_its_execution_environment(emulator: EmulatorServer) -> None:
    create_function(emulator, "fail", LOOK_AROUND)
    before = invoke(emulator, "fail")["pid"]
    error = invoke(emulator, "fail", {"fail": True})
    assert (error["errorType"], error["errorMessage"]) == ("KeyError", "'gone'")
    assert invoke(emulator, "fail")["pid"] == before


def test_a_handler_that_cannot_be_imported_fails_with_the_clients_error_and_log(emulator: EmulatorServer) -> None:
    create_function(emulator, "unimportable", "import a_package_that_the_bundle_lacks")
    error = invoke(emulator, "unimportable")
    assert error["errorType"] == "Runtime.ImportModuleError"
    assert "a_package_that_the_bundle_lacks" in error["errorMessage"]
    logs, group = emulator.client("logs"), "/aws/lambda/unimportable"
    stream = logs.describe_log_streams(logGroupName=group)["logStreams"][0]["logStreamName"]
    lines = [event["message"] for event in logs.get_log_events(logGroupName=group, logStreamName=stream)["events"]]
    assert any("Runtime.ImportModuleError" in line for line in lines)


def test_a_function_that_outlives_its_timeout_is_ended_and_starts_anew(emulator: EmulatorServer) -> None:
    sleeper = (
        "import os, time\ndef handler(event, context):\n    time.sleep(event.get('sleep', 0))\n    return os.getpid()"
    )
    create_function(emulator, "sleeper", sleeper, Timeout=1)
    before = invoke(emulator, "sleeper")
    assert invoke(emulator, "sleeper", {"sleep": 60})["errorType"] == "Sandbox.Timedout"
    assert invoke(emulator, "sleeper") != before


def test_code_comes_before_layers_and_a_later_layer_covers_an_earlier_one(emulator: EmulatorServer) -> None:
    lambda_ = emulator.client("lambda")

    def layer(name: str, *modules: str) -> str:
        content = package({f"python/{module}.py": f"ORIGIN = '{name}'" for module in modules})
        published = lambda_.publish_layer_version(LayerName=name, Content={"ZipFile": content})
        arn: str = published["LayerVersionArn"]
        return arn

    source = "import first, both, own\ndef handler(event, context):\n    return [first.ORIGIN, both.ORIGIN, own.ORIGIN]"
    lambda_.create_function(
        FunctionName="layered",
        Runtime="python3.13",
        Handler="app.handler",
        Role=ROLE,
        Code={"ZipFile": package({"app.py": source, "own.py": "ORIGIN = 'code'"})},
        Layers=[layer("earlier", "first", "both", "own"), layer("later", "both")],
    )
    assert invoke(emulator, "layered") == ["earlier", "later", "code"]


IN_TWO_HALVES = """
import socket, threading

def handler(event, context):
    with socket.create_connection(("127.0.0.1", event["port"])) as peer:
        peer.settimeout(0.1)
        peer.sendall(b"GET / HTTP/1.1\\r\\nHost: 127.0.0.1:%d\\r\\n" % event["port"])
        later = threading.Timer(1, peer.sendall, [b"\\r\\n"])
        later.start()
        try:
            return peer.recv(8).decode()
        except TimeoutError:
            return "gave up"
        finally:
            later.cancel()
            later.join()
"""


def waits(server: EmulatorServer) -> list[str]:
    """What a function that allows a tenth of a second gets of the emulator's answer, and of somebody else's."""
    create_function(server, "in-two-halves", IN_TWO_HALVES, Timeout=30)
    ports = (urlsplit(url).port for url in (server.gateway_url, server.front_url))
    return [invoke(server, "in-two-halves", {"port": port}) for port in ports]


def test_gap_stock_is_given_up_by_a_function_whose_sdk_allows_only_what_aws_needs(stock: EmulatorServer) -> None:
    assert waits(stock) == ["gave up", "gave up"]


def test_a_function_waits_for_the_emulator_and_for_nobody_else_longer_than_it_allows(emulator: EmulatorServer) -> None:
    assert waits(emulator) == ["HTTP/1.1", "gave up"]


UNPACK_AGAIN = """
import io, sys, zipfile
from pathlib import Path
from local_aws.shims import function_isolation

def layer(name):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr(f"python/{name}.py", name)
    return archive.getvalue()

def unpack(*names):
    return function_isolation.Packages(Path(sys.argv[1])).unpack([layer(name) for name in names])

first = unpack("a", "b")
(first / "is the first").touch()
print((unpack("a", "b") / "is the first").exists(), end=" ")
unpack("c")
function_isolation._KEPT = 3
function_isolation.Packages(first.parent)
print(len(list(first.parent.iterdir())), end=" ")
print([file.read_text() for file in sorted(unpack("a", "b").rglob("*.py"))])
"""


def test_layers_are_unpacked_once_for_all_emulators_and_again_if_one_has_deleted_them(tmp_path: Path) -> None:
    assert output_of(UNPACK_AGAIN, tmp_path) == "True 3 ['a', 'b']"


def test_new_code_runs_from_the_next_invocation_on(emulator: EmulatorServer) -> None:
    create_function(emulator, "changing", "def handler(event, context):\n    return 'old'")
    assert invoke(emulator, "changing") == "old"
    new = package({"app.py": "def handler(event, context):\n    return 'new'"})
    emulator.client("lambda").update_function_code(FunctionName="changing", ZipFile=new)
    assert invoke(emulator, "changing") == "new"


def test_a_function_may_end_its_own_process_without_harm_to_the_next_invocation(emulator: EmulatorServer) -> None:
    source = "import os\ndef handler(event, context):\n    return os._exit(1) if event.get('die') else 'alive'"
    create_function(emulator, "suicidal", source)
    assert invoke(emulator, "suicidal", {"die": True})["errorType"] == "Runtime.ExitError"
    assert invoke(emulator, "suicidal") == "alive"
