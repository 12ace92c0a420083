// A dialog that shows each variant of a file as it will be cut, and moves the point that the crops keep.
import { html, useEffect, useMemo, useRef, useState } from "../../vendor/preact.js";
import { describe, isCropped, isFoundLater, usualFocal, withFocal } from "./order.js";
import { ATTENTION, place } from "./placement.js";
import { items, setFocal } from "./queue.js";
import { cutOf } from "./card.js";
import { turnedPoint, turnedSize, turnedStyle, turnedVariant, unturnedPoint } from "./turn.js";

const LONGEST_SHOWN = 160; // CSS pixels of a variant's longer side
const STEP = 0.01;
const LARGE_STEP = 0.1;
const CLICK_PIXELS = 3; // a pointer that moves less has clicked
const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/** How to choose what is kept, if this browser can show the photo. */
const Help = ({ shown, point, isFound, isUnknown }) => isUnknown
    ? html`<p class="note">This browser cannot show this file. It can be uploaded all the same; ${
          isFound
              ? "what its crops keep is found when it is developed."
              : `its crops keep the point that is set here, ${percent(point.x)} from the left and
                ${percent(point.y)} from the top.`
      }</p>`
    : isFound
      ? html`<p class="quiet" id="crop-help">What stands out is found when the photo is developed. Until
    then its crops are shown in the middle. To choose the point yourself, click what matters.</p>`
      : html`<p class="quiet" id="crop-help">Drag the photo or click what matters, or move the point with
    the arrow keys. The bright part is what “${shown.find(isCropped)?.name}” keeps.</p>`;

/** Opens the dialog while its component is there. */
function useModal(dialog) {
    useEffect(() => {
        const element = dialog.current;
        element.showModal();
        return () => element.close(); // which gives the focus back
    }, []);
}

/** The point as two numbers, or what stands out instead of a point. */
const Sliders = ({ point, isFound, put }) => html`<div class="crop-sliders">
    <label class="check crop-attention"><input type="checkbox" checked=${isFound}
        onChange=${({ target }) => put(target.checked ? ATTENTION : point)} />
        Attention: keep what stands out</label>
    <${Slider} label="From the left" value=${point.x} onMove=${(x) => put({ ...point, x })} />
    <${Slider} label="From the top" value=${point.y} onMove=${(y) => put({ ...point, y })} />
</div>`;

/** The buttons to the photos before and after this one. */
function Neighbours({ item, onMove }) {
    const ready = items.filter((other) => other.stage === "ready");
    const neighbour = (step) => ready[ready.indexOf(item) + step] ?? null;
    return ready.length > 1 && html`<button type="button" disabled=${!neighbour(-1)}
        onClick=${() => onMove(neighbour(-1))}>Previous photo</button>
    <button type="button" disabled=${!neighbour(1)} onClick=${() => onMove(neighbour(1))}>Next photo</button>`;
}

/**
 * Nothing is changed before "Done": Escape and "Cancel" leave every photo as it was when the dialog was opened.
 *
 * @param {{item: Json, variants: Json[], edits: import("./turn.js").Edits, onMove: (item: Json) => void,
 *          onClose: () => void}} properties  a photo's own point is one of the picture before it is turned
 */
export default function Crop({ item, variants, edits, onMove, onClose }) {
    const dialog = useRef(null);
    const url = useObjectUrl(item.file);
    const [measured, setSize] = useState(item.preview);
    const [isUnknown, setUnknown] = useState(false);
    const [focal, move] = useState(item.focal);
    const drafts = useRef(new Map()); // the points that were moved, by their files
    useEffect(() => {
        setSize(item.preview);
        setUnknown(false);
        move(drafts.current.has(item) ? drafts.current.get(item) : item.focal);
        dialog.current.scrollTop = 0;
    }, [item]);
    useModal(dialog);
    const put = (point) => {
        const own = point && point !== ATTENTION ? unturnedPoint(point, edits) : null;
        const kept = own ? { x: inside(own.x), y: inside(own.y) } : point;
        move(kept);
        drafts.current.set(item, kept);
    };
    const close = () => dialog.current.close();
    const done = () => {
        drafts.current.forEach((kept, photo) => setFocal(photo, kept));
        close();
    };
    const shown = useMemo(
        () => withFocal(variants, focal).map((variant) => turnedVariant(variant, edits)),
        [variants, focal, edits],
    );
    const isFound = isFoundLater(shown.find(isCropped));
    const point = focal === null || focal === ATTENTION ? usualFocal(shown) : turnedPoint(focal, edits);
    const size = measured && turnedSize(measured, edits);
    const style = (measured && turnedStyle(measured, edits)) ?? {};
    const measure = ({ target }) => setSize({ width: target.naturalWidth, height: target.naturalHeight });
    return html`<dialog ref=${dialog} class="crop" aria-labelledby="crop-title" onClose=${onClose}>
        <h2 id="crop-title">What to keep of ${item.name}</h2>
        <${Help} shown=${shown} point=${point} isFound=${isFound} isUnknown=${isUnknown} />
        <div class="crop-work">
            <div class="crop-stage">
                ${
                    !isUnknown &&
                    html`<${Stage} url=${url} point=${point} put=${put} onLoad=${measure} style=${style}
                        onError=${() => setUnknown(true)}
                    cut=${size && !isFound && cutOf(shown.find(isCropped), size)} size=${size} isFound=${isFound} />`
                }
                <${Sliders} point=${point} isFound=${isFound} put=${put} />
            </div>
            <ul class="crop-variants" aria-label="Variants">
                ${shown.map((variant) => html`<${Shown} variant=${variant} url=${isUnknown ? null : url} size=${size} style=${style} />`)}
            </ul>
        </div>
        <div class="buttons">
            <button type="button" disabled=${focal === null} onClick=${() => put(null)}>Reset</button>
            <${Neighbours} item=${item} onMove=${onMove} />
            <button type="button" onClick=${close}>Cancel</button>
            <button type="button" class="main" onClick=${done}>Done</button>
        </div>
    </dialog>`;
}

const inside = (share) => Math.round(Math.min(1, Math.max(0, share)) * 1000) / 1000;
const percent = (share) => `${Math.round(share * 100)}%`;

/** Whether a point of the photo is in the part that is kept, which is in percent. */
function isWithin({ x, y }, cut) {
    const sides = [cut.left, cut.top, cut.width, cut.height];
    const [left, top, width, height] = sides.map((side) => parseFloat(side) / 100);
    return x >= left && x <= left + width && y >= top && y <= top + height;
}

/** An address for the file while the component shows it. */
function useObjectUrl(file) {
    const [url, setUrl] = useState(null);
    useEffect(() => {
        const address = URL.createObjectURL(file);
        setUrl(address);
        return () => URL.revokeObjectURL(address);
    }, [file]);
    return url;
}

/** The whole picture with the point to be dragged. */
function Stage({ url, point, put, onLoad, onError, cut, size, style, isFound }) {
    const frame = useRef(null);
    const grab = useRef(null); // where the kept part was taken hold of, until it is dragged or let go
    const shareOf = (event) => {
        const { left, top, width, height } = frame.current.getBoundingClientRect();
        return { x: (event.clientX - left) / width, y: (event.clientY - top) / height };
    };
    const onPointerDown = (event) => {
        if (event.button !== 0) return;
        event.preventDefault();
        frame.current.setPointerCapture(event.pointerId);
        const button = frame.current.querySelector("button");
        button?.focus();
        const at = shareOf(event);
        const isHeld = button?.contains(event.target) || (cut && isWithin(at, cut));
        grab.current = { event, at, point, isHeld, isDragged: !isHeld };
        if (!isHeld) put(at);
    };
    const onPointerMove = (event) => {
        const held = grab.current;
        if (!held || !frame.current.hasPointerCapture(event.pointerId)) return;
        const way = Math.hypot(event.clientX - held.event.clientX, event.clientY - held.event.clientY);
        held.isDragged ||= way > CLICK_PIXELS;
        if (!held.isDragged) return;
        const at = shareOf(event);
        // What is held moves with the pointer: it does not jump under it.
        put(held.isHeld ? { x: held.point.x + at.x - held.at.x, y: held.point.y + at.y - held.at.y } : at);
    };
    const onPointerUp = (event) => {
        if (grab.current && !grab.current.isDragged) put(shareOf(event));
        grab.current = null;
    };
    const onPointerCancel = () => (grab.current = null);
    const onKeyDown = (event) => {
        const direction = MOVES[event.key];
        if (!direction) return;
        event.preventDefault();
        const step = event.shiftKey ? LARGE_STEP : STEP;
        put({ x: point.x + direction[0] * step, y: point.y + direction[1] * step });
    };
    const shape = size
        ? { aspectRatio: `${size.width} / ${size.height}`, maxWidth: `calc(52vh * ${size.width / size.height})` }
        : {};
    return html`<div class="crop-picture" ref=${frame} onPointerDown=${onPointerDown} onPointerMove=${onPointerMove}
        onPointerUp=${onPointerUp} onPointerCancel=${onPointerCancel} style=${shape}>
        <span class="crop-whole">
            ${url && html`<img src=${url} alt="The whole photo" draggable=${false} style=${style}
                onLoad=${onLoad} onError=${onError} />`}
            ${cut && html`<span class="upload-cut" style=${cut}></span>`}
        </span>
        ${
            !isFound &&
            html`<button type="button" class="crop-point" aria-describedby="crop-help" onKeyDown=${onKeyDown}
                aria-label=${`Point to keep: ${percent(point.x)} from the left, ${percent(point.y)} from the top`}
                style=${{ left: `${point.x * 100}%`, top: `${point.y * 100}%` }}></button>`
        }
    </div>`;
}

const Slider = ({ label, value, onMove }) => html`<label>${label} <span aria-hidden="true">${percent(value)}</span>
    <input type="range" min="0" max="1" step="0.01" value=${value} aria-valuetext=${percent(value)}
        onInput=${({ target }) => onMove(Number(target.value))} />
</label>`;

/** One variant as it will be, at the most 160 pixels a side. */
function Shown({ variant, url, size, style }) {
    const name = html`<span class="crop-name">${variant.name}</span>`;
    if (!size) return html`<li>${name} <span class="quiet">${describe(variant)}</span></li>`;
    const { scaled, size: cut, left, top } = place(variant, size.width, size.height);
    const factor = Math.min(1, LONGEST_SHOWN / Math.max(cut[0], cut[1]));
    const css = (pixels) => `${pixels * factor}px`;
    const background = variant.background === "edge" ? "none" : (variant.background ?? "#ffffff");
    const box = { width: css(cut[0]), height: css(cut[1]), background };
    const picture = { width: css(scaled[0]), height: css(scaled[1]), left: css(-left), top: css(-top) };
    return html`<li>
        <span class="crop-cut" style=${box}>
            ${url && html`<span style=${picture}><img src=${url} alt="" style=${style} /></span>`}</span>
        ${name}
        <span class="quiet">${cut[0]} × ${cut[1]}, ${
            isFoundLater(variant) ? "cropped by attention" : isCropped(variant) ? "cropped" : "no crop"
        }</span>
    </li>`;
}
