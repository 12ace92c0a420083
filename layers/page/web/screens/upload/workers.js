// Starts the page's workers, which hash files and make previews, and asks them one thing at a time.

// The page's Content-Security-Policy requires Trusted Types; only the page's own files may become a worker.
const TREE = new URL("../../", import.meta.url);

/** The page's one policy: an address under the page's own tree, and no other. */
const policy = globalThis.trustedTypes?.createPolicy("darkroom", {
    createScriptURL(text) {
        const url = new URL(text, TREE);
        if (url.origin !== TREE.origin || !url.pathname.startsWith(TREE.pathname)) {
            throw new TypeError("Only the page's own files may run.");
        }
        return url.href;
    },
});

/** The work that a worker could not do; `name` is the name of its error, as of a DOMException. */
export class WorkFailed extends Error {
    constructor(name) {
        super(`The file could not be read (${name}).`);
        this.name = name;
    }
}

const AT_ONCE = 2; // one is worked on, and the next is there already; two hundred messages at once would stop the page

/** A worker of one of the page's files, started when it is first asked; it answers in the order of the questions. */
class Office {
    #file;
    #worker = null;
    #questions = []; // that the worker has not got yet
    #asked = new Map();
    #last = 0;

    constructor(file) {
        this.#file = file;
    }

    /** Resolves with what the worker makes of `file`. Throws WorkFailed. */
    ask(file) {
        return new Promise((resolve, reject) => {
            this.#questions.push({ file, resolve, reject });
            this.#next();
        });
    }

    #next() {
        while (this.#asked.size < AT_ONCE && this.#questions.length > 0) {
            this.#worker ??= this.#start();
            const question = this.#questions.shift();
            const id = ++this.#last;
            this.#asked.set(id, question);
            this.#worker.postMessage({ id, file: question.file });
        }
    }

    #start() {
        const address = new URL(this.#file, import.meta.url).href;
        const worker = new Worker(policy ? policy.createScriptURL(address) : address, { type: "module" });
        worker.addEventListener("message", ({ data: { id, result, failure } }) => {
            const question = this.#asked.get(id);
            this.#asked.delete(id);
            this.#next();
            if (failure === undefined) question.resolve(result);
            else question.reject(new WorkFailed(failure));
        });
        worker.addEventListener("error", () => {
            // The worker could not be loaded: the next question starts another.
            this.#worker = null;
            const lost = [...this.#asked.values(), ...this.#questions];
            this.#asked.clear();
            this.#questions = [];
            for (const question of lost) question.reject(new WorkFailed("NetworkError"));
        });
        return worker;
    }
}

const hashes = new Office("./hash-worker.js");
const previews = new Office("./preview-worker.js");

/** The file's SHA-256 in hexadecimal. Throws WorkFailed. */
export const hash = (file) => hashes.ask(file);

/** A small picture of the file, and the size of the whole one upright: `{blob, width, height}`. Throws WorkFailed. */
export const preview = (file) => previews.ask(file);
