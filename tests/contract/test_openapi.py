"""openapi.json: valid, complete, and identical to what the functions describe."""

from __future__ import annotations

import json
import re
from http import HTTPStatus
from typing import Any, get_args

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from darkroom.http.kernel.problems import PROBLEMS
from darkroom.settings import Access
from repository.expand_template import raw_template, resources
from repository.openapi.document import EVERYWHERE, NOWHERE, document
from repository.openapi.routes import ROUTES
from repository.report import ROOT
from tests.conformity import described, misfits, resolved
from tests.contract.conftest import Aws
from tests.contract.functions import call, http_event, load
from tests.support.template import PAGE_ROUTES

pytestmark = pytest.mark.promise("openapi")

ACCESSES = get_args(Access.__value__)
API_FUNCTIONS = (
    "submit_image",
    "begin_upload",
    "read_image",
    "reschedule_image",
    "delete_image",
    "manage_webhooks",
    "manage_batches",
)


def operations(access: Access = "anonymous") -> dict[str, dict[str, Any]]:
    """Every operation of the document, as "GET /images"."""
    return {
        f"{method.upper()} {path}": operation
        for path, methods in described(access)["paths"].items()
        for method, operation in methods.items()
    }


@pytest.mark.parametrize("access", ACCESSES)
def test_the_document_is_openapi_3_1(access: Access) -> None:
    assert [error.message for error in OpenAPIV31SpecValidator(described(access)).iter_errors()] == []


def test_it_is_served(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = call(load("read_image", aws, monkeypatch), http_event("GET", "/openapi.json"))
    assert json.loads(answer["body"]) == json.loads(json.dumps(document("anonymous")))


def test_it_names_the_routes_of_the_template_and_no_others() -> None:
    body = resources("AWS::ApiGatewayV2::Api")["Api"]["Body"]
    routed = {f"{method.upper()} {path}" for path, methods in body["paths"].items() for method in methods}
    anything_else = {f"{method} {path}" for method in METHODS for path in ("/", "/{path+}")}
    named = operations("keys").keys()
    assert routed == named | anything_else | PAGE_ROUTES, "the page is for people, and no part of the API"


METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")


def test_each_route_is_handled_by_the_function_to_which_the_template_sends_it(
    aws: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = {
        (event["Properties"]["Method"], event["Properties"]["Path"]): resource["Properties"]["CodeUri"]
        for resource in raw_template()["Resources"].values()
        if resource["Type"] == "AWS::Serverless::Function"
        for event in resource["Properties"].get("Events", {}).values()
        if event["Type"] == "HttpApi"
    }
    handled = {
        (method, path): name
        for name in API_FUNCTIONS
        for app in [load(name, aws, monkeypatch).app]
        for method, path in app.handlers
    }
    assert len(handled) == sum(len(route.methods) for route in ROUTES)
    for route, method in ((each, method) for each in ROUTES for method in each.methods):
        name = handled[method, route.rule]
        assert sent[method, route.path] == f"functions/{name}/", (route.name, method)


OF_CREDENTIALS = {
    *("no_tenant", "insufficient_scope"),
    *("upload_token_refused", "upload_token_expired", "upload_token_used_up"),
}


def test_every_problem_is_told_with_its_code_type_and_status() -> None:
    # No other access than tokens has `no_tenant`, and no other than keys `insufficient_scope`.
    of_jwts, of_keys = (described(access)["components"] for access in ("jwt", "keys"))
    components = {part: of_jwts[part] | of_keys[part] for part in ("schemas", "examples")}
    named = {code for route in ROUTES for code in route.problems} | {*EVERYWHERE, *NOWHERE, *OF_CREDENTIALS}
    assert named == PROBLEMS.keys(), "each is some route's"
    for code, kind in PROBLEMS.items():
        schema = components["schemas"]["".join(word.capitalize() for word in code.split("_")) + "Problem"]
        assert {name: value["const"] for name, value in schema["properties"].items()} == {
            "type": kind.urn,
            "status": kind.status.value,
            "code": code,
        }
        assert components["examples"][code]["value"]["code"] == code


def test_every_route_tells_of_its_problems_by_status() -> None:
    for route in ROUTES:
        responses = operations("keys")[f"{route.method} {route.path}"]["responses"]
        described = {
            code: int(status)
            for status, response in responses.items()
            for code in response.get("content", {}).get("application/problem+json", {}).get("examples", ())
        }
        told = {code: status for code, status in described.items() if code not in OF_CREDENTIALS}
        assert told == {code: PROBLEMS[code].status.value for code in (*route.problems, *EVERYWHERE)}
        assert ("upload_token_refused" in described) == route.takes_upload_tokens


def test_every_answer_of_a_function_forbids_sniffing_and_says_whether_it_may_be_kept() -> None:
    for label, operation in operations().items():
        if label.startswith("HEAD "):
            continue  # as of GET
        for status, response in operation["responses"].items():
            if "application/json" in response.get("content", {}) and int(status) >= HTTPStatus.BAD_REQUEST:
                continue  # API Gateway's own
            assert {"Cache-Control", "X-Content-Type-Options"} <= response["headers"].keys()


def test_what_api_gateway_answers_by_itself_is_described() -> None:
    def gateways(access: Access) -> dict[str, set[str]]:
        return {
            f"{method.upper()} {path}": {
                status
                for status, response in operation["responses"].items()
                if "GatewayError" in str(response.get("content", {}).get("application/json", {}).get("schema"))
            }
            for path, methods in described(access)["paths"].items()
            for method, operation in methods.items()
        }

    assert gateways("anonymous")["GET /images/{id}"] == {"429", "431", "500", "503"}
    assert gateways("iam")["GET /images/{id}"] == {"403", "429", "431", "500", "503"}
    assert gateways("keys")["GET /images/{id}"] == {"401", "403", "429", "431", "500", "503"}
    assert gateways("jwt")["GET /openapi.json"] == {"429", "431", "500", "503"}
    assert gateways("iam")["POST /images"] == {"403", "413", "429", "431", "500", "503"}


def test_head_is_described_as_get_without_bodies() -> None:
    for label, operation in operations().items():
        if label.startswith("GET "):
            heads = operations()[f"HEAD {label[4:]}"]
            for part in ("parameters", "security", "description"):
                assert heads.get(part) == operation.get(part), label
            assert heads["responses"].keys() == operation["responses"].keys()
            for status, response in heads["responses"].items():
                described = {name: operation["responses"][status][name] for name in ("description", "headers")}
                assert response == described, f"{label} {status}"
    assert {label[5:] for label in operations() if label.startswith("HEAD ")} == {
        route.path for route in ROUTES if route.method == "GET"
    }


def test_whoever_may_call_is_told_for_every_access_of_the_template() -> None:
    assert set(ACCESSES) == set(raw_template()["Parameters"]["Access"]["AllowedValues"])
    for access in ACCESSES:
        assert bool(described(access)["security"]) == (access != "anonymous")
        opened = [label for label, operation in operations(access).items() if operation.get("security") == []]
        assert opened == ["GET /openapi.json", "HEAD /openapi.json"]


def test_a_token_without_a_tenant_is_told_of_where_tokens_are_asked_for() -> None:
    for access in ACCESSES:
        described = {
            label
            for label, operation in operations(access).items()
            if "no_tenant"
            in operation["responses"]
            .get("403", {})
            .get("content", {})
            .get("application/problem+json", {})
            .get("examples", ())
        }
        asked = {f"{route.method} {route.path}" for route in ROUTES if not route.is_open} - {"POST /upload-tokens"}
        assert described == (asked if access == "jwt" else set())


def test_every_example_is_one_of_its_schema() -> None:
    checked = 0
    for label, operation in operations().items():
        contents = [operation.get("requestBody", {}).get("content", {})]
        for response in operation["responses"].values():
            contents.append(response.get("content", {}))
            for name, header in response.get("headers", {}).items():
                assert not misfits(resolved(header)["example"], resolved(header)["schema"]), f"{label}: {name}"
        for parameter in operation["parameters"]:
            held = parameter.get("content", {}).get("application/json", parameter)
            assert not misfits(held["example"], held["schema"]), f"{label}: {parameter['name']}"
        for content in contents:
            for media_type, held in content.items():
                for name, example in held.get("examples", {}).items():
                    wrong = misfits(resolved(example)["value"], held["schema"])
                    assert not wrong, f"{label}: {media_type} {name}: {wrong}"
                    checked += 1
    assert checked > 50


def test_every_document_has_an_example() -> None:
    for label, operation in operations().items():
        for status, response in operation["responses"].items():
            for media_type, content in response.get("content", {}).items():
                assert content["examples"] or label == "GET /openapi.json", f"{label} {status} {media_type}"


def test_everything_that_is_referred_to_is_there() -> None:
    def references(node: Any) -> set[str]:
        if isinstance(node, dict):
            own = {node["$ref"]} if isinstance(node.get("$ref"), str) else set()
            return own.union(*(references(value) for value in node.values()))
        if isinstance(node, list):
            return set().union(*(references(value) for value in node))
        return set()

    referred = references(described())
    for reference in referred:
        resolved({"$ref": reference})
    components = described()["components"]
    used = {reference.split("/")[-1] for reference in referred if reference.startswith("#/components/schemas/")}
    assert components["schemas"].keys() == used, "and nothing that nobody refers to"


def test_every_route_has_a_row_on_a_page_and_every_row_of_a_route_has_its_route() -> None:
    pages = "\n".join((ROOT / "docs" / f"{name}.md").read_text() for name in ("api", "bulk", "webhooks"))
    cells = "\n".join(re.findall(r"^\| ([^|]+)\|", pages, re.MULTILINE))
    listed = set(re.findall(r"`((?:DELETE|GET|PATCH|POST) /[^`;?\s]*)", cells))
    assert listed == {f"{route.method} {route.path}" for route in ROUTES}


def test_the_page_of_the_api_lists_every_problem_by_its_status() -> None:
    page = (ROOT / "docs" / "api.md").read_text().partition("## Problems")[2].partition("\nRequests that ")[0]
    listed = {}
    for status, cell in re.findall(r"^\| (\d+) \| (`.+) \|$", page, re.MULTILINE):
        for code, notes in re.findall(r"`(\w+)`(?: \(([^)]+)\))?(?:, |$)", cell):
            listed[code] = (int(status), set(re.findall(r"`([\w-]+)`", notes)))
    assert listed == {
        kind.code: (
            kind.status.value,
            {header.name for header in kind.headers}
            | ({"errors"} if kind.example_errors else set())
            | ({"used", "allowed"} if kind.example_excess is not None else set()),
        )
        for kind in PROBLEMS.values()
    }
