// One turn of an agent: an ordinary run through the public API, watched here until it ends or asks something.
import { copyMenu } from "../../components/copy-menu.js";
import { jsonView } from "../../components/json-view.js";
import { statusMark } from "../../components/status.js";
import { onRuns } from "../../lib/activity.js";
import { api } from "../../lib/api.js";
import { inOrder } from "../../lib/asked.js";
import { h, uid } from "../../lib/dom.js";
import { asApiError, isAbort } from "../../lib/error.js";
import { cost, shortId, tokens } from "../../lib/format.js";
import { address, link } from "../../lib/router.js";
import { onEnd, signal } from "../../lib/signal.js";

/** @typedef {import("../../types.js").RunSnapshot} RunSnapshot */
/** @typedef {"all" | "reading" | "none"} Reach */
const ENDED = ["completed", "failed", "cancelled"];

/** @param {import("../../types.js").AgentEntry} agent @param {import("../../types.js").EffectiveAgent} effective @param {import("../../types.js").ScreenContext} context */
export function tryBox(agent, effective, context) {
  const run = signal(/** @type {RunSnapshot | null} */ (null));
  const problem = signal("");
  const busy = signal(false);
  const raw = signal(false);
  const id = uid("try");
  const text = h("textarea", { id, rows: 4, class: "prose", placeholder: "What should it do?", "aria-describedby": `${id}-note` });
  const harmless = effective.tools.filter((one) => ["pure", "read"].includes(one.safetyTier)).map((one) => one.toolId);
  const writing = effective.tools.filter((one) => !harmless.includes(one.toolId)).map((one) => one.toolId);
  const writes = writing.length > 0;
  const withheld = signal(writes);
  const reach = h("select", { "aria-label": "Tools", onChange: () => (withheld.value = reach.value === "reading") },
    h("option", { value: "all" }, "all its tools"), writes && h("option", { value: "reading", ".selected": true }, "tools that only read"), h("option", { value: "none" }, "no tools"));
  const body = () => {
    const grant = reach.value === "none" ? [] : reach.value === "reading" ? harmless : null;
    const inputs = raw.peek() ? JSON.parse(text.value || "{}") : { task: text.value.trim() };
    return { agentId: agent.agentId, inputs, tags: ["try"], ...(grant ? { configurable: { toolGrant: grant } } : {}) };
  };
  let wanted = "";
  const begin = inOrder();
  const look = async () => {
    const [now, counts] = [wanted, begin()];
    try {
      const got = await api.runs.get(now, { signal: context.signal });
      if (now === wanted && counts()) run.value = got;
    } catch (error) {
      if (!isAbort(error)) problem.value = asApiError(error).message;
    }
  };
  onEnd(onRuns((rows) => rows.some((one) => one.runId === wanted) && void look()));
  const go = async () => {
    problem.value = "";
    let request;
    try {
      request = body();
    } catch (error) {
      problem.value = `The inputs are not JSON yet: ${error instanceof Error ? error.message : error}`;
      return text.focus();
    }
    if (!raw.peek() && !request.inputs.task) {
      problem.value = "Write a task first.";
      return text.focus();
    }
    busy.value = true;
    try {
      wanted = (await api.runs.start(request, { signal: context.signal })).runId;
      await look();
    } catch (error) {
      if (!isAbort(error)) problem.value = `${asApiError(error).message} ${asApiError(error).hint}`;
    }
    busy.value = false;
    return undefined;
  };
  const swap = () => {
    if (!raw.peek()) text.value = JSON.stringify({ task: text.value }, null, 2);
    else {
      try {
        text.value = JSON.parse(text.value).task ?? "";
      } catch {
        text.value = "";
      }
    }
    raw.value = !raw.peek();
  };
  const include = () => {
    reach.value = "all";
    withheld.value = false;
    reach.focus();
  };
  const model = effective.model;
  return h("form", { class: "card stack try", onSubmit: (/** @type {Event} */ event) => (event.preventDefault(), void go()) },
    h("div", { class: "row" }, h("h2", { class: "grow" }, "Try"), copyMenu(() => {
      try {
        return { request: { method: "POST", path: "/v1/runs", body: body() }, baton: ["agent", "run", agent.agentId, "--task", text.value] };
      } catch {
        return { request: { method: "POST", path: "/v1/runs", body: { agentId: agent.agentId } } };
      }
    })),
    h("label", { for: id, class: "visually-hidden" }, "Task"), text,
    h("div", { class: "row wrap" }, "with", reach, h("button", { type: "button", class: "small quiet", "aria-pressed": () => String(raw.value), onClick: swap }, "Raw JSON inputs"), h("span", { class: "grow" }),
      h("button", { type: "submit", class: "primary", disabled: () => busy.value || !model }, () => (busy.value ? "Starting…" : "Try one turn"))),
    h("div", { role: "status" }, () => withheld.value && h("p", { class: "row wrap small" },
      h("span", { title: writing.join(", ") }, `${writing.length === 1 ? `1 tool is withheld because it writes (${writing[0]})` : `${writing.length} tools are withheld because they write`}.`),
      h("button", { type: "button", class: "small", onClick: include }, writing.length === 1 ? "Include it" : "Include them"))),
    missing(effective).map((line) => h("p", { class: "muted small" }, line)),
    h("p", { class: "muted small", id: `${id}-note` }, model ? [`Starts a run that asks `, h("span", { class: "mono" }, `${model.provider}/${model.model}`), model.provider === "scripted" ? ", a script: nothing is paid." : model.priced ? "; what it costs is counted." : "."] : "There is no model for it here."),
    h("div", { role: "alert" }, () => problem.value && h("p", { class: "wrong" }, problem.value)),
    h("div", { "aria-live": "polite" }, () => run.value && outcome(run.value)));
}

/**
 * What an attempt will lack whatever is chosen, and why.
 * @param {import("../../types.js").EffectiveAgent} effective
 */
export function missing({ tools, unavailable }) {
  const unheld = tools.filter((one) => !one.held).map((one) => one.toolId);
  return [
    unheld.length > 0 && `Calls of ${unheld.join(", ")} will be refused: your key lacks their scopes.`,
    unavailable.length > 0 && `Not here: ${unavailable.join(", ")}. See Connections on the system page, or ask the operator.`,
  ].filter((line) => typeof line === "string");
}

/** @param {RunSnapshot} run */
function outcome(run) {
  const used = run.metrics?.openwopCost;
  const here = address("/runs/:runId", { runId: run.runId });
  const result = run.variables?.result;
  return h("div", { class: "stack try-out" },
    h("div", { class: "row wrap" }, statusMark(run.status), h("span", { class: "grow muted small" }, used ? `${tokens(used.tokens.input)} in, ${tokens(used.tokens.output)} out${used.usd === undefined ? "" : `, ${cost(used.usd)}`}` : ""), link(here, null, "Open run ", h("span", { class: "mono" }, shortId(run.runId)))),
    run.status.startsWith("waiting") && h("p", null, "It asks something: ", link(address("/inbox", {}, { at: run.interrupt ? `${run.runId}/${run.interrupt.interruptId}` : null }), null, "answer in the inbox"), "."),
    run.error && h("p", { class: "wrong" }, `${run.error.code}: ${run.error.message}`),
    result !== undefined ? (typeof result === "string" ? h("pre", { class: "box prose" }, result) : h("div", { class: "box" }, jsonView(result, 3)))
    : !ENDED.includes(run.status) && !run.status.startsWith("waiting") && h("span", { class: "skeleton", style: { width: "60%" } }));
}
