// Drills: what can be rehearsed, what each would set off, and the command that runs it.
import { html } from "../../vendor/preact.js";
import { count, settings } from "../../core.js";
import { Copy } from "../../parts.js";
import { Awaited, Freshness, useReading } from "./reading.js";
import { Table } from "./table.js";

const OPTIONS = settings.local ? "" : ` --stack ${settings.stack}`;

export default function Drills() {
    const reading = useReading("drills");
    const { document } = reading;
    return html`<div><h1>Drills</h1>
        <p>A drill breaks something for real, waits for its alarms, shows what an operator would see, and puts
            everything back.</p>
        ${settings.production
            ? html`<p
                class="note">This is a production stack. A drill there also needs <code>--yes-in-production</code>: tell the person on call first.</p>`
            : html`<p
                class="quiet">It takes minutes and is followed in a terminal, where Ctrl-C puts everything back. Watch it on the overview meanwhile.</p>`}
        <${Freshness} reading=${reading} />
        <${Awaited} reading=${reading} />
        ${document?.open && html`<section class="card is-wait" aria-labelledby="open">
            <h2 id="open">The drill ${document.open} is open</h2>
            <p>Whoever runs it has broken something on purpose. If nobody runs it any more, put everything back:</p>
            <p><${Copy} text=${`./darkroom drill undo${OPTIONS}`} label="the command that undoes it" /></p></section>`}
        ${document !== null && html`<${Table} caption=${count(document.drills.length, "drill")}
            keys=${document.drills.map((drill) => drill.name)}
            heads=${["drill", "what it rehearses", "alarms", "where", "command"]}
            rows=${document.drills.map((drill) => [
                html`<strong class="nowrap">${drill.name}</strong>`,
                drill.rehearses,
                drill.alarms.length > 0 ? drill.alarms.join(", ") : "none",
                drill.where,
                html`<${Copy} text=${`./darkroom drill ${drill.name}${OPTIONS}`}
                    label=${`the command of ${drill.name}`} />`,
            ])} />`}
    </div>`;
}
