// Shows all images, newest first, however many there are.
import { html, useEffect, useMemo, useReducer, useRef, useState } from "../vendor/preact.js";
import { count, duration } from "../core.js";
import { announce, Confirm, Countdown, Status, Trouble, useIsNarrow } from "../parts.js";
import { call, mayPass, pause, poll } from "../requests.js";
import { forgetImage, listOf, STATUSES } from "./browse/list.js";
import { Grid } from "./browse/grid.js";

const LONGEST_PAUSE_SECONDS = 60;
const SETTLED_SECONDS = 0.5; // so long a filter must stand before its images are read
const ONE_MOMENT = "One moment: the service asks to wait";

/** The statuses that an address asks for, in their usual order, comma-separated. */
function statusesOf(query) {
    const asked = (query.get("status") ?? "").split(",");
    return STATUSES.filter((status) => asked.includes(status)).join(",");
}

/** The screen that shows the caller's images. Its filter is in the address, so that it can be kept and shared. */
export default function Browse({ query, from }) {
    const statuses = statusesOf(query);
    const [beside, setBeside] = useState(null); // what stands beside the heading
    return html`<div class="browse-bar"><h1>Browse</h1>${beside}</div>
        <${Filter} statuses=${statuses} />
        <${Images} key=${`images ${statuses}`} statuses=${statuses} isBack=${from === "Image"}
            onBeside=${setBeside} />`;
}

function Filter({ statuses }) {
    const chosen = statuses ? statuses.split(",") : [];
    const toggle = (status) => {
        const after = STATUSES.filter((each) => (each === status) !== chosen.includes(each));
        location.hash = after.length ? `#/browse?status=${after.join(",")}` : "#/browse";
    };
    const isNarrow = useIsNarrow();
    const pills = html`<div class="pills" role="group" aria-label="Show only">
        ${!isNarrow && html`<span class="pills-name" aria-hidden="true">Show only</span>`}
        ${STATUSES.map((status) => html`<label class="pill">
            <input type="checkbox" checked=${chosen.includes(status)} onChange=${() => toggle(status)} />
            <${Status} status=${status} />
        </label>`)}
        ${chosen.length > 0 && html`<a class="button small" href="#/browse">Show all</a>`}
    </div>`;
    if (!isNarrow) return html`<div class="browse-filter">${pills}</div>`;
    return html`<details class="browse-filter">
        <summary>Show only <span class="quiet">${chosen.length ? `${chosen.length} chosen` : "all statuses"}</span>
        </summary>
        ${pills}
    </details>`;
}

/**
 * @param {{statuses: string, isBack: boolean, onBeside: (beside: any) => void}} properties  `isBack` if the reader comes
 *        back from one of the images, to where they were
 */
function Images({ statuses, isBack, onBeside }) {
    const list = useMemo(() => {
        const list = listOf(statuses);
        if (!isBack) Object.assign(list, { scroll: 0, opened: null });
        return list;
    }, []);
    const [, redraw] = useReducer((number) => number + 1, 0);
    const visible = useRef([]);
    useEffect(() => list.listen(redraw), []);
    const now = useNow();
    const reading = useReading(list, visible);
    const end = useEnd(list, reading);
    const choice = useChoice();
    useBeside(list, reading, choice, onBeside);

    const { error, until, stale, more } = reading;
    if (error && !list.isStarted) {
        const again = error.status === 400 ? null : () => location.reload();
        return html`<${Trouble} error=${error} again=${again} />`;
    }
    const images = list.isStarted ? list.images : list.old;
    if (!list.isStarted && images.length === 0) {
        const notice = until === null ? "Loading…" : "The list comes by itself after that.";
        return html`<p class="starting" role="status">${notice}</p>`;
    }
    return html`${stale && stale.until === null &&
            html`<p class="quiet" role="status">This may be out of date. ${stale.problem.message}</p>`}
        ${images.length > 0
            ? html`<${Grid} images=${images} now=${now} scroll=${list.scroll} opened=${list.opened}
                  chosen=${choice.chosen} onChoose=${choice.toggle}
                  onScroll=${(scroll) => (list.scroll = scroll)} onOpen=${(id) => (list.opened = id)}
                  onView=${(images) => (visible.current = images)} onBroken=${(image) => list.renew(image)} />`
            : list.isWhole && html`<${Nothing} statuses=${statuses} />`}
        <div class="browse-end" ref=${end}>
            <${More} list=${list} error=${error} until=${until} more=${more} />
        </div>`;
}

/** The present time, in milliseconds since 1970: a new one twice a minute. */
function useNow() {
    const [now, setNow] = useState(Date.now());
    useEffect(() => {
        const timer = setInterval(() => setNow(Date.now()), 30_000);
        return () => clearInterval(timer);
    }, []);
    return now;
}

/** Reads the list, keeps it current while it is shown, and says what stands in the way; `more` reads its next page. */
function useReading(list, visible) {
    const [error, setError] = useState(null); // why no more can be read
    const [until, setUntil] = useState(null); // when reading goes on by itself
    const [isAsked, setAsked] = useState(false); // whether the service asked to wait until then
    const [stale, setStale] = useState(null); // why the list may be out of date
    const control = useRef(null);

    const more = async () => {
        const { signal } = control.current;
        setError(null);
        for (let failures = 1; !signal.aborted; failures += 1) {
            try {
                await list.more();
                setUntil(null);
                return;
            } catch (problem) {
                if (signal.aborted) return;
                if (!mayPass(problem)) {
                    setError(problem);
                    return;
                }
                const seconds = Math.min(problem.retryAfter ?? 2 ** failures, LONGEST_PAUSE_SECONDS);
                setUntil(Date.now() + seconds * 1000);
                setAsked(problem.status === 429);
                if (problem.status === 429) announce(`${ONE_MOMENT} ${duration(seconds)}.`);
                await pause(seconds, signal).catch(() => {});
            }
        }
    };

    const tellStale = (problem) => setStale(problem && { problem, until: endOf(problem) });

    useEffect(() => {
        control.current = new AbortController();
        const { signal } = control.current;
        keepCurrent(list, { visible, more, tellStale, signal }).catch((problem) => {
            if (!signal.aborted) setError(problem);
        });
        return () => control.current.abort();
    }, []);
    return { error, until, isAsked, stale, tellStale, more };
}

/** Has the list begin, and then looks again and again at what is in view. */
async function keepCurrent(list, { visible, more, tellStale, signal }) {
    let isAgain = list.isStarted;
    if (list.isStarted) await pause(list.rest, signal);
    else {
        // Who clicks on to the next filter does not wait for this one.
        if (list.old.length > 0) await pause(SETTLED_SECONDS, signal);
        await more();
        if (!list.isStarted) return;
        await pause(list.images.every((image) => image.completed_at) ? 10 : 1, signal);
    }
    await poll(async () => {
        // What has the focus stays where it is.
        list.isHeld = Boolean(document.activeElement?.closest(".gallery"));
        const wait = await list.look(visible.current, isAgain);
        isAgain = false;
        return wait;
    }, { signal, trouble: tellStale });
}

/** Reads the next page when the list's end comes into view: the element with the reference that this returns. */
function useEnd(list, { error, until, more }) {
    const end = useRef(null);
    // It is observed anew after each page, which may be empty.
    useEffect(() => {
        if (!end.current || !list.isStarted || list.isWhole || error || until !== null) return undefined;
        const observer = new IntersectionObserver(
            (entries) => {
                if (entries.some((entry) => entry.isIntersecting)) more();
            },
            { rootMargin: "1500px 0px" },
        );
        observer.observe(end.current);
        return () => observer.disconnect();
    }, [list.pages.length, list.isStarted, error, until]);
    return end;
}

/** Which images are chosen to be deleted, by their ids; null unless they are being chosen. */
function useChoice() {
    const [chosen, choose] = useState(null);
    const begin = () => choose(new Set());
    const end = () => {
        choose(null);
        document.getElementById("content").focus({ preventScroll: true }); // its button goes away
    };
    const toggle = (id) => choose((before) => {
        const after = new Set(before);
        if (!after.delete(id)) after.add(id);
        return after;
    });
    return { chosen, begin, end, toggle };
}

/** Puts beside the heading what is to be done now: with new images, with those that are chosen, or to wait. */
function useBeside(list, { until, isAsked, stale, tellStale }, { chosen, begin, end }, onBeside) {
    const fresh = list.fresh.length;
    const hasImages = list.isStarted && list.images.length > 0;
    const newer = list.hasGap ? "Many new images" : fresh > 0 ? count(fresh, "new image") : null;
    const wait = (list.isStarted && !isAsked ? null : until) ?? stale?.until ?? null;
    const why = until !== null && !isAsked ? "No answer came. Trying again in" : ONE_MOMENT;
    useEffect(() => {
        const offer = newer && html`<button type="button" class="main"
            onClick=${() => showFresh(list, tellStale)}>${newer}: show</button>`;
        onBeside(chosen ? html`<${Chosen} ids=${chosen} onEnd=${end} />`
            : html`<div class="row">
                ${wait === null ? offer : html`<p class="quiet">${why} <${Countdown} until=${wait} /></p>`}
                ${hasImages && html`<button type="button" class="small" onClick=${begin}>Select</button>`}
            </div>`);
    }, [newer, wait, why, chosen, hasImages]);
    useEffect(() => () => onBeside(null), []);
}

/** Brings the reader to the list's beginning, with what is new there. */
function showFresh(list, tellStale) {
    const notice = list.hasGap ? "The newest images are shown." : `${count(list.fresh.length, "new image")} shown.`;
    list.showFresh().then(() => announce(notice), (problem) => {
        tellStale(problem);
        setTimeout(() => tellStale(null), (endOf(problem) ?? Date.now() + 10_000) - Date.now());
    });
    scrollTo(0, 0);
    document.getElementById("content").focus({ preventScroll: true });
}

/** What follows the images: how more of them come, why they do not, or that these are all. */
const More = ({ list, error, until, more }) => html`
    ${error && html`<${Trouble} error=${error} again=${more} />`}
    ${until !== null && list.isStarted &&
    html`<p role="status">Going on in <${Countdown} until=${until} /></p>`}
    ${!list.isWhole && !error && until === null && list.isStarted &&
    html`<button type="button" onClick=${more} disabled=${list.loading !== null}>
        ${list.loading ? "Loading…" : "Show more"}</button>`}
    ${list.isWhole && list.images.length > 0 &&
    html`<p class="quiet">That is all: ${count(list.images.length, "image")}. Names of files are known only in
        the browser that sent them.</p>`}`;

/** How many images are chosen, and what can be done with them. */
function Chosen({ ids, onEnd }) {
    const [isAsking, ask] = useState(false);
    const [progress, setProgress] = useState(null); // in words, while they are deleted
    const [error, setError] = useState(null);
    const control = useRef(new AbortController());
    useEffect(() => () => control.current.abort(), []);
    const remove = async () => {
        const { signal } = control.current;
        ask(false);
        setError(null);
        let deleted = 0;
        try {
            for (const id of ids) {
                setProgress(`Deleting ${deleted + 1} of ${ids.size}…`);
                await deleteImage(id, signal);
                forgetImage(id);
                deleted += 1;
            }
            announce(`${count(deleted, "image")} deleted.`);
            onEnd();
        } catch (problem) {
            if (!signal.aborted) setError(problem);
        }
        setProgress(null);
    };
    if (progress) return html`<p class="quiet" role="status">${progress}</p>`;
    return html`<div class="row">
        <span role="status">${error ? error.message : ids.size ? `${ids.size} selected` : "Select images"}</span>
        <button type="button" class="small grave" disabled=${ids.size === 0} onClick=${() => ask(true)}>
            Delete…</button>
        <button type="button" class="small" onClick=${onEnd}>Cancel</button>
        ${isAsking && html`<${Confirm} title=${`Delete ${count(ids.size, "image")}?`} yes="Delete" onYes=${remove}
            onNo=${() => ask(false)}>
            <p><strong>This cannot be undone.</strong> The originals and all their variants are gone within minutes, and
                addresses that you gave to others stop working.</p>
        <//>`}
    </div>`;
}

/** Deletes an image, as soon as the service takes the request; one that is gone already is no error. */
async function deleteImage(id, signal) {
    for (let failures = 1; ; failures += 1) {
        try {
            await call("DELETE", `/images/${id}`, { signal });
            return;
        } catch (problem) {
            if (problem.status === 404) return;
            if (signal.aborted || !mayPass(problem)) throw problem;
            await pause(Math.min(problem.retryAfter ?? 2 ** failures, LONGEST_PAUSE_SECONDS), signal);
        }
    }
}

/** Until when the service asks to wait, if it does: in milliseconds since 1970. */
const endOf = (problem) =>
    problem.status === 429 ? Date.now() + Math.min(problem.retryAfter ?? 2, LONGEST_PAUSE_SECONDS) * 1000 : null;

function Nothing({ statuses }) {
    if (statuses) {
        return html`<div class="card narrow"><h2>No image has this status</h2>
            <p>What changes its status appears here by itself. <a href="#/browse">Show all images</a>.</p></div>`;
    }
    return html`<div class="card narrow"><h2>There are no images yet</h2>
        <p><a href="#/">Upload a photo</a>, and it appears here within seconds. Programs send theirs with one request:
        <a href="#/api?call=postImage">POST /images</a>.</p></div>`;
}
