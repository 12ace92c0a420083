// Reads documents of the command's server, again and again if they are figures, and says how old they are.
import { html, useEffect, useState } from "../../vendor/preact.js";
import { duration, settings } from "../../core.js";
import { Trouble } from "../../parts.js";
import { call, poll } from "../../requests.js";

// ── The stack's clock: drills move a local stack's clock ahead, and a browser's may be wrong.

let ahead = 0;

/** Now by the stack's clock, in milliseconds since 1970. */
export const stackNow = () => Date.now() + ahead;

/** How long before now an RFC 3339 instant was, by the stack's clock; in words. */
export const since = (instant) => duration((stackNow() - Date.parse(instant)) / 1000);

/** "3 min ago", "in 2 h", "now" by the stack's clock. */
export function when(instant) {
    const seconds = (stackNow() - Date.parse(instant)) / 1000;
    if (Math.abs(seconds) < 5) return "now";
    return seconds > 0 ? `${duration(seconds)} ago` : `in ${duration(-seconds)}`;
}

/** An instant as the runbook and the logs write it: "11-25 03:12:07 UTC". */
export const utc = (instant) => `${instant.slice(5, 10)} ${instant.slice(11, 19)} UTC`;

/** The same, and how long ago that was; "never" without an instant. */
export const moment = (instant) => (instant ? `${utc(instant)} (${when(instant)})` : "never");

function followClock(document) {
    const observed = Date.parse(document?.observed_at);
    if (Number.isFinite(observed)) ahead = observed - Date.now();
}

/** The address of a part, with those parameters that have a value; a list stands for several values. */
export function addressOf(part, parameters = {}) {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(parameters)) {
        for (const each of [value].flat()) if (each !== null && each !== undefined && each !== "") query.append(name, each);
    }
    return query.size ? `${part}?${query}` : part;
}

/**
 * @typedef {object} Reading
 * @property {any} document  null until it is there
 * @property {number|null} readAt  when it came, in milliseconds since 1970
 * @property {Error|null} error  why the latest look failed; the document may be there all the same
 * @property {boolean} isBusy  whether an answer is awaited
 * @property {() => void} again  looks now
 */

/**
 * Reads the document at `address`; every `everySeconds` again, but not while the page is hidden. null reads nothing.
 *
 * @returns {Reading}
 */
export function useReading(address, { everySeconds = null } = {}) {
    const nothing = { address, document: null, readAt: null, error: null, isBusy: address !== null };
    const [state, setState] = useState(nothing);
    const [turn, setTurn] = useState(0);
    useEffect(() => {
        if (address === null) return setState(nothing);
        const ending = new AbortController();
        const change = (some) =>
            setState((before) => ({ ...(before.address === address ? before : nothing), ...some }));
        const look = async () => {
            change({ isBusy: true });
            const { document } = await call("GET", `/operate/api/${address}`, { signal: ending.signal });
            followClock(document);
            change({ document, readAt: Date.now(), error: null, isBusy: false });
            return everySeconds;
        };
        poll(look, { signal: ending.signal, trouble: (error) => change({ error, isBusy: false }) }).catch((error) => {
            if (error.name !== "AbortError") change({ error, isBusy: false });
        });
        return () => ending.abort();
    }, [address, everySeconds, turn]);
    const current = state.address === address ? state : nothing;
    return { ...current, again: () => setTurn((before) => before + 1) };
}

/** What stands where a document will be: that it is awaited, or why it is not there. */
export function Awaited({ reading }) {
    if (reading.error) return html`<${Trouble} error=${reading.error} again=${reading.again} />`;
    return reading.document === null && html`<p class="starting" role="status">Asking the stack…</p>`;
}

/** How old the figures are, and a button that stops and starts their refreshing, or asks once. */
export function Freshness({ reading, everySeconds = null, isPaused = false, onPause = null }) {
    const [now, setNow] = useState(Date.now());
    useEffect(() => {
        const timer = setInterval(() => setNow(Date.now()), 1000);
        return () => clearInterval(timer);
    }, []);
    const { readAt, isBusy } = reading;
    const age = readAt === null ? null : Math.max(0, (now - readAt) / 1000);
    const isOld = age !== null && age > Math.max(30, 4 * (everySeconds ?? 60));
    const words = age === null ? "Nothing was read yet." : `Read ${age < 2 ? "just now" : `${duration(age)} ago`}`;
    const rhythm = age === null || !onPause ? "" : isPaused ? ", and paused" : `, again every ${everySeconds} s`;
    return html`<p class="row freshness">
        <span class=${isOld ? "is-warn" : "quiet"}>${words}${rhythm}${age === null ? "" : "."}</span>
        ${onPause &&
        html`<button type="button" class="small" aria-pressed=${String(isPaused)} onClick=${() => onPause(!isPaused)}>
            ${isPaused ? "Go on" : "Pause"}
        </button>`}
        <button type="button" class="small" disabled=${isBusy} onClick=${reading.again}>Read now</button>
    </p>`;
}

/** How often figures that cost something are read again, in seconds: as `darkroom top` does. */
export const OFTEN_SECONDS = settings.local ? 2 : 5;
