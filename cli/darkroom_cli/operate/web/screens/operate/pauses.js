// What is paused, since when and why, and how much waits for it; and a way to pause a lane or a tenant's work.
import { html, useState } from "../../vendor/preact.js";
import { count } from "../../core.js";
import { Act } from "./acting.js";
import { Awaited, Freshness, since, useReading, utc } from "./reading.js";
import { ACTIONS, counted, Flag, numeric, Table } from "./table.js";

const MOST_CHARACTERS = 200;
const PAUSE = `What comes is accepted, and waits. What was begun is finished. Nothing is lost, and nothing late by alarm.`;

export default function Pauses() {
    const reading = useReading("pauses");
    const document = reading.document;
    return html`<div><h1>Pauses</h1>
        <p class="quiet">A webhook is paused on its own screen. An alarm reminds of what is paused for over an hour.</p>
        <${Freshness} reading=${reading} />
        <${Awaited} reading=${reading} />
        ${document?.unreadable.length > 0 && html`<p class="is-warn">A newer version wrote what cannot be read here:${" "}
            ${document.unreadable.join(", ")}.</p>`}
        ${document?.pauses.length === 0 && html`<p>Nothing is paused.</p>`}
        ${document?.pauses.length > 0 && html`<${Table} caption=${count(document.pauses.length, "pause")}
            keys=${document.pauses.map(nameOf)} heads=${["what", "for", numeric("waiting"), "reason", ACTIONS]}
            rows=${document.pauses.map((pause) => rowOf(pause, reading.again))} />`}
        ${document !== null && html`<${Pause} lanes=${document.lanes} onDone=${reading.again} />`}
    </div>`;
}

const nameOf = ({ kind, name }) => `${kind} ${name}`;

function rowOf(pause, onDone) {
    const { kind, name } = pause;
    return [
        html`<span>${nameOf(pause)}</span>${pause.served && html` <${Flag} kind="warn">its workers still run<//>`}`,
        html`<span title=${utc(pause.since)}>${since(pause.since)}</span>`,
        counted(pause.waiting),
        pause.reason ?? "",
        html`<${Act} action="resume" body=${{ kind, name }} label="Resume" about=${nameOf(pause)}
            title=${`Resume ${nameOf(pause)}?`} yes="Resume it" onDone=${onDone} what="What waits is begun." />`,
    ];
}

function Pause({ lanes, onDone }) {
    const [kind, setKind] = useState("lane");
    const [lane, setLane] = useState(lanes[0]);
    const [tenant, setTenant] = useState("");
    const [reason, setReason] = useState("");
    const name = kind === "lane" ? lane : tenant.trim();
    const kept = (set) => (event) => set(event.target.value);
    return html`<section class="card" aria-labelledby="pause"><h2 id="pause">Pause</h2>
        <p class="row actions">
            <label for="pause-kind" class="check">What</label>
            <select id="pause-kind" value=${kind} onChange=${kept(setKind)}>
                <option value="lane">a lane</option><option value="tenant">a tenant's work</option></select>
            <label for="pause-name" class="check">${kind === "lane" ? "Lane" : "Tenant"}</label>
            ${kind === "lane"
                ? html`<select id="pause-name" value=${lane} onChange=${kept(setLane)}>${lanes.map(
                      (each) => html`<option key=${each} value=${each}>${each}</option>`,
                  )}</select>`
                : html`<input id="pause-name" type="text" autocomplete="off" spellcheck="false" value=${tenant}
                      onInput=${kept(setTenant)} />`}
            <label for="pause-reason" class="check">Reason</label>
            <input id="pause-reason" type="text" autocomplete="off" maxlength=${MOST_CHARACTERS} value=${reason}
                onInput=${kept(setReason)} />
            <${Act} key=${`${kind} ${name} ${reason}`} action="pause" body=${{ kind, name, reason }} label="Pause"
                isSmall=${false} disabled=${name === ""} title=${`Pause ${kind} ${name}?`} yes="Pause it"
                onDone=${onDone} what=${PAUSE} />
        </p>
    </section>`;
}
