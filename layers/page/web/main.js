// Starts the page: asks who is calling, and shows the screen that the address names.
import { html } from "./vendor/preact.js";
import { credential, forget, has, needsCredential, settings } from "./core.js";
import { KeyForm, Later, start } from "./parts.js";

// With `part`, only a stack with that optional part has the screen.
const SCREENS = [
    { path: /^\/$/, at: "#/", title: "Upload", load: () => import("./screens/upload.js") },
    { path: /^\/browse$/, at: "#/browse", title: "Browse", load: () => import("./screens/browse.js") },
    { path: /^\/images\/([0-9a-z]+)$/, parent: "#/browse", title: "Image", load: () => import("./screens/image.js") },
    { path: /^\/batches$/, at: "#/batches", title: "Batches", part: "bulk", load: () => import("./screens/batches.js") },
    {
        path: /^\/webhooks$/,
        at: "#/webhooks",
        title: "Webhooks",
        part: "webhooks",
        load: () => import("./screens/webhooks.js"),
    },
    {
        path: /^\/webhooks\/([0-9A-Za-z_]+)$/,
        parent: "#/webhooks",
        title: "Webhook",
        part: "webhooks",
        load: () => import("./screens/webhook.js"),
    },
    { path: /^\/api$/, at: "#/api", title: "API", load: () => import("./screens/reference.js") },
].filter(({ part }) => part === undefined || has(part));

function gate(reason) {
    if (settings.access === "iam") {
        return html`<div class="card narrow"><h1>This page cannot be used here</h1>
            <p>This stack answers only requests that are signed with AWS credentials (Access=iam), and a browser has none.
            Use the command line, or deploy the stack with Access=keys.</p></div>`;
    }
    if (!needsCredential()) return null;
    return settings.access === "jwt"
        ? html`<${Later} load=${() => import("./screens/sign-in.js")} properties=${{ reason }} />`
        : html`<${KeyForm} reason=${reason} />`;
}

const leave = () =>
    credential() !== null &&
    html`<button type="button" class="small" onClick=${() => forget()}>${settings.access === "jwt" ? "Sign out" : "Forget the key"}</button>`;

start({ screens: SCREENS, gate, leave });
