// Paints placeholders a few at a time, so that no frame waits for them, and then has their pictures loaded.
import { thumbHashToRGBA } from "../../vendor/thumbhash.js";

const BUDGET_MILLISECONDS = 4;
const MOST_REMEMBERED = 1000;

const waiting = new Map();
const remembered = new Map();
let isBusy = false;

/**
 * Paints `placeholder` on `canvas`, and has `picture` load `url`, when there is time for it. What is asked for `owner`
 * later replaces it.
 */
export function paintLater(owner, work) {
    waiting.set(owner, work);
    if (isBusy) return;
    isBusy = true;
    requestAnimationFrame(go);
}

/** Forgets what `owner` asked for: it has left the view. */
export const paintNever = (owner) => waiting.delete(owner);

function go() {
    const end = performance.now() + BUDGET_MILLISECONDS;
    for (const [owner, work] of waiting) {
        waiting.delete(owner);
        paint(work);
        if (performance.now() >= end) break;
    }
    isBusy = waiting.size > 0;
    if (isBusy) requestAnimationFrame(go);
}

function paint({ canvas, placeholder, picture, url }) {
    if (canvas && placeholder) {
        canvas.style.background = placeholder.color;
        const decoded = decode(placeholder.thumbhash);
        if (decoded) {
            canvas.width = decoded.width;
            canvas.height = decoded.height;
            canvas.getContext("2d").putImageData(decoded, 0, 0);
        }
    }
    if (picture && url !== null && picture.getAttribute("src") !== url) picture.src = url;
}

function decode(thumbhash) {
    if (remembered.has(thumbhash)) return remembered.get(thumbhash);
    let decoded = null;
    try {
        const { w, h, rgba } = thumbHashToRGBA(Uint8Array.from(atob(thumbhash), (char) => char.charCodeAt(0)));
        decoded = new ImageData(new Uint8ClampedArray(rgba), w, h);
    } catch {
        // The colour is enough.
    }
    if (remembered.size >= MOST_REMEMBERED) remembered.delete(remembered.keys().next().value);
    remembered.set(thumbhash, decoded);
    return decoded;
}
