"""Lets stacks have public keys and key groups, with which CloudFront checks signed URLs.

Gap: MiniStack has both in its API, which takes any text for a key, but refuses them in stacks.
AWS: a key is RSA with 2,048 bits or ECDSA with the curve P-256, in PEM. Of a key only the comment can change, and it
cannot be deleted while a group has it.
https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-cloudfront-publickey.html
https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-cloudfront-keygroup.html
https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/private-content-trusted-signers.html
"""

from __future__ import annotations

from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring

from local_aws.cloudformation_refusals import refusal
from local_aws.distributions.signed_urls import public_key
from local_aws.emulator import Emulator
from local_aws.ministack_internals import add_resource_type, internals, replace

_KINDS = {"PublicKey": ("public_key", "CreatedTime"), "KeyGroup": ("key_group", "LastModifiedTime")}


def apply(emulator: Emulator) -> None:
    """Check keys, and add the two types of resources."""
    replace(internals("services.cloudfront"), "_parse_public_key_config", _only_keys)
    for kind, (name, time_attribute) in _KINDS.items():
        _add(kind, name, time_attribute)


def _only_keys(parse: Any) -> Any:
    def parse_public_key_config(element: Any) -> Any:
        configuration, error = parse(element)
        try:
            if error is None:
                public_key(configuration["EncodedKey"])
        except ValueError:
            message = "Your request contains an invalid encoded key: it is not RSA 2048 or ECDSA 256 in PEM."
            return None, internals("services.cloudfront")._error("InvalidArgument", message, 400)
        return configuration, error

    return parse_public_key_config


def _add(kind: str, name: str, time_attribute: str) -> None:
    cloudfront = internals("services.cloudfront")
    records = getattr(cloudfront, f"_{name}s")

    def described(physical_id: str) -> tuple[str, dict[str, str]]:
        return physical_id, {"Id": physical_id, time_attribute: records[physical_id][time_attribute]}

    def create(logical_id: str, properties: dict[str, Any], stack_name: str) -> Any:
        made = _done(getattr(cloudfront, f"_create_{name}")(_document(kind, properties)))
        return described(cloudfront._text(cloudfront._parse_body(made), "Id"))

    def update(physical_id: str, old: Any, new: dict[str, Any], stack_name: str, logical_id: str = "") -> Any:
        etag = {"if-match": records[physical_id]["ETag"]}
        _done(getattr(cloudfront, f"_update_{name}")(physical_id, etag, _document(kind, new)))
        return described(physical_id)

    def delete(physical_id: str, properties: Any) -> None:
        if physical_id in records:
            _done(getattr(cloudfront, f"_delete_{name}")(physical_id, {"if-match": records[physical_id]["ETag"]}))

    add_resource_type(f"AWS::CloudFront::{kind}", create=create, update=update, delete=delete)


def _done(answer: tuple[int, Any, bytes]) -> bytes:
    status, _, body = answer
    if status >= 400:
        cloudfront = internals("services.cloudfront")
        error = cloudfront._find(cloudfront._parse_body(body), "Error")
        raise refusal("CloudFront", cloudfront._text(error, "Message"))
    return body


def _document(kind: str, properties: dict[str, Any]) -> bytes:
    root = Element(f"{kind}Config")
    for name, value in properties[f"{kind}Config"].items():
        element = SubElement(root, name)
        if isinstance(value, list):
            for item in value:
                SubElement(element, "PublicKey").text = str(item)
        else:
            element.text = str(value)
    return tostring(root)
