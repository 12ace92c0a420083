// What is going on: first what is wrong and where to begin, then the lanes, and everything around them.
import { html, useEffect, useMemo, useRef, useState } from "../../vendor/preact.js";
import { count, duration, has, settings } from "../../core.js";
import { announce, Copy, Trouble, useIsNarrow } from "../../parts.js";
import { LineChart } from "./chart.js";
import { Awaited, Freshness, OFTEN_SECONDS, since, stackNow, useReading, utc, when } from "./reading.js";
import { counted, Figure, Flag, ImageLink, numeric, oneLine, Table } from "./table.js";

const HISTORY_SECONDS = 30;
const SPANS = [{ minutes: 180, name: "3 hours" }, { minutes: 30, name: "30 minutes" }];

// From when figures are coloured: as the alarms do, and as `darkroom top` does.
const FAST_BURN = 14.4;
const SLOW_BURN = 6;
const FAILING_PERCENT = 20;
const HALF_FULL_PERCENT = 50;
const FULL_PERCENT = 80;
const LOW_BUDGET_PERCENT = 25;

export default function Overview() {
    const [isPaused, setPaused] = useState(false);
    const reading = useReading("overview", { everySeconds: isPaused ? null : OFTEN_SECONDS });
    const history = useReading("history", { everySeconds: isPaused ? null : HISTORY_SECONDS });
    const [minutes, setMinutes] = useState(SPANS[0].minutes);
    const past = useMemo(() => lastOf(history.document, minutes), [history.document, minutes]);
    const seen = reading.document;
    useAlarmsRead(seen?.alarms);
    if (seen === null) return html`<div><h1>Overview</h1><${Awaited} reading=${reading} /></div>`;
    return html`<div><h1>Overview</h1>
        <${Freshness} reading=${reading} everySeconds=${OFTEN_SECONDS} isPaused=${isPaused} onPause=${setPaused} />
        ${reading.error && html`<${Trouble} error=${reading.error} again=${reading.again} />`}
        <${Incident} seen=${seen} />
        <${Unread} problems=${seen.problems} />
        <p class="row" role="group" aria-label="How far back the charts go"><span
            class="quiet">Charts over the last</span>
            ${SPANS.map((span) => html`<button type="button" class="small"
                aria-pressed=${String(span.minutes === minutes)}
                onClick=${() => setMinutes(span.minutes)}>${span.name}</button>`)}</p>
        ${seen.lanes.map((lane) => html`<${Lane} key=${lane.lane} lane=${lane} past=${past} error=${history.error}
            seen=${seen} />`)}
        <p class="quiet">${worstOf(seen)}</p>
        <div class="panels">
            ${AROUND.map(({ Panel, quietOf }) => quietOf(seen) === null && html`<${Panel} seen=${seen} />`)}
            <${Quiet} seen=${seen} />
        </div>
        <${Cost} /></div>`;
}

/** What 99 of 100 requests and messages had at most; nothing while nothing is measured. */
function worstOf({ accept_p99_milliseconds: accept, receives_p99: receives }) {
    const parts = [
        accept === null ? "" : `accepting ${Math.round(accept).toLocaleString()} ms`,
        receives === null ? "" : `receives of a message ${receives.toLocaleString()}`,
    ].filter(Boolean);
    return parts.length > 0 && `p99 in the worst five minutes of the last hour: ${parts.join(", ")}.`;
}

/** The last minutes of a history. */
function lastOf(history, minutes) {
    if (history === null) return null;
    const lanes = Object.entries(history.lanes).map(([name, lane]) => [
        name,
        Object.fromEntries(Object.entries(lane).map(([what, values]) => [what, values.slice(-minutes)])),
    ]);
    return { minutes: history.minutes.slice(-minutes), lanes: Object.fromEntries(lanes) };
}

/** Has alarms that came or went read aloud. */
function useAlarmsRead(alarms) {
    const before = useRef(null);
    const names = alarms?.map((alarm) => alarm.name).join(" ") ?? null;
    useEffect(() => {
        if (names === null) return;
        const was = before.current;
        before.current = names;
        if (was === null || was === names) return;
        announce(names === "" ? "All alarms are off." : `Alarms that are on: ${names.replaceAll(" ", ", ")}.`);
    }, [names]);
}

// ── The incident: alarms that are on, what they mean, and the first command.

function Incident({ seen }) {
    const { alarms } = seen;
    if (alarms === null) {
        return html`<section class="card incident is-warn" aria-labelledby="incident">
            <h2 id="incident">Whether an alarm is on is not known</h2>
            <p>${seen.problems.alarms ?? "The alarms could not be read."}</p></section>`;
    }
    const isWhole = Object.keys(seen.problems).length === 0;
    if (alarms.length === 0) {
        return html`<section class="card incident is-good" aria-labelledby="incident">
            <h2 id="incident">All quiet</h2>
            <p>${`No alarm is on.${isWhole ? "" : " Not everything could be read, though."}`}</p></section>`;
    }
    const critical = alarms.filter((alarm) => alarm.severity === "critical").length;
    const title = alarms.some((alarm) => alarm.caused_by.length > 0)
        ? "Incident"
        : critical
          ? count(critical, "critical alarm")
          : count(alarms.length, "warning");
    return html`<section class=${`card incident ${critical ? "is-bad" : "is-warn"}`} aria-labelledby="incident">
        <h2 id="incident">${title}</h2>
        <ol class="alarms">${alarms.map(
            (alarm, place) => html`<li key=${alarm.name}><${Alarm} alarm=${alarm} isFirst=${place === 0} /></li>`,
        )}</ol>
    </section>`;
}

// On a phone only the first alarm is open: the others would be below the screen, and it is where to begin.
function Alarm({ alarm, isFirst }) {
    const isNarrow = useIsNarrow();
    const head = html`<h3 class="row">
        <${Flag} kind=${alarm.severity === "critical" ? "bad" : "warn"}>${alarm.severity}<//>
        <span>${alarm.name}</span>
        <span class="quiet">for ${since(alarm.since)}, since ${utc(alarm.since)}</span>
    </h3>`;
    return isNarrow
        ? html`<details class="alarm" open=${isFirst}><summary>${head}</summary><${AboutAlarm} alarm=${alarm} /></details>`
        : html`<div>${head}<${AboutAlarm} alarm=${alarm} /></div>`;
}

function AboutAlarm({ alarm }) {
    const isElsewhere = alarm.command !== null && !/^\.\/darkroom top\b/.test(alarm.command); // which this screen is
    return html`<div><p class="effect">${alarm.effect}</p>
        ${alarm.caused_by.length > 0 && html`<p>Caused by ${alarm.caused_by.join(", ")}.</p>`}
        <p class="first">
            ${isElsewhere &&
            html`<span>First:</span> <${Copy} text=${alarm.command} label=${`the first command for ${alarm.name}`} />`}
            ${alarm.section &&
            html`<span class="quiet">${isElsewhere ? "Then read" : "Read"} <code>${alarm.section}</code>.</span>`}
        </p>
        ${alarm.reason &&
        html`<details><summary>Why CloudWatch raised it</summary><p
            class="quiet">${alarm.reason}</p></details>`}</div>`;
}

function Unread({ problems }) {
    const parts = Object.entries(problems);
    return parts.length > 0 && html`<section class="card is-warn" aria-labelledby="unread">
        <h2 id="unread">What could not be read</h2>
        <ul>${parts.map(([part, why]) => html`<li
            key=${part}><strong>${part.replaceAll("_", " ")}</strong>: ${why}</li>`)}</ul>
    </section>`;
}

// ── A lane: how it is now, and over the last three hours.

function Lane({ lane, past, error, seen }) {
    const { figures, verdict } = useMemo(() => figuresOf(lane, seen), [lane, seen]);
    const [isOpen, setOpen] = useState(false);
    const id = `lane-${lane.lane}`;
    const isCalm = verdict.kind === "good" && lane.backlog === 0 && figures.every((figure) => !figure.kind);
    const isQuiet = isCalm && !hasMoved(past?.lanes[lane.lane]);
    const body = () => html`<dl class="figures">${figures.map(
            (figure) => html`<${Figure} key=${figure.name} ...${figure} />`,
        )}</dl>
        <${Charts} lane=${lane} past=${past} error=${error} />`;
    return html`<section class=${isQuiet ? "card is-quiet" : "card"} aria-labelledby=${id}>
        <h2 id=${id} class="row"><span>Lane ${lane.lane}</span> <${Flag} kind=${verdict.kind}>${verdict.word}<//>
            <span class="quiet">${isQuiet ? "Nothing waits, and nothing fails." : verdict.why}</span></h2>
        ${isQuiet
            ? html`<details onToggle=${(event) => setOpen(event.currentTarget.open)}>
                <summary>Figures and charts<span class="unseen"> of lane ${lane.lane}</span></summary>
                ${isOpen && body()}</details>`
            : body()}
    </section>`;
}

/** Whether the charts of a lane show anything; without that a lane would fold and unfold with each image. */
const hasMoved = (own) => Object.values(own ?? {}).some((values) => values.some((value) => value > 0));

function figuresOf(lane, seen) {
    const queue = seen.queues?.[lane.lane] ?? null;
    const { error_budget: budget, minute } = lane;
    const full = lane.backlog === null || !lane.high_water_mark ? null : (100 * lane.backlog) / lane.high_water_mark;
    const stuckSeconds = Math.max(3 * lane.sla_seconds, 300);
    const oldest = lane.oldest_since === null ? null : (stackNow() - Date.parse(lane.oldest_since)) / 1000;
    const late = lane.late?.number ?? 0;
    const busy = seen.working?.filter((worker) => worker.lane === lane.lane).length ?? null;
    const calm = lane.paused_since ? { kind: "" } : {}; // what waits in a paused lane is no trouble
    const figures = [
        { name: "waiting", value: number(queue?.waiting) },
        { name: "in flight", value: number(queue?.in_flight) },
        { ...oldestOf(oldest, lane, stuckSeconds), ...calm },
        { name: "late", value: lane.late ? counted(lane.late) : "unknown", kind: late ? "warn" : "", ...calm,
          note: `over ${duration(lane.sla_seconds)}` },
        { name: "in per minute", value: number(minute?.in) },
        { name: "out per minute", value: number(minute?.out) },
        { name: "full", value: percent(full, 0), kind: above(full, HALF_FULL_PERCENT, FULL_PERCENT),
          note: lane.high_water_mark === null ? null : `of ${lane.high_water_mark.toLocaleString()}` },
        { name: "clears in", value: lane.clears_in_seconds === null ? "unknown" : duration(lane.clears_in_seconds) },
        { name: "busy workers", value: number(busy), note: `of ${lane.workers}` },
        budgetOf(budget),
        { name: "fast burn", value: times(budget.fast_burn), kind: above(budget.fast_burn, 1, FAST_BURN),
          note: `now, in 5 min and 1 h; pages at ${FAST_BURN}×` },
        { name: "slow burn", value: times(budget.slow_burn), kind: above(budget.slow_burn, 1, SLOW_BURN),
          note: `now, in 30 min and 6 h; warns at ${SLOW_BURN}×` },
        { name: "attempts that fail", value: percent(lane.failing_percent, 0),
          kind: above(lane.failing_percent, 1, FAILING_PERCENT) },
    ];
    return { figures, verdict: verdictOf({ lane, full, oldest, late, stuckSeconds }) };
}

function verdictOf({ lane, full, oldest, late, stuckSeconds }) {
    if (lane.backlog === null && lane.late === null) {
        return { kind: "warn", word: "unknown", why: "It could not be read." };
    }
    if (lane.paused_since) return { kind: "warn", word: "paused", why: `For ${since(lane.paused_since)}.` };
    if (oldest > stuckSeconds) {
        return { kind: "bad", word: "stuck", why: `The oldest image has waited ${duration(oldest)}.` };
    }
    if (full >= FULL_PERCENT) {
        return { kind: "bad", word: "nearly full", why: "Free tenants are turned away when it is full." };
    }
    if (late) return { kind: "warn", word: "late", why: `Images should be done within ${duration(lane.sla_seconds)}.` };
    if (full >= HALF_FULL_PERCENT) return { kind: "warn", word: "filling", why: "More comes in than goes out." };
    return { kind: "good", word: "on time", why: `Images are done within ${duration(lane.sla_seconds)}.` };
}

function oldestOf(oldest, lane, stuckSeconds) {
    const note = `promised in ${duration(lane.sla_seconds)}`;
    if (lane.oldest_seconds === null) return { name: "oldest", value: "unknown", note };
    if (oldest === null) return { name: "oldest", value: "none waits", note };
    const kind = oldest > stuckSeconds ? "bad" : oldest > lane.sla_seconds ? "warn" : "";
    return { name: "oldest", value: duration(oldest), kind, note };
}

function budgetOf(budget) {
    const left = budget.left_percent;
    const name = "error budget left";
    if (budget.ended === null) return { name, value: "unknown" };
    if (left === null) return { name, value: "all", note: "nothing has ended yet" };
    const note = `${count(budget.bad, "bad image")} of ${budget.ended.toLocaleString()} in 28 days; 0.1 % may be`;
    if (left <= 0) return { name, value: `spent ${(1 - left / 100).toFixed(1)}×`, kind: "bad", note };
    return { name, value: percent(left, 1), kind: left < LOW_BUDGET_PERCENT ? "warn" : "", note };
}

const number = (value) => (value === null || value === undefined ? "unknown" : value.toLocaleString());
const percent = (value, digits) => (value === null ? "unknown" : `${value.toFixed(digits)} %`);
const times = (value) => {
    if (value === null) return "unknown";
    if (value === 0) return "none";
    return value < 0.05 ? "<0.1×" : `${value.toFixed(1)}×`;
};
const above = (value, warn, bad) => (value >= bad ? "bad" : value >= warn ? "warn" : "");

function Charts({ lane, past, error }) {
    if (past === null && error) return html`<p class="quiet">The last hours could not be read: ${error.message}</p>`;
    if (past === null) return html`<p class="quiet">Reading the last hours…</p>`;
    const own = past.lanes[lane.lane];
    if (!own) return html`<p class="quiet">Nothing is known of its last hours.</p>`;
    const { minutes } = past;
    return html`<div class="charts">
        <${LineChart} title=${`Lane ${lane.lane}: depth`} unit="messages" minutes=${minutes}
            series=${[{ name: "waiting and in flight", values: own.depth }]}
            limit=${nearby({ name: "full", value: lane.high_water_mark }, own.depth)} format=${inFull} />
        <${LineChart} title=${`Lane ${lane.lane}: oldest`} unit="waits" minutes=${minutes} isSeconds=${true}
            series=${[{ name: "oldest message", values: own.oldest_seconds }]}
            limit=${nearby({ name: "promised", value: lane.sla_seconds }, own.oldest_seconds)} format=${short} />
        <${LineChart} title=${`Lane ${lane.lane}: in and out`} unit="messages per minute" minutes=${minutes}
            series=${[{ name: "in", values: own.in }, { name: "out", values: own.out }]} format=${inFull} />
    </div>`;
}

/** A limit is drawn once the figures come near it; before that it would only make them small. */
const nearby = (limit, values) => (limit.value !== null && Math.max(0, ...values) > limit.value / 4 ? limit : null);
const inFull = (value) => value.toLocaleString();

function short(seconds) {
    if (seconds < 60) return `${seconds} s`;
    return seconds < 7200 ? `${+(seconds / 60).toFixed(1)} min` : `${+(seconds / 3600).toFixed(1)} h`;
}

// ── Around the lanes.

/** How many images are retried, and how many dead letters there are; null: not known. */
function failuresOf({ retrying, dead_letters: dead }) {
    const deadLetters = dead === null ? null : Object.values(dead.queues).reduce((sum, depth) => sum + depth, 0);
    const images = retrying?.reduce((sum, defect) => sum + defect.images.length, 0) ?? null;
    return { deadLetters, images };
}

function Failing({ seen }) {
    const { retrying, dead_letters: dead } = seen;
    const { deadLetters, images } = failuresOf(seen);
    return html`<section class="card" aria-labelledby="failing">
        <h2 id="failing">Failures</h2>
        <p class=${images ? "is-warn" : undefined}>${retriedOf(images)}</p>
        <p class=${deadLetters || dead?.coming.number ? "is-bad" : undefined}>${deadLettersOf(deadLetters, dead)}</p>
        ${retrying?.length > 0 &&
        html`<div><h3>Still retried</h3><ul class="plain">${retrying.slice(0, 5).map(
            (defect) => html`<li
                key=${defect.fingerprint}><strong>${defect.images.length}×</strong> ${defect.error_type}: ${oneLine(defect.message)}
                <br /><code>${defect.frame ?? defect.fingerprint}</code></li>`,
        )}</ul></div>`}
        ${dead?.causes.length > 0 &&
        html`<div><h3>Dead letters</h3><ul class="plain">${dead.causes.slice(0, 5).map(
            (cause) => html`<li
                key=${`${cause.queue} ${cause.fingerprint ?? cause.cause}`}><strong>${cause.dead_letters}×</strong> ${cause.cause} in ${cause.queue}
                ${cause.frame && html`<br /><code>${cause.frame}</code>`}</li>`,
        )}</ul></div>`}
        ${(images > 0 || deadLetters > 0 || dead?.coming.number > 0) && html`<p><a href="#/operate/failures">Look at the failures</a></p>`}
    </section>`;
}

function retriedOf(images) {
    if (images === null) return "What is retried is not known.";
    if (images === 0) return "Nothing that failed is retried.";
    return `${count(images, "image")} failed and ${images === 1 ? "is" : "are"} retried.`;
}

function deadLettersOf(deadLetters, dead) {
    if (deadLetters === null) return "Dead letters could not be counted.";
    const coming = dead.coming.number ? ` ${counted(dead.coming)} coming within a minute.` : "";
    if (deadLetters === 0) return coming ? `Dead letters:${coming}` : "There are no dead letters.";
    const full = Object.entries(dead.queues).filter(([, depth]) => depth);
    const where = full.map(([queue, depth]) => `${queue.replaceAll("_", " ")} ${depth}`).join(", ");
    return `${count(deadLetters, "dead letter")}: ${where}.${coming}`;
}

function Functions({ seen }) {
    const { function_errors: errors } = seen;
    if (errors === null) return html`<section class="card" aria-labelledby="functions"><h2 id="functions">Functions</h2>
        <p>Their errors are not known.</p></section>`;
    const those = Object.entries(errors.functions);
    return html`<section class="card" aria-labelledby="functions">
        <h2 id="functions">Functions</h2>
        <${Table} caption=${`Errors in the last ${errors.minutes} minutes`} isNarrow=${true}
            heads=${["function", numeric("errors")]}
            rows=${those.map(([name, number]) => [name, html`<strong
                class="is-bad">${number.toLocaleString()}</strong>`])} />
    </section>`;
}

/** What the sweeper is late with, by kind; there is a card only while something is. */
function Sweeper({ seen }) {
    const late = Object.entries(seen.sweeper_late_seconds).sort(([, a], [, b]) => b - a);
    return html`<section class="card" aria-labelledby="sweeper">
        <h2 id="sweeper">Sweeper</h2>
        <${Table} caption="What it could not do in time" isNarrow=${true} heads=${["kind", numeric("late by")]}
            rows=${late.map(([kind, seconds]) => [kind.replace("_", " "), html`<strong
                class="is-bad">${duration(seconds)}</strong>`])} />
    </section>`;
}

function Tenants({ seen }) {
    const shares = seen.lanes.flatMap((lane) => (lane.tenants ?? []).map((share) => ({ lane: lane.lane, ...share })));
    shares.sort((one, other) => other.is_noisy - one.is_noisy || other.capacity_percent - one.capacity_percent);
    return html`<section class="card" aria-labelledby="tenants">
        <h2 id="tenants">Tenants</h2>
        ${seen.lanes.some((lane) => lane.tenants === null) && html`<p>What they took of the lanes is not known.</p>`}
        ${shares.length > 0 && html`<${Table} caption="What they took of their lanes in a quarter of an hour"
            keys=${shares.map((share) => `${share.lane} ${share.tenant}`)}
            heads=${["tenant", "lane", numeric("% of its work"), numeric("% of capacity"), numeric("× median")]}
            rows=${shares.map((share) => [
                html`<a href=${`#/operate/tenants/${encodeURIComponent(share.tenant)}`}>${share.tenant}</a>${
                    share.is_noisy && html` <${Flag} kind="warn">noisy<//>`}`,
                share.lane,
                share.work_percent,
                share.capacity_percent,
                share.times_median ?? "",
            ])} />`}
    </section>`;
}

function Scheduled({ seen }) {
    const { scheduled } = seen;
    return html`<section class="card" aria-labelledby="scheduled">
        <h2 id="scheduled">Scheduled</h2>
        ${scheduled === null
            ? html`<p>What waits for its time is not known.</p>`
            : html`<div><dl class="figures">
                <${Figure} name="wait for their time" value=${counted(scheduled.images)} />
                <${Figure} name="within an hour" value=${counted(scheduled.within_hour)} />
                <${Figure} name="within a day" value=${counted(scheduled.within_day)} />
                <${Figure} name="next" value=${scheduled.next_at ? when(scheduled.next_at) : "none"} />
                <${Figure} name="overdue" value=${number(scheduled.overdue)} kind=${scheduled.overdue ? "warn" : ""}
                    note=${scheduled.overdue ? `up to ${duration(scheduled.latest_overdue_seconds)}` : null} />
            </dl><p><a href="#/operate/delays">Look at the scheduled images</a></p></div>`}
    </section>`;
}

const CONDITIONS = { healthy: "good", paused: "warn", failing: "warn", resting: "warn", disabled: "bad" };

function Endpoints({ seen }) {
    const { webhooks } = seen;
    return html`<section class="card" aria-labelledby="endpoints">
        <h2 id="endpoints">Webhooks</h2>
        ${webhooks === null
            ? html`<p>How they fare is not known.</p>`
            : html`<div><p class="row">${Object.entries(webhooks.conditions).filter(([, number]) => number).map(
                    ([condition, number]) => html`<${Flag} key=${condition}
                        kind=${CONDITIONS[condition] ?? ""}>${number} ${condition}<//>`,
                )}</p>
                ${webhooks.unhealthy.length > 0 &&
                html`<ul class="plain">${webhooks.unhealthy.map(
                    (endpoint) => html`<li key=${endpoint.id}><${Flag}
                        kind=${CONDITIONS[endpoint.condition]}>${endpoint.condition}<//> ${endpoint.url}${" "}
                        <span class="quiet">of ${endpoint.tenant}${endpoint.since ? `, for ${since(endpoint.since)}` : ""}; ${counted(endpoint.deliveries)} to be sent</span></li>`,
                )}</ul>`}
                <p>${firstAttemptsOf(webhooks)}</p>
                <p><a href="#/operate/webhooks">Look at the webhooks</a></p></div>`}
    </section>`;
}

/** How first attempts do, in a sentence; nothing while none has counted. */
function firstAttemptsOf({ first_attempts: first }) {
    if (!first?.counted) return "";
    const good = percent(100 * (1 - first.bad / first.counted), 2);
    const took = first.p99_seconds === null ? "" : `; p50 ${first.p50_seconds} s, p99 ${first.p99_seconds} s`;
    const twice = first.repeated ? `; ${first.repeated.toLocaleString()} perhaps sent twice` : "";
    const { name, value } = budgetOf({ ...first, ended: first.counted });
    return `First attempts in 28 days: ${good} good, ${name}: ${value}${took}${twice}.`;
}

function Workers({ seen }) {
    const { working, looked_at: looked } = seen;
    return html`<section class="card wide" aria-labelledby="workers">
        <h2 id="workers">Busy workers</h2>
        ${working.length === 0
            ? html`<p>${NONE_IS_BUSY}</p>`
            : html`<${Table}
                caption=${`Images in work${looked.is_all ? "" : `, of the ${looked.images} that have waited longest`}`}
                keys=${working.map((worker) => worker.id)}
                heads=${["image", "lane", numeric("attempt"), numeric("for"), "lease", "tenant", "request"]}
                rows=${working.map((worker) => [
                    html`<${ImageLink} id=${worker.id} />`,
                    worker.lane,
                    worker.attempt,
                    worker.since ? since(worker.since) : "unknown",
                    leaseOf(worker),
                    worker.tenant,
                    html`<code>${worker.request_id ?? "none"}</code>`,
                ])} />`}
        ${seen.unreadable_rows > 0 &&
        html`<p class="is-warn">${count(seen.unreadable_rows, "row")} of a newer version cannot be read: run${" "}
            <code>./darkroom doctor</code>.</p>`}
    </section>`;
}

function leaseOf(worker) {
    if (worker.lease_lapsed) {
        const back = worker.returns_by ? `, the sweeper takes it by ${utc(worker.returns_by)}` : "";
        return html`<strong class="is-warn">lapsed: its worker was lost${back}</strong>`;
    }
    return worker.lease_until ? `ends ${when(worker.lease_until)}` : "none";
}

const isEmpty = ({ waiting, in_flight: inFlight, delayed }) => waiting === 0 && inFlight === 0 && delayed === 0;

function Queues({ seen }) {
    const queues = Object.entries(seen.queues);
    const full = queues.filter(([, queue]) => !isEmpty(queue));
    return html`<section class="card" aria-labelledby="queues">
        <h2 id="queues">Queues</h2>
        <${Table} caption="Messages in each queue that is not empty" isCaptionUnseen=${true} isNarrow=${true}
            keys=${full.map(([name]) => name)}
            heads=${["queue", ...["waiting", "in flight", "delayed"].map(numeric)]}
            rows=${full.map(([name, queue]) => [name, ...[queue.waiting, queue.in_flight, queue.delayed].map(number)])} />
        ${full.length < queues.length && html`<p class="quiet">${count(queues.length - full.length, "other queue")}${" "}
            ${queues.length - full.length === 1 ? "is" : "are"} empty.</p>`}
    </section>`;
}

// ── What is quiet: a line instead of a card.

const NONE_IS_BUSY = "None is busy.";

/** What is around the lanes; `quietOf` says why a part needs no card, or nothing (null) if it does. */
const AROUND = [
    { title: "Failures", at: "failures", Panel: Failing, quietOf: quietFailures },
    { title: "Functions", Panel: Functions, quietOf: quietFunctions },
    { title: "Sweeper", Panel: Sweeper, quietOf: quietSweeper },
    { title: "Tenants", at: "tenants", Panel: Tenants, quietOf: quietTenants },
    { title: "Scheduled", at: "delays", Panel: Scheduled, quietOf: quietScheduled },
    ...(has("webhooks") ? [{ title: "Webhooks", at: "webhooks", Panel: Endpoints, quietOf: quietWebhooks }] : []),
    { title: "Queues", Panel: Queues, quietOf: quietQueues },
    { title: "Busy workers", Panel: Workers, quietOf: quietWorkers },
];

function quietFailures(seen) {
    const { images, deadLetters } = failuresOf(seen);
    return images === 0 && deadLetters === 0 && !seen.dead_letters.coming.number ? "Nothing that failed is retried, and there are no dead letters." : null;
}

function quietFunctions({ function_errors: errors }) {
    const isQuiet = errors !== null && Object.keys(errors.functions).length === 0;
    return isQuiet ? `None had an error in the last ${errors.minutes} minutes.` : null;
}

function quietSweeper({ sweeper_late_seconds: late }) {
    if (late === null) return "What it is late with is not known.";
    return Object.keys(late).length === 0 ? "It keeps up." : null;
}

function quietTenants({ lanes }) {
    if (lanes.some((lane) => lane.tenants === null)) return null;
    return lanes.every((lane) => lane.tenants.length === 0) ? "No lane has worked for anybody lately." : null;
}

function quietScheduled({ scheduled }) {
    return scheduled?.images.number === 0 && !scheduled.overdue ? "No image waits for its time." : null;
}

function quietWebhooks({ webhooks }) {
    if (webhooks === null || webhooks.unhealthy.length > 0) return null;
    const { healthy = 0, ...others } = webhooks.conditions;
    if (Object.values(others).some((number) => number > 0)) return null;
    return healthy === 0
        ? "No tenant has a webhook."
        : `${healthy.toLocaleString()} healthy. ${firstAttemptsOf(webhooks)}`.trim();
}

function quietQueues({ queues }) {
    if (queues === null) return "They could not be read.";
    return Object.values(queues).every(isEmpty) ? `All ${Object.keys(queues).length} are empty.` : null;
}

function quietWorkers({ working, unreadable_rows: unreadable }) {
    if (working === null) return "Their images could not be read.";
    return working.length === 0 && !(unreadable > 0) ? NONE_IS_BUSY : null;
}

function Quiet({ seen }) {
    const those = AROUND.flatMap(({ title, at, quietOf }) => {
        const why = quietOf(seen);
        return why === null ? [] : [{ title, at, why }];
    });
    return those.length > 0 && html`<section class="card wide is-quiet" aria-label="What is quiet">
        <dl class="quiet-parts">${those.map(({ title, at, why }) => html`<div key=${title}>
            <dt>${at ? html`<a href=${`#/operate/${at}`}>${title}</a>` : title}</dt><dd>${why}</dd></div>`)}</dl>
    </section>`;
}

function Cost() {
    return html`<p class="quiet cost">${settings.local
        ? "Reading this stack costs nothing: it is on this machine."
        : `Open, this screen asks AWS as often as \`darkroom top\` does: about $0.03 per hour at list prices, up to $0.08
           while lanes are full, and $0.01 for the charts. Hidden or paused, it asks nothing.`}</p>`;
}
