// A run that keeps crashing the host's steps is left alone, with its tree. It is found, looked at, released and cancelled.
import assert from "node:assert/strict";
import * as node from "node:test";
import { axe, judge, READER, stage, until } from "./support.js";
import { family, moment, waiting } from "./workflows.js";

const { test } = node;
const at = await stage(node, [moment, waiting, family], { faults: true });

const CRASHED = "A step of this run crashed inside the host";
/** A run that is in quarantine by now. @param {string} [workflow] @returns {Promise<string>} */
async function held(workflow = "e2e-moment") {
  const runId = await at.host.startRun(workflow, { tags: ["fault:panic"] });
  await quarantineOf(runId);
  return runId;
}
/** @param {string} runId @param {string} [before] since when it was, until it was released */
const quarantineOf = (runId, before = "") => until(`${runId} is in quarantine`, async () => {
  const { quarantine } = await at.host.api(`/v1/runs/${runId}`);
  return quarantine && quarantine.since !== before && quarantine;
});
/** Also those that were just released, and would be back. */
async function cancelAll() {
  const { runs } = await at.host.api("/v1/runs?limit=100&topLevel=true");
  for (const { runId } of runs) await at.host.api(`/v1/runs/${runId}/cancel`, {});
}
const card = (page, runId) => page.locator(".held-tree", { has: page.locator(`a[title="${runId}"]`) });
const entry = (page) => page.locator(".held-entry a");
const banner = (page) => page.locator(".run-banner", { hasText: "quarantine" });
const copied = (page) => page.evaluate(() => navigator.clipboard.readText());
/** What a menu copies. */
async function copyAs(page, button, item) {
  await button.click();
  await page.getByRole("menuitem", { name: item }).click();
  return until("it is copied", () => copied(page));
}
node.afterEach(cancelAll);

test("a tree in quarantine is noticed, listed, opened, released, comes back, and is cancelled", () =>
  at.page({}, async (watched, page) => {
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await watched.go("/runs");
    assert.equal(await entry(page).count(), 0, "nothing is said while there is nothing");
    const runId = await held();
    const { since } = await quarantineOf(runId);

    // The list of runs says so by itself, and on the row.
    await entry(page).getByText("1").waitFor();
    await until("the row says so", async () => {
      if (await page.locator(".fresh button").count()) await page.locator(".fresh button").first().click({ timeout: 1000 }).catch(() => {});
      return page.locator(".run-row", { has: page.locator(`a[href$="${runId}"]`) }).getByText("in quarantine").count();
    });
    await entry(page).click();
    await page.waitForURL((url) => url.pathname === "/console/quarantine");
    await card(page, runId).getByRole("heading", { name: CRASHED }).waitFor();
    // It is an address: a reload shows the same.
    await page.reload();
    await watched.settled();
    const text = await card(page, runId).innerText();
    for (const part of ["step_panicked", "a run tagged fault:panic went on", "the same", "2 events"]) assert.ok(text.includes(part), `${part} in ${text}`);
    assert.equal(await copyAs(page, page.locator(".page-head").getByRole("button", { name: "Copy as" }), /Copy as baton/), "baton run list --quarantined");
    await page.evaluate(() => navigator.clipboard.writeText(""));
    assert.equal(await copyAs(page, card(page, runId).getByRole("button", { name: "Copy as" }), /Copy as baton/), `baton run release ${runId}`);

    // By keyboard to the run.
    await page.locator("main").focus();
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.waitForURL(new RegExp(`/runs/${runId}`));
    await banner(page).getByText(`In quarantine: ${CRASHED}.`).waitFor();
    assert.match(await banner(page).innerText(), /a run tagged fault:panic went on/);
    const url = page.url();

    // Released, it does the same again, and the page says so without being asked.
    await banner(page).getByRole("button", { name: "Release" }).click();
    await page.getByText("Released: it goes on from where it was.").waitFor();
    const again = await quarantineOf(runId, since);
    const exact = await page.evaluate(async (iso) => (await import(document.querySelector("script[type=module]").src.replace("main.js", "lib/format.js"))).absolute(iso), again.since);
    await banner(page).locator(`bt-time[title="${exact}"]`).waitFor();

    // From the list it is cancelled, after a question.
    await page.goBack();
    await watched.settled();
    await card(page, runId).getByRole("button", { name: "Cancel…" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Keep" }).click();
    assert.ok((await at.host.api(`/v1/runs/${runId}`)).quarantine, "whoever keeps it changes nothing");
    await card(page, runId).getByRole("button", { name: "Cancel…" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Cancel the tree" }).click();
    await page.getByText("Nothing is in quarantine.").waitFor();
    await at.host.status(runId, "cancelled");
    assert.equal(await entry(page).count(), 0);
    await page.goto(url);
    await watched.settled();
    await page.locator(".rh-status").getByText("cancelled").waitFor();
    assert.equal(await banner(page).count(), 0);
  }));

test("a page that is open hears of it, and is cancelled in place with its whole tree", () =>
  at.page({}, async (watched, page) => {
    const runId = await at.host.startRun("e2e-family", { tags: ["fault:panic"] });
    await watched.go(`/runs/${runId}`);
    await banner(page).getByText(CRASHED).waitFor();
    const below = (await at.host.api(`/v1/runs?rootRunId=${runId}`)).runs.find((run) => run.runId !== runId).runId;
    // The run below is held with it, and says which run it was.
    await watched.go(`/runs/${below}`);
    await banner(page).getByText("The tree of this run is in quarantine.").waitFor();
    await banner(page).locator(`a[title="${runId}"]`).click();
    await page.waitForURL(new RegExp(runId));
    // The button of the page, and its key, end all of it too.
    await banner(page).getByText(`In quarantine: ${CRASHED}.`).waitFor();
    await page.keyboard.press("x");
    await page.getByRole("heading", { name: /^Cancel the tree of/ }).waitFor();
    await page.keyboard.press("Escape");
    await page.locator(".rh-actions").getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Cancel the tree" }).click();
    await banner(page).waitFor({ state: "detached" });
    await page.locator(".rh-status").getByText("cancelled").waitFor();
    for (const id of [runId, below]) await at.host.status(id, "cancelled");
  }));

test("whoever comes second is told so, and nothing happens", () =>
  at.page({}, async (watched, page) => {
    const runId = await held();
    await watched.go(`/runs/${runId}`);
    await banner(page).waitFor();
    watched.expect(/409/);
    await page.route(/\/release$/, (route) => route.fulfill({ status: 409, contentType: "application/json", body: JSON.stringify({ error: "run_conflict", message: "This run is not in quarantine, so there is nothing to release." }) }));
    await banner(page).getByRole("button", { name: "Release" }).click();
    await page.locator(".toast.note", { hasText: "Already released" }).waitFor();
    assert.equal(await page.locator(".toast.error").count(), 0);
  }));

test("a key that may only look is told what it lacks, once", () =>
  at.page({ key: READER }, async (watched, page) => {
    const runId = await held();
    await watched.go("/quarantine");
    watched.expect(/403/);
    await card(page, runId).getByRole("button", { name: "Release" }).click();
    await page.locator(".held-lacks", { hasText: "runs:cancel" }).waitFor();
    for (const name of ["Release", "Cancel…"]) assert.ok(await card(page, runId).getByRole("button", { name }).isDisabled(), name);
    await card(page, runId).locator("a").first().click();
    await banner(page).locator(".held-lacks", { hasText: "runs:cancel" }).waitFor();
    assert.ok(await banner(page).getByRole("button", { name: "Release" }).isDisabled());
    assert.ok((await at.host.api(`/v1/runs/${runId}`)).quarantine);
  }));

test("a run whose log does not read back still says why, and can be cancelled", () =>
  at.page({}, async (watched, page) => {
    const runId = await held();
    watched.expect(/500/);
    const broken = { status: 500, contentType: "application/json", body: JSON.stringify({ error: "internal_error", message: "Stored data does not read back." }) };
    const isHeld = async () => (await at.host.api("/v1/host/baton/quarantine")).trees.length > 0;
    await page.route(new RegExp(`/v1/runs/${runId}$|/runs/${runId}/state`), (route) => route.fulfill(broken));
    await page.route(/\/v1\/host\/baton\/quarantine/, async (route) => {
      const answer = await route.fetch();
      const body = await answer.json();
      await route.fulfill({ response: answer, json: { trees: body.trees.map((tree) => ({ ...tree, cause: "does_not_fold" })) } });
    });
    await page.goto(`/console/runs/${runId}`);
    await banner(page).getByText("The log of this run cannot be read back").waitFor();
    await page.locator(".rh-workflow").getByText("e2e-moment").waitFor();
    await page.locator(".ev").first().waitFor();
    // Not even the events can be had.
    await page.route(new RegExp(`/v1/runs/${runId}/events`), (route) => route.fulfill({ ...broken, status: 422 }));
    await page.reload();
    await page.getByRole("heading", { name: "Stored data does not read back." }).first().waitFor();
    await banner(page).getByRole("button", { name: "Cancel…" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Cancel the tree" }).click();
    await banner(page).waitFor({ state: "detached" });
    await page.locator(".rh-status").getByText("cancelled").waitFor();
    assert.equal(await isHeld(), false);
  }));

test("a release that may end the host again is asked for first", () =>
  at.page({}, async (watched, page) => {
    await held();
    await page.route(/\/v1\/host\/baton\/quarantine/, async (route) => {
      const answer = await route.fetch();
      const body = await answer.json();
      await route.fulfill({ response: answer, json: { trees: body.trees.map((tree) => ({ ...tree, cause: "process_died" })) } });
    });
    await watched.go("/quarantine");
    let asked = 0;
    page.on("request", (request) => (asked += Number(request.url().endsWith("/release"))));
    await page.getByRole("button", { name: "Release" }).click();
    await page.getByRole("dialog").getByText("every run of this host waits").waitFor();
    assert.equal(asked, 0);
    await page.getByRole("dialog").getByRole("button", { name: "Release" }).click();
    await page.getByText("Released: it goes on from where it was.").waitFor();
    assert.equal(asked, 1);
  }));

for (const theme of /** @type {const} */ (["light", "dark"])) {
  test(`it can be read by everybody and fits at 360 px, ${theme}`, () => at.page({ theme, width: 360, height: 740 }, async (watched, page) => {
    await page.addInitScript(axe);
    const runId = await held("e2e-family");
    const found = [];
    for (const path of ["/runs", "/quarantine", `/runs/${runId}`]) {
      await watched.go(path);
      const shown = path === "/runs" ? entry(page) : path === "/quarantine" ? card(page, runId) : banner(page);
      await shown.waitFor();
      assert.ok(await shown.evaluate((one) => {
        const { left, right } = one.getBoundingClientRect();
        return left >= 0 && right <= innerWidth;
      }), `it is in sight on ${path}`);
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (over > 0) found.push(`${path}: ${over} px too wide`);
      found.push(...await judge(page, path));
    }
    assert.deepEqual(found, []);
  }));
}
