// Shows the caller's webhooks, and makes new ones.
import { html, useEffect, useState } from "../vendor/preact.js";
import { count } from "../core.js";
import { announce, Trouble } from "../parts.js";
import { call, mayPass } from "../requests.js";
import { Actions, Condition, Secret, State } from "./webhooks/endpoint.js";
import { WebhookForm } from "./webhooks/form.js";

const MOST = 10;

/** The screen that lists webhooks. */
export default function Webhooks() {
    const [webhooks, setWebhooks] = useState(null);
    const [error, setError] = useState(null);
    const [isMaking, setMaking] = useState(false);
    const [made, setMade] = useState(null); // the newest one, with its secret
    const read = async () => {
        setError(null);
        try {
            setWebhooks((await call("GET", "/webhooks")).document.webhooks);
        } catch (problem) {
            setError(problem);
        }
    };
    useEffect(() => void read(), []);
    const make = async (json) => {
        const { document } = await call("POST", "/webhooks", { json });
        const { secret, ...webhook } = document;
        setMade({ id: webhook.id, secret });
        setWebhooks([...webhooks, webhook]);
        setMaking(false);
        announce("The webhook is made. Keep its secret: it is shown only now.");
    };
    const replace = (webhook) => setWebhooks((before) => before.map((each) => (each.id === webhook.id ? webhook : each)));
    const remove = (id) => setWebhooks((before) => before.filter((each) => each.id !== id));

    if (error && webhooks === null) return html`<h1>Webhooks</h1><${Trouble} error=${error}
        again=${mayPass(error) ? read : null} />`;
    if (webhooks === null) return html`<h1>Webhooks</h1><p class="starting" role="status">Loading…</p>`;
    return html`<div class="row webhooks-head"><h1>Webhooks</h1>
            ${!isMaking && html`<button type="button" class="main" disabled=${webhooks.length >= MOST}
                onClick=${() => setMaking(true)}>New webhook</button>`}
            ${webhooks.length >= MOST && html`<span
                class="quiet">There are at most ${MOST}. Delete one to make another.</span>`}
        </div>
        <p class="quiet">A webhook has events sent to your server as signed requests: it need not ask whether an image
            is done.</p>
        ${isMaking && html`<section class="card" aria-labelledby="making"><h2 id="making">New webhook</h2>
            <${WebhookForm} webhook=${null} onSend=${make} onCancel=${() => setMaking(false)} /></section>`}
        ${webhooks.length === 0 && !isMaking && html`<div class="card narrow"><h2>There are none yet</h2>
            <p>Make one with the URL of your server. You get a secret with which it verifies what comes.</p></div>`}
        ${webhooks.length > 0 && html`<ul class="plain webhooks" aria-label=${count(webhooks.length,
            "webhook")}>${webhooks.map((webhook) => html`<li key=${webhook.id} class="card">
            <h2 class="webhook-name"><a
                href=${`#/webhooks/${encodeURIComponent(webhook.id)}`}>${webhook.url}</a> <${State}
                webhook=${webhook} /></h2>
            ${webhook.description && html`<p class="quiet">${webhook.description}</p>`}
            ${made?.id === webhook.id && html`<${Secret} secret=${made.secret} onKept=${() => setMade(null)} />`}
            <${Condition} webhook=${webhook} />
            <p class="webhook-log"><a href=${`#/webhooks/${encodeURIComponent(webhook.id)}`}
                aria-label=${`Deliveries to ${webhook.url}`}>Deliveries</a></p>
            <${Actions} webhook=${webhook} onChange=${replace} onDelete=${() => remove(webhook.id)} />
        </li>`)}</ul>`}`;
}
