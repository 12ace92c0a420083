// The life of one image as a waterfall: a table of its steps, each with its bar on a common axis of time.
import { html } from "../../vendor/preact.js";
import { count } from "../../core.js";
import { stackNow } from "./reading.js";

// A wait takes at most this part of the width; how long it really was is in the table.
const LONGEST_PART = 0.25;
const WIDTH = 400;
const LEAST = 3;

const PHASES = ["decode", "develop", "store", "finish"];

/** "37 ms", "1.2 s", "3 min 5 s", "2.5 h". */
export function span(milliseconds) {
    if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
    if (milliseconds < 60_000) return `${(milliseconds / 1000).toFixed(1)} s`;
    const seconds = Math.round(milliseconds / 1000);
    if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
    if (seconds < 172_800) return `${(seconds / 3600).toFixed(1)} h`;
    return `${(seconds / 86_400).toFixed(1)} days`;
}

const endOf = (step, now) => Math.max(step.at, step.until ?? now);

/** How long a time may be drawn: the longest ones are all cut to what is then LONGEST_PART of the whole. */
function longestDrawn(lengths) {
    const ordered = [...lengths].sort((a, b) => b - a);
    for (let cut = 0; cut < ordered.length; cut += 1) {
        const share = 1 - LONGEST_PART * cut;
        if (share <= 0) return ordered[cut];
        const most = (LONGEST_PART * ordered.slice(cut).reduce((sum, length) => sum + length, 0)) / share;
        if (ordered[cut] <= most) return most;
    }
    return ordered.length ? Math.min(4 * ordered.at(-1), ordered[0]) : 0;
}

/** Puts instants on the width, in their order; between two neighbouring ones time is drawn evenly. */
export function axisOf(steps, now) {
    const ticks = [...new Set(steps.flatMap((step) => [step.at, endOf(step, now)]))].sort((a, b) => a - b);
    const lengths = ticks.slice(1).map((tick, place) => tick - ticks[place]);
    const most = longestDrawn(lengths);
    const drawn = lengths.map((length) => Math.min(length, most));
    const scale = WIDTH / (drawn.reduce((sum, length) => sum + length, 0) || 1);
    const places = drawn.reduce((ends, length) => [...ends, ends.at(-1) + length * scale], [0]);
    const across = (instant) => {
        const place = Math.max(0, ticks.findLastIndex((tick) => tick <= instant));
        if (place + 1 >= ticks.length) return places[place];
        const part = (instant - ticks[place]) / (ticks[place + 1] - ticks[place]);
        return places[place] + Math.max(0, part) * (places[place + 1] - places[place]);
    };
    return { across, isCut: lengths.some((length) => length > most) };
}

/** @param {{trace: Json}} properties  the document of `darkroom trace ID --json` */
export function Waterfall({ trace }) {
    const now = stackNow();
    const began = Date.parse(trace.accepted_at);
    const steps = trace.steps.map((step) => ({
        ...step,
        at: Date.parse(step.at),
        until: step.until === null ? null : Date.parse(step.until),
        phases: step.phases.map((phase) => ({ ...phase, until: Date.parse(phase.until) })),
    }));
    const axis = axisOf(steps, now);
    const hasPhases = steps.some((step) => step.phases.length > 1);
    return html`<div>
        <table class="waterfall" role="table"><caption
            class="unseen">The steps of the image's life, in their order</caption>
            <thead role="rowgroup"><tr role="row"><th scope="col" role="columnheader">after</th><th scope="col"
                role="columnheader">took</th>
                <th scope="col" role="columnheader">what</th><th aria-hidden="true"></th></tr></thead>
            <tbody role="rowgroup">${steps.map((step, place) => html`<${Step} key=${place} step=${step} axis=${axis}
                began=${began} now=${now} />`)}</tbody>
        </table>
        ${hasPhases && html`<p class="legend quiet">${PHASES.map((name) => html`<span key=${name}><svg
            viewBox="0 0 12 12" width="12" height="12" aria-hidden="true">
            <rect width="12" height="12" class=${`phase phase-${name}`} /></svg> ${name}</span>`)}</p>`}
        <p class="quiet">${trace.log_lines === 0
            ? "No line about it was found in the logs, which keep 30 days: this is what its row knows."
            : `From ${count(trace.log_lines, "log line")}.`}${axis.isCut ? " Long waits are drawn shorter." : ""}</p>
    </div>`;
}

function Step({ step, axis, began, now }) {
    const offset = step.at - began;
    const isMoment = step.until === step.at;
    const lasted = span(Math.max(0, (step.until ?? now) - step.at));
    const took = step.until === null ? `${lasted}…` : isMoment ? "" : lasted;
    const level = step.level === "error" ? "is-bad" : step.level === "warning" ? "is-warn" : undefined;
    return html`<tr role="row">
        <td role="cell" class="after">${offset < 0 ? "-" : "+"}${span(Math.abs(offset))}</td>
        <td role="cell" class="took">${took}</td>
        <td role="cell" class="words"><strong class=${level}>${step.title}</strong> <span
            class=${level ?? "quiet"}>${step.detail}</span>
            ${step.phases.length > 1 && html`<br /><span class="quiet">${phasesOf(step)}</span>`}</td>
        <td class="drawing" aria-hidden="true"><${Drawing} step=${step} axis=${axis} now=${now}
            isMoment=${isMoment} /></td>
    </tr>`;
}

function phasesOf(step) {
    let since = step.at;
    return step.phases.map(({ name, until }) => {
        const took = `${name} ${span(Math.max(0, until - since))}`;
        since = Math.max(until, since);
        return took;
    }).join(", ");
}

function Drawing({ step, axis, now, isMoment }) {
    const from = axis.across(step.at);
    const to = Math.max(axis.across(endOf(step, now)), from + LEAST);
    const left = Math.min(from, WIDTH - LEAST);
    const level = step.level === "info" ? "" : `level-${step.level}`;
    let since = left;
    const parts = step.phases.map((phase) => {
        const part = { name: phase.name, from: since, to: Math.max(since, Math.min(axis.across(phase.until), to)) };
        since = part.to;
        return part;
    });
    const diamond = Math.max(5, Math.min(left, WIDTH - 5));
    return html`<svg viewBox=${`0 0 ${WIDTH} 16`} preserveAspectRatio="none">
        <line class="grid" x1="0" x2=${WIDTH} y1="15.5" y2="15.5" />
        ${isMoment
            ? html`<path class=${`step kind-${step.kind} ${level}`} d=${`M${diamond},3l5,5l-5,5l-5,-5z`} />`
            : html`<rect class=${`step kind-${step.kind} ${level}`} x=${left} y=${step.kind === "wait" ? 7 : 3}
                width=${to - left}
                height=${step.kind === "wait" ? 2 : 10} rx="1" />`}
        ${parts.length > 1 && parts.map((part) => html`<rect key=${part.name} class=${`phase phase-${part.name}`}
            x=${part.from} y="3"
            width=${part.to - part.from} height="10" />`)}
    </svg>`;
}
