// What the browser keeps of files, so that dropping them again after a reload goes on where it was.
import { ofBrowser } from "../../core.js";

const PLACE = "darkroom.files";
const MOST = 1000;

/**
 * By the first key of a file and its settings: `generation`, how often it was to be uploaded again as another image. By
 * the file's SHA-256: `focal`, the point that its crops keep, if it was moved, or "attention".
 *
 * @typedef {{generation: number, focal: {x: number, y: number}|"attention"|null}} Kept
 */

/** @returns {Kept} */
export const keptOf = (hash) => ({ generation: 0, focal: null, ...ofBrowser.read(PLACE, {})[hash] });

/** Keeps `change` under the hash, as the latest one. */
export function keep(hash, change) {
    const { [hash]: before, ...files } = ofBrowser.read(PLACE, {});
    const after = { generation: 0, focal: null, ...before, ...change };
    if (after.generation > 0 || after.focal !== null) files[hash] = after;
    const entries = Object.entries(files);
    ofBrowser.write(PLACE, Object.fromEntries(entries.slice(-MOST)));
}
