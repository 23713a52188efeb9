// Where the event stands in its trace: the spans that the host tells a collector, and what caused what.
import { askedView } from "../../../components/asked-view.js";
import { copyMenu } from "../../../components/copy-menu.js";
import { api } from "../../../lib/api.js";
import { asked } from "../../../lib/asked.js";
import { copy } from "../../../lib/copy.js";
import { h } from "../../../lib/dom.js";
import { duration, number, plural } from "../../../lib/format.js";
import { factOf, nameOf } from "../words.js";
import { facts, note, section, seqLink, titled } from "./parts.js";

/** @typedef {import("../context.js").RunContext} RunContext */
/** @typedef {import("../../../types.js").RunEvent} RunEvent */
/** @typedef {{ name: string, spanId: string, parentSpanId?: string, traceId: string, startedAt: string, endedAt?: string, status?: { code: string }, attributes: Record<string, any> }} SpanData */
const MOST = 300;

/** @type {import("../context.js").Panel} */
export default {
  id: "trace",
  title: "Trace",
  appliesTo: () => true,
  mount(root, ctx) {
    // The spans of a run that grows are asked for again when asked to; a playhead that moves needs no other ones.
    const answer = asked(async (signal) => /** @type {SpanData[]} */ ((await api.runs.debugBundle(ctx.runId, { signal })).spans ?? []));
    root.append(
      h("div", null, () => causes(ctx)),
      askedView(answer, (spans) => {
        if (spans.length === 0) return section("Trace", note("There are no spans yet: they are told when they end."));
        const trace = spans[0]?.traceId ?? "";
        return titled("Trace", h("span", { class: "row" },
          h("button", { type: "button", class: "small quiet", onClick: answer.again }, "Refresh"),
          copyMenu(() => ({ request: { path: `/v1/runs/${ctx.runId}/debug-bundle` }, json: spans }))),
          facts([["Trace id", h("button", { type: "button", class: "quiet small mono as-text", title: "Copy", onClick: () => copy(trace, "Trace id") }, trace)]]),
          waterfall(ctx, spans),
          note(`${plural(spans.length, "span")} of this run that have ended. Children are in the same trace.`));
      }));
  },
};

/** The way from the event back to where it began. @param {RunContext} ctx */
function causes(ctx) {
  let event = ctx.selection.value;
  if (!event) return null;
  /** @type {RunEvent[]} */
  const chain = [];
  while (event && chain.length < 50) {
    chain.unshift(event);
    event = causeOf(ctx, event);
  }
  if (chain.length < 2) return section("Caused by", note("This event names no cause in this run."));
  return section("Caused by", h("ol", { class: "steps" }, chain.map((one) => h("li", null, seqLink(ctx, one.sequence), h("span", { class: "mono" }, nameOf(one)), h("span", { class: "muted wrap-any" }, factOf(one))))));
}

/** The event that an event names as its cause, if it is in this run. @param {RunContext} ctx @param {RunEvent} event @returns {RunEvent | null} */
function causeOf(ctx, { causationId = "", sequence }) {
  const [, run, seq] = /^(.*)\.(\d+)$/.exec(causationId) ?? [];
  return run === ctx.runId && Number(seq) < sequence ? ctx.log.at(Number(seq)) ?? null : null;
}

/** @param {RunContext} ctx @param {SpanData[]} spans */
function waterfall(ctx, spans) {
  let [start, end] = [Infinity, 0];
  for (const one of spans) [start, end] = [Math.min(start, Date.parse(one.startedAt)), Math.max(end, Date.parse(one.endedAt ?? one.startedAt))];
  const whole = Math.max(1, end - start);
  const ordered = inOrder(spans);
  return h("ol", { class: "fall" }, ordered.slice(0, MOST).map(({ span, depth }) => {
    const from = Date.parse(span.startedAt);
    const ms = Date.parse(span.endedAt ?? span.startedAt) - from;
    const seq = span.attributes["openwop.event_seq"];
    const label = shortName(span);
    return h("li", { class: () => (holds(span, ctx.selection.value) ? "here" : "") },
      h("span", { class: "fall-name clip", style: { "padding-inline-start": `${Math.min(depth, 6) * 0.75}rem` }, title: span.name }, typeof seq === "number" ? seqLink(ctx, seq, label) : label),
      h("span", { class: "fall-bar" }, h("i", { class: span.status?.code === "error" ? "bad" : "", style: { "margin-inline-start": `${((from - start) / whole) * 100}%`, width: `${Math.max(0.5, (ms / whole) * 100)}%` } })),
      h("span", { class: "num muted small" }, duration(ms)));
  }), ordered.length > MOST && h("li", { class: "muted" }, `${number(ordered.length - MOST)} more are in the debug bundle.`));
}

/** What a span is about; its whole name is the title. @param {SpanData} span */
function shortName({ name, attributes }) {
  if (name.endsWith(".attempt")) return `attempt ${Number(attributes["openwop.node_attempt"] ?? 0) + 1}`;
  if (name.startsWith("openwop.node.")) return attributes["openwop.node_id"] ?? name;
  if (name.startsWith("openwop.activity.")) return attributes["gen_ai.request.model"] ?? name;
  return name.replace(/^openwop\./, "");
}

/** Whether an event happened in it. @param {SpanData} span @param {RunEvent | null} event */
function holds(span, event) {
  if (!event) return false;
  if (span.attributes["openwop.event_seq"] === event.sequence) return true;
  const at = Date.parse(event.timestamp);
  return span.attributes["openwop.node_id"] === event.nodeId && event.nodeId !== undefined && Date.parse(span.startedAt) <= at && at <= Date.parse(span.endedAt ?? span.startedAt);
}

/** Parents before children, by time. @param {SpanData[]} spans @returns {{ span: SpanData, depth: number }[]} */
function inOrder(spans) {
  const ids = new Set(spans.map((one) => one.spanId));
  /** @type {Map<string, SpanData[]>} */
  const below = new Map();
  for (const one of spans) {
    const parent = one.parentSpanId && ids.has(one.parentSpanId) ? one.parentSpanId : "";
    const siblings = below.get(parent);
    if (siblings) siblings.push(one);
    else below.set(parent, [one]);
  }
  /** @type {{ span: SpanData, depth: number }[]} */
  const all = [];
  const walk = (/** @type {string} */ id, /** @type {number} */ depth) => {
    for (const span of (below.get(id) ?? []).sort((a, b) => a.startedAt.localeCompare(b.startedAt))) {
      all.push({ span, depth });
      walk(span.spanId, depth + 1);
    }
  };
  walk("", 0);
  return all;
}
