// Workflows of every kind that the builder knows. python/tests/examples.py builds the same.
import {
  agent, askUser, cel, delay, http, memoryList, memoryPut, nextWorker, node, output, rule, setVariable, setVariables, structuredOutput,
  subWorkflow, terminate, Workflow, workspaceGet, workspacePut, writeChannel,
} from "../dist/workflow/index.js";

export function order() {
  const wf = new Workflow("order", { name: "Order", description: "Prices an order; a large one needs a yes." });
  const price = wf.input("price", "number", { description: "Of one piece" });
  const amount = wf.input("amount", "number");
  const total = wf.variable("total", "number", 0);
  const note = wf.variable("note", "string", "", { sensitive: true });
  wf.step("price", setVariable(total, cel(`double(${price}) * double(${amount})`)), { name: "Work out the price" })
    .branch("size-up", cel(`${total} > 100.0`), {
      then: (way) =>
        way.approve("sign-off", {
          title: "A large order. Go on?",
          artifact: total,
          requiredApprovals: 1,
          approvers: ["ada", "grace"],
          timeoutMs: 86_400_000,
          onReject: (no) => no.fail("refuse", "order_refused", "Nobody wanted it."),
        }),
    })
    .parallel(
      "prepare",
      (way) => way.step("pick", delay(5)).step("pack", delay(5)),
      (way) => way.step("invoice", setVariables({ note: cel("'paid'") }), { retries: 2, retryDelayMs: 10 }),
    )
    .end("end", { total, note, by: output("sign-off", "decidedBy", { optional: true }), currency: "CHF" });
  return wf;
}

export function letters() {
  const wf = new Workflow("letters", { version: "2.1.0", settings: { maxRetries: 1 }, metadata: { owner: "team" } });
  wf.channel("notes", "append", { maxSize: 50 });
  const names = wf.variable("names", "array", ["Ada", "Grace"]);
  const name = wf.variable("name", "string");
  const entries = wf.variable("entries", "array");
  wf.ask("ask", { audience: "Who reads this?", length: "How many pages?" })
    .loop("each", { items: names, into: name, maxIterations: 10 }, (way) =>
      way.step("write", writeChannel("notes", cel(`'Dear ' + ${name}`))).approve("read", { onRefine: (again) => again.step("shorten", delay(0)) }),
    )
    .step("keep", memoryPut(cel("variables.notes[0]"), { tags: ["letter"], ttlSeconds: 3600 }))
    .step("list", memoryList(entries, { tag: "letter", limit: 5 }))
    .step("file", workspacePut("letters/last.md", "none"))
    .step("look", workspaceGet("letters/last.md", "last"))
    .waitForEvent("posted", "letter.posted", { batch: "b-1" }, { timeoutMs: 1000 })
    .step("pens", subWorkflow("order", { inputMapping: { price: "name" }, onChildFailure: "absorb" }))
    .end("done", { audience: cel("nodes.ask.answers.audience") });
  return wf;
}

export function calls() {
  const wf = new Workflow("calls", { configurableSchema: { type: "object", properties: { tone: { enum: ["formal"] } } } });
  const page = wf.variable("page", "object");
  const query = wf.variable("query", "string", "tides");
  const fetched = wf.step("fetch", http(cel(`'https://example.org/?q=' + ${query}`), { into: page, headers: { accept: "text/plain" } }), {
    timeoutMs: 5000,
    onFailure: (way) => way.step("explain", setVariable(page, { status: 0 })),
  });
  const sent = wf.step("send", http("https://example.org/in", { method: "POST", body: { a: [1, null] }, outcomePolicy: "fail" }));
  wf.join("meet", [fetched, sent], "none_failed")
    .step("judge", agent("private.team.judge", { temperature: 0.2, tools: ["openwop:http.fetch"] }), { inputs: { text: page } })
    .step("extract", structuredOutput({ type: "object" }, { systemPrompt: "Find the date." }), { inputs: { messages: [] } })
    .step("last", node("core.identity"), { inputs: { data: output("extract", "data") }, primary: true });
  return wf;
}

export function team() {
  const wf = new Workflow("team");
  const summary = wf.variable("summary", "string", "");
  const topic = wf.input("topic", "string");
  wf.supervise("lead", {
    rules: [
      rule(cel("iteration > 5"), askUser("Go on?")),
      rule(`${summary} == ''`, nextWorker("summarise", { confidence: 0.9, inputs: [{ style: "short" }] })),
    ],
    otherwise: terminate("summarised"),
    inputs: { topic },
    inputMapping: { text: "topic" },
    outputMapping: { summary: "summary" },
    iterationCap: 10,
    fanOut: "parallel",
    maxConcurrency: 2,
    join: { mode: "wait-all" },
  });
  return wf;
}
