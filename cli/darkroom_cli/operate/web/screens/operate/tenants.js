// Tenants: their tier and limits, what they used this month, and their keys with their ages.
import { html, useState } from "../../vendor/preact.js";
import { bytes, count, has } from "../../core.js";
import { Copy } from "../../parts.js";
import { Act } from "./acting.js";
import { Awaited, Freshness, since, useReading, utc, when } from "./reading.js";
import { ACTIONS, Flag, numeric, Table } from "./table.js";

const TIERS = ["free", "plus", "paid"];
const TIER = "The tier decides the lane of its next images, its limits, and who is turned away first when a lane is full.";
const MOVE = "What it asks for from now on goes there; images in work stay where they are. Its tier's lane ends the move.";
const SUSPEND = "All its requests are refused within a minute, until it is resumed. Images that were accepted go on.";
const PAUSE = "Its images are accepted, and wait, until its work is resumed on the screen Pauses.";
const ROTATE = "The tenant gets a new key that may do the same. It is shown once, here: give it to the tenant.";
const REVOKE = "Requests with it are refused within a minute, for good. Whoever uses it needs another key.";
const OVERLAPS = [["7d", "7 days"], ["1d", "1 day"], ["1h", "1 hour"], ["0s", "no time: it is refused at once"]];

export default function Tenants({ argument }) {
    return argument ? html`<${One} key=${argument} name=${argument} />` : html`<${All} />`;
}

function All() {
    const reading = useReading("tenants");
    const tenants = reading.document;
    return html`<div><h1>Tenants and keys</h1>
        <${Freshness} reading=${reading} />
        <${Awaited} reading=${reading} />
        ${tenants?.length === 0 && html`<p>No tenants yet. The first one: <${Copy} text="./darkroom tenants add NAME"
            label="the command" /></p>`}
        ${tenants?.length > 0 && html`<${Table} caption=${count(tenants.length, "tenant")}
            keys=${tenants.map((tenant) => tenant.tenant)}
            heads=${["tenant", "tier", "lane", "state", numeric("requests per second"), numeric("at once"), numeric("open keys"), "since"]}
            rows=${tenants.map((tenant) => [
                html`<a href=${`#/operate/tenants/${encodeURIComponent(tenant.tenant)}`}>${tenant.tenant}</a>`,
                tenant.tier,
                tenant.lane,
                html`<${State} state=${tenant.state} />`,
                tenant.requests_per_second.toLocaleString(),
                tenant.burst.toLocaleString(),
                tenant.keys,
                html`<span class="nowrap">${tenant.created_at.slice(0, 10)}</span>`,
            ])} />`}
    </div>`;
}

const STATES = { active: "good", suspended: "warn", erasing: "warn", revoked: "bad", expired: "" };
const State = ({ state }) => html`<${Flag} kind=${STATES[state] ?? "warn"}>${state}<//>`;

// ── One tenant.

function One({ name }) {
    const reading = useReading(`tenants/${encodeURIComponent(decoded(name))}`);
    const tenant = reading.document;
    return html`<div><p><a href="#/operate/tenants">All tenants</a></p>
        <h1>Tenant ${decoded(name)}</h1>
        <${Freshness} reading=${reading} />
        <${Awaited} reading=${reading} />
        ${tenant !== null && html`<${About} tenant=${tenant} onDone=${reading.again} />`}
        ${tenant !== null && html`<${Keys} tenant=${tenant} onDone=${reading.again} />`}
        ${tenant !== null && has("usage") && html`<${Usage} usage=${tenant.usage} />`}
        ${tenant !== null && html`<p class="row"><a
            href=${`#/operate/images?tenant=${encodeURIComponent(tenant.tenant)}`}>Its images</a>
            <a href=${`#/operate/failures?tenant=${encodeURIComponent(tenant.tenant)}`}>Its failures</a></p>`}
    </div>`;
}

const ofQuota = (used, allowed, form) => (allowed === null ? form(used) : `${form(used)} of ${form(allowed)}`);

function decoded(name) {
    try {
        return decodeURIComponent(name);
    } catch {
        return name;
    }
}

function About({ tenant, onDone }) {
    const [tier, setTier] = useState(tenant.tier);
    const [lane, setLane] = useState(tenant.lane);
    const { tenant: id, state } = tenant;
    return html`<section class="card" aria-label="Terms">
        <dl class="facts">
            <dt>Tier</dt><dd>${tenant.tier}</dd>
            <dt>Lane</dt><dd>${tenant.lane}</dd>
            <dt>State</dt><dd><${State} state=${state} /></dd>
            <dt>Limits</dt>
            <dd>${`${count(tenant.requests_per_second, "request")} per second, ${tenant.burst.toLocaleString()} at once`}</dd>
            <dt>Stores</dt>
            <dd>${`${ofQuota(tenant.stored_bytes, tenant.max_stored_bytes, bytes)}, ${
                ofQuota(tenant.stored_images, tenant.max_images, (number) => number.toLocaleString())} images`}</dd>
            <dt>Unfinished</dt>
            <dd>${`${ofQuota(tenant.unfinished_images, tenant.max_unfinished, (number) => number.toLocaleString())} images`}</dd>
            <dt>Since</dt><dd>${utc(tenant.created_at)}</dd>
        </dl>
        <p class="row actions">
            <label for="tier" class="check">Tier</label>
            <select id="tier" value=${tier} onChange=${(event) => setTier(event.target.value)}>
                ${TIERS.map((tier) => html`<option key=${tier} value=${tier}>${tier}</option>`)}</select>
            <${Act} key=${`tier ${tier}`} action="change_tenant" body=${{ tenant: id, tier }} label="Change the tier"
                isSmall=${false} disabled=${tier === tenant.tier}
                title=${`Change the tier of ${id} to ${tier}?`} yes="Change it" isGrave=${false} onDone=${onDone}
                what=${TIER} />
            <label for="lane" class="check">Lane</label>
            <select id="lane" value=${lane} onChange=${(event) => setLane(event.target.value)}>
                ${tenant.lanes.map((lane) => html`<option key=${lane} value=${lane}>${lane}</option>`)}</select>
            <${Act} key=${`lane ${lane}`} action="change_tenant" body=${{ tenant: id, lane }} label="Move it"
                isSmall=${false} disabled=${lane === tenant.lane} title=${`Move ${id} to the lane ${lane}?`}
                yes="Move it" isGrave=${false} onDone=${onDone} what=${MOVE} />
            ${has("bulk") && html`<${Act} key="pause" action="pause" body=${{ kind: "tenant", name: id }}
                label="Pause its work" isSmall=${false} title=${`Pause the work of ${id}?`} yes="Pause it" onDone=${onDone}
                what=${PAUSE} />`}
            ${state === "active" && html`<${Act} key="suspend" action="change_tenant"
                body=${{ tenant: id, state: "suspended" }} label="Suspend" isSmall=${false}
                title=${`Suspend ${id}?`} yes="Suspend it" isGrave=${true} onDone=${onDone}
                what=${SUSPEND} />`}
            ${state === "suspended" && html`<${Act} key="resume" action="change_tenant"
                body=${{ tenant: id, state: "active" }} label="Resume" isSmall=${false}
                title=${`Resume ${id}?`} yes="Resume it" onDone=${onDone} what="Its keys open the API again within a minute." />`}
        </p>
    </section>`;
}

function Keys({ tenant, onDone }) {
    const [overlap, setOverlap] = useState(OVERLAPS[0][0]);
    const keys = tenant.all_keys;
    return html`<section aria-labelledby="keys">
        <h2 id="keys">Keys</h2>
        ${keys.length === 0 && html`<p>It has no keys.</p>`}
        ${keys.length > 0 && html`<p class="row"><label for="overlap"
            class="check">A key that is rotated still opens the API for</label>
            <select id="overlap" value=${overlap} onChange=${(event) => setOverlap(event.target.value)}>
                ${OVERLAPS.map(([value, label]) => html`<option key=${value}
                    value=${value}>${label}</option>`)}</select></p>`}
        ${keys.length > 0 && html`<${Table} caption=${count(keys.length, "key")} keys=${keys.map((key) => key.id)}
            heads=${["key", "label", "state", "may", numeric("age"), "last used", "opens the API until", ACTIONS]}
            rows=${keys.map((key) => [
                html`<code>${key.id}</code>`,
                key.label ?? "",
                html`<${State} state=${key.state} />`,
                key.scopes === null ? "everything" : key.scopes.join(", "),
                since(key.created_at),
                key.last_used_on ?? "never",
                key.revoked_at ? `revoked ${when(key.revoked_at)}` : key.expires_at ? utc(key.expires_at) : "it is revoked",
                key.state === "active" && html`<${KeyActions} id=${key.id} overlap=${overlap} onDone=${onDone} />`,
            ])} />`}
        <p class="row quiet">Another key: <${Copy} text=${`./darkroom keys create ${tenant.tenant}`}
            label="the command" /></p>
    </section>`;
}

const KeyActions = ({ id, overlap, onDone }) => html`<span class="row tight">
    <${Act} action="rotate_key" body=${{ key: id, overlap }} label="Rotate" about=${`key ${id}`}
        title=${`Replace the key ${id}?`} yes="Replace it"
        isGrave=${false} onDone=${onDone} what=${ROTATE} />
    <${Act} action="revoke_key" body=${{ key: id }} label="Revoke" about=${`key ${id}`} title=${`Revoke the key ${id}?`}
        yes="Revoke it"
        isGrave=${true} onDone=${onDone} what=${REVOKE} />
</span>`;

function Usage({ usage }) {
    return html`<section aria-labelledby="usage">
        <h2 id="usage">Used this month</h2>
        ${usage.length === 0
            ? html`<p>Nothing.</p>`
            : html`<${Table} caption="By the day, in UTC" keys=${usage.map((day) => day.day)}
                heads=${["day", ...["images", "size", "runs", "size of variants", "megapixels"].map(numeric)]}
                rows=${usage.map((day) => [
                    html`<span class="nowrap">${day.day}</span>`,
                    day.images.toLocaleString(),
                    bytes(day.image_bytes),
                    day.runs.toLocaleString(),
                    bytes(day.variant_bytes),
                    (day.variant_pixels / 1_000_000).toFixed(1),
                ])} />`}
    </section>`;
}
