// What to make of a file and when: as the API takes it, in one canonical form, and as the key that repeats it.
import { count, settings } from "../../core.js";
import { sha256Of } from "../../darkroom-upload.js";
import { ATTENTION, pointOf } from "./placement.js";

/**
 * What the reader chose: a preset, or variants of their own (`preset` is null), and when. `variants` are those of
 * either, and `edits` what the recipe says of the whole picture.
 *
 * @typedef {{preset: string|null, variants: Json[], edits: Json, when: {kind: "now"|"delay"|"at", amount: string,
 *          unit: string, at: string}}} Choice
 */

// What the API takes for a field that is left out (darkroom/domain/recipes/recipes.py): equal recipes have one form.
const DEFAULTS = {
    width: null,
    height: null,
    fit: "inside",
    gravity: "centre",
    enlarge: false,
    background: "#ffffff",
    format: "auto",
    quality: null,
    effort: null,
    max_bytes: null,
    animation: "first",
};

/** A variant without fields that only say the default. */
function plain(variant) {
    const changes = { name: variant.name };
    for (const [field, usual] of Object.entries(DEFAULTS)) {
        const value = variant[field];
        if (value !== undefined && value !== null && value !== usual) changes[field] = value;
    }
    return changes;
}

/**
 * The variants with `focal`, a point or ATTENTION, as what their crops keep; a whole picture has no crop, and padding
 * stays where it is.
 */
export const withFocal = (variants, focal) =>
    focal === null
        ? variants
        : variants.map((variant) => (isCropped(variant) ? { ...variant, gravity: focal } : variant));

/** Whether the variant cuts something off. */
export const isCropped = (variant) => variant.fit === "cover";

/** Whether what the variant keeps is found when the picture is developed. */
export const isFoundLater = (variant) => isCropped(variant) && variant.gravity === ATTENTION;

/** The point that the crops keep until somebody moves it. */
export const usualFocal = (variants) => pointOf(variants.find(isCropped)?.gravity);

/**
 * The request's parameters, with the recipe as an object.
 *
 * @param {Choice} choice
 * @param {{x: number, y: number}|"attention"|null} focal  of this file, if it was moved
 */
export function parametersOf({ preset, variants, edits = {}, when }, focal) {
    const isMoved = focal !== null && variants.some(isCropped);
    const request =
        preset === null || isMoved
            ? { recipe: { ...edits, variants: withFocal(variants, isMoved ? focal : null).map(plain) } }
            : { preset };
    return { ...request, ...timeOf(when) };
}

/** `process_at` or `delay` as the API takes them; neither for now. The delay's text is part of the key as it stands. */
export function timeOf(when) {
    if (when.kind === "delay") return { delay: `P${when.unit === "D" ? "" : "T"}${Number(when.amount)}${when.unit}` };
    if (when.kind === "at") return { process_at: new Date(when.at).toISOString() };
    return {};
}

/** JSON whose keys are sorted: one text for equal values. */
function canonical(value) {
    if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
    if (value === null || typeof value !== "object") return JSON.stringify(value);
    const fields = Object.keys(value).sort();
    return `{${fields.map((field) => `${JSON.stringify(field)}:${canonical(value[field])}`).join(",")}}`;
}

/** The file's Idempotency-Key: the same file with the same settings and generation always has the same one. */
export const keyOf = (sha256, parameters, generation) =>
    sha256Of(new Blob([`darkroom page 1\n${sha256}\n${generation}\n${canonical(parameters)}`]));

/** A variant to begin with. */
export const FIRST = { name: "card", width: 600, height: 400, fit: "cover", gravity: "centre", format: "auto" };

// ── What the API would refuse, found before anything is sent.

const LIMITS = settings.limits;
const LONGEST_SIDE = LIMITS.side_pixels;
const MOST_DAYS = LIMITS.delay_seconds / 86400;
const NAME = /^[a-z][a-z0-9_-]{0,31}$/;
export const UNITS = { M: ["minute", 60], H: ["hour", 3600], D: ["day", 86400] };

/** What is wrong with a recipe, in sentences that name the variant; empty if the API takes it. `edits` are its fields
 * beside the variants. */
export function problemsOfRecipe(variants, edits = {}) {
    const problems = [];
    const names = new Set();
    if (variants.length === 0) problems.push("A recipe needs at least one variant.");
    if (variants.length > LIMITS.variants) problems.push(`A recipe has at most ${LIMITS.variants} variants.`);
    variants.forEach((variant, index) => {
        const called = variant.name ? `“${variant.name}”` : `Variant ${index + 1}`;
        if (!NAME.test(variant.name)) {
            problems.push(`${called}: the name is 1 to 32 of a–z, 0–9, - and _, and starts with a letter.`);
        }
        if (names.has(variant.name)) problems.push(`${called}: another variant has this name.`);
        names.add(variant.name);
        for (const side of ["width", "height"]) {
            const pixels = variant[side];
            if (pixels !== null && !(Number.isInteger(pixels) && pixels >= 1 && pixels <= LONGEST_SIDE)) {
                problems.push(`${called}: the ${side} is a whole number of pixels from 1 to ${LONGEST_SIDE}.`);
            }
        }
        if (variant.width === null && variant.height === null)
            problems.push(`${called}: give a width, a height, or both.`);
        else if (variant.fit !== "inside" && (variant.width === null || variant.height === null)) {
            problems.push(`${called}: this fit needs both a width and a height.`);
        }
    });
    if (problems.length > 0) return problems;
    const work = variants.reduce((sum, { width, height, format }) => {
        return sum + (width ?? LONGEST_SIDE) * (height ?? LONGEST_SIDE) * LIMITS.work_of_format[format ?? "auto"];
    }, 0);
    if (work > LIMITS.work_pixels) {
        problems.push(
            `Together the variants are ${(work / 1e6).toFixed(1)} megapixels of work, and ` +
                `${(LIMITS.work_pixels / 1e6).toFixed(1)} are allowed: give both sides, or make them smaller or fewer.`,
        );
    }
    const recipe = JSON.stringify({ ...edits, variants: variants.map(plain) });
    if (new TextEncoder().encode(recipe).length > LIMITS.recipe_bytes) {
        problems.push(
            `The recipe is longer than ${LIMITS.recipe_bytes} bytes: shorten the names, or leave some variants out.`,
        );
    }
    return problems;
}

/** What is wrong with the time, in a sentence; null if nothing is. */
export function problemOfTime(when, now = Date.now()) {
    if (when.kind === "delay") {
        const amount = Number(when.amount);
        if (!Number.isInteger(amount) || amount < 1) return "Give a whole number, 1 or more.";
        if (amount * UNITS[when.unit][1] > LIMITS.delay_seconds) return `A delay is at most ${MOST_DAYS} days.`;
    }
    if (when.kind === "at") {
        const instant = Date.parse(when.at);
        if (Number.isNaN(instant)) return "Give a date and a time.";
        if (instant < now) return "That time has passed. Choose a later one.";
        if (instant > now + LIMITS.delay_seconds * 1000) return `The latest time is ${MOST_DAYS} days from now.`;
    }
    return null;
}

// ── In words.

/** "600 × 400, cropped, WebP" */
export function describe(variant) {
    const { width, height, fit = "inside", format = "auto" } = variant;
    const sides =
        width && height
            ? width === height && fit === "inside"
                ? `up to ${width} a side`
                : `${fit === "inside" ? "up to " : ""}${width} × ${height}`
            : width
              ? `up to ${width} wide`
              : `up to ${height} high`;
    return [sides, FITS[fit]?.short ?? fit, format === "auto" ? null : (FORMATS[format] ?? format)]
        .filter(Boolean)
        .join(", ");
}

/** What a preset makes, in a few words: "whole picture, 4 sizes" */
export function describeAll(variants) {
    const kinds = new Set(
        variants.map(({ fit = "inside", width, height }) =>
            fit === "cover" && width === height ? "squares" : (FITS[fit]?.short ?? fit),
        ),
    );
    const kind = kinds.size === 1 ? Array.from(kinds)[0] : variants.some(isCropped) ? "some cropped" : "mixed";
    return `${kind}, ${count(variants.length, "size")}`;
}

export const FITS = {
    inside: { short: "whole picture", long: "Whole picture" },
    cover: { short: "cropped", long: "Crop to fill" },
    contain: { short: "padded", long: "Pad to fill" },
    exact: { short: "stretched", long: "Stretch" },
};

export const FORMATS = {
    auto: "JPEG or PNG",
    jpeg: "JPEG",
    png: "PNG",
    webp: "WebP",
    avif: "AVIF",
    best: "Best: the smallest of JPEG, WebP and AVIF",
    negotiated: "JPEG, WebP and AVIF",
    gif: "GIF",
};

export const ANIMATIONS = { first: "First frame", keep: "Keep", poster: "Poster" };

const MOVING = ["auto", "webp", "gif"];

/** The formats that a variant can have, in words: an animation is WebP unless it is GIF, and GIF is only for those. */
export function formatsOf({ animation = "first" }) {
    const isKept = animation === "keep";
    const formats = Object.entries(FORMATS).filter(([format]) => (isKept ? MOVING.includes(format) : format !== "gif"));
    if (!isKept) return formats;
    return formats.map(([format, words]) => [format, format === "auto" ? "WebP, stills JPEG or PNG" : words]);
}

/** The variant with what becomes of an animation, and with a format that allows it. */
export function withAnimation(variant, animation) {
    const changed = { ...variant, animation };
    const isPossible = formatsOf(changed).some(([format]) => format === variant.format);
    return isPossible ? changed : { ...changed, format: "auto" };
}

/** "now", "in 2 hours", or the chosen local time. */
export function describeTime(when) {
    if (when.kind === "delay") return `${count(Number(when.amount), UNITS[when.unit][0])} after it is sent`;
    if (when.kind === "at")
        return new Date(when.at).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
    return "now";
}
