// A real host of its own for a test, in a folder that goes with it.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "../dist/index.js";

export const repository = fileURLToPath(new URL("../../..", import.meta.url));
const binary = resolve(repository, process.env.BATON_BIN ?? "target/debug/baton");
/** How long anything may take before it counts as broken, in ms. Generous: the machine may be busy with other things. */
const DEADLINE_MS = 30_000;

const children = new Set();
process.once("exit", () => {
  for (const child of children) child.kill("SIGKILL");
});
// The runner of the tests stops a file that takes too long by this.
process.once("SIGTERM", () => process.exit(1));

/** Sees to it that a process ends with this one. */
export function ends(child) {
  children.add(child);
  child.once("exit", () => children.delete(child));
  return child;
}

/** Asks until it is so. */
export async function until(what, ask) {
  const end = Date.now() + DEADLINE_MS;
  for (;;) {
    const got = await ask();
    if (got) return got;
    assert.ok(Date.now() < end, `it did not come to this: ${what}`);
    await new Promise((done) => setTimeout(done, 20));
  }
}

export class Host {
  static async start() {
    assert.ok(existsSync(binary), `There is no ${binary}: cargo build -p baton, or name one with BATON_BIN.`);
    const host = new Host();
    host.folder = mkdtempSync(join(tmpdir(), "baton-typescript-"));
    await host.run();
    return host;
  }

  /** Starts the process: on a port that it chooses, and the next time on the same one, with the same data. */
  async run() {
    const said = [];
    const listen = this.url ? new URL(this.url).host : "127.0.0.1:0";
    const words = ["dev", "--listen", listen, "--data", join(this.folder, "data"), "--workflows", join(this.folder, "workflows")];
    const child = ends(spawn(binary, words, { cwd: this.folder, stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, NO_COLOR: "1" } }));
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => said.push(String(text)));
    this.child = child;
    this.ended = new Promise((done) => child.once("exit", done));
    await until("the host is ready", () => {
      assert.equal(child.exitCode, null, `the host ended:\n${said.join("")}`);
      this.url ??= said.join("").match(/^listening on (\S+)$/m)?.[1];
      return this.url && fetch(`${this.url}/readiness`).then((answer) => answer.ok, () => false);
    });
    const note = join(this.folder, "data/dev.json");
    await until("the host has said its key", () => existsSync(note));
    this.key = JSON.parse(readFileSync(note, "utf8")).key;
  }

  client(options = {}) {
    return new Client({ url: this.url, token: this.key, ...options });
  }

  /** As a crash would: no chance to say goodbye. */
  async kill() {
    this.child.kill("SIGKILL");
    await this.ended;
  }

  async stop() {
    if (this.child.exitCode === null && this.child.signalCode === null) await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
