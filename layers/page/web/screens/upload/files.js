// Finds the files in what was dropped, pasted or picked, folders included.

/**
 * Files with their paths, how many others in folders were left out because they are no pictures, and how many files and
 * folders could not be read.
 *
 * @typedef {{files: {file: File, path: string, url?: string}[], leftOut: number, unreadable: number}} Found
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
    const result = { files: [], leftOut: 0, unreadable: 0 };
    for (const source of sources) {
        if (source !== null && "isDirectory" in source && source.isDirectory) {
            await walk(source, result);
            continue;
        }
        const file = source === null || source instanceof File ? source : await fileOf(source);
        if (file === null) result.unreadable += 1;
        else result.files.push({ file, path: source.name });
    }
    return result;
}

/** @returns {Found}  of files that were picked; of a folder only the pictures */
export function filesOfPick(picked, isFolder) {
    const all = picked.map((file) => ({ file, path: file.webkitRelativePath || file.name }));
    const files = isFolder ? all.filter(({ file }) => isPicture(file)) : all;
    return { files, leftOut: all.length - files.length, unreadable: 0 };
}

/**
 * A link as if it were a file, whose bytes are the link: the service fetches what is there.
 *
 * @returns {Found}  its file has `url` besides
 */
export function filesOfLink(url) {
    const { host, pathname } = new URL(url);
    const name = `${host}${pathname}`; // a query may be a secret
    return { files: [{ file: new File([url], name), path: name, url }], leftOut: 0, unreadable: 0 };
}

async function walk(folder, result) {
    for (const entry of await entriesOf(folder, result)) {
        if (entry.isDirectory) {
            await walk(entry, result);
            continue;
        }
        const file = await fileOf(entry);
        if (file === null) result.unreadable += 1;
        else if (isPicture(file)) result.files.push({ file, path: entry.fullPath.replace(/^\//, "") });
        else result.leftOut += 1;
    }
}

/** A folder's entries by name: a reader gives at most a hundred at a time, and none at the end. */
async function entriesOf(folder, result) {
    const reader = folder.createReader();
    const entries = [];
    for (;;) {
        const batch = await new Promise((resolve) => reader.readEntries(resolve, () => resolve(null)));
        if (batch === null) result.unreadable += 1; // the rest of it is missing
        if (!batch?.length) break;
        entries.push(...batch);
    }
    return entries.sort((a, b) => a.name.localeCompare(b.name, undefined, { numeric: true }));
}

const fileOf = (entry) => new Promise((resolve) => entry.file(resolve, () => resolve(null)));
