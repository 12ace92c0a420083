// Images: the newest that match, and the life of one of them as a waterfall.
import { html, useState } from "../../vendor/preact.js";
import { count } from "../../core.js";
import { Status, statusWord } from "../../parts.js";
import { Act, REPLAY_ONE } from "./acting.js";
import { addressOf, Awaited, Freshness, moment, useReading, utc, when } from "./reading.js";
import { Flag, ImageLink, numeric, oneLine, Table } from "./table.js";
import { Waterfall } from "./waterfall.js";

const UNFINISHED = ["awaiting_upload", "fetching", "scheduled", "pending", "processing"];
const STATUSES = [...UNFINISHED, "done", "failed", "cancelled", "expired"];
const ID = /^[0-9a-z]{26}$/;
const PLAIN = { tenant: "Tenant", cause: "Cause" };
const SINCE = [["", "the last day"], ["1h", "the last hour"], ["7d", "the last 7 days"], ["30d", "the last 30 days"]];
const REDO = "Its variants can be fetched until others have replaced them.";
const LIMITS = ["50", "200", "1000"];

export default function Images({ argument, query }) {
    return argument ? html`<${One} key=${argument} id=${argument} />` : html`<${All} key=${String(query)}
        query=${query} />`;
}

function All({ query }) {
    const filters = {
        status: query.getAll("status"),
        tenant: query.get("tenant") ?? "",
        cause: query.get("cause") ?? "",
        since: query.get("since") ?? "",
        late: query.get("late") ?? "",
        limit: query.get("limit") ?? LIMITS[0],
    };
    const reading = useReading(addressOf("images", filters));
    const images = reading.document?.images ?? null;
    const done = images?.filter((image) => image.status === "done").map((image) => image.id) ?? [];
    return html`<div><h1>Images</h1>
        <${ById} />
        <${Filters} filters=${filters} />
        <${Freshness} reading=${reading} />
        <${Awaited} reading=${reading} />
        ${images?.length === 0 && html`<p>No such image.</p>`}
        ${images?.length > 0 && html`<${List} images=${images} isLate=${filters.late === "true"}
            isAll=${reading.document.complete} />`}
        ${done.length > 0 && html`<p class="row"><${Act} action="redo" body=${{ images: done }}
            label=${`Redo the ${count(done.length, "done image")}`}
            title="Develop these images again?" yes="Redo" onDone=${reading.again}
            what=${`Each image gets a new run, ten per second. ${REDO} This is for variants that a fault has spoilt.`} /></p>`}
    </div>`;
}

function ById() {
    const [text, setText] = useState("");
    const [isWrong, setWrong] = useState(false);
    const open = (event) => {
        event.preventDefault();
        const id = text.trim();
        setWrong(!ID.test(id));
        if (ID.test(id)) location.hash = `#/operate/images/${id}`;
    };
    return html`<form class="inputs" role="search" onSubmit=${open}>
        <span class="long"><label for="image-id">Image id</label>
            <input id="image-id" type="text" class="mono" autocomplete="off" spellcheck="false" value=${text}
                aria-invalid=${String(isWrong)} aria-describedby="image-id-note"
                onInput=${(event) => setText(event.target.value)} /></span>
        <button type="submit" class="main">Open</button>
        <span id="image-id-note" class="is-bad"
            role="status">${isWrong ? "An id has 26 digits and lower-case letters." : ""}</span>
    </form>`;
}

function Filters({ filters }) {
    const [words, setWords] = useState(filters);
    const change = (name) => (event) => setWords({ ...words, [name]: event.target.value.trim() });
    const tick = (status) => (event) =>
        setWords({
            ...words,
            status: event.target.checked ? [...words.status, status] : words.status.filter((chosen) => chosen !== status),
        });
    const apply = (event) => {
        event.preventDefault();
        location.hash = `#/operate/${addressOf("images", words)}`;
    };
    return html`<form class="card filters" onSubmit=${apply} aria-label="Filter the images">
        <fieldset class="checks"><legend>Status</legend>
            ${STATUSES.map((status) => html`<label key=${status}><input type="checkbox"
                checked=${words.status.includes(status)}
                onChange=${tick(status)} /> ${statusWord(status)}</label>`)}</fieldset>
        <div class="inputs">
            ${Object.entries(PLAIN).map(([name, label]) => html`<span key=${name}><label
                for=${`images-${name}`}>${label}</label>
                <input id=${`images-${name}`} type="text" autocomplete="off" value=${words[name]}
                    onInput=${change(name)} /></span>`)}
            <span><label for="images-since">Accepted in</label>
                <select id="images-since" value=${words.since} onChange=${change("since")}>
                    ${SINCE.map(([value, label]) => html`<option key=${value}
                        value=${value}>${label}</option>`)}</select></span>
            <span><label for="images-limit">At most</label>
                <select id="images-limit" value=${words.limit} onChange=${change("limit")}>
                    ${LIMITS.map((limit) => html`<option key=${limit}
                        value=${limit}>${limit}</option>`)}</select></span>
            <label class="check"><input type="checkbox" checked=${words.late === "true"}
                onChange=${(event) => setWords({ ...words, late: event.target.checked ? "true" : "" })} />${" only late ones"}
                </label>
            <button type="submit">Show</button>
            <a class="button" href="#/operate/images">Reset</a>
        </div>
    </form>`;
}

function List({ images, isLate, isAll }) {
    const order = isLate ? "the longest waiting first" : "the newest first";
    return html`<div><${Table}
        caption=${`${count(images.length, "image")}, ${order}${isAll ? "" : "; there are more"}`}
        keys=${images.map((image) => image.id)}
        heads=${["image", "status", "tenant", "lane", numeric("run"), numeric("attempt"),
            isLate ? "waits since" : "accepted", "why"]}
        rows=${images.map((image) => [
            html`<${ImageLink} id=${image.id} />`,
            html`<${Status} status=${image.status} />`,
            image.tenant,
            image.lane,
            image.run,
            image.attempt,
            html`<span class="nowrap" title=${utc(image.created_at)}>
                ${when((isLate && image.waiting_since) || image.created_at)}</span>`,
            whyOf(image),
        ])} /></div>`;
}

function whyOf({ error, cause, status }) {
    if (status === "done") return "";
    if (error) return `${error.code}: ${oneLine(error.message)}`;
    return cause ? `${cause.type}: ${oneLine(cause.message)}` : "";
}

// ── One image.

function One({ id }) {
    const reading = useReading(`trace/${encodeURIComponent(id)}`);
    const trace = reading.document;
    return html`<div><p><a href="#/operate/images">All images</a></p>
        <h1>Image <span class="mono">${id}</span></h1>
        <${Freshness} reading=${reading} />
        <${Awaited} reading=${reading} />
        ${trace !== null && html`<${Life} trace=${trace} onDone=${reading.again} />`}
    </div>`;
}

function Life({ trace, onDone }) {
    const { image_id: id, status } = trace;
    const hasFailed = trace.steps.some((step) => step.level !== "info");
    return html`<div>
        <section class="card" aria-label="About the image">
            <p class="row"><${Status} status=${status} /> ${trace.deleted && html`<${Flag} kind="warn">deleted<//>`}
                <span>lane ${trace.lane}</span> <span>tenant <a
                    href=${`#/operate/tenants/${encodeURIComponent(trace.tenant_id)}`}>${trace.tenant_id}</a></span></p>
            <dl class="facts">
                <dt>Accepted</dt><dd>${moment(trace.accepted_at)}</dd>
                ${trace.ended_at && html`<dt>Ended</dt><dd>${moment(trace.ended_at)}</dd>`}
                ${trace.requests.length > 0 && html`<dt>Requests</dt><dd
                    class="mono">${trace.requests.join(", ")}</dd>`}
            </dl>
            <p class="row actions">
                ${status === "failed" && html`<${Act} action="replay" body=${{ images: [id] }} label="Replay"
                    isSmall=${false} isMain=${true}
                    title="Replay this image?" yes="Replay" onDone=${onDone}
                    what=${REPLAY_ONE} />`}
                ${status === "done" && !trace.deleted && html`<${Act} action="redo" body=${{ images: [id] }}
                    label="Redo" isSmall=${false}
                    title="Develop this image again?" yes="Redo" onDone=${onDone}
                    what=${`The image gets a new run. ${REDO}`} />`}
                ${hasFailed && html`<a class="button"
                    href=${`#/operate/failures/${id}`}>Its attempts and their stacks</a>`}
            </p>
        </section>
        <section class="card" aria-labelledby="life">
            <h2 id="life">Its life</h2>
            <${Waterfall} trace=${trace} />
        </section>
    </div>`;
}
