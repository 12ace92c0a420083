// The form with which a webhook is made or changed.
import { html, useState } from "../../vendor/preact.js";
import { Trouble } from "../../parts.js";

/** What a webhook can ask for, and what it then gets. */
export const EVENTS = [
    ["*", "everything, and types that come later"],
    ["image.*", "every event of images"],
    ["image.accepted", "an image was accepted with its bytes"],
    ["image.done", "all its variants are made"],
    ["image.failed", "it could not be developed, or its upload was refused"],
    ["image.cancelled", "it was deleted before it had ended"],
    ["image.expired", "its time or its upload did not come in time"],
    ["image.deleted", "it was deleted after it had ended"],
    ["image.variants_added", "variants that were asked for later are made"],
    ["image.visibility_changed", "others may see its variants now, at other URLs"],
    ["image.redeveloped", "its preset's present version is made; only who names this hears of it"],
    ["image.work_failed", "a redo, such variants or visibility failed; the image stays as it is"],
    ["webhook.*", "every event of webhooks"],
    ["webhook.failing", "for a day, everything sent to a webhook has failed"],
    ["webhook.disabled", "a webhook is sent nothing any more"],
    ["batch.*", "every event of batches"],
    ["batch.completed", "all images of a batch have ended"],
    ["batch.failed", "a batch has stopped, because one of its images failed"],
    ["batch.cancelled", "a batch was cancelled, and its last image has ended"],
    ["schedule.*", "every event of schedules"],
    ["schedule.due", "a time has come that the operator has planned"],
];

/** What no other choice covers: an operator may have millions of images made again. */
const ONLY_BY_NAME = "image.redeveloped";

const covers = (chosen, event) => event !== ONLY_BY_NAME
    && (chosen.has("*")
        || (event !== "*" && !event.endsWith(".*") && chosen.has(`${event.split(".")[0]}.*`)));

/**
 * @param {{webhook: Json|null, onSend: (json: Json) => Promise<void>, onCancel: () => void}} properties
 *     `webhook` is null for a new one; `onSend` throws what the API refused
 */
export function WebhookForm({ webhook, onSend, onCancel }) {
    const [url, setUrl] = useState(webhook?.url ?? "");
    const [chosen, choose] = useState(new Set(webhook?.events ?? ["*"]));
    const [description, setDescription] = useState(webhook?.description ?? "");
    const [error, setError] = useState(null);
    const [isBusy, setBusy] = useState(false);
    const id = webhook?.id ?? "new";
    const toggle = (event) => {
        const after = new Set(chosen);
        if (!after.delete(event)) after.add(event);
        choose(after);
    };
    const send = async (event) => {
        event.preventDefault();
        if (chosen.size === 0) return setError(new Error("Choose at least one kind of event."));
        setBusy(true);
        setError(null);
        try {
            const events = [...chosen].filter((name) => name === "*" || !(chosen.has("*") || covers(chosen, name)));
            await onSend({ url: url.trim(), events, description: description.trim() || null });
        } catch (problem) {
            setError(problem);
            setBusy(false);
        }
    };
    return html`<form onSubmit=${send} aria-label=${webhook ? "Change the webhook" : "New webhook"}>
        ${error && html`<${Trouble} error=${error} />`}
        <label for=${`url-${id}`}>URL</label>
        <input id=${`url-${id}`} type="url" required value=${url} placeholder="https://example.com/hooks/darkroom"
            autocomplete="off"
            aria-describedby=${`url-note-${id}`} onInput=${(event) => setUrl(event.target.value)} />
        <p class="quiet" id=${`url-note-${id}`}>https,
            to a public host by its name. It answers with a status from 200 to 299 within 15 seconds.</p>
        <fieldset><legend>Events</legend><div class="events">
            ${EVENTS.map(([event, meaning]) => {
                const isCovered = event !== "*" && covers(chosen, event) || (event !== "*" && chosen.has("*"));
                return html`<label class="event"><input type="checkbox" checked=${isCovered || chosen.has(event)}
                    disabled=${isCovered}
                    onChange=${() => toggle(event)} /> <span><code>${event}</code> <span
                        class="quiet">${meaning}</span></span></label>`;
            })}
            ${[...chosen].filter((event) => !EVENTS.some(([known]) => known === event)).map((event) => html`<label
                class="event">
                <input type="checkbox" checked onChange=${() => toggle(event)} /> <code>${event}</code></label>`)}
        </div></fieldset>
        <label for=${`description-${id}`}>Description <span class="quiet">for yourself</span></label>
        <input id=${`description-${id}`} type="text" maxlength="200" value=${description}
            onInput=${(event) => setDescription(event.target.value)} />
        <div class="buttons">
            <button type="button" onClick=${onCancel}>Cancel</button>
            <button type="submit" class="main" disabled=${isBusy}>${webhook ? "Save" : "Make the webhook"}</button>
        </div>
    </form>`;
}
