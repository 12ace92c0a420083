// Tables and small marks that the operator's screens share.
import { html } from "../../vendor/preact.js";

/**
 * A table with a caption, which scrolls by itself where it is too wide.
 *
 * @param {{caption: string, heads: (string|{label: string, isNumber?: boolean, isUnseen?: boolean})[], rows: any[][],
 *          isCaptionUnseen?: boolean, isNarrow?: boolean, keys?: string[]}} properties
 *     the first cell of each row is the row's header; on a phone each row is a block, unless the table `isNarrow`
 */
export function Table({ caption, heads, rows, isCaptionUnseen = false, isNarrow = false, keys = [] }) {
    const columns = heads.map((head) => (typeof head === "string" ? { label: head } : head));
    return html`<div class="scroll" role="region" aria-label=${caption} tabindex="0"><table role="table"
        class=${isNarrow ? "figures" : "figures stacks"}>
        <caption class=${isCaptionUnseen ? "unseen" : undefined}>${caption}</caption>
        <thead role="rowgroup"><tr role="row">${columns.map(
            (column) => html`<th scope="col" role="columnheader" class=${column.isNumber ? "number" : undefined}>
                <span class=${column.isUnseen ? "unseen" : undefined}>${column.label}</span></th>`,
        )}</tr></thead>
        <tbody role="rowgroup">${rows.map(
            (cells, row) => html`<tr key=${keys[row]} role="row">${cells.map((cell, place) =>
                place === 0
                    ? html`<th scope="row" role="rowheader">${cell}</th>`
                    : html`<td role="cell" data-label=${columns[place]?.isUnseen ? undefined : columns[place]?.label}
                        class=${columns[place]?.isNumber ? "number" : undefined}>${cell}</td>`,
            )}</tr>`,
        )}</tbody>
    </table></div>`;
}

/** The head of a column of numbers. */
export const numeric = (label) => ({ label, isNumber: true });

/** The head of the column with a row's actions. */
export const ACTIONS = { label: "actions", isUnseen: true };

/** A word in a coloured frame; `kind` is "good", "warn", "bad", "info" or "". The word says it without the colour. */
export const Flag = ({ kind = "", children }) => html`<span
    class=${kind ? `flag flag-${kind}` : "flag"}>${children}</span>`;

/** A figure with its name; `kind` colours it, and `note` says in words what the colour means. */
export const Figure = ({ name, value, kind = "", note = null }) => html`<div class=${`figure ${kind && `is-${kind}`}`}>
    <dt>${name}</dt>
    <dd><span class="value">${value}</span>${note && html` <span class="note-of">${note}</span>`}</dd>
</div>`;

/** Text that came from elsewhere, on one line. */
export const oneLine = (text) => String(text ?? "").split(/\s+/).join(" ").trim();

/** "200", "200 or more": what was counted up to a bound. */
export const counted = ({ number, is_all }) => `${number.toLocaleString()}${is_all ? "" : " or more"}`;

/** An image's id as a link to its life. */
export const ImageLink = ({ id }) => html`<a class="mono" href=${`#/operate/images/${id}`}>${id}</a>`;
