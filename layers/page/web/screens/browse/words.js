// How Browse and the image screen write of an image: its name, its moments, and what its files are called.
import { nameOf } from "../../core.js";

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
