"""Resources of a small distribution, as the tests of the edge's shims need them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from local_aws.tests.emulator_server import EmulatorServer, function_resource, physical_ids, stack

# Answers as its query asks, with a body that is another one each time.
ORIGIN = """
import json, os, time

def handler(event, context):
    query = event.get("queryStringParameters") or {}
    time.sleep(float(query.get("sleep", 0)))
    seen = {"query": event["rawQueryString"], "headers": sorted(event["headers"])}
    body = json.dumps({"asked": os.urandom(8).hex(), **seen})
    headers = json.loads(query.get("headers", "{}"))
    return {"statusCode": int(query.get("status", 200)), "headers": headers, "body": body}
"""
NOT_HERE = "function handler(event) { return {statusCode: 404, headers: {'x-by': {value: 'function'}}}; }"
KEY = generate_private_key(SECP256R1())
PEM = KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
ARN = {"Fn::Sub": "arn:aws:cloudfront::${AWS::AccountId}:distribution/${Distribution}"}


def _policy(name: str, minimum: int, maximum: int, query: str) -> dict[str, Any]:
    parameters = {
        "EnableAcceptEncodingGzip": False,
        "HeadersConfig": {"HeaderBehavior": "none"},
        "CookiesConfig": {"CookieBehavior": "none"},
        "QueryStringsConfig": {"QueryStringBehavior": query},
    }
    configuration = {
        "Name": f"{name}-{uuid4().hex[:8]}",
        "MinTTL": minimum,
        "DefaultTTL": minimum,
        "MaxTTL": maximum,
        "ParametersInCacheKeyAndForwardedToOrigin": parameters,
    }
    return {"Type": "AWS::CloudFront::CachePolicy", "Properties": {"CachePolicyConfig": configuration}}


def _access(kind: str) -> dict[str, Any]:
    configuration = {
        "Name": f"{kind}-{uuid4().hex[:8]}",
        "OriginAccessControlOriginType": kind,
        "SigningBehavior": "always",
        "SigningProtocol": "sigv4",
    }
    return {
        "Type": "AWS::CloudFront::OriginAccessControl",
        "Properties": {"OriginAccessControlConfig": configuration},
    }


def _behaviour(origin: str, policy: str, **properties: Any) -> dict[str, Any]:
    return {
        "TargetOriginId": origin,
        "CachePolicyId": {"Ref": policy},
        "ViewerProtocolPolicy": "https-only",
        **properties,
    }


def _permission(action: str) -> dict[str, Any]:
    return {
        "Type": "AWS::Lambda::Permission",
        "Properties": {
            "FunctionName": {"Ref": "Origin"},
            "Action": action,
            "Principal": "cloudfront.amazonaws.com",
            "SourceArn": ARN,
        },
    }


def _bucket_policy() -> dict[str, Any]:
    bucket = {"Fn::Sub": "arn:aws:s3:::${Bucket}/*"}
    statements = [
        {
            "Effect": "Allow",
            "Principal": {"Service": "cloudfront.amazonaws.com"},
            "Action": "s3:GetObject",
            "Resource": [{"Fn::Sub": f"arn:aws:s3:::${{Bucket}}/{prefix}/*"} for prefix in ("public", "signed")],
            "Condition": {"StringEquals": {"AWS:SourceArn": ARN}},
        },
        {
            "Effect": "Deny",
            "Principal": "*",
            "Action": "s3:*",
            "Resource": bucket,
            "Condition": {"Bool": {"aws:SecureTransport": "false"}},
        },
    ]
    return {
        "Type": "AWS::S3::BucketPolicy",
        "Properties": {
            "Bucket": {"Ref": "Bucket"},
            "PolicyDocument": {"Version": "2012-10-17", "Statement": statements},
        },
    }


def distribution(*, errors: int = 10) -> dict[str, Any]:
    """The resources: /public/* and /signed/* from a bucket, /f/* from a function, and a function's 404 for the rest."""
    own = {"Fn::GetAtt": ["NotHere", "FunctionARN"]}
    configuration = {
        "Enabled": True,
        "CacheTagConfig": {"HeaderName": "x-amz-meta-cache-tag"},
        "Origins": [
            {
                "Id": "bucket",
                "DomainName": {"Fn::GetAtt": ["Bucket", "RegionalDomainName"]},
                "S3OriginConfig": {"OriginAccessIdentity": ""},
                "OriginAccessControlId": {"Ref": "BucketAccess"},
            },
            {
                "Id": "function",
                "DomainName": {"Fn::Select": [2, {"Fn::Split": ["/", {"Fn::GetAtt": ["Url", "FunctionUrl"]}]}]},
                "CustomOriginConfig": {"OriginProtocolPolicy": "https-only"},
                "OriginAccessControlId": {"Ref": "FunctionAccess"},
            },
        ],
        "OriginGroups": {
            "Quantity": 1,
            "Items": [
                {
                    "Id": "bucket-or-function",
                    "FailoverCriteria": {"StatusCodes": {"Quantity": 1, "Items": [403]}},
                    "Members": {"Quantity": 2, "Items": [{"OriginId": "bucket"}, {"OriginId": "function"}]},
                }
            ],
        },
        "CacheBehaviors": [
            _behaviour("bucket-or-function", "Short", PathPattern="public/or/*"),
            _behaviour("bucket", "Long", PathPattern="public/*"),
            _behaviour("bucket", "Long", PathPattern="signed/*", TrustedKeyGroups=[{"Ref": "Group"}]),
            _behaviour("function", "Short", PathPattern="f/*"),
        ],
        "DefaultCacheBehavior": _behaviour(
            "bucket", "Long", FunctionAssociations=[{"EventType": "viewer-request", "FunctionARN": own}]
        ),
        "CustomErrorResponses": [{"ErrorCode": 404, "ErrorCachingMinTTL": errors}],
    }
    return {
        "Bucket": {"Type": "AWS::S3::Bucket"},
        "BucketPolicy": _bucket_policy(),
        "Origin": function_resource(ORIGIN),
        "Url": {
            "Type": "AWS::Lambda::Url",
            "Properties": {"AuthType": "AWS_IAM", "TargetFunctionArn": {"Fn::GetAtt": ["Origin", "Arn"]}},
        },
        "MayInvoke": _permission("lambda:InvokeFunction"),
        "MayInvokeUrl": _permission("lambda:InvokeFunctionUrl"),
        "Long": _policy("long", 600, 600, "none"),
        "Short": _policy("short", 0, 60, "all"),
        "BucketAccess": _access("s3"),
        "FunctionAccess": _access("lambda"),
        "NotHere": {
            "Type": "AWS::CloudFront::Function",
            "Properties": {
                "Name": f"not-here-{uuid4().hex[:8]}",
                "FunctionCode": NOT_HERE,
                "AutoPublish": True,
                "FunctionConfig": {"Comment": "", "Runtime": "cloudfront-js-2.0"},
            },
        },
        "Key": {
            "Type": "AWS::CloudFront::PublicKey",
            "Properties": {
                "PublicKeyConfig": {"CallerReference": "1", "Name": f"k-{uuid4().hex[:8]}", "EncodedKey": PEM}
            },
        },
        "Group": {
            "Type": "AWS::CloudFront::KeyGroup",
            "Properties": {"KeyGroupConfig": {"Name": f"g-{uuid4().hex[:8]}", "Items": [{"Ref": "Key"}]}},
        },
        "Distribution": {
            "Type": "AWS::CloudFront::Distribution",
            "Properties": {"DistributionConfig": configuration},
        },
    }


def for_stock(resources: dict[str, Any]) -> dict[str, Any]:
    """The same for stock MiniStack, which refuses keys and takes every request to S3 for plain http."""
    resources["BucketPolicy"]["Properties"]["PolicyDocument"]["Statement"].pop()
    text = json.dumps({name: made for name, made in resources.items() if name not in ("Key", "Group")})
    known: dict[str, Any] = json.loads(text.replace('{"Ref": "Group"}', '"a-group"'))
    return known


@dataclass(frozen=True, kw_only=True)
class Edge:
    """A distribution that is deployed, where viewers find it."""

    server: EmulatorServer
    stack_name: str
    ids: dict[str, str]
    url: str
    headers: dict[str, str]

    def put(self, key: str, tag: str = "one", control: str = "private, max-age=86400") -> str:
        """Put an object, and return its content."""
        content = uuid4().hex
        self.server.client("s3").put_object(
            Bucket=self.ids["Bucket"], Key=key, Body=content, CacheControl=control, Metadata={"cache-tag": tag}
        )
        return content

    def invalidate(self, *items: str, reference: str = "", quantity: int | None = None) -> str:
        """The id of a new invalidation."""
        paths = {"Quantity": len(items) if quantity is None else quantity, "Items": list(items)}
        made: str = self.server.client("cloudfront").create_invalidation(
            DistributionId=self.ids["Distribution"],
            InvalidationBatch={"Paths": paths, "CallerReference": reference or uuid4().hex},
        )["Invalidation"]["Id"]
        return made


@contextmanager
def deployed(server: EmulatorServer, *, is_stock: bool = False) -> Iterator[Edge]:
    """A distribution, for the length of the block."""
    with stack(server, for_stock(distribution()) if is_stock else distribution()) as name:
        ids = physical_ids(server, name)
        known = server.client("cloudfront").get_distribution(Id=ids["Distribution"])["Distribution"]
        host = {"Host": known["DomainName"], "X-Forwarded-Proto": "https"} if is_stock else {}
        url = server.gateway_url if is_stock else server.edge_url
        yield Edge(server=server, stack_name=name, ids=ids, url=url, headers=host)
