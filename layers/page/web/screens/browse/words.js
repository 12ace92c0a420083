// How Browse and the image screen write of an image: its name, its moments, and what its files are called.
import { nameOf, relative } from "../../core.js";

/** What an image is called: its file's name if this browser sent it, else "Image". */
export const titleOf = (id) => nameOf(id) ?? "Image";

/** "Dec 2, 9:00 AM" of an RFC 3339 instant, as the reader writes it; with its year if that is another than this one. */
export function moment(instant) {
    const time = new Date(instant);
    const isThisYear = time.getFullYear() === new Date().getFullYear();
    return time.toLocaleString(undefined, {
        ...(isThisYear ? {} : { year: "numeric" }),
        ...{ month: "short", day: "numeric", hour: "numeric", minute: "2-digit" },
    });
}

const ATTEMPTS = 5;
const FETCHES = 10;

/** How many times an image of this status is attempted at most. */
export const mostAttempts = (status) => (status === "fetching" ? FETCHES : ATTEMPTS);

/** "2 of 5 attempts failed, the next begins in 3 min" of an image that is not finished; empty if none has. */
export function failedAttempts({ status, attempt, retry_at: next }, now = Date.now()) {
    const isOnItsWay = status === "processing" || (status === "fetching" && !next);
    const failed = isOnItsWay ? attempt - 1 : ["pending", "fetching"].includes(status) ? attempt : 0;
    if (!(failed > 0)) return "";
    const attempts = `${failed} of ${mostAttempts(status)} attempts failed`;
    return next ? `${attempts}, the next begins ${relative(next, now)}` : attempts;
}

const MOST_CHARACTERS = 80;

/** How the names of an image's saved files begin: as its own file's name, without what a disk would refuse. */
export function fileStem(id) {
    const file = (nameOf(id) ?? "").split(/[\\/]/).pop();
    const plain = file
        .replace(/\.\w{1,5}$/, "")
        .replace(/[\p{C}:*?"<>|]+/gu, "-")
        .replace(/^[.\s-]+|[.\s-]+$/g, "");
    return Array.from(plain).slice(0, MOST_CHARACTERS).join("") || id;
}
