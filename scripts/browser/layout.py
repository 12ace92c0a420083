"""Layout: what is cut off, what sticks out of the window, what is too wide to read, and holes between cards."""

from __future__ import annotations

from playwright.sync_api import Page

WIDEST_CONTENT = 1200
"""How wide the content is at most, in CSS pixels."""


def what_sticks_out(page: Page) -> list[str]:
    """Elements that are cut off or stick out of the window's width, how far the page scrolls sideways, and content
    that is wider than people like to read."""
    overflowing: list[str] = page.evaluate(_STICKS_OUT, WIDEST_CONTENT)
    return overflowing


def holes_between(page: Page, cards: str) -> list[str]:
    """Cards beside or beneath which there is room for another one, among the children of one element that a selector
    finds."""
    gaps: list[str] = page.evaluate(_HOLES, cards)
    return gaps


_PICTURES_ARE_THERE = """() => [...document.images].every((one) => {
    const { top, bottom } = one.getBoundingClientRect();
    return !one.src || one.complete || bottom < 0 || top > innerHeight || one.offsetParent === null;
})"""


def settle(page: Page) -> None:
    """Waits until the tab has loaded, the pictures in view are there, and what was drawn is on the screen."""
    page.wait_for_load_state("networkidle")
    page.wait_for_function(_PICTURES_ARE_THERE)
    page.evaluate("() => new Promise((end) => requestAnimationFrame(() => requestAnimationFrame(end)))")


_HOLES = """(selector) => {
    const cards = [...document.querySelectorAll(selector)];
    if (cards.length === 0) return ["there are no cards"];
    const boxes = cards.map((one) => one.getBoundingClientRect());
    const around = cards[0].parentElement.getBoundingClientRect();
    const gap = parseFloat(getComputedStyle(cards[0].parentElement).rowGap) + 2;
    const shares = (one, other, from, to) => one[from] < other[to] - 1 && other[from] < one[to] - 1;
    const next = (box, edge, from, to, end) => Math.min(end, ...boxes
        .filter((other) => other !== box && shares(box, other, from, to) && other[edge] >= box[edge] + 1)
        .map((other) => other[edge]));
    return cards.filter((_, place) => {
        const box = boxes[place];
        const beneath = next(box, "top", "left", "right", around.bottom + gap - 2);
        const beside = next(box, "left", "top", "bottom", around.right + gap - 2);
        return beneath - box.bottom > gap || beside - box.right > gap;
    }).map((one) => one.innerText.slice(0, 40).replaceAll("\\n", " "));
}"""

_STICKS_OUT = """(widest) => {
    const width = document.documentElement.clientWidth, found = [];
    const over = document.documentElement.scrollWidth - width;
    if (over > 0) found.push(`the page scrolls ${over} pixels sideways`);
    const name = (one) => {
        const words = (one.innerText ?? "").slice(0, 40).replaceAll("\\n", " ");
        return `${[one.tagName.toLowerCase(), ...one.classList].join(".")} "${words}"`;
    };
    const main = document.querySelector("main"), inner = main && getComputedStyle(main);
    const content = main ? main.clientWidth - parseFloat(inner.paddingLeft) - parseFloat(inner.paddingRight) : 0;
    if (content > widest + 1) found.push(`the content is ${content} pixels wide`);
    const isScrolled = (one) => {
        for (let at = one.parentElement; at; at = at.parentElement) {
            if (["auto", "scroll", "hidden", "clip"].includes(getComputedStyle(at).overflowX)) return true;
        }
        return false;
    };
    for (const one of document.body.querySelectorAll("*")) {
        const box = one.getBoundingClientRect(), style = getComputedStyle(one);
        if (!box.width || !box.height || style.visibility === "hidden" || one.closest(".unseen, .skip")) continue;
        if ((box.right > width + 1 || box.left < -1) && !isScrolled(one)) found.push(`sticks out: ${name(one)}`);
        // Text that does not fit its box, unless an ellipsis or a scroll bar says so.
        if (style.clipPath === "inset(50%)") continue; // for screen readers alone
        const isCut = one.scrollWidth > one.clientWidth + 1 && ["hidden", "clip"].includes(style.overflowX);
        if (isCut && one.clientWidth && style.textOverflow !== "ellipsis" && !one.querySelector("img, canvas, svg")) {
            found.push(`cut off: ${name(one)}`);
        }
        // A tile shows the beginning of what its image's own screen shows whole.
        const isClamped = style.webkitLineClamp !== "none" && one.scrollHeight > one.clientHeight + 1;
        if (isClamped && !one.closest(".tile")) found.push(`cut off below: ${name(one)}`);
        const isButton = one.matches("button, .button, .status, nav a");
        if (isButton && one.scrollWidth > one.clientWidth + 1) found.push(`too small for its words: ${name(one)}`);
    }
    return found;
}"""
