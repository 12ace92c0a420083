// A module worker: small pictures of large files, so that a list of two hundred photos does not decode all of them.

const LONGEST_SIDE = 480;

addEventListener("message", async ({ data: { id, file } }) => {
    try {
        const picture = await createImageBitmap(file); // upright, as the engine sees it
        const { width, height } = picture;
        const factor = Math.min(1, LONGEST_SIDE / Math.max(width, height));
        const side = (pixels) => Math.max(1, Math.round(pixels * factor));
        const canvas = new OffscreenCanvas(side(width), side(height));
        const context = canvas.getContext("2d");
        context.imageSmoothingQuality = "high";
        context.drawImage(picture, 0, 0, canvas.width, canvas.height);
        picture.close();
        const blob = await canvas.convertToBlob({ type: "image/webp", quality: 0.8 });
        postMessage({ id, result: { blob, width, height } });
    } catch (error) {
        postMessage({ id, failure: error.name });
    }
});
