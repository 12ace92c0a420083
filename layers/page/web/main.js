// Starts the page: asks who is calling, and shows the screen that the address names.
import { html, render, useEffect, useErrorBoundary, useRef, useState } from "./vendor/preact.js";
import { credential, forget, has, keep, listenToSession, needsCredential, settings } from "./core.js";
import { KeyForm, NotLoaded, Trouble } from "./parts.js";

// Each screen: its place in the address, its name in the menu (none: it is reached from another), and its module;
// with `part`, only a stack with that optional part has it.
const SCREENS = settings.operate
    ? [{ path: /^\/(?:operate(?:\/(.*))?)?$/, at: "#/", title: "Operate", load: () => import("./screens/operate.js") }]
    : [
          { path: /^\/$/, at: "#/", title: "Upload", load: () => import("./screens/upload.js") },
          { path: /^\/browse$/, at: "#/browse", title: "Browse", load: () => import("./screens/browse.js") },
          { path: /^\/images\/([0-9a-z]+)$/, parent: "#/browse", title: "Image", load: () => import("./screens/image.js") },
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

/** The screen that the address names, its arguments, and its query. */
function placeOf(hash) {
    const [path, query = ""] = (hash.replace(/^#/, "") || "/").split("?");
    for (const screen of SCREENS) {
        const match = screen.path.exec(path);
        if (match) return { screen, argument: match[1] ?? null, query: new URLSearchParams(query) };
    }
    return { screen: null, argument: null, query: new URLSearchParams() };
}

function Page() {
    const [hash, setHash] = useState(location.hash);
    const [session, setSession] = useState({ reason: null });
    useEffect(() => listenToSession((reason) => setSession({ reason })), []);
    useEffect(() => {
        const follow = () => {
            takeToken();
            setHash(location.hash);
        };
        addEventListener("hashchange", follow);
        return () => removeEventListener("hashchange", follow);
    }, []);
    const place = placeOf(hash);
    const shown = useRef({ screen: null, from: null });
    if (shown.current.screen !== place.screen) shown.current = { screen: place.screen, from: shown.current.screen };
    return html`
        <a class="skip" href="#content" onClick=${skip}>Skip to the content</a>
        <header>
            <a class="brand" href="#/"><img src=${new URL("./icon.svg", import.meta.url).pathname} alt="" width="24" height="24" /> Darkroom</a>
            <nav aria-label="Screens">
                ${SCREENS.filter((screen) => screen.at).map(
                    (screen) => html`<a href=${screen.at}
                        aria-current=${(place.screen?.at ?? place.screen?.parent) === screen.at ? "page" : undefined}
                        >${screen.title}</a>`,
                )}
            </nav>
            ${credential() !== null && !settings.operate &&
            html`<button type="button" class="small" onClick=${() => forget()}>${settings.access === "jwt" ? "Sign out" : "Forget the key"}</button>`}
        </header>
        <main id="content" tabindex="-1">
            <${Content} place=${{ ...place, from: shown.current.from }} reason=${session.reason} />
        </main>
        <div id="announcements" class="unseen" role="status" aria-live="polite"></div>
    `;
}

function skip(event) {
    event.preventDefault();
    document.getElementById("content").focus();
}

function Content({ place, reason }) {
    if (settings.access === "iam" && !settings.operate) {
        return html`<div class="card narrow"><h1>This page cannot be used here</h1>
            <p>This stack answers only requests that are signed with AWS credentials (Access=iam), and a browser has none.
            Use the command line, or deploy the stack with Access=keys.</p></div>`;
    }
    if (needsCredential()) {
        if (settings.operate) {
            return html`<div class="card narrow"><h1>Open the whole address</h1>
                <p>${reason ?? "The address that the command printed has this run's token. Open that one."}</p></div>`;
        }
        return settings.access === "jwt"
            ? html`<${Later} load=${() => import("./screens/sign-in.js")} properties=${{ reason }} />`
            : html`<${KeyForm} reason=${reason} />`;
    }
    if (place.screen === null) {
        return html`<div class="card narrow"><h1>There is no such screen</h1><p><a href="#/">Start here</a>.</p></div>`;
    }
    const { screen, argument, query, from } = place;
    const key = `${screen.title} ${argument}`;
    return html`<${Later} key=${key} title=${screen.title} load=${screen.load} 
        properties=${{ argument, query, from: from?.title ?? null }} />`;
}

/** The default component of a module that is loaded when it is first needed. */
function Later({ load, title, properties }) {
    const [Screen, setScreen] = useState(null);
    const [isMissing, setMissing] = useState(false);
    const [broken, repair] = useErrorBoundary();
    const first = useRef(isFirst);
    useEffect(() => {
        load().then((module) => setScreen(() => module.default), () => setMissing(true));
        if (title) document.title = `${title} · Darkroom`;
        // A new screen is where reading goes on; the first one is where the page begins anyway.
        if (!first.current) document.getElementById("content").focus();
        isFirst = false;
    }, []);
    if (broken) {
        console.error(broken);
        return html`<${Trouble} error=${new Error("This screen has a fault. What was accepted is not affected.")} again=${repair} />`;
    }
    if (isMissing) return html`<${NotLoaded} />`;
    return Screen ? html`<${Screen} ...${properties} />` : html`<p class="starting">Loading…</p>`;
}

let isFirst = true;

// An operator's token comes in the fragment, which no server sees; it leaves the address at once. A later run on the same
// port has another one: opening its address in the same tab changes nothing but the fragment.
function takeToken() {
    const token = settings.operate ? /^#token=([\w-]+)$/.exec(location.hash)?.[1] : null;
    if (!token) return;
    keep(token);
    history.replaceState(null, "", `${location.pathname}#/`);
}

takeToken();

const page = document.getElementById("page");
page.replaceChildren();
render(html`<${Page} />`, page);
