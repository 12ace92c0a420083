"""Shows the templates that a stack's template names at S3's own address, wherever S3 is.

Gap: SAM CLI names a nested stack's template by the address to which it uploaded it, which here is the emulator's.
It later takes nothing for an address in S3 that does not begin with https://s3, so `sam delete` fails.
AWS: S3 is at https://s3.REGION.amazonaws.com.
https://docs.aws.amazon.com/AmazonS3/latest/userguide/VirtualHosting.html#path-style-access

What still differs from AWS: `sam delete` leaves the stack's own template in its bucket, as it finds it by a hash.
"""

from typing import Any

from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals


def apply(emulator: Emulator) -> None:
    """Replace the emulator's address in what GetTemplate returns."""
    actions = internals("services.cloudformation.handlers")._ACTION_HANDLERS
    actions["GetTemplate"] = _with_addresses(actions["GetTemplate"], f"{emulator.gateway_url}/")


def _with_addresses(get_template: Any, address: str) -> Any:
    def get_template_with_addresses(parameters: Any) -> Any:
        status, headers, body = get_template(parameters)
        of_s3 = f"https://s3.{internals('core.responses').get_region()}.amazonaws.com/"
        return status, headers, body.replace(address.encode(), of_s3.encode())

    return get_template_with_addresses
