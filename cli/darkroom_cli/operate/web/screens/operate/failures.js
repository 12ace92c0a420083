// What failed, grouped by its defect: what is still retried, and what was given up; and how to try it again.
import { html, useMemo, useState } from "../../vendor/preact.js";
import { count, duration } from "../../core.js";
import { Copy } from "../../parts.js";
import { Act, REPLAY_ONE } from "./acting.js";
import { addressOf, Awaited, Freshness, moment, since, useReading, utc } from "./reading.js";
import { ACTIONS, Flag, numeric, oneLine, Table } from "./table.js";

// What a verdict means for the reader, in the order of what needs somebody first.
const VERDICTS = {
    failed: { word: "given up", kind: "bad", means: "Its images stay failed until they are replayed, after the fix." },
    batch: { word: "batch", kind: "bad", means: "A release of scheduled images was given up. Wake it after the fix." },
    working: { word: "in progress", kind: "info", means: "Its images are in progress: these are not needed." },
    rejected: { word: "not ours", kind: "warn", means: "This stack did not send it, or not so. No image is affected." },
    unreadable: { word: "unreadable", kind: "warn", means: "It is not a Darkroom message, or a newer version's." },
    unreadable_row: { word: "newer row", kind: "warn", means: "Only the newer version that wrote its row can tell." },
    unknown: { word: "no image", kind: "warn", means: "There is no such image." },
    settled: { word: "settled", kind: "good", means: "Its images have ended otherwise: these can be dropped." },
};
const REPLAY = `Each image gets a new run with all its attempts, ten per second, and its dead letter is removed.
    If the cause is not fixed they fail again within ten minutes.`;
const STRAY = ["rejected", "unreadable", "unknown"];
const SHOWN = 20;
const MOST_IDS = 1000;

const FILTERS = [
    { name: "lane", label: "Lane or queue", hint: "slow" },
    { name: "tenant", label: "Tenant", hint: "acme" },
    { name: "cause", label: "Cause", hint: "KeyError" },
    { name: "older_than", label: "Older than", hint: "30m" },
    { name: "newer_than", label: "Newer than", hint: "2h" },
];

export default function Failures({ argument, query }) {
    return argument ? html`<${One} key=${argument} name=${argument} />` : html`<${All} query=${query} />`;
}

function All({ query }) {
    const filters = Object.fromEntries(FILTERS.map(({ name }) => [name, query.get(name)]));
    const reading = useReading(addressOf("failures", filters));
    const { document } = reading;
    const groups = useMemo(() => (document === null ? [] : groupsOf(document.cases)), [document]);
    const isFiltered = Object.values(filters).some(Boolean);
    return html`<div><h1>Failures</h1>
        <p class="quiet">An image that fails is tried again, up to five times; after that it has a dead letter and waits
            for you. Fix the cause first, then replay: the images go on as if nothing had happened.</p>
        <${Filters} filters=${filters} />
        <${Freshness} reading=${reading} />
        <${Awaited} reading=${reading} />
        ${document !== null && html`<${Retrying} defects=${document.retrying} isFiltered=${isFiltered} />`}
        ${document !== null &&
        html`<section aria-labelledby="given-up">
                <h2 id="given-up">Dead letters</h2>
                <p>${saidOf(document, isFiltered)}</p>
                <${Coming} document=${document} />
                ${document.incomplete.length > 0 &&
                html`<p class="is-warn">Not all of ${document.incomplete.join(", ")} was read: filter them.</p>`}
                ${groups.map((group) => html`<${Group} key=${group.key} group=${group} filters=${filters}
                    onDone=${reading.again} />`)}
            </section>`}</div>`;
}

function saidOf({ cases, dead_letters_read: read, queues }, isFiltered) {
    if (cases.length === 0) return isFiltered ? "None matches." : "There are none.";
    const full = Object.entries(queues).filter(([, depth]) => depth);
    const where = full.map(([queue, depth]) => `${queue} ${depth}`).join(", ");
    return `${count(read, "dead letter")} read (${where}), ${count(cases.length, "failure")}.`;
}

/** What was given up and has no dead letter: not yet, or never. */
function Coming({ document: { coming, unfetched } }) {
    const to = (id) => `#/operate/failures/${id}`;
    return html`<div>${coming.length > 0 &&
        html`<p class="is-bad">${count(coming.length, "image")} given up whose dead letter is coming:
            the sweeper places it within a minute.</p>
            <${Ids} ids=${coming.map((image) => image.image_id)} to=${to} />`}
        ${unfetched.length > 0 &&
        html`<p class="is-bad">${count(unfetched.length, "image")} not fetched because of a fault of ours. They get no
            dead letter: their clients send the URLs again.</p>
            <${Ids} ids=${unfetched.map((image) => image.image_id)} to=${(id) => `#/operate/images/${id}`} />`}</div>`;
}

function Filters({ filters }) {
    const [words, setWords] = useState(filters);
    const apply = (event) => {
        event.preventDefault();
        location.hash = `#/operate/${addressOf("failures", words)}`;
    };
    const isFiltered = Object.values(filters).some(Boolean);
    return html`<details class="filters" open=${isFiltered}>
        <summary>Filter</summary>
        <form class="inputs" onSubmit=${apply}>
            ${FILTERS.map(({ name, label, hint }) => html`<span key=${name}><label
                for=${`filter-${name}`}>${label}</label>
                <input id=${`filter-${name}`} type="text" placeholder=${hint} value=${words[name] ?? ""}
                    autocomplete="off"
                    onInput=${(event) => setWords({ ...words, [name]: event.target.value.trim() })} /></span>`)}
            <button type="submit">Show</button>
            ${isFiltered && html`<a class="button" href="#/operate/failures">Show all</a>`}
        </form>
    </details>`;
}

// ── What is still retried.

function Retrying({ defects, isFiltered }) {
    const images = defects.reduce((sum, defect) => sum + defect.images.length, 0);
    return html`<section aria-labelledby="retrying">
        <h2 id="retrying">Still retried</h2>
        <p>${images === 0
            ? `Nothing that failed is being retried${isFiltered ? " and matches" : ""}.`
            : `${count(images, "image")}, ${count(defects.length, "defect")}. They go on once the cause is fixed.`}</p>
        ${defects.map((defect) => html`<article class="card group" key=${defect.fingerprint}
            aria-label=${defect.fingerprint}>
            <h3 class="row"><${Flag}
                kind="warn">retried<//> <span>${defect.error_type}: ${oneLine(defect.message)}</span></h3>
            <p class="row quiet"><span>${count(defect.images.length, "image")}</span>
                <span>${`up to ${count(defect.attempts, "attempt")} so far`}</span>
                <code>${defect.frame ?? defect.fingerprint}</code></p>
            <${Ids} ids=${defect.images} to=${(id) => `#/operate/failures/${id}`} />
        </article>`)}
    </section>`;
}

function Ids({ ids, to }) {
    const [isAll, setAll] = useState(false);
    return html`<div><ul class="ids plain">${(isAll ? ids : ids.slice(0, SHOWN)).map(
            (id) => html`<li key=${id}><a class="mono" href=${to(id)}>${id}</a></li>`,
        )}</ul>
        ${!isAll && ids.length > SHOWN &&
        html`<button type="button" class="small"
            onClick=${() => setAll(true)}>${`Show all ${ids.length.toLocaleString()}`}</button>`}</div>`;
}

// ── Dead letters.

/** Failures of the same verdict and defect, what needs somebody first, then the larger ones. */
function groupsOf(cases) {
    const groups = new Map();
    for (const failure of cases) {
        const key = [failure.verdict, failure.fingerprint ?? failure.cause ?? "", failure.queue].join(" ");
        if (!groups.has(key)) groups.set(key, { key, verdict: failure.verdict, first: failure, cases: [] });
        groups.get(key).cases.push(failure);
    }
    const order = Object.keys(VERDICTS);
    return [...groups.values()].sort(
        (a, b) =>
            order.indexOf(a.verdict) - order.indexOf(b.verdict) || b.cases.length - a.cases.length,
    );
}

const lastAttempt = (failure) => failure.explanation?.attempts?.findLast((attempt) => attempt.error_type) ?? null;
const guiltyFrame = (failure) => {
    const attempts = failure.explanation?.attempts ?? [];
    const last = attempts.findLastIndex((attempt) => attempt.error_type);
    return last === -1 ? null : (failure.frames?.[last]?.[0] ?? null);
};
const nameOf = (failure) => failure.image_id ?? failure.letters[0]?.message_id;

function Group({ group, filters, onDone }) {
    const { cases, first } = group;
    const verdict = VERDICTS[group.verdict] ?? { word: group.verdict, kind: "warn", means: first.meaning };
    const attempt = lastAttempt(first);
    const frame = guiltyFrame(first);
    const ages = cases.map((failure) => failure.age_seconds ?? 0);
    const tenants = [...new Set(cases.map((failure) => failure.tenant_id).filter(Boolean))];
    const title = attempt
        ? `${attempt.error_type}: ${oneLine(attempt.message)}`
        : (first.problem ?? first.cause ?? verdict.word);
    return html`<article class="card group"
        aria-label=${`${verdict.word}: ${first.fingerprint ?? first.cause ?? group.verdict}`}>
        <h3 class="row"><${Flag} kind=${verdict.kind}>${verdict.word}<//> <span>${oneLine(title)}</span></h3>
        <p class="quiet">${verdict.means}</p>
        ${frame && html`<p><code>${frame.place}</code>${frame.source && html`<br /><code
            class="guilty">${frame.source}</code>`}</p>`}
        <p class="row quiet">
            <span>${count(cases.length, first.image_id ? "image" : "message")} in ${first.queue}</span>
            <span>oldest ${duration(Math.max(...ages))}, newest ${duration(Math.min(...ages))}</span>
            ${first.cause && html`<span>cause <code>${first.cause}</code></span>`}
            ${tenants.length > 3 && html`<span>${count(tenants.length, "tenant")}</span>`}
            ${tenants.length > 0 && tenants.length <= 3 && html`<span>of ${tenants.join(", ")}</span>`}
        </p>
        <${GroupActions} group=${group} filters=${filters} onDone=${onDone} />
        <details><summary>${first.image_id ? "Its images" : "Its messages"}<span
            class="unseen"> (${title})</span></summary>
            <${Cases} cases=${cases} onDone=${onDone} /></details>
    </article>`;
}

function GroupActions({ group, filters, onDone }) {
    const { cases, first, verdict } = group;
    const ids = cases.map((failure) => failure.image_id).filter(Boolean);
    const about = first.fingerprint ?? first.cause ?? verdict;
    // All that fails alike, also what has failed since: by the defect, if there is one; otherwise by the images.
    const words = Object.fromEntries(Object.entries(filters).filter(([, value]) => value));
    /** @type {Json} */
    const alike = { ...words, lane: first.queue };
    if (first.fingerprint) alike.fingerprint = first.fingerprint;
    else if (first.cause) alike.cause = first.cause;
    else if (ids.length) alike.images = ids.slice(0, MOST_IDS);
    if (verdict === "failed") {
        return html`<p class="row"><${Act} action="replay" body=${alike} label=${`Replay ${count(ids.length, "image")}`}
            about=${about}
            title="Replay these images?" yes="Replay" isMain=${true} isSmall=${false} onDone=${onDone}
            what=${REPLAY} /></p>`;
    }
    if (verdict === "settled") {
        return html`<p class="row"><${Act} action="drop" body=${{ ...alike, verdict }}
            label=${`Drop ${count(cases.length, "dead letter")}`}
            about=${about} title="Drop these dead letters?" yes="Drop" isGrave=${true} onDone=${onDone}
            what="The dead letters are removed for good. No image is touched: they have ended otherwise." /></p>`;
    }
    if (STRAY.includes(verdict)) {
        return html`<p class="row"><${Act} action="drop" body=${{ ...words, lane: first.queue, verdict, force: true }}
            label=${`Drop ${count(cases.length, "message")}`} about=${about} title="Drop these messages?" yes="Drop"
            isGrave=${true} onDone=${onDone}
            what="The messages are removed for good. Look at one first: nobody can tell later what it said." /></p>`;
    }
    if (verdict === "batch") {
        return html`<p class="row"><span class="quiet">After the fix:</span>
            <${Copy} text="./darkroom dlq replay --all --lane hold" label="the command" /></p>`;
    }
    return null;
}

function Cases({ cases, onDone }) {
    const [isAll, setAll] = useState(false);
    const shown = isAll ? cases : cases.slice(0, SHOWN);
    return html`<div><${Table} caption=${`${cases.length} that failed alike`} isCaptionUnseen=${true}
            keys=${shown.map((failure) => `${nameOf(failure)} ${failure.run}`)}
            heads=${["image or message", "tenant", numeric("run"), numeric("attempts"), numeric("age"), ACTIONS]}
            rows=${shown.map((failure) => [
                html`<a class="mono" href=${`#/operate/failures/${nameOf(failure)}`}>${nameOf(failure)}</a>`,
                failure.tenant_id ?? "unknown",
                failure.run ?? "",
                failure.explanation?.attempts?.length ?? "",
                failure.age_seconds === null ? "" : duration(failure.age_seconds),
                failure.verdict === "failed" && html`<${ReplayOne} id=${failure.image_id} onDone=${onDone} />`,
            ])} />
        ${!isAll && cases.length > SHOWN &&
        html`<button type="button" class="small"
            onClick=${() => setAll(true)}>${`Show all ${cases.length.toLocaleString()}`}</button>`}</div>`;
}

const ReplayOne = ({ id, onDone, isMain = false }) => html`<${Act} action="replay" body=${{ images: [id] }}
    label="Replay" about=${id}
    title="Replay this image?" yes="Replay" isMain=${isMain} isSmall=${!isMain} onDone=${onDone}
    what=${REPLAY_ONE} />`;

// ── One failure: its attempts, the guilty line first.

function One({ name }) {
    const reading = useReading(`failures/${encodeURIComponent(name)}`);
    const cases = reading.document;
    return html`<div><p><a href="#/operate/failures">All failures</a></p>
        <h1>Failure of <span class="mono">${name}</span></h1>
        <${Awaited} reading=${reading} />
        ${reading.error && html`<p><a href=${`#/operate/images/${name}`}>The life of this image</a></p>`}
        ${cases?.map((failure, place) => html`<${Case} key=${place} failure=${failure} onDone=${reading.again} />`)}</div>`;
}

function Case({ failure, onDone }) {
    const verdict = VERDICTS[failure.verdict] ?? { word: failure.verdict, kind: "warn" };
    const explanation = failure.explanation ?? {};
    const { image: row, retry } = failure;
    const attempts = alike(explanation.attempts ?? [], failure.frames ?? []);
    return html`<section class="card" aria-labelledby="verdict">
        <h2 id="verdict" class="row"><${Flag}
            kind=${verdict.kind}>${verdict.word}<//> <span>${failure.cause ?? "cause unknown"}: ${failure.meaning}</span></h2>
        ${explanation.message && html`<p>Its client is told: “${explanation.message}”</p>`}
        <dl class="facts">
            <dt>Lane</dt><dd>${failure.queue}</dd>
            ${failure.fingerprint && html`<dt>Defect</dt><dd><code>${failure.fingerprint}</code></dd>`}
            ${failure.tenant_id && html`<dt>Tenant</dt><dd>${failure.tenant_id}</dd>`}
            ${failure.run && html`<dt>Run</dt><dd>${failure.run}</dd>`}
            ${row && html`<dt>Row now</dt><dd>${`${row.status}, run ${row.run}, attempt ${row.attempt}`}</dd>`}
            ${explanation.first_at && html`<dt>First try</dt><dd>${moment(explanation.first_at)}</dd>`}
            ${explanation.last_at && html`<dt>Given up</dt><dd>${moment(explanation.last_at)}</dd>`}
            ${retry?.not_before && html`<dt>Next attempt</dt>
                <dd>number ${retry.attempt}, not before ${utc(retry.not_before)}</dd>`}
            ${retry?.began_at && html`<dt>In work</dt><dd>attempt ${retry.attempt}, for ${since(retry.began_at)}</dd>`}
            ${failure.letters.map((letter) => html`<dt>Dead letter</dt><dd><code>${letter.message_id}</code>${", "}
                ${`${letter.explained ? "explained by the worker" : "moved here by SQS"}, sent ${utc(letter.sent_at)}`}
            </dd>`)}
        </dl>
        <p class="row actions">
            ${failure.verdict === "failed" && html`<${ReplayOne} id=${failure.image_id} isMain=${true} onDone=${onDone} />`}
            ${failure.verdict === "settled" && html`<${Act} action="drop" body=${{ images: [failure.image_id] }} label="Drop"
                about="its dead letter"
                title="Drop this dead letter?" yes="Drop" isGrave=${true} onDone=${onDone}
                what="The dead letter is removed for good. The image is not touched." />`}
            ${failure.image_id && html`<a class="button"
                href=${`#/operate/images/${failure.image_id}`}>The life of this image</a>`}
        </p>
        ${failure.problem && html`<h3>Why it could not be read</h3><p>${failure.problem}</p>`}
        ${failure.body && html`<h3>The body as it came</h3><pre tabindex="0">${failure.body}</pre>`}
        ${attempts.length > 0 && html`<h3>Attempts</h3><ol class="plain">${attempts.map(
            (group, place) => html`<li key=${place}><${Attempts} group=${group} /></li>`,
        )}</ol>`}
        ${explanation.look && html`<p class="quiet">${explanation.look}</p>`}
    </section>`;
}

const ALIKE = ["error_type", "message", "stack"];

/** Attempts in a row that failed alike, together; one that never ended stays alone. */
function alike(attempts, frames) {
    const groups = [];
    attempts.forEach((attempt, place) => {
        const last = groups.at(-1);
        const isSame = last && attempt.error_type && ALIKE.every((name) => last.first[name] === attempt[name]);
        if (isSame) last.last = attempt;
        else groups.push({ first: attempt, last: attempt, frames: frames[place] ?? [] });
    });
    return groups;
}

function Attempts({ group: { first, last, frames } }) {
    const numbers = first === last ? `Attempt ${first.attempt}` : `Attempts ${first.attempt} to ${last.attempt}`;
    const ended = last.ended_at ? `ended ${utc(last.ended_at)}` : "never ended: its worker died";
    return html`<div><p><strong>${numbers}</strong>, begun ${utc(first.started_at)}, ${ended}
            ${last.request_id && html`<br /><span class="quiet">request <code>${last.request_id}</code></span>`}</p>
        ${last.error_type && html`<p class="is-bad"><strong>${last.error_type}</strong>: ${last.message}</p>`}
        ${frames.length > 0 && html`<ol class="plain frames">${frames.map(
            (frame, place) => html`<li key=${place}>${place === 0 ? "at" : "called from"} <code>${frame.place}</code>
                ${frame.source && html`<br /><code
                    class=${place === 0 ? "guilty" : "quiet"}>${frame.source}</code>`}</li>`,
        )}</ol>`}
        ${last.stack && html`<details><summary>The whole stack</summary><pre
            tabindex="0">${last.stack}</pre></details>`}</div>`;
}
