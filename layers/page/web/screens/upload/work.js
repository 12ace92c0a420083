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
    const [has, setHas] = useState(whatThereIs);
    useEffect(() => watchList(() => setHas(whatThereIs())), []);
    useEffect(() => {
        lookAgain();
        const look = () => document.hidden || lookAgain();
        document.addEventListener("visibilitychange", look);
        return () => document.removeEventListener("visibilitychange", look);
    }, []);
    return html`
        ${has !== "nothing" && html`<${ChoiceForm} state=${state} isForNext=${has === "sent files"} />`}
        <${List} choice=${state.choice} variants=${state.shown} edits=${state.choice.edits} problem=${state.problem}
            onSent=${state.resetTime} />
    `;
}

// Once there are files, the settings stay where they are, so that nothing jumps when the files are sent.
const whatThereIs = () =>
    items.length === 0 ? "nothing" : items.some((item) => item.stage === "ready") ? "ready files" : "sent files";
