"""How the browser gets to the page of `darkroom operate --open`, without a secret that other users can read."""

from __future__ import annotations

import html
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from stat import S_IMODE
from typing import Any

import httpx
import pytest

from darkroom_cli.operate.entrance import Entrance
from repository.report import ROOT
from tests.unit.cli.operate.conftest import TOKEN, Served, observed_stack, serving, write_page

_OPENER = """#!{python}
import json, os, pathlib, sys, time
own = pathlib.Path("/proc/self")
record = {{
    "arguments": own.joinpath("cmdline").read_text().split("\\0"),
    "environment": own.joinpath("environ").read_text().split("\\0"),
}}
unfinished = pathlib.Path({record!r} + ".unfinished")
unfinished.write_text(json.dumps(record))
unfinished.rename({record!r})
parent = os.getppid()
while os.getppid() == parent:  # it waits for the browser, as some do
    time.sleep(0.05)
"""

_SERVE = """
from darkroom_cli.operate.work import serve
from tests.unit.cli.operate.conftest import observed_stack

serve(observed_stack(), write=True, port=0, open_it=True)
"""


def led_to(page: str) -> str:
    """The address to which a page leads at once."""
    (content,) = re.findall(r'<meta http-equiv="refresh" content="0; url=([^"]*)">', page)
    return html.unescape(content)


def client() -> httpx.Client:
    return httpx.Client(trust_env=False)


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setenv("HOME", str(tmp_path))
    with serving(observed_stack(), write_page(tmp_path / "web"), is_writable=True) as served:
        yield served


@pytest.mark.guards("operate-opener-without-token")
def test_the_opener_gets_no_secret_but_a_file_that_its_owner_alone_can_read(tmp_path: Path) -> None:
    record, opener, home = tmp_path / "record.json", tmp_path / "opener", tmp_path / "home"
    home.mkdir()
    opener.write_text(_OPENER.format(python=sys.executable, record=str(record)))
    opener.chmod(0o755)
    process = subprocess.Popen(
        [sys.executable, "-c", _SERVE],
        env={**os.environ, "BROWSER": str(opener), "HOME": str(home), "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    with process:
        try:
            printed = process.stdout.readline()
            while not record.exists():
                assert process.poll() is None
                time.sleep(0.01)
            opened: dict[str, Any] = json.loads(record.read_text())
            (token,) = re.findall(r"http://127\.0\.0\.1:\d+/app/#token=([\w-]+)", printed)
            everything = "\n".join([*opened["arguments"], *opened["environment"]])
            (argument,) = [each for each in opened["arguments"] if "://" in each]
            assert argument.startswith("file:///")
            file = Path(argument.removeprefix("file://"))
            assert (S_IMODE(file.stat().st_mode), S_IMODE(file.parent.stat().st_mode)) == (0o600, 0o700)
            assert file.parent.parent == home and not file.parent.name.startswith("."), "a browser in a snap reads it"
            entrance = led_to(file.read_text())
            (code,) = re.findall(r"\?code=([\w-]+)$", entrance)
            assert token not in everything and code not in everything
            assert token not in file.read_text(), "its history keeps nothing that opens the page again"
            with client() as browser:
                page = browser.get(entrance)
                again = browser.get(entrance)
            assert led_to(page.text) == f"/app/#token={token}"
            assert (again.status_code, token in again.text) == (403, False)
        finally:
            process.send_signal(signal.SIGINT)
    assert process.returncode == 0
    assert list(home.iterdir()) == [], "nothing is left of it"


@pytest.mark.guards("operate-entrance-code", "operate-entrance-single-use")
def test_a_code_opens_once_and_a_wrong_one_takes_nothing_away(served: Served) -> None:
    with served.entrance.file(served.port) as file, client() as browser:
        address = led_to(file.read_text())
        for wrong in ("", "?code=", "?code=x", f"?code={TOKEN}", "?code=%FF", "?code=%C3%A9"):
            refused = browser.get(f"{address.partition('?')[0]}{wrong}")
            assert (refused.status_code, refused.json()["code"]) == (403, "not_let_in")
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: httpx.get(address, trust_env=False), range(8)))
    assert sorted(answer.status_code for answer in answers) == [200] + [403] * 7
    assert sum(TOKEN in answer.text for answer in answers) == 1


@pytest.mark.guards("operate-entrance-link-only")
@pytest.mark.parametrize("mode", ["no-cors", "cors", "navigate"])
def test_a_website_gets_nothing_of_the_entrance_but_may_lead_to_it(served: Served, mode: str) -> None:
    foreign = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": "iframe"}
    with served.entrance.file(served.port) as file, client() as browser:
        address = led_to(file.read_text())
        refused = browser.get(address, headers=foreign)
        assert (refused.status_code, refused.json()["code"]) == (403, "another_website")
        # Chromium says this of a file that leads there.
        led = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
        assert browser.get(address, headers={**led, "Host": "attacker.example"}).status_code == 403
        assert browser.get(address, headers=led).status_code == 200
        assert browser.get(f"http://127.0.0.1:{served.port}/app/", headers=led).status_code == 403


@pytest.mark.guards("operate-entrance-file-private")
def test_the_file_is_made_elsewhere_if_there_is_no_home_and_is_gone_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "none"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with Entrance().file(1) as file:
        assert file.parent.parent == tmp_path
        assert (S_IMODE(file.stat().st_mode), S_IMODE(file.parent.stat().st_mode)) == (0o600, 0o700)
    assert not file.parent.exists()
