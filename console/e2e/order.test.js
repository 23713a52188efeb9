// Answers that come late, or after newer news: what is shown is never replaced by something older. Nothing here waits for
// a time to pass; answers are held back until what they must not undo has happened.
import assert from "node:assert/strict";
import * as node from "node:test";
import { gate, soon, stage, until } from "./support.js";
import { asking } from "./workflows.js";

const { test } = node;
const at = await stage(node, [asking]);

/** A pipeline at its gate. */
async function waiting(inputs = {}) {
  const runId = await at.host.startRun("demo-pipeline", { inputs });
  await at.host.status(runId, "waiting-approval");
  return runId;
}

/** Holds the first answer to what fits, as the host gave it then; later ones pass. @returns what tells that it is held, and what lets it go */
async function holdFirst(page, pattern) {
  const [held, free] = [gate(), gate()];
  let first = true;
  await page.route(pattern, async (route) => {
    if (!first) return route.continue();
    first = false;
    const answer = await route.fetch();
    held.open();
    await free.opened;
    return route.fulfill({ response: answer });
  });
  return { held: soon("an answer to hold", held.opened), release: free.open };
}

/** Does something, and waits until the page has heard from the stream of activity that a run stands so. */
async function after(page, runId, status, act) {
  await page.evaluate(async ([id, wanted]) => {
    const main = document.querySelector("script[type=module]").src;
    const { onRuns, openInterrupts } = await import(new URL("lib/activity.js", main).href);
    // The stream has spoken: from here on it tells of everything.
    while (openInterrupts.peek() === null) await new Promise((done) => setTimeout(done, 20));
    globalThis.told = new Promise((done) => onRuns((rows) => rows.some((row) => row.runId === id && row.status === wanted) && done(null)));
  }, [runId, status]);
  await act();
  await soon(`the page hears that ${runId} is ${status}`, page.evaluate(() => globalThis.told));
}

test("a list of questions that was asked for before an answer does not bring the question back", () =>
  at.page({}, async (watched, page) => {
    const first = await waiting();
    await watched.go("/inbox");
    const card = page.locator(".inbox-card");
    const row = (/** @type {string} */ runId) => page.locator(`.inbox-list a[href*="${runId}"]`);
    await row(first).click();
    await card.getByRole("button", { name: "Accept" }).click();
    const late = await holdFirst(page, /\/v1\/interrupts\?limit/);
    const second = await waiting();
    await late.held;
    await card.locator(".q-form button[type=submit]").click();
    await until("the answered question is gone", async () => (await row(first).count()) === 0);
    const answered = page.waitForResponse(/\/v1\/interrupts\?limit/);
    late.release();
    await (await answered).finished();
    await watched.drawn();
    await row(second).waitFor();
    assert.equal(await row(first).count(), 0, "the late list has not brought it back");
    await at.host.accept(second, "review");
  }));

test("what is typed into one question stays when others come and go", () =>
  at.page({}, async (watched, page) => {
    const runId = await at.host.startRun("e2e-asking");
    await at.host.status(runId, "waiting-approval");
    await watched.go(`/runs/${runId}`);
    const card = (/** @type {string} */ name) => page.locator("section.question", { hasText: `The ${name} question` });
    await card("second").waitFor();
    await card("first").getByRole("button", { name: "Accept" }).click();
    const note = card("first").getByRole("textbox", { name: "Note" });
    await note.pressSequentially("half a ");
    await at.host.accept(runId, "second");
    await card("third").waitFor();
    await card("second").waitFor({ state: "detached" });
    await page.keyboard.type("sentence");
    assert.equal(await note.inputValue(), "half a sentence");
    // The playhead goes back to before it was asked, and returns.
    const sequence = page.getByLabel("Sequence", { exact: true });
    // What is selected stays selected, so that typing replaces it; what is typed stays as well.
    await sequence.selectText();
    await at.host.accept(runId, "third");
    await card("fourth").waitFor();
    await page.keyboard.type("0");
    await at.host.accept(runId, "fourth");
    await card("fourth").waitFor({ state: "detached" });
    assert.equal(await sequence.inputValue(), "0");
    await sequence.press("Enter");
    await note.waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Live" }).click();
    assert.equal(await note.inputValue(), "half a sentence");
    await card("first").locator(".q-form button[type=submit]").click();
    await card("first").waitFor({ state: "detached" });
    assert.match(JSON.stringify(await at.host.events(runId)), /half a sentence/);
  }));

test("a list of runs that is older than the news does not undo them", () =>
  at.page({}, async (watched, page) => {
    await watched.go("/inbox");
    const runId = await waiting();
    const late = await holdFirst(page, /\/v1\/runs\?.*limit=100/);
    await page.getByRole("link", { name: "Runs", exact: true }).click();
    await late.held;
    await after(page, runId, "completed", () => at.host.accept(runId, "review"));
    late.release();
    const row = page.locator(".run-row", { has: page.locator(`a[href$="${runId}"]`) });
    await row.waitFor();
    await watched.drawn();
    assert.match(await row.locator(".c-status").innerText(), /completed/);
    assert.equal(await page.locator(".fresh button").count(), 0, "what is in the list is not called new");
  }));

test("a row of a run that is older than the news does not undo them", () =>
  at.page({}, async (watched, page) => {
    const runId = await waiting();
    await watched.go("/inbox");
    // The first row is late, and none comes after it: what the page then shows is what it made of the two.
    const [held, free, end] = [gate(), gate(), gate()];
    let first = true;
    await page.route(/\/v1\/runs\?idPrefix/, async (route) => {
      if (!first) {
        await end.opened;
        return route.continue();
      }
      first = false;
      const answer = await route.fetch();
      held.open();
      await free.opened;
      return route.fulfill({ response: answer });
    });
    await page.evaluate((id) => {
      history.pushState(null, "", `/console/runs/${id}`);
      dispatchEvent(new PopStateEvent("popstate"));
    }, runId);
    await soon("the row to hold", held.opened);
    await after(page, runId, "completed", () => at.host.accept(runId, "review"));
    await page.locator(".rh-status").getByText("completed").waitFor();
    const answered = page.waitForResponse(/\/v1\/runs\?idPrefix/);
    free.open();
    await (await answered).finished();
    await watched.drawn();
    const said = await page.locator(".rh-status").innerText();
    end.open();
    assert.match(said, /completed/);
  }));

test("a row stays the same element while its run goes on, with the focus and the pressed button in it", () =>
  at.page({}, async (watched, page) => {
    const runId = await waiting();
    await watched.go("/runs?q=*");
    const row = page.locator(".run-row", { has: page.locator(`a[href$="${runId}"]`) });
    await row.locator(".c-menu button").focus();
    await row.evaluate((one) => (globalThis.row = one));
    const kept = () => row.evaluate((one) => one === globalThis.row && one.contains(document.activeElement));
    // Another run comes on top: the row goes down with its run.
    const other = await waiting();
    await until("the list has the other", async () => {
      await page.evaluate(() => document.querySelector(".fresh button")?.click());
      return page.locator(`.run-row a[href$="${other}"]`).count();
    });
    await watched.drawn();
    assert.ok(await kept(), "with another above it");
    const order = await page.locator(".vl-row").evaluateAll((all) => all.map((one) => Number(one.getAttribute("aria-rowindex"))));
    assert.deepEqual(order, order.toSorted((a, b) => a - b));
    await page.mouse.move(0, 0);
    await row.locator(".c-id a").hover();
    await page.mouse.down();
    await after(page, runId, "completed", () => at.host.accept(runId, "review"));
    await row.locator(".c-status", { hasText: "completed" }).waitFor();
    assert.ok(await row.evaluate((one) => one === globalThis.row), "with other contents");
    await page.mouse.up();
    await page.waitForURL(new RegExp(runId));
    await at.host.accept(other, "review");
  }));

test("a question in the inbox keeps the focus and the press while others come and go", () =>
  at.page({}, async (watched, page) => {
    const [before, runId] = [await waiting(), await waiting()];
    await watched.go("/inbox");
    const row = (/** @type {string} */ id) => page.locator(`.inbox-list a[href*="${id}"]`);
    await row(runId).focus();
    await row(runId).evaluate((one) => (globalThis.row = one));
    const kept = () => row(runId).evaluate((one) => one === globalThis.row && one === document.activeElement);
    await at.host.accept(before, "review");
    await row(before).waitFor({ state: "detached" });
    assert.ok(await kept(), "one that went");
    await row(runId).hover();
    await page.mouse.down();
    const later = await waiting();
    await row(later).waitFor();
    assert.ok(await kept(), "one that came");
    await page.mouse.up();
    await page.waitForURL((url) => (url.searchParams.get("at") ?? "").startsWith(runId));
    // Nobody is to be told that the question on the screen was answered elsewhere.
    await watched.go("/workflows");
    for (const id of [runId, later]) await at.host.accept(id, "review");
  }));

test("a comparison stays as it was opened when a stream of events is late", () =>
  at.page({}, async (watched, page) => {
    const a = await waiting({ topic: "tides" });
    const prepare = (await at.host.events(a)).find((one) => one.type === "node.started" && one.nodeId === "prepare").sequence;
    const { runId: b } = await at.host.api(`/v1/runs/${a}:fork`, { fromSeq: prepare, mode: "branch", runOptionsOverlay: { variables: { topic: "glaciers" } } });
    await at.host.status(b, "waiting-approval");
    const free = gate();
    await page.route(new RegExp(`/v1/runs/${b}/events\\?`), async (route) => {
      await free.opened;
      return route.continue();
    });
    let compared = 0;
    page.on("request", (request) => (compared += Number(request.url().includes(":diff"))));
    await page.clock.install();
    await page.goto(`/console/compare?a=${a}&b=${b}`);
    await page.getByText(/They part at/).waitFor();
    await page.locator("#parting > summary").click();
    await page.locator("#parting[open] .cmp-inside").waitFor();
    const streams = page.waitForResponse((answer) => answer.url().includes(`/v1/runs/${b}/events?`));
    free.open();
    await streams;
    // Long enough, by the page's own clock, for anything to be asked again.
    await page.clock.runFor(1500);
    await watched.drawn();
    assert.equal(await page.locator("#parting[open] .cmp-inside").count(), 1, "it is still open");
    assert.equal(compared, 1);
    for (const id of [a, b]) await at.host.accept(id, "review");
  }));

test("memory is shown for the tag that was chosen last, whichever answer comes last", () =>
  at.page({}, async (watched, page) => {
    for (const tag of ["slow", "quick"]) await at.host.api("/v1/host/baton/memory/e2e-tags", { content: `kept under ${tag}`, tags: [tag] });
    await watched.go("/memory/e2e-tags");
    const late = await holdFirst(page, /\/memory\/e2e-tags\?tag=slow/);
    await page.locator(".entry button.tag", { hasText: "slow" }).click();
    await late.held;
    await page.locator(".entry button.tag", { hasText: "quick" }).click();
    await until("only the other is there", async () => (await page.locator(".entry").count()) === 1);
    const answered = page.waitForResponse(/tag=slow/);
    late.release();
    await (await answered).finished();
    await watched.drawn();
    assert.deepEqual(await page.locator(".entry .entry-text").allInnerTexts(), ["kept under quick"]);
  }));

test("a screen that is left while it asks leaves nothing behind", () =>
  at.page({}, async (watched, page) => {
    const held = gate();
    // Neither is ever answered: whoever leaves hangs up on both.
    await page.route(/\/readiness$|\/v1\/host\/baton\/system$/, () => held.open());
    await page.goto("/console/system");
    await soon("the page asks", held.opened);
    await page.getByRole("link", { name: "Workflows", exact: true }).click();
    await page.getByRole("heading", { name: "Workflows" }).waitFor();
    await watched.drawn();
  }));
