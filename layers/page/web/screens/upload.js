// Sends files, and shows how each one comes along.
import { html } from "../vendor/preact.js";

/** The screen that the page begins with. */
export default function Upload() {
    return html`<h1>Upload</h1>`;
}
