// One workflow: its versions, its graph, its text, and the form that starts it.
import { askedView } from "../../components/asked-view.js";
import { copyMenu, digestView } from "../../components/copy-menu.js";
import { jsonView } from "../../components/json-view.js";
import { tabPanel, tabs } from "../../components/tabs.js";
import { ago } from "../../components/time.js";
import { api } from "../../lib/api.js";
import { asked } from "../../lib/asked.js";
import { h } from "../../lib/dom.js";
import { plural } from "../../lib/format.js";
import { address, link } from "../../lib/router.js";
import { computed, signal } from "../../lib/signal.js";
import { checkBox } from "./check.js";
import { graphView } from "./graph.js";
import { nodePanel } from "./node.js";
import { startForm } from "./start.js";
import { versionsView } from "./versions.js";

/** @typedef {import("../../types.js").ScreenContext} ScreenContext */
const TABS = [{ id: "graph", label: "Graph" }, { id: "definition", label: "Definition" }, { id: "versions", label: "Versions" }, { id: "check", label: "Check" }, { id: "start", label: "Start" }];

/** @param {HTMLElement} page @param {string} workflowId @param {ScreenContext} context */
export function workflowView(page, workflowId, context) {
  // Computed, so that other changes of the address do not draw everything anew.
  const tab = computed(() => TABS.find((one) => one.id === context.query.value.get("tab"))?.id ?? "graph");
  const chosen = () => tab.value;
  const versions = asked((left) => api.workflows.versions(workflowId, { signal: left }));
  /** Which version is looked at; null is the newest. */
  const version = computed(() => Number(context.query.value.get("version")) || null);
  const wanted = () => version.value;
  const definition = asked((left) => {
    const one = wanted();
    return one === null ? api.workflows.get(workflowId, { signal: left }) : api.workflows.version(workflowId, one, { signal: left });
  });
  const path = () => (wanted() === null ? `/v1/workflows/${encodeURIComponent(workflowId)}` : `/v1/host/baton/workflows/${encodeURIComponent(workflowId)}/versions/${wanted()}`);
  context.commands([
    { label: "Start this workflow", group: "Workflow", keys: "s", run: () => context.setQuery({ tab: "start" }, { push: true }) },
    { label: "Show the definition", group: "Workflow", keys: "e", run: () => context.setQuery({ tab: chosen() === "definition" ? null : "definition" }) },
  ]);
  page.append(
    h("div", { class: "page-head" },
      link(address("/workflows"), { class: "muted" }, "Workflows"), h("span", { class: "muted", "aria-hidden": "true" }, "/"), h("h1", { class: "mono wrap-any" }, workflowId),
      () => versionSelect(versions.value.value?.versions ?? [], wanted(), context),
      h("span", { class: "row push" },
        link(address("/runs", {}, { q: `workflow:${workflowId}` }), { class: "button small" }, "Runs"),
        link(address("/workflows/:workflowId", { workflowId }, { tab: "start" }), { class: "button primary small" }, "Start"),
        copyMenu(() => ({ request: { path: path() }, baton: ["workflow", "show", workflowId, ...(wanted() === null ? [] : ["--version", String(wanted())])], json: () => definition.value.peek() })))),
    h("div", { class: "wf-about" }, () => {
      const now = definition.value.value;
      const all = versions.value.value?.versions ?? [];
      const one = all.find((each) => each.version === (wanted() ?? all[0]?.version));
      if (!now) return null;
      return [
        h("p", null, h("strong", null, now.name), now.description && h("span", { class: "muted" }, ` · ${now.description}`)),
        h("p", { class: "muted small row wrap" }, h("span", null, `${plural(now.nodes.length, "node")}, ${plural(now.edges.length, "edge")}, ${plural(now.variables.length, "variable")}`),
          one && [h("span", null, "registered ", ago(one.registeredAt)), digestView(one.digest)], h("span", null, `calls itself ${now.version}`)),
      ];
    }),
    tabs({ label: "Workflow", tabs: TABS, chosen, context }),
    tabPanel({ chosen }, () => {
      const shown = chosen();
      if (shown === "versions") return askedView(versions, ({ versions: all }) => versionsView(workflowId, all, context));
      return askedView(definition, (now) => {
        if (shown === "definition") return h("div", { class: "box wf-json" }, jsonView(now, 3));
        if (shown === "check") return checkBox(JSON.stringify(now, null, 2), () => (versions.again(), definition.again()));
        if (shown === "start") return startForm(workflowId, now, wanted() !== null && wanted() !== versions.value.peek()?.versions[0]?.version, context);
        return graphTab(now, context);
      });
    }));
}

/** @param {import("../../types.js").WorkflowVersion[]} all @param {number | null} wanted @param {ScreenContext} context */
function versionSelect(all, wanted, context) {
  if (all.length === 0) return null;
  const newest = all[0]?.version;
  if (all.length === 1) return h("span", { class: "tag" }, `version ${newest}`);
  return h("select", { class: "wf-version", "aria-label": "Version", onChange: (/** @type {Event} */ event) => {
    const version = Number(/** @type {HTMLSelectElement} */ (event.target).value);
    context.setQuery({ version: version === newest ? null : version }, { push: true });
  } }, all.map((one) => h("option", { value: String(one.version), ".selected": one.version === (wanted ?? newest) }, `version ${one.version}${one.version === newest ? ", newest" : ""}`)));
}

/** @param {import("../../types.js").WorkflowDefinition} definition @param {ScreenContext} context */
function graphTab(definition, context) {
  // Its own signal: the graph must not be drawn anew because the address changed.
  const chosen = signal(context.query.peek().get("node"));
  const choose = (/** @type {string} */ id) => {
    chosen.value = id;
    context.setQuery({ node: id });
  };
  const picture = graphView(definition, () => chosen.value, choose);
  const area = h("div", { class: "graph-area" }, picture);
  // A graph wider than its place begins where the reader looks first.
  requestAnimationFrame(() => {
    const node = picture.querySelector(".chosen") ?? picture.querySelector(".g-node");
    if (!node) return;
    const [at, room] = [node.getBoundingClientRect(), area.getBoundingClientRect()];
    area.scrollBy(at.left + at.width / 2 - room.left - room.width / 2, Math.max(0, at.bottom - room.bottom + 24));
  });
  return h("div", { class: "wf-graph" },
    area,
    h("aside", { class: "wf-node", "aria-label": "The chosen node", "aria-live": "polite" }, () => nodePanel(definition, chosen.value, choose)));
}
