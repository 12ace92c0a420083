// What `darkroom operate` shows: which of its parts the address names, and what all parts share around them.
import { html, useEffect, useErrorBoundary, useState } from "../vendor/preact.js";
import { has, settings } from "../core.js";
import { Trouble } from "../parts.js";
import { READ_ONLY, UnderWay } from "./operate/acting.js";

// Each part: its place in the address, its name in the menu, its module, and the part of the stack that it needs.
const PARTS = [
    { name: "", title: "Overview", load: () => import("./operate/overview.js") },
    { name: "failures", title: "Failures", load: () => import("./operate/failures.js") },
    { name: "images", title: "Images", load: () => import("./operate/images.js") },
    { name: "delays", title: "Scheduled", load: () => import("./operate/delays.js") },
    { name: "tenants", title: "Tenants and keys", load: () => import("./operate/tenants.js") },
    { name: "webhooks", title: "Webhooks", load: () => import("./operate/webhooks.js"), needs: "webhooks" },
    { name: "pauses", title: "Pauses", load: () => import("./operate/pauses.js"), needs: "bulk" },
    { name: "batches", title: "Batches", load: () => import("./operate/batches.js"), needs: "bulk" },
    { name: "backfills", title: "Backfills", load: () => import("./operate/backfills.js"), needs: "bulk" },
    { name: "drills", title: "Drills", load: () => import("./operate/drills.js") },
    { name: "audit", title: "Audit log", load: () => import("./operate/audit.js") },
].filter(({ needs }) => !needs || has(needs));

const loaded = new Map();

/** The screen of an operator. `argument` is the part, or the part and what of it: `failures/<image id>`. */
export default function Operate({ argument, query }) {
    const [name, ...rest] = (argument ?? "").split("/");
    const part = PARTS.find((candidate) => candidate.name === name);
    const [Part, setPart] = useState(() => loaded.get(name) ?? null);
    const [error, setError] = useState(null);
    const [broken, repair] = useErrorBoundary();
    useEffect(() => {
        if (!part) return;
        document.title = `${part.title} · ${settings.stack} · Darkroom`;
        if (Part) return;
        part.load().then(
            (module) => {
                loaded.set(name, module.default);
                setPart(() => module.default);
            },
            () => setError(new Error("The command that serves this page has ended, or no longer answers. Start it again.")),
        );
    }, []);
    useEffect(() => {
        if (broken) console.error(broken);
    }, [broken]);
    return html`<div class="operate">
        <${Around} name=${name} />
        ${broken
            ? html`<${Trouble} again=${repair} error=${new Error(
                  "This screen has a fault. Nothing was changed by it; the command line shows the same figures.",
              )} />`
            : error
              ? html`<${Trouble} error=${error} again=${() => location.reload()} />`
              : !part
                ? html`<div><h1>There is no such part</h1><p><a
                    href="#/">The overview</a> leads to all of them.</p></div>`
                : Part
                  ? html`<${Part} argument=${rest.join("/") || null} query=${query} />`
                  : html`<p class="starting">Loading…</p>`}
    </div>`;
}

function Around({ name }) {
    return html`<div class="operate-around">
        <p class="row">
            <strong>${settings.stack}</strong>
            <span class="quiet">${settings.local ? "on this machine" : settings.region}</span>
            ${settings.production && html`<span class="flag flag-bad">production</span>`}
            <span class="flag">${settings.write ? "may act" : "only reads"}</span>
        </p>
        <nav aria-label="Parts of the stack">
            ${PARTS.map(
                (part) => html`<a href=${part.name ? `#/operate/${part.name}` : "#/"}
                    aria-current=${part.name === name ? "page" : undefined}>${part.title}</a>`,
            )}
        </nav>
        ${READ_ONLY ? html`<p id="read-only" class="quiet">${READ_ONLY}</p>` : html`<${UnderWay} />`}
    </div>`;
}
