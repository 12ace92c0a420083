// Shows the API's own description as a page that people read, and sends its calls with the reader's key.
import { html, useEffect, useMemo, useState } from "../vendor/preact.js";
import { Trouble } from "../parts.js";
import { call, mayPass } from "../requests.js";
import { Prose } from "./reference/prose.js";
import { Call, Method, METHODS, Received } from "./reference/call.js";

/** The screen that describes the API. `?call=postImage` in the address opens that call. */
export default function Reference({ query }) {
    const [description, setDescription] = useState(null);
    const [error, setError] = useState(null);
    const [filter, setFilter] = useState("");
    const asked = query.get("call");
    const read = () => {
        setError(null);
        call("GET", "/openapi.json").then(({ document }) => setDescription(document), setError);
    };
    useEffect(read, []);
    const calls = useMemo(() => (description ? callsOf(description.paths) : []), [description]);
    const received = useMemo(() => (description ? callsOf(description.webhooks) : []), [description]);
    useEffect(() => setFilter(""), [asked]); // what is asked for is there, whatever was sought before
    useEffect(() => {
        if (asked && description) document.getElementById(`call-${asked}`)?.scrollIntoView({ block: "start" });
    }, [asked, description]);

    if (error) return html`<h1>API</h1><${Trouble} error=${error} again=${mayPass(error) ? read : null} />`;
    if (!description) return html`<h1>API</h1><p class="starting" role="status">Loading…</p>`;
    const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (route) => words.every((word) => route.sought.includes(word));
    const [shown, sent] = [calls.filter(fits), received.filter(fits)];
    return html`<div class="reference">
        <div class="reference-side">
            <label for="filter">Find a call</label>
            <input id="filter" type="search" value=${filter} placeholder="resend, 429, invalid_recipe…"
                onInput=${(event) => setFilter(event.target.value)} />
            <p class="unseen" role="status">${words.length ? `${shown.length + sent.length} found` : ""}</p>
            <nav aria-label="Calls"><ul class="plain">${[...shown, ...sent].map((route) => html`<li key=${route.id}>
                <a href=${`#/api?call=${encodeURIComponent(route.id)}`}
                    aria-current=${route.id === asked ? "location" : undefined}>
                    <${Method} method=${route.isReceived ? "event" : route.method} />${" "}
                    ${(route.isReceived ? null : route.operation.summary) ?? route.path}</a></li>`)}</ul></nav>
        </div>
        <div class="reference-calls">
            <h1>${description.info?.title ?? "The"} API</h1>
            ${words.length === 0 && html`<${Prose} text=${description.info?.description} />
                <p class="quiet">The same for programs: <a href="/openapi.json">openapi.json</a>.</p>`}
            ${shown.map((route) => html`<${Call} key=${route.id} route=${route} description=${description}
                isAsked=${route.id === asked} />`)}
            ${sent.length > 0 && html`<h2 class="reference-part">What webhooks receive</h2>`}
            ${sent.map((route) => html`<${Received} key=${route.id} route=${route} description=${description}
                isAsked=${route.id === asked} />`)}
            ${shown.length + sent.length === 0 && html`<p>Nothing fits <strong>${filter}</strong>.
                <button type="button" class="small" onClick=${() => setFilter("")}>Show all</button></p>`}
        </div>
    </div>`;
}

/** The operations of a document's `paths` or `webhooks`, with the text in which words are sought. */
function callsOf(paths) {
    const calls = [];
    for (const [path, item] of Object.entries(paths ?? {})) {
        for (const method of METHODS) {
            const operation = item?.[method];
            if (!operation) continue;
            const answers = Object.entries(operation.responses ?? {});
            const codes = answers.flatMap(([status, answer]) => [status, answer?.description ?? "", ...problemsOf(answer)]);
            const names = (operation.parameters ?? []).map((parameter) => parameter?.name);
            const id = String(operation.operationId ?? `${method} ${path}`);
            const texts = [method, path, id, operation.summary, operation.description, ...codes, ...names, "curl"];
            const sought = texts.join(" ").toLowerCase();
            calls.push({ id, method, path, operation, sought, isReceived: !path.startsWith("/") });
        }
    }
    return calls;
}

const problemsOf = (response) =>
    Object.values(response?.content ?? {}).flatMap((content) => Object.keys(content?.examples ?? {}));
