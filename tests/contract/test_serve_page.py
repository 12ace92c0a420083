"""The page's handler, loaded as Lambda loads it, with the page as it is packed."""

from __future__ import annotations

import base64
import gzip
import html
import importlib.util
import json
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from repository.report import ROOT
from tests.contract.functions import Context, http_event, packed_page

ENVIRONMENT = {
    "ACCESS": "keys",
    "AWS_REGION": "eu-central-1",
    "URL_SUFFIX": "amazonaws.com",
    "UPLOADS_BUCKET": "uploads",
    "OUTPUTS_BUCKET": "outputs",
    "MAX_FILE_BYTES": "25000000",
    "POWERTOOLS_SERVICE_NAME": "darkroom",
}

type Load = Callable[..., ModuleType]


@pytest.fixture
def load_page(monkeypatch: pytest.MonkeyPatch) -> Load:
    """Loads the handler with these variables besides the usual ones."""

    def load(**variables: str) -> ModuleType:
        monkeypatch.syspath_prepend(packed_page())
        monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
        for name, value in (ENVIRONMENT | variables).items():
            monkeypatch.setenv(name, value)
        spec = importlib.util.spec_from_file_location("app_serve_page", ROOT / "functions" / "serve_page" / "app.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


def get(module: ModuleType, path: str, method: str = "GET", **headers: str) -> dict[str, Any]:
    event = http_event(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    answer: dict[str, Any] = module.handler(event, Context("serve_page"))
    json.dumps(answer)
    return answer


def settings_of(shell: str) -> Any:
    (content,) = re.findall(r'<meta name="darkroom" content="([^"]*)">', shell)
    return json.loads(html.unescape(content))


def test_head_is_answered_as_get_and_the_gateway_leaves_the_body_out(load_page: Load) -> None:
    module = load_page()
    for path in ("/app", "/app/", "/app/unknown.js"):
        assert get(module, path, "HEAD") == get(module, path)


def test_a_browser_gets_the_shell_and_every_file_that_it_names(load_page: Load) -> None:
    module = load_page()
    assert get(module, "/app")["headers"]["Location"] == "/app/"
    shell = base64.b64decode(get(module, "/app/")["body"]).decode()
    named = re.findall(r'(?:href|src)="([^"]+)"', shell)
    assert len(named) >= 3
    for path in named:
        answer = get(module, path, accept_encoding="gzip")
        assert answer["statusCode"] == 200, path
        assert gzip.decompress(base64.b64decode(answer["body"]))
        assert "immutable" in answer["headers"]["Cache-Control"]
    assert get(module, "/app/none.js")["statusCode"] == 404


def test_the_shell_says_how_callers_identify_themselves_and_what_may_be_sent(load_page: Load) -> None:
    settings = settings_of(base64.b64decode(get(load_page(), "/app/")["body"]).decode())
    assert (settings["access"], settings["issuer"], settings["max_upload_bytes"]) == ("keys", None, 25_000_000)
    assert "standard" in settings["presets"]


def test_the_policy_names_the_buckets_as_browsers_find_them(load_page: Load) -> None:
    policy = get(load_page(), "/app/")["headers"]["Content-Security-Policy"]
    uploads, outputs = (f"https://{name}.s3.eu-central-1.amazonaws.com" for name in ("uploads", "outputs"))
    assert f"img-src 'self' blob: {outputs};" in policy
    assert f"connect-src 'self' {uploads} {outputs};" in policy


@pytest.mark.parametrize("variable", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"])
def test_buckets_are_where_the_sdk_was_told_that_they_are(load_page: Load, variable: str) -> None:
    module = load_page(**{variable: "http://127.0.0.1:4566"})
    policy = get(module, "/app/")["headers"]["Content-Security-Policy"]
    assert "connect-src 'self' http://127.0.0.1:4566;" in policy


@pytest.mark.guards("page-issuer-only-with-tokens")
def test_with_tokens_the_policy_names_where_callers_sign_in_and_else_it_does_not(load_page: Load) -> None:
    of_tokens = {
        "JWT_ISSUER": "https://cognito-idp.eu-central-1.amazonaws.com/pool",
        "JWT_CLIENT_ID": "client",
        "JWT_SIGN_IN_ORIGIN": "https://shop.auth.eu-central-1.amazoncognito.com",
    }
    asking = get(load_page(ACCESS="jwt", **of_tokens), "/app/")
    names = "https://cognito-idp.eu-central-1.amazonaws.com https://shop.auth.eu-central-1.amazoncognito.com;"
    assert names in asking["headers"]["Content-Security-Policy"]
    assert settings_of(base64.b64decode(asking["body"]).decode())["client_id"] == "client"
    assert "cognito" not in str(get(load_page(**of_tokens), "/app/")["headers"])


@pytest.mark.guards("page-tag-covers-settings")
def test_another_setting_is_another_shell(load_page: Load) -> None:
    before = get(load_page(), "/app/")["headers"]["ETag"]
    assert get(load_page(), "/app/", if_none_match=before)["statusCode"] == 304
    assert get(load_page(MAX_FILE_BYTES="30000000"), "/app/", if_none_match=before)["statusCode"] == 200
    assert get(load_page(OUTPUTS_BUCKET="others"), "/app/", if_none_match=before)["statusCode"] == 200
