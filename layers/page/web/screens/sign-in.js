// Signs in at the issuer of tokens by redirect: OAuth 2.0's code flow with PKCE (RFC 7636). While this tab has files
// that are not sent, it stays, and the redirect is in a window of its own.
import { html, useEffect, useState } from "../vendor/preact.js";
import { count, keep, ofTab, sentence, settings, unsent } from "../core.js";
import { Trouble } from "../parts.js";

const PLACE = "darkroom.sign-in"; // in this tab: what the issuer's answer is checked against, and where to go on
const CHANNEL = "darkroom.sign-in"; // by which a window gives its answer to the tab that waits for it
const TAKEN = "taken "; // how that tab says that it has the answer with this state
const OF_WINDOW = "window-"; // how the state begins if the answer comes to a window
const ANSWER_SECONDS = 20;

/** What went wrong, and in `detail` what to do about it. */
class SignInFailed extends Error {
    constructor(title, detail) {
        super(detail);
        Object.assign(this, { name: "SignInFailed", title, detail });
    }
}

/** @param {{reason: string|null}} properties  why the token before was refused */
export default function SignIn({ reason }) {
    const [answer] = useState(takeAnswer);
    const [isBlocked, setBlocked] = useState(false);
    const [isElsewhere, setElsewhere] = useState(false);
    const [error, setError] = useState(null);
    const [isBusy, setBusy] = useState(answer !== null);
    const [hint] = useState(answer === null ? reason : null);
    const fail = (problem) => {
        setError(
            problem instanceof SignInFailed ? problem : new SignInFailed("Signing in did not work", problem.message),
        );
        setBusy(false);
    };
    const isOfWindow = answer?.answer.get("state")?.startsWith(OF_WINDOW) ?? false;
    useEffect(() => {
        if (isOfWindow) handOver(answer.answer);
        else if (answer !== null) finish(answer).catch(fail);
        return stopWaiting;
    }, []);
    const begin = () => {
        setBusy(true);
        setError(null);
        start().catch(fail);
    };
    const beginElsewhere = () => {
        setError(null);
        // Before anything is awaited: it is the click that allows it.
        const opened = open("", "_blank", "popup,width=560,height=760");
        setBlocked(opened === null);
        setElsewhere(opened !== null);
        if (opened === null) return;
        startIn(opened, (answer) => {
            setElsewhere(false);
            setBusy(true);
            finish(answer).catch(fail);
        }).catch((problem) => {
            opened.close();
            setElsewhere(false);
            fail(problem);
        });
    };
    if (isOfWindow) {
        return html`<div class="card narrow"><h1>Signing in goes on where you began</h1>
            <p>You can close this window.</p></div>`;
    }
    if (!settings.issuer || !settings.client_id) return html`<${Unable} />`;
    return html`<${Form} hint=${hint} error=${error} isBlocked=${isBlocked} isElsewhere=${isElsewhere} isBusy=${isBusy}
        onHere=${begin} onElsewhere=${beginElsewhere} />`;
}

/** The page does not know where its visitors sign in. */
function Unable() {
    return html`<div class="card narrow"><h1>This page cannot sign you in</h1>
            <p>The stack asks for tokens of ${settings.issuer ? html`<code>${settings.issuer}</code>` : "an issuer"},
            and does not know this page as a client there.
            Whoever operates it can deploy it with <code>JwtClientId</code>.</p></div>`;
}

/** What a visitor reads before signing in: here, or in another window if there are files that would be lost. */
function Form({ hint, error, isBlocked, isElsewhere, isBusy, onHere, onElsewhere }) {
    const files = unsent.count();
    return html`<div class="card narrow">
        <h1>Sign in</h1>
        ${hint && html`<p class="note">${sentence(hint)} Sign in again.</p>`}
        ${error && html`<${Trouble} error=${error} />`}
        <p>You sign in at <strong>${new URL(settings.issuer).host}</strong>, ${files > 0
            ? "in another window, so that this one keeps your files."
            : "and come back here."} What that gives this page stays in this tab, and is forgotten when you close
            it.</p>
        ${isBlocked && html`<p class="note" role="alert">The browser has blocked the window. Allow this page to open
            windows, and try again. If you sign in here instead, add ${count(files, "file")} again afterwards.
            <button type="button" class="small" disabled=${isBusy} onClick=${onHere}>Sign in here</button></p>`}
        ${isElsewhere && html`<p class="note" role="status">Sign in in the other window. This page goes on by
            itself.</p>`}
        <button type="button" class="main" disabled=${isBusy} onClick=${files > 0 ? onElsewhere : onHere}>
            ${isBusy ? "Signing in…" : "Sign in"}</button>
    </div>`;
}

// ── To the issuer.

/** In this tab, which is left. */
async function start() {
    const kept = { state: random(), verifier: random(), place: location.hash };
    const address = await addressOf(kept);
    ofTab.write(PLACE, kept);
    location.assign(address);
}

let channel = null; // while an answer from a window is awaited

/** In another window; calls `take` with its answer. The issuer's pages are out of this tab's reach, and so is it of
 *  theirs: the page's Cross-Origin-Opener-Policy parts them. */
async function startIn(opened, take) {
    stopWaiting();
    const kept = { state: OF_WINDOW + random(), verifier: random(), place: "" };
    const own = (channel = new BroadcastChannel(CHANNEL));
    own.addEventListener("message", ({ data }) => {
        const answer = new URLSearchParams(data);
        if (answer.get("state") !== kept.state) return; // another tab's
        own.postMessage(TAKEN + kept.state);
        stopWaiting();
        take({ answer, kept });
    });
    opened.location.replace(await addressOf(kept));
}

function stopWaiting() {
    channel?.close();
    channel = null;
}

/** Gives the answer that came to this window to the tab that awaits it. Its code is of no use without that tab's
 *  verifier. */
function handOver(answer) {
    channel = new BroadcastChannel(CHANNEL);
    channel.addEventListener("message", ({ data }) => data === TAKEN + answer.get("state") && close());
    channel.postMessage(String(answer));
}

async function addressOf({ state, verifier }) {
    const { authorization_endpoint: endpoint } = await discover();
    const address = new URL(endpoint);
    const parameters = {
        response_type: "code",
        client_id: settings.client_id,
        redirect_uri: here(),
        scope: "openid",
        state,
        code_challenge: base64url(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier))),
        code_challenge_method: "S256",
    };
    // Some issuers give a token for an API only if it is named; others ignore the parameter.
    const audience = (settings.audience ?? "").split(",").find((candidate) => candidate && candidate !== settings.client_id);
    if (audience) parameters.audience = audience;
    for (const [name, value] of Object.entries(parameters)) address.searchParams.set(name, value);
    return address;
}

/** The page's own address without its fragment: the one that the issuer must know. */
const here = () => `${location.origin}${location.pathname}`;

/** 256 random bits: also a valid verifier (RFC 7636, section 4.1). */
const random = () => base64url(crypto.getRandomValues(new Uint8Array(32)));

const base64url = (bytes) =>
    btoa(String.fromCharCode(...new Uint8Array(bytes)))
        .replaceAll("+", "-")
        .replaceAll("/", "_")
        .replace(/=+$/, "");

/** The issuer's endpoints (OpenID Connect Discovery 1.0, section 4). */
async function discover() {
    const configuration = await ask(
        `${settings.issuer.replace(/\/$/, "")}/.well-known/openid-configuration`,
        {},
        "The issuer did not say where to sign in",
    );
    if (configuration.issuer !== settings.issuer) {
        throw new SignInFailed(
            "The issuer is another one",
            `It calls itself ${String(configuration.issuer).slice(0, 200)}, ` +
                `and the stack expects ${settings.issuer}. ` +
                "Whoever operates the stack can correct JwtIssuer.",
        );
    }
    for (const name of ["authorization_endpoint", "token_endpoint"]) {
        if (!isSecure(configuration[name])) {
            throw new SignInFailed(
                "The issuer is not set up for this",
                `It names no https address as its ${name}. Whoever operates it must do so.`,
            );
        }
    }
    return configuration;
}

/** Whether `text` is an https address, or one on this machine, where nobody listens in between. */
function isSecure(text) {
    try {
        const { protocol, hostname } = new URL(text);
        return (
            protocol === "https:" || (protocol === "http:" && ["127.0.0.1", "[::1]", "localhost"].includes(hostname))
        );
    } catch {
        return false;
    }
}

// ── And back.

/**
 * The issuer's answer in the address, and what was kept when the reader left; null if there is none. The answer leaves
 * the address at once: a code is not for the history.
 */
function takeAnswer() {
    const answer = new URLSearchParams(location.search);
    if (!answer.has("code") && !answer.has("error")) return null;
    const kept = ofTab.read(PLACE);
    ofTab.set(PLACE, null);
    history.replaceState(null, "", location.pathname + (kept?.place ?? ""));
    return { answer, kept };
}

async function finish({ answer, kept }) {
    if (kept === null || answer.get("state") !== kept.state) {
        throw new SignInFailed(
            "The answer does not belong to this tab",
            "Signing in was begun in another tab, or long ago, or the browser keeps nothing for this page. " +
                "Sign in again.",
        );
    }
    // RFC 9207: an answer that names its issuer must name the one that was asked.
    if (answer.has("iss") && answer.get("iss") !== settings.issuer) {
        throw new SignInFailed("The answer is of another issuer", AGAIN);
    }
    if (answer.has("error")) {
        const code = answer.get("error");
        const reason = sentence((answer.get("error_description") ?? code).slice(0, 300));
        const advice = Object.hasOwn(ADVICE, code) ? ADVICE[code] : "";
        throw new SignInFailed("The issuer did not sign you in", `${reason} ${advice}`);
    }
    const { token_endpoint: endpoint } = await discover();
    const form = {
        grant_type: "authorization_code",
        code: answer.get("code"),
        redirect_uri: here(),
        client_id: settings.client_id,
        code_verifier: kept.verifier,
    };
    const given = await ask(endpoint, { method: "POST", body: new URLSearchParams(form) }, "The issuer gave no token");
    if (typeof given.access_token !== "string" || !/^[\x21-\x7e]+$/.test(given.access_token)) {
        throw new SignInFailed("The issuer gave no token", AGAIN);
    }
    // The screen that was left is shown again; the router follows the fragment.
    if (kept.place && kept.place !== "#/") dispatchEvent(new HashChangeEvent("hashchange"));
    keep(given.access_token);
}

const AGAIN = "Sign in again. If it happens again, tell whoever operates this stack.";

const ADVICE = {
    access_denied: "Sign in again, and allow it, if that was a mistake.",
    invalid_request: "Whoever operates this stack can correct JwtClientId, and what the issuer knows of this page.",
    unauthorized_client: "Whoever operates this stack can correct JwtClientId, and what the issuer knows of this page.",
    invalid_scope: "Whoever operates the issuer must allow the scope openid for this page.",
    temporarily_unavailable: "Sign in again in a minute.",
    server_error: "Sign in again in a minute.",
};

/** The JSON that the issuer answers. Throws SignInFailed with `title`. */
async function ask(address, options, title) {
    let response, document;
    try {
        response = await fetch(address, {
            ...options,
            headers: { Accept: "application/json" },
            cache: "no-store",
            credentials: "omit",
            referrerPolicy: "no-referrer",
            signal: AbortSignal.timeout(ANSWER_SECONDS * 1000),
        });
        document = await response.json();
    } catch {
        if (response === undefined) throw new SignInFailed(title, reach(address));
        throw new SignInFailed(title, `It answered ${response.status}, and no JSON. Sign in again in a minute.`);
    }
    if (!response.ok) {
        const reason = document?.error_description ?? document?.error ?? `status ${response.status}`;
        throw new SignInFailed(title, `${sentence(String(reason).slice(0, 300))} Sign in again.`);
    }
    return document ?? {};
}

/** Why an address of the issuer cannot be reached, and what to do. */
function reach(address) {
    const { origin } = new URL(address);
    const allowed = [settings.issuer, settings.sign_in_origin].filter(Boolean).map((address) => new URL(address).origin);
    if (!allowed.includes(origin)) {
        return (
            `This page may not ask ${origin}, where the issuer gives tokens. ` +
            `Whoever operates the stack can deploy it with JwtSignInOrigin=${origin}.`
        );
    }
    return (
        `The host ${origin} did not answer. Check the connection, and sign in again. If it goes on, the issuer does ` +
        `not let this page ask: whoever operates it must allow the origin ${location.origin}.`
    );
}
