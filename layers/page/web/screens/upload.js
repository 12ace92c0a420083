// Takes files, by dropping, pasting and picking; sends them, and shows how each one comes along.
import { html, useLayoutEffect, useRef, useState } from "../vendor/preact.js";
import { count, has, limit, phone, settings } from "../core.js";
import { announce, NotLoaded } from "../parts.js";

// What works on files is loaded when there are some, and goes on while another screen is open.
let work = null;
let loading = null;
const prepare = () => {
    loading ??= Promise.all([import("./upload/work.js"), import("./upload/files.js")]).then(
        ([module, files]) => (work = { ...module, ...files }),
        (error) => {
            loading = null;
            throw error;
        },
    );
    return loading;
};

/** How photos are chosen, besides dropping and pasting them. */
function Choice({ onPick, onAhead }) {
    const files = useRef(null);
    const folder = useRef(null);
    return html`<section class="upload-drop" aria-label="Add photos" onPointerEnter=${onAhead} onFocusIn=${onAhead}>
        <p class="upload-invitation">${
            has("imports") ? "Drop photos, folders or a photo’s link" : "Drop photos or folders"
        } on this page, paste them, or</p>
        <div class="row">
            <button type="button" class="main" id="choose-photos" onClick=${() => files.current.click()}>
                Choose photos</button>
            <button type="button" onClick=${() => folder.current.click()}>Choose a folder</button>
        </div>
        <input ref=${files} type="file" multiple accept="image/*" hidden aria-label="Photos" tabindex="-1"
            onChange=${(event) => onPick(event.target, false)} />
        <input ref=${folder} type="file" webkitdirectory hidden aria-label="Folder" tabindex="-1"
            onChange=${(event) => onPick(event.target, true)} />
        <p class="quiet">JPEG, PNG, WebP or GIF, up to ${limit(settings.max_upload_bytes)} each. Nothing is sent
            before you say so.</p>
    </section>`;
}

/** What of the chosen is not in the list. */
const Missing = ({ leftOut, unreadable }) => html`${
        leftOut > 0 &&
        html`<p class="quiet" role="status">${count(leftOut, "file")} in the folder${" "}
        ${leftOut === 1 ? "is no photo and was" : "are no photos and were"} left out.</p>`
    }
    ${
        unreadable > 0 &&
        html`<p class="note" role="alert">${count(unreadable, "file or folder", "files or folders")} could not be
        read: what is in them is not in the list.</p>`
    }`;

/** The screen that the page begins with. */
export default function Upload() {
    const [isLoaded, setLoaded] = useState(work !== null);
    const [isOver, setOver] = useState(false);
    const [missing, setMissing] = useState({ leftOut: 0, unreadable: 0 });
    const [isUnloaded, setUnloaded] = useState(false);

    /** Adds what `find(module)` finds. */
    const take = async (find) => {
        try {
            const module = await prepare();
            const chosen = await find(module);
            module.add(chosen.files);
            setMissing(chosen);
            setLoaded(true);
            setUnloaded(false);
            announce(`${count(chosen.files.length, "file")} added`);
            // On a phone the button that sends them, and the files, would be out of sight.
            if (phone.matches) requestAnimationFrame(() => requestAnimationFrame(showFiles));
        } catch {
            setUnloaded(true);
        }
    };
    useDrops(setOver, (sources, url) =>
        take((module) => (url === null ? module.filesOfDrop(sources) : module.filesOfLink(url))),
    );
    // What the screen invites to is taken from its first moment: a browser opens what is dropped on a page without listeners.
    useLayoutEffect(() => {
        const paste = (event) => {
            const pasted = Array.from(event.clipboardData?.files ?? []);
            const url = event.target.closest?.("input, textarea") ? null : linkIn(event.clipboardData);
            if (pasted.length === 0 && url === null) return;
            event.preventDefault();
            take((module) => (pasted.length > 0 ? module.filesOfPick(pasted, false) : module.filesOfLink(url)));
        };
        addEventListener("paste", paste);
        return () => removeEventListener("paste", paste);
    }, []);
    const pick = (input, isFolder) => {
        const picked = Array.from(input.files);
        input.value = ""; // so that the same files can be picked again
        if (picked.length > 0) take((module) => module.filesOfPick(picked, isFolder));
    };
    const ahead = () => prepare().catch(() => {}); // what is needed next, while the reader still looks for a file
    const Work = work?.default;
    return html`<div class=${`upload${isLoaded ? " has-files" : ""}${isOver ? " is-over" : ""}`}>
        <h1>Upload</h1>
        <${Choice} onPick=${pick} onAhead=${ahead} />
        ${isUnloaded && html`<${NotLoaded} then=", then add the files again" />`}
        <${Missing} ...${missing} />
        ${isLoaded && html`<${Work} />`}
        <p class="quiet upload-earlier">What you uploaded earlier is under <a href="#/browse">Browse</a>.</p>
    </div>`;
}

const showFiles = () => document.querySelector(".upload-overview")?.scrollIntoView({ block: "start" });

/** The one link in what was pasted or dropped; null if there is anything else, or the stack does not fetch. */
function linkIn(data) {
    if (!has("imports")) return null;
    const text = (data?.getData("text/uri-list") || data?.getData("text/plain") || "").trim();
    return /^https?:\/\/\S+$/i.test(text) && URL.canParse(text) ? text : null;
}

/** Takes what is dropped anywhere on the page, and calls `setOver` while something is over it. */
function useDrops(setOver, take) {
    const latest = useRef(take);
    latest.current = take;
    useLayoutEffect(() => {
        let depth = 0; // of elements that were entered and not left
        let isOurs = false; // a link of this page is no photo to upload
        const hasFiles = (event) => {
            const types = Array.from(event.dataTransfer?.types ?? []);
            return types.includes("Files") || (types.includes("text/uri-list") && !isOurs && has("imports"));
        };
        const enter = (event) => {
            if (!hasFiles(event)) return;
            event.preventDefault();
            depth += 1;
            setOver(true);
            prepare().catch(() => {});
        };
        const leave = () => {
            depth = Math.max(0, depth - 1);
            if (depth === 0) setOver(false);
        };
        const over = (event) => {
            if (!hasFiles(event)) return;
            event.preventDefault();
            event.dataTransfer.dropEffect = "copy";
        };
        const drop = (event) => {
            depth = 0;
            setOver(false);
            if (!hasFiles(event)) return;
            event.preventDefault();
            // The items are emptied when this handler returns: entries are taken before anything is awaited.
            const dropped = Array.from(event.dataTransfer.items ?? []).filter(({ kind }) => kind === "file");
            const sources = dropped.map((item) => item.webkitGetAsEntry?.() ?? item.getAsFile());
            const all = sources.length > 0 ? sources : Array.from(event.dataTransfer.files);
            const url = all.length > 0 ? null : linkIn(event.dataTransfer);
            if (all.length > 0 || url !== null) latest.current(all, url);
        };
        const dragstart = () => (isOurs = true);
        const dragend = () => (isOurs = false);
        const listeners = { dragenter: enter, dragleave: leave, dragover: over, drop, dragstart, dragend };
        for (const [name, listen] of Object.entries(listeners)) addEventListener(name, listen);
        return () => {
            for (const [name, listen] of Object.entries(listeners)) removeEventListener(name, listen);
        };
    }, []);
}
