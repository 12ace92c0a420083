// BullMQ as its guide to production asks for it (https://docs.bullmq.io/guide/going-to-production).
// Usage: NODE_PATH=<its packages> PEERS_JOB=<file> node bullmq.cjs work PORT | add PORT PREFIX COUNT
"use strict";

const { Queue, Worker } = require("bullmq");
const { develop } = require("./standard.cjs");

const [role, port, prefix, count] = process.argv.slice(2);
const connection = { host: "127.0.0.1", port: Number(port) };
const QUIET_MS = Number(process.env.PEERS_QUIET_SECONDS) * 1000;

function work() {
  const worker = new Worker("photos", ({ id }) => develop(id), {
    connection: { ...connection, maxRetriesPerRequest: null }, // it waits for a broker that is away
    concurrency: 1,
    lockDuration: QUIET_MS, // 30 s are the default
    stalledInterval: QUIET_MS,
    maxStalledCount: 1, // the default: a job that loses its worker twice fails
  });
  worker.on("error", (error) => console.error(String(error)));
}

async function add() {
  const queue = new Queue("photos", {
    connection: { ...connection, enableOfflineQueue: false }, // an error at once where the broker is away
    defaultJobOptions: {
      attempts: 5,
      backoff: { type: "exponential", delay: 1000 },
      removeOnComplete: { count: 1000 },
      removeOnFail: false,
    },
  });
  queue.on("error", () => process.exit(1));
  await queue.waitUntilReady();
  for (let number = 0; number < Number(count); number++) {
    const id = `${prefix}-${number}`;
    const began = performance.now();
    await queue.add("develop", {}, { jobId: id });
    process.stdout.write(`${id} ${performance.now() - began}\n`);
  }
  process.exit(0);
}

(role === "work" ? work : add)();
