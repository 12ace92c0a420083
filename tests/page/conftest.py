"""One local stack with access keys and one Chromium for all tests; each has a tenant and a browser context of its own.

Every test fails if its page logged an error, broke its Content-Security-Policy, called a foreign host, or executed
what it should show.
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, expect

from browser import chromium, installed
from browser.installed import NoChromium
from browser.watch import TabWatch
from tests.local.local_stack import LocalStack, shared_stack
from tests.page.visitor import PATIENCE_SECONDS, SHOP, Visitor
from tests.support.planted import Account, planted_account

expect.set_options(timeout=PATIENCE_SECONDS * 1000)


@pytest.fixture(scope="session", autouse=True)
def executable() -> str:
    """The machine's Chromium. Without one nothing can run; with CI=true the tier then fails (checks.test_tiers)."""
    try:
        return installed.path()
    except NoChromium as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def stack(executable: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """The stack that serves the page."""
    options = ("--access", "keys", "--allowed-origins", SHOP)
    with shared_stack(tmp_path_factory.mktemp("stack"), *options) as stack:
        yield stack


@pytest.fixture(scope="session")
def browser(executable: str) -> Iterator[Browser]:
    """The browser."""
    with chromium.running() as browser:
        yield browser


@pytest.fixture
def account(stack: LocalStack) -> Account:
    """A tenant of this test alone."""
    return planted_account(stack)


@pytest.fixture
def visitor(browser: Browser, stack: LocalStack, account: Account) -> Iterator[Visitor]:
    """A visitor with a browser and a key of a new tenant; what their tabs did wrong fails the test at its end."""
    hosts = {urlsplit(address).netloc for address in (stack.api_url, stack.record.aws_endpoint_url)}
    visitor = Visitor(browser=browser, stack=stack, account=account, watch=TabWatch(hosts=hosts))
    try:
        yield visitor
    finally:
        visitor.close()
    assert not visitor.watch.findings, "; ".join(finding[:160] for finding in visitor.watch.findings)
