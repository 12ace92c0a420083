// A long-lived process that runs sharp: each line of JSON is a job, answered by a line of JSON (as ../worker.py).
// Usage: NODE_PATH=<where sharp is installed> node worker.cjs ENGINE
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const readline = require("node:readline");
const sharp = require("sharp");

sharp.concurrency(1); // one thread, because everything is pinned to one core
sharp.cache(false);
sharp.simd(true);

const box = (side) => [side, side, { fit: "inside", withoutEnlargement: true }];

function encoded(pipeline, format, encoding) {
  switch (format) {
    case "jpeg":
      return pipeline
        .jpeg({
          quality: encoding.jpeg_quality,
          chromaSubsampling: "4:2:0",
          optimiseCoding: encoding.jpeg_optimize,
        })
        .toBuffer();
    case "webp":
      return pipeline.webp({ quality: encoding.webp_quality, effort: encoding.webp_method }).toBuffer();
    case "avif":
      return pipeline
        .avif({ quality: encoding.avif_quality, effort: 9 - encoding.avif_speed, chromaSubsampling: "4:2:0" })
        .toBuffer();
    case "png":
      return pipeline
        .png({ compressionLevel: encoding.png_compression, adaptiveFiltering: encoding.png_adaptive_filter })
        .toBuffer();
    default:
      throw new Error(`no such format: ${format}`);
  }
}

// The decoded pixels of a pipeline, as the input of further ones.
async function pixels(pipeline) {
  const { data, info } = await pipeline.raw().toBuffer({ resolveWithObject: true });
  const { width, height, channels } = info;
  return sharp(data, { raw: { width, height, channels } });
}

async function perVariant(original, variants, encoding) {
  const made = {};
  for (const { name, side, format } of variants) {
    made[name] = await encoded(sharp(original).autoOrient().resize(...box(side)), format, encoding);
  }
  return made;
}

// One decode; each size is made from the next larger one through raw pixels. clone() of one pipeline decodes again for
// each clone: it took 1.6 times as long. On one core it makes no difference whether the variants are made in parallel.
async function cascade(original, variants, encoding) {
  const largest = sharp(original).autoOrient().resize(...box(variants[0].side));
  return descend(await pixels(largest), variants, encoding);
}

// The same for files with a colour profile: sharp converts every decoded pixel before it resizes. Keeping the profile
// makes it resize first, and a second pipeline, which reads an uncompressed TIFF, then converts the fewer pixels.
async function cascadeColoursLast(original, variants, encoding) {
  const largest = sharp(original).autoOrient().resize(...box(variants[0].side));
  const unconverted = await largest.keepIccProfile().tiff({ compression: "none" }).toBuffer();
  return descend(await pixels(sharp(unconverted)), variants, encoding);
}

async function descend(first, variants, encoding) {
  const bySide = new Map([[variants[0].side, first]]);
  let latest = first;
  const made = {};
  for (const { name, side, format } of variants) {
    if (!bySide.has(side)) {
      latest = await pixels(latest.clone().resize(...box(side)));
      bySide.set(side, latest);
    }
    made[name] = await encoded(bySide.get(side).clone(), format, encoding);
  }
  return made;
}

const ENGINES = {
  "sharp-per-variant": perVariant,
  "sharp-cascade": cascade,
  "sharp-colours-last": cascadeColoursLast,
};

function peakMegabytes() {
  return Number(/VmHWM:\s+(\d+)/.exec(fs.readFileSync("/proc/self/status", "utf8"))[1]) / 1024;
}

function cpuMilliseconds() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

function answer(fields) {
  process.stdout.write(`${JSON.stringify(fields)}\n`);
}

function versions() {
  const { vips, webp, mozjpeg } = sharp.versions;
  return { sharp: sharp.versions.sharp, node: process.versions.node, libvips: vips, libwebp: webp, mozjpeg };
}

async function serve(run) {
  answer({ peak_mb: peakMegabytes() });
  let source = "";
  let original = Buffer.alloc(0);
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const request = JSON.parse(line);
    if ("versions" in request) {
      answer({ versions: versions() });
      continue;
    }
    if (request.source !== source) {
      source = request.source;
      original = fs.readFileSync(source);
    }
    const started = cpuMilliseconds();
    const made = await run(original, request.variants, request.encoding);
    const spent = cpuMilliseconds() - started;
    const bytes = {};
    for (const [name, body] of Object.entries(made)) {
      bytes[name] = body.length;
      if (request.save !== null) fs.writeFileSync(path.join(request.save, name), body);
    }
    answer({ cpu_ms: spent, bytes, peak_mb: peakMegabytes() });
  }
}

exports.cascade = cascade;
if (require.main === module) serve(ENGINES[process.argv[2]]);
