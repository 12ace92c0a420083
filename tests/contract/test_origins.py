"""The buckets' origins are those of the URLs and forms that the SDK makes, in every partition."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from darkroom.aws.kernel import clients
from darkroom.aws.page.origins import origin_of

DOMAINS = {
    "us-east-1": "amazonaws.com",
    "us-east-2": "amazonaws.com",
    "eu-central-1": "amazonaws.com",
    "ap-southeast-5": "amazonaws.com",
    "us-gov-west-1": "amazonaws.com",
    "cn-north-1": "amazonaws.com.cn",
    "eusc-de-east-1": "amazonaws.eu",
}
"""Regions, and the domain of their partition: the pseudo parameter AWS::URLSuffix."""

BUCKET = "darkroom-prod-outputsbucket-1x2y3z"


def made_by_the_sdk() -> set[str]:
    """The origins of a presigned URL and of a presigned form."""
    clients._session.cache_clear()
    client = clients.s3_client()
    urls = [
        client.generate_presigned_url("get_object", Params={"Bucket": BUCKET, "Key": "outputs/1/thumb.jpg"}),
        client.generate_presigned_post(BUCKET, "uploads/1")["url"],
    ]
    clients._session.cache_clear()
    return {f"{parts.scheme}://{parts.netloc}" for parts in map(urlsplit, urls)}


@pytest.mark.parametrize("region", DOMAINS)
def test_a_bucket_is_where_the_sdk_finds_it(region: str, ambient: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", region)
    assert made_by_the_sdk() == {origin_of(BUCKET, region=region, domain=DOMAINS[region])}


@pytest.mark.guards("page-bucket-address-bare")
@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:4566", "http://[::1]:4566", "https://s3.example.test/x"])
def test_a_bucket_is_where_the_sdk_was_told_to_find_it(
    endpoint: str, ambient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    assert made_by_the_sdk() == {origin_of(BUCKET, region="us-east-1", domain="amazonaws.com", endpoint_url=endpoint)}
