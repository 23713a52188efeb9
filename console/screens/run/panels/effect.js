// A call that left the process: its key, what was tried, what came of it, and what is done when nobody knows.
import { copyMenu } from "../../../components/copy-menu.js";
import { jsonView } from "../../../components/json-view.js";
import { api } from "../../../lib/api.js";
import { asked } from "../../../lib/asked.js";
import { copy } from "../../../lib/copy.js";
import { h } from "../../../lib/dom.js";
import { duration, number, plural } from "../../../lib/format.js";
import { address, link } from "../../../lib/router.js";
import { computed } from "../../../lib/signal.js";
import { stateOf } from "../calls.js";
import { factOf, nameOf } from "../words.js";
import { call as callEvents } from "./operation.js";
import { data, facts, note, section, seqLink, stable } from "./parts.js";

/** @typedef {import("../context.js").RunContext} RunContext */
/** @typedef {import("../calls.js").Call} Call */
const MOST = 200;

/** @type {Record<string, { word: string, tone: string }>} */
const STATES = {
  open: { word: "under way", tone: "live" },
  done: { word: "done", tone: "good" },
  failed: { word: "failed", tone: "bad" },
  unknown: { word: "unknown", tone: "wait" },
  retried: { word: "called again", tone: "live" },
};
/** What each policy does. @type {Record<string, string>} */
const POLICIES = {
  retry: "made again with the same key",
  verify: "looked up, then decided",
  ask: "a human is asked",
  fail: "given up",
};

/** @type {import("../context.js").Panel} */
export default {
  id: "effect",
  title: "Effect",
  appliesTo: (ctx) => {
    void ctx.log.newest.value;
    return ctx.log.facts.calls.list.length > 0;
  },
  mount(root, ctx) {
    const found = stable(() => {
      const event = ctx.selection.value;
      void ctx.log.newest.value;
      const one = event && (ctx.log.facts.calls.bySeq.get(event.sequence) ?? ctx.log.facts.calls.byId.get(event.payload?.data?.callId ?? ""));
      return { one, seq: ctx.seq.value };
    }, ({ one, seq }) => (one ? `${one.callId} ${one.states.length} ${seq}` : `${seq} ${ctx.log.facts.calls.list.length}`));
    // What the host would do if nobody knew; the log says so only when it came to that.
    const agentId = computed(() => (found.value.one ? ctx.log.at(found.value.one.seq)?.payload.agentId ?? null : null));
    const tools = asked((signal) => (agentId.value === null ? null : api.get(`/v1/host/baton/agents/${encodeURIComponent(agentId.value)}/effective`, {}, { signal })));
    root.append(h("div", null, () => (found.value.one ? detail(ctx, found.value.one, found.value.seq, tools) : list(ctx, found.value.seq))));
  },
};

/** @param {Call} call @param {number} seq */
export function effectMark(call, seq) {
  const { word, tone } = STATES[stateOf(call, seq)] ?? { word: "under way", tone: "live" };
  return h("span", { class: ["effect-mark", tone] }, word);
}

/** @param {RunContext} ctx @param {Call} one @param {number} seq @param {import("../../../lib/asked.js").Asked<any>} tools */
function detail(ctx, one, seq, tools) {
  const event = ctx.log.at(one.seq);
  const { events, input, output, inputNote, outputNote } = callEvents(ctx, event ?? { eventId: "", runId: ctx.runId, type: "", payload: { callId: one.callId }, timestamp: "", sequence: one.seq });
  const known = events.filter((each) => each.sequence <= seq);
  const intent = known.find((each) => each.type === "agent.toolCalled");
  const back = known.findLast((each) => each.type === "agent.toolReturned");
  const doubt = known.findLast((each) => each.type === "baton.effect.unknown");
  const attempts = (intent ? 1 : 0) + known.filter((each) => each.type === "baton.effect.retried" && !each.payload.verify).length;
  const ms = back && intent ? back.payload.durationMs ?? Date.parse(back.timestamp) - Date.parse(intent.timestamp) : null;
  return [
    h("div", { class: "in-bar" }, h("strong", { class: "mono wrap-any" }, one.tool), effectMark(one, seq),
      h("span", { class: "push" }, copyMenu(() => ({ json: events })))),
    stateOf(one, seq) === "unknown" && unknown(ctx, one, doubt?.payload.policy),
    facts([
      ["Key", h("button", { type: "button", class: "quiet small mono as-text", title: "Copy", onClick: () => copy(one.callId, "Key") }, one.callId)],
      ["Attempts", attempts === 0 ? "none: it was refused before it was made" : number(attempts)],
      ["Outcome", back ? [back.payload.status ?? (back.payload.error ? "error" : "ok"), ms === null ? null : h("span", { class: "muted" }, ` after ${duration(ms)}`)] : "not recorded as of here"],
      ["Policy", h("span", null, () => {
        const policy = doubt?.payload.policy ?? policyOf(tools.value.value, one.tool);
        return policy ? [h("strong", null, policy), h("span", { class: "muted" }, doubt ? ` · ${POLICIES[policy] ?? ""}` : ` · if nobody knew: ${POLICIES[policy] ?? ""}`)] : h("span", { class: "muted" }, "recorded only when an outcome is unknown");
      })],
      intent?.payload.argsHash ? ["Arguments", h("code", { title: "SHA-256 of the canonical arguments, after secrets are out" }, `${intent.payload.argsHash.slice(0, 16)}…`)] : null,
      intent?.payload.transport ? ["Transport", intent.payload.transport] : null,
      intent?.payload.principal ? ["On behalf of", h("code", null, intent.payload.principal)] : null,
      ["Node", h("code", null, one.nodeId)],
    ]),
    section("What happened", h("ol", { class: "steps" }, events.map((each) => h("li", { class: each.sequence > seq ? "later" : "" },
      seqLink(ctx, each.sequence), h("span", { class: "mono" }, nameOf(each)), h("span", { class: "muted wrap-any" }, factOf(each)))))),
    section("Arguments", input === undefined ? note(inputNote ?? "") : data(input, jsonView)),
    section("Result", !back || output === undefined ? note(back ? outputNote ?? "" : "Not recorded as of here.") : data(output, jsonView)),
  ];
}

/** Amber, with what can be done. @param {RunContext} ctx @param {Call} one @param {string | undefined} policy */
function unknown(ctx, one, policy) {
  const open = ctx.snapshot.value?.interrupt;
  const asks = open?.data?.callId === one.callId;
  return h("div", { class: "banner callout" }, h("div", { class: "stack" },
    h("strong", null, "Nobody knows whether this call took place."),
    h("span", null, policy === "ask" ? "A human decides: call it again with the same key, say that it is done, or fail it." : `Its tool's policy is ${policy ?? "not recorded"}: ${POLICIES[policy ?? ""] ?? ""}.`),
    asks && link(address("/inbox"), { class: "button small" }, "Answer in the inbox")));
}

/** @param {any} agent @param {string} id @returns {string | null} */
function policyOf(agent, id) {
  return agent?.tools?.find((/** @type {any} */ one) => one.toolId === id)?.outcomePolicy ?? null;
}

/** Every call by the playhead. @param {RunContext} ctx @param {number} seq */
function list(ctx, seq) {
  const calls = ctx.log.facts.calls.list.filter((one) => one.seq <= seq);
  if (calls.length === 0) return note("No call has been made as of here.");
  const shown = calls.slice(-MOST);
  return [
    note(`${plural(calls.length, "call")} as of #${number(seq)}. Select one to see its key and its attempts.`),
    h("table", { class: "dense" },
      h("thead", null, h("tr", null, ["At", "Tool", "Outcome"].map((name) => h("th", null, name)))),
      h("tbody", null, shown.map((one) => h("tr", null, h("td", null, seqLink(ctx, one.seq)), h("td", { class: "mono wrap-any" }, one.tool), h("td", null, effectMark(one, seq)))))),
    calls.length > MOST && note(`Only the latest ${number(MOST)} are listed; Events, Effects has all of them.`),
  ];
}
