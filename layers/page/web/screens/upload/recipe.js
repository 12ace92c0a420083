// A small editor of a recipe: the variants, and for each its box, how the picture fits it, and its format; and whether
// the variants say whose picture it is.
import { html } from "../../vendor/preact.js";
import { settings } from "../../core.js";
import { ANIMATIONS, FIRST, FITS, formatsOf, withAnimation } from "./order.js";
import { ATTENTION, COMPASS } from "./placement.js";
import { withFlip, withRights, withTurn } from "./turn.js";

const FIT_OPTIONS = Object.entries(FITS).map(([value, { long }]) => [value, long]);

/**
 * @param {{variants: Json[], edits: import("./turn.js").Edits, problems: string[],
 *          onChange: (variants: Json[]) => void, onEdit: (edits: Json) => void}} properties
 */
export default function RecipeEditor({ variants, edits, problems, onChange, onEdit }) {
    const change = (index, fields) =>
        onChange(variants.map((variant, at) => (at === index ? { ...variant, ...fields } : variant)));
    const removeVariant = (index) => onChange(variants.filter((_, at) => at !== index));
    const addVariant = () => {
        const names = new Set(variants.map(({ name }) => name));
        let number = 1;
        while (names.has(`variant${number}`)) number += 1;
        onChange([...variants, { ...FIRST, name: `variant${number}` }]);
    };
    return html`<div class="recipe">
        <div class="row" role="group" aria-label="The whole picture">
            <button type="button" class="small" onClick=${() => onEdit(withTurn(edits, -1))}>Rotate left</button>
            <button type="button" class="small" onClick=${() => onEdit(withTurn(edits, 1))}>Rotate right</button>
            <button type="button" class="small" aria-pressed=${edits.flip !== undefined}
                onClick=${() => onEdit(withFlip(edits))}>Flip</button>
        </div>
        ${variants.map(
            (variant, index) => html`<fieldset key=${index}>
                <legend>Variant ${index + 1}</legend>
                <div class="recipe-fields">
                    <label>Name
                        <input type="text" value=${variant.name} maxlength="32" autocomplete="off" spellcheck=${false}
                        onInput=${({ target }) => change(index, { name: target.value.trim().toLowerCase() })} /></label>
                    <${Side} label="Width" value=${variant.width} onChange=${(width) => change(index, { width })} />
                    <${Side} label="Height" value=${variant.height} onChange=${(height) => change(index, { height })} />
                    <${Choice} label="Fit" value=${variant.fit} options=${FIT_OPTIONS}
                        onChange=${(fit) => change(index, { fit, gravity: gravityFor(fit, variant.gravity) })} />
                    <${Choice} label=${variant.fit === "contain" ? "Place" : "Keep"} value=${variant.gravity}
                        isDisabled=${variant.fit === "inside" || variant.fit === "exact"}
                        options=${gravitiesOf(variant.fit).map((value) => [value, value])}
                        onChange=${(gravity) => change(index, { gravity })} />
                    <${Choice} label="Format" value=${variant.format} options=${formatsOf(variant)}
                        onChange=${(format) => change(index, { format })} />
                    <${Choice} label="Animation" value=${variant.animation ?? "first"}
                        options=${Object.entries(ANIMATIONS)}
                        onChange=${(animation) => change(index, withAnimation(variant, animation))} />
                    <button type="button" class="small" disabled=${variants.length === 1}
                        aria-label=${`Remove variant ${index + 1}`} onClick=${() => removeVariant(index)}>
                        Remove</button>
                </div>
            </fieldset>`,
        )}
        <label class="upload-radio"><input type="checkbox" checked=${edits.metadata !== undefined}
            onChange=${({ target }) => onEdit(withRights(edits, target.checked))} />
            Keep author and copyright</label>
        ${
            problems.length > 0 &&
            html`<div class="recipe-problems" role="alert"><ul>${problems.map((problem) => html`<li>${problem}</li>`)}</ul></div>`
        }
        <button type="button" class="small" disabled=${variants.length >= settings.limits.variants}
            onClick=${addVariant}>
            Add a variant</button>
    </div>`;
}

/** Only what is cropped can be cropped by attention. */
const gravitiesOf = (fit) => [...Object.keys(COMPASS), ...(fit === "cover" ? [ATTENTION] : [])];
const gravityFor = (fit, gravity) => (fit !== "cover" && gravity === ATTENTION ? "centre" : gravity);

const Side = ({ label, value, onChange }) => html`<label>${label}
    <input type="number" min="1" max="8192" step="1" inputmode="numeric" placeholder="any" value=${value ?? ""}
        onInput=${({ target }) => onChange(target.value === "" ? null : Number(target.value))} /></label>`;

const Choice = ({ label, value, options, isDisabled = false, onChange }) => html`<label>${label}
    <select value=${value} disabled=${isDisabled} onChange=${({ target }) => onChange(target.value)}>
        ${options.map(([name, words]) => html`<option value=${name} selected=${name === value}>${words}</option>`)}
    </select></label>`;
