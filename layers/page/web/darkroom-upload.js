// Sends photos from a browser to a Darkroom and waits until they are developed. One file without dependencies, to copy:
//
//     import { DarkroomUploader } from "./darkroom-upload.js";
//
//     const uploader = new DarkroomUploader({ url: "https://….execute-api.….amazonaws.com", token });
//     const image = await uploader.upload(file, { onProgress: (share) => (bar.value = share) });
//
// What it throws has a `code`, a `message` and a `status`.

const DIRECT_BYTES = 4 * 2 ** 20; // in one request to the API; a larger file goes to S3 by a form
const ANSWER_SECONDS = 120; // of a request without a file
const STALL_SECONDS = 120; // without progress; a system may take 4 MB at once, which are 80 s at 0.4 Mbit/s
const RENEW_SECONDS = 240; // while a form is sent: its image expires 15 minutes after the latest announcement
const OFFLINE_PAUSE_SECONDS = 15; // a browser that is offline may still reach its own machine
const LONGEST_RETRY_SECONDS = 16;
const MOST_TRIES = 8;
const POLL_SECONDS = 1;
const LONGEST_POLL_SECONDS = 60;

/**
 * @typedef {Record<string, any>} Json
 *
 * @typedef {object} StatusDocument  what the API says of an image; it has more fields than these
 * @property {string} id
 * @property {string} status  "done", "failed" and "expired" are its ends
 * @property {{name: string, url: string}[]} variants
 * @property {{code: string, message: string}|null} error  why it failed or expired
 * @property {{ended_at: string|null}|null} [work]
 *
 * @typedef {object} Answer
 * @property {number} status
 * @property {any} document  null without a body of JSON
 * @property {Headers} headers
 * @property {number|null} retryAfter  in seconds
 *
 * @typedef {object} RequestOptions
 * @property {Json} [query]
 * @property {any} [json]  the body, or `body`
 * @property {Blob|FormData} [body]
 * @property {Record<string, string>} [headers]
 * @property {AbortSignal} [signal]
 * @property {(share: number) => void} [onProgress]
 * @property {Bearer} [bearer]
 *
 * @typedef {(isRefused: boolean) => Promise<string|null>} Bearer  the token of one file
 *
 * @typedef {object} UploadOptions
 * @property {(share: number) => void} [onProgress]  of the file that is sent: 0 to 1, anew with each try
 * @property {(document: StatusDocument) => void} [onStatus]  gets each status document on the way
 * @property {(pause: {error: Problem|NoAnswer, seconds: number, resume: () => void}) => void} [onPause]  it is sent
 *     again after that, or when `resume` is called
 * @property {AbortSignal} [signal]  ends it; what was accepted stays
 * @property {string} [key]  the Idempotency-Key, otherwise a random one: a file with the same key is one image
 * @property {Json} [parameters]  as `POST /uploads` has them, such as `preset`; an upload token has its own
 * @property {string} [sha256]  in hexadecimal, if it is known
 * @property {(error: Problem|NoAnswer, failures: number) => boolean} [mayRetry]  after so many while the browser
 *     was online; otherwise there are eight tries
 * @property {(send: () => Promise<Answer>) => Promise<Answer>} [turn]  runs each try, for files that take turns
 * @property {Bearer} [bearer]
 */

/** A refusal: `code` is stable, `message` is for people; `status` is 0 if the browser itself found it. */
export class Problem extends Error {
    name = "Problem";
    /** @param {string} code @param {string} message @param {Partial<Answer>} [answer] */
    constructor(code, message, { status = 0, document = null, headers = new Headers(), retryAfter = null } = {}) {
        super(message);
        this.code = code;
        this.status = status;
        this.document = document;
        this.headers = headers;
        this.retryAfter = retryAfter;
    }
}

/** The network is down, or the request was cut off: it may have arrived. */
export class NoAnswer extends Error {
    name = "NoAnswer";
    code = "no_answer";
    message = "No answer came. Check the connection.";
    status = 0;
    retryAfter = null;
}

/** Whether the same request may succeed later. @param {any} error */
export const mayPass = (error) =>
    error instanceof NoAnswer ||
    (error instanceof Problem && (error.status === 429 || error.status >= 500 || error.code === "blocked"));

/** Uploads photos to one stack. */
export class DarkroomUploader {
    #url;
    #token;

    /**
     * @param {{url: string, token?: string|(() => string|Promise<string>)|null}} stack  `url` is its output ApiUrl;
     *     `token` is an upload token, an API key, or a function that fetches one: for each file, and after a refusal
     */
    constructor({ url, token = null }) {
        this.#url = url.replace(/\/$/, "");
        this.#token = token;
    }

    /**
     * Sends a photo, and returns its status document at its end. Throws Problem, NoAnswer, and what `signal` says.
     *
     * @param {Blob|string} file  or the URL of a photo, which the service fetches
     * @param {UploadOptions} [options]
     * @returns {Promise<StatusDocument>}
     */
    async upload(file, options = {}) {
        const all = { bearer: this.#bearer(), ...options };
        const { document, retryAfter } = await this.send(file, all);
        if (hasEnded(document)) return document;
        await pause(retryAfter ?? POLL_SECONDS, options.signal);
        return this.wait(document.id, all);
    }

    /**
     * Sends a photo until the service has accepted it. The answer has its status document.
     *
     * @param {Blob|string} file
     * @param {UploadOptions} [options]
     * @returns {Promise<Answer>}
     */
    async send(file, options = {}) {
        const { signal, turn = (send) => send(), mayRetry = (_, failures) => failures < MOST_TRIES } = options;
        let { key = random(), sha256, bearer = this.#bearer() } = options;
        for (let failures = 0; ; ) {
            try {
                signal?.throwIfAborted();
                if (file instanceof Blob && file.size > DIRECT_BYTES) sha256 ??= await sha256Of(file);
                const answer = await turn(() => this.#sendOnce(file, key, { ...options, sha256, bearer }));
                options.onStatus?.(answer.document);
                if (options.key || answer.document.error?.code !== "never_uploaded") return answer;
                key = random(); // no connection for longer than the service awaits the file: it goes to another image
            } catch (/** @type {any} */ error) {
                signal?.throwIfAborted();
                await requireReadable(file); // a file that was moved fails as a connection does
                const isOffline = error instanceof NoAnswer && !navigator.onLine;
                if (!isOffline) failures += 1;
                if (!mayPass(error) || !mayRetry(error, failures)) throw error;
                const backoff = Math.min(2 ** (failures - 1), LONGEST_RETRY_SECONDS) * (1 - Math.random() / 2);
                const asked = error.retryAfter === null ? backoff : error.retryAfter * (1 + Math.random() / 8);
                const seconds = isOffline ? OFFLINE_PAUSE_SECONDS : asked;
                await until((resume, ended) => {
                    pause(seconds, ended).then(resume, () => {});
                    if (error instanceof NoAnswer) addEventListener("online", resume, { signal: ended });
                    options.onPause?.({ error, seconds, resume });
                }, signal);
            }
        }
    }

    /**
     * Returns an image's status document once it, and work beside it, has ended.
     *
     * @param {string} id
     * @param {UploadOptions} [options]
     * @returns {Promise<StatusDocument>}
     */
    async wait(id, { signal, onStatus, bearer = this.#bearer() } = {}) {
        /** @type {any} */
        let document = null;
        let tag = "";
        const look = async () => {
            const headers = { "If-None-Match": tag };
            const answer = await this.ask("GET", `/images/${id}/status`, { headers, signal, bearer });
            tag = answer.headers.get("ETag") ?? "";
            document = answer.document ?? document;
            if (answer.document) onStatus?.(document);
            return hasEnded(document) ? null : (answer.retryAfter ?? POLL_SECONDS);
        };
        await poll(look, { signal });
        return document;
    }

    /**
     * Sends one request to the API; a subclass may have a session of its own.
     *
     * @param {string} method
     * @param {string} path
     * @param {RequestOptions} options
     */
    async ask(method, path, { bearer, ...options }) {
        for (let isRenewed = false; ; isRenewed = true) {
            const token = await bearer?.(isRenewed);
            try {
                const headers = { ...options.headers, ...(token && { Authorization: `Bearer ${token}` }) };
                return await request(method, this.#url + path, { ...options, headers });
            } catch (/** @type {any} */ error) {
                // No other upload token may read the status of an image.
                const refusals = method === "GET" ? /^40[13]$/ : /^(40[13]|upload_token_(expired|used_up))$/;
                if (isRenewed || typeof this.#token !== "function" || !refusals.test(error.code)) throw error;
            }
        }
    }

    /** @returns {Bearer} */
    #bearer() {
        const fetchToken = async () => (typeof this.#token === "function" ? this.#token() : this.#token);
        /** @type {any} */
        let given;
        return (isRefused) => (given = (!isRefused && given) || fetchToken());
    }

    /**
     * @param {Blob|string} file
     * @param {string} key
     * @param {UploadOptions} options
     * @returns {Promise<Answer>}
     */
    async #sendOnce(file, key, { sha256, parameters = {}, signal, onProgress = () => {}, onStatus, bearer }) {
        const headers = { "Idempotency-Key": key };
        if (typeof file === "string") {
            return this.ask("POST", "/images", { json: { url: file, ...parameters }, headers, signal, bearer });
        }
        // The gateway passes text as text, which would damage a photo.
        const type = /^image\/[\w.+-]{1,60}$/.test(file.type) ? file.type : "application/octet-stream";
        if (file.size <= DIRECT_BYTES) {
            const sent = { body: file, headers: { ...headers, "Content-Type": type }, signal, bearer };
            return this.ask("POST", "/images", { query: parameters, onProgress, ...sent });
        }
        const json = { bytes: file.size, sha256, content_type: type, ...parameters };
        const announce = () => this.ask("POST", "/uploads", { json, headers, signal, bearer });
        const answer = await announce();
        const { upload, ...document } = answer.document;
        if (!upload) return { ...answer, document };
        onStatus?.(document);
        const body = new FormData();
        for (const name in upload.fields) body.append(name, upload.fields[name]);
        body.append("file", file);
        // The service awaits the bytes anew; if one such request fails, the next does it.
        const renewal = setInterval(() => announce().catch(() => {}), RENEW_SECONDS * 1000);
        try {
            await request("POST", upload.url, { body, signal, onProgress });
        } catch (error) {
            throw error instanceof Problem ? ofStore(error) : error;
        } finally {
            clearInterval(renewal);
        }
        // S3 tells it, too, later.
        await this.ask("POST", `/uploads/${document.id}/done`, { signal, bearer }).catch(() => {});
        return { ...answer, document };
    }
}

/** What a refusal by S3 means. @param {Problem} refusal */
function ofStore({ status, code, retryAfter }) {
    // The bytes came too slowly, or not all of them.
    if (status === 408 || code === "RequestTimeout" || code === "IncompleteBody") return new NoAnswer();
    // A store that is busy is one that answers 503. A form that is too old: another one, after a pause.
    const passing = status === 429 ? 503 : status === 403 ? 500 : status;
    return new Problem("form_refused", `The store refused the file (${code}).`, { status: passing, retryAfter });
}

/** In hexadecimal. @param {Blob} file */
export const sha256Of = async (file) => hex(await crypto.subtle.digest("SHA-256", await file.arrayBuffer()));

/** @param {ArrayBuffer} bytes */
const hex = (bytes) => Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("");

const random = () => hex(crypto.getRandomValues(new Uint8Array(16)).buffer);

/** @param {Blob|string} file */
async function requireReadable(file) {
    try {
        if (file instanceof Blob) await file.slice(0, 1).arrayBuffer();
    } catch {
        throw new Problem("unreadable", "The file can no longer be read.");
    }
}

/** @param {StatusDocument} document */
const hasEnded = ({ status, work }) =>
    ["done", "failed", "expired"].includes(status) && (!work || work.ended_at !== null);

/**
 * Resolves when `listen(resolve, ended)` calls `resolve`, which aborts `ended`. Throws what `signal` is aborted with.
 *
 * @param {(resolve: () => void, ended: AbortSignal) => void} listen
 * @param {AbortSignal|null} [signal]
 * @returns {Promise<void>}
 */
export function until(listen, signal) {
    return new Promise((resolve, reject) => {
        signal?.throwIfAborted();
        const ending = new AbortController();
        const settle = () => {
            ending.abort();
            if (signal?.aborted) reject(signal.reason);
            else resolve();
        };
        signal?.addEventListener("abort", settle, { signal: ending.signal });
        listen(settle, ending.signal);
    });
}

/** Resolves after `seconds`. @param {number} seconds @param {AbortSignal} [signal] */
export const pause = (seconds, signal) =>
    until((resolve, ended) => {
        const timer = setTimeout(resolve, seconds * 1000);
        ended.onabort = () => clearTimeout(timer);
    }, signal);

/**
 * Calls `look()`, which returns the seconds until the next look, or null at the end. It waits while the tab is hidden,
 * and asks less and less often while that may help; `trouble(error | null)` is told of that. Throws what cannot pass.
 *
 * @param {() => Promise<number|null>} look
 * @param {{signal?: AbortSignal, trouble?: (error: any) => void}} [options]
 */
export async function poll(look, { signal, trouble = () => {} } = {}) {
    for (let failures = 0; ; ) {
        await until((resolve, ended) => {
            const resume = () => document.hidden || resolve();
            document.addEventListener("visibilitychange", resume, { signal: ended });
            resume();
        }, signal);
        let wait;
        try {
            wait = await look();
            if (failures) trouble(null);
            failures = 0;
        } catch (/** @type {any} */ error) {
            if (!mayPass(error)) throw error;
            failures += 1;
            trouble(error);
            wait = Math.min(error.retryAfter ?? POLL_SECONDS * 2 ** failures, LONGEST_POLL_SECONDS);
        }
        if (wait === null) return;
        await pause(Math.max(POLL_SECONDS, wait), signal);
    }
}

/**
 * Sends one request. Throws Problem, NoAnswer, and what `signal` was aborted with.
 *
 * @param {string} method
 * @param {string} address
 * @param {RequestOptions} options
 * @returns {Promise<Answer>}
 */
export async function request(method, address, { query = {}, json, body, headers = {}, signal, onProgress }) {
    const parameters = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) {
        if (value != null) parameters.append(name, value.constructor === Object ? JSON.stringify(value) : value);
    }
    const url = address + (parameters.size ? `?${parameters}` : "");
    /** @type {RequestInit} */
    const sent = { method, headers, body, signal, cache: "no-store", credentials: "omit", redirect: "error" };
    const timeout = AbortSignal.timeout(ANSWER_SECONDS * 1000);
    if (!onProgress) sent.signal = signal ? AbortSignal.any([signal, timeout]) : timeout;
    if (json !== undefined) {
        sent.headers = { ...headers, "Content-Type": "application/json" };
        sent.body = JSON.stringify(json);
    }
    let response, text;
    try {
        response = await (onProgress ? transmit(url, sent, onProgress) : fetch(url, sent));
        text = await response.text();
    } catch {
        signal?.throwIfAborted();
        throw new NoAnswer();
    }
    const { status } = response;
    let document = null;
    try {
        document = JSON.parse(text);
    } catch {
        // It has none, or is not of the API.
    }
    const wait = Number.parseInt(response.headers.get("Retry-After") ?? "", 10);
    const answer = { status, document, headers: response.headers, retryAfter: wait >= 0 ? wait : null };
    if (status < 400) return answer;
    // S3 answers in XML; CloudFront and a firewall refuse with a page of their own.
    const code = /<Code>(\w+)<\/Code>/.exec(text)?.[1] ?? (status === 403 && !document ? "blocked" : `${status}`);
    const message = document?.detail ?? document?.message ?? `The request was refused (${code}).`;
    throw new Problem(document?.code ?? code, message, answer);
}

/**
 * Sends a request as fetch does, which tells no progress. A slow connection may take as long as it needs.
 *
 * @param {string} url
 * @param {RequestInit} options
 * @param {(share: number) => void} onProgress
 */
async function transmit(url, { method = "POST", headers, body, signal }, onProgress) {
    const request = new XMLHttpRequest();
    await until((resolve, ended) => {
        let stall = setTimeout(resolve, STALL_SECONDS * 1000);
        request.upload.onprogress = ({ lengthComputable, loaded, total }) => {
            clearTimeout(stall);
            stall = setTimeout(resolve, STALL_SECONDS * 1000);
            if (lengthComputable && total > 0) onProgress(loaded / total);
        };
        request.onloadend = resolve;
        ended.onabort = () => {
            clearTimeout(stall);
            if (request.readyState < 4) request.abort();
        };
        request.open(method, url);
        new Headers(headers).forEach((value, name) => request.setRequestHeader(name, value));
        request.send(/** @type {XMLHttpRequestBodyInit} */ (body));
    }, signal);
    const lines = request.getAllResponseHeaders().split("\r\n").filter(Boolean);
    const received = /** @type {[string, string][]} */ (lines.map((line) => line.split(/: (.*)/, 2)));
    // Without an answer the status is 0, which no Response takes.
    return new Response(request.responseText || null, { status: request.status, headers: received });
}
