// Text of the API's description: paragraphs, code between backticks, and links; all else stays as it is.
import { html } from "../../vendor/preact.js";

const PARTS = /(`[^`]+`|https?:\/\/[^\s)<>"']+[^\s)<>"'.,])/;

/** @param {{text: string}} properties  without markup, but for backticks */
export const Prose = ({ text }) => {
    const paragraphs = String(text ?? "").split(/\n\s*\n/).filter((paragraph) => paragraph.trim());
    return paragraphs.map((paragraph) => html`<p><${Words} text=${paragraph} /></p>`);
};

/** One paragraph of it. */
export const Words = ({ text }) =>
    String(text ?? "").split(PARTS).map((part, index) => {
        if (index % 2 === 0) return part;
        if (part.startsWith("`")) return html`<code>${part.slice(1, -1)}</code>`;
        return html`<a href=${part} rel="noreferrer" target="_blank">${part}</a>`;
    });
