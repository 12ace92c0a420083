// One call of the API: what it takes, how it answers, and what may go wrong.
import { html, useEffect, useState } from "../../vendor/preact.js";
import { Prose, Words } from "./prose.js";
import { Bounds, needsNoKey, Opened, resolve, Schema, schemaOf, Type } from "./schema.js";
import { Try } from "./try.js";

/** The methods that a description may have, in their usual order. */
export const METHODS = ["get", "post", "put", "patch", "delete"];

/** A method in its colour. */
export const Method = ({ method }) => {
    const look = METHODS.includes(method) ? method : "event";
    return html`<span class=${`method method-${look}`}>${String(method).toUpperCase()}</span>`;
};

const PROBLEM = "application/problem+json";

/** @param {{route: Json, description: Json, isAsked: boolean}} properties  `route` as callsOf made it */
export function Call({ route, description, isAsked }) {
    return html`<${Frame} route=${route} isAsked=${isAsked} method=${route.method}>
        <${Prose} text=${route.operation.description} />
        ${needsNoKey(route.operation) && html`<p class="quiet">Anybody may send it, without a key.</p>`}
        <${Parameters} operation=${route.operation} description=${description} />
        <${Body} operation=${route.operation} description=${description} />
        <${Responses} operation=${route.operation} description=${description} />
        <${Opened} name="Try it" isButton><${Try} route=${route} description=${description} /><//>
    <//>`;
}

/** What is sent to webhooks: there is nothing to try. */
export function Received({ route, description, isAsked }) {
    return html`<${Frame} route=${route} isAsked=${isAsked} method="event">
        <${Prose} text=${route.operation.description} />
        <${Parameters} operation=${route.operation} description=${description} />
        <${Body} operation=${route.operation} description=${description} />
        <h3>Your answer</h3>
        <dl class="facts">${Object.entries(route.operation.responses ?? {}).map(([status, response]) => html`
            <dt><code>${status}</code></dt>
            <dd><${Words} text=${resolve(response, description).description} /></dd>`)}</dl>
    <//>`;
}

function Frame({ route, isAsked, method, children }) {
    const [isOpen, setOpen] = useState(isAsked);
    useEffect(() => {
        if (isAsked) setOpen(true);
    }, [isAsked]);
    return html`<section class="card call" id=${`call-${route.id}`}
        aria-label=${`${route.method.toUpperCase()} ${route.path}`}>
        <details open=${isOpen}
            onToggle=${(event) => event.target === event.currentTarget && setOpen(event.target.open)}>
            <summary><h2><${Method} method=${method} /> <code class="path">${route.path}</code>${" "}
                <span class="call-summary">${route.operation.summary}</span></h2></summary>
            ${isOpen && html`<div class="call-body">${children}
                <p class="quiet"><a href=${`#/api?call=${encodeURIComponent(route.id)}`}>Link to this call</a></p></div>`}
        </details>
    </section>`;
}

const PLACES = { path: "in the path", query: "in the query", header: "a header" };

function Parameters({ operation, description }) {
    const parameters = (operation.parameters ?? []).map((parameter) => resolve(parameter, description));
    if (parameters.length === 0) return null;
    return html`<h3>Parameters</h3><ul class="fields">${parameters.map((parameter) => {
        const schema = schemaOf(parameter);
        return html`<li>
            <div><code class="field-name">${parameter.name}</code>${" "}
                <${Type} node=${schema} description=${description} />${" "}
                <span class="quiet">${PLACES[parameter.in] ?? parameter.in}</span>
                ${parameter.required && html` <span class="required">required</span>`}</div>
            <div><${Words} text=${parameter.description} /></div>
            <${Bounds} node=${schema} description=${description} />
            ${"example" in exampled(parameter) &&
            html`<div class="quiet">For example <code>${plain(exampled(parameter).example)}</code></div>`}
            ${parameter.content &&
            html`<${Opened} name=${`Fields of ${parameter.name}`}>
                <${Schema} node=${schema} description=${description} /><//>`}
        </li>`;
    })}</ul>`;
}

const exampled = (parameter) => ("example" in parameter ? parameter : Object.values(parameter.content ?? {})[0] ?? {});

function plain(value) {
    if (Array.isArray(value) && value.every((item) => typeof item === "string")) return value.join(",");
    return typeof value === "string" ? value : JSON.stringify(value);
}

function Body({ operation, description }) {
    const body = resolve(operation.requestBody, description);
    const content = Object.entries(body.content ?? {});
    if (content.length === 0) return null;
    return html`<h3>Body</h3>
        ${body.description &&
        html`<p><${Words} text=${body.description} />${body.required === false && " It may be left out."}</p>`}
        ${content.length > 1 || !content[0][1].schema
            ? html`<p class="quiet">Of type${" "}
                  ${content.map(([type], index) => [index ? ", " : "", html`<code>${type}</code>`])}.</p>`
            : html`<${Content} content=${content} description=${description} />`}`;
}

/** What a body or an answer has: its fields, and examples. */
function Content({ content, description }) {
    return content.map(([type, { schema, examples }]) => html`<div>
        <p class="quiet"><code>${type}</code></p>
        ${schema && html`<${Opened} name="Fields"><${Schema} node=${schema} description=${description} /><//>`}
        ${Object.entries(examples ?? {}).map(([name, example]) => html`<${Opened} name=${`Example: ${name}`}>
            <pre tabindex="0" aria-label=${`Example ${name}`}>
                ${JSON.stringify(resolve(example, description).value, null, 2)}</pre><//>`)}
    </div>`);
}

function Responses({ operation, description }) {
    const responses = Object.entries(operation.responses ?? {}).map(
        ([status, response]) => [status, resolve(response, description)],
    );
    const good = responses.filter(([status]) => Number(status) < 400);
    const bad = responses.filter(([status]) => !(Number(status) < 400));
    return html`<h3>Answers</h3>
        ${good.map(([status, response]) => html`<div class="answer">
            <p><strong>${status}</strong> <${Words} text=${response.description} /></p>
            <${Headers} headers=${response.headers} description=${description} />
            ${response.content && html`<${Content} content=${Object.entries(response.content)}
                description=${description} />`}
        </div>`)}
        ${bad.length > 0 && html`<${Opened} name=${`Problems: ${bad.map(([status]) => status).join(", ")}`}>
            <p class="quiet">As <code>${PROBLEM}</code>: branch on <code>code</code>.</p>
            <div class="scroll" tabindex="0" role="group" aria-label="Problems"><table>
                <thead><tr><th>Status</th><th>Code</th><th>What it says</th></tr></thead>
                <tbody>${bad.flatMap(([status, response]) => problems(status, response, description))}</tbody>
            </table></div>
            ${bad.filter(([, { headers }]) => Object.keys(own(headers)).length).map(([status, { headers }]) => html`
                <div class="answer"><p><strong>${status}</strong></p>
                    <${Headers} headers=${own(headers)} description=${description} /></div>`)}
        <//>`}`;
}

/** The headers that are not those of every answer. */
const own = (headers) =>
    Object.fromEntries(Object.entries(headers ?? {}).filter(([, header]) => typeof header?.$ref !== "string"));

function problems(status, response, description) {
    const examples = Object.values(response.content ?? {}).flatMap((content) => Object.values(content?.examples ?? {}));
    const rows = examples.map((example) => {
        const { summary, value } = resolve(example, description);
        return html`<tr><td>${status}</td><td><code>${value?.code ?? "none"}</code></td>
            <td><strong>${value?.title ?? summary}</strong>
                ${summary && !value?.title ? `: ${value?.message ?? ""}` : ""}
                ${value?.detail && html`<br /><${Words} text=${value.detail} />`}
                ${Array.isArray(value?.errors) && html`<ul>
                    ${value.errors.map((error) => html`<li><code>${error?.field}</code> ${error?.message}</li>`)}</ul>`}</td>
        </tr>`;
    });
    return rows.length ? rows : [html`<tr><td>${status}</td><td></td><td>${response.description}</td></tr>`];
}

function Headers({ headers, description }) {
    const list = Object.entries(headers ?? {});
    if (list.length === 0) return null;
    const names = list.map(([name]) => name).join(", ");
    return html`<${Opened} name=${`Headers: ${names}`}><ul class="fields">${list.map(([name, header]) => {
        const details = resolve(header, description);
        return html`<li><div><code class="field-name">${name}</code>
                ${details.required && html` <span class="quiet">always</span>`}</div>
            <div><${Words} text=${details.description} /></div>
            ${"example" in details && html`<div class="quiet">For example <code>${plain(details.example)}</code></div>`}
        </li>`;
    })}</ul><//>`;
}
