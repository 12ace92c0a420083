// Charts as SVG: lines over the minutes of a history, and bars; each with its axes, its unit, and the same as a table.
import { html, useLayoutEffect, useRef, useState } from "../../vendor/preact.js";
import { numeric, Table } from "./table.js";

const USUAL_WIDTH = 380;
const HEIGHT = 168;
const LEFT = 46;
const RIGHT = 8;
const TOP = 10;
const BOTTOM = 24;

const STEPS = [1, 2, 5];

/** Round ticks from 0 that cover `most`: at most five of them, whole numbers. */
export function ticksUpTo(most) {
    let step = 1;
    for (let power = 1; ; power *= 10) {
        step = STEPS.map((candidate) => candidate * power).find((candidate) => most / candidate <= 4);
        if (step !== undefined) break;
    }
    return Array.from({ length: Math.max(1, Math.ceil(most / step)) + 1 }, (_, place) => place * step);
}

/** The same for seconds: ticks that are whole seconds, minutes or hours. */
export function secondTicksUpTo(most) {
    const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400, 172800, 604800];
    const step = steps.find((candidate) => most / candidate <= 4) ?? 604800 * Math.ceil(most / (4 * 604800));
    return Array.from({ length: Math.max(1, Math.ceil(most / step)) + 1 }, (_, place) => place * step);
}

/** The pieces of a series that were measured, as lists of places: where nothing was, the line has a gap. */
export function pieces(values) {
    const stretches = [];
    values.forEach((value, place) => {
        if (value === null) return;
        if (stretches.length && stretches.at(-1).at(-1) === place - 1) stretches.at(-1).push(place);
        else stretches.push([place]);
    });
    return stretches;
}

/**
 * The width of an element in pixels, so that a chart's words are as large as those around it.
 *
 * @returns {[{current: any}, number]}
 */
function useWidth() {
    const element = useRef(null);
    const [width, setWidth] = useState(USUAL_WIDTH);
    useLayoutEffect(() => {
        const observer = new ResizeObserver(([{ contentRect }]) =>
            setWidth(Math.max(160, Math.round(contentRect.width))));
        observer.observe(element.current);
        return () => observer.disconnect();
    }, []);
    return [element, width];
}

const clock = (instant) => {
    const at = new Date(instant);
    return `${String(at.getHours()).padStart(2, "0")}:${String(at.getMinutes()).padStart(2, "0")}`;
};

/**
 * Up to two series over the minutes of a history. A value of null is a gap.
 *
 * @param {{title: string, unit: string, minutes: string[], series: {name: string, values: (number|null)[]}[],
 *          limit?: {name: string, value: number}|null, format?: (value: number) => string, isSeconds?: boolean}} properties
 *     `limit` is drawn as a line of its own, and `format` writes a value
 */
export function LineChart({ title, unit, minutes, series, limit = null, format = String, isSeconds = false }) {
    const [place, setPlace] = useState(null);
    const [figure, width] = useWidth();
    const measured = series.flatMap((line) => line.values).filter((value) => value !== null);
    const most = Math.max(0, ...measured);
    const ticks = (isSeconds ? secondTicksUpTo : ticksUpTo)(Math.max(1, most, limit?.value ?? 0));
    const last = minutes.length - 1;
    const across = (at) => LEFT + (last <= 0 ? 0 : (at / last) * (width - LEFT - RIGHT));
    const up = (value) => HEIGHT - BOTTOM - (value / ticks.at(-1)) * (HEIGHT - TOP - BOTTOM);
    const marks = marksOf(minutes, width);
    const look = (event) => {
        const box = event.currentTarget.getBoundingClientRect();
        const within = ((event.clientX - box.left) / box.width) * width;
        setPlace(Math.max(0, Math.min(last, Math.round(((within - LEFT) / (width - LEFT - RIGHT)) * last))));
    };
    const shown = place ?? latestOf(series);
    return html`<figure class="chart" ref=${figure}>
        <figcaption>
            <span class="title">${title} <span class="quiet">(${unit})</span></span>
            <span class="quiet">${shown === null
                ? "nothing was measured"
                : `${clock(minutes[shown])}: ${series.map(
                      (line) => `${series.length > 1 ? `${line.name} ` : ""}${wordsOf(line.values[shown], format)}`,
                  ).join(", ")}`}</span>
        </figcaption>
        <svg viewBox=${`0 0 ${width} ${HEIGHT}`} role="img"
            aria-label=${summary({ title, unit, minutes, series, format })}
            onPointerMove=${look} onPointerLeave=${() => setPlace(null)}>
            ${ticks.map(
                (tick) => html`<line class="grid" x1=${LEFT} x2=${width - RIGHT} y1=${up(tick)} y2=${up(tick)} />
                    <text x=${LEFT - 6} y=${up(tick) + 4} text-anchor="end">${format(tick)}</text>`,
            )}
            ${marks.map(
                (at) => html`<line
                    class="grid" x1=${across(at)} x2=${across(at)} y1=${HEIGHT - BOTTOM} y2=${HEIGHT - BOTTOM + 4} />
                    <text x=${across(at)} y=${HEIGHT - 6} text-anchor="middle">${clock(minutes[at])}</text>`,
            )}
            ${limit &&
            html`<line class="limit" x1=${LEFT} x2=${width - RIGHT} y1=${up(limit.value)} y2=${up(limit.value)} />
                <text class="limit-name" x=${width - RIGHT} y=${up(limit.value) - 4}
                    text-anchor="end">${limit.name}</text>`}
            ${place !== null &&
            html`<line class="cursor" x1=${across(place)} x2=${across(place)} y1=${TOP} y2=${HEIGHT - BOTTOM} />`}
            ${series.map((line, number) => pieces(line.values).map((piece) => piece.length === 1
                ? html`<circle class=${`dot dot-${number + 1}`} cx=${across(piece[0])} cy=${up(line.values[piece[0]])}
                    r="2" />`
                : html`<path class=${`line line-${number + 1}`}
                    d=${`M${piece.map((at) => `${across(at).toFixed(1)},${up(line.values[at]).toFixed(1)}`).join("L")}`} />`,
            ))}
        </svg>
        ${series.length > 1 &&
        html`<p class="legend quiet" aria-hidden="true">${series.map(
            (line, number) => html`<span><svg viewBox="0 0 24 8" width="24" height="8"><path
                class=${`line line-${number + 1}`} d="M0,4L24,4" /></svg> ${line.name}</span>`,
        )}</p>`}
        <${AsTable} title=${title} unit=${unit} minutes=${minutes} series=${series} format=${format} />
    </figure>`;
}

// Only once it is opened: hundreds of rows that are drawn again every few seconds cost time.
function AsTable({ title, unit, minutes, series, format }) {
    const [isOpen, setOpen] = useState(false);
    return html`<details onToggle=${(event) => setOpen(event.currentTarget.open)}>
        <summary>As a table<span class="unseen">: ${title}</span></summary>
        ${isOpen &&
        html`<${Table} caption=${`${title} (${unit}), minute by minute, the newest first`} isCaptionUnseen=${true}
            isNarrow=${true}
            heads=${["minute", ...series.map((line) => numeric(line.name))]}
            rows=${minutes.map((minute, at) => [clock(minute), ...series.map((line) => wordsOf(line.values[at], format))]).reverse()} />`}
    </details>`;
}

const wordsOf = (value, format) => (value === null || value === undefined ? "not measured" : format(value));

function latestOf(series) {
    const places = series.flatMap((line) => line.values.findLastIndex((value) => value !== null));
    const latest = Math.max(-1, ...places);
    return latest === -1 ? null : latest;
}

function summary({ title, unit, minutes, series, format }) {
    if (!minutes.length) return `${title}: no minutes.`;
    const parts = series.map((line) => {
        const values = line.values.filter((value) => value !== null);
        if (!values.length) return `${line.name}: not measured`;
        const most = Math.max(...values);
        return `${line.name}: ${format(values.at(-1))} at the end, ${format(most)} at most, at ${clock(
            minutes[line.values.indexOf(most)],
        )}`;
    });
    return `${title} in ${unit} from ${clock(minutes[0])} to ${clock(minutes.at(-1))}. ${parts.join("; ")}.`;
}

/** The places of the labels: full minutes, hours or half hours that fit, with room for half a label at both ends. */
function marksOf(minutes, width) {
    const most = Math.floor(width / 56);
    const every = 60_000 * ([5, 10, 15, 30, 60, 120].find((length) => minutes.length / length <= most) ?? 240);
    const room = Math.ceil((minutes.length * 18) / width);
    return minutes.flatMap((minute, at) =>
        at >= room && at < minutes.length - room && Date.parse(minute) % every === 0 ? [at] : [],
    );
}

/**
 * Bars of up to two series, one beside the other over each label. The table that it belongs to says the same.
 *
 * @param {{title: string, unit: string, bars: {label: string, values: number[]}[], names: string[]}} properties
 */
export function BarChart({ title, unit, bars, names }) {
    const [figure, width] = useWidth();
    const ticks = ticksUpTo(Math.max(1, ...bars.flatMap((bar) => bar.values)));
    const up = (value) => HEIGHT - BOTTOM - (value / ticks.at(-1)) * (HEIGHT - TOP - BOTTOM);
    const room = (width - LEFT - RIGHT) / Math.max(1, bars.length);
    const wide = Math.min(28, (room * 0.7) / names.length);
    const every = Math.max(1, Math.ceil(48 / room));
    const largest = bars.reduce((most, bar) => (sum(bar) > sum(most ?? bar) ? bar : (most ?? bar)), null);
    return html`<figure class="chart" ref=${figure}>
        <figcaption><span class="title">${title} <span class="quiet">(${unit})</span></span></figcaption>
        <svg viewBox=${`0 0 ${width} ${HEIGHT}`} role="img" aria-label=${`${title}: ${
            bars.length === 0 ? "nothing" : `from ${bars[0].label} to ${bars.at(-1).label}, most on ${largest.label}: ${sum(largest)}`
        }. The table below says the same.`}>
            ${ticks.map(
                (tick) => html`<line class="grid" x1=${LEFT} x2=${width - RIGHT} y1=${up(tick)} y2=${up(tick)} />
                    <text x=${LEFT - 6} y=${up(tick) + 4} text-anchor="end">${tick.toLocaleString()}</text>`,
            )}
            ${bars.map((bar, place) => {
                const middle = LEFT + (place + 0.5) * room;
                return html`<g>
                    ${bar.values.map((value, number) => html`<rect class=${`bar bar-${number + 1}`} width=${wide}
                        x=${middle + (number - names.length / 2) * wide} y=${up(value)} height=${up(0) - up(value)}>
                        <title>${`${bar.label}, ${names[number]}: ${value}`}</title></rect>`)}
                    ${place % every === 0 &&
                    html`<text x=${middle} y=${HEIGHT - 6} text-anchor="middle">${bar.label}</text>`}
                </g>`;
            })}
        </svg>
        ${names.length > 1 &&
        html`<p class="legend quiet" aria-hidden="true">${names.map(
            (name, number) => html`<span><svg viewBox="0 0 12 12" width="12" height="12"><rect width="12" height="12"
                class=${`bar bar-${number + 1}`} /></svg> ${name}</span>`,
        )}</p>`}
    </figure>`;
}

const sum = (bar) => bar.values.reduce((total, value) => total + value, 0);
