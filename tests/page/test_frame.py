"""The page's frame on the stack that serves it: its first load, its modules, the key, what it may not do."""

from __future__ import annotations

import colorsys
import json
from html import escape
from itertools import pairwise
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, Route, expect

from browser import axe
from browser.layout import settle, what_sticks_out
from darkroom.domain.kernel.sizes import limit_in_words, size_in_words
from darkroom.parts import PARTS
from repository.report import ROOT
from tests.page.visitor import LOOKS, Visitor

WEB = ROOT / "layers" / "page" / "web"
MODULES = sorted(str(path.relative_to(WEB)) for path in WEB.rglob("*.js"))

FIRST_LOAD_REQUESTS = 8
FIRST_LOAD_BYTES = 60_000


def sizes(page: Page) -> dict[str, int]:
    """How many bytes each file of the page took on the wire, its headers included, by its address."""
    transferred: dict[str, int] = page.evaluate(
        "() => Object.fromEntries([...performance.getEntriesByType('navigation'), "
        "...performance.getEntriesByType('resource')].map((entry) => [entry.name, entry.transferSize]))"
    )
    return transferred


def test_the_page_asks_for_a_key_once_and_begins_with_the_upload(visitor: Visitor) -> None:
    page = visitor.tab(is_signed_in=False)
    page.get_by_label("API key").fill("dr_unknown")
    with visitor.watch.expecting("status of 40[13]"):
        page.get_by_role("button", name="Continue").click()
        expect(page.get_by_role("alert")).to_be_visible()
    page.get_by_label("API key").fill(visitor.account.key)
    page.keyboard.press("Enter")
    expect(page.locator("input[type=file]").first).to_be_attached()
    page.reload()
    expect(page.locator("input[type=file]").first).to_be_attached()
    assert visitor.account.key not in page.url
    other_tab = page.context.new_page()
    other_tab.goto(visitor.address)
    expect(other_tab.get_by_label("API key")).to_be_visible()
    page.get_by_role("button", name="Forget the key").click()
    expect(page.get_by_label("API key")).to_be_visible()


# Whether the page keeps the browser from opening what is dropped: a file, and words, which belong to no page.
_DROPPING = """() => [new File(["x"], "photo.jpg"), "words"].map((dropped) => ["dragover", "drop"].map((kind) => {
    const dataTransfer = new DataTransfer();
    dropped instanceof File ? dataTransfer.items.add(dropped) : dataTransfer.setData("text/plain", dropped);
    return !document.body.dispatchEvent(new DragEvent(kind, { dataTransfer, cancelable: true, bubbles: true }));
}))"""


def test_a_file_that_is_dropped_where_none_is_taken_does_not_replace_the_page(visitor: Visitor) -> None:
    page = visitor.tab()
    browse = page.get_by_role("link", name="Browse", exact=True).first
    browse.click()
    expect(browse).to_have_attribute("aria-current", "page")
    expect(page.locator(".upload-invitation")).to_have_count(0)
    assert page.evaluate(_DROPPING) == [[True, True], [False, False]]


_HUES = """() => {
    const probe = document.body.appendChild(document.createElement("i"));
    const found = ["--accent", "--info", "--good", "--warn", "--bad"].map((name) => {
        probe.style.color = `var(${name})`;
        return getComputedStyle(probe).color.match(/\\d+/g).map(Number);
    });
    probe.remove();
    return found;
}"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_each_meaning_has_a_colour_of_its_own(visitor: Visitor, dark: bool) -> None:
    page = visitor.tab(is_signed_in=False, dark=dark)
    expect(page.get_by_label("API key")).to_be_visible()
    hues = sorted(360 * colorsys.rgb_to_hls(*(part / 255 for part in colour))[0] for colour in page.evaluate(_HUES))
    apart = [after - before for before, after in pairwise([*hues, hues[0] + 360])]
    assert min(apart) > 25, hues


_WRITTEN = """async (sizes) => {
    const { bytes, limit } = await import(new URL("core.js", document.querySelector("script[type=module]").src));
    return sizes.map((size) => [bytes(size), limit(size)]);
}"""


def test_the_page_writes_sizes_and_limits_as_the_api_does(visitor: Visitor) -> None:
    page = visitor.tab(is_signed_in=False)
    sizes = [0, 1, 999, 1_500, 999_960, 1_485_159, 4_194_304, 25_000_000, 26_214_400, 999_960_000, 2_000_000_000]
    written = page.evaluate(_WRITTEN, sizes)
    assert [size for size, _ in written] == [size_in_words(size) for size in sizes]
    assert [limit for _, limit in written] == [
        limit_in_words(size) if size and size % 2**20 == 0 else size_in_words(size) for size in sizes
    ]


def test_the_first_load_is_small(visitor: Visitor) -> None:
    page = visitor.tab()
    settle(page)
    own = {address: size for address, size in sizes(page).items() if urlsplit(address).path.startswith("/app/")}
    assert len(own) <= FIRST_LOAD_REQUESTS, sorted(own)
    assert sum(own.values()) <= FIRST_LOAD_BYTES, own


def test_a_second_load_asks_for_nothing_but_the_shell(visitor: Visitor) -> None:
    page = visitor.tab()
    settle(page)
    again = page.context.new_page()
    again.goto(visitor.address)
    settle(again)
    fetched = [address for address, size in sizes(again).items() if size and urlsplit(address).path.startswith("/app/")]
    assert fetched == [visitor.address]


def test_every_module_is_valid_and_the_policy_admits_it(visitor: Visitor) -> None:
    page = visitor.tab()
    settle(page)
    folder = page.evaluate("() => new URL('.', document.querySelector('script[type=module]').src).pathname")
    for module in MODULES:
        is_worker = module.rsplit("/", 1)[-1].removesuffix(".js").endswith(("worker", "hash"))
        outcome = page.evaluate(
            "([address, isWorker]) => (isWorker"
            " ? fetch(address).then((answer) => answer.ok ? 'served' : `status ${answer.status}`)"
            " : import(address).then(() => 'imported')).catch((error) => `${error}`)",
            [folder + module, is_worker],
        )
        assert outcome in ("imported", "served"), (module, outcome)


def test_what_the_policy_forbids_is_blocked(visitor: Visitor) -> None:
    page = visitor.tab()
    settle(page)
    with visitor.watch.expecting("."):
        # After a moment: what a debugger evaluates itself may evaluate text.
        page.evaluate(
            """() => new Promise((end) => setTimeout(end)).then(() => {
                const script = document.createElement("script");
                try { script.textContent = "canary()"; } catch {}
                document.body.append(script);
                try { document.body.insertAdjacentHTML("beforeend", "<img src=x onerror=canary()>"); } catch {}
                try { Function("canary()")(); } catch {}
                const image = document.createElement("img");
                image.src = "https://elsewhere.example/";
                document.body.append(image);
                return fetch("https://elsewhere.example/").catch(() => null);
            })"""
        )
    settle(page)
    findings, visitor.watch.findings[:] = list(visitor.watch.findings), []
    assert not any("hostile" in each for each in findings)
    blocked = [each.split(": ")[1] for each in findings if each.startswith("blocked by the policy")]
    assert {"require-trusted-types-for", "img-src", "connect-src"} <= set(blocked)
    assert blocked.count("require-trusted-types-for") == 3


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_everybody_can_give_their_key(visitor: Visitor, width: int, dark: bool) -> None:
    page = visitor.tab(is_signed_in=False, width=width, dark=dark)
    expect(page.get_by_label("API key")).to_be_focused()
    assert axe.findings(page) == []
    assert what_sticks_out(page) == []
    first = page.get_by_role("link", name="Skip to the content")
    page.keyboard.press("Shift+Tab")
    while page.evaluate("() => document.activeElement.closest('nav, .brand') !== null"):
        page.keyboard.press("Shift+Tab")
    expect(first).to_be_focused()


def test_nothing_is_shown_of_parts_that_the_stack_has_not(visitor: Visitor) -> None:
    page = visitor.tab()
    menu = page.get_by_role("navigation", name="Screens")
    expect(menu.get_by_role("link", name="Webhooks")).to_be_visible()
    expect(page.get_by_text("folders or a photo")).to_be_visible()

    def of_a_core(route: Route) -> None:
        answer = route.fetch()
        shell = answer.text()
        parts = escape(f'"parts": {json.dumps(PARTS)}')
        assert parts in shell
        route.fulfill(response=answer, body=shell.replace(parts, "&quot;parts&quot;: [&quot;page&quot;]"))

    page.route(visitor.address, of_a_core)
    page.reload()
    expect(page.get_by_text("Drop photos or folders on this page")).to_be_visible()
    expect(menu.get_by_role("link")).to_have_text(["Upload", "Browse", "API"])
    page.evaluate("location.hash = '#/webhooks'")
    expect(page.get_by_role("heading", name="There is no such screen")).to_be_visible()
