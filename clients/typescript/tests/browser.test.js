// The client in a real browser, on a page that has one origin with the host, as behind a reverse proxy.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import * as flows from "./flows.js";
import { ends, Host } from "./host.js";

const chromium = process.env.CHROMIUM ?? "/usr/bin/chromium";
const dist = fileURLToPath(new URL("../dist/", import.meta.url));
const FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

const program = async (key) => {
  const { Client, verifyWebhook } = await import("/client/index.js");
  const client = new Client({ url: location.origin, token: key });
  const { runId } = await client.runs.start("gate");
  const waiting = await client.runs.wait(runId);
  await client.interrupts.approve(waiting);
  const sequences = [];
  for await (const event of client.runs.events(runId, { mode: "debug" })) sequences.push(event.sequence);
  const again = await client.interrupts.approve(waiting).catch((error) => error.name);
  const control = new AbortController();
  control.abort(new Error("enough"));
  const stopped = await client.runs.get(runId, { signal: control.signal }).catch((error) => error.message);
  const forged = await verifyWebhook("s", { "x-openwop-timestamp": "1", "x-openwop-signature": `sha256=${"0".repeat(64)}` }, "{}");
  return { sequences, again, stopped, forged, outputs: (await client.runs.get(runId)).outputs };
};

test("start, wait, answer and follow in a browser", { skip: !existsSync(chromium) && "there is no Chromium" }, async () => {
  const host = await Host.start();
  const profile = mkdtempSync(join(tmpdir(), "baton-browser-"));
  let tell;
  const told = new Promise((done) => (tell = done));
  const server = createServer((asked, answer) => {
    const { pathname } = new URL(asked.url, "http://localhost");
    if (pathname === "/page") {
      const script = `(${program})(${JSON.stringify(host.key)}).then((got) => got, (error) => ({ error: String(error.stack) })).then((got) => fetch("/told", { method: "POST", body: JSON.stringify(got) }))`;
      answer.setHeader("content-type", "text/html").end(`<script type="module">${script}</script>`);
    } else if (pathname.startsWith("/client/") && !pathname.includes("..")) {
      answer.setHeader("content-type", "text/javascript").end(readFileSync(join(dist, pathname.slice("/client/".length))));
    } else if (pathname === "/told") {
      asked.toArray().then((parts) => tell(JSON.parse(Buffer.concat(parts).toString())));
      answer.end();
    } else {
      const on = request(host.url + asked.url, { method: asked.method, headers: asked.headers }, (from) => {
        answer.writeHead(from.statusCode, from.headers);
        from.pipe(answer);
      });
      on.on("error", () => answer.destroy());
      answer.on("close", () => on.destroy());
      asked.pipe(on);
    }
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const browser = ends(spawn(chromium, [...FLAGS, `--user-data-dir=${profile}`, "--remote-debugging-port=0", `http://127.0.0.1:${server.address().port}/page`], { stdio: "ignore" }));
  const ended = new Promise((done) => browser.once("exit", done));
  try {
    await host.client().workflows.register(flows.gate());
    const got = await Promise.race([told, ended.then((code) => assert.fail(`the browser ended with ${code}`))]);
    const { sequences, ...others } = got;
    assert.deepEqual(others, { again: "AlreadyAnswered", stopped: "enough", forged: false, outputs: { sent: true, text: "a draft" } }, JSON.stringify(got));
    assert.deepEqual(sequences, sequences.map((_, at) => at));
    assert.ok(sequences.length > 5);
  } finally {
    browser.kill("SIGKILL");
    await ended;
    server.closeAllConnections();
    server.close();
    await host.stop();
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  }
});
