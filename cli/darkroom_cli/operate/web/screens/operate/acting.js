// Actions: each says what it would do, by the command's own dry run, asks, and then shows what it did.
import { html, useEffect, useRef, useState } from "../../vendor/preact.js";
import { settings } from "../../core.js";
import { Copy, Trouble } from "../../parts.js";
import { call, NoAnswer, pause, poll } from "../../requests.js";

/** Why nothing can be done here, in one sentence; null if it can. */
export const READ_ONLY = settings.write
    ? null
    : `This page only reads: to act, end the command and start it again as ./darkroom operate --write${
          settings.local ? "" : ` --stack ${settings.stack}`
      }.`;

/** What a replay does to one image. */
export const REPLAY_ONE = `The image gets a new run with all its attempts, and its dead letter is removed. If the cause
    is not fixed it fails again.`;

/**
 * A button that does one thing. It asks the server for a dry run, shows exactly what would happen, asks, does it, and
 * shows the result.
 *
 * @param {{action: string, body: Json, label: string, title: string, what: string, yes: string, isGrave?: boolean,
 *          isSmall?: boolean, isMain?: boolean, about?: string|null, disabled?: boolean, onDone?: () => void}} properties
 *     `what` says in a sentence what it does; `about` completes the button's name for screen readers
 */
export function Act({ label, about = null, isSmall = true, isMain = false, disabled = false, ...asked }) {
    const [isOpen, setOpen] = useState(false);
    const close = (isDone) => {
        setOpen(false);
        if (isDone) asked.onDone?.();
    };
    const kind = [isSmall && "small", isMain && "main"].filter(Boolean).join(" ");
    return html`<span class="act"><button type="button" class=${kind || undefined}
        disabled=${READ_ONLY !== null || disabled}
            aria-describedby=${READ_ONLY ? "read-only" : undefined} title=${READ_ONLY ?? undefined}
            onClick=${() => setOpen(true)}>${label}…${about && html`<span class="unseen"> ${about}</span>`}</button>
        ${isOpen && html`<${Question} ...${asked} onClose=${close} />`}</span>`;
}

const NAMES = {
    replay: "Replay",
    drop: "Drop of dead letters",
    redo: "Redo",
    reschedule: "Move of scheduled images",
    cancel: "Deletion of scheduled images",
    drill: "Drill",
    undo_drill: "Putting back what a drill has changed",
    recover_webhook: "Recovery of a webhook",
};

const STATES = {
    asking: "Asking what would happen…",
    foreseen: "Nothing was changed yet.",
    refused: "Nothing was changed.",
    doing: "Doing it…",
    stopping: "Stopping: what was begun is finished, and what a drill has broken is put back.",
    done: "The command has ended.",
    failed: "The command has ended with an error.",
};

const LOOK_SECONDS = 0.5;
const LIST_SECONDS = 3;
const MOST_UNANSWERED = 10;

/**
 * Follows an action that is under way until it has ended; `onRun` gets the document of its run now and then.
 *
 * @returns {Promise<Json>} its answer; throws what it has ended with
 */
async function followed(run, { signal, onRun }) {
    let latest = run;
    let unanswered = 0;
    while (latest.run) {
        onRun(latest);
        await pause(LOOK_SECONDS, signal);
        try {
            latest = (await call("GET", `/operate/api/runs/${run.run}`, { signal })).document;
            unanswered = 0;
        } catch (error) {
            unanswered += 1;
            // A problem is the action's own end, whatever its status.
            if (!(error instanceof NoAnswer) || unanswered >= MOST_UNANSWERED) throw error;
        }
    }
    return latest;
}

/** What the action would do, does, or has done. */
const Outcome = ({ state, isUnderWay }) => html`<div>
    ${state.error && html`<${Trouble} error=${state.error} />`}
    ${state.error?.document?.says?.length > 0 && html`<h3>Said before that</h3>`}
    ${state.error?.document?.says?.length > 0 && html`<${Said} lines=${state.error.document.says} />`}
    ${state.answer && !isUnderWay && state.name !== "asking" && html`<${Answer} answer=${state.answer} />`}
    ${isUnderWay && state.run && html`<${Progress} run=${state.run} />`}
</div>`;

/** The focus goes into an open dialog, and back to where it was. */
function openModal(dialog) {
    const before = /** @type {HTMLElement|null} */ (document.activeElement);
    dialog.showModal();
    return () => {
        dialog.close(); // while it is open, nothing else takes the focus
        (before?.isConnected ? before : document.getElementById("content"))?.focus();
    };
}

/** A dialog that asks before an action is done; with `run`, one that is under way is followed instead. */
function Question({ action, body, title, what, yes, isGrave = false, run = null, onClose }) {
    const dialog = useRef(null);
    const [state, setState] = useState({ name: run ? "doing" : "asking", answer: null, error: null, run });
    const ending = useRef(null);
    const onRun = (latest) =>
        setState((before) => ({ ...before, name: latest.stopping ? "stopping" : "doing", run: latest }));
    const request = async (isDry) => {
        setState((before) => ({ ...before, name: isDry ? "asking" : "doing", error: null }));
        try {
            const { signal } = ending.current;
            const path = `/operate/api/${action}`;
            const begun = run ?? (await call("POST", path, { json: { ...body, dry_run: isDry }, signal })).document;
            const answer = await followed(begun, { signal, onRun });
            setState({ name: isDry ? "foreseen" : "done", answer, error: null, run: null });
        } catch (error) {
            if (error.name === "AbortError") return;
            setState((before) => ({ ...before, name: isDry ? "refused" : "failed", error, run: null }));
        }
    };
    const stop = () =>
        call("DELETE", `/operate/api/runs/${state.run.run}`).then(({ document }) => onRun(document), () => {});
    useEffect(() => {
        ending.current = new AbortController();
        const close = openModal(dialog.current);
        request(run === null);
        return () => {
            ending.current.abort();
            close();
        };
    }, []);
    const isTried = state.name === "done" || state.name === "failed";
    const isUnderWay = state.name === "doing" || state.name === "stopping";
    const close = () => onClose(isTried || isUnderWay);
    const isOpen = ["asking", "foreseen"].includes(state.name);
    // An answer comes once: it must find its dialog while its run is not in the list yet, and if it may have a key.
    const isHeld = isUnderWay && (state.run === null || state.run.action === "rotate_key");
    // Nor does a key go by a slip of the hand. A browser closes a dialog at the second Escape, although its page says
    // no, so it is opened again.
    const closed = () => {
        if (!dialog.current) return; // it has gone away
        if (isHeld || state.answer?.key) dialog.current.showModal();
        else close();
    };
    return html`<dialog ref=${dialog} class="wide" aria-labelledby="question" onClose=${closed}>
        <h2 id="question">${title}</h2>
        <p>${what}</p>
        <p class="quiet" role="status">${STATES[state.name]}</p>
        <${Outcome} state=${state} isUnderWay=${isUnderWay} />
        <div class="buttons">
            <button type="button" class=${isOpen ? undefined : "main"} disabled=${isHeld} onClick=${close}>
                ${isOpen ? "Cancel" : isUnderWay ? "Close; it goes on" : "Close"}</button>
            ${isUnderWay &&
            html`<button type="button" class="grave" disabled=${state.run === null || state.name === "stopping"}
                onClick=${stop}>Stop it</button>`}
            ${isOpen && state.answer?.count !== 0 &&
            html`<button type="button" class=${isGrave ? "grave" : "main"} disabled=${state.name !== "foreseen"}
                onClick=${() => request(false)}>${yes}</button>`}
        </div>
    </dialog>`;
}

/** The actions that go on although their dialogs were closed, or have ended since: each can be looked at again. */
export function UnderWay() {
    const [runs, setRuns] = useState([]);
    const [shown, setShown] = useState(null);
    useEffect(() => {
        if (READ_ONLY) return undefined;
        const ending = new AbortController();
        const look = async () => {
            setRuns((await call("GET", "/operate/api/runs", { signal: ending.signal })).document.runs);
            return LIST_SECONDS;
        };
        poll(look, { signal: ending.signal }).catch(() => {});
        return () => ending.abort();
    }, []);
    const close = () => {
        setRuns((before) => before.filter((run) => run.run !== shown.run));
        setShown(null);
    };
    const others = runs.filter((run) => run.run !== shown?.run);
    return html`<div>
        ${others.length > 0 && html`<ul class="plain" aria-label="Actions">${others.map(
            (run) => html`<li key=${run.run} class="row">
                <span class=${run.ended ? undefined : "is-warn"}>${NAMES[run.action] ?? run.action}: ${
                    run.ended ? "has ended" : (run.step?.detail ?? "under way")}</span>
                <button type="button" class="small" onClick=${() => setShown(run)}>${
                    run.ended ? "Show how" : "Show"}…</button></li>`,
        )}</ul>`}
        ${shown && html`<${Question} key=${shown.run} run=${shown} title=${NAMES[shown.action] ?? shown.action}
            what="" yes="" onClose=${close} />`}
    </div>`;
}

/** How far an action is that is under way: its step with a bar, and what it has said. */
function Progress({ run }) {
    const { step } = run;
    return html`<div>
        ${step && html`<p class="row"><progress max=${step.total ?? undefined}
            value=${step.total ? step.completed : undefined} aria-label=${step.name}></progress>
            <span>${step.name}: ${step.detail}</span></p>`}
        ${run.says.length > 0 && html`<${Said} lines=${run.says} />`}
        ${run.notes.length > 0 && html`<${Said} lines=${run.notes} />`}
    </div>`;
}

function Answer({ answer }) {
    const title = answer.dry_run ? "What would happen" : answer.complete ? "Done" : "Done, but not all of it";
    return html`<div><h3>${title}</h3>
        ${answer.key && html`<p><strong>The new key, shown only this once:</strong></p>`}
        ${answer.key && html`<p><${Copy} text=${answer.key} label="the new key" isLong=${true} /></p>`}
        ${answer.says.length > 0 && html`<${Said} lines=${answer.says.filter((line) => line !== answer.key)} />`}
        ${answer.notes.length > 0 && html`<${Said} lines=${answer.notes} />`}
        ${answer.ids.length > 1 &&
        html`<details><summary>${`All ${answer.ids.length.toLocaleString()} by their ids`}</summary>
            <ul class="ids mono">${answer.ids.map((id) => html`<li>${id}</li>`)}</ul></details>`}</div>`;
}

const COMMAND = /^ *(\S.*?[:?]) +(\.\/darkroom .+?)(?: {3,}\((.+)\))?$/;

function kindOf(line) {
    if (line.trim() === "") return "gap";
    if (COMMAND.test(line)) return "command";
    return / {2}\S/.test(line) ? "table" : "text";
}

/** Lines of the command line: prose as paragraphs, tables as they stand, and commands to be copied. */
export function Said({ lines }) {
    const blocks = [];
    for (const line of lines) {
        const kind = kindOf(line);
        const last = blocks.at(-1);
        if (kind === "table" && last?.kind === "table") last.lines.push(line);
        else if (kind !== "gap") blocks.push({ kind, lines: [line] });
        else blocks.push({ kind, lines: [] });
    }
    return html`<div class="said">${blocks.map(({ kind, lines: own }) => {
        if (kind === "gap") return null;
        if (kind === "table") return html`<pre tabindex="0">${own.join("\n")}</pre>`;
        if (kind === "text") return html`<p>${own[0]}</p>`;
        const [, label, command, more] = COMMAND.exec(own[0]);
        return html`<p class="quiet">${label === "Do it:" ? "The same as a command:" : label}${" "}
            <${Copy} text=${command} label="the command" />${more && ` (${more})`}</p>`;
    })}</div>`;
}
