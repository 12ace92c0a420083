// Webhooks of all tenants, the ones in trouble first: since when, why, and how their events reach them again.
import { html, useState } from "../../vendor/preact.js";
import { count } from "../../core.js";
import { Act } from "./acting.js";
import { Awaited, Freshness, moment, since, useReading, utc } from "./reading.js";
import { Flag } from "./table.js";

// How an endpoint fares, the worst first.
const CONDITIONS = {
    disabled: { kind: "bad", means: "Nothing is sent. Its events wait, for 30 days." },
    resting: {
        kind: "warn",
        means: "Three deliveries in a row failed, or found no connection to its host: one tries it at the end of the rest, the others wait.",
    },
    failing: { kind: "warn", means: "Every attempt fails. It is disabled after five days of that." },
    paused: { kind: "warn", means: "An operator has paused it. Its events wait, for 30 days." },
    healthy: { kind: "good", means: "" },
};
const DISABLED_BY = {
    client: "its tenant disabled it",
    gone: "it answered 410, Gone",
    failing: "everything failed for five days",
};
const RECOVER = `The webhook is enabled, and deliveries that were given up since then are tried again, slowly at first.
    Its owner may get an event twice: events have ids for that.`;
const SINCE = [["1h", "1 hour"], ["6h", "6 hours"], ["1d", "1 day"], ["7d", "7 days"], ["30d", "30 days"]];

export default function Webhooks() {
    const reading = useReading("webhooks");
    const order = Object.keys(CONDITIONS);
    const webhooks = reading.document?.toSorted(
        (a, b) =>
            order.indexOf(a.condition) - order.indexOf(b.condition) || a.tenant.localeCompare(b.tenant),
    );
    const trouble = webhooks?.filter((webhook) => webhook.condition !== "healthy").length;
    return html`<div><h1>Webhooks</h1>
        <p class="quiet">A webhook that fails is its tenant's to mend; no image waits for it, and nothing rings.</p>
        <${Freshness} reading=${reading} />
        <${Awaited} reading=${reading} />
        ${webhooks?.length === 0 && html`<p>No tenant has one.</p>`}
        ${webhooks?.length > 0 &&
        html`<p>${count(webhooks.length, "webhook")}, ${trouble === 0 ? "all healthy" : `${trouble} in trouble`}.</p>`}
        ${webhooks?.map((webhook) => html`<${Webhook} key=${webhook.id} webhook=${webhook} onDone=${reading.again} />`)}
    </div>`;
}

function Webhook({ webhook, onDone }) {
    const [back, setBack] = useState("1d");
    const { id, tenant, condition } = webhook;
    const { kind, means } = CONDITIONS[condition] ?? { kind: "warn", means: "" };
    return html`<article class="card" aria-label=${`Webhook ${id} of ${tenant}`}>
        <h2 class="row"><${Flag} kind=${kind}>${condition}<//> <span>${webhook.url}</span></h2>
        ${means && html`<p>${means}</p>`}
        <dl class="facts">
            <dt>Webhook</dt><dd><code>${id}</code>${webhook.description && `, “${webhook.description}”`}</dd>
            <dt>Tenant</dt><dd><a href=${`#/operate/tenants/${encodeURIComponent(tenant)}`}>${tenant}</a></dd>
            <dt>Gets</dt><dd>${webhook.events.join(", ")}</dd>
            ${webhook.disabled_at && html`<dt>Disabled</dt>
                <dd>${`${moment(webhook.disabled_at)}: ${DISABLED_BY[webhook.disabled_by] ?? webhook.disabled_by}`}</dd>`}
            ${webhook.paused_at && html`<dt>Paused</dt><dd>${moment(webhook.paused_at)}</dd>`}
            ${webhook.failing_since && html`<dt>Fails</dt>
                <dd>${`for ${since(webhook.failing_since)}, since ${utc(webhook.failing_since)}`}</dd>`}
            ${webhook.rests_until && html`<dt>Rests</dt><dd>${`until ${moment(webhook.rests_until)}`}</dd>`}
            ${webhook.recovering_since && html`<dt>Recovers</dt>
                <dd>${`what failed since ${utc(webhook.recovering_since)} is being sent again`}</dd>`}
            <dt>Last success</dt><dd>${moment(webhook.last_success_at)}</dd>
            <dt>Last failure</dt><dd>${moment(webhook.last_failure_at)}</dd>
        </dl>
        <p class="row actions"><${Act} key=${condition === "paused"} action=${condition === "paused" ? "resume" : "pause"}
            body=${{ kind: "webhook", name: id }} label=${condition === "paused" ? "Resume" : "Pause"} about=${id}
            title=${condition === "paused" ? "Send what waits for it?" : "Send it nothing for a while?"}
            yes=${condition === "paused" ? "Resume it" : "Pause it"} onDone=${onDone}
            what="Its events wait while it is paused, and are sent when it is resumed." /></p>
        ${!["healthy", "paused"].includes(condition) && html`<p class="row actions">
            <${Act} action="enable_webhook" body=${{ tenant, webhook: id }}
                label=${webhook.enabled ? "Try it now" : "Enable"} about=${id} isSmall=${false}
                title="Send what waits for it?" yes=${webhook.enabled ? "Try it now" : "Enable it"} onDone=${onDone}
                what="What waits for it is sent, slowly at first. Deliveries that were given up stay so." />
            <label for=${`since-${id}`} class="check">What failed in the last</label>
            <select id=${`since-${id}`} value=${back} onChange=${(event) => setBack(event.target.value)}>
                ${SINCE.map(([value, label]) => html`<option key=${value} value=${value}>${label}</option>`)}</select>
            <${Act} key=${back} action="recover_webhook" body=${{ tenant, webhook: id, since: back }} label="Recover"
                about=${id} isSmall=${false}
                title="Try failed deliveries again?" yes="Recover" onDone=${onDone}
                what=${RECOVER} />
        </p>`}
    </article>`;
}
