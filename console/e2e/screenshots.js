// Makes the pictures of the README from the demos: light, 1440 × 900, as small as a palette of colours makes them.
//
//   node console/e2e/screenshots.js [folder]
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { withPalette } from "./palette-png.js";
import { Host, launch, Watched } from "./support.js";

const folder = process.argv[2] ?? fileURLToPath(new URL("../../docs/images", import.meta.url));
const MOST = 150_000;
mkdirSync(folder, { recursive: true });

const host = await Host.start();
const browser = await launch();
try {
  // A team that waits for a human at its second turn, one that has a question of its reviewer, and a pipeline.
  const agents = await host.startRun("demo-agents", { inputs: { goal: "What moves the tides?" } });
  await host.status(agents, "waiting-approval");
  const team = await host.startRun("demo-team", { inputs: { topic: "glaciers" } });
  const pipeline = await host.startRun("demo-pipeline", { inputs: { topic: "tides" } });
  const notebook = await host.startRun("demo-notebook", { inputs: { topic: "tides" } });
  await host.status(team, "waiting-approval");
  await host.status(pipeline, "waiting-approval");
  await host.status(notebook, "completed");
  const prepare = (await host.events(pipeline)).find((one) => one.type === "node.started" && one.nodeId === "prepare").sequence;
  const fork = (await host.api(`/v1/runs/${pipeline}:fork`, { fromSeq: prepare, mode: "branch", runOptionsOverlay: { variables: { topic: "glaciers" } } })).runId;
  await host.status(fork, /waiting-approval|completed/);

  const watched = await Watched.open(browser, host);
  const { page } = watched;
  const shoot = async (name, path, ready) => {
    await watched.go(path);
    await ready?.();
    await page.evaluate(() => Promise.all([document.fonts.ready, new Promise((done) => setTimeout(done, 400))]));
    const file = join(folder, `console-${name}.png`);
    const picture = withPalette(await page.screenshot());
    writeFileSync(file, picture);
    const size = picture.length;
    console.log(`${file} ${(size / 1000).toFixed(0)} kB`);
    if (size > MOST) throw new Error(`${file} is larger than ${MOST / 1000} kB`);
  };
  await shoot("runs", "/runs");
  await shoot("run", `/runs/${agents}`);
  await shoot("held", `/runs/${team}`, () => page.locator("section.question").waitFor());
  await shoot("playhead", `/runs/${notebook}?seq=30&tab=memory`, () => page.getByText("as of #30").waitFor());
  await shoot("inbox", "/inbox", async () => {
    await page.locator(".inbox-list a", { hasText: "held decision" }).click();
    await page.locator(".inbox-card").getByRole("button", { name: "Edit…" }).click();
  });
  await shoot("compare", `/compare?a=${pipeline}&b=${fork}`, () => page.getByText(/They part at/).waitFor());
  await watched.close();
} finally {
  await browser.close();
  await host.stop();
}
