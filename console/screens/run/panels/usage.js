// Tokens, money and calls up to the playhead, by model and by node, and what is left of the budget.
import { copyMenu } from "../../../components/copy-menu.js";
import { meter } from "../../../components/status.js";
import { h } from "../../../lib/dom.js";
import { cost, number, plural, tokens } from "../../../lib/format.js";
import { computed } from "../../../lib/signal.js";
import { note, onwards, section, titled } from "./parts.js";

/** @typedef {import("../context.js").RunContext} RunContext */
/** @typedef {{ name: string, calls: number, input: number, output: number, cached: number, usd: number | null }} Sum */

/** @type {import("../context.js").Panel} */
export default {
  id: "usage",
  title: "Usage",
  appliesTo: () => true,
  mount(root, ctx) {
    // Counted anew only where it changes: a playhead that moves between two calls changes nothing.
    const upTo = computed(() => {
      const seq = ctx.seq.value;
      void ctx.log.newest.value;
      const { usage, spent, calls } = ctx.log.facts;
      const count = (/** @type {{ seq: number }[]} */ list) => list.filter((one) => one.seq <= seq).length;
      return `${count(usage)} ${count(spent)} ${count(calls.list)}`;
    });
    root.append(h("div", null, () => {
      void upTo.value;
      return draw(ctx, ctx.seq.peek());
    }));
  },
};

/** @param {RunContext} ctx @param {number} seq */
function draw(ctx, seq) {
  const { models, nodes, tools } = count(ctx, seq);
  const budget = [...ctx.log.facts.spentAt(seq).values()];
  const total = sum("All", models);
  if (models.length === 0 && tools.size === 0 && budget.length === 0) return note("No model was asked and no tool was called as of here.");
  return [
    h("div", { class: "figures" },
      figure("Tokens", tokens(total.input + total.output), `${number(total.input)} in, ${number(total.output)} out`),
      figure("Cost", cost(total.usd), total.usd === null ? "no price is configured" : "estimated"),
      figure("Model calls", number(total.calls), plural(models.length, "model")),
      figure("Tool calls", number([...tools.values()].reduce((all, one) => all + one, 0)), plural(tools.size, "tool"))),
    budget.length > 0 && section("Budget of the whole tree", h("table", { class: "dense" }, h("tbody", null, budget.map((one) => {
      const write = one.dimension === "cost" ? cost : (/** @type {number} */ value) => number(value);
      return h("tr", null, h("td", null, one.dimension), h("td", { class: "num" }, `${write(one.consumed)} of ${write(one.limit)}`), h("td", { class: "num" }, meter(one.consumed, one.limit, `${one.dimension}: ${write(one.consumed)} of ${write(one.limit)}`)));
    })))),
    models.length > 0 && titled("By model", copyMenu(() => ({ json: { models, nodes, tools: Object.fromEntries(tools) } })), table("Model", models)),
    nodes.length > 1 && section("By node", table("Node", nodes)),
    tools.size > 0 && section("Tools", h("table", { class: "dense" },
      h("thead", null, h("tr", null, h("th", null, "Tool"), h("th", { class: "num" }, "Calls"))),
      h("tbody", null, [...tools].sort((a, b) => b[1] - a[1]).map(([name, times]) => h("tr", null, h("td", { class: "mono wrap-any" }, name), h("td", { class: "num" }, number(times))))))),
    note("This run's own, up to the playhead; children count their own."),
  ];
}

/** @param {RunContext} ctx @param {number} seq */
function count(ctx, seq) {
  /** @type {Map<string, Sum>} */
  const models = new Map();
  /** @type {Map<string, Sum>} */
  const nodes = new Map();
  /** @type {Map<string, number>} */
  const tools = new Map();
  for (const { type, payload, nodeId } of onwards(ctx, 0, seq)) {
    if (type === "agent.toolCalled") tools.set(payload.toolName, (tools.get(payload.toolName) ?? 0) + 1);
    if (type !== "provider.usage") continue;
    add(models, `${payload.provider}/${payload.model}`, payload);
    add(nodes, nodeId ?? "", payload);
  }
  return { models: [...models.values()], nodes: [...nodes.values()], tools };
}

/** @param {Map<string, Sum>} sums @param {string} name @param {any} usage */
function add(sums, name, usage) {
  const one = sums.get(name) ?? { name, calls: 0, input: 0, output: 0, cached: 0, usd: null };
  one.calls += 1;
  one.input += usage.inputTokens ?? 0;
  one.output += usage.outputTokens ?? 0;
  one.cached += usage.cacheReadTokens ?? 0;
  if (typeof usage.costEstimateUsd === "number") one.usd = (one.usd ?? 0) + usage.costEstimateUsd;
  sums.set(name, one);
}

/** @param {string} name @param {Sum[]} all @returns {Sum} */
function sum(name, all) {
  return all.reduce((so, one) => ({ name, calls: so.calls + one.calls, input: so.input + one.input, output: so.output + one.output, cached: so.cached + one.cached, usd: one.usd === null ? so.usd : (so.usd ?? 0) + one.usd }),
    /** @type {Sum} */ ({ name, calls: 0, input: 0, output: 0, cached: 0, usd: null }));
}

/** @param {string} what @param {Sum[]} rows */
function table(what, rows) {
  const cached = rows.some((one) => one.cached > 0);
  return h("table", { class: "dense" },
    h("thead", null, h("tr", null, h("th", null, what), ["Calls", "In", cached && "Cached", "Out", "Cost"].map((name) => name && h("th", { class: "num" }, name)))),
    h("tbody", null, rows.map((one) => h("tr", null, h("td", { class: "mono wrap-any" }, one.name), h("td", { class: "num" }, number(one.calls)), h("td", { class: "num" }, tokens(one.input)),
      cached && h("td", { class: "num" }, tokens(one.cached)), h("td", { class: "num" }, tokens(one.output)), h("td", { class: "num" }, cost(one.usd))))));
}

/** @param {string} name @param {string} value @param {string} more */
function figure(name, value, more) {
  return h("div", { class: "figure" }, h("span", { class: "muted small" }, name), h("strong", null, value), h("span", { class: "muted small" }, more));
}
