"""The operators' page over the fakes, served by the real server on loopback."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from darkroom_cli.operate.actions import Actions
from darkroom_cli.operate.entrance import Entrance
from darkroom_cli.operate.parts import Parts
from darkroom_cli.operate.server import application
from darkroom_cli.operate.shell import Shell
from darkroom_cli.operate.work import server_of
from tests.support.observed import Observed
from tests.support.stack import FakeStack

TOKEN = "the-token-of-this-run"

INDEX = (
    '<!doctype html><meta name="darkroom" content="{settings}">'
    '<script type="module" src="/app/{tree}/main.js"></script>'
)


def observed_stack() -> FakeStack:
    return FakeStack(world=Observed())


@dataclass
class Served:
    """A running server: `client` is the page of this run."""

    stack: FakeStack
    port: int
    client: httpx.Client
    entrance: Entrance

    def get(self, part: str, **query: Any) -> Any:
        """The document of a part."""
        answer = self.client.get(f"/operate/api/{part}", params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def act(self, action: str, **body: Any) -> httpx.Response:
        """The answer to an action, which is not a dry run unless the body says so."""
        return self.client.post(f"/operate/api/{action}", json={"dry_run": False, **body})


def ended(actions: Actions, action: str, *, is_writable: bool, **body: Any) -> dict[str, Any]:
    """The answer to an action, once it has ended, which is not a dry run unless the body says so."""
    answer = actions.act(action, json.dumps({"dry_run": False, **body}).encode(), is_writable=is_writable)
    return actions.running.look(answer["run"], patience_seconds=60) if "run" in answer else answer


@contextmanager
def serving(stack: FakeStack, folder: Path, *, is_writable: bool) -> Iterator[Served]:
    """Serves the stack for the length of the block."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        console_stack: Any = stack
        entrance = Entrance()
        parts = Parts(console_stack)
        served = application(
            about=parts.about(),
            parts=parts,
            actions=Actions(console_stack),
            shell=Shell(folder),
            token=TOKEN,
            entrance=entrance,
            port=port,
            is_writable=is_writable,
        )
        server = server_of(served)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            headers = {"Authorization": f"Bearer {TOKEN}"}
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, trust_env=False) as client:
                yield Served(stack=stack, port=port, client=client, entrance=entrance)
        finally:
            server.should_exit = True
            thread.join()


def write_page(folder: Path) -> Path:
    """Writes the page's files into a folder, and one beside it that is none of them."""
    (folder / "parts").mkdir(parents=True)
    (folder / "index.html").write_text(INDEX)
    (folder / "main.js").write_text("export const one = 1;\n")
    (folder / "parts/table.js").write_text("export const two = 2;\n")
    (folder.parent / "secret.js").write_text("not of the page")
    return folder


# A server takes a third of a second to start and end: the tests of a module share one, and its stack.
@pytest.fixture(scope="module")
def stack() -> FakeStack:
    return observed_stack()


@pytest.fixture(scope="module")
def reading(stack: FakeStack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(stack, write_page(tmp_path_factory.mktemp("reading") / "web"), is_writable=False) as served:
        yield served


@pytest.fixture(scope="module")
def writing(stack: FakeStack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(stack, write_page(tmp_path_factory.mktemp("writing") / "web"), is_writable=True) as served:
        yield served
