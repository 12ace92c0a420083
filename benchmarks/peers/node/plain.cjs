// A plain handler with sharp: a photo that is posted is answered 202, waits in this process's memory, and is developed.
// Usage: NODE_PATH=<sharp> PEERS_JOB=<file> node plain.cjs PORT PHOTOS_AT_ONCE
"use strict";

const http = require("node:http");
const { develop } = require("./standard.cjs");

const [port, atOnce] = process.argv.slice(2).map(Number);
const waiting = [];
let running = 0;

async function next() {
  if (running >= atOnce || waiting.length === 0) return;
  running++;
  const { id, photo } = waiting.shift();
  try {
    await develop(id, photo);
  } catch (error) {
    console.error(id, error);
  }
  running--;
  next();
}

http
  .createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    waiting.push({ id: request.url.slice(1), photo: Buffer.concat(parts) });
    response.writeHead(202).end();
    next();
  })
  .listen(port, "127.0.0.1");
