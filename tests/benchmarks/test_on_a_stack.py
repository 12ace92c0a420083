"""The programs that measure a running stack share one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.peers.peers import install
from benchmarks.stage import SHARED
from browser import installed as browser_installed
from browser.installed import NoChromium
from checks.node_packages import NoNodePackages
from tests.benchmarks.programs import ON_A_STACK, need_environments, run
from tests.local.local_stack import LocalStack, shared_stack


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """A stack that asks for keys, and delivers public images."""
    with shared_stack(tmp_path_factory.mktemp("stack"), "--access", "keys", "--delivery", builds_itself=True) as stack:
        yield stack


@pytest.mark.parametrize("program", ON_A_STACK)
def test_it_runs_to_its_report_and_counts_what_is_documented(program: str, stack: LocalStack) -> None:
    if program == "page":
        try:
            browser_installed.path()
        except NoChromium as missing:
            pytest.skip(str(missing))
    if program == "peers":
        need_environments("peers", "node")
        try:
            install()
        except NoNodePackages as missing:
            pytest.skip(str(missing))
    run(program, **{SHARED: str(stack.state)})
