// A run that is watched while it goes on, and while answers fail: nothing is cut off silently, what is read stays where it
// is, and what is pressed is pressed. Failures are made, answers held back; nothing here waits for a time to pass.
import assert from "node:assert/strict";
import * as node from "node:test";
import { gate, GONE, gone, soon, stage, until } from "./support.js";
import { above, below, gated, long, ticking } from "./workflows.js";

const { test } = node;
const at = await stage(node, [gated(2, 40, 2), long(700), ticking(4, 1), below, above]);

// A test that failed while the host was away takes no other with it.
node.beforeEach(() => at.host.child.signalCode && at.host.run());

/** The sequence of the newest event that the page shows. */
const newest = async (page) => Number((await page.locator(".seq-of").innerText()).replace(/\D/g, ""));
/** The newest there is. @param {string} runId */
const last = async (runId) => (await at.host.events(runId)).length - 1;
const hiccup = (route) => route.fulfill({ status: 500, contentType: "application/json", body: JSON.stringify({ error: "internal_error", message: "A hiccup." }) });
const rest = (page) => page.locator(".playhead-bar", { hasText: "Could not load the rest." });
/** Within the page: neither loads it anew. */
const visit = (page, path) => page.evaluate((to) => {
  history.pushState(null, "", `/console${to}`);
  dispatchEvent(new PopStateEvent("popstate"));
}, path);

async function completed(workflowId, more) {
  const runId = await at.host.startRun(workflowId, more);
  await at.host.status(runId, "completed");
  return runId;
}

/** A run that waits behind its second gate, with a long list of events. */
async function halfway() {
  const runId = await at.host.startRun("e2e-gated");
  await at.host.status(runId, "waiting-approval");
  await at.host.accept(runId, "gate-1");
  await until("the second gate is closed", async () => (await at.host.events(runId)).some((one) => one.type === "interrupt.requested" && one.nodeId === "gate-2"));
  await at.host.status(runId, "waiting-approval");
  return runId;
}

/** Puts the mouse down on something, and keeps it there. */
async function press(page, what) {
  const box = await what.boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await page.mouse.down();
}

/**
 * Shows a run that has ended as one that goes on: the page gets what is before a sequence at once, and the rest, up to
 * another, when it is told.
 */
async function replayed(page, runId, from, to) {
  const events = await at.host.events(runId);
  const [held, free] = [gate(), gate()];
  await page.route(new RegExp(`/v1/runs/${runId}/events/poll`), (route) => route.fulfill({ json: { events: events.slice(0, from), isComplete: false } }));
  await page.route(new RegExp(`/v1/runs/${runId}/events\\?`), async (route) => {
    // Once: what follows is a line on which nothing is said.
    if (route.request().headers()["last-event-id"] !== String(from - 1)) return;
    held.open();
    await free.opened;
    await route.fulfill({ contentType: "text/event-stream", body: `event: batch\ndata: ${JSON.stringify(events.slice(from, to))}\n\n` });
  });
  return { held: soon("the page follows the run", held.opened), release: free.open };
}

test("a log that is cut off says so, and is whole when the host is back", () =>
  at.page({}, async (watched, page) => {
    const runId = await completed("e2e-long");
    const whole = await last(runId);
    assert.ok(whole > 3000, "it comes in several pages");
    let pages = 0;
    await page.route(/\/events\/poll/, async (route) => {
      pages += 1;
      if (pages === 2) await at.host.kill();
      await route.continue().catch(() => {});
    });
    watched.expect(...GONE);
    await page.goto(`/console/runs/${runId}`);
    await rest(page).waitFor();
    assert.ok((await newest(page)) < whole, "only a part is there");
    await at.host.run();
    await until("the rest is loaded", async () => (await newest(page)) === whole);
    await rest(page).waitFor({ state: "detached" });
    await gone(page).waitFor({ state: "detached" });
    await page.getByText("Latest").waitFor();
  }));

test("a log that the host could not read is loaded when somebody asks again", () =>
  at.page({}, async (watched, page) => {
    const runId = await completed("e2e-long");
    const whole = await last(runId);
    let [pages, broken] = [0, true];
    await page.route(/\/events\/poll/, (route) => ((pages += 1) > 1 && broken ? hiccup(route) : route.continue()));
    watched.expect(/500/);
    await page.goto(`/console/runs/${runId}`);
    await rest(page).waitFor();
    broken = false;
    await rest(page).getByRole("button", { name: "Try again" }).click();
    await until("the rest is loaded", async () => (await newest(page)) === whole);
    await rest(page).waitFor({ state: "detached" });
  }));

test("a run that is opened while the host is away is shown when it is back", () =>
  at.page({}, async (watched, page) => {
    const runId = await completed("e2e-ticking");
    const whole = await last(runId);
    await watched.go("/runs");
    await page.locator(`a[href$="${runId}"]`).first().waitFor();
    watched.expect(...GONE);
    await at.host.kill();
    await gone(page).waitFor();
    await visit(page, `/runs/${runId}`);
    // In the list of events, and wherever else something was asked for by then.
    const told = page.locator("main").getByText("The host does not answer.");
    await told.first().waitFor();
    await at.host.run();
    await until("the run is shown", async () => (await page.locator(".seq-of").count()) > 0 && (await newest(page)) === whole);
    await page.locator(".ev").first().waitFor();
    await until("nothing is said of the host any more", async () => (await told.count()) === 0);
  }));

test("a screen that could not be fetched is fetched when the host is back", () =>
  at.page({}, async (watched, page) => {
    let away = true;
    // Neither before it is wanted nor when it is.
    await page.route(/screens\/system\.js/, (route) => (away ? route.abort("connectionrefused") : route.continue()));
    watched.expect(...GONE);
    await watched.go("/workflows");
    await at.host.kill();
    await gone(page).waitFor();
    await visit(page, "/system");
    await page.locator("main").getByText("The host does not answer.").waitFor();
    assert.doesNotMatch(await page.locator("main").innerText(), /import|module/);
    away = false;
    await at.host.run();
    await page.getByRole("heading", { name: "System" }).waitFor();
    await gone(page).waitFor({ state: "detached" });
  }));

test("a stream that fails once goes on, and one that is refused says so", () =>
  at.page({}, async (watched, page) => {
    const runId = await at.host.startRun("e2e-gated");
    await at.host.status(runId, "waiting-approval");
    let [run, activity] = [0, 0];
    await page.route(/\/events\?/, (route) => ((run += 1) === 1 ? hiccup(route) : route.continue()));
    await page.route(/\/baton\/activity/, (route) => ((activity += 1) === 1 ? hiccup(route) : route.continue()));
    watched.expect(/500/);
    await watched.go(`/runs/${runId}`);
    await at.host.accept(runId, "gate-1");
    await page.locator("section.question", { hasText: "stage 2" }).waitFor();
    await at.host.status(runId, "waiting-approval");
    const whole = await last(runId);
    await until("everything has arrived", async () => (await newest(page)) === whole);
    assert.ok(run > 1 && activity > 1, "both were opened again");
    // The list of runs lives by the other stream.
    await page.getByRole("link", { name: "Runs", exact: true }).click();
    const fresh = await completed("e2e-ticking");
    await until("a new run is told", async () => {
      const pill = page.locator(".fresh button");
      // It goes away by itself when the list is read anew; then there is nothing to click any more.
      if (await pill.count()) await pill.first().click({ timeout: 1000 }).catch(() => {});
      return page.locator(`a[href$="${fresh}"]`).count();
    });
    watched.expect(/403/);
    await page.route(new RegExp(`/v1/runs/${runId}/events\\?`), (route) => route.fulfill({ status: 403, json: { error: "forbidden", message: "Not for you." } }));
    await visit(page, `/runs/${runId}`);
    await rest(page).waitFor();
    await at.host.accept(runId, "gate-2");
  }));

test("whoever reads further up in a live run stays there until they ask for its end", () =>
  at.page({}, async (watched, page) => {
    const runId = await halfway();
    await watched.go(`/runs/${runId}`);
    const list = page.locator("bt-virtual-list.events");
    const top = () => list.evaluate((one) => one.scrollTop);
    const fromEnd = () => list.evaluate((one) => one.scrollHeight - one.clientHeight - one.scrollTop);
    await until("the list is at its end", async () => (await top()) > 1000 && (await fromEnd()) < 2);
    await list.hover();
    await page.mouse.wheel(0, -800);
    await until("it is scrolled up", async () => (await fromEnd()) > 400);
    await watched.drawn();
    // The question goes with its answer, and the list gets its room: what is at its top stays there.
    const before = await top();
    await at.host.accept(runId, "gate-2");
    await at.host.status(runId, "completed");
    const whole = await last(runId);
    await until("everything has arrived", async () => (await newest(page)) === whole);
    await watched.drawn();
    assert.equal(await top(), before);
    assert.equal(await page.locator(".live-button").getAttribute("aria-pressed"), "true", "it is still live");
    await page.keyboard.press("l");
    await until("the end is in sight", async () => (await fromEnd()) < 2);
  }));

test("a row that changes between press and release is still pressed", () =>
  at.page({}, async (watched, page) => {
    const runId = await completed("e2e-ticking");
    const all = await at.host.events(runId);
    // A node of the third round has begun; how it ended comes while its row is pressed. Everything of the run has begun before.
    const begun = all.filter((one) => one.type === "node.started" && one.nodeId === "rest")[2].sequence;
    const over = all.find((one) => one.nodeId === "rest" && one.type === "node.completed" && one.sequence > begun).sequence;
    const { held, release } = await replayed(page, runId, begun + 1, over + 2);
    await watched.go(`/runs/${runId}?view=compact`);
    await held;
    const row = page.locator(`.ev[data-seq="${begun}"]`);
    await row.waitFor();
    await watched.drawn();
    await press(page, row);
    const was = await row.innerText();
    release();
    await until("its end has come", async () => (await newest(page)) === over + 1 && (await row.innerText()) !== was);
    await page.mouse.up();
    await page.waitForURL(new RegExp(`seq=${begun}\\b`));
  }));

test("what is pressed in the tree is pressed, though the tree grows", () =>
  at.page({}, async (watched, page) => {
    const parent = await at.host.startRun("demo-agents");
    await at.host.status(parent, /waiting/);
    // The run below asked a model and called a tool: that comes while the run above is pressed.
    const { runs: [{ runId }] } = await at.host.api(`/v1/runs?parentRunId=${parent}&status=completed&limit=1`);
    const all = await at.host.events(runId);
    const { held, release } = await replayed(page, runId, all.findIndex((one) => one.type === "node.started") + 1, all.length - 1);
    await watched.go(`/runs/${runId}`);
    await held;
    const link = page.locator(`.run-tree a[href*="${parent}"]`);
    await link.waitFor();
    assert.equal(await page.locator(".run-tree .leaf").count(), 0);
    await press(page, link);
    release();
    await page.locator(".run-tree .leaf").first().waitFor();
    await page.mouse.up();
    await page.waitForURL(new RegExp(`/runs/${parent}`));
  }));

test("a banner and a field keep the press and the focus while events arrive", () =>
  at.page({}, async (watched, page) => {
    const runId = await at.host.startRun("e2e-above");
    const goesOn = async () => {
      const before = await newest(page);
      await until("events arrive", async () => (await newest(page)) > before + 8);
    };
    await at.host.status((await until("there is a run below", async () => (await at.host.api(`/v1/runs?parentRunId=${runId}&limit=1`)).runs[0])).runId, "waiting-approval");
    await watched.go(`/runs/${runId}?tab=state`);
    const banner = page.locator(".run-banner", { hasText: "waits for an answer" });
    await banner.getByText("Asked from below").waitFor();
    const field = page.locator(".baseline select");
    await field.focus();
    const [link, select] = [await banner.locator("a").elementHandle(), await field.elementHandle()];
    await goesOn();
    assert.ok(await select.evaluate((one) => one === document.activeElement), "the field has the focus");
    await press(page, link);
    await goesOn();
    assert.ok(await link.evaluate((one) => one.isConnected), "the link is the same");
    await page.mouse.up();
    await page.waitForURL((to) => !to.pathname.endsWith(runId));
    await page.locator("section.question", { hasText: "Asked from below" }).waitFor();
    await at.host.api(`/v1/runs/${runId}/cancel`, {});
    await at.host.status(runId, "cancelled");
  }));

test("what is drawn anew all the time is not while it is pressed", () =>
  at.page({}, async (watched, page) => {
    const runId = await at.host.startRun("e2e-above");
    await watched.go(`/runs/${runId}?tab=overview`);
    const link = page.locator(".inspector a[href*='/workflows/']");
    await link.waitFor();
    // Of the run's own row, which comes with its events, this part of the page is made.
    const rowComes = () => soon("the row comes", page.evaluate(async (id) => {
      const main = document.querySelector("script[type=module]").src;
      const { onRuns } = await import(new URL("lib/activity.js", main).href);
      return new Promise((done) => onRuns((rows) => rows.some((row) => row.runId === id) && done(null)));
    }, runId));
    const had = await link.elementHandle();
    await rowComes();
    await until("it is drawn anew", async () => !(await had.evaluate((one) => one.isConnected)));
    await watched.settled();
    await press(page, link);
    for (let times = 0; times < 3; times += 1) await rowComes();
    await page.mouse.up();
    await page.waitForURL(/\/workflows\/e2e-above/);
    await at.host.api(`/v1/runs/${runId}/cancel`, {});
    await at.host.status(runId, "cancelled");
  }));

test("a turn that is looked at stays as it is while the run goes on", () =>
  at.page({}, async (watched, page) => {
    const runId = await at.host.startRun("demo-team");
    await at.host.status(runId, /waiting/);
    const seq = (await at.host.events(runId)).findLast((one) => one.payload?.phase === "output.harvested").sequence;
    await watched.go(`/runs/${runId}?tab=turn&seq=${seq}`);
    const button = page.locator(".turn .seq-link").first();
    await button.focus();
    const had = await button.elementHandle();
    const before = await newest(page);
    const { interrupts: [question] } = await at.host.api(`/v1/interrupts?runId=${runId}`);
    await at.host.accept(runId, question.nodeId);
    await until("events arrive", async () => (await newest(page)) > before);
    await watched.drawn();
    assert.ok(await had.evaluate((one) => one === document.activeElement));
  }));

test("a question about a run goes with its screen, and is asked when the run is known", () =>
  at.page({}, async (watched, page) => {
    const runId = await at.host.startRun("e2e-gated");
    await at.host.status(runId, "waiting-approval");
    await watched.go("/runs");
    const [held, free] = [gate(), gate()];
    await page.route(/\/v1\/runs\?idPrefix/, async (route) => {
      held.open();
      await free.opened;
      return route.continue();
    });
    await page.locator(`a[href$="${runId}"]`).first().click();
    await soon("the row is asked for", held.opened);
    const cancel = page.getByRole("button", { name: "Cancel", exact: true });
    await cancel.waitFor();
    assert.ok(await cancel.isDisabled(), "how it stands is not known yet");
    free.open();
    for (const open of [() => cancel.click(), () => page.getByRole("button", { name: "Fork", exact: true }).click()]) {
      await open();
      await page.locator("dialog[open]").waitFor();
      await page.goBack();
      await page.waitForURL(/\/runs$/);
      await page.locator("dialog").waitFor({ state: "detached" });
      await page.goForward();
      await page.locator(".ev").first().waitFor();
    }
    await at.host.api(`/v1/runs/${runId}/cancel`, {});
  }));
