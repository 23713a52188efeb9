// Measures what the console costs and prints it: first paint, what is transferred, and the work per frame while a run of
// 100,000 events is scrolled and scrubbed. Figures of a debug build, which reads and packs its files anew for each request.
//
//   node console/e2e/measure.js [events]
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { Host, launch, until, Watched } from "./support.js";
import { long } from "./workflows.js";

const wanted = Number(process.argv[2] ?? 100_000);
const kB = (bytes) => `${(bytes / 1000).toFixed(1)} kB`;
const ms = (value) => `${value.toFixed(1)} ms`;
const median = (all) => [...all].sort((a, b) => a - b)[Math.floor(all.length / 2)];
const print = (name, value) => console.log(`${name.padEnd(44)} ${value}`);

/** Everything that is embedded, packed as a release packs it. @param {Host} host */
async function embedded(host) {
  const root = fileURLToPath(new URL("..", import.meta.url));
  const walk = (folder) => readdirSync(join(root, folder), { withFileTypes: true }).flatMap((one) => {
    const path = join(folder, one.name);
    if (one.isDirectory()) return ["e2e", "tests", "node_modules"].includes(one.name) ? [] : walk(path);
    return /\.(html|svg|js|css)$/.test(one.name) ? [path] : [];
  });
  const files = walk("");
  const sizes = files.map(async (path) => gzipSync(await (await fetch(`${host.url}/console/${path}`)).text(), { level: 9 }).length);
  return { files: files.length, bytes: (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0) };
}

/** A cold start: what is painted when, and what came over the line for it. */
async function coldStart(browser, host, path) {
  const watched = await Watched.open(browser, host);
  const { page } = watched;
  const line = await page.context().newCDPSession(page);
  await line.send("Network.enable");
  const files = new Map();
  let bytes = 0;
  line.on("Network.responseReceived", ({ requestId, response }) => files.set(requestId, new URL(response.url).pathname.startsWith("/console")));
  line.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => files.get(requestId) && (bytes += encodedDataLength));
  await watched.go(path);
  const paint = await until("something is painted", () => page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime));
  const blank = await page.evaluate(() => performance.getEntriesByName("first-paint")[0]?.startTime ?? 0);
  const requests = [...files.values()].filter(Boolean).length;
  await watched.close();
  return { blank, paint, bytes, requests };
}

/** What the browser did in between, per frame that it drew. */
async function perFrame(page, work) {
  const line = await page.context().newCDPSession(page);
  await line.send("Performance.enable");
  const read = async () => Object.fromEntries((await line.send("Performance.getMetrics")).metrics.map(({ name, value }) => [name, value]));
  await page.evaluate(() => {
    const seen = { frames: [], scripts: [], on: true };
    globalThis.measured = seen;
    let last = performance.now();
    const tick = (now) => {
      seen.frames.push(now - last);
      last = now;
      if (seen.on) requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
    seen.observer = new PerformanceObserver((list) => list.getEntries().forEach((frame) => seen.scripts.push({ ms: frame.scripts.reduce((sum, one) => sum + one.duration, 0), who: frame.scripts.map((one) => `${one.invoker.split("/").at(-1)} ${one.sourceFunctionName} ${one.sourceURL.split("/").at(-1)} ${Math.round(one.duration)} ms, of it ${Math.round(one.forcedStyleAndLayoutDuration)} ms layout`) })));
    seen.observer.observe({ type: "long-animation-frame" });
  });
  const before = await read();
  await work();
  const after = await read();
  const { frames, scripts } = await page.evaluate(() => {
    const { measured } = globalThis;
    measured.on = false;
    measured.observer.disconnect();
    return { frames: measured.frames.slice(1), scripts: measured.scripts };
  });
  const each = (name) => ((after[name] - before[name]) * 1000) / frames.length;
  frames.sort((a, b) => a - b);
  return { frames: frames.length, script: each("ScriptDuration"), layout: each("LayoutDuration") + each("RecalcStyleDuration"), middle: median(frames), p95: frames[Math.floor(frames.length * 0.95)], longest: frames.at(-1), over50: scripts.length, worst: scripts.sort((a, b) => b.ms - a.ms)[0] ?? { ms: 0, who: [] } };
}

function report(name, of) {
  print(`${name}: frames drawn`, String(of.frames));
  print(`${name}: script per frame, mean`, ms(of.script));
  print(`${name}: style and layout per frame, mean`, ms(of.layout));
  print(`${name}: time between frames, median / p95 / max`, `${ms(of.middle)} / ${ms(of.p95)} / ${ms(of.longest)}`);
  print(`${name}: frames over 50 ms, worst script in one`, `${of.over50}, ${ms(of.worst.ms)} (bound: 50 ms)`);
  for (const who of of.worst.who) print("", who);
}

const host = await Host.start();
const browser = await launch();
try {
  const all = await embedded(host);
  print("all files, gzip", `${kB(all.bytes)} in ${all.files} files (bound: 250 kB)`);
  const runs = [];
  for (let i = 0; i < 5; i += 1) runs.push(await coldStart(browser, host, "/runs"));
  print("first paint of Runs, median of 5", `${ms(median(runs.map((one) => one.blank)))} (bound: 200 ms)`);
  print("first contentful paint of Runs, median of 5", ms(median(runs.map((one) => one.paint))));
  print("transferred for Runs, cold, with headers", `${kB(runs[0].bytes)} in ${runs[0].requests} requests`);

  await host.api("/v1/workflows", long(Math.ceil(wanted / 6)));
  const begun = Date.now();
  const runId = await host.startRun("e2e-long", { configurable: { recursionLimit: 100_000 } });
  await host.status(runId, "completed", 600_000);
  const { runs: [row] } = await host.api(`/v1/runs?idPrefix=${runId}`);
  print("events of the long run, made in", `${row.events}, ${((Date.now() - begun) / 1000).toFixed(1)} s`);

  const run = await coldStart(browser, host, `/runs/${runId}`);
  print("first contentful paint of the long run", ms(run.paint));
  print("transferred for Run, cold, with headers", `${kB(run.bytes)} in ${run.requests} requests`);

  const watched = await Watched.open(browser, host);
  const { page } = watched;
  const opened = Date.now();
  await page.goto(`/console/runs/${runId}`);
  await page.locator("bt-virtual-list.events .ev").first().waitFor();
  print("the long run: first events shown after", `${((Date.now() - opened) / 1000).toFixed(1)} s`);
  const coming = await perFrame(page, () => page.locator(".live-button", { hasText: "Latest" }).waitFor({ timeout: 300_000 }));
  print("the long run: all events loaded after", `${((Date.now() - opened) / 1000).toFixed(1)} s`);
  report("loading", coming);
  report("scrolling", await perFrame(page, () => page.locator("bt-virtual-list.events").evaluate(async (list) => {
    const frame = () => new Promise((done) => requestAnimationFrame(done));
    list.scrollTop = 0;
    for (let i = 0; i < 120; i += 1) {
      // By a screen, and now and then far away: nothing that is drawn can be kept.
      list.scrollTop = i % 10 === 9 ? Math.random() * list.scrollHeight : list.scrollTop + list.clientHeight * 0.8;
      await frame();
    }
  })));
  const box = await page.locator(".tl-area").boundingBox();
  report("scrubbing", await perFrame(page, async () => {
    await page.mouse.move(box.x + 4, box.y + 6);
    await page.mouse.down();
    for (let i = 0; i < 120; i += 1) await page.mouse.move(box.x + 4 + ((box.width - 12) * ((i * 7) % 120)) / 120, box.y + 6);
    await page.mouse.up();
  }));
  await page.locator(".inspector [role=tab]", { hasText: "State" }).click();
  const heap = await page.evaluate(() => performance.memory?.usedJSHeapSize ?? 0);
  print("script memory of the page with all events", `${(heap / 1e6).toFixed(0)} MB`);
  await watched.close();
} finally {
  await browser.close();
  await host.stop();
}
