// What every screen needs besides components: settings, the session, and how figures are written.

// ── Settings: what the stack says of itself: how callers sign in, and its limits.

/**
 * @typedef {object} Settings
 * @property {"keys"|"jwt"|"iam"|"anonymous"} access  who may call the API
 * @property {string|null} issuer  of tokens, with access "jwt"
 * @property {string|null} client_id  of this page at the issuer, with access "jwt"
 * @property {number} max_upload_bytes  the largest file
 * @property {{variants: number, side_pixels: number, work_pixels: number, work_of_format: Record<string, number>,
 *            recipe_bytes: number, delay_seconds: number}} limits  of a recipe and of a delay
 * @property {Record<string, Json>} presets  the recipe of each preset, by its name
 * @property {string} [audience]  for which tokens are, with access "jwt": one or several with commas
 * @property {string} [sign_in_origin]  where the issuer's sign-in page is, if that is another host
 * @property {string[]} parts  the optional parts that the stack has: "webhooks", "usage", "imports"
 * @property {string} [stack]  its name, on the operators' page, as all that follows
 * @property {string} [region]
 * @property {boolean} [local]  whether it runs on this machine
 * @property {boolean} [production]
 * @property {boolean} [write]  whether the operator may act
 */

/** @type {Settings} */
export const settings = JSON.parse(/** @type {HTMLMetaElement} */ (document.querySelector("meta[name=darkroom]")).content);

/** Whether the stack has that optional part. */
export const has = (part) => settings.parts.includes(part);

/** Whether the window is as narrow as a phone's: `matches`, and the event "change". */
export const phone = matchMedia("(max-width: 40rem)");

// ── Storage: what the browser keeps for this tab, or for later visits too.

/** One of the browser's stores. Where the browser forbids it or it is full, what is set lasts as long as the page. */
class Store {
    #storage = null;
    #unwritten = new Map();

    constructor(name) {
        try {
            this.#storage = globalThis[name];
        } catch {
            // The browser blocks the site's data.
        }
    }

    /** The text at this place; null if there is none. */
    get(place) {
        return this.#unwritten.has(place) ? this.#unwritten.get(place) : (this.#storage?.getItem(place) ?? null);
    }

    /** Keeps the text at this place; null removes what is there. */
    set(place, text) {
        try {
            if (text === null) this.#storage.removeItem(place);
            else this.#storage.setItem(place, text);
            this.#unwritten.delete(place);
        } catch {
            this.#unwritten.set(place, text);
        }
    }

    /** The object or array at this place, which was set as JSON; `otherwise` if there is none. */
    read(place, otherwise = null) {
        try {
            const stored = JSON.parse(this.get(place));
            return stored !== null && typeof stored === "object" ? stored : otherwise;
        } catch {
            return otherwise;
        }
    }

    /** Keeps an object or array. */
    write(place, value) {
        this.set(place, JSON.stringify(value));
    }
}

/** What is gone when the tab is closed. */
export const ofTab = new Store("sessionStorage");

/** What is still there at the next visit. */
export const ofBrowser = new Store("localStorage");

// ── The session: the caller's credential. It stays in this tab's session: never in an address, and gone when the tab is closed.

const PLACE = "darkroom.credential";
const listeners = new Set();

/** The API key or token; null while the caller has not given one. */
export const credential = () => ofTab.get(PLACE);

/** Whether the API asks for a credential that is not here yet. */
export const needsCredential = () =>
    (settings.access === "keys" || settings.access === "jwt") && credential() === null;

/** Keeps `text` as the credential of this tab. */
export function keep(text) {
    ofTab.set(PLACE, text);
    listeners.forEach((listen) => listen(null));
}

/** Forgets the credential; `reason` tells the caller why, if it was refused. Without one the caller leaves on purpose, and
 *  the names and pictures of their files go too. */
export function forget(reason = null) {
    ofTab.set(PLACE, null);
    if (reason === null) {
        ofBrowser.set(NAMES_PLACE, null);
        forgetPictures();
    }
    listeners.forEach((listen) => listen(reason));
}

/** Calls `listen(reason)` whenever the credential changes; returns a function that ends that. */
export function listenToSession(listen) {
    listeners.add(listen);
    return () => listeners.delete(listen);
}

// ── Names: what the files of images were called. Only this browser knows: the service keeps no file names.

const NAMES_PLACE = "darkroom.names";
const MOST_NAMES = 500;

/** The name of the file that the image with this id was made of; null unless it was sent from this browser. */
export const nameOf = (id) => names().get(id) ?? null;

/** Remembers the name of an image's file; of more than 500 the oldest is forgotten. */
export function rememberName(id, name) {
    const known = names();
    known.delete(id); // the newest is last
    known.set(id, name);
    ofBrowser.write(NAMES_PLACE, Array.from(known).slice(-MOST_NAMES));
}

function names() {
    const kept = ofBrowser.read(NAMES_PLACE, []);
    return new Map(/** @type {[string, string][]} */ (Array.isArray(kept) ? kept.filter(Array.isArray) : []));
}

// ── Files: how many of them are lost if the page is left.

/** Counts the chosen files that the service has not accepted; screens/upload/queue.js knows, once there are any. */
export const unsent = { count: () => 0 };

// ── Pictures: small ones of the files that this tab has sent, until it is closed.

const pictures = new Map();

/** The address of a picture of the file that the image with this id was made of; null if this tab has none. */
export const pictureOf = (id) => pictures.get(id) ?? null;

/** Keeps the address of such a picture. */
export const keepPicture = (id, url) => pictures.set(id, url);

function forgetPictures() {
    pictures.forEach((url) => URL.revokeObjectURL(url));
    pictures.clear();
}

// ── Figures: numbers and times as people read them.

const UNITS = ["KB", "MB", "GB", "TB"];
const MIB = 2 ** 20;

/** "812 bytes", "1.5 MB", "25 MB": decimal units, as file managers show them; domain/kernel/sizes.py writes the same. */
export function bytes(count) {
    if (count < 1000) return `${count} ${count === 1 ? "byte" : "bytes"}`;
    let value = count;
    let unit = -1;
    do {
        value /= 1000;
        unit += 1;
    } while (value >= 999.95 && unit < UNITS.length - 1);
    return `${value.toFixed(1).replace(/\.0$/, "")} ${UNITS[unit]}`;
}

/** A limit on files in the unit in which it is a whole number: "25 MB", "24 MiB". */
export const limit = (count) => (count > 0 && count % MIB === 0 ? `${count / MIB} MiB` : bytes(count));

/** "12 s", "3 min", "2 h 5 min", "4 days": the two largest units that matter. */
export function duration(seconds) {
    const rounded = Math.max(0, Math.round(seconds));
    if (rounded < 60) return `${rounded} s`;
    if (rounded < 3600) return `${Math.round(rounded / 60)} min`;
    if (rounded < 86400) {
        const hours = Math.floor(rounded / 3600);
        const minutes = Math.round((rounded % 3600) / 60);
        return minutes && minutes < 60 ? `${hours} h ${minutes} min` : `${hours} h`;
    }
    const days = Math.round(rounded / 86400);
    return days === 1 ? "1 day" : `${days} days`;
}

/** "3 min ago" or "in 2 h" of an RFC 3339 instant. */
export function relative(instant, now = Date.now()) {
    const seconds = (Date.parse(instant) - now) / 1000;
    if (Math.abs(seconds) < 5) return "now";
    return seconds < 0 ? `${duration(-seconds)} ago` : `in ${duration(seconds)}`;
}

/** An RFC 3339 instant in the reader's own time zone and language. */
export const local = (instant) =>
    new Date(instant).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });

/** "1 image", "12 images". */
export const count = (number, noun, many = `${noun}s`) => `${number.toLocaleString()} ${number === 1 ? noun : many}`;

/** A sentence with a capital letter and a full stop, of text that came from elsewhere. */
export function sentence(text) {
    const trimmed = String(text ?? "").trim();
    if (!trimmed) return "";
    const capital = trimmed[0].toUpperCase() + trimmed.slice(1);
    return /[.!?]$/.test(capital) ? capital : `${capital}.`;
}
