// How often the page may read lists, by what the API tells of the caller's allowance of reads.

/** How long one such read must last so that looking uses half of the caller's allowance at most; 0 if it is unknown. */
export function secondsPerRead(headers) {
    const policy = headers.get("RateLimit-Policy") ?? "";
    const figure = (name) => Number(new RegExp(`;\\s*${name}=(\\d+)`).exec(policy)?.[1]);
    const [quota, window, cost] = [figure("q"), figure("w"), figure("cost")];
    return quota && window && cost ? (2 * Math.min(cost, quota) * window) / quota : 0;
}
