// Every TypeScript example of docs/guide/client-libraries.md, as it stands there: its types are checked, and it is run.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Client } from "../dist/index.js";
import { Host, repository } from "./host.js";

const run = promisify(execFile);
const folder = fileURLToPath(new URL("../.guide", import.meta.url));
const page = readFileSync(join(repository, "docs/guide/client-libraries.md"), "utf8");
const examples = [...page.matchAll(/^```ts\n(.*?)^```$/gms)].map((found) => found[1]);
let host;
before(async () => {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  examples.forEach((example, number) => writeFileSync(join(folder, `example-${number}.ts`), example));
  host = await Host.start();
});
after(async () => {
  await host.stop();
  rmSync(folder, { recursive: true, force: true });
});

test("the examples have the right types, and run", async () => {
  assert.ok(examples.length >= 5);
  const tsc = fileURLToPath(new URL("../node_modules/typescript/bin/tsc", import.meta.url));
  await run(process.execPath, [tsc, "-p", fileURLToPath(new URL("tsconfig.json", import.meta.url))]).catch((error) => assert.fail(error.stdout));
  for (const [number, example] of examples.entries()) {
    const env = { ...process.env, BATON_URL: host.url, BATON_API_KEY: host.key };
    const { stdout } = await run(process.execPath, [join(folder, `out/.guide/example-${number}.js`)], { env, timeout: 30_000 });
    // What an example says that it prints.
    for (const [, said] of example.matchAll(/console\.log\(.*\); \/\/ (.*)$/gm)) assert.ok(stdout.split("\n").includes(said), `${said} in ${stdout}`);
  }
});

test("each method is on the page, with its name in Python", () => {
  const table = page.split("## Methods")[1].split("##")[0];
  const groups = [...table.matchAll(/^\| `(\w+)` \| (.*) \|$/gm)];
  assert.equal(groups.length, 8);
  const client = new Client({ url: "http://127.0.0.1:9", token: "k" });
  for (const [, group, methods] of groups) {
    const named = [...methods.matchAll(/`(\w+)`/g)].map((found) => found[1].replace(/_$/, "").replace(/_(\w)/g, (_, letter) => letter.toUpperCase()));
    const there = Object.getOwnPropertyNames(Object.getPrototypeOf(client[group])).filter((name) => name !== "constructor");
    assert.deepEqual(there, named, group);
  }
});
