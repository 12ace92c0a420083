"""Lets only signed URLs into a behaviour that has trusted key groups.

Gap: MiniStack serves such a behaviour to everybody, and passes the signature on to the origin.
AWS: without a valid signature of a key in one of the groups CloudFront answers 403, before anything else happens. The
policy is for the whole URL, with scheme, host and query, but without the signature's own parameters, which are neither
in the cache's key nor passed on.
https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/private-content-signed-urls.html
https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/private-content-creating-signed-url-custom-policy.html

What still differs from AWS: signed cookies and trusted signers, which are AWS accounts, let nobody in.
"""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import unquote
from xml.sax.saxutils import escape

from local_aws.distributions.signed_urls import PARAMETERS, Refusal, refusal
from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace


def apply(emulator: Emulator) -> None:
    """Check signatures before a request is served."""
    cloudfront = internals("services.cloudfront")
    replace(cloudfront, "_dataplane_behavior", _with_key_groups)
    replace(cloudfront, "handle_viewer_request", _only_if_signed)


def _with_key_groups(read: Any) -> Any:
    def dataplane_behavior(element: Any, *arguments: Any) -> Any:
        cloudfront = internals("services.cloudfront")
        groups = cloudfront._find(element, "TrustedKeyGroups")
        listed = cloudfront._find(groups, "Items") if groups is not None else None
        ids = [item.text for item in listed] if listed is not None else []
        return {**read(element, *arguments), "trusted_key_groups": ids}

    return dataplane_behavior


def _only_if_signed(serve: Any) -> Any:
    async def handle_viewer_request(distribution: dict[str, Any], method: str, path: str, *request: Any) -> Any:
        uri, query, headers, body, parameters, client_ip = request
        cloudfront = internals("services.cloudfront")
        behaviour = cloudfront._match_behavior(cloudfront.parse_distribution_dataplane_config(distribution), path)
        if behaviour is not None and behaviour["trusted_key_groups"]:
            pairs = [pair for pair in query.split("&") if pair]
            signing = [pair for pair in pairs if pair.partition("=")[0] in PARAMETERS]
            query = "&".join(pair for pair in pairs if pair not in signing)
            said = {name: unquote(value) for name, _, value in (pair.partition("=") for pair in signing)}
            scheme = headers.get("x-forwarded-proto", "http")
            url = f"{scheme}://{headers.get('host', '')}{uri}{'?' if query else ''}{query}"
            keys = _trusted(behaviour["trusted_key_groups"])
            refused = refusal(url, said, keys, now=time.time(), address=client_ip)
            if refused is not None:
                return _forbidden(refused)
            parameters = {name: values for name, values in parameters.items() if name not in PARAMETERS}
        return await serve(distribution, method, path, uri, query, headers, body, parameters, client_ip)

    return handle_viewer_request


def _trusted(group_ids: list[str]) -> dict[str, str]:
    """The PEM forms of the groups' keys, by their ids."""
    cloudfront = internals("services.cloudfront")
    groups = [group for id_ in group_ids if (group := cloudfront._key_groups.get(id_)) is not None]
    keys = {id_: cloudfront._public_keys.get(id_) for group in groups for id_ in group["Config"]["Items"]}
    return {id_: key["Config"]["EncodedKey"] for id_, key in keys.items() if key is not None}


def _forbidden(refused: Refusal) -> Any:
    cloudfront = internals("services.cloudfront")
    document = f"<Error><Code>{refused.code}</Code><Message>{escape(refused.message)}</Message></Error>"
    headers = cloudfront._add_cloudfront_headers({"content-type": "text/xml"}, "Error from cloudfront")
    body = f'<?xml version="1.0" encoding="UTF-8"?>{document}'.encode()
    return 403, cloudfront._render_headers(headers, title_case=True), body
