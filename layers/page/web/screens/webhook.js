// Shows one webhook and what was sent to it, and sends it again.
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { local, relative, sentence } from "../core.js";
import { announce, Confirm, Copy, Trouble } from "../parts.js";
import { call, poll } from "../requests.js";
import { Actions, Condition, State } from "./webhooks/endpoint.js";

const STATUSES = ["waiting", "sending", "delivered", "failed"];
const LOOKS = { waiting: "pending", sending: "processing", delivered: "done", failed: "failed" };
const PAGE_DELIVERIES = 40;
const BUSY_SECONDS = 3;
const IDLE_SECONDS = 20;
const SOON_MILLISECONDS = 10_000;
const KIND = /^[a-z_]+: /; // of an error, for programs: a sentence follows

/** The screen of the webhook whose id is `argument`. The filter of its deliveries is in the address. */
export default function Webhook({ argument: id, query }) {
    const [webhook, setWebhook] = useState(null);
    const [error, setError] = useState(null);
    const [round, again] = useState(0);
    const status = STATUSES.includes(query.get("status")) ? query.get("status") : null;
    useEffect(() => {
        let isHere = true;
        setError(null);
        call("GET", `/webhooks/${id}`).then(
            ({ document }) => isHere && setWebhook(document),
            (problem) => isHere && setError(problem),
        );
        return () => (isHere = false);
    }, [round]);
    const back = html`<p><a href="#/webhooks">← All webhooks</a></p>`;
    if (error?.status === 404) {
        return html`${back}<div class="card narrow"><h1>There is no such webhook</h1>
            <p>It was deleted, or it belongs to somebody else.</p>
            <p>No webhook of yours has the id <code>${id}</code>.</p></div>`;
    }
    if (error && !webhook) return html`${back}<${Trouble} error=${error} again=${() => again(round + 1)} />`;
    if (!webhook) return html`${back}<p class="starting" role="status">Loading…</p>`;
    return html`${back}
        <h1 class="webhook-name"><code>${webhook.url}</code> <${State} webhook=${webhook} /></h1>
        <section class="card" aria-label="How it does">
            ${webhook.description && html`<p>${webhook.description}</p>`}
            <${Condition} webhook=${webhook} isWhole />
            <${Actions} webhook=${webhook} onChange=${setWebhook} onDelete=${() => (location.hash = "#/webhooks")}
                onSent=${() => again(round + 1)} />
        </section>
        <${Deliveries} key=${`deliveries ${status}`} id=${id} status=${status} round=${round}
            onSent=${() => again(round + 1)} />`;
}

const Log = ({ log, status, now, isBusy, onResend, onMore }) => html`
    ${log.deliveries.length === 0 && log.next === null && html`<p class="quiet">${status === null
        ? "Nothing has been sent yet. A ping tries it."
        : `No delivery is ${status}.`}</p>`}
    <ul class="plain">${log.deliveries.map((delivery) => html`<${Delivery} key=${delivery.id}
        delivery=${delivery} now=${now} onResend=${() => onResend(delivery)} />`)}</ul>
    <div class="browse-end">
        ${log.next !== null
            ? html`<button type="button" onClick=${onMore} disabled=${isBusy}>${isBusy ? "Loading…"
                : "Show more"}</button>`
            : log.deliveries.length > 0 && html`<p class="quiet">That is all of the last 30 days.</p>`}
    </div>`;

/** The deliveries that are shown, looked at again and again, and how more of them are read. */
function useLog(id, status, round) {
    const [log, setLog] = useState(null); // {deliveries, next}
    const [error, setError] = useState(null);
    const [stale, setStale] = useState(null);
    const [isBusy, setBusy] = useState(false);
    const [now, setNow] = useState(Date.now());
    const current = useRef(null);
    current.current = log;
    const read = async (cursor, signal) => {
        const query = { limit: PAGE_DELIVERIES, status, cursor };
        return (await call("GET", `/webhooks/${id}/deliveries`, { query, signal })).document;
    };

    useEffect(() => {
        const control = new AbortController();
        const { signal } = control;
        const look = async () => {
            const page = await read(null, signal);
            setLog((before) => merged(before, page));
            setNow(Date.now());
            return page.deliveries.some(isMoving) ? BUSY_SECONDS : IDLE_SECONDS;
        };
        poll(look, { signal, trouble: setStale }).catch((problem) => {
            if (!signal.aborted) setError(problem);
        });
        return () => control.abort();
    }, [round]);

    const more = async () => {
        setBusy(true);
        setError(null);
        try {
            const page = await read(log.next);
            const known = new Set(current.current.deliveries.map((delivery) => delivery.id));
            setLog({ deliveries: [...current.current.deliveries,
                ...page.deliveries.filter((delivery) => !known.has(delivery.id))], next: page.next, isLong: true });
        } catch (problem) {
            setError(problem);
        }
        setBusy(false);
    };
    return { log, setLog, error, setError, stale, isBusy, now, more };
}

function Deliveries({ id, status, round, onSent }) {
    const { log, setLog, error, setError, stale, isBusy, now, more } = useLog(id, status, round);
    const [asked, ask] = useState(null); // the delivery that is to be sent again
    const resend = async () => {
        const { id: delivery } = asked;
        ask(null);
        setError(null);
        try {
            const path = `/webhooks/${id}/deliveries/${encodeURIComponent(delivery)}/resend`;
            const { document } = await call("POST", path);
            setLog((before) => ({ ...before, deliveries: before.deliveries.map((delivery) => (delivery.id === document.id
                ? document : delivery)) }));
            announce("It is sent again.");
            onSent();
        } catch (problem) {
            setError(problem);
        }
    };

    return html`<section aria-labelledby="deliveries" class="deliveries">
        <div class="row deliveries-head"><h2 id="deliveries">Deliveries</h2>
            <nav class="pills" aria-label="Show only">
                <a href=${`#/webhooks/${id}`} aria-current=${status === null ? "page" : undefined}>all</a>
                ${STATUSES.map((choice) => html`<a href=${`#/webhooks/${id}?status=${choice}`} aria-current=${status === choice
                    ? "page" : undefined}>${choice}</a>`)}
            </nav>
        </div>
        ${error && html`<${Trouble} error=${error} again=${log === null ? onSent : null} />`}
        ${stale && html`<p class="quiet" role="status">This may be out of date. ${stale.message}</p>`}
        ${log === null && !error && html`<p class="starting" role="status">Loading…</p>`}
        ${log !== null && html`<${Log} log=${log} status=${status} now=${now} isBusy=${isBusy} onResend=${ask}
            onMore=${more} />`}
        ${asked && html`<${Confirm} title="Send it again?" yes="Send again" isGrave=${false} onYes=${resend}
            onNo=${() => ask(null)}>
            <p>Your server gets <code>${asked.type}</code> once more,
                with the same content and the same <code>webhook-id</code>
            <code>${asked.event_id}</code>${asked.status === "delivered"
                ? ": it has already had it, and should drop it if it remembers that" : ""}.</p>
        <//>`}
    </section>`;
}

/** The log with its newest page read again; what was read of older pages stays. */
function merged(before, page) {
    if (!before?.isLong) return page;
    const ids = new Set(page.deliveries.map((delivery) => delivery.id));
    const last = page.deliveries.at(-1);
    const older = before.deliveries.filter((delivery) => !ids.has(delivery.id) && last && delivery.created_at < last.created_at);
    return { ...before, deliveries: [...page.deliveries, ...older] };
}

/** Whether something about a delivery changes within seconds. */
const isMoving = ({ status, next_attempt_at: next }) =>
    status === "sending" || (status === "waiting" && Date.parse(next ?? "") < Date.now() + SOON_MILLISECONDS);

function Delivery({ delivery, now, onResend }) {
    const { type, status, attempts } = delivery;
    const last = attempts.at(-1);
    const [isOpen, setOpen] = useState(false);
    const image = type.startsWith("image.") ? /^([0-9a-z]{26})-/.exec(delivery.event_id)?.[1] : null;
    return html`<li class="delivery"><details onToggle=${(event) => setOpen(event.target.open)}>
        <summary>
            <span class=${`status status-${LOOKS[status] ?? "other"}`}>${status}</span>
            <code>${type}</code>
            <span class="quiet">${relative(delivery.created_at, now)}</span>
            <span class="quiet">${said(delivery, last, now)}</span>
        </summary>
        ${isOpen && html`<div class="delivery-body">
            <dl class="facts">
                <dt>webhook-id</dt><dd><${Copy} text=${delivery.event_id} label="the webhook-id" /></dd>
                ${image && html`<dt>Image</dt><dd><a href=${`#/images/${image}`}>${image}</a></dd>`}
                <dt>Event</dt><dd>${local(delivery.created_at)}</dd>
                ${delivery.next_attempt_at && html`<dt>Next attempt</dt>
                    <dd>${local(delivery.next_attempt_at)} at the earliest</dd>`}
                ${delivery.ended_at && html`<dt>${status === "failed" ? "Given up" : "Ended"}</dt>
                    <dd>${local(delivery.ended_at)}</dd>`}
            </dl>
            ${attempts.length > 0 && html`<h3>Attempts</h3><ol
                class="plain attempts">${attempts.map((attempt) => html`<li>
                <p><strong>${attempt.number}.</strong> ${local(attempt.started_at)}${attempt.milliseconds === null ? ""
                    : `, ${attempt.milliseconds} ms`}:${" "}
                ${attempt.status === null ? sentence(attempt.error?.replace(KIND, "") ?? "nothing was heard of it")
                    : html`status <strong>${attempt.status}</strong>`}</p>
                ${attempt.response && html`<pre tabindex="0"
                    aria-label=${`Response to attempt ${attempt.number}`}>${attempt.response}</pre>`}
            </li>`)}</ol>`}
            ${status !== "sending" && html`<button type="button" class="small"
                onClick=${onResend}>${status === "waiting" ? "Send now…" : "Send again…"}</button>`}
        </div>`}
    </details></li>`;
}

function said({ status, attempts, next_attempt_at: next }, last, now) {
    const made = attempts.length === 0 ? "no attempt yet" : attempts.length === 1 ? "1 attempt"
        : `${attempts.length} attempts`;
    const answer = !last ? "" : last.status !== null ? `, status ${last.status}` : ", no answer";
    if (status !== "waiting" || !next) return `${made}${answer}`;
    return `${made}${answer}, next ${Date.parse(next) > now ? relative(next, now) : "now"}`;
}
