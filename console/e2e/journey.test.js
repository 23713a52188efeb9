// What a person does with the console, in a real browser against a real host.
import assert from "node:assert/strict";
import * as node from "node:test";
import { soon, stage, until } from "./support.js";
import { gated, ticking, tree, waiting } from "./workflows.js";

const { test } = node;
const at = await stage(node, [gated(1, 60, 30), ticking(20, 1, "e2e-quick"), waiting, tree]);

/** The rows of the list of events that are drawn. */
const rows = (page) => page.locator("bt-virtual-list.events .ev");
/** The answer that was chosen is sent by the form's own button. */
const send = (place) => place.locator(".q-form button[type=submit]").click();
const runStatus = (page) => page.locator(".rh-status");

test("a wrong key is told as such, the right one opens the console and stays in this tab", () =>
  at.page({ signedIn: false }, async (watched, page) => {
    await watched.go("/runs");
    watched.expect(/401/);
    await page.getByLabel("API key").fill("bk_dev_nobody");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("This host does not know that key.").waitFor();
    assert.equal(await page.evaluate(() => sessionStorage.getItem("baton.key")), null);
    watched.expectNothing();
    await page.getByLabel("API key").fill(at.host.key);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("link", { name: "Inbox" }).waitFor();
    assert.deepEqual(await page.evaluate(() => [localStorage, sessionStorage].map((one) => JSON.stringify(one).includes("bk_dev_"))), [false, true]);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("API key").waitFor();
    assert.equal(await page.evaluate(() => sessionStorage.getItem("baton.key")), null);
  }));

test("a run is watched live, from the list of runs to its end", () =>
  at.page({}, async (watched, page) => {
    await watched.go("/runs?q=*");
    const runId = await at.host.startRun("e2e-gated");
    // The list says that there is something new, or has it already; it never needs a reload.
    await until("the run is in the list", async () => {
      // It may be gone by the time it is pressed.
      if (await page.locator(".fresh button").count()) await page.locator(".fresh button").first().click({ timeout: 1000 }).catch(() => {});
      return page.locator(`a[href$="${runId}"]`).count();
    });
    await page.locator(`a[href$="${runId}"]`).first().click();
    await page.waitForURL(new RegExp(runId));
    await rows(page).first().waitFor();
    await at.host.status(runId, "waiting-approval");
    const waits = (await at.host.events(runId)).length - 1;
    await until("the page is as far as the run", async () => (await newest(page)) === waits);
    const before = await newest(page);
    // Only now is there more to come: what is seen from here on is seen live.
    await at.host.accept(runId, "gate-1");
    await until("more events arrive", async () => (await newest(page)) > before + 20);
    await page.getByText("Latest").waitFor();
    await runStatus(page).getByText("completed").waitFor();
    const events = await at.host.events(runId);
    await until("the page has all of it", async () => (await newest(page)) === events.length - 1);
    await page.locator(`.ev[data-seq="${events.length - 1}"]`).getByText("run.completed").waitFor();
  }));

/** The newest sequence, as the line above the timeline has it. */
async function newest(page) {
  return Number((await page.locator(".seq-of").innerText()).replace(/\D/g, ""));
}

test("an approval is answered in the inbox, and the run goes on", () =>
  at.page({}, async (watched, page) => {
    const runId = await at.host.startRun("demo-pipeline", { inputs: { topic: "tides" } });
    await at.host.status(runId, "waiting-approval");
    await watched.go("/inbox");
    await page.getByRole("navigation", { name: "Open questions" }).locator(`a[href*="${runId}"]`).click();
    const card = page.locator(".inbox-card");
    await card.getByRole("heading", { name: "Publish these notes?" }).waitFor();
    await card.getByRole("button", { name: "Accept" }).click();
    await card.getByRole("textbox", { name: "Note" }).fill("looks right");
    // The list without the question is there before the answer to our own answer: nobody may be told that it was settled.
    let told;
    const answered = new Promise((done) => (told = done));
    await page.route(`**/v1/runs/${runId}/interrupts/*`, async (route) => {
      const relisted = page.waitForResponse(async (got) => /\/v1\/interrupts\?/.test(got.url()) && !(await got.text()).includes(runId));
      const answer = await route.fetch();
      await (await relisted).finished();
      await route.fulfill({ response: answer });
      told();
    });
    await send(card);
    const run = await at.host.status(runId, "completed");
    assert.equal(run.variables.published, true);
    const answer = (await at.host.events(runId)).find((one) => one.type === "interrupt.resolved" || one.type === "approval.received");
    assert.match(JSON.stringify(answer.payload), /looks right/);
    await until("the question is gone from the list", async () => (await page.locator(`.inbox-list a[href*="${runId}"]`).count()) === 0);
    await soon("the answer to arrive", answered);
    await watched.drawn();
  }));

test("a held decision is edited in place, and the edited one is what happens", () =>
  at.page({}, async (watched, page) => {
    const runId = await at.host.startRun("demo-team");
    await at.host.status(runId, "waiting-approval");
    await watched.go(`/runs/${runId}`);
    const question = page.locator("section.question");
    await question.getByRole("heading", { name: /confidence is 0\.40/ }).waitFor();
    await question.getByRole("button", { name: "Edit…" }).click();
    await question.getByLabel("Kind").selectOption({ label: "Finish" });
    await question.getByLabel(/Reason/).fill("enough for today");
    await send(question);
    await runStatus(page).getByText("completed").waitFor();
    const decided = (await at.host.events(runId)).filter((one) => one.type === "runOrchestrator.decided");
    assert.deepEqual(decided.map((one) => one.payload.decision.kind), ["next-worker", "terminate"]);
    assert.equal(decided[1].payload.decision.reason, "enough for today");
    await until("the question is gone", async () => (await question.count()) === 0);
  }));

test("an answer that is being written is not touched by keys, and is sent as it is shown", () =>
  at.page({}, async (watched, page) => {
    const card = page.locator(".inbox-card");
    const dialog = page.locator("dialog[open]");
    const open = async (/** @type {string} */ workflow) => {
      const runId = await at.host.startRun(workflow);
      const { interrupt } = await at.host.status(runId, "waiting-approval");
      await watched.go(`/inbox?at=${encodeURIComponent(`${runId}/${interrupt.interruptId}`)}`);
      return runId;
    };
    const edited = await open("demo-team");
    await card.getByRole("img", { name: "Confidence 0.40, below the floor of 0.50" }).waitFor();
    await card.getByRole("button", { name: "Edit…" }).click();
    await card.getByLabel("Kind").selectOption({ label: "Finish" });
    await card.getByLabel(/Reason/).fill("written with care");
    await card.getByRole("textbox", { name: "Note" }).fill("my note");
    for (const key of ["a", "d"]) {
      await page.evaluate(() => document.activeElement?.blur());
      await page.keyboard.press(key);
      await page.locator(".toast", { hasText: "“Edit” is open." }).first().waitFor();
      assert.equal(await dialog.count(), 0, `${key} asks nothing over a form that is open`);
      assert.equal(await page.evaluate(() => document.activeElement?.className), "stack q-form", `${key} shows where it is`);
    }
    await send(card);
    await at.host.status(edited, "completed");
    const log = await at.host.events(edited);
    assert.equal(log.findLast((one) => one.type === "runOrchestrator.decided").payload.decision.reason, "written with care");
    assert.match(JSON.stringify(log), /my note/);
    // What is written where a key asks stays there: the form has a note of its own.
    const asked = await open("demo-pipeline");
    await card.getByRole("button", { name: "Accept" }).waitFor();
    await page.keyboard.press("d");
    await dialog.getByRole("textbox", { name: "Note" }).fill("thought better of it");
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    await card.getByRole("button", { name: "Accept" }).click();
    assert.equal(await card.getByRole("textbox", { name: "Note" }).inputValue(), "");
    await send(card);
    await at.host.status(asked, "completed");
    assert.doesNotMatch(JSON.stringify(await at.host.events(asked)), /thought better of it/);
    // And it is sent from there when it is confirmed there.
    const denied = await open("demo-pipeline");
    await card.getByRole("button", { name: "Accept" }).waitFor();
    await page.keyboard.press("d");
    await dialog.getByRole("textbox", { name: "Note" }).fill("not like this");
    await dialog.getByRole("button", { name: "Reject" }).click();
    await at.host.status(denied, "failed");
    assert.match(JSON.stringify(await at.host.events(denied)), /not like this/);
  }));

test("the playhead shows memory and variables as the API has them at that event", () =>
  at.page({}, async (watched, page) => {
    const runId = await at.host.startRun("demo-notebook");
    await at.host.status(runId, "completed");
    const events = await at.host.events(runId);
    // By steps, so that where the middle is does not hang on how long each of them took.
    await watched.go(`/runs/${runId}?tab=memory&axis=steps`);
    const playhead = page.getByRole("slider", { name: "Playhead" });
    const panel = page.locator(".inspector [role=tabpanel]");
    await until("the page has all of it", async () => (await newest(page)) === events.length - 1);
    // Dragged with the mouse, which no key does.
    const box = await page.locator(".tl-area").boundingBox();
    await page.mouse.move(box.x + box.width * 0.9, box.y + 6);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width / 2, box.y + 6, { steps: 12 });
    await page.mouse.up();
    await page.waitForURL(/seq=/);
    const seqOf = () => Number(new URL(page.url()).searchParams.get("seq"));
    await until("the playhead is where the address says", async () => Number(await playhead.getAttribute("aria-valuenow")) === seqOf());
    const dragged = seqOf();
    assert.ok(dragged > 0 && dragged < events.length - 1, `dragged to ${dragged}`);
    const places = [dragged, 0, Math.floor(events.length / 3), Math.floor((events.length * 2) / 3), events.length - 1];
    const sizes = new Set();
    for (const seq of places) {
      await page.getByLabel("Sequence", { exact: true }).fill(String(seq));
      await page.getByLabel("Sequence", { exact: true }).press("Enter");
      const state = await at.host.api(`/v1/host/baton/runs/${runId}/state?at=${seq}`);
      sizes.add(state.memory.length);
      await page.waitForURL(new RegExp(`seq=${seq}\\b`));
      await panel.getByText(`as of #${seq}, version ${state.memoryVersion}`).waitFor();
      const shown = await panel.locator(".mem:not(.is-gone) .mem-text").evaluateAll((all) => all.map((one) => one.lastChild.textContent));
      assert.deepEqual(shown.sort(), state.memory.map((one) => one.content).sort(), `memory at ${seq}`);
    }
    assert.ok(sizes.size > 2, "the memory did grow between these places");
    // An address that names an event shows it: in the list, and in the line that says how the run stood.
    const deep = events.findLast((one) => one.type === "node.started" && one.nodeId === "hand-over").sequence;
    const turn = events.filter((one) => one.sequence <= deep && one.type === "runOrchestrator.decided").length;
    await watched.go(`/runs/${runId}?seq=${deep}&tab=memory`);
    await page.locator(`.ev.active[data-seq="${deep}"], .active .ev[data-seq="${deep}"]`).waitFor();
    await until("it is in sight", () => page.locator(`.ev[data-seq="${deep}"]`).evaluate((row) => {
      const [inner, outer] = [row.getBoundingClientRect(), row.closest("bt-virtual-list").getBoundingClientRect()];
      return inner.top >= outer.top && inner.bottom <= outer.bottom;
    }));
    await page.locator(".rh-facts", { hasText: new RegExp(`turn ${turn}(?!\\d)`) }).waitFor();
    // Variables: of a run that changes them.
    const other = await at.host.startRun("e2e-quick");
    await at.host.status(other, "completed");
    const log = await at.host.events(other);
    const changed = log.filter((one) => one.type === "variable.changed").map((one) => one.sequence);
    for (const seq of [changed[3], changed.at(-2)]) {
      await watched.go(`/runs/${other}?tab=state&seq=${seq}`);
      const { variables } = await at.host.api(`/v1/host/baton/runs/${other}/state?at=${seq}`);
      const text = await until("the state is there", async () => {
        const all = (await panel.innerText()).replace(/\s+/g, " ");
        return all.includes(`#${seq}`) && all.includes("Variables") && all.slice(all.lastIndexOf("Variables"));
      });
      for (const [name, value] of Object.entries(variables)) assert.match(text, new RegExp(`${name}\\W+${value}\\b`), `variable ${name} at ${seq}`);
    }
    // Step by step, by key.
    await watched.go(`/runs/${other}?seq=10`);
    await rows(page).first().waitFor();
    await page.keyboard.press("ArrowRight");
    await page.waitForURL(/seq=11\b/);
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("ArrowLeft");
    await page.waitForURL(/seq=9\b/);
  }));

test("the tree shows this run and those below it as they stood at the playhead", () =>
  at.page({}, async (watched, page) => {
    const runId = await at.host.startRun("demo-team");
    await at.host.status(runId, "waiting-approval");
    const log = await at.host.events(runId);
    const child = log.find((one) => one.type === "node.dispatched").payload.childRunId;
    const where = (/** @type {string} */ phase) => log.find((one) => one.payload.phase === phase).sequence;
    const status = (/** @type {string} */ id) => page.locator(`.run-tree [data-id="${id}"] > .tree-row .tree-status`);
    const stands = async (/** @type {number} */ seq, /** @type {string} */ self, /** @type {string} */ below, /** @type {boolean} */ future) => {
      await page.getByLabel("Sequence", { exact: true }).fill(String(seq));
      await page.getByLabel("Sequence", { exact: true }).press("Enter");
      await status(runId).getByText(self).waitFor({ state: "attached" });
      await status(child).getByText(below).waitFor({ state: "attached" });
      await until(`it is ${future ? "" : "not "}still to come at ${seq}`, async () => (await page.locator(`.run-tree .future[data-id="${child}"]`).count()) === Number(future));
    };
    await watched.go(`/runs/${runId}`);
    await status(child).getByText("completed").waitFor({ state: "attached" });
    await status(runId).getByText("waiting: approval").waitFor({ state: "attached" });
    await stands(where("dispatch.began"), "running", "pending", true);
    await stands(where("dispatch.succeeded"), "running", "running", false);
    await stands(where("output.harvested"), "running", "completed", false);
    await page.keyboard.press("l");
    await status(runId).getByText("waiting: approval").waitFor({ state: "attached" });
    // The turn is the one under way, here as in the list, and the host's bound is not the run's.
    await page.locator(".rh-facts", { hasText: /turn 2(?![\d/])/ }).waitFor();
    await watched.go("/runs?q=*");
    const row = page.locator(".run-row", { has: page.locator(`a[href$="${runId}"]`) });
    await until("the list says the same", async () => (await row.locator(".c-turn").innerText()) === "2");
    const bounded = await at.host.startRun("demo-team", { configurable: { maxLoopIterations: 7 } });
    await at.host.status(bounded, "waiting-approval");
    await watched.go(`/runs/${bounded}`);
    await page.locator(".rh-facts", { hasText: "turn 2/7" }).waitFor();
  }));

test("what is to be approved is shown where the question does not bring it", () =>
  at.page({}, async (watched, page) => {
    const runId = await at.host.startRun("demo-agents", { inputs: { goal: "What moves the tides?" } });
    await at.host.status(runId, "waiting-approval");
    await watched.go("/inbox");
    await page.locator(".inbox-list a", { hasText: "Publish what the team has written?" }).click();
    await page.locator(".inbox-card .q-context[open]").getByText(/two bulges of water/).waitFor();
  }));

test("a run is forked at an event with another value, and both are compared", () =>
  at.page({}, async (watched, page) => {
    const runId = await at.host.startRun("demo-pipeline", { inputs: { topic: "tides" } });
    await at.host.status(runId, "waiting-approval");
    const prepare = (await at.host.events(runId)).find((one) => one.type === "node.started" && one.nodeId === "prepare").sequence;
    await watched.go(`/runs/${runId}?seq=${prepare}`);
    await rows(page).first().waitFor();
    await page.keyboard.press("f");
    const dialog = page.locator("dialog.fork");
    await dialog.getByText(`#0 to #${prepare - 1} are kept and not executed again`).waitFor();
    await dialog.locator("summary", { hasText: "Variables" }).click();
    const topic = dialog.locator("details", { hasText: "Variables" }).getByLabel("topic");
    await topic.fill("glaciers");
    // Another point, and back: what was typed stays. So does what was typed as raw JSON.
    const from = dialog.getByLabel(/First event that happens anew/);
    for (const seq of [prepare + 1, prepare]) {
      const state = page.waitForResponse(new RegExp(`/state\\?at=${seq - 1}$`));
      await from.fill(String(seq));
      await (await state).finished();
      await watched.drawn();
      assert.equal(await topic.inputValue(), "glaciers", `at ${seq}`);
    }
    const raw = dialog.getByRole("button", { name: "Raw JSON" });
    await raw.click();
    await dialog.getByLabel("Request").fill("null");
    await dialog.getByText("This is no JSON object.").waitFor();
    const written = '{ "mode": "branch", "fromSeq": 0 }';
    await dialog.getByLabel("Request").fill(written);
    await dialog.getByText("Nothing is kept: the run begins again.").waitFor();
    for (const _ of ["off", "on"]) await raw.click();
    assert.equal(await dialog.getByLabel("Request").inputValue(), written);
    await dialog.getByRole("button", { name: "As the form has it" }).click();
    await raw.click();
    await dialog.getByRole("button", { name: "Fork", exact: true }).click();
    await page.waitForURL((url) => /\/runs\/run_/.test(url.pathname) && !url.pathname.endsWith(runId));
    const fork = new URL(page.url()).pathname.split("/").at(-1);
    const forked = await at.host.status(fork, "waiting-approval");
    assert.equal(forked.forkedFrom.runId, runId);
    assert.equal(forked.variables.headline, "Notes on glaciers");
    await page.locator(".rh-workflow ~ .tag", { hasText: "branch of" }).waitFor();
    // Its source is the first guess.
    await page.keyboard.press("c");
    await page.getByLabel("The other run").waitFor();
    await page.locator("dialog[open]").getByRole("button", { name: "Compare", exact: true }).click();
    await page.waitForURL(/\/compare\?/);
    const diff = await at.host.api(`/v1/runs/${runId}:diff?against=${fork}`);
    await page.getByText(`They part at #${diff.divergedAtSeq}.`).waitFor();
    for (const said of ["Notes on tides", "Notes on glaciers", `from #${forked.forkedFrom.fromSeq} on`]) await until(`it says ${said}`, async () => (await page.locator("main").innerText()).includes(said));
    await page.getByRole("button", { name: "Show it" }).click();
    await page.keyboard.press("Enter");
    await page.locator("#parting[open] .cmp-inside").waitFor();
  }));

test("a tree of runs is cancelled, after its id is typed", () =>
  at.page({}, async (watched, page) => {
    const runId = await at.host.startRun("e2e-tree");
    const children = await until("both children wait", async () => {
      const { runs } = await at.host.api("/v1/runs?workflowId=e2e-waiting&limit=50");
      const mine = runs.filter((one) => one.rootRunId === runId);
      return mine.length === 2 && mine;
    });
    // The row of the run counts them a little later than they are there.
    await until("the run knows of both", async () => (await at.host.api(`/v1/runs?idPrefix=${runId}`)).runs[0]?.summary?.children === 2);
    await watched.go(`/runs/${runId}`);
    for (const { runId: child } of children) await page.locator(`.run-tree [data-id="${child}"]`).waitFor();
    const dialog = page.locator("dialog[open]");
    await until("the page has the run and can ask", async () => {
      if (!(await dialog.count())) await page.getByRole("button", { name: "Cancel", exact: true }).click();
      return dialog.count();
    });
    await dialog.getByText("2 runs").waitFor();
    const go = dialog.getByRole("button", { name: "Cancel the run" });
    assert.ok(await go.isDisabled(), "a tree asks for more than a click");
    await dialog.getByLabel(/to confirm/).fill(runId.slice(-6));
    await go.click();
    await runStatus(page).getByText("cancelled").waitFor();
    for (const id of [runId, ...children.map((one) => one.runId)]) await at.host.status(id, "cancelled");
  }));

test("a signed link opens its one question without a key, and is used up by the answer", () =>
  at.page({ signedIn: false }, async (watched, page) => {
    const runId = await at.host.startRun("demo-pipeline");
    const { interrupt } = await at.host.status(runId, "waiting-approval");
    const token = interrupt.callbackUrl.split("/").at(-1);
    await watched.go(`/link/${token}`);
    await page.getByRole("heading", { name: "Publish these notes?" }).waitFor();
    assert.equal(await page.getByRole("navigation", { name: "Main" }).isVisible(), false);
    await page.getByRole("button", { name: "Reject" }).click();
    await send(page);
    await page.getByRole("heading", { name: "Answered" }).waitFor();
    await at.host.status(runId, "failed");
    watched.expect(/409/);
    await watched.go(`/link/${token}`);
    await page.getByText("This question has its answer").waitFor();
    assert.equal(await page.evaluate(() => sessionStorage.length), 0);
    watched.expect(/40[0-9]|410/);
    await watched.go(`/link/${token.slice(0, -4)}AAAA`);
    await page.getByText("This link does not open a question.").waitFor();
  }));
