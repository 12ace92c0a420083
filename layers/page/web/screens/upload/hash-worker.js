// A module worker: the SHA-256 of files, one after another, so that the page stays responsive.
import { sha256Of } from "../../darkroom-upload.js";

addEventListener("message", async ({ data: { id, file } }) => {
    try {
        postMessage({ id, result: await sha256Of(file) });
    } catch (error) {
        postMessage({ id, failure: error.name });
    }
});
