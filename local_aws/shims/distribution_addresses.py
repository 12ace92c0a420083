"""Names the distribution that the local edge serves by its address here, and takes plain http there for TLS.

Gap: a distribution's domain leads to AWS, so an address that a stack's output makes of it leads nowhere here.
AWS: https://LABEL.cloudfront.net is the distribution.
https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/LinkFormat.html

What still differs from AWS: a request counts as plain http only if it says so itself, with `X-Forwarded-Proto: http`.
Inside the stack the domain is unchanged.
"""

from __future__ import annotations

from typing import Any

from local_aws.edge import served
from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace


def apply(emulator: Emulator) -> None:
    """Replace the domain in what DescribeStacks returns."""
    actions = internals("services.cloudformation.handlers")._ACTION_HANDLERS
    actions["DescribeStacks"] = _with_address(actions["DescribeStacks"], emulator.edge_url)
    replace(internals("services.cloudfront"), "_check_viewer_protocol_policy", _unless_it_says_so)


def _with_address(describe_stacks: Any, address: str) -> Any:
    def describe_stacks_with_address(parameters: Any) -> Any:
        status, headers, body = describe_stacks(parameters)
        if (found := served()) is None:
            return status, headers, body
        return status, headers, body.replace(f"https://{found[1]['DomainName']}".encode(), address.encode())

    return describe_stacks_with_address


def _unless_it_says_so(check: Any) -> Any:
    def check_viewer_protocol_policy(behaviour: Any, method: str, viewer_is_https: bool, *request: Any) -> Any:
        *_, headers = request
        return check(behaviour, method, viewer_is_https or "x-forwarded-proto" not in headers, *request)

    return check_viewer_protocol_policy
