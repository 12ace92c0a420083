// Shows the caller's batches, the newest first: how far each of them is, and a way to close or cancel it.
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { count, duration, local } from "../core.js";
import { announce, Confirm, Copy, statusWord, Trouble } from "../parts.js";
import { call, poll } from "../requests.js";
import { secondsPerRead } from "./allowance.js";

const PAGE_BATCHES = 20;
const LOOK_SECONDS = 5;

/**
 * A batch as the API says it; one of which only its list is known has neither `images` nor what follows.
 *
 * @typedef {object} Batch
 * @property {string} id
 * @property {string|null} name
 * @property {"open"|"closed"|"completed"|"failed"|"cancelled"} state
 * @property {string} created_at
 * @property {string|null} closed_at
 * @property {string|null} ended_at
 * @property {Record<string, number>} [images]  how many are in each state
 * @property {number} [progress]  0 to 1
 * @property {number|null} [remaining_seconds]
 * @property {number|null} [parallelism]
 * @property {"continue"|"stop"} [on_failure]
 * @property {"client"|"failure"|null} [stopped_by]
 */

/** The screen that lists batches. */
export default function Batches() {
    const { batches, isMore, error, stale, more, replace } = useBatches();
    if (batches === null) {
        if (error) return html`<h1>Batches</h1><${Trouble} error=${error} />`;
        return html`<h1>Batches</h1><p class="starting" role="status">${stale?.message ?? "Loading…"}</p>`;
    }
    return html`<h1>Batches</h1>
        <p class="quiet">Programs and the command line send images in batches: to follow them together, to limit how many
            are in work at a time, and to hear once of their end.</p>
        ${error && html`<${Trouble} error=${error} again=${() => location.reload()} word="Reload the page" />`}
        ${stale && html`<p class="quiet" role="status">This may be out of date. ${stale.message}</p>`}
        ${batches.length === 0 && html`<div class="card narrow"><h2>There are none yet</h2>
            <p>Make one with one request: <a href="#/api?call=postBatch">POST /batches</a>.</p></div>`}
        ${batches.length > 0 && html`<ul class="plain batches" aria-label=${count(batches.length, "batch", "batches")}
            >${batches.map((batch) => html`<li key=${batch.id} class="card">
                <${Item} batch=${batch} onChange=${replace} /></li>`)}</ul>`}
        ${isMore && html`<p class="batches-end"><button type="button" onClick=${more}>Show more</button></p>`}`;
}

/** The batches that are shown, which are read again and again until they have ended; `more` shows older ones, too. */
function useBatches() {
    const [batches, setBatches] = useState(/** @type {Batch[]|null} */ (null));
    const [next, setNext] = useState(null);
    const [error, setError] = useState(null);
    const [stale, setStale] = useState(null); // why what is shown may be out of date
    const shown = useRef(/** @type {Batch[]} */ ([]));
    const ended = useRef(new Set()); // ids of those that were read after their end
    const control = useRef(/** @type {AbortController|null} */ (null));

    const show = (all) => {
        shown.current = all;
        setBatches(all);
    };
    /** @param {Batch} batch */
    const replace = (batch) => {
        if (batch.ended_at) ended.current.add(batch.id);
        show(shown.current.map((each) => (each.id === batch.id ? batch : each)));
    };
    /** Shows a page of the list, and then how far each batch is; returns the page's end, and how long that must last. */
    const read = async (cursor, signal) => {
        const query = cursor === null ? { limit: PAGE_BATCHES } : { limit: PAGE_BATCHES, cursor };
        const { document, headers } = await call("GET", "/batches", { query, signal });
        show(merged(shown.current, document.batches));
        let seconds = secondsPerRead(headers);
        for (const { id } of shown.current) {
            if (ended.current.has(id)) continue;
            const answer = await call("GET", `/batches/${encodeURIComponent(id)}`, { signal });
            replace(answer.document);
            seconds += secondsPerRead(answer.headers);
        }
        return { next: document.next, seconds };
    };
    const more = async () => {
        setError(null);
        try {
            setNext((await read(next, control.current.signal)).next);
        } catch (problem) {
            if (!control.current.signal.aborted) setError(problem);
        }
    };
    useEffect(() => {
        control.current = new AbortController();
        const { signal } = control.current;
        let isFirst = true;
        const look = async () => {
            const page = await read(null, signal);
            if (isFirst) setNext(page.next);
            isFirst = false;
            return Math.max(LOOK_SECONDS, page.seconds);
        };
        poll(look, { signal, trouble: setStale }).catch((problem) => {
            if (!signal.aborted) setError(problem);
        });
        return () => control.current.abort();
    }, []);
    return { batches, isMore: next !== null, error, stale, more, replace };
}

/**
 * Those that are shown and those that a page lists, the newest first.
 *
 * @param {Batch[]} shown
 * @param {Batch[]} listed
 */
function merged(shown, listed) {
    const all = new Map(shown.map((batch) => [batch.id, batch]));
    for (const batch of listed) all.set(batch.id, { ...all.get(batch.id), ...batch });
    return [...all.values()].sort((one, other) => Date.parse(other.created_at) - Date.parse(one.created_at));
}

const LOOKS = { open: "processing", closed: "processing", completed: "done", failed: "failed" };
const BARS = { completed: "is-good", failed: "is-bad", cancelled: "is-held" };

const nameOf = (batch) => batch.name ?? batch.id;

/** @param {{batch: Batch, onChange: (batch: Batch) => void}} properties */
function Item({ batch, onChange }) {
    const { images, progress, state } = batch;
    const looks = images?.failed + images?.expired > 0 && state === "completed" ? "troubled" : LOOKS[state];
    return html`<h2 class="batch-name">${batch.name ?? html`<code>${batch.id}</code>`}${" "}
            <span class=${`status status-${looks ?? "other"}`}>${statusWord(state)}</span></h2>
        <progress max="1" value=${progress ?? 0} class=${BARS[state] ?? ""}
            aria-label=${`Images of ${nameOf(batch)} that have ended`}></progress>
        ${images && html`<p>${inWords(batch)}</p>`}
        ${reasonOf(batch) && html`<p class="quiet">${reasonOf(batch)}</p>`}
        <dl class="facts">
            <dt>Made</dt><dd>${when(batch.created_at)}</dd>
            ${batch.ended_at && html`<dt>Ended</dt><dd>${when(batch.ended_at)}</dd>`}
            ${batch.parallelism && html`<dt>In work</dt>
                <dd>at most ${count(batch.parallelism, "image")} at a time</dd>`}
            <dt>Id</dt><dd><${Copy} text=${batch.id} label=${`the id of ${nameOf(batch)}`} /></dd>
        </dl>
        ${!batch.ended_at && !batch.stopped_by && html`<${Actions} batch=${batch} onChange=${onChange} />`}`;
}

const when = (instant) => html`<time datetime=${instant}>${local(instant)}</time>`;

/** How many images are in which state, and how long the rest takes. @param {Batch} batch  one that was read */
function inWords({ images, remaining_seconds: remaining }) {
    const all = Object.values(images).reduce((sum, number) => sum + number, 0);
    if (all === 0) return "No images yet.";
    const { waiting, working, ...ends } = images;
    const ended = all - waiting - working;
    const states = Object.entries({ waiting, "in work": working, ...ends })
        .filter(([, number]) => number > 0)
        .map(([state, number]) => `${number.toLocaleString()} ${state}`);
    const rest = remaining && ended < all ? ` About ${duration(remaining)} more.` : "";
    const have = `${ended.toLocaleString()} of ${count(all, "image")} ${ended === 1 ? "has" : "have"} ended`;
    return `${have}: ${states.join(", ")}.${rest}`;
}

/** Why a batch begins nothing more, or what it waits for; null if there is nothing to say. @param {Batch} batch */
function reasonOf({ state, stopped_by: stop, ended_at: ended }) {
    if (stop === "failure") return "One of its images failed, so what was not begun was deleted.";
    if (stop === "client" && !ended) return "It was cancelled: what was begun ends as usual.";
    if (state !== "open") return null;
    return "Images may join it. It ends only once it is closed, which it is by itself seven days after it was made.";
}

/** @param {{batch: Batch, onChange: (batch: Batch) => void}} properties */
function Actions({ batch, onChange }) {
    const [isAsking, ask] = useState(false);
    const [isBusy, setBusy] = useState(false);
    const [error, setError] = useState(null);
    const path = `/batches/${encodeURIComponent(batch.id)}`;
    const act = (method, at, said) => async () => {
        ask(false);
        setBusy(true);
        setError(null);
        try {
            const { document } = await call(method, at);
            announce(said);
            onChange(document);
        } catch (problem) {
            setError(problem);
        }
        setBusy(false);
    };
    return html`${error && html`<${Trouble} error=${error} />`}
        <div class="row batch-actions">
            ${batch.state === "open" && html`<button type="button" class="small" disabled=${isBusy}
                aria-label=${`Close ${nameOf(batch)}`}
                onClick=${act("POST", `${path}/close`, "The batch is closed.")}>Close</button>`}
            <button type="button" class="small" disabled=${isBusy} aria-label=${`Cancel ${nameOf(batch)}`}
                onClick=${() => ask(true)}>Cancel…</button>
        </div>
        ${isAsking && html`<${Confirm} title="Cancel this batch?" yes="Cancel the batch" no="Go on"
            onNo=${() => ask(false)} onYes=${act("DELETE", path, "The batch is cancelled.")}>
            <p><strong>This cannot be undone.</strong> No more images may join it, and those of which nothing was begun are
                deleted within minutes. What was begun ends as usual.</p>
        <//>`}`;
}
