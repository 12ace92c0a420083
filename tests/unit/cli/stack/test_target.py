from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer

from darkroom_cli.stack.target import resolve
from darkroom_client.client import ApiError, Unreachable


def environment(folder: Path, **more: str) -> dict[str, str]:
    return {"DARKROOM_STATE_DIR": str(folder), **more}


@pytest.fixture
def stack(tmp_path: Path) -> Path:
    stack = {
        "version": 1,
        "api_url": "http://127.0.0.1:4000",
        "aws_endpoint_url": "http://127.0.0.1:4001",
        "region": "us-east-1",
        "stack_name": "darkroom-local",
    }
    (tmp_path / "stack.json").write_text(json.dumps(stack))
    return tmp_path


@pytest.mark.guards("cli-local-stack-recorded")
@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (None, True),
        ("http://127.0.0.1:4000/", True),
        ("http://localhost:4000", True),
        ("http://127.0.0.1:4001", False),
        ("https://api.test:4000", False),
    ],
)
def test_the_local_stack_is_known_by_the_address_that_it_has_recorded(
    stack: Path, url: str | None, expected: bool
) -> None:
    assert resolve(url, None, False, environment=environment(stack)).is_local_stack is expected


@pytest.mark.guards("cli-local-stack-recorded")
def test_where_no_local_stack_has_recorded_its_address_no_address_is_its(tmp_path: Path) -> None:
    assert not resolve("http://127.0.0.1:4000", None, False, environment=environment(tmp_path)).is_local_stack


def test_an_option_goes_before_the_environment_and_that_before_the_local_stack(stack: Path) -> None:
    both = environment(stack, DARKROOM_URL="https://environment.test/")
    assert resolve(None, None, False, environment=both).url == "https://environment.test"
    target = resolve("https://option.test", None, False, environment=both)
    assert (target.url, target.options) == ("https://option.test", " --url https://option.test")


def test_the_key_of_the_environment_is_for_the_stack_it_names_and_never_for_the_local_one(stack: Path) -> None:
    key = environment(stack, DARKROOM_API_KEY="secret")
    assert resolve(None, None, False, environment=key).api_key is None
    assert resolve("https://api.test", None, False, environment=key).api_key == "secret"
    assert resolve("https://api.test", "other", False, environment=key).api_key == "other"


def test_the_local_stack_says_its_own_key(stack: Path) -> None:
    file = stack / "stack.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"api_key": "its own"}))
    assert resolve(None, None, False, environment=environment(stack)).api_key == "its own"
    assert resolve(None, "another", False, environment=environment(stack)).api_key == "another"


def test_a_key_that_was_not_copied_whole_is_noticed_before_it_is_sent(tmp_path: Path) -> None:
    key = "dr_000g40r4_0m30e209185gr38e1w8124gk2gahc5rr2qq9bfy"
    assert resolve("https://api.test", key, False, environment=environment(tmp_path)).api_key == key
    with pytest.raises(typer.BadParameter, match="incomplete") as error:
        resolve("https://api.test", key[:-1], False, environment=environment(tmp_path))
    assert key[12:20] not in str(error.value)


def test_a_stack_that_does_not_run_is_told_with_the_way_to_start_it(tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match="make run"):
        resolve(None, None, False, environment=environment(tmp_path))


@pytest.mark.parametrize("content", ["", "{", "[]", '{"version": 2}'])
def test_an_invalid_stack_file_is_reported(tmp_path: Path, content: str) -> None:
    (tmp_path / "stack.json").write_text(content)
    with pytest.raises(ApiError, match="make run"):
        resolve(None, None, False, environment=environment(tmp_path))


@pytest.mark.parametrize(
    "url", ["api.test", "ftp://api.test", "https://", "https://api.test/?a=1", "https://api.test/#x"]
)
def test_what_is_no_address_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(typer.BadParameter):
        resolve(url, None, False, environment=environment(tmp_path))


def test_credentials_never_travel_in_the_clear(tmp_path: Path) -> None:
    with pytest.raises(typer.BadParameter, match="https"):
        resolve("http://api.test", "secret", False, environment=environment(tmp_path))
    with pytest.raises(typer.BadParameter, match="https"):
        resolve("http://api.test", None, True, environment=environment(tmp_path))
    assert resolve("http://127.0.0.1:1", "secret", False, environment=environment(tmp_path)).api_key == "secret"


def test_aws_credentials_are_never_sent_to_a_local_stack(stack: Path) -> None:
    for url in (None, "http://127.0.0.1:4000"):
        with pytest.raises(typer.BadParameter):
            resolve(url, None, True, environment=environment(stack))


def test_a_key_and_a_signature_exclude_each_other(tmp_path: Path) -> None:
    with pytest.raises(typer.BadParameter, match="either --api-key or --iam"):
        resolve("https://api.test", "secret", True, environment=environment(tmp_path))


def test_signing_uses_the_callers_own_aws_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    url = "https://abc.execute-api.eu-west-1.amazonaws.com"
    target = resolve(url, None, True, environment=environment(tmp_path, DARKROOM_API_KEY="ignored"))
    assert target.auth is not None
    assert (target.api_key, target.options) == (None, f" --url {url} --iam")
