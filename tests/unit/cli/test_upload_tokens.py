"""`darkroom upload-tokens create`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.cli.conftest import Run
from tests.unit.cli.fake_api import FakeApi, Reply, problem

MADE = {"token": "dru_a.b.c", "id": "0" * 16, "expires_at": "2026-01-01T00:15:00.000Z", "count": 3, "max_bytes": 9}


@pytest.mark.parametrize(
    ("options", "sent"),
    [
        ((), {}),
        (
            (
                *("--expires-in", "PT15M", "--count", "3", "--max-bytes", "9", "--origin", "https://a.example"),
                *("--preset", "avatar", "--variants", "small", "--tag", "shoes", "--tag", "new", "--metadata", "{}"),
            ),
            {
                "expires_in": "PT15M",
                "count": 3,
                "max_bytes": 9,
                "origins": ["https://a.example"],
                "preset": "avatar",
                "variants": ["small"],
                "tags": ["shoes", "new"],
                "metadata": {},
            },
        ),
    ],
)
def test_nothing_but_the_token_is_printed(run: Run, api: FakeApi, options: tuple[str, ...], sent: Any) -> None:
    api.faults["POST"].append(Reply(status=201, body=MADE))
    result = run("upload-tokens", "create", *options)
    assert (result.exit_code, result.stdout) == (0, "dru_a.b.c\n")
    assert (api.posts[-1].path, json.loads(api.posts[-1].body)) == ("/upload-tokens", sent)


def test_its_document_is_printed_as_json(run: Run, api: FakeApi) -> None:
    api.faults["POST"].append(Reply(status=201, body=MADE))
    assert json.loads(run("upload-tokens", "create", "--json").stdout) == MADE


def test_a_refusal_is_told_in_its_words(run: Run, api: FakeApi) -> None:
    api.faults["POST"].append(problem(422, "part_not_deployed", "Upload tokens are made with API keys."))
    result = run("upload-tokens", "create")
    assert (result.exit_code, "Upload tokens are made with API keys." in result.stderr) == (1, True)
