// What the compiler takes and what it refuses. Nothing here is run.
import { type api, Client, Workflow } from "baton-client";
import { rule, terminate, type Variable } from "baton-client/workflow";

declare const client: Client;

export async function taken(): Promise<void> {
  const run: api.CreatedRun = await client.runs.start("x", { inputs: { a: 1 }, signal: AbortSignal.timeout(5) });
  const status: api.RunStatus = (await client.runs.get(run.runId)).status;
  for await (const item of client.runs.list({ status: ["failed", status] })) item.createdAt.toUpperCase();
  for await (const event of client.runs.events(run.runId, { after: 3 })) event.sequence.toFixed();
  const wf = new Workflow("typed");
  const count: Variable<number> = wf.variable("count", "number", 3);
  wf.supervise("lead", { rules: [rule(`${count} > 3`, terminate())] });
  const order = new Workflow<{ amount: number; names: string[] }>("order");
  const amount: Variable<number> = order.input("amount", "number");
  order.input("names", "array");
  await order.check(client);
  await client.workflows.register(order);
  await client.runs.start(order, { inputs: { amount: 3, names: [`${amount}`] } });
  await client.runs.start(wf, { inputs: { anything: true } });
}

export async function refused(): Promise<void> {
  // @ts-expect-error there is no such status
  client.runs.list({ status: "done" });
  // @ts-expect-error a branch needs a place
  await client.runs.fork("r", {});
  // @ts-expect-error no event has this
  for await (const event of client.runs.events("r")) event.seq;
  const wf = new Workflow("typed");
  // @ts-expect-error a number is no text
  wf.variable("count", "string", 3);
  // @ts-expect-error there is no such type
  wf.variable("count", "int");
  const order = new Workflow<{ amount: number }>("order");
  // @ts-expect-error the workflow has no such input
  order.input("amounts", "number");
  // @ts-expect-error it is a number
  order.input("amount", "string");
  // @ts-expect-error it is a number
  await client.runs.start(order, { inputs: { amount: "3" } });
  // @ts-expect-error it is missing
  await client.runs.start(order, { inputs: {} });
  // @ts-expect-error a way must be given back
  wf.parallel("p", () => undefined);
}
