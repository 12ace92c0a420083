// Turns and mirrors the reader's own pictures as the engine will (darkroom/imaging/edits.py).

/**
 * A recipe's fields beside its variants.
 *
 * @typedef {{rotate?: 0|90|180|270, flip?: "horizontal"|"vertical"|"both"|null, metadata?: "copyright"}} Edits
 */

/** The picture's size when it is turned. */
export const turnedSize = ({ width, height }, { rotate = 0 }) =>
    rotate % 180 === 0 ? { width, height } : { width: height, height: width };

/** Where a point of the picture is when it is turned clockwise and then mirrored, in fractions of the sides. */
export function turnedPoint(point, { rotate = 0, flip = null }) {
    return mirrored(rotated(point, rotate), flip);
}

/** The point of the picture that `turnedPoint` takes there. */
export function unturnedPoint(point, { rotate = 0, flip = null }) {
    return rotated(mirrored(point, flip), 360 - rotate);
}

/** The variant with the point that its crop keeps where the turned picture has it; compass points stay. */
export function turnedVariant(variant, edits) {
    const isPoint = variant.fit === "cover" && typeof variant.gravity === "object";
    return isPoint ? { ...variant, gravity: turnedPoint(variant.gravity, edits) } : variant;
}

/** The style of an image of that size that fills a box of the turned picture's shape; null if it is not turned. */
export function turnedStyle(size, edits) {
    const { rotate = 0, flip = null } = edits;
    if (rotate === 0 && flip === null) return null;
    const box = turnedSize(size, edits);
    const [across, down] = [isFlipped(flip, "horizontal") ? -1 : 1, isFlipped(flip, "vertical") ? -1 : 1];
    return {
        position: "absolute",
        left: "50%",
        top: "50%",
        width: `${(size.width / box.width) * 100}%`,
        height: `${(size.height / box.height) * 100}%`,
        maxWidth: "none",
        transform: `translate(-50%, -50%) scale(${across}, ${down}) rotate(${rotate}deg)`,
    };
}

/** The edits after one more quarter turn, clockwise for 1 and back for -1, of what is seen: mirrored or not. */
export function withTurn({ rotate = 0, flip = null, ...others }, step) {
    const direction = flip === null ? step : -step;
    return plain({ rotate: (rotate + 360 + 90 * direction) % 360, flip, ...others });
}

/** The edits with what is seen mirrored left to right, or no longer. */
export const withFlip = ({ rotate = 0, flip = null, ...others }) =>
    plain({ rotate, flip: flip === null ? "horizontal" : null, ...others });

/**
 * The edits with the variants saying whose picture it is, or not.
 *
 * @param {Edits} edits
 * @param {boolean} isKept
 */
export const withRights = ({ metadata, ...others }, isKept) =>
    isKept ? { ...others, metadata: "copyright" } : others;

/** What was kept, as far as it is an edit that the page makes. */
export function editsIn({ rotate, flip, metadata }) {
    const turns = { rotate: [90, 180, 270].includes(rotate) ? rotate : 0, flip: flip === "horizontal" ? flip : null };
    return withRights(plain(turns), metadata === "copyright");
}

/** Without fields that only say the default, which would be other settings to the API's keys. */
const plain = ({ rotate, flip, ...others }) => ({
    ...others,
    ...(rotate !== 0 && { rotate }),
    ...(flip !== null && { flip }),
});

const isFlipped = (flip, way) => flip === way || flip === "both";

const mirrored = ({ x, y }, flip) => ({
    x: isFlipped(flip, "horizontal") ? 1 - x : x,
    y: isFlipped(flip, "vertical") ? 1 - y : y,
});

function rotated({ x, y }, degrees) {
    let point = { x, y };
    for (let turned = 0; turned < degrees; turned += 90) point = { x: 1 - point.y, y: point.x };
    return point;
}
