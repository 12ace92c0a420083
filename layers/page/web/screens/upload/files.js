// Finds the files in what was dropped, pasted or picked, folders included.

/**
 * Files with their paths, and how many others in folders were left out because they are no pictures.
 *
 * @typedef {{files: {file: File, path: string}[], leftOut: number}} Found
 */

const PICTURE = /\.(jpe?g|jfif|png|webp|gif|avif|heic|heif)$/i;

/** Whether a file in a folder is meant: folders also hold files that nobody thinks of. */
const isPicture = (file) =>
    !file.name.startsWith(".") && (PICTURE.test(file.name) || /^image\/(?!svg)/.test(file.type));

/**
 * @param {(FileSystemEntry|File|null)[]} sources  what was dropped. What was dropped by itself is taken whatever it is,
 *        so that its sender gets an answer
 * @returns {Promise<Found>}
 */
export async function filesOfDrop(sources) {
    const found = { files: [], leftOut: 0 };
    for (const source of sources) {
        if (source === null) continue;
        if (source instanceof File) found.files.push({ file: source, path: source.name });
        else if (source.isDirectory) await walk(source, found);
        else found.files.push({ file: await fileOf(source), path: source.name });
    }
    found.files = found.files.filter(({ file }) => file !== null);
    return found;
}

/** @returns {Found}  of files that were picked; of a folder only the pictures */
export function filesOfPick(picked, isFolder) {
    const all = picked.map((file) => ({ file, path: file.webkitRelativePath || file.name }));
    const files = isFolder ? all.filter(({ file }) => isPicture(file)) : all;
    return { files, leftOut: all.length - files.length };
}

/**
 * A link as if it were a file, whose bytes are the link: the service fetches what is there.
 *
 * @returns {{files: {file: File, path: string, url: string}[], leftOut: number}}
 */
export function filesOfLink(url) {
    const { host, pathname } = new URL(url);
    const name = `${host}${pathname}`; // a query may be a secret
    return { files: [{ file: new File([url], name), path: name, url }], leftOut: 0 };
}

async function walk(folder, found) {
    for (const entry of await entriesOf(folder)) {
        if (entry.isDirectory) {
            await walk(entry, found);
            continue;
        }
        const file = await fileOf(entry);
        if (file !== null && isPicture(file)) found.files.push({ file, path: entry.fullPath.replace(/^\//, "") });
        else found.leftOut += 1;
    }
}

/** A folder's entries by name: a reader gives at most a hundred at a time, and none at the end. */
async function entriesOf(folder) {
    const reader = folder.createReader();
    const entries = [];
    for (;;) {
        const batch = await new Promise((resolve) => reader.readEntries(resolve, () => resolve([])));
        if (batch.length === 0) break;
        entries.push(...batch);
    }
    return entries.sort((one, other) => one.name.localeCompare(other.name, undefined, { numeric: true }));
}

const fileOf = (entry) => new Promise((resolve) => entry.file(resolve, () => resolve(null)));
