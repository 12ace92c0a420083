// Calculates what each variant shows of a picture, to the pixel as the engine does (darkroom/imaging/scaling/geometry.py).

import { settings } from "../../core.js";

const LONGEST_SIDE = settings.limits.side_pixels;

/** The point that each compass point keeps, in fractions of the width and the height from the top left corner. */
export const COMPASS = {
    northwest: { x: 0, y: 0 },
    north: { x: 0.5, y: 0 },
    northeast: { x: 1, y: 0 },
    west: { x: 0, y: 0.5 },
    centre: { x: 0.5, y: 0.5 },
    east: { x: 1, y: 0.5 },
    southwest: { x: 0, y: 1 },
    south: { x: 0.5, y: 1 },
    southeast: { x: 1, y: 1 },
};

/** The gravity whose point is found when the picture is developed: until then a crop is shown in the middle. */
export const ATTENTION = "attention";

/**
 * Where an upright picture of `width` by `height` pixels is in the variant that `spec` asks for: the picture is scaled
 * to `scaled`, the variant is `size`, and `left` and `top` are the variant's corner in the scaled picture, negative
 * where the variant is larger than the picture.
 *
 * @returns {{scaled: number[], size: number[], left: number, top: number}}  `scaled` and `size` are width and height
 */
export function place(spec, width, height) {
    const asked = [spec.width ?? LONGEST_SIDE, spec.height ?? LONGEST_SIDE];
    const fit = spec.fit ?? "inside";
    const isEnlarged = spec.enlarge ?? false;
    if (fit === "inside") {
        const scaled = fitted(asked, width, height, isEnlarged);
        return { scaled, size: scaled, left: 0, top: 0 };
    }
    if (fit === "contain") {
        const scaled = fitted(asked, width, height, isEnlarged);
        const point = pointOf(spec.gravity);
        return {
            scaled,
            size: asked,
            left: roundHalfToEven((scaled[0] - asked[0]) * point.x),
            top: roundHalfToEven((scaled[1] - asked[1]) * point.y),
        };
    }
    const box = isEnlarged ? asked : scale(asked[0], asked[1], Math.min(1, width / asked[0], height / asked[1]));
    if (fit === "exact") return { scaled: box, size: box, left: 0, top: 0 };
    let scaled = scale(width, height, Math.max(box[0] / width, box[1] / height));
    // Rounding must not leave the picture a pixel smaller than its box.
    scaled = [Math.max(scaled[0], box[0]), Math.max(scaled[1], box[1])];
    const point = pointOf(spec.gravity);
    const corner = [0, 1].map((axis) => {
        const free = scaled[axis] - box[axis];
        const share = axis === 0 ? point.x : point.y;
        if (isNamed(spec.gravity)) return roundHalfToEven(free * share);
        return Math.min(Math.max(roundHalfToEven(share * scaled[axis] - box[axis] / 2), 0), free);
    });
    return { scaled, size: box, left: corner[0], top: corner[1] };
}

/** The point that a variant's `gravity` names, whether it is a compass point or a focal point. */
export const pointOf = (gravity = "centre") =>
    isNamed(gravity) ? COMPASS[gravity === ATTENTION ? "centre" : gravity] : gravity;

const isNamed = (gravity = "centre") => typeof gravity === "string";

function fitted(box, width, height, isEnlarged) {
    const factor = Math.min(box[0] / width, box[1] / height);
    return scale(width, height, isEnlarged ? factor : Math.min(factor, 1));
}

const scale = (width, height, factor) => [
    Math.max(1, roundHalfToEven(width * factor)),
    Math.max(1, roundHalfToEven(height * factor)),
];

/** Rounds as Python does: what is exactly in the middle goes to the even neighbour. */
function roundHalfToEven(value) {
    const below = Math.floor(value);
    if (value - below !== 0.5) return Math.round(value);
    return below % 2 === 0 ? below : below + 1;
}
