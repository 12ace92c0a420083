// What a reader can do about a file that was refused or failed: by the stable codes of the API (docs/api.md).
import { sentence } from "../../core.js";

/**
 * What to do, and the button that does it: "retry" sends the same again, "again" uploads the file as a new image.
 *
 * @typedef {{advice: string, button: "retry"|"again"|null}} Remedy
 */

const SMALLER = "Save it with fewer pixels or a lower quality, and choose that file.";
const NEW_COPY = "Copy the photo again from where it came from, or export it again, and choose that file.";

/** @type {Object<string, [string, "retry"|"again"|null]>} */
const REMEDIES = {
    // What this page finds before it sends anything.
    NetworkError: ["What reads it could not be loaded. Reload the page, and choose the file again.", "retry"],
    unreadable: ["It was moved, changed or deleted after you chose it. Choose it again.", null],
    // Refused when it was sent.
    empty_upload: ["Choose another file.", null],
    upload_too_large: [SMALLER, null],
    unsupported_format: ["Save it as JPEG, PNG, WebP or GIF, and choose that file.", null],
    unsupported_media_type: ["Reload the page; it may be older than the service.", null],
    invalid_form: ["Reload the page; it may be older than the service.", null],
    invalid_upload: ["Reload the page; it may be older than the service.", null],
    invalid_fetch: ["Reload the page; it may be older than the service.", null],
    invalid_url: ["Correct the address.", null],
    part_not_deployed: ["Save the photo, and choose its file.", null],
    unreadable_body: ["The file was damaged on its way.", "retry"],
    unknown_preset: ["The presets have changed. Reload the page and choose another.", null],
    unknown_variants: ["The presets have changed. Reload the page and choose again.", null],
    invalid_recipe: ["Remove the file, correct the recipe, and choose the file again.", null],
    conflicting_parameters: ["Reload the page; it may be older than the service.", null],
    unknown_parameter: ["Reload the page; it may be older than the service.", null],
    invalid_idempotency_key: ["Reload the page; it may be older than the service.", null],
    invalid_process_at: ["Remove the file, choose another time, and choose the file again.", null],
    invalid_delay: ["Remove the file, choose another delay, and choose the file again.", null],
    invalid_expires_at: ["Remove the file, choose another time, and choose the file again.", null],
    no_tenant: ["Ask whoever operates this Darkroom: your account is not set up for it.", null],
    insufficient_scope: ["Ask whoever operates this Darkroom for a key that may upload.", null],
    quota_exceeded: ["", "retry"],
    image_deleted: ["This photo was here before and was deleted. It can be uploaded as a new image.", "again"],
    idempotency_key_reused: [
        "This photo was sent before with other settings. It can be uploaded as a new image.",
        "again",
    ],
    too_many_requests: ["Wait a little.", "retry"],
    overloaded: ["Wait a little.", "retry"],
    too_many_unfinished: ["Wait a little.", "retry"],
    blocked: ["", "retry"],
    unavailable: ["Wait a little.", "retry"],
    form_refused: ["Nothing was kept of it.", "retry"],
    // Accepted, and then failed or expired.
    truncated: [`The file ends too early: part of it is missing. ${NEW_COPY}`, null],
    undecodable: [`The file is damaged. ${NEW_COPY}`, null],
    file_too_large: [SMALLER, null],
    too_many_pixels: ["Save it with fewer pixels, and choose that file.", null],
    side_too_long: ["Crop it or make it smaller, and choose that file.", null],
    aspect_too_extreme: ["Crop it to a less narrow shape, and choose that file.", null],
    too_many_frames: ["Choose variants that do not keep the animation, or a shorter animation.", null],
    animation_too_large: ["Choose fewer or smaller variants that keep the animation, or a shorter animation.", null],
    too_many_scans: ["Save it as an ordinary (baseline) JPEG, and choose that file.", null],
    checksum_mismatch: ["It was changed or damaged on its way.", "again"],
    original_missing: ["It can be uploaded as a new image.", "again"],
    overlay_missing: ["Upload the overlay again, and send the photo with its new id.", null],
    overlay_undecodable: ["Send the photo with another overlay.", null],
    internal: ["It is not the photo's fault, and the operators are told. Upload it again later.", "again"],
    worker_lost: ["It is not the photo's fault, and the operators are told. Upload it again later.", "again"],
    fetch_refused: ["Check the address, or save the photo and choose its file.", null],
    fetch_not_found: ["Check the address, or save the photo and choose its file.", null],
    fetch_too_large: [SMALLER, null],
    fetch_timeout: ["Try again later, or save the photo and choose its file.", "again"],
    fetch_failed: ["Try again later, or save the photo and choose its file.", "again"],
    never_uploaded: ["It can be uploaded as a new image.", "again"],
    expired: ["It can be uploaded as a new image.", "again"],
};

// What the API says of these is for programs: it speaks of keys and of sending.
const FOR_PROGRAMS = new Set(["image_deleted", "idempotency_key_reused", "truncated", "undecodable"]);

/** What the API said of the file; nothing if that is for programs, and the advice says all of it. */
export const toldOf = (code, message) => (FOR_PROGRAMS.has(code) ? "" : sentence(message));

/** @returns {Remedy}  of a problem with this code; `isRetryable` is what the API says, for codes that are new here */
export function remedyOf(code, isRetryable = false) {
    /** @type {[string, Remedy["button"]]} */
    const [advice, button] = Object.hasOwn(REMEDIES, code) ? REMEDIES[code] : ["", isRetryable ? "again" : null];
    return { advice, button };
}
