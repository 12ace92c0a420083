"""What distributions lack on stock MiniStack, and how the shims of the edge correct it."""

from __future__ import annotations

import base64
import http.client
import json
import subprocess
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any
from urllib.parse import quote, urlsplit
from uuid import uuid4

import httpx
import pytest
from botocore.exceptions import ClientError
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA

from local_aws.distributions.cache import Answer, EdgeCache, Kept
from local_aws.distributions.lifetimes import Lifetimes, lifetime
from local_aws.edge import normalised
from local_aws.tests.distributions import KEY, PEM, Edge, deployed
from local_aws.tests.emulator_server import (
    REPOSITORY,
    EmulatorServer,
    output_of,
    physical_ids,
    reasons_for_failed_stack,
    stack,
    update_stack,
)

pytest_plugins = ("local_aws.tests.emulator_fixtures",)

HIT, MISS, REFRESHED, ERROR = (f"{word} from cloudfront" for word in ("Hit", "Miss", "RefreshHit", "Error"))


@pytest.fixture(scope="module")
def node() -> None:
    """The environment with the program that runs CloudFront Functions, which no other test of the emulator needs."""
    subprocess.run([REPOSITORY / "scripts" / "setup" / "environments.sh", "node"], check=True)


@pytest.fixture(scope="module")
def edge(emulator: EmulatorServer, node: None) -> Iterator[Edge]:
    with deployed(emulator) as made:
        yield made


@pytest.fixture(scope="module")
def stock_edge(stock: EmulatorServer, node: None) -> Iterator[Edge]:
    with deployed(stock, is_stock=True) as made:
        yield made


def get(edge: Edge, path: str, method: str = "GET", **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.request(method, f"{edge.url}{path}", headers={**edge.headers, **named}, trust_env=False, timeout=60)


def asked(**said: Any) -> str:
    """The path of an object of the function, which answers with these headers, status or delay."""
    headers = {name.replace("_", "-"): value for name, value in said.pop("headers", {}).items()}
    rest = "".join(f"&{name}={value}" for name, value in said.items())
    return f"/f/{uuid4().hex[:8]}?headers={quote(json.dumps(headers))}{rest}"


# edge_cache


def test_gap_stock_asks_the_origin_each_time(stock_edge: Edge) -> None:
    path = f"/public/{uuid4().hex}"
    contents = [(stock_edge.put(path[1:]), get(stock_edge, path).text) for _ in range(2)]
    assert all(put == got for put, got in contents)


def test_what_is_kept_is_answered_without_the_origin(edge: Edge) -> None:
    path = f"/public/{uuid4().hex}"
    content = edge.put(path[1:])
    first = get(edge, path)
    assert (first.text, first.headers["X-Cache"], "Age" in first.headers) == (content, MISS, False)
    edge.put(path[1:])
    again = get(edge, f"{path}?not=in-the-key", Accept_Encoding="br", Cookie="a=b")
    assert (again.text, again.headers["X-Cache"], again.headers["Age"].isdecimal()) == (content, HIT, True)
    assert again.headers["Cache-Control"] == "private, max-age=86400"
    assert get(edge, path, "HEAD").headers["X-Cache"] == HIT
    etag = first.headers["ETag"]
    for conditions, status in (
        ({"If_None_Match": f'"other", W/{etag}'}, 304),
        ({"If_None_Match": '"other"'}, 200),
        ({"If_Modified_Since": first.headers["Last-Modified"]}, 304),
    ):
        conditional = get(edge, path, **conditions)
        assert (conditional.status_code, conditional.headers["ETag"], conditional.headers["X-Cache"]) == (
            status,
            etag,
            HIT,
        )


@pytest.mark.parametrize(
    ("said", "is_kept"),
    [
        ({"headers": {"Cache_Control": "max-age=60"}}, True),
        ({"headers": {}}, False),
        ({"headers": {"Cache_Control": "no-store"}}, False),
        ({"status": 302, "headers": {"Cache_Control": "max-age=60", "Location": "/"}}, True),
        ({"status": 404}, True),
        ({"status": 403}, False),
        ({"status": 503}, True),
    ],
)
def test_the_origin_says_what_is_kept(edge: Edge, said: dict[str, Any], is_kept: bool) -> None:
    path = asked(**said)
    first, again = get(edge, path), get(edge, path)
    assert first.status_code == again.status_code == said.get("status", 200)
    assert (first.text == again.text) is is_kept
    if first.status_code >= 400:
        assert again.headers["X-Cache"] == ERROR


BOUNDS = Lifetimes(minimum=60, default=300, maximum=3600)
NO_MINIMUM = Lifetimes(minimum=0, default=300, maximum=3600)
NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("status", "headers", "without_minimum", "with_minimum"),
    [
        (200, {}, 300, 300),
        (200, {"cache-control": "max-age=10"}, 10, 60),
        (200, {"cache-control": "public, max-age=900"}, 900, 900),
        (200, {"cache-control": "max-age=9000"}, 3600, 3600),
        (200, {"cache-control": "max-age=10, s-maxage=900"}, 900, 900),
        (200, {"cache-control": "private, max-age=900"}, 0, 60),
        (200, {"cache-control": "no-store"}, 0, 60),
        (200, {"cache-control": "no-cache"}, 0, 60),
        (200, {"expires": "Fri, 15 Jan 2027 08:10:00 GMT"}, 600, 600),
        (200, {"expires": "0"}, 0, 60),
        (200, {"cache-control": "max-age=900", "expires": "0"}, 900, 900),
        (307, {}, 0, 0),
        (404, {}, 10, 10),
        (404, {"cache-control": "max-age=9000"}, 3600, 3600),
        (404, {"cache-control": "no-store"}, 0, 0),
        (503, {"cache-control": "no-store"}, 10, 10),
        (403, {}, 0, 0),
        (403, {"cache-control": "max-age=5"}, 10, 10),
        (416, {}, 0, 0),
    ],
)
def test_how_long_an_answer_is_kept(
    status: int, headers: Mapping[str, str], without_minimum: int, with_minimum: int
) -> None:
    for bounds, seconds in ((NO_MINIMUM, without_minimum), (BOUNDS, with_minimum)):
        assert lifetime(status, headers, bounds, now=NOW) == seconds


def test_what_has_expired_is_asked_for_again(edge: Edge) -> None:
    path = asked(headers={"Cache_Control": "max-age=1", "ETag": '"1"'})
    first = get(edge, path)
    time.sleep(1.1)
    again = get(edge, path)
    assert (again.headers["X-Cache"], again.text == first.text) == (MISS, False)
    assert "if-none-match" in again.json()["headers"]


def test_requests_at_the_same_time_ask_the_origin_once(edge: Edge) -> None:
    kept, private = asked(sleep=1, headers={"Cache_Control": "max-age=60"}), asked(sleep=0.3)
    with ThreadPoolExecutor(8) as viewers:
        for path, count in ((kept, 1), (private, 4)):
            assert len(set(viewers.map(lambda path: get(edge, path).text, [path] * 4))) == count


def test_the_cache_has_room_for_the_latest_only() -> None:
    cache = EdgeCache(maximum_bytes=10)
    for key in "abc":
        answer = Answer(200, "OK", {}, b"12345")
        cache.put(
            key, Kept(answer=answer, distribution_id="D", address="/", tags=frozenset(), stored_at=0, expires_at=1)
        )
        cache.get("a")
    assert [key for key in "abc" if cache.get(key)] == ["a", "c"]


# edge_invalidations


def test_gap_stock_takes_any_path_to_invalidate(stock_edge: Edge) -> None:
    assert stock_edge.invalidate("no-slash")


@pytest.mark.parametrize(
    ("items", "gone"),
    [
        (["/public/{0}/a"], ["a"]),
        (["/public/{0}/*"], ["a", "b"]),
        (["/public/{0}/A", "/elsewhere*"], []),
        (["#TAG-{0}"], ["b"]),
        (["#tag-{0}*", "#tag"], []),
    ],
)
def test_an_invalidation_removes_what_it_names(edge: Edge, items: list[str], gone: list[str]) -> None:
    folder = uuid4().hex
    for name, tag in (("a", "other"), ("b", f"first, Tag-{folder}")):
        edge.put(f"public/{folder}/{name}", tag)
        get(edge, f"/public/{folder}/{name}")
    made = edge.invalidate(*(item.format(folder) for item in items))
    found = edge.server.client("cloudfront").get_invalidation(DistributionId=edge.ids["Distribution"], Id=made)
    assert found["Invalidation"]["Status"] == "InProgress"
    assert [name for name in "ab" if get(edge, f"/public/{folder}/{name}").headers["X-Cache"] == MISS] == gone


@pytest.mark.parametrize(
    ("items", "code"),
    [
        (["no-slash"], "InvalidArgument"),
        (["/a*b"], "InvalidArgument"),
        (["#a b"], "InvalidArgument"),
        ([f"/{number}" for number in range(3001)], "BatchTooLarge"),
        ([f"/{number}*" for number in range(16)], "TooManyInvalidationsInProgress"),
    ],
)
def test_an_invalidation_that_cloudfront_refuses(edge: Edge, items: list[str], code: str) -> None:
    with pytest.raises(ClientError, match=code):
        edge.invalidate(*items)


def test_an_invalidation_is_not_made_twice(edge: Edge) -> None:
    reference = uuid4().hex
    made = edge.invalidate("/a", reference=reference)
    assert edge.invalidate("/a", reference=reference) == made
    with pytest.raises(ClientError, match="InvalidationBatchAlreadyExists"):
        edge.invalidate("/b", reference=reference)
    with pytest.raises(ClientError, match="InconsistentQuantities"):
        edge.invalidate("/c", quantity=2)


# signed_urls


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode().translate(str.maketrans("+=/", "-_~"))


def signed(edge: Edge, resource: str, *, algorithm: str = "SHA256", **condition: Any) -> dict[str, str]:
    """The parameters that sign a custom policy; it has ended if `condition` says so."""
    until = {"DateLessThan": {"AWS:EpochTime": int(time.time()) + 60}}
    document = {"Statement": [{"Resource": resource, "Condition": {**until, **condition}}]}
    policy = json.dumps(document, separators=(",", ":")).encode()
    signature = KEY.sign(policy, ECDSA(getattr(hashes, algorithm)()))
    said = {"Policy": encoded(policy), "Signature": encoded(signature), "Key-Pair-Id": edge.ids["Key"]}
    return said if algorithm == "SHA1" else {**said, "Hash-Algorithm": algorithm}


def query(said: Mapping[str, str]) -> str:
    return "?" + "&".join(f"{name}={value}" for name, value in said.items())


def test_gap_stock_serves_without_a_signature(stock_edge: Edge) -> None:
    content = stock_edge.put("signed/one/a")
    assert get(stock_edge, "/signed/one/a").text == content


def test_a_signature_lets_in_whom_its_policy_allows(edge: Edge) -> None:
    content, everything = edge.put("signed/one/a"), f"{edge.url}/signed/one/*"
    past, future = ({"AWS:EpochTime": int(time.time()) + seconds} for seconds in (-1, 60))
    here, elsewhere = ({"AWS:SourceIp": network} for network in ("127.0.0.0/8", "192.0.2.1"))
    good = signed(edge, everything)
    cases: list[tuple[Mapping[str, str], str | None]] = [
        (good, None),
        (signed(edge, everything, algorithm="SHA1"), None),
        (signed(edge, everything, DateGreaterThan=past, IpAddress=here), None),
        (signed(edge, "http://*/signed/?ne/a"), None),
        ({}, "MissingKey"),
        ({**good, "Key-Pair-Id": "KOTHER"}, "InvalidKey"),
        ({**good, "Signature": "%"}, "MalformedSignature"),
        ({**good, "Policy": encoded(b"{}")}, "MalformedPolicy"),
        ({**good, "Policy": signed(edge, "*")["Policy"]}, "AccessDenied"),
        ({**good, "Hash-Algorithm": "SHA1"}, "AccessDenied"),
        (signed(edge, f"{edge.url}/signed/two/*"), "AccessDenied"),
        (signed(edge, "https://elsewhere.example/signed/one/*"), "AccessDenied"),
        (signed(edge, everything, DateLessThan=past), "AccessDenied"),
        (signed(edge, everything, DateGreaterThan=future), "AccessDenied"),
        (signed(edge, everything, IpAddress=elsewhere), "AccessDenied"),
    ]
    for said, code in cases:
        answer = get(edge, f"/signed/one/a{query(said)}")
        assert (answer.status_code, code in answer.text if code else answer.text) == (
            (403, True) if code else (200, content)
        ), (said, answer.text)
    # The signature is no part of the key, and what is kept is not served without one.
    assert get(edge, f"/signed/one/a{query(signed(edge, everything))}").headers["X-Cache"] == HIT


def test_a_canned_policy_is_for_one_url(edge: Edge) -> None:
    edge.put("signed/one/b")
    until = int(time.time()) + 60
    url, condition = f"{edge.url}/signed/one/b?size=1", {"DateLessThan": {"AWS:EpochTime": until}}
    policy = json.dumps({"Statement": [{"Resource": url, "Condition": condition}]}, separators=(",", ":")).encode()
    said = {
        "Expires": str(until),
        "Signature": encoded(KEY.sign(policy, ECDSA(hashes.SHA1()))),
        "Key-Pair-Id": edge.ids["Key"],
    }
    for size, status in (("1", 200), ("2", 403)):
        assert get(edge, f"/signed/one/b?size={size}&{query(said)[1:]}").status_code == status


# key_groups


def key(pem: str) -> dict[str, Any]:
    configuration = {"CallerReference": uuid4().hex, "Name": uuid4().hex, "EncodedKey": pem}
    return {"Type": "AWS::CloudFront::PublicKey", "Properties": {"PublicKeyConfig": configuration}}


def test_gap_stock_has_no_keys_in_stacks(stock: EmulatorServer) -> None:
    with pytest.raises(ClientError, match="Unrecognized resource types"):
        reasons_for_failed_stack(stock, {"Key": key(PEM)})


def test_what_is_no_key_is_refused(emulator: EmulatorServer) -> None:
    assert "invalid encoded key" in reasons_for_failed_stack(emulator, {"Key": key("no key")})


def test_a_key_group_changes_its_keys(emulator: EmulatorServer) -> None:
    kept = {name: key(PEM) for name in ("First", "Second")}

    def resources(*names: str) -> dict[str, Any]:
        configuration = {"Name": "rotated", "Items": [{"Ref": name} for name in names]}
        group = {"Type": "AWS::CloudFront::KeyGroup", "Properties": {"KeyGroupConfig": configuration}}
        return {**{name: kept[name] for name in names}, "Group": group}

    with stack(emulator, resources("First")) as name:
        update_stack(emulator, name, resources("First", "Second"))
        group_id = physical_ids(emulator, name)["Group"]
        group = emulator.client("cloudfront").get_key_group(Id=group_id)["KeyGroup"]
        assert len(group["KeyGroupConfig"]["Items"]) == 2
        update_stack(emulator, name, resources("Second"))


# origin_access


def test_gap_stock_calls_no_function_url_that_requires_iam(stock_edge: Edge) -> None:
    assert get(stock_edge, asked()).status_code == 403


def test_an_origin_is_read_as_its_policy_allows(edge: Edge) -> None:
    edge.put("outputs/a")
    edge.put("public/b")
    assert [get(edge, path).status_code for path in ("/public/b", "/public/missing", asked())] == [200, 403, 200]
    seen = get(edge, asked()).json()
    assert "x-forwarded-for" in seen["headers"]
    functions = edge.server.client("lambda")
    (sid,) = [
        statement["Sid"]
        for statement in json.loads(functions.get_policy(FunctionName=edge.ids["Origin"])["Policy"])["Statement"]
        if statement["Action"] == "lambda:InvokeFunction"
    ]
    functions.remove_permission(FunctionName=edge.ids["Origin"], StatementId=sid)
    try:
        assert get(edge, asked()).status_code == 403
    finally:
        arn = f"arn:aws:cloudfront::000000000000:distribution/{edge.ids['Distribution']}"
        functions.add_permission(
            FunctionName=edge.ids["Origin"],
            StatementId=sid,
            Action="lambda:InvokeFunction",
            Principal="cloudfront.amazonaws.com",
            SourceArn=arn,
        )


# origin_groups


def test_gap_stock_knows_no_origin_groups(stock_edge: Edge) -> None:
    assert get(stock_edge, "/public/or/a").status_code == 502


def test_a_group_asks_its_second_origin_for_what_the_first_one_does_not_have(edge: Edge) -> None:
    content = edge.put("public/or/a", control="max-age=60")
    assert get(edge, "/public/or/a").text == content
    missing = f"/public/or/b?headers={quote(json.dumps({'Cache-Control': 'max-age=60'}))}"
    made = get(edge, missing)
    assert (made.status_code, made.json()["query"]) == (200, missing.partition("?")[2])
    assert get(edge, missing).text == made.text, "the answer of either is kept"
    failed = get(edge, "/public/or/c?status=503")
    assert (failed.status_code, failed.headers["X-Cache"]) == (503, ERROR)


# origin_access, of keys


def encrypted(edge: Edge, *named: dict[str, Any]) -> int:
    """The status of an object in a bucket that gets a key of its own, whose policy has these statements more."""
    account = {
        "Effect": "Allow",
        "Principal": {"AWS": "arn:aws:iam::000000000000:root"},
        "Action": "kms:*",
        "Resource": "*",
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [account, *named]})
    key_arn = edge.server.client("kms").create_key(Policy=policy)["KeyMetadata"]["Arn"]
    rule = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": key_arn}}
    s3, bucket = edge.server.client("s3"), edge.ids["Bucket"]
    s3.put_bucket_encryption(Bucket=bucket, ServerSideEncryptionConfiguration={"Rules": [rule]})
    path = f"/public/{uuid4().hex}"
    edge.put(path[1:])
    try:
        return get(edge, path).status_code
    finally:
        s3.delete_bucket_encryption(Bucket=bucket)


def test_gap_stock_asks_for_no_permission_to_use_a_buckets_key(stock_edge: Edge) -> None:
    assert encrypted(stock_edge) == 200


def test_a_buckets_key_must_name_the_distribution(edge: Edge) -> None:
    arn = f"arn:aws:cloudfront::000000000000:distribution/{edge.ids['Distribution']}"
    statuses = []
    for source in (arn, f"{arn}X"):
        condition = {"StringEquals": {"AWS:SourceArn": source}}
        service = {"Principal": {"Service": "cloudfront.amazonaws.com"}, "Action": "kms:Decrypt", "Resource": "*"}
        statuses.append(encrypted(edge, {"Effect": "Allow", **service, "Condition": condition}))
    assert [*statuses, encrypted(edge)] == [200, 403, 403]


# viewer_functions, and the port

NOWHERE = """
import os, sys
sys.prefix, os.environ["PATH"] = "/nowhere/emulator", ""
from local_aws.ministack_internals import internals
print(internals("core.node_pool")._NODE_BINARY)
if sys.argv[1] == "corrected":
    from local_aws.shims import viewer_functions
    viewer_functions.apply(None)
create = internals("services.cloudformation.provisioners")._RESOURCE_HANDLERS["AWS::CloudFront::Function"]["create"]
configuration = {"Comment": "", "Runtime": "cloudfront-js-2.0"}
try:
    create("Function", {"Name": "one", "FunctionCode": "", "FunctionConfig": configuration}, "stack")
except ValueError as error:
    print(error)
"""


def test_gap_stock_runs_viewer_functions_on_whatever_node_there_is() -> None:
    assert output_of(NOWHERE, "stock") == "node"


def test_a_viewer_function_without_node_is_refused() -> None:
    assert "make the environment 'node'" in output_of(NOWHERE, "corrected")


def raw(edge: Edge, path: str) -> int:
    """The status of a path that is sent as it is."""
    with closing(http.client.HTTPConnection(urlsplit(edge.url).netloc, timeout=60)) as connection:
        connection.request("GET", path)
        return connection.getresponse().status


def test_a_behaviour_is_chosen_by_the_normalised_path(edge: Edge) -> None:
    edge.put("signed/one/c")
    edge.put("public/c")
    statuses = {
        "/": 404,
        "/signed%2Fone/c": 404,  # by the default behaviour, whose function answers
        "/%73igned/one/c": 403,
        "/public/../signed/one/c": 403,
        "/public/%2e%2e/signed/one/c": 403,
        "/public/..%2Fsigned/one/c": 403,  # S3 has no such key
        "/%70ublic/c": 200,
    }
    assert {path: raw(edge, path) for path in statuses} == statuses
    assert [normalised(path) for path in ("/", "/a/..", "/a/b/.", "/a%2fb%41")] == ["/", "/", "/a/b/", "/a%2FbA"]


def test_the_port_takes_plain_http_for_tls_and_keeps_websites_from_reading(edge: Edge) -> None:
    edge.put("public/d")
    cases: list[tuple[dict[str, str], int]] = [
        ({}, 200),
        ({"X_Forwarded_Proto": "http"}, 403),
        ({"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "no-cors", "Sec_Fetch_Dest": "image"}, 200),
        ({"Origin": "https://elsewhere.example"}, 403),
        ({"Host": "elsewhere.example"}, 403),
    ]
    assert [get(edge, "/public/d", **headers).status_code for headers, _ in cases] == [status for _, status in cases]


# distribution_addresses


def test_a_stacks_output_names_the_edge_here(emulator: EmulatorServer, stock: EmulatorServer) -> None:
    template = {
        "Resources": {
            "Distribution": {
                "Type": "AWS::CloudFront::Distribution",
                "Properties": {
                    "DistributionConfig": {
                        "Enabled": True,
                        "Origins": [
                            {
                                "Id": "a",
                                "DomainName": "a.example",
                                "CustomOriginConfig": {"OriginProtocolPolicy": "https-only"},
                            }
                        ],
                        "DefaultCacheBehavior": {"TargetOriginId": "a", "ViewerProtocolPolicy": "https-only"},
                    }
                },
            }
        },
        "Outputs": {"Edge": {"Value": {"Fn::Sub": "https://${Distribution.DomainName},more"}}},
    }
    for server, begins in ((emulator, f"{emulator.edge_url},"), (stock, "https://")):
        cloudformation, name = server.client("cloudformation"), f"addresses-{uuid4().hex[:8]}"
        cloudformation.create_stack(StackName=name, TemplateBody=json.dumps(template))
        cloudformation.get_waiter("stack_create_complete").wait(StackName=name, WaiterConfig={"Delay": 1})
        (described,) = cloudformation.describe_stacks(StackName=name)["Stacks"]
        assert described["Outputs"][0]["OutputValue"].startswith(begins)
        cloudformation.delete_stack(StackName=name)
        cloudformation.get_waiter("stack_delete_complete").wait(StackName=name, WaiterConfig={"Delay": 1})
