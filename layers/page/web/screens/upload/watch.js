// Follows the images that the service has accepted, until each has ended: few one by one, many by one list.
import { call, credential, listenToSession, mayPass, poll, Problem } from "../../core.js";
import { items, listenToAccepted, touch } from "./queue.js";

const FEW = 4; // looks at single images, which cost one read each
const PAGE = 100; // of the list, which costs 15 reads: more than twice a second is refused
const LIST_SECONDS = 2;
const LONGEST_LIST_SECONDS = 30;
const MOST_PAGES = 3;
const SOON_MILLISECONDS = 2000;
const LONGEST_SLEEP_SECONDS = 600;

let running = null; // the controller of the loop that runs
let nextLook = 0;
const pages = new Map(); // of the list as they were last seen, with their entity tags, by their cursors

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
    const known = items.filter((item) => item.stage === "accepted" && !item.isGone);
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
    item.stage === "accepted" && !item.isGone && (item.isStale || !ENDS.has(item.image.status));

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
    const failed = results.find(({ status, reason }) => status === "rejected" && mayPass(reason));
    const lost = results.find(({ status }) => status === "rejected");
    if (failed ?? lost) throw (failed ?? lost).reason;
    const waits = results.map(({ value }) => value).filter((seconds) => seconds !== null);
    return waits.length > 0 ? Math.min(...waits) : null;
}

async function lookAtOne(id, group) {
    let answer;
    try {
        answer = await call("GET", `/images/${id}/status`, { etag: group[0].etag });
    } catch (error) {
        if (!(error instanceof Problem) || error.status !== 404) throw error;
        for (const item of group) {
            item.isGone = true;
            touch(item);
        }
        return null;
    }
    for (const item of group) item.etag = answer.etag;
    show(group, answer.document ?? group[0].image, answer.retryAfter);
    return answer.retryAfter;
}

/** Asks for the newest images at once, then for watched ones that are not among them. */
async function lookAtList(groups) {
    const missing = new Map(groups);
    let wait = LIST_SECONDS;
    let cursor = null;
    for (let page = 0; page < MOST_PAGES && missing.size > FEW; page += 1) {
        const answer = await call("GET", "/images", {
            query: { urls: "thumb", limit: PAGE, cursor },
            etag: pages.get(cursor)?.etag ?? null,
        });
        if (page === 0) wait = Math.min(Math.max(LIST_SECONDS, answer.retryAfter ?? 0), LONGEST_LIST_SECONDS);
        // 304: the page is as it was. It may still be new to a file that was accepted since.
        const seen = answer.document ? { etag: answer.etag, ...answer.document } : pages.get(cursor);
        if (pages.size > MOST_PAGES) pages.clear(); // pages under cursors that nobody follows any more
        pages.set(cursor, seen);
        for (const image of seen.images) {
            if (missing.has(image.id)) show(missing.get(image.id), image);
            missing.delete(image.id);
        }
        cursor = seen.next;
        if (cursor === null) break;
    }
    // Reads have a limit: what is still missing waits its turn.
    const rest = Array.from(missing);
    if (rest.length > 0) {
        turn = (turn + FEW) % rest.length;
        await lookAtEach(new Map([...rest.slice(turn), ...rest.slice(0, turn)].slice(0, FEW)));
    }
    return wait;
}

let turn = 0;

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
        (least, one) => (least === null || one.width * one.height < least.width * least.height ? one : least),
        null,
    );
}
