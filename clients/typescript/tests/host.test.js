// Against a real host.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import * as baton from "../dist/index.js";
import * as flows from "./flows.js";
import { Host, until } from "./host.js";
import { cut, hold, Proxy, STALL, SWALLOW, say } from "./proxy.js";

let host;
let client;
before(async () => {
  host = await Host.start();
  client = host.client();
});
after(() => host.stop());

async function all(items) {
  const got = [];
  for await (const item of items) got.push(item);
  return got;
}

const sequences = (events) => events.map((event) => event.sequence);
const upTo = (count) => Array.from({ length: count }, (_, at) => at);

async function through(plan, options, act) {
  const proxy = await Proxy.start(host.url, ...plan);
  try {
    await act(host.client({ url: proxy.url, ...options }), proxy);
  } finally {
    proxy.stop();
  }
}

test("start, stream and wait", async () => {
  await client.workflows.register(flows.hello());
  const { runId } = await client.runs.start("hello", { inputs: { name: "Ada" }, tags: ["greeting"] });
  const events = await all(client.runs.events(runId, { mode: "debug" }));
  assert.deepEqual(sequences(events), upTo(events.length));
  assert.equal(events.at(-1).type, "run.completed");
  assert.deepEqual((await client.runs.wait(runId, { until: "ended" })).outputs, { greeting: "Hello, Ada!" });
  assert.deepEqual(await all(client.runs.events(runId, { after: events.at(-1).sequence })), []);
  assert.deepEqual((await all(client.runs.list({ tag: "greeting" }))).map((run) => run.runId), [runId]);
  assert.equal((await all(client.runs.states(runId))).at(-1).status, "completed");
  assert.deepEqual(sequences((await client.runs.poll(runId, { after: 1, limit: 2 })).events), [2, 3]);
});

test("answers count once", async () => {
  await client.workflows.register(flows.gate());
  const { runId } = await client.runs.start(flows.gate());
  const waiting = await client.runs.wait(runId);
  assert.equal(waiting.status, "waiting-approval");
  const [question] = await client.interrupts.list({ runId });
  await assert.rejects(client.runs.wait(runId, { until: "ended", timeoutMs: 1000 }), baton.TimedOut);
  await assert.rejects(client.interrupts.answer(runId, "review", { action: "perhaps" }, { interruptId: question.interruptId }), baton.InvalidRequest);
  await client.interrupts.approve(question, { feedback: "go" });
  const done = await client.runs.wait(runId);
  assert.deepEqual(done.outputs, { sent: true, text: "a draft" });
  for (const again of [question, waiting]) {
    await assert.rejects(client.interrupts.reject(again), (error) => error instanceof baton.AlreadyAnswered && error.status === 409);
  }
  assert.throws(() => client.interrupts.approve(done), /asks nothing/);
});

test("of five clicks at once one counts", async () => {
  await client.workflows.register(flows.gate());
  const question = await client.runs.wait((await client.runs.start("gate")).runId);
  const got = await Promise.all(Array.from({ length: 5 }, () => client.interrupts.approve(question).then(() => "counted", (error) => error.name)));
  assert.deepEqual(got.sort(), [...Array(4).fill("AlreadyAnswered"), "counted"]);
});

test("fork, diff, verify, state, export and annotations", async () => {
  await client.workflows.register(flows.gate());
  const { runId } = await client.runs.start("gate");
  await client.interrupts.approve(await client.runs.wait(runId));
  await client.runs.wait(runId);
  const answer = (await all(client.runs.events(runId, { mode: "debug" }))).find((event) => event.type === "node.resumed");
  const branch = (await client.runs.fork(runId, { at: answer.sequence, variables: { text: "another" } })).runId;
  await client.interrupts.reject(await client.runs.wait(branch));
  assert.deepEqual((await client.runs.wait(branch)).outputs, { sent: false });
  assert.equal((await client.runs.diff(runId, branch)).divergedAtSeq, answer.sequence);
  assert.ok((await client.runs.verify(runId)).equal);
  const replay = await client.runs.wait((await client.runs.replay(runId)).runId, { until: "ended" });
  assert.deepEqual(replay.outputs, { sent: true, text: "a draft" });
  assert.equal((await client.runs.state(runId, { at: answer.sequence - 1 })).status, "waiting-approval");
  assert.ok((await client.runs.import(await client.runs.export(runId))).alreadyHere);
  await client.runs.annotate(runId, { kind: "rating", rating: 4 }, { note: "right" });
  assert.deepEqual((await all(client.runs.annotations(runId))).map((one) => one.signal.rating), [4]);
});

test("pause, resume and cancel", async () => {
  await client.workflows.register(flows.gate());
  const gate = (await client.runs.start("gate")).runId;
  await client.runs.wait(gate);
  await client.runs.cancel(gate, { reason: "enough" });
  assert.equal((await client.runs.wait(gate, { until: "ended" })).status, "cancelled");
  await client.workflows.register(flows.ticks(50, 50));
  const ticks = (await client.runs.start("ticks")).runId;
  await client.runs.pause(ticks, { drainPolicy: "immediate" });
  assert.equal((await client.runs.wait(ticks)).status, "paused");
  await client.runs.resume(ticks);
  assert.ok((await client.runs.cancelMany([ticks])).results[0].ok);
});

test("memory, workspace, agents and discovery", async () => {
  const entry = await client.memory.put("typescript", "remember me", { tags: ["a"] });
  assert.deepEqual((await all(client.memory.list("typescript", { tag: "a" }))).map((one) => one.id), [entry.id]);
  await client.memory.delete("typescript", entry.id);
  await assert.rejects(client.memory.get("typescript", entry.id), baton.NotFound);
  const first = await client.workspace.put("notes/a-b.md", "one");
  await client.workspace.put("notes/a-b.md", "two", { ifMatch: first.etag });
  await assert.rejects(client.workspace.put("notes/a-b.md", "three", { ifMatch: first.etag }), baton.Conflict);
  assert.equal((await client.workspace.get("notes/a-b.md")).content, "two");
  await client.workspace.delete("notes/a-b.md");
  const [{ agentId }] = await client.agents.list();
  assert.equal((await client.agents.get(agentId)).agentId, agentId);
  assert.ok((await client.host.discover()).implementation && (await client.host.system()).version);
});

test("typed refusals", async () => {
  await assert.rejects(client.runs.get("run_00000000000000000000000000000000"), baton.NotFound);
  await assert.rejects(host.client({ token: "wrong" }).runs.get("run_1"), baton.Unauthenticated);
  await assert.rejects(host.client({ url: "http://127.0.0.1:9", retries: 1 }).runs.get("run_1"), baton.ConnectionFailed);
});

test("pages of many runs", async () => {
  await client.workflows.register(flows.hello());
  const tag = randomUUID();
  const started = await Promise.all(upTo(60).map((n) => client.runs.start("hello", { inputs: { name: String(n) }, tags: [tag] })));
  const listed = (await all(client.runs.list({ tag, pageSize: 7 }))).map((run) => run.runId);
  assert.deepEqual(listed.sort(), started.map((run) => run.runId).sort());
});

test("a reply that is lost starts no second run, and an answer counts once", async () => {
  await client.workflows.register(flows.gate());
  const tag = randomUUID();
  await through([SWALLOW, cut(40), SWALLOW], {}, async (away, proxy) => {
    const run = await away.runs.start("gate", { tags: [tag] });
    assert.equal(proxy.requests.length, 4);
    assert.deepEqual((await all(client.runs.list({ tag }))).map((one) => one.runId), [run.runId]);
    const question = await client.runs.wait(run.runId);
    proxy.plan.push(SWALLOW);
    await away.interrupts.approve(question);
    assert.equal(proxy.requests.length, 6);
  });
});

test("a busy host is asked again later", async () => {
  const busy = say("503 Service Unavailable", { "retry-after": "0" }, '{"error":"overloaded","message":"later"}');
  await through([busy, busy], {}, async (away, proxy) => {
    assert.ok(await away.host.ready());
    assert.equal(proxy.requests.length, 3);
  });
});

test("a host that does not answer", async () => {
  await through([STALL, hold(150)], { timeoutMs: 300 }, async (away, proxy) => {
    for (let time = 0; time < 2; time += 1) await assert.rejects(away.host.discover(), baton.ConnectionFailed);
    assert.equal(proxy.requests.length, 2);
  });
});

test("streams go on over cut and silent connections", async () => {
  await client.workflows.register(flows.ticks(30, 5));
  const { runId } = await client.runs.start("ticks");
  await client.runs.wait(runId, { until: "ended" });
  const whole = await all(client.runs.events(runId, { mode: "debug" }));
  const plan = [cut(900), cut(2500), hold(1500), cut(10), say("502 Bad Gateway"), cut(4000), hold(3000)];
  await through([...plan], { silenceMs: 500 }, async (away, proxy) => {
    assert.deepEqual(await all(away.runs.events(runId, { mode: "debug" })), whole);
    assert.equal(proxy.requests.length, plan.length + 1);
  });
  assert.deepEqual(await all(client.runs.events(runId, { mode: "debug", bufferMs: 50 })), whole);
});

test("a stream outlives the host", async () => {
  const mortal = await Host.start();
  try {
    const near = mortal.client();
    await near.workflows.register(flows.ticks(40, 40));
    const { runId } = await near.runs.start("ticks");
    const waited = near.runs.wait(runId);
    const seen = [];
    let restarted;
    for await (const event of near.runs.events(runId, { mode: "debug" })) {
      seen.push(event);
      if (seen.length === 20) restarted = mortal.kill().then(() => mortal.run());
    }
    await restarted;
    assert.deepEqual(sequences(seen), upTo(seen.length), "a gap or a double");
    assert.equal(seen.at(-1).type, "run.completed");
    assert.deepEqual((await waited).outputs, { last: 39 });
    assert.equal((await near.runs.poll(runId, { limit: 10_000 })).events.length, seen.length);
  } finally {
    await mortal.stop();
  }
});

test("a reader that leaves or is aborted leaves no connection", async () => {
  await client.workflows.register(flows.gate());
  const { runId } = await client.runs.start("gate");
  await through([], {}, async (away, proxy) => {
    for await (const _ of away.runs.events(runId, { mode: "debug" })) break;
    const control = new AbortController();
    const reading = (async () => {
      for await (const _ of away.runs.events(runId, { mode: "debug", signal: control.signal })) control.abort(new Error("enough"));
    })();
    await assert.rejects(reading, /enough/);
    await until("nothing is under way", () => proxy.underWay.size === 0);
    assert.equal(proxy.requests.length, 2);
  });
  await client.runs.cancel(runId);
});
