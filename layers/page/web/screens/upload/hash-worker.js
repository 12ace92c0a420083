// A module worker: the SHA-256 of files, one after another, so that the page stays responsive.

addEventListener("message", async ({ data: { id, file } }) => {
    try {
        const digest = await crypto.subtle.digest("SHA-256", await file.arrayBuffer());
        const sha256 = Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
        postMessage({ id, result: sha256 });
    } catch (error) {
        postMessage({ id, failure: error.name });
    }
});
