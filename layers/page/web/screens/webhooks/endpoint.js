// One webhook: how it does, and what can be done with it.
import { html, useState } from "../../vendor/preact.js";
import { local, relative } from "../../core.js";
import { announce, Confirm, Copy, Trouble } from "../../parts.js";
import { call } from "../../requests.js";
import { WebhookForm } from "./form.js";

const WHY = {
    client: "You disabled it.",
    gone: "It answered 410 (Gone): it wants nothing any more.",
    failing: "Everything that was sent to it for five days has failed.",
};

/** A webhook's state in a word, why it is so, and the colour that says so. */
function stateOf(webhook) {
    const since = webhook.failing_since && `Every attempt has failed since ${local(webhook.failing_since)}.`;
    if (!webhook.enabled) {
        const kept = "What happens meanwhile is kept for 30 days and sent when you enable it.";
        return { word: "disabled", look: "other", why: `${WHY[webhook.disabled_by] ?? "It is disabled."} ${kept}` };
    }
    if (webhook.rests_until && Date.parse(webhook.rests_until) > Date.now()) {
        const tried = `One delivery tries it ${relative(webhook.rests_until)}; the others wait.`;
        return { word: "resting", look: "troubled", why: `${since ?? "Deliveries have failed."} ${tried}` };
    }
    if (webhook.failing_since) return { word: "failing", look: "troubled", why: since };
    if (webhook.recovering_since) {
        return { word: "recovering", look: "processing",
            why: `What has failed since ${local(webhook.recovering_since)} is tried again.` };
    }
    return { word: "healthy", look: "done", why: null };
}

const when = (instant) => (instant ? html`<time datetime=${instant} title=${local(instant)}>${relative(instant)}</time>`
    : "never");

/** How a webhook does. @param {{webhook: Json,
    isWhole?: boolean}} properties  `isWhole` also shows what never changes */
export function Condition({ webhook, isWhole = false }) {
    const { why } = stateOf(webhook);
    return html`
        ${why && html`<p class=${webhook.enabled && !webhook.failing_since ? "quiet" : "warning"}>${why}</p>`}
        <dl class="facts">
            <dt>Events</dt><dd>${webhook.events.map((event) =>
                event === "*" ? "all" : html`<code class="event-name">${event}</code> `)}</dd>
            ${webhook.headers?.length > 0 && html`<dt>Headers</dt><dd>${webhook.headers.map((header) =>
                html`<code>${header.name}: ${header.secret ? "(secret)" : header.value}</code> `)}</dd>`}
            <dt>Last success</dt><dd>${when(webhook.last_success_at)}</dd>
            <dt>Last failure</dt><dd>${when(webhook.last_failure_at)}</dd>
            ${isWhole && html`<dt>Made</dt><dd>${local(webhook.created_at)}</dd><dt>Id</dt><dd><${Copy}
                text=${webhook.id} label="the id" /></dd>`}
            ${webhook.earlier_secrets_until && html`<dt>Earlier secrets</dt>
                <dd>sign until ${local(webhook.earlier_secrets_until)}</dd>`}
        </dl>`;
}

/** A webhook's state as a word in its colour. */
export function State({ webhook }) {
    const { word, look } = stateOf(webhook);
    return html`<span class=${`status status-${look}`}>${word}</span>`;
}

/** A secret, which no other answer shows. @param {{secret: string, onKept: () => void}} properties */
export const Secret = ({ secret, onKept }) => html`<div class="note" role="status">
    <p><strong>This is its secret. It is shown only now:</strong> keep it where your server finds it,
        to verify what comes.</p>
    <p><${Copy} text=${secret} label="the secret" isLong /></p>
    <button type="button" class="small" onClick=${onKept}>I have kept it</button>
</div>`;

const QUESTIONS = {
    disable: {
        title: "Disable this webhook?",
        yes: "Disable",
        said: "Nothing is sent to it until you enable it again. What happens meanwhile is kept for 30 days, " +
            "and sent then.",
    },
    rotate: {
        title: "Replace its secret?",
        yes: "Replace the secret",
        said:
            "You get a new secret, shown once. For a day, every delivery is signed with both, so that your server " +
            "can learn the new one; then the old one is void.",
    },
    delete: {
        title: "Delete this webhook?",
        yes: "Delete",
        isGrave: true,
        said:
            "Nothing is sent to it any more, and its deliveries can no longer be seen or sent again. A new one at " +
            "the same URL has another secret.",
    },
};

/** What can be done with the webhook at this path at once, or when a question was answered. */
function doingsOf(path, { act, done, setSecret, onChange, onDelete, onSent }) {
    return {
        ping: act(async () => {
            await call("POST", `${path}/ping`);
            done("A ping is on its way. The deliveries show what came of it.");
            onSent();
        }),
        enable: act(async () => {
            onChange((await call("PATCH", path, { json: { enabled: true } })).document);
            done("Enabled. What waited is sent, slowly at first.");
            onSent();
        }),
        disable: act(async () => {
            onChange((await call("PATCH", path, { json: { enabled: false } })).document);
            done("Disabled.");
        }),
        rotate: act(async () => {
            const { secret: shown, ...after } = (await call("POST", `${path}/rotate`)).document;
            setSecret(shown);
            onChange(after);
        }),
        delete: act(async () => {
            await call("DELETE", path);
            announce("The webhook is deleted.");
            onDelete();
        }),
    };
}

const Buttons = ({ webhook, isBusy, doings, onChange, onAsk }) => html`<div class="row">
    ${webhook.enabled
        ? html`<button type="button" class="small" disabled=${isBusy}
            onClick=${doings.ping}>Send a ping</button>`
        : html`<button type="button" class="small main" disabled=${isBusy}
            onClick=${doings.enable}>Enable</button>`}
    <button type="button" class="small" onClick=${onChange}>Change…</button>
    <button type="button" class="small" disabled=${isBusy}
        onClick=${() => onAsk("recover")}>Send what failed again…</button>
    <button type="button" class="small" disabled=${isBusy}
        onClick=${() => onAsk("rotate")}>Replace the secret…</button>
    ${webhook.enabled && html`<button type="button" class="small" disabled=${isBusy}
        onClick=${() => onAsk("disable")}>Disable…</button>`}
    <button type="button" class="small" disabled=${isBusy} onClick=${() => onAsk("delete")}>Delete…</button>
</div>`;

/**
 * What can be done with a webhook.
 *
 * @param {{webhook: Json, onChange: (webhook: Json) => void, onDelete: () => void, onSent?: () => void}} properties
 *     `onSent` is called when a delivery was begun
 */
export function Actions({ webhook, onChange, onDelete, onSent = () => {} }) {
    const [asked, ask] = useState(null); // the question that is open
    const [isChanging, setChanging] = useState(false);
    const [secret, setSecret] = useState(null);
    const [error, setError] = useState(null);
    const [notice, tell] = useState(null);
    const [isBusy, setBusy] = useState(false);
    const path = `/webhooks/${webhook.id}`;

    const act = (send) => async () => {
        ask(null);
        setError(null);
        tell(null);
        setBusy(true);
        try {
            await send();
        } catch (problem) {
            setError(problem);
        }
        setBusy(false);
    };
    const done = (text) => {
        tell(text);
        announce(text);
    };
    const doings = doingsOf(path, { act, done, setSecret, onChange, onDelete, onSent });
    const recover = (since) => act(async () => {
        onChange((await call("POST", `${path}/recover`, since ? { json: { since } } : {})).document);
        done("What has failed is tried again, slowly at first.");
        onSent();
    })();
    const change = async (json) => {
        onChange((await call("PATCH", path, { json })).document);
        setChanging(false);
        done("Saved.");
    };

    const question = QUESTIONS[asked];
    return html`<div class="actions">
        ${error && html`<${Trouble} error=${error} />`}
        ${notice && html`<p class="quiet">${notice}</p>`}
        ${secret && html`<${Secret} secret=${secret} onKept=${() => setSecret(null)} />`}
        ${isChanging
            ? html`<${WebhookForm} webhook=${webhook} onSend=${change} onCancel=${() => setChanging(false)} />`
            : html`<${Buttons} webhook=${webhook} isBusy=${isBusy} doings=${doings} onChange=${() => setChanging(true)}
                onAsk=${ask} />`}
        ${question && html`<${Confirm} title=${question.title} yes=${question.yes} isGrave=${Boolean(question.isGrave)}
            onYes=${doings[asked]} onNo=${() => ask(null)}>
            <p><code>${webhook.url}</code></p><p>${question.said}</p>
        <//>`}
        ${asked === "recover" && html`<${Recover} webhook=${webhook} onYes=${recover} onNo=${() => ask(null)} />`}
    </div>`;
}

const SINCE = [
    ["PT1H", "the last hour"],
    ["P1D", "the last day"],
    ["P7D", "the last 7 days"],
    ["", "all that are kept: 30 days"],
];

function Recover({ webhook, onYes, onNo }) {
    const [since, setSince] = useState("P1D");
    return html`<${Confirm} title="Send again what has failed?" yes="Send again" isGrave=${false}
        onYes=${() => onYes(since)} onNo=${onNo}>
        <p><code>${webhook.url}</code></p>
        <label for="since">Events of</label>
        <select id="since" value=${since} onChange=${(event) => setSince(event.target.value)}>
            ${SINCE.map(([value, words]) => html`<option value=${value} selected=${value === since}>${words}</option>`)}
        </select>
        <p></p>
        <p>${webhook.enabled ? "" : "The webhook is enabled. "}What has failed for good since then is tried again,
            and what waits at once,
        slowly at first. What was delivered is not sent again.</p>
    <//>`;
}
