// Follows the images that the service has accepted, until each has ended: few one by one, many by one list.
import { credential, listenToSession } from "../../core.js";
import { call, mayPass, poll, Problem } from "../../requests.js";
import { secondsPerRead } from "../allowance.js";
import { items, listenToAccepted, touch } from "./queue.js";

const FEW = 4; // looks at single images, which cost one read each
const PAGE = 100; // images of the list, which cost 16 reads
const LIST_SECONDS = 2;
const LONGEST_LIST_SECONDS = 30;
const MOST_PAGES = 10; // images that are older than those are looked at one by one
const SOON_MILLISECONDS = 2000;
const LONGEST_SLEEP_SECONDS = 600;

let running = null; // the controller of the loop that runs
let nextLook = 0;

/** Why nothing is seen at the moment: null, an error that may pass, or one that ended the watching. */
export let trouble = null;

/** Follows images from now on, also those that are accepted later. */
export function begin() {
    if (running) return;
    const controller = new AbortController();
    running = controller;
    tell(null); // what was in the way before may be over
    const tellLatest = (error) => !controller.signal.aborted && tell(error);
    poll(look, { signal: controller.signal, trouble: tellLatest })
        .then(() => tellLatest(null))
        .catch((error) => {
            if (error.name !== "AbortError") tellLatest(error);
        })
        .finally(() => {
            if (running === controller) running = null;
        });
}

/** Looks at once, if the next look is not about to come. */
export function hasten() {
    if (running && nextLook - Date.now() > SOON_MILLISECONDS) {
        running.abort();
        running = null;
    }
    begin();
}

/** Looks again at every image in the list: any of them may have been changed on its own screen, or deleted. */
export function lookAgain() {
    const known = items.filter((item) => item.stage === "accepted" && !item.isDeleted);
    for (const item of known) item.isStale = true;
    if (known.length > 0) hasten();
    else begin();
}

function tell(error) {
    trouble = error;
    touch(null);
}

listenToAccepted(hasten);
listenToSession(() => credential() !== null && hasten());

// ── One look.

const ENDS = new Set(["done", "failed", "cancelled", "expired"]);

const isOpen = (item) =>
    item.stage === "accepted" && !item.isDeleted && (item.isStale || !ENDS.has(item.image.status));

/** When the image is worth a look, in milliseconds since 1970: a scheduled one when its time comes, or when the service
 *  says to ask again, because it may be rescheduled. */
function lookAt({ image, isStale, againAt }) {
    if (isStale || image.status !== "scheduled" || !image.process_at) return 0;
    return Math.min(Date.parse(image.process_at), againAt ?? Infinity);
}

async function look() {
    const open = items.filter(isOpen);
    const now = Date.now();
    const due = open.filter((item) => lookAt(item) <= now);
    let wait;
    if (due.length > 0) {
        const groups = groupsOf(due);
        wait = groups.size <= FEW ? await lookAtEach(groups) : await lookAtList(groups);
    }
    const left = items.filter(isOpen);
    if (left.length === 0) {
        running = null; // a file that is accepted from now on begins anew
        return null;
    }
    const later = Math.max(0, Math.min(...left.map(lookAt)) - Date.now()) / 1000;
    const seconds = Math.min(LONGEST_SLEEP_SECONDS, later > 0 ? later : (wait ?? 1));
    nextLook = Date.now() + seconds * 1000;
    return seconds;
}

/** Files in the list by their image: several can be of one. */
function groupsOf(due) {
    const groups = new Map();
    for (const item of due) {
        if (!groups.has(item.image.id)) groups.set(item.image.id, []);
        groups.get(item.image.id).push(item);
    }
    return groups;
}

/** Asks for each image's status. Returns after how many seconds to ask again. */
async function lookAtEach(groups) {
    const results = await Promise.allSettled(Array.from(groups, ([id, group]) => lookAtOne(id, group)));
    const reasons = results.flatMap((result) => (result.status === "rejected" ? [result.reason] : []));
    if (reasons.length > 0) throw reasons.find(mayPass) ?? reasons[0];
    const answers = results.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
    const waits = answers.filter((seconds) => seconds !== null);
    return waits.length > 0 ? Math.min(...waits) : null;
}

async function lookAtOne(id, group) {
    let answer;
    try {
        answer = await call("GET", `/images/${id}/status`, { etag: group[0].etag });
    } catch (error) {
        if (!(error instanceof Problem) || error.status !== 404) throw error;
        for (const item of group) {
            item.isDeleted = true;
            touch(item);
        }
        return null;
    }
    for (const item of group) item.etag = answer.etag;
    show(group, answer.document ?? group[0].image, answer.retryAfter);
    return answer.retryAfter;
}

// The list's pages as they were last seen, from the newest images on; each with its entity tag and the ids on it.
let pages = [];
let latest = -1; // the index of the page that was read last
let nextList = 0; // no page is read before that: the caller's other programs have the same allowance
let turn = 0;
listenToSession(() => (pages = [])); // another caller has other images

/** Asks for one page of the list, in turn, and for a few images that are on none. */
async function lookAtList(groups) {
    if (nextList > Date.now()) return (nextList - Date.now()) / 1000;
    const missing = new Map(groups);
    const due = new Set(Array.from(groups.values(), ([{ image }]) => placeOf(image)));
    due.delete(NOWHERE);
    const places = [...due].sort((a, b) => a - b);
    const at = places.find((place) => place > latest) ?? places[0] ?? NOWHERE;
    let wait = LIST_SECONDS;
    if (at !== NOWHERE) {
        const { images, retryAfter, headers } = await readPage(at);
        const interval = Math.max(LIST_SECONDS, secondsPerRead(headers));
        nextList = Date.now() + interval * 1000;
        wait = Math.max(interval, Math.min(retryAfter ?? 0, LONGEST_LIST_SECONDS) / places.length);
        for (const image of images) {
            if (missing.has(image.id)) show(missing.get(image.id), image);
            missing.delete(image.id);
        }
    }
    const alone = Array.from(missing).filter(([, [{ image }]]) => [at, NOWHERE].includes(placeOf(image)));
    if (alone.length > 0) {
        turn = (turn + FEW) % alone.length;
        await lookAtEach(new Map([...alone.slice(turn), ...alone.slice(0, turn)].slice(0, FEW)));
    }
    return wait;
}

async function readPage(at) {
    const known = pages;
    const answer = await call("GET", "/images", {
        query: { urls: "thumb", limit: PAGE, cursor: at === 0 ? null : known[at - 1].next },
        etag: known[at]?.etag ?? null,
    });
    latest = at;
    // 304: the page is as it was. It may still be new to a file that was accepted since.
    if (answer.document) {
        const { images, next } = answer.document;
        if (next !== known[at]?.next) known.length = at; // those after it begin elsewhere now
        known[at] = { etag: answer.etag, images, next, ids: new Set(images.map(({ id }) => id)) };
    }
    return { ...answer, images: known[at].images };
}

const NOWHERE = -1;

/** The index of the page that shows an image, or may when it is read; NOWHERE if it was deleted or is too old. */
function placeOf({ id, created_at }) {
    const at = pages.findIndex(({ ids }) => ids.has(id));
    if (at >= 0) return at;
    const last = pages.at(-1);
    if (!last || created_at > (pages[0].images[0]?.created_at ?? "")) return 0;
    const isOlder = !(created_at >= last.images.at(-1)?.created_at);
    return isOlder && last.next !== null && pages.length < MOST_PAGES ? pages.length : NOWHERE;
}

/** Shows what was read of an image; `again` is after how many seconds it may have changed, if it is scheduled. */
function show(group, image, again = null) {
    for (const item of group) {
        item.againAt = Date.now() + (again ?? LONGEST_SLEEP_SECONDS) * 1000;
        const isAsBefore = item.isStale && ENDS.has(image.status) && image.status === item.image.status;
        item.isStale = false;
        if (isAsBefore || item.image === image) continue; // another address of the same picture would make it blink
        item.image = image;
        touch(item);
    }
}

/** Asks again for an image whose picture's address has run out. */
export async function refresh(item) {
    const answer = await call("GET", `/images/${item.image.id}/status`);
    item.isStale = false;
    show([item], answer.document);
}

/** The smallest picture of an image, with an address at which it can be fetched; null while there is none. */
export function thumbOf(image) {
    if (image.thumb) return image.thumb;
    // Lists carry routes, which need the caller's key; a status document carries whole addresses.
    const fetchable = image.variants.filter(({ url }) => /^https?:/.test(url));
    return fetchable.reduce(
        (least, variant) => (least === null || variant.width * variant.height < least.width * least.height ? variant : least),
        null,
    );
}
