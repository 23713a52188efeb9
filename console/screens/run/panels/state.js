// What the run knew: what changed since a point before, and everything as of the playhead.
import { askedView } from "../../../components/asked-view.js";
import { copyMenu } from "../../../components/copy-menu.js";
import { jsonDiff } from "../../../components/diff-view.js";
import { jsonView } from "../../../components/json-view.js";
import { h } from "../../../lib/dom.js";
import { number } from "../../../lib/format.js";
import { note, section, titled } from "./parts.js";
import { baselineSelect, beforeAndNow } from "./since.js";

/** @typedef {import("../../../types.js").RunState} RunState */
/** @type {import("./baseline.js").BaselineId[]} */
const WANTED = ["event"];

/** @type {import("../context.js").Panel} */
export default {
  id: "state",
  title: "State",
  appliesTo: () => true,
  mount(root, ctx) {
    const answer = beforeAndNow(ctx, WANTED, ctx.stateAt);
    root.append(
      h("div", { class: "in-bar" }, baselineSelect(ctx, WANTED)),
      askedView(answer, ({ was, is }) => [
        titled(was ? `#${number(was.seq)} → #${number(is.seq)}` : `Before the run → #${number(is.seq)}`,
          copyMenu(() => ({ request: { path: `/v1/host/baton/runs/${ctx.runId}/state?at=${is.seq}` }, baton: ["run", "show", ctx.runId, "--at", String(is.seq)], json: is })),
          jsonDiff(comparable(was), comparable(is))),
        section("Variables", fields(is.variables)),
        Object.keys(is.channels).length > 0 && section("Channels", fields(is.channels)),
        note("Sensitive variables are never shown."),
      ]));
  },
};

/** What differs for a reason: versions and names around it change with everything. @param {RunState | null} state */
function comparable(state) {
  if (!state) return {};
  const children = Object.fromEntries(state.childRuns.map((child) => [child.runId, child.status]));
  const { variables, channels, status, nodeStates, interrupt } = state;
  return { status, variables, ...(Object.keys(channels).length > 0 && { channels }), nodes: nodeStates, children, ...(interrupt && { interrupt: { kind: interrupt.kind, nodeId: interrupt.nodeId, data: interrupt.data } }) };
}

/** @param {Record<string, unknown>} values */
function fields(values) {
  if (Object.keys(values).length === 0) return h("p", { class: "muted" }, "None.");
  return h("div", { class: "box" }, jsonView(values, 2));
}
