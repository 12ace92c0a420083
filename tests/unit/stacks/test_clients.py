from __future__ import annotations

from pathlib import Path

import pytest

from local_aws.stacks.clients import isolated_clients, of_account, of_role


def test_the_local_stack_is_asked_without_anything_of_this_machines_aws_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = "region = eu-west-1\nendpoint_url = https://elsewhere.test\nuse_dualstack_endpoint = true\n"
    (tmp_path / "config").write_text(f"[default]\n{elsewhere}")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_PROFILE", "there is no such profile")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "mine")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://elsewhere.test")
    monkeypatch.setenv("AWS_USE_FIPS_ENDPOINT", "true")
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.test")
    client = isolated_clients("http://127.0.0.1:1", "us-east-1", of_account("of this run"))("sqs")
    assert client.meta.endpoint_url == "http://127.0.0.1:1"
    assert client.meta.region_name == "us-east-1"
    credentials = client._request_signer._credentials
    assert (credentials.access_key, credentials.secret_key) == ("local", "of this run")
    assert client._endpoint.http_session._proxy_config._proxies == {}


def test_a_role_is_used_with_the_credentials_from_sts() -> None:
    lent = {"AccessKeyId": "ASIAEXAMPLE", "SecretAccessKey": "secret", "SessionToken": "token", "Expiration": "soon"}
    client = isolated_clients("http://127.0.0.1:1", "us-east-1", of_role(lent))("sqs")
    credentials = client._request_signer._credentials
    assert (credentials.access_key, credentials.secret_key, credentials.token) == ("ASIAEXAMPLE", "secret", "token")


def test_links_to_objects_are_signed_as_on_aws_and_lead_to_the_local_stack() -> None:
    clients = isolated_clients("http://127.0.0.1:1", "us-east-1", of_account("of this run"))
    link = clients("s3").generate_presigned_url("get_object", Params={"Bucket": "b", "Key": "k"})
    assert link.startswith("http://127.0.0.1:1/b/k?X-Amz-Algorithm=AWS4-HMAC-SHA256")
    assert clients("s3") is clients("s3")
