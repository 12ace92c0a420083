// Starts the operators' page, in the frame of the page that the stack itself serves.
import { html } from "./vendor/preact.js";
import { credential, keep } from "./core.js";
import { start } from "./parts.js";
import { words } from "./requests.js";

const SCREENS = [
    { path: /^\/(?:operate(?:\/(.*))?)?$/, at: "#/", title: "Operate", load: () => import("./screens/operate.js") },
];

words.noAnswer =
    "No answer came. If `darkroom operate` has ended, start it again and open the address that it prints.";
words.gateways = { 401: "Open the address that `darkroom operate` printed: it has this run's token." };

function gate(reason) {
    if (credential() !== null) return null;
    return html`<div class="card narrow"><h1>Open the whole address</h1>
        <p>${reason ?? "The address that the command printed has this run's token. Open that one."}</p></div>`;
}

// An operator's token comes in the fragment, which no server sees; it leaves the address at once. A later run on the same
// port has another one: opening its address in the same tab changes nothing but the fragment.
function takeToken() {
    const token = /^#token=([\w-]+)$/.exec(location.hash)?.[1];
    if (!token) return;
    keep(token);
    history.replaceState(null, "", `${location.pathname}#/`);
}

start({ screens: SCREENS, gate, follow: takeToken });
