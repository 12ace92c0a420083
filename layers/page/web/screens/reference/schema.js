// A schema of the API's description as a list of its fields. What it refers to is followed as far as it is opened.
import { html, useState } from "../../vendor/preact.js";
import { Words } from "./prose.js";

const MOST_REFERENCES = 16;

/** What `node` is, or what it refers to; {} if that is nowhere, or refers to itself. */
export function resolve(node, description) {
    let target = node;
    for (let steps = 0; steps < MOST_REFERENCES; steps += 1) {
        const reference = target?.$ref;
        if (typeof reference !== "string") return target && typeof target === "object" ? target : {};
        if (!reference.startsWith("#/")) return {};
        target = reference.slice(2).split("/").reduce(
            (at, name) => {
                const key = decodeURIComponent(name).replaceAll("~1", "/").replaceAll("~0", "~");
                return at && typeof at === "object" && Object.hasOwn(at, key) ? at[key] : undefined;
            },
            description,
        );
    }
    return {};
}

/** The last part of a reference, which names what it refers to. */
const nameOf = (node) => (typeof node?.$ref === "string" ? node.$ref.split("/").at(-1) : null);

/** The schema with all that `allOf` and a choice with null add to it. */
function merged(node, description) {
    const schema = resolve(node, description);
    const choices = (schema.anyOf ?? schema.oneOf ?? []).filter((choice) => choice?.type !== "null");
    const isOne = Array.isArray(schema.anyOf ?? schema.oneOf) && choices.length === 1;
    const parts = [...(Array.isArray(schema.allOf) ? schema.allOf : []), ...(isOne ? choices : [])];
    if (parts.length === 0) return schema;
    const { allOf, anyOf, oneOf, ...own } = schema;
    return parts.map((part) => resolve(part, description)).reduce(
        (sum, part) => ({ ...part, ...sum, properties: { ...part.properties, ...sum.properties },
            required: [...(part.required ?? []), ...(sum.required ?? [])] }),
        own,
    );
}

const mayBeNull = ({ type, anyOf = [], oneOf = [] }) =>
    [...anyOf, ...oneOf].some((choice) => choice?.type === "null") || (Array.isArray(type) && type.includes("null"));

/** A type in words: "string or null", "array of Recipe". */
function typeOf(node, description, depth = 0) {
    if (depth > 4) return "…";
    const schema = resolve(node, description);
    const full = merged(node, description);
    const none = mayBeNull(schema) ? " or null" : "";
    if (full.type === "array") return `array of ${typeOf(full.items, description, depth + 1)}${none}`;
    const choices = (full.oneOf ?? full.anyOf ?? []).filter((choice) => choice?.type !== "null");
    if (choices.length > 1 && !full.type) {
        const types = choices.map((choice) => nameOf(choice) ?? typeOf(choice, description, depth + 1));
        return [...new Set(types)].join(" or ") + none;
    }
    if (full.properties || full.type === "object") {
        const referred = nameOf(node) ?? nameOf((schema.anyOf ?? []).find((option) => option?.$ref));
        return (referred ?? "object") + none;
    }
    const type = Array.isArray(full.type) ? full.type.filter((option) => option !== "null").join(" or ") : full.type;
    const value = "const" in full ? full.const : full.enum?.find((option) => option !== null);
    const kind = type ?? (value === undefined ? "any" : typeof value);
    return `${kind}${full.format ? ` (${full.format})` : ""}${none}`;
}

const LIMITS = [
    ["minimum", "at least"], ["maximum", "at most"], ["exclusiveMinimum", "more than"], ["exclusiveMaximum",
        "less than"],
    ["minLength", "characters: at least"], ["maxLength", "characters: at most"], ["minItems", "entries: at least"],
        ["maxItems", "entries: at most"],
    ["minProperties", "fields: at least"], ["pattern", "matches"], ["default", "by default"], ["const", "always"],
];

/** A value as it is written. */
const written = (value) => (typeof value === "string" ? value : JSON.stringify(value));

/** A schema's bounds in words: the values that it allows. */
export function Bounds({ node, description }) {
    const schema = merged(node, description);
    const items = schema.type === "array" ? merged(schema.items, description) : {};
    const values = schema.enum ?? items.enum;
    const limits = LIMITS.filter(([key]) => key in schema);
    return html`${Array.isArray(values) && html`<div class="quiet">One of ${values.map((value, index) => [index ? ", "
        : "", html`<code>${written(value)}</code>`])}</div>`}
        ${limits.length > 0 && html`<div class="quiet">${limits.map(([key, words], index) => [
            index ? ", " : "", index ? words : words[0].toUpperCase() + words.slice(1), " ",
                html`<code>${written(schema[key])}</code>`])}</div>`}`;
}

export const Type = ({ node, description }) => html`<span class="type">${typeOf(node, description)}</span>`;

/** What is nested in a schema: its fields, its entries' fields, or its choices'. */
function nested(node, description) {
    const schema = merged(node, description);
    if (schema.properties && Object.keys(schema.properties).length) return [["", schema]];
    if (schema.type === "array" && schema.items) return nested(schema.items, description);
    const choices = schema.oneOf ?? schema.anyOf ?? [];
    return Array.isArray(choices) ? choices.filter((choice) => choice?.$ref || choice?.properties).slice(0,
        40).map((choice) => [nameOf(choice) ?? "object", choice]) : [];
}

/** A schema's fields. @param {{node: Json, description: Json}} properties */
export function Schema({ node, description }) {
    const parts = nested(node, description);
    if (parts.length === 0) return html`<p><${Type} node=${node} description=${description} /> <${Bounds} node=${node}
        description=${description} /></p>`;
    if (parts.length === 1 && parts[0][0] === "") return html`<${Fields} schema=${parts[0][1]}
        description=${description} />`;
    return parts.map(([name, part]) => html`<${Opened} name=${name}><${Schema} node=${part}
        description=${description} /><//>`);
}

function Fields({ schema, description }) {
    const required = new Set(Array.isArray(schema.required) ? schema.required : []);
    return html`<ul class="fields">${Object.entries(schema.properties).map(([name, field]) => {
        const inner = nested(field, description);
        return html`<li>
            <div><code class="field-name">${name}</code> <${Type} node=${field} description=${description} />
            ${required.has(name) && html` <span class="required">required</span>`}</div>
            <${Described} node=${field} description=${description} />
            <${Bounds} node=${field} description=${description} />
            ${inner.length > 0 && html`<${Opened} name=${`Fields of ${name}`}><${Schema} node=${field}
                description=${description} /><//>`}
        </li>`;
    })}</ul>`;
}

function Described({ node, description }) {
    const text = node?.description ?? merged(node, description).description;
    return text ? html`<div><${Words} text=${text} /></div>` : null;
}

/** Contents that are made when they are first opened: a description may refer to itself. */
export function Opened({ name, children, isButton = false }) {
    const [wasOpened, setOpened] = useState(false);
    return html`<details class=${isButton ? "opened opened-button" : "opened"}
        onToggle=${(event) => event.target.open && setOpened(true)}>
        <summary>${name}</summary>${wasOpened && html`<div class="opened-body">${children}</div>`}
    </details>`;
}

/** Whether a call needs no credential. */
export const needsNoKey = ({ security }) => Array.isArray(security) && security.length === 0;

/** The schema of a parameter, which may be a document of some media type. */
export const schemaOf = (parameter) => parameter.schema ?? Object.values(parameter.content ?? {})[0]?.schema ?? {};
