// A CloudFront Function (cloudfront-js-2.0) for viewer-request and viewer-response of public/* and signed/*.
//
// An address without an extension is that of one picture as AVIF, WebP and JPEG. The viewer's Accept chooses (RFC 9110,
// 12.5.1), and only the address with the extension reaches the cache. A wildcard stands for JPEG alone: browsers
// without AVIF send one too.

// The only addresses that there are: nothing that CloudFront and S3 could read differently, as %2e, .., // or \.
const ADDRESS =
    /^\/(public|signed)\/[0-7][0-9a-z]{25}\/[0-9]+(-[0-9a-f]{8})*\/[a-z][a-z0-9_-]{0,31}(\.(jpg|png|webp|avif|gif))?$/;

const LONGEST_ACCEPT = 2048;

// A range alone, or with a weight; what follows the weight is ignored. One with other parameters is of no file here.
const RANGE = /^([^\s;]+)(?:\s*;\s*q=(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)\s*(?:;.*)?)?$/;

function handler(event) {
    if (event.context.eventType === "viewer-response") return varied(event.response);
    const request = event.request;
    const address = ADDRESS.exec(request.uri);
    if (address === null) return { statusCode: 404, statusDescription: "Not Found" };  // guard: edge-known-addresses-only
    if (address[3] === undefined) request.uri += extensionFor(request.headers.accept);
    return request;
}

// Every answer here: whether the address had an extension when it came is not known any more.
function varied(response) {
    const vary = response.headers.vary;
    response.headers.vary = { value: vary === undefined ? "Accept" : valuesOf(vary).concat("Accept").join(", ") };
    return response;
}

function valuesOf(header) {
    return (header.multiValue || [header]).map((one) => one.value);
}

function extensionFor(accept) {
    const weights = weightsIn(accept === undefined ? "" : valuesOf(accept).join(","));
    const jpeg = firstOf([weights["image/jpeg"], weights["image/*"], weights["*/*"]]);
    const avif = firstOf([weights["image/avif"]]);
    const webp = firstOf([weights["image/webp"]]);
    if (avif > 0 && avif >= webp && avif >= jpeg) return ".avif";
    return webp > 0 && webp >= jpeg ? ".webp" : ".jpg";
}

function firstOf(weights) {
    const stated = weights.filter((weight) => weight !== undefined);
    return stated.length > 0 ? stated[0] : 0;
}

// The weight of each range; the least of those of one that stands there twice. None of what nobody sends.
function weightsIn(accept) {
    const weights = Object.create(null);
    if (accept.length > LONGEST_ACCEPT) return weights;  // guard: edge-long-accept-ignored
    if (accept.indexOf('"') >= 0) return weights;  // guard: edge-quoted-accept-ignored
    for (const part of accept.toLowerCase().split(",")) {
        const range = RANGE.exec(part.trim());
        if (range === null) continue;
        const weight = range[2] === undefined ? 1 : Number(range[2]);
        weights[range[1]] = weights[range[1]] < weight ? weights[range[1]] : weight; // an absent one is not less
    }
    return weights;
}
