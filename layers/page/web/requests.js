// Requests to the API of the stack that serves this page: darkroom-upload.js sends them, with the session of this tab.
import { credential, forget, settings } from "./core.js";
import { NoAnswer, Problem, request } from "./darkroom-upload.js";

export { mayPass, NoAnswer, pause, poll, Problem } from "./darkroom-upload.js";

/** @typedef {import("./darkroom-upload.js").Answer & {etag: string|null}} Answer */

/**
 * Sends one request. Throws Problem, NoAnswer, and AbortError if `signal` ended it.
 *
 * @param {string} method
 * @param {string} path  relative to the API's root, with "/" first
 * @param {import("./darkroom-upload.js").RequestOptions & {etag?: string|null}} options
 * @returns {Promise<Answer>}
 */
export async function call(method, path, { etag = null, headers = {}, ...options } = {}) {
    const sent = { ...headers };
    const used = credential();
    if (used !== null) sent.Authorization = `Bearer ${used}`;
    if (etag !== null) sent["If-None-Match"] = etag;
    try {
        const answer = await request(method, path, { ...options, headers: sent });
        return { ...answer, etag: answer.headers.get("ETag") };
    } catch (error) {
        if (error instanceof NoAnswer) error.message = words.noAnswer;
        if (error instanceof Problem) explain(error, used);
        throw error;
    }
}

/** Says what a refusal is for people, and forgets the credential if it was refused itself. */
function explain(problem, used) {
    const { status, document, headers } = problem;
    const title = document?.title ?? document?.message ?? `Status ${status}`;
    const detail = document?.detail ?? words.gateways[problem.code === BLOCKED ? BLOCKED : status] ?? "";
    const correlationId = document?.correlation_id ?? headers.get("apigw-requestid");
    Object.assign(problem, { title, detail, message: detail || title, errors: document?.errors ?? [], correlationId });
    // Without a code the gateway itself refused the credential: no request succeeds before the caller gives another. They
    // may have done so while this answer was on its way.
    if (["401", "403"].includes(problem.code) && used === credential()) forget(words.gateways[status]);
}

const BLOCKED = "blocked";
const isToken = settings.access === "jwt";

/**
 * What is said of what says nothing, or little, by itself: no answer, and the statuses of API Gateway.
 *
 * @type {{noAnswer: string, gateways: Record<string|number, string>}}
 */
export const words = {
    noAnswer: "No answer came. Check the connection; nothing that was accepted is lost.",
    gateways: {
        401: isToken ? "The API does not know this token, or it has expired." : "The API asks for a key.",
        403: isToken ? "This token may not call the API." : "The API does not know this key, or it was revoked.",
        [BLOCKED]: "Something before the API refused the request. Try again later.",
        413: "The file is too large for one request.",
        429: "Too many requests were sent. Wait a little.",
        500: "The API could not answer. Try again.",
        503: "The API could not answer. Try again.",
    },
};
