// Which batches of which tenants have not ended, and how far each is.
import { html, useState } from "../../vendor/preact.js";
import { count, duration } from "../../core.js";
import { Awaited, Freshness, OFTEN_SECONDS, since, useReading, utc } from "./reading.js";
import { Flag, numeric, Table } from "./table.js";

const HEADS = ["batch", "tenant", "ended", numeric("waiting"), numeric("working"), numeric("failed"), "for", "rest"];

export default function Batches() {
    const [isPaused, setPaused] = useState(false);
    const reading = useReading("batches", { everySeconds: isPaused ? null : OFTEN_SECONDS });
    const document = reading.document;
    return html`<div><h1>Batches in work</h1>
        <p class="quiet">Their tenants make, close and cancel them. One ends when it is closed and all of its images have
            ended.</p>
        <${Freshness} reading=${reading} everySeconds=${OFTEN_SECONDS} isPaused=${isPaused} onPause=${setPaused} />
        <${Awaited} reading=${reading} />
        ${document?.unreadable.length > 0 && html`<p class="is-warn">A newer version wrote what cannot be read here:${" "}
            ${document.unreadable.join(", ")}.</p>`}
        ${document?.batches.length === 0 && html`<p>No batch is in work.</p>`}
        ${document?.batches.length > 0 && html`<${Table}
            caption=${`${count(document.batches.length, "batch", "batches")}${document.is_all ? "" : " or more"}`}
            keys=${document.batches.map(({ id }) => id)} heads=${HEADS} rows=${document.batches.map(rowOf)} />`}
    </div>`;
}

/** @param {Json} batch */
function rowOf(batch) {
    const { id, name, tenant, state, images, progress, created_at: made, remaining_seconds: rest } = batch;
    return [
        html`<span>${name ?? ""}</span> <code>${id}</code>${" "}
            <${Flag} kind="info">${batch.stopped_by ? "stopping" : state}<//>`,
        tenant,
        html`<progress max="1" value=${progress} aria-label=${`Images of ${name ?? id} that have ended`}></progress>
            <span>${Math.floor(progress * 100)} %</span>`,
        images.waiting.toLocaleString(),
        images.working.toLocaleString(),
        images.failed.toLocaleString(),
        html`<span title=${utc(made)}>${since(made)}</span>`,
        rest === null ? "" : `about ${duration(rest)}`,
    ];
}
