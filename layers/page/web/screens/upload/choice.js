// The settings of what is about to be sent: a preset or a recipe of one's own, and when.
import { html, useEffect, useMemo, useRef, useState } from "../../vendor/preact.js";
import { ofBrowser, ofTab, settings } from "../../core.js";
import { NotLoaded } from "../../parts.js";
import { describe, describeAll, FIRST, isCropped, problemOfTime, problemsOfRecipe, UNITS } from "./order.js";
import { editsIn } from "./turn.js";

const PRESETS = settings.presets ?? {};
const USUAL = Object.hasOwn(PRESETS, "standard") ? "standard" : (Object.keys(PRESETS)[0] ?? null);
const OWN = "\0own"; // no preset has this name

// The recipe stays for the next visit; the time only for this tab, until the files are sent: nobody wants the last one.
const RECIPE_PLACE = "darkroom.recipe";
const TIME_PLACE = "darkroom.when";
const NOW = { kind: "now", amount: "1", unit: "H", at: "" };

/**
 * The settings, kept across reloads, so that the same files dropped again are the same uploads.
 *
 * @returns {{choice: import("./order.js").Choice, own: Json[], ownEdits: Json, shown: Json[],
 *           change: (fields: Json) => void, resetTime: () => void, problems: string[], timeProblem: string|null,
 *           problem: string|null}}  `problem` is what keeps the files from being sent
 */
export function useChoice() {
    const [preset, setPreset] = useState(() => {
        const { preset } = ofBrowser.read(RECIPE_PLACE, {});
        return preset === null ? null : Object.hasOwn(PRESETS, preset ?? "") ? preset : USUAL;
    });
    const [own, setOwn] = useState(() => {
        const { variants } = ofBrowser.read(RECIPE_PLACE, {});
        const isRecipe =
            Array.isArray(variants) && variants.length > 0 && variants.every((variant) => variant?.name !== undefined);
        return isRecipe ? variants : [FIRST];
    });
    const [ownEdits, setOwnEdits] = useState(() => editsIn(ofBrowser.read(RECIPE_PLACE, {})));
    const [when, setWhen] = useState(() => ({ ...NOW, ...ofTab.read(TIME_PLACE, {}) }));
    useEffect(() => ofBrowser.write(RECIPE_PLACE, { preset, variants: own, ...ownEdits }), [preset, own, ownEdits]);
    useEffect(() => ofTab.write(TIME_PLACE, when), [when]);
    const { variants, edits } = useMemo(() => {
        /** @type {Json} */
        const recipe = preset === null ? { variants: own, ...ownEdits } : PRESETS[preset];
        const { variants, ...edits } = recipe;
        return { variants, edits };
    }, [preset, own, ownEdits]);
    const choice = useMemo(() => ({ preset, variants, edits, when }), [preset, variants, edits, when]);
    const problems = useMemo(() => (preset === null ? problemsOfRecipe(own, ownEdits) : []), [preset, own, ownEdits]);
    const shown = useRef([]); // while a recipe is being written, previews show the last one that was right
    if (problems.length === 0) shown.current = variants;
    const timeProblem = problemOfTime(when);
    const problem =
        problems.length > 0 ? "First correct the recipe." : timeProblem && `First correct the time. ${timeProblem}`;
    const change = (fields) => {
        if ("preset" in fields) setPreset(fields.preset);
        if ("own" in fields) setOwn(fields.own);
        if ("ownEdits" in fields) setOwnEdits(fields.ownEdits);
        if ("when" in fields) setWhen((before) => ({ ...before, ...fields.when }));
    };
    const resetTime = () => setWhen(NOW);
    return { choice, own, ownEdits, shown: shown.current, change, resetTime, problems, timeProblem, problem };
}

/**
 * @param {{state: ReturnType<typeof useChoice>, isForNext: boolean}} properties  `isForNext` if all files are sent
 *        already
 */
export function ChoiceForm({ state, isForNext }) {
    const { choice, own, ownEdits, change, problems, timeProblem } = state;
    const [isKept] = useState(choice.preset !== USUAL);
    const [Editor, setEditor] = useState(null);
    const [missing, setMissing] = useState(null);
    useEffect(() => {
        if (choice.preset !== null || Editor) return;
        import("./recipe.js").then((module) => setEditor(() => module.default), setMissing);
    }, [choice.preset]);
    const choosePreset = ({ target }) => change({ preset: target.value === OWN ? null : target.value });
    const isAnyCropped = choice.variants.some(isCropped);
    return html`<div class="card upload-choice">
        <div>
            <label for="preset">What to make</label>
            <select id="preset" onChange=${choosePreset}>
                ${Object.keys(PRESETS).map(
                    (name) => html`<option value=${name} selected=${name === choice.preset}>
                        Preset ${name}: ${describeAll(PRESETS[name].variants)}</option>`,
                )}
                <option value=${OWN} selected=${choice.preset === null}>A recipe of my own</option>
            </select>
            ${
                choice.preset !== null &&
                html`<ul class="upload-variants">
                ${choice.variants.map((variant) => html`<li><strong>${variant.name}</strong> ${describe(variant)}</li>`)}
            </ul>`
            }
            ${
                isKept && choice.preset !== USUAL &&
                html`<p class="quiet">As you chose last time.${" "}
                    <button type="button" class="small" onClick=${() => change({ preset: USUAL })}>
                        Use ${USUAL}</button></p>`
            }
            <p class="quiet">${
                isForNext
                    ? "This is for the photos that you add next."
                    : isAnyCropped
                    ? "The bright part of each photo below is what its first crop keeps: adjust it before you upload."
                    : "Every variant shows the whole picture: nothing is cropped."
            }${(choice.edits.trim !== undefined || choice.edits.regions !== undefined) && NOT_SHOWN}</p>
        </div>
        <${When} when=${choice.when} problem=${timeProblem} onChange=${(when) => change({ when })} />
        ${
            choice.preset === null &&
            missing &&
            html`<${NotLoaded} then=", and add again what is not sent yet" />`
        }
        ${
            choice.preset === null &&
            Editor &&
            html`<${Editor} variants=${own} edits=${ownEdits} problems=${problems}
                onChange=${(variants) => change({ own: variants })} onEdit=${(ownEdits) => change({ ownEdits })} />`
        }
    </div>`;
}

const NOT_SHOWN = " The preview does not show what the preset trims or hides.";

const KINDS = { now: "Now", delay: "After a delay", at: "At a date and time" };

function When({ when, problem, onChange }) {
    const tomorrow = () => {
        const day = new Date(Date.now() + 86400_000);
        return `${day.getFullYear()}-${two(day.getMonth() + 1)}-${two(day.getDate())}T09:00`;
    };
    const choose = (kind) => onChange(kind === "at" && !when.at ? { kind, at: tomorrow() } : { kind });
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    return html`<fieldset class="upload-when">
        <legend>When to process</legend>
        <div class="row">
            ${Object.entries(KINDS).map(
                ([kind, words]) => html`<label class="upload-radio">
                    <input type="radio" name="when" value=${kind} checked=${when.kind === kind}
                        onChange=${() => choose(kind)} /> ${words}
                </label>`,
            )}
        </div>
        ${
            when.kind === "delay" &&
            html`<div class="row upload-time">
            <input type="number" min="1" step="1" inputmode="numeric" aria-label="Delay" value=${when.amount}
                aria-invalid=${problem !== null} onInput=${({ target }) => onChange({ amount: target.value })} />
            <select aria-label="Unit of the delay" onChange=${({ target }) => onChange({ unit: target.value })}>
                ${Object.entries(UNITS).map(
                    ([unit, [word]]) => html`<option value=${unit} selected=${unit === when.unit}>${word}s</option>`,
                )}
            </select>
            <span class="quiet">after each file is sent</span>
        </div>`
        }
        ${
            when.kind === "at" &&
            html`<div class="row upload-time">
            <input type="datetime-local" aria-label="Date and time" value=${when.at} aria-invalid=${problem !== null}
                onInput=${({ target }) => onChange({ at: target.value })} />
            <span class="quiet">in your time zone, ${zone}</span>
        </div>`
        }
        ${problem && html`<p class="upload-problem" role="alert">${problem}</p>`}
    </fieldset>`;
}

const two = (number) => String(number).padStart(2, "0");
