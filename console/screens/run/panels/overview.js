// The event at the playhead and the run around it.
import { copyMenu } from "../../../components/copy-menu.js";
import { openForkDialog } from "../../../components/fork-dialog.js";
import { statusMark } from "../../../components/status.js";
import { ago, elapsed } from "../../../components/time.js";
import { copy } from "../../../lib/copy.js";
import { h } from "../../../lib/dom.js";
import { absolute, duration, number, plural, shortId } from "../../../lib/format.js";
import { address, link } from "../../../lib/router.js";
import { computed } from "../../../lib/signal.js";
import { lines } from "../../../components/asked-view.js";
import { failed } from "../../../components/states.js";
import { factOf, nameOf } from "../words.js";
import { facts, note, runLink, seqLink, titled } from "./parts.js";

/** @typedef {import("../context.js").RunContext} RunContext */
const MOST_NODES = 30;

/** @type {import("../context.js").Panel} */
export default {
  id: "overview",
  title: "Overview",
  appliesTo: () => true,
  mount(root, ctx) {
    const state = computed(() => ctx.state.value.value);
    const error = computed(() => ctx.state.value.error);
    root.append(
      h("div", null, () => eventPart(ctx)),
      h("div", { class: "asked", "aria-busy": () => (ctx.state.value.loading ? "true" : null) }, () => {
        if (error.value) return failed(error.value);
        return state.value === null ? lines() : statePart(ctx, state.value);
      }),
      h("div", null, () => runPart(ctx)));
  },
};

/** @param {RunContext} ctx */
function eventPart(ctx) {
  const event = ctx.selection.value;
  if (!event) return null;
  const first = ctx.log.at(0);
  const cause = event.causationId ? Number(event.causationId.split(".").at(-1)) : NaN;
  const since = first ? Date.parse(event.timestamp) - Date.parse(first.timestamp) : 0;
  return titled(h("span", { class: "mono" }, `#${number(event.sequence)} ${nameOf(event)}`),
    copyMenu(() => ({ json: event, link: address("/runs/:runId", { runId: ctx.runId }, { seq: event.sequence }) })),
    facts([
      ["When", h("span", null, absolute(event.timestamp), h("span", { class: "muted" }, ` · ${duration(since)} after the start`))],
      event.nodeId ? ["Node", h("code", null, event.nodeId)] : null,
      Number.isInteger(cause) && event.causationId?.startsWith(`${ctx.runId}.`)
        ? ["Caused by", h("span", null, seqLink(ctx, cause), " ", h("span", { class: "muted" }, ctx.log.at(cause)?.type ?? ""))]
        : event.causationId ? ["Caused by", h("code", null, event.causationId)] : null,
      factOf(event) ? ["Says", h("span", { class: "wrap-any" }, factOf(event))] : null,
      nameOf(event) === event.type ? null : ["Type", h("code", null, event.type)],
    ]),
    h("div", { class: "row wrap" },
      h("button", { type: "button", class: "small", onClick: () => openForkDialog({ runId: ctx.runId, seq: event.sequence }) }, "Fork here…")));
}

/** @param {RunContext} ctx @param {import("../../../types.js").RunState} state */
function statePart(ctx, state) {
  const nodes = Object.entries(state.nodeStates);
  // What is under way is why one looks.
  nodes.sort(([, a], [, b]) => Number(a.status === "completed") - Number(b.status === "completed"));
  const rows = h("tbody", null, nodes.slice(0, MOST_NODES).map(nodeRow));
  const rest = nodes.slice(MOST_NODES);
  const more = h("button", { type: "button", class: "small quiet", onClick: () => (rows.append(...rest.map(nodeRow)), more.remove()) }, `Show ${plural(rest.length, "more node")}`);
  const waits = state.interrupt;
  return titled(`As of #${number(state.seq)}`,
    copyMenu(() => ({
      request: { path: `/v1/host/baton/runs/${ctx.runId}/state?at=${state.seq}` },
      baton: ["run", "show", ctx.runId, "--at", String(state.seq)],
      json: state,
    })),
    facts([
      ["Status", statusMark(state.status)],
      waits ? ["Waits for", h("span", null, waits.kind, " at ", h("code", null, waits.nodeId), waits.expiresAt ? [", expires ", ago(waits.expiresAt)] : null)] : null,
      waits?.data?.title || waits?.data?.question ? ["Asks", String(waits.data.title ?? waits.data.question)] : null,
      ["Memory", h("span", null, "version ", number(state.memoryVersion ?? 0), h("span", { class: "muted" }, ` of ${shortId(state.memoryScope ?? "")}`))],
      ["Workspace", `version ${number(state.workspaceVersion ?? 0)}`],
    ]),
    nodes.length > 0 && h("table", { class: "dense" },
      h("thead", null, h("tr", null, ["Node", "Status", "Visit", "Attempt"].map((name, i) => h("th", { class: i > 1 ? "num" : "" }, name)))), rows),
    rest.length > 0 && more,
    state.childRuns.length > 0 && h("table", { class: "dense" },
      h("thead", null, h("tr", null, ["Child", "Workflow", "Status"].map((name) => h("th", null, name)))),
      h("tbody", null, state.childRuns.slice(0, 200).map((child) => h("tr", null,
        h("td", null, child.url ? h("code", { title: child.url }, shortId(child.runId)) : runLink(child.runId)),
        h("td", null, child.workflowId), h("td", null, statusMark(child.status)))))));
}

/** @param {[string, import("../../../types.js").NodeState]} entry */
function nodeRow([id, node]) {
  return h("tr", null,
    h("td", null, h("code", null, id), node.error && h("div", { class: "bad-text small" }, `${node.error.code}: ${node.error.message}`)),
    h("td", null, statusMark(node.status)), h("td", { class: "num" }, number(node.visit)), h("td", { class: "num" }, number(node.attempt + 1)));
}

/** @param {RunContext} ctx */
function runPart(ctx) {
  const run = ctx.snapshot.value;
  if (!run) return null;
  const item = ctx.item.value;
  const fork = run.forkedFrom;
  return titled("The run",
    copyMenu(() => ({ request: { path: `/v1/runs/${run.runId}` }, baton: ["run", "show", run.runId], json: run })),
    facts([
      ["Id", h("button", { type: "button", class: "quiet small mono as-text", title: "Copy", onClick: () => copy(run.runId, "Run id") }, run.runId)],
      ["Workflow", h("span", null, link(address("/workflows/:workflowId", { workflowId: run.workflowId }), null, run.workflowId),
        item?.workflowVersion ? ` version ${item.workflowVersion}` : "", h("span", { class: "muted mono" }, ` ${run.workflowDigest.slice(0, 12)}`))],
      run.agent ? ["Agent", h("span", null, link(address("/agents/:agentId", { agentId: run.agent.agentId }), null, run.agent.name ?? run.agent.agentId), run.agent.version ? h("span", { class: "muted" }, ` ${run.agent.version}`) : null)] : null,
      ["Status now", statusMark(run.status)],
      run.error ? ["Error", h("span", { class: "bad-text" }, `${run.error.code}: ${run.error.message}`)] : null,
      run.startedAt ? ["Started", h("span", null, absolute(run.startedAt), " · ", ago(run.startedAt))] : null,
      run.startedAt ? ["Took", elapsed(run.startedAt, run.completedAt ?? null)] : null,
      run.parentRunId ? ["Parent", h("span", null, runLink(run.parentRunId), run.parentNodeId ? [" at ", h("code", null, run.parentNodeId)] : null)] : null,
      fork ? ["Fork of", h("span", null, link(address("/runs/:runId", { runId: fork.runId }, { seq: fork.fromSeq }), { class: "mono" }, shortId(fork.runId)),
        ` at #${number(fork.fromSeq)}${fork.requestedFromSeq === undefined ? "" : `, asked for #${number(fork.requestedFromSeq)}`} (${fork.mode}${fork.sideEffects ? `, side effects ${fork.sideEffects}` : ""}) · `,
        link(address("/compare", {}, { a: fork.runId, b: run.runId }), null, "Compare"))] : null,
      fork?.overlaid?.length ? ["Changed", fork.overlaid.join(", ")] : null,
      ["Owner", h("span", null, run.owner.tenant, run.owner.principal ? h("span", { class: "muted" }, ` · ${run.owner.principal}`) : null)],
      run.tags?.length ? ["Tags", h("span", { class: "row wrap" }, run.tags.map((tag) => h("span", { class: "tag" }, tag)))] : null,
    ]),
    run.retention && note("What this run remembered was pruned ", ago(run.retention.prunedAt), ", so nobody can look back to it."));
}
