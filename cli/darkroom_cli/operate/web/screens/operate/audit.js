// The audit log: who changed what of the stack by hand, the newest first.
import { html } from "../../vendor/preact.js";
import { count, duration } from "../../core.js";
import { addressOf, Awaited, Freshness, useReading, utc, when } from "./reading.js";
import { Flag, Table } from "./table.js";

const SINCE = [["1d", "the last day"], ["7d", "the last 7 days"], ["30d", "the last 30 days"], ["365d", "the last year"]];
const KINDS = { begun: "warn", done: "good", interrupted: "warn", failed: "bad" };
const SHOWN = 5;

export default function Audit({ query }) {
    const filters = { since: query.get("since") ?? "7d", about: query.get("about") ?? "" };
    const reading = useReading(addressOf("audit", filters));
    const actions = reading.document?.actions ?? null;
    const show = (words) => {
        location.hash = `#/operate/${addressOf("audit", { ...filters, ...words })}`;
    };
    const find = (event) => {
        event.preventDefault();
        show({ about: event.target.elements.about.value.trim() });
    };
    return html`<div><h1>Audit log</h1>
        <p class="quiet">What operators did, by the command line and by this page. An action without an end is going on,
            or was killed.</p>
        <form class="fields" onSubmit=${find}>
            <span><label for="audit-since">Actions of</label>
                <select id="audit-since" value=${filters.since} onChange=${(event) => show({ since: event.target.value })}>
                    ${SINCE.map(([value, label]) => html`<option key=${value} value=${value}>${label}</option>`)}</select></span>
            <span class="long"><label for="audit-about">About an image, a key, a tenant or a webhook</label>
                <input id="audit-about" name="about" type="text" class="mono" autocomplete="off" spellcheck="false"
                    defaultValue=${filters.about} /></span>
            <button type="submit">Show</button>
        </form>
        <${Freshness} reading=${reading} />
        <${Awaited} reading=${reading} />
        ${actions?.length === 0 && html`<p>Nobody did anything.</p>`}
        ${actions?.length > 0 && html`<${Table} keys=${actions.map((action) => action.action_id)}
            caption=${`${count(actions.length, "action")}, the newest first${reading.document.complete ? "" : "; there are more"}`}
            heads=${["began", "action", "state", "what", "who"]}
            rows=${actions.map((action) => [
                html`<span class="nowrap">${utc(action.began_at)}<br /><span class="quiet">${when(action.began_at)}</span></span>`,
                action.action.replaceAll("_", " "),
                html`<${State} action=${action} />`,
                html`<${What} action=${action} />`,
                html`<code>${action.actor}</code>`,
            ])} />`}
    </div>`;
}

function State({ action }) {
    const took = action.ended_at ? (Date.parse(action.ended_at) - Date.parse(action.began_at)) / 1000 : null;
    return html`<span><${Flag} kind=${KINDS[action.state] ?? ""}>${action.state === "begun" ? "no end" : action.state}<//>
        ${took !== null && html`<br /><span class="quiet">after ${duration(took)}</span>`}</span>`;
}

function What({ action }) {
    const spaced = (name) => name.replaceAll("_", " ");
    const about = Object.entries(action.about).map(([name, value]) => `${spaced(name)} ${[value].flat().join(", ")}`);
    const counts = Object.entries(action.counts).map(([name, number]) => `${number.toLocaleString()} ${spaced(name)}`);
    const { targets } = action;
    return html`<div>
        ${[...about, ...counts].join("; ")}
        ${action.error && html`<p class="is-bad">${action.error}</p>`}
        ${targets.length > 0 && targets.length <= SHOWN && html`<div class="mono">${targets.join(", ")}</div>`}
        ${targets.length > SHOWN && html`<details><summary>${targets.length.toLocaleString()} by their ids</summary>
            <ul class="ids mono">${targets.map((id) => html`<li key=${id}>${id}</li>`)}</ul></details>`}
    </div>`;
}
