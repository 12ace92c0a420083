// What the upload screen shows once it has files: the settings for those that are ready, and all of them.
import { html, useEffect, useState } from "../../vendor/preact.js";
import { ChoiceForm, useChoice } from "./choice.js";
import List from "./list.js";
import { add, items, watchList } from "./queue.js";
import { lookAgain } from "./watch.js";

export { add };

/** Whether there are files in the list. */
export const hasFiles = () => items.length > 0;

export default function Work() {
    const state = useChoice();
    const [isReady, setReady] = useState(isAnyReady);
    useEffect(() => watchList(() => setReady(isAnyReady())), []);
    useEffect(() => {
        lookAgain();
        const look = () => document.hidden || lookAgain();
        document.addEventListener("visibilitychange", look);
        return () => document.removeEventListener("visibilitychange", look);
    }, []);
    return html`
        ${isReady && html`<${ChoiceForm} state=${state} />`}
        <${List} choice=${state.choice} variants=${state.shown} problem=${state.problem}
            onSent=${state.resetTime} />
    `;
}

const isAnyReady = () => items.some((item) => item.stage === "ready");
