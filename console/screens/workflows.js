// Workflows: what is registered, in which versions, how it looks, whether a text would be accepted, and a way to start one.
import { askedView } from "../components/asked-view.js";
import { copyMenu, digestView } from "../components/copy-menu.js";
import { findKey, rowKeys } from "../components/row-keys.js";
import { empty } from "../components/states.js";
import { tabPanel, tabs } from "../components/tabs.js";
import { ago } from "../components/time.js";
import { api } from "../lib/api.js";
import { asked } from "../lib/asked.js";
import { h } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { addCommands } from "../lib/keys.js";
import { address, link } from "../lib/router.js";
import { computed, signal } from "../lib/signal.js";
import { checkBox } from "./workflows/check.js";
import { workflowView } from "./workflows/workflow.js";

/** @type {import("../types.js").Screen} */
export default {
  title: (params) => params.workflowId ?? "Workflows",
  mount(root, params, context) {
    const page = h("div", { class: "page workflows" });
    root.append(page);
    if (params.workflowId) workflowView(page, params.workflowId, context);
    else listView(page, context);
  },
};

/** @param {HTMLElement} page @param {import("../types.js").ScreenContext} context */
function listView(page, context) {
  const tab = computed(() => (context.query.value.get("tab") === "check" ? "check" : "list"));
  const chosen = () => tab.value;
  page.append(
    h("div", { class: "page-head" }, h("h1", null, "Workflows"),
      h("span", { class: "push" }, copyMenu(() => ({ request: { path: "/v1/workflows" }, baton: ["workflow", "list"], json: () => api.workflows.list() })))),
    tabs({ label: "Workflows", tabs: [{ id: "list", label: "Registered" }, { id: "check", label: "Check a definition" }], chosen, context }),
    tabPanel({ chosen }, () => (chosen() === "check" ? checkBox("") : list(page, context))));
}

/** @param {HTMLElement} page @param {import("../types.js").ScreenContext} context */
function list(page, context) {
  const wanted = signal(context.query.peek().get("q") ?? "");
  const answer = asked((left) => api.workflows.list({ signal: left }));
  const field = h("input", { type: "search", placeholder: "Find a workflow", "aria-label": "Find a workflow", value: wanted.peek(), onInput: (/** @type {Event} */ event) => {
    wanted.value = /** @type {HTMLInputElement} */ (event.target).value;
    context.setQuery({ q: wanted.peek() });
  } });
  addCommands([...rowKeys(page, ".wf-list a.wf-id"), findKey(field)]);
  return [
    h("div", { class: "list-bar" }, field),
    askedView(answer, ({ workflows }) => {
      if (workflows.length === 0) return empty("No workflow is registered.", "Put a definition into a file and register it, or check one here first.", h("code", null, "baton workflow register FILE.json"));
      return () => {
        const text = wanted.value.trim().toLowerCase();
        const fitting = workflows.filter((one) => `${one.workflowId} ${one.name} ${one.digest}`.toLowerCase().includes(text));
        if (fitting.length === 0) return empty("No workflow has this in its name, id or digest.", `${plural(workflows.length, "workflow")} are registered.`);
        return h("table", { class: "dense wf-list rows" },
          h("thead", null, h("tr", null, h("th", { scope: "col" }, "Workflow"), h("th", { scope: "col", class: "num" }, "Version"), h("th", { scope: "col", class: "roomy" }, "Digest"), h("th", { scope: "col", class: "roomy" }, "Registered"), h("th", { scope: "col" }, h("span", { class: "visually-hidden" }, "Actions")))),
          h("tbody", null, fitting.map((one) => h("tr", null,
            h("td", { class: "grow-cell" }, link(address("/workflows/:workflowId", { workflowId: one.workflowId }), { class: "wf-id mono" }, one.workflowId), h("div", { class: "muted small" }, one.name)),
            h("td", { class: "num" }, one.version),
            h("td", { class: "roomy" }, digestView(one.digest)),
            h("td", { class: "roomy muted" }, ago(one.registeredAt)),
            h("td", { class: "num" }, h("span", { class: "row end" },
              link(address("/runs", {}, { q: `workflow:${one.workflowId}` }), { class: "button quiet small roomy" }, "Runs"),
              link(address("/workflows/:workflowId", { workflowId: one.workflowId }, { tab: "start" }), { class: "button small" }, "Start"),
              copyMenu(() => ({ request: { path: `/v1/workflows/${encodeURIComponent(one.workflowId)}` }, baton: ["workflow", "show", one.workflowId], json: () => api.workflows.get(one.workflowId), link: address("/workflows/:workflowId", { workflowId: one.workflowId }) }), { label: "⋯", class: "icon small" })))))));
      };
    }),
  ];
}
