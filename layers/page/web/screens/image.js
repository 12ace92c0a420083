// Shows one image: what became of it, its variants side by side, and what can be done with it.
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { bytes, count, credential, duration, local, nameOf, pictureOf, relative, sentence } from "../core.js";
import { announce, Confirm, Copy, Picture, Status, statusWord, Trouble } from "../parts.js";
import { call, poll } from "../requests.js";
import { forgetImage } from "./browse/list.js";
import { failedAttempts, fileStem, moment, mostAttempts, titleOf } from "./browse/words.js";
import { remedyOf, toldOf } from "./upload/reasons.js";

const FRESH_SECONDS = 12 * 60; // the variants' addresses are valid for 15 minutes
const DAY = 86_400_000;
const FARTHEST_DAYS = 364;
const FORMATS = { jpeg: "JPEG", png: "PNG", webp: "WebP", avif: "AVIF", gif: "GIF" };
const begunHere = new Set(); // the ids of scheduled images that this page has begun at once
const ENDS = { jpeg: "jpg", png: "png", webp: "webp", avif: "avif", gif: "gif" };

/** The screen of the image whose id is `argument`. */
export default function Image({ argument: id, query }) {
    const [acting, setActing] = useState(null); // what is being done: "delete", "move" or "begin"
    const [outcome, setOutcome] = useState(null); // what an action has done
    const [isDeleted, setDeleted] = useState(false);
    useEffect(() => {
        document.title = `${titleOf(id)} · Darkroom`;
    }, [id]);
    const { image, error, stale, renew, take } = useImage(id, isDeleted);
    const tell = (text) => {
        setOutcome(text);
        announce(text);
    };
    const leave = () => {
        setDeleted(true);
        announce(`${titleOf(id)} was deleted.`);
        document.getElementById("content").focus();
    };

    const back = html`<p><a href="#/browse">← All images</a></p>`;
    if (isDeleted) return html`${back}<${Deleted} id=${id} />`;
    if (error?.status === 404 && acting !== "delete") return html`${back}<${Unknown} id=${id} />`;
    if (error && !image) return html`${back}<${Trouble} error=${error} again=${renew} />`;
    if (!image) {
        return html`${back}<p class="starting" role="status">${stale ? sentence(stale.message) : "Loading…"}</p>`;
    }
    return html`${back}
        <div class="image-head">
            <h1>${titleOf(id)}</h1> <${Status} status=${image.status} />
            <span class="quiet">${relative(image.created_at)}</span>
        </div>
        ${error && error.status !== 404 && html`<${Trouble} error=${error} again=${renew} />`}
        ${stale && html`<p class="quiet" role="status">This may be out of date. ${stale.message}</p>`}
        <${Failure} image=${image} />
        ${image.notices.length > 0 &&
        html`<div class="note"><ul class="plain">
            ${image.notices.map((notice) => html`<li>${sentence(notice)}</li>`)}
        </ul></div>`}
        <${Variants} image=${image} renew=${renew} />
        <div class="image-columns">
            <section class="card" aria-labelledby="stages"><h2 id="stages">What happened</h2>
                <${Stages} image=${image} /></section>
            <section class="card" aria-labelledby="facts"><h2 id="facts">Facts</h2><${Facts} image=${image} /></section>
        </div>
        ${image.status === "scheduled"
            ? html`<${Reschedule} isAsked=${query.has("reschedule")}
                  image=${image} acting=${acting} setActing=${setActing} outcome=${outcome} tell=${tell}
                  onChange=${(document) => {
                      take(document);
                      renew();
                  }} />`
            : outcome && html`<p class="good">${outcome}</p>`}
        <${Delete} image=${image} acting=${acting} setActing=${setActing} onDeleted=${leave} />`;
}

/**
 * The image as it is now, looked at again and again until it is deleted. `renew` looks at once, and `take` shows what
 * an action has answered.
 */
function useImage(id, isDeleted) {
    const [image, setImage] = useState(null);
    const [error, setError] = useState(null); // why it cannot be shown
    const [stale, setStale] = useState(null); // why it may be out of date
    const [round, again] = useState(0);
    const etag = useRef(null);
    const take = (document) => {
        etag.current = null;
        // What only one kind of document has stays.
        setImage((before) => ({ source: before?.source, ...document }));
    };
    useEffect(() => {
        if (isDeleted) return undefined;
        const control = new AbortController();
        const { signal } = control;
        let status = null;
        let readAt = 0;
        const look = async () => {
            const isOld = Date.now() - readAt > FRESH_SECONDS * 1000; // the same state, with new addresses
            const answer = await call("GET", `/images/${id}`, { etag: isOld ? null : etag.current, signal });
            if (answer.document) {
                readAt = Date.now();
                setImage(answer.document);
                const after = answer.document.status;
                if (status !== null && status !== after) announce(`The image is ${statusWord(after)}.`);
                status = after;
            }
            etag.current = answer.etag;
            return answer.retryAfter ?? FRESH_SECONDS;
        };
        setError(null);
        poll(look, { signal, trouble: setStale }).catch((problem) => {
            if (!signal.aborted) setError(problem);
        });
        return () => control.abort();
    }, [id, round, isDeleted]);
    return { image, error, stale, renew: () => again(round + 1), take };
}

const Deleted = ({ id }) => html`<div class="card narrow"><h1>${titleOf(id)} was deleted</h1>
    <p>Its original and its variants are gone within minutes.</p>
    <p class="row"><a class="button main" href="#/browse">Back to all images</a>
        <a class="button" href="#/">Upload another photo</a></p></div>`;

const Unknown = ({ id }) => html`<div class="card narrow"><h1>There is no such image</h1>
    <p>It was deleted, or it belongs to somebody else.</p>
    <p>No image of yours has the id <code>${id}</code>.</p></div>`;

// ── Failure: why an image failed, and what its owner can do.

function Failure({ image }) {
    if (!image.error) return null;
    const { code, message, retryable } = image.error;
    return html`<div class="trouble">
        <p><strong>${toldOf(code, message)}</strong> ${remedyOf(code, retryable).advice}</p>
        <p class="quiet">Code <code>${code}</code></p>
        <a class="button small" href="#/">Upload another file</a>
    </div>`;
}

// ── Stages: what happened to an image, and what comes next.

function Stages({ image }) {
    const { status } = image;
    const isOver = ["done", "failed", "expired", "cancelled"].includes(status);
    const isDone = status === "done";
    const isFetching = status === "fetching";
    const hasBegun = image.attempt > 0 && !isFetching;
    const failed = sentence(failedAttempts(image));
    const stages = [
        { name: status === "awaiting_upload" ? "Announced" : "Accepted", at: image.created_at, is: "past" },
        status === "awaiting_upload" && { name: "Awaiting upload", said: "Its file has not arrived yet.", is: "now" },
        isFetching && { name: "Fetching", said: failed || "From the address that it was asked for with.", is: "now" },
        image.process_at && {
            name: !hasBegun && status !== "pending" ? "Scheduled"
                : begunHere.has(image.id) ? "Begun on request" : "Begun",
            at: image.process_at,
            said: image.expires_at ? `It expires if no worker has begun by ${local(image.expires_at)}.` : null,
            is: status === "scheduled" ? "now" : status === "awaiting_upload" || isFetching ? "ahead" : "past",
        },
        status === "pending" && { name: "Pending", said: [failed, waited(image)].filter(Boolean).join(" "), is: "now" },
        (hasBegun || !isOver) && {
            name: "Processing",
            said: hasBegun && status !== "pending" && `Attempt ${image.attempt} of ${mostAttempts(status)}${image.run > 1 ? `, in run ${image.run}` : ""}.`,
            is: status === "processing" ? "now" : isOver ? "past" : "ahead",
        },
        isOver
            ? { name: OUTCOMES[status], at: image.completed_at, said: took(image), is: isDone ? "past" : "bad" }
            : { name: "Done", is: "ahead" },
    ].filter(Boolean);
    return html`<ol class="stages">${stages.map((stage) => html`<li class=${`stage-${stage.is}`}
        aria-current=${stage.is === "now" ? "step" : undefined}>
        <strong>${stage.name}</strong>
        ${stage.at && html` <time datetime=${stage.at}
            class="quiet">${local(stage.at)}${stage.is === "now" && `, ${relative(stage.at)}`}</time>`}
        ${stage.said && html`<span class="quiet">${stage.said}</span>`}
    </li>`)}</ol>`;
}

const OUTCOMES = { done: "Done", failed: "Failed", expired: "Expired", cancelled: "Cancelled" };

function waited(image) {
    const seconds = image.estimated_seconds ?? null;
    if (seconds === null) return "For a free worker.";
    return `For a free worker; done in about ${duration(Math.max(1, seconds))}.`;
}

function took(image) {
    if (image.status !== "done" || !image.completed_at) return null;
    const begun = image.process_at ?? image.created_at;
    const milliseconds = Date.parse(image.completed_at) - Date.parse(begun);
    if (!(milliseconds >= 0) || image.run > 1) return null;
    return milliseconds < 10_000 ? `After ${(milliseconds / 1000).toFixed(1)} s.`
        : `After ${duration(milliseconds / 1000)}.`;
}

// ── Facts: the image's settings and its original.

function Facts({ image }) {
    const { source, progress } = image;
    const variants = progress?.total ? ` with ${count(progress.total, "variant")}` : "";
    return html`<dl class="facts">
        <dt>File</dt><dd>${nameOf(image.id) ?? "not known here"}
            <span class="quiet">${" "}(names are known only in the browser that sent them)</span></dd>
        <dt>Id</dt><dd><${Copy} text=${image.id} label="the id" /></dd>
        <dt>Made by</dt><dd>${image.preset ? `the preset ${image.preset}` : `your own recipe${variants}`}</dd>
        ${image.reference && html`<dt>Reference</dt><dd><${Copy} text=${image.reference} label="the reference" /></dd>`}
        ${image.tags?.length > 0 && html`<dt>Tags</dt><dd>${image.tags.join(", ")}</dd>`}
        ${image.attention && html`<dt>Attention</dt><dd>${placeOf(image.attention)}</dd>`}
        ${source && html`
            <dt>Original</dt><dd>${source.media_type}, ${bytes(source.bytes)}</dd>
            <dt>SHA-256</dt><dd><${Copy} text=${source.sha256} label="the SHA-256" /></dd>`}
    </dl>`;
}

/** Where a point is, for people. */
const placeOf = ({ x, y }) => `${Math.round(x * 100)}% from the left, ${Math.round(y * 100)}% from the top`;

// ── Variants: the pictures that were made, side by side.

function Variants({ image, renew }) {
    if (image.variants.length === 0) {
        const own = pictureOf(image.id); // of the file that this tab has sent
        return image.placeholder || own
            ? html`<div class="variants"><div class="variant-picture">
                  <${Picture} placeholder=${image.placeholder} url=${own} alt=${own ? "The file that you sent" : ""} />
              </div></div>`
            : null;
    }
    const sum = image.variants.reduce((total, variant) => total + variant.bytes, 0);
    return html`<section aria-labelledby="variants">
        <h2 id="variants">Variants</h2>
        <p class="quiet">${bytes(sum)} together. To send a picture to somebody, download it.</p>
        <div class="variants">${image.variants.map((variant) => html`<${Variant}
            key=${`${variant.name} ${variant.sha256}`}
            image=${image} variant=${variant} renew=${renew} />`)}</div>
    </section>`;
}

function Variant({ image, variant, renew }) {
    const [shown, setShown] = useState(variant.url); // a newer address of the same picture would only load it again
    const [isBroken, setBroken] = useState(false);
    const renewed = useRef(null);
    useEffect(() => {
        if (isBroken && variant.url !== shown) {
            setShown(variant.url);
            setBroken(false);
        }
    }, [variant.url, isBroken]);
    const broke = () => {
        setBroken(true);
        if (renewed.current === null) renew();
        renewed.current = true; // once: what fails with a new address too is not there
    };
    const { original, smaller } = comparison(image, variant);
    const name = `${variant.name.split(".")[0]}.${ENDS[variant.format] ?? "img"}`;
    const format = FORMATS[variant.format] ?? variant.format;
    return html`<article class="variant card" aria-label=${`Variant ${variant.name}`}>
        <div class="variant-picture"><span style=${{ maxWidth: `${variant.width}px`,
            maxHeight: `${variant.height}px` }}>
            <${Picture} placeholder=${image.placeholder} url=${isHttp(shown) ? shown : null}
                alt=${`Variant ${variant.name}`} onError=${broke} />
        </span></div>
        <h3>${variant.name}</h3>
        <p class="variant-facts">${variant.width} × ${variant.height} · ${format} · ${bytes(variant.bytes)}
            ${original && html`<br /><span class="quiet">${smaller}</span>`}</p>
        ${isBroken && renewed.current && html`<p class="quiet" role="status">The picture could not be loaded.</p>`}
        <div class="row">
            ${isHttp(variant.url) && html`<${Download} variant=${variant} name=${`${fileStem(image.id)}-${name}`} />
            <a class="button small" href=${variant.url} target="_blank" rel="noreferrer">Open</a>`}
        </div>
        <dl class="variant-lines">
            <dt>Address</dt><dd><${Copy} text=${variant.url} label=${`the address of ${variant.name}`} />
                <span class="quiet variant-validity">works for 15 minutes</span></dd>
        </dl>
        <details><summary>For developers</summary>
            <dl class="variant-lines"><dt>curl</dt><dd><${Copy} text=${curl(image, variant, name)}
                label=${`the curl line of ${variant.name}`} />
                ${credential() !== null &&
                html`<span class="quiet">with your key: export DARKROOM_API_KEY=dr_…</span>`}
            </dd></dl>
        </details>
    </article>`;
}

function comparison(image, variant) {
    const original = image.source?.bytes;
    if (!original) return { original: null, smaller: "" };
    const part = variant.bytes / original;
    if (part > 1) {
        const times = part < 10 ? part.toFixed(1) : Math.round(part);
        return { original, smaller: `${times} times as large as the original` };
    }
    const percent = 100 * (1 - part);
    const text = percent >= 99.95 ? "more than 99.9" : percent > 99 ? percent.toFixed(1) : Math.round(percent);
    return { original, smaller: `${text}% smaller than the original` };
}

/** Whether a link may lead there. */
const isHttp = (url) => /^https?:\/\//i.test(url ?? "");

/** The line that downloads a variant whenever it is typed: the API redirects to an address that is valid then. */
function curl(image, variant, name) {
    // What the shell itself writes is in no process's arguments, which every user of the machine can read.
    const key = credential() === null ? ["", ""] : ['echo "Authorization: Bearer $DARKROOM_API_KEY" | ', " -H @-"];
    return `${key[0]}curl -sS -f -L -o ${name}${key[1]} ${location.origin}/images/${image.id}/variants/${variant.name}`;
}

function Download({ variant, name }) {
    const [state, setState] = useState(null);
    const download = async () => {
        setState("busy");
        try {
            // The picture that is shown was asked for without an Origin, and S3 allows none in an answer to that: its
            // copy in the browser's cache is of no use here.
            const response = await fetch(variant.url, {
                cache: "no-store",
                credentials: "omit",
                referrerPolicy: "no-referrer",
            });
            if (!response.ok) throw new Error(String(response.status));
            const url = URL.createObjectURL(await response.blob());
            const link = document.createElement("a");
            Object.assign(link, { href: url, download: name });
            link.click();
            setTimeout(() => URL.revokeObjectURL(url), 60_000);
            setState(null);
        } catch {
            setState("failed");
        }
    };
    return html`<button type="button" class="small" onClick=${download} disabled=${state === "busy"}
        aria-label=${`Download ${variant.name}`}>
            ${state === "busy" ? "Downloading…" : "Download"}</button>
        ${state === "failed" &&
        html`<span class="quiet" role="status">That did not work. Open it and save it from there, or reload this page.
            </span>`}`;
}

// ── Reschedule: gives a scheduled image another time.

/** What an input of the kind datetime-local says, of an instant, in the reader's time zone. */
function written(instant) {
    const time = new Date(instant);
    return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/**
 * @param {{image: Json, isAsked: boolean, acting: any, setActing: (acting: any) => void, outcome: any,
 *          tell: (outcome: any) => void, onChange: (image: Json) => void}} properties  `isAsked` if the reader came here to change
 *        the time
 */
function Reschedule({ image, isAsked, acting, setActing, outcome, tell, onChange }) {
    const time = useRef(null);
    useEffect(() => {
        if (isAsked) time.current.focus(); // which brings it into view
    }, []);
    const [edited, setEdited] = useState(null); // what the reader has entered; null until then
    const [error, setError] = useState(null);
    const change = async (action, json) => {
        setActing(action);
        setError(null);
        tell("");
        try {
            const { document } = await call("PATCH", `/images/${image.id}`, { json });
            const isMoved = document.status === "scheduled";
            if (!isMoved) begunHere.add(image.id);
            setEdited(null);
            tell(isMoved ? `Moved to ${moment(document.process_at)}.` : "Begun.");
            onChange(document);
        } catch (problem) {
            setError(problem);
            if (problem.status === 409) onChange(image); // it has begun: look again
        }
        setActing(null);
    };
    const when = edited ?? written(image.process_at);
    const submit = (event) => {
        event.preventDefault();
        const time = new Date(when);
        if (Number.isNaN(time.getTime())) return setError(new Error("Give a day and a time."));
        return change("move", { process_at: time.toISOString() });
    };
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    const isBusy = acting !== null;
    return html`<form class="card reschedule" onSubmit=${submit}>
        <h2>Reschedule</h2>
        <p class="quiet">It begins ${local(image.process_at)}, ${relative(image.process_at)}.</p>
        <p class="quiet">Times are those of ${zone}.</p>
        ${error && html`<${Trouble} error=${error} />`}
        <div class="row">
            <label for="process-at">New time</label>
            <input ref=${time} id="process-at" type="datetime-local" required value=${when} min=${written(Date.now())}
                max=${written(Date.now() + FARTHEST_DAYS * DAY)} disabled=${isBusy}
                onInput=${(event) => setEdited(event.target.value)} />
            <button type="submit" disabled=${isBusy}>${acting === "move" ? "Moving…" : "Reschedule"}</button>
            <button type="button" disabled=${isBusy} onClick=${() => change("begin", { delay: "PT0S" })}>
                ${acting === "begin" ? "Beginning…" : "Begin now"}</button>
        </div>
        ${outcome && html`<p class="good">${outcome}</p>`}
    </form>`;
}

// ── Delete

function Delete({ image, acting, setActing, onDeleted }) {
    const [isAsking, ask] = useState(false);
    const [error, setError] = useState(null);
    const remove = async () => {
        ask(false);
        setActing("delete");
        setError(null);
        try {
            await call("DELETE", `/images/${image.id}`);
            forgetImage(image.id);
            onDeleted();
        } catch (problem) {
            setError(problem);
        }
        setActing(null);
    };
    const isOver = image.completed_at !== null;
    const name = nameOf(image.id);
    return html`<div class="image-end">
        ${error && html`<${Trouble} error=${error} />`}
        <button type="button" class="grave" disabled=${acting !== null} onClick=${() => ask(true)}>
            ${acting === "delete" ? "Deleting…" : "Delete image…"}</button>
        ${isAsking && html`<${Confirm} title=${name ? `Delete ${name}?` : "Delete this image?"} yes="Delete"
            onYes=${remove} onNo=${() => ask(false)}>
            <p><strong>This cannot be undone.</strong> ${isOver ? "" : "The image is not processed any further. "}The
            original and all its variants are gone within minutes, and addresses that you gave to others stop
            working.</p>
        <//>`}
    </div>`;
}
