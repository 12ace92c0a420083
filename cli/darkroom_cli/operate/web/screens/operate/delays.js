// Scheduled images by the day and by the hour of their time; a day's images can be moved, or deleted.
import { html, useState } from "../../vendor/preact.js";
import { count } from "../../core.js";
import { Act } from "./acting.js";
import { BarChart } from "./chart.js";
import { addressOf, Awaited, Freshness, useReading, utc, when } from "./reading.js";
import { ACTIONS, ImageLink, numeric, Table } from "./table.js";

const DAY_MILLISECONDS = 86_400_000;
const MOST_EMPTY_BARS = 45;
const OWN_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
const MOST_DAYS = 366;
const DELETION = `Each image that no worker has begun is cancelled for good, and its original is removed. Tenants see
    the status cancelled.`;

export default function Scheduled({ query }) {
    const day = query.get("day");
    const zone = query.get("zone") ?? "UTC";
    const filters = { day, zone, lane: query.get("lane"), images: query.get("images") };
    const reading = useReading(addressOf("delays", filters));
    const { document } = reading;
    return html`<div>
        ${day && html`<p><a href=${`#/operate/${addressOf("delays", { zone })}`}>All days</a></p>`}
        <h1>${day ? `Scheduled on ${day}` : "Scheduled"}</h1>
        <p class="quiet">Images that were accepted and wait for their time. ${day ? "" : "Choose a day to see its hours."}</p>
        <${Zone} filters=${filters} />
        <${Freshness} reading=${reading} />
        <${Awaited} reading=${reading} />
        ${document !== null && html`<${Listing} document=${document} filters=${filters} onDone=${reading.again} />`}
    </div>`;
}

function Zone({ filters }) {
    const choose = (event) => {
        location.hash = `#/operate/${addressOf("delays", { ...filters, zone: event.target.value })}`;
    };
    const zones = [...new Set(["UTC", OWN_ZONE, filters.zone])];
    return zones.length > 1 && html`<p class="row"><label for="zone" class="check">Days and hours in</label>
        <select id="zone" value=${filters.zone} onChange=${choose}>
            ${zones.map((zone) => html`<option key=${zone} value=${zone}>${zone}</option>`)}</select></p>`;
}

function Listing({ document, filters, onDone }) {
    const [days, setDays] = useState("1");
    const stretches = document.days ?? document.hours ?? [];
    const lanes = Object.keys(stretches[0]?.lanes ?? {});
    const by = Number.parseInt(days, 10);
    const isFine = String(by) === days.trim() && by !== 0 && Math.abs(by) <= MOST_DAYS;
    return html`<div>
        <p>${situation(document, filters)}</p>
        ${document.due > 0 && html`<p
            class="is-warn">Also ${count(document.due, "unfinished image")} whose time has come: in the lane or being developed.</p>`}
        ${document.unreadable > 0 && html`<p
            class="is-warn">${count(document.unreadable, "row")} of a newer version cannot be read: run <code>./darkroom doctor</code>.</p>`}
        ${stretches.length > 0 && html`<section class="card" aria-label="Chart"><${BarChart}
            title=${filters.day ? "Images by the hour" : "Images by the day"} unit="images"
            bars=${filters.day ? hourBars(stretches, lanes, filters.zone) : dayBars(stretches, lanes)} names=${lanes} /></section>`}
        ${stretches.length > 0 && html`<p class="row"><label for="days" class="check">Move by</label>
            <input id="days" class="short" type="text" inputmode="numeric" value=${days} aria-invalid=${String(!isFine)}
                onInput=${(event) => setDays(event.target.value)} /> <span>days; earlier with a minus</span>
            <span class="is-bad" role="status">${isFine ? "" : "A whole number of days other than 0."}</span></p>`}
        ${stretches.length > 0 && html`<${Table}
            caption=${filters.day ? `Hours of ${filters.day} (${filters.zone})` : `Days (${filters.zone})`}
            keys=${stretches.map((stretch) => stretch.starts_at)}
            heads=${[filters.day ? "hour" : "day", numeric("images"), ...lanes.map(numeric), "first", "last", ACTIONS]}
            rows=${stretches.map((stretch) => rowOf({ stretch, lanes, filters, by, isFine, onDone }))} />`}
        ${filters.day && stretches.length > 0 && !filters.images &&
        html`<p><a href=${`#/operate/${addressOf("delays", { ...filters, images: "true" })}`}>One by one</a></p>`}
        ${document.rows?.length > 0 &&
        html`<${Rows} rows=${document.rows} filters=${filters} by=${by} isFine=${isFine} onDone=${onDone} />`}
    </div>`;
}

function situation(document, { day }) {
    if (document.images === 0) return `Nothing waits for its time${day ? ` on ${day}` : ""}.`;
    const least = document.read_until ? "At least " : "";
    const more = document.read_until ? ` Only those up to ${utc(document.read_until)} were read.` : "";
    const waits = document.images === 1 ? "waits for its time" : "wait for their time";
    return `${least}${count(document.images, "image")} ${waits}${day ? ` on ${day}` : ""}.${more}`;
}

function rowOf({ stretch, lanes, filters, by, isFine, onDone }) {
    const { zone } = filters;
    const day = stretch.day ?? filters.day;
    const hour = stretch.day ? null : hourIn(stretch.starts_at, zone);
    const name = hour === null ? day : `${day} ${hour}:00`;
    const chosen = { day, zone, ...(hour === null ? {} : { hour }), ...(filters.lane ? { lane: filters.lane } : {}) };
    return [
        hour === null
            ? html`<a class="nowrap"
                href=${`#/operate/${addressOf("delays", { ...filters, day })}`}>${weekday(day)} ${day}</a>`
            : `${hour}:00`,
        html`<strong>${stretch.images.toLocaleString()}</strong>`,
        ...lanes.map((lane) => stretch.lanes[lane].toLocaleString()),
        timeIn(stretch.first_at, zone),
        timeIn(stretch.last_at, zone),
        actsOf({ chosen, what: `the images of ${name}`, by, isFine, onDone }),
    ];
}

function actsOf({ chosen, what, by, isFine, onDone }) {
    return html`<span class="row tight"><${Act} action="reschedule" body=${{ ...chosen, by: `${isFine ? by : 1}d` }}
        label="Move" about=${what} disabled=${!isFine} title=${`Move ${what}?`} yes="Move" onDone=${onDone}
        what=${moveOf(by, chosen.zone)} />
        <${Act} action="cancel" body=${chosen} label="Delete" about=${what} isGrave=${true}
            title=${`Delete ${what}?`} yes="Delete" onDone=${onDone} what=${DELETION} /></span>`;
}

const moveOf = (by, zone) => `Each image that no worker has begun is moved ${count(Math.abs(by), "day")}
    ${by < 0 ? "earlier" : "later"}, to the same time of the day (${zone}). What already has begun stays.`;

function Rows({ rows, filters, by, isFine, onDone }) {
    const { day, zone } = filters;
    return html`<${Table} caption=${count(rows.length, "image")} keys=${rows.map((row) => row.id)}
        heads=${["image", "time", "lane", "expires", "tenant", ACTIONS]}
        rows=${rows.map((row) => [
            html`<${ImageLink} id=${row.id} />`,
            html`${utc(row.process_at)} <span class="quiet">${when(row.process_at)}</span>`,
            row.lane,
            row.expires_at ? utc(row.expires_at) : "never",
            row.tenant_id,
            actsOf({ chosen: { day, zone, images: [row.id] }, what: `the image ${row.id}`, by, isFine, onDone }),
        ])} />`;
}

// ── Bars, also for empty days and hours between two others.

function dayBars(stretches, lanes) {
    const byDay = new Map(stretches.map((stretch) => [stretch.day, stretch]));
    const first = Date.parse(stretches[0].day);
    const number = Math.round((Date.parse(stretches.at(-1).day) - first) / DAY_MILLISECONDS) + 1;
    const dayAt = (place) => new Date(first + place * DAY_MILLISECONDS).toISOString().slice(0, 10);
    const days = number > MOST_EMPTY_BARS
        ? [...byDay.keys()]
        : Array.from({ length: number }, (_, place) => dayAt(place));
    return days.map((day) => ({ label: day.slice(5), values: lanes.map((lane) => byDay.get(day)?.lanes[lane] ?? 0) }));
}

function hourBars(stretches, lanes, zone) {
    const first = Date.parse(stretches[0].starts_at);
    const byStart = new Map(stretches.map((stretch) => [Date.parse(stretch.starts_at), stretch]));
    const number = Math.round((Date.parse(stretches.at(-1).starts_at) - first) / 3_600_000) + 1;
    return Array.from({ length: number }, (_, place) => first + place * 3_600_000).map((at) => ({
        label: `${hourIn(new Date(at).toISOString(), zone)}:00`,
        values: lanes.map((lane) => byStart.get(at)?.lanes[lane] ?? 0),
    }));
}

const weekday = (day) =>
    new Date(`${day}T12:00:00Z`).toLocaleDateString("en-GB", { weekday: "short", timeZone: "UTC" });
const timeIn = (instant, zone) => new Date(instant).toLocaleTimeString("en-GB", { timeZone: zone });
const hourIn = (instant, zone) => timeIn(instant, zone).slice(0, 2);
