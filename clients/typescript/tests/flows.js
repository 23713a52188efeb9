// Workflows that tests run.
import { cel, delay, setVariable, Workflow } from "../dist/workflow/index.js";

/** Asks once, then says what was decided. */
export function gate() {
  const wf = new Workflow("gate");
  const text = wf.variable("text", "string", "a draft");
  wf.approve("review", { title: "Send it?", artifact: text, onReject: (way) => way.end("rejected", { sent: false }) }).end("done", { sent: true, text });
  return wf;
}

/** Takes a while, with events all the time. */
export function ticks(count, ms) {
  const wf = new Workflow("ticks");
  const round = wf.variable("round", "number", 0);
  const last = wf.variable("last", "number", 0);
  wf.loop("each", { count, into: round }, (way) => way.step("wait", delay(ms)).step("note", setVariable(last, cel(`${round}`)))).end("done", { last });
  return wf;
}

export function hello() {
  const wf = new Workflow("hello");
  const name = wf.input("name", "string");
  const greeting = wf.variable("greeting", "string");
  wf.step("greet", setVariable(greeting, cel(`'Hello, ' + ${name} + '!'`))).end("done", { greeting });
  return wf;
}
