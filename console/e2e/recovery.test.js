// The host is killed while somebody looks. The page says so, comes back by itself, and has lost and doubled nothing.
import assert from "node:assert/strict";
import * as node from "node:test";
import { GONE, gone, stage, until } from "./support.js";
import { gated } from "./workflows.js";

const { test } = node;
const at = await stage(node, [gated(3, 60, 25)]);


/** Goes through the whole list, as far as it can be scrolled, and says which sequence each row shows. */
const everyRow = (page) => page.locator("bt-virtual-list.events").evaluate(async (list) => {
  const seen = new Map();
  const frame = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  list.scrollTop = 0;
  for (;;) {
    await frame();
    for (const row of list.querySelectorAll(".vl-row")) {
      const event = row.matches(".ev") ? row : row.querySelector(".ev");
      seen.set(Number(row.id.split("-").at(-1)), [Number(event.dataset.seq), event.querySelector(".ev-name").title, event.querySelector(".ev-node").textContent]);
    }
    if (list.scrollTop + list.clientHeight >= list.scrollHeight - 1) break;
    list.scrollTop += list.clientHeight - 40;
  }
  return [...seen].sort(([a], [b]) => a - b).map(([index, [seq, type, node]]) => ({ index, seq, type, node }));
});

test("a run that is watched over two crashes is shown whole, each event once", () =>
  at.page({}, async (watched, page) => {
    const runId = await at.host.startRun("e2e-gated");
    await watched.go(`/runs/${runId}`);
    const newest = async () => Number((await page.locator(".seq-of").innerText()).replace(/\D/g, ""));
    for (const crash of [1, 2]) {
      const before = await newest();
      await at.host.status(runId, "waiting-approval");
      await at.host.accept(runId, `gate-${crash}`);
      await until("events arrive", async () => (await newest()) > before + 60);
      watched.expect(...GONE);
      await at.host.kill();
      await gone(page).waitFor();
      assert.ok((await newest()) > before + 60, "what was there stays there");
      await at.host.run();
      // The stage that was cut off is finished, and the next gate is closed: now it is known how far the page has to come.
      await at.host.status(runId, "waiting-approval");
      const last = (await at.host.events(runId)).length - 1;
      await until(`the page recovers from crash ${crash}`, async () => (await newest()) === last);
      await gone(page).waitFor({ state: "detached" });
      watched.expectNothing();
    }
    await at.host.accept(runId, "gate-3");
    await at.host.status(runId, "completed");
    const events = await at.host.events(runId);
    await until("the page has the last event", async () => (await newest()) === events.length - 1);
    await page.getByText("Latest").waitFor();
    const shown = await everyRow(page);
    assert.deepEqual(shown, events.map((event, index) => ({ index, seq: index, type: event.type, node: event.nodeId ?? "" })));
    assert.deepEqual(events.map((event) => event.sequence), events.map((_, index) => index));
  }));

test("lists and questions recover too, and an answer after the crash counts", () =>
  at.page({}, async (watched, page) => {
    const runId = await at.host.startRun("demo-pipeline");
    await at.host.status(runId, "waiting-approval");
    await watched.go("/runs");
    await page.locator(`a[href$="${runId}"]`).first().waitFor();
    watched.expect(...GONE);
    await at.host.kill();
    await gone(page).waitFor();
    await at.host.run();
    await gone(page).waitFor({ state: "detached" });
    watched.expectNothing();
    const later = await at.host.startRun("demo-pipeline");
    await at.host.status(later, "waiting-approval");
    await until("the list goes on", async () => {
      const fresh = page.locator(".fresh button");
      if (await fresh.count()) await fresh.first().click({ timeout: 1000 }).catch(() => {});
      return page.locator(`a[href$="${later}"]`).count();
    });
    await page.locator(`a[href$="${runId}"]`).first().click();
    const question = page.locator("section.question");
    await question.getByRole("button", { name: "Accept" }).click();
    // What is typed outlives a crash.
    await question.getByRole("textbox", { name: "Note" }).fill("before the crash");
    watched.expect(...GONE);
    await at.host.kill();
    await gone(page).waitFor();
    // The page may have asked before anybody here knows that the host is back.
    const asked = page.waitForResponse((answer) => answer.url().includes(`/v1/interrupts?runId=${runId}`) && answer.ok());
    await at.host.run();
    await gone(page).waitFor({ state: "detached" });
    await (await asked).finished();
    await watched.drawn();
    watched.expectNothing();
    assert.equal(await question.getByRole("textbox", { name: "Note" }).inputValue(), "before the crash");
    await question.locator(".q-form button[type=submit]").click();
    const run = await at.host.status(runId, "completed");
    assert.equal(run.variables.published, true);
    assert.match(JSON.stringify(await at.host.events(runId)), /before the crash/);
    await page.locator(".rh-status").getByText("completed").waitFor();
  }));
