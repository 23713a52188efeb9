// A host of its own, a browser of its own, and pages that are watched: whatever goes wrong in one and was not expected
// fails the test.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const repository = fileURLToPath(new URL("../..", import.meta.url));
const binary = resolve(repository, process.env.BATON_BIN ?? "target/debug/baton");
const chromiumPath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
/** How long anything may take before it counts as broken, in ms. Generous: the machine may be busy with other things. */
export const PATIENCE = 30_000;

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

/** What a page says while the host is gone, goes in the middle of an answer, or is back and still opens its store. */
export const GONE = [/\b503\b/, /ERR_CONNECTION_(REFUSED|RESET|CLOSED|ABORTED)/, /ERR_INCOMPLETE_CHUNKED_ENCODING/, /ERR_CONTENT_LENGTH_MISMATCH/, /ERR_EMPTY_RESPONSE/, /ERR_SOCKET_NOT_CONNECTED/];

/** The banner; what could not be had while the host was away may say the same elsewhere. @param {import("playwright-core").Page} page */
export const gone = (page) => page.locator(".banner", { hasText: "The host does not answer." });

/** A promise, and what keeps it. */
export function gate() {
  let open;
  const opened = new Promise((done) => (open = done));
  return { opened, open };
}

/** Asks until it is so. @template T @param {string} what @param {() => Promise<T> | T} ask @param {number} [patience] @returns {Promise<NonNullable<T>>} */
export async function until(what, ask, patience = PATIENCE) {
  const end = Date.now() + patience;
  for (;;) {
    const got = await ask();
    if (got) return got;
    if (Date.now() > end) assert.fail(`It did not come to this in ${patience / 1000} s: ${what}`);
    await pause(25);
  }
}

/** Waits for what somebody else tells, and not for ever. @template T @param {string} what @param {Promise<T>} told @param {number} [patience] @returns {Promise<T>} */
export async function soon(what, told, patience = PATIENCE) {
  let timer;
  const late = new Promise((_, fail) => (timer = setTimeout(() => fail(new Error(`It did not come to this in ${patience / 1000} s: ${what}`)), patience)));
  return Promise.race([told, late]).finally(() => clearTimeout(timer));
}

/** A key of a host with faults that may look and nothing else. */
export const READER = "e2e-reader";

export class Host {
  /**
   * A fresh host on a free port, in a folder that goes with it.
   * @param {{ faults?: boolean }} [options] with `faults`, runs tagged `fault:panic` crash when they go on by themselves
   */
  static async start({ faults = false } = {}) {
    assert.ok(existsSync(binary), `There is no ${binary}. Build it (cargo build -p baton) or name another with BATON_BIN.`);
    const host = new Host();
    host.faults = faults;
    if (faults) host.key = "e2e-full";
    host.folder = mkdtempSync(join(tmpdir(), "baton-e2e-"));
    await host.run();
    return host;
  }

  /** Starts the process: on a port that it chooses, and the next time on the same one, with the same data. */
  async run() {
    const said = [];
    const place = ["--listen", this.url ? new URL(this.url).host : "127.0.0.1:0", "--data", join(this.folder, "data")];
    const words = this.faults ? ["serve", "--conformance", ...place] : ["dev", ...place, "--workflows", join(this.folder, "workflows")];
    const env = this.faults ? { TEST_FAULTS_BY_TAG: "1", BATON_API_KEYS: `${this.key}:acme,${READER}:acme:runs:read` } : {};
    const child = spawn(binary, words, { cwd: this.folder, stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, NO_COLOR: "1", ...env } });
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => said.push(String(text)));
    this.child = child;
    this.ended = new Promise((done) => child.once("exit", done));
    await until("the host is ready", async () => {
      assert.equal(child.exitCode, null, `The host ended:\n${said.join("")}`);
      this.url ??= said.join("").match(/^listening on (\S+)$/m)?.[1];
      if (!this.url) return false;
      // It listens before its store is open.
      return fetch(`${this.url}/readiness`).then((answer) => answer.ok, () => false);
    });
    const note = join(this.folder, "data/dev.json");
    if (!this.key) await until("the host has said its key", () => existsSync(note));
    this.key ??= JSON.parse(readFileSync(note, "utf8")).key;
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

  /** The public API, as the console has it. @param {string} path @param {unknown} [body] posted when given */
  async api(path, body) {
    const answer = await fetch(this.url + path, {
      method: body === undefined ? "GET" : "POST",
      headers: { authorization: `Bearer ${this.key}`, ...(body === undefined ? {} : { "content-type": "application/json" }) },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await answer.text();
    assert.ok(answer.ok, `${path}: ${answer.status} ${text}`);
    return text === "" ? null : JSON.parse(text);
  }

  /** @param {string} workflowId @param {Record<string, unknown>} [more] @returns {Promise<string>} the run's id */
  async startRun(workflowId, more = {}) {
    return (await this.api("/v1/runs", { workflowId, ...more })).runId;
  }

  /** @param {string} runId @param {string | RegExp} status @param {number} [patience] */
  status(runId, status, patience) {
    const is = (one) => (typeof status === "string" ? one === status : status.test(one));
    return until(`${runId} is ${status}`, async () => {
      const run = await this.api(`/v1/runs/${runId}`);
      return is(run.status) && run;
    }, patience);
  }

  /** Says yes to a question of a run. @param {string} runId @param {string} nodeId */
  accept(runId, nodeId) {
    return this.api(`/v1/runs/${runId}/interrupts/${nodeId}`, { resumeValue: { action: "accept" } });
  }

  /** Every event of a run. @param {string} runId */
  async events(runId) {
    const all = [];
    for (;;) {
      const page = await this.api(`/v1/runs/${runId}/events/poll?timeout=1&limit=1000${all.length > 0 ? `&lastSequence=${all.length - 1}` : ""}`);
      all.push(...page.events);
      if (page.isComplete || page.events.length === 0) return all;
    }
  }
}

export async function launch() {
  assert.ok(existsSync(chromiumPath), `There is no ${chromiumPath}. Install Debian's chromium or name another with CHROMIUM.`);
  return chromium.launch({ executablePath: chromiumPath, args: FLAGS, headless: true });
}

/** What a page is not told by anybody but its watcher. */
export class Watched {
  /**
   * A page in a profile of its own.
   * @param {import("playwright-core").Browser} browser @param {Host} host
   * @param {{ signedIn?: boolean, key?: string, theme?: "light" | "dark", width?: number, height?: number }} [options]
   */
  static async open(browser, host, { signedIn = true, key = host.key, theme = "light", width = 1440, height = 900 } = {}) {
    const context = await browser.newContext({ viewport: { width, height }, colorScheme: theme, baseURL: host.url, reducedMotion: "reduce", locale: "en-GB", timezoneId: "UTC" });
    context.setDefaultTimeout(PATIENCE);
    const page = await context.newPage();
    const watched = new Watched(page, host);
    await page.addInitScript(() => addEventListener("securitypolicyviolation", (event) => console.error(`CSP: ${event.violatedDirective} refused ${event.blockedURI}`)));
    if (signedIn) await page.addInitScript((key) => location.pathname.startsWith("/console/link/") || sessionStorage.setItem("baton.key", key), key);
    return watched;
  }

  constructor(page, host) {
    this.page = page;
    this.host = host;
    /** @type {string[]} */
    this.problems = [];
    /** @type {RegExp[]} */
    this.expected = [];
    this.requests = new Set();
    const note = (text) => this.expected.some((one) => one.test(text)) || this.problems.push(text);
    page.on("console", (said) => ["error", "warning"].includes(said.type()) && note(`console: ${said.text()} (${said.location().url})`));
    page.on("pageerror", (error) => note(`uncaught: ${error.stack ?? error}`));
    page.on("request", (request) => {
      this.requests.add(request.url());
      const to = new URL(request.url());
      if (!["data:", "blob:"].includes(to.protocol) && to.origin !== host.url) note(`left the origin: ${request.url()}`);
      if (host.key && request.url().includes(host.key)) note(`the key is in an address: ${request.url()}`);
    });
    page.on("requestfailed", (request) => {
      const why = request.failure()?.errorText ?? "";
      // A screen that goes hangs up.
      if (why !== "net::ERR_ABORTED") note(`request failed: ${request.url()} ${why}`);
    });
    page.on("response", (answer) => answer.status() >= 400 && note(`refused: ${answer.status()} ${answer.url()}`));
  }

  /** What is meant to go wrong from here on. @param {...RegExp} patterns */
  expect(...patterns) {
    this.expected.push(...patterns);
  }

  /** Nothing is meant to go wrong any more. */
  expectNothing() {
    this.expected = [];
  }

  /** @param {string} path under /console */
  async go(path) {
    await this.page.goto(`/console${path}`);
    await this.settled();
  }

  /** The screen stands: nothing is being loaded. */
  async settled() {
    await this.page.waitForFunction(() => document.querySelector("main > *") !== null && ![...document.querySelectorAll(".skeleton, .loading")].some((one) => one.checkVisibility()));
  }

  /** What has arrived by now is drawn. */
  async drawn() {
    await this.page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  }

  /** Closes the page and says whether anything went wrong. */
  async close() {
    // What a test held back has nowhere to go any more, and that is no failure.
    await this.page.unrouteAll({ behavior: "ignoreErrors" });
    await this.page.context().close();
    assert.deepEqual(this.problems, [], "something went wrong in the page that was not expected");
  }
}

/** What a page needs for `judge`, as an init script. */
export const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** What axe finds serious. @param {import("playwright-core").Page} page @param {string} what */
export async function judge(page, what) {
  const found = await page.evaluate(async () => {
    const { violations } = await globalThis.axe.run(document, { resultTypes: ["violations"] });
    return violations.filter(({ impact }) => ["serious", "critical"].includes(impact)).map(({ id, nodes }) => `${id}: ${nodes.slice(0, 4).map((one) => `${one.html.slice(0, 160)} ${one.any.map((why) => why.message).join(" ")}`).join(" | ")}`);
  });
  return found.map((one) => `${what}: ${one}`);
}

/**
 * A host and a browser for the tests of one file.
 * @param {typeof import("node:test")} test @param {unknown[]} [workflows] registered before anything else
 * @param {Parameters<typeof Host.start>[0]} [options]
 */
export async function stage({ after }, workflows = [], options = {}) {
  const host = await Host.start(options);
  const browser = await launch();
  after(async () => {
    await browser.close();
    await host.stop();
  });
  for (const workflow of workflows) await host.api("/v1/workflows", workflow);
  return {
    host,
    /** Opens a watched page, gives it away, and judges it at the end. @param {Parameters<typeof Watched.open>[2]} options @param {(watched: Watched, page: import("playwright-core").Page) => Promise<void>} work */
    async page(options, work) {
      const watched = await Watched.open(browser, host, options);
      let done = false;
      try {
        await work(watched, watched.page);
        done = true;
      } finally {
        if (done) await watched.close();
        else {
          // The first failure is the one to tell; what the page complained about may be why.
          if (watched.problems.length > 0) console.error("the page said:\n  " + watched.problems.join("\n  "));
          if (process.env.E2E_SHOT) await watched.page.screenshot({ path: `${process.env.E2E_SHOT}.png` }).catch(() => {});
          await watched.page.unrouteAll({ behavior: "ignoreErrors" });
          await watched.page.context().close();
        }
      }
    },
  };
}
