"""No website reaches a port of the local stack, and no program the AWS port without a secret of this run.

Every request here is what a browser may send for a page of another site, or a program that has not read the stack's
files. None may be served, whether or not IAM is evaluated; and this machine's own tools, the API's own
pages and those of `AllowedOrigins` are served as before.
"""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from botocore.auth import HmacV1Auth, SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from local_aws.stacks.clients import isolated_clients
from local_aws.tests.emulator_server import (
    ACCOUNT_ID,
    REGION,
    ROLE,
    EmulatorServer,
    create_function,
    emulator_server,
    invoke,
    listening,
    stack,
)

pytest_plugins = ("local_aws.tests.emulator_fixtures",)

WEBSITE = "https://evil.example"
FRIEND = "https://friend.example"
BUCKET, KEY, CONTENT = "photos", "photo.jpg", b"the bytes of a photo"

SERVED = """
def handler(event, context):
    return {"statusCode": 200, "headers": {"content-type": "text/plain"}, "body": "served"}
"""
ENVIRONMENT = "import os\ndef handler(event, context):\n    return dict(os.environ)"

# A client of its own for each of hundreds of requests would take longer than they; no connection outlives its request.
HTTP = httpx.Client(trust_env=False, verify=False, timeout=60, limits=httpx.Limits(max_keepalive_connections=0))


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A request to a port; `host` None is the port's own name."""

    method: str = "GET"
    path: str = "/"
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    host: str | None = None

    def answered_by(self, url: str) -> tuple[int, bytes]:
        """The status and the body of the port's answer."""
        headers = dict(self.headers)
        if self.host is not None:
            headers["Host"] = self.host.format(port=urlsplit(url).port)
        answer = HTTP.request(self.method, f"{url}{self.path}", content=self.body, headers=headers)
        return answer.status_code, answer.content


@dataclass(frozen=True, kw_only=True)
class Guarded:
    """An emulator with an API, a bucket with an object, and a function."""

    server: EmulatorServer

    def state(self) -> dict[str, Any]:
        """What a request could have changed."""
        client = self.server.client
        return {
            "functions": sorted(
                function["FunctionName"] for function in client("lambda").list_functions()["Functions"]
            ),
            "buckets": sorted(bucket["Name"] for bucket in client("s3").list_buckets()["Buckets"]),
            "objects": sorted(
                entry["Key"] for entry in client("s3").list_objects_v2(Bucket=BUCKET).get("Contents", [])
            ),
            "queues": client("sqs").list_queues().get("QueueUrls", []),
            "tables": client("dynamodb").list_tables()["TableNames"],
        }


def have_role(server: EmulatorServer) -> None:
    """The role of the functions, which may do anything."""
    trust = {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
    rights = {"Effect": "Allow", "Action": "*", "Resource": "*"}
    iam, name = server.client("iam"), ROLE.rpartition("/")[2]
    iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [trust]}))
    document = json.dumps({"Version": "2012-10-17", "Statement": [rights]})
    iam.put_role_policy(RoleName=name, PolicyName="rights", PolicyDocument=document)


def http_api(function_arn: str) -> dict[str, Any]:
    """An API whose only path is /, for pages of the friend."""
    uri = f"arn:aws:apigateway:{REGION}:lambda:path/2015-03-31/functions/{function_arn}/invocations"
    integration = {"type": "aws_proxy", "httpMethod": "POST", "payloadFormatVersion": "2.0", "uri": uri}
    body = {
        "openapi": "3.0.1",
        "info": {"title": "api", "version": "1"},
        "paths": {"/": {name: {"x-amazon-apigateway-integration": integration} for name in ("get", "head", "post")}},
        "x-amazon-apigateway-cors": {"allowOrigins": [FRIEND], "allowMethods": ["GET", "POST"]},
    }
    stage = {"ApiId": {"Ref": "Api"}, "StageName": "$default", "AutoDeploy": True}
    return {
        "Api": {"Type": "AWS::ApiGatewayV2::Api", "Properties": {"Body": body}},
        "Stage": {"Type": "AWS::ApiGatewayV2::Stage", "Properties": stage},
    }


@pytest.fixture(scope="module", params=[(), ("--enforce-iam",)], ids=["plain", "enforcing"])
def guarded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with emulator_server(tmp_path_factory.mktemp("gate"), *request.param) as server:
        have_role(server)
        arn = create_function(server, "echo", SERVED)
        create_function(server, "environment", ENVIRONMENT)
        s3 = server.client("s3")
        s3.create_bucket(Bucket=BUCKET)
        s3.put_object(Bucket=BUCKET, Key=KEY, Body=CONTENT)
        with stack(server, http_api(arn)):
            yield Guarded(server=server)


# ── What a page may try, and how its browser says where it comes from ────────────────────────────────────────────────

CREATE = json.dumps({"FunctionName": "theirs", "Runtime": "python3.13", "Handler": "app.handler", "Role": ROLE,
                     "Code": {"ZipFile": "UEsFBgAAAAAAAAAAAAAAAAAAAAAAAA=="}}).encode()  # fmt: skip
TRICKS = {
    "create a function": Asked(method="POST", path="/2015-03-31/functions", body=CREATE),
    "run a function": Asked(method="POST", path="/2015-03-31/functions/echo/invocations", body=b"{}"),
    "empty the stack": Asked(method="POST", path="/_ministack/reset"),
    "change the emulator": Asked(method="POST", path="/_ministack/config", body=b"{}"),
    "ask how it is": Asked(path="/_ministack/health"),
    "list buckets": Asked(),
    "read an object": Asked(path=f"/{BUCKET}/{KEY}"),
    "write an object": Asked(method="PUT", path=f"/{BUCKET}/theirs", body=b"x"),
    "remove an object": Asked(method="DELETE", path=f"/{BUCKET}/{KEY}"),
    "create a queue": Asked(method="POST", body=b"Action=CreateQueue&QueueName=theirs&Version=2012-11-05"),
    "call the API from here": Asked(path="/_aws/execute-api/any/$default/"),
}
GUISES: dict[str, tuple[Mapping[str, str], str | None]] = {
    "a script of another site": ({"Origin": WEBSITE, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}, None),
    "a no-cors script": ({"Origin": WEBSITE, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, None),
    "a picture's address": ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Referer": WEBSITE}, None),
    "a page of nowhere": ({"Origin": "null"}, None),
    "another port of this machine": ({"Origin": "http://localhost:3000", "Sec-Fetch-Site": "same-site"}, None),
    "an old browser": ({}, None),
    "a name that was bound anew": ({"Sec-Fetch-Site": "same-origin"}, "evil.example:{port}"),
    "a name that contains ours": ({}, "127.0.0.1.evil.example:{port}"),
    "our name at another port": ({}, "127.0.0.1:1"),
    "our address in another form": ({}, "2130706433:{port}"),
    "an address typed by the user": (
        {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"},
        None,
    ),
}


@pytest.mark.parametrize("trick", TRICKS)
def test_no_page_is_served_by_the_aws_port(guarded: Guarded, trick: str) -> None:
    before = guarded.state()
    for guise, (headers, host) in GUISES.items():
        asked = Asked(**{**vars(TRICKS[trick]), "host": host, "headers": {"Content-Type": "text/plain", **headers}})
        status, body = asked.answered_by(guarded.server.gateway_url)
        assert status == 403, (guise, status, body)
        assert CONTENT not in body
    assert guarded.state() == before


OF_THE_USER = ("an old browser", "an address typed by the user")
FROM_ELSEWHERE = {name: guise for name, guise in GUISES.items() if name not in OF_THE_USER}


@pytest.mark.guards("gate-cross-site-refused", "gate-foreign-origin-refused", "gate-own-host", case="plain-GET")
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
def test_no_page_of_another_site_is_served_by_the_api_port(guarded: Guarded, method: str) -> None:
    for guise, (headers, host) in FROM_ELSEWHERE.items():
        asked = Asked(method=method, host=host, headers={"Access-Control-Request-Method": "POST", **headers})
        status, body = asked.answered_by(guarded.server.front_url)
        assert (status, b"served" in body) == (403, False), (guise, status, body)


def runtime_ports(server: EmulatorServer) -> set[int]:
    """The ports at which the emulator listens, without those of its services."""
    return {port for _, port in listening(server)} - {
        urlsplit(url).port for url in (server.gateway_url, server.front_url, server.edge_url)
    }


@pytest.mark.guards("gate-runtime-interface", case="plain")
def test_no_page_takes_an_invocation_from_a_function(guarded: Guarded) -> None:
    invoke(guarded.server, "echo")
    ports = runtime_ports(guarded.server)
    assert ports, "each process of a function gets its invocations at a port of its own"
    for port in ports:
        for guise, (headers, host) in FROM_ELSEWHERE.items():
            # The one that waits for an invocation comes last.
            for method, path in (("POST", "invocation/1/response"), ("POST", "init/error"), ("GET", "invocation/next")):
                asked = Asked(method=method, path=f"/2018-06-01/runtime/{path}", host=host, headers=headers)
                assert asked.answered_by(f"http://127.0.0.1:{port}")[0] == 403, guise
    assert invoke(guarded.server, "echo")["body"] == "served"


@pytest.mark.guards("gate-duplicate-header-refused", case="plain")
def test_a_host_that_is_there_twice_or_not_at_all_is_refused(guarded: Guarded) -> None:
    for url in (guarded.server.gateway_url, guarded.server.front_url):
        own = urlsplit(url).netloc
        for hosts in ("", f"Host: {own}\r\nHost: evil.example\r\n"):
            with socket.create_connection(("127.0.0.1", urlsplit(url).port or 0)) as wire:
                wire.sendall(f"GET / HTTP/1.{1 if hosts else 0}\r\n{hosts}Connection: close\r\n\r\n".encode())
                answer = b"".join(iter(lambda: wire.recv(65_536), b""))
            assert re.match(rb"HTTP/1.1 40[03] ", answer), answer


# ── Signatures ───────────────────────────────────────────────────────────────────────────────────────────────────────


def signed(
    url: str, key: str, secret: str, *, service: str = "s3", method: str = "GET", path: str = "/", body: bytes = b"",
    token: str | None = None, signer: Callable[..., Any] = SigV4Auth,
) -> Asked:  # fmt: skip
    """A request that is signed with these credentials."""
    request = AWSRequest(method=method, url=f"{url}{path}", data=body, headers={"Host": urlsplit(url).netloc})
    scope = () if signer is HmacV1Auth else (service, REGION)
    signer(Credentials(key, secret, token), *scope).add_auth(request)
    prepared = request.prepare()
    parts = urlsplit(prepared.url)
    return Asked(
        method=method, path=f"{parts.path}?{parts.query}".rstrip("?"), body=body,
        headers={name: value for name, value in prepared.headers.items() if name not in ("Host", "Content-Length")},
    )  # fmt: skip


LIST_TABLES = {"X-Amz-Target": "DynamoDB_20120810.ListTables"}
GUESSES = [("local", "local"), ("test", "test"), (ACCOUNT_ID, "test"), (ACCOUNT_ID, "local"), ("", "test"),
           ("AKIAEXAMPLE", "secret"), ("local", ""), ("test", "")]  # fmt: skip


@pytest.mark.guards("gate-request-signature", case="plain-header")
@pytest.mark.parametrize("signer", [SigV4Auth, SigV4QueryAuth], ids=["header", "query"])
def test_a_guessed_secret_opens_nothing(guarded: Guarded, signer: Callable[..., Any]) -> None:
    url = guarded.server.gateway_url
    for key, secret in GUESSES:
        for service, method, path in (
            ("s3", "GET", f"/{BUCKET}/{KEY}"),
            ("lambda", "GET", "/2015-03-31/functions/"),
            ("sts", "GET", "/?Action=GetCallerIdentity&Version=2011-06-15"),
        ):
            asked = signed(url, key, secret, service=service, method=method, path=path, signer=signer)
            status, body = asked.answered_by(url)
            assert status == 403, (key, service, body)
            assert b"SignatureDoesNotMatch" in body or b"MissingAuthenticationToken" in body


@pytest.mark.guards("gate-signature-algorithm", case="plain")
def test_what_was_changed_after_it_was_signed_is_refused(guarded: Guarded) -> None:
    url, secret = guarded.server.gateway_url, guarded.server.secret
    listed = signed(url, "local", secret, service="lambda", path="/2015-03-31/functions/")
    assert listed.answered_by(url)[0] == 200
    table = signed(url, "local", secret, service="dynamodb", method="POST", body=b"{}")
    header = listed.headers["Authorization"]
    changed = [
        Asked(**{**vars(listed), "path": "/2015-03-31/functions/echo"}),
        Asked(**{**vars(listed), "path": "/2015-03-31/functions/?Marker=1"}),
        Asked(**{**vars(listed), "method": "DELETE", "path": "/2015-03-31/functions/echo"}),
        Asked(**{**vars(listed), "body": b"more"}),
        Asked(**{**vars(listed), "headers": {**listed.headers, "X-Amz-Date": "20200101T000000Z"}}),
        Asked(**{**vars(listed), "headers": {**listed.headers, "X-Amz-Security-Token": "any"}}),
        Asked(**{**vars(table), "body": b'{"Limit": 1}', "headers": {**table.headers, **LIST_TABLES}}),
        *(
            Asked(**{**vars(listed), "headers": {**listed.headers, "Authorization": text}})
            for text in (
                "AWS4-HMAC-SHA256",
                "AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/lambda/aws4_request",
                header.replace("Signature=", "Signature=0"),
                re.sub("Signature=.*", "Signature=", header),
                header.replace("/lambda/", "/s3/"),
                header.replace("AWS4-HMAC-SHA256", "AWS4-ECDSA-P256-SHA256"),
                f"AWS local:{secret}",
                "Bearer token",
                "",
            )
        ),
    ]  # fmt: skip
    for asked in changed:
        status, body = asked.answered_by(url)
        assert status == 403, (asked.headers, asked.path, body[:100])


@pytest.mark.guards("gate-emulator-paths-closed", case="plain")
def test_the_emulators_own_paths_are_closed_to_everybody(guarded: Guarded) -> None:
    url, before = guarded.server.gateway_url, guarded.state()
    for path in ("/_ministack/reset", "/_ministack/config", "/_ministack/health"):
        asked = signed(url, "local", guarded.server.secret, method="POST", path=path)
        assert asked.answered_by(url)[0] == 403, path
    assert guarded.state() == before


@pytest.mark.guards("gate-preflight-names-page", case="plain")
def test_options_are_no_way_around_the_signature(guarded: Guarded) -> None:
    for path in ("/", f"/{BUCKET}/{KEY}", "/2015-03-31/functions/"):
        status, body = Asked(method="OPTIONS", path=path).answered_by(guarded.server.gateway_url)
        assert (status, CONTENT in body) == (403, False)


def test_the_older_signature_of_s3_is_none(guarded: Guarded) -> None:
    url = guarded.server.gateway_url
    asked = signed(url, "local", guarded.server.secret, path=f"/{BUCKET}/{KEY}", signer=HmacV1Auth)
    assert asked.answered_by(url)[0] == 403


@pytest.mark.guards("gate-role-secrets-salted", case="enforcing")
def test_the_credentials_of_a_function_cannot_be_told_from_its_name(guarded: Guarded, tmp_path: Path) -> None:
    with emulator_server(tmp_path, "--enforce-iam") as another:
        have_role(another)
        create_function(another, "environment", ENVIRONMENT)
        theirs = invoke(another, "environment")
    ours = invoke(guarded.server, "environment")
    assert ours["AWS_SECRET_ACCESS_KEY"] != theirs["AWS_SECRET_ACCESS_KEY"]
    lent = {name: ours[f"AWS_{name.upper()}"] for name in ("access_key_id", "secret_access_key")}
    credentials = {f"aws_{name}": value for name, value in lent.items()}
    if "AWS_SESSION_TOKEN" in ours:
        credentials["aws_session_token"] = ours["AWS_SESSION_TOKEN"]
    sts = isolated_clients(guarded.server.gateway_url, REGION, credentials)("sts")
    assert sts.get_caller_identity()["Account"] == ACCOUNT_ID


def form(guarded: Guarded) -> dict[str, Any]:
    """A form that the account has signed, for the key `form`."""
    s3 = guarded.server.client("s3")
    made: dict[str, Any] = s3.generate_presigned_post(BUCKET, "form", Conditions=[["content-length-range", 0, 100]])
    return made


def send(made: dict[str, Any], fields: Mapping[str, str], **headers: str) -> httpx.Response:
    return HTTP.post(made["url"], data=dict(fields), files={"file": b"of a form"}, headers=headers)


@pytest.mark.guards("gate-form-signature", "gate-form-upload-only", "gate-unsigned-form-refused", case="plain")
def test_a_form_uploads_only_if_it_is_signed(guarded: Guarded) -> None:
    made, forged = form(guarded), isolated_clients(
        guarded.server.gateway_url, REGION, {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
    )("s3").generate_presigned_post(BUCKET, "form")  # fmt: skip
    refused = [
        ({"key": "form"}, {}),
        (forged["fields"], {}),
        ({**made["fields"], "x-amz-signature": "0" * 64}, {}),
        ({**made["fields"], "policy": forged["fields"]["policy"]}, {}),
        ({"key": "form", "AWSAccessKeyId": "test", "signature": "x", "policy": made["fields"]["policy"]}, {}),
        (made["fields"], {"Origin": WEBSITE}),
    ]
    for fields, headers in refused:
        assert send(made, fields, **headers).status_code in (400, 403), fields
    assert send(made, made["fields"], **LIST_TABLES).status_code == 403, "a request to another service"
    assert "form" not in guarded.state()["objects"]
    assert send(made, made["fields"], Origin=FRIEND).status_code == 204
    assert "form" in guarded.state()["objects"]
    guarded.server.client("s3").delete_object(Bucket=BUCKET, Key="form")


# ── Who is served ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.guards("gate-navigation-to-page-only", case="plain")
def test_the_machines_tools_and_the_named_pages_are_served_by_the_api_port(guarded: Guarded) -> None:
    url = guarded.server.front_url
    port = urlsplit(url).port
    to_a_page = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", "Sec-Fetch-Site": "cross-site"}
    served = [
        Asked(),
        Asked(host=f"localhost:{port}"),
        Asked(method="POST", body=b"photo"),
        Asked(headers={"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}),
        Asked(headers={"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}),
        Asked(method="POST", headers={"Origin": url, "Sec-Fetch-Site": "same-origin"}),
        Asked(method="POST", headers={"Origin": f"http://localhost:{port}"}, host=f"localhost:{port}"),
        Asked(method="POST", headers={"Origin": FRIEND, "Sec-Fetch-Site": "cross-site"}),
        Asked(headers={"Referer": f"{FRIEND}/gallery", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}),
        Asked(headers=to_a_page),
    ]
    for asked in served:
        assert asked.answered_by(url) == (200, b"served"), asked
    assert Asked(method="POST", headers=to_a_page).answered_by(url)[0] == 403
    assert Asked(headers={**to_a_page, "Sec-Fetch-Dest": "iframe"}).answered_by(url)[0] == 403


def test_pictures_and_downloads_by_a_signed_link_are_served(guarded: Guarded) -> None:
    url, s3 = guarded.server.gateway_url, guarded.server.client("s3")
    link = s3.generate_presigned_url("get_object", Params={"Bucket": BUCKET, "Key": KEY})
    path = link.removeprefix(url)
    for headers in (
        {},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"},
        {"Origin": FRIEND, "Sec-Fetch-Site": "cross-site"},
        {"Origin": guarded.server.front_url, "Sec-Fetch-Site": "same-site"},
    ):
        assert Asked(path=path, headers=headers).answered_by(url) == (200, CONTENT), headers
    assert Asked(path=path, headers={"Origin": WEBSITE}).answered_by(url)[0] == 403
    assert Asked(path=path.replace(KEY, "other")).answered_by(url)[0] == 403
    upload = s3.generate_presigned_url("put_object", Params={"Bucket": BUCKET, "Key": "put"}).removeprefix(url)
    by_image = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
    assert Asked(method="PUT", path=upload, body=b"x", headers=by_image).answered_by(url)[0] == 403
    assert Asked(method="PUT", path=upload, body=b"x").answered_by(url)[0] == 200
    s3.delete_object(Bucket=BUCKET, Key="put")


def test_head_tells_the_length_of_a_body_that_it_does_not_send_and_has_a_link_of_its_own(guarded: Guarded) -> None:
    links = {
        method: guarded.server.client("s3").generate_presigned_url(call, {"Bucket": BUCKET, "Key": KEY})
        for method, call in (("GET", "get_object"), ("HEAD", "head_object"))
    }
    for url, length in ((guarded.server.front_url, len(b"served")), (links["HEAD"], len(CONTENT))):
        answer = HTTP.head(url)
        assert (answer.status_code, answer.content, answer.headers["content-length"]) == (200, b"", str(length))
    statuses = {
        (method, signed): HTTP.request(method, links[signed]).status_code for method in links for signed in links
    }
    assert statuses == {(method, signed): 200 if method == signed else 403 for method, signed in statuses}


def test_a_preflight_is_answered_for_a_named_page_alone(guarded: Guarded) -> None:
    url = guarded.server.gateway_url
    rule = {"AllowedOrigins": ["*"], "AllowedMethods": ["POST"]}
    guarded.server.client("s3").put_bucket_cors(Bucket=BUCKET, CORSConfiguration={"CORSRules": [rule]})
    for origin, status in ((WEBSITE, 403), (FRIEND, 200)):
        headers = {"Origin": origin, "Access-Control-Request-Method": "POST"}
        assert Asked(method="OPTIONS", path=f"/{BUCKET}", headers=headers).answered_by(url)[0] == status, origin


def test_an_sdk_says_what_is_wrong_with_its_credentials(guarded: Guarded) -> None:
    clients = isolated_clients(
        guarded.server.gateway_url, REGION, {"aws_access_key_id": "local", "aws_secret_access_key": "another run's"}
    )
    for service, operation in (
        ("dynamodb", "list_tables"),
        ("lambda", "list_functions"),
        ("s3", "list_buckets"),
        ("cloudformation", "list_stacks"),
        ("sqs", "list_queues"),
    ):
        client = clients(service)
        with pytest.raises(client.exceptions.ClientError, match=r"made anew at each start") as caught:
            getattr(client, operation)()
        assert caught.value.response["Error"]["Code"] == "SignatureDoesNotMatch"


def test_a_containers_host_is_served_for_as_long_as_the_relay_says_so(tmp_path: Path) -> None:
    relay = tmp_path / "relay"
    with emulator_server(tmp_path / "data", "--relay-file", str(relay)) as server:
        url, host = server.gateway_url, "172.17.0.1:4566"
        asked = Asked(**{**vars(signed(f"http://{host}", "local", server.secret)), "host": host})
        assert asked.answered_by(url)[0] == 403
        relay.write_text(host)
        assert asked.answered_by(url)[0] == 200
        assert Asked(host=host).answered_by(url)[0] == 403, "it is signed like any other"
        relay.unlink()
        assert asked.answered_by(url)[0] == 403


def test_the_file_that_has_the_secret_is_its_owners_alone(tmp_path: Path) -> None:
    with emulator_server(tmp_path):
        assert (tmp_path / "ready.json").stat().st_mode & 0o777 == 0o600


def test_fields_of_a_form_after_its_file_are_ignored(guarded: Guarded) -> None:
    made, edge = form(guarded), "a-line-between-fields"
    fields = [(name, value) for name, value in made["fields"].items()]
    parts = [*fields, ("file", "of a form"), ("key", "elsewhere"), ("x-amz-meta-more", "ignored")]
    lines = "".join(
        f'--{edge}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in parts
    )
    headers = {"Content-Type": f"multipart/form-data; boundary={edge}"}
    asked = Asked(method="POST", path=f"/{BUCKET}", body=f"{lines}--{edge}--\r\n".encode(), headers=headers)
    status, body = asked.answered_by(guarded.server.gateway_url)
    assert status == 204, body
    s3 = guarded.server.client("s3")
    assert s3.head_object(Bucket=BUCKET, Key="form")["Metadata"] == {}
    s3.delete_object(Bucket=BUCKET, Key="form")


def test_gap_stock_takes_fields_after_the_file_and_unsigned_forms(stock: EmulatorServer) -> None:
    stock.client("s3").create_bucket(Bucket="forms")
    edge = {"Content-Type": "multipart/form-data; boundary=edge"}
    body = b"".join(
        b'--edge\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' % part
        for part in ((b"file", b"content"), (b"key", b"after"))
    )
    answer = HTTP.post(f"{stock.gateway_url}/forms", content=body + b"--edge--\r\n", headers=edge)
    assert answer.status_code == 204
