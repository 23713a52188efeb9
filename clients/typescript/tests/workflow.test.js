// The builder: what it makes, and which mistakes it finds where.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { BuildError, cel, delay, http, InvalidWorkflow, node, output, setVariable, tool, Workflow } from "../dist/workflow/index.js";
import { nodesNamed } from "../dist/workflow/values.js";
import * as examples from "./examples.js";
import { Host, repository } from "./host.js";

const me = fileURLToPath(import.meta.url);
let host;
let client;
before(async () => {
  host = await Host.start();
  client = host.client();
});
after(() => host.stop());

const here = () => Number(/:(\d+):\d+\)?$/m.exec(new Error().stack.split("\n")[2])[1]);

for (const [name, build] of Object.entries(examples)) {
  test(`the same program gives the same bytes, in both languages: ${name}`, () => {
    assert.equal(build().toJson(), readFileSync(join(repository, `clients/snapshots/${name}.json`), "utf8"));
  });

  test(`the host takes what is built: ${name}`, async () => {
    const workflow = build();
    await workflow.check(client);
    await client.workflows.register(workflow);
    assert.deepEqual(await client.workflows.get(workflow.id), workflow.definition());
    assert.equal((await client.workflows.versions(workflow.id))[0].workflowId, name);
  });
}

test("what is built runs", async () => {
  await client.workflows.register(examples.order());
  const start = async (amount) => client.runs.wait((await client.runs.start(examples.order(), { inputs: { price: 2.5, amount } })).runId);
  assert.equal((await start(4)).outputs.total, 10);
  const large = await start(400);
  await client.interrupts.reject(large, { voter: "grace" });
  assert.equal((await client.runs.wait(large.runId)).error.code, "order_refused");
  const accepted = await start(400);
  await client.interrupts.approve(accepted, { voter: "ada" });
  assert.equal((await client.runs.wait(accepted.runId)).outputs.total, 1000);
});

test("ways that fail or branch meet again", async () => {
  const wf = new Workflow("meeting");
  const way = wf.variable("way", "string", "");
  wf.step("try", http("https://127.0.0.1:9/"), { onFailure: (w) => w.step("save", setVariable(way, "saved")) })
    .branch("which", `${way} == 'saved'`, { then: (w) => w.step("one", delay(0)), otherwise: (w) => w.end("never") })
    .end("done", { way });
  await wf.check(client);
  await client.workflows.register(wf);
  assert.deepEqual((await client.runs.wait((await client.runs.start(wf)).runId)).outputs, { way: "saved" });
});

test("problems are shown at the line that made them", async () => {
  const wf = new Workflow("broken");
  const start = wf.step("fine", delay(1));
  start.step("wrong", node("core.delay", { mss: 5 })); const wrong = here();
  start.branch("odd", cel("1 +"), { then: (way) => way.step("x", "core.noop") }); const odd = here();
  await assert.rejects(wf.check(client), (error) => {
    assert.ok(error instanceof InvalidWorkflow);
    const found = error.problems.map(({ part, site }) => `${part} ${site.file}:${site.line}`).sort();
    assert.deepEqual(found, [`step "odd" ${me}:${odd}`, `step "wrong" ${me}:${wrong}`]);
    assert.ok(error.message.includes(`${me}:${wrong}: step "wrong"`));
    return true;
  });
});

const mistakes = {
  'there is a step "a" already, from': (wf) => wf.step("a", delay(1)).step("a", delay(1)),
  'nothing can follow here, but the step "a" does': (wf) => wf.end().step("a", delay(1)),
  'nothing can follow here, but the step "c" does': (wf) => wf.branch("b", "true", { then: (w) => w.end("x"), otherwise: (w) => w.end("y") }).step("c", delay(1)),
  'there is no step "nobody"': (wf) => {
    wf.end("end", { x: output("nobody", "y") });
    wf.definition();
  },
  'there is no step "no-body"': (wf) => {
    wf.branch("b", cel("nodes['no-body'].x == 1"), { then: (way) => way.end("c") });
    wf.definition();
  },
  'there is a variable "x" already': (wf) => {
    wf.variable("x", "string");
    wf.channel("x");
  },
  'the variable "x" is one of another workflow': (wf) => wf.end("end", { x: new Workflow("other").variable("x", "string") }),
  'the body of the loop "l" adds no step': (wf) => wf.loop("l", { count: 3 }, (way) => way),
  'the loop "l" needs one of items, count and while': (wf) => wf.loop("l", { count: 3, items: cel("[1]") }, (way) => way.step("a", delay(1))),
  'onFailure of "a" adds no step': (wf) => wf.step("a", delay(1), { onFailure: (way) => way }),
  'a way behind "p" must give back the chain it was given': (wf) => wf.parallel("p", () => new Workflow("other").step("a", delay(1))),
  'the workflow "mistaken" has no step': (wf) => wf.definition(),
  'the supervisor "lead" needs either rules or agentId': (wf) => wf.supervise("lead", {}),
  "only chains of this workflow that have not ended can be joined": (wf) => wf.join("j", [wf.end()]),
};
for (const [message, make] of Object.entries(mistakes)) {
  test(`found where it is made: ${message}`, () => {
    assert.throws(
      () => make(new Workflow("mistaken")),
      (error) => error instanceof BuildError && error.message.includes(message) && error.site.file === me && error.message.startsWith(`${me}:`),
    );
  });
}

test("ids that the host would refuse", () => {
  for (const name of ["", "Order", "1st", "a b", "x".repeat(129)]) assert.throws(() => new Workflow(name), BuildError, name);
});

test("expressions name steps outside of texts only", () => {
  assert.deepEqual(nodesNamed("nodes.a.x + nodes['b-c'].y + nodes[\"d\"].z"), ["a", "b-c", "d"]);
  assert.deepEqual(nodesNamed("'nodes.a.x' == \"nodes['b']\" && my_nodes.c && variables.nodes.d"), []);
  assert.deepEqual(nodesNamed("'it\\'s nodes.a' + nodes.b.c"), ["b"]);
});

test("edges have names of their own, and a definition is a copy", async () => {
  const wf = new Workflow("alike");
  wf.step("a-b", delay(1)).step("c", delay(1));
  wf.step("a", delay(1)).step("b-c", delay(1));
  assert.deepEqual(wf.definition().edges.map((edge) => edge.id), ["a-b-c", "a-b-c-2"]);
  wf.definition().nodes[0].config.ms = 2;
  assert.equal(wf.definition().nodes[0].config.ms, 1);
  await wf.check(client);
});

test("tools take constants and expressions", () => {
  assert.deepEqual(tool("mcp:docs.search", { q: "x" }, { onToolError: "return" }).config, { tool: "mcp:docs.search", arguments: { q: "x" }, onToolError: "return" });
  assert.deepEqual(tool("t", cel("variables.a")).config, { tool: "t", argumentsExpression: "variables.a" });
});

test("a large workflow is built in time that grows with its size", () => {
  const wf = new Workflow("large");
  let chain = wf;
  for (let number = 0; number < 3000; number += 1) chain = chain.step(`s${number}`, delay(0));
  assert.equal(wf.definition().edges.length, 2999);
});

test("a map goes through a list with a tool, an agent or a workflow", async () => {
  const wf = new Workflow("mapped");
  const orders = wf.variable("orders", "array", [{ sku: "tea" }]);
  wf.map("stock", { items: orders, tool: "runner:shop.stock", itemName: "order", arguments: cel("{'sku': order.sku}"), maxConcurrency: 4, onItemError: "collect" })
    .map("again", { items: ["a", "b"], workflow: "hello", workflowInputs: { name: "Ada" } });
  const [stock, again] = wf.definition().nodes.map((one) => one.config);
  assert.deepEqual(stock, { itemsExpression: "variables.orders", argumentsExpression: "{'sku': order.sku}", tool: "runner:shop.stock", maxConcurrency: 4, onItemError: "collect", as: "order" });
  assert.deepEqual(again, { items: ["a", "b"], inputs: { name: "Ada" }, workflow: "hello" });
  await wf.check(client);
  assert.throws(() => wf.map("nothing", { items: [1] }), BuildError);
});
