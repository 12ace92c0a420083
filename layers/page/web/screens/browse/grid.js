// A grid of images of which only those in view are in the document, however many there are.
import { Component, html, useEffect, useLayoutEffect, useRef, useState } from "../../vendor/preact.js";
import { nameOf, pictureOf, relative, sentence } from "../../core.js";
import { Status, statusWord } from "../../parts.js";
import { hasEnded } from "./list.js";
import { paintLater, paintNever } from "./paint.js";
import { failedAttempts, moment } from "./words.js";

const GAP = 12;
const CAPTION_REM = 5.25; // three lines: name, status, age
const SPARE_ROWS = 2; // above and below the view

/** The grid's measures for a width, in pixels. Cells have one height, so that rows can be left out. */
function measure(width) {
    const rem = Number.parseFloat(getComputedStyle(document.documentElement).fontSize) || 16;
    const least = width < 40 * rem ? 9 * rem : 11.5 * rem;
    const columns = Math.max(2, Math.floor((width + GAP) / (least + GAP)));
    const side = Math.floor((width - GAP * (columns - 1)) / columns);
    const row = side + Math.ceil(CAPTION_REM * rem) + GAP;
    // As many cells as can be in view and spare are made, and used again: what is thrown away must be swept up later.
    const cells = (Math.ceil(Math.max(innerHeight, screen.height) / row) + 2 * SPARE_ROWS + 2) * columns;
    return { width, columns, side, row, cells };
}

const rowsOf = (count, columns) => Math.ceil(count / columns);

/** Calls `act` at most once per frame while the page is scrolled or gets another size; returns what ends that. */
function followView(act) {
    let frame = null;
    const follow = () => {
        frame ??= requestAnimationFrame(() => {
            frame = null;
            act();
        });
    };
    addEventListener("scroll", follow, { passive: true });
    addEventListener("resize", follow);
    return () => {
        removeEventListener("scroll", follow);
        removeEventListener("resize", follow);
        cancelAnimationFrame(frame);
    };
}

/** The grid's measures, and which of its rows are in the document; `look` finds out which are to be there now. */
function useView(place, { images, scroll, onScroll, onView }) {
    const [measures, setMeasures] = useState(null);
    const [span, setSpan] = useState([0, 0]); // the first row in the document, and the one after the last
    const current = useRef(/** @type {{measures?: any, images?: Json[]}} */ ({}));
    current.current = { measures, images };

    const look = () => {
        const { measures, images } = current.current;
        if (!measures || !place.current) return;
        const top = -place.current.getBoundingClientRect().top;
        const all = rowsOf(images.length, measures.columns);
        const first = Math.min(all, Math.max(0, Math.floor(top / measures.row) - SPARE_ROWS));
        const last = Math.min(all, Math.max(first, Math.ceil((top + innerHeight) / measures.row) + SPARE_ROWS));
        setSpan((before) => (before[0] === first && before[1] === last ? before : [first, last]));
        onView(images.slice(Math.max(0, first) * measures.columns, last * measures.columns));
    };

    useLayoutEffect(() => {
        const adapt = () => {
            const after = measure(place.current.clientWidth);
            setMeasures((before) => {
                const isSame = before && before.width === after.width && before.row === after.row;
                return isSame && before.cells >= after.cells ? before : after;
            });
            return after;
        };
        const { columns, row } = adapt();
        place.current.style.height = `${rowsOf(images.length, columns) * row}px`;
        if (scroll) scrollTo(0, scroll);
        const observer = new ResizeObserver(adapt);
        observer.observe(place.current);
        const unfollow = followView(() => {
            onScroll(scrollY);
            look();
        });
        return () => {
            observer.disconnect();
            unfollow();
        };
    }, []);
    useLayoutEffect(look, [measures, images.length]);
    return { measures, span, look };
}

/**
 * Which link has the focus, by its index: it stays in the document. `aim` gives the focus to another one, as soon as
 * that is there.
 */
function useFocus(place, { images, opened }) {
    const wanted = useRef(null); // the index of the link that gets the focus once it is there
    const [focused, setFocused] = useState(null);
    const isDrawing = useRef(false); // what loses the focus then is only moved in the document
    isDrawing.current = true;

    useLayoutEffect(() => {
        if (opened) wanted.current = images.findIndex((image) => image.id === opened);
    }, []);
    useLayoutEffect(() => {
        isDrawing.current = false;
        const activeElement = /** @type {HTMLElement} */ (document.activeElement);
        const isOther = place.current.contains(activeElement) && Number(activeElement.dataset.index) !== focused;
        if (focused === null || (activeElement !== document.body && !isOther)) return;
        place.current.querySelector(`a[data-index="${focused}"]`)?.focus({ preventScroll: true });
    });
    useEffect(() => {
        if (wanted.current === null) return;
        const link = place.current.querySelector(`a[data-index="${wanted.current}"]`);
        if (!link) return;
        wanted.current = null;
        link.focus({ preventScroll: true });
    });

    const aim = (index) => {
        wanted.current = index;
        setFocused(index);
    };
    const blur = (index) => {
        if (!isDrawing.current) setFocused((before) => (before === index ? null : before));
    };
    return { focused, setFocused, aim, blur };
}

/** The index that a key leads to from another one, which may be outside of the grid; undefined for other keys. */
const targetOf = (key, from, columns, total) => ({
    ArrowLeft: from - 1,
    ArrowRight: from + 1,
    ArrowUp: from - columns,
    ArrowDown: from + columns,
    Home: 0,
    End: total - 1,
})[key];

/** Scrolls as far as is needed to see the row of an index. */
function reveal(place, index, { columns, row }) {
    /** @type {HTMLElement|null} */
    const covering = document.querySelector(".browse-bar"); // it covers what is beneath it
    const bar = covering?.offsetHeight ?? 0;
    const top = place.getBoundingClientRect().top + Math.floor(index / columns) * row;
    const isAbove = top < bar;
    if (isAbove || top + row > innerHeight) scrollBy(0, isAbove ? top - bar - GAP : top + row - innerHeight);
}

/** The indices in the document: those in `span`, from `from` to before `to`, and the one that has the focus. */
function indicesOf(measures, span, focused, total) {
    if (!measures) return { indices: [], from: 0, to: 0 };
    const indices = [];
    const from = span[0] * measures.columns;
    const to = Math.min(total, span[1] * measures.columns, from + measures.cells);
    if (focused !== null && focused < from) indices.push(focused);
    for (let index = from; index < to; index += 1) indices.push(index);
    if (focused !== null && focused >= to && focused < total) indices.push(focused);
    return { indices, from, to };
}

/**
 * @param {{images: Json[], now: number, scroll: number, opened: string|null, onScroll: (scroll: number) => void,
 *          chosen: Set<string>|null, onChoose: (id: string) => void,
 *          onView: (images: object[]) => void, onBroken: (image: object) => void,
 *          onOpen: (id: string) => void}} properties
 *     `scroll` and `opened` are where the reader was before; `chosen` are the ids of chosen images, null if a click
 *     opens an image
 */
export function Grid({ images, now, scroll, opened, chosen, onChoose, onScroll, onView, onBroken, onOpen }) {
    const place = useRef(null);
    const { measures, span, look } = useView(place, { images, scroll, onScroll, onView });
    const { focused, setFocused, aim, blur } = useFocus(place, { images, opened });

    const go = (event) => {
        const from = Number(event.target.closest("a")?.dataset.index);
        if (Number.isNaN(from) || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
        if (chosen && event.key === " ") {
            event.preventDefault();
            onChoose(images[from].id);
            return;
        }
        const to = targetOf(event.key, from, measures.columns, images.length);
        if (to === undefined) return;
        event.preventDefault();
        if (to < 0 || to >= images.length) return;
        aim(to);
        reveal(place.current, to, measures);
        look();
    };

    const { indices, from, to } = indicesOf(measures, span, focused, images.length);
    const height = measures ? rowsOf(images.length, measures.columns) * measures.row : 0;
    return html`<ul class="gallery" ref=${place} role="list" aria-label="Images, newest first"
        style=${{ height: `${height}px` }} onKeyDown=${go}>
        ${indices.map((index) => html`<${Cell} key=${index < from || index >= to ? "kept" : index % measures.cells}
            image=${images[index]} index=${index}
            total=${images.length} measures=${measures} now=${now} onBroken=${onBroken} onOpen=${onOpen}
            isChosen=${chosen && chosen.has(images[index].id)} onChoose=${onChoose}
            onFocus=${setFocused} onBlur=${blur} />`)}
    </ul>`;
}

/** What a picture would say, for an image that has none. */
function words(image) {
    if (image.status === "failed" || image.status === "expired") return sentence(image.error?.message);
    if (image.status === "scheduled" && image.process_at) return `Begins ${moment(image.process_at)}.`;
    if (image.status === "fetching") return "It is being fetched from its address.";
    if (image.status === "awaiting_upload") return "Its file has not arrived yet.";
    return hasEnded(image) ? "" : "Its picture comes when it is done.";
}

/** The address of its smallest variant; before that, of the file that this tab has sent; null without either. */
const shownOf = (image) => image.thumb?.url ?? (image.status === "done" ? null : pictureOf(image.id));

// A class, because only a class can say that nothing changed, and scrolling draws again what stays in view. One cell
// shows one image after another.
class Cell extends Component {
    shouldComponentUpdate({ image, index, total, measures, now, isChosen }) {
        const before = this.props;
        const isSame = image === before.image && index === before.index && now === before.now &&
            isChosen === before.isChosen;
        return !isSame || total !== before.total || measures !== before.measures;
    }

    componentDidMount() {
        this.shown = shownOf(this.props.image);
        this.paint();
    }

    componentDidUpdate(before) {
        const { image } = this.props;
        const isOther = image.id !== before.image.id;
        if (isOther) this.clear();
        const isChanged = shownOf(image) !== this.shown;
        this.shown = shownOf(image);
        if (isOther || isChanged || image.placeholder?.thumbhash !== before.image.placeholder?.thumbhash) {
            this.paint();
        }
    }

    componentWillUnmount() {
        paintNever(this);
        // A picture goes on loading after it has left the document, and others would wait for it.
        if (this.picture && !this.picture.complete) this.picture.removeAttribute("src");
    }

    /** Shows the picture, or what holds its place. */
    show(isThere) {
        if (!this.picture) return; // it arrived after its cell had left the view
        this.picture.hidden = !isThere;
        this.canvas.hidden = isThere;
    }

    /** Shows nothing of the image that was here before. */
    clear() {
        paintNever(this);
        this.show(false);
        this.picture.removeAttribute("src");
        this.canvas.width = 1;
        this.canvas.style.background = "";
    }

    /** Asks for its placeholder and then its picture, when there is time for it. */
    paint() {
        const { image } = this.props;
        const url = shownOf(image);
        if (!this.tile || (!image.placeholder && url === null)) return;
        const { canvas, picture } = this;
        paintLater(this, { canvas, placeholder: image.placeholder, picture, url });
    }

    render({ image, index, total, measures, now, isChosen, onChoose, onBroken, onOpen, onFocus, onBlur }) {
        const { columns, side, row } = measures;
        const isWithout = !image.thumb; // no picture of its own yet, or ever
        const said = isWithout ? words(image) : "";
        const failed = isWithout ? failedAttempts(image, now) : "";
        const when = relative(image.created_at, now);
        const name = nameOf(image.id) ?? (isWithout ? image.id : null);
        const label = [name, statusWord(image.status), failed, when].filter(Boolean).join(", ");
        const style = {
            width: `${side}px`,
            height: `${row - GAP}px`,
            left: `${(index % columns) * (side + GAP)}px`,
            top: `${Math.floor(index / columns) * row}px`,
        };
        const click = (event) => {
            if (isChosen === null) return onOpen(image.id);
            event.preventDefault();
            return onChoose(image.id);
        };
        return html`<li style=${style} aria-setsize=${total} aria-posinset=${index + 1}>
            <a href=${`#/images/${encodeURIComponent(image.id)}`} data-index=${index}
                onFocus=${() => onFocus(index)} onBlur=${() => onBlur(index)} onClick=${click}
                role=${isChosen === null ? undefined : "checkbox"} aria-checked=${isChosen ?? undefined}
                aria-label=${label + (said ? `. ${said}` : "")}>
                <span class=${isWithout && shownOf(image) ? "tile has-preview" : "tile"} ref=${(tile) => (this.tile = tile)} style=${{ height: `${side}px` }}>
                    <canvas ref=${(canvas) => (this.canvas = canvas)} width="1" height="1" aria-hidden="true"></canvas>
                    <img ref=${(picture) => (this.picture = picture)} alt="" decoding="async" hidden
                        onLoad=${() => this.show(true)} onError=${() => this.broke(onBroken)} />
                    ${isWithout && html`<span class="said">
                        ${failed && html`<strong class="said-failed">${sentence(failed)}</strong>`}
                        ${said && html`<span class="said-why">${said}</span>`}
                    </span>`}
                </span>
                <span class="caption">${name && html`<span class="caption-name" title=${name}>${name}</span>`}
                    <${Status} status=${image.status} /><span class="quiet">${when}</span></span>
            </a>
        </li>`;
    }

    broke(onBroken) {
        this.show(false);
        if (this.props.image.thumb) onBroken(this.props.image);
    }
}
