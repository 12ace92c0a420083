from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest
from botocore.credentials import Credentials

from darkroom_client.client import Api
from darkroom_client.signing import CredentialsMissing, SigV4, ordinary_credentials, region_of
from tests.unit.cli.fake_api import FakeApi, image_id_of

HOST = "abc.execute-api.eu-west-1.amazonaws.com"


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """No AWS configuration at all, and no metadata service to ask."""
    for name in ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return monkeypatch


def test_every_request_is_signed_for_the_api_in_its_region_with_its_body() -> None:
    seen: list[httpx.Request] = []

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        document = FakeApi.document(FakeApi.__new__(FakeApi), image_id_of("x"), "pending")
        return httpx.Response(202, json=document)

    auth = SigV4(Credentials("AKIDEXAMPLE", "secret", "token"), "eu-west-1")
    with Api(f"https://{HOST}", auth=auth, transport=httpx.MockTransport(handle)) as api:
        for body in (b"one", b"two"):
            api.submit(
                body,
                content_type="image/jpeg",
                parameters={"preset": "tiny"},
                idempotency_key="k",
                on_sent=lambda sent: None,
            )
    headers = seen[0].headers
    assert re.fullmatch(
        r"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/\d{8}/eu-west-1/execute-api/aws4_request, "
        r"SignedHeaders=host;x-amz-date;x-amz-security-token, Signature=[0-9a-f]{64}",
        headers["authorization"],
    )
    assert headers["x-amz-security-token"] == "token"
    assert [request.content for request in seen] == [b"one", b"two"]
    assert seen[0].headers["authorization"] != seen[1].headers["authorization"]


def test_what_is_asked_for_travels_in_the_form_that_a_signature_is_made_over() -> None:
    # AWS signs names and values with everything but A-Z a-z 0-9 - . _ ~ percent-encoded, a space too
    # (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html).
    seen: list[httpx.Request] = []

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(202, json=FakeApi.document(FakeApi.__new__(FakeApi), image_id_of("x"), "pending"))

    auth = SigV4(Credentials("AKIDEXAMPLE", "secret"), "eu-west-1")
    with Api(f"https://{HOST}", auth=auth, transport=httpx.MockTransport(handle)) as api:
        api.submit(b"b", content_type="image/jpeg", parameters={"recipe": '{"a b":"é+/~*"}'}, idempotency_key="k")
    assert str(seen[0].url).endswith("/images?recipe=%7B%22a%20b%22%3A%22%C3%A9%2B%2F~%2A%22%7D")


def test_the_region_is_read_from_the_apis_own_name() -> None:
    assert region_of(HOST) == "eu-west-1"
    assert region_of("photos.example.com") is None
    assert region_of("abc.execute-api.eu-west-1.amazonaws.com.evil.test") is None


def test_missing_credentials_are_told_with_the_way_to_get_them(bare: pytest.MonkeyPatch) -> None:
    with pytest.raises(CredentialsMissing, match="aws sso login"):
        ordinary_credentials(HOST)


def test_a_custom_domain_needs_a_region_from_the_configuration(bare: pytest.MonkeyPatch) -> None:
    bare.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    bare.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    with pytest.raises(CredentialsMissing, match="AWS_REGION"):
        ordinary_credentials("photos.example.com")
    bare.setenv("AWS_REGION", "eu-west-1")
    assert ordinary_credentials("photos.example.com")


def test_a_profile_that_does_not_exist_is_reported(bare: pytest.MonkeyPatch) -> None:
    bare.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(CredentialsMissing, match="nobody"):
        ordinary_credentials(HOST)
