// Which backfills there are, how far each is and what it waits for; and a way to pause, resume and cancel one.
import { html, useState } from "../../vendor/preact.js";
import { count } from "../../core.js";
import { Act } from "./acting.js";
import { Awaited, Freshness, OFTEN_SECONDS, since, useReading, utc } from "./reading.js";
import { ACTIONS, Flag, numeric, Table } from "./table.js";

const HEADS = ["backfill", "preset", "ended", numeric("in work"), numeric("failed"), "waits for", "for", ACTIONS];
const WAYS = [
    { from: "running", state: "paused", label: "Pause", what: "Nothing more is begun. What is begun ends." },
    { from: "paused", state: "running", label: "Resume", what: "It goes on where it was." },
    { from: null, state: "cancelled", label: "End", what: "It is cancelled for good. What is made again stays." },
];

export default function Backfills() {
    const [isPaused, setPaused] = useState(false);
    const reading = useReading("backfills", { everySeconds: isPaused ? null : OFTEN_SECONDS });
    const document = reading.document;
    return html`<div><h1>Backfills</h1>
        <p class="quiet">Each has images that an earlier version of a preset made developed again. A command starts one:
            darkroom backfill start.</p>
        <${Freshness} reading=${reading} everySeconds=${OFTEN_SECONDS} isPaused=${isPaused} onPause=${setPaused} />
        <${Awaited} reading=${reading} />
        ${document?.unreadable.length > 0 && html`<p class="is-warn">A newer version wrote what cannot be read here:${" "}
            ${document.unreadable.join(", ")}.</p>`}
        ${document?.backfills.length === 0 && html`<p>There are no backfills.</p>`}
        ${document?.backfills.length > 0 && html`<${Table} caption=${count(document.backfills.length, "backfill")}
            keys=${document.backfills.map(({ id }) => id)} heads=${HEADS}
            rows=${document.backfills.map((backfill) => rowOf(backfill, reading.again))} />`}
    </div>`;
}

/** @param {Json} backfill */
function rowOf(backfill, onDone) {
    const { id, state, preset, preset_version: version, found, in_work: working, ended, created_at: made } = backfill;
    return [
        html`<code>${id}</code> <${Flag} kind="info">${state}<//>`,
        `${preset}@${version}`,
        html`<progress max=${Math.max(found, 1)} value=${found - working}
                aria-label=${`Images of ${id} that have ended`}></progress>${" "}
            <span>${(found - working).toLocaleString()} of ${found.toLocaleString()}${!backfill.all_read && ", so far"}</span>`,
        working.toLocaleString(),
        ended.failed.toLocaleString(),
        backfill.waits_for ?? "",
        html`<span title=${utc(made)}>${since(made)}</span>`,
        backfill.ended_at === null && state !== "cancelled" && WAYS.filter(({ from }) => from === null || from === state).map(
            (way) => html`<${Act} key=${way.label} action="decide_backfill" body=${{ backfill: id, state: way.state }}
                label=${way.label} about=${id} title=${`${way.label} this backfill?`} yes=${`${way.label} it`}
                isGrave=${way.state === "cancelled"} onDone=${onDone} what=${way.what} />`,
        ),
    ];
}
