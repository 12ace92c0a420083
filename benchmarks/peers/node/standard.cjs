// The job of the peers that run sharp: one photo's variants of the preset `standard`, and lines in the log about it.
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const { cascade } = require("../../engine/sharp/worker.cjs");

const job = JSON.parse(fs.readFileSync(process.env.PEERS_JOB, "utf8"));

function record(event, id) {
  fs.appendFileSync(job.log, `${event} ${id} ${Date.now() / 1000}\n`);
}

// As ../celery_app.py does it. Without variants it is a job that only says that it ran.
exports.develop = async function develop(id, original) {
  record("start", id);
  if (job.variants.length > 0) {
    const made = await cascade(original ?? fs.readFileSync(job.photo), job.variants, job.encoding);
    const folder = path.join(job.folder, id);
    fs.mkdirSync(folder, { recursive: true });
    for (const [name, body] of Object.entries(made)) fs.writeFileSync(path.join(folder, name), body);
  }
  record("end", id);
  if (fs.existsSync(job.strike)) {
    fs.unlinkSync(job.strike);
    process.kill(process.pid, "SIGKILL"); // the work is done, and nobody knows it yet
  }
};
