// The files: how far all of them have come, the button that sends them, and a row for each.
import { html, useEffect, useMemo, useRef, useState } from "../../vendor/preact.js";
import { count, sentence } from "../../core.js";
import { announce, Confirm, Trouble } from "../../parts.js";
import { mayPass } from "../../requests.js";
import { Card } from "./card.js";
import { describeTime } from "./order.js";
import {
    cancel,
    hasEnded,
    hasFailed,
    isImage,
    isUnsent,
    items,
    remove,
    retry,
    send,
    wasDeleted,
    watchList,
} from "./queue.js";
import { hasten, trouble } from "./watch.js";

const ANNOUNCED_EVERY_MILLISECONDS = 5000;
const ROWS_A_FRAME = 24; // so that a folder of two hundred does not stop the page

/**
 * @param {{choice: Json, variants: Json[], edits: Json, problem: string|null, onSent: () => void}} properties
 *        the settings for what is ready, the variants and edits of its previews, what is wrong with the settings, and
 *        what follows when it is sent
 */
export default function List({ choice, variants, edits, problem, onSent }) {
    const [version, setVersion] = useState(0);
    const [adjusted, setAdjusted] = useState(null);
    useEffect(() => watchList(() => setVersion((before) => before + 1)), []);
    const rows = useRows(useMemo(() => newestFirst(items), [items]));
    const onAdjust = useMemo(() => (item) => setAdjusted(item), []);
    return html`
        <${Overview} version=${version} choice=${choice} problem=${problem} onSent=${onSent} />
        <${Rows} rows=${rows} variants=${variants} edits=${edits} onAdjust=${onAdjust} />
        ${
            adjusted &&
            html`<${Crop} item=${adjusted} variants=${variants} edits=${edits} onMove=${setAdjusted}
                onClose=${() => setAdjusted(null)} />`
        }
    `;
}

/** What was added last is where the reader looks; files that came together stay in their order. */
const newestFirst = (all) => all.toSorted((a, b) => b.batch - a.batch || a.id - b.id);

/** Loaded when the first crop is adjusted. */
function Crop(properties) {
    const [Dialog, setDialog] = useState(null);
    const [isMissing, setMissing] = useState(false);
    useEffect(() => {
        import("./crop.js").then(
            (module) => setDialog(() => module.default),
            () => setMissing(true),
        );
    }, []);
    if (isMissing) {
        return html`<${Confirm} title="The crop could not be loaded" yes="Reload the page" isGrave=${false}
            onYes=${() => location.reload()} onNo=${properties.onClose}>
            <p>The connection is down, or the stack was deployed again. Reload the page, and add again what is not sent
                yet; or upload the photos without adjusting their crops.</p>
        <//>`;
    }
    return Dialog && html`<${Dialog} ...${properties} />`;
}

/** The files whose rows are there already: a frame's worth more in each frame. */
function useRows(all) {
    const [limit, setLimit] = useState(ROWS_A_FRAME);
    useEffect(() => {
        if (limit >= all.length) return undefined;
        const frame = requestAnimationFrame(() => setLimit(limit + ROWS_A_FRAME));
        return () => cancelAnimationFrame(frame);
    }, [limit, all]);
    return useMemo(() => all.slice(0, limit), [all, limit]);
}

/** The rows; they are compared only when a file came or went, or the settings changed. */
function Rows({ rows, variants, edits, onAdjust }) {
    return useMemo(
        () => html`<ul class="upload-list" aria-label="Files">
            ${rows.map(
                (item) =>
                    html`<${Card} key=${item.id} item=${item} variants=${variants} edits=${edits} onAdjust=${onAdjust} />`,
            )}
        </ul>`,
        [rows, variants, edits, onAdjust],
    );
}

/** What can be done with all files of a kind. */
function Actions({ ready, failed, ended, problem, choice, onBegin }) {
    const unsent = items.filter(isUnsent);
    const cancelled = items.filter((item) => item.stage === "cancelled");
    const later = choice.when.kind === "now" ? "" : `To be processed ${describeTime(choice.when)}.`;
    const showFailed = () => {
        const row = document.getElementById(`file-${failed[0].id}`);
        row?.scrollIntoView({ block: "center" });
        row?.focus();
    };
    return html`<div class="upload-actions">
        ${
            ready.length > 0 &&
            html`<button type="button" class="main" disabled=${problem !== null} onClick=${onBegin}>
            ${choice.when.kind === "now" ? "Upload" : "Schedule"} ${count(ready.length, "photo")}</button>
            <span class="quiet">${problem ?? later}</span>`
        }
        ${
            failed.length > 0 &&
            items.length > 1 &&
            html`<button type="button" class="small" onClick=${showFailed}>Show the first that failed</button>`
        }
        ${
            cancelled.length > 1 &&
            html`<button type="button" class="small" onClick=${() => cancelled.forEach(retry)}>
            Try the cancelled again</button>`
        }
        ${
            unsent.length > 1 &&
            html`<button type="button" class="small" onClick=${() => unsent.forEach(cancel)}>
                Cancel all</button>`
        }
        ${
            ready.length > 1 &&
            html`<button type="button" class="small" onClick=${() => remove(ready)}>
            Remove all that are not sent</button>`
        }
        ${
            ended.length > 1 &&
            html`<button type="button" class="small" title="Takes them off this list; the images stay"
            onClick=${() => remove(ended)}>Clear finished from this list</button>`
        }
    </div>`;
}

function Overview({ choice, problem, onSent }) {
    const ready = items.filter((item) => item.stage === "ready");
    const isBegun = items.some((item) => item.choice !== null);
    const begun = isBegun ? items.filter((item) => item.stage !== "ready") : [];
    const unfit = isBegun ? [] : items.filter(hasFailed);
    const failed = newestFirst(items.filter(hasFailed));
    const ended = items.filter(hasEnded);
    const settled = ended.length + begun.filter(isScheduled).length; // nobody waits for what is scheduled
    const words = inWords(begun);
    useAnnouncement(words, begun.length > 0 && ended.length === begun.length);
    const section = useRef(null);
    const begin = () => {
        send(choice);
        onSent();
        section.current.focus(); // the button goes away
    };
    return html`<section class="upload-overview" aria-label="Progress" tabindex="-1" ref=${section}>
        ${
            trouble &&
            mayPass(trouble) &&
            html`<p class="note">${sentence(trouble.message)} The page goes on looking, and what was accepted is
            processed meanwhile.</p>`
        }
        ${trouble && !mayPass(trouble) && html`<${Trouble} error=${trouble} again=${hasten} />`}
        <div class="upload-bar">
            ${
                begun.length > 0 &&
                html`<p class="upload-summary"><strong>${words}</strong></p>
                <progress max=${begun.length} value=${settled} aria-label="Files that have ended, or are scheduled"
                    class=${settled < begun.length ? "" : failed.length === 0 ? "is-good" : "is-bad"}></progress>`
            }
            ${
                unfit.length > 0 &&
                html`<p class="upload-summary"><strong>${count(unfit.length, "file")} cannot be uploaded</strong></p>`
            }
            <${Actions} ready=${ready} failed=${failed} ended=${ended} problem=${problem} choice=${choice}
                onBegin=${begin} />
        </div>
    </section>`;
}

const isScheduled = (item) => isImage(item, "scheduled") && !hasEnded(item);

/** "12 of 50 done, 1 failed, 3 waiting for a connection" */
function inWords(begun) {
    if (begun.length === 0) return "";
    const parts = [`${begun.filter((item) => isImage(item, "done")).length} of ${begun.length} done`];
    const some = (number, word) => number > 0 && parts.push(`${number} ${word}`);
    some(begun.filter(hasFailed).length, "failed");
    some(begun.filter((item) => item.stage === "cancelled").length, "cancelled");
    some(begun.filter(wasDeleted).length, "deleted before");
    some(begun.filter(isScheduled).length, "scheduled");
    some(begun.filter((item) => item.stage === "waiting").length, "waiting to be sent again");
    return parts.join(", ");
}

/** Has the summary read aloud, but not each step of fifty files. */
function useAnnouncement(words, isEnd) {
    const state = useRef({ last: 0, said: "", timer: null, words });
    state.current.words = words;
    useEffect(() => {
        const now = state.current;
        if (words === "" || words === now.said) return;
        const say = () => {
            now.timer = null;
            if (now.words === now.said || now.words === "") return;
            now.last = Date.now();
            now.said = now.words;
            announce(now.words);
        };
        clearTimeout(now.timer);
        const wait = isEnd ? 0 : Math.max(0, now.last + ANNOUNCED_EVERY_MILLISECONDS - Date.now());
        now.timer = setTimeout(say, wait);
    }, [words, isEnd]);
    useEffect(() => () => clearTimeout(state.current.timer), []);
}
