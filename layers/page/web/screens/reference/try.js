// Sends one call to the stack that serves this page, and shows what it answers.
import { html, useEffect, useRef, useState } from "../../vendor/preact.js";
import { bytes, credential } from "../../core.js";
import { Confirm, Copy, Trouble } from "../../parts.js";
import { needsNoKey, resolve, schemaOf } from "./schema.js";

const MOST_CHARACTERS = 100_000;

const text = (value) => (value === undefined || value === null ? "" : Array.isArray(value) ? value.join(",")
    : typeof value === "object" ? JSON.stringify(value) : String(value));

/** What a call takes: its parameters and its body, with the references to the description resolved. */
function takenBy({ operation }, description) {
    const parameters = (operation.parameters ?? []).map((parameter) => resolve(parameter, description));
    const body = resolve(operation.requestBody, description);
    const types = Object.keys(body.content ?? {});
    const isJson = types.length === 1 && types[0] === "application/json";
    const examples = isJson ? Object.values(body.content[types[0]].examples ?? {}).map((example) => resolve(example,
        description).value) : [];
    return { parameters, body, types, isJson, examples };
}

/** The request that the form would send now: also what its curl line says. */
function requestOf({ operation, method, path }, { parameters, body, types, isJson }, { values, json, file }) {
    const of = (place) => parameters.filter(({ in: at, name }) => at === place && (values[name] ?? "") !== "");
    const filled = path.replace(/\{(\w+)\}/g, (placeholder, name) => (values[name] ? encodeURIComponent(values[name])
        : placeholder));
    const query = new URLSearchParams(of("query").map((parameter) => [parameter.name,
        values[parameter.name]])).toString();
    const target = filled + (query ? `?${query}` : "");
    const headers = Object.fromEntries(of("header").map((parameter) => [parameter.name, values[parameter.name]]));
    const isSent = types.length > 0 && (isJson ? json.trim() !== "" : file !== null);
    const isFileNeeded = !isJson && types.length > 0 && body.required !== false;
    const needsKey = credential() !== null && !needsNoKey(operation);
    // A type that the API does not know is sent as bytes, which it looks at anyway.
    const type = isJson ? types[0] : types.includes(file?.type) ? file.type : "application/octet-stream";
    return { method, target, headers, isSent, isFileNeeded, needsKey, isJson, json, type, file };
}

/** Sends a request. Throws why nothing came back. */
async function answerTo({ method, target, headers, isSent, needsKey, isJson, json, type, file }) {
    const started = performance.now();
    const response = await fetch(target, {
        method: method.toUpperCase(),
        headers: { ...headers, ...(isSent ? { "Content-Type": type } : {}), ...(needsKey
            ? { Authorization: `Bearer ${credential()}` } : {}) },
        body: isSent ? (isJson ? json : file) : undefined,
        cache: "no-store",
        credentials: "omit",
        redirect: "manual",
    });
    const isRedirect = response.type === "opaqueredirect";
    const content = isRedirect ? "" : await response.text();
    return { status: response.status, isRedirect, headers: [...response.headers], content,
        milliseconds: Math.round(performance.now() - started) };
}

/** Why the form cannot be sent as it is filled in, in a sentence; null if it can. */
function faultOf(parameters, values, { isJson, json, isFileNeeded, file }) {
    const missing = parameters.find((parameter) => parameter.required && (values[parameter.name] ?? "") === "");
    if (missing) return `Give ${missing.name}.`;
    if (isJson && json.trim()) {
        try {
            JSON.parse(json);
        } catch (problem) {
            return `The body is not JSON: ${problem.message}`;
        }
    }
    return isFileNeeded && !file ? "Choose a file." : null;
}

/** @param {{route: any, description: Json}} properties  `route` as callsOf made it */
export function Try({ route, description }) {
    const { operation, method, path } = route;
    const taken = takenBy(route, description);
    const { parameters, body, types, isJson, examples } = taken;
    const [values, setValues] = useState({});
    const [json, setJson] = useState(body.required !== false && examples.length ? JSON.stringify(examples[0], null,
        2) : "");
    const [file, setFile] = useState(null);
    const [answer, setAnswer] = useState(null);
    const [error, setError] = useState(null);
    const [isBusy, setBusy] = useState(false);
    const [isAsking, ask] = useState(false);
    const request = requestOf(route, taken, { values, json, file });
    const { target, needsKey, isSent, isFileNeeded } = request;

    const send = async () => {
        ask(false);
        setError(null);
        setAnswer(null);
        setBusy(true);
        try {
            setAnswer(await answerTo(request));
        } catch (problem) {
            setError(problem instanceof TypeError
                ? new Error("No answer came, or a header has characters that cannot be sent.") : problem);
        }
        setBusy(false);
    };
    const submit = (event) => {
        event.preventDefault();
        const fault = faultOf(parameters, values, request);
        setError(fault && new Error(fault));
        if (fault) return undefined;
        return isGrave(route) ? ask(true) : send();
    };

    return html`<form class="try" onSubmit=${submit} aria-label=${`Try ${method.toUpperCase()} ${path}`}>
        ${parameters.map((parameter) => html`<${Parameter} id=${`try-${route.id}-${parameter.name}`}
            parameter=${parameter} description=${description} value=${values[parameter.name] ?? ""}
            onSet=${(event) => setValues({ ...values, [parameter.name]: event.target.value })} />`)}
        ${isJson && html`<${JsonBody} id=${`try-${route.id}-body`} json=${json} onSet=${setJson} />`}
        ${types.length > 0 && !isJson && html`<${FileBody} id=${`try-${route.id}-file`} file=${file}
            type=${request.type} onSet=${setFile} />`}
        ${error && html`<${Trouble} error=${error} />`}
        <div class="row">
            <button type="submit" class="main" disabled=${isBusy}>${isBusy ? "Sending…" : "Send"}</button>
            <span class="quiet">${needsKey ? "It is sent with your key, and does what it says."
                : "It does what it says."}</span></div>
        <${Copy} text=${curl({ ...request, isSent: isSent || isFileNeeded })} label="the curl line" isLong />
        ${needsKey && html`<p class="quiet">The line takes your key from the environment:
            <code>export DARKROOM_API_KEY=dr_…</code> first.</p>`}
        ${answer && html`<${Shown} answer=${answer} />`}
        ${isAsking && html`<${Confirm} title=${`${operation.summary}?`} yes="Send" onYes=${send}
            onNo=${() => ask(false)}>
            <p><code>${method.toUpperCase()} ${target}</code></p><p>${operation.description}</p>
        <//>`}
    </form>`;
}

/** The input for a parameter's value. */
function Parameter({ id, parameter, description, value: given, onSet }) {
    const schema = resolve(schemaOf(parameter), description);
    return html`<div><label for=${id}>
        <code>${parameter.name}</code>${parameter.required && " (required)"}</label>
        ${Array.isArray(schema.enum)
            ? html`<select id=${id} value=${given} onChange=${onSet}>
                <option value="">not sent</option>
                ${schema.enum.map((value) => html`<option
                    value=${text(value)}>${text(value)}</option>`)}</select>`
            : html`<input id=${id} type="text" autocomplete="off" spellcheck="false"
                value=${given} placeholder=${text(parameter.example)}
                onInput=${onSet} />`}</div>`;
}

const JsonBody = ({ id, json, onSet }) => html`<div><label for=${id}>Body, in JSON</label>
    <textarea id=${id} rows=${Math.min(12, Math.max(3, json.split("\n").length))}
        spellcheck="false" class="mono" value=${json}
        onInput=${(event) => onSet(event.target.value)}></textarea></div>`;

const FileBody = ({ id, file, type, onSet }) => html`<div><label for=${id}>Body: a file</label>
    <input id=${id} type="file"
        onChange=${(event) => onSet(event.target.files[0] ?? null)} />
    ${file && html`<span class="quiet">${bytes(file.size)}, sent as ${type}</span>`}</div>`;

/** Whether a call takes something away. */
const isGrave = ({ method, path }) => method === "delete" || path.endsWith("/rotate");

const quoted = (word) => (/^[\w./:=@%,+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

/** The line for a terminal; a file that is yet to be chosen is called photo.jpg there. */
function curl({ method, target, headers, needsKey, isSent, isJson, json, type, file }) {
    // What the shell itself writes is in no process's arguments, which every user of the machine can read.
    const words = needsKey ? ['echo "Authorization: Bearer $DARKROOM_API_KEY" |', "curl", "-sS", "-H", "@-", "-i"] : ["curl", "-sS", "-i"];
    if (method !== "get" && !(method === "post" && isSent)) words.push("-X", method.toUpperCase());
    Object.entries(headers).forEach(([name, value]) => words.push("-H", quoted(`${name}: ${value}`)));
    if (isSent) {
        words.push("-H", quoted(`Content-Type: ${type}`), isJson ? "-d" : "--data-binary");
        words.push(isJson ? quoted(json) : quoted(`@${file?.name ?? "photo.jpg"}`));
    }
    return [...words, quoted(location.origin + target)].join(" ");
}

function Shown({ answer }) {
    const shown = useRef(null);
    useEffect(() => shown.current?.scrollIntoView({ block: "nearest" }), [answer]);
    if (answer.isRedirect) {
        return html`<p role="status" ref=${shown}>The answer is a redirect. A page is not told where it leads: use the
            curl line.</p>`;
    }
    let content = answer.content;
    try {
        content = JSON.stringify(JSON.parse(content), null, 2);
    } catch {
        // It is shown as it came.
    }
    const isCut = content.length > MOST_CHARACTERS;
    return html`<div class="answered" role="region" aria-label="Answer" ref=${shown}>
        <p role="status"><strong>Status ${answer.status}</strong> <span
            class="quiet">after ${answer.milliseconds} ms</span></p>
        <pre tabindex="0" aria-label="Headers of the answer">${answer.headers.map(([name,
            value]) => `${name}: ${value}`).join("\n")}</pre>
        ${content && html`<pre tabindex="0" aria-label="Body of the answer">${isCut ? content.slice(0, MOST_CHARACTERS)
            : content}</pre>`}
        ${isCut && html`<p class="quiet">The rest is left out here: ${bytes(content.length)} together.</p>`}
    </div>`;
}
