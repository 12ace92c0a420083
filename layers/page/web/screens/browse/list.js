// The caller's images as a list, newest first: read page by page, kept up to date, remembered while other screens show.
import { listenToSession, nameOf } from "../../core.js";
import { call } from "../../requests.js";
import { secondsPerRead } from "../allowance.js";

/** Statuses by which the list can be filtered, in the order of an image's life. */
export const STATUSES = [
    ...["awaiting_upload", "fetching", "scheduled", "pending", "processing"],
    ...["done", "failed", "expired"],
];

const ENDED = new Set(["done", "failed", "expired", "cancelled"]);
const PAGE_IMAGES = 100;
const IDLE_SECONDS = 30;
const USUAL_SECONDS = 3;
const MOST_SINGLES = 5; // images outside of all pages that one look reads
const REST_SECONDS = 5; // what was read so lately is not read again
const FRESH_MILLISECONDS = 10 * 60_000; // presigned addresses are valid for 15 minutes

/** Whether nothing more happens to an image by itself. */
export const hasEnded = (image) => ENDED.has(image.status);

const AT_TOP_PIXELS = 200; // scrolled less than this, the newest images are in view

const isNewer = (a, b) => a.created_at > b.created_at;

/**
 * The images with some statuses. `images` are those to show, and `old` until the first page is read; `fresh` are newer
 * ones that wait to be shown, and `hasGap` says that so many are new that the list must begin again. `scroll` and
 * `opened` are where its reader was; while `isHeld`, nothing is put before what is shown.
 */
export class ImageList {
    /**
     * @param {string} statuses  comma-separated; empty for all
     * @param {Json[]} old  images with these statuses that are known already
     */
    constructor(statuses, old = []) {
        this.old = old;
        this.statuses = statuses;
        this.images = [];
        this.fresh = [];
        this.hasGap = false;
        this.next = null;
        this.isStarted = false;
        this.scroll = 0;
        this.opened = null;
        this.isHeld = false;
        this.readAt = 0;
        this.pages = [];
        this.round = []; // the pages that are to be looked at again, one at each look
        this.pageOf = new Map();
        this.known = new Map();
        this.renewed = new Map();
        this.listeners = new Set();
        this.loading = null;
    }

    /** Calls `listener` after each change; returns a function that ends that. */
    listen(listener) {
        this.listeners.add(listener);
        return () => this.listeners.delete(listener);
    }

    changed() {
        this.listeners.forEach((listener) => listener());
    }

    get isWhole() {
        return this.isStarted && this.next === null;
    }

    /** Begins with `images`, which are all that there are, as another list has read them: nothing is read now. */
    beginWith(images, { pages }) {
        const page = { cursor: null, etag: null, signedAt: Math.min(...pages.map(({ signedAt }) => signedAt)) };
        Object.assign(this, { images, pages: [page], isStarted: true, readAt: Date.now() });
        for (const image of images) {
            this.known.set(image.id, image);
            this.pageOf.set(image.id, page);
        }
    }

    /** The seconds until it is worth another look. */
    get rest() {
        return Math.max(0, REST_SECONDS - (Date.now() - this.readAt) / 1000);
    }

    /** Reads the next page, once at a time. */
    more() {
        this.loading ??= this.#more().finally(() => {
            this.loading = null;
            this.changed();
        });
        return this.loading;
    }

    async #more() {
        if (this.isWhole) return;
        const page = { cursor: this.next, etag: null, signedAt: Date.now() };
        const { document } = await this.#read(page);
        if (this.next !== page.cursor) return; // the list has begun again meanwhile
        this.pages.push(page);
        const added = document.images.filter((image) => !this.known.has(image.id));
        document.images.forEach((image) => this.pageOf.set(image.id, page));
        added.forEach((image) => this.known.set(image.id, image));
        this.images = this.images.concat(added);
        this.next = document.next;
        this.isStarted = true;
    }

    async #read(page, isForced = false) {
        const query = { urls: "thumb", limit: PAGE_IMAGES, status: this.statuses || null, cursor: page.cursor };
        const answer = await call("GET", "/images", { query, etag: isForced ? null : page.etag });
        page.etag = answer.etag ?? page.etag;
        page.dearness = Math.max(USUAL_SECONDS, secondsPerRead(answer.headers));
        page.retryAfter = answer.retryAfter;
        this.readAt = Date.now();
        if (isForced) page.signedAt = Date.now();
        return answer;
    }

    /**
     * Reads again what may have changed, one page at each look, as a page costs many reads: in turn the first page,
     * the pages of `visible` images that are unfinished, and with `isWhole` the pages of all visible ones. Returns the
     * seconds until the next look.
     */
    async look(visible, isWhole) {
        if (!this.isStarted) await this.more();
        const current = visible.map(({ id }) => this.known.get(id)).filter(Boolean);
        const changing = current.filter((image) => isWhole || !hasEnded(image));
        const due = new Set([this.pages[0], ...changing.map((image) => this.pageOf.get(image.id)).filter(Boolean)]);
        if (isWhole || this.round.length === 0) this.round = [...due];
        const [page] = this.round;
        await this.refresh(page);
        this.round = this.round.filter((waiting) => waiting !== page);
        const singles = changing.filter((image) => !this.pageOf.has(image.id) && !hasEnded(image));
        for (const image of singles.slice(0, MOST_SINGLES)) await this.#readOne(image.id);
        const asked = Math.min(...Array.from(due, ({ retryAfter }) => retryAfter ?? IDLE_SECONDS), IDLE_SECONDS);
        return Math.max(page.dearness, this.round.length > 0 ? 0 : asked);
    }

    /** Reads `page` again, and notes what is new, changed or gone. `isForced` replaces its pictures' addresses. */
    async refresh(page, isForced = false) {
        const { document } = await this.#read(page, isForced);
        if (document === null) return;
        const { images, next } = document;
        const ids = new Set(images.map((image) => image.id));
        const last = images.at(-1);
        const isCovered = (image) => next === null || (last && isNewer(image, last));
        const gone = new Set();
        for (const image of this.images) {
            if (this.pageOf.get(image.id) !== page || ids.has(image.id)) continue;
            if (isCovered(image)) gone.add(image.id);
            else this.pageOf.delete(image.id); // newer ones have pushed it out of the first page
        }
        if (page === this.pages[0]) {
            const isOnlyNew = images.length > 0 && !images.some((image) => this.known.has(image.id));
            this.hasGap = this.images.length > 0 && next !== null && isOnlyNew;
            this.fresh = images.filter((image) => !this.known.has(image.id));
            // Nothing is there that could move: show them at once.
            if (this.images.length === 0) this.#take();
            // Who has just uploaded a photo looks for it.
            else if (!this.hasGap && !this.isHeld && this.scroll < AT_TOP_PIXELS) {
                this.#take(this.fresh.filter(({ id }) => nameOf(id) !== null));
            }
        }
        images.forEach((image) => this.#replace(image, page, isForced));
        this.#drop(gone);
        this.changed();
    }

    #replace(image, page, isForced) {
        const before = this.known.get(image.id);
        if (!before) return;
        // Another address of the same picture would only load it again.
        const isSame = before.run === image.run && before.thumb?.name === image.thumb?.name && before.thumb;
        const after = isSame && !isForced ? { ...image, thumb: before.thumb } : image;
        this.known.set(image.id, after);
        if (page) this.pageOf.set(image.id, page);
        const index = this.images.indexOf(before);
        if (index >= 0) this.images[index] = after;
    }

    #drop(ids) {
        if (ids.size === 0) return;
        this.images = this.images.filter((image) => !ids.has(image.id));
        ids.forEach((id) => {
            this.known.delete(id);
            this.pageOf.delete(id);
        });
    }

    #take(taken = this.fresh) {
        if (taken.length === 0) return;
        for (const image of taken) {
            this.known.set(image.id, image);
            this.pageOf.set(image.id, this.pages[0]);
        }
        const isFirst = taken.every((image) => !this.images[0] || !isNewer(this.images[0], image));
        this.images = [...taken, ...this.images];
        if (!isFirst) this.images.sort((a, b) => (isNewer(a, b) ? -1 : isNewer(b, a) ? 1 : 0));
        this.fresh = this.fresh.filter((image) => !taken.includes(image));
    }

    /** Shows the images that are new since the list was read. */
    async showFresh() {
        if (!this.hasGap) {
            this.#take();
            this.changed();
            return;
        }
        const page = { cursor: null, etag: null, signedAt: Date.now() };
        const { document } = await this.#read(page); // until it is read, what was there stays
        Object.assign(this, { images: document.images, fresh: [], hasGap: false, next: document.next });
        Object.assign(this, { pages: [page], round: [] });
        this.known = new Map(document.images.map((image) => [image.id, image]));
        this.pageOf = new Map(document.images.map((image) => [image.id, page]));
        this.changed();
    }

    /** Forgets an image that was deleted. */
    forget(id) {
        this.#drop(new Set([id]));
        this.old = this.old.filter((image) => image.id !== id);
        this.changed();
    }

    /** Gets a new address for the picture of `image`, whose present one does not work; once in a while. */
    async renew(image) {
        const now = Date.now();
        if (now - (this.renewed.get(image.id) ?? 0) < FRESH_MILLISECONDS) return;
        this.renewed.set(image.id, now);
        const page = this.pageOf.get(image.id);
        try {
            if (page && now - page.signedAt > FRESH_MILLISECONDS) {
                page.renewing ??= this.refresh(page, true).finally(() => (page.renewing = null));
                await page.renewing;
            } else {
                await this.#readOne(image.id);
            }
        } catch {
            this.renewed.delete(image.id); // its placeholder stays until it is tried again
        }
    }

    async #readOne(id) {
        let document;
        try {
            ({ document } = await call("GET", `/images/${id}`));
        } catch (error) {
            if (error.status !== 404) throw error;
            return this.forget(id);
        }
        const thumb = [...document.variants].sort((a, b) => a.bytes - b.bytes)[0] ?? null;
        this.#replace({ ...document, thumb }, null, true);
        this.changed();
    }
}

const MOST_LISTS = 4;
const lists = new Map();
listenToSession(() => lists.clear()); // another caller has other images

/**
 * The list with these statuses: the one from before, if it is still known. A list costs fifteen reads; what the list of
 * all images has read completely is not read once more for each filter.
 */
export function listOf(statuses) {
    const list = lists.get(statuses) ?? new ImageList(statuses, knownWith(statuses));
    const all = lists.get("");
    if (!list.isStarted && all?.isWhole) list.beginWith(withStatuses(all.images, statuses), all);
    lists.delete(statuses);
    lists.set(statuses, list);
    if (lists.size > MOST_LISTS) lists.delete(lists.keys().next().value);
    return list;
}

/** The images with these statuses that other lists have read, newest first. */
function knownWith(statuses) {
    const images = new Map(Array.from(lists.values()).flatMap((list) => list.images.map((image) => [image.id, image])));
    return withStatuses(Array.from(images.values()), statuses)
        .sort((a, b) => (isNewer(a, b) ? -1 : isNewer(b, a) ? 1 : 0));
}

function withStatuses(images, statuses) {
    const wanted = statuses ? statuses.split(",") : STATUSES;
    return images.filter(({ status }) => wanted.includes(status));
}

/** Takes a deleted image out of every list. */
export const forgetImage = (id) => lists.forEach((list) => list.forget(id));
