// One file in the list: its picture, its stages as they happen, and what can be done about it.
import { html, Component, useState } from "../../vendor/preact.js";
import { bytes, count, duration, relative, sentence } from "../../core.js";
import { Countdown, Picture, statusWord } from "../../parts.js";
import { failedAttempts, mostAttempts } from "../browse/words.js";
import { isCropped, isFoundLater, withFocal } from "./order.js";
import { place } from "./placement.js";
import { again, cancel, hasEnded, isUnsent, remove, retry, wasDeleted, watchList } from "./queue.js";
import { remedyOf, toldOf } from "./reasons.js";
import { turnedSize, turnedStyle, turnedVariant } from "./turn.js";
import { refresh, thumbOf } from "./watch.js";

/** A row that renders again only when its own file has changed, or the settings while it is not sent. */
export class Card extends Component {
    componentDidMount() {
        this.end = watchList((changed) => {
            const { item } = this.props;
            if (changed.has(item) || changed.has(item.twin)) this.forceUpdate();
        });
    }
    componentWillUnmount() {
        this.end();
    }
    shouldComponentUpdate({ item, variants, edits }) {
        const isOther = variants !== this.props.variants || edits !== this.props.edits;
        return item !== this.props.item || (item.stage === "ready" && isOther);
    }
    render({ item, variants, edits, onAdjust }) {
        const { words, step, state } = stageOf(item);
        const link = addressOf(item);
        return html`<li class=${`upload-card is-${state}`} id=${`file-${item.id}`} tabindex="-1">
            <${Shown} item=${item} variants=${variants} edits=${edits} onAdjust=${onAdjust} />
            <div class="upload-text">
                <p class="upload-name" title=${item.name}>
                    ${link ? html`<a href=${link}>${item.name}</a>` : html`<span>${item.name}</span>`}
                    <span class="quiet">${item.url === null ? bytes(item.file.size) : "a link"}</span>
                </p>
                <ol class="upload-steps" aria-hidden="true">
                    ${STEPS.map((_, at) => html`<li class=${classOfStep(at, step)}></li>`)}
                </ol>
                <p class="upload-stage">${words}</p>
                <${Reason} item=${item} />
            </div>
            <${Buttons} item=${item} variants=${variants} onAdjust=${onAdjust} />
        </li>`;
    }
}

/** The address of the image's screen; null while there is no image. */
function addressOf(item) {
    const { stage, isDeleted, image } = item.twin ?? item;
    return stage === "accepted" && !isDeleted ? `#/images/${image.id}` : null;
}

// ── The stages in words.

const STEPS = ["hash", "send", "wait", "process", "done"];

const classOfStep = (at, step) => (at < step ? "is-past" : at === step ? "is-now" : "");

/** @returns {{words: any, step: number, state: string, clause?: any}}  `step` is how many steps are past */
function stageOf(item) {
    if (item.stage === "ready") {
        return { words: item.sha256 ? "Ready to upload" : "Ready to upload, reading…", step: -1, state: "ready" };
    }
    if (item.stage === "queued") return { words: "In line to be sent", step: 0, state: "held" };
    if (item.stage === "hashing") return { words: "Calculating its hash", step: 0, state: "busy" };
    if (item.stage === "sending") {
        const share = item.progress === null ? null : Math.floor(item.progress * 100);
        const isSent = share >= 100;
        return {
            words: [
                share === null ? "Sending" : isSent ? "Sent, waiting for the answer" : `Sending, ${share}%`,
                html`<progress max="100" value=${share ?? undefined} class=${isSent ? "is-held" : ""}
                    aria-label=${`Sending ${item.name}`}></progress>`,
            ],
            step: 1,
            state: isSent ? "held" : "busy",
        };
    }
    if (item.stage === "waiting") {
        const { until, reason } = item.pause;
        const when = until === null ? "." : html`. Trying again in <${Countdown} until=${until} />.`;
        return { words: html`<span>${reason}${when}</span>`, step: 1, state: "troubled" };
    }
    if (item.stage === "cancelled") {
        return { words: "Cancelled. If it had arrived already, it is under Browse.", step: -1, state: "ended" };
    }
    if (item.stage === "twin") {
        const { clause, step, state } = stageOf(item.twin);
        return { words: [`The same photo as ${item.twin.name}: `, clause ?? "it is in this list too"], step, state };
    }
    if (wasDeleted(item)) return { words: "Not uploaded: it was deleted before", step: -1, state: "ended" };
    if (item.stage === "refused") return { words: "Not uploaded", step: -1, state: "failed" };
    const stage = stageOfImage(item);
    return item.wasHere ? { ...stage, words: ["You uploaded this photo before: ", stage.clause] } : stage;
}

/** `clause` says the same as `words` within a sentence. */
function stageOfImage({ image, isDeleted }) {
    if (isDeleted) return { words: "The image was deleted", clause: "it was deleted", step: -1, state: "ended" };
    const attempt = image.attempt > 1 ? `, attempt ${image.attempt} of ${mostAttempts(image.status)}` : "";
    const attempts = failedAttempts(image);
    const failed = attempts && `: ${attempts}`;
    switch (image.status) {
        case "awaiting_upload":
            return {
                words: "Sent, the service is looking at it",
                clause: "the service is looking at it",
                step: 2,
                state: "held",
            };
        case "fetching": {
            const state = image.retry_at ? "troubled" : "busy";
            return { words: `Fetching${failed || " from its address"}`, clause: `it is fetching${failed}`, step: 2, state };
        }
        case "scheduled": {
            const when = `to be processed ${whenOf(image.process_at)}`;
            return { words: `Scheduled, ${when}`, clause: `it is scheduled, ${when}`, step: 2, state: "held" };
        }
        case "pending": {
            const estimate = image.estimated_seconds ?? null;
            const wait = estimate === null ? "" : `, about ${duration(Math.max(1, estimate))} to go`;
            const state = failed ? "troubled" : "held";
            return { words: `Pending${failed}${wait}`, clause: `it is pending${failed}${wait}`, step: 2, state };
        }
        case "processing":
            return { words: `Processing${attempt}`, clause: `it is processing${attempt}`, step: 3, state: "busy" };
        case "done": {
            const made = image.progress.total ? `, ${count(image.progress.total, "variant")}` : "";
            return { words: `Done${made}`, clause: "its results are ready", step: STEPS.length, state: "done" };
        }
        case "failed":
            return { words: "Failed", clause: "it failed", step: -1, state: "failed" };
        case "expired":
            return { words: "Expired", clause: "it expired", step: -1, state: "failed" };
        case "cancelled":
            return { words: "Cancelled", clause: "it was cancelled", step: -1, state: "ended" };
        default:
            return { words: sentence(statusWord(image.status)), clause: `it is ${statusWord(image.status)}`, step: 2, state: "held" };
    }
}

/** "Nov 26, 9:00 AM (in 1 day)" in the reader's own time zone and language; the year if it is another one. */
function whenOf(instant) {
    const time = new Date(instant);
    const isThisYear = time.getFullYear() === new Date().getFullYear();
    const written = time.toLocaleString(undefined, {
        year: isThisYear ? undefined : "numeric",
        month: "short",
        day: "numeric",
        hour: "numeric",
        minute: "2-digit",
    });
    return time.getTime() > Date.now() ? `${written} (${relative(instant)})` : written;
}

// ── Why it failed, and what to do.

function Reason({ item }) {
    const { message, code, advice } = reasonOf(item);
    const correlationId = item.error?.correlationId;
    const notices = item.stage === "accepted" && item.image.status === "done" ? item.image.notices : [];
    if (item.stage === "ready" && Object.hasOwn(DOUBTS, item.previewState)) {
        return html`<p class="upload-reason">${DOUBTS[item.previewState]}</p>`;
    }
    if (message === null) return notices.map((notice) => html`<p class="upload-reason quiet">${sentence(notice)}</p>`);
    return html`<div class="upload-reason">
        <p>${toldOf(code, message)} ${advice}</p>
        ${(item.error?.errors ?? []).map((problem) => html`<p><code>${problem.field}</code> ${sentence(problem.message)}</p>`)}
        <p class="quiet upload-code">For support: code <code>${code}</code>${
            correlationId && html`, correlation id <code>${correlationId}</code>`
        }</p>
    </div>`;
}

// What the browser makes of a file before it is sent.
const DOUBTS = {
    part: "This browser cannot read the whole file: it may be damaged.",
    none: "No preview: the file may be damaged, or of a kind that this browser cannot show.",
};

/** @returns {{message: string|null, code: string, advice: string, button: "retry"|"again"|null}} */
function reasonOf(item) {
    if (item.stage === "refused") {
        const code = item.error.code ?? item.error.name;
        const remedy = remedyOf(code);
        const fallback = item.error.status >= 500 || item.error.status === undefined ? "retry" : null;
        return { message: item.error.message, code, advice: remedy.advice, button: remedy.button ?? fallback };
    }
    if (item.stage === "accepted" && item.image.error) {
        const { code, message, retryable } = item.image.error;
        return { message, code, ...remedyOf(code, retryable) };
    }
    return { message: null, code: "", advice: "", button: null };
}

// ── What can be done.

function Buttons({ item, variants, onAdjust }) {
    const { button: remedy, message } = reasonOf(item);
    const leave = (event) => {
        const row = event.currentTarget.closest("li");
        const next = row.nextElementSibling ?? row.previousElementSibling ?? document.getElementById("choose-photos");
        remove([item]);
        next?.focus();
    };
    const isOver = item.stage === "accepted" && hasEnded(item) && message === null;
    const isOld = isOver && (item.isDeleted || item.wasHere || item.image.status === "cancelled");
    const canBeAgain = remedy === "again" || item.stage === "twin" || isOld;
    const canBeCropped = item.stage === "ready" && variants.some(isCropped);
    const canBeRetried = (item.stage === "refused" && remedy === "retry") || item.stage === "cancelled";
    const button = ({ word, act, rest = "" }) =>
        html`<button type="button" class="small" aria-label=${`${word} ${item.name}${rest}`} onClick=${act}>
            ${word.replace(" of", "")}${rest}</button>`;
    const address = addressOf(item);
    const status = address && (item.twin ?? item).image.status;
    const link = (word, kind, query = "") =>
        html`<a class=${`button small ${kind}`} href=${address + query} aria-label=${`${word} of ${item.name}`}>
            ${word}</a>`;
    return html`<div class="upload-buttons">
        ${status === "done" && link("See the results", "main")}
        ${status === "scheduled" && link("Change the time", "", "?reschedule")}
        ${canBeCropped && button({ word: "Adjust crop of", act: () => onAdjust(item) })}
        ${canBeRetried && button({ word: "Try again", act: () => retry(item) })}
        ${item.stage === "waiting" && item.hurry && button({ word: "Try now", act: () => item.hurry() })}
        ${canBeAgain && button({ word: "Upload again", act: () => again(item) })}
        ${
            isUnsent(item)
                ? button({ word: "Cancel", act: () => cancel(item) })
                : item.stage === "accepted" || item.stage === "twin"
                  ? button({ word: "Clear", act: leave, rest: " from this list" })
                  : button({ word: "Remove", act: leave })
        }
    </div>`;
}

// ── The picture: the reader's own until the image is done, with what its first crop keeps.

function Shown({ item, variants, edits, onAdjust }) {
    const [isTired, setTired] = useState(false);
    const image = addressOf(item) && (item.twin ?? item).image;
    const thumb = image?.status === "done" ? thumbOf(image) : null;
    if (thumb || (image?.status === "done" && image.placeholder)) {
        // An address is valid for a quarter of an hour; one more is asked for, not one after another.
        const renew = () => {
            if (isTired) return;
            setTired(true);
            refresh(item.twin ?? item).catch(() => setTired(false));
        };
        // Its place has the picture's shape from the first moment on, and the file's own shape while that is unknown.
        const { width, height } = thumb ?? item.preview ?? { width: 1, height: 1 };
        const shape = width < height ? "is-tall" : "is-wide";
        const address = `#/images/${image.id}`;
        return html`<a class=${`upload-picture ${shape}`} href=${address} tabindex="-1" aria-hidden="true">
            <${Picture} placeholder=${image.placeholder} url=${thumb?.url ?? null} width=${width} height=${height}
                alt="" onError=${renew} />
        </a>`;
    }
    if (!item.preview) {
        const ending = /\.(\w{1,5})$/.exec(item.name)?.[1]?.toUpperCase() ?? "FILE";
        return html`<div class="upload-picture"><span class="upload-ending" aria-hidden="true">${
            item.previewState === "waiting" ? "" : ending
        }</span></div>`;
    }
    // What was sent keeps its own settings; those of the form are for what is not sent yet.
    const cut = (item.choice?.variants ?? variants).find(isCropped);
    const turns = item.choice?.edits ?? edits;
    const style = turnedStyle(item.preview, turns);
    if (!cut && !style) {
        return html`<div class="upload-picture"><img src=${item.preview.url} alt="" decoding="async" /></div>`;
    }
    const size = turnedSize(item.preview, turns);
    const shown = cut && turnedVariant(withFocal([cut], item.focal)[0], turns);
    const framed = html`<span class="upload-frame" style=${frameOf(size, style !== null)}>
        <img src=${item.preview.url} alt="" decoding="async" style=${style ?? {}} />
        ${shown && !isFoundLater(shown) && html`<span class="upload-cut" style=${cutOf(shown, size)}></span>`}
    </span>`;
    if (!cut || item.stage !== "ready") return html`<div class="upload-picture">${framed}</div>`;
    return html`<button type="button" class="upload-picture" tabindex="-1" aria-hidden="true"
        onClick=${() => onAdjust(item)}>${framed}</button>`;
}

/** The shape of a frame; a turned image does not spread its frame, because it is out of the flow. */
const frameOf = ({ width, height }, isTurned) => ({
    aspectRatio: `${width} / ${height}`,
    ...(isTurned && (width < height ? { height: "100%" } : { width: "100%" })),
});

/** The part of the picture that the crop keeps, in percent of the picture. */
export function cutOf(variant, { width, height }) {
    const { scaled, size, left, top } = place(variant, width, height);
    const share = (part, total) => `${(part / total) * 100}%`;
    return {
        left: share(left, scaled[0]),
        top: share(top, scaled[1]),
        width: share(size[0], scaled[0]),
        height: share(size[1], scaled[1]),
    };
}
