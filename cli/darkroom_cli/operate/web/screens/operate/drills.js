// Drills: what can be rehearsed, what each would set off, and the command that runs it.
import { html, useState } from "../../vendor/preact.js";
import { count, has, settings } from "../../core.js";
import { Copy } from "../../parts.js";
import { Act } from "./acting.js";
import { Awaited, Freshness, useReading } from "./reading.js";
import { ACTIONS, Table } from "./table.js";

const RUN = `It breaks something for real, for as long as its alarms need, and puts everything back. You can close the
    page meanwhile, and stop it at any time: ending the command that serves this page stops it too.`;
const UNDO = "Each switch that the drill has thrown is set as it was; what has been set otherwise since stays.";
const OPTIONS = settings.local ? "" : ` --stack ${settings.stack}`;

export default function Drills() {
    const reading = useReading("drills");
    const drills = reading.document?.drills.filter(({ part }) => part === null || has(part)) ?? [];
    const { document } = reading;
    const [isKnown, setKnown] = useState(!settings.production);
    return html`<div><h1>Drills</h1>
        <p>A drill breaks something for real, waits for its alarms, shows what an operator would see, and puts
            everything back.</p>
        ${settings.production
            ? html`<div class="note"><p>This is a production stack: a drill there lets its users wait.</p>
                <p><label class="check"><input type="checkbox" checked=${isKnown}
                    onChange=${(event) => setKnown(event.target.checked)} />
                    The person on call knows of it</label></p></div>`
            : html`<p class="quiet">It takes minutes. Watch it on the overview meanwhile.</p>`}
        <${Freshness} reading=${reading} />
        <${Awaited} reading=${reading} />
        ${document?.open && html`<section class="card is-warn" aria-labelledby="open">
            <h2 id="open">The drill ${document.open} is open</h2>
            <p>Something is broken on purpose. Unless the drill still runs, put everything back:</p>
            <p class="row"><${Act} action="undo_drill" body=${{}} label="Put back"
                about=${`what ${document.open} has changed`} title=${`Put back what ${document.open} has changed?`}
                yes="Put back" what=${UNDO} onDone=${reading.again} />
                <${Copy} text=${`./darkroom drill undo${OPTIONS}`} label="the command that undoes it" /></p></section>`}
        ${document !== null && html`<${Table} caption=${count(drills.length, "drill")}
            keys=${drills.map((drill) => drill.name)}
            heads=${["drill", "what it rehearses", "alarms", "where", "command", ACTIONS]}
            rows=${drills.map((drill) => [
                html`<strong class="nowrap">${drill.name}</strong>`,
                drill.rehearses,
                drill.alarms.length > 0 ? drill.alarms.join(", ") : "none",
                drill.where,
                html`<${Copy} text=${`./darkroom drill ${drill.name}${OPTIONS}`}
                    label=${`the command of ${drill.name}`} />`,
                html`<${Act} action="drill" body=${{ drill: drill.name, in_production: settings.production && isKnown }}
                    label="Run" about=${`the drill ${drill.name}`} title=${`Run the drill ${drill.name}?`} yes="Run it"
                    isGrave=${true} disabled=${!isKnown} what=${RUN} onDone=${reading.again} />`,
            ])} />`}
    </div>`;
}
