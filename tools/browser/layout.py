"""Layout: what is cut off, and what sticks out of the window."""

from __future__ import annotations

from playwright.sync_api import Page


def what_sticks_out(page: Page) -> list[str]:
    """Elements that are cut off or stick out of the window's width, and how far the page scrolls sideways."""
    found: list[str] = page.evaluate(_STICKS_OUT)
    return found


_PICTURES_ARE_THERE = """() => [...document.images].every((one) => {
    const { top, bottom } = one.getBoundingClientRect();
    return !one.src || one.complete || bottom < 0 || top > innerHeight || one.offsetParent === null;
})"""


def settle(page: Page) -> None:
    """Waits until the tab has loaded, the pictures in view are there, and what was drawn is on the screen."""
    page.wait_for_load_state("networkidle")
    page.wait_for_function(_PICTURES_ARE_THERE)
    page.evaluate("() => new Promise((end) => requestAnimationFrame(() => requestAnimationFrame(end)))")


_STICKS_OUT = """() => {
    const width = document.documentElement.clientWidth, found = [];
    const over = document.documentElement.scrollWidth - width;
    if (over > 0) found.push(`the page scrolls ${over} pixels sideways`);
    const name = (one) => {
        const words = (one.innerText ?? "").slice(0, 40).replaceAll("\\n", " ");
        return `${[one.tagName.toLowerCase(), ...one.classList].join(".")} "${words}"`;
    };
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
