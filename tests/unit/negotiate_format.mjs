// Answers events, an array as JSON on standard input, with the function of the file that is named.
import { readFileSync } from "node:fs";
import { runInNewContext } from "node:vm";

const handler = runInNewContext(`${readFileSync(process.argv[2], "utf8")};handler`);
process.stdout.write(JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map((event) => handler(event))));
