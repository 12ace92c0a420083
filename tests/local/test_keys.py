"""The local stack with keys: the template's own authorizer decides, the command line creates tenants and keys."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from darkroom_client import Darkroom, Refused
from tests.local.elsewhere import Elsewhere
from tests.local.keyed import client, done, key_of
from tests.local.local_stack import LocalStack, document_in, wait_until
from tests.support.fakes.pictures import jpeg

UNKNOWN = "0" * 26
LARGE = jpeg(64, 48) + bytes(5 * 1024 * 1024)
"""A photo that no request can hold, because of the padding after it."""
PATHS = ("/images/{}", "/images/{}/status", "/images/{}/variants/thumb")


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """A stack whose API requires keys."""
    made = LocalStack(state=tmp_path_factory.mktemp("keyed") / "state")
    with made.serving("--access", "keys", "--allowed-origins", "http://localhost:3000,https://app.example"):
        yield made


@pytest.fixture(scope="module")
def acme(keyed: LocalStack) -> str:
    """A key of a paying tenant."""
    assert keyed.darkroom("tenants", "add", "acme", "--tier", "paid").returncode == 0
    return key_of(keyed, "acme")


def refusal(answer: httpx.Response) -> tuple[int, Any]:
    return answer.status_code, answer.json()


def test_a_folder_is_uploaded_with_the_stacks_own_key_and_every_tier_has_its_lane(
    keyed: LocalStack, acme: str, tmp_path: Path
) -> None:
    (tmp_path / "photo.jpg").write_bytes(jpeg(64, 48))
    (tmp_path / "large.jpg").write_bytes(LARGE)
    for options, lane in (((), "slow"), (("--api-key", acme), "fast")):
        uploaded = keyed.darkroom("upload", tmp_path, "--wait", "--json", "--variants", "thumb", *options)
        assert uploaded.returncode == 0, uploaded.stdout
        report = document_in(uploaded.stdout)
        key = options[1] if options else keyed.record.api_key
        with client(keyed, key) as api:
            documents = [api.get(f"/images/{line['image']['id']}/status").json() for line in report["uploads"]]
        assert [(document["status"], document["lane"]) for document in documents] == [("done", lane)] * 2


def test_without_a_key_that_opens_nobody_is_heard(keyed: LocalStack, acme: str) -> None:
    revoked = key_of(keyed, "acme")
    assert keyed.darkroom("keys", "revoke", revoked.split("_")[1]).returncode == 0
    assert keyed.darkroom("tenants", "add", "initech").returncode == 0
    suspended = key_of(keyed, "initech")
    assert keyed.darkroom("tenants", "suspend", "initech").returncode == 0
    for key in (None, revoked, suspended, acme[:-1], "nothing"):
        with client(keyed, key) as api:
            expected = (401, {"message": "Unauthorized"}) if key is None else (403, {"message": "Forbidden"})
            for path in ("/images", "/uploads"):
                assert refusal(api.post(path, content=jpeg())) == expected, (key, path)
            for path in (*PATHS, "/elsewhere/{}"):
                assert refusal(api.get(path.format(UNKNOWN))) == expected, (key, path)
            assert refusal(api.patch(f"/images/{UNKNOWN}", json={"delay": "PT1H"})) == expected, key
            assert refusal(api.delete(f"/images/{UNKNOWN}")) == expected, key


@pytest.mark.promise("no-secret-kept")
def test_no_log_of_the_stack_holds_a_key(keyed: LocalStack, acme: str) -> None:
    with client(keyed, acme) as api, client(keyed, acme[:-1]) as denied:
        image_id = api.post("/images", params={"variants": "thumb"}, content=jpeg(64, 48)).json()["id"]
        done(api, image_id)
        denied.get("/images")
    logs = keyed.client("logs")

    def lines() -> list[str]:
        return [
            event["message"]
            for group in logs.describe_log_groups()["logGroups"]
            for event in logs.filter_log_events(logGroupName=group["logGroupName"])["events"]
        ]

    def accepted() -> list[Any]:
        records = [json.loads(line) for line in lines() if image_id in line and line.startswith("{")]
        return [line for line in records if line["message"] == "accepted"]

    (line,) = wait_until(accepted, "the upload is logged", seconds=30)
    assert (line["tenant_id"], line["key_id"]) == ("acme", acme.split("_")[1])
    secret = acme.split("_")[2][:-8]
    assert not [text for text in lines() if secret in text or "Bearer" in text]
    for file in (keyed.state / "logs").iterdir():
        assert secret not in file.read_text(errors="replace"), file.name


@pytest.mark.promise("ambient-settings")
def test_a_redeployment_heeds_no_ambient_setting_asks_for_keys_still_and_knows_those_that_are_out(
    keyed: LocalStack, acme: str, elsewhere: Elsewhere
) -> None:
    before = keyed.record.api_key
    led_astray = LocalStack(state=keyed.state, variables=elsewhere.variables)
    deployed = led_astray.darkroom("local", "deploy")
    assert deployed.returncode == 0, deployed.stdout
    assert keyed.record.api_key == before
    for key, status in ((before, 404), (acme, 404), (None, 401)):
        with client(keyed, key) as api:
            assert api.get(f"/images/{UNKNOWN}").status_code == status
    logs = led_astray.darkroom("logs", "read_image", "--since", "1h")
    assert logs.returncode == 0, logs.stdout
    assert "START RequestId" in logs.stdout
    assert elsewhere.requests == []


def test_after_it_a_browser_asks_before_it_calls_and_needs_no_key_for_that(keyed: LocalStack) -> None:
    preflight = {
        "Origin": "https://app.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type",
    }
    with client(keyed, None) as api:
        answer = api.options("/images", headers=preflight)
        unnamed = api.options("/images", headers={**preflight, "Origin": "https://evil.example"})
    assert answer.status_code == 204
    assert "authorization" in answer.headers["access-control-allow-headers"].lower()
    assert unnamed.status_code == 403


def test_a_browser_uploads_with_a_token_and_a_hundred_uploads_at_once_are_as_many_as_it_is_for(
    keyed: LocalStack, acme: str
) -> None:
    with Darkroom(keyed.api_url, acme) as server:
        token = server.create_upload_token(count=10, variants=["thumb"], tags=["browser"])["token"]

    def sent(number: int) -> str:
        try:
            return browser.upload(jpeg(64, 48), idempotency_key=f"photo {number}").image_id
        except Refused as refusal:
            return str(refusal.code)

    with Darkroom(keyed.api_url, token) as browser, ThreadPoolExecutor(20) as threads:
        answers = list(threads.map(sent, range(100)))
        accepted = {answer for answer in answers if answer != "upload_token_used_up"}
        assert (len(accepted), len(answers) - answers.count("upload_token_used_up")) == (10, 10)
        assert browser.wait(min(accepted), timeout_seconds=120)["status"] == "done"
        with pytest.raises(Refused):
            list(browser.images())
    with Darkroom(keyed.api_url, acme) as server:
        assert {image["id"] for image in server.images(tag="browser")} == accepted
