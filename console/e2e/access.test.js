// What holds for every screen: nothing serious for axe in light and dark, no sideways scrolling at 360 px, nothing asked
// of anybody but the host, everything by keyboard.
import assert from "node:assert/strict";
import * as node from "node:test";
import { axe, judge, stage, until } from "./support.js";
import { ticking, tree, waiting } from "./workflows.js";

const { test } = node;
const at = await stage(node, [ticking(10, 1), waiting, tree]);

/** One of everything, so that no screen is judged by its empty state only. */
const things = {};
{
  const { host } = at;
  things.team = await host.startRun("demo-team");
  things.notebook = await host.startRun("demo-notebook");
  things.agents = await host.startRun("demo-agents");
  things.pipeline = await host.startRun("demo-pipeline");
  things.tree = await host.startRun("e2e-tree");
  await host.status(things.notebook, "completed");
  for (const id of [things.team, things.agents, things.pipeline]) await host.status(id, "waiting-approval");
  things.token = (await host.api(`/v1/runs/${things.pipeline}`)).interrupt.callbackUrl.split("/").at(-1);
  things.fork = (await host.api(`/v1/runs/${things.notebook}:fork`, { fromSeq: 20, mode: "branch" })).runId;
  await host.status(things.fork, /completed|failed/);
  things.scope = (await host.api("/v1/host/baton/memory")).scopes?.[0]?.scope;
  things.agent = (await host.api("/v1/agents")).agents[0].agentId;
}

/** @type {[string, string][]} */
const SCREENS = [
  ["runs", "/runs?q=*"],
  ["a run that waits", `/runs/${things.team}`],
  ["a run in the past", `/runs/${things.notebook}?seq=30&tab=memory`],
  ["a run with agents", `/runs/${things.agents}?tab=overview`],
  ["a run's state", `/runs/${things.notebook}?seq=30&tab=state&view=compact`],
  ["a tree", `/runs/${things.tree}`],
  ["nothing in quarantine", "/quarantine"],
  ["compare", `/compare?a=${things.notebook}&b=${things.fork}`],
  ["choosing what to compare", `/compare?a=${things.notebook}`],
  ["inbox", "/inbox"],
  ["agents", "/agents"],
  ["an agent", `/agents/${encodeURIComponent(things.agent)}`],
  ["memory", "/memory"],
  ["a memory", `/memory/${encodeURIComponent(things.scope ?? things.notebook)}`],
  ["workspace", "/workspace"],
  ["workflows", "/workflows"],
  ["a workflow", "/workflows/demo-pipeline"],
  ["system", "/system"],
];

/** Two keys, one right after the other however slow the machine is: too late, the second would mean something else. @param {import("playwright-core").Page} page @param {string} keys */
const goTo = (page, keys) => page.evaluate((all) => [...all].forEach((key) => (document.activeElement ?? document.body).dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }))), keys);

for (const theme of /** @type {const} */ (["light", "dark"])) {
  test(`axe finds nothing serious on any screen, ${theme}`, () => at.page({ theme }, async (watched, page) => {
    await page.addInitScript(axe);
    const found = [];
    for (const [name, path] of SCREENS) {
      await watched.go(path);
      found.push(...await judge(page, name));
    }
    await watched.go(`/runs/${things.notebook}?seq=20`);
    for (const [name, key] of [["the fork dialog", "f"], ["help", "?"], ["the palette", "."]]) {
      await page.keyboard.press(key);
      await page.locator("dialog[open]").waitFor();
      found.push(...await judge(page, name));
      await page.keyboard.press("Escape");
      await page.locator("dialog[open]").waitFor({ state: "detached" });
    }
    assert.deepEqual(found, []);
  }));
}

test("sign-in and a signed link are accessible without a key", () => at.page({ signedIn: false }, async (watched, page) => {
  await page.addInitScript(axe);
  const found = [];
  await watched.go("/runs");
  found.push(...await judge(page, "sign in"));
  await watched.go(`/link/${things.token}`);
  await page.getByRole("heading", { name: "Publish these notes?" }).waitFor();
  found.push(...await judge(page, "signed link"));
  assert.deepEqual(found, []);
}));

test("no screen scrolls sideways at 360 px", () => at.page({ width: 360, height: 740 }, async (watched, page) => {
  const wide = [];
  for (const [name, path] of SCREENS) {
    await watched.go(path);
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    if (over > 0) wide.push(`${name}: ${over} px too wide`);
  }
  assert.deepEqual(wide, []);
}));

test("the keyboard map: go to, move, open, copy, palette, help, filter", () => at.page({}, async (watched, page) => {
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await watched.go("/runs?q=*");
  for (const [keys, path] of [["gi", "/inbox"], ["ga", "/agents"], ["gm", "/memory"], ["gw", "/workflows"], ["gs", "/system"], ["gr", "/runs"]]) {
    await goTo(page, keys);
    await page.waitForURL((url) => url.pathname === `/console${path}`);
    await watched.settled();
  }
  await watched.go("/runs?q=*");
  await page.locator("bt-virtual-list .run-row").first().waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("workflow:demo-notebook");
  await page.keyboard.press("Enter");
  await page.waitForURL(/demo-notebook/);
  await until("the list is filtered", async () => {
    const shown = await page.locator("bt-virtual-list .c-workflow a").allInnerTexts();
    return shown.length > 0 && shown.every((one) => one === "demo-notebook");
  });
  await until("the filter is left", async () => {
    await page.keyboard.press("Escape");
    return page.evaluate(() => document.activeElement === document.body);
  });
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/runs\/run_/);
  await page.locator("bt-virtual-list.events .ev").first().waitFor();
  await page.keyboard.press("ArrowLeft");
  await page.waitForURL(/seq=\d+/);
  const seq = Number(new URL(page.url()).searchParams.get("seq"));
  await page.keyboard.press("Shift+ArrowLeft");
  await page.waitForURL((url) => Number(url.searchParams.get("seq")) < seq);
  await until("the address has settled", async () => Number(await page.getByLabel("Sequence", { exact: true }).inputValue()) === Number(new URL(page.url()).searchParams.get("seq")));
  const there = page.url();
  await page.keyboard.press("k");
  await page.waitForURL((url) => url.href !== there);
  await page.keyboard.press("e");
  await page.waitForURL(/tab=raw/);
  await page.keyboard.press("y");
  await until("the link is copied", async () => (await page.evaluate(() => navigator.clipboard.readText())) === page.url());
  await page.keyboard.press("l");
  await page.waitForURL((url) => !url.searchParams.has("seq"));
  // The help has all of the map.
  await page.keyboard.press("?");
  const help = await page.locator("dialog[open]").innerText();
  for (const label of ["Runs", "Inbox", "Agents", "Memory", "System", "Next row", "Open the row", "Previous event", "Next iteration", "Fork here", "Compare with…", "Cancel the run", "Previous sibling run", "Copy link to this view", "Raw JSON of the event", "Filter events", "Command palette"]) assert.ok(help.includes(label), `${label} is in the help`);
  await page.keyboard.press("Escape");
  await page.locator("dialog[open]").waitFor({ state: "detached" });
  await page.keyboard.press(".");
  await page.locator("dialog[open]").waitFor();
  await page.keyboard.type("inbox");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/inbox/);
  // Approving by key asks first, whichever question is shown.
  const open = async () => (await at.host.api("/v1/interrupts")).interrupts.map((one) => one.runId).sort();
  const before = await open();
  assert.ok(before.includes(things.pipeline));
  await page.locator(".inbox-card article").waitFor();
  await until("the answer can be given", async () => {
    await page.keyboard.press("d");
    return page.locator("dialog[open]").count();
  });
  await page.keyboard.press("Escape");
  await page.locator("dialog[open]").waitFor({ state: "detached" });
  assert.deepEqual(await open(), before);
}));

test("a row is opened and chosen by key wherever one comes from, and no key is taken from a control", () => at.page({}, async (watched, page) => {
  await watched.go("/inbox");
  await goTo(page, "gr");
  await page.waitForURL((url) => url.pathname === "/console/runs");
  await page.locator("bt-virtual-list .c-id a").first().waitFor();
  assert.equal(await page.evaluate(() => document.activeElement?.id), "main", "nothing in particular has the focus");
  const active = page.locator(".run-row.active");
  await page.keyboard.press("j");
  await active.waitFor();
  await page.keyboard.press("Space");
  await page.locator(".run-row.active[aria-selected=true]").waitFor();
  await page.keyboard.press("Space");
  await page.locator(".run-row.active[aria-selected=false]").waitFor();
  // A control that has the focus keeps its keys, although a row is active.
  await page.locator(".runs-bar").getByRole("button", { name: "Copy as" }).focus();
  await page.keyboard.press("Space");
  await page.getByRole("menuitem", { name: /Copy as baton/ }).waitFor();
  assert.equal(await page.locator(".run-row[aria-selected=true]").count(), 0);
  await page.keyboard.press("Escape");
  await page.locator(".menu").waitFor({ state: "detached" });
  // As it is after any way within the console.
  await page.locator("main").focus();
  const runId = await active.locator(".c-id a").getAttribute("title");
  await page.keyboard.press("Enter");
  await page.waitForURL(new RegExp(`/runs/${runId}`));
}));

test("rows are read in the order in which they are seen, wherever one has scrolled", () => at.page({}, async (watched, page) => {
  await watched.go(`/runs/${things.notebook}?seq=0`);
  const list = page.locator("bt-virtual-list.events");
  const order = () => list.locator(".ev").evaluateAll((all) => all.map((one) => Number(one.dataset.seq)));
  for (const share of [1, 0.4, 0.7, 0]) {
    await list.evaluate((one, to) => (one.scrollTop = to * one.scrollHeight), share);
    await watched.drawn();
    const now = await order();
    assert.ok(now.length > 5);
    assert.deepEqual(now, now.toSorted((a, b) => a - b), `at ${share}`);
  }
}));
