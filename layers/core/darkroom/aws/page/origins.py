"""Where browsers find a bucket: the origin of its presigned URLs and forms, without an SDK to make one.

A function that only states origins would otherwise import botocore and make a client, half of its cold start.
tests/contract/test_origins.py compares the origins with those that the client makes, in each partition.
"""

from __future__ import annotations

import ipaddress

_LEGACY_REGION = "us-east-1"
"""Where botocore's default addresses of S3 name no region (its setting `us_east_1_regional_endpoint`)."""


def origin_of(bucket_name: str, *, region: str, domain: str, endpoint_url: str = "") -> str:
    """The origin of a bucket's presigned URLs and forms.

    `domain` is the partition's, as `amazonaws.com`. `endpoint_url` is what the SDK was told to use in S3's place
    (https://docs.aws.amazon.com/sdkref/latest/guide/feature-ss-endpoints.html), if anything: the bucket's name comes
    before its host, unless that is an address.
    """
    if not endpoint_url:
        host = "s3" if region == _LEGACY_REGION else f"s3.{region}"
        return f"https://{bucket_name}.{host}.{domain}"
    scheme, _, rest = endpoint_url.partition("://")
    place = rest.partition("/")[0]
    host = place if _is_address(place) else f"{bucket_name}.{place}"  # guard: page-bucket-address-bare
    return f"{scheme}://{host}"


def origin_of_url(url: str) -> str:
    """The origin of a URL: its scheme, host and port."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}"


def _is_address(place: str) -> bool:
    host = place[1:].partition("]")[0] if place.startswith("[") else place.partition(":")[0]
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
