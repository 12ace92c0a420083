// The components that screens share, and the frame around them.
import { html, render, useEffect, useErrorBoundary, useRef, useState } from "./vendor/preact.js";
import { duration, keep, listenToSession, phone, sentence } from "./core.js";

/** Whether the window is as narrow as a phone's. */
export function useIsNarrow() {
    const [isNarrow, setNarrow] = useState(phone.matches);
    useEffect(() => {
        const adapt = () => setNarrow(phone.matches);
        phone.addEventListener("change", adapt);
        return () => phone.removeEventListener("change", adapt);
    }, []);
    return isNarrow;
}

// ── Trouble: what went wrong, and what the reader can do.

/** @param {{error: any, again?: () => void, word?: string}} properties  `again` offers to try again, by this word */
export function Trouble({ error, again, word = "Try again" }) {
    const fields = error.errors ?? [];
    return html`<div class="trouble" role="alert">
        <p><strong>${sentence(error.title ?? "That did not work")}</strong> ${sentence(error.detail ?? error.message)}</p>
        ${fields.length > 0 &&
        html`<ul>${fields.map((problem) => html`<li><code>${problem.field}</code> ${sentence(problem.message)}</li>`)}</ul>`}
        ${error.correlationId && html`<p class="quiet">Correlation id <code>${error.correlationId}</code></p>`}
        ${again && html`<button type="button" onClick=${again}>${word}</button>`}
    </div>`;
}

/** A module that cannot be loaded: browsers do not ask for it a second time before the page is loaded anew. */
export const NotLoaded = ({ then = "" }) =>
    html`<${Trouble} again=${() => location.reload()} word="Reload the page" error=${new Error(
        "This part of the page could not be loaded: the connection is down, or the stack was deployed again. " +
            `Reload the page${then}.`,
    )} />`;

// ── Confirm: asks before something is done that cannot be undone.

/**
 * A modal question: what will happen, and two buttons. Escape is "no".
 *
 * @param {{title: string, children: any, yes: string, no?: string, onYes: () => void, onNo: () => void,
 *          isGrave?: boolean}} properties
 */
export function Confirm({ title, children, yes, no = "Cancel", onYes, onNo, isGrave = true }) {
    const dialog = useRef(null);
    useEffect(() => {
        const before = /** @type {HTMLElement|null} */ (document.activeElement);
        const shown = dialog.current;
        shown.showModal();
        return () => {
            shown.close(); // while it is open, nothing behind it takes the focus
            before?.focus();
        };
    }, []);
    // It is also closed when it goes away, and nobody has said no then.
    return html`<dialog ref=${dialog} aria-labelledby="question" onClose=${() => dialog.current && onNo()}>
        <h2 id="question">${title}</h2>
        ${children}
        <div class="buttons">
            <button type="button" onClick=${() => onNo()}>${no}</button>
            <button type="button" class=${isGrave ? "grave" : "main"} onClick=${() => onYes()}>${yes}</button>
        </div>
    </dialog>`;
}

// ── Status: an image's status, in words and colour.

/** A status as people read it: the API's own word, so that the page, the API and the commands say the same. */
export const statusWord = (status) => String(status).replaceAll("_", " ");

/** @param {{status: string}} properties  as status documents have it */
export const Status = ({ status }) =>
    html`<span class=${`status ${/^[a-z_]+$/.test(status) ? `status-${status}` : ""}`}>${statusWord(status)}</span>`;

// ── Picture: a picture whose place is known at once: its ThumbHash first, then the picture itself.

/**
 * @param {{placeholder: {thumbhash: string, color: string}|null, url: string|null, width?: number, height?: number,
 *          alt: string, onError?: () => void}} properties
 */
export function Picture({ placeholder, url, width, height, alt, onError }) {
    const canvas = useRef(null);
    const [isThere, setThere] = useState(false);
    useEffect(() => setThere(false), [url]);
    useEffect(() => {
        paint(canvas.current, placeholder);
    }, [placeholder?.thumbhash]);
    // A picture that has come is not decoded yet: without its ThumbHash its place would be blank for a moment.
    const reveal = ({ target }) => target.decode().finally(() => setThere(true)).catch(() => {});
    return html`<span class="picture" style=${width && height ? { aspectRatio: `${width} / ${height}` } : {}}>
        ${!isThere && html`<canvas ref=${canvas} aria-hidden="true"></canvas>`}
        ${url &&
        html`<img src=${url} width=${width} height=${height} alt=${alt} loading="lazy" decoding="async"
            onLoad=${reveal} onError=${onError} />`}
    </span>`;
}

async function paint(canvas, placeholder) {
    if (!canvas || !placeholder) return;
    canvas.style.background = placeholder.color;
    try {
        const { thumbHashToRGBA } = await import("./vendor/thumbhash.js"); // not at the first load: nothing needs it there
        const hash = Uint8Array.from(atob(placeholder.thumbhash), (char) => char.charCodeAt(0));
        const { w, h, rgba } = thumbHashToRGBA(hash);
        canvas.width = w;
        canvas.height = h;
        canvas.getContext("2d").putImageData(new ImageData(new Uint8ClampedArray(rgba), w, h), 0, 0);
    } catch {
        // The colour is enough.
    }
}

// ── Copy: a text with a button that copies it.

/** @param {{text: string, label: string, isLong?: boolean}} properties  `label` says what is copied */
export function Copy({ text, label, isLong = false }) {
    const [done, setDone] = useState(false);
    const copy = async () => {
        try {
            await navigator.clipboard.writeText(text);
            setDone(true);
            setTimeout(() => setDone(false), 2000);
        } catch {
            setDone(false); // the text is there to be selected
        }
    };
    return html`<span class=${isLong ? "copy long" : "copy"}>
        <code>${text}</code>
        <button type="button" class="small" onClick=${copy} aria-label=${`Copy ${label}`}>
            ${done ? "Copied" : "Copy"}
        </button>
    </span>`;
}

// ── Countdown: the seconds until something goes on, counted down.

/** @param {{until: number}} properties  in milliseconds since 1970 */
export function Countdown({ until }) {
    const [now, setNow] = useState(Date.now());
    useEffect(() => {
        const timer = setInterval(() => setNow(Date.now()), 500);
        return () => clearInterval(timer);
    }, [until]);
    return html`<span class="countdown">${duration((until - now) / 1000)}</span>`;
}

// ── Announcements: tells screen readers what changed, without moving the focus.

/** Has `text` read aloud when the reader is idle. */
export function announce(text) {
    const region = document.getElementById("announcements");
    if (!region) return;
    region.textContent = "";
    requestAnimationFrame(() => (region.textContent = text));
}

// ── The API key: asks for the API key, once per tab.

/** @param {{reason: string|null}} properties  why the key before was refused */
export function KeyForm({ reason }) {
    const [key, setKey] = useState("");
    const field = useRef(null);
    useEffect(() => field.current.focus(), []);
    const [error, setError] = useState(reason ? new Error(reason) : null);
    const [isBusy, setBusy] = useState(false);
    const enter = async (event) => {
        event.preventDefault();
        const text = key.trim();
        if (!/^[\x21-\x7e]+$/.test(text)) {
            setError(new Error("A key starts with dr_ and has no spaces. Copy it whole."));
            return;
        }
        setBusy(true);
        try {
            const { call } = await import("./requests.js");
            await call("GET", "/images", { query: { limit: 1 }, headers: { Authorization: `Bearer ${text}` } });
            keep(text);
        } catch (problem) {
            setError(problem);
            setBusy(false);
        }
    };
    return html`<form class="card narrow" onSubmit=${enter}>
        <h1>Your API key</h1>
        <p>It stays in this tab and is forgotten when you close it. Whoever operates this Darkroom gives out keys.</p>
        ${error && html`<${Trouble} error=${error} />`}
        <label for="key">API key</label>
        <input ref=${field} id="key" type="password" autocomplete="off" spellcheck=${false} required value=${key}
            placeholder="dr_…" onInput=${(event) => setKey(event.target.value)} />
        <button type="submit" class="main" disabled=${isBusy}>${isBusy ? "Checking…" : "Continue"}</button>
    </form>`;
}

// ── The frame: the menu, and the screen that the address names.

/**
 * Shows the page. Each of `screens` has its place in the address, its name in the menu (`at`; none: it is reached from
 * another, `parent`), and its module.
 *
 * @param {{screens: Json[], gate: (reason: string|null) => any, leave?: () => any, follow?: () => void}} options
 *     `gate` returns what is shown instead of any screen, or null; `leave` what ends the session; `follow` is called
 *     before each address is read
 */
export function start({ screens, gate, leave = () => null, follow = () => {} }) {
    follow();
    for (const name of ["dragover", "drop"]) addEventListener(name, refuse);
    const page = document.getElementById("page");
    page.replaceChildren();
    render(html`<${Page} ...${{ screens, gate, leave, follow }} />`, page);
}

/** Refuses what a browser would open in place of the page, unless the upload screen, which listens later, takes it. */
function refuse(event) {
    const types = event.dataTransfer?.types ?? [];
    if (!types.includes("Files") && (!types.includes("text/uri-list") || event.target.closest?.("input, textarea"))) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = "none";
}

/** The screen that the address names, its arguments, and its query. */
function placeOf(screens, hash) {
    const [path, query = ""] = (hash.replace(/^#/, "") || "/").split("?");
    for (const screen of screens) {
        const match = screen.path.exec(path);
        if (match) return { screen, argument: match[1] ?? null, query: new URLSearchParams(query) };
    }
    return { screen: null, argument: null, query: new URLSearchParams() };
}

function Page({ screens, gate, leave, follow }) {
    const [hash, setHash] = useState(location.hash);
    const [session, setSession] = useState({ reason: null });
    useEffect(() => listenToSession((reason) => setSession({ reason })), []);
    useEffect(() => {
        const change = () => {
            follow();
            setHash(location.hash);
        };
        addEventListener("hashchange", change);
        return () => removeEventListener("hashchange", change);
    }, []);
    const place = placeOf(screens, hash);
    const shown = useRef({ screen: null, from: null });
    if (shown.current.screen !== place.screen) shown.current = { screen: place.screen, from: shown.current.screen };
    return html`
        <a class="skip" href="#content" onClick=${skip}>Skip to the content</a>
        <header>
            <a class="brand" href="#/"><img src=${new URL("./icon.svg", import.meta.url).pathname} alt="" width="24" height="24" /> Darkroom</a>
            <nav aria-label="Screens">
                ${screens.filter((screen) => screen.at).map(
                    (screen) => html`<a href=${screen.at}
                        aria-current=${(place.screen?.at ?? place.screen?.parent) === screen.at ? "page" : undefined}
                        >${screen.title}</a>`,
                )}
            </nav>
            ${leave()}
        </header>
        <main id="content" tabindex="-1">
            <${Content} place=${{ ...place, from: shown.current.from }} gate=${gate} reason=${session.reason} />
        </main>
        <div id="announcements" class="unseen" role="status" aria-live="polite"></div>
    `;
}

function skip(event) {
    event.preventDefault();
    document.getElementById("content").focus();
}

function Content({ place, gate, reason }) {
    const closed = gate(reason);
    if (closed) return closed;
    if (place.screen === null) {
        return html`<div class="card narrow"><h1>There is no such screen</h1><p><a href="#/">Start here</a>.</p></div>`;
    }
    const { screen, argument, query, from } = place;
    const key = `${screen.title} ${argument}`;
    return html`<${Later} key=${key} title=${screen.title} load=${screen.load} 
        properties=${{ argument, query, from: from?.title ?? null }} />`;
}

/** The default component of a module that is loaded when it is first needed. */
export function Later({ load, title, properties }) {
    const [Screen, setScreen] = useState(null);
    const [isMissing, setMissing] = useState(false);
    const [broken, repair] = useErrorBoundary();
    const first = useRef(isFirst);
    useEffect(() => {
        load().then((module) => setScreen(() => module.default), () => setMissing(true));
        if (title) document.title = `${title} · Darkroom`;
        // A new screen is where reading goes on; the first one is where the page begins anyway.
        if (!first.current) document.getElementById("content").focus();
        isFirst = false;
    }, []);
    if (broken) {
        console.error(broken);
        return html`<${Trouble} error=${new Error("This screen has a fault. What was accepted is not affected.")} again=${repair} />`;
    }
    if (isMissing) return html`<${NotLoaded} />`;
    return Screen ? html`<${Screen} ...${properties} />` : html`<p class="starting">Loading…</p>`;
}

let isFirst = true;
