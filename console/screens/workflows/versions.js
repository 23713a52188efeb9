// Every version of a workflow, and what is different between two.
import { askedView } from "../../components/asked-view.js";
import { digestView } from "../../components/copy-menu.js";
import { jsonDiff } from "../../components/diff-view.js";
import { ago } from "../../components/time.js";
import { api } from "../../lib/api.js";
import { asked } from "../../lib/asked.js";
import { h } from "../../lib/dom.js";
import { address, link } from "../../lib/router.js";
import { computed } from "../../lib/signal.js";

/** @param {string} workflowId @param {import("../../types.js").WorkflowVersion[]} all newest first @param {import("../../types.js").ScreenContext} context */
export function versionsView(workflowId, all, context) {
  const between = computed(() => (/^\d+-\d+$/.test(context.query.value.get("between") ?? "") ? context.query.value.get("between") ?? "" : ""));
  return h("div", { class: "stack" },
    h("table", { class: "dense rows" },
      h("thead", null, h("tr", null, h("th", { scope: "col", class: "num" }, "Version"), h("th", { scope: "col" }, "Name"), h("th", { scope: "col" }, "Digest"), h("th", { scope: "col" }, "Registered"), h("th", { scope: "col" }, h("span", { class: "visually-hidden" }, "Compare")))),
      h("tbody", null, all.map((one, index) => {
        const before = all[index + 1];
        return h("tr", null,
          h("td", { class: "num" }, link(address("/workflows/:workflowId", { workflowId }, { version: index === 0 ? null : one.version }), null, one.version)),
          h("td", { class: "grow-cell" }, one.name), h("td", null, digestView(one.digest)), h("td", { class: "muted" }, ago(one.registeredAt)),
          h("td", { class: "num" }, before && h("button", { type: "button", class: "small", "aria-pressed": () => String(between.value === `${before.version}-${one.version}`),
            onClick: () => context.setQuery({ between: `${before.version}-${one.version}` }, { push: true }) }, `Since ${before.version}`)));
      }))),
    h("p", { class: "muted small" }, "The host counts versions by content: registering the same text again changes nothing. A run keeps the version it began with."),
    () => {
      const [a, b] = between.value.split("-").map(Number);
      return a && b && difference(workflowId, a, b);
    });
}

/** @param {string} workflowId @param {number} a @param {number} b */
function difference(workflowId, a, b) {
  const both = asked((left) => Promise.all([api.workflows.version(workflowId, a, { signal: left }), api.workflows.version(workflowId, b, { signal: left })]));
  return h("section", { class: "stack" }, h("h2", null, `From version ${a} to ${b}`), askedView(both, ([before, after]) => h("div", { class: "box" }, jsonDiff(before, after))));
}
