// The files of this page: hashed, sent a few at a time under one key each, sent again while no answer comes. They go on
// while another screen is open.
import {
    credential,
    keepPicture,
    listenToSession,
    needsCredential,
    rememberName,
    settings,
    bytes,
    limit,
    unsent,
} from "../../core.js";
import { DarkroomUploader, until } from "../../darkroom-upload.js";
import { call, NoAnswer, pause, Problem } from "../../requests.js";
import { keep, keptOf } from "./kept.js";
import { keyOf, parametersOf } from "./order.js";
import { hash, preview } from "./workers.js";

const PARALLEL = 4;
const MAX_SERVER_ERRORS = 6; // answers of 500 before the reader is asked
const MAX_NOTIFIED_PER_FRAME = 24; // of the files that have changed: two hundred at once would stop the page

/**
 * A file in the list. `stage` says how far this page has come with it: `ready` until the reader sends it, `queued`,
 * `hashing`, `sending`, `waiting` before it is sent again, then `accepted`, `refused`, `cancelled`, or `twin` of
 * another file in the list. From `accepted` on, `image` is its status document, and says how far the service has come.
 *
 * @typedef {object} Item
 * @property {number} id
 * @property {File} file
 * @property {string|null} url  where the service fetches it; then the file's bytes are the URL
 * @property {string} name  with its folder, if it came in one
 * @property {"ready"|"queued"|"hashing"|"sending"|"waiting"|"accepted"|"refused"|"cancelled"|"twin"} stage
 * @property {string|null} sha256
 * @property {string|null} key  its Idempotency-Key; `firstKey` is the one of generation 0
 * @property {{x: number, y: number}|"attention"|null} focal  if it was moved; `isFocalSet` by the reader just now
 * @property {{url: string, width: number, height: number}|null} preview
 * @property {"waiting"|"there"|"part"|"none"} previewState  `part` if the browser cannot decode the whole file
 * @property {number|null} progress  0 to 1 while it is sent
 * @property {{until: number|null, reason: string}|null} pause  why it waits, and until when
 * @property {Json|null} image  its latest status document, with `thumb` if it came in a list
 * @property {boolean} wasHere  an earlier upload made the image
 * @property {boolean} mayHaveArrived  a request of this one got no answer: a replay is its own
 * @property {(() => void)|null} hurry  sends it again before its pause is over
 * @property {string|null} begun  the id of the image that awaits the bytes which are being sent
 * @property {boolean} isDeleted  the image was deleted meanwhile
 * @property {boolean} isStale  the image may have changed since it was read, even if it had ended
 * @property {number|null} againAt  when a scheduled image is to be read again, in milliseconds since 1970
 * @property {Error|null} error  the refusal
 * @property {Item|null} twin  the same file with the same settings
 * @property {import("./order.js").Choice|null} choice  the settings with which it is sent; null before
 * @property {boolean} [isRunning]  whether it is being hashed or sent
 * @property {Promise<any>} [hashed]  its hash, once it is known
 * @property {number} batch  files that were added together have the same one, and later ones a higher one
 */

// ── The list, and who looks at it.

/** The files, never changed in place: a change of the list is another list. @type {readonly Item[]} */
export let items = [];
const listeners = new Set();
const changed = new Set();
let hasListChanged = false;
let isTelling = false;
let last = 0;

/** Calls `look(changed items, whether the list itself changed)`, at most once per frame; returns what ends that. */
export function watchList(look) {
    listeners.add(look);
    return () => listeners.delete(look);
}

/** Tells the listeners of a change of `item`, or of the list itself (null). */
export function touch(item) {
    if (item === null) hasListChanged = true;
    else changed.add(item);
    tellNextFrame();
}

function tellNextFrame() {
    if (isTelling) return;
    isTelling = true;
    // A hidden page paints no frames, and nobody looks at it.
    requestAnimationFrame(() => {
        isTelling = false;
        const notified = new Set(Array.from(changed).slice(0, MAX_NOTIFIED_PER_FRAME));
        const isOtherList = hasListChanged;
        notified.forEach((item) => changed.delete(item));
        hasListChanged = false;
        listeners.forEach((look) => look(notified, isOtherList));
        if (changed.size > 0) tellNextFrame();
    });
}

function set(item, change) {
    Object.assign(item, change);
    touch(item);
}

// ── Files come and go.

/** What is known of the image of a file that has none. */
const NO_IMAGE = {
    image: null,
    etag: null,
    wasHere: false,
    mayHaveArrived: false,
    isDeleted: false,
    isStale: false,
    begun: null,
};

/** Adds files, each `{file, path}`, with `url` if the service is to fetch it, to the list. */
export function add(files) {
    const batch = (items.at(-1)?.batch ?? 0) + 1;
    for (const { file, path, url = null } of files) {
        /** @type {any} */
        const item = {
            id: ++last,
            file,
            url,
            name: path || file.name || "pasted picture",
            stage: "ready",
            sha256: null,
            focal: null,
            isFocalSet: false,
            preview: null,
            previewState: "waiting",
            progress: null,
            pause: null,
            choice: null,
            parameters: null,
            firstKey: null,
            key: null,
            ...NO_IMAGE,
            againAt: null,
            error: null,
            twin: null,
            batch,
            hurry: null,
            abort: new AbortController(),
        };
        items = [...items, item];
        const problem = problemOfFile(file);
        if (problem) Object.assign(item, { stage: "refused", error: problem });
        else item.hashed = hashOf(item);
        showPreview(item);
    }
    touch(null);
}

/** What keeps a file from being sent, before anything is: its size. */
function problemOfFile(file) {
    if (file.size === 0) return new Problem("empty_upload", "It has no bytes.");
    if (file.size <= settings.max_upload_bytes) return null;
    const most = limit(settings.max_upload_bytes);
    const size = bytes(file.size) === bytes(settings.max_upload_bytes) ? `${file.size.toLocaleString()} bytes` : bytes(file.size);
    return new Problem("upload_too_large", `It has ${size}, and this Darkroom takes at most ${most}.`);
}

async function hashOf(item) {
    try {
        set(item, { sha256: await hash(item.file) });
    } catch (error) {
        // The network can fail the worker's own file; everything else is about this one.
        return error.name === "NetworkError" ? error : new Problem("unreadable", "The file can no longer be read.");
    }
    const { focal } = keptOf(item.sha256);
    if (focal !== null && !item.isFocalSet) set(item, { focal });
    return null;
}

async function showPreview(item) {
    if (item.url !== null) return set(item, { previewState: "none" }); // what is there is not here
    try {
        const { blob, width, height } = await preview(item.file);
        if (!items.includes(item)) return;
        set(item, { preview: { url: URL.createObjectURL(blob), width, height }, previewState: "there" });
    } catch {
        const part = await partOf(item.file);
        if (part === null) set(item, { previewState: "none" }); // a format that this browser does not know
        else if (items.includes(item)) set(item, { preview: part, previewState: "part" });
        else URL.revokeObjectURL(part.url);
    }
    if (item.stage === "accepted") showThere(item);
}

/** What an element shows of a file that cannot be decoded as a whole; null if it shows nothing. */
function partOf(file) {
    const url = URL.createObjectURL(file);
    const picture = new Image();
    return new Promise((resolve) => {
        picture.addEventListener("load", () => {
            resolve({ url, width: picture.naturalWidth, height: picture.naturalHeight });
        });
        picture.addEventListener("error", () => {
            URL.revokeObjectURL(url);
            resolve(null);
        });
        picture.src = url;
    });
}

/** Shows the file's picture also where its image is, which has none of its own before it is done. */
function showThere({ image, preview }) {
    if (image && preview) keepPicture(image.id, preview.url);
}

/** Takes files off the list; what was accepted is not affected. */
export function remove(removed) {
    const leaving = new Set(removed);
    items = items.filter((item) => !leaving.has(item));
    for (const item of leaving) {
        if (isUnsent(item)) stop(item);
        handOver(item);
        // The picture of what was accepted is still shown where the image is.
        if (item.preview && item.image === null) URL.revokeObjectURL(item.preview.url);
        item.preview = null;
    }
    touch(null);
}

/** Moves what the file's crops keep; null is what the preset says. */
export function setFocal(item, focal) {
    set(item, { focal, isFocalSet: true });
    if (item.sha256) keep(item.sha256, { focal });
    else item.hashed?.then(() => item.sha256 && keep(item.sha256, { focal: item.focal }));
}

// ── Which files are where.

/** Whether the file is on its way to the service, or the one that it is a twin of. */
export const isUnsent = (item) => ["queued", "hashing", "sending", "waiting"].includes((item.twin ?? item).stage);

const ENDS = new Set(["done", "failed", "cancelled", "expired"]);

/** Whether nothing more happens to the file, or to the one that it is a twin of. */
export function hasEnded(item) {
    const { stage, isDeleted, image } = item.twin ?? item;
    if (stage === "accepted") return isDeleted || ENDS.has(image.status);
    return stage === "refused" || stage === "cancelled";
}

/** Whether the file, or the one that it is a twin of, became an image with one of these statuses. */
export function isImage(item, ...statuses) {
    const { stage, image } = item.twin ?? item;
    return stage === "accepted" && statuses.includes(image.status);
}

/** Whether an image of this file was there before and was deleted, so that nothing was uploaded. */
export const wasDeleted = (item) => item.stage === "refused" && item.error.code === "image_deleted";

/** Whether the file did not become an image that is done, for a reason to look at. */
export const hasFailed = (item) =>
    (item.stage === "refused" && !wasDeleted(item)) || isImage(item, "failed", "expired");

// ── Sending.

/** Sends every file that is ready, with these settings. */
export function send(choice) {
    for (const item of items) {
        if (item.stage !== "ready") continue;
        set(item, { stage: "queued", choice });
    }
    fill();
}

/** Sends the same again, under the same key. */
export function retry(item) {
    set(item, { stage: "queued", error: null, pause: null, twin: null, key: null, abort: new AbortController() });
    if (item.sha256 === null) item.hashed = hashOf(item);
    fill();
}

/** Uploads the file as a new image, whatever became of the one before. */
export function again(item) {
    raiseGeneration(item);
    handOver(item);
    set(item, NO_IMAGE);
    retry(item);
}

/** Stops sending; what the service has not got in full is not made an image. */
export function cancel(item) {
    stop(item);
    set(item, { stage: "cancelled", progress: null, pause: null, twin: null });
    handOver(item);
}

/** Its twins go on without it: they have its image too, or are sent if there is none. */
function handOver(item) {
    const { stage, image, etag, isDeleted, isStale, againAt } = item;
    const shared = { stage, image, etag, isDeleted, isStale, againAt };
    const state = stage === "accepted" ? shared : { stage: "queued", key: null };
    for (const twin of items) if (twin.twin === item) set(twin, { ...state, twin: null });
    fill();
}

function stop(item) {
    item.abort.abort();
    if (item.begun === null || needsCredential()) return;
    // The service still awaits the bytes. Its key goes with the image, so that trying again makes another.
    call("DELETE", `/images/${item.begun}`).catch(() => {}); // it expires by itself
    raiseGeneration(item);
    item.begun = null;
}

/** From now on the file with these settings is another image. */
function raiseGeneration({ firstKey }) {
    keep(firstKey, { generation: keptOf(firstKey).generation + 1 });
}

let active = 0;

function fill() {
    for (const item of items) {
        if (active >= PARALLEL) return;
        if (item.stage !== "queued" || item.isRunning) continue;
        active += 1;
        item.isRunning = true;
        run(item).finally(() => {
            active -= 1;
            item.isRunning = false;
            fill();
        });
    }
}

async function run(item) {
    const { signal } = item.abort;
    try {
        set(item, { stage: "hashing" });
        const failure = await item.hashed;
        if (failure) throw failure;
        signal.throwIfAborted();
        item.parameters = parametersOf(item.choice, item.focal);
        item.firstKey = await keyOf(item.sha256, item.parameters, 0);
        item.key = await latestKeyOf(item);
        const twin = items.find((other) => other !== item && other.key === item.key && isTakenCareOf(other));
        if (twin) return set(item, { stage: "twin", twin });
        await persist(item, signal);
    } catch (error) {
        if (signal.aborted) {
            if (item.abort.signal === signal && item.stage !== "cancelled") set(item, { stage: "cancelled" });
            return;
        }
        set(item, { stage: "refused", error, progress: null, pause: null });
        handOver(item);
    }
}

const latestKeyOf = ({ sha256, parameters, firstKey }) => keyOf(sha256, parameters, keptOf(firstKey).generation);

const isTakenCareOf = (item) =>
    item.twin === null &&
    ((item.stage === "accepted" && !item.isDeleted) || (isUnsent(item) && item.stage !== "queued"));

/** The session of this tab sends the requests. */
class Uploader extends DarkroomUploader {
    ask = call;
}

const uploader = new Uploader({ url: "" });

/** Sends the file until it is accepted. Throws what cannot pass by waiting. */
async function persist(item, signal) {
    for (;;) {
        let faults = 0;
        try {
            const answer = await uploader.send(item.url ?? item.file, {
                key: item.key,
                parameters: item.parameters,
                sha256: item.sha256,
                signal,
                turn: (send) => takeTurn(item, send, signal),
                onProgress: (progress) => set(item, { progress }),
                onStatus: ({ id, status }) => {
                    if (status === "awaiting_upload" && !signal.aborted) item.begun = id;
                },
                onPause: (paused) => showPause(item, paused),
                mayRetry: (error) => !isFault(error) || (faults += 1) < MAX_SERVER_ERRORS,
            });
            signal.throwIfAborted();
            const { id, error } = answer.document;
            if (item.begun !== id || error?.code !== "never_uploaded") return accept(item, answer);
            // The connection was down for longer than the service awaits the bytes: they go to another image.
            item.begun = null;
        } catch (error) {
            // The reader has chosen it again since. What this upload made may have been deleted on purpose, though.
            if (signal.aborted || error.code !== "image_deleted" || item.mayHaveArrived) throw error;
        }
        raiseGeneration(item);
        item.key = await latestKeyOf(item);
    }
}

const isFault = (error) => error instanceof Problem && error.status !== 429 && error.status !== 503;

let atOnce = PARALLEL; // fewer after a request that got no answer
let sending = 0;
const turns = new Set(); // who is told that another request may begin

/** Sends the file once it may; also under another credential, if the one before was refused. */
async function takeTurn(item, send, signal) {
    for (;;) {
        await untilAllowed(item, signal);
        sending += 1;
        try {
            set(item, { stage: "sending", progress: null, pause: null, hurry: null });
            const answer = await send();
            atOnce = Math.min(PARALLEL, atOnce + 1);
            return answer;
        } catch (error) {
            if (signal.aborted) throw error;
            if (error instanceof NoAnswer) {
                item.mayHaveArrived = true;
                if (navigator.onLine) atOnce = 1; // together they may be too much for the connection
            }
            if (!isOfSession(error)) throw error;
        } finally {
            sending -= 1;
            turns.forEach((tell) => tell());
        }
    }
}

const isOfSession = (error) => error instanceof Problem && [401, 403].includes(error.status) && needsCredential();

// Before this instant the service wants no request, whichever file it is for.
let closedUntil = 0;

async function untilAllowed(item, signal) {
    const wait = (reason, until = null) =>
        set(item, { stage: "waiting", progress: null, pause: { until, reason }, hurry: null });
    for (;;) {
        if (needsCredential()) {
            wait("Waiting for you to sign in");
            await until((resolve, ended) => ended.addEventListener("abort", listenToSession(resolve)), signal);
        } else if (closedUntil > Date.now()) {
            wait("The service is busy", closedUntil);
            await pause((closedUntil - Date.now()) / 1000 + Math.random() / 4, signal);
        } else if (sending >= atOnce) {
            wait("The connection is poor, so files are sent one at a time");
            await until((resolve, ended) => {
                turns.add(resolve);
                ended.addEventListener("abort", () => turns.delete(resolve));
            }, signal);
        } else return;
    }
}

/** Says why and until when the file waits. When no answer came, the reader may not want to wait for the end of it. */
function showPause(item, { error, seconds, resume }) {
    const isUnanswered = error instanceof NoAnswer;
    const end = Date.now() + seconds * 1000;
    if (error.status === 429 || error.status === 503) closedUntil = Math.max(closedUntil, end);
    const reason = !isUnanswered
        ? isFault(error) && error.status >= 500
            ? "The service had a fault"
            : "The service is busy"
        : navigator.onLine
          ? "No answer came"
          : "You are offline";
    set(item, { stage: "waiting", progress: null, pause: { until: end, reason }, hurry: isUnanswered ? resume : null });
}

function accept(item, { status, document, headers }) {
    // Another form (201) for bytes that never came is no image that was here.
    const isReplayed = headers.get("Idempotent-Replayed") === "true" && status !== 201;
    set(item, {
        stage: "accepted",
        image: document,
        etag: null,
        wasHere: isReplayed && !item.mayHaveArrived,
        begun: null,
        progress: null,
        pause: null,
        error: null,
    });
    rememberName(document.id, item.name);
    showThere(item);
    accepted.forEach((tell) => tell(item));
}

const accepted = new Set();

/** Calls `tell(item)` whenever the service has accepted a file. */
export const listenToAccepted = (tell) => accepted.add(tell);

// ── The end of the page, and of the session.

unsent.count = () => items.filter((item) => item.stage === "ready" || isUnsent(item)).length;

addEventListener("beforeunload", (leaving) => {
    if (items.some(isUnsent)) leaving.preventDefault();
});

listenToSession((reason) => {
    // The caller forgot the key on purpose: the next one may be somebody else's.
    if (credential() === null && reason === null) remove(items);
});
